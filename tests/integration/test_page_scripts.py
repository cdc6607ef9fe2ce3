# SPDX-License-Identifier: Apache-2.0
"""Unit tests of the page's scripts, tests/page/test_*.js, in Chromium.

And that the driver notices what goes wrong.
"""
import functools
import re

import pytest

from browser import Browser, BrowserError, chromium, runs_in_group
from conftest import ROOT
from page_parts import page_of, scripts

pytestmark = pytest.mark.unsanitized

FILES = sorted((ROOT / "tests/page").glob("test_*.js"))
NAME = re.compile(r"^test\((['\"`])(.*?)\1,", re.M)
CASES = [(path, name) for path in FILES for _, name in NAME.findall(path.read_text())]


@pytest.fixture(scope="module")
def results(browser, tmp_path_factory):
    """What came of the tests of a file, {name: "" or what was wrong}; each file runs once, in a page of its own."""
    @functools.lru_cache(maxsize=None)
    def of(path):
        page = tmp_path_factory.mktemp("scripts") / "page.html"
        texts = ["\n".join(["'use strict'", *(script.read_text() for script in scripts()[:-1])])]
        texts += [(ROOT / "tests/page" / name).read_text() for name in ("harness.js", "recording.js", path.name)]
        page.write_text(page_of(texts))
        with browser.page() as tab:
            tab.open(page)
            found = dict(tab.evaluate("runTests()"))
            assert not tab.faults
            return found
    return of


@pytest.mark.parametrize("path, name", CASES, ids=[f"{path.stem}: {name}" for path, name in CASES])
def test_script(results, path, name):
    what = results(path)[name]
    assert not what, what


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_all_are_reported(results, path):
    assert sorted(results(path)) == sorted(name for other, name in CASES if other == path)


# ---- the driver ----

POLICY = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'unsafe-inline'\">"


@pytest.fixture
def written(tmp_path):
    def write(body, head=""):
        page = tmp_path / "page.html"
        page.write_text(f"<!DOCTYPE html><html lang=en><meta charset=utf-8>{head}<title>t</title>{body}")
        return page
    return write


@pytest.mark.parametrize("script, fault", [
    ("console.log('a', 1)", r"console.log: a 1"),
    ("console.error('broken')", r"console.error: broken"),
    ("undefined.f()", r"exception: TypeError"),
    ("Promise.reject(new Error('late'))", r"exception: Error: late"),
    ("new Image().src = 'http://127.0.0.1:1/a.png'", r"Content Security Policy"),
    ("fetch('http://127.0.0.1:1/').catch(() => 0)", r"Content Security Policy"),
    ("document.body.setAttribute('style', 'color: red')", r"Content Security Policy"),
    ("alert(1)", r"dialog: 1"),
])  # fmt: skip
def test_faults(tab, written, script, fault):
    tab.open(written(f"<script>setTimeout(() => {{ {script} }})</script>", POLICY))
    tab.wait_for_fault(fault)


def test_requests_are_faults(tab, written):
    (written("").parent / "other.css").write_text("")
    tab.open(written("", "<link rel=stylesheet href=other.css>"))
    tab.wait_for_fault("^request: file:///.*/other.css$")


def test_hands(tab, written):
    """What is pressed, typed, chosen and dragged comes to the page as a person's doing; Back goes back."""
    tab.open(written("""<button>go</button><input id=i aria-label=i><select id=s aria-label=s><option>a<option>b<option>c</select>
        <p id=pad>pad</p><script>
        const seen = []
        for (const kind of ['click', 'dblclick', 'keydown', 'input', 'change', 'pointerdown', 'pointermove', 'pointerup', 'wheel'])
            document.addEventListener(kind, e => seen.push([kind, e.isTrusted, e.key || e.buttons || 0, e.shiftKey || false]))
        document.querySelector('button').onclick = () => { location.hash = 'went' }
        </script>"""))  # fmt: skip
    tab.click("button", None, "Shift")
    tab.wait_for(lambda: tab.fragment, "went")
    assert ["click", True, 0, True] in tab.evaluate("seen")
    tab.fill("input", "a(é")
    assert tab.evaluate("document.querySelector('input').value") == "a(é"
    tab.key("ArrowLeft")
    tab.key("Backspace")
    assert tab.evaluate("document.querySelector('input').value") == "aé"
    tab.choose("select", "c")
    assert tab.evaluate("document.querySelector('select').value") == "c"
    assert ["change", True, 0, False] in tab.evaluate("seen")
    tab.evaluate("seen.length = 0")
    x, y, *_ = tab.box("#pad")
    tab.drag([(x, y), (x + 5, y), (x + 9, y)])
    drawn = [kind for kind, trusted, buttons, _ in tab.evaluate("seen") if trusted and buttons]
    assert drawn == ["pointerdown", "pointermove", "pointermove"]
    tab.back()
    tab.wait_for(lambda: tab.fragment, "")


def test_what_is_covered_cannot_be_clicked(tab, written):
    cover = "<div id=c></div><script>c.style.cssText = 'position: fixed; inset: 0'</script>"
    tab.open(written(f"<button>go</button>{cover}"))
    with pytest.raises(BrowserError, match="cannot be clicked: <div id=\"c\""):
        tab.click("button")


def test_nothing_is_left():
    if not chromium():
        pytest.skip("no chromium on this machine")
    with Browser() as started:
        group, profile = started._pid, started.profile
        assert runs_in_group(group) and profile.exists()
    assert not runs_in_group(group) and not profile.exists()
