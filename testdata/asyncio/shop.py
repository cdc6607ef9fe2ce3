# SPDX-License-Identifier: Apache-2.0
"""A shop with aiohttp: what docs/asyncio.md looks at. Run "supplier", "shop" and "load", each in a process of its own.

For each order the shop asks a supplier for two things at once, by four connections at most, reserves the goods under a lock, and
writes a receipt, for which it computes some milliseconds.

usage: shop.py supplier|shop|load     (aiohttp 3)
"""
import asyncio
import random
import sys

from aiohttp import ClientSession, TCPConnector, web

SUPPLIER, SHOP = 8081, 8082


async def answer(request):
    await asyncio.sleep(random.uniform(0.02, 0.06))
    return web.Response(text="12")


async def ask(session, what):
    async with session.get(f"http://127.0.0.1:{SUPPLIER}/{what}") as reply:
        return int(await reply.text())


async def reserve(app, count):
    async with app["stock"]:
        await asyncio.sleep(0.01)  # the database
        return count


def receipt(price, count):
    return sum(price * i % 7 for i in range(40000 + count))


async def order(request):
    price, count = await asyncio.gather(ask(request.app["session"], "price"), ask(request.app["session"], "count"))
    count = await reserve(request.app, count)
    return web.Response(text=str(receipt(price, count)))


async def shop(app):
    app["stock"] = asyncio.Lock()
    app["session"] = ClientSession(connector=TCPConnector(limit=4))
    yield
    await app["session"].close()


async def buy(session):
    while True:
        async with session.get(f"http://127.0.0.1:{SHOP}/order") as reply:
            await reply.text()


async def load():
    async with ClientSession() as session:
        await asyncio.gather(*[buy(session) for _ in range(12)])


if __name__ == "__main__":
    if sys.argv[1] == "load":
        asyncio.run(load())
    app = web.Application()
    if sys.argv[1] == "shop":
        app.cleanup_ctx.append(shop)
        app.router.add_get("/order", order)
    else:
        app.router.add_get("/{what}", answer)
    web.run_app(app, port=SHOP if sys.argv[1] == "shop" else SUPPLIER, print=None)
