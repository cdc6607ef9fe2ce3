# SPDX-License-Identifier: Apache-2.0
"""perf and hotspot read perf.data files with the frames that pysym shows.

Every sample has to have the frames, in the same places, that `pysym -f perf-script` shows of the same trace. Judges are
perf 6.1 (Debian's linux-perf), Debian sid's perf and hotspot's parser; the last two come from tests/perf-readers.sh, and
tests that need what is not there are skipped with the reason. test_perf_data_long.py has more captures, and samply.
"""
import collections
import os
import re
import shutil

import pytest

import perf_readers
import stand_in
from conftest import PYCAP, PYSYM, PYTHON, ROOT, why_no_bpf
from perf_readers import HOTSPOT_NAMES, PerfData, check, differences, expected, frames_of, needed, perf_script, report, run, top, write

pytestmark = pytest.mark.unsanitized

# One for each way in which an interpreter lies in its process and keeps its activations; the demo has native and kernel
# frames.
TRACES = [ROOT / f"testdata/traces/{name}.trace" for name in ("2.7-shared", "3.11-static", "3.12-shared", "3.14-static")]
DEMO = ROOT / "testdata/demo/demo.trace"
# What perf takes when nothing is said, kernel.perf_event_max_stack.
DEFAULT_DEPTH = 127


# ---- the comparison itself ----

def test_differences_are_found():
    """Each kind of fault is found, and nothing else."""
    text = ("python3  1/2 [003] 10.000001: 1 cpu-clock: \n\t0 py::f:/a/x.py:3 (/python)\n\t0 [torn] ([unknown])\n"
            "\tff do_read+0x5 ([kernel.kallsyms])\n\n")
    theirs = text.replace("/a/x.py:3 (/python)", "x.py+0x1 (/d/python-code)\n  /a/x.py:3").replace(
        "[torn] ([unknown])", "[torn]+0x1 (/d/python-code)")
    wanted = perf_readers.samples_of_text(text)
    assert not differences(wanted, perf_readers.samples_of_text(theirs))
    for old, new in [("py:3", "py:4"), ("py::f:", "py::g:"), ("/a/x", "/b/x"), ("f:x.py", "f:y.py"), ("[torn]", "[torn"),
                     ("do_read+0x5", "do_write+0x6"), ("[003]", "[004]"), ("cpu-clock", "cycles"), ("python3 ", "python "),
                     ("\tff do_read+0x5 ([kernel.kallsyms])\n", ""), ("1/2", "1/3"), ("10.000001", "10.000002")]:
        assert old in theirs
        assert differences(wanted, perf_readers.samples_of_text(theirs.replace(old, new))), (old, new)


# ---- every sample ----

@pytest.mark.parametrize("perf", ["perf", "newer"], indirect=True)
@pytest.mark.parametrize("trace", [*TRACES, DEMO], ids=lambda path: path.stem)
def test_samples(trace, perf, tmp_path):
    data = write(trace, tmp_path)
    check(expected(trace), perf_script(data.with_names(perf), data.path))


def elsewhere(folder):
    """The demo's library in another folder than where the trace was recorded, which may be this one."""
    folder.mkdir()
    shutil.copy(DEMO.with_name("demo_native.so"), folder)
    return folder


def test_inlined_elsewhere(perf, tmp_path):
    """The same with functions that were inlined."""
    options = ["--symfs", elsewhere(tmp_path / "binaries")]
    data = write(DEMO, tmp_path, *options)
    got = perf_script(data.with_names(perf), data.path)
    check(expected(DEMO, *options), got)
    assert any(frame.name == "rotate" for sample in got for frame in sample.frames)


@pytest.mark.parametrize("way", ["cache", "--symfs", "--archive"])
def test_found_elsewhere(way, perf, tmp_path, monkeypatch):
    """Names of a binary that perf would not find, as where ~/.debug has it: told to take names from the folder, perf does
    not look there."""
    folder = stand_in.interpreter(tmp_path / "home/.debug")
    options = [way, folder] if way == "--symfs" else []
    if way == "cache":
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
    elif way == "--archive":
        run("tar", "cf", tmp_path / "a.tar", "-C", folder, ".")
        options = [way, tmp_path / "a.tar"]
    wanted = expected(TRACES[2], *options)
    assert sum(frame.name == stand_in.FUNCTION for sample in wanted for frame in sample.frames) == 2
    data = write(TRACES[2], tmp_path / "out", *options)
    check(wanted, perf_script(data.with_names(perf), data.path))


@pytest.mark.parametrize("options", [["--interpreter", "show"], ["--python-only"], ["--function"]], ids=" ".join)
def test_views(options, perf, tmp_path):
    """What an option leaves of the stacks is in the file."""
    data = write(DEMO, tmp_path, *options)
    check(expected(DEMO, *options), perf_script(data.with_names(perf), data.path))


@pytest.mark.parametrize("trace, other_place", [(TRACES[2], False), (DEMO, False), (DEMO, True)],
                         ids=["3.12-shared", "demo", "demo-elsewhere"])
def test_hotspot(trace, other_place, tmp_path):
    options = ["--symfs", elsewhere(tmp_path / "binaries")] if other_place else []
    parser = needed(perf_readers.hotspot())
    data = write(trace, tmp_path, *options)
    check(expected(trace, *options), perf_readers.perfparser(parser, data.path, data.cache), HOTSPOT_NAMES)


# ---- a live capture: real binaries, deep stacks, hostile names, several processes, threads and events ----

WORK = """
cd {programs}
{python} names.py 0.03
{python} chains.py 0.03 900
{python} mix.py callbacks 0.2
{python} mix.py threads 0.2
"""
EVENTS = ("-F", "999", "-e", "cpu-clock", "-e", "page-faults/period=64/")


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    why = why_no_bpf()
    if why:
        pytest.skip(why)
    trace = tmp_path_factory.mktemp("live") / "trace.bin"
    work = WORK.format(programs=ROOT / "testdata/programs", python=PYTHON)
    run(PYCAP, "record", "-q", "-o", trace, *EVENTS, "--", "sh", "-ec", work, timeout=120)
    return trace


@pytest.fixture(scope="module")
def live_samples(live):
    samples = expected(live)
    assert max(len(sample.frames) for sample in samples) > 900
    assert {sample.event for sample in samples} == {"cpu-clock", "page-faults"}
    assert all(frames_of(samples, kind) > 20 for kind in ("python", "kernel", "native"))
    return samples


@pytest.mark.smoke("perf")
@pytest.mark.live
def test_live(live, live_samples, perf, tmp_path):
    data = write(live, tmp_path)
    check(live_samples, perf_script(data.with_names(perf), data.path))


@pytest.mark.live
def test_live_hotspot(live, live_samples, tmp_path):
    parser = needed(perf_readers.hotspot())
    data = write(live, tmp_path)
    check(live_samples, perf_readers.perfparser(parser, data.path, data.cache), HOTSPOT_NAMES)


@pytest.mark.live
def test_depth(live, live_samples, perf, tmp_path):
    """Unless told, perf shows the innermost frames of a deep stack. pysym says so."""
    data = write(live, tmp_path)
    whole = [sample._replace(frames=perf_readers.without_inlined(sample.frames)) for sample in live_samples]
    assert sum(len(sample.frames) > DEFAULT_DEPTH for sample in whole) > 3
    cut = [sample._replace(frames=sample.frames[:DEFAULT_DEPTH]) for sample in whole]
    check(cut, perf_script(data.with_names(perf), data.path, lines=False, max_stack=None))
    assert re.search(rf"\b{DEFAULT_DEPTH}\b.*--max-stack", data.remarks), data.remarks


# ---- elsewhere ----

def moved(data, folder):
    """The output folder at another place: nothing is where the file says it is."""
    data.path.parent.rename(folder)
    return PerfData(folder / data.path.name, data.remarks)


ELSEWHERE = ("python", "mark", "kernel")


@pytest.mark.parametrize("way", ["--buildid-dir", "home"])
def test_another_machine(way, tmp_path):
    """Without the binaries and without what lies in a home, the names of Python's and the kernel's frames are those."""
    perf = needed(perf_readers.foreign_perf())
    data = moved(write(DEMO, tmp_path / "here"), tmp_path / "there")
    home = tmp_path / "home"
    if way == "home":
        shutil.copytree(data.cache, home / ".debug", symlinks=True)
    else:
        home.mkdir()
        perf = data.with_names(perf)
    got = perf_script(perf, data.path, env={**os.environ, "HOME": str(home)})
    check(expected(DEMO), got, ELSEWHERE)
    assert frames_of(got, "kernel") > 100


@pytest.mark.live
def test_native_names(live, tmp_path):
    """With --native-names there is nothing that the other machine needs for names."""
    perf = needed(perf_readers.foreign_perf())
    data = moved(write(live, tmp_path / "here", "--native-names"), tmp_path / "there")
    (tmp_path / "home").mkdir()
    got = perf_script(data.with_names(perf), data.path, env={**os.environ, "HOME": str(tmp_path / "home")})
    check(expected(live), got)
    assert frames_of(got, "native") == 0 < frames_of(got, "code")


def test_home_of_another(tmp_path):
    """The same of perf 6.1 on this host, whose binaries are where the file says."""
    perf = needed(perf_readers.perf())
    data = moved(write(DEMO, tmp_path / "here"), tmp_path / "there")
    (tmp_path / "home").mkdir()
    got = perf_script(data.with_names(perf), data.path, env={**os.environ, "HOME": str(tmp_path / "home")})
    check(expected(DEMO), got)


# ---- what perf adds up ----

def is_symbol_of(symbol, row):
    """Whether py::NAME:SHORT is the symbol of a row of top: SHORT is how the path of its file ends."""
    name = f"py::{row.get('function')}:"
    return row["layer"] == "python" and symbol.startswith(name) and row["file"].endswith(symbol[len(name):])


def test_report(perf, tmp_path):
    """Function by function: its own time to the nanosecond, and with what it calls as a share."""
    trace = TRACES[2]
    data = write(trace, tmp_path)
    rows, total = top(trace)["cpu-clock"]
    shown = report(perf, data, "--children", "--fields", "overhead_children,period,dso,sym")
    assert sum(int(period) for _, period, _, _ in shown) == total
    checked = 0
    for share, period, dso, symbol in shown:
        symbol = symbol.removeprefix("[.] ")
        if dso != perf_readers.PYTHON_CODE or not symbol.startswith("py::"):
            continue
        same = [row for row in rows if is_symbol_of(symbol, row)]
        assert int(period) == sum(row["self_weight_ns"] for row in same), symbol
        if len(same) == 1:  # functions of one name may call each other
            assert abs(float(share.rstrip("%")) - 100 * same[0]["total_weight_ns"] / total) <= 0.011, symbol
            checked += 1
    assert checked > 15


def test_report_by_line(perf, tmp_path):
    data = write(DEMO, tmp_path)
    rows, total = top(DEMO, "--by", "line")["cpu-clock"]
    expected_lines = {f"{row['file']}:{row['line']}": row["self_weight_ns"] for row in rows
                      if row["layer"] == "python" and row["self_weight_ns"]}
    shown = report(perf, data, "--no-children", "--full-source-path", "--fields", "period,srcline", "--dso",
                   perf_readers.PYTHON_CODE, "-s", "srcline")
    assert {line: int(period) for period, line in shown if int(period) and not line.endswith(":0")} == expected_lines
    assert 0 < sum(expected_lines.values()) <= total


def test_diff(perf, tmp_path):
    """Functions of two captures stand beside each other, though their code came to lie elsewhere.

    The second is written where the first was, and leaves the first one's names; then the folder is moved.
    """
    traces = [ROOT / f"testdata/traces/{name}.trace" for name in ("3.13-shared", "3.13-static")]
    write(traces[0], tmp_path / "first").path.rename(tmp_path / "first/perf.data.old")
    write(traces[1], tmp_path / "first")
    data = PerfData((tmp_path / "first").rename(tmp_path / "moved") / "perf.data", "")
    shown = run(*data.with_names(perf), "diff", "-t", "\t", f"{data.path}.old", data.path).stdout.decode()
    tables = [top(trace)["cpu-clock"] for trace in traces]
    checked = 0
    for baseline, delta, dso, symbol in (line.split("\t") for line in shown.splitlines() if line and line[0] != "#"):
        symbol = symbol.strip().removeprefix("[.] ")
        shares = [100 * sum(row["self_weight_ns"] for row in rows if is_symbol_of(symbol, row)) / total
                  for rows, total in tables]
        if not all(shares) or dso.strip() != perf_readers.PYTHON_CODE:
            continue
        assert abs(float(baseline.strip(" %")) - shares[0]) <= 0.011, symbol
        assert abs(float(delta.strip(" %") or 0) - (shares[1] - shares[0])) <= 0.011, symbol
        checked += 1
    assert checked > 15


def test_annotate(needs_bpf, tmp_path):
    """Shares stand beside the lines of the Python source."""
    perf = needed(perf_readers.perf())
    trace, source = tmp_path / "trace.bin", tmp_path / "spinning.py"
    line = "return sum(i * i for i in range(n))"
    source.write_text(f"def spin(n):\n    {line}\n\nfor _ in range(600):\n    spin(20000)\n")
    run(PYCAP, "record", "-q", "-F", "499", "-o", trace, "--", PYTHON, source)
    data = write(trace, tmp_path / "out")
    symbol = "py::spin.<locals>.<genexpr>:spinning.py"
    shown = run(*data.with_names(perf), "annotate", "-i", data.path, "--stdio", "-s", symbol).stdout.decode()
    assert re.search(rf"^ +: +\d+ +{re.escape(line)}$", shown, re.M), shown
    # Each of the lines of objdump below has a share.
    shares = [float(share) for share in re.findall(r"^ +(\d+\.\d+) : +[0-9a-f]+: ", shown.partition(line)[2], re.M)]
    assert 99 < sum(shares) < 101, shown


def test_events_and_weights(make, perf, tmp_path):
    """Each event has its own samples, and periods are what a sample stands for, also when the rate changed."""
    for number, settings in enumerate(({"second_event": 100, "interval_us": 1000}, {"slower_at": 100}, {"uneven": 1})):
        trace = make(samples=300, threads=3, processes=2, **settings)
        data = write(trace, tmp_path / str(number))
        samples = perf_script(data.with_names(perf), data.path, lines=False)
        check(expected(trace), samples, ())
        sums = collections.Counter()
        for sample in samples:
            sums[sample.event] += sample.period
        assert sums["cpu-clock"] == top(trace)["cpu-clock"][1]
        assert sums["page-faults"] == (100 if "second_event" in settings else 0)  # faults, not bytes


def test_losses(make, perf, tmp_path):
    data = write(make(samples=100, losses=7), tmp_path / "out")
    done = run(*data.with_names(perf), "report", "-i", data.path, "--stdio")
    assert "# Total Lost Samples: 7\n" in done.stdout.decode(), done.stdout.decode()[:2000]
