# SPDX-License-Identifier: Apache-2.0
"""A small web shop for the tour in the README: each page checks a token, reads orders, renders and compresses them.

    python3 -m venv /tmp/shop && /tmp/shop/bin/pip install gunicorn flask
    /tmp/shop/bin/gunicorn --preload -w 4 shop:app
"""
import contextlib
import gzip
import hashlib
import os
import sqlite3
import tempfile

from flask import Flask, g, render_template_string, request

ORDERS, CUSTOMERS = 20_000, 400
PAGE = """<table>{% for order in orders %}
<tr><td>{{ order.id }}</td><td>{{ order.item|title }}</td><td>{{ '%.2f'|format(order.price) }}</td></tr>{% endfor %}
</table>"""

app = Flask(__name__)
path = os.path.join(tempfile.gettempdir(), f"shop-{os.getuid()}.sqlite")


def fill():
    """Makes the database: no index on orders.customer, so that each page reads the whole table."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE IF EXISTS orders")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, item TEXT, price REAL)")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)",
                       ((i, i % CUSTOMERS, f"thing number {i % 97}", i % 9973 / 100) for i in range(ORDERS)))


def check_token(token):
    return hashlib.pbkdf2_hmac("sha256", token.encode(), b"salt", 1000)


def orders_of(customer):
    if "db" not in g:
        g.db = sqlite3.connect(path)
        g.db.row_factory = sqlite3.Row
    return g.db.execute("SELECT * FROM orders WHERE customer = ?", (customer,)).fetchall()


def render(orders):
    return render_template_string(PAGE, orders=orders)


@app.teardown_appcontext
def close(_):
    if "db" in g:
        g.db.close()


@app.get("/")
def shop():
    check_token(request.args.get("token", "nobody"))
    page = render(orders_of(request.args.get("customer", 7, int)))
    return gzip.compress(page.encode()), {"Content-Encoding": "gzip", "Content-Type": "text/html"}


fill()
