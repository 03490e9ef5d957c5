"""Models from labels: the program's bits, and scikit-learn's ways."""

import pickle

import numpy as np
import pytest

import olrank
from conftest import refused

TRAINING = {"loss": "listnet", "epochs": 5, "network": "linear"}


def test_fits_as_the_program_does(program, tmp_path):
    data = olrank.synthetic("small", queries=30)
    model = olrank.fit(data, seed=3, **TRAINING)
    flags = [f"--train-{key}={value}" for key, value in TRAINING.items()]
    data.save(tmp_path / "train.txt")
    program("train", "--data-train", tmp_path / "train.txt", "--data-test", tmp_path / "train.txt", "--train-seeds", 3, "--out",
            tmp_path / "out", "--quiet", *flags)
    theirs = olrank.load_model(tmp_path / "out")
    assert np.array_equal(model.score(data.X, data.group), theirs.score(data.X, data.group))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).score(data.X[:5], [5]), model.score(data.X[:5], [5]))


def test_scores_by_query_need_the_queries():
    data = olrank.synthetic("small", queries=10)
    model = olrank.fit(data, epochs=1)
    refused("score\\(\\) needs group", lambda: model.score(data.X))
    independent = olrank.fit(data, epochs=1, normalise="zscore")
    assert np.array_equal(independent.score(data.X), independent.score(data.X, data.group))


@pytest.fixture
def LTRModel():
    return pytest.importorskip("olrank.sklearn", exc_type=ImportError).LTRModel


def test_fits_predicts_and_clones(LTRModel):
    from sklearn.base import clone

    data = olrank.synthetic("small", queries=60)
    test = olrank.synthetic("small", part="test", queries=60)
    model = LTRModel()
    assert clone(model).get_params() == model.get_params()
    model.fit(data.X, data.y, data.group)
    assert model.score(test.X, test.y, test.group) > olrank.evaluate(test, np.zeros(len(test.y)))["ndcg@10"] + 0.1
    from sklearn.linear_model import Ridge

    straight = Ridge().fit(data.X, data.y).predict(test.X)
    assert model.score(test.X, test.y, test.group) > olrank.evaluate(test, straight)["ndcg@10"]
    assert model.fit(data.X, data.y, qid=data.qid).predict(test.X, test.group).shape == test.y.shape
    pickle.loads(pickle.dumps(model))


def test_weights_are_copies(LTRModel):
    data = olrank.synthetic("small", queries=8)
    copies = np.repeat(np.arange(8), [2, 1, 3, 1, 1, 1, 2, 1])
    rows = np.concatenate([np.arange(data.offsets[query], data.offsets[query + 1]) for query in copies])
    weight = np.bincount(copies).astype(float)
    settings = {"network": "linear", "loss": "listnet", "optimizer": "lbfgs", "l2": 0.1}
    repeated = LTRModel(**settings).fit(data.X[rows], data.y[rows], data.group[copies])
    wanted = repeated.predict(data.X, data.group)
    for sample_weight in (weight, np.repeat(weight, data.group)):
        model = LTRModel(**settings).fit(data.X, data.y, data.group, sample_weight=sample_weight)
        assert np.allclose(model.predict(data.X, data.group), wanted, atol=2e-3)
        assert model.score(data.X, data.y, data.group, sample_weight=sample_weight) == pytest.approx(model.score(data.X[rows], data.y[rows], data.group[copies]))
    plain = LTRModel(**settings).fit(data.X, data.y, data.group)
    assert not np.allclose(plain.predict(data.X, data.group), wanted, atol=2e-2)


def test_refuses_unknown_parameters(LTRModel):
    from sklearn.exceptions import NotFittedError

    refused("unexpected keyword argument 'los'", lambda: LTRModel(los=1), TypeError)
    data = olrank.synthetic("small", queries=6)
    model = LTRModel(epochs=1).fit(data.X, data.y, data.group)
    assert model.score(data.X, data.y, data.group) == model.score(data.X, data.y, qid=data.qid)
    refused("score\\(\\) needs the queries", lambda: model.score(data.X, data.y))
    refused("predict\\(\\) needs group", lambda: model.predict(data.X))
    refused("fit\\(\\) needs the queries", lambda: model.fit(data.X, data.y))
    with pytest.raises(NotFittedError):
        LTRModel().predict([[1.0]])


def test_parameters_are_the_engines_settings_and_shown_where_they_differ(LTRModel):
    own = {"normalise", "seed", "threads", "device", "one_query", "query"}
    defaults = {setting.name: setting.default for setting in olrank.settings("train") if setting.name != "seeds"}
    assert {name: value for name, value in LTRModel().get_params().items() if name not in own} == defaults | {"loss": "lambdarank", "width": 32, "epochs": 20}
    assert repr(LTRModel(width=8)) == "LTRModel(width=8)"


def test_scikit_learns_checks(LTRModel):
    """Checks that fit without queries fail unless X is one query; then each that is left says why."""
    from sklearn.utils.estimator_checks import check_estimator

    weights = "a query has one weight, because a loss is that of its list, and the check gives its rows different ones"
    reasons = {
        "check_sample_weights_not_overwritten": weights,
        "check_sample_weight_equivalence_on_dense_data": weights,
        "check_sample_weight_equivalence_on_sparse_data": weights,
        "check_methods_subset_invariance": "the rows of a query are scaled together, so that a part of them has other scores",
    }
    told = check_estimator(LTRModel(one_query=True, epochs=2), expected_failed_checks=reasons, on_skip=None)
    assert {one["check_name"] for one in told if one["status"] == "xfail"} == set(reasons)
    # Most fit X without saying which rows are one query, and are refused with that sentence.
    refused = [one for one in check_estimator(LTRModel(epochs=2), on_fail=None, on_skip=None) if one["status"] == "failed"]
    assert len(refused) > 30
    for one in refused:
        error = one["exception"]
        causes = [str(error), str(error.__cause__), str(error.__context__)]
        assert any("fit() needs the queries" in cause for cause in causes), f"{one['check_name']}: {error}"


def test_columns_are_taken_by_name(LTRModel):
    pandas = pytest.importorskip("pandas")
    data = olrank.synthetic("small", queries=10)
    names = [f"col {column}" for column in range(data.features)]
    table = pandas.DataFrame(data.X, columns=names)
    model = LTRModel(epochs=2).fit(table, data.y, qid=data.qid)
    assert list(model.feature_names_in_) == names and model.n_features_in_ == data.features
    turned = table[names[::-1]]
    assert np.array_equal(model.predict(turned, data.group), model.predict(table, qid=data.qid))
    assert model.score(turned, data.y, data.group) == model.score(table, data.y, data.group)
    refused("X has no column 'col 0' and adds 'x': give the columns", lambda: model.predict(table.rename(columns={"col 0": "x"}), data.group))
    assert not hasattr(model.fit(data.X, data.y, data.group), "feature_names_in_")


def test_queries_are_routed(LTRModel):
    import sklearn
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = olrank.synthetic("small", queries=12)
    shuffled = np.random.default_rng(1).permutation(len(data.y))
    X, y, qid = data.X[shuffled], data.y[shuffled], data.qid[shuffled]
    model = LTRModel(network="linear", epochs=2)
    model.fit(X, y, qid=qid)
    by_group = model.predict(data.X, data.group)
    assert np.array_equal(model.predict(X, qid=qid), by_group[shuffled])  # rows of a query need not lie together
    with sklearn.config_context(enable_metadata_routing=True):
        routed = LTRModel(network="linear", epochs=2).set_fit_request(qid=True).set_predict_request(qid=True).set_score_request(qid=True)
        line = make_pipeline(StandardScaler(), routed).fit(X, y, qid=qid)
        assert line.score(X, y, qid=qid) > 0.4 and line.predict(X, qid=qid).shape == y.shape
        alone = LTRModel(network="linear", epochs=2, normalise="none").set_fit_request(qid=True)
        assert cross_val_predict(alone, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid}).shape == y.shape
        for inner, name in ((routed, "l2"), (make_pipeline(StandardScaler(), routed), "ltrmodel__l2")):
            search = GridSearchCV(inner, {name: [0.0, 0.1]}, cv=GroupKFold(3)).fit(X, y, qid=qid, groups=qid)
            assert search.score(X, y, qid=qid) > 0.4
            assert search.best_estimator_.predict(X, qid=qid).shape == y.shape
            refused("predict\\(\\) needs group.*let a column of X have the queries: LTRModel", lambda: search.predict(X))
        assert min(cross_validate(routed, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})["test_score"]) > 0.4
    # cross_val_predict passes nothing on to predict(): the queries are a column of X.
    number = np.unique(qid, return_inverse=True)[1]
    with_query = np.column_stack([X, number])
    column = LTRModel(network="linear", epochs=2, query=-1)
    assert np.array_equal(column.fit(with_query, y).predict(with_query), by_group[shuffled])
    assert column.n_features_in_ == data.features and column.score(with_query, y) == model.score(X, y, qid=qid)
    scores = cross_val_predict(column, with_query, y, groups=qid, cv=GroupKFold(3))
    assert olrank.evaluate(y, scores, qid)["ndcg@10"] > 0.4
    refused("give neither group nor qid", lambda: column.predict(with_query, qid=qid))
    for wrong in (99, -99, 1.5):
        refused(f"^query={wrong} must be the name or the number of a column of X", lambda: LTRModel(query=wrong).fit(X, y))
    search = GridSearchCV(column, {"l2": [0.0, 0.1]}, cv=GroupKFold(3)).fit(with_query, y, groups=qid)
    assert search.predict(with_query).shape == y.shape and search.score(with_query, y) > 0.4
    scaled = make_column_transformer((StandardScaler(), slice(0, -1)), remainder="passthrough")
    assert cross_val_predict(make_pipeline(scaled, column), with_query, y, groups=qid, cv=GroupKFold(3)).shape == y.shape


def test_a_column_of_a_table_has_the_queries(LTRModel):
    pandas = pytest.importorskip("pandas")
    data = olrank.synthetic("small", queries=6)
    table = pandas.DataFrame(data.X).add_prefix("x").assign(query=data.qid)
    model = LTRModel(network="linear", epochs=2, query="query").fit(table, data.y)
    plain = LTRModel(network="linear", epochs=2).fit(data.X, data.y, data.group)
    assert np.array_equal(model.predict(table), plain.predict(data.X, data.group)) and "query" not in model.feature_names_in_
    refused("has no column 'query'|no table with a column", lambda: model.predict(data.X))
