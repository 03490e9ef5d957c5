"""Sparse matrices of SciPy as features: what they teach is what their dense form teaches."""

import pickle

import numpy as np
import pytest

import olrank
from conftest import refused

sparse = pytest.importorskip("scipy.sparse")
COLUMNS = 400
GROUP = [5] * 12
GRADES = [0, 2, 1, 0, 1] * 12


def words(columns=COLUMNS):
    return sparse.random(60, columns, density=0.02, format="csr", random_state=3, dtype=np.float32)


def test_a_sparse_matrix_is_the_data_of_its_dense_form():
    rows = words()
    qid = [row % 7 for row in range(60)]  # scattered, so that rows are moved
    for kind in ("csr", "csc", "coo"):
        data = olrank.Dataset.from_arrays(rows.asformat(kind), GRADES, qid)
        dense = olrank.Dataset.from_arrays(rows.toarray(), GRADES, qid)
        assert sparse.issparse(data.X) and (data.X.toarray() == dense.X).all()
        assert (data.y == dense.y).all() and data.qids == dense.qids and data.features == COLUMNS
        assert [query.X.shape for query in data.queries()] == [query.X.shape for query in dense.queries()]
        again = pickle.loads(pickle.dumps(data))
        assert again.fingerprint == data.fingerprint and (again.X.toarray() == dense.X).all()


def test_columns_in_any_order_count_once_and_repeated_ones_add_up():
    odd = sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([3, 0, 3]), np.array([0, 3, 3])), shape=(2, 5))
    assert (olrank.Dataset.from_arrays(odd, [0, 1], group=[2]).X.toarray() == odd.toarray()).all()
    assert odd.nnz == 3  # the matrix itself is left as it was


def test_models_are_fitted_as_on_dense_features():
    rows = words()
    data, dense = (olrank.Dataset.from_arrays(X, GRADES, group=GROUP) for X in (rows, rows.toarray()))
    fitted, wanted = (olrank.fit(one, network="linear", epochs=3) for one in (data, dense))
    assert (fitted.score(rows, GROUP) == wanted.score(rows.toarray(), GROUP)).all()
    assert (wanted.score(rows, GROUP) == wanted.score(rows.toarray(), GROUP)).all()
    network = olrank.fit(data, network="mlp", width=4, epochs=3)
    # In double, whose sums of 400 products differ by their order alone.
    np.testing.assert_allclose(network.score(rows, GROUP), network.score(rows.toarray(), GROUP), rtol=1e-11, atol=1e-12)
    zscore = olrank.fit(dense, network="linear", epochs=1, normalise="zscore")
    assert (zscore.score(rows) == zscore.score(rows.toarray())).all()


def test_scikit_learn_takes_wide_text():
    model = pytest.importorskip("olrank.sklearn").LTRModel(epochs=2, width=4)
    wide = words(100_000)
    assert model.fit(wide, GRADES, GROUP).predict(wide, GROUP).shape == (60,)
    assert 0.0 <= model.score(wide, GRADES, GROUP) <= 1.0


def test_what_sparse_features_cannot_be_is_refused():
    rows = words()
    wrong = rows.copy()
    wrong.data[0] = np.nan
    row, column = np.repeat(np.arange(60), np.diff(wrong.indptr))[0], wrong.indices[0]
    refused(rf"^Feature {column + 1} of document {row} is not finite\.$", lambda: olrank.Dataset.from_arrays(wrong, GRADES, group=GROUP))
    refused("X has the type complex", lambda: olrank.Dataset.from_arrays(rows.astype(complex), GRADES, group=GROUP), TypeError)
    refused("60 rows of X", lambda: olrank.Dataset.from_arrays(rows, [0, 1], group=[2]))
    data = olrank.Dataset.from_arrays(rows, GRADES, group=GROUP)
    refused("sparse, and normalise = \"zscore\" would make each of their zeros another number", lambda: olrank.fit(data, normalise="zscore"))
    refused("X is sparse, and this computes with dense features", lambda: olrank.Ranker("pdgd", features=COLUMNS).rank(rows[:5]), TypeError)
