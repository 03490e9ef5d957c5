"""Every setting of the engine: name, default, bounds and meaning, from the engine's own descriptions."""

from __future__ import annotations

import functools
import json
import keyword
from dataclasses import dataclass
from typing import Any

from olrank import _core
from olrank.errors import InvalidArgument


@dataclass(frozen=True)
class Setting:
    """One key of a table of configuration files, and a keyword where the table's settings are keywords."""

    name: str
    default: Any
    help: str
    kind: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    above_lowest: bool = False
    below_highest: bool = False

    def __str__(self) -> str:
        bounds = ", ".join(self.choices)
        if self.lowest is not None:
            bounds = f"{'above' if self.above_lowest else 'at least'} {self.lowest:g}"
        if self.highest is not None:
            bounds += f"{' and ' if bounds else ''}{'below' if self.below_highest else 'at most'} {self.highest:g}"
        return f"{self.name} = {self.default!r}{f' ({bounds})' if bounds else ''}: {self.help}"


@functools.cache
def _tables() -> dict[str, tuple[Setting, ...]]:
    return {
        table["table"]: tuple(Setting(name=entry.pop("key"), **entry | {"choices": tuple(entry["choices"])}) for entry in table["settings"])
        for table in json.loads(_core.settings_json())["tables"]
    }


def settings(table: str = "ranker") -> tuple[Setting, ...]:
    """The settings of a table: "ranker" (keywords of Ranker), "train" (of fit and LTRModel), "data", "protocol",
    "clicks", "groups", "user", "run"."""
    if table not in _tables():
        raise InvalidArgument(f"There is no table '{table}': choose {', '.join(_tables())}.")
    return _tables()[table]


def as_text(name: str, value: Any) -> str:
    """A keyword's value as the engine reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(as_text(name, entry) for entry in value) + "]"
    if hasattr(value, "item"):  # a number of NumPy's
        return as_text(name, value.item())
    if isinstance(value, (int, float)):
        return repr(value)
    if hasattr(value, "__fspath__"):
        return str(value.__fspath__())
    raise TypeError(f"{name} is a {type(value).__name__}: give a number, a text, a truth value or a list of them.")


def as_texts(given: dict[str, Any]) -> dict[str, str]:
    """Keywords by the names of settings: `lambda_` is `lambda`, a word of Python's."""
    texts = {}
    for name, value in given.items():
        plain = name.removesuffix("_")
        key = plain if keyword.iskeyword(plain) else name
        texts[key] = as_text(key, value)
    return texts
