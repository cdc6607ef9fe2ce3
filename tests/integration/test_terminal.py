# SPDX-License-Identifier: Apache-2.0
"""The formats for people, tree, brief and svg, show the figures of top.

tests/unit/test_emit_people.c has their golden texts.
"""
import collections
import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest

from conftest import PYSYM
from pysym_output import FORMATS, good
from screen import on_terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def tree_rows(text):
    """(layer, name, share of its total, own seconds) of each line of a tree, of an event that lasts seconds."""
    titles, *lines = text.split("\n\n")[1].splitlines()
    at = re.search("function:|line:", titles).start()
    rows = []
    for line in lines:
        if not line.startswith("Left out"):
            total, _, own = re.fullmatch(r" *([\d.]+)% +[\d.]+ s( +[\d.]+% +([\d.]+) s)? +", line[: at - 2]).groups()
            name = re.fullmatch(r"(?:\+\d+ )?(?:\|- |`- |\|  |   )*(.*)", line[at:])[1]
            rows.append((line[at - 2], name, float(total), float(own or 0)))
    return rows


def top_rows(trace, pysym, *options):
    top = json.loads(good(pysym(trace, "-f", "top", "--top", "0", "--json", *options)))
    return {row["name"]: row for row in top["events"][0]["tables"][0]["rows"]}


def boxes(svg):
    """(class, name, share in words, width) of each box of a picture but those of the legend."""
    found = []
    for box in ET.fromstring(svg).iter(f"{SVG}svg"):
        title = box.find(f"{SVG}title")
        if "x" in box.attrib and title is not None:
            name, told = title.text.split("\n")[:2]
            found.append((box.get("class"), name, told, float(box.get("width"))))
    return found


@pytest.mark.parametrize("options", [(), ("--interpreter", "show"), ("--layer", "python"), ("--by", "line")])
def test_tree_equals_top(make, pysym, options):
    """Self times of all lines of a function add up to those of top; what is outermost is all there is."""
    trace = make(samples=3000, stacks=7, depth=5, threads=3, torn=10)
    rows = tree_rows(good(pysym(trace, "-f", "tree", "--min", "0", *options)))
    self_s, lines = collections.Counter(), collections.Counter()
    for _, name, _, seconds in rows:
        self_s[name] += seconds
        lines[name] += 1
    expected = top_rows(trace, pysym, *options)
    assert set(self_s) == set(expected)
    for name, row in expected.items():
        assert abs(self_s[name] - row["self_weight_ns"] / 1e9) <= 0.0051 * lines[name], name


def test_tree_leaves_out(make, pysym):
    trace = make(samples=3000, stacks=300, depth=3)
    text = good(pysym(trace, "-f", "tree", "--min", "5%"))
    assert all(share >= 5 for _, _, share, _ in tree_rows(text))
    left = re.search(r"^Left out: (\d+) calls of less than 5% each, with ([\d.]+) % of the time \(--min 0 shows all\)$", text, re.M)
    whole = tree_rows(good(pysym(trace, "-f", "tree", "--min", "0")))
    assert left and 0 < int(left[1]) <= sum(share < 5 for _, _, share, _ in whole)
    assert "Left out" not in good(pysym(trace, "-f", "tree", "--min", "0"))
    assert tree_rows(good(pysym(trace, "-f", "tree"))) == tree_rows(good(pysym(trace, "-f", "tree", "--min", "0.5%"))) != whole


def test_tree_on_a_terminal(make):
    """The width and the colours are the terminal's."""
    trace = make(samples=300, stacks=9, depth=30)
    command = (PYSYM, trace, "-f", "tree", "--full-filenames")
    shown = on_terminal(70, *command)
    plain = re.sub(r"\x1b\[\d+m", "", shown)
    rows = [line for line in plain.splitlines() if re.match(r" *[\d.]+% ", line)]
    assert len(rows) > 30 and max(map(len, rows)) <= 70, plain
    assert "\x1b[36m" in shown and "\u251c\u2500 " in shown
    assert "\x1b" not in on_terminal(70, *command, NO_COLOR="1")
    assert "|- " in on_terminal(70, *command, LANG="C")


@pytest.mark.parametrize("name", ["tree", "brief", "svg"])
def test_each_event_and_owner_apart(make, pysym, tmp_path, name):
    """Several events, filters, processes and threads; several inputs; an output for each process."""
    trace = make(samples=400, processes=2, threads=4, second_event=1)
    text = good(pysym(trace, "-f", name))
    heads = re.findall(r"[\d,]+ samples? of ([\w-]+): ", text)
    assert len(heads) == 2 == len(set(heads)), text
    assert heads[0] not in good(pysym(trace, "-f", name, "--event", heads[1]))
    filtered = good(pysym(trace, "-f", name, "--pid", "1000"))
    assert re.search(r" of .* shown \(--pid 1000\)", filtered), filtered
    apart = re.findall(r"python3.11 (\d+): ", good(pysym(trace, "-f", name, "--merge", "process")))
    assert len(apart) == 3 and len(set(apart)) == 2, apart
    assert "\u00b7 " in good(pysym(trace, "-f", name, "--threads"))
    two = good(pysym(trace, make(samples=100, pid=5000), "-f", name, "--event", "cpu-clock"))
    assert re.search(r"^(<text [^>]*>)?500 samples of cpu-clock", two, re.M), two
    good(pysym(trace, "-f", name, "--split", "process", "-o", tmp_path / "part.out"))
    assert len(list(tmp_path.glob("part*.out"))) == 2


def test_brief_is_top_in_short(make, pysym):
    """Rows are those of top, with paths in full; the summary's verdict comes first; all of it is a page without escapes."""
    trace = make(samples=3000, stacks=7, depth=12, losses=7)
    text = good(pysym(trace, "-f", "brief"))
    assert text.startswith(f"{trace.name}: ") and "\nQuality " in text.split("\n\n")[0]
    assert text.count("\n") <= 60 and "\x1b" not in text
    expected = top_rows(trace, pysym, "--full-filenames")
    table = text.split("function (")[1].split("\n\n")[0].splitlines()[1:]
    rows = [re.fullmatch(r" *([\d.]+)% +[\d.]+ s +([\d.]+)% +[\d.]+ s  (.*)", line).groups() for line in table]
    whole = sum(row["self_weight_ns"] for row in expected.values())
    for own, total, name in rows:
        assert abs(float(own) - 100 * expected[name]["self_weight_ns"] / whole) < 0.051, name
        assert abs(float(total) - 100 * expected[name]["total_weight_ns"] / whole) < 0.051, name
    python = top_rows(trace, pysym, "--full-filenames", "--layer", "python", "--by", "line")
    lines = text.split("line of Python, ")[1].split("\n\n")[0].splitlines()[1:]
    for line in lines:
        share, name = re.fullmatch(r" *([\d.]+)% +[\d.]+ s  (.*)", line).groups()
        assert abs(float(share) - 100 * python[name]["self_weight_ns"] / whole) < 0.051, name
    assert re.search(r"^Missing: 7: sample lost: the ring buffer was full", text, re.M), text


def test_brief_in_parts(make, pysym, tmp_path):
    """The verdict is of the whole recording, so no part has it."""
    good(pysym(make(samples=100, processes=2), "-f", "brief", "--split", "process", "-o", tmp_path / "part.out"))
    for part in tmp_path.glob("part*.out"):
        assert re.match(r"\d+ samples of ", part.read_text()), part.read_text()


def test_svg_equals_top(make, pysym):
    """Boxes of a function are together as wide as its total, where it calls itself nowhere."""
    trace = make(samples=3000, stacks=7, depth=5)
    widths = collections.Counter()
    found = boxes(good(pysym(trace, "-f", "svg", "--min", "0")))
    for _, name, _, width in found:
        widths[name] += width
    expected = top_rows(trace, pysym)
    whole = sum(row["self_weight_ns"] for row in expected.values())
    assert widths.pop("all") == 1180 and set(widths) == set(expected)
    for name, row in expected.items():
        assert abs(widths[name] - 1180 * row["total_weight_ns"] / whole) < 1, name
    assert {"p", "k"} <= {kind for kind, *_ in found}


def test_svg_is_a_safe_picture(pysym):
    """Valid XML, nothing that runs and nothing from elsewhere, whatever the names."""
    subprocess.run(["make", "-s", "build/tools/emit_demo"], cwd=ROOT, check=True, timeout=600)
    text = subprocess.run([ROOT / "build/tools/emit_demo", "svg", "samples=3000"], check=True, capture_output=True).stdout.decode()
    names = {name for _, name, *_ in boxes(text)}
    assert any("a:b_c_[31m" in name for name in names) and "caf\u00e9_\ufffd\ufffd (<string>)" in names, names
    assert len(ET.fromstring(text).findall(f".//{SVG}script")) == 0
    assert not re.search(r"href|url\(|@import|<!|on\w+=", text)


def test_svg_in_chromium(make, pysym, tab, tmp_path):
    """A browser draws it: boxes where they belong, text that can be selected, colours of a light and of a dark page."""
    picture = tmp_path / "p.svg"
    good(pysym(make(samples=1000, stacks=5, depth=8), "-o", picture))
    tab.open(picture)
    count = len(boxes(picture.read_text()))
    assert tab.evaluate("document.querySelectorAll('svg svg title').length") == count
    fill = "getComputedStyle(document.querySelector('.p rect')).fill"
    light = tab.evaluate(fill)
    tab.media(prefers_color_scheme="dark")
    assert light == "rgb(169, 205, 240)" and tab.evaluate(fill) == "rgb(39, 79, 120)"
    assert tab.evaluate("(() => { getSelection().selectAllChildren(document.querySelector('svg svg text'));"
                        " return getSelection().toString(); })()") == "Python"


@pytest.mark.parametrize("name", ["tree", "brief", "svg"])
def test_real_traces(pysym, name):
    """What pycap recorded of real interpreters: in each format a first line that says of what, and valid text."""
    traces = sorted((ROOT / "testdata/traces").glob("*.trace"))
    assert traces and name in FORMATS
    for trace in [*traces[:6], ROOT / "testdata/waiting/flaskr.trace"]:
        text = good(pysym(trace, "-f", name))
        assert " samples of cpu-clock: " in text or " samples of task-clock: " in text or " sample of " in text, (trace, text[:300])
        if name == "svg":
            ET.fromstring(text)
        else:
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert "GIL 16.3 s" in text and (name != "brief" or text.count("\n") <= 60)  # of the last one
    wall = good(pysym(trace, "-f", name, "--wall"))
    assert "15,660 samples of wall: " in wall and "cpu-clock" not in wall.replace("-wall", "")
