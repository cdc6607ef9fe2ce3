# SPDX-License-Identifier: Apache-2.0
"""The program of docs/memory.md, and of shop.trace beside it: counts its requests for Prometheus. Recorded with Debian's
Python 3.11, Flask 3.1, gunicorn 27 and prometheus-flask-exporter 0.23, load.py beside:

    gunicorn --threads 2 -b 127.0.0.1:8155 shop:app &
    python3 load.py 8155 14 &
    pycap record -e page-faults -d 10 -p PID -o shop.trace

FIXED=1 in the environment groups requests by rule, as the page does in the end.
"""
import os

from flask import Flask, render_template
from prometheus_flask_exporter import PrometheusMetrics

app = Flask(__name__)
PrometheusMetrics(app, group_by="url_rule" if os.environ.get("FIXED") else "path")


@app.get("/item/<int:number>")
def item(number):
    return render_template("item.html", number=number)
