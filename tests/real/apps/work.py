# SPDX-License-Identifier: Apache-2.0
"""What services do, a phase each: parse, render, sign, and a loop in Python. As a program: by turns. usage: work.py [SECONDS]"""
import hashlib
import html
import json
import sys

from clocks import by_turns, phase

TEXT = json.dumps([{"name": f"item <{n}>", "numbers": list(range(n))} for n in range(60)])


@phase
def parse():
    return json.loads(TEXT)


@phase
def render(items=tuple(f"item <{n}>" for n in range(300))):
    return "".join(f"<li>{html.escape(item)}</li>" for item in items)


@phase
def sign(page=b"x" * 4000):
    for _ in range(60):
        page = hashlib.sha256(page).digest()
    return page.hex()


@phase
def count(numbers=3000):
    return sum(n * n % 97 for n in range(numbers))


def answer():
    """A request's work."""
    parse()
    count()
    return sign(render().encode())


def main():
    by_turns([parse, render, sign, count], float(sys.argv[1]) if len(sys.argv) > 1 else 1.5, turns=3)


if __name__ == "__main__":
    main()
