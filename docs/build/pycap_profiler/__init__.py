# SPDX-License-Identifier: Apache-2.0
"""Record the running program with pycap.

    from pycap_profiler import recorder

    with recorder("trace.bin"):
        work()

pycap runs beside this process, as a program of its own, and writes the trace that `pysym trace.bin` shows: with native and kernel
frames where it may use BPF, of the Python frames alone elsewhere.
"""
import contextlib
import csv
import ctypes
import glob
import os
import signal
import socket
import subprocess
import sys
import tempfile

PR_SET_PTRACER = 0x59616D61  # Linux, include/uapi/linux/prctl.h


def program(name):
    """The path of pycap or pysym, where the installer says that it put it; else the name, which the PATH may know."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for record in glob.glob(os.path.join(glob.escape(folder), "pycap_profiler-*.dist-info", "RECORD")):
        with open(record, encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                path = os.path.normpath(os.path.join(folder, row[0]))
                if os.path.basename(path) == name and os.access(path, os.X_OK):
                    return path
    return name


def _wait_until_ready(process, notices):
    """Until pycap records, as it tells service managers; False: it has ended."""
    while process.poll() is None:
        with contextlib.suppress(socket.timeout):
            if b"READY=1" in notices.recv(4096):
                return True
    return False


@contextlib.contextmanager
def recorder(output="trace.bin", *options):
    """Records this process and its children into the file `output` until the block ends; gives the path of the file.

    `options` are further words for `pycap record`, as "-F", "999" or "--wall". The block begins when sampling has begun. pycap is a
    child of this process, and ends with it. Raises RuntimeError, with pycap's own words, where pycap cannot begin or fails at the end.
    """
    with tempfile.TemporaryFile() as said, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind("")  # a name of its own without a file (unix(7), autobind)
        notices.settimeout(0.1)
        address = "@" + notices.getsockname()[1:].decode()
        ready = False
        try:
            process = subprocess.Popen(
                [program("pycap"), "record", "-q", "-p", str(os.getpid()), "-o", os.fspath(output), *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
                env=dict(os.environ, NOTIFY_SOCKET=address))
        except OSError as error:
            raise RuntimeError(f"pycap does not start: {error}") from error
        try:
            # Without BPF pycap reads this process's memory, which the kernel may grant to parents alone.
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, process.pid, 0, 0, 0)
            ready = _wait_until_ready(process, notices)
            if ready:
                yield output
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
            said.seek(0)
            words = said.read().decode(errors="replace").strip()
        if process.returncode or not ready:
            raise RuntimeError(words or f"pycap ended with {process.returncode}")
        if words:
            print(words, file=sys.stderr)
