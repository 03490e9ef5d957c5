"""Configurations as dicts, and as the TOML that the engine reads."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from olrank.errors import InvalidArgument
from olrank.settings import as_text


def read(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"The configuration must be a dict or the path of a TOML file, not a {type(path).__name__}.")
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except (OSError, ValueError) as error:  # such as not UTF-8, or a name with a zero byte
        raise InvalidArgument(f"The configuration {os.fspath(path)!r} cannot be read: {getattr(error, 'strerror', error)}.") from error


def parse(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{origin}: {error}.") from error


def write(configuration: Mapping[str, Any]) -> str:
    """Tables of keys, and lists of tables for [[ranker]] and [[user]]."""
    lines: list[str] = []
    for name, table in configuration.items():
        tables, head = ([table], f"[{name}]") if isinstance(table, Mapping) else (table, f"[[{name}]]")
        if not isinstance(tables, (list, tuple)) or not all(isinstance(entry, Mapping) for entry in tables):
            raise InvalidArgument(f"'{name}' must be a table of settings, such as {{'{name}': {{'key': value}}}}, not {table!r}.")
        for entry in tables:
            lines += [head, *_keys(name, entry)]
    return "\n".join(lines) + "\n"


def _keys(table: str, entries: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in entries.items():
        if isinstance(value, Mapping) and table != "sweep":  # of one ranker, or a range
            raise InvalidArgument(f"{table}.{key} must be one value or a list of values, not a table.")
        lines.append(f"{key} = {_value(f'{table}.{key}', value)}")
    return lines


def _value(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(f'{name}.{key}', entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(name, entry) for entry in value) + "]"
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    return as_text(name, value)
