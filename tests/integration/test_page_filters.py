# SPDX-License-Identifier: Apache-2.0
"""Each filter of the page leaves the figures that pysym's option of that name leaves.

The page of `pysym -f html` in Chromium, by mouse and keys.
"""
import re

import pytest

from conftest import later
from page_truth import Truth, share
from page_user import GOLDEN, RICH, WAITING, pysym, rows_of_page, rows_of_top

pytestmark = pytest.mark.unsanitized


@pytest.fixture(scope="module")
def truth():
    known = {}

    def of(trace, *options):
        if (trace, options) not in known:
            known[trace, options] = Truth(pysym, trace, *options)
        return known[trace, options]
    return of


@pytest.fixture(scope="module")
def rich(made):
    return made(**RICH)


def check_table(user, truth, event, *options):
    """The table is that of `top` with these options, for an event; the head says how much that is."""
    expected = truth.event(event, *options)
    assert rows_of_page(user.table()) == rows_of_top(expected)
    return expected


# ---- what is shown without filters ----

@pytest.mark.parametrize("event, by", [("cpu-clock", "function"), ("off-cpu", "line"), later("cpu-clock", "line"), later("off-cpu", "function")])
def test_table_of_waits(user, page, truth, event, by):
    user.open(page(WAITING))
    user.tab.choose("#event", event)
    user.show("table")
    user.tab.click("#panel-table fieldset label", by)
    check_table(user, truth(WAITING), event, "--by", by)


@pytest.mark.parametrize("event", ["cpu-clock", "page-faults"])
def test_table_of_events(user, page, truth, rich, event):
    user.open(page(rich))
    user.tab.choose("#event", event)
    check_table(user, truth(rich), event)


@pytest.mark.parametrize("options", [("--full-filenames",), ("--show-interpreter",), ("--by", "line", "--columns")], ids=" ".join)
def test_names_as_asked(user, page, truth, options):
    """Options that change how names are spelled, or which there are, count here, too."""
    user.open(page(WAITING, *(option for option in options if option not in ("--by", "line"))))
    if "line" in options:
        user.show("table")
        user.tab.click("#panel-table fieldset label", "line")
    check_table(user, truth(WAITING), "cpu-clock", *options)


# ---- filters ----

@pytest.mark.parametrize("layers", [("python",), ("native", "kernel"), later(("python", "kernel")), later(("native",))], ids=",".join)
def test_layers(user, page, truth, layers):
    """The time of a layer that is switched off goes to the callers."""
    trace = GOLDEN if layers == ("python", "kernel") else WAITING
    user.open(page(trace))
    user.choose_layers(*layers)
    check_table(user, truth(trace), "cpu-clock", "--layer", ",".join(layers))


@pytest.mark.parametrize("field, option", [("focus", "--focus"), ("ignore", "--ignore"), ("root-at", "--root-at")])
def test_expressions(user, page, truth, field, option):
    user.open(page(WAITING))
    for pattern in ("render", "file:jinja2/.*py$" if field == "focus" else "function:^Context\\.call$", "module:sqlite3"):
        user.filter(field, pattern)
        check_table(user, truth(WAITING), "cpu-clock", option, pattern)


def test_expressions_together(user, page, truth, rich):
    user.open(page(rich))
    user.filter("focus", "level4_1")
    user.filter("ignore", "level5_8")
    user.filter("root-at", "level3")
    check_table(user, truth(rich), "cpu-clock", "--focus", "level4_1", "--ignore", "level5_8", "--root-at", "level3")


def test_a_click_that_leaves_a_field(user, page):
    """The row that was clicked is selected, and what was typed before is applied, though it changes the table's rows."""
    user.open(page(WAITING))
    user.show("table")
    user.tab.click("#more summary")
    clicked = user.tab.text("#panel-table tbody tr:last-child td.name")
    user.tab.fill("#focus", "render")
    user.tab.click("#panel-table tbody tr:last-child td.name")
    user.tab.wait("page.view.focus === 'render'")
    assert user.tab.text("#selected h2").endswith(clicked)
    assert user.tab.evaluate("document.getElementById('focus').value") == "render"


def test_an_expression_that_is_none(user, page, truth, rich):
    """It is marked as such, and nothing else happens."""
    user.open(page(rich))
    user.filter("focus", "level4_(")
    assert user.tab.evaluate("!document.querySelector('#focus').validity.valid")
    check_table(user, truth(rich), "cpu-clock")


CHOICES = [("process", "python3.11 1100", ["--pid", "1100"]), ("thread", "worker-2 1002", ["--tid", "1002"]),
           ("interpreter", "1", ["--subinterpreter", "1"]), ("task", "task-1", ["--task", "^task-1$"])]  # fmt: skip


@pytest.mark.parametrize("field, text, options", CHOICES, ids=[field for field, *_ in CHOICES])
def test_choices(user, page, truth, rich, field, text, options):
    user.open(page(rich))
    offered = user.tab.evaluate("[...document.getElementById(v[0]).options].map(o => o.text)", field)
    user.tab.choose(f"#{field}", next(option for option in offered if option.startswith(text)))
    check_table(user, truth(rich), "cpu-clock", *options)
    user.tab.choose("#event", "page-faults")
    check_table(user, truth(rich), "page-faults", *options)


def test_filters_of_pysym_and_of_the_page(user, page, truth, rich):
    """What pysym left out is not on the page, which says so; what the page leaves out is left out of the rest."""
    options = ("--pid", "1000", "--hide", "level2")
    user.open(page(rich, *options))
    user.tab.choose("#thread", "worker-2 1002")
    check_table(user, truth(rich), "cpu-clock", *options, "--tid", "1002")
    assert "1.5 s on this page, 3.0 s recorded" in user.tab.text("#head-shown")
    user.show("about")
    assert "--pid 1000 --hide level2" in user.tab.text("#panel-about")


def test_filters_are_taken_off(user, page, truth, rich):
    """Each filter that is set has a button that takes it off, and there is one for all."""
    user.open(page(rich))
    everything = user.tab.text("#head-shown")
    user.tab.choose("#process", "python3.11 1000")
    user.filter("focus", "level4_1")
    user.choose_layers("python")
    assert len(user.tab.texts("#chips .chip")) == 4
    user.tab.click("#chips .chip", "python3.11 1000")
    check_table(user, truth(rich), "cpu-clock", "--focus", "level4_1", "--layer", "python")
    user.tab.click("#chips button", "Take all off")
    assert user.tab.texts("#chips .chip") == []
    assert user.tab.text("#head-shown") == everything
    check_table(user, truth(rich), "cpu-clock")


# ---- search ----

@pytest.mark.parametrize("event", ["cpu-clock", later("off-cpu")])
def test_search(user, page, truth, event):
    """It tells the share of what was found, each stack once, and leaves the rows that were found."""
    user.open(page(WAITING))
    user.tab.choose("#event", event)
    user.show("table")
    whole = truth(WAITING).event(event)
    for pattern, is_found in (("jinja2", lambda row: "jinja2" in row.get("file", "") + row["name"]),
                              ("function:^escape$", lambda row: row["function"] == "escape")):
        found = truth(WAITING).event(event, "--focus", pattern)["weight_ns"]
        user.tab.click("h1")
        user.tab.key("/")
        user.tab.key("a", "Control")
        user.tab.type(pattern)
        user.tab.wait("page.view.search === v[0]", pattern)
        user.tab.wait_for(lambda: user.tab.text("#search-share").partition(" of ")[0], share(found, whole["weight_ns"]))
        assert len(user.table()) == len([row for row in whole["rows"] if is_found(row)])
    user.search("no such thing")
    assert user.table() == []
    assert user.tab.text("#search-share").startswith(("0 %", "not found"))


# ---- sorting ----

def test_sorting(user, page):
    user.open(page(WAITING))
    user.show("table")

    def number(text):
        return float(re.match(r"[\d.,]*", text)[0].replace(",", "") or 0)

    keys = {"Total": lambda row: number(row[2]), "Self": lambda row: number(row[0]), "Samples": lambda row: number(row[4]),
            "Layer": lambda row: "PNK·".index(row[5]), "Function": lambda row: row[6], "Where": lambda row: row[7]}  # fmt: skip
    for title, key in keys.items():
        for again in range(2):
            user.tab.click("#panel-table thead button", title)
            rows = user.tab.rows("#panel-table")
            falls = (title in ("Self", "Total", "Samples")) != bool(again)
            sort = user.tab.evaluate("document.querySelector('#panel-table th[aria-sort]').getAttribute('aria-sort')")
            assert sort == ("descending" if falls else "ascending")
            values = [key(row) for row in rows]
            assert values == sorted(values, reverse=falls), title
            assert len(rows) > 100
