"""The packages that a wheel asks for: a build without LibTorch does without torch."""

import os
from collections.abc import Mapping
from typing import Any


def dynamic_metadata(_settings: Mapping[str, Any], _project: Mapping[str, Any]) -> dict[str, list[str]]:
    without = os.environ.get("OLRANK_TORCH", "").lower() in ("off", "0")
    return {"dependencies": [*([] if without else ["torch==2.11.*"]), "numpy>=1.24"]}
