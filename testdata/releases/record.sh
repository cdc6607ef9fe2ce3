#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the trace that every later pysym has to read as this one does: of threads, on and off the CPU, with page faults and waits for
# the GIL. Run once for a release, as root; the file is never changed afterwards.
# usage: record.sh VERSION     leaves VERSION.trace here, and VERSION.json: what is in it
set -eu
cd "$(dirname "$0")/../.."
kept=testdata/releases/$1
[ ! -e "$kept.trace" ] || { echo "$kept.trace is there; a released trace stays as it is" >&2; exit 1; }
build/pycap record -q -F 199 -e cpu-clock -e page-faults -e off-cpu --cmdline -o "$kept.trace" -- /usr/bin/python3 testdata/programs/threads.py 0.02
# shellcheck disable=SC2016
PYTHONPATH=tests/integration /usr/bin/python3 -c '
import json, sys
from releases import account
print(json.dumps(account("build/pysym", sys.argv[1]), indent=1))' "$kept.trace" >"$kept.json"
chmod 644 "$kept.trace"
