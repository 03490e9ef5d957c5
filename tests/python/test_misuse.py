"""Misuse is an exception with a sentence, never the end of the process."""

import random
import subprocess
import sys

import numpy as np
import pytest

import olrank


def test_what_is_wrong_is_said(queries):
    ranker, other = olrank.Ranker("pairrank", features=6), olrank.Ranker("pairrank", features=6)
    X = queries(1)
    shown = ranker.rank(X)
    cases = [
        (lambda: ranker.rank(X[:, :5]), ValueError, "5 columns, and documents here have 6 features"),
        (lambda: ranker.rank(X[0]), ValueError, "1 dimension"),
        (lambda: ranker.rank(X[:0]), ValueError, "no rows"),
        (lambda: ranker.rank(X.astype(complex)), TypeError, "complex"),
        (lambda: ranker.rank(np.full((2, 6), "a")), TypeError, "give real numbers"),
        (lambda: ranker.rank([[1, 2], [1]]), ValueError, "not a table"),
        (lambda: ranker.rank(np.where(X > 0.5, np.nan, X)), ValueError, "is not finite"),
        (lambda: ranker.rank(None), TypeError, "give real numbers"),
        (lambda: ranker.rank(X, k=0), ValueError, "k must be at least 1"),
        (lambda: ranker.rank(X, k=1.5), TypeError, "k must be a whole number"),
        (lambda: ranker.learn(shown, [1]), ValueError, "1 values for 10 shown documents"),
        (lambda: ranker.learn(shown, [2] + [0] * 9), ValueError, "clicks has 2 at rank 1"),
        (lambda: ranker.learn(shown, np.full(10, np.nan)), ValueError, "nan at rank 1"),
        (lambda: ranker.learn(shown, [[1] * 10]), ValueError, "2 dimensions"),
        (lambda: ranker.learn(shown, ["yes"] * 10), TypeError, "give real numbers"),
        (lambda: ranker.learn(X, [1] * 10), TypeError, "must be what rank\\(\\) returned"),
        (lambda: other.learn(shown, [1] + [0] * 9), ValueError, "not from this ranker"),
        (lambda: olrank.Ranker("pairrank", features=0), ValueError, "features must be at least 1"),
        (lambda: olrank.Ranker("pairrank", features="6"), TypeError, "features must be a whole number"),
        (lambda: ranker.rank(np.ma.masked_array(X)), TypeError, "has a mask"),
        (lambda: olrank.evaluate([1], [1.0], [1], at=[1.5]), ValueError, "at must be whole numbers"),
        (lambda: olrank.Ranker("pairrank", features=6, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: olrank.Ranker("pairank", features=6), ValueError, "Did you mean 'pairrank'"),
        (lambda: olrank.Ranker("external", features=6), ValueError, "experiments only"),
        (lambda: olrank.Ranker("pairrank", features=6, normalise="zscore"), ValueError, "zscore"),
        (lambda: olrank.Ranker.load("/nowhere/at/all"), olrank.Error, "/nowhere/at/all"),
        (lambda: olrank.Ranker("pdgd", features=6).widths(X), ValueError, "has no widths"),
        (lambda: olrank.load_model(__file__), olrank.Error, "test_misuse.py"),
        (lambda: olrank.settings("rankers"), ValueError, "no table 'rankers'"),
        (lambda: olrank.run("nowhere.toml"), ValueError, "'nowhere.toml' cannot be read"),
        (lambda: olrank.run({}, resume=True, force=True), ValueError, "choose one of them"),
        (lambda: olrank.Results("/tmp"), ValueError, "no results"),
    ]
    for number, (call, error, message) in enumerate(cases):
        with pytest.raises(error, match=message):
            call()
            pytest.fail(f"case {number} was accepted")
    before = ranker.fingerprint
    ranker.learn(shown, [1] + [0] * 9)
    assert ranker.fingerprint != before
    with pytest.raises(ValueError, match="answered already"):
        ranker.learn(shown, [1] + [0] * 9)
    bandit = olrank.Ranker("dbgd", features=6)
    first = bandit.rank(X)
    bandit.rank(X)
    with pytest.raises(ValueError, match="latest list only"):
        bandit.learn(first, [1] + [0] * 9)


def test_a_state_that_is_damaged_is_refused(queries, tmp_path):
    ranker = olrank.Ranker("pairrank", features=6)
    for number in range(5):
        shown = ranker.rank(queries(number))
        ranker.learn(shown, [1] + [0] * 9)
    ranker.save(tmp_path / "state")
    whole = (tmp_path / "state").read_bytes()
    draw = random.Random(1)
    for _ in range(50):
        place = draw.randrange(len(whole))
        (tmp_path / "state").write_bytes(whole[:place] + bytes([whole[place] ^ (1 << draw.randrange(8))]) + whole[place + 1:])
        with pytest.raises(olrank.Error):
            olrank.Ranker.load(tmp_path / "state")
        (tmp_path / "state").write_bytes(whole[:place])
        with pytest.raises(olrank.Error):
            olrank.Ranker.load(tmp_path / "state")


VALUES = [
    None, True, -1, 0, 3, 2**40, 2**70, 1.5, float("nan"), float("inf"), "", "x", "pairrank", b"x", [], [[]], [1], [[1.0]], {}, (),
    object(), int, np.zeros((0, 6), np.float32), np.zeros((3, 6), np.float32), np.zeros((3, 6), np.float64), np.zeros((3, 7), np.float32),
    np.zeros((6, 3), np.float32).T, np.full((3, 6), np.nan, np.float32), np.zeros((3, 6), complex), np.zeros((3, 6), object),
    np.zeros((3, 6), "U1"), np.zeros(10, bool), np.ones(10, np.int8), np.zeros((1, 3, 6), np.float32), np.zeros((3, 6), np.float16),
    np.zeros((3, 6), ">f4"), np.array(5), memoryview(b"abc"),
]  # fmt: skip


def test_random_misuse_never_ends_the_process():
    draw = random.Random(7)
    ranker = olrank.Ranker("olranknet", features=6, width=4, steps=2)
    shown = ranker.rank(np.random.default_rng(1).random((12, 6), np.float32))
    data = olrank.synthetic("small", queries=3)

    def value():
        return draw.choice([*VALUES, shown, ranker, data])

    calls = [
        lambda: ranker.rank(value(), k=draw.choice([None, value()]), qid=value(), widths=value()),
        lambda: ranker.learn(value(), value()),
        lambda: ranker.learn(shown, value()),
        lambda: ranker.score(value()),
        lambda: ranker.widths(value()),
        lambda: olrank.Ranker(value(), features=value(), cutoff=value(), seed=value()),
        lambda: olrank.Ranker("olranknet", features=6, **{draw.choice(["width", "alpha", "covariance", "x", "lambda"]): value()}),
        lambda: olrank.Dataset.from_arrays(value(), value(), qid=value()),
        lambda: olrank.Dataset.from_arrays(value(), value(), group=value()),
        lambda: olrank.evaluate(value(), value(), value(), at=value()),
        lambda: olrank.evaluate(data, value(), at=value(), convention=value(), max_grade=value()),
        lambda: olrank.load_letor(value(), part=value(), fold=value()),
        lambda: olrank.Ranker.load(value()),
        lambda: olrank.load_model(value()),
        lambda: olrank.fit(data, validation=value(), loss=value(), epochs=1),
        lambda: olrank.run(value(), progress=False),
        lambda: olrank.run({"data": {"source": "synth:small?queries=3"}, "protocol": {"rounds": 1}, "ranker": value()}, progress=False),
        lambda: ranker.__setstate__(value()),
    ]  # fmt: skip
    refused = 0
    for _ in range(600):
        try:
            draw.choice(calls)()
        except (ValueError, TypeError, olrank.Error, OverflowError, AttributeError, MemoryError, OSError):
            refused += 1
    assert refused > 400


def test_another_torch_is_refused(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.4.1'\n")
    done = subprocess.run(
        [sys.executable, "-c", "import olrank"], env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}", "PATH": ""}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "olrank was built for torch 2.11.0, and torch 2.4.1 is installed: pip install torch==2.11.0" in done.stderr
