#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks pycap as other users of the host would, and pysym by files from elsewhere. Closes with the counts.

A group of attacks that fails is run once more: an attack that does harm does it each time, where a busy machine may once
give the recorder no CPU for a second. If it fails again its attacks are run one by one, to name the one that does it.

Without words it leaves out those that differ from others only by how a session begins. With TICKS in the environment each group runs by turns with recordings without attackers until the victim had so many ticks.

usage: run.py PYCAP PYSYM PROGRAMS [WORD...]     PROGRAMS: folder of the compiled attack programs.
                                                 WORD: only groups and attacks with that in their name
"""
import concurrent.futures
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import beside  # noqa: E402  (needs the path above)
import files  # noqa: E402
import flight  # noqa: E402
import held  # noqa: E402


TICKS = int(os.environ.get("TICKS") or 0)


class Counts:
    passed = failed = skipped = 0


def why_not_here(pycap):
    """Why nothing can be attacked here, or None."""
    if os.geteuid():
        return "only root can record other users' processes"
    done = subprocess.run([pycap, "info"], capture_output=True, text=True, check=False)
    if "\nsampling" not in done.stdout or " yes" not in done.stdout.split("\nsampling", 1)[1].split("\n", 1)[0]:
        return f"pycap cannot record here: {done.stdout[-300:]}{done.stderr}"
    return None


def attack_beside(pycap, pysym, programs, group, attacks):
    began = time.monotonic()
    if TICKS:
        text, faults, skipped = beside.run_in_turns(pycap, pysym, programs, group, attacks, TICKS)
    else:
        text, faults, skipped = beside.run_group(pycap, pysym, programs, group, attacks)
    print(f"  {'FAILED ' if faults else 'ok     '} {group.name} ({len(attacks) - len(skipped)} attacks): {text}; "
          f"{time.monotonic() - began:.1f} s", flush=True)
    for name, why in skipped.items():
        print(f"          skipped: {name}: {why}")
    for fault in faults:
        print(f"          {fault}", flush=True)
    return faults, skipped


def check_one(check, pycap, pysym, programs):
    """What it printed, its faults, and the seconds that it took."""
    began = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        faults = files.run(check, pycap, pysym, programs)
    return said.getvalue(), faults, time.monotonic() - began


def check_each(pycap, pysym, programs, words, counts):
    """Those of the recorder one after the other, and beside them those of pysym."""
    with concurrent.futures.ProcessPoolExecutor(1) as of_pycap, concurrent.futures.ProcessPoolExecutor(1) as of_pysym:
        runs = [(name, lane.submit(check_one, check, pycap, pysym, programs))
                for lane, checks in ((of_pycap, (*held.CHECKS, *flight.CHECKS)), (of_pysym, files.CHECKS))
                for name, check in checks if not words or any(word in name for word in words)]
        for name, run in runs:
            said, faults, seconds = run.result()
            print(f"{said}  {'FAILED ' if faults else 'ok     '} {name}; {seconds:.1f} s", flush=True)
            for fault in faults:
                print(f"          {fault}", flush=True)
            counts.failed += bool(faults)
            counts.passed += not faults


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    pycap, pysym, programs = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    words, counts = sys.argv[4:], Counts()
    why = why_not_here(pycap)
    if why:
        print(why)
        sys.exit(77)
    for group in beside.GROUPS:
        attacks = [a for a in group.attacks if not words or any(w in group.name or w in a.name for w in words)]
        if not attacks or (group.rare and not words and not TICKS):
            continue
        faults, skipped = attack_beside(pycap, pysym, programs, group, attacks)
        if faults:
            print("        once more:")
            faults, skipped = attack_beside(pycap, pysym, programs, group, attacks)
        culprits = 0
        if faults and len(attacks) > 1:
            for attack in attacks:
                print(f"        alone: {attack.name}")
                culprits += bool(attack_beside(pycap, pysym, programs, group, [attack])[0])
        counts.skipped += len(skipped)
        counts.failed += max(culprits, bool(faults))
        counts.passed += len(attacks) - len(skipped) - max(culprits, bool(faults))
    check_each(pycap, pysym, programs, words, counts)
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
