# SPDX-License-Identifier: Apache-2.0
"""A small server that stands in for the profile stores, where those are not to be had: it is neither of them.

It takes what `pysym push` sends, as Pyroscope (push.v1.PusherService/Push, protobuf) or as Parca (/api/profiles/writeraw,
JSON), refuses what they refuse, with their status and words, and keeps the rest. Requests and profiles are decoded by
profile_readers.py, which shares nothing with pysym. The rules are those of Pyroscope 2.2 (pkg/validation, pkg/distributor)
and Parca 0.28 (pkg/normalizer), with their defaults; `make check-stores` asks the real ones.

    with ProfileStore("pyroscope") as store:
        ... pysym push --pyroscope {store.url} ...
        store.profiles                      # what was accepted, in its order: Stored
        stacks(store.profiles, "cpu")       # Counter: frames -> sum of the values of that type

Faults are told beforehand, for a number of requests, or for all until fault.end():

    store.fault(answer(429, retry_after=1), times=3)
    store.fault(answer(500), when=lambda p: p.labels["service_name"] == "poison")
    store.fault(cut_before) or cut_in or cut_after      # the connection ends; cut_after: the profile is stored
    held = store.fault(Hold())                          # is not answered before held.act.release(), and stored then
    store.down(), store.up()                            # nothing listens; on the same port again
    store.now = lambda: ...                             # its clock, in seconds

What no sender of ours should ever send, though a store may take it, is remembered in store.nonsense, and so is what breaks
the server itself: leaving the `with` fails if there is any.
"""
import base64
import collections
import functools
import gzip
import http.server
import json
import re
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
import zlib

import profile_readers

MIB = 1 << 20
PATHS = {"/push.v1.PusherService/Push": "pyroscope", "/api/profiles/writeraw": "parca"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Refused(Exception):
    """An answer: the status of HTTP, and a text in the words of the store."""

    def __init__(self, status, text, retry_after=None):
        super().__init__(text)
        self.status, self.text, self.retry_after = status, text, retry_after


# ---- what was sent ----

# `labels`: of the series, a dictionary; `data`: the profile as it came; `tenant`: of X-Scope-OrgID, or None; `request`: the
# number of the request, from 0.
Sent = collections.namedtuple("Sent", "labels data tenant request")


class Stored(Sent):
    """A profile. It is decoded when it is asked."""
    __slots__ = ()

    @property
    def series(self):
        return tuple(sorted(self.labels.items()))

    @property
    def name(self):
        return self.labels["__name__"]

    @property
    def profile(self):
        return decoded(self.data)


@functools.lru_cache(maxsize=4096)
def decoded(data):
    return profile_readers.PprofReader(unpacked(data)).read()


def unpacked(data):
    if data[:2] != b"\x1f\x8b":
        raise ValueError("the profile is not gzipped")
    return gzip.decompress(data)


def read_push(body):
    """push.v1.PushRequest of Pyroscope: [(labels as pairs, profiles)] of its series."""
    def text(data):
        return data.decode()

    found = []
    for data in profile_readers.message(body, {1: "series"}, repeated=(1,))["series"]:
        series = profile_readers.message(data, {1: "labels", 2: "samples"}, repeated=(1, 2))
        labels = [profile_readers.message(pair, {1: "name", 2: "value"}) for pair in series["labels"]]
        samples = [profile_readers.message(sample, {1: "raw_profile", 2: "ID"}) for sample in series["samples"]]
        found.append(([(text(l.get("name", b"")), text(l.get("value", b""))) for l in labels],
                      [s.get("raw_profile", b"") for s in samples]))
    return found


def read_writeraw(body):
    """WriteRawRequest of Parca, in JSON: likewise."""
    request = json.loads(body)
    assert set(request) == {"normalized", "series"} and request["normalized"] is True
    found = []
    for series in request["series"]:
        assert set(series) == {"labels", "samples"} and set(series["labels"]) == {"labels"}
        assert all(set(label) == {"name", "value"} for label in series["labels"]["labels"])
        assert all(set(sample) == {"raw_profile"} for sample in series["samples"])
        found.append(([(l["name"], l["value"]) for l in series["labels"]["labels"]],
                      [base64.b64decode(s["raw_profile"], validate=True) for s in series["samples"]]))
    return found


# ---- what the stores refuse ----

def check_labels(pairs):
    """What both want of a series' labels."""
    names = [name for name, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Refused(400, f"profile with labels '{shown(pairs)}' has duplicate label name: '{twice[0]}'")
    if not dict(pairs).get("__name__"):
        raise Refused(400, "missing __name__ label")
    for _, value in pairs:
        value.encode()  # no half of a surrogate pair, which JSON may have


def shown(pairs):
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(pairs)) + "}"


def moment(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000} +0000 UTC"


def check_pyroscope(pairs, data, now):
    try:
        size = len(unpacked(data))
    except (EOFError, zlib.error) as error:
        raise Refused(500, "copy to buffer: unexpected EOF") from error
    if size > 4 * MIB:
        raise Refused(400, "uncompressed profile payload size exceeds limit of 4.2 MB")
    # The limiter of the rate is asked next: what is larger than its bucket never gets through, however long one waits.
    size += sum(len(name) + len(value.encode()) for name, value in pairs)
    if size > 2 * MIB:
        raise Refused(429, f"push rate limit (4.0 MiB) exceeded while adding {size / MIB:.1f} MiB")
    if len(pairs) > 30:
        raise Refused(400, f"profile series '{shown(pairs)}' has {len(pairs)} label names; limit 30")
    for name, value in pairs:
        if len(name) > 1024:
            raise Refused(400, f"profile with labels '{shown(pairs)}' has label name too long: '{name}'")
        if len(value.encode()) > 2048:
            raise Refused(400, f"profile with labels '{shown(pairs)}' has label value too long: '{value}'")
    check_text(data)
    profile = decoded(data)
    if not profile.types:
        raise Refused(400, "empty profile")
    if any("-" in kind for kind, _ in profile.types):
        raise Refused(400, "sample type contains -")
    if profile.time_ns and not now - 3600 < profile.time_ns / 1e9 < now + 600:
        raise Refused(400, f"profile with labels '{shown(pairs)}' is outside of ingestion window (profile timestamp: "
                           f"{moment(profile.time_ns / 1e9)}, the ingestion window starts at {moment(now - 3600)} and ends at "
                           f"{moment(now + 600)})")
    if len(profile.samples) > 16000:
        raise Refused(400, f"the profile with labels '{shown(pairs)}' exceeds the samples count limit "
                           f"(max_profile_stacktrace_samples, actual: {len(profile.samples)}, limit: 16000)")


def check_text(data):
    for number, value in profile_readers.fields(unpacked(data)):
        if number == 6:
            try:
                value.decode()
            except UnicodeDecodeError as error:
                raise Refused(400, f"invalid utf8 string hex: {value.hex()}") from error


def check_parca(pairs, data, now):
    del now
    try:
        unpacked(data)
    except (EOFError, zlib.error) as error:
        raise Refused(500, "decompressing profile: unexpected EOF") from error
    if not NAME.fullmatch(dict(pairs)["__name__"]):
        raise Refused(500, f"invalid profile type at row 0 ({dict(pairs)['__name__']}): parse error")
    decoded(data)  # ids from 1 without gaps, references within their tables: its reader asserts them


CHECKS = {"pyroscope": check_pyroscope, "parca": check_parca}


def nonsense_of(stored):
    """What a store would take, and show wrongly or not at all."""
    profile = stored.profile
    text = {name for sample in profile.samples for name, values in sample.labels.items() if isinstance(values[0], str)}
    if text:
        yield f"text labels inside of the profile, which Pyroscope makes series of: {sorted(text)}"
    if max((len(sample.frames) for sample in profile.samples), default=0) > 1000:
        yield "a stack of more than 1000 frames, whose innermost ones Pyroscope cuts off"
    if any(len(text) > 65535 for text in {f.function for s in profile.samples for f in s.frames}):
        yield "a name that Pyroscope cuts"
    if not profile.time_ns or not profile.duration_ns or not profile.period:
        yield f"time {profile.time_ns}, duration {profile.duration_ns}, period {profile.period}: Parca has no :delta of such a profile"
    for name in (stored.name, *stored.labels):
        if len(name) > 128 or not NAME.fullmatch(name):
            yield f"a name that a query can hardly say: {name}"
    if not stored.labels.get("service_name"):
        yield "no service_name: Pyroscope says unknown_service"
    if not all(stored.labels.values()):
        yield f"an empty label: {stored.labels}"


# ---- faults ----

class Fault:
    def __init__(self, act, times, when):
        self.act, self.left, self.when = act, times, when
        self.done = 0

    def end(self):
        self.left = 0


def answer(status, text="the test says so", retry_after=None):
    def act(take):
        del take
        raise Refused(status, text, retry_after)
    return act


class Cut(Exception):
    """The connection ends without an answer."""


def cut_before(take):
    """All was read, and nothing is stored."""
    del take
    raise Cut


def cut_in(take):
    """Only the head is read: the sender may be in the midst of the body. Handler.do_POST() does it."""
    del take
    raise AssertionError


def cut_after(take):
    """All is stored, but the answer is lost."""
    take()
    raise Cut


class Raw(Exception):
    """Bytes in place of an answer of HTTP."""


def garbage(content, stored):
    """Answers with bytes that are no HTTP, or only seem to be, with or without storing what came."""
    def act(take):
        if stored:
            take()
        raise Raw(content)
    return act


class Hold:
    """Answers when it is released."""

    def __init__(self):
        self.came, self.released = threading.Event(), threading.Event()

    def release(self):
        self.released.set()

    def __call__(self, take):
        self.came.set()
        self.released.wait()
        take()


# ---- the server ----

# What came, and how it was answered: the status, or "cut", "raw". `profiles`: Sent.
Request = collections.namedtuple("Request", "path headers profiles answer")
CONNECT_CODES = {400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented",
                 429: "resource_exhausted", 503: "unavailable"}


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def handle_error(self, request, client_address):
        kind, error, _ = sys.exc_info()
        if not issubclass(kind, (ConnectionError, TimeoutError, ssl.SSLError)):
            self.store.nonsense.append(f"the test's server failed: {error!r}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet
    disable_nagle_algorithm = True

    @property
    def store(self):
        return self.server.store

    def setup(self):
        super().setup()
        self.store.connections.add(self.connection)

    def finish(self):
        self.store.connections.discard(self.connection)
        try:
            super().finish()
        except OSError:
            pass  # the sender went away

    def log_message(self, format, *arguments):
        pass

    def do_GET(self):
        self.send(200, b"ready\n", "text/plain")

    def do_POST(self):
        if self.store.fault_for(None):
            self.store.note(self, [], "cut")
            return self.cut()
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the sender went away
            self.store.note(self, [], "cut")
            return self.cut()
        try:
            self.store.take(self, body)
            return self.send(200, *((b"", "application/proto") if self.store.kind == "pyroscope" else (b"{}", "application/json")))
        except Cut:
            return self.cut()
        except Raw as raw:
            self.wfile.write(raw.args[0])
            self.wfile.flush()
            return self.cut()
        except Refused as refused:
            words = {"message": refused.text}
            parca = {"code": 3 if refused.status == 400 else 2, "details": []}
            code = {"code": CONNECT_CODES.get(refused.status, "unknown")} if self.store.kind == "pyroscope" else parca
            return self.send(refused.status, json.dumps({**code, **words}).encode(), "application/json", refused.retry_after)

    def send(self, status, body, kind, retry_after=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(body)

    def cut(self):
        self.close_connection = True
        cut(self.connection)


def cut(connection):
    """Ends it as a killed process does, with a reset."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class ProfileStore:
    def __init__(self, kind, port=0, token=None, tenants=False, certificate=None):
        """`token`: the only one that is let in. `tenants`: each request names one. `certificate`: (file, its key) for https."""
        self.kind, self.port, self.token, self.tenants, self.certificate = kind, port, token, tenants, certificate
        self.now = time.time
        self.profiles, self.requests, self.nonsense, self.connections = [], [], [], set()
        self.lock, self.changed, self.faults, self.server = threading.RLock(), threading.Condition(), [], None

    @property
    def url(self):
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}"

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, kind, *_):
        for fault in self.faults:
            if isinstance(fault.act, Hold):
                fault.act.release()
        self.down()
        assert kind or not self.nonsense, self.nonsense

    def up(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.store = self
        self.port = self.server.server_port
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def down(self):
        """As kill -9: connections end, too."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
            for connection in list(self.connections):
                cut(connection)

    def fault(self, act, times=1 << 62, when=None):
        """The next requests, `times` of them, have this fault; with `when`, those that it is true for, which gets a Sent."""
        with self.lock:
            self.faults.append(Fault(act, times, when))
            return self.faults[-1]

    def fault_for(self, profile):
        """The first fault that is for this profile; None: for one whose bytes are not read."""
        with self.lock:
            for fault in self.faults:
                if fault.left > 0 and ((fault.act is cut_in) == (profile is None)) and (not fault.when or fault.when(profile)):
                    fault.left -= 1
                    fault.done += 1
                    return fault
        return None

    def note(self, handler, profiles, how):
        with self.changed:
            self.requests.append(Request(handler.path, dict(handler.headers.items()), profiles, how))
            self.changed.notify_all()

    def wait(self, condition, seconds=120):
        """Until the condition, which is asked after each request, is true."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), f"{len(self.requests)} requests, {len(self.profiles)} profiles"

    def take(self, handler, body):
        """Stores the profiles of a request, or says why not."""
        sent, how = [], 200
        try:
            sent = self.read(handler, body)
            take = functools.partial(self.keep, sent)
            fault = next(filter(None, map(self.fault_for, sent)), None)
            (fault.act if fault else lambda take: take())(take)
        except Refused as refused:
            how = refused.status
            raise
        except Cut:
            how = "cut"
            raise
        except Raw:
            how = "raw"
            raise
        finally:
            self.note(handler, sent, how)

    def read(self, handler, body):
        if PATHS.get(handler.path) != self.kind:
            raise Refused(404, "404 page not found")
        if self.token and handler.headers["Authorization"] != f"Bearer {self.token}":
            raise Refused(401, "no credentials")
        tenant = handler.headers["X-Scope-OrgID"]
        if self.tenants and not tenant:
            raise Refused(401, "no org id")
        if len(body) > 64 * MIB:
            raise Refused(413, "request body too large")
        try:
            request = read_push(body) if self.kind == "pyroscope" else read_writeraw(body)
            profiles = [(labels, data) for labels, samples in request for data in samples]
            assert len(profiles) == 1, "a request is of one profile"
        except (AssertionError, KeyError, IndexError, TypeError, ValueError) as error:
            self.nonsense.append(f"a request that cannot be read: {error!r}")
            raise Refused(400, f"malformed request: {error!r}") from error
        return [Stored(dict(labels), data, tenant, len(self.requests)) for labels, data in profiles if self.fits(labels, data)]

    def fits(self, labels, data):
        try:
            check_labels(labels)
            CHECKS[self.kind](labels, data, self.now())
            return True
        except (AssertionError, KeyError, IndexError, ValueError, EOFError, OSError, zlib.error) as error:
            self.nonsense.append(f"a profile of {dict(labels)} that cannot be read: {error!r}")
            raise Refused(400, f"malformed profile: {error!r}") from error

    def keep(self, sent):
        with self.lock:
            self.profiles += sent
            self.nonsense += [f"{said} ({p.labels})" for p in sent for said in nonsense_of(p)]


# ---- questions ----

def stacks(profiles, kind, key=lambda stored, sample: ()):
    """Sums of the values of one type, such as "cpu", of profiles that have it: Counter of (key, frames outermost first)."""
    found = collections.Counter()
    for stored in profiles:
        profile = stored.profile
        at = next((i for i, (name, _) in enumerate(profile.types) if name == kind), None)
        if at is None:
            continue
        for sample in profile.samples:
            found[key(stored, sample), tuple(plain(f) for f in sample.frames)] += sample.values[at]
    return +found


def plain(frame):
    """A frame without what depends on the profile it is in."""
    return frame._replace(mapping=frame.mapping["filename"] if frame.mapping else "")


def main():
    """profile_store.py KIND [PORT]: for a look by hand. Says what comes."""
    store = ProfileStore(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with store:
        print(store.url, flush=True)
        while True:
            with store.changed:
                store.changed.wait()
            request = store.requests[-1]
            print(request.answer, [(p.labels, len(p.data), len(p.profile.samples)) for p in request.profiles], flush=True)


if __name__ == "__main__":
    main()
