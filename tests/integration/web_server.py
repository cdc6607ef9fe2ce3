# SPDX-License-Identifier: Apache-2.0
"""A server of HTTP that a test tells how to answer, byte by byte; a proxy; certificates.

    with WebServer(ok("application/proto")) as server: ...      # the answer of every request
    server.answers = [bytes, callable, ...]                     # one each; the last goes on for the others

An answer is what goes over the wire, or a callable that gets the connection and does what it likes: the connection ends
then, but for one that returns an answer. What came stands in server.requests, in its order.
"""
import collections
import select
import socket
import ssl
import subprocess
import threading

# `headers`: a dictionary with small letters; `connection`: the number of the connection, from 0.
Request = collections.namedtuple("Request", "method path headers body connection")


def answer(status, body=b"", **headers):
    """A whole answer. Underscores in the headers' names stand for '-'."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Words", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ok(kind="application/proto"):
    return answer(200, b"{}" if kind == "application/json" else b"", Content_Type=kind)


class Listener:
    """Accepts connections on 127.0.0.1, and serves each in a thread; `tls`: an SSLContext."""

    def __init__(self, tls=None):
        self.tls, self.stopping, self.sockets, self.threads = tls, False, [], []
        self.count = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        self.start(self.accept)
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in list(self.sockets):
            close(s)
        for t in list(self.threads):
            t.join(60)
            assert not t.is_alive()

    def start(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while not self.stopping:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(connection)
            self.start(self.run, connection, self.count)
            self.count += 1

    def run(self, connection, number):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
                self.sockets.append(connection)
            self.serve(connection, number)
        except (OSError, EOFError, ValueError):
            pass  # the other side has gone, or TLS failed: what the test looks at is there
        finally:
            close(connection)


def close(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


def read_head(reader):
    """The first line, and the headers."""
    first = reader.readline().decode()
    if not first:
        raise EOFError
    headers = {}
    while (line := reader.readline().decode().strip()):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return first.split(), headers


class WebServer(Listener):
    def __init__(self, *answers, tls=None):
        super().__init__(tls)
        self.answers, self.requests = list(answers), []
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def serve(self, connection, number):
        reader = connection.makefile("rb")
        while not self.stopping:
            (method, path, _), headers = read_head(reader)
            act = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            length = int(headers.get("content-length", 0))
            body = b"" if getattr(act, "reads_no_body", False) else reader.read(length)
            self.requests.append(Request(method, path, headers, body, number))
            reply = act(connection) if callable(act) else act
            if reply is None:
                return
            connection.sendall(reply)


class Proxy(Listener):
    """Takes CONNECT, whatever the host is, to the port of a server here; or refuses it with `refusal`."""

    def __init__(self, port, refusal=None):
        super().__init__()
        self.to, self.refusal, self.heads = port, refusal, []
        self.url = f"http://127.0.0.1:{self.port}"

    def serve(self, connection, number):
        first, headers = read_head(connection.makefile("rb", buffering=0))
        self.heads.append((first, headers))
        if self.refusal:
            connection.sendall(self.refusal)
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", self.to)) as far:
            pairs = {connection: far, far: connection}
            while True:
                for s in select.select(list(pairs), [], [])[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    pairs[s].sendall(data)


# ---- certificates ----

class Authority:
    """A certificate authority of its own, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.pem = folder / "ca.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=authority",
                "-keyout", folder / "ca.key", "-out", self.pem)

    def issue(self, name, names="IP:127.0.0.1,DNS:store.example", days=2):
        """A certificate and its key."""
        paths = {what: self.folder / f"{name}.{what}" for what in ("pem", "key", "csr", "ext")}
        paths["ext"].write_text(f"subjectAltName={names}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", paths["key"],
                "-out", paths["csr"])
        openssl("x509", "-req", "-in", paths["csr"], "-CA", self.pem, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
                "-days", str(days), "-extfile", paths["ext"], "-out", paths["pem"])
        paths["key"].chmod(0o600)
        return paths["pem"], paths["key"]

    def context(self, name="server", clients=False, **how):
        """What a server speaks; `clients`: it wants a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name, **how))
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.pem)
        return context


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
