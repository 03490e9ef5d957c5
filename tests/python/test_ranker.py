"""Rankers: lists, learning, states, threads."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import olrank
from conftest import refused

KINDS = ["pairrank", "olranknet", "ollambdarank", "p2linrank", "p2neurrank", "ranknet", "pdgd", "dbgd", "mgd"]
SMALL = {"width": 8, "steps": 5}


def make(kind, **more):
    has_network = kind in ("olranknet", "ollambdarank", "p2neurrank")
    return olrank.Ranker(kind, features=6, **(SMALL if has_network else {}), **more)


def play(ranker, queries, first, last):
    for number in range(first, last):
        X = queries(number)
        shown = ranker.rank(X)
        ranker.learn(shown, X[shown.docs, 0] > 0.6)


@pytest.mark.parametrize("kind", KINDS)
def test_shows_and_learns(kind, queries):
    ranker = make(kind)
    shown = ranker.rank(queries(1))
    assert sorted(set(shown.docs)) == sorted(shown.docs) and len(shown.docs) == 10
    assert shown.docs.dtype == np.int32 and shown.scores.shape == (20,)
    assert shown.certain.shape[1] == 2 and shown.widths is None
    ranker.learn(shown, [True] + [False] * 9)
    assert ranker.rounds == 1 and ranker.kind == kind
    assert f"{kind}, 6 features" in repr(ranker)


@pytest.mark.parametrize("kind", KINDS)
def test_saves_loads_pickles_and_copies_to_the_same_bits(kind, queries, tmp_path):
    whole = make(kind)
    play(whole, queries, 0, 8)
    whole.save(tmp_path / "state")
    others = [olrank.Ranker.load(tmp_path / "state"), pickle.loads(pickle.dumps(whole)), copy.copy(whole), copy.deepcopy(whole)]
    play(whole, queries, 8, 12)
    for other in others:
        play(other, queries, 8, 12)
        assert other.fingerprint == whole.fingerprint


@pytest.fixture
def four_lists(queries):
    return olrank.Dataset.from_arrays(np.concatenate([queries(number) for number in range(4)]), np.zeros(80), np.repeat(list("abcd"), 20))


@pytest.mark.parametrize("kind", ["clickgp", "pairrank", "olranknet", "pdgd", "dbgd"])
def test_partial_fit_learns_as_the_ranker_that_showed_the_lists(kind, four_lists, tmp_path):
    shows, records = make(kind), [{"config": {}}]
    rewarded = {"rewards": [2.5] * 10} if kind == "pairrank" else {}
    for query in [*four_lists.queries()] * 2:
        shown = shows.rank(query.X, qid=query.qid)
        clicks = (query.X[shown.docs, 0] > 0.6).astype(int).tolist()
        shows.learn(shown, clicks, **rewarded)
        records.append({"qid": query.qid, "shown": shown.docs.tolist(), "clicks": clicks, **rewarded})
    (tmp_path / "log.jsonl").write_text("\n\n".join(json.dumps(record) for record in records))
    for log in (records[1:], tmp_path / "log.jsonl"):
        ranker = make(kind)
        assert ranker.partial_fit(log, four_lists) is ranker
        assert (ranker.fingerprint, ranker.rounds) == (shows.fingerprint, 8)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"shown": [0, 20]}, olrank.InvalidArgument, "The list shows document 20, but the query has 20"),
        ({"shown": [0.5, 1]}, olrank.InvalidArgument, "shown must be rows of the query"),
        ({"shown": ["x", "y"]}, TypeError, "shown has the type"),
        ({"shown": list(range(11)), "clicks": [0] * 11}, olrank.InvalidArgument, "create the ranker with cutoff = 11"),
        ({"clicks": [1]}, olrank.InvalidArgument, "clicks has 1 values for 2 shown documents"),
        ({"clicks": [2, 0]}, olrank.InvalidArgument, "it must be 0 or 1"),
        ({"qid": "z"}, olrank.InvalidArgument, "The data have no query 'z'"),
        (None, olrank.InvalidArgument, "There is no 'qid'"),
    ],
)
def test_partial_fit_says_which_record_is_wrong(change, error, sentence, four_lists):
    good = {"qid": "a", "shown": [1, 0], "clicks": [1, 0]}
    ranker = make("pairrank")
    with pytest.raises(error, match=f"^Record 2 of the log: .*{sentence}") as told:
        ranker.partial_fit([good, change and good | change], four_lists)
    assert ranker.rounds == 1 and "\n" not in str(told.value)


def test_partial_fit_refuses_other_files_and_data(four_lists, tmp_path):
    (tmp_path / "log.jsonl").write_text("{\n")
    refused("log.jsonl is no file of JSON lines", lambda: make("pairrank").partial_fit(tmp_path / "log.jsonl", four_lists), olrank.DataError)
    refused("none.jsonl cannot be read", lambda: make("pairrank").partial_fit(tmp_path / "none.jsonl", four_lists), olrank.DataError)
    refused("The data have 6 features, and documents here have 3", lambda: olrank.Ranker("pairrank", features=3).partial_fit([], four_lists))


def test_a_ranker_without_memory_for_its_features_says_so():
    refused("take fewer features", lambda: olrank.Ranker("pairrank", features=10_000_000), MemoryError)


def test_learns_what_users_click(queries):
    ranker = make("pairrank")
    play(ranker, queries, 0, 60)
    X = queries(1000)
    assert np.corrcoef(ranker.score(X), X[:, 0])[0, 1] > 0.8


def test_knows_widths_and_certain_orders(queries):
    ranker = make("pairrank", alpha=0.01)
    play(ranker, queries, 0, 60)
    X = queries(7)
    shown = ranker.rank(X, widths=True)
    assert shown.widths.shape == (20, 20) and np.allclose(shown.widths, shown.widths.T)
    assert len(shown.certain) > 0
    for first, second in shown.certain:
        assert shown.scores[first] > shown.scores[second]
        assert np.tanh(0.5 * (shown.scores[first] - shown.scores[second])) / 2 > 0.01 * shown.widths[first, second] > 0
    # Looking at widths changes neither the state nor the next list.
    before = ranker.fingerprint
    twin = copy.copy(ranker)
    widths = ranker.widths(X)
    assert ranker.fingerprint == before
    assert np.array_equal(ranker.rank(X, widths=True).widths, twin.rank(X, widths=True).widths)
    assert np.array_equal(widths, shown.widths)


def test_shows_fewer_documents_on_request(queries):
    ranker = make("pairrank", alpha=0.01)
    play(ranker, queries, 0, 30)
    twin = copy.copy(ranker)
    three, ten = ranker.rank(queries(50), k=3), twin.rank(queries(50))
    assert list(three.docs) == list(ten.docs[:3])
    assert set(three.certain.ravel()) <= set(three.docs)
    ranker.learn(three, [1, 0, 0])
    refused("lists of 10 ranks, not 11: create it with cutoff = 11", lambda: ranker.rank(queries(50), k=11))


def test_float32_is_not_copied_and_other_types_are(queries):
    ranker = make("pairrank")
    X = queries(3)
    expected = ranker.score(X)
    for other in (X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        assert np.array_equal(ranker.score(other), expected)
    # A tensor's memory is what the engine reads.
    torch = pytest.importorskip("torch", exc_type=ImportError)
    if not hasattr(torch, "from_numpy"):
        pytest.skip("torch is there as a library alone")
    assert np.array_equal(ranker.score(torch.from_numpy(X).requires_grad_()), expected)


def test_documents_of_a_named_query_come_back_as_themselves(queries):
    named, nameless = make("olranknet"), make("olranknet")
    for number in range(3):
        for ranker, qid in ((named, "jacket"), (nameless, f"jacket {number}")):
            shown = ranker.rank(queries(1), qid=qid)
            ranker.learn(shown, [0, 1] + [0] * 8)
    assert named.fingerprint != nameless.fingerprint


def test_every_setting_is_a_keyword():
    settings = {setting.name: setting for setting in olrank.settings("ranker")}
    assert {"alpha", "width", "covariance", "retrain", "lambda"} <= set(settings)
    assert settings["covariance"].choices and settings["alpha"].lowest is not None and settings["width"].help
    for name in settings:
        if name in ("kind", "name"):
            continue
        # Each is known: what is wrong with the value is said of this setting.
        refused(name, lambda: olrank.Ranker("olranknet", features=2, **{name: object()}), (olrank.Error, TypeError))
    refused("'widht'.*Did you mean 'width'", lambda: olrank.Ranker("olranknet", features=2, widht=5))
    refused("'width' does not apply to ranker 'pairrank'", lambda: olrank.Ranker("pairrank", features=2, width=5))
    refused("alpha", lambda: olrank.Ranker("olranknet", features=2, alpha=-1))
    assert "lambda = 7" in olrank.Ranker("olranknet", features=2, lambda_=7).settings
    assert "alpha = 0.25" in olrank.Ranker("olranknet", features=2, alpha=0.25).settings


def test_rankers_work_side_by_side(queries):
    def fingerprint_of(seed):
        ranker = make("olranknet", seed=seed)
        play(ranker, queries, 0, 40)
        return ranker.fingerprint

    alone = [fingerprint_of(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(fingerprint_of, (1, 2))) == alone
    assert alone[0] != alone[1]


def test_calls_of_one_ranker_follow_one_another(queries):
    ranker = make("pairrank")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: play(ranker, queries, 0, 50), range(4)))
    assert ranker.rounds == 200


def test_a_model_scores_as_its_ranker(queries, tmp_path):
    ranker = make("olranknet")
    play(ranker, queries, 0, 10)
    ranker.save_model(tmp_path / "model.safetensors")
    model = olrank.load_model(tmp_path / "model.safetensors")
    assert model.features == 6
    assert np.allclose(model.score(queries(99), [20]), ranker.score(queries(99)), rtol=1e-5, atol=1e-5)
    started = make("olranknet", start_from=tmp_path / "model.safetensors")
    assert np.array_equal(started.score(queries(99)), ranker.score(queries(99)))
    (tmp_path / "model.safetensors").unlink()
    play(started, queries, 0, 2)  # what it began with is in its parameters
    assert pickle.loads(pickle.dumps(started)).fingerprint == started.fingerprint


def test_a_list_may_travel_to_another_process(queries):
    ranker = olrank.Ranker("pairrank", features=6)
    shown = ranker.rank(queries(1), qid="shoes", widths=True)
    state = pickle.dumps((ranker, shown))
    ranker.learn(shown, [0, 1] + [0] * 8)
    there, again = pickle.loads(state)
    assert repr(again) == repr(shown) and np.array_equal(again.widths, shown.widths) and np.array_equal(again.certain, shown.certain)
    there.learn(again, [0, 1] + [0] * 8)
    assert there.fingerprint == ranker.fingerprint
    refused("answered already", lambda: there.learn(again, [0, 1] + [0] * 8), ValueError)
    refused("not from this ranker", lambda: olrank.Ranker("pairrank", features=6, seed=2).learn(pickle.loads(state)[1], [0, 1] + [0] * 8), ValueError)
    with pytest.raises(ValueError, match="not from this ranker"):  # which has not made such a list yet
        olrank.Ranker("pairrank", features=6).learn(pickle.loads(state)[1], [0, 1] + [0] * 8)
    for place in range(0, len(bytes_of := shown.__getstate__()), 7):
        with pytest.raises(olrank.Error):
            _core_list = type(shown).__new__(type(shown))
            _core_list.__setstate__(bytes_of[:place])


def test_rewards_count_pairs_as_often(queries):
    clicks = [0, 1, 0, 1, 0, 0, 0, 0, 0, 0]

    def scores(rewards):
        ranker = olrank.Ranker("pairrank", features=6)
        ranker.learn(ranker.rank(queries(1)), clicks, rewards)
        return ranker.score(queries(2))

    assert (scores(None) == scores([1] * 10)).all()
    assert (scores(None) != scores([0, 1, 0, 10, 0, 0, 0, 0, 0, 0])).any()
    ranker = olrank.Ranker("pairrank", features=6)
    refused("There are 2 rewards for 10 shown documents", lambda: ranker.learn(ranker.rank(queries(1)), clicks, [1, 2]))
    ranker = olrank.Ranker("clickgp", features=6)
    ranker.learn(ranker.rank(queries(1), qid="q"), clicks, [0, 1, 0, 10, 0, 0, 0, 0, 0, 0])
    ranker = olrank.Ranker("dbgd", features=6)
    refused("A 'dbgd' learns from clicks alone", lambda: ranker.learn(ranker.rank(queries(1)), clicks, [1] * 10))


def test_a_saved_clickgp_scores_with_its_memory(queries, tmp_path):
    ranker, X = olrank.Ranker("clickgp", features=6), queries(1)
    for _ in range(10):
        shown = ranker.rank(X, qid=7)
        ranker.learn(shown, shown.docs == 3)
    ranker.save(tmp_path / "ranker.snapshot")
    model = olrank.load_model(tmp_path / "ranker.snapshot")
    assert np.array_equal(model.score(X, qid=7).astype(np.float32), ranker.rank(X, qid=7).scores)
    assert model.rank(X, qid="7")[0] == 3 and np.array_equal(pickle.loads(pickle.dumps(model)).rank(X, qid=7), model.rank(X, qid=7))
    assert not np.array_equal(model.score(X, qid=7), model.score(X, [len(X)]))
    refused("2 IDs of 20 documents", lambda: model.score(X, qid=7, docid=["a", "b"]))
