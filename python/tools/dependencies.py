"""The packages that a wheel asks for: the torch of the minor version that it is built with, and none for a build without LibTorch."""

import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any


def dynamic_metadata(_settings: Mapping[str, Any], _project: Mapping[str, Any]) -> dict[str, list[str]]:
    without = os.environ.get("OLRANK_TORCH", "").lower() in ("off", "0")
    return {"dependencies": [*([] if without else [f"torch=={_minor_version()}.*"]), "numpy>=1.24"]}


def _minor_version() -> str:
    """That of the LibTorch that python/CMakeLists.txt takes: OLRANK_TORCH_DIR, that of a build for the CPU, or the one that is fetched."""
    cache = pathlib.Path("build/cpu/CMakeCache.txt")
    built = re.search(r"^OLRANK_TORCH_DIR:\w+=(.+)$", cache.read_text(encoding="utf-8"), re.M) if cache.is_file() else None
    given = pathlib.Path(os.environ.get("OLRANK_TORCH_DIR") or (built[1] if built else ""))
    for version in (given / "torch/version.py", given / "version.py"):  # a torch package, or the folder around it
        found = re.search(r"__version__\s*=\s*['\"]([0-9]+\.[0-9]+)\.", version.read_text(encoding="utf-8")) if version.is_file() else None
        if found:
            return found[1]
    return "2.11"
