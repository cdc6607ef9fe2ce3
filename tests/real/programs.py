# SPDX-License-Identifier: Apache-2.0
"""
Real programs that are recorded: how each is started, known to be at work, kept busy and ended. They run until they are
ended, or for half a minute and more. PROGRAMS is the table; `running(name)` starts one.
"""
import collections
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import venvs

APPS = pathlib.Path(__file__).resolve().parent / "apps"
LOAD = pathlib.Path(__file__).resolve().parent / "load.py"

# `venv`: of venvs.py; `command`: its words, where {bin}, {apps}, {port} and {source} stand for paths and a free port;
# `clients`: how many ask a server at once, 0 for what is none; `package`: whose source {source} is; `hz`: to record at;
# `processes`: that are at work when it is ready.
Program = collections.namedtuple("Program", "venv command clients hz package processes title",
                                 defaults=[0, 199, None, 1, None])
PROGRAMS = {
    "gunicorn": Program("web", "{bin}/gunicorn -w 20 -b 127.0.0.1:{port} --chdir {apps} web:app", 8, 99, processes=20,
                        title="gunicorn, 20 sync workers, Flask"),
    "gunicorn-debian": Program("web-debian", "{bin}/gunicorn -w 4 -b 127.0.0.1:{port} --chdir {apps} web:app", 4,
                               processes=4, title="gunicorn, 4 sync workers, Flask"),
    "gthread": Program("web", "{bin}/gunicorn -w 2 --threads 4 -b 127.0.0.1:{port} --chdir {apps} web:app", 8,
                       processes=2, title="gunicorn, 2 workers of 4 threads, Flask"),
    "uvicorn": Program("web", "{bin}/uvicorn --port {port} --workers 2 --app-dir {apps} --no-access-log service:app", 6,
                       processes=2, title="uvicorn, 2 workers, FastAPI, uvloop"),
    "gevent": Program("web", "{bin}/python {apps}/gevent_server.py {port}", 6, title="gevent's WSGI server, Flask"),
    "gevent-debian": Program("web-debian", "{bin}/python {apps}/gevent_server.py {port}", 6,
                             title="gevent's WSGI server, Flask"),
    "gunicorn-gevent": Program("web", "{bin}/gunicorn -k gevent -w 2 -b 127.0.0.1:{port} --chdir {apps} web:app", 6,
                               processes=2, title="gunicorn, 2 workers of gevent, Flask"),
    "pytest": Program("suite", "{bin}/pytest -q -p no:cacheprovider {source}/tests", package="attrs",
                      title="pytest, the suite of attrs"),
    "xdist": Program("suite", "{bin}/pytest -q -p no:cacheprovider -n 2 {source}/tests", package="attrs", processes=2,
                     title="pytest-xdist -n 2, the suite of attrs"),
    "black": Program("suite", "{bin}/black --check --workers 1 {bin}/../lib", title="black (mypyc)"),
    "data": Program("data", "{bin}/python {apps}/frames.py", title="numpy, pandas, polars, pyarrow, scikit-learn"),
    "extensions": Program("extensions", "{bin}/python {apps}/extensions.py",
                          title="lxml, orjson, pydantic, cryptography, contourpy, yaml"),
    "jit": Program("extensions", "{bin}/python {apps}/jit.py", title="numba"),
    "threads": Program("py-spy", "{bin}/python {apps}/threads.py 500", hz=99, title="500 threads"),
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def family(pid):
    """A process and all that it has begun, at any depth."""
    children = collections.defaultdict(list)
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            children[int((folder / "stat").read_text().rpartition(")")[2].split()[1])].append(int(folder.name))
        except OSError:
            continue
    found = [pid]
    for each in found:
        found += children[each]
    return found


def cpu_seconds(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition, process, what, seconds=90):
    until = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise RuntimeError(f"{what}: the program has ended with {process.returncode}")
        if time.monotonic() > until:
            raise RuntimeError(f"{what}: not in {seconds} s")
        time.sleep(0.05)


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12).endswith(b"200")
    except OSError:
        return False


def pythons(pid):
    """Those of a family whose program is Python."""
    found = []
    for each in family(pid):
        with contextlib.suppress(OSError):
            if "python" in os.path.basename(os.readlink(f"/proc/{each}/exe")):
                found.append(each)
    return found


def at_work(pid, processes):
    """Whether so many have begun, and have worked for a second in all since (their start took some of it)."""
    found = pythons(pid)
    return len(found) >= processes and sum(map(cpu_seconds, found)) > 1.5


@contextlib.contextmanager
def started(name, words, port, clients=0, processes=1, seconds=60, more=None):
    """
    Starts a command, and clients that ask the server it is at `port`; gives the process when it is at work. It and all that it
    has begun are ended afterwards. `seconds`: how long the clients ask at most; `more`: for its environment.
    """
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/out", "w+", encoding="utf-8") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
                                   cwd=folder, env={**os.environ, **(more or {})})
        load = None
        try:
            if clients:
                wait_until(lambda: answers(port), process, f"{name}: an answer")
                load = subprocess.Popen([sys.executable, str(LOAD), str(port), str(clients), str(seconds)],
                                        stdout=subprocess.DEVNULL)
            wait_until(lambda: at_work(process.pid, processes), process, f"{name}: at work")
            yield process
        except RuntimeError as error:
            out.seek(0)
            raise RuntimeError(f"{error}: {out.read().strip()[-300:]}") from error
        finally:
            for each in ([load.pid] if load else []) + family(process.pid)[::-1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.wait()
            if load:
                load.wait()


def running(name, seconds=60):
    """`started` for the program `name`. Raises venvs.Missing."""
    program = PROGRAMS[name]
    port = free_port()
    words = program.command.format(bin=venvs.venv(program.venv) / "bin", apps=APPS, port=port,
                                   source=program.package and venvs.source(program.venv, program.package)).split()
    return started(name, words, port, program.clients, program.processes, seconds)
