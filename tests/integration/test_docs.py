# SPDX-License-Identifier: Apache-2.0
"""tests/check-docs.py finds what a document has wrong."""
import re
import shutil
import subprocess
import sys

import pytest

from conftest import PYCAP, PYSYM, ROOT

pytestmark = pytest.mark.unsanitized


@pytest.mark.parametrize("text, message", [
    ("[a](gone.md)", "there is no gone.md"),
    ("[a](docs/page.md#nothing)", "there is no heading for docs/page.md#nothing"),
    ("`docs/page.md` `Lib/gone.py` `docs/gone.h` `gone.c`", "there is no file docs/gone.h"),
    ("_/usr/share/doc/pycap/page.md_ _/usr/share/doc/pycap/gone.md_", "there is no file docs/gone.md"),
    ("```\nsudo build/pycap record --no-such 3 -- true --fine\n```", "pycap record has no option --no-such"),
    ("```\npysym t.bin -Q | sort -u\n```", "pysym has no option -Q"),
    ("```\npycap watch\n```", "pycap has no command 'watch'"),
    ("[a](docs/page.md#the-first-word) `[a](b)`\n```\n[c](d)\npycap      py-spy\npycap record -o t.bin \\\n    -d 3 | wc -Z\n```", None),
])
def test_check_of_documents(tmp_path, text, message):
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/README.md").write_text("# Tests\n")
    (tmp_path / "docs/page.md").write_text("# The first *word*\n" + "[a](https://example.org)\n" * 10 + "```\npycap info\n```\n" * 10)
    (tmp_path / "README.md").write_text(text + "\n")
    if not message:
        (tmp_path / "docs/benchmarks-tables.md").write_text("| target | s |\n|---|--:|\n| fuzz_a | 20 |\n")
        (tmp_path / "tests/fuzz").mkdir()
        (tmp_path / "tests/fuzz/fuzz_a.c").touch()
    done = subprocess.run([sys.executable, ROOT / "tests/check-docs.py", PYCAP, PYSYM, tmp_path], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == (1 if message else 0), done.stderr
    assert done.stderr == (f"README.md: {message}\n" if message else "")
    if not message:
        (tmp_path / "tests/fuzz/fuzz_b.c").touch()
        done = subprocess.run(done.args, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (1, "docs/benchmarks-tables.md: no row of fuzz_b\n")


def test_commands_for_other_tools(pysym, tmp_path):
    """Every command of pysym in the first table of docs/formats.md writes something."""
    page = (ROOT / "docs/formats.md").read_text()
    table = page[page.index("\n|"):page.index("\n\n", page.index("\n|"))]
    commands = sorted(set(re.findall(r"`pysym (trace\.bin [^`|\\]*)", table)))
    assert len(commands) > 6
    shutil.copy(ROOT / "testdata/demo/demo.trace", tmp_path / "trace.bin")
    for command in commands:
        done = pysym(*command.split(), cwd=tmp_path, text=False)
        assert done.returncode == 0, (command, done.stderr)
        assert bool(done.stdout) != ("-o" in command.split()), command
