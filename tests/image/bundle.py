#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what runc and crun run, a bundle: the unpacked image, and a config.json that says of a container of docs/kubernetes/pycap.yaml
what a kubelet with containerd would. The image is unpacked into the folder ROOT, unless that is there.

usage: bundle.py IMAGE ROOT CONTAINER BUNDLE [--volume NAME=FOLDER]... [--set NAME=VALUE]... [--network] [--seccomp FILE] [-- COMMAND...]

Volumes are folders of this host; the manifest says where they are mounted. --set gives an option of the manifest's command another
value. --network: that of the host, not an empty one. A COMMAND takes the place of the manifest's. --seccomp: a profile
as Docker's default.json is written; without it, system calls are not filtered. Left out: AppArmor, and the volumes that are not named.
"""
import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import sys
import tarfile

import yaml

MANIFEST = pathlib.Path(__file__).resolve().parents[2] / "docs/kubernetes/pycap.yaml"
# What containerd gives a container that asks for nothing.
CAPABILITIES = {"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
                "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}
MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
MOUNTS = [("proc", "/proc", ["nosuid", "noexec", "nodev"]), ("tmpfs", "/dev", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
          ("devpts", "/dev/pts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]),
          ("mqueue", "/dev/mqueue", ["nosuid", "noexec", "nodev"]), ("sysfs", "/sys", ["nosuid", "noexec", "nodev", "ro"]),
          ("cgroup", "/sys/fs/cgroup", ["nosuid", "noexec", "nodev", "relatime", "ro"])]


def read(image, root):
    """What the image says of itself. Its one layer is unpacked if there is no root yet, once every digest was found right."""
    with tarfile.open(image) as archive:
        def blob(described):
            content = archive.extractfile(described["digest"].replace("sha256:", "blobs/sha256/")).read()
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == described["digest"] and len(content) == described["size"]
            return content
        (listed,) = json.load(archive.extractfile("index.json"))["manifests"]
        manifest = json.loads(blob(listed))
        config = json.loads(blob(manifest["config"]))
        if not root.exists():
            (layer,) = manifest["layers"]
            files = gzip.decompress(blob(layer))
            assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files).hexdigest()}"]
            with tarfile.open(fileobj=io.BytesIO(files)) as unpacked:
                unpacked.extractall(root, numeric_owner=True)
    return config["config"]


def container_of(name):
    """(its pod, the container)"""
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        if document["kind"] == "DaemonSet":
            pod = document["spec"]["template"]["spec"]
            return pod, next(c for c in pod["containers"] if c["name"] == name)
    sys.exit(f"{MANIFEST} has no DaemonSet")


def environment(image, container):
    """Values from the API server are their own field's name, without dots: the node is called spec-nodeName."""
    given = {e["name"]: e["value"] if "value" in e else e["valueFrom"]["fieldRef"]["fieldPath"].replace(".", "-") for e in container["env"]}
    return {**dict(e.split("=", 1) for e in image["Env"]), **given}


def arguments(container, known, replaced):
    words = [re.sub(r"\$\((\w+)\)", lambda m: known[m[1]], word) for word in [*container["command"], *container["args"]]]
    for given in replaced:
        name = given.split("=")[0]
        (at,) = (i for i, word in enumerate(words) if word.startswith(f"--{name}="))
        words[at] = f"--{given}"
    return words


def capabilities(security):
    asked = security.get("capabilities", {})
    held = set() if "ALL" in asked.get("drop", []) else CAPABILITIES - set(asked.get("drop", []))
    names = sorted(f"CAP_{name}" for name in held | set(asked.get("add", [])))
    return {kind: names for kind in ("bounding", "effective", "permitted")}


def filtered(path, held):
    """A profile of Docker, as OCI has it, for a container with these capabilities."""
    profile, rules = json.loads(pathlib.Path(path).read_text()), []
    for rule in profile["syscalls"]:
        includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
        if not set(includes.get("caps", [])) <= set(held) or set(excludes.get("caps", [])) & set(held):
            continue
        if "amd64" not in includes.get("arches", ["amd64"]) or "amd64" in excludes.get("arches", []):
            continue
        rules.append({key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key)})
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile.get("defaultErrnoRet", 1),
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"], "syscalls": rules}


def config_of(image, options):
    pod, container = container_of(options.container)
    security = {**pod["securityContext"], **container["securityContext"]}
    assert security["privileged"] is False and "procMount" not in security
    known = environment(image, container)
    volumes = dict(volume.split("=", 1) for volume in options.volume)
    binds = [{"destination": m["mountPath"], "source": volumes[m["name"]], "type": "bind",
              "options": ["rbind", "ro" if m.get("readOnly") else "rw"]} for m in container["volumeMounts"] if m["name"] in volumes]
    spaces = ["mount", "ipc", "uts", "cgroup", *([] if options.network else ["network"]), *([] if pod.get("hostPID") else ["pid"])]
    held = capabilities(security)
    linux = {"namespaces": [{"type": space} for space in spaces], "maskedPaths": MASKED, "readonlyPaths": READ_ONLY,
             "resources": {"devices": [{"allow": False, "access": "rwm"}]}}
    if options.seccomp:
        linux["seccomp"] = filtered(options.seccomp, held["bounding"])
    return {
        "ociVersion": "1.0.2", "hostname": "node", "linux": linux,
        "root": {"path": str(options.root.resolve()), "readonly": security["readOnlyRootFilesystem"]},
        "mounts": [{"type": kind, "source": kind, "destination": where, "options": how} for kind, where, how in MOUNTS] + binds,
        "process": {"args": options.command or arguments(container, known, options.set), "cwd": image.get("WorkingDir") or "/",
                    "env": [f"{name}={value}" for name, value in known.items()], "capabilities": held,
                    "noNewPrivileges": not security["allowPrivilegeEscalation"],
                    "user": {"uid": security["runAsUser"], "gid": security["runAsGroup"], "additionalGids": [security["fsGroup"]]}}}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("image", "root", "container", "bundle"):
        parser.add_argument(name, type=str if name == "container" else pathlib.Path)
    for name in ("--volume", "--set"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--seccomp")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.command = words[at + 1:]
    options.bundle.mkdir()
    config = config_of(read(options.image, options.root), options)
    (options.bundle / "config.json").write_text(json.dumps(config, indent=1))


main()
