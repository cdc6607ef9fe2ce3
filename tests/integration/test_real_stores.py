# SPDX-License-Identifier: Apache-2.0
"""pysym push to Pyroscope and Parca: their queries answer what pysym says, stack by stack.

For `make check-stores PARCA=path PYROSCOPE=path`.

Each store runs on loopback with ports and a folder of its own. Traces of testdata/ are older than Pyroscope takes by default,
so that one of its limits is lifted for them; a store with all of its defaults gets a capture that is made here.
"""
import collections
import os
import shutil
import time

import pytest

from conftest import PYTHON, ROOT
from pusher import Pusher, expected, good, refused, stacks_of
from real_stores import Parca, Pyroscope

pytestmark = pytest.mark.long

STORES = {"pyroscope": Pyroscope, "parca": Parca}
OLD = {"pyroscope": ["-validation.reject-older-than=0s", "-querier.max-query-lookback=0s", "-querier.max-query-length=0s"], "parca": []}
# A crash must not take what it has: Parca keeps all in memory unless told.
LASTING = {"pyroscope": OLD["pyroscope"], "parca": ["--enable-persistence", "--storage-enable-wal"]}
NAMES = {"cpu-clock": "process_cpu", "page-faults": "page_faults", "off-cpu": "off_cpu"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a store, one for each kind and options; ends them all."""
    running = {}

    def run(kind, *options, alone=False):
        program = os.environ.get(kind.upper())
        if not program:
            pytest.skip(f"no {kind}: make check-stores {kind.upper()}=path names the program")
        key = (kind, options)
        if alone or key not in running:
            store = STORES[kind](program, tmp_path_factory.mktemp(kind), *options)
            running[(*key, len(running)) if alone else key] = store
            store.up()
            return store
        return running[key]
    yield run
    for store in running.values():
        store.down()


@pytest.fixture(params=list(STORES))
def kind(request):
    return request.param


@pytest.fixture
def store(start, kind):
    return start(kind, *OLD[kind])


count = iter(range(1 << 20))


class Check:
    """Pushes traces under a label of their own, and compares what the store says of them."""

    def __init__(self, folder, store):
        self.folder, self.store = folder, store
        self.label = f"t{next(count)}-{time.time_ns()}"
        self.push = Pusher(folder, store)

    def run(self, *arguments, code=0):
        return good(self.push.run("--label", f"case={self.label}", "--label", "pid={pid}", *arguments), code)

    def start(self, *arguments):
        return self.push.start("--label", f"case={self.label}", "--label", "pid={pid}", *arguments)

    def wanted(self, traces, event):
        """{(pid, type): stacks}, and the types."""
        found, types = collections.defaultdict(collections.Counter), {}
        for trace in traces:
            own = expected(trace, self.folder, "--event", event)
            for at, (name, unit) in enumerate(own.types):
                types[name] = (name, unit, *own.period_type)
                for (pid, frames), value in stacks_of(own, name, lambda sample: str(sample.labels["pid"][0])).items():
                    if self.store.kind == "parca" and at == 0:
                        value *= own.period  # it multiplies what it takes for the number of samples
                    found[pid, name][self.shown(frames)] += value
        return found, types

    def shown(self, frames):
        """What survives in both stores: no columns of lines, and no addresses of functions that have a name."""
        return tuple(f._replace(column=0, address=0 if f.function else f.address) for f in frames)

    def asked(self, event, types, labels, span):
        found = collections.Counter()
        for frames, value in (self.store.stacks(NAMES[event], types, labels, *span) or {}).items():
            found[self.shown(frames)] += value
        return found

    def same(self, traces, event="cpu-clock", seconds=60):
        """Compares all series of an event; returns the number of stacks and the sum of the last type."""
        wanted, types = self.wanted(traces, event)
        span = self.span(traces)
        total = 0
        for (pid, name), stacks in wanted.items():
            labels = {"case": self.label, "pid": pid}
            end = time.monotonic() + seconds
            while (got := self.asked(event, types[name], labels, span)).total() < stacks.total() and time.monotonic() < end:
                time.sleep(0.5)  # stores show what they took some time later
            differ = {frames: (stacks[frames], got[frames]) for frames in {*stacks, *got} if stacks[frames] != got[frames]}
            assert not differ, (pid, name, stacks.total(), got.total(), len(differ), list(differ.items())[:2])
            total += sum(stacks.values())
        figures = sum(len(stacks) for stacks in wanted.values()), total
        print(f"{self.store.kind}: {', '.join(t.name for t in traces)}: {event}: {len(wanted)} series and types, {figures[0]} stacks, sum {figures[1]}: equal")
        return figures

    def span(self, traces):
        """
        From the first sample until now: Pyroscope looks for samples in what it took at their time and so, of those that came
        much later, finds nothing unless it is asked for the time in which they came, too.
        """
        return min(expected(trace, self.folder).time_ns for trace in traces) / 1e9 - 60, time.time() + 60


@pytest.fixture
def check(tmp_path, store):
    return Check(tmp_path, store)


@pytest.mark.parametrize("name", ["demo/demo", "traces/3.6-shared", "traces/3.12-shared", "traces/3.14-static"])
def test_recordings(check, name):
    trace = ROOT / f"testdata/{name}.trace"
    check.run(trace)
    assert check.same([trace])[0] > 5


def test_events_and_losses(check, store, make):
    trace = make(samples=4000, stacks=100, depth=20, threads=4, processes=3, second_event=900, losses=1234, containers=1)
    check.run("--window", "5s", trace)
    check.same([trace])
    check.same([trace], "page-faults")
    span = check.span([trace])
    types = {t for t in store.types(*span) if t.startswith("pycap_lost:")}
    assert types
    (kind,) = {tuple(t.split(":")[1:5]) for t in types}
    lost = store.stacks("pycap_lost", kind, {"service_name": "pycap", "case": check.label}, *span)
    assert {frames[-1].function: value for frames, value in lost.items()} == {"ring_full": 1234}


def test_many_rows(check, make):
    trace = make(samples=40000, stacks=40000, depth=3, leaves=40000, interval_us=100)
    check.run(trace)
    assert check.same([trace])[0] > 2 * 16000


def test_labels(check, store, make, tmp_path):
    """Text in labels and names survives."""
    odd = 'ü"\\{}\U0001f40d'
    trace = make(samples=100)
    names = tmp_path / "map"
    names.write_text("host:testhost team=pay/ments-1.2\n")
    check.run("--label", f"odd={odd.replace('{', '{{').replace('}', '}}')}", "--label-map", names, trace)
    check.same([trace])
    span = check.span([trace])
    assert odd in store.labels("odd", *span) and "pay/ments-1.2" in store.labels("team", *span)


def test_window_of_two_files(check, make):
    """Two files have samples of one window and one series: the store adds them up."""
    one, two = make(samples=300), make(samples=500, stacks=7)
    check.run(one, two)
    check.same([one, two])


PROGRAM = """
import threading, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(i * i for i in range(100))
def rest():
    time.sleep(0.05)
def work():
    for _ in range(20):
        spin(0.05)
        rest()
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def test_fresh_capture(start, kind, record, tmp_path):
    """A store with its defaults takes what was just recorded; of two events."""
    script = tmp_path / "app.py"
    script.write_text(PROGRAM)
    trace = record(PYTHON, script, options=("-F", "199", "--wall"))
    check = Check(tmp_path, start(kind))
    check.run(trace)
    assert check.same([trace])[0] > 5
    check.same([trace], "off-cpu")


def test_too_old(start, kind, tmp_path):
    """Pyroscope refuses by default what is more than an hour old; it is counted by name. Parca takes it."""
    trace = ROOT / "testdata/demo/demo.trace"
    check = Check(tmp_path, start(kind))
    check.run(trace, code=3 if kind == "pyroscope" else 0)
    if kind == "pyroscope":
        assert set(refused(check.push)) == {"too_old"}
    else:
        check.same([trace])


def test_tenants(start, tmp_path, make):
    store = start("pyroscope", *OLD["pyroscope"], "-auth.multitenancy-enabled=true")
    check = Check(tmp_path, store)
    trace = make(samples=100)
    done = check.push.run("--retry-for", "1s", trace)
    assert done.returncode == 3 and "401" in done.stderr
    check.push.state.unlink()  # it is that of another tenant
    check.run("--tenant", "team-a", trace)
    store.headers = {"X-Scope-OrgID": "team-b"}
    assert not store.labels("service_name", *check.span([trace]))
    store.headers = {"X-Scope-OrgID": "team-a"}
    check.same([trace])


def test_store_killed(start, kind, tmp_path, make):
    """kill -9 in the middle: everything is there in the end, and what was not answered may be there twice."""
    store = start(kind, *LASTING[kind], alone=True)
    check = Check(tmp_path, store)
    folder = tmp_path / "traces"
    folder.mkdir()
    for number in range(20):
        shutil.move(make(samples=400, processes=2, stacks=4 + number, pid=1000 + 10 * number), folder / f"{number:02}.bin")
    running = check.start("--window", "1s", folder)
    try:
        while not check.push.state.exists() or check.push.state.read_bytes().count(b"\n") < 60:  # two lines a profile
            assert running.process.poll() is None
            time.sleep(0.01)
        store.kill()
        store.up()
        assert running.wait() == 0, running.errors
    finally:
        check.push.end()
    repeated = check.push.figures()["pysym_push_repeated_profiles_total", None]
    traces = sorted(folder.iterdir())
    wanted, types = check.wanted(traces, "cpu-clock")
    got = collections.Counter()
    for pid in {pid for pid, _ in wanted}:
        got[pid] = sum((store.stacks("process_cpu", types["cpu"], {"case": check.label, "pid": pid}, *check.span(traces)) or {}).values())
    all_there = {pid: sum(wanted[pid, "cpu"].values()) for pid in got}
    more, less = (sum(max(0, sign * (got[pid] - all_there[pid])) for pid in got) for sign in (1, -1))
    print(f"{kind}: killed: {repeated} sent again, {more} ns more, {less} ns less of {sum(all_there.values())}")
    assert more <= repeated * 10**9  # a window is of one second, of one CPU
    # Parca answers before its log of what it took is written.
    assert less <= (sum(all_there.values()) / 10 if kind == "parca" else 0)
