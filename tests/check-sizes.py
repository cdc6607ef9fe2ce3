#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a function is longer than 60 lines or a file longer than 600, unless EXCEPTIONS names it with a reason; and
when an exception is no longer needed. A function's length is that of its definition, from its first line to its last
brace.

usage: check-sizes.py [TOP]
"""
import pathlib
import re
import sys

FUNCTION_LINES = 60
FILE_LINES = 600
CODE = ("formats", "bpf", "capture", "symbolize")

# "FILE" or "FILE FUNCTION": the reason why it may be longer.
EXCEPTIONS = {
}


def functions(lines):
    """Each function that the file defines, as (its first line's number, its name, its length)."""
    for start, line in enumerate(lines):
        # By the style of this tree a function's body is what stands between "{" and "}" in the first column.
        if line != "{":
            continue
        head = start - 1
        while head > 0 and not re.match(r"[A-Za-z_].*\(", lines[head]):
            head -= 1
        # SEC() and attributes have lines of their own, and belong to it.
        while head > 0 and re.match(r"(SEC\(|__attribute__|[A-Z_]+$)", lines[head - 1]):
            head -= 1
        signature = re.sub(r"SEC\([^)]*\)|__attribute__\(\(.*?\)\)", " ", " ".join(lines[head:start]))
        name = re.search(r"(\w+)\s*\(", signature)
        end = next((at for at in range(start, len(lines)) if lines[at].startswith("}")), None)
        if name and end is not None:
            yield head + 1, name[1], end - head + 1


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    top = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else pathlib.Path(__file__).parent.parent)
    unused, found, seen = set(EXCEPTIONS), [], 0
    for path in sorted(path for folder in CODE for path in (top / folder).rglob("*.[ch]")):
        name, lines = str(path.relative_to(top)), path.read_text().splitlines()
        if len(lines) > FILE_LINES:
            found.append((name, f"{name}: {len(lines)} lines"))
        for line, function, length in functions(lines):
            seen += 1
            if length > FUNCTION_LINES:
                found.append((f"{name} {function}", f"{name}:{line}: {function}() has {length} lines"))
    if seen < 500:
        sys.exit(f"check-sizes.py: only {seen} functions found")
    wrong = [text for key, text in found if key not in EXCEPTIONS]
    wrong += [f"the exception for {key} is not needed any more" for key in sorted(unused - {key for key, _ in found})]
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
