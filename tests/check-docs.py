#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a document links to or names a file that is not there, or shows a command that the programs do not understand.

Looks at README.md, docs/, the manual pages' examples and tests/README.md. Of links those into this repository are followed, with their headings. Of
commands the options are compared with the programs' --help: those of pycap and pysym in lines of code, up to a pipe, a
comment or the command that pycap is to run.

usage: check-docs.py PYCAP PYSYM [TOP]
"""
import pathlib
import re
import subprocess
import sys

OWN_OPTIONS = ("diff", "baseline", "push")  # the commands of pysym that have a --help of their own


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them. The second heading of a name gets -1."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        number = 0
        while name + (f"-{number}" if number else "") in found:
            number += 1
        found.add(name + (f"-{number}" if number else ""))
    return found


def wrong_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        if not there.exists():
            yield f"there is no {target}"
        elif anchor and anchor not in anchors(there.read_text()):
            yield f"there is no heading for {target}"


def wrong_files(top, text):
    """Files of the sources that are named in backquotes, from the top."""
    folders = r"(?:bpf|capture|docs|formats|symbolize|testdata|tests)/"
    named = {"docs/" + path for path in re.findall(r"_/usr/share/doc/pycap/([\w/.-]+)_", text)}  # where make install puts them
    for path in sorted(named | set(re.findall(rf"`({folders}[\w/.-]+\.(?:[ch]|def|py|sh|md|scd|bash|service))`", text))):
        if not (top / path).exists():
            yield f"there is no file {path}"


def options_of(program, *command):
    done = subprocess.run([program, *command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", done.stdout))


def commands(text):
    """(program, words) of each command line of a page: in blocks of code, lines that end in a backslash being joined."""
    for block in re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"\s*(?:[#$] |- run: )?(?:sudo )?(?:\S*/)?(pycap|pysym) (?! )(.*)", line)
            if found:
                yield found[1], re.split(r" -- | *\| | *# | *[<>]| *\|\| | && ", found[2])[0].split()


def wrong_commands(text, known):
    for program, words in commands(text):
        verb = words[0] if words and (program == "pycap" or words[0] in OWN_OPTIONS) else ""
        if (program, verb) not in known:
            yield f"{program} has no command '{verb}'"
            continue
        for word in words:
            option = re.match(r"--?[A-Za-z][\w-]*", word)
            if option and option[0] not in known[program, verb]:
                yield f"{f'{program} {verb}'.strip()} has no option {option[0]}"


def missing_rows(top):
    """Fuzz targets that the table of benchmarks-tables.md lacks."""
    rows = re.findall(r"^\| (fuzz_\w+) \|", (top / "docs/benchmarks-tables.md").read_text(), re.M)
    return sorted({source.stem for source in (top / "tests/fuzz").glob("fuzz_*.c")} - set(rows))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    pycap, pysym = sys.argv[1:3]
    top = pathlib.Path(sys.argv[3] if len(sys.argv) == 4 else pathlib.Path(__file__).parent.parent).resolve()
    known = {("pysym", ""): options_of(pysym)}
    for verb in OWN_OPTIONS:
        known["pysym", verb] = options_of(pysym, verb)
    for verb in ("record", "top", "dump", "archive", "info"):
        known["pycap", verb] = options_of(pycap, verb)
    pages = [top / "README.md", top / "tests/README.md", *sorted((top / "docs").rglob("*.md")), *sorted((top / "docs").glob("*.scd"))]
    wrong, links = 0, 0
    for target in missing_rows(top) if (top / "tests/fuzz").exists() else []:
        print(f"docs/benchmarks-tables.md: no row of {target}", file=sys.stderr)
        wrong += 1
    for page in pages:
        text = page.read_text()
        links += text.count("](")
        for what in (*wrong_links(page, text), *wrong_files(top, text), *wrong_commands(text, known)):
            print(f"{page.relative_to(top)}: {what}", file=sys.stderr)
            wrong += 1
    if links < 10 or sum(1 for page in pages for _ in commands(page.read_text())) < 10:
        sys.exit("check-docs.py: hardly any links or commands were found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
