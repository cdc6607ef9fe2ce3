# SPDX-License-Identifier: Apache-2.0
"""
Extension modules of every make in turns, until it is ended: Cython (lxml, yaml), Rust (orjson, pydantic, cryptography),
and C++ by pybind11 (contourpy).
"""
import json

import contourpy
import numpy
import orjson
import pydantic
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from lxml import etree



class Item(pydantic.BaseModel):
    name: str
    numbers: list[int]


DATA = {"items": [{"name": f"item {n}", "numbers": list(range(n))} for n in range(60)]}
TEXT = json.dumps(DATA)
XML = "<r>" + "".join(f"<i n='{n}'>{n}</i>" for n in range(2000)) + "</r>"
KEY = rsa.generate_private_key(65537, 2048)


def with_orjson():
    return [orjson.dumps(orjson.loads(TEXT)) for _ in range(50)]


def with_pydantic():
    return [Item(**item) for _ in range(20) for item in DATA["items"]]


def with_cryptography():
    return [KEY.sign(b"text", padding.PKCS1v15(), hashes.SHA256()) for _ in range(10)]


def with_lxml():
    return sum(int(item.get("n")) for item in etree.fromstring(XML).iterfind(".//i"))


def with_yaml():
    return yaml.safe_load("a: [1, 2, {b: c}]\nd: {e: f}\n")


def with_contourpy():
    grid = numpy.add.outer(numpy.sin(numpy.arange(200) / 9), numpy.cos(numpy.arange(200) / 7))
    return contourpy.contour_generator(z=grid).lines(0.5)


def main():
    works = [with_orjson, with_pydantic, with_cryptography, with_lxml, with_yaml, with_contourpy]
    while True:
        for work in works:
            work()


main()
