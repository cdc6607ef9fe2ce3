#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Records runs of two real programs, as a CI job would: of each version named, one run after the other in turns, so that
what the machine does beside changes all of them alike. `web` is a web service (Datasette) that answers a fixed number of
requests of a random mix; `pytest` is the test suite of a real package (Lark). The versions are in versions.py: `main` is
the release, the others have one change each.

usage: record.py [--runs N] [--first N] [--prefix WORDS] DIR PROGRAM VERSION...

Writes DIR/PROGRAM/VERSION-NN.bin, and the work of each in DIR/PROGRAM/work (lines NAME NUMBER, for pysym diff --work). By
root; PYCAP names another pycap. Packages come from PyPI.
"""
import argparse
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real"))
import venvs  # noqa: E402
import versions  # noqa: E402

PYCAP = os.environ.get("PYCAP", str(HERE.parents[1] / "build/pycap"))
REQUESTS = 500
LONGEST = 1800  # seconds that a run may take, waiting for its turn with the others of the machine included


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def recording(trace, prefix, command, folder):
    """Records the command, which runs in `folder`, and waits for its end; raises RuntimeError if it or pycap failed."""
    recorder = subprocess.Popen([*prefix, PYCAP, "record", "-q", "-F", "499", "-o", str(trace), "--", *map(str, command)],
                                cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        if recorder.wait(timeout=LONGEST):
            raise RuntimeError(f"{trace.name}: pycap or the command ended with {recorder.returncode}")
    finally:
        if recorder.poll() is None:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()


def record_web(trace, prefix, checkout):
    """Records the service from its start to its end. Returns its work: requests."""
    database, port = checkout / "shop.db", free_port()
    if not database.exists():
        subprocess.run([sys.executable, HERE / "shop.py", database], check=True)
    command = ["sh", "-c", 'echo $$ >service.pid; exec "$@"', "sh",
               venvs.venv("datasette") / "bin/python", "-m", "datasette", "serve", "shop.db", "-p", port]
    with recording(trace, prefix, command, checkout):
        subprocess.run([sys.executable, HERE / "ask.py", str(port), str(REQUESTS)], check=True)
        os.kill(int((checkout / "service.pid").read_text()), signal.SIGINT)
    return REQUESTS


def record_pytest(trace, prefix, checkout):
    """Records one run of the suite. Returns its work: one suite."""
    python = venvs.venv("lark") / "bin/python"
    with recording(trace, prefix, [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], checkout):
        pass
    return 1


RECORDERS = {"web": record_web, "pytest": record_pytest}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10, help="of each version")
    parser.add_argument("--first", type=int, default=1, help="number of the first run")
    parser.add_argument("--prefix", default="", help="words before pycap, like flock FILE where recordings take turns")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("program", choices=RECORDERS)
    parser.add_argument("versions", nargs="+", choices=versions.NAMES)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve() / arguments.program
    folder.mkdir(parents=True, exist_ok=True)
    checkouts = {name: versions.checkout(arguments.program, name) for name in arguments.versions}
    for number in range(arguments.first, arguments.first + arguments.runs):
        for name, checkout in checkouts.items():
            trace = folder / f"{name}-{number:02}.bin"
            work = RECORDERS[arguments.program](trace, arguments.prefix.split(), checkout)
            with open(folder / "work", "a", encoding="utf-8") as out:
                print(trace.name, work, file=out)
            print(trace, flush=True)


if __name__ == "__main__":
    main()
