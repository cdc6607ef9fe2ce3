# SPDX-License-Identifier: Apache-2.0
"""Compares formats/cpython/versions.def with where an interpreter's own DWARF, or a table, has the fields.

usage: check-offsets.py BINARY [X.Y[t]]   a python or libpython with DWARF, through gdb
       check-offsets.py --tsv FILE X.Y.Z[t]  a table of version, struct, field, offset, size, bits
       check-offsets.py --tsv FILE --expected X.Y.Z...  prints rows for tests/unit/layout_expected.def
       check-offsets.py --print-row BINARY [X.Y[t]]     the rows for versions.def, from DWARF
       check-offsets.py --print-row --tsv FILE X.Y.Z[t] the same, from a table
By hand, when a row is added. Exit code 1 when anything differs.
"""
import os
import re
import subprocess
import sys

NONE = 0xFFFF
DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../formats/cpython/versions.def")

# Group of versions.def: for each number the structs and fields that may be meant, the first that exists counts.
RT, IS, TS = "_PyRuntimeState", "PyInterpreterState", "PyThreadState"
FR, CO, STR = "_PyInterpreterFrame", "PyCodeObject", "PyASCIIObject"
GROUPS = {
    "RUNTIME": [("runtime_interpreters_head", [(RT, "interpreters.head")]),
                ("runtime_tstate_current", [(RT, "gilstate.tstate_current")]),
                ("runtime_tss_key", [(RT, "autoTSSkey._key"), (RT, "gilstate.autoTSSkey._key")])],
    "INTERP": [("interp_next", [(IS, "next")]),
               ("interp_threads_head", [(IS, "threads.head"), (IS, "tstate_head")]),
               ("interp_id", [(IS, "id")]),
               ("interp_modules", [(IS, "imports.modules"), (IS, "modules")])],
    "TSTATE": [("tstate_next", [(TS, "next")]), ("tstate_interp", [(TS, "interp")]),
               ("tstate_frame", [(TS, "current_frame"), (TS, "frame"), (TS, "cframe")]),
               ("tstate_thread_id", [(TS, "thread_id")]),
               ("tstate_native_thread_id", [(TS, "native_thread_id")]),
               ("tstate_root_cframe", [(TS, "root_cframe")])],
    "CFRAME": [("cframe_current_frame", [("_PyCFrame", "current_frame")]),
               ("cframe_previous", [("_PyCFrame", "previous"), ("CFrame", "previous")])],
    "FRAME": [("frame_code", [(FR, "f_executable"), (FR, "f_code"), ("PyFrameObject", "f_code")]),
              ("frame_previous", [(FR, "previous"), ("PyFrameObject", "f_back")]),
              ("frame_instr", [(FR, "instr_ptr"), (FR, "prev_instr"), ("PyFrameObject", "f_lasti")]),
              ("frame_owner", [(FR, "owner")]),
              ("frame_is_entry", [(FR, "is_entry")])],
    "CODE": [("code_type", [("PyObject", "ob_type")]),
             ("code_size", [(CO, "ob_base.ob_size")]),
             ("code_first_line", [(CO, "co_firstlineno")]), ("code_flags", [(CO, "co_flags")]),
             ("code_filename", [(CO, "co_filename")]), ("code_name", [(CO, "co_name")]),
             ("code_qualname", [(CO, "co_qualname")]),
             ("code_line_table", [(CO, "co_linetable"), (CO, "co_lnotab")]),
             ("code_version", [(CO, "co_version")]),
             ("code_first_traceable", [(CO, "_co_firsttraceable")]),
             ("code_bytecode", [(CO, "co_code_adaptive")])],
    "STR": [("str_length", [(STR, "length")]), ("str_hash", [(STR, "hash"), ("PyStringObject", "ob_shash")]), ("str_state", [(STR, "state")]),
            ("str_ascii_data", [(STR, "sizeof")]), ("str_compact_data", [("PyCompactUnicodeObject", "sizeof")]),
            ("str_kind_shift", [(STR, "state.kind:")]), ("str_compact_shift", [(STR, "state.compact:")]),
            ("str_ascii_shift", [(STR, "state.ascii:")])],
    "BYTES": [("bytes_size", [("PyBytesObject", "ob_base.ob_size"), ("PyStringObject", "ob_size")]),
              ("bytes_data", [("PyBytesObject", "ob_sval"), ("PyStringObject", "ob_sval")])],
    # 0 for what there is not; only where frames are objects
    "OBJECT": [("tstate_cframe", [(TS, "cframe")]), ("code_code", [(CO, "co_code")])],
    "GIL": [("runtime_gil", [(RT, "ceval.gil")]), ("interp_gil", [(IS, "ceval.gil")])],
    "COUNTER": [("interp_code_counter", [(IS, "func_state.next_version")]), ("interp_len_bytes", [(IS, "sizeof")])],
    "WORLD": [("tstate_state", [(TS, "state")]), ("interp_requester", [(IS, "stoptheworld.requester")])],
    "COROUTINE": [("coroutine_state", [("PyGenObject", "gi_frame_state")]), ("coroutine_frame", [("PyGenObject", "gi_iframe")]),
                  ("frame_stack", [(FR, "stackpointer"), (FR, "stacktop")]), ("frame_locals", [(FR, "localsplus")])],
    "BYTECODE": [("frame_tlbc_index", [(FR, "tlbc_index")]), ("code_tlbc", [(CO, "co_tlbc")])],
}


CACHED_KEYS = ("PyHeapTypeObject", "ht_cached_keys")


def key(version):
    """3.14.10t -> (3, 14, "t")"""
    flavour = "t" if version.endswith("t") else ""
    return (*map(int, version.rstrip("t").split(".")[:2]), flavour)


def rows():
    """{(major, minor, "" or "t"): {field: number}}; of the newest patch"""
    text = re.sub(r"/\*.*?\*/", "", open(DEF).read(), flags=re.S)
    out = {}
    for m in re.finditer(r"^(?:PYTHON|VARIANT)\((\d+), (\d+),(?: \d+, ([01]),)?$(.*?)\)\)$", text, re.S | re.M):
        row = {}
        for group, fields in GROUPS.items():
            there = re.search(r"\b%s\(([^)]*)" % group, m[4])
            numbers = there[1].split(",") if there else ["0"] * len(fields)
            assert len(numbers) == len(fields), (m[1], m[2], group)
            for (field, _), number in zip(fields, numbers):
                row[field] = NONE if number.strip() == "NONE" else int(number)
        out[int(m[1]), int(m[2]), "t" if m[3] == "1" else ""] = row
    return out


def behaviours():
    """{(major, minor): the columns of BEHAVIOUR}"""
    text = re.sub(r"/\*.*?\*/", "", open(DEF).read(), flags=re.S)
    return {(int(m[1]), int(m[2])): m[3].replace(" ", "").split(",")
            for m in re.finditer(r"^BEHAVIOUR\((\d+), (\d+), +(.*)\)$", text, re.M)}


def from_tsv(path, version):
    known = {}
    for line in open(path):
        v, struct, field, offset, _, bits = line.rstrip("\n").split("\t")
        if v == version:
            known[struct, field] = int(offset)
            if bits:
                known[struct, field + ":"] = int(bits.split(":")[0])
            if field == "__sizeof__":
                known[struct, "sizeof"] = int(line.split("\t")[4])
    if not known:
        raise SystemExit("%s: no %s" % (path, version))
    return lambda struct, field: known.get((struct, field))


def from_dwarf(binary):
    wanted = sorted({x for fields in GROUPS.values() for _, places in fields for x in places} | {CACHED_KEYS})
    commands = []
    for struct, field in wanted:
        if field == "sizeof":
            expression = "sizeof(%s)" % struct
        elif field.endswith(":"):
            continue
        else:
            expression = "(long)&((%s *)0)->%s" % (struct, field)
        commands += ["-ex", "echo @%s %s=" % (struct, field), "-ex", "output " + expression, "-ex", "echo \\n"]
    commands += ["-ex", "ptype /o " + STR]
    text = subprocess.run(["gdb", "-batch", "-nx", "-ex", "set max-value-size unlimited"] + commands + [binary],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True).stdout
    known = {(m[1], m[2]): int(m[3]) for m in re.finditer(r"^@(\S+) ([^\s=]+)=(-?\d+)$", text, re.M)}
    for m in re.finditer(r"(\d+): *(\d+) *\|.*\b(kind|compact|ascii) : \d+;", text):
        start = int(m[1]) * 8 + int(m[2]) - known[STR, "state"] * 8
        known[STR, "state.%s:" % m[3]] = start
    if (CO, "co_name") not in known:
        raise SystemExit("%s: gdb finds no debug information on PyCodeObject" % binary)
    version = re.search(r"python(\d\.\d+t?)", os.path.basename(binary))
    return (lambda struct, field: known.get((struct, field))), version and key(version[1])


def truth(lookup):
    out = {}
    for group, fields in GROUPS.items():
        for field, places in fields:
            found = [lookup(*p) for p in places if lookup(*p) is not None]
            out[field] = found[0] if found else 0 if group in ("GIL", "WORLD", "COROUTINE", "BYTECODE") else NONE
    objects = lookup("PyFrameObject", "f_lasti") is not None
    for field in out:
        if field in ("tstate_cframe", "code_code") and (not objects or out[field] == NONE):
            out[field] = 0
        if field.endswith("_shift") and out[field] == NONE:
            out[field] = 0  # 2.7 has no such str
    if out["code_type"] == 8:
        out["tstate_state"] = out["interp_requester"] = 0  # a build with the GIL never stops the world
    if not out["frame_stack"] or lookup(FR, "is_entry") is not None:
        for field, _ in GROUPS["COROUTINE"]:
            out[field] = 0  # up to 3.11 tasks are not read
    if lookup(RT, "interpreters.head") is None:
        out["runtime_tstate_current"] = 0  # the variable itself stands for _PyRuntime
    return out


def cached_keys(minor, lookup):
    """ht_cached_keys as BEHAVIOUR has it: without what a free-threaded build's object header has more; None: not told."""
    offset = lookup(*CACHED_KEYS)
    return offset if offset is None else offset - 16 if minor[2] else offset


def compare(name, minor, lookup):
    row, real, bad = rows()[minor], truth(lookup), 0
    behaviour = behaviours()[minor[:2]]
    row["co_qualname"], real["co_qualname"] = behaviour[2] == "true", real["code_qualname"] != NONE
    # Needed only where instances have their values apart from a dict.
    if cached_keys(minor, lookup) is not None and behaviour[4] != "DICT":
        row["ht_cached_keys"], real["ht_cached_keys"] = int(behaviour[6]), cached_keys(minor, lookup)
    for field, value in real.items():
        if row[field] != value:
            print("%s: %s is %s in versions.def, really %s" % (name, field, row[field], value))
            bad += 1
    print("%s: %d of %d fields agree" % (name, len(real) - bad, len(real)))
    return bad


def print_row(minor, lookup):
    """What no field tells is asked for as ??: the kind of frames, tag bits, and what a numeric instruction counts; most
    of what the version does in a way of its own."""
    real = truth(lookup)
    variant = "VARIANT(%d, %d, 0, 1," if minor[2] else "PYTHON(%d, %d,"
    print(variant % minor[:2])
    print("    FRAMES(PY_FRAMES_??, ??, ??)")
    rows_of_groups = []
    for group, fields in GROUPS.items():
        values = [real[field] for field, _ in fields]
        # These stand in a row only where there is something to say.
        if group in ("OBJECT", "GIL", "WORLD", "COROUTINE", "BYTECODE") and not any(value not in (0, NONE) for value in values):
            continue
        rows_of_groups.append("    %s(%s)" % (group, ", ".join("NONE" if v == NONE else str(v) for v in values)))
    print("\n".join(rows_of_groups) + ")")
    if not minor[2]:
        keys = cached_keys(minor, lookup)
        print("BEHAVIOUR(%d, %d, ??, ??, %s, ??, ??, ??, %s, \"??\", ??, ??, ??, ??)" %
              (*minor[:2], "true" if real["code_qualname"] != NONE else "false", "??" if keys is None else keys))
    return 0


def main(args):
    show = args[:1] == ["--print-row"]
    if show:
        args = args[1:]
    if args[:1] == ["--tsv"] and args[2:3] == ["--expected"]:
        for version in args[3:]:
            hexversion = "0x%02x%02x%02xf0" % tuple(int(x) for x in version.rstrip("t").split("."))
            real = truth(from_tsv(args[1], version))
            print("EXPECTED(%s, \"%s\"," % (hexversion, version))
            print("    " + "\n    ".join("IS(%s, %s)" % (f, "PY_NONE" if v == NONE else v) for f, v in real.items()) + ")")
        return 0
    if args[:1] == ["--tsv"] and show:
        return print_row(key(args[2]), from_tsv(args[1], args[2]))
    if args[:1] == ["--tsv"]:
        return compare(args[2], key(args[2]), from_tsv(args[1], args[2])) != 0
    if not args:
        raise SystemExit(__doc__)
    lookup, minor = from_dwarf(args[0])
    if len(args) > 1:
        minor = key(args[1])
    if show:
        return print_row(minor, lookup)
    return compare(args[0], minor, lookup) != 0


sys.exit(main(sys.argv[1:]))
