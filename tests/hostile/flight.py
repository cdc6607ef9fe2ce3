# SPDX-License-Identifier: Apache-2.0
"""A flight recorder beside threads that switch as often as they can, and somebody who asks for files all the time."""
import contextlib
import pathlib
import signal
import subprocess
import time

import beside

RUNS_S, END_WITHIN_S = 8, 2
KINDS = ("lock", "places", "threads", "children")
OPTIONS = ["--wall", "--on-demand", "--before", "60", "--after", "2", "--keep", "3", "--when", "cpu>1%", "--when", "runq>0.01,every=1s"]


def flight(pycap, pysym, scene):
    del pysym
    with contextlib.ExitStack() as attackers:
        made = [beside.Attacker(attack, scene, pathlib.Path()) for attack in beside.switches(*KINDS)]
        for attacker in made:
            attackers.callback(attacker.close)
            attacker.why_not()
        with subprocess.Popen([str(pycap), "record", "-q", *OPTIONS, "-o", str(scene.top / "f-%t.bin")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              preexec_fn=beside.beside_victim) as recorder:
            memory = beside.Memory(recorder, scene.trace)
            time.sleep(1.5)
            for attacker in made:
                attacker.go()
            stop = time.monotonic() + RUNS_S
            while time.monotonic() < stop and recorder.poll() is None:
                recorder.send_signal(signal.SIGUSR1)
                time.sleep(0.02)
            told = time.monotonic()
            recorder.send_signal(signal.SIGTERM)
            try:
                said = recorder.communicate(timeout=30)[0]
            except subprocess.TimeoutExpired:
                recorder.kill()
                said = recorder.communicate()[0] + "it had to be killed"
            late_s, resident_kib = time.monotonic() - told, memory.close()
    print(f"          ended {late_s:+.1f} s, {resident_kib >> 10} MiB, {len(list(scene.top.glob('f-*.bin')))} files")
    if recorder.returncode:
        yield f"exit code {recorder.returncode}: {ascii(said[-500:])}"
    if late_s > END_WITHIN_S:
        yield f"it ended {late_s:.1f} s after it was told to"
    if resident_kib > beside.MOST_RESIDENT_KIB:
        yield f"it held {resident_kib >> 10} MiB"
    if not list(scene.top.glob("f-*.bin")):
        yield "there is no file"


CHECKS = [("a flight recorder beside threads that switch", flight)]
