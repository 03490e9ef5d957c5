"""Writes python/olrank/_keywords.py: the settings of the engine as types of keywords.

    python python/tools/keywords.py [--check]

Run it where the package is installed, after a setting of the engine was added or changed.
"""

from __future__ import annotations

import keyword
import pathlib
import sys

import olrank

TARGET = pathlib.Path(__file__).resolve().parents[1] / "olrank" / "_keywords.py"
TYPES = {
    "switch": "bool",
    "integer": "int",
    "real": "float",
    "real-or-auto": 'float | Literal["auto"]',
    "reals-or-auto": 'float | Sequence[float] | Literal["auto"]',
    "integers": "Sequence[int]",
    "reals": "Sequence[float]",
    "texts": "Sequence[str]",
    "switches": "Sequence[bool]",
}
OWN = {"ranker": {"kind", "name"}, "train": {"seeds"}}  # arguments of their own


def type_of(setting: olrank.Setting) -> str:
    if setting.kind == "text":
        return f"Literal[{', '.join(repr(choice) for choice in setting.choices)}]".replace("'", '"') if setting.choices else "str"
    return TYPES[setting.kind]


def typed_dict(table: str, name: str, doc: str) -> list[str]:
    lines = ["", "", f"class {name}(TypedDict, total=False):", f'    """{doc}"""', ""]
    for setting in olrank.settings(table):
        if setting.name in OWN[table]:
            continue
        lines.append(f"    {setting.name}{'_' if keyword.iskeyword(setting.name) else ''}: {type_of(setting)}")
    return lines


def text() -> str:
    lines = ['"""Written by python/tools/keywords.py from the engine\'s own descriptions."""', ""]
    lines += ["from collections.abc import Sequence", "from typing import Literal, TypedDict"]
    lines += typed_dict("ranker", "RankerSettings", "The settings of a [[ranker]].")
    lines += typed_dict("train", "TrainSettings", "The settings of [train].")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        if TARGET.read_text(encoding="utf-8") != text():
            sys.exit(f"{TARGET} differs from the engine's settings: run python python/tools/keywords.py.")
    else:
        TARGET.write_text(text(), encoding="utf-8")
