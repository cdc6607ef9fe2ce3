#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the README's picture anew: records the shop under load and draws docs/tour/shop.svg.
# Wants root, wrk, and gunicorn and flask on the PATH, such as those of a virtual environment.
# usage: picture.sh [BUILDDIR]
set -eu
build=$(realpath "${1:-$(dirname "$0")/../../build}")
cd "$(dirname "$0")"
dir=$(mktemp -d)
gunicorn=
trap '[ -z "$gunicorn" ] || kill "$gunicorn"; rm -rf "$dir"' EXIT
address=127.0.0.1:8765

gunicorn --preload -w 4 -b $address shop:app >"$dir/log" 2>&1 &
gunicorn=$!
until grep -q "Booting worker" "$dir/log"; do
    kill -0 "$gunicorn" || { cat "$dir/log" >&2; gunicorn=; exit 1; }
    sleep 0.1
done
wrk -t 1 -c 8 -d 12s http://$address/ >"$dir/wrk" &
"$build/pycap" record -p "$gunicorn" -d 10 -F 499 -o "$dir/shop.bin"
"$build/pysym" "$dir/shop.bin" -o shop.svg --merge all --min 1% --root-at Flask.full_dispatch_request
ls -l shop.svg
