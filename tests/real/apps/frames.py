# SPDX-License-Identifier: Apache-2.0
"""Tables of data: numpy, pandas, polars, pyarrow and scikit-learn in turns, until it is ended."""
import numpy
import pandas
import polars
import pyarrow.compute
from sklearn.linear_model import LinearRegression


def with_numpy(numbers):
    return numpy.linalg.svd(numbers[:120, :80])[1].sum() + numpy.sort(numbers.ravel()).mean()


def with_pandas(numbers):
    table = pandas.DataFrame(numbers, columns=[f"c{n}" for n in range(numbers.shape[1])])
    table["key"] = (table["c0"] * 10).astype(int)
    table["text"] = table["key"].map(lambda key: f"key {key}")
    return table.groupby("text").mean(numeric_only=True).sum().sum()


def with_polars(numbers):
    table = polars.DataFrame({f"c{n}": numbers[:, n] for n in range(10)})
    table = table.with_columns((polars.col("c0") * 10).cast(polars.Int64).alias("key"))
    return table.group_by("key").agg(polars.all().mean()).sort("key").sum()


def with_pyarrow(numbers):
    column = pyarrow.array(numbers[:, 0])
    return pyarrow.compute.sum(pyarrow.compute.multiply(column, column)).as_py()


def with_sklearn(numbers):
    return LinearRegression().fit(numbers[:, 1:], numbers[:, 0]).coef_.sum()


def main():
    numbers = numpy.random.default_rng(1).random((5000, 100))
    while True:
        for work in (with_numpy, with_pandas, with_polars, with_pyarrow, with_sklearn):
            work(numbers)


main()
