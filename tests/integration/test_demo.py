# SPDX-License-Identifier: Apache-2.0
"""The profile of the demo agrees with the demo's own clock."""
import os
import re
import subprocess

import pytest

import accounts
import chance
from conftest import PYSYM, ROOT

DEMO = ROOT / "testdata/demo"
# Which call under spend() belongs to which place.
PLACES = {"parse_orders": "parse_orders", "score_orders": "score_order", "mix_block": "mix_block",
          "read_zeros": "read_zeros"}


@pytest.fixture(scope="module")
def native_module(tmp_path_factory):
    built = {}

    def build(python):
        if python not in built:
            include = subprocess.run([python.path, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
                                     capture_output=True, text=True, check=True).stdout.strip()
            if not os.path.exists(f"{include}/Python.h"):
                pytest.skip(f"{python.name} has no headers to build an extension with")
            directory = tmp_path_factory.mktemp(python.name)
            subprocess.run([os.environ.get("CC", "cc"), "-O2", "-g", "-shared", "-fPIC", f"-I{include}", "-o",
                            directory / "demo_native.so", DEMO / "demo_native.c"], check=True)
            built[python] = directory
        return built[python]
    return build


def line_span(function):
    """First and last line of a function of demo.py."""
    lines = (DEMO / "demo.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith(f"def {function}("))
    last = next((i for i, line in enumerate(lines[first:], first) if line and not line[0].isspace()), len(lines))
    return first, last


def test_shares_lines_and_order(python, native_module, record, folded, tmp_path, monkeypatch):
    if python.version < (3, 8):
        pytest.skip("the demo is written for 3.8 and later")
    monkeypatch.setenv("PYTHONPATH", str(native_module(python)))
    clock_file = tmp_path / "clock"
    with open(clock_file, "w") as clock:
        trace = record(python.path, DEMO / "demo.py", "2.5", options=("-q", "-F", "999"), capture_output=False, stdout=clock,
                       stderr=subprocess.PIPE)
    clock = {name: float(percent) / 100 for name, percent in map(str.split, clock_file.read_text().splitlines())}

    total, profile, problems = 0, dict.fromkeys(clock, 0), []
    kernel, native, callback = 0, 0, 0
    for frames, count in folded(trace):
        names = [re.sub(r" \(demo\.py:\d+\)$", "", frame) for frame in frames]
        if "spend" not in names:
            continue
        total += count
        below = frames[names.index("spend") + 1:]
        place = next((PLACES[name] for name in names if name in PLACES), None)
        if place is None:
            continue
        profile[place] += count
        for frame in below:
            if match := re.match(r"(\w+) \(demo\.py:(\d+)\)$", frame):
                first, last = line_span(match[1])
                if not first <= int(match[2]) <= last:
                    problems.append(frame)
        kernel += count * (place == "read_zeros" and below[-1].endswith("_[k]"))
        native += count * (place == "mix_block" and any(name.startswith("mix_bytes") for name in names))
        if "score_order" in names:
            between = names[names.index("score_orders"):names.index("score_order")]
            callback += count * any(name.startswith("each") for name in between)

    assert not problems, f"lines outside of their functions: {problems}"
    skipped = accounts.read(PYSYM, trace).skipped
    assert total > 100
    for place, share in clock.items():
        bound = chance.of_share(total, share) / total + 0.01 + skipped  # the clock is read between blocks of work
        assert abs(profile[place] / total - share) < bound, f"{place}: {profile[place]} of {total}, clock says {share:.3f}"
    assert kernel > 0.9 * profile["read_zeros"], "the kernel's functions stand under read_zeros"
    assert native > 0.9 * profile["mix_block"], "mix_bytes stands under mix_block"
    assert callback > 0.9 * profile["score_order"], "the C function stands between its caller and its callback"
