# SPDX-License-Identifier: Apache-2.0
"""The benchmark reads each recorder's file rightly, and tells right stacks from wrong ones."""
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
import beside  # noqa: E402
import claims  # noqa: E402
import judge  # noqa: E402
import turns  # noqa: E402
import work  # noqa: E402

HEAD = ["<module>", "main"]


@pytest.mark.parametrize("workload, chain, right", [
    ("recursion", ["recursion", *["recurse"] * 21, "burn"], True),
    ("recursion", ["recursion", *["recurse"] * 3], True),
    ("recursion", ["recursion", *["recurse"] * 22], False),
    ("recursion", ["burn"], False),
    ("mixed", judge.MIXED, True),
    ("mixed", judge.MIXED[:-1], True),
    ("mixed", ["<listcomp>", "timed", *judge.MIXED], True),
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


def window(bpf_ns, recorder_s, samples, work_s=0.03):
    return {"bpf_ns": bpf_ns, "recorder_s": recorder_s, "samples": samples, "work_s": work_s}


def test_turns_are_compared_pair_by_pair(capsys, tmp_path):
    # The second half of the pairs is on a machine that has become five times slower: each ratio is 0.5 all the same.
    pairs = [{"old": window(8e6 * slow, 4e-3 * slow, 1000), "new": window(4e6 * slow, 2e-3 * slow, 1000)}
             for slow in (1, 1, 5, 5, 5)]
    pairs.append({"old": window(0, 0, 0), "new": window(4e6, 2e-3, 1000)})
    key = {"workload": "mixed", "python": "python3", "hz": 999, "record": "", "beside": 0}
    for half in pairs[:2], pairs[2:]:
        turns.append(tmp_path / "pairs", key, half)
    turns.print_file(tmp_path / "pairs")
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "mixed, python3, 999 Hz: 5 pairs, 5000 and 5000 samples"
    assert rows[4:7] == [
        "| BPF, µs/sample | 40.00 (8.00…40.00) | 20.00 (4.00…20.00) | 0.500 (0.500…0.500) | -50.0 % |",
        "| user space, µs/sample | 20.00 (4.00…20.00) | 10.00 (2.00…10.00) | 0.500 (0.500…0.500) | -50.0 % |",
        "| both, µs/sample | 60.00 (12.00…60.00) | 30.00 (6.00…30.00) | 0.500 (0.500…0.500) | -50.0 % |"]


def test_short_rows_of_turns(capsys, tmp_path):
    pairs = [{"old": window(8e6 * slow, 4e-3 * slow, 1000), "new": window(4e6 * slow, 1e-3 * slow, 1000)} for slow in (1, 1, 5)]
    turns.append(tmp_path / "pairs", {"workload": "mixed", "python": "python3", "hz": 99, "record": "", "beside": 0}, pairs)
    turns.print_file(tmp_path / "pairs", short=True)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| mixed, python3 | 99 | 3 | 8.00 | 4.00 | 0.500 (0.500…0.500) | 4.00 | 1.00 | 0.250 (0.250…0.250) "
        "| 12.00 | 5.00 | 0.417 (0.417…0.417) |"]


def test_pages_are_filled_with_what_was_measured(tmp_path):
    row = "| mixed | {} | {} | 300 | 99.9 | {} (+1.0…+3.0) | +2.3 | 31.12 | 16.1 | {} | {} | 100.00 | 100.00 | 100.00 | 24 |\n"
    head = "| workload | recorder | Hz |\n|---|---|" + "--:|" * 13 + "\n"
    (tmp_path / "recording-pycap.md").write_text("Linux\n\n" + head + row.format("pycap", 99, "+2.1", "0.56", 35) +
                                                 row.format("pycap", 999, "+2.0", "2.44", 9) + "\nA median stack\n")
    (tmp_path / "recording-peers.md").write_text(head + row.format("py-spy", 99, "+5.0", "6.5", 9) + row.format("py-spy", 999, "+62.5", "47.8", 9))
    (tmp_path / "beside-3.11.md").write_text("Load\n\n| a | b |\n|---|--:|\n| /usr/bin/python3 | 2 |\n")
    (tmp_path / "beside-3.13.md").write_text("| a | b |\n|---|--:|\n| /x/.pyenv/versions/3.13.0/bin/python3 | 4 |\n")
    tables = claims.tables_of(tmp_path)
    page = "x\n<!-- measured: host -->\nold\n<!-- end -->\ny\n<!-- measured: day -->\nolder\n<!-- end -->\n"
    assert claims.fill(page, tables).splitlines()[4:] == [
        "| pycap | Python, native, kernel | 0.56 | 2.44 | +2.0 % | 9 |", "| py-spy | Python | 6.5 | 47.8 | +62.5 % | counts only |",
        "<!-- end -->", "y", "<!-- measured: day -->", "older", "<!-- end -->"]
    page = "<!-- measured: beside -->\n<!-- end -->"
    assert claims.fill(page, tables).splitlines()[1:-1] == ["| a | b |", "|---|--:|", "| Debian's 3.11 | 2 |", "| 3.13.0 | 4 |"]
    assert tables["recording"].count("| workload |") == 1 and tables["recording"].count("| mixed |") == 4


@pytest.mark.parametrize("page", claims.PAGES)
def test_each_mark_of_a_page_is_filled(page):
    names = re.findall(r"^<!-- measured: (\w+) -->$", (ROOT / page).read_text(), re.M)
    assert names and set(names) <= {"turns", "beside", "stages", "start", "day", "recording", "host"}


def test_a_peer_is_compared_with_pycap_of_its_round(capsys):
    def run(us, share, **taken):
        return {"bpf": us * 500, "cpu": us * 5e-7, "samples": 1000, "python_right": share, "wall": 0.01,
                "work": {"start": 5, "end": 6}, **taken}
    # The second round runs on a machine half as fast, the third measures what is taken in all, and the fourth lacks the peer.
    rounds = [{"pycap": run(10, 1), "austin": run(60, 0.9)}, {"pycap": run(20, 1), "austin": run(120, 1)},
              {"pycap": run(2, 1, taken=0.006), "austin": run(1, 1, taken=0.063)}, {"pycap": run(10, 1), "perf -g": run(0, None)}]
    assert beside.ratios_of(rounds, "austin", beside.sample_us) == pytest.approx([6, 6])
    # 6 µs of the first CPU, 1 of BPF, and 14 of the tick.
    beside.print_rows("3.13", 999, rounds, {999: 14000})
    assert capsys.readouterr().out.splitlines() == [
        "| 3.13 | pycap | Python, native, kernel | 999 | 1000 | 10.0 (10.0…15.0) | – | 21.0 | – | +1.0 | 100.00 |",
        "| 3.13 | austin | Python | 999 | 1000 | 90.0 (75.0…105.0) | 6.0 (6.0…6.0) | 63.0 | 3.0 | +1.0 | 90.00 |",
        "| 3.13 | perf -g | native, kernel | 999 | 1000 | – | – | – | – | +1.0 | – |"]
