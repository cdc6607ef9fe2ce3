# SPDX-License-Identifier: Apache-2.0
"""A Flask application: a page from a template, text that is searched, and a digest. WSGI: web:app."""
import hashlib
import re

import flask

app = flask.Flask(__name__)
PAGE = "<ul>{% for item in items %}<li>{{ loop.index }}: {{ item.name|title }}</li>{% endfor %}</ul>"
WORD = re.compile(r"(\w+)-(\d+)")
TEXT = " ".join(f"item-{number}" for number in range(300))


def find_items():
    return [{"name": match[1], "number": int(match[2])} for match in WORD.finditer(TEXT)]


def sign(page):
    digest = b""
    for _ in range(50):
        digest = hashlib.sha256(page + digest).digest()
    return digest.hex()


@app.route("/")
def index():
    page = flask.render_template_string(PAGE, items=find_items())
    return flask.jsonify(length=len(page), digest=sign(page.encode()))
