# SPDX-License-Identifier: Apache-2.0
"""Processes that are begun in one of the ways that Python programs have for it, at work for a minute. usage: workers.py WAY"""
import multiprocessing
import os
import subprocess
import sys
import time

import work

SECONDS = 60


def toil(_=None, seconds=SECONDS):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work.answer()
        time.sleep(0.002)


def of_multiprocessing(way):
    """`pool`: the workers of a Pool; else processes."""
    if way == "pool":
        with multiprocessing.Pool(2) as pool:
            pool.map(toil, range(2))
        return
    context = multiprocessing.get_context(way)
    begun = [context.Process(target=toil) for _ in range(2)]
    for each in begun:
        each.start()
    for each in begun:
        each.join()


def loky(_):
    import joblib
    joblib.Parallel(n_jobs=2)(joblib.delayed(work_for)(SECONDS) for _ in range(2))


def work_for(seconds):
    """As a module's function: what is in __main__ is sent to loky's processes by value."""
    from workers import toil as function
    function(seconds=seconds)


def with_execnet(_):
    import execnet
    group = execnet.Group(["popen", "popen"])
    channels = [gateway.remote_exec("import workers; workers.toil(); channel.send(0)") for gateway in group]
    for channel in channels:
        channel.receive(SECONDS * 2)


def by_command(_):
    for begun in [subprocess.Popen([sys.executable, "-c", "import workers; workers.toil()"]) for _ in range(2)]:
        begun.wait()


def titled(_):
    """Workers that are forked from a master with a title, and work before they have one of their own."""
    import setproctitle
    setproctitle.setproctitle("acme: master")
    begun = []
    for kind in ("mail", "pdf"):
        begun.append(os.fork())
        if not begun[-1]:
            toil(seconds=0.5)
            setproctitle.setproctitle(f"acme: {kind} worker")
            toil()
            os._exit(0)
    for each in begun:
        os.waitpid(each, 0)


if __name__ == "__main__":
    {"loky": loky, "execnet": with_execnet, "command": by_command, "titled": titled}.get(sys.argv[1], of_multiprocessing)(sys.argv[1])
