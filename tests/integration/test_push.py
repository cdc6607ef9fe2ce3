# SPDX-License-Identifier: Apache-2.0
"""pysym push brings every window to a store once, also to stores that fail and come back.

A store that takes profiles has what pysym itself says of the traces, stack by stack. Of stores that fail, refuse, die and come
back, every accepted window has been stored once, unanswered ones at least once, refused ones are counted by name. The stores
are those of profile_store.py; test_real_stores.py asks the real ones.
"""
import collections
import itertools
import os
import re
import shutil
import subprocess
import time

import pytest

import profile_readers
from conftest import ROOT, later
from profile_store import Hold, ProfileStore, answer, cut_after, cut_before, cut_in, garbage, stacks
from pusher import Pusher, expected, good, refused, stacks_of, until

KINDS = ["pyroscope", "parca"]
MADE_S = 1700000000  # when make_trace's clock begins, about
TESTDATA = ["testdata/demo/demo.trace", "testdata/traces/3.12-shared.trace", "testdata/traces/3.14-static.trace"]


@pytest.fixture(params=KINDS)
def store(request):
    with ProfileStore(request.param) as store:
        store.now = lambda: MADE_S + 60
        yield store


@pytest.fixture
def pyroscope():
    with ProfileStore("pyroscope") as store:
        store.now = lambda: MADE_S + 60
        yield store


@pytest.fixture
def push(tmp_path, store):
    pusher = Pusher(tmp_path, store)
    yield pusher
    pusher.end()


# For tests that wait for attempts to come again: what they are about does not depend on the store.
one_store = pytest.mark.parametrize("store", ["pyroscope"], indirect=True)


def samples_of(store, but=()):
    """What was stored, without the series of losses."""
    return [p for p in store.profiles if p.name != "pycap_lost" and p.name not in but]


def identity(stored):
    """Which profile it is: one that is sent again is the same."""
    return stored.series, stored.profile.time_ns, stored.data


def times_stored(store):
    return collections.Counter(map(identity, store.profiles))


# ---- what a store has is what the trace has ----

@pytest.mark.parametrize("name", TESTDATA)
def test_recordings(push, store, tmp_path, name):
    whole = expected(ROOT / name, tmp_path, "--event", "cpu-clock")
    store.now = lambda: whole.time_ns / 1e9 + 60
    good(push.run(ROOT / name))
    for kind, _ in whole.types:
        wanted = stacks_of(whole, kind)
        assert wanted and stacks(samples_of(store), kind) == wanted, kind


EVENT_KINDS = ["syscalls:sys_enter_openat", "syscalls:sys_enter_write", "sched:sched_stat_iowait", "r1a8:u",
               "cpu/event=0x3c,umask=1/", "L1-dcache-load-misses", "memory-growth", "task-wait"]  # of make_trace
SETTINGS = [
    {"processes": 3, "threads": 7, "samples": 900, "cpus": 2, "epoch_samples": 100},
    {"threads": 2, "samples": 400, "slower_at": 200, "second_event": 100},
    {"samples": 50, "events": 30, "task_waits": 20},
    {"threads": 3, "samples": 300, "uneven": 1, "torn": 10, "end": 0, "natural": 1},
    {"samples": 6000, "stacks": 300, "depth": 30, "threads": 4, "processes": 2, "containers": 1, "gil": 1, "labels": 3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["processes", "events", "kinds", "uneven", "labels"])
def test_by_event_and_process(push, store, make, tmp_path, settings):
    trace = make(**settings)
    old = time.time() - 600
    os.utime(trace, (old, old))  # one that has no end is complete when it has not grown for some time
    good(push.run("--label", "pid={pid}", "--window", "2s", trace))
    events = ["cpu-clock", *(["page-faults"] if "second_event" in settings else []), *(EVENT_KINDS if "events" in settings else [])]
    names = {event: "process_cpu" if event == "cpu-clock" else re.sub(r"\W|-", "_", event) for event in events}
    assert {p.name for p in samples_of(store)} == {names[e] for e in events}
    for event in events:
        own = expected(trace, tmp_path, "--event", event)
        found = [p for p in store.profiles if p.name == names[event]]
        assert found[0].profile.types == own.types and found[0].profile.period_type == own.period_type
        for kind, _ in own.types:
            wanted = stacks_of(own, kind, lambda sample: str(sample.labels["pid"][0]))
            assert wanted and stacks(found, kind, lambda stored, _: stored.labels["pid"]) == wanted


def test_by_window(push, store, make, pysym, tmp_path):
    """Windows are those of --window: multiples of real time."""
    trace = make(samples=2000, threads=3, processes=2)
    good(push.run("--window", "3s", trace))
    good(pysym(trace, "--full-filenames", "--window", "3s", "--merge", "all", "-o", tmp_path / "part.pb.gz"))
    wanted = collections.Counter()
    for path in tmp_path.glob("part.*.pb.gz"):
        own = profile_readers.pprof(path)
        wanted += stacks_of(own, "cpu", lambda _, own=own: own.time_ns // (3 * 10**9))
    assert len({window for window, _ in wanted}) > 5
    assert stacks(store.profiles, "cpu", lambda stored, _: stored.profile.time_ns // (3 * 10**9)) == wanted
    assert all(p.profile.duration_ns <= 3 * 10**9 for p in store.profiles)


def test_losses(push, store, make):
    good(push.run(make(samples=300, losses=7)))
    lost = [p for p in store.profiles if p.name == "pycap_lost"]
    assert {p.labels["service_name"] for p in lost} == {"pycap"}
    found = stacks(lost, lost[0].profile.types[0][0])
    assert {frames[-1].function: count for (_, frames), count in found.items()} == {"ring_full": 7}
    assert push.figures()["pysym_push_recorder_lost_samples_total", "ring_full"] == 7


def test_many_rows_come_in_chunks(make, tmp_path):
    """Pyroscope takes 16,000 rows and 2 MiB of a profile; one window has more."""
    with ProfileStore("pyroscope") as store:
        store.now = lambda: MADE_S + 60
        trace = make(samples=20000, stacks=20000, depth=3, leaves=20000, interval_us=100)
        good(Pusher(tmp_path, store).run(trace))
        assert [r.answer for r in store.requests] == [200] * len(store.requests)
        windows = collections.Counter((p.series, p.profile.time_ns // (15 * 10**9)) for p in samples_of(store))
        assert max(windows.values()) > 1
        assert stacks(samples_of(store), "cpu") == stacks_of(expected(trace, tmp_path), "cpu")


# ---- each once ----

@pytest.fixture
def folder(make, tmp_path):
    """Three traces as pycap rotates them, of four windows each and two programs."""
    out = tmp_path / "traces"
    out.mkdir()
    for number in range(3):
        shutil.move(make(samples=400, processes=2, stacks=4 + number, pid=1000 + 10 * number), out / f"host-{number}.bin")
    return out


WINDOW = "--window", "1s"


def check_all_there(store, folder, tmp_path):
    """Everything is in the store, and nothing twice: but for profiles that are there as often as it says."""
    once = {identity(p): p for p in samples_of(store)}.values()
    wanted = collections.Counter()
    for trace in sorted(folder.glob("*.bin")):
        wanted += stacks_of(expected(trace, tmp_path), "cpu")
    assert stacks(once, "cpu") == wanted


def test_nothing_twice(push, store, folder, tmp_path):
    good(push.run(*WINDOW, folder))
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}
    count = len(store.requests)
    good(push.run(*WINDOW, folder))
    copy = tmp_path / "copy.bin"
    shutil.copy(folder / "host-1.bin", copy)
    good(push.run(*WINDOW, copy))  # one trace, whatever it is called
    assert len(store.requests) == count


def test_one_trace_by_two_names(push, store, folder, tmp_path):
    os.link(folder / "host-0.bin", folder / "same.bin")
    good(push.run(*WINDOW, folder))
    (folder / "same.bin").unlink()
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}


def what_comes(tmp_path, folder, jobs):
    """What a new store gets, and what the sender says and returns."""
    place = tmp_path / f"jobs-{jobs}"
    place.mkdir()
    with ProfileStore("parca") as store:
        done = Pusher(place, store).run(*WINDOW, "--jobs", jobs, folder)
        said = re.sub(r"http://\S+|\d+(\.\d+)? m?s\b", "", done.stderr)
        return collections.Counter((p.series, p.profile.time_ns, p.data) for p in store.profiles), said, done.returncode


def test_jobs_change_nothing(make, folder, tmp_path):
    """Traces that are read side by side, among them one that is damaged, one that is cut off and one that lies there twice."""
    whole = make(samples=4000, stacks=50, pid=2000).read_bytes()
    damaged, cut = folder / "host-4.bin", folder / "host-5.bin"
    damaged.write_bytes(whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 0xff]) + whole[len(whole) // 2 + 1:])
    cut.write_bytes(make(samples=40, stacks=50, pid=3000).read_bytes()[:200])
    os.utime(cut, (MADE_S, MADE_S))
    shutil.copy(folder / "host-1.bin", folder / "host-3.bin")
    one, *rest = (what_comes(tmp_path, folder, jobs) for jobs in (1, 2, 5, 64))
    assert len(one[0]) > 10 and one[2] == 3 and all(file.name in one[1] for file in (damaged, cut))
    for several in rest:
        assert several == one


@pytest.mark.parametrize("at", [0, 7])
def test_sender_killed(push, store, folder, tmp_path, at):
    """Killed while requests wait for their answers: those come again, and nothing else."""
    store.fault(lambda take: take(), times=at)
    held = store.fault(Hold())
    running = push.start(*WINDOW, folder)
    assert held.act.came.wait(60)
    running.kill()
    held.end()
    held.act.release()
    until(lambda: not running.family() and not store.connections)
    unanswered = {identity(p) for p in store.profiles}
    good(push.run(*WINDOW, folder))
    check_all_there(store, folder, tmp_path)
    times = times_stored(store)
    assert {p for p, n in times.items() if n > 1} <= unanswered and max(times.values()) == 2
    assert sum(times.values()) - len(times) <= push.figures()["pysym_push_repeated_profiles_total", None]


@pytest.mark.sanitized
@pytest.mark.parametrize("act, repeats", [(cut_before, 0), (cut_in, 0), (cut_after, 2)])
def test_connection_cut(push, store, folder, tmp_path, act, repeats):
    for at in (1, 4):
        counted = iter(range(1 << 20))
        store.fault(act, times=1, when=None if act is cut_in else lambda _, c=counted, at=at: next(c) >= at)
    good(push.run(*WINDOW, folder))
    check_all_there(store, folder, tmp_path)
    assert sum(times_stored(store).values()) - len(times_stored(store)) == repeats


@pytest.mark.sanitized
def test_store_killed_and_restarted(push, store, folder, tmp_path):
    held = store.fault(Hold(), when=lambda p: len(store.profiles) >= 3)
    running = push.start(*WINDOW, folder)
    assert held.act.came.wait(60)
    store.down()
    held.end()
    held.act.release()  # the killed one has stored these; nobody got its answer
    store.wait(lambda: len(store.profiles) >= 3 + held.done)
    assert running.process.poll() is None
    store.up()
    assert running.wait() == 0, running.errors
    check_all_there(store, folder, tmp_path)
    times = times_stored(store)
    assert 1 <= sum(times.values()) - len(times) <= 16 and max(times.values()) == 2


@one_store
def test_store_that_is_not_there(push, store, folder):
    """It gives up after --retry-for, counts nothing as refused, and sends all when the store is there."""
    store.down()
    done = push.run("--retry-for", "1s", *WINDOW, folder)
    good(done, 3)
    assert not [figure for (name, _), figure in push.figures().items() if "refused" in name and figure]
    store.up()
    good(push.run(*WINDOW, folder))
    assert set(times_stored(store).values()) == {1} and len(store.profiles) >= 12


@one_store
def test_store_that_holds_a_request(push, store, folder):
    """--retry-for ends a request that is not answered, too, and not a minute later; what it was about is sent again."""
    held = store.fault(Hold())
    began = time.monotonic()
    good(push.run("--retry-for", "2s", *WINDOW, folder), 3)
    assert time.monotonic() - began < 45
    assert not [figure for (name, _), figure in push.figures().items() if "refused" in name and figure]
    held.end()
    held.act.release()
    good(push.run(*WINDOW, folder))
    assert max(times_stored(store).values()) <= 2


@one_store
@pytest.mark.parametrize("status", [503, later(429), later(500), later(502), later(507)])
def test_store_that_is_sick(push, store, folder, tmp_path, status):
    """Each request fails for a while, as that of a full disk: nothing counts as refused, and then all comes."""
    sick = store.fault(answer(status), times=4)
    good(push.run(*WINDOW, folder))
    assert sick.done == 4
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}
    assert not [figure for (name, _), figure in push.figures().items() if "refused" in name and figure]


@one_store
def test_retry_after(push, store, make):
    """The store's own wish is followed: the profile does not come before it."""
    times = []
    store.fault(lambda take: times.append(time.monotonic()) or answer(429, retry_after=4)(take), times=1)
    store.fault(lambda take: times.append(time.monotonic()) or take(), times=1)
    good(push.run("--window", "1m", make(samples=50)))
    assert len(times) == 2 and times[1] - times[0] >= 4


def test_several_at_once(push, store, folder, tmp_path):
    """A store may take half a second for each answer, as Pyroscope does: others do not wait for it."""
    held = [store.fault(Hold(), times=1) for _ in range(8)]
    running = push.start(*WINDOW, folder)
    assert all(h.act.came.wait(60) for h in held)
    for h in reversed(held):
        h.act.release()
    assert running.wait() == 0, running.errors
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}


@pytest.mark.sanitized
@pytest.mark.parametrize("content, stored", [
    (b"\0\xff\xfe\r\n\r\n", False),
    (b"HTTP/1.1 200 OK\r\nContent-Le", True),
    (b"HTTP/1.1 503 \x1b[31m\r\nContent-Length: 5\r\n\r\n\x1b]0;x", False),
], ids=["no-http", "cut", "escapes"])
def test_garbage(push, store, folder, tmp_path, content, stored):
    store.fault(garbage(content, stored), times=2)
    errors = good(push.run(*WINDOW, "-v", folder))
    assert not re.search(r"[^\n\t -~\u00a0-\U0010ffff]", errors), errors
    check_all_there(store, folder, tmp_path)


@pytest.mark.sanitized
def test_not_a_store(push, store, folder, tmp_path):
    """A page with a form to log in says 200, too: that is no answer of a store, and nothing counts as accepted."""
    page = store.fault(garbage(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>", stored=False))
    assert "not_a_store" in good(push.run("--retry-for", "1s", *WINDOW, folder), 3)
    page.end()
    good(push.run(*WINDOW, folder))
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}


# ---- what is refused ----

def test_too_old(pyroscope, folder, tmp_path):
    pyroscope.now = lambda: MADE_S + 7200
    push = Pusher(tmp_path, pyroscope)
    good(push.run(*WINDOW, folder), 3)
    assert not pyroscope.profiles and refused(push) == {"too_old": len(pyroscope.requests)}
    count = len(pyroscope.requests)
    good(push.run(*WINDOW, folder))  # was settled
    assert len(pyroscope.requests) == count


def test_clock_in_the_past(pyroscope, folder, tmp_path):
    """A store whose clock is behind says "too new" and may be right later; the host's clock may be wrong as well."""
    pyroscope.now = lambda: MADE_S - 3600
    push = Pusher(tmp_path, pyroscope)
    good(push.run(*WINDOW, folder), 3)
    assert not pyroscope.profiles and set(refused(push)) == {"too_new"}


def test_part_is_too_old(pyroscope, folder, tmp_path):
    """The clock of the store goes on while one is sent: what it takes is there, and what it refused is counted."""
    push = Pusher(tmp_path, pyroscope)
    judged = itertools.count()  # many are under way at once: profiles that are stored do not say how many were judged
    pyroscope.now = lambda: MADE_S + (60 if next(judged) < 5 else 7200)
    good(push.run(*WINDOW, folder), 3)
    assert len(pyroscope.profiles) == 5 and refused(push) == {"too_old": len(pyroscope.requests) - 5}


@one_store
def test_poison(push, store, folder, tmp_path):
    """A profile that a store fails at is set aside, tried again, and counted; the others are not kept back."""
    poison = []

    def is_poison(p):
        if not poison:
            poison.append(p.data)
        return p.data == poison[0]

    fault = store.fault(answer(500), when=is_poison)
    good(push.run(*WINDOW, folder), 3)
    assert fault.done == 5 and refused(push) == {"server_error": 1}
    requests = [r.profiles[0].data for r in store.requests]
    others = [data for data in requests if data != poison[0]]
    assert len(others) == len(set(others)) == len(store.profiles)
    store.faults.clear()
    good(push.run(*WINDOW, folder))
    assert len(store.requests) == len(requests)  # was settled


@pytest.mark.parametrize("status", [401, 403, 404])
def test_denied(push, store, folder, status):
    """All will be refused until somebody mends it: nothing is counted as refused, and nothing lost."""
    denied = store.fault(answer(status))
    done = push.run("--retry-for", "2s", *WINDOW, folder)
    good(done, 3)
    assert not refused(push) and str(status) in done.stderr
    denied.end()
    good(push.run(*WINDOW, folder))
    assert set(times_stored(store).values()) == {1} and len(store.profiles) >= 12


# ---- who sends ----

def test_token_and_tenant(folder, tmp_path):
    with ProfileStore("pyroscope", token="s3cr3t-t0ken", tenants=True) as store:
        store.now = lambda: MADE_S + 60
        push = Pusher(tmp_path, store)
        token = tmp_path / "token"
        token.write_text("s3cr3t-t0ken\n")
        token.chmod(0o600)
        done = push.run("-v", "--token-file", token, "--tenant", "team-a", *WINDOW, folder)
        good(done)
        assert {p.tenant for p in store.profiles} == {"team-a"}
        push.state.unlink()
        again = push.run("-v", "--tenant", "team-b", *WINDOW, folder, environment={"PYSYM_TOKEN": "s3cr3t-t0ken"})
        good(again)
        assert {p.tenant for p in store.profiles} == {"team-a", "team-b"}
        for text in (done.stderr, again.stderr, push.state.read_text(), push.status.read_text()):
            assert "s3cr3t" not in text
        push.state.unlink()
        good(push.run("--tenant", "team-a", "--retry-for", "1s", *WINDOW, folder), 3)


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key) of 127.0.0.1, signed by itself."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
                   check=True, capture_output=True, timeout=60)
    return files


@pytest.mark.sanitized
def test_tls(folder, tmp_path, certificate):
    """A store that nobody vouches for gets nothing, and no token."""
    with ProfileStore("parca", certificate=certificate) as store:
        push = Pusher(tmp_path, store)
        done = push.run("--retry-for", "1s", *WINDOW, folder)
        good(done, 3)
        assert not store.requests and "certificate" in done.stderr and not refused(push)
        good(push.run("--cacert", certificate[0], *WINDOW, folder))
        check_all_there(store, folder, tmp_path)


# ---- a folder that goes on ----

def test_follow(push, store, folder, tmp_path):
    """New traces are sent when they are complete, those that pycap removes before are counted, and SIGTERM ends it."""
    later = tmp_path / "later.bin"
    shutil.move(folder / "host-2.bin", later)
    running = push.start("--follow", *WINDOW, folder)
    store.wait(lambda: len(samples_of(store)) >= 10)
    shutil.move(later, folder / "host-2.bin")
    until(lambda: len(samples_of(store)) >= 15)
    assert running.stop() == 0, running.errors
    check_all_there(store, folder, tmp_path)
    assert set(times_stored(store).values()) == {1}


def test_one_state_one_pusher(push, store, folder):
    held = store.fault(Hold(), times=1)
    running = push.start(*WINDOW, folder)
    assert held.act.came.wait(60)
    assert push.run(*WINDOW, folder).returncode == 2
    held.act.release()
    assert running.wait() == 0, running.errors


def waiting(push):
    return push.status.exists() and push.figures().get(("pysym_push_backlog_traces", None))


@one_store
def test_removed_before_it_was_sent(push, store, folder, tmp_path):
    """pycap --keep removes the oldest: what was not sent by then is counted, and the rest goes."""
    # A store that is down; but so that what follows need not wait for the next attempt.
    down = store.fault(answer(503, retry_after=1))
    running = push.start("--follow", *WINDOW, folder)
    until(lambda: waiting(push) == 3)
    (folder / "host-1.bin").unlink()
    down.end()
    store.wait(lambda: len(samples_of(store)) >= 10)
    assert running.stop() == 0, running.errors
    check_all_there(store, folder, tmp_path)
    assert push.figures()["pysym_push_traces_total", "gone"] == 1


def peak_kib(running):
    """The sum of the most memory that each process of the family had."""
    found = 0
    for pid in running.family():
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                found += sum(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        except OSError:
            pass
    return found


@pytest.mark.long
@pytest.mark.unsanitized
@one_store
def test_memory_while_the_store_is_down(push, store, make, tmp_path):
    """The folder grows, memory does not; and then all is sent."""
    folder = tmp_path / "traces"
    folder.mkdir()

    def add(numbers):
        for number in numbers:
            shutil.move(make(samples=50, pid=1000 + number), folder / f"host-{number:03}.bin")

    down = store.fault(answer(503, retry_after=1))
    add(range(10))
    running = push.start("--follow", "--label", "pid={pid}", *WINDOW, folder)
    until(lambda: waiting(push) == 10)
    first = peak_kib(running)
    add(range(10, 150))
    until(lambda: waiting(push) == 150)
    assert peak_kib(running) < first + 8192
    down.end()
    store.wait(lambda: len({p.labels["pid"] for p in samples_of(store)}) == 150)
    assert running.stop() == 0, running.errors
    assert set(times_stored(store).values()) == {1}
