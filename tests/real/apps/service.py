# SPDX-License-Identifier: Apache-2.0
"""An asyncio service: FastAPI with validated items, and tasks that take turns. ASGI: service:app."""
import asyncio

import fastapi
import pydantic

app = fastapi.FastAPI()


class Item(pydantic.BaseModel):
    name: str
    price: float
    tags: list[str]


async def price_of(number):
    await asyncio.sleep(0)
    return sum(n * n % 97 for n in range(500 + number))


@app.get("/")
async def index() -> list[Item]:
    prices = await asyncio.gather(*(price_of(number) for number in range(10)))
    return [Item(name=f"item {n}", price=price, tags=["a", "b"]) for n, price in enumerate(prices)]
