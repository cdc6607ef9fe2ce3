#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches CPythons as users install them, byte for byte, into the cache, once, and prints a line for each: NAME VERSION COMMAND.
# usage: released.sh NAME...     as manylinux-3.14t; of several as a pattern: 'pbs-*', '*-3.6', '*'
#   pbs-*        python-build-standalone (what uv installs), out of a Go module that embeds it
#   manylinux-*  the interpreters of manylinux's and musllinux's images, which wheels of cx_Freeze and freeze-core have as the
#   musllinux-*  program of a frozen application. They get a standard library that is here, and a start script that takes
#                -c, -m or a file, whose frames lie below the program's own
#   epel-3.6     Red Hat's, out of bytedeco's first jar for Maven; with pyenv's standard library
#   bytedeco-*   bytedeco's own
# What can't be had gives "SKIPPED NAME: reason". Exit: 0, 2 usage, 77 none can be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

table='
pbs-3.10.6       module   v0.0.0-3.10.6-20220906-2
pbs-3.10.16      module   v0.0.0-3.10.16-20241219-1
pbs-3.11.11      module   v0.0.0-3.11.11-20241219-1
pbs-3.12.3       module   v0.0.0-3.12.3-20240415-2
pbs-3.13.1       module   v0.0.0-3.13.1-20241219-1
pbs-3.14.6       module   v0.0.0-3.14.6-20260610-1
manylinux-3.6    wheel    cx-freeze==6.13.2 cp36m
manylinux-3.7    wheel    cx-freeze==6.13.2 cp37m
manylinux-3.8    wheel    cx-freeze==7.2.10 cp38
manylinux-3.9    wheel    cx-freeze==8.4.1 cp39
manylinux-3.10   wheel    freeze-core==0.6.1 cp310
manylinux-3.11   wheel    freeze-core==0.8.1 cp311
manylinux-3.12   wheel    freeze-core==0.8.1 cp312
manylinux-3.13   wheel    freeze-core==0.8.1 cp313
manylinux-3.13t  wheel    freeze-core==0.6.1 cp313t
manylinux-3.14   wheel    freeze-core==0.8.1 cp314
manylinux-3.14t  wheel    freeze-core==0.8.1 cp314t
manylinux-3.15   wheel    freeze-core==0.8.1 cp315
manylinux-3.15t  wheel    freeze-core==0.8.1 cp315t
musllinux-3.11   wheel    freeze-core==0.8.1 cp311
musllinux-3.12   wheel    freeze-core==0.8.1 cp312
musllinux-3.13   wheel    freeze-core==0.8.1 cp313
musllinux-3.14   wheel    freeze-core==0.8.1 cp314
musllinux-3.14t  wheel    freeze-core==0.8.1 cp314t
musllinux-3.15   wheel    freeze-core==0.8.1 cp315
musllinux-3.15t  wheel    freeze-core==0.8.1 cp315t
epel-3.6         jar      3.6-1.5
bytedeco-3.7     jar      3.7.3-1.5.1
bytedeco-3.9     jar      3.9.2-1.5.5
bytedeco-3.10    jar      3.10.2-1.5.7
bytedeco-3.11    jar      3.11.3-1.5.9
bytedeco-3.12    jar      3.12.1-1.5.10
bytedeco-3.13    jar      3.13.5-1.5.12
bytedeco-3.14    jar      3.14.3-1.5.13
'

why= # the reason why the one that is being made cannot be had
cannot() {
    why=$*
    return 1
}

# Runs a program that fetches; if it fails its first error is the reason, or else the last thing that it said.
fetch() {
    command -v "$1" >/dev/null || cannot "no $1" || return
    timeout 120 nice -n 19 "$@" >"$work/log" 2>&1 </dev/null ||
        cannot "$1: $(grep -m 1 ERROR "$work/log" || tail -n 1 "$work/log")"
}

module() { # NAME VERSION
    local name=github.com/kluctl/go-embed-python
    GOPATH=$work/go GOFLAGS=-modcacherw fetch go mod download "$name@$2" || return
    # Its files are compressed one by one; a list says which are folders, links and programs.
    nice python3 - "$work/go/pkg/mod/$name@$2/python/internal/data/linux-amd64" "$work/made" <<'END'
import gzip, json, pathlib, sys

source, target = map(pathlib.Path, sys.argv[1:])
for entry in json.loads((source / "files.json").read_text())["files"]:
    file, path = source / entry["name"], target / entry["name"]
    if entry.get("symlink"):
        path.symlink_to(entry["symlink"])
    elif file.is_dir():
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = file.with_name(file.name + ".gz")
        path.write_bytes(gzip.decompress(packed.read_bytes()) if packed.exists() else file.read_bytes())
        path.chmod(entry["perm"] & 0o777 or 0o644)
END
}

library() { # VERSION: where a standard library of that version is
    local folder
    for folder in "$cache"/released/pbs-"$1"*/lib "$cache"/roots/*/usr/lib "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/lib /usr/lib; do
        [ ! -e "$folder/python$1/json/__init__.py" ] || { echo "$folder/python$1"; return; }
    done
}

# Their images have a newer musl than Debian 12, as the program's loader: it is put in the place of Debian's.
musl_command() { # NAME PYTHON
    local loader=usr/lib/ld-musl-x86_64.so.1 at=$cache/released/$1
    sh "$checkout/docs/build/deps.sh" musl >&2 && fetch_deb trixie musl "$work/made" >&2 || cannot "no package musl" || return
    mkdir "$work/made/bin"
    cat >"$work/made/bin/$2" <<END
#!/bin/sh
exec unshare --mount sh -c 'mount --bind "\$1" /lib/${loader##*/} && shift && exec "\$@"' sh "$at/$loader" "$at/app/$2" "\$@"
END
    chmod 755 "$work/made/bin/$2"
}

wheel() { # NAME PACKAGE ABI
    local version=${1#*-} platforms=(--platform musllinux_1_2_x86_64) from app=$work/made/app file
    local python=python$version
    version=${version%t}
    [ "${1%%-*}" = musllinux ] || platforms=(--platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64)
    from=$(library "$version")
    [ -n "$from" ] || cannot "no standard library of $version: tests/released.sh pbs-$version.*, tests/interpreters.sh or pyenv" || return
    fetch python3 -m pip download --disable-pip-version-check --no-deps --only-binary :all: --implementation cp --retries 1 \
        --python-version "$version" --abi "$3" "${platforms[@]}" -d "$work" "$2" || return
    mkdir "$work/made"
    python3 -m zipfile -e "$work"/*.whl "$work/made"
    mv "$work"/made/freeze_core "$app" 2>/dev/null || mv "$work"/made/cx_Freeze "$app"
    mkdir -p "$app/lib"
    mv "$app"/bases/console-cpython-* "$app/$python"
    chmod 755 "$app/$python"
    for file in "$app"/bases/lib/* "$app"/bases/lib-dynload/*; do
        [ ! -e "$file" ] || mv "$file" "$app/lib/"
    done
    for file in "$work"/made/*.libs/*; do
        [ ! -e "$file" ] || ln -sf "../../${file#"$work/made/"}" "$app/lib/"
    done
    rm -rf "${app:?}"/{bases,icons,include,legacy,share}
    for file in "$from"/*; do
        case $file in
        */lib-dynload | */site-packages | */dist-packages | */_sysconfigdata*) ;;
        *) [ -e "$app/lib/${file##*/}" ] || ln -s "$file" "$app/lib/" ;;
        esac
    done
    if [ "${1%%-*}" = manylinux ]; then
        ln -s app "$work/made/bin"
    else
        musl_command "$1" "$python" || return
    fi
    # Frozen in from 3.11 on; those before look for it in a file.
    echo 'from __init__python3 import init, run' >"$app/lib/__startup__.py"
    cat >"$app/lib/__init__python3.py" <<'END'
import os, sys

sys.dont_write_bytecode = True


def init():
    pass


def run(*_):
    del sys.argv[0]
    space = sys.modules["__main__"].__dict__
    if sys.argv[0] in ("-c", "-m"):
        kind, text = sys.argv[:2]
        del sys.argv[1]
        sys.path.insert(0, "")
        if kind == "-m":
            import runpy
            return runpy.run_module(text, run_name="__main__", alter_sys=True)
        return exec(compile(text, "<string>", "exec"), space)
    path = sys.argv[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    space["__file__"] = path
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    exec(code, space)
END
}

jar() { # NAME VERSION
    local python from at=$work/made
    python=python$(grep -oE '^3\.[0-9]+' <<<"$2")
    fetch mvn -q -B -Dmaven.repo.local="$work/maven" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact="org.bytedeco:cpython:$2:jar:linux-x86_64" -DoutputDirectory="$work" || return
    python3 -m zipfile -e "$work"/cpython-*.jar "$work/unpacked"
    mv "$work/unpacked/org/bytedeco/cpython/linux-x86_64" "$at"
    rm -rf "${at:?}"/{bin,include,share,libs,libjnipython.so}
    mkdir -p "$at/bin" "$at/lib"
    mv "$at"/lib*.so* "$at/lib/"
    if [ ! -e "$at/lib/$python" ]; then
        from=$(library "${python#python}")
        [ -n "$from" ] || cannot "no standard library of ${python#python}: pyenv" || return
        ln -s "$from" "$at/lib/"
        ln -s lib "$at/lib64"
    fi
    chmod 755 "$at/$python"
    cat >"$at/bin/$python" <<END
#!/bin/sh
at='$cache/released/$1'
LD_LIBRARY_PATH=\$at/lib PYTHONHOME=\$at exec "\$at/$python" "\$@"
END
    chmod 755 "$at/bin/$python"
}

make_one() { # NAME HOW ARGUMENT...
    local name=$1 how=$2 at=$cache/released/$1 work began=$SECONDS status=0
    [ ! -e "$at/.complete" ] || return 0
    say "  FETCH   $name"
    mkdir -p "$cache/released"
    work=$(mktemp -d "$cache/released/.XXXXXX")
    shift 2
    "$how" "$name" "$@" || status=1
    if [ $status = 0 ]; then
        rm -rf "$at"
        mv "$work/made" "$at" || status=1
    fi
    rm -rf "$work"
    fetched $((SECONDS - began))
    return $status
}

[ $# -gt 0 ] || { sed -n '/^# usage/,/^# What/p' "$0" >&2; exit 2; }
[ "$(uname -m)" = x86_64 ] || skip "they are fetched for x86-64 only"
made=0
cache_lock released
for pattern; do
    known=0
    while read -r name how arguments; do
        # shellcheck disable=SC2053
        [ -n "$name" ] && [[ $name == $pattern ]] || continue
        known=1
        # shellcheck disable=SC2086
        make_one "$name" "$how" $arguments || { echo "SKIPPED $name: $why"; continue; }
        python=$(find "$cache/released/$name/bin/" -regex '.*/python3\.[0-9]+t?' | head -n 1)
        if version=$("$python" -c 'import sys, json, threading; print(sys.version.split()[0])' 2>&1); then
            touch "$cache/released/$name/.complete"
            echo "$name $version $python"
            made=1
        else
            echo "SKIPPED $name: does not run: $(tail -n 1 <<<"$version")"
        fi
    done <<<"$table"
    [ $known = 1 ] || { say "no released interpreter is called $pattern"; exit 2; }
done
[ $made = 1 ] || exit 77
