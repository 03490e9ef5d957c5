"""What follows from logs of shown lists and their clicks, as `olrank ope` and `olrank clicks fit` compute it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from olrank import _core
from olrank._arrays import as_path
from olrank.data import Dataset
from olrank.model import Model

Path = str | os.PathLike[str]


def ope(
    log: Path,
    models: Model | Path | Sequence[Model | Path] = (),
    *,
    data: Dataset | None = None,
    policy: str = "greedy",
    reward: str = "clicks",
    estimators: str | Sequence[str] = (),
    click_model: str = "pbm",
    at: int = 10,
    clip: float = 0.0,
    confidence: float = 0.95,
    replicates: int = 400,
    seed: int = 1,
    threads: int = 0,
    trust_code: bool = False,
    page: Path = "",
) -> dict[str, Any]:
    """What other rankers would have got in place of those that showed the lists of a log.

    `log` is a service's feedback.jsonl or its state folder, or a trace, whose documents `data` has. Each of `models` is a
    Model, a model file or the folder of a finished trial; `policy` (greedy, plackett-luce, epsilon=0.1) says how lists
    follow from its scores, or is incumbent, the order that requests brought. Without `estimators`, all that the log has
    the data for: ips, rips, snips, snrips, and by a click model direct, cascade-dr and intervention-aware.
    The result is that of `olrank ope --json`; docs/DECISIONS.md explains it. `page` also writes an HTML page.
    """
    named = [models] if isinstance(models, (Model, str, os.PathLike)) else list(models)
    with contextlib.ExitStack() as stack:
        files = []
        for number, model in enumerate(named, 1):
            if isinstance(model, Model):
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                files.append(str(pathlib.Path(folder, f"model{number}.safetensors")))
                model.save(files[-1])
            else:
                files.append(as_path(model))
        told: dict[str, Any] = json.loads(
            _core.off_policy_values(
                None if data is None else data._engine, as_path(log), files, policy, reward,
                [estimators] if isinstance(estimators, str) else list(estimators), click_model, at, clip, confidence, replicates,
                seed, threads, trust_code, as_path(page),
            )
        )
    for number, (model, one) in enumerate(zip(named, told["policies"]), 1):
        if isinstance(model, Model):
            one["name"] = f"model{number}"
    return told


def fit_clicks(
    log: Path, model: str = "all", *, holdout: float = 0.2, at: int = 100, iterations: int = 100
) -> dict[str, Any]:
    """Fits click models to a log: pbm, cascade, dcm, dbn, ubm, two-tower, or all of them.

    The result is that of `olrank clicks fit --json`: how well each predicts held-out lists, the examination of each rank,
    a simulated user, and whether the log can tell examination from attraction at all (docs/DECISIONS.md).
    """
    told: dict[str, Any] = json.loads(_core.fit_click_models(as_path(log), model, holdout, at, iterations))
    return told
