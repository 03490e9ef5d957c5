"""Computes what follows from logs of shown lists and their clicks, as `olrank ope` and `olrank clicks fit` do."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, as_array, as_numbers, as_path, columns_of
from olrank.data import Dataset, layout
from olrank.errors import InvalidArgument
from olrank.model import Model, load_model

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
    """Estimates what other rankers would have got in place of those that showed the lists of a log.

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
            if data is not None and data.feature_names is not None:
                known = (model if isinstance(model, Model) else load_model(files[-1], trust_code=trust_code)).feature_names
                if number > 1 and data.in_order(known) is not data:
                    raise InvalidArgument("The models have features in different orders: estimate one after another.")
                data = data.in_order(known)
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


def click_log(
    table: Any,
    log: Path,
    *,
    click: str = "click",
    qid: str = "qid",
    position: str | ArrayLike | None = "position",
    time: str | ArrayLike | None = None,
    X: Sequence[str] | None = None,
) -> Dataset:
    """Makes a log of a table of clicks with features, one row for each shown document; the result has its documents.

    `qid` names the shown list, such as a session's query; positions begin at 1, without gaps; with
    `position=None` the rows of a list are in the order in which it was shown. Lists are in the order of the column `time`, else of the table. Grades of the data set are
    the clicks. A Dataset is taken, too, with an array of positions by document and of times by query. ope(),
    fit_clicks() and Ranker.partial_fit() take the log with the data.
    """
    for name, value in (("position", position), ("time", time)):
        if value is not None and isinstance(value, str) == isinstance(table, Dataset):
            ways = "an array or None for a data set, which has no columns" if isinstance(value, str) else "the name of a column of the table"
            raise InvalidArgument(f"{name} must be {ways}.")
    if isinstance(table, Dataset):
        data = table
        _require_clicks(data.y, "y")
        rank, when = (None if one is None else as_array(one, name) for one, name in ((position, "position"), (time, "time")))
    else:
        named = [one for one in (click, qid, position, time) if isinstance(one, str)]
        columns = columns_of(table, "the table", (*named, *(X or ())), X is None)
        _require_clicks(as_numbers(columns[click], f"Column '{click}'"), f"Column '{click}'")
        data = Dataset.from_table(columns, click, qid, [one for one in columns if one not in named] if X is None else X)
        order, _, _ = layout(columns[qid], None, len(data.y))
        rows = np.arange(len(data.y)) if order is None else order
        rank, when = (columns[one][rows] if isinstance(one, str) else None for one in (position, time))
        when = None if when is None else when[data.offsets[:-1]]
    for values, expected, name in ((rank, len(data.y), "position"), (when, len(data), "time")):
        if values is not None and values.shape != (expected,):
            raise InvalidArgument(f"{name} has {values.size} values: give one for each of {expected} {'documents' if name == 'position' else 'queries'}.")
    names, lines = data.qids, []
    for query in range(len(data)) if when is None else np.argsort(when, kind="stable"):
        begin, end = data.offsets[query : query + 2]
        order = np.arange(end - begin) if rank is None else np.argsort(rank[begin:end], kind="stable")
        if rank is not None and not np.array_equal(rank[begin:end][order], np.arange(1, end - begin + 1)):
            raise InvalidArgument(f"List '{names[query]}' has {end - begin} documents: give them the positions 1 to {end - begin}, each once.")
        lines.append({"qid": names[query], "shown": order.tolist(), "clicks": data.y[begin:end][order].tolist()})
    pathlib.Path(log).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return data


def _require_clicks(values: npt.NDArray[Any], what: str) -> None:
    if not np.isin(values, (0, 1)).all():
        raise InvalidArgument(f"{what} has values other than 0 and 1: it says whether a document was clicked.")


def fit_clicks(
    log: Path, model: str = "all", *, holdout: float = 0.2, at: int = 100, iterations: int = 100
) -> dict[str, Any]:
    """Fits click models to a log: pbm, cascade, dcm, dbn, ubm, two-tower, or all of them.

    The result is that of `olrank clicks fit --json`: how well each predicts held-out lists, the examination of each rank,
    a simulated user, and whether the log can tell examination from attraction at all (docs/DECISIONS.md).
    """
    told: dict[str, Any] = json.loads(_core.fit_click_models(as_path(log), model, holdout, at, iterations))
    return told
