# SPDX-License-Identifier: Apache-2.0
"""Writes formats/cpython/debug_offsets.def from CPython's headers.

usage: make-debug-offsets.py HEADER...      writes the tables of the headers' versions anew, keeps the others
       make-debug-offsets.py --print HEADER prints one version's table

HEADER is pycore_debug_offsets.h (3.13: pycore_runtime.h) of an installed interpreter, in includeX.Y/internal; the
version is taken from that path. All members of struct _Py_DebugOffsets are 8 bytes long, so a member's number in
the struct says where it lies. Anything else in the struct is an error, and so is a member that is missing.
"""
import os
import re
import sys

DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../formats/cpython/debug_offsets.def")

# What feeds what: field of struct py_layout, its bytes, the structure it lies in, member of _Py_DebugOffsets, and the
# minor version of 3 from which on it is there.
FEEDS = [
    ("runtime_interpreters_head", 8, "RUNTIME", "runtime_state.interpreters_head", 13),
    ("interp_id", 8, "INTERP", "interpreter_state.id", 13),
    ("interp_next", 8, "INTERP", "interpreter_state.next", 13),
    ("interp_threads_head", 8, "INTERP", "interpreter_state.threads_head", 13),
    ("interp_modules", 8, "INTERP", "interpreter_state.imports_modules", 13),
    ("interp_gil", 8, "INTERP", "interpreter_state.ceval_gil", 13),
    ("tstate_next", 8, "TSTATE", "thread_state.next", 13),
    ("tstate_interp", 8, "TSTATE", "thread_state.interp", 13),
    ("tstate_frame", 8, "TSTATE", "thread_state.current_frame", 13),
    ("tstate_thread_id", 8, "TSTATE", "thread_state.thread_id", 13),
    ("tstate_native_thread_id", 8, "TSTATE", "thread_state.native_thread_id", 13),
    ("frame_previous", 8, "FRAME", "interpreter_frame.previous", 13),
    ("frame_code", 8, "FRAME", "interpreter_frame.executable", 13),
    ("frame_instr", 8, "FRAME", "interpreter_frame.instr_ptr", 13),
    ("frame_owner", 1, "FRAME", "interpreter_frame.owner", 13),
    ("frame_stack", 8, "FRAME", "interpreter_frame.stackpointer", 14),
    ("frame_locals", 8, "FRAME", "interpreter_frame.localsplus", 13),
    ("coroutine_state", 1, "OBJECT", "gen_object.gi_frame_state", 14),
    ("coroutine_frame", 8, "OBJECT", "gen_object.gi_iframe", 14),
    ("frame_tlbc_index", 4, "FRAME", "interpreter_frame.tlbc_index", 14),
    ("code_filename", 8, "CODE", "code_object.filename", 13),
    ("code_name", 8, "CODE", "code_object.name", 13),
    ("code_qualname", 8, "CODE", "code_object.qualname", 13),
    ("code_line_table", 8, "CODE", "code_object.linetable", 13),
    ("code_first_line", 4, "CODE", "code_object.firstlineno", 13),
    ("code_bytecode", 8, "CODE", "code_object.co_code_adaptive", 13),
    ("code_tlbc", 8, "CODE", "code_object.co_tlbc", 14),
    ("code_type", 8, "CODE", "pyobject.ob_type", 13),
    ("bytes_size", 8, "OBJECT", "bytes_object.ob_size", 13),
    ("bytes_data", 1, "OBJECT", "bytes_object.ob_sval", 13),
    ("str_state", 4, "OBJECT", "unicode_object.state", 13),
    ("str_length", 8, "OBJECT", "unicode_object.length", 13),
    ("str_ascii_data", 1, "OBJECT", "unicode_object.asciiobject_size", 13),
    ("str_compact_data", 1, "OBJECT", "unicode_object.compactunicodeobject_size", 15),
]
# Members with the sizes of the structures RUNTIME, INTERP, TSTATE, FRAME and CODE, in that order.
SIZES = ["runtime_state.size", "interpreter_state.size", "thread_state.size", "interpreter_frame.size",
         "code_object.size"]


def version_of(path):
    found = re.search(r"python(\d+)\.(\d+)t?/internal/[^/]+$", os.path.abspath(path))
    if not found:
        raise SystemExit(f"{path}: not in a folder pythonX.Y/internal, so its version is not known")
    return int(found[1]), int(found[2])


def members(path):
    """{"thread_state.next": byte offset}, and the bytes of the whole struct."""
    text = open(path, encoding="utf-8").read()
    found = re.search(r"^typedef struct _Py_DebugOffsets \{\n(.*?)^\} _Py_DebugOffsets;", text, re.S | re.M)
    if not found:
        raise SystemExit(f"{path}: no struct _Py_DebugOffsets")
    body = re.sub(r"//[^\n]*|/\*.*?\*/|\b_Py_NONSTRING\b", "", found[1], flags=re.S)
    offsets, at, inner = {}, 0, None
    for token in re.findall(r"struct\s+\w*\s*\{|\}\s*\w+\s*;|[^;{}]+;|\S", body):
        token = re.sub(r" (?=;)", "", " ".join(token.split()))
        if re.fullmatch(r"struct \w* ?\{", token) and inner is None:
            inner = []
        elif token.startswith("}") and inner is not None:
            name = token.strip("} ;")
            for member in inner:
                offsets[f"{name}.{member}"] = at
                at += 8
            inner = None
        elif re.fullmatch(r"uint64_t \w+;", token):
            if inner is None:
                offsets[token[9:-1]] = at
                at += 8
            else:
                inner.append(token[9:-1])
        elif token == "char cookie[8];" and at == 0 and inner is None:
            offsets["cookie"] = at
            at += 8
        else:
            raise SystemExit(f"{path}: struct _Py_DebugOffsets has \"{token}\", which is no 8-byte number")
    for name, expected in ("cookie", 0), ("version", 8), ("free_threaded", 16):
        if offsets.get(name) != expected:
            raise SystemExit(f"{path}: {name} is not at byte {expected} of struct _Py_DebugOffsets")
    return offsets, at


def table(path):
    (major, minor), (offsets, size) = version_of(path), members(path)
    wanted = [feed for feed in FEEDS if (major, minor) >= (3, feed[4])]
    missing = [name for name in SIZES + [feed[3] for feed in wanted] if name not in offsets]
    if missing:
        raise SystemExit(f"{path}: no member {', '.join(missing)}: renamed, or gone? See FEEDS in this script")
    lines = [f"DEBUG_TABLE({major}, {minor}, {size},", f"    SIZES({', '.join(str(offsets[s]) for s in SIZES)}),"]
    lines += [f"    AT({field}, {length}, {offsets[name]}, {owner}) /* {name} */" for field, length, owner, name, _ in wanted]
    lines[-1] = lines[-1].replace(") /*", ")) /*")
    return "\n".join(lines) + "\n"


def tables_of(text):
    """What a text has of tables: {(major, minor): its lines}."""
    return {(int(m[1]), int(m[2])): m[0] for m in
            re.finditer(r"^DEBUG_TABLE\((\d+), (\d+),.*?\)\)[^\n]*\n", text, re.S | re.M)}


def main(args):
    if args[:1] == ["--print"] and len(args) == 2:
        sys.stdout.write(table(args[1]))
        return
    if not args or args[0].startswith("-"):
        raise SystemExit(__doc__)
    text = open(DEF, encoding="utf-8").read()
    known = tables_of(text)
    head = text[:text.index("\nDEBUG_TABLE(") + 1]
    known.update({version_of(path): table(path) for path in args})
    with open(DEF, "w", encoding="utf-8") as out:
        out.write(head + "".join(known[version] for version in sorted(known)))


if __name__ == "__main__":
    main(sys.argv[1:])
