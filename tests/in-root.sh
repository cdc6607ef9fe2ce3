#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a root tree of tests/interpreters.sh as in a container: in a mount namespace of its own, where
# this checkout and the directory of temporary files have the paths they have here.
# usage: in-root.sh ROOT COMMAND [ARG...]     (as root)
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
root=$1
shift
[ -e "$root/.complete" ] || { echo "$root is no root tree" >&2; exit 77; }
# shellcheck disable=SC2016
exec unshare --mount --propagation private sh -ceu '
root=$1
for directory in /proc /dev "$2" "$3"; do
    mkdir -p "$root$directory"
    mount --rbind "$directory" "$root$directory"
done
shift 3
exec chroot "$root" env -C "$PWD" "$@"' sh "$root" "$checkout" "${TMPDIR:-/tmp}" "$@"
