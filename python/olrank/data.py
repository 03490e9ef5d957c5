"""Data sets with grades."""

from __future__ import annotations

import csv
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import (
    ArrayLike, Floats, Names, as_array, as_grades, as_offsets, as_path, as_rows, as_weights, columns_of, in_order, joined, named, package,
)
from olrank.errors import DataError, InvalidArgument


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

    __slots__ = ("_engine", "_names")

    def __init__(self, engine: _core.RankingData, names: Names = None) -> None:
        self._engine = engine
        self._names = names

    @classmethod
    def from_arrays(
        cls, X: ArrayLike, y: ArrayLike, qid: ArrayLike | Sequence[Any] | None = None, group: ArrayLike | None = None, weight: ArrayLike | None = None
    ) -> Dataset:
        """Arrays of yours. `qid` has the query of each row; or `group` the number of rows of each query, in order.

        X may be sparse, a matrix of SciPy: then only what is not zero takes memory, and what trains on it needs no zeros.
        Float32 and contiguous rows of each query are not copied. Where the rows of a query are not together, rows are
        moved: queries in order of first appearance, rows of each in order.

        `weight` says how much a query counts in fit(), as one number for each query, or for each row, the same in all rows
        of a query. Metrics and online rankers do not use it.
        """
        X, columns = named(X)
        table = as_rows(X)
        grades = as_grades(y)
        if len(grades) != table.shape[0]:
            raise InvalidArgument(f"y has {len(grades)} grades for {table.shape[0]} rows of X.")
        order, offsets, names = layout(qid, group, table.shape[0])
        if order is not None:
            table, grades = table[order], grades[order]
        return cls(_engine_of(table, grades, offsets, names, as_weights(weight, offsets, order, names)), columns)

    @classmethod
    def from_table(cls, table: Any, y: str = "y", qid: str = "qid", X: Sequence[str] | None = None, weight: str | None = None) -> Dataset:
        """A table of pandas, polars, pyarrow or DuckDB: its columns `y`, `qid` and perhaps `weight`, and as features `X`,
        else all others.

        A column of lists of one length, such as embeddings, is as many features.
        """
        names = (y, qid) if weight is None else (y, qid, weight)
        columns = columns_of(table, "the table", (*names, *(X or ())), X is None)
        features = {one: columns[one] for one in (X if X is not None else columns) if one not in names or X is not None}
        twice = next((one for place, one in enumerate(X or ()) if one in (X or ())[:place]), None)
        if twice is not None:
            raise InvalidArgument(f"X names the column '{twice}' twice: name each column of features once.")
        if not features:
            raise InvalidArgument(f"The table has no column of features next to '{y}' and '{qid}'.")
        for column, values in features.items():
            if values.dtype.kind not in "fiub":
                raise TypeError(f"Column '{column}' of the table has the type {values.dtype}: give real numbers, or name the features by X.")
        table, of_columns = joined(features, "the table")
        data = cls.from_arrays(table, columns[y], columns[qid], weight=None if weight is None else columns[weight])
        return cls(data._engine, of_columns)

    @property
    def X(self) -> Any:
        """[documents × features]: an array, or a matrix of SciPy where the features are sparse."""
        if not self._engine.is_sparse():
            return self._engine.values()
        sparse = package("scipy.sparse", "X is sparse and needs SciPy to be shown")
        return sparse.csr_matrix(self._engine.sparse_values(), shape=(self._engine.docs(), self.features))

    @property
    def y(self) -> npt.NDArray[np.uint8]:
        return self._engine.grades()

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self._engine.offsets()

    @property
    def weight(self) -> npt.NDArray[np.float32] | None:
        """How much each query counts in fit(); None where each counts 1."""
        weights = self._engine.weights()
        return weights if len(weights) else None

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
    def feature_names(self) -> list[str] | None:
        """The names of the columns of X, where it was a table."""
        return None if self._names is None else list(self._names)

    def in_order(self, names: Sequence[str] | None) -> Dataset:
        """Returns the same data with the features in the order of these names; itself where either has no names."""
        wanted = None if names is None else tuple(names)
        if wanted is None or self._names is None:
            return self
        table = self.X
        ordered = in_order(table, self._names, wanted, "The data set")
        if ordered is table:
            return self
        return Dataset(_engine_of(as_rows(ordered), self.y, self.offsets, self.qids, self._engine.weights()), wanted)

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
        """Writes LETOR text that reads back to the same data, for `data.train` and so on of a configuration.

        Weights go to PATH.weight, and names of features to PATH.names, from where they are read.
        """
        self._engine.write(as_path(path))
        beside = Path(f"{as_path(path)}.names")
        beside.unlink(missing_ok=True)
        if self._names is not None:
            beside.write_text(json.dumps(self._names), encoding="utf-8")

    def __getstate__(self) -> bytes | tuple[Any, ...] | dict[str, Any]:
        return self._content() if self._names is None else {"names": self._names, "content": self._content()}

    def _content(self) -> bytes | tuple[Any, ...]:
        if all(re.fullmatch(r"[^\x00-\x20\x7f#]+", name) for name in self.qids):
            return self._engine.bytes()
        return self.X, self.y, self.offsets, self.qids, self._engine.weights()  # names that no file has, of arrays of yours

    def __setstate__(self, state: bytes | tuple[Any, ...] | dict[str, Any]) -> None:
        self._names = None
        if isinstance(state, dict):
            self._names, state = state["names"], state["content"]
        if isinstance(state, bytes):
            self._engine = _core.RankingData.from_bytes(state)
        else:
            self._engine = _engine_of(*state)

    def __len__(self) -> int:
        return self._engine.queries()

    def _repr_html_(self) -> str:
        grades, counts = np.unique(self.y, return_counts=True)
        cells = "".join(f"<tr><td>{grade}</td><td>{count:,}</td></tr>" for grade, count in zip(grades, counts))
        return f"<p>{html.escape(repr(self))}</p><table><tr><th>grade</th><th>documents</th></tr>{cells}</table>"

    def __repr__(self) -> str:
        return f"<olrank.Dataset {len(self)} queries, {self._engine.docs()} documents, {self.features} features>"


def _engine_of(table: Any, grades: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], names: list[str], weights: Floats = np.zeros(0, dtype=np.float32)) -> _core.RankingData:
    """The arrays of documents, which the engine keeps and does not copy; those of sparse rows where `table` is of SciPy."""
    if isinstance(table, np.ndarray):
        return _core.RankingData.of(table, grades, offsets, names, weights, (table, grades, offsets))
    if table.shape[1] > np.iinfo(np.int32).max:
        raise InvalidArgument(f"X has {table.shape[1]} columns, and sparse features may be {np.iinfo(np.int32).max} at most.")
    begins, columns = table.indptr.astype(np.int64), table.indices.astype(np.int32, copy=False)
    keeper = (begins, columns, table.data, grades, offsets)
    return _core.RankingData.of_sparse(begins, columns, table.data, table.shape[1], grades, offsets, names, weights, keeper)


def load_letor(path: str | os.PathLike[str], part: str = "train", fold: int = 1, threads: int = 0) -> Dataset:
    """A file of LETOR text, plain, .gz or .zst. Of a folder with Fold1 and so on, the part and fold."""
    data = _core.RankingData.load(as_path(path), part, fold, threads)
    names = Path(f"{as_path(path)}.names")
    return Dataset(data, tuple(json.loads(names.read_text(encoding="utf-8"))) if names.is_file() else None)


def load_table(
    path: str | os.PathLike[str], y: str = "y", qid: str = "qid", X: Sequence[str] | None = None, weight: str | None = None
) -> Dataset:
    """A file of Parquet or Feather (with pyarrow) or of CSV with a line of names, as Dataset.from_table() takes a table."""
    return Dataset.from_table(read_table(as_path(path)), y, qid, X, weight)


def read_table(name: str) -> Any:
    """The table of a file of Parquet, Feather or CSV."""
    kind = name.rpartition(".")[2].lower()
    if kind == "csv":
        return _csv(name)
    if kind not in ("parquet", "feather", "arrow"):
        raise InvalidArgument(f"{name} is not a .parquet, .feather, .arrow or .csv file: read LETOR text with load_letor().")
    reader = package(f"pyarrow.{'parquet' if kind == 'parquet' else 'feather'}", f"{name} needs pyarrow to be read")
    try:
        return reader.read_table(name)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} cannot be read: {error}.") from error


def _csv(name: str) -> dict[str, npt.NDArray[Any]]:
    try:
        with open(name, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name} cannot be read: {error}.") from error
    if len(lines) < 2:
        raise DataError(f"{name} has no rows under a line of names.")
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]) or "" in line:
            raise DataError(f"{name}, line {number}, has an empty or missing value: each of the {len(lines[0])} columns needs one.")
    columns: dict[str, npt.NDArray[Any]] = {}
    for column, *values in zip(*lines):
        try:
            columns[column] = np.array(values, dtype=np.float64)
        except ValueError:
            columns[column] = np.array(values, dtype=np.str_)
    return columns


def load_ir_dataset(dataset: Any, features: Callable[[Any, Any], Any], *, scoreddocs: bool = False) -> tuple[Dataset, list[str]]:
    """The judged queries of a data set of `ir_datasets`, its name or itself, with features of yours; and each row's document.

    `features(query, doc)` gives the numbers of one document. The documents of a query are the judged ones, or with
    `scoreddocs` those that the data set retrieved for it, which have grade 0 without a judgement. Negative judgements are 0.
    """
    if isinstance(dataset, str):
        ir_datasets = package("ir_datasets", f"'{dataset}' needs ir_datasets to be read")
        try:
            dataset = ir_datasets.load(dataset)
        except KeyError:
            raise InvalidArgument(f"ir_datasets has no data set '{dataset}'.") from None
    for part in ("docs", "queries", "qrels", *(["scoreddocs"] if scoreddocs else [])):
        if not hasattr(dataset, f"{part}_iter"):
            raise InvalidArgument(f"{dataset} has no {part}: choose a data set of ir_datasets with documents, queries and judgements.")
    grades: dict[str, dict[str, int]] = {}
    for one in dataset.qrels_iter():
        known = grades.setdefault(one.query_id, {})
        known[one.doc_id] = max(one.relevance, known.get(one.doc_id, 0))
    lists = {query: list(docs) for query, docs in grades.items()}
    if scoreddocs:
        lists = {}
        for one in dataset.scoreddocs_iter():
            if one.query_id in grades:
                lists.setdefault(one.query_id, []).append(one.doc_id)
    queries = {one.query_id: one for one in dataset.queries_iter()}
    store = dataset.docs_store()
    rows: list[Any] = []
    y, qid, names = [], [], []
    for query, ids in lists.items():
        there = store.get_many(ids)
        for doc in ids:
            if query not in queries or doc not in there:
                missing = f"document '{doc}'" if query in queries else f"query '{query}'"
                raise DataError(f"The data set has no {missing}, which its judgements or retrieved documents name.")
            rows.append(features(queries[query], there[doc]))
            y.append(grades[query].get(doc, 0))
            qid.append(query)
            names.append(doc)
    if not rows:
        raise DataError(f"{dataset} has no judged query with a document.")
    return Dataset.from_arrays(rows, y, qid), names


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
    if ids.dtype.kind in "fO":
        missing = next((row for row, one in enumerate(ids.flat) if one is None or one != one), None)
        if missing is not None:
            raise InvalidArgument(f"qid has no value in row {missing}: each document needs its query.")
    if ids.ndim != 1 or len(ids) != docs:
        given = f"{ids.size} values" if ids.ndim < 2 else f"the shape {ids.shape}"
        raise InvalidArgument(f"qid has {given} for {docs} documents: give one value for each.")
    if docs == 0:
        return None, np.zeros(1, dtype=np.int64), []
    try:
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    except TypeError:
        raise InvalidArgument("qid has values of several types, such as text and numbers: give one type.") from None
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    query = number[inverse]
    order = None if (np.diff(query) >= 0).all() else np.argsort(query, kind="stable")
    counts = np.bincount(query, minlength=len(first))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
    return order, offsets, [str(ids[row]) for row in np.sort(first)]
