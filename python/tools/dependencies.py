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
    given = os.environ.get("OLRANK_TORCH_DIR", "")
    cache = pathlib.Path("build/cpu/CMakeCache.txt")
    if not given and os.environ.get("OLRANK_CUDA", "").lower() not in ("on", "1") and cache.is_file():
        built = re.search(r"^OLRANK_TORCH_DIR:\w+=(.+)$", cache.read_text(encoding="utf-8"), re.M)
        given = built[1] if built else ""
    if not given:
        return "2.11"
    for folder in (pathlib.Path(given) / "torch", pathlib.Path(given)):  # a torch package, or the folder around it
        for header in ("headeronly/version.h", "csrc/api/include/torch/version.h"):
            file = folder / "include/torch" / header
            found = re.findall(r"define TORCH_VERSION_(?:MAJOR|MINOR) (\d+)", file.read_text(encoding="utf-8")) if file.is_file() else []
            if len(found) == 2:
                return ".".join(found)
    raise RuntimeError(f"{given} has no headers of LibTorch that say its version: name a folder with LibTorch 2.11 to 2.15.")
