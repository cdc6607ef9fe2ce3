# SPDX-License-Identifier: Apache-2.0
"""
Services of several processes, as their operators start them. SERVICES is the table; `running(name)` starts one, which is at
work for a minute.
"""
import collections
import os

import judged
import programs
import venvs

# `venv`, `command`, `clients` and `processes` as in programs.py, with {packed} as in judged.py; `called`: a regular expression
# of the
# names by which an operator knows its processes; `titled`: how many give themselves a title.
Service = collections.namedtuple("Service", "venv command called clients processes packed titled", defaults=[0, 1, None, 0])
CELERY = "{bin}/celery -A queue_tasks worker -P "
WORKERS = "{bin}/python {apps}/workers.py "
SERVICES = {
    "celery-prefork": Service("titled", CELERY + "prefork -c 3", "celery", processes=4, titled=4),
    "celery-threads": Service("titled", CELERY + "threads -c 4", "celery", titled=1),
    "celery-gevent": Service("titled", CELERY + "gevent -c 8", "celery", titled=1),
    "hypercorn": Service("titled", "{bin}/hypercorn -w 2 -b 127.0.0.1:{port} pages:asgi", r"hypercorn( \(spawn\))?", 4, 3),
    "uvicorn": Service("titled", "{bin}/uvicorn --workers 2 --port {port} --no-access-log pages:asgi", r"uvicorn( \(spawn\))?", 4, 3),
    "gunicorn": Service("web", "{bin}/gunicorn -w 2 -b 127.0.0.1:{port} pages:wsgi", "gunicorn", 4, 3),
    "gunicorn-titled": Service("titled", "{bin}/gunicorn -w 2 -b 127.0.0.1:{port} pages:wsgi", "gunicorn", 4, 3, titled=3),
    "supervisord": Service("titled", "{bin}/supervisord -n -c {apps}/supervisord.conf -l /dev/null -j pid",
                           r"supervisord( \(-c\))?|mailer\.py", processes=5, titled=2),
    "ray": Service("cluster", "{bin}/python {apps}/cluster.py ray 20",
                   r"cluster\.py|default_worker\.py|log_monitor\.py|monitor\.py|dashboard\.py|.*(agent|main|process|head).*", processes=9,
                   titled=4),
    "dask": Service("cluster", "{bin}/python {apps}/cluster.py dask 20", r"cluster\.py( \(spawn\))?", processes=3),
    "loky": Service("titled", WORKERS + "loky", r"workers\.py( \(loky\))?", processes=3),
    "fork": Service("titled", WORKERS + "fork", r"workers\.py", processes=3),
    "spawn": Service("titled", WORKERS + "spawn", r"workers\.py( \(spawn\))?", processes=4),
    "forkserver": Service("titled", WORKERS + "forkserver", r"workers\.py( \(forkserver\))?", processes=5),
    "pool": Service("titled", WORKERS + "pool", r"workers\.py", processes=3),
    "execnet": Service("titled", WORKERS + "execnet", r"workers\.py( \(execnet\))?", processes=3),
    "command": Service("titled", WORKERS + "command", r"workers\.py( \(-c\))?", processes=3),
    "titled": Service("titled", WORKERS + "titled", r"workers\.py", processes=3, titled=3),
    "loader-fork": Service("torch", "{bin}/python {apps}/loader.py fork 100000", r"loader\.py", processes=3, titled=2),
    "loader-spawn": Service("torch", "{bin}/python {apps}/loader.py spawn 100000", r"loader\.py( \(spawn\))?", processes=4, titled=2),
    "inductor": Service("torch", "{bin}/python {apps}/inductor.py", r"inductor\.py.*|.*compile_worker.*", processes=4),
    "pex": Service("packers", "{bin}/python {packed} 60", r"shop\.pex|work(\.py)?", packed="pex"),
    "notebook": Service("titled", "{bin}/jupyter-execute {apps}/shop.ipynb", r"jupyter-execute|(-m )?ipykernel.*", processes=2),
}


def running(name):
    """As programs.started. Raises venvs.Missing."""
    service = SERVICES[name]
    port = programs.free_port()
    folder = venvs.venv(service.venv) / "bin"
    more = {"PATH": f"{folder}:{os.environ['PATH']}"}
    if not service.packed:
        more["PYTHONPATH"] = str(programs.APPS)
    return programs.started(name, judged.words_of(service, port), port, service.clients, service.processes, more=more)
