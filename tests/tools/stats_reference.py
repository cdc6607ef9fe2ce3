#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares formats/stats/ with the same formulas written over numpy and scipy, on random tables and on extreme ones. Every
figure has to agree to 6 digits.

usage: stats_reference.py build/tools/stats_figures      with a Python that has scipy
Prints how much was compared. Exit: 0, 1 something differs.
"""
import math
import subprocess
import sys

import numpy as np
from scipy import optimize, special, stats

DIGITS = 1e-6
SEED = 16
THRESHOLD = math.log1p(0.02)


def upper(t, df):
    """P(T > t); of df 0 the limit."""
    return np.where(df > 0, np.where(np.isinf(df), stats.norm.sf(t), stats.t.sf(t, np.where(df > 0, np.minimum(df, 1e300), 1))), 0.5)


def interval(difference, error, df):
    if df <= 0:
        return [-math.inf, math.inf]
    t = stats.norm.isf(0.05) if math.isinf(df) else stats.t.isf(0.05, df)
    return [difference - t * error, difference + t * error]


def inverse_trigamma(x):
    """By bracketing, in ln y."""
    return math.exp(optimize.brentq(lambda u: math.log(special.polygamma(1, math.exp(u))) - math.log(x), -300, 300, xtol=1e-14))


def moderated(x, v, old, least):
    """The figures of a table, as stats_figures prints them: formats/stats/moderated.h says what is computed."""
    rows, runs = x.shape
    new, df = runs - old, runs - 2
    a, b = x[:, :old], x[:, old:]
    difference, sampling = b.mean(1) - a.mean(1), v.mean(1)
    tau2, d0, s02 = 0.0, 0.0, 1.0
    variance = sampling.copy()
    if df and rows:
        spread = (a.var(1) * old + b.var(1) * new) / df
        best = sampling <= np.sort(sampling)[min(max(3, rows // 2), rows) - 1]
        tau2 = max(0.0, np.median((spread - sampling)[best]))
        expected = sampling + tau2
        ratio = spread / expected
        if rows > 1:
            z = np.log(np.maximum(ratio, 1e-5 * (np.median(ratio) or 1))) - special.digamma(df / 2) + math.log(df / 2)
            excess = z.var(ddof=1) - special.polygamma(1, df / 2)
            half = inverse_trigamma(excess) if excess > 0 else math.inf
            d0, s02 = 2 * half, math.exp(z.mean() + (special.digamma(half) - math.log(half) if excess > 0 else 0))
        common = np.full(rows, s02) if math.isinf(d0) else (d0 * s02 + df * ratio) / (d0 + df)
        variance = np.maximum(expected * common, max(least, 1e-5) * sampling)
    error = np.sqrt(variance * (1 / old + 1 / new))
    row_df = min(df + d0, df * rows)
    p = np.minimum(2 * upper(abs(difference) / error, row_df), 1)
    low, high = interval(difference, error, row_df)
    each = np.broadcast_arrays(difference, error, row_df, p, variance, upper((difference - THRESHOLD) / error, row_df), low, high)
    return [tau2, d0, s02, df, *np.stack(each, axis=1).ravel().tolist()]


def welch(a, b):
    if len(a) > 1 and len(b) > 1:
        done = stats.ttest_ind(b, a, equal_var=False)
        error, df, variance = (b.mean() - a.mean()) / done.statistic, done.df, (a.var(ddof=1) + b.var(ddof=1)) / 2
        p = done.pvalue
    else:
        # One run: the other side's variance, which is Student's test of equal variances.
        variance = (a if len(a) > 1 else b).var(ddof=1)
        done = stats.ttest_ind(b, a, equal_var=True)
        error, df, p = math.sqrt(variance * (1 / len(a) + 1 / len(b))), len(a) + len(b) - 2, done.pvalue
    difference = b.mean() - a.mean()
    return [difference, error, df, p, variance, *interval(difference, error, df)]


def sizes(times):
    chosen = times[(times > 0).all(1)]
    if len(chosen) < 3:
        return [1.0] * times.shape[1]
    ratios = chosen / stats.gmean(chosen, axis=1)[:, None]
    weights = np.minimum(chosen.mean(1), chosen.mean(1).sum() * 0.05)
    out = []
    for column in ratios.T:
        order = np.argsort(column)
        out.append(column[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])
    return out


def tables(rng):
    """Tables of all shapes: (measures, variances, old runs)."""
    for old, new in ((3, 3), (5, 5), (10, 10), (10, 1), (1, 10), (2, 1), (1, 1), (7, 3), (30, 30)):
        for rows in (1, 2, 3, 4, 7, 40, 301):
            for varies in (0, 0.02, 0.3):
                counts = np.exp(rng.uniform(0, 9, rows))
                k = rng.poisson(counts[:, None] * np.exp(varies * rng.standard_normal((rows, old + new))))
                yield np.log(k + 0.5), rng.uniform(1, 4) / (k + 0.5), old
    shape = (40, 10)
    noise = rng.standard_normal(shape)
    some = np.full(shape, 0.01)
    yield noise * 0.1, some, 5  # all sampling variances are equal
    yield np.where(np.arange(40)[:, None] % 5, noise * 0.2, 3.0), some, 5  # rows that never vary
    yield np.where(np.arange(40)[:, None] % 5, 3.0, noise), some, 5  # most never vary
    yield np.full(shape, 7.0), some, 5  # none varies
    yield noise * 1e5, some * 1e-10, 5
    yield noise * 1e-12, some * 1e12, 5
    yield noise + np.repeat([[0, 200.0]], 5, 1).reshape(1, 10), some, 5  # far tails
    yield noise * np.exp(4 * rng.standard_normal(40))[:, None], some, 5  # all vary unlike: small d0


def cases(rng):
    """(name, input, expected numbers)"""
    for x, v, old in tables(rng):
        rows, runs = x.shape
        numbers = " ".join(repr(float(n)) for n in np.concatenate([x.ravel(), v.ravel()]))
        for least in (0, 0.5, 1):
            yield f"moderated {rows} {old} {runs - old} {least}", numbers, moderated(x, v, old, least)
    for old, new in ((3, 3), (10, 10), (2, 7), (10, 1), (1, 4)):
        for size in (1e-6, 0.02, 30):
            x = rng.standard_normal(old + new) * size + 20
            x[0] += size
            yield f"welch {old} {new}", " ".join(map(repr, x.tolist())), welch(x[:old], x[old:])
    for rows in (2, 3, 4, 41):
        for runs in (2, 6, 20):
            times = rng.gamma(0.5, 1e9, (rows, 1)) * rng.lognormal(0, 0.1, (rows, runs))
            times[times < 1e5] = 0
            yield f"sizes {rows} {runs}", " ".join(map(repr, times.ravel().tolist())), sizes(times)
    for count in (1, 2, 40, 500):
        p = np.minimum(rng.uniform(0, 1, count) ** 3, 1).round(3 if count == 40 else 17)
        yield f"q {count}", " ".join(map(repr, p.tolist())), stats.false_discovery_control(p)


def functions(rng):
    for x in np.exp(rng.uniform(-15, 25, 60)).tolist():
        yield f"digamma {x!r}", "", [special.digamma(x)]
        yield f"trigamma {x!r}", "", [special.polygamma(1, x)]
        yield f"trigamma_inverse {x!r}", "", [inverse_trigamma(x)]
    for _ in range(200):
        a, b = np.exp(rng.uniform(-2, 6, 2)).tolist()
        x = rng.beta(a, b)
        yield f"beta {a!r} {b!r} {x!r}", "", [special.betainc(a, b, x)]
        yield f"log_beta {a!r} {b!r}", "", [special.betaln(a, b)]
        t, df = rng.normal(0, 6), math.exp(rng.uniform(-1, 15))
        yield f"upper {t!r} {df!r}", "", [stats.t.sf(t, df)]
        p = float(rng.uniform())
        yield f"quantile {p!r} {df!r}", "", [stats.t.isf(p, df)]


def differ(wanted, got, least):
    if math.isinf(wanted) or math.isinf(got) or math.isnan(wanted) or math.isnan(got):
        return not wanted == got
    return abs(wanted - got) > DIGITS * max(abs(wanted), abs(got)) + least


def least_of(name, number):
    """What a figure may be off by for being nearly 0. Means that are equal are equal but for rounding; others may be so small
    that scipy loses them."""
    return 1e-14 if name.startswith("moderated") and number >= 4 and number % 8 == 4 else 1e-290


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rng = np.random.default_rng(SEED)
    asked = [*cases(rng), *functions(rng)]
    done = subprocess.run([sys.argv[1]], input="".join(f"{name} {text}\n" for name, text, _ in asked), capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    compared = wrong = 0
    lines = done.stdout.splitlines()
    assert len(lines) == len(asked), (len(lines), len(asked))
    for (name, _, wanted), line in zip(asked, lines):
        got = [float(word) for word in line.split()]
        assert len(got) == len(wanted), (name, len(got), len(wanted))
        compared += len(got)
        for i, (w, g) in enumerate(zip(map(float, wanted), got)):
            if differ(w, g, least_of(name, i)):
                wrong += 1
                print(f"{name}: number {i}: scipy {w!r}, ours {g!r}")
    print(f"{compared} figures of {len(asked)} tables and calls, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
