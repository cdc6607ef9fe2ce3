# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that take kernels and interpreters from Debian's archive.
# Everything they leave on disk lies in the cache, outside the checkout. The archive
# is the one this machine's own apt uses; its configuration and lists are not touched:
# each suite gets lists of its own in the cache, checked against Debian's keyring.
# shellcheck shell=bash

cache=${PYCAP_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pycap-tests}
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(dirname "$tests")
mkdir -p "$cache"
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

# fetched SECONDS: what was fetched took so long, says the file FETCHED, where that is set.
fetched() { [ -z "${FETCHED-}" ] || echo "$1" >>"$FETCHED"; }

say() { printf '%s\n' "$*" >&2; }

# The reason why a test can't run: callers count exit code 77 as skipped.
skip() {
    say "SKIP: $*"
    exit 77
}

# Two make targets may ask for the same kernel or tree at once.
cache_lock() { # NAME
    exec {cache_lock_fd}>"$cache/$1.lock"
    flock "$cache_lock_fd"
}

debian_mirror() {
    # /debian/, also with a component path before it, but none of the other archives
    apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 2>/dev/null |
        grep -E '/debian/?$' | sed 's,/*$,,' | sort -u | head -n 1
}

# suite_apt SUITE TOOL ARGS...: apt-get or apt-cache with the lists of one suite.
suite_apt() {
    local suite=$1 tool=$2 dir=$cache/apt/$1 mirror
    shift 2
    local options=(-oDir::Etc::SourceList="$dir/sources.list" -oDir::Etc::SourceParts=/nonexistent
        -oDir::State::Lists="$dir/lists" -oDir::Cache="$dir/cache" -oDir::State::status=/dev/null
        -oAPT::Architecture=amd64 -oAPT::Architectures=amd64 -oAPT::Sandbox::User=root
        -oAPT::Update::Post-Invoke-Success= -oAcquire::Languages=none -oAcquire::Retries=3)
    if [ ! -e "$dir/updated" ] || [ -n "$(find "$dir/updated" -mmin +1440)" ]; then
        mirror=$(debian_mirror)
        [ -n "$mirror" ] || { say "apt on this machine names no Debian archive"; return 1; }
        mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
        echo "deb $mirror $suite main" >"$dir/sources.list"
        nice apt-get -qq "${options[@]}" update >"$dir/update.log" 2>&1 ||
            { tail -n 5 "$dir/update.log" >&2; return 1; }
        touch "$dir/updated"
    fi
    nice "$tool" "${options[@]}" "$@"
}

fetch_deb() { # SUITE PACKAGE ROOT: unpacks it there, without what it depends on
    local at=$cache/debs/$2
    rm -rf "$at" && mkdir -p "$at"
    (cd "$at" && suite_apt "$1" apt-get -qq download "$2") && nice dpkg-deb -x "$at"/*.deb "$3"
    rm -rf "$at"
}

root_trees_or_skip() {
    [ "$(id -u)" = 0 ] || skip "needs root to make root trees"
    sh "$checkout/docs/build/deps.sh" mmdebstrap >&2 || skip "mmdebstrap can't be installed"
    [ "$(uname -m)" = x86_64 ] || skip "root trees are made for x86-64 only"
}

# root_tree NAME SUITE OPTIONS...: a root tree of one suite, made by mmdebstrap with the options, in
# $cache/roots/NAME; nothing to do if it is there.
root_tree() {
    local name=$1 suite=$2 root=$cache/roots/$1 mirror option options=() began=$SECONDS
    shift 2
    mkdir -p "$cache/roots"
    cache_lock "roots/$name"
    [ -e "$root/.complete" ] && return
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || return 1
    say "  ROOT    $name"
    rm -rf "$root"
    # mmdebstrap's apt does not read this machine's settings: proxies, and whether a mirror may be out of date.
    while read -r option; do
        options+=(--aptopt="$option")
    done < <(apt-config dump Acquire | grep -E '^Acquire::(Check-|https?::)')
    nice mmdebstrap --quiet --mode=root --aptopt='APT::Sandbox::User "root"' --aptopt='Acquire::Retries "3"' \
        "${options[@]}" "$@" "$suite" "$root" "deb $mirror $suite main" 2>"$root.log" </dev/null || return 1
    touch "$root/.complete"
    fetched $((SECONDS - began))
}
