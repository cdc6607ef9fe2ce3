# SPDX-License-Identifier: Apache-2.0
"""Tasks for workers of celery. The broker is memory of the first process, which sends the tasks, too."""
import threading
import time

import celery
from celery.signals import worker_ready

from work import answer, count, parse

app = celery.Celery("queue_tasks", broker="memory://")
app.conf.task_ignore_result = True


@app.task
def small():
    for _ in range(20):
        answer()


@app.task
def large():
    for _ in range(100):
        parse()
        count()


def send():
    for _ in range(400):
        small.delay()
        large.delay()
        time.sleep(0.05)


@worker_ready.connect
def begin(**_):
    threading.Thread(target=send, daemon=True).start()
