# SPDX-License-Identifier: Apache-2.0
"""Programs whose stacks hold code of many makers: mix.py PART SECONDS spends its CPU time in one of them.

Exit: 0; 77 when what the part needs is not there, with the reason on standard error. mix_native.c,
compiled to the library that MIX_NATIVE names, is what the parts for C call.
"""
import ctypes
import functools
import os
import signal
import sys
import time

TEXT = "".join(f"line {i} of {i * 7919 % 1009} words, key{i % 13}=value{i % 7}; " for i in range(400))
DOCUMENT = {"rows": [{"id": i, "name": f"row {i}", "values": [i / 3, None, True, "x" * (i % 20)]} for i in range(200)]}


def pure():
    class Node:
        def __init__(self, value, left=None, right=None):
            self.value, self.left, self.right = value, left, right

        def walk(self):
            if self.left:
                yield from self.left.walk()
            yield self.value
            if self.right:
                yield from self.right.walk()

    def tree(low, high):
        if low >= high:
            return None
        middle = (low + high) // 2
        return Node(middle, tree(low, middle), tree(middle + 1, high))

    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def step():
        assert sum(tree(0, 300).walk()) == 44850
        assert fib(15) == 610
        assert {k: len(v) for k, v in {"a": [x * x for x in range(100)]}.items()} == {"a": 100}
    return step


def numpy():
    import numpy as np
    a = np.arange(160000, dtype=float).reshape(400, 400)
    apply = np.frompyfunc(lambda x: x + 1, 1, 1)

    def step():
        np.linalg.svd(a[:80, :80])
        a @ a
        np.sort(np.sin(a), axis=None)
        np.fft.fft2(a[:128, :128])
        np.einsum("ij,jk->ik", a[:60, :60], a[:60, :60])
        apply(a[:40, :40])
        np.apply_along_axis(lambda row: row.sum(), 1, a[:50])
    return step


def json():
    import json as module

    class Odd:
        pass

    def step():
        text = module.dumps({**DOCUMENT, "odd": Odd()}, default=lambda value: [1, 2], indent=1)
        module.loads(text, object_hook=lambda value: value)
        module.loads(module.dumps(DOCUMENT))
    return step


def regex():
    import re

    def step():
        re.sub(r"(\w+)=(\w+)", lambda match: match[2] + "=" + match[1], TEXT)
        re.findall(r"(?:a|b|[k-y])+\d*", TEXT)
        re.compile(r"x{1,%d}(a|b)?" % (time.monotonic_ns() % 50 + 1)).search(TEXT)
    return step


def zlib():
    import bz2
    import lzma
    import zlib as module
    data = TEXT.encode()

    def step():
        module.decompress(module.compress(data * 4, 6))
        bz2.decompress(bz2.compress(data))
        lzma.decompress(lzma.compress(data, preset=0))
        module.crc32(data * 40)
    return step


def hashes():
    import hashlib
    import hmac
    data = TEXT.encode() * 8

    def step():
        for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s"):
            hashlib.new(name, data).digest()
        hmac.new(b"key", data, "sha256").digest()
    return step


def sqlite():
    import sqlite3
    db = sqlite3.connect(":memory:")
    db.create_function("twist", 1, lambda value: value * 7919 % 1009)
    db.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    db.execute("create table t (id integer primary key, name text, n real)")
    db.executemany("insert into t (name, n) values (?, ?)", [(f"name{i}", i / 7) for i in range(2000)])

    def step():
        db.execute("select twist(id), count(*), avg(n) from t group by twist(id) % 17").fetchall()
        db.execute("select name from t order by name collate backwards limit 10").fetchall()
        db.execute("select a.id from t a join t b on a.id = b.id * 2 where b.name like '%9%'").fetchall()
    return step


def decimal():
    import decimal as module
    module.getcontext().prec = 400

    def step():
        x = module.Decimal(2).sqrt()
        (x ** 30).ln()
        str(module.Decimal(1) / 7 * x)
        module.Decimal(3).exp()
    return step


def openssl():
    import hashlib
    import ssl

    def step():
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 3000)
        hashlib.scrypt(b"password", salt=b"salt", n=1024, r=8, p=1)
        # A handshake in memory, as far as it goes without a certificate.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [context.wrap_bio(a, b), server.wrap_bio(b, a, server_side=True)]
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLError:
                pass
    return step


def threads():
    import queue
    import threading
    inbox, work = queue.Queue(), [json(), hashes(), pure()]

    def serve(job):
        while True:
            inbox.get()
            job()
    for i in range(9):
        threading.Thread(target=serve, args=(work[i % 3],), daemon=True).start()

    def step():
        for _ in range(9):
            inbox.put(1)
        while inbox.qsize():
            time.sleep(0.001)
    return step


def signals():
    count = [0]

    def handler(number, frame):
        count[0] += sum(i * i for i in range(300))
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
    return json()


def native():
    path = os.environ.get("MIX_NATIVE")
    if not path:
        leave("MIX_NATIVE names no library")
    return ctypes.CDLL(path)


def signals_c():
    native().mix_handle_alarm(0)
    return json()


def signals_altstack():
    native().mix_handle_alarm(1)
    return hashes()


def callbacks():
    libc, values = ctypes.CDLL(None), list(range(300))
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    depth = [0]

    def inner(value):
        if depth[0] < 5:
            depth[0] += 1
            sorted([3, 1, 2], key=inner)
            depth[0] -= 1
        return -value

    @kind
    def compare(a, b):
        inner(1)
        return a[0] - b[0]

    def step():
        array = (ctypes.c_int * 40)(*(i * 7919 % 1009 for i in range(40)))
        libc.qsort(array, 40, ctypes.sizeof(ctypes.c_int), compare)
        sorted(values, key=functools.cmp_to_key(lambda a, b: b - a))
        list(map(lambda x: max(values[:20], key=lambda y: -y), range(20)))
        functools.reduce(lambda a, b: a + b, values)
    return step


def c_code():
    library = native()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    call = kind(lambda n: sum(range(n)))

    def step():
        library.mix_realign(call, 50)
        library.mix_variable(call, 300)
        library.mix_deep(call, 400)
    return step


def cplusplus():
    import kiwisolver
    from rapidfuzz import fuzz, process
    words = TEXT.split(";")

    def step():
        process.extract("line 77 of words", words, scorer=fuzz.WRatio, limit=5)
        process.extract("key3", words[:60], scorer=lambda a, b, **rest: fuzz.ratio(a, b))
        solver, xs = kiwisolver.Solver(), [kiwisolver.Variable(str(i)) for i in range(40)]
        for a, b in zip(xs, xs[1:]):
            solver.addConstraint((a + 3 <= b) | "strong")
        solver.updateVariables()
        try:
            solver.addConstraint((xs[0] >= xs[-1]) | "required")
            solver.addConstraint((xs[0] <= xs[-1] - 1) | "required")
        except kiwisolver.UnsatisfiableConstraint:
            pass  # a C++ exception on its way through
    return step


def rust():
    import orjson
    import pydantic_core
    from cryptography.fernet import Fernet
    schema = pydantic_core.SchemaValidator({
        "type": "list", "items_schema": {"type": "function-after", "schema": {"type": "int"},
                                         "function": {"type": "no-info", "function": lambda value: value + 1}}})
    box = Fernet(Fernet.generate_key())

    def step():
        orjson.loads(orjson.dumps({**DOCUMENT, "odd": range(3)}, default=list))
        schema.validate_python(list(range(500)))
        box.decrypt(box.encrypt(TEXT.encode()))
    return step


PARTS = [pure, numpy, json, regex, zlib, hashes, sqlite, decimal, openssl, threads, signals, signals_c,
         signals_altstack, callbacks, c_code, cplusplus, rust]


def leave(why):
    print(why, file=sys.stderr)
    sys.exit(77)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(part.__name__ for part in PARTS))
        return
    name, seconds = sys.argv[1], float(sys.argv[2])
    try:
        step = next(part for part in PARTS if part.__name__ == name)()
    except ImportError as error:
        leave(str(error))
    end = time.process_time() + seconds
    while time.process_time() < end:
        step()
    # The interpreter takes its handlers away before it ends; the timer would kill it then.
    signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
