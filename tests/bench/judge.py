# SPDX-License-Identifier: Apache-2.0
"""Reads what the recorders wrote, and says how many stacks are complete and how many are right.

A stack is (samples, Python functions from the root on or None, native functions from the root on or None). The workload
knows which chains of Python functions it can have: a stack is right when it is one of them, or the outer part of one,
since calls are on their way in and out. It is complete when it begins at the root: at <module>, or at a thread's first
Python function; a native one at _start or clone.
"""
import re
import statistics
import subprocess

NATIVE_ROOTS = {"_start", "clone", "clone3", "__clone", "__clone3"}
PYTHON_ROOTS = {"<module>", "_bootstrap"}
# Functions of the interpreter that are no part of the chain, as samplers call them.
MARKS = {"<GC>", "<native>", "<shim>", "<interpreter trampoline>"}
MIXED = ["mixed", "step", "by_sorted", "step", "by_map", "step", "plainly", "step", "by_reduce", "reduced", "step",
         "by_min", "step", "by_map", "step", "leaf", "leaf_burn", "burn"]
RECURSE = ["recurse"] * 21 + ["burn"]


def outer_parts(*names):
    """A pattern for these functions, or any number of the first of them."""
    pattern = ""
    for name in reversed(names):
        pattern = f"(;{re.escape(name)}{pattern})?"
    return pattern


JSON = "(;(dumps|loads|encode|decode|raw_decode|scan_once|default|__init__|(_?iterencode|floatstr|_make_iterencode)" \
       "(_list|_dict)?))*"
# Below <module> and main, and those of other threads.
CHAINS = {workload: "<module>;main(;<listcomp>)?(;timed)?" + chain for workload, chain in {
    "recursion": outer_parts("recursion", *RECURSE),
    "json": "(;json_round" + JSON + ")?",
    "sort": outer_parts("sort_callbacks", "sort_key"),
    "zlib": outer_parts("zlib_blocks"),
    "threads64": "(;threads64.*)?|" + "_bootstrap(;_bootstrap_inner(;run(;run" + outer_parts(*RECURSE[15:]) +
                 ")?|;[^;]+)*)?",
    "mixed": outer_parts(*MIXED),
    "towers": "(;towers(" + outer_parts(*["left"] * 20, "burn") + "|" + outer_parts(*["right"] * 20, "burn") + "))?",
}.items()}


def plain(name):
    """Of a qualified name the last part: not every sampler has more."""
    return name.rsplit(".", 1)[-1]


def text_of(command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


def samples_of(command):
    """Of all events, as a summary has them."""
    events = text_of(command).split("\nEvents\n", 1)[1].split("\n\n", 1)[0]
    return sum(int(n.replace(",", "")) for n in re.findall(r"^  \S+ +([\d,]+) samples", events, re.M))


def lines_of(command):
    """One at a time: what this script holds in memory, the kernel counts as held by the commands that it starts."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace") as process:
        yield from process.stdout


def blocks(lines):
    block = []
    for line in lines:
        line = line.rstrip("\n")
        if line:
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def perf_script(lines):
    """Time-stamped samples in the form of `perf script`, innermost frame first."""
    for head, *frames in blocks(lines):
        stamp = re.search(r"\s(\d+\.\d+):\s", head)
        if not stamp:
            continue
        python, native = [], []
        for frame in reversed(frames):
            words = frame.split(None, 1)
            if len(words) < 2:
                continue
            if words[1].startswith("py::"):
                python.append(plain(words[1][4:].split(":", 1)[0].split(" (")[0]))
            else:
                native.append(words[1].split(" (")[0].split("+0x")[0])
        yield float(stamp[1]), python, native


def read_pycap(path, pysym, window):
    for time, python, native in perf_script(lines_of([pysym, path, "--format", "perf-script", "--interpreter", "calls"])):
        if window[0] <= time <= window[1]:
            yield 1, python, native


def depths(path, pysym, window):
    """Python and native frames of the median stack, the interpreter's own included."""
    lines = lines_of([pysym, path, "--format", "perf-script", "--show-interpreter"])
    sizes = [(len(python), sum(not name.endswith("_[k]") for name in native))
             for time, python, native in perf_script(lines) if window[0] <= time <= window[1]]
    return [statistics.median(column) for column in zip(*sizes)] if sizes else (0, 0)


def read_perf(path, window):
    lines = lines_of(["perf", "script", "--no-inline", "-F", "comm,tid,time,event,ip,sym,dso", "-i", path])
    for time, _, native in perf_script(lines):
        if window[0] <= time <= window[1]:
            yield 1, None, native


def waits(python):
    """Not at work: between two orders, or warming up."""
    return python[-1:] == ["main"] or "read_zeros" in python or python[2:3] in (["dumps"], ["decode"], ["readline"])


def in_work(stacks):
    """Of a recorder that keeps no times."""
    return ((count, python, None) for count, python in stacks if python and not waits(python))


def folded(text, name_of):
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            names = [name_of(frame) for frame in stack.split(";")]
            yield int(count), [plain(name) for name in names if name and name not in MARKS]


def read_pyspy(path):
    def name_of(frame):
        found = re.fullmatch(r"(.*) \([^()]*:\d+\)", frame)
        return found[1] if found and re.search(r"\.py:\d+\)$|<frozen", frame) else None
    with open(path, encoding="utf-8", errors="replace") as text:
        return in_work(list(folded(text.read(), name_of)))


def read_collapsed(text):
    """Python's own sampler: FILE:FUNCTION:LINE."""
    def name_of(frame):
        words = frame.rsplit(":", 2)
        return words[1] if len(words) == 3 else None
    return in_work(folded(text, name_of))


def read_mojo(path):
    """Austin's binary format: https://github.com/P403n1x87/austin/wiki/The-MOJO-file-format."""
    with open(path, "rb") as file:
        data = file.read()
    at = 3

    def number():
        nonlocal at
        byte = data[at]
        at += 1
        value, shift = byte & 0x3f, 6
        while byte & 0x80:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
        return value

    def text():
        nonlocal at
        end = data.index(0, at)
        value, at = data[at:end].decode(errors="replace"), end + 1
        return value

    version, strings, frames, stacks = number(), {}, {}, []
    stack = None
    while at < len(data):
        event = data[at]
        at += 1
        if event == 1:  # metadata
            text(), text()
        elif event == 2:  # a stack begins
            number()
            if version >= 3:
                number()
            text()
            stack = []
        elif event == 3:  # a frame is defined: key, file, function, line, and three more from version 2 on
            key, _, scope, _ = number(), number(), number(), number()
            if version >= 2:
                number(), number(), number()
            frames[key] = scope
        elif event == 4:
            stack.append("[invalid]")
        elif event == 5:
            stack.append(frames.get(number()))
        elif event == 6:
            text()
        elif event in (7, 8):
            pass
        elif event == 9:
            number()
            stacks.append(stack)
        elif event == 10:
            number()
        elif event == 11:
            key = number()
            strings[key] = text()
        elif event == 12:
            number()
        else:
            raise ValueError(f"{path}: event {event} at {at} is not known")
    return in_work((1, [plain(strings.get(name, str(name))) for name in stack]) for stack in stacks if stack)


def judge(workload, stacks):
    """Shares of the samples; None where the recorder has no such frames."""
    fits = re.compile(CHAINS[workload])
    samples = with_python = with_native = rooted = right = native_rooted = 0
    for count, python, native in stacks:
        samples += count
        # A new thread is in C before it is in Python. The first thread has Python frames at any time.
        if python is not None and (python or workload != "threads64"):
            with_python += count
            rooted += count * (bool(python) and python[0] in PYTHON_ROOTS)
            right += count * bool(fits.fullmatch(";".join(python)))
        if native is not None:
            with_native += count
            native_rooted += count * (bool(native) and native[0] in NATIVE_ROOTS)
    return {"samples": samples,
            "python_complete": rooted / with_python if with_python else None,
            "python_right": right / with_python if with_python else None,
            "native_complete": native_rooted / with_native if with_native else None}
