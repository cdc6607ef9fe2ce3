#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is inside the programs without libraries: a list of components (CycloneDX) and the texts of their licenses.

The linker's maps name each library that it took something from; Debian's package of it says version and license text. A
library that LICENSES does not know is an error: nobody has looked yet at what its license asks for.

usage: components.py VERSION FOLDER TARGET     FOLDER: build/static. Writes TARGET/pycap.cdx.json and TARGET/THIRD-PARTY
       components.py --sources FOLDER          prints PACKAGE=VERSION of the source packages whose license asks for their source
       components.py --license BILL PROGRAM... prints the license of these programs with what is in them, by a pycap.cdx.json
       components.py --inside BILL PROGRAM     prints the names of what is in that program
URL: where the source of pycap is to be had
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Debian's source packages: (license as in SPDX, whether who passes on the program has to offer the library's source).
# cp-demangle, rust-demangle and safe-ctype are what is linked of libiberty; xxhash is a header, compiled in.
LICENSES = {
    "bzip2": ("bzip2-1.0.6", False),
    "c-ares": ("MIT", False),
    "curl": ("curl", False),
    "elfutils": ("LGPL-3.0-or-later OR GPL-2.0-or-later", True),
    "gcc": ("GPL-3.0-or-later WITH GCC-exception-3.1", False),
    "glibc": ("LGPL-2.1-or-later", True),
    "jansson": ("MIT", False),
    "libarchive": ("BSD-2-Clause", False),
    "libbpf": ("LGPL-2.1-only OR BSD-2-Clause", False),
    "libiberty": ("LGPL-2.0-or-later", True),
    "libseccomp": ("LGPL-2.1-only", True),
    "libunwind": ("MIT", False),
    "libzstd": ("BSD-3-Clause OR GPL-2.0-only", False),
    "ncurses": ("X11-distribute-modifications-variant", False),
    "openssl": ("Apache-2.0", False),
    "xxhash": ("BSD-2-Clause", False),
    "xz-utils": ("LicenseRef-public-domain", False),
    "zlib": ("Zlib", False),
}
HEADERS = ["/usr/include/xxhash.h"]
OWN = {"pycap": ["Apache-2.0", "GPL-2.0-only"], "pysym": ["Apache-2.0"]}
# The texts that Debian's packages refer to.
COMMON = pathlib.Path("/usr/share/common-licenses")


def linked(program_map):
    """The files that the linker took something from, but those of this project."""
    text = program_map.read_text()
    members = text[text.index("Archive member included"):text.index("Discarded input sections")]
    archives = re.findall(r"^(\S+\.a)\(", members, re.M)
    objects = re.findall(r"^LOAD (\S+\.o)$", text, re.M)
    return {os.path.realpath(path) for path in archives + objects if "/obj/" not in path and not path.startswith("build/obj/")}


@functools.lru_cache(None)
def ask(*command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"components.py: {' '.join(command)}: {run.stderr.strip()}")
    return run.stdout


def package_of(path, folder):
    """(name of the source package without its version, its version, the file with its license text)"""
    built = folder.resolve() / "lib"
    if path.startswith(f"{built}/"):
        found = (built / f"{pathlib.Path(path).stem}.source").read_text().split()
        return found[0], found[1], built / f"{pathlib.Path(path).stem}.copyright"
    package = ask("dpkg", "-S", path).split(": ")[0]
    source, version = ask("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package).split()
    return source, version, pathlib.Path("/usr/share/doc") / package.split(":")[0] / "copyright"


def components(folder):
    """{name: (version, license, whether its source is asked for, file with its text, programs, source package)}"""
    found = {}
    for program in ("pycap", "pysym"):
        for path in sorted(linked(folder / "bin" / f"{program}.map") | set(HEADERS)):
            source, version, text = package_of(path, folder)
            name = re.sub(r"^gcc-\d+$", "gcc", source)
            if name not in LICENSES:
                sys.exit(f"components.py: {path} is from {source}, whose license is not in LICENSES: look what it asks for, and add it")
            if not text.exists():
                sys.exit(f"components.py: {text} is missing: install the package again with its documents")
            found.setdefault(name, [version, *LICENSES[name], text, [], source])
            if program not in found[name][4]:
                found[name][4].append(program)
    return found


def bill(version, found):
    """The list of components in CycloneDX's form. No date and no random number: the same source gives the same bytes."""
    def component(name, version, license_, **more):
        return {"type": "library", "bom-ref": name, "name": name, "version": version, "licenses": [{"expression": license_}], **more}

    programs = {program: component(program, version, " AND ".join(own), type="application") for program, own in OWN.items()}
    parts = [component(name, part, license_, purl=f"pkg:deb/debian/{source}@{urllib.parse.quote(part, safe='~')}?arch=source&distro=bookworm")
             for name, (part, license_, _, _, _, source) in sorted(found.items())]
    whole = component("pycap-profiler", version, license_of([*programs.values(), *parts]), type="application")
    if os.environ.get("URL"):
        whole["externalReferences"] = [{"type": "website", "url": os.environ["URL"]}]
    depends = [{"ref": program, "dependsOn": [name for name, row in sorted(found.items()) if program in row[4]]} for program in programs]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": whole},
            "components": [*programs.values(), *parts],
            "dependencies": [{"ref": "pycap-profiler", "dependsOn": list(programs)}, *depends]}


HEAD = """What the programs pycap and pysym of this package contain of others
===================================================================

pycap and pysym are linked with the libraries below, so their code is in the programs. The licenses of the libraries follow.

Of {sources} the license asks that you can have the library's source, and put another version of it into the
program. The source is in pycap-{version}-third-party-sources.tar, which belongs to the release that this package is of{where}, unchanged, as
Debian has it. To link the programs with another version: install that version's static library, and run make static in the source of
pycap. Whoever passes this package on passes that file on, too, or says where it is.

"""


def notices(version, found):
    rows = "".join(f"  {name:12} {version:26} {license_:42} {' '.join(programs)}\n"
                   for name, (version, license_, _, _, programs, _) in sorted(found.items()))
    sources = ", ".join(name for name, row in sorted(found.items()) if row[2])
    where = f" ({os.environ['URL']})" if os.environ.get("URL") else ""
    texts = {f"{name} {row[0]}": row[3].read_text() for name, row in sorted(found.items())}
    named = {name.rstrip(".") for text in texts.values() for name in re.findall(rf"{COMMON}/([A-Za-z][\w.+-]*)", text)}
    # A name without a number is that of the newest version: the same text once.
    common = {str((COMMON / name).resolve().name) for name in named if (COMMON / name).exists()}
    texts.update({f"The text of {name}, to which those above refer": (COMMON / name).read_text() for name in sorted(common)})
    return HEAD.format(sources=sources, version=version, where=where) + rows + "".join(
        f"\n\n{'=' * 100}\n{title}\n{'=' * 100}\n\n{text}" for title, text in texts.items())


def inside(bill_path, programs):
    """The parts of these programs by a list of components, themselves included."""
    made = json.loads(pathlib.Path(bill_path).read_text())
    names = {name for row in made["dependencies"] if row["ref"] in programs for name in [row["ref"], *row["dependsOn"]]}
    return [part for part in made["components"] if part["bom-ref"] in names]


def license_of(parts):
    """One expression of all: what offers a choice stands in parentheses."""
    found = dict.fromkeys(part["licenses"][0]["expression"] for part in parts)
    terms = dict.fromkeys(term for text in found for term in ([f"({text})"] if " OR " in text else text.split(" AND ")))
    return " AND ".join(terms)


def main(arguments):
    if arguments[0] == "--sources":
        for _, (version, _, asked, _, _, source) in sorted(components(pathlib.Path(arguments[1])).items()):
            if asked:
                print(f"{source}={version}")
        return
    if arguments[0] == "--license":
        print(license_of(inside(arguments[1], arguments[2:])))
        return
    if arguments[0] == "--inside":
        print(*[part["name"] for part in inside(arguments[1], arguments[2:])], sep="\n")
        return
    version, folder, target = arguments[0], *map(pathlib.Path, arguments[1:])
    found = components(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "pycap.cdx.json").write_text(json.dumps(bill(version, found), indent=1) + "\n")
    (target / "THIRD-PARTY").write_text(notices(version, found))


main(sys.argv[1:])
