# SPDX-License-Identifier: Apache-2.0
"""COUNT tasks of asyncio that wait for SECONDS in stacks of DEPTH coroutines; then prints as JSON how much CPU time the waiting
took. With TURNS, so many tasks a second are woken and wait again, one after the other.

usage: many_tasks.py COUNT DEPTH SECONDS [TURNS]     (Python 3.7 or later)
"""
import asyncio
import json
import sys
import time


async def nested(depth, events, number):
    if depth > 1:
        await nested(depth - 1, events, number)
    else:
        while True:
            await events[number].wait()
            events[number].clear()


async def main(count, depth, seconds, turns):
    events = [asyncio.Event() for _ in range(count)]
    tasks = [asyncio.ensure_future(nested(depth, events, i)) for i in range(count)]
    await asyncio.sleep(0)
    print("waiting", flush=True)
    before, end, number = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await asyncio.sleep(0.01 if turns else min(1, seconds))
        for _ in range(turns // 100):
            events[number % count].set()
            number += 1
    print(json.dumps({"cpu_s": time.process_time() - before, "turns": number}), flush=True)
    for task in tasks:
        task.cancel()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0))
