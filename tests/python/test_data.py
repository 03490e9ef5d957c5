"""Data sets and metrics."""

import gzip
import json
import pickle

import numpy as np
import pytest

import olrank
from conftest import refused

TEXT = "2 qid:a 1:0.5 3:1\n0 qid:a 2:0.25\n1 qid:b 1:1 2:1 3:1\n0 qid:b 1:0.5\n0 qid:b 2:0.5\n"


def test_reads_letor_as_views(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    (tmp_path / "data.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("data.txt", "data.txt.gz"):
        data = olrank.load_letor(tmp_path / name)
        assert len(data) == 2 and data.features == 3 and data.qids == ["a", "b"]
        assert data.X.dtype == np.float32 and not data.X.flags.owndata and not data.X.flags.writeable
        assert data.X[0].tolist() == [0.5, 0, 1] and data.y.tolist() == [2, 0, 1, 0, 0]
        assert data.offsets.tolist() == [0, 2, 5] and data.group.tolist() == [2, 3]
        assert data.qid.tolist() == ["a", "a", "b", "b", "b"]
        assert [(query.qid, query.X.shape, query.y.tolist()) for query in data.queries()] == [
            ("a", (2, 3), [2, 0]),
            ("b", (3, 3), [1, 0, 0]),
        ]


def test_arrays_outlive_their_data_set(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    X = olrank.load_letor(tmp_path / "data.txt").X
    assert X.sum() == np.float32(5.75)


def test_arrays_become_a_data_set_and_are_not_copied():
    X = np.arange(8, dtype=np.float32).reshape(4, 2)
    data = olrank.Dataset.from_arrays(X, [1, 0, 2, 0], qid=[7, 7, 9, 9])
    assert data.qids == ["7", "9"] and np.shares_memory(data.X, X)
    by_group = olrank.Dataset.from_arrays(X, [1, 0, 2, 0], group=[2, 2])
    assert by_group.qids == ["1", "2"] and by_group.offsets.tolist() == [0, 2, 4]


def test_grades_are_copied():
    y = np.ones(4, np.uint8)
    data = olrank.Dataset.from_arrays(np.zeros((4, 1), np.float32), y, group=[4])
    y[:] = 200
    assert data.y.tolist() == [1, 1, 1, 1]


def test_scattered_rows_are_brought_together():
    X = np.arange(4, dtype=np.float32)[:, None]
    data = olrank.Dataset.from_arrays(X, [3, 1, 2, 0], qid=["b", "a", "b", "a"])
    assert data.qids == ["b", "a"] and data.X[:, 0].tolist() == [0, 2, 1, 3] and data.y.tolist() == [3, 2, 1, 0]


def test_a_query_has_a_weight(tmp_path):
    X, y, qid = np.arange(4.0)[:, None], [3, 1, 2, 0], ["b", "a", "b", "a"]
    plain = olrank.Dataset.from_arrays(X, y, qid)
    data = olrank.Dataset.from_arrays(X, y, qid, weight=[2, 0.5, 2, 0.5])
    by_query = olrank.Dataset.from_arrays(X, y, qid, weight=[2, 0.5])  # in the order of data.qids
    assert plain.weight is None and data.weight.tolist() == by_query.weight.tolist() == [2, 0.5] and not data.weight.flags.writeable
    assert data.fingerprint == by_query.fingerprint != plain.fingerprint
    assert olrank.Dataset.from_arrays(X, y, qid, weight=np.ones(4)).fingerprint == plain.fingerprint
    assert pickle.loads(pickle.dumps(data)).fingerprint == data.fingerprint
    odd = olrank.Dataset.from_arrays(X, y, ["b b", "a", "b b", "a"], weight=[2, 0.5])  # a name that no file has
    assert pickle.loads(pickle.dumps(odd)).weight.tolist() == [2, 0.5]
    data.save(tmp_path / "data.txt")
    assert (tmp_path / "data.txt.weight").read_text() == "2\n2\n0.5\n0.5\n"
    assert olrank.load_letor(tmp_path / "data.txt").fingerprint == data.fingerprint
    refused("LETOR text cannot hold", lambda: odd.save(tmp_path / "data.txt"))
    assert olrank.load_letor(tmp_path / "data.txt").fingerprint == data.fingerprint  # neither file has changed
    plain.save(tmp_path / "data.txt")
    assert olrank.load_letor(tmp_path / "data.txt").fingerprint == plain.fingerprint
    assert olrank.evaluate(data, [1.0, 2, 3, 4]) == olrank.evaluate(plain, [1.0, 2, 3, 4])
    for weight, sentence in (([1, 2, 3], "weight has 3 values: give one for each of 4 documents, or for each of 2 queries"), ([1, -2], "weight has -2 in row 1"),
                             ([1, np.inf], "weight has inf"), ([1, 1e39], "weight has 1e\\+39"), ([1, 1, 2, 1], "weight has 1.0 and 2.0 for documents of query 'b'")):  # fmt: skip
        refused(sentence, lambda: olrank.Dataset.from_arrays(X, y, qid, weight=weight))
    refused("weight has the type", lambda: olrank.Dataset.from_arrays(X, y, qid, weight=["x", "y"]), TypeError)


def test_writes_letor_that_reads_back(tmp_path):
    data = olrank.synthetic("small", queries=5, seed=3)
    data.save(tmp_path / "copy.txt")
    assert olrank.load_letor(tmp_path / "copy.txt").fingerprint == data.fingerprint
    assert olrank.Dataset.from_arrays(data.X, data.y, data.qid).fingerprint == data.fingerprint


def test_metrics_by_hand():
    # Ranked 2, 0, 1: DCG@3 = 3 + 0 + 1/2 (log2 4), ideal 3 + 1/log2(3).
    values = olrank.evaluate([0, 2, 1], [0.5, 0.9, 0.1], qid=[1, 1, 1], at=[1, 3])
    assert values["ndcg@1"] == 1.0
    assert values["ndcg@3"] == pytest.approx((3 + 0.5) / (3 + 1 / np.log2(3)), abs=1e-12)
    assert values["mrr"] == 1.0 and values["map"] == pytest.approx((1 + 2 / 3) / 2)


def test_metrics_of_scattered_rows_and_of_each_query():
    y, qid, scores = [1, 0, 0, 1], ["a", "b", "a", "b"], [0.9, 0.8, 0.1, 0.2]
    means, by_query = olrank.evaluate(y, scores, qid, at=[1], metrics=["map@1"], by_query=True)
    assert means["ndcg@1"] == 0.5 and by_query["ndcg@1"].tolist() == [1.0, 0.0] and "map@1" in means
    skipped, each = olrank.evaluate([1, 0, 0, 0], scores, group=[2, 2], empty_queries="skip", by_query=True)
    assert skipped["ndcg@1"] == 1.0 and np.isnan(each["ndcg@1"][1])


def test_metrics_are_the_programs(program, tmp_path):
    data = olrank.synthetic("small", part="test", queries=20)
    scores = np.random.default_rng(1).random(len(data.y))
    np.savetxt(tmp_path / "scores.txt", scores)
    for convention in ("olrank", "letor", "lightgbm", "trec_eval"):
        told = json.loads(program("eval", "--data", "synth:small?queries=20", "--scores", tmp_path / "scores.txt", "--json",
                                  "--convention", convention))["metrics"]
        values = olrank.evaluate(data, np.loadtxt(tmp_path / "scores.txt"), convention=convention)
        for name, value in values.items():
            assert told[name] == value, (convention, name)


def test_data_may_be_pickled():
    data = olrank.synthetic("small", queries=5)
    again = pickle.loads(pickle.dumps(data))
    assert again.fingerprint == data.fingerprint and again.qids == data.qids and np.array_equal(again.X, data.X)
    own = olrank.Dataset.from_arrays([[1.0], [2.0]], [0, 1], qid=["a b", "c"])
    assert pickle.loads(pickle.dumps(own)).qids == ["a b", "c"]
