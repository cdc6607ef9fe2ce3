# SPDX-License-Identifier: Apache-2.0
"""The page of `pysym diff -f html` says what `pysym diff -f json` says."""
import json
import subprocess

import pytest

from conftest import MAKE_TRACE
from page_user import User, pysym

pytestmark = pytest.mark.unsanitized

PROGRAM = {"stacks": 21, "native": 1}
SAMPLES = 4000
# Of five recordings of each side, the new ones with a function that is twice as slow.
SIDES = {"old": {}, "new": {"slower": 100, "changed": 2}}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison: {page, json, line}, where line are the words of the command without what writes it."""
    folder, line, number = tmp_path_factory.mktemp("compared"), ["diff", "--no-host"], 0
    for side, settings in SIDES.items():
        line += ["--"] * (side == "new")
        for run in range(5):
            number += 1
            path = folder / f"{side}{run}.bin"
            words = {**PROGRAM, "samples": SAMPLES + 37 * (number % 7), "run": number, **settings}
            subprocess.run([MAKE_TRACE, path, *(f"{name}={value}" for name, value in words.items())], check=True)
            line.append(path)
    options = ["--fail-on", "function level4_0 20%"]
    done = pysym(*line, *options, "-o", folder / "page.html")
    assert done.returncode == 4, done.stderr
    return {"page": folder / "page.html", "line": line, "json": json.loads(pysym(*line, *options, "-f", "json").stdout)}


@pytest.fixture
def user(tab, compared):
    user = User(tab)
    user.open(compared["page"])
    return user


def findings(report):
    return [row for row in report["rows"][1:] if row["answer"] in ("slower", "faster") and row["because"] is None]


def test_the_panel_says_what_the_report_says(user, compared):
    """It opens with the verdict; each finding in the report's words, the rules, the runs, how it was judged."""
    report, text = compared["json"], user.tab.text("#panel-compare")
    assert user.tab.evaluate("document.getElementById('tab-compare').getAttribute('aria-selected')") == "true"
    assert report["verdict"] in text and report["method"] in text and findings(report)
    told = user.tab.evaluate("[...document.querySelectorAll('#panel-compare .findings > li')].map(e => [...e.childNodes].filter(c => c.tagName !== 'UL').map(c => c.textContent).join(''))")
    expected = [row["words"].replace(": ", " ", 1) for row in findings(report)]
    assert [line.lstrip("▲▼") for line in told[:len(expected)]] == expected
    (rule,) = report["rules"]
    assert rule["rule"] in text and rule["answer"] == "broken" and rule["answer"] in text
    for run in report["runs"]:
        assert run["name"] in text and f"{run['samples']:,}" in text
    assert "5 old runs compared with 5 new runs" in user.tab.text("#head-facts")


def test_the_table_has_both_sets(user, compared):
    """A function's own shares of both sets are those of its row; the surest stands first."""
    report = compared["json"]
    rows = {(row["function"], row["file"]): row for row in report["rows"] if row["kind"] == "function_self"}
    table = user.table()
    named = {cells[8]: cells for cells in table if cells[7] == "P"}
    checked = 0
    for (name, _), row in rows.items():
        if row["old_samples"] < 50 or row["new_samples"] < 50:
            continue
        cells = named[name]
        # The page's weights are means over runs by their size, the report's shares are means of shares: they differ by chance only.
        for cell, side in ((cells[3], "old"), (cells[4], "new")):
            assert abs(float(cell.rstrip("%")) - 100 * row[f"{side}_share"]) < 0.2, (name, cells, row)
        checked += 1
    assert checked >= 5
    first = findings(report)[0]
    assert table[0][8] == first["function"] and table[0][0].lstrip("▲▼").startswith(first["answer"]), table[0]
    assert table[0][1] and table[0][1].rstrip(" %") in first["words"] and table[0][2] in first["words"]


def test_boxes_are_coloured_by_their_rows(user, compared):
    """The box of a finding is coloured, and says what the report says; native code is grey."""
    report = compared["json"]
    row = next(row for row in findings(report) if row["kind"] == "node")
    user.tab.click("#panel-compare .findings button", row["words"].split(": ", 1)[1])
    assert user.tab.text("#selected h2 bdi") == row["function"]
    assert row["words"] in user.tab.text("#selected .changes")
    assert row["words"] in user.tab.text("#status") and "per run" in user.tab.text("#status")
    verdicts = user.tab.evaluate("""[...flame.lower.verdicts].map((verdict, node) => [verdict, node && page.result.names()[flame.lower.tree.id[node]].kind,
        flame.lower.rows[node].map(row => page.data.compared.rows[row].answer)])""")
    assert any(verdict in (1, 2) for verdict, _, _ in verdicts)
    for verdict, kind, answers in verdicts:
        assert verdict == 0 or kind == 0
        assert verdict != 1 or "slower" in answers
        assert verdict != 2 or "faster" in answers


def test_the_old_runs_can_be_shown(user):
    """The switch shows the other set's weights; Back shows the new ones again."""
    user.show("flame")
    new = user.tab.text("#head-shown")
    user.tab.click("#side-switch label", "old runs")
    old = user.tab.text("#head-shown")
    assert "5 old runs" in old and "5 new runs" in new and old != new
    weights = user.tab.evaluate("page.result.totals")
    user.tab.back()
    assert user.tab.text("#head-shown") == new
    assert user.tab.evaluate("page.result.totals")[:2] == [weights[1], weights[0]]


def test_filters_say_that_verdicts_are_of_all_samples(user):
    user.show("flame")
    assert not user.tab.evaluate("document.getElementById('compare-note').checkVisibility()")
    user.filter("focus", "level4_0")
    assert "judged on all samples" in user.tab.text("#compare-note")
    user.tab.click("#from-leaves + span")
    assert "Only whole functions" in user.tab.text("#compare-note")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_windows_keys_and_contrast(user, theme):
    """At 800 pixels nothing but tables is wider than the window; number keys go through five panels; marks can be read."""
    user.tab.resize(800, 700)
    user.tab.choose("#theme", theme)
    user.tab.click("h1")
    for number, panel in enumerate(("compare", "flame", "table", "source", "about"), 1):
        user.tab.key(str(number))
        assert user.tab.evaluate("!document.getElementById('panel-' + v[0]).hidden", panel)
        assert user.tab.evaluate("document.documentElement.scrollWidth") <= 800, panel
    user.tab.key("1")
    contrast = user.tab.evaluate("""['more', 'less'].map(name => {
        const style = getComputedStyle(document.documentElement), context = document.createElement('canvas').getContext('2d')
        const light = colour => partsOfColour(context, colour).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
        const [a, b] = [light(style.getPropertyValue('--' + name)), light(style.getPropertyValue('--box-text'))]
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)})""")
    assert min(contrast) >= 4.5, contrast


@pytest.mark.parametrize("sides", [("old",), ("old", "new")])
def test_baselines(tab, compared, sides):
    """Runs that a baseline keeps are shown with the figures that the traces have, but for native code; and it is said."""
    folder, cut = compared["page"].parent, compared["line"].index("--")
    line = {"old": compared["line"][2:cut], "new": compared["line"][cut + 1:]}
    for side in sides:
        kept = folder / f"{side}{len(sides)}.pyb"
        done = pysym("baseline", "--no-host", *line[side], "-o", kept)
        assert done.returncode == 0, done.stderr
        line[side] = [kept]
    path = folder / f"baseline{len(sides)}.html"
    done = pysym("diff", "--no-host", *line["old"], "--", *line["new"], "-o", path)
    assert done.returncode == 0, done.stderr
    user = User(tab)
    user.open(path)
    text = user.tab.text("#panel-compare")
    assert compared["json"]["rows"][1]["words"].split(": ", 1)[1] in text
    assert all(f"5 {side} runs are of a baseline" in text for side in sides)
    figures = """[page.result.totals.slice(0, 2), ...page.result.rows().filter(row => row.self[0]).map(row =>
        [page.result.names()[row.id].name, row.self[0], row.self[1]]).sort()].map(row => row.map(v => typeof v === 'number' ? Math.round(v / 1e4) : v))"""
    from_baseline = tab.evaluate(figures)
    user.open(compared["page"])
    by_name = {row[0]: row[1:] for row in tab.evaluate(figures)[1:]}
    assert len(from_baseline) > 5
    for name, *weights in from_baseline[1:]:
        if name.startswith("Work."):
            assert weights == pytest.approx(by_name[name], abs=1), name
