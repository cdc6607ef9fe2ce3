# SPDX-License-Identifier: Apache-2.0
"""
Virtual environments with programs from PyPI, made once in the tests' cache. Versions are pinned: what is measured today
can be measured again. An environment is made anew when its list changes.
"""
import fcntl
import glob
import hashlib
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
    "kubernetes": ("debian", ["kubernetes-validate==1.37.0"]),
    "py-spy": ("debian", ["py-spy==0.4.3"]),
    "ml": ("3.12", ["torch==2.15.0", "jax==0.12.0.1", "tensorflow==2.21.0", "numba==0.68.1", "numpy==2.5.5", "scipy==1.18.1",
                    "pandas==3.1.1", "polars==2.1.0", "pyarrow==26.0.1", "duckdb==2.0.1", "opencv-python-headless==5.0.0.93",
                    "scikit-learn==1.9.1", "joblib==1.6.0", "lightgbm==4.7.0", "xgboost==3.4.1", "orjson==3.13.0",
                    "pydantic==2.14.4", "lxml==6.1.3", "pillow==13.0.0", "Cython==3.3.1", "pybind11==3.1.0",
                    "setuptools==84.2.1"]),
    "services": ("3.11", ["celery==5.7.0", "granian==2.8.9", "Hypercorn==0.18.0", "daphne==4.2.3", "Django==5.2.19", "Flask==3.1.3",
                          "ansible-core==2.19.14", "Scrapy==2.19.0", "Sphinx==9.0.4", "uWSGI==2.0.31"]),
    "cluster": ("3.11", ["dask==2026.8.0", "distributed==2026.8.0", "ray==2.60.0", "ipykernel==7.4.0", "jupyter_client==8.10.0"]),
    "titled": ("3.11", ["celery==5.7.0", "gevent==26.9.0", "gunicorn==27.0.1", "setproctitle==1.3.8", "supervisor==4.3.0",
                        "setuptools==80.9.0", "joblib==1.6.0", "nbclient==0.11.0", "ipykernel==7.4.0", "Hypercorn==0.18.0",
                        "uvicorn==0.54.0", "execnet==2.1.2"]),
    "torch": ("3.12", ["torch==2.15.0", "numpy==2.5.5", "setuptools==84.2.1"]),
    "packers": ("3.11", ["pex==2.105.2", "shiv==1.0.8", "cx_Freeze==8.7.3", "pyinstaller==6.22.3", "Nuitka==4.3.3"]),
}

EXTENSIONS = pathlib.Path(__file__).resolve().parent / "apps/ext"


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


def run(command, what, cwd=None, seconds=500):
    """Runs a command of set-up; raises Missing with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, cwd=cwd)
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
            run(["nice", "-n", "19", str(folder / "bin/pip"), "install", "-q", *packages], "not to be had from PyPI", seconds=1500)
            stamp.write_text(wanted)
    return folder


def extensions(name):
    """The folder of the modules of apps/ext, built by the compilers in the environment `name` and a C++ compiler."""
    sources = sorted(EXTENSIONS.iterdir())
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:12]
    folder = venv(name) / f"ext-{digest}"
    if folder.exists():
        return folder
    made = folder.with_suffix(".new")
    made.mkdir(exist_ok=True)
    python = str(venv(name) / "bin/python")
    paths = "import pybind11, sysconfig; print(sysconfig.get_path('include'), pybind11.get_include())"
    include = [f"-I{path}" for path in subprocess.check_output([python, "-c", paths], text=True).split()]
    run([python, "-m", "cython", "-3", str(EXTENSIONS / "in_cython.pyx"), "-o", str(made / "in_cython.c")], "Cython fails")
    for one in (made / "in_cython.c", EXTENSIONS / "in_pybind.cpp", EXTENSIONS / "in_c.c"):
        compiler = "c++" if one.suffix == ".cpp" else "cc"
        run([compiler, "-O2", "-shared", "-fPIC", *include, str(one), "-o", str(made / (one.stem + ".so"))], f"no {one.stem}")
    made.rename(folder)
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
