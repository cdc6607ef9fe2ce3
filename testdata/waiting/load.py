# SPDX-License-Identifier: Apache-2.0
"""
Clients of flaskr, the tutorial in Flask's source (examples/tutorial): some log in and write posts, others read the front page.
flaskr.trace was recorded while they ran, with Debian's Python 3.11, Flask 3 and gunicorn, as docs/waiting.md says:

    python3 -m flask --app flaskr init-db
    python3 -m gunicorn --threads 8 -b 127.0.0.1:8123 'flaskr:create_app()' &
    python3 load.py 8123 11 4 4 &
    pycap record --wall -d 8 -p PID -o flaskr.trace

usage: load.py PORT SECONDS WRITERS READERS
"""
import http.client
import sys
import threading
import time
import urllib.parse

PORT, SECONDS, WRITERS, READERS = map(int, sys.argv[1:])
END = time.monotonic() + SECONDS


def call(method, path, form=None, cookie=None):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} | ({"Cookie": cookie} if cookie else {})
    connection.request(method, path, urllib.parse.urlencode(form) if form else None, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def write(number):
    user = {"username": f"writer-{number}-{time.time_ns()}", "password": "p"}
    call("POST", "/auth/register", user)
    cookie = call("POST", "/auth/login", user).getheader("Set-Cookie").split(";")[0]
    while time.monotonic() < END:
        call("POST", "/create", {"title": "t", "body": "b" * 200}, cookie)


def read():
    while time.monotonic() < END:
        call("GET", "/")


for client in [threading.Thread(target=write, args=(i,)) for i in range(WRITERS)] + [
        threading.Thread(target=read) for _ in range(READERS)]:
    client.start()
