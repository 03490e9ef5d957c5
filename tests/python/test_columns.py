"""Tables whose columns come in another order are scored by name; missing, new and doubled columns are refused by one sentence."""

import pickle

import numpy as np
import pytest

import olrank
from conftest import refused

COLUMNS = ["price", "age", "stars"]


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def frame(request):
    """A frame of this library of the columns of a table, in the order of `names`."""
    module = pytest.importorskip(request.param)
    make = module.table if request.param == "pyarrow" else module.DataFrame
    return lambda X, names=COLUMNS: make({one: X[:, COLUMNS.index(one)] for one in names})


@pytest.fixture
def X(queries):
    return queries(1, docs=12, features=3)


@pytest.fixture
def data(frame, X):
    return olrank.Dataset.from_arrays(frame(X), [0, 1, 2] * 4, group=[6, 6])


TURNED = ["stars", "price", "age"]


def test_a_ranker_takes_columns_by_name(frame, X, tmp_path):
    plain, ranker = (olrank.Ranker("pairrank", features=3) for _ in range(2))
    for one, table in ((plain, X), (ranker, frame(X))):
        one.learn(one.rank(table), [1] + [0] * 9)
    assert ranker.feature_names == COLUMNS and plain.feature_names is None
    assert ranker.fingerprint == plain.fingerprint  # names change nothing that is computed
    ranker.save(tmp_path / "state")
    ranker.save_model(tmp_path / "model.safetensors")
    for again in (ranker, pickle.loads(pickle.dumps(ranker)), olrank.Ranker.load(tmp_path / "state")):
        assert np.array_equal(again.score(frame(X, TURNED)), plain.score(X))
        refused("X has no column 'stars': give the columns", lambda: again.score(frame(X, ["price", "age"])))
    assert np.array_equal(ranker.rank(frame(X, TURNED)).docs, plain.rank(X).docs)
    model = olrank.load_model(tmp_path / "model.safetensors")
    assert model.feature_names == COLUMNS
    assert np.array_equal(np.asarray(model.score(frame(X, TURNED), [12])), model.score(X, [12]))
    started = olrank.Ranker("clickgp", features=3, start_from=tmp_path / "model.safetensors")
    assert started.feature_names == COLUMNS and np.array_equal(started.score(frame(X, TURNED)), started.score(X))
    fresh = pickle.loads(pickle.dumps(olrank.Ranker("clickgp", features=3, start_from=tmp_path / "model.safetensors")))
    assert np.array_equal(fresh.score(frame(X, TURNED)), started.score(X))  # before it has seen a table


def test_a_memory_keeps_the_names(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    ranker = olrank.Ranker(features=3)
    ranker.learn(ranker.rank(pandas.DataFrame(X, columns=COLUMNS), qid="q"), [1] + [0] * 9)
    ranker.save(tmp_path / "state")
    model = olrank.load_model(tmp_path / "state")
    turned = pandas.DataFrame(X, columns=COLUMNS)[TURNED]
    assert np.array_equal(model.score(turned, qid="q"), model.score(X, qid="q")) and list(model.rank(turned, qid="q")) == list(model.rank(X, qid="q"))


def test_a_fitted_model_takes_columns_by_name(data, frame, X, tmp_path):
    model = olrank.fit(data, epochs=2)
    model.save(tmp_path / "model.safetensors")
    validation = olrank.Dataset.from_arrays(frame(X, TURNED), data.y, group=data.group)
    assert np.array_equal(validation.in_order(COLUMNS).X, data.X) and validation.in_order(None) is validation
    turned = olrank.fit(data, validation, epochs=2, patience=2)
    assert np.array_equal(turned.score(X, [12]), olrank.fit(data, data, epochs=2, patience=2).score(X, [12]))
    for again in (model, pickle.loads(pickle.dumps(model)), olrank.load_model(tmp_path / "model.safetensors")):
        assert np.array_equal(np.asarray(again.score(frame(X, TURNED), [12])), model.score(X, [12]))
    assert pickle.loads(pickle.dumps(data)).feature_names == COLUMNS
    plain = olrank.fit(olrank.Dataset.from_arrays(X, data.y, group=data.group), epochs=2)
    assert np.array_equal(np.asarray(plain.score(frame(X, TURNED), [12])), plain.score(X[:, [2, 0, 1]], [12]))  # no names: by place


def test_a_log_is_learned_by_name(data, frame, X):
    turned = olrank.Dataset.from_arrays(frame(X, TURNED), data.y, group=data.group)
    log = [{"qid": "1", "shown": [2, 0, 1], "clicks": [1, 0, 0]}]
    ranker, other = olrank.Ranker("pairrank", features=3), olrank.Ranker("pairrank", features=3)
    ranker.partial_fit(log, data).partial_fit(log, turned)
    assert ranker.fingerprint == other.partial_fit(log * 2, data).fingerprint


def test_missing_new_and_doubled_columns_are_named(X):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=COLUMNS)
    ranker = olrank.Ranker("pairrank", features=3)
    ranker.rank(table)
    for wrong, sentence in (
        (table.rename(columns={"age": "years"}), "X has no column 'age' and adds 'years': give the columns"),
        (table.assign(colour=1.0), "X adds 'colour'"),
        (table[["price", "age", "age"]], "X has two columns 'age'"),
        (table.rename(columns={"age": 7}), "X has columns named by texts"),
    ):
        refused(sentence, lambda: ranker.score(wrong), (olrank.InvalidArgument, TypeError))
    assert np.array_equal(ranker.score(pandas.DataFrame(X)), ranker.score(X))  # numbers of columns are no names
    graded = table.assign(y=1, qid=1)
    refused("^X names the column 'age' twice: name each", lambda: olrank.Dataset.from_table(graded, X=["age", "price", "age"]))
    refused("^The table has two columns 'y'", lambda: olrank.Dataset.from_table(pandas.concat([graded, graded[["y"]]], axis=1)))


def test_lists_are_features_of_their_column():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "e": [[0.1, 0.2], [0.3, 0.4]]})
    ranker = olrank.Ranker("pairrank", features=3)
    assert np.array_equal(ranker.rank(table).docs, ranker.rank(table[["e", "a"]]).docs) and ranker.feature_names == ["a", "e[0]", "e[1]"]


def test_names_that_are_numbers_of_features_count_where_both_tables_have_some(X):
    pandas = pytest.importorskip("pandas")
    numbered = ["f1", "f2", "f3"]
    ranker = olrank.Ranker("pairrank", features=3)
    ranker.rank(pandas.DataFrame(X, columns=numbered))
    refused("X has no column 'f1' and adds 'f4'", lambda: ranker.rank(pandas.DataFrame(X, columns=["f3", "f2", "f4"])))
    assert np.array_equal(ranker.score(pandas.DataFrame(X, columns=COLUMNS)), ranker.score(X))


def test_the_column_of_queries_by_number_leaves_names_to_the_others(X):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    from olrank.sklearn import LTRModel

    table = pandas.DataFrame(X, columns=COLUMNS)
    table.insert(0, "q", [1] * 6 + [2] * 6)
    fitted = LTRModel(query=0, network="linear", epochs=2).fit(table, [0, 1, 2] * 4)
    assert list(fitted.feature_names_in_) == COLUMNS
    assert np.array_equal(fitted.predict(table[["q", *TURNED]]), fitted.predict(table))
