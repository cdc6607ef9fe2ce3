#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a container image of the programs without libraries: an OCI archive, which docker load, podman load, ctr images import and
skopeo read. It is made without any of them.

usage: image.py VERSION MACHINE TREE TARGET     TREE: what is installed below /usr; SOURCE_DATE_EPOCH: the date of all
The same files give the same bytes.
"""
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

NAME = "pycap"
ARCHITECTURES = {"x86_64": "amd64"}  # machines by Go's names
# Of the package and not of this machine, which may trust others, too.
CERTIFICATES = pathlib.Path("/usr/share/ca-certificates/mozilla")
LICENSES = ("LICENSE", "LICENSE-Apache-2.0", "LICENSE-GPL-2.0", "THIRD-PARTY", "pycap.cdx.json")
# What the terminals of `pycap top` can do. ncurses looks for it here.
TERMINFO = pathlib.Path("/lib/terminfo")
CHARACTERS = pathlib.Path("/usr/lib/locale/C.utf8/LC_CTYPE")  # what UTF-8 is, for the same
TERMINALS = ("linux", "screen", "screen-256color", "tmux-256color", "vt100", "xterm", "xterm-256color")
# Users without a password or a shell: the numbers that docs/kubernetes/pycap.yaml has for who sends, and for who may read traces.
USERS = """root:x:0:0:root:/:/sbin/nologin
pycap-push:x:10002:10001:sends profiles:/:/sbin/nologin
nobody:x:65534:65534:nobody:/:/sbin/nologin
"""
GROUPS = "root:x:0:\npycap-read:x:10001:\nnogroup:x:65534:\n"


def certificates():
    found = sorted(CERTIFICATES.glob("*.crt"))
    if not found:
        sys.exit(f"image.py: there are no certificates in {CERTIFICATES}, by which pysym would know a store: install ca-certificates")
    return b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in found)


def contents(tree):
    """{path: (bytes, or None for a folder, mode)}"""
    files = {f"usr/bin/{program}": ((tree / "bin" / program).read_bytes(), 0o755) for program in ("pycap", "pysym")}
    files["etc/ssl/certs/ca-certificates.crt"] = certificates(), 0o644
    files["etc/passwd"], files["etc/group"] = (USERS.encode(), 0o644), (GROUPS.encode(), 0o644)
    files[str(CHARACTERS)[1:]] = CHARACTERS.read_bytes(), 0o644
    for terminal in TERMINALS:
        files[f"lib/terminfo/{terminal[0]}/{terminal}"] = (TERMINFO / terminal[0] / terminal).read_bytes(), 0o644
    for name in LICENSES:
        files[f"usr/share/doc/pycap/{name}"] = (tree / "share/doc/pycap" / name).read_bytes(), 0o644
    # What is in the image and not in the programs.
    for package in ("ca-certificates", "ncurses-base"):
        files[f"usr/share/doc/{package}/copyright"] = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_bytes(), 0o644
    folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents if parent.name}
    return {**files, **{path: (None, 0o755) for path in folders}, "tmp": (None, 0o1777)}


def tar(files, date):
    """The bytes of a tar file; root owns everything."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.mtime = mode, date
            entry.type = tarfile.REGTYPE if content is not None else tarfile.DIRTYPE
            entry.size = len(content or b"")
            archive.addfile(entry, io.BytesIO(content or b""))
    return out.getvalue()


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def config(version, licenses, platform, layer, created):
    labels = {"title": NAME, "version": version, "licenses": licenses, **({"source": os.environ["URL"]} if os.environ.get("URL") else {}),
              "description": "A profiler for Python in production: pycap records with eBPF, pysym shows and sends the recordings"}
    return {**platform, "created": created,
            "config": {"Env": ["PATH=/usr/bin", "LANG=C.UTF-8"], "Cmd": ["pycap", "--help"], "WorkingDir": "/",
                       "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()}},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
            "history": [{"created": created, "created_by": "docs/build/image.py"}]}


def layout(version, licenses, platform, layer, date):
    """The files of the archive."""
    files = {}

    def blob(content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    created = datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%FT%TZ")
    packed = blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip")
    described = blob(text(config(version, licenses, platform, layer, created)), "config.v1+json")
    # The name by which it is loaded: podman, ctr and docker with containerd's store take the first, skopeo the second, ...
    names = {"io.containerd.image.name": f"docker.io/library/{NAME}:{version}", "org.opencontainers.image.ref.name": f"{NAME}:{version}"}
    manifest = blob(text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described,
                          "layers": [packed]}), "manifest.v1+json",
                    platform=platform, annotations=names)
    files["oci-layout"] = text({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]})
    # ... and docker with a store of its own that of this file.
    path = {what["digest"]: what["digest"].replace("sha256:", "blobs/sha256/") for what in (described, packed)}
    files["manifest.json"] = text([{"Config": path[described["digest"]], "RepoTags": [f"{NAME}:{version}"],
                                    "Layers": [path[packed["digest"]]]}])
    return {**{name: (content, 0o644) for name, content in files.items()}, "blobs": (None, 0o755), "blobs/sha256": (None, 0o755)}


def main(version, machine, tree, target):
    date = int(os.environ["SOURCE_DATE_EPOCH"])
    path = pathlib.Path(target) / f"{NAME}-{version}-oci-{machine}.tar"
    layer = tar(contents(pathlib.Path(tree)), date)
    bill = json.loads((pathlib.Path(tree) / "share/doc/pycap/pycap.cdx.json").read_text())
    licenses = bill["metadata"]["component"]["licenses"][0]["expression"] + " AND MPL-2.0"  # the certificates'
    path.write_bytes(tar(layout(version, licenses, {"architecture": ARCHITECTURES[machine], "os": "linux"}, layer, date), date))
    print(f"  IMAGE   {path}")


main(*sys.argv[1:])
