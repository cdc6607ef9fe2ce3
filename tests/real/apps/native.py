# SPDX-License-Identifier: Apache-2.0
"""Extension modules of data, a phase each: numpy, OpenCV, pandas, orjson, pydantic, and Python beside them."""
import json

import cv2
import numpy
import orjson
import pandas
import pydantic

from clocks import by_turns, phase


class Item(pydantic.BaseModel):
    name: str
    numbers: list[int]


numbers = numpy.random.default_rng(1).random((300, 300))
image = numpy.random.default_rng(1).integers(0, 255, (1500, 1500, 3), dtype=numpy.uint8)
table = pandas.DataFrame({"key": numpy.arange(30000) % 97, "value": numpy.arange(30000.0)})
items = [{"name": f"item {n}", "numbers": list(range(n))} for n in range(100)]
text = json.dumps(items)


@phase
def with_svd():
    numpy.linalg.svd(numbers)


@phase
def with_sort():
    numpy.sort(numbers.ravel())


@phase
def with_resize():
    cv2.resize(image, (700, 900), interpolation=cv2.INTER_CUBIC)


@phase
def with_pandas():
    table.groupby("key").agg(["mean", "std"])


@phase
def with_orjson():
    orjson.dumps(orjson.loads(text))


@phase
def with_pydantic():
    for item in items:
        Item(**item)


@phase
def with_json():
    json.dumps(json.loads(text))


@phase
def in_python():
    sum(n * n % 97 for n in range(20000))


by_turns([with_svd, with_sort, with_resize, with_pandas, with_orjson, with_pydantic, with_json, in_python], 1.2)
