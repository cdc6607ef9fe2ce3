#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store that stands in for Pyroscope, over TLS: tests/integration/profile_store.py.

usage: store.py FOLDER TOKEN     until SIGTERM

Makes its certificate, FOLDER/store.pem; writes its address to FOLDER/url when it listens; and for each profile that it accepts a line of
labels and names of functions to FOLDER/accepted.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from profile_store import ProfileStore  # noqa: E402


def main(folder, token):
    folder = pathlib.Path(folder)
    files = folder / "store.pem", folder / "store.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
                   check=True, capture_output=True, timeout=60)
    with ProfileStore("pyroscope", token=token, certificate=files) as store:
        (folder / "url.new").write_text(store.url)
        (folder / "url.new").rename(folder / "url")
        shown = 0
        while True:
            with store.changed:
                store.changed.wait_for(lambda: len(store.profiles) > shown)
                new, shown = store.profiles[shown:], len(store.profiles)
            with open(folder / "accepted", "a", encoding="utf-8") as out:
                for stored in new:
                    functions = {frame.function for sample in stored.profile.samples for frame in sample.frames}
                    print(dict(stored.labels), sorted(functions), file=out, flush=True)


main(*sys.argv[1:])
