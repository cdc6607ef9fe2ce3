# SPDX-License-Identifier: Apache-2.0
"""
The versions of the two real programs that are compared: the release (`main`), and copies of it with one change each, such
as somebody makes who adds a feature and does not think of its cost. `slower`: a function that takes much of the time does
more; `new`: a function that was not there takes some 2 % of the time; `moved`: the code stands at other lines, and does
the same.
"""
import compileall
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "real"))
import venvs  # noqa: E402

NAMES = ["main", "slower", "allocates", "new", "moved"]

# program: the environment of venvs.py, and the package whose source is its checkout
PACKAGES = {"web": ("datasette", "datasette"), "pytest": ("lark", "lark")}


def replace(text, old, new):
    if text.count(old) != 1:
        raise ValueError(f"{text.count(old)} times: {old}")
    return text.replace(old, new)


def move(text, first, end, before):
    """Moves what lies between `first` and `end` (which stays) to where `before` begins."""
    start = text.index(first)
    part = text[start:text.index(end, start)]
    return replace(text.replace(part, ""), before, part + before)


def comment(text):
    """Puts sixteen lines of comment at the top."""
    return "# What this module is for, and who may call it.\n" + 15 * "#\n" + text


# The rows that a query read get a digest and a size, as a cache in front of the service might want them.
DIGEST = """            plain = list(map(tuple, rows))
            self.last_size = len(pickle.dumps(plain))
            self.last_digest = hashlib.sha256(repr(plain).encode()).hexdigest()

            if truncate:
                return Results("""
# How wide a text is on a terminal.
WIDTH = '''def display_width(value):
    width = 0
    for char in str(value):
        if not unicodedata.combining(char):
            width += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return width


'''
# A message for debugging is made that nobody reads.
MESSAGE = """                for j in range(i+1, len(rule.expansion)):
                    step = f"{i + 1} to {j} of {len(rule.expansion)}"
"""
FOLLOW_LAST = "set(rule.expansion[i+1:]) <= NULLABLE"
FOLLOW_NEXT = "set(rule.expansion[i+1:j]) <= NULLABLE"

# program: version: [(file, what changes its text)]
CHANGES = {
    "web": {
        "slower": [
            ("database.py", lambda text: replace(text, "import janus\n", "import hashlib\nimport janus\nimport pickle\n")),
            ("database.py", lambda text: replace(text, "            if truncate:\n                return Results(", DIGEST)),
        ],
        "new": [
            ("views/table.py", lambda text: replace(text, "import json\n", "import json\nimport unicodedata\n")),
            ("views/table.py", lambda text: replace(text, "class Row:\n", WIDTH + "class Row:\n")),
            ("views/table.py", lambda text: replace(
                text, '                    "value": display_value,\n',
                '                    "value": display_value,\n                    "width": display_width(display_value),\n')),
        ],
        "moved": [(name, comment) for name in ["app.py", "database.py", "utils/__init__.py", "views/base.py",
                                               "views/table.py"]] + [
            ("database.py", lambda text: move(text, "    async def execute(\n", "    @property\n    def hash",
                                              "    async def execute_fn(")),
        ],
    },
    "pytest": {
        "slower": [("parsers/grammar_analysis.py", lambda text: replace(text, MESSAGE[:MESSAGE.index("\n") + 1], MESSAGE))],
        # The sets become differences, of lists that are copied: the same answer, but Python probably collects garbage elsewhere.
        "allocates": [
            ("parsers/grammar_analysis.py",
             lambda text: replace(text, FOLLOW_LAST, "not set(list(rule.expansion)[i+1:]) - NULLABLE")),
            ("parsers/grammar_analysis.py",
             lambda text: replace(text, FOLLOW_NEXT, "not set(list(rule.expansion)[i+1:j]) - NULLABLE")),
        ],
        "new": [
            ("lexer.py", lambda text: replace(text, "class Pattern(Serialize, ABC):\n",
                                               "import unicodedata\n\n\n" + WIDTH + "class Pattern(Serialize, ABC):\n")),
            ("lexer.py", lambda text: replace(
                text, "            value, type_ = res\n\n            ignored",
                "            value, type_ = res\n            width = display_width(value)\n\n            ignored")),
        ],
        "moved": [(name, comment) for name in ["lexer.py", "load_grammar.py", "tree.py", "utils.py", "visitors.py",
                                               "parsers/earley_forest.py", "parsers/grammar_analysis.py",
                                               "parsers/lalr_parser_state.py"]] + [
            ("parsers/grammar_analysis.py", lambda text: move(text, "def calculate_sets(", "class GrammarAnalyzer",
                                                              "def update_set(")),
        ],
    },
}


def checkout(program, version):
    """The folder of a version, made if need be. Raises venvs.Missing."""
    source = venvs.source(*PACKAGES[program])
    folder = venvs.CACHE / "checkouts" / f"{source.name}-{version}"
    if not folder.exists():
        shutil.copytree(source, folder)
        for name, change in CHANGES[program].get(version, []):
            file = folder / PACKAGES[program][1] / name
            file.write_text(change(file.read_text()))
        compileall.compile_dir(str(folder), quiet=1)
    return folder
