# SPDX-License-Identifier: Apache-2.0
"""How folded stacks spell a frame of ndjson: one spelling, by which formats are compared."""
import re

# What utf8_is_control() lists.
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
                     "\U000e0000-\U000e007f]")


def clean(text):
    return CONTROL.sub("_", text.strip(" ")).replace(";", ":")


def in_brackets(module):
    if re.fullmatch(r"/tmp/perf-\d+\.map", module):
        return "[jit]"
    if module.startswith("["):
        return clean(module)
    return f"[{clean(re.sub(r'.*/(?=.)', '', module, flags=re.S))}]" if module else "[unknown]"


def spelled(frame):
    """A frame of ndjson as folded stacks have it."""
    text = clean(frame["function"])
    if not text:
        text = in_brackets(frame["module"]) if frame["layer"] in ("native", "kernel") else "[unknown]"
    if frame["layer"] == "kernel":
        text += "_[k]"
    if frame["layer"] == "python" and frame["file"]:
        text += f" ({clean(frame['file'])}" + (f":{frame['line']})" if frame["line"] else ")")
    elif frame["builtin"]:
        text += f" ({frame['builtin']})"
    return re.sub(r" ([0-9.]+)$", r"_\1", text)
