# SPDX-License-Identifier: Apache-2.0
"""The views of the page of `pysym -f html` show pysym's own figures, by mouse and keys."""
import collections
import random
import re

import pytest

from conftest import later
from page_truth import Truth, amount, figure, inverted, neighbours, percent, share, tree
from page_user import GOLDEN, RICH, WAITING, pysym, rows_of_page, rows_of_top

pytestmark = pytest.mark.unsanitized

ROW = 18  # pixels


@pytest.fixture(scope="module")
def waiting():
    return Truth(pysym, WAITING)


@pytest.fixture(scope="module")
def golden():
    return Truth(pysym, GOLDEN)


# ---- the flame graph ----

def laid_out(paths):
    """Where each path of a tree is drawn: {path: (left, weight)}. The heaviest child stands first; where equal ones may
    stand in any order, they and what is below them are left out."""
    children, left = collections.defaultdict(list), {(): 0}
    for path in sorted(paths, key=lambda path: -paths[path]):
        children[path[:-1]].append(path)
    todo = [()]
    while todo:
        above = todo.pop()
        at, weights = left[above], collections.Counter(paths[path] for path in children[above])
        for path in children[above]:
            if weights[paths[path]] == 1:
                left[path] = at
                todo.append(path)
            at += paths[path]
    return {path: (at, paths[path]) for path, at in left.items() if path}


def told(user):
    """What the status line says of the box below the pointer, or where the keys are: its name and its amounts."""
    return user.tab.text("#status")


@pytest.mark.parametrize("event, order", [("cpu-clock", "from the root"), ("off-cpu", "from the leaves"),
                                          later("cpu-clock", "from the leaves"), later("off-cpu", "from the root")])
def test_boxes_below_the_pointer(user, page, waiting, event, order):
    """A box that is wide enough to be pointed at is where its weight says, and tells name, amount and share."""
    user.open(page(WAITING))
    user.tab.choose("#event", event)
    user.tab.click("#flame-bar label", order)
    tried = random.Random(1)
    stacks = waiting.stacks(event)
    whole, facts = sum(weight for weight, _ in stacks.values()), waiting.event(event)
    paths = tree(stacks) if order == "from the root" else inverted(stacks)
    x, y, width, height = user.tab.box("#flame")
    seen = 0
    for path, (left, weight) in laid_out(paths).items():
        if weight / whole * width < 8 or len(path) * ROW + ROW > height or tried.random() > 0.15:
            continue
        user.tab.move(x + (left + weight / 2) / whole * width, y + len(path) * ROW + ROW / 2)
        said = told(user)
        assert said.startswith(path[-1] + " — "), path
        assert f"{amount(facts, weight)} ({share(weight, whole)})" in said, path
        assert user.tab.evaluate("document.getElementById('flame-tip').textContent.startsWith(v[0])", path[-1])
        seen += 1
    assert seen >= 5


def test_walk_by_keys(user, page, golden):
    """Arrow keys go from box to box, Enter zooms in and selects, Escape zooms out."""
    user.open(page(GOLDEN))
    user.tab.click("#flame")
    user.tab.key("Home")
    paths = tree(golden.stacks("cpu-clock"))
    whole = sum(weight for path, weight in paths.items() if len(path) == 1)
    path = ()
    while True:
        below = [other for other in paths if other[:-1] == path]
        if not below:
            break
        path = max(below, key=paths.get)
        user.tab.key("ArrowDown")
        said = told(user)
        # Among equals it may be another.
        path = next(other for other in below if said.startswith(other[-1] + " — ") and paths[other] == paths[path])
        assert f"total {amount({'unit': 'ns'}, paths[path])} ({share(paths[path], whole)})" in said
    assert len(path) >= 3
    user.tab.key("ArrowUp")
    assert told(user).startswith(path[-2] + " — ")
    user.tab.key("Enter")
    assert path[-2].startswith(user.tab.text("#selected h2 bdi"))
    assert user.tab.texts("#flame-path")[0].startswith("everything")
    x, y, width, height = user.tab.box("#flame")
    for at in (2, width - 2):  # the box fills the width
        user.tab.move(x + at, y + ROW * (len(path) - 1) + ROW / 2)
        assert told(user).startswith(path[-2] + " — ")
    user.tab.click("#flame-path button", "everything")
    assert user.tab.text("#flame-path") == ""


def test_search_marks_and_steps(user, page):
    """n goes from match to match, also to those that are too thin to be seen."""
    user.open(page(WAITING))
    user.tab.click("h1")
    user.tab.key("/")
    user.tab.type("function:^escape$")
    user.tab.key("Enter")
    user.tab.key("Escape")
    for _ in range(3):
        user.tab.key("n")
        assert told(user).startswith("escape (markupsafe")
    user.tab.key("N")
    assert told(user).startswith("escape (markupsafe")


# ---- one function ----

AROUND = [("cpu-clock", "escape", ()), ("off-cpu", "ThreadWorker.handle_request", ()),
          later("cpu-clock", "ThreadWorker.handle_request", ("python",))]


@pytest.mark.parametrize("event, name, layers", AROUND)
def test_around_a_function(user, page, waiting, event, name, layers):
    """Above a function stand the stacks of --callers-of, below those of --root-at, all at their places and with their sums."""
    options = ("--layer", ",".join(layers)) if layers else ()
    pattern = "^" + re.escape(name) + "$"
    row = next(row for row in waiting.event(event, *options)["rows"] if row["function"] == name)
    whole, facts = waiting.event(event)["weight_ns"], {"unit": "ns"}
    user.open(page(WAITING))
    user.tab.choose("#event", event)
    user.choose_layers(*(layers or ("python", "native", "kernel")))
    user.tab.click("#flame-bar label", "around a function")
    assert user.tab.text("#flame-note").startswith("Select a function")
    user.show("table")
    user.search(f"function:{pattern}")
    assert len(user.tab.rows("#panel-table")) == 1
    user.tab.click("#panel-table tbody td.name")
    user.show("flame")
    below, above = (Truth(pysym, WAITING, option, pattern, *options).stacks(event) for option in ("--root-at", "--callers-of"))
    below, above = tree(below), inverted(above)
    assert below[row["name"],] == above[row["name"],] == row["total_weight_ns"]
    boxes = {canvas: user.tab.box(canvas) for canvas in ("#flame", "#callers")}
    tried, seen = random.Random(1), {"#flame": 0, "#callers": 0}
    for canvas, paths in (("#flame", below), ("#callers", above)):
        x, y, width, height = boxes[canvas]
        for path, (left, weight) in laid_out(paths).items():
            down = (len(path) - 1) * ROW if canvas == "#flame" else height - (len(path) - 1) * ROW
            if weight / row["total_weight_ns"] * width < 8 or not 0 <= down < height - ROW / 2 or tried.random() > 0.5:
                continue
            user.tab.move(x + (left + weight / 2) / row["total_weight_ns"] * width, y + down + ROW / 2)
            said = told(user)
            assert said.startswith(path[-1] + " — "), path
            assert f"{amount(facts, weight)} ({share(weight, whole)})" in said, path
            assert (canvas == "#callers") == said.endswith(f"{row['name']} is called this way — {said.rpartition(' — ')[2]}")
            seen[canvas] += 1
    assert seen["#callers"] >= 3 and sum(seen.values()) >= 5, seen
    # The same by keys: the function, its heaviest caller, and back.
    user.tab.evaluate("document.getElementById('flame').focus()")
    user.tab.key("Home")
    assert told(user).startswith(row["name"] + " — ")
    assert f"total {amount(facts, row['total_weight_ns'])} ({share(row['total_weight_ns'], whole)})" in told(user)
    assert f"self {amount(facts, row['self_weight_ns']) if row['self_weight_ns'] else '0 s'} (" in told(user)
    user.tab.key("ArrowUp")
    caller = told(user).partition(" — ")[0]
    heaviest = max(weight for path, weight in above.items() if len(path) == 2)
    assert above[row["name"], caller] == heaviest
    # A zoom, and a link.
    user.tab.key("Enter")
    assert user.tab.text("#flame-path") == f"{row['name']} ‹ {caller}"
    user.tab.move(1, 1)  # away from the picture, which would tell of the box there
    shown = user.everything()
    user.reload()
    assert user.everything() == shown
    # On to the caller, and from it back by a double click.
    user.tab.evaluate("document.getElementById('callers').focus()")
    user.tab.key("Home")
    user.tab.key("ArrowUp")
    user.tab.key(" ")
    user.tab.wait_for(lambda: user.tab.text("#selected h2 bdi"), bare(caller))
    assert told(user).startswith(caller + " — ") and user.tab.focused() == "#flame"
    user.tab.key("ArrowDown")
    assert told(user).partition(" — ")[0] != caller
    x, y, width, _ = user.tab.box("#flame")
    user.tab.move(x + 3, y + ROW * 1.5)
    callee = told(user).partition(" — ")[0]
    user.tab.click_at(x + 3, y + ROW * 1.5, count=2)
    user.tab.wait_for(lambda: user.tab.text("#selected h2 bdi"), bare(callee))


@pytest.mark.parametrize("event, name", [("off-cpu", "_worker"), ("cpu-clock", "do_syscall_64"), later("cpu-clock", "Context.call")])
def test_callers_and_callees(user, page, waiting, event, name):
    user.open(page(WAITING))
    user.tab.choose("#event", event)
    user.show("table")
    user.search(f"function:^{name}$")
    assert len(user.tab.rows("#panel-table")) == 1
    user.tab.click("#panel-table tbody td.name")
    facts = waiting.event(event)
    row = next(row for row in facts["rows"] if row["function"] == name)
    told_of_it = user.tab.text("#selected .facts")
    for kind in ("self", "total"):
        weight = row[f"{kind}_weight_ns"]
        assert f"{amount(facts, weight)}, {share(weight, facts['weight_ns']) or '0 %'} of what is shown" in told_of_it
    assert f"{row['self_samples']:,} in it, {row['total_samples']:,} with it" in told_of_it
    total = row["total_weight_ns"]
    for heading, expected in zip(("Called by", "Calls"), neighbours(waiting.stacks(event), row["name"])):
        shown = [cells for cells in user.side(heading) if len(cells) > 1]
        rest = collections.Counter({other or "nobody": weight for other, weight in expected.items()})
        assert len(shown) == min(12, len(rest))
        for (part, number, *_, told_name), weight in zip(shown, sorted(rest.values(), reverse=True)):
            assert [part, number] == [percent(weight, total), figure(facts, weight, total)]
            (found, *_) = (other for other in rest if rest[other] == weight and told_name.startswith(bare(other)))
            del rest[found]


def bare(name):
    """A function's name without its place and mark."""
    return re.sub(r" \([^()]*\)$", "", name).removesuffix("_[k]")


# ---- time ----

@pytest.mark.parametrize("trace", [WAITING, GOLDEN], ids=lambda path: path.stem)
def test_a_range_of_time(user, page, trace):
    """A range that is dragged, and then moved by keys, is that of --time with the seconds that the page tells."""
    truth = Truth(pysym, trace)
    user.open(page(trace))
    x, y, width, height = user.tab.box("#strip")
    user.tab.drag([(x + width * part, y + height / 2) for part in (0.3, 0.4, 0.55)])
    seen = []
    for keys in ((), ("ArrowRight", "ArrowRight"), ("Shift+ArrowLeft",), ("End",)):
        user.tab.evaluate("document.getElementById('strip').focus()")
        for key in keys:
            user.tab.key(key.rpartition("+")[2], *key.split("+")[:-1])
        begin, end = re.search(r"(?:^|&)time=([\d.]+)-([\d.]+)", user.tab.fragment).groups()
        facts = truth.event("cpu-clock", "--time", f"{begin},{end}")
        assert rows_of_page(user.table()) == rows_of_top(facts)
        assert float(re.match(r"[\d.]+", user.tab.text("#time-range"))[0]) == pytest.approx(float(begin), abs=0.06)
        seen.append((begin, end))
    assert len(set(seen)) == 4 and float(seen[0][1]) - float(seen[0][0]) == pytest.approx(float(seen[1][1]) - float(seen[1][0]))
    user.tab.click("#strip")
    assert "time=" not in user.tab.fragment
    assert rows_of_page(user.table()) == rows_of_top(truth.event("cpu-clock"))


# ---- source ----

def test_source(user, page, tmp_path_factory):
    """Each line has what `top --by line` says of it, beside its text where the page carries that."""
    folder = tmp_path_factory.mktemp("source") / "flaskr"
    folder.mkdir()
    text = [f"line {number} of <b>db.py</b>" for number in range(1, 61)]
    (folder / "db.py").write_text("\n".join(text) + "\n")
    truth = Truth(pysym, WAITING)
    facts = truth.event("cpu-clock", "--by", "line")
    rows = {row["line"]: row for row in facts["rows"] if row.get("file", "").endswith("/flaskr/db.py") and row.get("line")}
    user.open(page(WAITING, "--source", folder.parent, "--embed-source"))
    user.show("source")
    name = next(row["file"] for row in rows.values())
    option = user.tab.evaluate("[...document.getElementById('source-file').options].find(o => o.value === v[0]).text", name)
    user.tab.choose("#source-file", option)
    shown = {int(cells[0].replace(",", "")): cells for cells in user.tab.rows("#panel-source table.source") if len(cells) == 8}
    met = {line for line, cells in shown.items() if cells[5]}
    assert met == {line for line, row in rows.items() if row["total_weight_ns"]}
    for line in met:
        total = rows[line]["total_weight_ns"]
        assert shown[line][5:7] == [percent(total, facts["weight_ns"]), figure(facts, total, facts["weight_ns"])], line
        assert shown[line][7] == text[line - 1]
    hottest = max(met, key=lambda line: rows[line]["total_weight_ns"])
    user.tab.click(f"#line-{hottest}")
    assert re.search(rf"\b{hottest}\b", user.tab.text("#selected h2"))
    assert f"line={hottest}" in user.tab.fragment


def test_source_without_text(user, page):
    """The lines that were met are there all the same, and the page says how the text gets in."""
    user.open(page(WAITING))
    user.show("source")
    assert "--embed-source" in user.tab.text("#panel-source")
    assert len(user.tab.rows("#panel-source table.source")) > 0


# ---- about ----

def test_about(user, page, made):
    """The whole summary in pysym's words, and each loss by name."""
    trace = made(**RICH)
    user.open(page(trace))
    user.show("about")
    summary = pysym(trace, "--no-host", "-f", "summary", "-v").stdout
    shown = user.tab.evaluate("[...document.querySelectorAll('#panel-about pre')].map(e => e.textContent).at(-1)")
    assert shown.strip() == summary.strip()
    assert any("ring_full" in cells[-1] and cells[0] == "7" for cells in user.tab.rows("#panel-about table"))
