#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The libraries that make static builds first, kept in the cache as long as their recipe is the same.
# Exit: 0, 1 failed, 77 their sources cannot be had.
set -euo pipefail
. "$(dirname "$0")/debian.sh"
cd "$checkout"
recipe=$(cat docs/build/static-libraries.sh docs/build/debian-sources.sh | sha256sum | cut -c 1-16)
kept=$cache/static-libraries-$recipe
cache_lock static-libraries
if [ ! -e build/static/.libraries ] && [ -e "$kept/.libraries" ]; then
    mkdir -p build/static
    cp -R "$kept/." build/static
fi
make build/static/.libraries
[ -e "$kept/.libraries" ] || { mkdir -p "$kept" && cp -R build/static/lib build/static/include build/static/.libraries "$kept"; }
