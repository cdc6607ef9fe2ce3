# SPDX-License-Identifier: Apache-2.0
"""Processes are called what their operators call them, and the same in all outputs.

Workers that a program begins anew by its name, processes with titles by name and title, one that ran several programs by the
last one. What an output shows is what --comm takes.
"""
import json
import re

import pytest

from conftest import PYTHON
from page_data import Page
from profile_store import ProfileStore
from pusher import Pusher, good

pytestmark = pytest.mark.live

WORKERS = """
import multiprocessing, sys, time

def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(2000))

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    workers = [multiprocessing.Process(target=busy, args=(0.3,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    busy(0.2)
    for worker in workers:
        worker.join()
"""
# A worker computes before it sets its title, as those of celery do; the words of the command line stay.
TITLES = """
import ctypes, os, time

def title(text):
    ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)

def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(2000))

title("acme: master")
busy(0.2)
for name in "mail", "pdf":
    if not os.fork():
        busy(0.2)
        title(f"acme: {name} work")
        busy(0.2)
        os._exit(0)
for _ in range(2):
    os.wait()
"""
EXECS = """
import os, sys, time
end = time.process_time() + 0.3
while time.process_time() < end:
    sum(range(2000))
if len(sys.argv) > 1:
    os.execv(sys.executable, [sys.executable, sys.argv[1]])
"""


@pytest.fixture
def recorded(record, tmp_path):
    """Records a program of this text and name."""
    def run(name, text, *arguments):
        program = tmp_path / name
        program.write_text(text)
        return record(PYTHON, program, *arguments, options=("-q", "-F", "499"))
    return run


@pytest.fixture
def shown(pysym):
    """What an output says."""
    def run(trace, *options):
        done = pysym(trace, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def rows(shown, trace, *options):
    return json.loads(shown(trace, "-f", "summary", "--json", *options))["processes"]


def roots(shown, trace, *options):
    """The names of processes in folded stacks, without their pids."""
    return {line.split(";")[0].rsplit("-", 1)[0] for line in shown(trace, "-f", "folded", *options).splitlines()}


def processes_of_page(shown, trace, tmp_path):
    shown(trace, "-o", tmp_path / "page.html")
    return Page(tmp_path / "page.html").head["processes"]


def series(trace, tmp_path):
    with ProfileStore("pyroscope") as store:
        pusher = Pusher(tmp_path, store)
        good(pusher.run(trace))
        pusher.end()
        return {dict(p.series)["service_name"] for p in store.profiles if p.name != "pycap_lost"}


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers(recorded, shown, pysym, tmp_path, method):
    trace = recorded("shop.py", WORKERS, method)
    worker = f"shop.py ({method})"
    names = {"shop.py", worker, "shop.py (resource_tracker)"}  # that may have no sample
    found = rows(shown, trace)
    assert {"shop.py", worker} <= {row["process"] for row in found} <= names
    master, = [row["pid"] for row in found if row["process"] == "shop.py"]
    assert sum(row["process"] == worker for row in found) >= 2
    assert found[0]["pid"] == master and all(not row["title"] for row in found)

    assert re.search(r"^shop\.py \(pid \d+\)(, shop\.py \(| and )", shown(trace), re.M)  # before its workers
    assert roots(shown, trace) <= {name for name in names}
    assert {process["name"] for process in processes_of_page(shown, trace, tmp_path)} == {row["process"] for row in found}
    assert {event["process"] for event in map(json.loads, shown(trace, "-f", "ndjson").splitlines()) if event["type"] == "sample"} <= names

    assert {row["process"] for row in rows(shown, trace, "--comm", "shop") if row["samples"]} == {row["process"] for row in found}
    assert roots(shown, trace, "--comm", worker) == {worker}
    said = pysym(trace, "--comm", "nobody").stderr
    assert "the trace has commands" in said and worker in said, said
    assert {"shop.py", worker} <= series(trace, tmp_path) <= names


def test_titles(recorded, shown, pysym, tmp_path):
    trace = recorded("w.py", TITLES)
    found = rows(shown, trace)
    titles = ["acme: mail work", "acme: master", "acme: pdf work"]
    assert {row["process"] for row in found} == {"w.py"} and sorted(row["title"] for row in found) == titles
    assert re.search(r"pid +name +title +Python.*\n +\d+  w\.py +acme: master +\d", shown(trace, "-f", "summary"))
    assert roots(shown, trace) == {f'w.py "{title}"' for title in titles}
    owners = re.findall(r'^(w\.py ".*") \d+: ', shown(trace, "-f", "top", "--merge", "process"), re.M)
    assert sorted(owners) == [f'w.py "{title}"' for title in titles]
    tracks = json.loads(shown(trace, "-f", "firefox"))["threads"]
    assert sorted(track["processName"] for track in tracks if track["isMainThread"]) == sorted(owners)

    assert sorted(process["title"] for process in processes_of_page(shown, trace, tmp_path)) == titles

    of_mail = sum(row["samples"] for row in found if row["title"] == "acme: mail work")
    for chosen in "acme: mail", 'w.py "acme: mail work"':  # also what it did before it had the title
        assert sum(row["samples"] for row in rows(shown, trace, "--comm", chosen)) == of_mail, chosen
    for chosen in "^w.py$", "acme: master":  # what all were, or were called
        assert sum(row["samples"] > 0 for row in rows(shown, trace, "--comm", chosen)) == 3, chosen
    said = pysym(trace, "--comm", "nobody").stderr
    assert all(f'w.py "{title}"' in said for title in titles), said
    assert series(trace, tmp_path) == {"w.py"}


def test_programs_of_one_process(recorded, shown, tmp_path):
    (tmp_path / "second.py").write_text(EXECS)
    trace = recorded("first.py", EXECS, tmp_path / "second.py")
    found = rows(shown, trace)
    assert [row["process"] for row in found] == ["second.py"] and found[0]["thread_count"] == 1
    head = shown(trace)
    assert re.search(r"^second\.py \(pid \d+\)$", head, re.M), head
    assert roots(shown, trace) == {"first.py", "second.py"}
