# SPDX-License-Identifier: Apache-2.0
"""Compares samples of testdata/programs/chains.py and lines.py, frame by frame, with what the interpreter told of itself.

usage: matrix.py [--program FILE] [--hz N] [--seconds S] [--sysroot DIR] NAME COMMAND...
Prints one row; tests/matrix.sh calls it for every interpreter, tests/integration/test_matrix.py for those at hand and
test_released.py for those of tests/released.sh.
Exit: 0, 1 a sample is wrong or too many are marked, 2 usage.

What a sample can be:
  equal       a chain that was told: every function and file is the same, and every line
  passing     the same, and the innermost function at another of its own lines: microseconds before and after it spins,
              which are judged by their number (1 in 1,000)
  marked      pysym says itself that frames are missing
  elsewhere   before, between and after the chains: it ends at code that is no chain's end. Its frames outside of that are
              compared with the chains, too.
  wrong       anything else
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import accounts  # noqa: E402

PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
PROGRAMS = [ROOT / "testdata/programs/chains.py", ROOT / "testdata/programs/lines.py"]
# Where frames and code objects lie in memory: what differs from build to build.
PLACES = [ROOT / "testdata/programs/deep.py", ROOT / "testdata/programs/split.py", ROOT / "testdata/programs/reload.py"]
FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$", re.S)
# Lines of a spinner in chains.py, and those where it spins.
SPINNER_LINES, SPIN_LINES = (1, 2, 3, 4, 5, 6), (4, 5)
COLUMNS = ("samples", "in chains", "chain equal", "line equal", "passing", "marked", "elsewhere", "WRONG", "Python whole",
           "native whole", "joined")

Result = collections.namedtuple("Result", "samples compared chains_equal lines_equal passing marked elsewhere wrong shares missing")


def clean(text):
    """As every output has it: a semicolon parts frames, a line break lines."""
    return re.sub("[\0-\x1f]", "_", text).replace(";", ":")


def told_chains(text):
    """By the innermost function: [(name, file, line)...], outermost first; and the lines that its code has. `text` has a list
    of chains, or one in each line, as told.py writes them."""
    chains, lines = {}, {}
    for chain in json.loads(text) if text.startswith("[") else map(json.loads, text.splitlines()):
        end = tuple(clean(text) for text in chain["frames"][-1][:2])
        chains[end] = [(clean(name), clean(path), line) for name, path, line in chain["frames"]]
        lines[end] = chain.get("lines", SPINNER_LINES)
    return chains, lines


def is_outer_part(got, chains):
    """Whether the frames of the program that lead to `got` are the outer frames of some chain, functions and files."""
    names = [frame[:2] for frame in got]
    return any(names == [frame[:2] for frame in chain[:len(names)]] for chain in chains.values())


def judge_stack(got, chains, lines, program):
    """"equal", "passing", "line" (functions equal, a line not), "elsewhere" or "wrong"."""
    chain = chains.get(got[-1][:2])
    if chain is None:
        # Outside of the chains: the program's own frames, up to where it leaves the paths that were told. All begin at its
        # module, or at what runs it in the program of a frozen application.
        if any(frame[1] == program for frame in got) and got[0][:2] not in {c[0][:2] for c in chains.values()}:
            return "wrong"
        known = {frame[:2] for c in chains.values() for frame in c}
        inner = next((i for i, frame in enumerate(got) if frame[:2] not in known), len(got))
        return "elsewhere" if inner == 0 or is_outer_part(got[:inner], chains) else "wrong"
    if [frame[:2] for frame in got] != [frame[:2] for frame in chain]:
        return "wrong"
    if got[:-1] != chain[:-1]:
        return "line"
    line, end = got[-1][2], chain[-1]
    if line in SPIN_LINES if end[1].startswith("<spin ") else line == end[2]:
        return "equal"
    return "passing" if line in lines[end[:2]] else "line"


def samples_of(trace, *options):
    """(Python frames, marks, names) of each sample of a trace, a thread after the other, in the order of time."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([PYSYM, trace, "--format", "speedscope", "--merge", "thread", "--python-only", "--full-filenames", "-o", out.name,
                        *options],
                       check=True)
        data = json.load(open(out.name))
    known = []
    for frame in data["shared"]["frames"]:
        match = FRAME.match(frame["name"])
        known.append((match[1], frame["file"], frame["line"]) if match and frame.get("line") else None)
    # A weight is that of as many samples as followed each other with the same stack.
    text = shares_of(trace, *options)[1]
    unit_ns = 1e9 / int(re.search(r"([\d,]+) samples at ([\d,]+) Hz", text)[2].replace(",", ""))
    for profile in data["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            names = [data["shared"]["frames"][i]["name"] for i in stack]
            sample = ([known[i] for i in stack if known[i]], accounts.MARKS.intersection(names), names)
            for _ in range(round(weight / unit_ns)):
                yield sample


def shares_of(trace, *options):
    """The percentages of the summary: Python stacks, native stacks, joins."""
    text = subprocess.run([PYSYM, trace, "--format", "summary", "-v", *options], stdout=subprocess.PIPE, check=True).stdout.decode()
    return [float(m) for m in re.findall(r"^  (?:Python stacks|native stacks|joins of) .*?([\d.]+) %", text, re.M)], text


def compare(trace, told, program, *options):
    chains, lines = told_chains(told)
    samples = list(samples_of(trace, *options))
    running = [i for i, (frames, _, _) in enumerate(samples) if any(frame[1] == str(program) for frame in frames)]
    counts, wrong, seen = collections.Counter(), [], set()
    for i, (frames, marks, names) in enumerate(samples):
        if not frames and running and not running[0] < i < running[-1]:
            verdict = "elsewhere"  # while the interpreter is set up and taken down
        elif marks or not frames:
            verdict = "marked"
        else:
            verdict = judge_stack(frames, chains, lines, str(program))
            if verdict == "equal":
                seen.add(frames[-1][:2])
        counts[verdict] += 1
        if verdict in ("wrong", "line"):
            wrong.append((verdict, names, chains.get(frames[-1][:2])))
    shares, _ = shares_of(trace, *options)
    in_chains = counts["equal"] + counts["passing"] + counts["line"] + counts["wrong"] + counts["marked"]
    return Result(len(samples), in_chains, in_chains - counts["wrong"] - counts["marked"], counts["equal"], counts["passing"],
                  counts["marked"], counts["elsewhere"], wrong, shares, sorted(set(chains) - seen))


def record(command, program, seconds, hz, trace, *options):
    done = subprocess.run([PYCAP, "record", "-q", "-F", str(hz), "-o", trace, *options, "--", *command, str(program), str(seconds)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if done.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), done.stderr.decode(errors="replace").strip()))
    return done.stdout.decode()


def percent(part, whole):
    return "%.2f" % (100.0 * part / whole) if whole else "-"


def print_head():
    print("%-16s" % "interpreter", "  ".join(COLUMNS))


def row(name, results):
    total = [sum(getattr(r, field) for r in results) for field in Result._fields[:7]]
    samples, compared, chains_equal, lines_equal, passing, marked, elsewhere = total
    values = [samples, compared, percent(chains_equal, compared), percent(lines_equal, compared - passing), passing, marked,
              elsewhere, sum(len(r.wrong) for r in results)]
    # The summaries' shares, weighted by samples.
    for i in range(3):
        parts = [(r.shares[i], r.samples) for r in results if len(r.shares) > i]
        values.append("%.2f" % (sum(s * n for s, n in parts) / max(1, sum(n for _, n in parts))) if parts else "-")
    return "%-16s " % name + "  ".join(str(v).rjust(len(c)) for v, c in zip(values, COLUMNS))


def all_good(results, of_few=False):
    """Nothing wrong, and one in a thousand in passing or marked; `of_few`: as far as a small number of samples can tell."""
    compared, passing, marked = (sum(getattr(r, field) for r in results) for field in ("compared", "passing", "marked"))
    if any(r.wrong or r.missing for r in results):
        return False
    if of_few:
        return accounts.is_rare(passing, compared) and accounts.is_rare(marked, compared)
    return passing <= 0.001 * compared + 1 and marked <= 0.001 * (compared - passing)


def check(trace, told, program, *options):
    """Fails unless every sample of a short recording is as it was told."""
    result = compare(trace, told, program, *options)
    assert not result.wrong, f"{len(result.wrong)} wrong, the first: {result.wrong[0]}"
    # A chain that was over when the process was known to be Python, or that fell into a time without ticks, is told of by its
    # ticks: of each there are about 60.
    account, names = accounts.read(PYSYM, trace), list(told_chains(told)[0])
    late = [name for first, name in zip(names, [name for name in names if name in result.missing]) if first != name]
    assert 20 * len(result.missing) <= account.missing and 20 * len(late) <= account.missing - account.early, \
        f"never sampled: {result.missing}; {account.text()}"
    assert all_good([result._replace(missing=[])], of_few=True), result


def report(name, results):
    print(row(name, results), flush=True)
    for result in results:
        if result.missing:
            print("    never sampled:", *("%s (%s)" % name for name in result.missing))
        for verdict, got, chain in result.wrong[:4]:
            print("    %s:" % verdict, ";".join(got[-6:]))
            print("        told:", chain and ";".join("%s (%s:%d)" % f for f in chain[-6:]))
    return 0 if all_good(results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--head", action="store_true", help="print the table's head and no more")
    parser.add_argument("--program", type=pathlib.Path, action="append")
    parser.add_argument("--hz", type=int, default=1999)
    parser.add_argument("--seconds", type=float, default=0.15, help="in each chain")
    parser.add_argument("--sysroot")
    parser.add_argument("--trace", help="compare this trace instead of recording one; --told holds what was told")
    parser.add_argument("--told")
    parser.add_argument("--as", dest="recorded_as", help="the program's path in that trace")
    parser.add_argument("--keep", help="a folder for the traces and what was told")
    parser.add_argument("name", nargs="?")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.head:
        return print_head()
    sysroot = ["--sysroot", options.sysroot] if options.sysroot else []
    results = []
    if options.trace:
        results = [compare(options.trace, pathlib.Path(options.told).read_text(), options.recorded_as, *sysroot)]
        return report(options.name, results)
    if not options.command:
        parser.error("no command")
    with tempfile.TemporaryDirectory() as scratch:
        for program in options.program or PROGRAMS:
            trace = os.path.join(options.keep or scratch, "%s-%s.bin" % (options.name, program.stem))
            told = record(options.command, program, options.seconds, options.hz, trace)
            if options.keep:
                pathlib.Path(trace).with_suffix(".json").write_text(told)
            results.append(compare(trace, told, program, *sysroot))
    return report(options.name, results)


if __name__ == "__main__":
    sys.exit(main())
