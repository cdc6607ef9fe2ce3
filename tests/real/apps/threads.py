# SPDX-License-Identifier: Apache-2.0
"""Many threads that work in turns. usage: threads.py [THREADS]"""
import sys
import threading
import time


def compute(numbers):
    return sum(number * number % 97 for number in range(numbers))


def serve(number):
    while True:
        compute(2000 + number * 10)
        time.sleep(0.2)


for made in range(int(sys.argv[1]) if len(sys.argv) > 1 else 500):
    threading.Thread(target=serve, args=(made,), name=f"worker-{made}" if made % 2 else None, daemon=True).start()
threading.Event().wait()
