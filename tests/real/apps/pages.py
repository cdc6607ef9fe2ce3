# SPDX-License-Identifier: Apache-2.0
"""One page for servers: pages:wsgi, pages:asgi, and pages:flask_app where Flask is asked for."""
from work import answer


def wsgi(_, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer().encode()]


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    body = answer().encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


def __getattr__(name):
    if name != "flask_app":
        raise AttributeError(name)
    import flask
    app = flask.Flask("pages")
    app.add_url_rule("/", view_func=answer, endpoint="index")
    return app
