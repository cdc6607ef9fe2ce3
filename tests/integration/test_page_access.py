# SPDX-License-Identifier: Apache-2.0
"""The page works without a mouse, for screen readers, on every screen and on paper.

The page of `pysym -f html`, in light and dark; and its address keeps what is shown.
"""
import re

import pytest

from page_user import RICH, WAITING

pytestmark = pytest.mark.unsanitized

PANELS = ["flame", "table", "source", "about"]


@pytest.fixture(scope="module")
def rich(page, made):
    return page(made(**RICH))


# ---- keys ----

# What takes keys: each of these that is seen has to be reached by Tab, but of a group of choices only one, as arrow keys go on.
REACHABLE = """
[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter(e =>
    e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}) &&
    !(e.type === 'radio' && !e.checked) && !e.matches('table.figures tbody tr:not(:first-child), table.figures tbody tr:not(:first-child) *')).length
"""


@pytest.mark.parametrize("panel", PANELS)
def test_tab_reaches_everything(user, rich, panel):
    """From the first to the last, without a trap, back the same way; and whatever has the keys is seen and marked."""
    user.open(rich, f"tab={panel}&selected=Work.level0_0+(part0.py:1)")
    count, seen = user.tab.evaluate(REACHABLE), []
    assert count > 10
    for _ in range(400):
        user.tab.key("Tab")
        focused = user.tab.focused()
        if not focused or focused in seen:
            break
        seen.append(focused)
        box = user.tab.evaluate("(r => [r.width, r.height, r.bottom > 0 && r.top < innerHeight])"
                                "(document.activeElement.getBoundingClientRect())")
        assert all(box), focused
        marked = user.tab.evaluate("(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none')"
                                   "(getComputedStyle(document.activeElement.matches('input[type=radio]') ?"
                                   " document.activeElement.closest('label') : document.activeElement))")
        assert marked, f"{focused} does not show that it has the keys"
    assert len(seen) >= count, seen
    back = []
    while seen[0] not in back and len(back) < 400:
        user.tab.key("Tab", "Shift")
        back.append(user.tab.focused())
    assert [where for where in back if where] == seen[::-1]


def test_keys_alone(user, rich):
    """From the start to a function's callers, and away again, without a mouse."""
    user.open(rich)
    user.tab.key("2")
    assert user.tab.focused() == "#tab-table"
    user.tab.key("ArrowRight")
    assert not user.tab.evaluate("document.getElementById('panel-source').hidden")
    user.tab.key("ArrowLeft")
    while not user.tab.focused().startswith("#panel-table > table"):
        user.tab.key("Tab")
    while "tbody" not in user.tab.focused():
        user.tab.key("Tab")
    first = user.tab.evaluate("document.activeElement.querySelector('.name').textContent")
    user.tab.key("ArrowDown")
    second = user.tab.evaluate("document.activeElement.querySelector('.name').textContent")
    assert second != first
    user.tab.key("Enter")
    assert user.tab.text("#selected h2").endswith(second)
    assert user.tab.evaluate("document.activeElement.querySelector('.name').textContent") == second
    user.tab.key("?")
    user.tab.wait("document.getElementById('help').open")
    user.tab.key("Escape")
    user.tab.wait("!document.getElementById('help').open")
    user.tab.key("/")
    assert user.tab.focused() == "#search"
    user.tab.key("2")  # a letter of the search, no shortcut
    user.tab.key("Escape")
    assert user.tab.focused() != "#search" and user.tab.evaluate("document.getElementById('search').value") == "2"


# ---- what a screen reader is told ----

NEED_NAMES = {"button", "checkbox", "radio", "combobox", "textbox", "searchbox", "tab", "tabpanel", "link", "dialog", "application",
              "img", "table", "figure", "Canvas", "DisclosureTriangle"}  # fmt: skip


def walk(node, above=()):
    yield node, above
    for child in node["children"]:
        yield from walk(child, (*above, node))


@pytest.mark.parametrize("panel", PANELS)
def test_screen_reader(user, rich, panel):
    user.open(rich, f"tab={panel}&selected=Work.level0_0+(part0.py:1)")
    nodes = list(walk(user.tab.accessible()))
    nameless = [node["role"] for node, _ in nodes if node["role"] in NEED_NAMES and not node["name"].strip()]
    assert not nameless
    roles = {node["role"] for node, _ in nodes}
    assert {"banner", "main", "tablist", "tab", "heading", "status"} <= roles
    tabs = [node for node, _ in nodes if node["role"] == "tab"]
    assert [tab["name"] for tab in tabs if tab.get("selected")] == [tabs[PANELS.index(panel)]["name"]]
    # No node has the keys that is told to be absent.
    assert not [node for node, _ in nodes if node.get("focusable") and node.get("hidden")]
    if panel in ("table", "about"):
        tables = [node for node, above in nodes if node["role"] == "table" and any(a["role"] == "main" for a in above)]
        assert tables
        heads = [node for node, _ in walk(tables[0]) if node["role"] == "columnheader"]
        rows = [node for node, _ in walk(tables[0]) if node["role"] == "row"]
        assert len(heads) >= 4 and len(rows) > 2
        assert all(any(cell["role"] in ("cell", "gridcell", "columnheader", "rowheader") for cell in row["children"]) for row in rows)


# Of each element with text of its own that is seen: the text, and how it contrasts with what is behind it (WCAG).
CONTRASTS = """
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) &&
    !e.matches('option, :disabled') && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
    const parts = colour => (c => [...c.slice(0, 3), c.length > 3 ? c[3] : 1])(colour.match(/[\\d.]+/g).map(Number))
    const over = (top, below) => [0, 1, 2].map(k => top[k] * top[3] + below[k] * (1 - top[3])).concat(1)
    const backs = []
    for (let at = e; at; at = at.parentElement) backs.push(parts(getComputedStyle(at).backgroundColor))
    const back = backs.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1])
    const light = colour => colour.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0)
    const [a, b] = [light(over(parts(getComputedStyle(e).color), back)), light(back)]
    return [e.textContent.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]
})
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(user, rich, theme):
    """Text of every view has the contrast that WCAG's AA asks for."""
    user.tab.media(prefers_color_scheme=theme)
    user.open(rich, "selected=Work.level0_0+(part0.py:1)")
    for panel in PANELS:
        user.show(panel)
        found = user.tab.evaluate(CONTRASTS)
        assert len(found) > 30
        assert [entry for entry in found if entry[1] < 4.5] == []


# ---- looks ----

def luminance(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_themes(user, rich):
    """As the system has it, or as it was chosen; the canvas, too; the address keeps the choice."""
    # The canvas is copied: Chromium warns of those that are read more than once.
    back = """[getComputedStyle(document.body).backgroundColor, (canvas => {
        const copy = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
        copy.drawImage(canvas, 2, canvas.height - 3, 1, 1, 0, 0, 1, 1)
        return 'rgb(' + copy.getImageData(0, 0, 1, 1).data.join(' ') + ')'
    })(document.getElementById('flame'))]"""
    user.open(rich)
    for system, chosen, is_dark in (("light", "as the system", False), ("dark", "as the system", True), ("dark", "light", False),
                                    ("light", "dark", True)):  # fmt: skip
        user.tab.media(prefers_color_scheme=system)
        user.tab.choose("#theme", chosen)
        user.tab.wait(f"({back}).every(c => (c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3 < 128) === v[0])", is_dark)
    assert "theme=dark" in user.tab.fragment
    user.reload()
    assert max(map(luminance, user.tab.evaluate(back))) < 128


@pytest.mark.parametrize("width, height, pixels", [(400, 700, 3), (1920, 1080, 1), (800, 500, 2)])
def test_sizes(user, rich, width, height, pixels):
    """Nothing runs out of the screen to the right, and the canvas has the screen's pixels."""
    user.tab.resize(width, height, pixels)
    user.open(rich)
    for panel in PANELS:
        user.show(panel)
        assert user.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), panel
    user.show("flame")
    shape = user.tab.evaluate("(c => [c.width / c.clientWidth, c.clientHeight])(document.getElementById('flame'))")
    assert shape[0] == pytest.approx(pixels, abs=0.01) and shape[1] > 100


def test_print(user, rich):
    """On paper there are no controls."""
    user.open(rich, "tab=table")
    user.tab.media("print")
    assert not user.tab.evaluate("document.getElementById('controls').checkVisibility()")
    assert user.tab.evaluate("document.querySelector('#panel-table table').checkVisibility()")


# ---- the address ----

def test_a_link_shows_what_its_sender_saw(user, page):
    """After many choices a reload shows the same, and so does the address in another tab; Back undoes one after the other."""
    written = page(WAITING)
    user.open(written)
    steps = [user.everything()]
    x, y, width, height = user.tab.box("#strip")

    def done():
        steps.append(user.everything())
        assert steps[-1] != steps[-2]

    user.tab.choose("#event", "off-cpu")
    done()
    user.tab.drag([(x + width * part, y + 5) for part in (0.2, 0.3, 0.8)])
    done()
    user.filter("focus", "jinja2")
    done()
    user.tab.click("#flame-bar label", "from the leaves")
    done()
    user.tab.click("#layer-kernel")
    done()
    user.show("table")
    done()
    user.tab.click("#panel-table thead button", "Total")
    done()
    user.tab.click("#panel-table tbody td.name")
    done()
    fragment = user.tab.fragment
    user.reload()
    assert user.everything() == steps[-1]
    with user.tab._browser.page() as other:
        friend = type(user)(other)
        friend.open(written, fragment)
        assert friend.everything() == steps[-1]
        assert other.take_faults() == []
    for expected in reversed(steps[:-1]):
        user.tab.back()
        user.tab.wait_for(user.everything, expected)
    user.tab.back(-1)
    user.tab.wait_for(user.everything, steps[1])
