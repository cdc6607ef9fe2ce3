# SPDX-License-Identifier: Apache-2.0
"""pysym diff and pysym baseline give the right report and exit code over made-up recordings."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import MAKE_TRACE, PYSYM, ROOT
from pysym_output import good

sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

# Three functions below each caller. Runs are of different lengths, so that totals vary.
PROGRAM = {"stacks": 21, "native": 0}
SAMPLES = 4000


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Makes recordings of one program once for all tests: runs("old", 5), runs("new", 5, slower=100, changed=1)."""
    if not os.access(MAKE_TRACE, os.X_OK):
        pytest.skip(f"{MAKE_TRACE} is not built")
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def make(side, count, **settings):
        key = (side, *sorted(settings.items()))
        paths = made.setdefault(key, [])
        while len(paths) < count:
            place = folder / f"{side}{list(made).index(key)}"
            place.mkdir(exist_ok=True)
            number = 1 + len(paths) + 100 * list(made).index(key)
            path = place / f"{side}{len(paths) + 1}.bin"
            subprocess.run([MAKE_TRACE, path, f"run={number}", *(f"{k}={v}" for k, v in {"samples": SAMPLES + 37 * (number % 7), **PROGRAM, **settings}.items())], check=True)
            paths.append(path)
        return paths[:count]
    return make


def refused(done, *texts):
    assert (done.returncode, done.stdout) == (2, ""), (done.returncode, done.stdout, done.stderr)
    assert all(text in done.stderr for text in texts) and "Sanitizer" not in done.stderr, done.stderr


# ---- what comes out ----

def test_a_change_is_found_and_named_first(pysym, runs):
    """The function whose samples doubled, with its cause; and nothing else of that size."""
    out = good(pysym("diff", *runs("old", 5), "--", *runs("new", 5, slower=100, changed=2)))
    first = re.search(r"^  (slower|faster): .*$", out, re.M)
    assert first and first[0].startswith("  slower: Work.level4_0 ") and "its code changed" in first[0], out
    assert len(re.findall(r"^  (?:slower|faster): ", out, re.M)) == 1, out


def test_nothing_changed(pysym, runs):
    old = runs("old", 10)
    out = good(pysym("diff", *old[:5], "--", *old[5:]))
    assert not re.search(r"^ *(slower|faster): ", out, re.M), out


def test_equal_input_gives_equal_bytes(pysym, runs):
    line = ["diff", *runs("old", 3), "--", *runs("new", 3, slower=100, changed=2)]
    for name in ("text", "markdown", "json", "github", "junit", "folded"):
        assert good(pysym(*line, "-f", name)) == good(pysym(*line, "-f", name)), name


def test_one_against_one_concludes_nothing(pysym, runs):
    (old,), (new,) = runs("old", 1), runs("new", 1, slower=100, changed=2)
    out = good(pysym("diff", old, "--", new))
    assert "othing can be concluded" in out, out
    done = pysym("diff", old, "--", new, "--fail-on", "total 1%", "--fail-on", "undecided fail")
    assert "othing can be concluded" in good(done, 5) and "do not tell" in done.stderr


def test_formats_by_extension(pysym, runs, tmp_path):
    begins = {"md": "**", "json": "{", "xml": "<?xml", "folded": ""}
    for extension, begin in begins.items():
        path = tmp_path / f"out.{extension}"
        good(pysym("diff", *runs("old", 3), "--", *runs("new", 3, slower=100, changed=2), "-o", path))
        assert path.read_text().startswith(begin) and path.stat().st_size, path
    done = json.loads((tmp_path / "out.json").read_text())
    assert done["format"] == "diff", done.keys()


# ---- rules ----

def test_rules(pysym, runs, tmp_path):
    """A rule that is surely broken, one that is kept, and one that is undecided, by exit codes."""
    line = ["diff", *runs("old", 5), "--", *runs("new", 5, slower=100, changed=2)]
    broken = pysym(*line, "--fail-on", "function level4_0 20%")
    good(broken, 4)
    assert broken.stderr.endswith("pysym: a rule is surely broken; the report says which\n")
    good(pysym(*line, "--fail-on", "function level4_0 500%"))
    good(pysym(*line, "--fail-on", "node level3_0;level4_0 20%"), 4)
    good(pysym(*line, "--fail-on", "function level9_9 20%", "--fail-on", "undecided fail"), 5)
    good(pysym(*line, "--fail-on", "function level9_9 20%"))
    good(pysym(*line, "--fail-on", "function level4_0 20%", "--fail-on", "runs 6 6", "--fail-on", "undecided fail"), 5)
    good(pysym(*line, "--fail-on", "function level4_0 20%", "--fail-on", "ignore level4_0"))
    budget = tmp_path / "budget.txt"
    budget.write_text("# what matters\nfunction part1.py:* 20%  # all of them\n")
    out = good(pysym(*line, "--budget", budget), 4)
    assert f"{budget}:2" in out and "function part1.py:* 20%" in out, out
    # Looks are stricter; the last one of very many can say nothing.
    good(pysym(*line, "--fail-on", "function level4_0 20%", "--look", "2/5"), 4)


def test_new_functions(pysym, runs):
    line = ["diff", *runs("old", 5), "--", *runs("new", 5, fresh=1)]
    out = good(pysym(*line, "--fail-on", "new 1%"), 4)
    assert "Work.fresh4_1" in out, out
    good(pysym(*line, "--fail-on", "new 50%"))


def test_moved_functions_are_the_same(pysym, runs):
    out = good(pysym("diff", *runs("old", 5), "--", *runs("new", 5, moved=7)))
    assert not re.search(r"^ *(slower|faster|new|vanished): ", out, re.M) and "its code changed" not in out, out


BAD_RULES = [("totl 2%", "did you mean total?"), ("total 2", "a percentage like 2%"), ("function ~( 2%", "--fail-on wants a regular expression"),
             ("runs 5", "two numbers"), ("", "rules begin with")]


@pytest.mark.parametrize("rule, message", BAD_RULES)
def test_rules_that_are_not_understood(pysym, runs, tmp_path, rule, message):
    (old,), (new,) = runs("old", 1), runs("new", 1, slower=100, changed=2)
    refused(pysym("diff", old, "--", new, f"--fail-on={rule}"), message)
    if rule:
        budget = tmp_path / "budget.txt"
        budget.write_text(f"\n{rule}\n")
        refused(pysym("diff", old, "--", new, "--budget", budget), f"{message.replace('--fail-on', f'{budget}:2')}", f"{budget}:2")


# ---- work ----

@pytest.mark.sanitized
def test_work(pysym, runs, tmp_path):
    """With twice the work in the same time the total is half."""
    old, new = runs("old", 5), runs("new", 5, slower=100, changed=2)
    work = tmp_path / "work.txt"
    work.write_text("".join(f"{path.name} {1000 if path in old else 2000}  # requests\n" for path in [*old, *new]))
    line = ["diff", *old, "--", *new]
    total = json.loads(good(pysym(*line, "--work", work, "-f", "json")))["rows"][0]
    assert total["kind"] == "total" and abs(total["change"] + 0.5) < 0.02, total
    good(pysym(*line, "--work", work, "--fail-on", "total 2%"))
    good(pysym(*line, "--fail-on", "total 2%", "--fail-on", "undecided fail"), 5)
    work.write_text(f"{old[0].name} 5\n{new[0].name}\n")
    refused(pysym(*line, "--work", work), f"{work}:2", "like run1.bin 20000")
    for number in ("0", "-1", "nan", "inf", "1e400", "1e-300", "0x10", "1,5"):
        work.write_text(f"{old[0].name} {number}\n")
        refused(pysym(*line, "--work", work), f"{work}:1", "like run1.bin 20000")
    work.write_text("other.bin 5\n")
    refused(pysym(*line, "--work", work), "names none of the runs")


def test_work_of_files_of_one_name(pysym, runs, tmp_path):
    old, new = runs("old", 3), runs("old", 3, slower=100)
    assert [path.name for path in old] == [path.name for path in new]
    work = tmp_path / "work.txt"
    work.write_text(f"{old[0].name} 5\n")
    refused(pysym("diff", *old, "--", *new, "--work", work), "2 runs have the name old1.bin")
    work.write_text("".join(f"{path}\t{5}\n" for path in [*old, *new]))
    good(pysym("diff", *old, "--", *new, "--work", work))


def test_all_figures_equal_those_of_scipy(pysym, runs, tmp_path):
    """From the counts of each run to p and q, beside the same formulas over scipy (from PyPI; skipped without it)."""
    try:
        python = venvs.venv("scipy") / "bin/python"
    except venvs.Missing as error:
        pytest.skip(f"scipy: {error}")
    tool, base = pathlib.Path(PYSYM).parent / "tools/compare_dump", tmp_path / "all.pyb"
    good(pysym("baseline", *runs("old", 5), *runs("new", 5, slower=100, changed=2), "-o", base))
    counts = subprocess.run([tool, "5", base], capture_output=True, text=True, timeout=60, check=True).stdout
    done = subprocess.run([python, ROOT / "tests/tools/compare_reference.py"], input=counts, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert int(re.match(r"(\d+) figures", done.stdout)[1]) > 1000


# ---- baselines ----

def rows(text):
    """What was found: rows with their figures, as far as the order of sums leaves them alike."""
    def shown(row):
        return tuple(f"{value:.9g}" if isinstance(value, float) else str(value) for key, value in sorted(row.items()) if key != "because")
    return sorted(map(shown, json.loads(text)["rows"]))


def test_a_baseline_is_as_good_as_its_runs(pysym, runs, tmp_path):
    old, new = runs("old", 5), runs("new", 5, slower=100, changed=2)
    base, more = tmp_path / "main.pyb", tmp_path / "more.pyb"
    done = pysym("baseline", *old, "-o", base)
    good(done)
    assert "5 runs" in done.stderr, done.stderr
    wanted = rows(good(pysym("diff", *old, "--", *new, "-f", "json")))
    for line in (["--baseline", base, *new], ["--baseline", base, "--", *new], [base, "--", *new], [*new, "--baseline", base]):
        assert rows(good(pysym("diff", *line, "-f", "json"))) == wanted, line
    # It grows in place, a run at a time, and equal runs give equal bytes.
    good(pysym("baseline", *old[:3], "-o", more))
    good(pysym("baseline", more, old[3], "-o", more))
    good(pysym("baseline", more, old[4], "-o", more))
    assert rows(good(pysym("diff", "--baseline", more, *new, "-f", "json"))) == wanted
    # Both sides may be baselines.
    good(pysym("baseline", *new, "-o", more))
    assert rows(good(pysym("diff", base, "--", more, "-f", "json"))) == wanted
    with open(tmp_path / "again.pyb", "wb") as again:
        good(pysym("baseline", *old, capture_output=False, stdout=again))
    assert (tmp_path / "again.pyb").read_bytes() == base.read_bytes()


def test_a_recording_counts_once(pysym, runs, tmp_path):
    old, new = runs("old", 3), runs("new", 3, slower=100, changed=2)
    base, copy = tmp_path / "main.pyb", tmp_path / "copy.bin"
    good(pysym("baseline", *old, "-o", base))
    copy.write_bytes(old[0].read_bytes())
    link = tmp_path / "link.bin"
    link.symlink_to(old[0])
    refused(pysym("diff", old[0], "--", old[0]), "is on both sides")
    refused(pysym("diff", old[0], "--", link), "is on both sides")
    refused(pysym("diff", old[0], old[0], "--", new[0]), "is named twice")
    refused(pysym("diff", old[0], copy, "--", new[0]), "old1.bin and copy.bin are the same recording")
    refused(pysym("diff", base, old[0], "--", new[0]), "are the same recording")
    refused(pysym("diff", "--baseline", base, "--baseline", base, *new), "is named twice")
    refused(pysym("baseline", base, old[1], "-o", tmp_path / "x.pyb"), "are the same recording")
    assert not (tmp_path / "x.pyb").exists()


def test_a_baseline_that_is_none(pysym, runs, tmp_path):
    new = runs("new", 3, slower=100, changed=2)
    done = pysym("diff", "--baseline", ROOT / "README.md", *new)
    assert done.returncode == 1 and "README.md" in done.stderr, done.stderr
    done = pysym("diff", "--baseline", tmp_path / "none.pyb", *new)
    assert done.returncode == 1 and "none.pyb" in done.stderr and "No such file" in done.stderr


# ---- the command line ----

WRONG = [
    ("diff", "put -- between old and new runs: pysym diff OLD... -- NEW..."),
    ("diff a.bin b.bin", "put -- between old and new runs: pysym diff a.bin -- b.bin"),
    ("diff a b c", "pysym diff OLD... -- NEW..."), ("diff a.bin --", "name the new runs behind --"),
    ("diff -- a.bin", "name the old runs before --, or a --baseline"), ("diff a -- b -- c", "-- stands twice"),
    ("diff --baseline x.pyb", "name the new runs: pysym diff --baseline FILE -- NEW..."),
    ("dif a -- b", "did you mean pysym diff OLD... -- NEW...?"), ("baselin a", "did you mean pysym baseline OLD... -o main.pyb?"),
    ("--no-host diff a -- b", "write diff first"), ("diff a -- b --fail", "wants an argument"),
    ("diff a -- b --budgt x", "did you mean --budget?"), ("diff a -- b --json", "say -f json"),
    ("diff a -- b -f top", "unknown format 'top'"), ("diff a -- b -f xml", "did you mean -f junit?"),
    ("diff a -- b -f jsn", "did you mean -f json?"), ("diff a -- b -o x.zip", "none is known by the name 'x.zip'"),
    ("diff a -- b --split process -o x", "pysym diff takes no --split: it writes one report"),
    ("diff a -- b --source x", "say --old-source and --new-source"), ("diff a -- b --wall", "--event off-cpu"),
    ("diff a -- b --qualify", "pysym diff takes no --qualify"), ("diff a -- b --old-source .", "--old-source needs --new-source"),
    ("diff a -- b --event a --event b", "give --event once"), ("diff - -- -", "can be read but once"),
    ("diff a -- b --look 5/3", "like 2/5"), ("diff a -- b --look 0/3", "like 2/5"), ("diff a -- b --look 3", "like 2/5"),
    ("a.bin -f diff", "use pysym diff OLD... -- NEW..."), ("a.bin --budget x", "--budget is for pysym diff OLD... -- NEW..."), ("baseline", "name the runs"),
    ("baseline a -- b -o x.pyb", "takes old runs alone"), ("baseline a -o x.pyb --fail-on total", "takes no --fail-on"),
    ("baseline a -o x.pyb -f json", "it writes the file that pysym diff --baseline reads"),
]


@pytest.mark.parametrize("line, message", WRONG, ids=[line for line, _ in WRONG])
def test_wrong_usage(pysym, tmp_path, line, message):
    done = pysym(*line.split(), cwd=tmp_path)
    refused(done, message)
    assert re.fullmatch(r"pysym: .*\nTry 'pysym( diff| baseline)? --help'\.\n", done.stderr), done.stderr
    assert not list(tmp_path.iterdir())


def test_options_behind_the_divider(pysym, runs):
    (old,), (new,) = runs("old", 1), runs("new", 1, slower=100, changed=2)
    wanted = good(pysym("diff", "-f", "json", "--top", "3", old, "--", new))
    assert good(pysym("diff", old, "-f", "json", "--", new, "--top", "3")) == wanted
    assert good(pysym("diff", old, "--", "-f", "json", new, "--top=3")) == wanted


def test_files_called_as_commands(pysym, runs, tmp_path):
    """A trace may be called as a command is, but not where the command could stand."""
    (old,) = runs("old", 1)
    (tmp_path / "baselin").write_bytes(old.read_bytes())
    assert "samples" in good(pysym("baselin", "-f", "top", cwd=tmp_path))


def test_inputs_are_not_overwritten(pysym, runs, tmp_path):
    (old,), (new,) = runs("old", 1), runs("new", 1, slower=100, changed=2)
    budget = tmp_path / "rules.txt"
    budget.write_text("total 2%\n")
    base = tmp_path / "main.pyb"
    good(pysym("baseline", old, "-o", base))
    before = base.read_bytes()
    for path, line in ((budget, ["--budget", budget]), (base, ["--baseline", base]), (new, [])):
        done = pysym("diff", old if line[:1] != ["--baseline"] else "--force", "--", new, *line, "-f", "text", "-o", path)
        assert done.returncode == 2 and "input" in done.stderr, (path, done.stderr)
    assert budget.read_text() == "total 2%\n" and base.read_bytes() == before


def test_filters(pysym, runs, tmp_path):
    """Filters hold for both sides, and a baseline made with others is refused."""
    old, new = runs("old", 3), runs("new", 3, slower=100, changed=2)
    out = good(pysym("diff", *old, "--", *new, "--root-at", "level3_0", "-f", "json"))
    assert "level4_0" in out and "level4_1\"" not in out
    base = tmp_path / "main.pyb"
    good(pysym("baseline", *old, "-o", base, "--root-at", "level3_0"))
    good(pysym("diff", base, "--", *new, "--root-at", "level3_0"))
    done = pysym("diff", base, "--", *new)
    assert done.returncode == 1 and "--root-at" in done.stderr and not done.stdout, done.stderr
    assert "--root-at" in good(pysym("diff", base, "--", *new, "--force"))


def test_losses_and_strict(pysym, runs):
    """A run that lost much says nothing; --strict fails for it."""
    old, new = runs("old", 3), runs("new", 3, slower=100, changed=2, losses=200)
    line = ["diff", *old, "--", *new, "--fail-on", "function level4_0 20%", "--fail-on", "undecided fail"]
    assert "lost" in good(pysym(*line), 5)
    good(pysym(*line, "--strict"), 3)
    # Where enough others are left, it is these that are judged.
    done = pysym("diff", *old, "--", *runs("new", 3, slower=100, changed=2), new[0], "--fail-on", "function level4_0 20%")
    assert "left out" in good(done, 4), done.stdout


@pytest.mark.sanitized
def test_damage_is_told(pysym, runs, tmp_path):
    old, new = runs("old", 3), runs("new", 2, slower=100, changed=2)
    cut = tmp_path / "cut.bin"
    cut.write_bytes(runs("new", 3, slower=100, changed=2)[2].read_bytes()[:-200])
    done = pysym("diff", *old, "--", *new, cut)
    good(done)
    assert "cut.bin" in done.stderr, done.stderr
    done = pysym("diff", *old, "--", *new, tmp_path / "none.bin")
    assert done.returncode == 1 and "none.bin" in done.stderr and not done.stdout


def lines(text, function):
    """The lines of a function that were compared: their numbers, answers and matches."""
    return sorted((row["line"], row["answer"], row["match"]) for row in json.loads(text)["rows"]
                  if row["kind"] == "line" and row["function"] == function)


def test_lines(pysym, runs, tmp_path):
    """Lines of equal code are compared, also where it moved; those of changed code where the sources say what became of them."""
    two = {"stacks": 42, "leaves": 21}
    old = runs("old", 5, **two)
    out = good(pysym("diff", *old, "--", *runs("new", 5, slower=300, moved=7, **two), "-f", "json"))
    assert [line[1:] for line in lines(out, "Work.level4_0")][0][0] == "slower", lines(out, "Work.level4_0")
    assert {line[2] for line in lines(out, "Work.level4_1")} == {"moved"}, lines(out, "Work.level4_1")
    line = ["diff", *old, "--", *runs("new", 5, slower=300, changed=2, **two), "-f", "json"]
    assert not lines(good(pysym(*line)), "Work.level4_0")
    for side in ("old", "new"):
        text = [f"line {number}" for number in range(1, 61)]
        text[41:41] = ["added", "added, too"] if side == "new" else []
        (tmp_path / side / "app").mkdir(parents=True)
        (tmp_path / side / "app" / "part1.py").write_text("\n".join(text))
    out = good(pysym(*line, "--old-source", tmp_path / "old", "--new-source", tmp_path / "new"))
    assert [(number, match) for number, _, match in lines(out, "Work.level4_0")] == [(41, "same"), (44, "same")], lines(out, "Work.level4_0")


def test_places_of_sources(pysym, runs, tmp_path):
    """They have to exist; files that lie elsewhere are not compared by lines, and change nothing."""
    line = ["diff", *runs("old", 3), "--", *runs("new", 3, slower=100, changed=2)]
    done = pysym(*line, "--old-source", tmp_path, "--new-source", tmp_path / "none")
    assert done.returncode == 1 and "cannot be searched for source files" in done.stderr, done.stderr
    assert good(pysym(*line, "--old-source", tmp_path, "--new-source", f"/srv/app={tmp_path}")) == good(pysym(*line))


def test_full_device(pysym, runs):
    (old,), (new,) = runs("old", 1), runs("new", 1, slower=100, changed=2)
    with open("/dev/full", "w") as full:
        done = pysym("diff", old, "--", new, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and "No space left" in done.stderr
