# SPDX-License-Identifier: Apache-2.0
"""The samples of a perf.data file as its readers tell them, and what differs from pysym's own text.

    expected()     what `pysym -f perf-script` says of a trace: what every reader has to say
    perf_script()  `perf script` over a file, by perf 6.1 or a newer one
    perfparser()   hotspot-perfparser, the part of hotspot that reads perf.data and finds names
    samply_samples()   samply, which makes a profile of it, and serves names for that

All give the same shape, so that differences() compares sample by sample and frame by frame.
"""
import collections
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import urllib.parse
import urllib.request

import pytest

from conftest import CACHE, PYSYM, ROOT, later

# `offset` is in bytes from the start of the symbol, `line` is "FILE:LINE"; both None where the reader does not say.
# `kind`: python, mark, kernel, native, inlined, or code: a symbol of the ELF file beside perf.data that is no function of
# Python's.
Frame = collections.namedtuple("Frame", "kind name offset line binary")
# Frames are innermost first. What a reader leaves out of the head of a sample is None.
Sample = collections.namedtuple("Sample", "comm pid tid cpu time_us period event frames")

UNKNOWN = "[unknown]"
NOT_ASKED = ""  # for the line
COMM_BYTES = 255  # of a thread's name are in perf.data
HEAD = re.compile(r"^(.*?) +(\d+)/(\d+) +\[(\d+)\] +(\d+)\.(\d{6}): +(\d+) +(\S+?):\S* *$")
FRAME = re.compile(r"^\t *[0-9a-f]+ (.*) \((.*)\)$")
OFFSET = re.compile(r"^(.*)\+0x([0-9a-f]+)$", re.S)
# perf's name for where Python's code is said to be: the ELF file beside perf.data.
PYTHON_CODE = "python-code"
# Of the ELF files that stand for binaries, with --native-names.
NATIVE_NAMES = ".d/native/"
# hotspot's parser joins the names of functions to those inlined into them, and says not where they start.
HOTSPOT_NAMES = ("python", "mark", "kernel")
# The table of symbols that stands for the binary of code made at run time.
PERF_MAP = re.compile(r"/tmp/perf-\d+\.map$")


def run(*command, **keywords):
    """SIGPIPE stays ignored: for binaries that are not there perf runs an addr2line that ends at once, and writes to it."""
    keywords = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 300, **keywords}
    done = subprocess.run([str(word) for word in command], check=False, restore_signals=False, **keywords)
    assert done.returncode == 0, (command, done.stderr[-2000:])
    return done


def kind_of(name, binary):
    if name.startswith("py::"):
        return "python"
    if binary == "inlined":
        return "inlined"
    if binary.startswith(("[kernel", "[guest")):
        return "kernel"
    if os.path.basename(binary) == PYTHON_CODE or NATIVE_NAMES in binary:
        return "code"
    if binary == UNKNOWN and name != UNKNOWN:
        return "mark"
    return "native"


def samples_of_text(text):
    """The samples in text of perf's or pysym's. A line that is none of perf's three shapes is an error."""
    samples, frames = [], None
    for line in text.split("\n"):
        if not line:
            frames = None
        elif frames is None:
            head = HEAD.match(line)
            assert head, line
            frames = []
            comm, pid, tid, cpu, seconds, fraction, period, event = head.groups()
            samples.append(Sample(comm, int(pid), int(tid), int(cpu), int(seconds + fraction), int(period), event, frames))
        elif line.startswith("\t"):
            found = FRAME.match(line)
            assert found, line
            name, binary = found.groups()
            offset = OFFSET.match(name)
            if offset:
                name, offset = offset[1], int(offset[2], 16)
            frames.append(Frame(kind_of(name, binary), name, offset, None, binary))
        else:
            assert line.startswith("  ") and frames and frames[-1].line is None, line
            frames[-1] = frames[-1]._replace(line=line.strip())
    return samples


def expected(trace, *options):
    """What perf has to show: threads have their own names, but the first of a process has that of the process."""
    by_process, by_thread = (
        samples_of_text(run(PYSYM, trace, "-f", "perf-script", "--full-filenames", *more, *options).stdout.decode())
        for more in ((), ("--threads",)))
    return [thread._replace(comm=process.comm) if thread.pid == thread.tid else thread
            for process, thread in zip(by_process, by_thread)]


FIELDS = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso"


# A busy host may lose samples while it records, of which perf warns; and it complains of addr2line where a binary is missing.
COMPLAINTS = re.compile(rf"^(Warning:|Processed \d+ samples and lost .*|\w*addr2line\w* (?!\S*{PYTHON_CODE}).*: .*|)\n", re.M)


def perf_script(perf, data, *options, lines=True, max_stack=20000, **keywords):
    """`perf` is the command and options that stand before the subcommand. An error that perf prints is one here."""
    depth = ["--max-stack", max_stack] if max_stack else []
    done = run(*perf, "script", "-i", data, *depth, "--no-inline", "--full-source-path", "-F",
               FIELDS + (",srcline" if lines else ""), *options, **keywords)
    complaints = COMPLAINTS.sub("", done.stderr.decode())
    assert not complaints, complaints
    samples = samples_of_text(done.stdout.decode())
    if not lines:
        for sample in samples:
            sample.frames[:] = [frame._replace(line=NOT_ASKED) for frame in sample.frames]
    return samples


# ---- hotspot ----

class Stream:
    """Values as Qt's QDataStream writes them: big endian, byte arrays with their length before them."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self, layout):
        values = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.get("I")
        if length == 0xffffffff:
            return ""
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8", "surrogateescape")


# Of perfparser's EventType and ErrorCode, as hotspot 1.3 has them.
LOCATION, SYMBOL, STRING, ERROR, SAMPLE = 3, 4, 5, 8, 13
TIME_ORDER_VIOLATION = 1


def perfparser(command, data, cache):
    """`cache` is laid out as perf's build-id cache. Of the kernel's names hotspot has to be told."""
    out = f"{data}.perfparser"
    kernel = [option for text in cache.glob("*kernel.kallsyms*/*/kallsyms") for option in ("--kallsyms", text)]
    run(*command, "--input", data, "--output", out, "--debug", f"{cache}:/usr/lib/debug", *kernel)
    with open(out, "rb") as file:
        content = file.read()
    os.unlink(out)
    assert content.startswith(b"QPERFSTREAM\0"), content[:20]
    at = 16  # the magic, and the version of the stream
    strings, locations, symbols, samples = {-1: ""}, {}, {}, []
    while at < len(content):
        length, = struct.unpack_from("<i", content, at)
        message = Stream(content[at + 4:at + 4 + length])
        at += 4 + length
        kind = message.get("B")
        if kind == STRING:
            number = message.get("i")
            strings[number] = message.text()
        elif kind == LOCATION:
            number, _address, file, _pid, line, _column, caller = message.get("iQiIiii")
            locations[number] = (file, line, caller)
        elif kind == SYMBOL:
            number, name, binary, path, is_kernel = message.get("iiiiB")
            symbols[number] = (name, binary, path, is_kernel)
        elif kind == SAMPLE:
            pid, tid, time_ns, cpu, count = message.get("IIQII")
            samples.append((pid, tid, time_ns, cpu, [message.get("i") for _ in range(count)]))
        assert kind != ERROR or message.get("i") != TIME_ORDER_VIOLATION, message.data

    def frame(number):
        file, line, caller = locations[number]
        # A location without a symbol of its own is that of its function.
        name, binary, path, is_kernel = symbols.get(number) or symbols.get(caller) or (-1, -1, -1, 0)
        name, binary = strings[name] or UNKNOWN, strings[binary]
        kind = kind_of(name, "[kernel]" if is_kernel else strings[path] or binary)
        return Frame(kind, name, None, f"{strings[file]}:{line}" if file >= 0 else None, binary)

    return [Sample(None, pid, tid, cpu, time_ns // 1000, None, None, without_added([frame(number) for number in numbers]))
            for pid, tid, time_ns, cpu, numbers in samples]


def without_added(frames):
    """Below the kernel's frames perfparser puts a frame without a name, in files of `perf record`, too."""
    kernel = sum(frame.kind == "kernel" for frame in frames)
    if kernel and kernel < len(frames) and frames[kernel].name == UNKNOWN and not frames[kernel].binary:
        del frames[kernel]
    return frames


# ---- samply ----

def symbolicated(server, profile):
    """What samply's server says of each (library, address) of a profile: a dictionary with function, file and line."""
    wanted = collections.defaultdict(set)
    for thread in profile["threads"]:
        for address, function in zip(thread["frameTable"]["address"], thread["frameTable"]["func"]):
            resource = thread["funcTable"]["resource"][function]
            if address >= 0 and resource >= 0:
                wanted[thread["resourceTable"]["lib"][resource]].add(address)
    found = {}
    for number, addresses in wanted.items():
        library = profile["libs"][number]
        addresses = sorted(addresses)
        job = {"memoryMap": [[library["debugName"], library["breakpadId"]]], "stacks": [[[0, a] for a in addresses]]}
        request = urllib.request.Request(f"{server}/symbolicate/v5", json.dumps({"jobs": [job]}).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            stack = json.load(answer)["results"][0]["stacks"][0]
        found.update(zip(((number, address) for address in addresses), stack))
    return found


def samples_of_profile(profile, symbols):
    """The samples of a profile of samply's. Times are left out: they count from the first one, in milliseconds."""
    for thread in profile["threads"]:
        frames, stacks, functions = thread["frameTable"], thread["stackTable"], thread["funcTable"]

        def frame(number):
            resource = functions["resource"][frames["func"][number]]
            if resource < 0:
                return None
            library = thread["resourceTable"]["lib"][resource]
            symbol = symbols.get((library, frames["address"][number]), {})
            name, binary = symbol.get("function") or UNKNOWN, profile["libs"][library]["name"]
            return Frame(kind_of(name, profile["libs"][library].get("path") or binary), name, None, f"{symbol['file']}:{symbol['line']}" if symbol.get("line") else None,
                         binary)

        for stack in thread["samples"]["stack"]:
            chain = []
            while stack is not None:
                chain.append(frame(stacks["frame"][stack]))
                stack = stacks["prefix"][stack]
            yield Sample(None, int(float(thread["pid"])), int(float(thread["tid"])), None, None, None, None,
                         [one for one in chain if one])


def samply_samples(samply, data):
    out = f"{data}.samply.json"
    run(samply, "import", data, "--save-only", "-o", out)
    with open(out, encoding="utf-8") as file:
        profile = json.load(file)
    with subprocess.Popen([samply, "load", out, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as server:
        try:
            url = next(m[1] for m in (re.search(r"symbolServer=([^&\s]+)", line) for line in server.stdout) if m)
            return list(samples_of_profile(profile, symbolicated(urllib.parse.unquote(url), profile)))
        finally:
            server.kill()


# ---- what differs ----

# perf-script's readers trip over some characters, so pysym writes others there; perf.data has the true ones.
CLEAN = str.maketrans({"(": "[", ")": "]", ";": ":"})


def clean(text):
    return text.translate(CLEAN).replace("->", "\N{RIGHTWARDS ARROW}")


def is_at(place, short, line):
    """Is FILE or FILE:LINE what a reader says, where SHORT is how the path ends, and a line?"""
    file = re.sub(r":\d+$", "", place)
    if not file.endswith(short):
        return False
    if line == NOT_ASKED:
        return True
    if line is None or line.startswith("??:"):  # so where the line is not known
        return place == file
    # perf ends a path at its first colon, and takes what follows for the line.
    return clean(line) == place or (":" in file and place.startswith(clean(line)))


def python_differs(wanted, got):
    """`wanted` is py::NAME:FILE:LINE. A reader has py::NAME:SHORT. Each part may have colons of its own."""
    name = clean(got.name)
    splits = ((name[:at], name[at + 1:]) for at, letter in enumerate(name) if letter == ":")
    return not any(short and wanted.name.startswith(f"{function}:") and
                   is_at(wanted.name[len(function) + 1:], short, got.line) for function, short in splits)


def native_name(name):
    """Without what only some readers write: the version of the symbol, and the types of a C++ function's arguments."""
    return re.sub(r"@.*|\.(constprop|part|isra|cold)\b.*|\(.*", "", name.replace("(anonymous namespace)", "{anonymous}"))


def binary_name(binary):
    return os.path.basename(binary).strip("[]")


# Labels inside of another function, without a size: perf takes them for functions, pysym does not.
LABELS = {"_dl_start_user"}


def native_differs(wanted, got):
    if got.name == UNKNOWN:
        return wanted.name != UNKNOWN
    if wanted.kind == "kernel" and wanted.offset == 0 and got.offset is None:
        return False  # hotspot takes all starts of functions for one place
    # One place may have several names, of which readers choose others: then it is as far from the start of each. Of a
    # return address, perf.data has the byte before it, which belongs to the call.
    same_place = None not in (wanted.offset, got.offset) and wanted.offset - got.offset in (0, 1)
    return not same_place and native_name(wanted.name) != native_name(got.name) and got.name not in LABELS


def code_differs(wanted, got):
    """
    What has no binary that a reader could open, such as the vDSO, is named by the ELF file beside perf.data; all that is
    native with --native-names.
    """
    if wanted.kind == "mark":
        return clean(got.name) != wanted.name
    made = "jit" if PERF_MAP.match(wanted.binary) else binary_name(wanted.binary)
    name = wanted.name if wanted.name != UNKNOWN else f"[{made}]"
    return wanted.kind not in ("native", "inlined") or native_name(got.name) != native_name(name)


def frame_differs(wanted, got, named):
    """`named`: the kinds of frames that have to have the same name, too; all have to be in the same place."""
    if got.kind == "code":
        return code_differs(wanted, got)
    if got.kind != wanted.kind or (wanted.kind == "native" and binary_name(wanted.binary) != binary_name(got.binary)):
        return True
    if wanted.kind not in named:
        return False
    return python_differs(wanted, got) if wanted.kind == "python" else native_differs(wanted, got)


def without_inlined(wanted, got=()):
    """The frames that readers have to show. Inlined functions are not, but where what they are part of was left out."""
    out = []
    for frame in wanted:
        shown = got[len(out)] if len(out) < len(got) else None
        if frame.kind != "inlined" or (shown and shown.kind == "code" and not code_differs(frame, shown)):
            out.append(frame)
    return out


def is_comm(wanted, got):
    """perf.data has white space in names, but only so much of one."""
    got = re.sub(r"\s", "_", got)
    return got == wanted or (len(got.encode()) > COMM_BYTES - 4 and wanted.startswith(got))


def sample_differences(wanted, got, named):
    """What differs in the head of a sample, and the first frame that does, each as text."""
    for field in ("comm", "pid", "tid", "cpu", "time_us", "event"):
        ours, theirs = getattr(wanted, field), getattr(got, field)
        if theirs is not None and not (is_comm(ours, theirs) if field == "comm" else ours == theirs):
            yield f"{field}: {ours!r}, not {theirs!r}"
    frames = without_inlined(wanted.frames, got.frames)
    for one, other in itertools.zip_longest(frames, got.frames):
        if not one or not other or frame_differs(one, other, named):
            yield f"of {len(frames)} and {len(got.frames)} frames: {one}, not {other}"
            break


KINDS = ("python", "mark", "kernel", "native")


def differences(wanted, got, named=KINDS):
    """What differs between the samples expected and those of a reader, thread by thread: a Counter of texts."""
    found = collections.Counter()
    threads = [collections.defaultdict(list), collections.defaultdict(list)]
    has_events = any(sample.event for sample in got)
    for samples, by_thread in zip((wanted, got), threads):
        for sample in sorted(samples, key=lambda s: s.time_us or 0):
            by_thread[sample.pid, sample.tid, sample.event if has_events else None].append(sample)
    for key in threads[0].keys() | threads[1].keys():
        ours, theirs = threads[0][key], threads[1][key]
        if len(ours) != len(theirs):
            found[f"thread {key}: {len(ours)} samples, not {len(theirs)}"] += 1
        for one, other in zip(ours, theirs):
            found.update(sample_differences(one, other, named))
    return found


def only(samples, kinds):
    """The samples with frames of these kinds alone."""
    return [sample._replace(frames=[frame for frame in sample.frames if frame.kind in kinds]) for sample in samples]


def frames_of(samples, kind="python"):
    return sum(frame.kind == kind for sample in samples for frame in sample.frames)


# ---- files, and what perf adds up ----


class PerfData:
    """A perf.data with its folder beside it."""

    def __init__(self, path, remarks):
        self.path, self.remarks = path, remarks
        self.folder = path.with_name(path.name + ".d")
        self.cache = self.folder / "debug"

    def with_names(self, perf):
        """The command as pysym tells people to type it."""
        return [*perf, "--buildid-dir", self.cache]


def write(trace, folder, *options):
    folder.mkdir(exist_ok=True)
    path = folder / "perf.data"
    done = run(PYSYM, trace, "-f", "perf-data", "-o", path, *options)
    return PerfData(path, done.stderr.decode())


def check(wanted, got, named=KINDS):
    found = differences(wanted, got, named)
    assert not found, "\n".join(f"{count} x {text}" for text, count in found.most_common(5))
    assert frames_of(got) == frames_of(wanted)


def top(trace, *options):
    """Rows of `top`, by event, and the sum of the event."""
    text = run(PYSYM, trace, "-f", "top", "--json", "--top", "0", "--full-filenames", *options).stdout
    return {event["event"]: (event["tables"][0]["rows"], event["tables"][0][f"weight_{event['unit']}"])
            for event in json.loads(text)["events"]}


def report(perf, data, *options):
    """Rows of `perf report`, columns as given by --fields."""
    done = run(*data.with_names(perf), "report", "-i", data.path, "--stdio", "-g", "none", "-t", "\t", *options)
    lines = done.stdout.decode().splitlines()
    return [[column.strip() for column in line.split("\t")] for line in lines if line and not line.startswith("#")]


# ---- where the readers are: each a command, or the reason why there is none ----

def perf():
    found = shutil.which("perf")
    return ([found], None) if found else (None, "no perf: Debian's package linux-perf has it")


def in_root(name, program):
    """A program of a root tree, with the tree's libraries, but on this host's own files."""
    root = CACHE / "roots" / name
    if not (root / ".complete").exists():
        return None, f"no {program.rsplit('/', 1)[-1]} of {name}: tests/perf-readers.sh fetches it"
    libraries = [root / "lib/x86_64-linux-gnu", root / "usr/lib/x86_64-linux-gnu"]
    # By the name that it is run by, perf would look for addr2line in the tree.
    loader = [libraries[0] / "ld-linux-x86-64.so.2", "--argv0", os.path.basename(program)]
    return [*loader, "--library-path", ":".join(map(str, libraries)), root / program], None


def newer_perf():
    """Debian sid's."""
    return in_root("sid-perf", "usr/bin/perf")


def foreign_perf():
    """The same inside its root tree, which has no binary of this host, but its folder of temporary files."""
    root = CACHE / "roots/sid-perf"
    if os.geteuid():
        return None, "only root can enter a root tree"
    return newer_perf() if newer_perf()[1] else (["sh", ROOT / "tests/in-root.sh", root, "perf"], None)


def hotspot():
    return in_root("hotspot", "usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser")


def needed(found):
    command, why = found
    if not command:
        pytest.skip(why)
    return command


@pytest.fixture(name="perf", params=["perf", later("newer")])
def perf_command(request):
    """The command, on this host's own files."""
    return needed(perf() if request.param == "perf" else newer_perf())
