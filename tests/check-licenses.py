#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the SPDX line of a file is not the license that LICENSE and docs/debian/copyright give the file, or is missing.

Both have patterns of files in an order; the last that matches holds. A * stands for any characters, also for a slash.

usage: check-licenses.py [TOP]
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

# Files that cannot have a comment, or are not the project's own words: data and what tests compare with, texts for readers, and
# files of a form that Debian or a browser prescribes.
WITHOUT = ("testdata/*", "*.md", "*.json", "*.svg", "CHANGES", "LICENSE*", ".gitignore", ".clang-format", "tests/releases", "*.log",
           "docs/debian/control", "docs/debian/copyright", "docs/debian/changelog", "docs/debian/not-installed", "docs/debian/*.install",
           "docs/debian/source/*", "docs/debian/tests/control", "formats/emit/html/page.html")
HEAD_LINES = 3


def from_license(text):
    """(pattern, license) of each line of LICENSE's list."""
    return re.findall(r"^ {2}(\S+) +((?:Apache|GPL)-\S+(?: OR \S+)*)$", text, re.M)


def from_copyright(text):
    """The same of docs/debian/copyright, whose names of licenses are in Debian's spelling."""
    rules = []
    for paragraph in re.split(r"\n{2,}", text):
        fields = dict(re.findall(r"^([A-Z][\w-]*):((?:.*)(?:\n[ \t].*)*)", paragraph, re.M))
        if "Files" in fields:
            rules += [(pattern, fields.get("License", "").strip().replace(" or ", " OR ")) for pattern in fields["Files"].split()]
    return rules


def license_of(path, rules):
    return next((name for pattern, name in reversed(rules) if fnmatch.fnmatchcase(path, pattern)), "no license")


def spdx(path):
    """What a file's first lines say; None: nothing."""
    with path.open("rb") as file:
        head = b"".join(file.readline(4096) for _ in range(HEAD_LINES)).decode(errors="replace")
    found = re.search(r"SPDX-License-Identifier: ([\w.+-]+(?: (?:OR|AND|WITH) [\w.+-]+)*)", head)
    return found and found[1]


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else pathlib.Path(__file__).parent.parent).resolve()
    listed = subprocess.run(["git", "-C", top, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode:
        # A source package has no list; it has nothing else, once it is clean.
        paths = sorted(str(path.relative_to(top)) for path in top.rglob("*")
                       if path.is_file() and path.relative_to(top).parts[0] not in ("build", "debian"))
    else:
        paths = [path for path in listed.stdout.split("\0") if path and (top / path).is_file()]
    lists = {"LICENSE": from_license((top / "LICENSE").read_text()),
             "docs/debian/copyright": from_copyright((top / "docs/debian/copyright").read_text())}
    wrong = 0

    def report(message):
        nonlocal wrong
        print(message, file=sys.stderr)
        wrong += 1

    for name, rules in lists.items():
        for pattern, _ in rules:
            if not any(fnmatch.fnmatchcase(path, pattern) for path in paths):
                report(f"{name}: no file is called {pattern}")
    for path in paths:
        own = spdx(top / path)
        if not own and not any(fnmatch.fnmatchcase(path, pattern) for pattern in WITHOUT):
            report(f"{path}: no SPDX line")
            continue
        said = {name: license_of(path, rules) for name, rules in lists.items()}
        for name, license_name in said.items():
            if own and license_name != own:
                report(f"{path}: its SPDX line says {own}, {name} says {license_name}")
        if not own and len(set(said.values())) > 1:
            report(f"{path}: " + ", ".join(f"{name} says {license_name}" for name, license_name in said.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
