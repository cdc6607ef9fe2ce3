# SPDX-License-Identifier: Apache-2.0
"""The server that stands in for the stores refuses what they refuse, and fails as it is told to.

Else the tests of `pysym push` would prove nothing. What is sent here is made by hand, but for the profile, which pysym writes.
"""
import base64
import gzip
import http.client
import json
import subprocess
import threading
import urllib.parse

import pytest

import profile_readers
from conftest import PYSYM
from profile_store import Hold, ProfileStore, answer, cut_after, cut_before, cut_in, garbage, stacks
from protobuf_fields import field, varint

WRITTEN_S = 1700000000  # about when make_trace's captures were made
SERIES = {"__name__": "process_cpu", "service_name": "shop", "host": "vm1"}


def as_push(pairs, data):
    labels = b"".join(field(1, field(1, n.encode()) + field(2, v.encode())) for n, v in pairs)
    return field(1, labels + field(2, field(1, data)))


def as_writeraw(pairs, data):
    labels = [{"name": n, "value": v} for n, v in pairs]
    return json.dumps({"normalized": True, "series": [{"labels": {"labels": labels},
                                                      "samples": [{"raw_profile": base64.b64encode(data).decode()}]}]}).encode()


PATHS = {"pyroscope": ("/push.v1.PusherService/Push", as_push), "parca": ("/api/profiles/writeraw", as_writeraw)}


def send(store, data, labels=None, headers=None, body=None):
    """Sends a profile; returns the status and the text of the answer."""
    path, pack = PATHS[store.kind]
    labels = SERIES if labels is None else labels
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(store.url).netloc, timeout=60)
    try:
        connection.request("POST", path, body or pack(labels.items() if isinstance(labels, dict) else labels, data), headers or {})
        answered = connection.getresponse()
        return answered.status, answered.read().decode()
    finally:
        connection.close()


@pytest.fixture(params=["pyroscope", "parca"])
def store(request):
    with ProfileStore(request.param) as store:
        store.now = lambda: WRITTEN_S
        yield store


@pytest.fixture
def data(make, tmp_path):
    """A profile without text labels."""
    subprocess.run([PYSYM, make(samples=200, stacks=7), "--merge", "all", "-o", tmp_path / "p.pb.gz"], check=True, timeout=60)
    return (tmp_path / "p.pb.gz").read_bytes()


def changed(data, more=b"", drop=()):
    """A profile with other fields: those numbered in `drop` go."""
    kept = (field(n, v) for n, v in profile_readers.fields(gzip.decompress(data)) if n not in drop)
    return gzip.compress(b"".join(kept) + more)


def test_what_is_taken_comes_back(store, data, tmp_path):
    assert send(store, data) == (200, "" if store.kind == "pyroscope" else "{}")
    (stored,) = store.profiles
    assert stored.labels == SERIES and stored.data == data and stored.tenant is None
    expected = profile_readers.pprof(tmp_path / "p.pb.gz")
    found = stacks(store.profiles, "cpu")
    assert sum(found.values()) == sum(s.values[1] for s in expected.samples) and len(found) == 7
    assert {frames[-1].function for _, frames in found} == {s.frames[-1].function for s in expected.samples}
    assert [r.answer for r in store.requests] == [200]


@pytest.mark.parametrize("labels, said", [
    ({"service_name": "shop"}, "__name__"),
    ([*SERIES.items(), ("host", "vm2")], "duplicate label name"),
])
def test_labels(store, data, labels, said):
    status, text = send(store, data, labels)
    assert status == 400 and said in text and not store.profiles


@pytest.mark.parametrize("labels, said", [
    ({**SERIES, "a": "b" * 2049}, "label value too long"),
    ({**SERIES, "a" * 1025: "b"}, "label name too long"),
    ({**SERIES, **{f"n{i}": "v" for i in range(28)}}, "has 31 label names; limit 30"),
])
def test_labels_of_pyroscope(data, labels, said):
    with ProfileStore("pyroscope") as store:
        status, text = send(store, data, labels)
        assert status == 400 and said in text and not store.profiles and json.loads(text)["code"] == "invalid_argument"


@pytest.mark.parametrize("age_s, taken", [(0, True), (3590, True), (3610, False), (-590, True), (-610, False)])
def test_age(data, age_s, taken):
    written_s = profile_readers.PprofReader(gzip.decompress(data)).read().time_ns / 1e9
    for kind in PATHS:
        with ProfileStore(kind) as store:
            store.now = lambda: written_s + age_s
            status, text = send(store, data)
            assert status == (200 if taken or kind == "parca" else 400)
            assert ("outside of ingestion window" in text) == (status == 400)


def test_sizes(store, data):
    """More than 2 MiB are never let through by Pyroscope's limiter, nor more than 16,000 rows by its check."""
    large = changed(data, field(6, b"x" * (2 << 20)))
    many = changed(data, b"".join(field(2, field(1, varint(1)) + field(2, varint(1) * 2)) for _ in range(16000)))
    larger = changed(data, field(6, b"x" * (4 << 20)))
    if store.kind == "parca":
        assert [send(store, d)[0] for d in (large, many, larger)] == [200, 200, 200]
        store.nonsense.clear()
    else:
        assert send(store, large)[0] == 429 and send(store, larger)[0] == 400
        assert send(store, many)[0] == 400 and not store.profiles


def test_broken_gzip(store, data):
    status, text = send(store, data[:len(data) // 2])
    assert status == 500 and "unexpected EOF" in text and not store.profiles


@pytest.mark.parametrize("damage", [
    lambda data: gzip.decompress(data),
    lambda data: changed(data, field(5, field(1, 77) + field(2, 1))),    # a gap in the ids of functions
    lambda data: changed(data, field(4, field(1, 1))),                   # a location's id twice
    lambda data: changed(data, field(2, field(1, varint(9999)) + field(2, varint(1) * 2))),
    lambda data: changed(data, drop=(1,)),
    lambda data: changed(data, field(6, b"\xff")),
    lambda data: changed(data, b"\xff"),
])
def test_damage(store, data, damage):
    assert send(store, damage(data))[0] == 400 and not store.profiles
    store.nonsense.clear()


@pytest.mark.parametrize("body", [b"", b"x", b"{}", b"\x0a\x00", b'{"normalized": true, "series": []}'])
def test_requests_that_cannot_be_read(store, body):
    assert send(store, b"", body=body or b" ")[0] == 400 and store.nonsense
    store.nonsense.clear()


def test_what_a_store_would_show_wrongly(store, data, make, tmp_path):
    subprocess.run([PYSYM, make(), "-o", tmp_path / "p.pb.gz"], check=True, timeout=60)
    assert send(store, (tmp_path / "p.pb.gz").read_bytes())[0] == 200
    assert len(store.nonsense) == 1 and "text labels" in store.nonsense[0]
    store.nonsense.clear()
    for labels in ({**SERIES, "a-b": "c"}, {**SERIES, "1a": "c"}, {**SERIES, "a": ""}, {"__name__": "process_cpu"}):
        assert send(store, data, labels)[0] == 200 and len(store.nonsense) == 1
        store.nonsense.clear()


def test_who_may(data):
    with ProfileStore("pyroscope", token="t0ken", tenants=True) as store:
        store.now = lambda: WRITTEN_S
        right = {"Authorization": "Bearer t0ken", "X-Scope-OrgID": "team"}
        assert send(store, data)[0] == send(store, data, headers={**right, "Authorization": "Bearer T"})[0] == 401
        assert send(store, data, headers=right)[0] == 200
        assert [p.tenant for p in store.profiles] == ["team"]


def test_faults(store, data):
    fault = store.fault(answer(429, retry_after=7), times=2)
    assert [send(store, data)[0] for _ in range(3)] == [429, 429, 200]
    assert fault.done == 2 and len(store.profiles) == 1
    poison = store.fault(answer(500), when=lambda p: p.labels["service_name"] == "poison")
    assert [send(store, data, {**SERIES, "service_name": s})[0] for s in ("poison", "shop", "poison")] == [500, 200, 500]
    poison.end()
    assert send(store, data, {**SERIES, "service_name": "poison"})[0] == 200 and len(store.profiles) == 3
    for act, stored in ((cut_before, 0), (cut_after, 1), (cut_in, 0), (garbage(b"\0\xff\r\n\r\n", stored=False), 0),
                        (garbage(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx", stored=True), 1)):
        before = len(store.profiles)
        store.fault(act, times=1)
        with pytest.raises((http.client.HTTPException, OSError)):
            send(store, data)
        assert len(store.profiles) == before + stored
    assert [r.answer for r in store.requests][-5:] == ["cut", "cut", "cut", "raw", "raw"]


def test_hold_and_down(store, data):
    held = store.fault(Hold(), times=1)
    answers = []
    sender = threading.Thread(target=lambda: answers.append(send(store, data)[0]))
    sender.start()
    assert held.act.came.wait(60) and not store.profiles
    assert send(store, data)[0] == 200  # others are served meanwhile
    held.act.release()
    sender.join()
    assert answers == [200] and len(store.profiles) == 2
    store.down()
    with pytest.raises(OSError):
        send(store, data)
    store.up()
    assert send(store, data)[0] == 200
    store.wait(lambda: len(store.profiles) == 3)
