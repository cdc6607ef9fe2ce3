#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes what the table of folders in docs/design.md does not let its folder include, when files
include each other in a circle, or when a file of Python imports a test file, test_*.py. NAME.c and NAME.h count as one, and
NAME_state.h with them if it includes NAME.h.

The table's last column lists, separated by commas: `folder/` (with what is below it), `folder/file.h`, "its folders"
(those below it), "nothing" or "all". Behind a folder "and what that includes" takes over that folder's list. The row of
a file is the one of the longest folder that it lies in. A folder may always include itself.

usage: check-includes.py [TOP]
"""
import pathlib
import re
import sys

TABLE = "docs/design.md"
CODE = ("formats", "bpf", "capture", "symbolize")


class Row:
    """A folder of the table: what it may include, as folders ("a/b/") and files ("a/b.h")."""

    def __init__(self, folder, cell):
        self.folder, self.all = folder, cell == "all"
        self.paths, self.takes_over = [], []
        for item in cell.split(","):
            item = item.strip()
            found = re.fullmatch(r"`([\w./-]+)`( and what that includes)?", item)
            if found:
                self.paths.append(found[1])
                if found[2]:
                    self.takes_over.append(found[1])
            elif item == "its folders":
                self.paths.append(folder)
            elif item not in ("nothing", "all"):
                sys.exit(f"{TABLE}: what {folder} may include is not understood: {item!r}")


def read_table(top):
    text = (top / TABLE).read_text()
    section = re.search(r"^## Folders\n(.*?)^## ", text, re.M | re.S)
    rows = {}
    for folder, cell in re.findall(r"^\| `([\w./-]+/)` \|.*\| *([^|]*?) *\|$", section[1] if section else "", re.M):
        if folder.split("/")[0] in CODE:
            if not (top / folder).is_dir():
                sys.exit(f"{TABLE}: there is no folder {folder}")
            rows[folder] = Row(folder, cell)
    for row in rows.values():
        for path in row.paths:
            # The skeleton is made from the sampler.
            if not (top / path).exists() and not (top / path.replace(".skel.h", ".bpf.c")).exists():
                sys.exit(f"{TABLE}: {row.folder} may include {path}, which is not there")
        for folder in row.takes_over:
            if folder not in rows:
                sys.exit(f"{TABLE}: {row.folder} takes over from {folder}, which has no row")
    return rows


def row_of(rows, path):
    owners = [folder for folder in rows if path.startswith(folder)]
    return rows[max(owners, key=len)] if owners else None


def may_include(rows, row, path, seen=()):
    """Whether a file of the row's folder may include the path."""
    if row.all or str(pathlib.PurePath(path).parent) + "/" == row.folder:
        return True
    if any(path == allowed or allowed.endswith("/") and path.startswith(allowed) for allowed in row.paths):
        return True
    return any(may_include(rows, rows[folder], path, (*seen, folder)) for folder in row.takes_over if folder not in seen)


def read_includes(top):
    """For each file of the code, the project's own files that it includes with the lines where it does."""
    includes = {}
    for folder in CODE:
        for path in sorted(p for pattern in ("*.c", "*.h", "*.def") for p in (top / folder).rglob(pattern)):
            name = str(path.relative_to(top))
            includes[name] = []
            for line, text in enumerate(path.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+"([^"]+)"', text)
                if found:
                    includes[name].append((line, found[1]))
    return includes


def units(includes):
    """What each file belongs to: NAME.c and NAME.h are one, with NAME_state.h where that goes on from NAME.h."""
    found = {path: re.sub(r"\.[ch]$", "", path) for path in includes}
    for path, there in includes.items():
        name = path.removesuffix("_state.h")
        if name != path and name + ".h" in {other for _, other in there}:
            found[path] = name
    return found


def circles(includes):
    """Groups of units that include each other, by way of others or not (Tarjan's strongly connected components)."""
    graph, belongs = {}, units(includes)
    for path, there in includes.items():
        graph.setdefault(belongs[path], set()).update(belongs[other] for _, other in there if other in includes)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def imports_of_tests(top):
    """(file, line, name of the test file) of each import of a test file."""
    for path in sorted((top / "tests").rglob("*.py")):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r"\s*(?:from|import)\s+(test_\w+)", text)
            if found:
                yield path.relative_to(top), line, found[1]


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    top = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else pathlib.Path(__file__).parent.parent).resolve()
    rows, includes = read_table(top), read_includes(top)
    if len(rows) < 5 or len(includes) < 50:
        sys.exit(f"check-includes.py: only {len(rows)} rows and {len(includes)} files found")
    wrong = 0
    for path, there in includes.items():
        row = row_of(rows, path)
        if not row:
            print(f"{path}: its folder has no row in {TABLE}", file=sys.stderr)
            wrong += 1
            continue
        for line, other in there:
            if other not in includes and not other.endswith(".skel.h"):
                print(f"{path}:{line}: there is no {other}; includes name files from the top folder", file=sys.stderr)
                wrong += 1
            elif not may_include(rows, row, other):
                print(f"{path}:{line}: {row.folder} may not include {other} ({TABLE}, Folders)", file=sys.stderr)
                wrong += 1
    for path, line, name in imports_of_tests(top):
        print(f"{path}:{line}: imports {name}.py, a test file: what two files use belongs in conftest.py or a helper", file=sys.stderr)
        wrong += 1
    belongs = units(includes)
    for group in circles(includes):
        print("a circle of includes:", file=sys.stderr)
        for path in sorted(path for path in includes if belongs[path] in group):
            others = sorted({other for _, other in includes[path] if belongs.get(other) in group and belongs[other] != belongs[path]})
            if others:
                print(f"  {path} includes {', '.join(others)}", file=sys.stderr)
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
