# SPDX-License-Identifier: Apache-2.0
"""Grafana Pyroscope and Parca as programs on loopback, with ports and folders of their own, for `make check-stores`.

    store = Parca(program, folder, *more options)
    store.up()                          # returns when it is ready
    store.stacks(name, types, labels, begin_s, end_s)
                                        # what it says of a series: Counter of frames -> sum; None: it knows no such series
    store.labels("service_name", begin_s, end_s)
                                        # the values of a label
    store.types(begin_s, end_s)         # "process_cpu:cpu:nanoseconds:cpu:nanoseconds" ...
    store.kill(), store.up()            # as kill -9; again in its folder, on its ports
    store.down()

Neither is asked to speak to anybody: usage statistics are off, and no debuginfod is asked.
"""
import base64
import collections
import datetime
import gzip
import json
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import profile_readers
from profile_store import plain
from protobuf_fields import field

READY_S = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, body=None, kind="application/json", headers=None):
    """The status and the body of an answer."""
    headers = {**(headers or {}), **({"Content-Type": kind} if body is not None else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=120) as answered:
            return answered.status, answered.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class RealStore:
    def __init__(self, program, folder, *options):
        self.program, self.folder, self.options = pathlib.Path(program).resolve(), folder, options
        folder.mkdir(parents=True, exist_ok=True)
        self.log, self.process, self.ports = folder / "log", None, collections.defaultdict(free_port)
        self.headers = {}  # of queries

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['http']}"

    def up(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, *self.command(), *self.options], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, cwd=self.folder)
        end = time.monotonic() + READY_S
        while not self.ready():
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.2)

    def ready(self):
        try:
            return ask(self.url + self.READY)[0] == 200
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def down(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def selector(labels):
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items()) + "}"


def sums(profile):
    """A store's answer is of one type."""
    found = collections.Counter()
    for sample in profile.samples:
        assert len(sample.values) == 1
        found[tuple(plain(f) for f in sample.frames)] += sample.values[0]
    return +found


def read_answer(data):
    return profile_readers.PprofReader(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).read()


class Parca(RealStore):
    kind, READY = "parca", "/metrics"

    def command(self):
        config = self.folder / "parca.yaml"
        config.write_text(f'object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: "{self.folder}/bucket"\n')
        return [f"--config-path={config}", f"--http-address=127.0.0.1:{self.ports['http']}", f"--storage-path={self.folder}/data",
                f"--debuginfo-cache-dir={self.folder}", "--debuginfod-upstream-servers=http://127.0.0.1:9",
                "--profile-share-server=127.0.0.1:9"]

    def stacks(self, name, types, labels, begin_s, end_s):
        """`types`: (type, unit, type of the period, its unit)."""
        query = urllib.parse.urlencode({"mode": "MODE_MERGE", "report_type": "REPORT_TYPE_PPROF", "merge.start": iso(begin_s),
                                        "merge.query": f"{name}:{':'.join(types)}:delta{selector(labels)}", "merge.end": iso(end_s)})
        status, body = ask(f"{self.url}/api/profiles/query?{query}")
        return sums(read_answer(base64.b64decode(json.loads(body)["pprof"]))) if status == 200 else None

    def labels(self, name, begin_s, end_s):
        query = urllib.parse.urlencode({"start": iso(begin_s), "end": iso(end_s)})
        status, body = ask(f"{self.url}/api/profiles/labels/{name}/values?{query}")
        assert status == 200, body
        return set(json.loads(body).get("labelValues", []))

    def types(self, begin_s, end_s):
        query = urllib.parse.urlencode({"start": iso(begin_s), "end": iso(end_s)})
        status, body = ask(f"{self.url}/api/profiles/types?{query}")
        assert status == 200, body
        return {":".join(t[key] for key in ("name", "sampleType", "sampleUnit", "periodType", "periodUnit"))
                for t in json.loads(body).get("types", [])}


class Pyroscope(RealStore):
    kind, READY = "pyroscope", "/ready"
    RINGS = ("distributor.ring", "overrides-exporter.ring", "query-frontend")

    def command(self):
        """Whatever listens, listens on loopback; whatever asks for its own address is told that."""
        here, grpc, raft = "127.0.0.1", self.ports["grpc"], f"127.0.0.1:{self.ports['raft']}"
        return [f"-server.http-listen-address={here}", f"-server.http-listen-port={self.ports['http']}",
                f"-server.grpc-listen-address={here}", f"-server.grpc-listen-port={grpc}",
                f"-memberlist.bind-addr={here}", f"-memberlist.advertise-addr={here}", f"-memberlist.bind-port={self.ports['members']}",
                *(f"-{ring}.instance-addr={here}" for ring in self.RINGS),
                f"-segment-writer.lifecycler.addr={here}",
                f"-metastore.address={here}:{grpc}", f"-query-backend.address={here}:{grpc}",
                *(f"-metastore.raft.{key}={raft}" for key in ("server-id", "bind-address", "advertise-address")),
                "-usage-stats.enabled=false", "-self-profiling.disable-push=true", "-architecture.storage=v2",
                "-metastore.min-ready-duration=0s", "-segment-writer.min-ready-duration=0s"]

    def call(self, method, request):
        status, body = ask(f"{self.url}/querier.v1.QuerierService/{method}", json.dumps(request).encode(), headers=self.headers)
        assert status == 200, (status, body)
        return json.loads(body)

    def stacks(self, name, types, labels, begin_s, end_s):
        request = (field(1, ":".join((name, *types)).encode()) + field(2, selector(labels).encode()) +
                   field(3, int(begin_s * 1000)) + field(4, int(end_s * 1000)))
        status, body = ask(f"{self.url}/querier.v1.QuerierService/SelectMergeProfile", request, "application/proto",
                           self.headers)
        assert status == 200, (status, body)
        return sums(read_answer(body)) if body else None

    def labels(self, name, begin_s, end_s):
        return set(self.call("LabelValues", {"name": name, "start": int(begin_s * 1000), "end": int(end_s * 1000)}).get("names", []))

    def types(self, begin_s, end_s):
        found = self.call("ProfileTypes", {"start": int(begin_s * 1000), "end": int(end_s * 1000)})
        return {t["ID"] for t in found.get("profileTypes", [])}
