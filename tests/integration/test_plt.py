# SPDX-License-Identifier: Apache-2.0
"""Native stacks are whole in a PLT without call frame information, as lld and mold write it."""
import json
import os
import subprocess

CODE = """
.text
.globl spin
.type spin, @function
spin:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbx, -16
    mov %edi, %ebx
1:  .rept 4
    call lazy
    call bound
    call by_lld
    call by_mold
    .endr
    dec %ebx
    jnz 1b
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
target:
    ret
    .cfi_endproc
resolver:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
.p2align 4
lazy:
    jmp *first(%rip)
pushes:
    .byte 0x68, 0, 0, 0, 0 # push
    .byte 0xe9
    .long resolver - . - 4
.p2align 4
bound:
    jmp *second(%rip)
    .byte 0x68, 1, 0, 0, 0
    .byte 0xe9
    .long resolver - . - 4
.p2align 4
by_lld:
    endbr64
    jmp *second(%rip)
.p2align 4
by_mold:
    endbr64
    mov $1, %r11d
    jmp *second(%rip)
.data
first: .quad pushes
second: .quad target
.section .note.GNU-stack, "", @progbits
"""
PROGRAM = """
import ctypes, sys, time
spin = ctypes.CDLL(sys.argv[1]).spin
end = time.process_time() + 1
while time.process_time() < end:
    spin(1000000)
"""


def test_whole(tmp_path, python, record, pysym):
    (tmp_path / "plt.s").write_text(CODE)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-o", tmp_path / "plt.so", tmp_path / "plt.s"], check=True)
    trace = record(python.path, "-c", PROGRAM, tmp_path / "plt.so", options=("-F", "999"))
    told = json.loads(pysym(trace, "-f", "summary", "--json").stdout)
    native = told["whole_stacks"]["native"]
    assert native["part"] >= 0.99 * native["whole"] > 100, told["losses"]
