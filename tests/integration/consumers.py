# SPDX-License-Identifier: Apache-2.0
"""Programs that read the output formats: where they come from, and how they are run.

They come from their package registries, at the versions below: into build/consumers, and what takes a minute to compile
into the cache. A test whose consumer cannot be had is skipped with the reason.
"""
import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time

import pytest

import browser
from conftest import CACHE, ROOT

CONSUMERS = ROOT / "build" / "consumers"
NPM = {"speedscope": "1.25.0", "ajv": "8.17.1", "@firefox-devtools/profiler-cli": "0.10.0"}
GO = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
PPROF = "v0.0.0-20260906184651-6331bc6350fe"


def run(*command, timeout=120, **kw):
    return subprocess.run(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=True, **kw
    )


def obtain(what, *command, timeout=900, **keywords):
    """Runs a package client; a test that needs what it could not get is skipped."""
    if not shutil.which(command[0]):
        pytest.skip(f"{what}: no {command[0]} on this machine")
    try:
        run(*command, timeout=timeout, **keywords)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: {command[0]} took longer than {timeout} s")
    except subprocess.CalledProcessError as e:
        lines = e.stderr.decode(errors="replace").strip().splitlines()
        pytest.skip(f"{what}: {command[0]} failed: {lines[-1] if lines else e.returncode}")


def go_program(name, version, *command):
    """The path of a program called pprof that `command` of go puts into GOBIN; made once."""
    program = CACHE / f"{name}-{version}"
    if not program.exists():
        new = CACHE / f"{name}-{os.getpid()}"
        new.mkdir(parents=True)
        command = [str(word).format(GOBIN=new) for word in command]
        obtain(name, GO, *command, env={**os.environ, "GOBIN": str(new), "GOTOOLCHAIN": "local"})
        (new / "pprof").rename(program)
        shutil.rmtree(new)
    return program


def need_go():
    if not GO:
        pytest.skip("pprof: no go on this machine")


def go_pprof():
    """The path of `go tool pprof`, which newer releases of Go bring as source."""
    need_go()
    version = run(GO, "version", env={**os.environ, "GOTOOLCHAIN": "local"}).stdout.decode().split()[2]
    return go_program("go-tool-pprof", version, "build", "-o", "{GOBIN}/pprof", "cmd/pprof")


def google_pprof():
    """The path of the pprof that Go's own is made from. Unlike that it looks binaries up by their build IDs."""
    need_go()
    return go_program("google-pprof", PPROF, "install", f"github.com/google/pprof@{PPROF}")


def npm_package(name):
    folder = CONSUMERS / "npm" / "node_modules" / name
    if not shutil.which("node"):
        pytest.skip(f"{name}: no node on this machine")
    CONSUMERS.mkdir(parents=True, exist_ok=True)
    with open(CONSUMERS / "npm.lock", "w", encoding="utf-8") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "package.json").exists():
            # Whole or not at all: npm may be stopped half way.
            prefix, new = CONSUMERS / "npm", CONSUMERS / "npm.new"
            for old in (prefix, new):
                shutil.rmtree(old, ignore_errors=True)
            new.mkdir()
            packages = [f"{n}@{v}" for n, v in NPM.items()]
            obtain(name, "npm", "install", "--prefix", new, "--ignore-scripts", "--no-audit", "--no-fund", *packages)
            new.rename(prefix)
    return folder


@contextlib.contextmanager
def speedscope_page(tmp_path, name, content, script=""):
    """speedscope's page, once it shows the file in its sandwich view; `script` runs on it before."""
    if not browser.chromium():
        pytest.skip("speedscope's importer runs in a browser only, and there is no chromium on this machine")
    app = tmp_path / "app"
    shutil.copytree(npm_package("speedscope") / "dist/release", app)
    data = json.dumps(base64.b64encode(content).decode())
    (app / "load.js").write_text(f"{script}\nspeedscope.loadFileFromBase64({json.dumps(name)}, {data})")
    graphics = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]
    with browser.Browser(*graphics) as started, started.page() as page:
        page.open(app / "index.html", f"localProfilePath={app}/load.js&view=sandwich")
        # Rows of its table of functions end in shares.
        page.wait(r"/\d%\)/.test(document.body.innerText)")
        yield page


def speedscope_shows(tmp_path, name, content):
    """The words on speedscope's page once it has opened the file."""
    with speedscope_page(tmp_path, name, content) as page:
        words = page.evaluate("""(() => {
            const copy = document.body.cloneNode(true), words = []
            copy.normalize()
            const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT)
            while (walker.nextNode()) words.push(walker.currentNode.data.trim())
            return words
        })()""")
    return [word for word in words if word]


# Presses Ctrl-S until there is something to save, and keeps that on the page in place of a download.
SAVE = """
const made = Blob
HTMLAnchorElement.prototype.click = () => {}
window.Blob = function (parts, options) {
    if (options && options.type == 'text/json') {
        const saved = document.createElement('pre')
        saved.id = 'saved'
        saved.textContent = parts.join('')
        document.body.appendChild(saved)
    }
    return new made(parts, options)
}
setInterval(() => {
    if (!document.getElementById('saved'))
        dispatchEvent(new KeyboardEvent('keydown', {key: 's', code: 'KeyS', ctrlKey: true}))
}, 200)
"""


def speedscope_reads(tmp_path, name, content):
    """What speedscope's importer makes of the file, as the JSON that it saves."""
    with speedscope_page(tmp_path, name, content, SAVE) as page:
        return json.loads(page.wait("document.getElementById('saved')?.textContent"))


@contextlib.contextmanager
def firefox_profiler(profile, tmp_path):
    """The Firefox Profiler's own parser and queries with a file loaded; gives a function from a command to its JSON."""
    cli = npm_package("@firefox-devtools/profiler-cli") / "dist/profiler-cli.js"
    env, session = {**os.environ, "HOME": str(tmp_path)}, ("--session", "pysym-test")
    log, until = tmp_path / ".profiler-cli/pysym-test.log", time.monotonic() + 120

    def logged():
        return log.read_text() if log.exists() else ""

    # Its own command to load a file gives the daemon half a second to start, which a busy machine may not. Until it has loaded the
    # file nobody may ask for it: a command that does not reach a daemon removes what that has just put there.
    with subprocess.Popen(["node", cli, "--daemon", profile, *session], env=env) as daemon:
        try:
            while "Profile loaded successfully" not in logged():
                assert daemon.poll() is None and time.monotonic() < until, logged()
                time.sleep(0.02)
            yield lambda *words: json.loads(run("node", cli, *words, "--json", *session, env=env).stdout)
        finally:
            daemon.kill()
