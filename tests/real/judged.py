# SPDX-License-Identifier: Apache-2.0
"""
Programs that keep clocks of their own, by groups, as they are recorded from their start to their end. GROUPS is the table;
`record` runs one of them.
"""
import collections
import contextlib
import os
import signal
import subprocess
import sys
import time

import packages
import programs
import venvs

# `command` as in programs.py, with {ext} for the folder of modules built from apps/ext, and {packed} for what `packed`, a
# kind of package, made of apps/work.py. `clients`: how many ask a server at once; `seconds`: after which it is ended, 0 for
# what ends itself; `clocked`: it keeps clocks.
Judged = collections.namedtuple("Judged", "venv command title clients hz seconds packed clocked options",
                                defaults=[0, 99, 0, None, True, []])
SERVED_S = 8
GROUPS = {
    "ml": {
        "native": Judged("ml", "{bin}/python {apps}/native.py", "numpy, OpenCV, pandas, orjson, pydantic"),
        "callbacks": Judged("ml", "{bin}/python {apps}/callbacks.py {ext}", "Cython, pybind11, ctypes, threads of C", hz=999),
        "compiled": Judged("ml", "{bin}/python {apps}/compiled.py", "numba: nested, recursive, parallel, objmode", hz=199),
        "training": Judged("ml", "{bin}/python {apps}/training.py", "torch: training, autograd in Python"),
        "two": Judged("ml", "{bin}/python {apps}/two_frameworks.py", "torch and jax by turns"),
        "loader-fork": Judged("ml", "{bin}/python {apps}/loader.py fork", "torch's DataLoader, 2 workers, fork", hz=199),
        "loader-spawn": Judged("ml", "{bin}/python {apps}/loader.py spawn", "torch's DataLoader, 2 workers, spawn", hz=199),
        "forest": Judged("ml", "{bin}/python {apps}/forest.py", "joblib's processes, scikit-learn's threads", hz=199),
        "everything": Judged("ml", "{bin}/python {apps}/everything.py", "20 packages in one process"),
    },
    "services": {
        "celery-prefork": Judged("services", "{bin}/celery -A queue_tasks worker -P prefork -c 3 --max-tasks-per-child 40",
                                 "celery, 3 processes, 40 tasks each", hz=199, seconds=12),
        "celery-threads": Judged("services", "{bin}/celery -A queue_tasks worker -P threads -c 8", "celery, 8 threads",
                                 hz=199, seconds=12),
        "uwsgi": Judged("services", "{bin}/uwsgi --http-socket 127.0.0.1:{port} --master --processes 2 --threads 2 --lazy-apps "
                        "--max-requests 150 --die-on-term --disable-logging -H {bin}/.. --module pages:wsgi",
                        "uWSGI, 2 workers of 2 threads, lazy-apps, max-requests", 4, 199, SERVED_S),
        "granian": Judged("services", "{bin}/granian --interface asgi --workers 2 --port {port} pages:asgi",
                          "granian (Rust), 2 workers", 4, 199, SERVED_S),
        "hypercorn": Judged("services", "{bin}/hypercorn -w 2 -b 127.0.0.1:{port} pages:asgi", "hypercorn, 2 workers", 4, 199,
                            SERVED_S),
        "daphne": Judged("services", "{bin}/daphne -p {port} pages:asgi", "daphne (twisted)", 4, 199, SERVED_S),
        "django": Judged("services", "{bin}/python {apps}/django_site.py runserver {port}", "Django's runserver, autoreload", 4,
                         199, SERVED_S),
        "flask": Judged("services", "{bin}/flask --app pages:flask_app run --debug -p {port}", "Flask's server, debug", 4, 199,
                        SERVED_S),
        "dask": Judged("cluster", "{bin}/python {apps}/cluster.py dask", "dask, 2 processes of 2 threads", hz=199),
        "ray": Judged("cluster", "{bin}/python {apps}/cluster.py ray", "ray, tasks and an actor", hz=199),
        "notebook": Judged("cluster", "{bin}/python {apps}/notebook.py", "ipykernel, by jupyter_client", hz=199),
        "ansible": Judged("services", "{bin}/ansible-playbook -i localhost, -c local -e ansible_python_interpreter={bin}/python "
                          "{apps}/play.yml", "ansible-playbook",
                          hz=199, clocked=False),
        "spider": Judged("services", "{bin}/python {apps}/spider.py", "scrapy", hz=199),
        "manual": Judged("services", "{bin}/python {apps}/manual.py", "Sphinx, 2 processes", hz=199, clocked=False),
        "pex": Judged("packers", "{bin}/python {packed}", "pex", packed="pex", hz=199),
        "shiv": Judged("packers", "{bin}/python {packed}", "shiv", packed="shiv", hz=199),
        "cx_Freeze": Judged("packers", "{packed}", "cx_Freeze", packed="cx_Freeze", hz=199),
        "pyinstaller": Judged("packers", "{packed}", "PyInstaller, one file", packed="pyinstaller", hz=199),
        "nuitka": Judged("packers", "{bin}/python {packed}", "Nuitka, a module", packed="nuitka", hz=199),
    },
    # Live tests have more of these: test_two_interpreters.py, test_paged_out.py, test_file_systems.py.
    "truth": {
        "coming": Judged("py-spy", "{bin}/python {apps}/coming.py", "threads and processes that come and go", hz=499),
        "coming-proc": Judged("py-spy", "{bin}/python {apps}/coming.py", "the same, --backend proc", hz=499,
                              options=["--backend", "proc"]),
        "inner": Judged("web", "{bin}/python {apps}/inner.py", "4 subinterpreters, 3.12", hz=499),
    },
}


# A server is ended by its own id: what pycap starts besides is none of it.
AS_SERVER = ["sh", "-c", 'echo $$ >pid.new; mv pid.new pid; exec "$@"', "sh"]


def words_of(program, port):
    return program.command.format(bin=venvs.venv(program.venv) / "bin", apps=programs.APPS, port=port,
                                  ext=venvs.extensions(program.venv) if "{ext}" in program.command else "",
                                  packed=packages.packed(program.venv, program.packed) if program.packed else "").split()


def serve(program, port, recorder, folder):
    """Lets clients ask, where there are any, and ends the server."""
    programs.wait_until((folder / "pid").exists, recorder, "the server's id")
    pid = int((folder / "pid").read_text())
    if program.clients:
        programs.wait_until(lambda: programs.answers(port), recorder, "an answer")
        subprocess.run([sys.executable, programs.LOAD, str(port), str(program.clients), str(program.seconds)], check=True,
                       stdout=subprocess.DEVNULL)
    else:
        time.sleep(program.seconds)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError as error:
        raise RuntimeError("the server has ended by itself") from error


def record(pycap, program, trace, clocks, options=()):
    """Records a program from its start to its end."""
    port = programs.free_port()
    words = words_of(program, port)
    clocks.mkdir()
    folder = clocks.parent
    out = trace.with_suffix(".out")
    paths = {} if program.packed else {"PYTHONPATH": str(programs.APPS)}
    if program.seconds:
        words = [*AS_SERVER, *words]
    with open(out, "w", encoding="utf-8") as written, subprocess.Popen(
            [pycap, "record", "-q", "-F", str(program.hz), "-o", trace, *program.options, *options, "--", *words],
            env={**os.environ, "CLOCKS": str(clocks), **paths}, stdout=written, stderr=written, cwd=folder,
            start_new_session=True) as recorder:
        try:
            if program.seconds:
                serve(program, port, recorder, folder)
            recorder.wait(300)
        finally:
            for pid in programs.family(recorder.pid)[::-1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    if not trace.exists() or not trace.stat().st_size:
        raise RuntimeError(f"{' '.join(words)}: {(out.read_text().strip() or 'no trace').splitlines()[-1]}")
