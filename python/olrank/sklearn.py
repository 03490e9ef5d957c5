"""Models fitted to grades as estimators of scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from olrank._arrays import Names, as_array, columns_of, in_order, is_table, joined, named
from olrank.data import Dataset, layout
from olrank.errors import InvalidArgument
from olrank.metrics import evaluate
from olrank.model import Model, fit
from olrank.settings import settings


class LTRModel(BaseEstimator):  # type: ignore[misc]
    """A ranking function: fit(X, y, group) or fit(X, y, qid=…), predict(X, group) or predict(X, qid=…).

    Its parameters are the settings of `olrank train` (olrank.settings("train")), and `normalise`, `seed`, `threads`,
    `device` ("cpu", "cuda", "cuda:1"), `query` and `one_query`. `query` is the column of X, by name or number, that has each row's
    query, so that no method needs group or qid. With `one_query`, X is one query where neither is given, which is refused else.
    Its own defaults are loss="lambdarank", width=32 and epochs=20.
    Inputs are normalised by query, as by olrank.fit(), so predict() needs the queries; with "none" or "zscore" it does not.
    score(X, y, group) is NDCG@10. Cross-validation hands rows to folds, so fit and score need each row's query: see
    docs/PYTHON.md. After fit(), `n_features_in_` is the number of columns, and `feature_names_in_` has their names where X was
    a table: later tables are taken by these names, in any order. It is no regressor: grades order documents, and scores are none.
    """

    # Loss, width and epochs were chosen on two folds of MQ2008 and on generated data; docs/PYTHON.md has what they come to on
    # others. The steps are fewer and smaller than those of `olrank train`, which may stop early by a validation part.
    def __init__(
        self, *, normalise: str = "query-minmax", seed: int = 1, threads: int = 1, device: str = "cpu", one_query: bool = False,
        query: str | int | None = None,
        loss: Literal["listnet", "smooth-dcg", "ranksvm", "ranknet", "lambdarank", "listmle", "rankcosine"] = "lambdarank", smoothing: float = 1.0,
        smooth_at: int = 1, pair_mean: bool = False, network: Literal["linear", "mlp", "module"] = "mlp", module: str = "relu",
        activation: Literal["relu", "gelu", "silu", "tanh"] = "relu", width: int = 32,
        depth: int = 2, parameterisation: Literal["ntk", "standard"] = "standard", initialisation: Literal["usual", "symmetric"] = "usual",
        optimizer: Literal["adam", "lbfgs", "ogd-average", "proximal"] = "adam", l2: float = 0.0, l1: float = 0.0, radius: float = 0.0,
        radius_norm: Literal["l2", "l1"] = "l2", epochs: int = 20, batch: int = 32, learning_rate: float = 0.0, learning_rate_decay: float = 1.0,
        tolerance: float = 1e-06, patience: int = 0, cutoff: int = 10, empty_queries: Literal["zero", "one", "skip"] = "zero",
    ) -> None:
        given = locals()
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def fit(
        self,
        X: Any,
        y: Any,
        group: Any = None,
        *,
        qid: Any = None,
        validation: Dataset | None = None,
        sample_weight: Any = None,
    ) -> LTRModel:
        """`group` has the number of rows of each query, in order; or `qid` the query of each row.

        `sample_weight` is the `weight` of Dataset.from_arrays(): a query has one, which all its rows repeat.
        """
        if y is None:
            raise InvalidArgument("LTRModel requires y to be passed, but the target y is None: give a grade for each row.")
        values, names, qid = self._parts(X, group, qid)
        values = self._table(values)
        if group is None and qid is None and not self.one_query:
            raise InvalidArgument("fit() needs the queries: give either group or qid, or the parameter one_query=True.")
        data = self._data(values, y, group, qid, sample_weight)
        if data.weight is not None and not data.weight.any():
            raise InvalidArgument("All queries have the weight zero, which teaches nothing: give one a weight above 0.")
        given = {
            setting.name: getattr(self, setting.name)
            for setting in settings("train")
            if setting.name != "seeds" and getattr(self, setting.name) != setting.default
        }
        if self.network != "mlp" and self.width == inspect.signature(LTRModel).parameters["width"].default:
            del given["width"]  # no choice of the user's, and only a network has it
        if names is not None:
            data = Dataset(data._engine, names)
        self.model_: Model = fit(
            data, validation, normalise=self.normalise, seed=self.seed, threads=self.threads, device=self.device, **given
        )
        self.n_features_in_ = data.features
        if hasattr(self, "feature_names_in_"):
            delattr(self, "feature_names_in_")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def predict(self, X: Any, group: Any = None, *, qid: Any = None) -> npt.NDArray[np.float64]:
        """A score for each row. With a normalisation by query it needs the queries: `group` has the rows of each, or `qid` that of each row."""
        check_is_fitted(self, "model_")
        table, qid = self._fitted(X, group, qid)
        rows = table.shape[0]
        if qid is None:
            if group is None and self.model_._engine.normalises_by_query() and not self.one_query:
                raise InvalidArgument(
                    "predict() needs group or qid: inputs are normalised by query. One query is group=[len(X)]. Where scikit-learn passes on neither, "
                    "as in cross_val_predict and the predict() of searches, let a column of X have the queries: LTRModel(query=…)."
                )
            return np.asarray(self.model_.score(table, [rows] if group is None else group))
        order, offsets, _ = layout(qid, group, rows)
        order = np.arange(rows) if order is None else order
        scores = np.empty(rows)
        scores[order] = self.model_.score(table[order], np.diff(offsets))
        return scores

    def score(self, X: Any, y: Any, group: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """NDCG@10 by query, the mean by `sample_weight`: give group or qid, as for fit()."""
        check_is_fitted(self, "model_")
        if (group is None) == (qid is None) and self.query is None and not (self.one_query and group is None):
            raise InvalidArgument(
                "score() needs the queries: give either group or qid. In cross-validation, request it: "
                "model.set_fit_request(qid=True).set_score_request(qid=True) with sklearn's metadata routing."
            )
        table, qid = self._fitted(X, group, qid)
        data = self._data(table, y, group, qid, sample_weight)
        mean, of_queries = evaluate(data, self.model_.score(data.X, data.group), at=[10], by_query=True)
        if data.weight is not None and not data.weight.any():
            raise InvalidArgument("All queries have the weight 0, so there is no mean: give one a weight above 0.")
        return mean["ndcg@10"] if data.weight is None else float(np.average(of_queries["ndcg@10"], weights=data.weight))

    def _table(self, values: Any) -> Any:
        """Numbers as scikit-learn checks them; a sparse matrix stays sparse."""
        return check_array(values, accept_sparse="csr", estimator=self, input_name="X")

    def _parts(self, X: Any, group: Any, qid: Any) -> tuple[Any, Names, Any]:
        """The features with their names, and the queries, which may be a column of X."""
        if self.query is None:
            return *named(X), qid
        if group is not None or qid is not None:
            raise InvalidArgument(f"Column {self.query!r} of X has the queries: give neither group nor qid.")
        if isinstance(self.query, str):
            columns = dict(columns_of(X, "X", [self.query]) if is_table(X) else {})
            if self.query not in columns:
                raise InvalidArgument(f"X is no table with a column {self.query!r}: give one, or the column's number as query.")
            qid = columns.pop(self.query)
            return *joined(columns), qid
        values, names = named(X)
        table = as_array(values, "X")
        if not isinstance(self.query, (int, np.integer)) or table.ndim != 2 or not -table.shape[1] <= self.query < table.shape[1]:
            raise InvalidArgument(f"query={self.query!r} must be the name or the number of a column of X, which has the shape {table.shape}.")
        kept = np.delete(np.arange(table.shape[1]), self.query)
        return table[:, kept], None if names is None else tuple(names[one] for one in kept), table[:, self.query]

    def _fitted(self, X: Any, group: Any, qid: Any) -> tuple[Any, Any]:
        """The columns that fit() had, by their names where both have them; and the queries."""
        values, names, qid = self._parts(X, group, qid)
        known = getattr(self, "feature_names_in_", None)
        table = self._table(in_order(values, names, None if known is None else tuple(known)))
        if table.shape[1] != self.n_features_in_:
            raise InvalidArgument(f"X has {table.shape[1]} features, but LTRModel is expecting {self.n_features_in_} features as input.")
        return table, qid

    def _data(self, table: Any, y: Any, group: Any, qid: Any, sample_weight: Any) -> Dataset:
        one = group is None and qid is None
        grades = column_or_1d(y, warn=True)
        type_of_target(grades, input_name="y", raise_unknown=True)
        if one and table.shape[0] == 1:
            raise InvalidArgument("X has 1 sample, and a list needs two documents: give more rows.")
        return Dataset.from_arrays(table, grades, qid=qid, group=[table.shape[0]] if one else group, weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
