"""Models fitted to grades as estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin

from olrank.data import Dataset
from olrank.errors import InvalidArgument
from olrank.metrics import evaluate
from olrank.model import Model, fit
from olrank.settings import settings

# Chosen on two folds of MQ2008 and on generated data; docs/PYTHON.md has what they come to on others. Fewer and smaller
# steps than those of `olrank train`, which may stop early by a validation part.
_CHOSEN = {"loss": "lambdarank", "width": 32, "epochs": 20}


class LTRModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A ranking function: fit(X, y, group) or fit(X, y, qid=…), predict(X, group).

    Its parameters are the settings of `olrank train` (olrank.settings("train")), and `normalise`, `seed`, `threads` and
    `device` ("cpu", "cuda", "cuda:1"). Its own defaults are loss="lambdarank", width=32 and epochs=20.
    Inputs are normalised by query, as by olrank.fit(), so predict() needs the group; with "none" or "zscore" it does not.
    score(X, y, group) is NDCG@10. Cross-validation hands rows to folds, so fit and score need each row's query: see
    docs/PYTHON.md.
    """

    def __init__(self, *, normalise: str = "query-minmax", seed: int = 1, threads: int = 1, device: str = "cpu", **settings: Any) -> None:
        self.normalise = normalise
        self.seed = seed
        self.threads = threads
        self.device = device
        known = {setting.name: setting.default for setting in _settings()}
        for name in settings:
            if name not in known:
                raise InvalidArgument(f"LTRModel has no parameter '{name}': olrank.settings(\"train\") lists them.")
        for name, default in known.items():
            setattr(self, name, settings.get(name, _CHOSEN.get(name, default)))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["normalise", "seed", "threads", "device"] + [setting.name for setting in _settings()])

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
        given = {
            setting.name: getattr(self, setting.name)
            for setting in _settings()
            if getattr(self, setting.name) != setting.default
        }
        if getattr(self, "network") != "mlp" and given.get("width") == _CHOSEN["width"]:
            del given["width"]  # no choice of the user's, and only a network has it
        data = Dataset.from_arrays(X, y, qid=qid, group=group, weight=sample_weight)
        self.model_: Model = fit(
            data, validation, normalise=self.normalise, seed=self.seed, threads=self.threads, device=self.device, **given
        )
        self.n_features_in_ = data.features
        return self

    def predict(self, X: Any, group: Any = None) -> npt.NDArray[np.float64]:
        """A score for each row. With a normalisation by query, `group` has the number of rows of each query."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        if group is None and self.normalise == "query-minmax":
            raise InvalidArgument("predict() needs group: inputs are normalised by query. One query is group=[len(X)].")
        return np.asarray(self.model_.score(X, group))  # an array, as scikit-learn's models give

    def score(self, X: Any, y: Any, group: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """NDCG@10 by query, the mean by `sample_weight`: give group or qid, as for fit()."""
        if (group is None) == (qid is None):
            raise InvalidArgument(
                "score() needs the queries: give either group or qid. In cross-validation, request it: "
                "model.set_fit_request(qid=True).set_score_request(qid=True) with sklearn's metadata routing."
            )
        data = Dataset.from_arrays(X, y, qid=qid, group=group, weight=sample_weight)
        mean, of_queries = evaluate(data, self.predict(data.X, data.group), at=[10], by_query=True)
        if data.weight is not None and not data.weight.any():
            raise InvalidArgument("All queries have the weight 0, so there is no mean: give one a weight above 0.")
        return mean["ndcg@10"] if data.weight is None else float(np.average(of_queries["ndcg@10"], weights=data.weight))


def _settings() -> list[Any]:
    return [setting for setting in settings("train") if setting.name != "seeds"]
