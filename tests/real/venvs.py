# SPDX-License-Identifier: Apache-2.0
"""
Virtual environments with programs from PyPI, made once in the tests' cache. Versions are pinned: what is measured today
can be measured again. An environment is made anew when its list changes.
"""
import fcntl
import glob
import os
import pathlib
import re
import subprocess

CACHE = pathlib.Path(os.environ.get("PYCAP_TEST_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pycap-tests")

# name: the interpreter's version ("debian": the one of the distribution), and the packages.
VENVS = {
    "web": ("3.12", ["gunicorn==27.0.1", "Flask==3.1.3", "gevent==26.9.0", "greenlet==3.5.6", "uvicorn==0.54.0", "packaging==26.3",
                     "fastapi==0.165.0", "uvloop==0.23.0", "httptools==0.9.0"]),
    "web-debian": ("debian", ["gunicorn==27.0.1", "Flask==3.1.3", "gevent==26.9.0", "greenlet==3.5.6"]),
    "suite-debian": ("debian", ["pytest==9.2.0", "pytest-xdist==3.8.0"]),
    "suite": ("3.13", ["pytest==9.2.0", "pytest-xdist==3.8.0", "hypothesis==6.170.15", "cloudpickle==3.1.2",
                       "attrs==26.1.0", "black==26.10.1"]),
    "data": ("debian", ["numpy==2.4.6", "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1", "scikit-learn==1.9.1"]),
    "extensions": ("debian", ["lxml==6.1.3", "numba==0.68.1", "orjson==3.13.0", "pydantic==2.14.3",
                              "cryptography==50.0.2", "PyYAML==6.0.3", "contourpy==1.3.3"]),
    "scipy": ("debian", ["numpy==2.4.6", "scipy==1.17.1"]),
    "datasette": ("debian", ["datasette==0.65.5", "uvicorn==0.54.0", "Jinja2==3.1.6", "MarkupSafe==3.0.4", "pluggy==1.7.0",
                             "h11==0.16.0", "asgi-csrf==0.11", "janus==2.0.0"]),
    "lark": ("debian", ["pytest==9.2.0", "lark==1.3.1"]),
    "duckdb": ("debian", ["duckdb==2.0.0"]),
    "py-spy": ("debian", ["py-spy==0.4.3"]),
}


class Missing(Exception):
    """Why an environment can't be made here."""


def interpreter(version):
    """The path of an interpreter: Debian's, or pyenv's of that version."""
    if version == "debian":
        return "/usr/bin/python3"
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = glob.glob(f"{root}/versions/{version}.*/bin/python{version}") + glob.glob(f"/usr/bin/python{version}")
    if not found:
        raise Missing(f"no Python {version} here")
    return found[0]


def run(command, what, cwd=None):
    """Runs a command of set-up; raises Missing with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500, cwd=cwd)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{what}: {error}") from error
    if done.returncode:
        raise Missing(f"{what}: " + ((done.stderr or done.stdout).strip() or "?").splitlines()[-1])


def venv(name):
    """The folder of the environment `name`, which is made if need be. Raises Missing: no interpreter, no PyPI."""
    version, packages = VENVS[name]
    folder = CACHE / f"real-{name}"
    stamp = folder / ".complete"
    wanted = "\n".join([version, *packages])
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"real-{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            run([interpreter(version), "-m", "venv", "--clear", str(folder)], "no virtual environment")
            run([str(folder / "bin/pip"), "install", "-q", *packages], "not to be had from PyPI")
            stamp.write_text(wanted)
    return folder


def source(name, package):
    """The folder of a package's source, with its tests; `name`: the environment whose pip fetches it."""
    folder = venv(name) / "src"
    pin = next(each for each in VENVS[name][1] if each.startswith(package + "=="))
    found = folder / re.sub("==", "-", pin)
    if not found.exists():
        folder.mkdir(exist_ok=True)
        run([str(venv(name) / "bin/pip"), "download", "-q", "--no-deps", "--no-binary", package, "-d", str(folder), pin],
            "not to be had from PyPI")
        run(["tar", "xf", str(found) + ".tar.gz"], "its source does not unpack", folder)
    return found
