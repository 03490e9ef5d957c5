"""A small experiment, and a ranker of one's own, which workers import as a module; and Python in a process of its own."""

import subprocess
import sys
import textwrap

import numpy as np

CONFIG = {
    "data": {"source": "synth:small?queries=40"},
    "protocol": {"rounds": 30, "eval_every": 10, "seeds": [1, 2]},
    "clicks": {"models": ["navigational"]},
    "run": {"device": "cpu"},
    "ranker": [{"name": "linear", "kind": "pairrank"}, {"name": "net", "kind": "olranknet", "width": 8, "steps": 5}],
}


class Weights:
    """Ranks by a weight that it learns for each feature: clicked minus shown."""

    def __init__(self, features, cutoff, seed, fold, step=1.0):
        self.weights = np.zeros(features)
        self.step = step

    def rank(self, query, round):
        return np.argsort(-(query.X @ self.weights), kind="stable")

    def learn(self, query, shown, clicks, round):
        if clicks.any():
            self.weights += self.step * (query.X[shown[clicks == 1]].mean(axis=0) - query.X[shown].mean(axis=0))

    def score(self, X):
        return X @ self.weights


def ended(code, seconds=60):
    """Returns what a process of its own prints, and how it ends."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout, done.stderr
