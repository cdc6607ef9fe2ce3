# SPDX-License-Identifier: Apache-2.0
"""Whatever way Python is run in, samples are where the program says it spins.

Each program (testdata/programs/told.py) tells where; samples are compared.
"""
import collections
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

import accounts
from conftest import CACHE, PYSYM, ROOT, interpreters, why_no_bpf

sys.path.insert(0, str(ROOT / "tests/tools"))
import matrix  # noqa: E402

pytestmark = pytest.mark.live

PROGRAMS = ROOT / "testdata/programs"
PRELUDE = f"import sys; sys.path.insert(0, {str(PROGRAMS)!r})\nfrom told import spin\n"


def check(trace, text, names, sysroot=None, expected=None):
    """
    Every sample in a spinner has the chain that was told: functions, files, and the lines of all callers. Those of
    `expected`, or else all, have samples.
    """
    chains = {}
    for line in text.splitlines():
        if line.startswith("{"):
            frames = [tuple(frame) for frame in json.loads(line)["frames"]]
            chains[frames[-1][:2]] = frames
    assert {"spin_" + name for name in names} == {name for name, _ in chains}, text
    right, wrong, marked = collections.Counter(), [], 0
    for frames, marks, shown in matrix.samples_of(str(trace), *(["--sysroot", sysroot] if sysroot else [])):
        if not frames or not frames[-1][0].startswith("spin_"):
            continue
        told = chains[frames[-1][:2]]
        if marks:
            marked += 1
        elif frames[:-1] == told[:-1] and frames[-1][2] in matrix.SPINNER_LINES:
            right[frames[-1][0]] += 1
        else:
            wrong.append((shown, told))
    assert not wrong, f"{len(wrong)} wrong of {sum(right.values())}, the first: {wrong[0]}"
    assert accounts.is_rare(marked, sum(right.values())), (marked, right)
    # At 499 Hz 0.1 s are 50; up to 3.6 the spinners' clock is that of all threads together.
    expected = names if expected is None else expected
    lacking = [name for name in expected if not right["spin_" + name]]
    # What was over when its process was known to be Python is told of as that, tick by tick; so are ticks that were skipped.
    account = accounts.read(PYSYM, trace)
    assert 25 * len(lacking) <= account.missing and len(lacking) <= len(expected) / 2, (lacking, right, account.text())


@pytest.fixture
def tell(pycap, tmp_path):
    """Records a command that tells; returns the trace and what was told."""
    why = why_no_bpf()
    if why:
        pytest.skip(why)

    def run(*command, options=(), **keywords):
        trace = tmp_path / "t.bin"
        done = pycap("record", "-q", "-F", "499", "-o", trace, *options, "--", *command, **keywords)
        assert done.returncode == 0, done.stderr
        return trace, done.stdout
    return run


def script(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + text)
    return path


EXITED_MAIN = """
import ctypes, os, threading
left = [1, 2, 3]

def work(n):
    nested(n)
    left.remove(n)
    if not left:
        os._exit(0)

def nested(n):
    import time
    while os.path.exists('/proc/self/task/%d/stat' % os.getpid()) and alive():
        time.sleep(0.01)
    spin('thread%d' % n, 0.2)

def alive():
    return open('/proc/self/stat').read().rpartition(')')[2].split()[0] != 'Z'

for n in left[:]:
    threading.Thread(target=work, args=(n,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_exited_main(python, tell, tmp_path):
    """The main thread has exited, the others go on."""
    if subprocess.run([python.path, "-c", "import ctypes"], capture_output=True, check=False).returncode:
        pytest.skip("this interpreter has no ctypes")
    trace, text = tell(python.path, script(tmp_path, EXITED_MAIN))
    check(trace, text, ["thread1", "thread2", "thread3"], python.root)


SUBINTERPRETERS = """
import threading
spin('main_before', 0.1)
try:
    import _interpreters as interpreters
    create = interpreters.create
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    create, run = interpreters.create, interpreters.run_string
TEXT = '''
import sys
sys.path.insert(0, %r)
from told import spin
def inside():
    spin(%r, 0.3)
inside()
'''

def work(name):
    run(create(), TEXT % (sys.path[0], name))

threads = [threading.Thread(target=work, args=('sub%d' % n,)) for n in range(3)]
for thread in threads:
    thread.start()
spin('main_beside', 0.3)
for thread in threads:
    thread.join()
"""


def test_subinterpreters(python, tell, tmp_path):
    """Interpreters with a GIL of their own, each in a thread of its own, beside the first one."""
    if python.version < (3, 12):
        pytest.skip("a GIL of their own came with 3.12")
    trace, text = tell(python.path, script(tmp_path, SUBINTERPRETERS))
    check(trace, text, ["main_before", "main_beside", "sub0", "sub1", "sub2"], python.root)


# The module that makes interpreters, as each version calls it.
INTERPRETERS = """
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
"""

MAKERS = INTERPRETERS + """
import hashlib, os, threading
TEXT = '''
import sys
sys.path.insert(0, %r)
from told import spin
def inside():
    spin(%r, 0.3)
inside()
'''

def work(made, name):
    run(made, TEXT % (sys.path[0], name))

made = interpreters.create()
thread = threading.Thread(target=work, args=(made, 'sub'))
thread.start()
spin('maker', 0.3, 'md5(data)', md5=hashlib.md5, data=b'x' * (1 << 20))
thread.join()
work(made, 'main')
os._exit(0)
"""


def test_subinterpreters_of_other_threads(python, tell, tmp_path):
    """A subinterpreter that another thread made than runs it; a maker that runs without the GIL meanwhile."""
    if python.version < (3, 8):
        pytest.skip("no module that makes interpreters")
    trace, text = tell(python.path, script(tmp_path, MAKERS))
    names = ["sub", "maker", "main"]
    if python.version < (3, 10):
        # Nothing tells which of two threads runs an interpreter: no stack is right, another's would be wrong.
        check(trace, text, names, python.root, expected=["main"])
        summary = subprocess.run([PYSYM, trace, "--format", "summary", "-v"], capture_output=True, text=True, check=True).stdout
        assert re.search(r"interpreter_unsure +[\d,]{2}", summary), summary
    else:
        check(trace, text, names, python.root)


RUNNER = INTERPRETERS + """
import hashlib, threading, time
TEXT = '''
import time
def inside():
    end = time.time() + 0.6
    while time.time() < end: pass
inside()
'''
made = interpreters.create()
def work():
    print(threading.get_native_id(), flush=True)
    end = time.thread_time() + 0.2  # that it has a state of the main interpreter's is known when it gets another one
    while time.thread_time() < end: pass
    run(made, TEXT)
def beside():
    while thread.is_alive(): hashlib.md5(data)
data = b'x' * (1 << 20)
thread = threading.Thread(target=work)
thread.start()
beside()
"""


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_whose_subinterpreter(python, backend, tell, folded, tmp_path):
    """A subinterpreter's first state names the thread that made it, up to 3.12; its frames are those of the thread that runs it."""
    if python.version < (3, 8):
        pytest.skip("no module that makes interpreters")
    trace, text = tell(python.path, script(tmp_path, RUNNER), options=["--backend", backend])
    inside = [frames[0] for frames, _ in folded(trace, "-t", "--layer", "python") if any(f.startswith("inside ") for f in frames)]
    assert all(thread.endswith(f"-{text.strip()}") for thread in inside), (inside, text)
    assert inside or python.version < (3, 10)


ENTERS = INTERPRETERS + """
TEXT = '''
import time
def inside():
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
inside()
'''
def outer():
    run(interpreters.create(), TEXT)
outer()
"""


def test_order_in_a_subinterpreter(python, tell, folded, tmp_path):
    """Its frames stand inside of the C functions that entered it, also where only their number tells which activation is whose."""
    if python.version < (3, 8):
        pytest.skip("no module that makes interpreters")
    trace, _ = tell(python.path, script(tmp_path, ENTERS))
    wrong, right = [], 0
    for frames, count in folded(trace):
        module = next((i for i, f in enumerate(frames) if f.startswith("<module> (<string>")), None)
        enters = [i for i, f in enumerate(frames) if "_run_script" in f or f.startswith(("[_xxsub", "[_interp"))]
        if module is None or not enters or not any(f.startswith("inside ") for f in frames):
            continue
        if max(enters) < module:
            right += count
        else:
            wrong.append(frames)
    assert accounts.is_rare(len(wrong), right) if right else not wrong, wrong[:3]


ASYNCIO = """
import asyncio

class Service:
    async def handle(self, n):
        await asyncio.sleep(0.01)
        return [await self.query(n)]

    async def query(self, n):
        async with Session() as session:
            async for row in session.rows():
                return await self.work(n)

    async def work(self, n):
        await asyncio.sleep(0)
        spin('task%d' % n, 0.1)

class Session:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def rows(self):
        yield 1

async def leave(n):
    try:
        await asyncio.gather(*[Service().handle(i) for i in range(n)])
    finally:
        spin('leaving', 0.1)

class Failing:
    async def handle(self, future):
        await self.query(future)

    async def query(self, future):
        await self.wait(future)
        spin('later', 0.1)

    async def wait(self, future):
        try:
            await future
        except ValueError:
            spin('thrown', 0.1)

loop = asyncio.new_event_loop()
loop.run_until_complete(leave(4))
failed = asyncio.Future(loop=loop)
loop.call_later(0.01, failed.set_exception, ValueError())
loop.run_until_complete(Failing().handle(failed))
loop.call_soon(lambda: (spin('callback', 0.1), loop.stop()))
loop.run_forever()
"""


def test_asyncio(python, tell, tmp_path):
    """
    Frames of coroutines, async generators and async with in the order in which they await one another, also of those that an
    exception goes through to what they await.
    """
    if python.version < (3,):
        pytest.skip("asyncio came with 3.4")
    if subprocess.run([python.path, "-c", "import asyncio"], capture_output=True, check=False).returncode:
        pytest.skip("this interpreter has no asyncio")
    trace, text = tell(python.path, script(tmp_path, ASYNCIO))
    check(trace, text, ["task0", "task1", "task2", "task3", "leaving", "callback", "thrown", "later"], python.root)


MULTIPROCESSING = """
import multiprocessing

def work(n):
    nested(n)

def nested(n):
    spin('child%d' % n, 0.2)

if __name__ == '__main__':
    context = multiprocessing.get_context(sys.argv[1]) if hasattr(multiprocessing, 'get_context') else multiprocessing
    children = [context.Process(target=work, args=(n,)) for n in range(3)]
    for child in children:
        child.start()
    spin('parent', 0.2)
    for child in children:
        child.join()
"""


@pytest.mark.smoke("fork")
@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python, way, tell, tmp_path):
    if python.version < (3,) and way != "fork":
        pytest.skip("2.7 only forks")
    if subprocess.run([python.path, "-c", "import multiprocessing.context" if way != "fork" else "import multiprocessing"],
                      capture_output=True, check=False).returncode:
        pytest.skip("this interpreter has no multiprocessing")
    trace, text = tell(python.path, script(tmp_path, MULTIPROCESSING), way)
    check(trace, text, ["parent", "child0", "child1", "child2"], python.root)


# ---- embedded in other programs ----

HOST = """
#include <Python.h>
#include <pthread.h>

/* Threads that Python did not start, and come again. */
static void *work(void *number)
{
    char text[64];
    for (int i = 0; i < 2; i++) {
        PyGILState_STATE state = PyGILState_Ensure();
        snprintf(text, sizeof text, "called_by_host('host%d_%d')", (int)(long)number, i);
        if (PyRun_SimpleString(text))
            _exit(1);
        PyGILState_Release(state);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    (void)argc;
    Py_InitializeEx(0);
#if PY_VERSION_HEX < 0x03070000
    PyEval_InitThreads();
#endif
    if (PyRun_SimpleString(argv[1]))
        return 1;
    PyThreadState *mine = PyEval_SaveThread();
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    PyEval_RestoreThread(mine);
    PyRun_SimpleString("called_by_host('last')");
    return 0;
}
"""


def test_embedded(python, tell, tmp_path):
    """A C program that holds Python, with threads of its own."""
    prefix = pathlib.Path(os.path.realpath(python.path)).parents[1]
    version = ".".join(map(str, python.version))
    header = glob.glob(f"{prefix}/include/python{version}*/Python.h")
    library = glob.glob(f"{prefix}/lib/libpython{version}*.so*") + \
        glob.glob(f"{prefix}/lib/{sysconfig.get_config_var('MULTIARCH')}/libpython{version}*.so*")
    if python.root or not header or not library:
        pytest.skip("this interpreter has no headers or no shared library")
    host = tmp_path / "host"
    (tmp_path / "host.c").write_text(HOST)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", host, tmp_path / "host.c", "-I", pathlib.Path(header[0]).parent,
                    library[0], "-lpthread"], check=True, timeout=300)
    home = {} if str(prefix) == "/usr" else {"PYTHONHOME": str(prefix)}
    text = PRELUDE + "def called_by_host(name):\n    spin(name, 0.1)\nspin('begin', 0.1)\n"
    trace, said = tell(host, text, env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(library[0]), **home})
    check(trace, said, ["begin", "last"] + [f"host{n}_{i}" for n in range(3) for i in range(2)])


WSGI = """
import os

def application(environ, start_response):
    view(environ['PATH_INFO'].strip('/'))
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'done']

def view(name):
    spin(name, 0.2)
"""


def test_uwsgi(tell, tmp_path):
    """uWSGI holds Python in a plugin, and forks workers."""
    made = subprocess.run([ROOT / "tests/uwsgi.sh"], capture_output=True, text=True, timeout=300, check=False)
    if made.returncode == 77:
        pytest.skip(made.stderr.strip().splitlines()[-1])
    assert made.returncode == 0, made.stderr
    uwsgi, plugins, libraries = made.stdout.split()
    plugin = os.path.basename(glob.glob(f"{plugins}/python3*_plugin.so")[0])[:-len("_plugin.so")]
    path = script(tmp_path, WSGI)
    address = tmp_path / "http.sock"
    client = (f"import socket, time\n"
              f"for name in ('first', 'second', 'third'):\n"
              f"    for _ in range(1200):\n"
              f"        try:\n"
              f"            s = socket.socket(socket.AF_UNIX); s.connect({str(address)!r}); break\n"
              f"        except OSError: time.sleep(0.1)\n"
              f"    s.sendall(b'GET /%s HTTP/1.0\\r\\n\\r\\n' % name.encode())\n"
              f"    while s.recv(4096): pass\n")
    command = (f'"$0" --plugins-dir "$1" --plugin "$5" --http-socket "$2" --wsgi-file "$3" --master --processes 2 '
               f'--threads 2 --die-on-term --disable-logging & server=$!; /usr/bin/python3 -c "$4"; kill $server; '
               f'wait $server || true')
    trace, text = tell("sh", "-c", command, uwsgi, plugins, address, path, client, plugin,
                       env={**os.environ, "LD_LIBRARY_PATH": libraries})
    check(trace, text, ["first", "second", "third"])


# ---- packages that switch stacks ----

def packages(python, *names):
    """A folder with packages from PyPI, made once; the reason where there is none."""
    folder = CACHE / "wheels" / ("%d.%d-" % python.version + "-".join(names))
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run([python.path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                   "--only-binary=:all:", "--target", folder, "--upgrade", *names], capture_output=True, text=True,
                                  timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"pip takes too long to install {', '.join(names)}")
        if done.returncode:
            pytest.skip(f"pip can't install {', '.join(names)}: {(done.stderr.strip() or 'no reason').splitlines()[-1]}")
        (folder / ".complete").touch()
    return folder


GEVENT = """
import gevent
from gevent import monkey; monkey.patch_all()
import threading, time

def work(name):
    time.sleep(0.01)
    nested(name)

def nested(name):
    gevent.sleep(0)
    sorted([1], key=lambda _: spin(name, 0.1))

spin('hub', 0.1)
jobs = [gevent.spawn(work, 'job%d' % n) for n in range(3)]
thread = threading.Thread(target=work, args=('patched',))
thread.start()
gevent.joinall(jobs)
thread.join()
spin('after', 0.1)
"""


def newest(origin):
    return next((i for i in reversed(interpreters()) if i.name.endswith(origin)), None)


@pytest.mark.parametrize("origin", ["debian", "pyenv"])
def test_gevent(origin, tell, tmp_path):
    """Greenlets of gevent: each has the stack it would have alone."""
    python = newest(origin)
    if not python:
        pytest.skip(f"no {origin} interpreter")
    folder = packages(python, "gevent")
    trace, text = tell(python.path, script(tmp_path, GEVENT), env={**os.environ, "PYTHONPATH": str(folder)})
    check(trace, text, ["hub", "job0", "job1", "job2", "patched", "after"])
