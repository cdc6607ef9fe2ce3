# SPDX-License-Identifier: Apache-2.0
"""formats/cpython/debug_offsets.def equals the headers that it was made from.

Where they are installed.
"""
import glob
import importlib.util
import os
import re
import shutil

import pytest

from conftest import CACHE, ROOT

TOOL = ROOT / "tests/tools/make-debug-offsets.py"
TABLE = ROOT / "formats/cpython/debug_offsets.def"
TABLES = re.findall(r"^DEBUG_TABLE\((\d+), (\d+),", TABLE.read_text(), re.M)


def tool(table=TABLE):
    spec = importlib.util.spec_from_file_location("make_debug_offsets", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DEF = str(table)
    return module


def headers(major, minor):
    """All that are here: Debian's, pyenv's, those in root trees."""
    name = "pycore_runtime.h" if (major, minor) == ("3", "13") else "pycore_debug_offsets.h"
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    path = f"include/python{major}.{minor}/internal/{name}"
    return sorted(found for prefix in ("/usr", "/usr/local", f"{pyenv}/versions/*", f"{CACHE}/roots/*/usr")
                  for found in glob.glob(f"{prefix}/{path}"))


def header_of(major, minor):
    found = headers(major, minor)
    if not found:
        pytest.skip(f"no header of Python {major}.{minor} is installed: tests/interpreters.sh fetches it")
    return found[0]


@pytest.mark.parametrize("version", TABLES, ids=".".join)
def test_table_is_that_of_the_header(version):
    header_of(*version)
    committed = tool().tables_of(TABLE.read_text())[tuple(map(int, version))]
    for header in headers(*version):
        assert tool().table(header) == committed, header


@pytest.mark.parametrize("version", TABLES, ids=".".join)
def test_a_moved_member_is_found(version, tmp_path):
    """A member more, one that changed places, one that was renamed: the table differs, or is refused."""
    text = open(header_of(*version), encoding="utf-8").read()
    header = tmp_path / f"python{version[0]}.{version[1]}/internal/pycore_debug_offsets.h"
    header.parent.mkdir(parents=True)

    def made_of(changed):
        assert changed != text
        header.write_text(changed)
        return tool().table(header)

    header.write_text(text)
    table = tool().table(header)
    grown = made_of(text.replace("        uint64_t native_thread_id;", "        uint64_t new;\n        uint64_t native_thread_id;"))
    at = int(re.search(r"AT\(tstate_native_thread_id, 8, (\d+)", table)[1])
    assert f"AT(tstate_native_thread_id, 8, {at + 8}, TSTATE)" in grown and f"AT(tstate_thread_id, 8, {at - 8}, TSTATE)" in grown
    assert int(re.search(r", (\d+),$", grown, re.M)[1]) == int(re.search(r", (\d+),$", table, re.M)[1]) + 8
    swapped = made_of(re.sub(r"(uint64_t next;)(\s+)(uint64_t interp;)", r"\3\2\1", text))
    at = int(re.search(r"AT\(tstate_next, 8, (\d+)", table)[1])
    assert f"AT(tstate_next, 8, {at + 8}," in swapped and f"AT(tstate_interp, 8, {at}," in swapped
    with pytest.raises(SystemExit, match="no member thread_state.native_thread_id"):
        made_of(text.replace("uint64_t native_thread_id;", "uint64_t native_id;"))
    with pytest.raises(SystemExit, match="uint32_t native_thread_id"):
        made_of(text.replace("uint64_t native_thread_id;", "uint32_t native_thread_id;"))


def test_writing_keeps_the_other_tables(tmp_path):
    """What a table lost comes back from its header; those of the other versions stay as they are."""
    version = next((v for v in TABLES if headers(*v)), TABLES[0])
    header = header_of(*version)
    table = tmp_path / "debug_offsets.def"
    shutil.copy(TABLE, table)
    made = tool(table)
    row = made.tables_of(TABLE.read_text())[tuple(map(int, version))]
    table.write_text(TABLE.read_text().replace(row, row.replace("AT(tstate_next, 8, ", "AT(tstate_next, 8, 1")))
    assert table.read_text() != TABLE.read_text()
    made.main([header])
    assert table.read_text() == TABLE.read_text()


def test_header_without_a_version(tmp_path):
    path = tmp_path / "pycore_debug_offsets.h"
    path.write_text("")
    with pytest.raises(SystemExit, match="its version is not known"):
        tool().table(path)
