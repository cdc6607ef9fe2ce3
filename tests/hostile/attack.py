# SPDX-License-Identifier: Apache-2.0
"""What attack programs have in common: they prepare, wait until the runner says so, attack, and end by themselves.

Their first argument is for how many seconds they attack. The runner takes "skip: REASON" on standard output for an attack
that this machine does not allow.
"""
import sys
import time

stop = 0.0  # when the attack ends, by time.time()


def wait_for_go():
    """Says that all is prepared, and waits for the runner."""
    global stop
    print("ready", flush=True)
    sys.stdin.readline()
    stop = time.time() + float(sys.argv[1])


def skip(why):
    print(f"skip: {why}", flush=True)
    sys.exit(0)
