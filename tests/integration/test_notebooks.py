# SPDX-License-Identifier: Apache-2.0
"""Cells of notebooks are known as cells, and their source is found in the notebook.

tests/real/names.py records real kernels; here a program compiles cells as ipykernel does, under the same names.
"""
import json
import textwrap

import pytest

from pysym_output import good

# What ipykernel's compiler.py makes of these texts: murmur2_x86(text, 0xC70F6907).
CELLS = {"\n\ndef busy(seconds):\n    end = time.time() + seconds\n    while time.time() < end:\n        sum(range(1000))\n": 931960190,
         "busy(1.0)": 635213898}
KERNEL = textwrap.dedent("""
    import json, os, sys, time
    for text, number in json.load(open(sys.argv[1])).items():
        # IPython takes lines away that are empty and stand first.
        exec(compile(text.lstrip("\\n"), "/tmp/ipykernel_%d/%d.py" % (os.getpid(), number), "exec"))
""")


@pytest.fixture
def recorded(needs_bpf, pycap, python, tmp_path):
    (tmp_path / "cells.json").write_text(json.dumps(CELLS))
    (tmp_path / "kernel.py").write_text(KERNEL)
    trace = tmp_path / "t.bin"
    done = pycap("record", "-F", "199", "-o", trace, "--", python.path, tmp_path / "kernel.py", tmp_path / "cells.json")
    assert done.returncode == 0, done.stderr
    return trace


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Work"]}] +
                                [{"cell_type": "code", "source": text.splitlines(True)} for text in CELLS]}))
    return path


def test_cells(recorded, notebook, pysym):
    defined, called = (f"cell {number:08x} of ipykernel" for number in CELLS.values())
    folded = good(pysym(recorded, "-f", "folded"))
    assert "/ipykernel_" not in folded and f"<module> ({called}:1);busy ({defined}:" in folded

    sections = {s["file"]: s for s in json.loads(good(pysym("annotate", recorded, "--source", notebook, "--json")))["events"][0]["sections"]}
    assert sections[defined]["source"] == {"path": f"{notebook}, code cell 1", "match": "same", "reason": ""}
    hottest = max(sections[defined]["lines"], key=lambda line: line["total_weight_ns"])
    assert hottest["line"] in (3, 4), hottest  # `while` or `sum`, of the lines from `def` on
    text = good(pysym("annotate", "busy", recorded, "--source", notebook))
    assert "code cell 1 (the cell that ran, by the hash of its text)" in text
    assert "  1  def busy(seconds):\n" in text and "  4          sum(range(1000))\n" in text


def test_what_is_said_without_it(recorded, notebook, pysym):
    assert "source: a cell of a notebook: say of which, like --source work.ipynb\n" in good(pysym("annotate", "busy", recorded))
    changed = notebook.with_name("changed.ipynb")
    changed.write_text(notebook.read_text().replace("1000", "1001"))
    text = good(pysym("annotate", "busy", recorded, "--source", changed))
    assert "source: a cell of a notebook, but of none that --source names" in text and "sum(range" not in text
