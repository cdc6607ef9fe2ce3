#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the figures of a comparison again from its counts, over numpy and scipy: measures and variances, size factors, the
moderated test of each family of rows, and the correction. Every figure has to agree to 6 digits.

usage: compare_dump OLD BASELINE... | compare_reference.py      with a Python that has scipy
Prints how much was compared. Exit: 0, 1 something differs.
"""
import json
import sys

import numpy as np
from scipy import stats

import stats_reference as reference

DIGITS = 1e-6


class Beside:
    def __init__(self):
        self.compared, self.wrong = 0, []

    def check(self, what, wanted, got):
        wanted, got = np.asarray(wanted, float), np.asarray(got, float)
        bad = ~np.isclose(got, wanted, rtol=DIGITS, atol=1e-12)
        self.compared += wanted.size
        if bad.any():
            self.wrong.append(f"{what}: {got[bad][:3]}, not {wanted[bad][:3]}")


def measure(row, weights, factors):
    half = row["dispersion"] / 2
    part, whole = np.array(row["part"]) + half, np.array(row["whole"])
    rest = np.maximum(whole - row["part"], 0) + half
    if row["is_part"]:
        return np.log(part / rest), row["dispersion"] * (1 / part + 1 / rest)
    return np.log(part * weights / factors), row["dispersion"] / part


def check_family(beside, family, rows, old, fit, least):
    x, v = (np.array([row[name] for row in rows]) for name in "xv")
    wanted = reference.moderated(x, v, old, least)
    d0 = -1 if np.isinf(wanted[1]) else wanted[1]
    beside.check(f"family {family}: fit", [wanted[0], d0, wanted[2], wanted[3]], [fit["tau2"], fit["d0"], fit["s02"], fit["df"]])
    for i, row in enumerate(rows):
        figures = wanted[4 + 8 * i:12 + 8 * i]
        beside.check(f"family {family}: row {row['function']}", figures[:4], [row["difference"], row["error"], row["df"], row["p"]])


def main():
    data, beside = json.load(sys.stdin), Beside()
    rows, old = data["rows"], data["old_runs"]
    weights, factors = np.array(data["weights"]), np.array(data["factors"])
    sizes = np.array(reference.sizes(np.array(data["times"]).reshape(-1, len(weights))))
    beside.check("size factors", sizes / stats.gmean(sizes), factors)
    for row in rows:
        x, v = measure(row, weights, factors)
        beside.check(f"x of {row['function']}", x, row["x"])
        beside.check(f"v of {row['function']}", v, row["v"])
    for family, fit in enumerate(data["fits"]):
        members = [row for row in rows if row["family"] == family and not row["one_sided"]]
        if members:
            check_family(beside, family, members, old, fit, data["least"])
    p = np.array([row["p"] for row in rows])
    beside.check("q", stats.false_discovery_control(p), [row["q"] for row in rows])
    print(f"{beside.compared} figures of {len(rows)} rows")
    print("\n".join(beside.wrong[:20]))
    return 1 if beside.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
