# SPDX-License-Identifier: Apache-2.0
"""pysym annotate shows source lines with their time, and finds the sources."""
import json
import os

import pytest

from pysym_output import good
from screen import on_terminal

from conftest import PYSYM, ROOT

SOURCE = "".join(f"    line {n}\n" for n in range(1, 41))


@pytest.fixture
def trace(make):
    """Work.level0_0 at /srv/app/part0.py:1 calls level1_0 at part1.py:11; the kernel is below half of it."""
    return make(samples=8, stacks=2, depth=2, native=0)


@pytest.fixture
def sources(tmp_path):
    """A folder with sources of all that make_trace has, as /srv/app has them."""
    folder = tmp_path / "src"
    (folder / "app").mkdir(parents=True)
    for n in range(3):
        (folder / "app" / f"part{n}.py").write_text(SOURCE)
    return folder


def sections(pysym, *arguments):
    """Of one event, by file; each its lines by number."""
    event = json.loads(good(pysym("annotate", *arguments, "--json")))["events"][0]
    return {s["file"]: {line["line"]: line for line in s["lines"]} for s in event["sections"]}


@pytest.mark.sanitized
def test_text(trace, sources, pysym):
    assert good(pysym("annotate", trace, "--source", sources, "--context", "1")).splitlines() == [
        "8 samples of cpu-clock: 80.0 ms of CPU time, recorded in 80.0 ms",
        "",
        "/srv/app/part1.py: 80.0 ms, 100 %, of which 80.0 ms in its own lines",
        f"source: {sources}/app/part1.py",
        "This is not what ran: level1_0 began at line 11, and there it does not. Its lines may be others.",
        "",
        "    self   total    time  line  source",
        "                            10      line 10",
        "   50.0%   50.0% 40.0 ms    11      line 11",
        "   50.0%   50.0% 40.0 ms    12      line 12",
        "                            13      line 13",
        "",
        "self: the line itself; native: C code that it called; kernel: what either had the kernel do; total: with all",
        "that it called"]


@pytest.mark.sanitized
def test_the_file_that_ran(make, sources, pysym):
    """By the size and date that the trace has of it."""
    trace = make(samples=8, stacks=1, depth=1, native=0, sources=3)
    file = sources / "app" / "part0.py"

    def says(size, *, modified_ns=1690000000123456789):
        file.write_text("def level0_0(): pass".ljust(size - 1) + "\n")
        os.utime(file, ns=(modified_ns, modified_ns))
        line = good(pysym("annotate", "part0.py", trace, "--source", sources)).split("source: ")[1].split("\n\n")[0]
        return line.removeprefix(str(file)).replace("\n", " ").strip()

    assert says(1000) == "(the file that ran, by size and date)"
    assert says(1000, modified_ns=1690000000_000000000) == "(the file that ran, by size and date)"
    assert says(1000, modified_ns=1790000000_000000000) == "(perhaps not what ran: it has the same size, and another date)"
    assert says(1001) == "This is not what ran: 1,000 bytes ran, and it has 1,001. Its lines may be others."
    unknown = make(samples=8, stacks=1, depth=1, native=0)
    assert "(perhaps not what ran: the trace does not say)" in good(pysym("annotate", "part0.py", unknown, "--source", sources))


def test_agrees_with_top(make, pysym):
    """Each line's self and total are those of top --by line, whatever the filters."""
    for options in ((), ("--time", "0,3"), ("--interpreter", "show"), ("--threads",)):
        big = make(samples=400, stacks=9, depth=6, threads=3)
        rows = {}
        for event in json.loads(good(pysym(big, "-f", "top", "--by", "line", "--top", "0", "--json", *options)))["events"]:
            for table in event["tables"]:
                for row in table["rows"]:
                    if row["layer"] == "python":
                        sums = rows.setdefault((row["file"], row["line"]), [0, 0])
                        sums[0] += row["self_weight_ns"]
                        sums[1] += row["total_weight_ns"]
        shown = sections(pysym, big, "--top", "0", *options)
        ours = {(file, number): [line["self_weight_ns"], line["total_weight_ns"]]
                for file, lines in shown.items() for number, line in lines.items()}
        # Files without a line of their own are not among the hottest.
        assert ours and all(rows[key] == sums for key, sums in ours.items()), (options, ours, rows)
        assert {key for key, (own, _) in rows.items() if own} <= set(ours)


def test_command(trace, pysym, tmp_path):
    assert good(pysym("annotate", trace)) == good(pysym(trace, "-f", "annotate")) == good(
        pysym("--top", "10", "annotate", trace, "-f", "annotate"))
    out = tmp_path / "lines.txt"
    assert good(pysym("annotate", "part1.py", trace, "-o", out)) == ""
    assert out.read_text().startswith("8 samples") and "/srv/app/part1.py: " in out.read_text()
    assert "Work.level1_0 in /srv/app/part1.py" in good(pysym("annotate", "level1_0", trace))
    assert list(sections(pysym, "part0.py", trace, trace)) == ["/srv/app/part0.py"]
    # A trace of that name is a file like others.
    os.rename(trace, tmp_path / "annotate")
    assert "8 samples" in good(pysym("./annotate", cwd=tmp_path))


@pytest.mark.parametrize("arguments, says", [
    (["annotate"], "name a trace, such as trace.bin"),
    (["annotate", "part1.py"], "pysym annotate part1.py: name the trace behind it"),
    (["annotate", "TRACE", "-f", "top"], "cannot be --format top"),
    (["annotate", "TRACE", "--function"], "needs the lines"),
    (["annotate", "TRACE", "--nolineno"], "needs the lines"),
    (["annotate", "TRACE", "--group", "file"], "needs the lines"),
    (["annotate", "TRACE", "--context", "x"], "--context wants a number of lines"),
    (["annotate", "TRACE", "--embed-source"], "--embed-source"),
    (["TRACE", "-f", "top", "--source", "/"], "--source is for pysym annotate"),
    (["TRACE", "-f", "top", "--all-lines"], "--all-lines is for pysym annotate"),
    (["TRACE", "--context", "9"], "--context is for pysym annotate"),
])
def test_usage(trace, pysym, arguments, says):
    done = pysym(*(trace if a == "TRACE" else a for a in arguments))
    assert done.returncode == 2 and says in done.stderr and not done.stdout, done


def test_unknown_names(trace, pysym, tmp_path):
    done = pysym("annotate", "part1.pi", trace)
    assert done.returncode == 1 and "no file or function 'part1.pi' ran in the samples: did you mean part1.py?" in done.stderr
    done = pysym("annotate", trace, "--source", tmp_path / "nowhere")
    assert done.returncode == 1 and "nowhere: cannot be searched for source files: No such file" in done.stderr
    done = pysym("annotate", trace, "--source", f"/srv={trace}")
    assert done.returncode == 1 and "cannot be searched for source files: Not a directory" in done.stderr


def test_places(trace, sources, pysym):
    """The ends of the recorded path, longest first, or what FROM=TO says; with --no-host, too, and confined."""
    def found(*options):
        event = json.loads(good(pysym("annotate", "part0.py", trace, "--json", *options)))["events"][0]
        return event["sections"][0].get("source", {}).get("path")

    app = sources / "app"
    assert found() is None
    assert found("--source", sources) == found("--source", sources, "--no-host") == str(app / "part0.py")
    # The folder's name is that of the recorded one: the name of the file alone is enough, though its text is another.
    assert found("--source", app) == str(app / "part0.py")
    other = sources / "other"
    other.mkdir()
    (other / "part0.py").write_text(SOURCE)
    assert found("--source", other) is None
    assert found("--source", f"/srv/app={other}") == str(other / "part0.py")
    assert found("--source", f"/srv/ap={other}") is None
    assert found("--source", other, "--source", sources) == str(app / "part0.py")


def test_no_link_leads_out(trace, tmp_path, pysym):
    secret = tmp_path / "secret"
    secret.write_text("secret\n" * 40)
    folder = tmp_path / "src"
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "part0.py").symlink_to(secret)
    (folder / "srv").symlink_to("/")
    os.mkfifo(folder / "app" / "part1.py")
    out = good(pysym("annotate", trace, "--source", folder, "--top", "0", "--all-lines", timeout=60))
    assert "secret\n" not in out and "source: not found where --source says" in out
    # Without --source nothing is read at all, not even a file that lies at the recorded path.
    assert "source: say where it lies, like --source /srv/app" in good(pysym("annotate", trace))


def test_terminal(trace, sources):
    shown = on_terminal(60, PYSYM, "annotate", "part1.py", trace, "--source", sources)
    assert "\x1b[36m   50.0%\x1b[0m" in shown and "\x1b[1mThis is not what ran" in shown
    assert "\x1b[" not in on_terminal(60, PYSYM, "annotate", "part1.py", trace, "--source", sources, NO_COLOR="1")


def test_split(make, pysym, tmp_path):
    trace = make(samples=80, stacks=2, depth=2, native=0, processes=2)
    good(pysym("annotate", trace, "--split", "process", "-o", tmp_path / "lines.annotate"))
    parts = sorted(p.name for p in tmp_path.glob("lines.*.annotate"))
    assert len(parts) == 2
    assert all("40 samples of cpu-clock" in (tmp_path / name).read_text() for name in parts)
    # A name that one part does not have may stand in another.
    good(pysym("annotate", "level1_1", trace, "--window", "10ms", "-o", tmp_path / "window.annotate"))
    texts = [p.read_text() for p in tmp_path.glob("window.*.annotate")]
    assert {"Work.level1_1 in" in text for text in texts} == {True, False}
    assert all(("Work.level1_1 in" in text) != ("none of it in what was asked for" in text) for text in texts)


@pytest.mark.parametrize("trace", sorted((ROOT / "testdata/traces").glob("*.trace")), ids=lambda path: path.stem)
def test_frames_tell_texts_apart(trace, pysym, tmp_path):
    """Of traces without sizes: functions stand where they began in the program that ran, and in another they do not."""
    def says(program):
        (tmp_path / "program.py").write_bytes(program.read_bytes())
        shown = good(pysym("annotate", "program.py", trace, "--source", f"/opt/app={tmp_path}", "--no-host"))
        return shown.split(str(tmp_path / "program.py"))[1].split("\n\n")[0]

    assert says(ROOT / "testdata/traces/program.py") == " (perhaps not what ran: the trace does not say)"
    assert "This is not what ran: " in says(ROOT / "testdata/programs/chains.py")
