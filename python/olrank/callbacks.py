"""Callbacks of run() and tune() for the tools that watch experiments. Each needs a package of its own, and none a network."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from olrank.errors import Error
from olrank.experiment import Trial


def _module(names: tuple[str, ...], package: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise Error(f"This callback needs {package}: pip install {package}")


def _name(trial: Trial) -> str:
    return f"{trial.ranker}/{trial.user}/fold{trial.fold}/seed{trial.seed}"


class _EachTrial:
    """A run of the tool for each trial, by functions that open and close one."""

    def __init__(self, open: Callable[[Trial], Any], close: Callable[[Any], object]) -> None:
        self._open, self._close = open, close
        self._runs: dict[Trial, Any] = {}

    def _run_of(self, trial: Trial) -> Any:
        if trial not in self._runs:
            self._runs[trial] = self._open(trial)
        return self._runs[trial]

    def close(self) -> None:
        for run in self._runs.values():
            self._close(run)
        self._runs.clear()


class TensorBoard(_EachTrial):
    """Event files in `folder`, one run for each trial, by tensorboardX or torch with tensorboard."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        base = Path(folder)
        writer = _module(("tensorboardX", "torch.utils.tensorboard"), "tensorboardX").SummaryWriter
        super().__init__(lambda trial: writer(str(base / _name(trial))), lambda run: run.close())

    def __call__(self, figures: dict[str, float], step: int, trial: Trial) -> None:
        for name, value in figures.items():
            self._run_of(trial).add_scalar(name, value, step)


class MLflow(_EachTrial):
    """A run for each trial in an experiment of MLflow; `uri` is its store, such as a file or a folder."""

    def __init__(self, uri: str, experiment: str = "olrank") -> None:
        self._client = _module(("mlflow",), "mlflow-skinny").MlflowClient(tracking_uri=uri)
        super().__init__(self._new_run, self._client.set_terminated)
        known = self._client.get_experiment_by_name(experiment)
        self._experiment = self._client.create_experiment(experiment) if known is None else known.experiment_id

    def __call__(self, figures: dict[str, float], step: int, trial: Trial) -> None:
        for name, value in figures.items():
            self._client.log_metric(self._run_of(trial), name.replace("@", "_at_"), value, step=step)  # which refuses @

    def _new_run(self, trial: Trial) -> Any:
        run: str = self._client.create_run(self._experiment, run_name=_name(trial)).info.run_id
        for name, value in trial._about.items():
            self._client.log_param(run, name, value)
        return run


class WandB(_EachTrial):
    """A run for each trial of Weights & Biases, in `folder` alone unless `mode` is "online"."""

    def __init__(self, project: str = "olrank", folder: str | os.PathLike[str] = ".", mode: str = "offline") -> None:
        init = _module(("wandb",), "wandb").init
        settings = {"project": project, "dir": str(folder), "mode": mode, "reinit": "create_new"}
        super().__init__(lambda trial: init(name=_name(trial), config=trial._about, **settings), lambda run: run.finish())

    def __call__(self, figures: dict[str, float], step: int, trial: Trial) -> None:
        self._run_of(trial).log(figures, step=step)
