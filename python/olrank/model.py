"""Scoring functions: model files, and models fitted to grades."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, Frame, as_features, as_offsets, as_path, in_order, named, with_index
from olrank.data import Dataset
from olrank.errors import DataError, InvalidArgument
from olrank.settings import as_texts

if TYPE_CHECKING:
    from typing import Unpack  # noqa: F401

    from olrank._keywords import TrainSettings


class Model:
    """A function of documents. It normalises them itself, and any number of threads may use it."""

    __slots__ = ("_engine",)

    def __init__(self, engine: _core.Model) -> None:
        self._engine = engine

    @property
    def features(self) -> int:
        return self._engine.features()

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features; None where the file has none. A table's columns are taken by them, in any order."""
        return self._engine.feature_names() or None

    @overload
    def score(self, X: Frame, group: ArrayLike | None = None, *, qid: Any = None, docid: Any = None) -> Any: ...
    @overload
    def score(self, X: ArrayLike, group: ArrayLike | None = None, *, qid: Any = None, docid: Any = None) -> npt.NDArray[np.float64]: ...
    def score(self, X: Any, group: ArrayLike | None = None, *, qid: Any = None, docid: Any = None) -> Any:
        """A score for each row of X; of a DataFrame of pandas, a Series with its index. `group` has the rows of each query.

        A model that normalises its inputs by query needs it; to the other models the rows are independent. Snapshots know
        documents by `qid`, of the only query or one for each, and `docid` for each row, without which Ranker.save() does.
        """
        if isinstance(qid, (str, int, np.integer)):
            qid, group = [qid], [X.shape[0] if hasattr(X, "shape") else len(X)] if group is None else group
        queries, ids = ([] if names is None else [str(name) for name in names] for names in (qid, docid))
        if group is None and self._engine.normalises_by_query():
            raise InvalidArgument("score() needs group: inputs are normalised by query. One query is group=[len(X)].")
        if hasattr(X, "tocsr") and not queries:
            rows, columns = X.shape
            if columns != self.features:
                raise InvalidArgument(f"X has {columns} columns, and documents here have {self.features} features.")
            return self._engine.score_data(Dataset.from_arrays(X, np.zeros(rows), group=[rows] if group is None else group)._engine)
        values, names = named(X)
        known = None if names is None else self._engine.feature_names()
        table = as_features(in_order(values, names, tuple(known) if known else None), self.features)
        offsets = as_offsets([len(table)] if group is None else group, len(table))
        scores = self._engine.score(table, offsets, queries, ids)
        return with_index(X, scores, "score")

    def rank(self, X: ArrayLike, *, qid: Any = None, docid: Any = None) -> npt.NDArray[np.int64]:
        """The rows of one query's documents, best first."""
        rows: int = X.shape[0] if hasattr(X, "shape") else len(X)  # type: ignore[arg-type]
        return np.argsort(-np.asarray(self.score(X, [rows], qid=qid, docid=docid)), kind="stable")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file that `olrank rank`, `eval`, `export` and `serve` take."""
        self._engine.save(as_path(path))

    def __getstate__(self) -> bytes:
        return self._engine.bytes()

    def __setstate__(self, state: bytes) -> None:
        self._engine = _core.Model.from_bytes(state)

    def __repr__(self) -> str:
        by_query = ", scaled by query" if self._engine.normalises_by_query() else ""
        return f"<olrank.Model of {self.features} features{by_query}>"


def load_model(path: str | os.PathLike[str], *, trust_code: bool = False) -> Model:
    """A model file, a snapshot (also one by Ranker.save()), or the folder of a finished trial or training that has a model.

    One with a TorchScript module holds code, which can read and write your files: it is refused unless `trust_code`
    says that you trust the file's source.
    """
    return Model(_core.Model.load(as_path(path), trust_code))


def fit(
    train: Dataset | None,
    validation: Dataset | None = None,
    *,
    log: str | os.PathLike[str] | None = None,
    estimator: str = "ips",
    click_model: str = "pbm",
    clip: float = 10.0,
    normalise: str = "query-minmax",
    seed: int = 1,
    threads: int = 0,
    device: str = "cpu",
    **settings: Unpack[TrainSettings],
) -> Model:
    """Fits a model to grades, or to a log, with the same result as `olrank train`. `olrank.settings("train")` lists the keywords.

    `device` is "cpu", "cuda" or one of several GPUs, such as "cuda:1". With a `log` the model learns from its clicks, and
    the documents of the lists are those of `train`, whose grades play no part; the log of a service has its own, and takes
    None. `estimator` is naive, ips, dr, two-tower or regression-em: docs/TRAINING.md, "From clicks". `click_model` is of ips
    and dr, and `clip` the largest weight.
    """
    if log is None and (estimator, click_model, clip) != ("ips", "pbm", 10.0):
        raise InvalidArgument("estimator, click_model and clip say how to learn from a log: give log=…, or leave them out.")
    for name, part in (("train", train), ("validation", validation)):
        if not isinstance(part, Dataset) and part is not None:
            raise TypeError(f"{name} is of the type {type(part).__name__}: give a Dataset, such as Dataset.from_arrays() makes.")
    texts = as_texts(dict(settings))
    names = None if train is None else train.feature_names
    parts = (None if train is None else train._engine, None if validation is None else validation.in_order(names)._engine)
    file = "" if log is None else as_path(log)
    try:
        return Model(_core.fit_model(*parts, texts, normalise, seed, threads, device, names or [], file, estimator, click_model, clip))
    except DataError as error:
        error.args = (str(error).replace("by --data", "as train"),)
        raise
