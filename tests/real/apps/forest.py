# SPDX-License-Identifier: Apache-2.0
"""joblib's processes (loky) and scikit-learn's threads."""
import joblib
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from clocks import by_turns, phase

x, y = make_classification(2000, 20, random_state=1)


@phase
def in_python(numbers):
    return sum(n * n % 97 for n in range(numbers))


@phase
def fit(seed):
    return RandomForestClassifier(10, random_state=seed).fit(x[:500], y[:500]).score(x, y)


@phase
def fit_here():
    RandomForestClassifier(10, random_state=1).fit(x, y)


if __name__ == "__main__":
    from forest import fit, fit_here, in_python  # as a module's, by name: a clock has a lock, which is not sent to processes
    parallel = joblib.Parallel(n_jobs=2)
    parallel(joblib.delayed(in_python)(100000) for _ in range(200))
    parallel(joblib.delayed(fit)(seed) for seed in range(60))
    by_turns([fit_here], 2)
