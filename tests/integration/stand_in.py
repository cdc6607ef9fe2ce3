# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an interpreter that this machine does not have: an ELF file with its build ID and one of its functions.

In testdata/traces/3.12-shared.trace two samples are of the garbage collector. Its interpreter lies at a path where no
machine has one, so what names they have depended on what else lies here; with the stand-in, it is always the same.
"""
import pathlib
import subprocess

BUILD_ID = "f9d5c82f5f2c22df68c1d49c944ef3dee5103dcc"
FUNCTION = "gc_collect_main"
# By the symbols of that build.
START, END = 0x3035a0, 0x30496a
TEXT = 0x1000


def interpreter(folder):
    """Puts it into a folder of binaries by build ID, such as ~/.debug; the folder."""
    path = pathlib.Path(folder) / ".build-id" / BUILD_ID[:2] / BUILD_ID[2:] / "elf"
    path.parent.mkdir(parents=True)
    code = (f".text\n.skip {START - TEXT}\n.type {FUNCTION}, @function\n{FUNCTION}: .skip {END - START}\n"
            f".size {FUNCTION}, . - {FUNCTION}\n")
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,--build-id=0x{BUILD_ID},-Ttext={TEXT:#x}", "-x", "assembler", "-",
                    "-o", path], input=code, text=True, check=True)
    return folder
