# SPDX-License-Identifier: Apache-2.0
"""apps/work.py as people give programs away: packed by tools that an environment has, once for each of its states."""
import hashlib
import shutil

import programs
import venvs

SOURCES = [programs.APPS / "work.py", programs.APPS / "clocks.py"]

# kind: the command that makes it, and what is started then. {source} is a folder with the two sources, {out} an empty one.
KINDS = {
    "pex": ("{bin}/pex -D {source} -m work -o {out}/shop.pex", "shop.pex"),
    "shiv": ("{bin}/shiv --site-packages {source} -e work:main -o {out}/shop.pyz", "shop.pyz"),
    "cx_Freeze": ("{bin}/cxfreeze --script {source}/work.py build_exe --build-exe {out}/shop", "shop/work"),
    "pyinstaller": ("{bin}/pyinstaller -F -n shop --distpath {out} --workpath {out}/made --specpath {out}/made {source}/work.py",
                    "shop"),
    "nuitka": ("{bin}/python -m nuitka --module --output-dir={out} {source}/work.py", "start.py"),
}
START = "import sys\nsys.path.append({source!r})\nimport work\nwork.main()\n"


def packed(name, kind):
    """The path of what `kind` makes with the environment `name`."""
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in SOURCES) + KINDS[kind][0].encode()).hexdigest()[:12]
    out = venvs.venv(name) / f"packed-{kind}-{digest}"
    if not (out / "complete").exists():
        shutil.rmtree(out, ignore_errors=True)
        source = out / "source"
        source.mkdir(parents=True)
        for each in SOURCES:
            shutil.copy(each, source)
        words = KINDS[kind][0].format(bin=venvs.venv(name) / "bin", source=source, out=out)
        venvs.run(["nice", "-n", "19", *words.split()], f"{kind} fails", cwd=source)
        if kind == "nuitka":
            (source / "work.py").unlink()
            (out / "start.py").write_text(START.format(source=str(source)))
        (out / "complete").touch()
    return out / KINDS[kind][1]
