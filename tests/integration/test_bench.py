# SPDX-License-Identifier: Apache-2.0
"""The benchmark's judge: what it reads of each recorder's file, and that it tells right stacks from wrong ones."""
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import judge  # noqa: E402
import work  # noqa: E402

HEAD = ["<module>", "main"]


@pytest.mark.parametrize("workload, chain, right", [
    ("recursion", ["recursion", *["recurse"] * 21, "burn"], True),
    ("recursion", ["recursion", *["recurse"] * 3], True),
    ("recursion", ["recursion", *["recurse"] * 22], False),
    ("recursion", ["burn"], False),
    ("mixed", judge.MIXED, True),
    ("mixed", judge.MIXED[:-1], True),
    ("mixed", judge.MIXED[:4] + judge.MIXED[6:], False),
    ("towers", ["towers", "left", "left", "burn"], False),
    ("towers", ["towers", *["left"] * 20, "burn"], True),
    ("towers", ["towers", "left", "right"], False),
    ("towers", ["towers", *["right"] * 21], False),
    ("json", ["json_round", "loads", "decode", "raw_decode"], True),
    ("json", ["json_round", "loads", "burn"], False),
    ("sort", ["sort_callbacks", "sort_key"], True),
    ("zlib", ["zlib_blocks", "zlib_blocks"], False),
])
def test_chain(workload, chain, right):
    found = judge.judge(workload, [(3, HEAD + chain, ["main", "f"]), (1, HEAD, ["_start"])])
    assert found == {"samples": 4, "python_complete": 1, "python_right": 1 if right else 0.25, "native_complete": 0.25}


def test_threads():
    whole = ["_bootstrap", "_bootstrap_inner", "run", "run", *["recurse"] * 6, "burn"]
    stacks = [(1, [], ["clone3"]), (1, whole, ["clone"]), (1, ["run"], ["f"])]
    assert judge.judge("threads64", stacks) == {"samples": 3, "python_complete": 0.5, "python_right": 0.5,
                                                "native_complete": 2 / 3}


def test_every_workload_has_its_chains():
    assert set(work.WORK) == set(judge.CHAINS)


def test_perf_script():
    text = """python3 7/7 [001] 12.5:  1 cpu-clock:
\t  1a f+0x2 (/x)
\t   0 py::Thread.run:/a.py:3 (/x)
\t  1b main+0x1 (/x)

python3 7/8 [001] 13.0:  1 cpu-clock:
\t  1c _start+0x21 (/x)
"""
    assert list(judge.perf_script(text.splitlines(keepends=True))) == [(12.5, ["run"], ["main", "f"]), (13.0, [], ["_start"])]


def test_pyspy(tmp_path):
    path = tmp_path / "raw"
    path.write_text("<module> (work.py:9);main (work.py:8);0x12 (libc.so.6);mixed (work.py:7) 5\n"
                    "<module> (work.py:9);main (work.py:8) 2\n")
    assert list(judge.read_pyspy(path)) == [(5, ["<module>", "main", "mixed"], None)]


def test_collapsed():
    text = "tid:1;work.py:<module>:9;work.py:main:8;work.py:mixed:7;~:<GC>:0 5\n"
    assert list(judge.read_collapsed(text)) == [(5, ["<module>", "main", "mixed"], None)]


def test_mojo(tmp_path):
    def frame(key, scope):
        return bytes([3, key, 1, scope, 9, 9, 1, 2])

    def stack(*keys):
        return b"\x02\x96\xbe\x02\0" + b"4f96\0" + b"".join(bytes([5, key]) for key in keys) + bytes([9, 20])
    names = [b"work.py", b"<module>", b"main", b"mixed"]
    path = tmp_path / "mojo"
    path.write_bytes(b"MOJ\x03\x01mode\0wall\0" +
                     b"".join(bytes([11, 1 + i]) + name + b"\0" for i, name in enumerate(names)) +
                     frame(10, 2) + frame(11, 3) + frame(12, 4) + stack(10, 11, 12) + stack(10, 11))
    assert list(judge.read_mojo(path)) == [(1, ["<module>", "main", "mixed"], None)]
