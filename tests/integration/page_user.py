# SPDX-License-Identifier: Apache-2.0
"""What a person does with the page of `pysym -f html`, and reads from it; and the traces that pages are made of."""
import functools
import re
import subprocess

import pytest

from conftest import MAKE_TRACE, PYSYM, ROOT
from page_truth import LAYERS, amount, figure, percent, share

LETTERS = {"python": "P", "native": "N", "kernel": "K"}
WAITING = ROOT / "testdata/waiting/flaskr.trace"
GOLDEN = ROOT / "testdata/traces/3.11-static.trace"
# Two processes, threads, layers, tasks, subinterpreters, stacks that broke off, and a second event in bytes.
RICH = {"samples": 300, "stacks": 20, "depth": 6, "processes": 2, "threads": 4, "labels": 3, "torn": 50, "second_event": 40,
        "losses": 7, "gil": 1}  # fmt: skip


@functools.lru_cache(maxsize=None)
def pysym(*arguments):
    """What pysym does; asked for once."""
    return subprocess.run([PYSYM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Writes a trace with make_trace's settings; equal settings are one trace."""
    @functools.lru_cache(maxsize=None)
    def make(settings):
        path = tmp_path_factory.mktemp("made") / "made.bin"
        subprocess.run([MAKE_TRACE, path, *(f"{name}={value}" for name, value in settings)], check=True)
        return path
    return lambda **settings: make(tuple(sorted(settings.items())))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a trace, with these options of pysym; equal ones are one page."""
    @functools.lru_cache(maxsize=None)
    def write(trace, *options):
        path = tmp_path_factory.mktemp("page") / "page.html"
        done = pysym(trace, "--no-host", "-f", "html", "-o", path, *options)
        assert done.returncode == 0, done.stderr
        return path
    return write


@pytest.fixture
def user(tab):
    return User(tab)


class User:
    """A person in front of a tab."""

    def __init__(self, tab):
        self.tab = tab

    def open(self, path, fragment=""):
        self.tab.open(path, fragment)
        self.tab.evaluate("window.pageReady.then(() => 0)")

    def reload(self):
        self.tab.reload()
        self.tab.evaluate("window.pageReady.then(() => 0)")

    def show(self, panel):
        self.tab.click(f"#tab-{panel}")
        assert self.tab.evaluate("!document.getElementById('panel-' + v[0]).hidden", panel)

    def choose_layers(self, *layers):
        for layer in LAYERS:
            if self.tab.evaluate("document.getElementById('layer-' + v[0]).checked", layer) != (layer in layers):
                self.tab.click(f"#layer-{layer}")

    def filter(self, field, text):
        """Opens the panel of filters, types into a field, and leaves it with Enter; closes the panel."""
        self.tab.click("#more summary")
        self.tab.fill(f"#{field}", text)
        self.tab.key("Enter")
        if self.tab.evaluate("document.getElementById('more').open"):
            self.tab.click("#more summary")

    def search(self, text):
        """Types into the field of the search, and applies it: what was typed is applied after a pause, too, which may come at
        any time, and draws the rows anew that a test is about to click on."""
        self.tab.fill("#search", text)
        self.tab.key("Enter")
        assert self.tab.evaluate("page.view.search === v[0]", text)

    def table(self):
        """All rows of the table of functions or lines, in their order."""
        self.show("table")
        while self.tab.evaluate("document.querySelector('#panel-table p button') !== null"):
            self.tab.click("#panel-table p button")
        return self.tab.rows("#panel-table")

    def side(self, heading):
        """The rows below a heading of the panel of the selected function."""
        return self.tab.evaluate(
            """[...([...document.querySelectorAll('#selected h3')].find(e => e.textContent === v[0])?.nextElementSibling.rows || [])]
               .map(row => [...row.cells].map(cell => cell.textContent))""",
            heading,
        )

    def everything(self):
        """All that is seen, but for what is told of the box below the pointer."""
        return self.tab.evaluate(
            """[...[...document.body.children].filter(e => e.id !== 'status' && e.checkVisibility()).map(e => e.innerText),
                ...[...document.querySelectorAll('input, select')].filter(e => e.checkVisibility()).map(e =>
                    e.type === 'checkbox' || e.type === 'radio' ? String(e.checked) : e.value)]"""
        )


def rows_of_top(event):
    """The table of an event of `top --json`, as the page has it, sorted."""
    def weight(row, kind):
        return next(value for key, value in row.items() if key.startswith(f"{kind}_weight"))

    whole = next(value for key, value in event.items() if key.startswith("weight_"))
    rows = []
    for row in event["rows"]:
        own, total = weight(row, "self"), weight(row, "total")
        rows.append([percent(own, whole), figure(event, own, whole), percent(total, whole), figure(event, total, whole),
                     f"{row['self_samples']:,} / {row['total_samples']:,}", LETTERS.get(row["layer"], "·"), row["name"]])
    return sorted(rows)


def rows_of_page(rows):
    """The same of rows that User.table() returned: the cells of name and place are one, as `top` writes them."""
    joined = []
    for *figures, letter, name, place in rows:
        if letter == "P":
            name += f" ({place})" if place else ""
        elif letter == "K":
            name += "_[k]"
        elif letter == "N" and not name.startswith("[") and not re.search(r"\.so|/|^$", place):
            name += f" ({place})"
        joined.append([*figures, letter, name])
    return sorted(joined)


def head_says(event, shown, whole):
    kind = {"cpu-clock": " of CPU time", "off-cpu": " of waiting", "page-faults": " of page-faults"}[event["event"]]
    return f"{amount(event, shown)}{kind} shown, " + ("all of it" if shown == whole else f"{amount(event, whole)} in all")


__all__ = ["GOLDEN", "RICH", "WAITING", "User", "head_says", "made", "page", "pysym", "rows_of_page", "rows_of_top", "share", "user"]
