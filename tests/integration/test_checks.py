# SPDX-License-Identifier: Apache-2.0
"""The checks of the sources find their faults, and make installs what it has to.

Each check (tests/check-*.py) runs over a small tree that has one fault.
"""
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, later

pytestmark = pytest.mark.unsanitized

NEEDED = {"formats/base": 40, "formats/trace": 10, "capture/host": 10, "capture/session": 10, "symbolize/stack": 10}
TABLE = """# Design

## Folders

| folder | holds | may include |
|---|---|---|
| `formats/base/` | a \\| b | nothing |
| `formats/trace/` | | `formats/base/` |
| `bpf/` | | `formats/base/f0.h` |
| `capture/` | | its folders, `formats/`, `bpf/` |
| `capture/host/` | | `formats/base/` |
| `capture/session/` | | `capture/host/` and what that includes, `bpf/sampler.skel.h` |
| `symbolize/` | | its folders |
| `symbolize/stack/` | | `formats/trace/` and what that includes |
| `tests/` | | all |

## Decisions
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with nothing wrong in it, and a function that runs a check over it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/design.md").write_text(TABLE)
    (tmp_path / "tests").mkdir()
    for name in ("check-includes.py", "check-sizes.py", "check-names.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "bpf").mkdir()
    (tmp_path / "bpf/sampler.bpf.c").write_text('#include "formats/base/f0.h"\n')
    for folder, count in NEEDED.items():
        (tmp_path / folder).mkdir(parents=True)
        stem = folder.replace("/", "_")
        for i in range(count):
            (tmp_path / folder / f"f{i}.h").write_text(f"struct {stem}_{i} {{\n    int x;\n}};\n")
            (tmp_path / folder / f"f{i}.c").write_text(f'#include "{folder}/f{i}.h"\n\n' + "".join(
                f"int {stem}_{i}_{k}(void)\n{{\n    return 0;\n}}\n" for k in range(8)))
    (tmp_path / "symbolize/stack/f1.h").write_text('#include "formats/trace/f0.h"\n#include "formats/base/f0.h"\n')
    (tmp_path / "capture/session/f1.c").write_text('#include "bpf/sampler.skel.h"\n#include "formats/base/f1.h"\n')

    def run(name, *arguments):
        done = subprocess.run([sys.executable, tmp_path / "tests" / f"check-{name}.py", *arguments], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
        return done.stderr
    run.top = tmp_path
    return run


def add(path, text):
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize("path, include, message", [
    ("formats/base/f3.c", "formats/trace/f3.h", "formats/base/ may not include formats/trace/f3.h"),
    ("formats/trace/f3.h", "bpf/sampler.bpf.c", "formats/trace/ may not include bpf/sampler.bpf.c"),
    ("bpf/sampler.bpf.c", "formats/base/f1.h", "bpf/ may not include formats/base/f1.h"),
    ("capture/host/f3.c", "capture/session/f3.h", "capture/host/ may not include capture/session/f3.h"),
    ("symbolize/stack/f3.c", "capture/host/f3.h", "symbolize/stack/ may not include capture/host/f3.h"),
    ("symbolize/stack/f3.c", "f3.h", "there is no f3.h"),
])
def test_includes(tree, path, include, message):
    assert tree("includes") == ""
    add(tree.top / path, f'#include "{include}"\n')
    line = (tree.top / path).read_text().count("\n")
    assert f"{path}:{line}: {message}" in tree("includes")


def test_circles(tree):
    add(tree.top / "capture/host/f2.h", '#include "capture/host/f3.h"\n')
    add(tree.top / "capture/host/f3.h", '#include "capture/host/f4_state.h"\n')
    (tree.top / "capture/host/f4_state.h").write_text('#include "capture/host/f4.h"\n')
    add(tree.top / "capture/host/f4.c", '#include "capture/host/f4_state.h"\n')
    assert tree("includes") == ""
    add(tree.top / "capture/host/f4.c", '#include "capture/host/f2.h"\n')
    assert tree("includes").splitlines() == [
        "a circle of includes:", "  capture/host/f2.h includes capture/host/f3.h",
        "  capture/host/f3.h includes capture/host/f4_state.h", "  capture/host/f4.c includes capture/host/f2.h"]


@pytest.mark.parametrize("text, name", [
    ("from test_b import make", "test_b"), ("import test_b", "test_b"), ("    from test_b import good", "test_b"),
    ("from tests_of_b import make", None), ("from conftest import test_b", None),
])
def test_imports_of_tests(tree, text, name):
    path = tree.top / "tests/integration/test_a.py"
    path.parent.mkdir()
    path.write_text(f"import re\n{text}\n")
    assert tree("includes").startswith(f"tests/integration/test_a.py:2: imports {name}.py, a test file") if name else tree("includes") == ""


@pytest.mark.parametrize("cell, message", [
    ("base", "is not understood: 'base'"), ("`formats/nowhere/`", "formats/nowhere/, which is not there"),
    ("`bpf/sampler.bpf.c` and what that includes", "which has no row"),
])
def test_table(tree, cell, message):
    path = tree.top / "docs/design.md"
    path.write_text(path.read_text().replace("| `formats/base/` |\n| `bpf/`", f"| {cell} |\n| `bpf/`"))
    assert message in tree("includes")


def test_folder_without_a_row(tree):
    path = tree.top / "docs/design.md"
    path.write_text(path.read_text().replace("| `symbolize/stack/` |", "| `testdata/` |").replace("| `symbolize/` |", "| `docs/` |"))
    assert "symbolize/stack/f0.c: its folder has no row in docs/design.md" in tree("includes")


def test_sizes(tree):
    body = "{\n" + "    x++;\n" * 57 + "}\n"  # with its head 60 lines
    add(tree.top / "bpf/sampler.bpf.c", f"static int fits(int x)\n{body}")
    assert tree("sizes") == ""
    add(tree.top / "bpf/sampler.bpf.c", f"static int is_long(int x,\n            int y)\n{body}")
    assert tree("sizes") == "bpf/sampler.bpf.c:62: is_long() has 61 lines\n"
    add(tree.top / "capture/host/f0.h", "/* */\n" * 598)
    assert "capture/host/f0.h: 601 lines\n" in tree("sizes")
    check = tree.top / "tests/check-sizes.py"
    check.write_text(check.read_text().replace("EXCEPTIONS = {\n", 'EXCEPTIONS = {\n    "bpf/sampler.bpf.c is_long": "why",\n'
                                               '    "capture/host/f0.h": "why",\n    "capture/host/f1.h": "why",\n'))
    assert tree("sizes") == "the exception for capture/host/f1.h is not needed any more\n"


def test_names(tree):
    objects = tree.top / "build/obj"

    def build(stems="*"):
        for folder in NEEDED:
            (objects / folder).mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-c", "-I", tree.top, *(tree.top / folder).glob(f"{stems}.c")], cwd=objects / folder, check=True)
        for library in ("formats", "capture", "symbolize"):
            subprocess.run(["ar", "rcs", objects / f"{library}.a", *(objects / library).rglob("*.o")], check=True)

    (tree.top / "bpf/sampler.skel.h").write_text("")
    build()
    assert tree("names", tree.top / "build") == ""
    add(tree.top / "symbolize/stack/f2.c", "int capture_host_0_0(void)\n{\n    return 0;\n}\n"
        "static int local;\nint *use(void) { return &local; }\n")
    add(tree.top / "capture/host/f2.c", "static int local;\nint *other(void) { return &local; }\n")
    add(tree.top / "symbolize/stack/f2.h", "struct  capture_host_0 { int x; };\n/* struct capture_host_1 { long y; }; */\n")
    add(tree.top / "symbolize/stack/f3.c", "struct own { int x; };\n")
    add(tree.top / "capture/host/f3.c", "struct own { long x; };\n")
    add(tree.top / "bpf/sampler.bpf.c", "struct capture_host_2 { long x; };\n")
    build("f[23]")
    assert tree("names", tree.top / "build").splitlines() == [
        "capture_host_0_0 is exported by capture/f0.o and symbolize/f2.o",
        "struct capture_host_2 is defined differently at bpf/sampler.bpf.c:2 and capture/host/f2.h:1"]


# ---- licenses and the version ----

@pytest.mark.parametrize("path, line, message", [
    ("bpf/walk.h", "/* SPDX-License-Identifier: GPL-2.0-only */",
     "bpf/walk.h: its SPDX line says GPL-2.0-only, {} says GPL-2.0-only OR Apache-2.0"),
    ("bpf/sampler_ring.h", "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */",
     "bpf/sampler_ring.h: its SPDX line says GPL-2.0-only OR Apache-2.0, {} says GPL-2.0-only"),
    ("capture/main.c", "/* SPDX-License-Identifier: MIT */", "capture/main.c: its SPDX line says MIT, {} says Apache-2.0"),
])
def test_licenses(tmp_path, path, line, message):
    def check():
        done = subprocess.run([sys.executable, ROOT / "tests/check-licenses.py", tmp_path], capture_output=True, text=True,
                              timeout=60, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr.splitlines()

    for name in subprocess.run(["git", "-C", ROOT, "ls-files", "bpf", "formats", "capture", "docs", "LICENSE"], capture_output=True,
                               text=True, check=True).stdout.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert not check()
    text = (tmp_path / path).read_text()
    (tmp_path / path).write_text(text.replace(text.splitlines()[0], line, 1))
    assert check() == [message.format(name) for name in ("LICENSE", "docs/debian/copyright")]
    (tmp_path / path).write_text(text.split("\n", 1)[1])
    assert check() == [f"{path}: no SPDX line"]
    (tmp_path / path).write_text(text)
    add(tmp_path / "LICENSE", "  formats/gone.h   Apache-2.0\n")
    assert check() == ["LICENSE: no file is called formats/gone.h"]


@pytest.mark.parametrize("path, before, after", [
    ("CHANGES", "{} (", "9.9.9 ("), ("docs/debian/changelog", "pycap ({}", "pycap (9.9.9"),
    ("docs/kubernetes/pycap.yaml", "pycap:{}", "pycap:9.9.9"), ("README.md", "pysym_{}", "pysym_9.9.9"),
    ("docs/pysym.1.scd", '"pysym {}"', '"pysym 9.9.9"'),
])
def test_version(tmp_path, path, before, after):
    def check():
        return subprocess.run(["sh", ROOT / "tests/check-release.sh", tmp_path], capture_output=True, text=True, timeout=60,
                              check=False).stderr.splitlines()

    version = re.search(r"^VERSION := (.*)$", (ROOT / "Makefile").read_text(), re.M)[1]
    for name in ("Makefile", "CHANGES", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    assert not check()
    text = (tmp_path / path).read_text()
    assert before.format(version) in text
    (tmp_path / path).write_text(text.replace(before.format(version), after, 1))
    (wrong,) = check()
    assert wrong.startswith(f"{path}:") and version in wrong, wrong


# ---- make ----

def make(*arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name not in ("MFLAGS", "WERROR")}
    return subprocess.run(["make", "-C", ROOT, *arguments], capture_output=True, text=True, timeout=300, check=False,
                          env=environment)


@pytest.mark.parametrize("goal, installs", [("all", False), ("install", False), ("build/tests/test_base", False),
                                            ("demo", True), ("check", True), ("fuzz-run", True)])
def test_what_installs(goal, installs):
    """Told by what make would do were nothing built."""
    done = make("-n", "-B", goal)
    assert done.returncode == 0, done.stderr
    assert ("docs/build/deps.sh" in done.stdout, "docs/build/needs.sh build" in done.stdout) == (installs, True)


def test_flags_of_the_user():
    """They come after ours, in all that is compiled and linked; warnings are errors when asked for."""
    done = make("-n", "-B", "build/pysym", "CPPFLAGS=-DX=1", "CFLAGS=-O3", "LDFLAGS=-Wl,-O1", "PKG_CONFIG=echo")
    (line,) = re.findall(r"^cc .* -c -o build/obj/formats/base/hex.o .*$", done.stdout, re.M)
    assert re.search(r" -std=gnu17 .* --cflags libbpf .* -DX=1 -O3 -MMD ", line) and "-O2" not in line, line
    (line,) = re.findall(r"^cc .* -o build/pysym .*$", done.stdout, re.M)
    assert re.search(r" -O3 +-Wl,-O1 -o .* --libs libdw ", line), line
    assert not re.search(r"-Werror(?!=implicit)", done.stdout)
    done = make("-n", "-B", "build/pycap", "WERROR=1")
    assert len(re.findall(r"^(?:cc|\S*clang\S*) .* -Werror ", done.stdout, re.M)) > 100
    assert re.search(r" -target bpf .* -Werror ", done.stdout)


def test_what_is_installed_is_used(tmp_path):
    """By the make that has installed it: a first `make demo` finds the libraries."""
    (tmp_path / "docs/build").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "docs/build/deps.sh").write_text("echo 'echo -lnew' >pkg-config && chmod +x pkg-config\n")
    done = subprocess.run(["make", "-C", tmp_path, "--eval", "said: ; @echo links $(LDLIBS_CAPTURE)", "said", "demo", "PKG_CONFIG=./pkg-config"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert "links -lnew" in done.stdout, done.stdout + done.stderr


def test_another_machine():
    """What does not depend on the machine is compiled; then the table refuses, before anything that does."""
    done = make("-n", "-B", "CROSS=aarch64-linux-gnu", "PKG_CONFIG=echo")
    lines = done.stdout.splitlines()
    (refused,) = [i for i, line in enumerate(lines) if "do not run on aarch64 yet" in line and "needs.sh" not in line]
    compiled = {re.search(r"\S+\.c$", line)[0]: i for i, line in enumerate(lines) if line.startswith("aarch64-linux-gnu-gcc") and " -c " in line}
    assert compiled["formats/elf/machine.c"] < refused and compiled["symbolize/main.c"] < refused
    assert refused < compiled["capture/main.c"] and all(i < refused for i, line in enumerate(lines) if "formats/" in line and " -c " in line)
    assert all(refused < i for i, line in enumerate(lines) if "-target bpf" in line)


def test_what_is_missing():
    def needs(what, **programs):
        return subprocess.run(["sh", ROOT / "docs/build/needs.sh", what], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "CC": "cc", **programs})

    tools = {"CLANG": "sh", "LLVM_STRIP": "sh", "BPFTOOL": "sh"}
    done = needs("build", **tools)
    assert (done.returncode, done.stderr) == (0, "")
    done = needs("build", **tools | {"CLANG": "no-clang -x"})
    assert done.returncode == 1 and re.search(r"^  no-clang -x +clang-14$", done.stderr, re.M), done.stderr
    assert "make deps" in done.stderr or "this system's packages" in done.stderr
    done = needs("build", **tools | {"PKG_CONFIG": "no-pkg-config"})
    assert done.returncode == 1 and re.search(r"^  no-pkg-config +pkgconf$", done.stderr, re.M), done.stderr
    done = needs("build", PKG_CONFIG_LIBDIR="/nowhere", **tools)
    assert done.returncode == 1 and re.search(r"^  libbpf.pc +libbpf-dev$", done.stderr, re.M), done.stderr
    done = needs("build", CC="cc -nostdinc", **tools)
    assert done.returncode == 1 and re.search(r"^  bpf/libbpf.h +libbpf-dev$", done.stderr, re.M), done.stderr
    done = needs("test", CC="cc -nostdinc")
    assert done.returncode == 1 and "cmocka.h" in done.stderr and "  " in done.stderr, done.stderr


@pytest.mark.parametrize("word, programs", [
    ("merge", "test_merge"), ("test_merge", "test_merge"), ("tests/unit/test_merge.c", "test_merge"), ("test_pysym.py", ""),
    ("test_pysym.py::test_folded", ""), ("callback_between", "test_merge"), ("folded and not strict", ""), ("no_such_thing", ""),
], ids=range(8))
def test_programs_of_a_word(word, programs):
    done = subprocess.run(["sh", ROOT / "tests/check.sh", "--programs", word], capture_output=True, text=True, timeout=60,
                          check=True)
    assert done.stdout.split() == programs.split()


# The ids are not the words: they would be names that the words find.
@pytest.mark.parametrize("word", [later("no_such_thing"), "test_pysym.py::test_no_such_thing", later("not (")], ids=["-k", "::", "syntax"])
def test_a_word_for_nothing(word, tmp_path):
    few = "--ignore-glob=*/test_[!c]*"  # no need to read them all
    done = subprocess.run(["sh", ROOT / "tests/check.sh", tmp_path, "named", word], capture_output=True, text=True, timeout=300,
                          check=False, env={**os.environ, "PYTEST_ADDOPTS": few})
    assert done.returncode == 2 and done.stderr and "passed" not in done.stdout, done.stdout
