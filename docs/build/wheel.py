#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel of the programs without libraries: what pip installs, with no compiler at the user's side.

The same files give the same bytes.

usage: wheel.py VERSION MACHINE TREE TARGET    TREE: what is installed below /usr; SOURCE_DATE_EPOCH: the date of all; URL: of the source
"""
import base64
import hashlib
import json
import os
import pathlib
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "pycap_profiler"
# A program without libraries needs no C library: both families, by the names that old and new installers know (pip 9 knows the first).
PLATFORMS = ["manylinux1", "manylinux2014", "manylinux_2_17", "musllinux_1_1"]
LICENSES = ["LICENSE", "LICENSE-Apache-2.0", "LICENSE-GPL-2.0", "THIRD-PARTY"]


def metadata(version, bill):
    license_ = bill["metadata"]["component"]["licenses"][0]["expression"]
    url = f"Project-URL: Homepage, {os.environ['URL']}\n" if os.environ.get("URL") else ""
    licenses = "".join(f"License-File: {name}\n" for name in LICENSES)
    return f"""Metadata-Version: 2.4
Name: pycap-profiler
Version: {version}
Summary: A profiler for Python in production: pycap records with eBPF, pysym shows the recordings
License-Expression: {license_}
{licenses}{url}Requires-Python: >=3.6
Keywords: profiler,ebpf,perf,flamegraph,performance
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Classifier: Topic :: System :: Monitoring
Description-Content-Type: text/markdown

{(ROOT / "docs/build/wheel.md").read_text()}"""


def contents(version, tags, tree):
    """{path in the wheel: (bytes, mode)}"""
    data, info, documents = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info", tree / "share/doc/pycap"
    files = {f"{NAME}/{path.name}": (path.read_bytes(), 0o644) for path in sorted((ROOT / "docs/build" / NAME).glob("*.py"))}
    for program in ("pycap", "pysym"):
        files[f"{data}/scripts/{program}"] = ((tree / "bin" / program).read_bytes(), 0o755)
        files[f"{data}/data/share/man/man1/{program}.1"] = ((tree / "share/man/man1" / f"{program}.1").read_bytes(), 0o644)
    for name in LICENSES:
        files[f"{info}/licenses/{name}"] = ((documents / name).read_bytes(), 0o644)
    files[f"{info}/sboms/pycap.cdx.json"] = ((documents / "pycap.cdx.json").read_bytes(), 0o644)
    files[f"{info}/entry_points.txt"] = (f"[pytest11]\npycap = {NAME}.pytest_plugin\n".encode(), 0o644)
    files[f"{info}/METADATA"] = (metadata(version, json.loads((documents / "pycap.cdx.json").read_text())).encode(), 0o644)
    lines = "".join(f"Tag: {tag}\n" for tag in tags)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: wheel.py\nRoot-Is-Purelib: false\n{lines}".encode(), 0o644)
    rows = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}"
            for path, (content, _) in sorted(files.items())]
    files[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode(), 0o644
    return files


def main(version, machine, tree, target):
    os.umask(0o022)
    platforms = [f"{platform}_{machine}" for platform in PLATFORMS]
    path = pathlib.Path(target) / f"{NAME}-{version}-py3-none-{'.'.join(platforms)}.whl"
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    files = contents(version, [f"py3-none-{platform}" for platform in platforms], pathlib.Path(tree))
    with zipfile.ZipFile(path, "w") as wheel:
        # RECORD comes last.
        for name in sorted(files, key=lambda name: (name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | files[name][1]) << 16
            wheel.writestr(entry, files[name][0], zipfile.ZIP_DEFLATED, 9)
    print(f"  WHEEL   {path}")


main(*sys.argv[1:])
