"""Tables by Arrow's PyCapsule interface (`__arrow_c_stream__`), read with ctypes: neither Arrow nor pyarrow is needed.

The structures are those of https://arrow.apache.org/docs/format/CDataInterface.html and of its stream.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from olrank.errors import InvalidArgument


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))), ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))), ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))), ("private_data", ctypes.c_void_p),
]

_NUMBERS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "e": "f2", "f": "f4", "g": "f8",
    "tdD": "i4", "tdm": "i8",
}  # fmt: skip
_RAGGED = "{} has lists of different lengths: leave the column out by X, or fill the lists."
_TEXTS = {"u": "i4", "z": "i4", "U": "i8", "Z": "i8"}
# An object of this module alone: the types of ctypes.pythonapi's are shared by the whole process.
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def capital(name: str) -> str:
    """The name as a sentence begins with it."""
    return name[:1].upper() + name[1:]


def chosen(names: list[str], needed: Sequence[str], others: bool, table: str) -> list[str]:
    """The columns to read, in the table's order."""
    for column in needed:
        if column not in names:
            raise InvalidArgument(f"{capital(table)} has no column '{column}', but {', '.join(names)}: name its columns.")
    return [one for one in names if others or one in needed]


def read(table: Any, name: str, needed: Sequence[str] = (), others: bool = True) -> dict[str, npt.NDArray[Any]]:
    """The columns of a table by their names, copied; a single column has the name it was given, mostly ''.

    Without `others`, the needed ones alone. A column of lists of one length has two dimensions.
    """
    capsule = table.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    schema = _Schema()
    _check(stream, stream.get_schema(stream, schema))
    try:
        whole = schema.format == b"+s"
        fields = [schema.children[column].contents for column in range(schema.n_children)] if whole else [schema]
        names = [(field.name or b"").decode() for field in fields]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise InvalidArgument(f"{capital(name)} has two columns '{twice}': give each a name of its own.")
        taken = [names.index(one) for one in chosen(names, needed, others, name)]
        chunks: dict[int, list[npt.NDArray[Any]]] = {column: [] for column in taken}
        for batch in _batches(stream):
            if whole and batch.null_count != 0 and batch.n_buffers and batch.buffers[0]:
                if not _bits(batch.buffers[0], batch.offset, batch.length).all():
                    raise InvalidArgument(f"{capital(name)} has a null row: drop it.")
            for column in taken if batch.length else ():
                array = batch.children[column].contents if whole else batch
                begin = batch.offset if whole else 0
                label = f"Column '{names[column]}' of {name}" if names[column] else name
                chunks[column].append(_column(array, fields[column], begin, batch.length, label))
                if chunks[column][0].shape[1:] != chunks[column][-1].shape[1:]:
                    raise InvalidArgument(_RAGGED.format(label))
        if not any(chunks.values()):
            raise InvalidArgument(f"{capital(name)} has no rows: give one document at least.")
        return {names[column]: np.concatenate(parts) for column, parts in chunks.items()}
    finally:
        schema.release(schema)
        stream.release(stream)  # at once: an error would hold the capsule, and a DuckDB connection has one open result


def _batches(stream: _Stream) -> Iterator[_Array]:
    while True:
        batch = _Array()
        _check(stream, stream.get_next(stream, batch))
        if not batch.release:
            return
        try:
            yield batch
        finally:
            batch.release(batch)


def _check(stream: _Stream, code: int) -> None:
    if code != 0:
        told = stream.get_last_error(stream) or b""
        raise InvalidArgument(f"The table could not be read: {told.decode(errors='replace') or f'error {code}'}.")


def _bits(address: int | None, begin: int, length: int) -> npt.NDArray[np.bool_]:
    packed = _buffer(address, "u1", begin // 8, (begin + length + 7) // 8 - begin // 8)
    bits = np.unpackbits(packed, bitorder="little")
    return bits[begin % 8 : begin % 8 + length].astype(np.bool_)


def _buffer(address: int | None, kind: str, begin: int, length: int) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    if address is None or length == 0:
        return np.zeros(length, dtype)
    memory = (ctypes.c_char * (length * dtype.itemsize)).from_address(address + begin * dtype.itemsize)
    array: npt.NDArray[Any] = np.frombuffer(memoryview(memory).cast("B"), dtype)
    return array


def _column(array: _Array, field: _Schema, begin: int, length: int, label: str) -> npt.NDArray[Any]:
    """The values begin to begin + length of one chunk, copied."""
    kind = field.format.decode()
    begin += array.offset
    if kind == "n" and length:
        raise InvalidArgument(f"{label} has null values alone: leave the column out.")
    if array.null_count != 0 and array.n_buffers and array.buffers[0]:
        valid = _bits(array.buffers[0], begin, length)
        if not valid.all():
            raise InvalidArgument(f"{label} has a null value: fill it, or drop its row.")
    if field.dictionary:
        words = _column(array.dictionary.contents, field.dictionary.contents, 0, array.dictionary.contents.length, label)
        coded: npt.NDArray[Any] = words[_buffer(array.buffers[1], _NUMBERS[kind], begin, length)]
        return coded
    if kind == "b":
        return _bits(array.buffers[1], begin, length)
    if kind in _NUMBERS or kind.startswith("ts"):
        return _buffer(array.buffers[1], _NUMBERS.get(kind, "i8"), begin, length).copy()
    if kind.startswith("d:") and kind.split(",")[2:] in ([], ["128"]):
        low, high = _buffer(array.buffers[1], "u8", 2 * begin, 2 * length).reshape(-1, 2).T
        # In whole numbers: a small negative one has a low word of almost 2⁶⁴.
        whole = np.array([(int(upper) << 64) + int(lower) for upper, lower in zip(high.astype("i8"), low)], dtype=np.float64)
        return np.asarray(whole / 10.0 ** int(kind.split(",")[1]))
    if kind in _TEXTS and length == 0:  # then the buffer of its ends may be empty
        return np.zeros(0, dtype=np.str_)
    if kind in _TEXTS:
        ends = _buffer(array.buffers[1], _TEXTS[kind], begin, length + 1)
        text = _buffer(array.buffers[2], "u1", 0, int(ends[-1])).tobytes()
        return np.array([text[a:b].decode() for a, b in zip(ends, ends[1:])], dtype=np.str_)
    if kind in ("+l", "+L") or kind.startswith("+w:"):
        if kind.startswith("+w:"):
            width = int(kind[3:])
            first = begin * width
        else:
            ends = _buffer(array.buffers[1], "i4" if kind == "+l" else "i8", begin, length + 1)
            if len(set(np.diff(ends).tolist())) > 1:
                raise InvalidArgument(_RAGGED.format(label))
            first, width = int(ends[0]), int(ends[1] - ends[0])
        values = _column(array.children[0].contents, field.children[0].contents, first, length * width, label)
        if values.ndim > 1:
            raise TypeError(f"{label} has lists of lists: give lists of numbers.")
        return values.reshape(length, width)
    if kind == "vu":
        return np.array(_views(array, begin, length), dtype=np.str_)
    raise TypeError(f"{label} has Arrow's type '{kind}': give numbers, truth values or text.")


def _views(array: _Array, begin: int, length: int) -> list[str]:
    """Texts of Arrow's newer form: 12 bytes in place, or a part of another buffer."""
    texts = []
    for view in _buffer(array.buffers[1], "V16", begin, length):
        raw = view.tobytes()
        size = int.from_bytes(raw[:4], "little")
        if size > 12:
            number, start = int.from_bytes(raw[8:12], "little"), int.from_bytes(raw[12:], "little")
            texts.append(_buffer(array.buffers[2 + number], "u1", start, size).tobytes().decode())
        else:
            texts.append(raw[4 : 4 + size].decode())
    return texts
