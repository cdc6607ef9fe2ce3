#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints an index of the tests: folder, file, number of tests, seconds of the last run where known, and what it tests.

Tests are functions: one with many parameters counts once. Seconds are those of pytest's reports in BUILDDIR/tests/*.xml,
for each test those of the newest report. What a file tests is its first sentence.

usage: list.py [BUILDDIR]
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

TESTS = pathlib.Path(__file__).resolve().parent
# Which files of a folder, and how a test begins there.
KINDS = [("unit/test_*.c", r"^TEST(?:_WITH)?\("), ("toolchain/test_*.c", r"^TEST(?:_WITH)?\("), ("integration/test_*.py", r"^def test_\w+\("),
         ("page/test_*.js", r"^test\("), ("fuzz/fuzz_*.c", r"^int LLVMFuzzerTestOneInput\([^;]*$")]


def read_seconds(build):
    """By the name of a test file."""
    newest = {}
    for report in sorted((build / "tests").glob("*.xml"), key=lambda path: path.stat().st_mtime):
        for case in ET.parse(report).iter("testcase"):
            newest[case.get("classname", ""), case.get("name")] = float(case.get("time", 0))
    seconds = collections.Counter()
    for (classname, _), time in newest.items():
        seconds[".".join(classname.removesuffix(".c").split(".")[-2:])] += time
    return seconds


def first_sentence(text):
    """Of the first docstring or comment behind the line of the license."""
    text = text.partition("SPDX-License-Identifier")[2].partition("\n")[2]
    found = re.match(r'\s*(?:r?"""(.*?)"""|/\*(.*?)\*/|((?://[^\n]*\n)+))', text, re.S)
    if not found:
        return ""
    words = " ".join(re.sub(r"^\s*(?:\*|//)? ?", "", line) for line in (found[1] or found[2] or found[3]).splitlines())
    return re.match(r".*?(?:[.](?=\s|$)|$)", " ".join(words.split()))[0]


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    seconds = read_seconds(pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else TESTS.parent / "build"))
    for pattern, test in KINDS:
        for path in sorted(TESTS.glob(pattern)):
            text = path.read_text()
            name = f"{path.parent.name}.{path.stem}"
            took = f"{seconds[name]:.1f}" if name in seconds else "-"
            print(f"{path.parent.name:12} {path.name:30} {len(re.findall(test, text, re.M)):4} {took:>7}  {first_sentence(text)}")


if __name__ == "__main__":
    main()
