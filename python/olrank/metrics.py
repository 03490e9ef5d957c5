"""Metrics of rankings, as `olrank eval` computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, as_grades, as_numbers, as_weights
from olrank.data import Dataset, layout
from olrank.errors import InvalidArgument

Values = dict[str, float]
ByQuery = dict[str, npt.NDArray[np.float64]]


@overload
def evaluate(
    y: ArrayLike | Dataset, scores: ArrayLike, qid: ArrayLike | Sequence[Any] | None = ..., at: int | Sequence[int] = ..., *,
    group: ArrayLike | None = ..., metrics: str | Sequence[str] = ..., convention: str = ..., gain: str = ...,
    empty_queries: str = ..., max_grade: int | None = ..., by_query: Literal[False] = ..., threads: int = ...,
) -> Values: ...
@overload
def evaluate(
    y: ArrayLike | Dataset, scores: ArrayLike, qid: ArrayLike | Sequence[Any] | None = ..., at: int | Sequence[int] = ..., *,
    group: ArrayLike | None = ..., metrics: str | Sequence[str] = ..., convention: str = ..., gain: str = ...,
    empty_queries: str = ..., max_grade: int | None = ..., by_query: Literal[True], threads: int = ...,
) -> tuple[Values, ByQuery]: ...
def evaluate(
    y: ArrayLike | Dataset,
    scores: ArrayLike,
    qid: ArrayLike | Sequence[Any] | None = None,
    at: int | Sequence[int] = (1, 3, 5, 10),
    *,
    group: ArrayLike | None = None,
    metrics: str | Sequence[str] = (),
    convention: str = "olrank",
    gain: str = "",
    empty_queries: str = "",
    max_grade: int | None = None,
    by_query: bool = False,
    threads: int = 0,
) -> Values | tuple[Values, ByQuery]:
    """Means over the queries of "ndcg@k", "dcg@k", "map", "mrr", "p@10", "err@10", "arp" and "pair_accuracy".

    `y` has the grades and `qid` the query of each document (or `group` the number of documents of each query); a Dataset
    has both. `metrics` adds further ones, such as "map@5". `convention` is olrank, letor, lightgbm or trec_eval; gain
    (exponential, linear) and empty_queries (zero, one, skip) override it. docs/METRICS.md defines all of them.
    With `by_query`, also the values of every query, NaN where a query is left out.
    """
    cutoffs = [at] if isinstance(at, int) else list(at)
    if not all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) and 0 < k < 2**31 for k in cutoffs):
        raise InvalidArgument(f"at must be whole numbers of at least 1, not {at!r}.")
    metrics = [metrics] if isinstance(metrics, str) else list(metrics)
    values = as_numbers(scores, "scores")
    if isinstance(y, Dataset):
        data = y
        docs = len(data.y)
    else:
        grades = as_grades(y)
        docs = len(grades)
        order, offsets, names = layout(qid, group, docs)
        if order is not None:
            grades = grades[order]
        nothing = np.zeros((docs, 1), dtype=np.float32)
        data = Dataset(_core.RankingData.of(nothing, grades, offsets, names, as_weights(None, offsets), (nothing, grades, offsets)))
    if values.ndim != 1 or len(values) != docs:
        raise InvalidArgument(f"There are {values.size} scores for {docs} documents: give one for each.")
    if not isinstance(y, Dataset) and order is not None:
        values = values[order]
    values = np.ascontiguousarray(values, dtype=np.float64)
    return _core.evaluate(
        data._engine, values, [int(k) for k in cutoffs], metrics, convention, gain, empty_queries, max_grade, by_query, threads
    )
