#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records the address spaces kept here: record.sh NAME PYTHON (as root; needs build/tools/record_space).
# PYTHON may be a script that starts an interpreter of a root tree: it has to become that process (exec, chroot), with
# the chain.py of its folder copied to where the interpreter sees it under that name.
# 3.14-free-threaded: no release's source was to be had; a build of the development branch just after 3.15 had left
# it, with the version number set to 3.14.0, stands in (its frames, code objects and strings are those of 3.14).
# Fails when the walk differs from what the interpreter says of itself; look at NAME.expected before committing it.
set -eu
name=$1 python=$2
here=$(dirname "$0")
tmp=$(mktemp -d)
trap 'kill $pid $feeder 2>/dev/null || true; rm -rf "$tmp"' EXIT
mkfifo "$tmp/in"
sleep 30 >"$tmp/in" &
feeder=$!
# A fixed file name, so that recordings do not tell where they were made.
# Two programs: 2.7 has neither "yield from" nor names beyond ASCII, and makes such a name by hand. They stay apart, and
# their lines where they are: the recordings and *.expected hold the line numbers of each.
case $("$python" -c 'import sys; print(sys.version_info[0])') in
2) cp "$here/chain2.py" "$tmp/chain.py" ;;
*) cp "$here/chain.py" "$tmp/chain.py" ;;
esac
(cd "$tmp" && exec "$python" chain.py <in >said) &
pid=$!
while ! grep -q END "$tmp/said" 2>/dev/null; do sleep 0.1; done
sleep 0.3
"$here/../../build/tools/record_space" "$pid" "$here/$name.space" >"$here/$name.expected"
grep -v END "$tmp/said" >"$tmp/a"
grep -vE '^(--|#)' "$here/$name.expected" >"$tmp/b"
diff "$tmp/a" "$tmp/b"
echo "$name: $(wc -l <"$tmp/a") frames as the interpreter has them"
