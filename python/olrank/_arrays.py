"""Arrays as the engine takes them: of one type, contiguous, on the CPU. What already is so is not copied."""

from __future__ import annotations

import decimal
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from olrank.errors import InvalidArgument


class _Tensor(Protocol):
    """A tensor of torch, which this package does not import."""

    def detach(self) -> _Tensor: ...
    def cpu(self) -> _Tensor: ...
    def numpy(self) -> npt.NDArray[Any]: ...


class Frame(Protocol):
    """A DataFrame of pandas, which this package does not need."""

    columns: Any
    index: Any


ArrayLike = npt.ArrayLike | _Tensor
Floats = npt.NDArray[np.float32]
Names = tuple[str, ...] | None  # of features
_CUDA = 2  # kDLCUDA of DLPack


def as_path(path: str | os.PathLike[str]) -> str:
    """A path as text. The engine, as the system, would take what follows a NUL for the end."""
    text = os.fspath(path)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if "\0" in text:
        raise InvalidArgument(f"The path {text!r} has a NUL character: choose another one.")
    return text


def package(name: str, need: str) -> Any:
    """Imports a module of an optional package; without it, the error says what needs it."""
    try:
        return import_module(name)
    except ImportError:
        raise InvalidArgument(f"{need}: pip install {name.partition('.')[0]}.") from None


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """A NumPy array of numbers, without a copy where that is possible."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} has a mask, which would be lost: pass {name}.filled(…).")
    if isinstance(values, np.ndarray):
        return values
    if _is_tensor(values):
        if values.is_sparse:
            raise TypeError(f"{name} is sparse: pass {name}.to_dense().")
        return values.detach().cpu().numpy()
    if is_table(values):
        return _of_columns(columns_of(values, name), name)
    if hasattr(values, "toarray"):
        size = 4e-9 * values.shape[0] * values.shape[-1]
        raise TypeError(f"{name} is sparse, and this computes with dense features: pass {name}.toarray(), {size:.2g} GB here.")
    if hasattr(values, "__dlpack_device__") and not hasattr(values, "__array__"):
        if values.__dlpack_device__()[0] == _CUDA:
            raise TypeError(f"{name} lies on a GPU, where this does not compute: copy it to the host.")
        return np.from_dlpack(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidArgument(f"{name} is not a table of numbers: {error}.") from error


def _is_tensor(values: Any) -> bool:
    return any(one.__module__.partition(".")[0] == "torch" for one in type(values).__mro__)


def capsule_on_gpu(values: Any, gpu: int, stream: int) -> Any:
    """The DLPack capsule of a float32 table on this CUDA GPU, ready for work in this stream; None of what the host has to read."""
    if type(values) is np.ndarray or getattr(values, "is_sparse", False) or not hasattr(values, "__dlpack_device__"):
        return None
    if tuple(values.__dlpack_device__()) != (_CUDA, gpu) or not str(getattr(values, "dtype", "float32")).endswith("float32"):
        return None
    if not _is_tensor(values):
        return values.__dlpack__(stream=stream)
    if values.ndim != 2 or values.stride(1) != 1 or values.stride(0) < values.shape[1]:
        return None
    with sys.modules["torch"].cuda.device(values.device):  # torch exports from the GPU that is selected, in its stream
        return values.detach().__dlpack__(stream=stream)


def is_table(values: Any) -> bool:
    """A table or a column of pandas, or of a library with Arrow's interface: polars, pyarrow, DuckDB."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "to_numpy")


def _capital(name: str) -> str:
    """The name as a sentence begins with it."""
    return name[:1].upper() + name[1:]


def columns_of(table: Any, name: str, needed: Sequence[str] = (), others: bool = True) -> dict[str, npt.NDArray[Any]]:
    """The columns by their names, without `others` the needed ones alone; a column alone has the name ''. Null values are refused."""
    library = type(table).__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow") and hasattr(table, "__arrow_c_stream__"):
        arrow = package("pyarrow", f"{_capital(name)} is a table of {library}, which needs pyarrow to be read")
        try:
            table = arrow.table(table)
        except arrow.ArrowInvalid:  # a column alone
            table = arrow.chunked_array(table)
    if library != "pandas" and hasattr(table, "read_all"):  # pyarrow's reader of batches
        table = table.read_all()
    names = table if isinstance(table, dict) else getattr(table, "columns", None)
    if library != "pandas":  # whose tables have their columns as attributes
        names = getattr(table, "column_names", names)
    if names is None:
        return {"": _without_nulls(table, name)}
    names = [str(one) for one in names]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise InvalidArgument(f"{_capital(name)} has two columns '{twice}': give each a name of its own.")
    for column in needed:
        if column not in names:
            raise InvalidArgument(f"{_capital(name)} has no column '{column}', but {', '.join(names)}: name its columns.")
    wanted = {one: place for place, one in enumerate(names) if others or one in needed}
    if isinstance(table, dict):
        return {one: table[one] for one in wanted}
    if len(table) == 0:
        raise InvalidArgument(f"{_capital(name)} has no rows: give one document at least.")
    column_at = table.iloc.__getitem__ if hasattr(table, "iloc") else getattr(table, "to_series", None) or table.column
    return {
        one: _without_nulls(column_at((slice(None), place) if hasattr(table, "iloc") else place), f"Column '{one}' of {name}")
        for one, place in wanted.items()
    }


def named(values: Any, name: str = "X") -> tuple[Any, Names]:
    """The numbers of a table with the names of its columns, a[0], a[1] and so on for lists; other values as they are."""
    if type(values) is np.ndarray or isinstance(values, (list, tuple)) or _is_tensor(values) or not is_table(values):
        return values, None
    kinds = {isinstance(one, str) for one in getattr(values, "columns", ()) if type(values).__module__.partition(".")[0] == "pandas"}
    if len(kinds) > 1:
        raise TypeError(f"{name} has columns named by texts and columns named by others: name all by texts, or none.")
    columns = columns_of(values, name)
    return (_of_columns(columns, name), None) if "" in columns or kinds == {False} else joined(columns, name)


def joined(columns: dict[str, npt.NDArray[Any]], name: str = "X") -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Columns side by side, and the names of their features."""
    table = _of_columns(columns, name)
    parts = (((one,) if column.ndim == 1 else [f"{one}[{place}]" for place in range(column.shape[1])]) for one, column in columns.items())
    return table, tuple(one for part in parts for one in part)


def in_order(table: Any, given: Names, expected: Names, name: str = "X") -> Any:
    """The columns as they were before, by their names, where both are known. Columns that are missing or new are refused."""
    if given is None or expected is None or given == expected:
        return table
    place = {one: column for column, one in enumerate(given)}
    missing, new = [one for one in expected if one not in place], [one for one in given if one not in set(expected)]
    if not missing and not new:
        return table[:, [place[one] for one in expected]]
    if not set(given) & set(expected) and all(re.fullmatch(r"(f|Column_)?[0-9]+", one) for one in expected):
        return table  # numbers of the features: those of a model of data without names
    told = [f"{what} {', '.join(map(repr, some[:8]))}{' …' * (len(some) > 8)}" for what, some in (("has no column", missing), ("adds", new)) if some]
    raise InvalidArgument(f"{name} {' and '.join(told)}: give the columns that the ranker or model has learned from, in any order.")


def with_index(X: Any, values: npt.NDArray[Any], name: str) -> Any:
    """A Series where X is a DataFrame of pandas, with its index, or of polars; else the values as they are."""
    library = type(X).__module__.partition(".")[0]
    if type(X).__name__ != "DataFrame" or library not in ("pandas", "polars"):
        return values
    made: Any = import_module(library).Series
    return made(values, index=X.index, name=name) if library == "pandas" else made(name, values)


def _without_nulls(column: Any, label: str) -> npt.NDArray[Any]:
    """A column of polars or Arrow, or of pandas, whose NaN among numbers is left to the engine, which says the row."""
    nulls = getattr(type(column), "null_count", None)  # not a label of pandas
    if nulls is not None:
        nulls = column.null_count
    else:
        of_floats = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fc"
        nulls = not of_floats and getattr(column, "hasnans", False)
    kind = str(column.type) if hasattr(type(column), "type") else ""  # of Arrow
    if "list" in kind:
        nulls += import_module("pyarrow.compute").list_flatten(column).null_count
    elif str(column.dtype if not kind else "").startswith(("List", "Array")):  # of polars
        nulls = column.explode().null_count()
    if nulls() if callable(nulls) else nulls:
        raise InvalidArgument(f"{label} has a null value: fill it, or drop its row.")
    if kind.startswith("dictionary"):
        column = column.cast(column.type.value_type)
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False) if kind else column.to_numpy()
    if values.dtype == object and all(isinstance(one, str) for one in values):
        values = values.astype(np.str_)
    elif values.dtype == object and all(isinstance(one, (list, np.ndarray)) for one in values):
        if len({len(one) for one in values}) > 1:
            raise InvalidArgument(f"{label} has lists of different lengths: leave the column out by X, or fill the lists.")
        values = np.array(values.tolist())
    if values.dtype == object and all(isinstance(one, decimal.Decimal) for one in values.flat):
        values = values.astype(np.float64)
    return values


def _of_columns(columns: dict[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    if list(columns) == [""]:
        return columns[""]
    for column, values in columns.items():
        if values.dtype.kind not in "fiub" and len(columns) > 1:
            raise TypeError(f"Column '{column}' of {name} has the type {values.dtype}: give real numbers, or leave it out.")
    arrays = list(columns.values())
    return arrays[0] if len(arrays) == 1 and name in ("y", "qid", "group", "clicks") else np.column_stack(arrays)


def as_numbers(values: Any, name: str) -> npt.NDArray[Any]:
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has the type {array.dtype}: give real numbers.")
    return array


def as_features(values: Any, features: int, name: str = "X") -> Floats:
    """[V × features] as float32. Values that float32 cannot hold become infinite, which the engine refuses."""
    if type(values) is np.ndarray and values.dtype == np.float32 and values.ndim == 2 and values.flags.c_contiguous:
        array = values  # the usual case, kept short
    else:
        array = as_numbers(values, name)
        if array.ndim != 2:
            raise InvalidArgument(f"{name} has {_dimensions(array)}: give a table, one row for each document.")
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(array, dtype=np.float32)
    if array.shape[1] != features and features >= 0:
        raise InvalidArgument(f"{name} has {array.shape[1]} columns, and documents here have {features} features.")
    if array.shape[0] == 0:
        raise InvalidArgument(f"{name} has no rows: give one document at least.")
    return array


def as_rows(values: Any, name: str = "X") -> Any:
    """[V × features] as float32: a table, or of a sparse matrix its rows (CSR), each column of a row once and in order."""
    if not hasattr(values, "tocsr"):
        return as_features(values, -1, name)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} has the type {values.dtype}: give real numbers.")
    if values.ndim != 2 or values.shape[0] == 0:
        raise InvalidArgument(f"{name} has the shape {values.shape}: give a table, one row for each document.")
    rows = values.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    with np.errstate(over="ignore"):
        return rows.astype(np.float32, copy=False)


def as_clicks(values: Any, shown: int, name: str = "clicks") -> npt.NDArray[np.uint8]:
    """One 0 or 1 for each shown document."""
    if type(values) is np.ndarray and values.dtype == np.bool_ and values.shape == (shown,) and values.flags.c_contiguous:
        return values.view(np.uint8)  # the usual case, kept short
    array = as_numbers(values, name) if np.size(values) else np.zeros(0, dtype=np.uint8)
    if array.ndim != 1 or array.shape[0] != shown:
        given = f"{array.shape[0]} values" if array.ndim == 1 else _dimensions(array)
        raise InvalidArgument(f"{name} has {given} for {shown} shown documents: give one truth value for each rank.")
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array).view(np.uint8)
    if not np.isin(array, (0, 1)).all():
        rank = int(np.flatnonzero(~np.isin(array, (0, 1)))[0])
        raise InvalidArgument(f"{name} has {array[rank]} at rank {rank + 1}: it must be 0 or 1.")
    return np.ascontiguousarray(array, dtype=np.uint8)


def as_grades(values: Any, name: str = "y") -> npt.NDArray[np.uint8]:
    """Whole grades, 0 to 31."""
    array = as_numbers(values, name)
    if array.ndim != 1:
        raise InvalidArgument(f"{name} has {_dimensions(array)}: give one grade for each document.")
    whole = np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array <= 31)
    if not whole.all():
        doc = int(np.flatnonzero(~whole)[0])
        raise InvalidArgument(f"{name} has the grade {array[doc]} for document {doc}: it must be a whole number, 0 to 31.")
    return np.array(array, dtype=np.uint8)  # a copy: the engine counts by grades, which must not change


def as_offsets(groups: Any, docs: int, name: str = "group") -> npt.NDArray[np.int64]:
    """Documents before each query, from the number of documents of each."""
    counts = as_numbers(groups, name)
    if counts.ndim != 1 or not (counts == np.floor(counts)).all() or (counts < 1).any():
        raise InvalidArgument(f"{name} must be the number of documents of each query, whole numbers of at least 1.")
    if int(counts.sum()) != docs:
        raise InvalidArgument(f"{name} adds up to {int(counts.sum())} documents, and there are {docs}.")
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def as_weights(
    values: Any, offsets: npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None = None, queries: Sequence[str] = (), name: str = "weight"
) -> Floats:
    """One weight for each query, from one for each query or for each document before it was moved; none from None."""
    if values is None:
        return np.zeros(0, dtype=np.float32)
    array = as_numbers(values, name)
    count, docs = len(offsets) - 1, int(offsets[-1])
    if array.ndim != 1 or len(array) not in (docs, count):
        raise InvalidArgument(f"{name} has {array.size} values: give one for each of {docs} documents, or for each of {count} queries.")
    with np.errstate(over="ignore"):
        weights = np.ascontiguousarray(array, dtype=np.float32)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InvalidArgument(f"{name} has {array[wrong[0]]} in row {wrong[0]}: a weight must be finite and at least 0.")
    if len(weights) == count:
        return weights
    if order is not None:
        weights = weights[order]
    of_query = weights[offsets[:-1]]
    wrong = np.flatnonzero(weights != np.repeat(of_query, np.diff(offsets)))
    if len(wrong):
        query = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
        both = f"{of_query[query]} and {weights[wrong[0]]} for documents of query '{queries[query] if queries else query + 1}'"
        raise InvalidArgument(f"{name} has {both}: a query has one weight, because a loss is that of its list.")
    return of_query


def _dimensions(array: npt.NDArray[Any]) -> str:
    return "1 dimension" if array.ndim == 1 else f"{array.ndim} dimensions"
