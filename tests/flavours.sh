#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes CPythons of other flavours than the usual in the cache, and prints a line for each: NAME VERSION COMMAND.
# By hand, before recording them (testdata/spaces/record.sh) or running live tests with PYTHONS; make check needs none.
# usage: flavours.sh NAME...
#   3.11d 3.13d 3.14d 3.15d  Debian's debug builds; 3.11d uses this machine's library of 3.11, the others lie in the
#                            root trees of tests/interpreters.sh
#   3.13t                    free-threaded, built from Debian's source package: minutes
#   3.13-musl                with musl's C library (package musl-tools), from the same source: minutes
#   3.Xt 3.X-tail 3.X-jit    CPYTHON_SOURCE is a source tree of that version: free-threaded, with tail calls, with the
#                            JIT on; the last two need a clang 19 on the PATH
# What can't be made gives "SKIPPED NAME: reason". Exit: 0, 1 failed, 2 usage, 77 none can be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

[ $# -gt 0 ] || { sed -n 6,13p "$0" >&2; exit 2; }
[ "$(uname -m)" = x86_64 ] || skip "flavours are made for x86-64 only"

debug_build() { # NAME SUITE
    local version=${1%d} root=$cache/roots/$2
    [ "$2" = bookworm ] && root=$cache/flavours/$1 && mkdir -p "$root"
    [ "$2" = bookworm ] || [ -e "$root/.complete" ] || { echo "SKIPPED $1: no root tree: tests/interpreters.sh $2"; return; }
    if [ ! -e "$root/usr/bin/python$1" ] && ! fetch_deb "$2" "python$version-dbg" "$root"; then
        echo "SKIPPED $1: the archive has no python$version-dbg"
        return
    fi
    if [ "$2" = bookworm ]; then
        line "$1" "$root/usr/bin/python$1"
    else
        line "$1" "$tests/in-root.sh" "$root" "/usr/bin/python$1"
    fi
}

debian_source() { # VERSION: prints where its source lies
    local at=$cache/sources/$1
    if [ ! -e "$at/.complete" ]; then
        rm -rf "$at" && mkdir -p "$at"
        suite_apt trixie true
        # The suite's list has no sources; a second one beside it does.
        sed 's/^deb /deb-src /' "$cache/apt/trixie/sources.list" >"$at/sources.list"
        mkdir -p "$at/lists/partial" "$at/cache/archives/partial"
        local options=(-oDir::Etc::SourceList="$at/sources.list" -oDir::Etc::SourceParts=/nonexistent
            -oDir::State::Lists="$at/lists" -oDir::Cache="$at/cache" -oDir::State::status=/dev/null
            -oAPT::Sandbox::User=root -oAcquire::Languages=none)
        nice apt-get -qq "${options[@]}" update >&2 || return 1
        (cd "$at" && nice apt-get -qq "${options[@]}" source "python$1" >"$at/log" 2>&1) || return 1
        touch "$at/.complete"
    fi
    find "$at" -maxdepth 1 -type d -name "python$1-*" | head -n 1
}

# configure wants gcc's name for the platform to be the one that the headers tell; modules that need other libraries
# are left out.
musl_compiler() { # SOURCE FOLDER
    local triplet
    triplet=$(musl-gcc -E "$1/Misc/platform_triplet.c" | sed -n 's/^PLATFORM_TRIPLET= *//p')
    printf '#!/bin/sh\n[ "$1" = --print-multiarch ] && exec echo %s\nexec musl-gcc "$@"\n' "$triplet" >"$2/cc"
    chmod +x "$2/cc"
}

build() { # NAME
    local name=$1 version at=$cache/flavours/$1 source=${CPYTHON_SOURCE:-} work=$cache/build/$1 compiler=gcc
    local settings=(--without-ensurepip --disable-test-modules) environment=()
    version=$(grep -oE '^3\.[0-9]+' <<<"$name")
    case $name in
    *t) settings+=(--disable-gil) ;;
    *-tail) settings+=(--with-tail-call-interp) compiler=clang-19 ;;
    *-jit) settings+=(--enable-experimental-jit=yes) compiler=clang-19 ;;
    *-musl) compiler=musl-gcc ;;
    esac
    if [ ! -e "$at/.complete" ]; then
        command -v $compiler >/dev/null || { echo "SKIPPED $name: no $compiler"; return; }
        [ -n "$source" ] || [ "$version" = 3.13 ] || { echo "SKIPPED $name: set CPYTHON_SOURCE to a source tree of $version"; return; }
        [ -n "$source" ] || source=$(debian_source "$version") || { echo "SKIPPED $name: no source package"; return; }
        say "  BUILD   $name"
        rm -rf "$at" "$work" && mkdir -p "$at" "$work"
        if [ $compiler = musl-gcc ]; then
            musl_compiler "$source" "$work"
            compiler=$work/cc
            environment=(PKG_CONFIG=false MODULE_BUILDTYPE=static)
        fi
        if ! (cd "$work" && env "${environment[@]}" CC="$compiler" nice "$source/configure" -q --prefix="$at" "${settings[@]}" && nice make -s -j2 &&
            nice make -s COMPILEALL_OPTS=-qq altinstall) >"$work.log" 2>&1 </dev/null; then
            say "building $name failed, see $work.log"
            failed=1
            return
        fi
        rm -rf "$work" && touch "$at/.complete"
    fi
    line "$name" "$(find "$at/bin" -name "python$version*" ! -name '*config' | head -n 1)"
}

line() { # NAME COMMAND...
    local number
    if number=$("${@:2}" -c 'import sys, json, threading; print(sys.version.split()[0])'); then
        echo "$1 $number ${*:2}"
        made=1
    else
        say "$1 does not run"
        failed=1
    fi
}

failed=0 made=0
cache_lock flavours
for name; do
    case $name in
    3.11d) debug_build "$name" bookworm ;;
    3.13d) debug_build "$name" trixie ;;
    3.14d | 3.15d) debug_build "$name" sid ;;
    3.[0-9]*t | 3.[0-9]*-tail | 3.[0-9]*-jit | 3.[0-9]*-musl) build "$name" ;;
    *) say "unknown flavour $name"; exit 2 ;;
    esac
done
[ $failed = 0 ] || exit 1
[ $made = 1 ] || exit 77
