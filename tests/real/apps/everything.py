# SPDX-License-Identifier: Apache-2.0
"""Twenty packages in one process, in turns."""
import duckdb
import jax
import lightgbm
import lxml.etree
import numpy
import orjson
import pandas
import polars
import pyarrow.compute
import pydantic
import scipy.sparse.linalg
import sklearn.cluster
import tensorflow
import torch
import xgboost
from PIL import Image, ImageFilter
import cv2

from clocks import by_turns, phase

numbers = numpy.random.default_rng(1).random((200, 200))
target = (numbers[:, 0] > 0.5).astype(int)
rows = pandas.DataFrame(numbers[:, :5], columns=list("abcde"))
frame = polars.DataFrame(rows)
database = duckdb.connect(config={"threads": 2})
database.sql("CREATE TABLE t AS SELECT * FROM rows")
picture = Image.fromarray((numbers * 255).astype(numpy.uint8))
tensor, weights = torch.rand(64, 64), tensorflow.random.uniform((64, 64))
compiled = jax.jit(lambda a: (jax.numpy.sin(a) @ a.T).sum())
text = orjson.dumps([{"name": f"item {n}", "numbers": list(range(n))} for n in range(100)])
markup = "<r>" + "".join(f"<i n='{n}'>{n}</i>" for n in range(2000)) + "</r>"
items = pydantic.TypeAdapter(list[dict[str, list[int] | str]])


@phase
def with_numpy():
    numpy.linalg.svd(numbers)


@phase
def with_scipy():
    scipy.sparse.linalg.svds(numbers, 5)


@phase
def with_pandas():
    rows.groupby(rows["a"].round(1)).mean()


@phase
def with_polars():
    frame.group_by(polars.col("a").round(1)).mean().sort("a")


@phase
def with_pyarrow():
    column = pyarrow.array(numbers.ravel())
    pyarrow.compute.sum(pyarrow.compute.multiply(column, column))


@phase
def with_duckdb():
    database.sql("SELECT round(a, 1) AS r, sum(b) FROM t GROUP BY r").fetchall()


@phase
def with_cv2():
    cv2.GaussianBlur(numbers, (9, 9), 2)


@phase
def with_sklearn():
    sklearn.cluster.KMeans(5, n_init=1, random_state=1).fit(numbers)


@phase
def with_lightgbm():
    lightgbm.train({"verbose": -1, "num_threads": 2}, lightgbm.Dataset(numbers, target), 5)


@phase
def with_xgboost():
    xgboost.train({"nthread": 2}, xgboost.DMatrix(numbers, target), 5)


@phase
def with_text():
    items.validate_python(orjson.loads(text))


@phase
def with_lxml():
    sum(int(item.get("n")) for item in lxml.etree.fromstring(markup).iterfind(".//i"))


@phase
def with_pillow():
    picture.filter(ImageFilter.GaussianBlur(3)).resize((300, 300))


@phase
def with_torch():
    torch.tanh(tensor @ tensor).sum()


@phase
def with_jax():
    compiled(numbers).block_until_ready()


@phase
def with_tensorflow():
    tensorflow.reduce_sum(tensorflow.tanh(weights @ weights)).numpy()


by_turns([with_numpy, with_scipy, with_pandas, with_polars, with_pyarrow, with_duckdb, with_cv2, with_sklearn, with_lightgbm,
          with_xgboost, with_text, with_lxml, with_pillow, with_torch, with_jax, with_tensorflow], 1.5, turns=3)
