# SPDX-License-Identifier: Apache-2.0
"""Programs that read the output formats: where they come from, and how they are run.

They come from their package registries, at the versions below: into build/consumers, and what takes a minute to compile
into the cache. A test whose consumer cannot be had is skipped with the reason.
"""
import base64
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

CONSUMERS = ROOT / "build" / "consumers"
NPM = {"speedscope": "1.25.0", "ajv": "8.17.1", "@firefox-devtools/profiler-cli": "0.10.0"}


def run(*command, timeout=120, **kw):
    return subprocess.run(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=True, **kw
    )


def obtain(what, *command, timeout=900):
    """Runs a package client; a test that needs what it could not get is skipped."""
    if not shutil.which(command[0]):
        pytest.skip(f"{what}: no {command[0]} on this machine")
    try:
        run(*command, timeout=timeout)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: {command[0]} took longer than {timeout} s")
    except subprocess.CalledProcessError as e:
        lines = e.stderr.decode(errors="replace").strip().splitlines()
        pytest.skip(f"{what}: {command[0]} failed: {lines[-1] if lines else e.returncode}")


def npm_package(name):
    folder = CONSUMERS / "npm" / "node_modules" / name
    if not shutil.which("node"):
        pytest.skip(f"{name}: no node on this machine")
    if not (folder / "package.json").exists():
        # Whole or not at all: npm may be stopped half way.
        prefix, new = CONSUMERS / "npm", CONSUMERS / "npm.new"
        for old in (prefix, new):
            shutil.rmtree(old, ignore_errors=True)
        new.mkdir(parents=True)
        packages = [f"{n}@{v}" for n, v in NPM.items()]
        obtain(name, "npm", "install", "--prefix", new, "--ignore-scripts", "--no-audit", "--no-fund", *packages)
        new.rename(prefix)
    return folder


def speedscope_shows(tmp_path, name, content):
    """The words on speedscope's page once it has opened the file."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("speedscope's importer runs in a browser only, and there is no chromium on this machine")
    app = tmp_path / "app"
    shutil.copytree(npm_package("speedscope") / "dist/release", app)
    data = json.dumps(base64.b64encode(content).decode())
    (app / "load.js").write_text(f"speedscope.loadFileFromBase64({json.dumps(name)}, {data})")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    page = run(
        chromium, "--headless", *sandbox, "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
        "--allow-file-access-from-files", "--virtual-time-budget=20000", f"--user-data-dir={tmp_path / 'chromium'}",
        "--dump-dom", f"file://{app}/index.html#localProfilePath={app}/load.js&view=sandwich",
    ).stdout.decode()  # fmt: skip
    page = re.sub(r"<style.*?</style>", "", page, flags=re.S)
    words = re.sub(r"<[^>]*>", "\n", page).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return [w.strip() for w in words.split("\n") if w.strip()]
