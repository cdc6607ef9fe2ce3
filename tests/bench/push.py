#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `pysym push` costs a large host: a folder as pycap rotates into on one of 32 CPUs, made up by make_trace, is sent.

    make all build/tools/make_trace
    tests/bench/push.py [--files 60] [--cpus 32 | 16] [--window 15s] [--series process | host]
                        [--pyroscope URL | --parca URL] [OPTION OF PUSH...]

Each file is a minute of 99 Hz on so many CPUs, all busy (16 of 32: half busy), of 60 processes with 4 threads each, a series of
its own for each (or one for all), and 5,000 stacks that are 30 Python frames deep with native ones around them. Without a URL the small server
of the tests stands in for Parca; its decoder is slow, so that only CPU time says something, not the time that passes. The
samples are old: a real Pyroscope needs -validation.reject-older-than=0s to take them.

Prints CPU time of all of pysym's processes and the memory of its largest, by what is sent.
"""
import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PYSYM = os.environ.get("PYSYM", TOP / "build/pysym")
MAKE_TRACE = TOP / "build/tools/make_trace"
HERTZ, MINUTE_S, PROCESSES, THREADS, STACKS, DEPTH = 99, 60, 60, 4, 5000, 30


def make_folder(folder, files, cpus):
    """Bytes of all. Each minute is of another hour, as `run` has it: no two share a window, and all differ."""
    for number in range(files):
        subprocess.run([MAKE_TRACE, folder / f"host-{number:04}.bin", f"samples={cpus * HERTZ * MINUTE_S}", f"cpus={cpus}",
                        f"interval_us={1_000_000 // HERTZ}", f"processes={PROCESSES}", f"threads={PROCESSES * THREADS}",
                        f"stacks={STACKS}", f"depth={DEPTH}", "natural=1", "containers=1", f"run={number + 1}"], check=True)
    return sum(path.stat().st_size for path in folder.iterdir())


def stand_in(kind):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([sys.executable, TOP / "tests/integration/profile_store.py", kind, str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, f"http://127.0.0.1:{port}"
        except ConnectionRefusedError:
            time.sleep(0.05)


def push(command):
    """(CPU seconds, seconds, kB of its largest process). It waits for its children, whose figures it gets so."""
    begin = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"pysym push: exit status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss


def figures(path):
    return {name: float(figure) for name, figure in re.findall(r"^(\w+) (\S+)$", path.read_text(), re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--cpus", type=int, default=32)
    parser.add_argument("--window", default="15s")
    parser.add_argument("--series", choices=("process", "host"), default="process")
    parser.add_argument("--pyroscope")
    parser.add_argument("--parca")
    o, more = parser.parse_known_args()
    kind = "pyroscope" if o.pyroscope else "parca"
    url, server = o.parca or o.pyroscope, None
    with tempfile.TemporaryDirectory(prefix="pysym-push-") as top:
        folder, status = pathlib.Path(top) / "traces", pathlib.Path(top) / "push.prom"
        folder.mkdir()
        trace_bytes = make_folder(folder, o.files, o.cpus)
        if not url:
            server, url = stand_in(kind)
        cpu_s, seconds, peak_kb = push([str(word) for word in (
            PYSYM, "push", f"--{kind}", url, "--state", pathlib.Path(top) / "state", "--status", status, "--window", o.window,
            "--label", f"pid={'{pid}' if o.series == 'process' else ''}", "--label", "container_id=", "--no-host", *more, folder)])
        if server:
            server.send_signal(signal.SIGKILL)
            server.wait()
        recorded_s, f = o.files * MINUTE_S, figures(status)
    profiles, sent = f["pysym_push_accepted_profiles_total"], f["pysym_push_accepted_bytes_total"]
    print(f"{o.files} files of a minute, {o.cpus} CPUs busy, {trace_bytes / 1e6:.1f} MB; {f['pysym_push_accepted_samples_total']:,.0f} samples")
    print(f"{cpu_s:.1f} s CPU: {100 * cpu_s / recorded_s:.2f} % of one core; {seconds:.1f} s passed; {peak_kb / 1024:.0f} MiB the largest process")
    print(f"{profiles:,.0f} profiles, {sent / 1e6:.1f} MB: {sent / profiles:,.0f} bytes each, {sent / recorded_s / 1e3:.1f} kB/s, "
          f"{sent / recorded_s * 86400 / 1e9:.2f} GB a day, {profiles / recorded_s:.2f} profiles/s")


if __name__ == "__main__":
    main()
