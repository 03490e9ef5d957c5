"""Data sets with grades."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, as_array, as_features, as_grades, as_offsets, as_path
from olrank.errors import InvalidArgument


class Query(NamedTuple):
    """One query of a data set. The arrays are views."""

    qid: str
    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.uint8]


class Dataset:
    """One part of a data set: documents with features `X` and grades `y`, those of a query one after another.

    `X`, `y` and `offsets` are read-only views of the engine's memory; query q has the rows offsets[q] to
    offsets[q + 1].
    """

    __slots__ = ("_engine",)

    def __init__(self, engine: _core.RankingData) -> None:
        self._engine = engine

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, qid: ArrayLike | Sequence[Any] | None = None, group: ArrayLike | None = None) -> Dataset:
        """Arrays of yours. `qid` has the query of each row; or `group` the number of rows of each query, in order.

        Float32 and contiguous rows of each query are not copied. Where the rows of a query are not together, rows are
        moved: queries in order of first appearance, rows of each in order.
        """
        table = as_features(X, -1)
        grades = as_grades(y)
        if len(grades) != len(table):
            raise InvalidArgument(f"y has {len(grades)} grades for {len(table)} rows of X.")
        order, offsets, names = layout(qid, group, len(table))
        if order is not None:
            table, grades = table[order], grades[order]
        keeper = (table, grades, offsets)
        return cls(_core.RankingData.of(table, grades, offsets, names, keeper))

    @property
    def X(self) -> npt.NDArray[np.float32]:
        return self._engine.values()

    @property
    def y(self) -> npt.NDArray[np.uint8]:
        return self._engine.grades()

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self._engine.offsets()

    @property
    def group(self) -> npt.NDArray[np.int64]:
        """The number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def qid(self) -> npt.NDArray[np.str_]:
        """The query of each document."""
        return np.repeat(np.array(self.qids, dtype=np.str_), self.group)

    @property
    def qids(self) -> list[str]:
        """The name of each query."""
        return [self._engine.name(query) for query in range(len(self))]

    @property
    def features(self) -> int:
        return self._engine.features()

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that stand for all of the content."""
        return self._engine.fingerprint()

    def queries(self) -> Iterator[Query]:
        """The queries, one after another."""
        table, grades, offsets = self.X, self.y, self.offsets
        for query in range(len(self)):
            rows = slice(offsets[query], offsets[query + 1])
            yield Query(self._engine.name(query), table[rows], grades[rows])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes LETOR text that reads back to the same data, for `data.train` and so on of a configuration."""
        self._engine.write(as_path(path))

    def __getstate__(self) -> bytes | tuple[Any, ...]:
        if all(re.fullmatch(r"[^\x00-\x20\x7f#]+", name) for name in self.qids):
            return self._engine.bytes()
        return self.X, self.y, self.offsets, self.qids  # names that no file has, of arrays of yours

    def __setstate__(self, state: bytes | tuple[Any, ...]) -> None:
        if isinstance(state, bytes):
            self._engine = _core.RankingData.from_bytes(state)
        else:
            table, grades, offsets, names = state
            self._engine = _core.RankingData.of(table, grades, offsets, names, state)

    def __len__(self) -> int:
        return self._engine.queries()

    def __repr__(self) -> str:
        return f"<olrank.Dataset {len(self)} queries, {self._engine.docs()} documents, {self.features} features>"


def load_letor(path: str | os.PathLike[str], part: str = "train", fold: int = 1, threads: int = 0) -> Dataset:
    """A file of LETOR text, plain, .gz or .zst. Of a folder with Fold1 and so on, the part and fold."""
    return Dataset(_core.RankingData.load(as_path(path), part, fold, threads))


def synthetic(name: str = "mslr-like", part: str = "train", threads: int = 0, **keys: float) -> Dataset:
    """Generated data, the same for the same keys: mslr-like, yahoo-like or small; queries=…, seed=… and so on are those
    of docs/SYNTHETIC.md."""
    query = "&".join(f"{key}={value}" for key, value in keys.items())
    return Dataset(_core.RankingData.load(f"synth:{name}" + (f"?{query}" if query else ""), part, 1, threads))


Layout = tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64], list[str]]


def layout(qid: ArrayLike | Sequence[Any] | None, group: ArrayLike | None, docs: int) -> Layout:
    """The order of documents that brings those of a query together, None if they are; offsets; names of queries."""
    if (qid is None) == (group is None):
        raise InvalidArgument("Give either qid, the query of each document, or group, the number of documents of each query.")
    if group is not None:
        return None, as_offsets(group, docs), []
    ids = as_array(qid, "qid")
    if ids.ndim != 1 or len(ids) != docs:
        raise InvalidArgument(f"qid has {ids.size} values for {docs} documents: give one for each.")
    if docs == 0:
        return None, np.zeros(1, dtype=np.int64), []
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    query = number[inverse]
    order = None if (np.diff(query) >= 0).all() else np.argsort(query, kind="stable")
    counts = np.bincount(query, minlength=len(first))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
    return order, offsets, [str(ids[row]) for row in np.sort(first)]
