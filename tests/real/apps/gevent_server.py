# SPDX-License-Identifier: Apache-2.0
"""A server of gevent's: each request is a greenlet, and makes others that take turns. usage: gevent_server.py PORT"""
import sys

from gevent import monkey

monkey.patch_all()

import gevent  # noqa: E402
import gevent.pywsgi  # noqa: E402

from web import app  # noqa: E402


def count(numbers):
    total = 0
    for number in range(numbers):
        total += number * number % 97
        if number % 500 == 0:
            gevent.sleep(0)
    return total


def serve(environ, start_response):
    gevent.joinall([gevent.spawn(count, 2000) for _ in range(3)])
    return app(environ, start_response)


gevent.pywsgi.WSGIServer(("127.0.0.1", int(sys.argv[1])), serve, log=None).serve_forever()
