# SPDX-License-Identifier: Apache-2.0
"""The data of a page (pysym -f html), read by page_data.py, beside other formats. test_browser_*.py look at the page itself."""
import base64
import hashlib
import json
import re
import unicodedata

import pytest

import page_data
from conftest import ROOT

TRACES = [ROOT / "testdata" / name for name in ("demo/demo.trace", "traces/2.7-shared.trace", "traces/3.14-static.trace")]
NO_FRAMES = ("mark", "[no frames]", "", 0, "", "")


@pytest.fixture
def page(pysym, tmp_path):
    """The page of a trace."""
    def make(*arguments, name="page.html"):
        done = pysym(*arguments, "--no-host", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        return page_data.Page(tmp_path / name)
    return make


def good(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain(name):
    """A name from a trace as names are shown: nothing in it ends a line or changes how the text around it looks."""
    return "".join("_" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c
                   for c in name.strip(" ").replace(";", ":"))


def rows_of_ndjson(text):
    """A row for each sample: what a page has of it, too."""
    stacks, rows = {}, []
    for row in map(json.loads, text.splitlines()):
        if row["type"] == "stack":
            stacks[row["stack"]] = tuple((f["layer"], plain(f["function"]), plain(f["file"]), f["line"],
                                          plain(f["module"]), f["builtin"]) for f in row["frames"])
            continue
        rows.append((row["time_ns"], row["pid"], row["tid"], row["thread"], row["event"], row["value"], row["gil"],
                     row["in_interpreter"], tuple(sorted(row["labels"].items())), row["cpu"], stacks[row["stack"]]))
    return rows


def rows_of_page(page):
    return [(s.time_ns, s.process["pid"], s.thread["tid"], s.thread["name"], s.event["name"], s.value, s.gil,
             s.in_interpreter, tuple(sorted(s.labels)), s.cpu,
             tuple((f["kind"], f["function"], f["file"], f["line"], f["module"], f["builtin"]) for f in s.frames)
             if s.frames else (NO_FRAMES,)) for s in page.samples]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_samples(trace, page, pysym):
    """Sample by sample what ndjson has, with times since the start, in whole units."""
    read = page(trace)
    rows = rows_of_ndjson(good(pysym(trace, "-f", "ndjson", "--no-host")))
    found = rows_of_page(read)
    assert rows and sorted(row[1:] for row in rows) == sorted(row[1:] for row in found)
    unit = read.head["timeUnitNs"]
    first, first_found = min(row[0] for row in rows), min(row[0] for row in found)
    for row, row_found in zip(sorted(rows), sorted(found)):
        assert abs((row[0] - first) - (row_found[0] - first_found)) < 2 * unit


def test_policy(page):
    """The browser is told to run this script and style, and to load nothing."""
    read = page(TRACES[0])
    policy = read.elements.metas["Content-Security-Policy"]
    script = re.search(r"<script>(.*?)</script>", read.text, re.S)[1]
    style = re.search(r"<style>(.*?)</style>", read.text, re.S)[1]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (script, style)]
    assert policy == (f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; base-uri 'none'; "
                      "form-action 'none'")
    for tag, attributes in read.elements.tags:
        assert not {"src", "href", "style"} & {name for name, value in attributes.items() if not (value or "").startswith("#")}
        assert not [name for name in attributes if name.startswith("on")], tag
