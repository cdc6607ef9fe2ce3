#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the capture that `make demo` shows where BPF is not allowed: run as root on Debian 12 after `make demo`.
# Leaves demo.trace, clock (what the program measured) and demo_native.so (for its symbols).
set -eu
cd "$(dirname "$0")/../.."
demo=testdata/demo
cp build/demo/demo_native.so $demo/demo_native.so
rm -f $demo/demo.trace
build/pycap record -F 49 -o $demo/demo.trace -- env PYTHONPATH=$demo /usr/bin/python3 $demo/demo.py 10 >$demo/clock
ls -l $demo
