#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Makes a table of what the processes of real services are called: by ps, and in each output of pycap and pysym. Each service of
services.py is started and recorded by its master's pid. Ends with 1 if outputs disagree, if a name is none that an operator
would look for, or if --comm does not find what a name or title belongs to; what is wrong follows the table.

usage: names.py [--keep DIR] [--facts] [SERVICE...]

By root. Services come from PyPI, 8 GB in all; what cannot be had is left out with the reason. A service takes some 15 seconds.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import programs
import services
import venvs
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from profile_store import ProfileStore  # noqa: E402
from screen import Screen  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
SECONDS = "2"
OUTPUTS = ["info", "dump", "summary", "folded", "top", "push"]
# What libraries start besides, which nobody looks for.
HELPERS = r".*resource_tracker.*"

# `args`: of ps; `comm`, `exe`: of /proc; `parent`: its pid.
Facts = collections.namedtuple("Facts", "args comm exe parent")


class Process:
    """What is known of one process: its facts, {output: name}, titles that it had, the most frequent first, outputs that show
    one, and which --comm find it."""

    def __init__(self, facts, titles):
        self.facts, self.names, self.titles, self.title_in, self.found = facts, {}, titles, set(), {}

    @property
    def name(self):
        """The one that most outputs have; "" if none has it."""
        return collections.Counter(self.names.values()).most_common(1)[0][0] if self.names else ""


def is_title(comm, args, exe):
    """Whether a process has given itself this name: execve gives it the name of a file, which the command line has."""
    if re.match(rb"python[\d.]*$|ld-linux", comm) or comm == os.path.basename(exe)[:15]:
        return False
    return args.startswith(comm) or comm not in {os.path.basename(word)[:15] for word in args.split(b"\0")}


class Titles(threading.Thread):
    """Looks again and again what processes call themselves, which some change with each task: {pid: Counter}."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.seen, self.over = pid, collections.defaultdict(collections.Counter), threading.Event()

    def run(self):
        turns = 0
        while not self.over.wait(0.02):
            if turns % 10 == 0:
                pids = programs.family(self.pid)
            turns += 1
            for pid in pids:
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as args, open(f"/proc/{pid}/comm", "rb") as comm:
                        title, started_as = comm.read().removesuffix(b"\n"), args.read()
                    exe = os.readlink(f"/proc/{pid}/exe").encode()
                except OSError:
                    continue
                if is_title(title, started_as, exe):
                    self.seen[pid][title.decode(errors="replace")] += 1

    def of(self, pid):
        return [title for title, _ in self.seen[pid].most_common()]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def run(*command, seconds=60):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=seconds)


def facts_of(pids):
    """{pid: Facts} of those that live."""
    found = {}
    for pid in pids:
        folder = pathlib.Path(f"/proc/{pid}")
        try:
            args = run("ps", "-ww", "-o", "args=", "-p", pid).stdout.strip()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[pid] = Facts(args, (folder / "comm").read_text().removesuffix("\n"), os.readlink(folder / "exe"), parent)
        except (OSError, ValueError):
            continue
    return found


# ---- outputs: each gives {pid: (name, the text in which a title may stand)} ----

def in_info(_):
    """By the columns of the head."""
    found, head = {}, None
    for line in run(PYCAP, "info").stdout.splitlines():
        words = re.split(r"\s{2,}", line.strip())
        if words[0] == "PID":
            head = words
        elif head and re.match(r"\s*\d+\s", line):
            pid, rest = line.split(maxsplit=1)
            found[int(pid)] = re.split(r"\s{2,}", rest)[head.index("NAME") - 1].strip(), line
    return found


def in_dump(made):
    if not made["dump.bin"].exists():
        return {}
    lines = dict(re.findall(r"^Process (\d+) (.*)", run(PYSYM, "-f", "threads", made["dump.bin"]).stdout, re.M))
    told = json.loads(run(PYSYM, "-f", "threads", "--json", made["dump.bin"]).stdout)["processes"]
    return {each["pid"]: (each["process"], lines.get(str(each["pid"]), "")) for each in told}


def in_summary(made):
    text = run(PYSYM, made["plain.bin"], "-f", "summary", "-v").stdout
    table = text.partition("\nProcesses\n")[2].partition("\n\n")[0].splitlines()
    rows = [re.match(r"\s*(\d+) +(\S.*)", row) for row in table[1:]]
    return {int(row[1]): (re.split(r"\s{2,}", row[2])[0], row[2]) for row in rows if row}


def in_folded(made):
    found = {}
    for event in ("cpu-clock", "off-cpu"):
        for line in run(PYSYM, made["wall.bin"], "-f", "folded", "--event", event).stdout.splitlines():
            match = re.match(r"(.*?)-(\d+)(?:/\d+)?;", line)
            if match:
                found[int(match[2])] = match[1], match[1]
    return found


def in_top(made):
    found = {}
    for line in made["top"].splitlines():
        match = re.match(r"(?: *[\d.]+){1,7} +(\S.*) (\d+)(?:  .*)?$", line)
        if match:
            found[int(match[2])] = match[1].strip(), line
    return found


def in_push(made):
    """All names of a process: each would be a series of its own."""
    found = collections.defaultdict(set)
    with ProfileStore("pyroscope") as store:
        run(PYSYM, "push", "--pyroscope", store.url, "--label", "pid={pid}", made["wall.bin"])
        for sent in store.profiles:
            if sent.labels.get("pid", "").isdigit():
                found[int(sent.labels["pid"])].add(sent.labels["service_name"])
    return {pid: (", ".join(sorted(names)),) * 2 for pid, names in found.items()}


def plain_name(name, others, titles):
    """One without its title, such as 'gunicorn "shop: worker"', and as another output has it, where that is cut in the middle."""
    start, cut, end = name.partition("\u2026")
    bare = re.sub(r' "[^"]*"$', "", name)
    for other in others:
        whole = [other, *(f'{other} "{title}"' for title in titles)]
        if cut and any(each.startswith(start) and each.endswith(end) for each in whole):
            return other
    return bare


READERS = {"info": in_info, "dump": in_dump, "summary": in_summary, "folded": in_folded, "top": in_top, "push": in_push}


def watch_top(pid, folder):
    """The processes of `pycap top`, as they stand on a wide terminal after two seconds."""
    screen = Screen(folder, 240, 60)
    try:
        screen.type(f"{PYCAP} top --wall -p {pid}")
        screen.press("Enter")
        screen.wait(r"every 1 s")
        screen.press("p")
        screen.wait(r"processes, ")
        time.sleep(float(SECONDS))
        text = screen.text()
        screen.press("q")
        return text
    finally:
        screen.close()


def record(pid, folder):
    """All recordings of a service, at once where they do not ask the same: {name: path or text}."""
    made = {name: folder / name for name in ("plain.bin", "wall.bin", "dump.bin")}
    common = [PYCAP, "record", "-q", "-d", SECONDS, "-p", str(pid), "-o"]
    running = [subprocess.Popen([*common, made["plain.bin"]]), subprocess.Popen([*common, made["wall.bin"], "--wall"])]
    try:
        made["top"] = watch_top(pid, folder)
        (folder / "top").write_text(made["top"])
    finally:
        for each in running:
            each.wait(60)
    run(PYCAP, "dump", "-p", pid, "-o", made["dump.bin"])
    return made


# ---- --comm ----

def sampled(trace, *options):
    """The processes with samples."""
    done = run(PYSYM, trace, "-f", "ndjson", *options)
    return {json.loads(line)["pid"] for line in done.stdout.splitlines() if '"type":"sample"' in line[:20]}


def recorded(word, folder):
    """The processes that `pycap record --comm` finds on this host, at work or not."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        run(PYCAP, "record", "-q", "--wall", "-d", SECONDS, "--comm", word, "-o", f"{own}/comm.bin")
        return sampled(f"{own}/comm.bin") if os.path.exists(f"{own}/comm.bin") else set()


def find_by_comm(made, processes, folder):
    """Fills each Process.found: {("pysym" or "pycap", "name" or "title"): whether}. Of titles that change one is enough."""
    seen = sampled(made["wall.bin"])
    words = sorted({word for each in processes.values() for word in [each.name, *each.titles] if word})
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        by_pycap = dict(zip(words, pool.map(lambda word: recorded(word, folder), words)))
    by_pysym = {word: sampled(made["wall.bin"], "--comm", "^" + re.sub(r"([][().*+?{}|^$\\])", r"\\\1", word) + "$") for word in words}
    for pid, each in processes.items():
        for kind, own in (("name", [each.name] if each.name else []), ("title", each.titles)):
            if own and pid in seen:
                each.found["pysym", kind] = any(pid in by_pysym[word] for word in own)
            if own and os.path.exists(f"/proc/{pid}"):
                each.found["pycap", kind] = any(pid in by_pycap[word] for word in own)


# ---- the table ----

def cell(text):
    text = text.replace("|", "\\|")
    return f"`{text}`" if text else "-"


def found_cell(found, kind):
    told = [found.get((program, kind)) for program in ("pysym", "pycap")]
    return "-" if told == [None, None] else " / ".join({None: "-", True: "yes", False: "**no**"}[each] for each in told)


def shortened(text, length=64):
    return text if len(text) <= length else text[:length - 24] + "..." + text[-21:]


def rows(processes, master):
    for pid, each in sorted(processes.items(), key=lambda item: (item[0] != master, item[0])):
        args = shortened(re.sub(r"/\S*/real-[\w-]+/bin/", "", each.facts.args).replace(str(programs.APPS) + "/", ""))
        titled = ", ".join(sorted(each.title_in)) or ("**nowhere**" if each.titles else "-")
        yield " | ".join([f"| {pid}", cell(args), *(cell(each.names.get(output, "")) for output in OUTPUTS),
                          found_cell(each.found, "name"), ", ".join(map(cell, each.titles[:2])) or "-", titled, found_cell(each.found, "title")]) + " |"


def faults_of(service, master, processes, page):
    """What is wrong, a line each."""
    for pid, each in sorted(processes.items()):
        of = f"{service}, {pid}"
        if len(set(each.names.values())) > 1:
            yield f"{of}: " + ", ".join(f"{output} says `{name}`" for output, name in each.names.items())
        if not re.fullmatch(services.SERVICES[service].called + "|" + HELPERS, each.name):
            yield f"{of}: an operator does not look for `{each.name}`"
        for (program, kind), found in each.found.items():
            if not found:
                word = each.name if kind == "name" else each.titles[0]
                yield f"{of}: {program} --comm '{word}' does not find it by its {kind}"
        if each.titles and (missing := {"info", "dump", "summary", "top"} & set(each.names) - each.title_in):
            yield f"{of}: the title `{each.titles[0]}` is not shown by {', '.join(sorted(missing))}"
    if "summary" not in processes[master].names:
        yield f"{service}, {master}: the master is not in the summary"
    if not re.search(services.SERVICES[service].called, page):
        yield f"{service}: the first page does not name it: {page}"


def first_page(trace):
    """The line that says which processes it is of."""
    lines = run(PYSYM, trace).stdout.splitlines()
    at = next((i for i, line in enumerate(lines) if re.match(r"[\d,]+ samples? of ", line)), None)
    return lines[at + 1] if at is not None else ""


def settle(process, titled, seconds=20):
    """Until so many of its processes have titles, and none of Python has come or gone for a second and a half."""
    with Titles(process.pid) as titles:
        programs.wait_until(lambda: sum(map(bool, titles.seen.copy().values())) >= titled, process, "titles")
    until, since, found = time.monotonic() + seconds, time.monotonic(), programs.pythons(process.pid)
    while time.monotonic() < min(until, since + 1.5):
        time.sleep(0.1)
        if programs.pythons(process.pid) != found:
            since, found = time.monotonic(), programs.pythons(process.pid)


def processes_of(pid, folder):
    """Records a service; what was made, and {pid: Process} of those that an output has."""
    facts = facts_of(programs.family(pid))
    with Titles(pid) as titles:
        made = record(pid, folder)
        told = {output: read(made) for output, read in READERS.items()}
        facts = {**facts_of(programs.family(pid)), **facts}
    processes = {each: Process(known, titles.of(each)) for each, known in facts.items()}
    for output, names in told.items():
        for each, (name, text) in names.items():
            if each in processes:
                known = processes[each]
                known.names[output] = plain_name(name, known.names.values(), known.titles)
                if any(title in text or title.replace(" ", "_") in text for title in known.titles):
                    known.title_in.add(output)
    return made, {each: known for each, known in processes.items() if known.names or each == pid}


def look_at(service, folder, with_facts):
    """One service; prints its rows, and returns what is wrong with it."""
    with services.running(service) as started:
        settle(started, services.SERVICES[service].titled)
        made, processes = processes_of(started.pid, folder)
        find_by_comm(made, processes, folder)
    page = first_page(made["plain.bin"])
    print(f"\n{service}, first page: `{page}`\n\n" + "\n".join(HEAD + list(rows(processes, started.pid))))
    if with_facts:
        print()
        for pid, each in sorted(processes.items()):
            print(f"    {pid} (of {each.facts.parent}) comm {each.facts.comm!r} exe {each.facts.exe} {each.facts.args[:200]}")
    return list(faults_of(service, started.pid, processes, page))


HEAD = ["| pid | ps | " + " | ".join(OUTPUTS) + " | --comm NAME, pysym / pycap | title | title shown by | --comm TITLE |",
        "|--:|---|" + "---|" * len(OUTPUTS) + "---|---|---|---|"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=pathlib.Path, help="where traces are kept")
    parser.add_argument("--facts", action="store_true", help="also what /proc says of each process")
    parser.add_argument("services", nargs="*")
    arguments = parser.parse_args()
    if set(arguments.services) - set(services.SERVICES):
        parser.error(f"the services are {', '.join(services.SERVICES)}")
    faults = []
    for service in arguments.services or services.SERVICES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (arguments.keep or pathlib.Path(temporary)) / service
            folder.mkdir(parents=True, exist_ok=True)
            try:
                faults += look_at(service, folder, arguments.facts)
            except (venvs.Missing, RuntimeError, subprocess.SubprocessError) as error:
                print(f"\n{service}: not looked at: {error}")
        sys.stdout.flush()
    print("\n".join(["", "Wrong:", "", *(f"- {each}" for each in faults)] if faults else ["", "All agree."]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
