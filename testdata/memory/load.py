# SPDX-License-Identifier: Apache-2.0
"""Two clients of shop.py, each of which asks for another item with each request.

usage: load.py PORT SECONDS
"""
import http.client
import itertools
import sys
import threading
import time

PORT, SECONDS = map(int, sys.argv[1:])
END, FIRST = time.monotonic() + SECONDS, time.time_ns() // 10**6 % 10**7 * 1000


def ask(number):
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    for item in itertools.count(FIRST + number, 2):
        if time.monotonic() > END:
            return
        connection.request("GET", f"/item/{item}")
        connection.getresponse().read()


threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
