# SPDX-License-Identifier: Apache-2.0
"""Profiles reach a store, past servers that answer late, break and lie.

build/tools/store_send is symbolize/push/store.h without a trace; servers answer, break and lie as stores, proxies and strangers
may.
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from conftest import PYCAP, PYSYM
from web_server import Authority, Proxy, WebServer, answer, ok, openssl

pytestmark = pytest.mark.sanitized

STORE_SEND = pathlib.Path(PYSYM).parent / "tools/store_send"
TOKEN = "geheim-0123456789"
NO_NAME = ("dns", "timeout")  # a machine without a network may wait for a server of names
PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if name not in PROXIES and not name.startswith("PYSYM_")}
    return clean | more


class Sender:
    """store_send: a profile for each call of next()."""

    def __init__(self, url, *words, kind="pyroscope", **variables):
        self.process = subprocess.Popen([STORE_SEND, kind, url, "count=1000", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment(**variables))
        self.began = False
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(120) == 0, self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()

    def next(self):
        if self.began:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.began = True
        return json.loads(self.process.stdout.readline())


def send(url, *words, **how):
    with Sender(url, *words, **how) as sender:
        return sender.next()


def refused(url, *words, kind="pyroscope", **variables):
    """store_open() takes none of this; what it says."""
    done = subprocess.run([STORE_SEND, kind, url, *words], capture_output=True, text=True, env=environment(**variables), timeout=120)
    assert done.returncode == 2, done
    assert TOKEN not in done.stderr
    return done.stderr


def judged(line):
    return line["verdict"], line["reason"], line["status"]


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o640)
    return path


# ---- requests ----

@pytest.mark.parametrize("kind, path, content_type", [("pyroscope", "/push.v1.PusherService/Push", "application/proto"),
                                                      ("parca", "/api/profiles/writeraw", "application/json")])
def test_request(kind, path, content_type, token_file):
    with WebServer(ok(content_type)) as server:
        with Sender(server.url + "/behind/", f"token-file={token_file}", "tenant=team-7", "bytes=300000", kind=kind) as sender:
            lines = [sender.next() for _ in range(3)]
        first = server.requests[0]
        assert [judged(line) for line in lines] == [("accepted", "accepted", 200)] * 3
        assert (first.method, first.path) == ("POST", "/behind" + path)
        wanted = {"content-type": content_type, "authorization": f"Bearer {TOKEN}", "x-scope-orgid": "team-7"}
        assert wanted.items() <= first.headers.items()
        assert first.headers["user-agent"].startswith("pysym ") and "expect" not in first.headers
        assert {r.connection for r in server.requests} == {0}  # it is kept
        assert lines[2]["sent_bytes"] == sum(len(r.body) for r in server.requests)


def test_user_and_password_of_the_environment():
    with WebServer(ok()) as server:
        sender = Sender(server.url, "user=Aladdin", PYSYM_PASSWORD="open sesame")
        with sender:
            sender.next()
            # Whoever may read the environment of the process finds no password in it, nor in its arguments.
            for name in ("environ", "cmdline"):
                assert b"sesame" not in pathlib.Path(f"/proc/{sender.process.pid}/{name}").read_bytes()
        assert server.requests[0].headers["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_token_that_was_replaced(token_file):
    """A token is read anew after 401, and the request made once more; if the file has no other, that is the answer."""
    denied = answer(401, "no")
    with WebServer(ok(), denied, ok(), denied) as server, Sender(server.url, f"token-file={token_file}") as sender:
        assert sender.next()["verdict"] == "accepted"
        token_file.write_text("another")
        assert sender.next()["verdict"] == "accepted"
        assert judged(sender.next()) == ("denied", "unauthenticated", 401)
        assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {t}" for t in (TOKEN, TOKEN, "another", "another")]


def test_secret_is_not_repeated(token_file):
    with WebServer(answer(401, json.dumps({"code": "unauthenticated", "message": f"bad token '{TOKEN}'"}))) as server:
        line = send(server.url, f"token-file={token_file}")
        assert line["text"] == f"bad token '{'*' * len(TOKEN)}'"


def test_secret_in_a_redirection_is_not_repeated(token_file):
    with WebServer(answer(302, Location=f"https://login.example/?from={TOKEN}")) as server:
        line = send(server.url, f"token-file={token_file}")
        assert line["text"].endswith(f"https://login.example/?from={'*' * len(TOKEN)}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirection_is_not_followed(status, token_file):
    with WebServer(ok()) as other, WebServer(answer(status, Location=f"{other.url}/there")) as server:
        line = send(server.url, f"token-file={token_file}")
        assert judged(line) == ("denied", "redirect", status)
        assert f"give --pyroscope the URL that it means: {other.url}/there" in line["text"]
        assert other.requests == [] and other.count == 0


@pytest.mark.parametrize("status, header, wait_s", [(429, "3", 3), (503, "Fri, 31 Dec 2199 23:59:59 GMT", 3600), (429, None, 0)])
def test_retry_after(status, header, wait_s):
    with WebServer(answer(status, **({"Retry-After": header} if header else {}))) as server:
        line = send(server.url)
        assert (line["verdict"], line["retry_after_s"]) == ("later", wait_s)


# ---- answers that are none, or too much ----

def no_answer(connection):
    del connection  # it is closed


def half_an_answer(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/pr")


def cut_body(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 50\r\n\r\n12")


def endless_headers(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Header: " + b"x" * 10000 + b"\r\n")


def break_in_the_body(connection):
    connection.recv(100)


break_in_the_body.reads_no_body = True


@pytest.mark.parametrize("act, wanted", [
    (no_answer, ("unanswered", "broken", 0)),
    (half_an_answer, ("unanswered", "broken", 0)),
    (cut_body, ("accepted", "accepted", 200)),  # what follows the headers says nothing
    (endless_headers, ("unanswered", "broken", 0)),
    (break_in_the_body, ("unanswered", "broken", 0)),
])
def test_broken_answers(act, wanted):
    with WebServer(act) as server:
        assert judged(send(server.url, "bytes=8000000")) == wanted
        assert len(server.requests) == 1  # it is not repeated behind our back


@pytest.mark.parametrize("status, verdict", [(200, "denied"), (500, "fault")])
def test_huge_answer_is_not_read(status, verdict):
    sent = []

    def huge(connection):
        connection.sendall(b"HTTP/1.1 %d Words\r\nContent-Type: text/plain\r\nContent-Length: 1000000000\r\n\r\n" % status)
        for _ in range(15000):
            sent.append(connection.send(b"z" * 65536))

    with WebServer(huge) as server:
        line = send(server.url)
        assert line["verdict"] == verdict and len(line["text"]) <= 255
    assert sum(sent) < 100e6  # what lies in the sockets' buffers, not all of it


def test_kept_connection_that_breaks_is_not_used_twice():
    """The server ends a kept connection when the second request has come: libcurl would send that once more by itself."""
    with WebServer(ok(), no_answer, ok()) as server, Sender(server.url) as sender:
        assert [sender.next()["verdict"] for _ in range(3)] == ["accepted", "unanswered", "accepted"]
        assert len(server.requests) == 3 and server.requests[1].connection == 0


def test_nothing_listens():
    with WebServer(ok()) as server:
        url = server.url
    line = send(url)
    assert judged(line) == ("later", "connect", 0) and line["sent_bytes"] == 0


def test_name_that_is_not_there():
    line = send("http://store.invalid:4040")
    assert line["verdict"] == "later" and line["reason"] in NO_NAME and line["sent_bytes"] == 0


def hold(connection):
    connection.recv(1)


def test_slow_store():
    with WebServer(hold) as server:
        assert judged(send(server.url, "request-ms=2000")) == ("unanswered", "timeout", 0)
    # Where nobody answers to TLS, nothing is sent.
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        assert judged(send(url, "connect-ms=300")) == ("later", "timeout", 0)


def test_stop():
    """SIGTERM ends a request under way at once; no later one begins."""
    arrived = threading.Event()

    def wait(connection):
        arrived.set()
        connection.recv(1)

    with WebServer(wait) as server, Sender(server.url) as sender:
        def stop():
            arrived.wait(60)
            sender.process.send_signal(signal.SIGTERM)

        threading.Thread(target=stop).start()
        assert judged(sender.next()) == ("unanswered", "stopped", 0)
        assert judged(sender.next()) == ("later", "stopped", 0)
        assert len(server.requests) == 1


def read_lines(*words, **variables):
    done = subprocess.run([STORE_SEND, "pyroscope", *words], capture_output=True, text=True, env=environment(**variables), timeout=120,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


def test_many_at_a_time():
    """A store that answers none before all sixteen have come."""
    barrier = threading.Barrier(16, timeout=60)

    def together(_):
        barrier.wait(60)
        return ok()

    with WebServer(together) as server:
        lines = read_lines(server.url, "slots=16", "count=48")
        assert [line["verdict"] for line in lines] == ["accepted"] * 48
        assert lines[-1]["sent_bytes"] == sum(len(r.body) for r in server.requests)


def test_token_that_was_replaced_while_many_were_sent(token_file):
    """All that had the old token are sent with the new one."""
    barrier = threading.Barrier(8, lambda: token_file.write_text("another"))

    def deny(_):
        barrier.wait(60)
        return answer(401)

    with WebServer(*[deny] * 8, ok()) as server:
        lines = read_lines(server.url, "slots=8", "count=8", f"token-file={token_file}")
        assert [line["verdict"] for line in lines] == ["accepted"] * 8
        tokens = [r.headers["authorization"] for r in server.requests]
        assert tokens == [f"Bearer {TOKEN}"] * 8 + ["Bearer another"] * 8


def test_waiting_ends_where_something_else_came():
    """store_next() returns when a descriptor can be read or was closed, though no answer came."""
    with WebServer(hold) as server:
        assert read_lines(server.url, "slots=2", "count=2", "input=wait") == []


def test_stop_of_many():
    arrived = threading.Barrier(5)

    def wait(connection):
        arrived.wait(60)
        connection.recv(1)

    with WebServer(wait) as server:
        with subprocess.Popen([STORE_SEND, "pyroscope", server.url, "slots=4", "count=6"], stdout=subprocess.PIPE, text=True,
                              env=environment()) as process:
            arrived.wait(60)
            process.send_signal(signal.SIGTERM)
            lines = [json.loads(line) for line in process.communicate(timeout=120)[0].splitlines()[1:]]
        ends = sorted((line["verdict"], line["reason"]) for line in lines)
        assert ends == [("later", "stopped")] * 2 + [("unanswered", "stopped")] * 4


# ---- TLS ----

@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed: it makes certificates")
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=["libcurl.so.4", "libcurl-gnutls.so.4"])
def flavour(request, tmp_path):
    """Of libcurl, with OpenSSL and with GnuTLS: the variables with which only this one is found."""
    try:
        ctypes.CDLL(request.param)
    except OSError:
        pytest.skip(f"{request.param} is not installed")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    if request.param != "libcurl.so.4":
        (hidden / "libcurl.so.4").write_bytes(b"")
    return {"LD_LIBRARY_PATH": str(hidden)}


def test_tls(authority, flavour, token_file):
    with WebServer(ok(), tls=authority.context()) as server:
        line = send(server.url, f"cacert={authority.pem}", f"token-file={token_file}", **flavour)
        assert line["verdict"] == "accepted", line
        assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("known, how", [(True, {"days": -1}), (True, {"names": "DNS:other.example"}), (False, {})])
def test_tls_certificate_is_checked(authority, flavour, known, how, token_file):
    with WebServer(ok(), tls=authority.context("bad", **how)) as server:
        line = send(server.url, f"token-file={token_file}", *([f"cacert={authority.pem}"] if known else []), **flavour)
        assert judged(line) == ("later", "tls", 0) and line["text"]
        assert server.requests == []


def test_client_certificate(authority, flavour, tmp_path):
    certificate, key = authority.issue("client")
    with WebServer(ok(), tls=authority.context(clients=True)) as server:
        assert send(server.url, f"cacert={authority.pem}", f"cert={certificate}", f"key={key}", **flavour)["verdict"] == "accepted"
        without = send(server.url, f"cacert={authority.pem}", **flavour)
        assert without["verdict"] in ("later", "unanswered") and without["reason"] in ("tls", "broken")
        assert len(server.requests) == 1
        key.chmod(0o644)
        assert "everybody may read this private key" in refused(server.url, f"cert={certificate}", f"key={key}")
        locked = tmp_path / "locked.key"
        openssl("ec", "-in", key, "-aes128", "-passout", "pass:x", "-out", locked)
        locked.chmod(0o600)
        assert "a key with a password cannot be used" in refused(server.url, f"cert={certificate}", f"key={locked}")
        assert "--key wants --cert" in refused(server.url, f"key={key}")
        assert "cannot be read" in subprocess.run([STORE_SEND, "parca", server.url, "cacert=/nowhere"], capture_output=True, text=True).stderr


# ---- proxies ----

def test_proxy(authority, token_file):
    """By the option, and by the environment. A proxy of https:// sees no header of ours; what is on this host needs none."""
    with WebServer(ok(), tls=authority.context()) as server, Proxy(server.port) as proxy:
        url, words = "https://store.example", (f"cacert={authority.pem}", f"token-file={token_file}")
        assert send(url, f"proxy={proxy.url}", *words)["verdict"] == "accepted"
        assert send(url, *words, https_proxy=proxy.url)["verdict"] == "accepted"
        assert send(server.url, *words, https_proxy=proxy.url)["verdict"] == "accepted"
        assert [first[:2] for first, _ in proxy.heads] == [["CONNECT", "store.example:443"]] * 2
        assert all("authorization" not in headers and TOKEN not in str(headers) for _, headers in proxy.heads)
        assert len(server.requests) == 3
        around = send("https://store.invalid", *words, https_proxy=proxy.url, no_proxy="store.invalid")
        assert around["verdict"] == "later" and around["reason"] in NO_NAME and len(proxy.heads) == 2


@pytest.mark.parametrize("refusal", [answer(407), answer(403, "not that one"), b"nonsense\r\n\r\n"])
def test_proxy_that_refuses(refusal):
    with Proxy(1, refusal) as proxy:
        line = send("https://store.example", f"proxy={proxy.url}")
        assert line["verdict"] == "later" and line["reason"] in ("proxy", "broken") and line["sent_bytes"] == 0


# ---- what is not taken ----

def test_refused_before_anything_is_sent(token_file, tmp_path):
    assert "a token would go to store.example unencrypted: use https://" in refused("http://store.example", f"token-file={token_file}")
    assert "a token would go to 127.0.0.1 unencrypted" in refused("http://127.0.0.1:1", f"token-file={token_file}", "proxy=http://proxy:3128")
    assert "--pyroscope has a user in its URL" in refused(f"https://me:{TOKEN}@store.example")
    assert "--proxy has a user in its URL" in refused("https://store.example", f"proxy=http://me:{TOKEN}@proxy:3128")
    assert "--tenant wants" in refused("https://store.example", "tenant=a\nb")
    token_file.chmod(0o644)
    assert "everybody may read this token" in refused("https://store.example", f"token-file={token_file}")


def test_no_libcurl(tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_bytes(b"")
    done = subprocess.run([STORE_SEND, "parca", "https://store.example"], capture_output=True, text=True, timeout=120,
                          env=environment(LD_LIBRARY_PATH=str(tmp_path)))
    assert done.returncode == 1 and "libcurl, which is not installed" in done.stderr


def test_secret_as_containers_get_it(tmp_path):
    """Mode 0644 in a tmpfs that is mounted read-only, as Kubernetes does it; the same where one can write is refused."""
    script = f"""mount -t tmpfs tmpfs {tmp_path} && printf {TOKEN} >{tmp_path}/token && chmod 0644 {tmp_path}/token || exit 77
        {STORE_SEND} pyroscope http://127.0.0.1:1 token-file={tmp_path}/token && exit 1
        mount -o remount,ro {tmp_path} || exit 77
        exec {STORE_SEND} pyroscope http://127.0.0.1:1 token-file={tmp_path}/token"""
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, env=environment(), timeout=120)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount here: {done.stderr}")
    assert "everybody may read this token" in done.stderr
    assert '"reason": "connect"' in done.stdout and done.returncode == 0


def test_only_push_reaches_a_network():
    """pysym is not linked with libcurl, and nothing in pycap knows of it."""
    libraries = subprocess.run(["ldd", PYCAP, PYSYM], capture_output=True, text=True, timeout=60).stdout
    assert "curl" not in libraries.lower() and "libc.so" in libraries
    assert b"libcurl" not in pathlib.Path(PYCAP).read_bytes() and b"libcurl.so" in STORE_SEND.read_bytes()
