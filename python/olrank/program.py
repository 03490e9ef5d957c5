"""These functions do what the program `olrank` does on files and folders. They run it in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from olrank import _toml
from olrank._arrays import as_path
from olrank.errors import Error, InvalidArgument
from olrank.experiment import Results, in_words_of_python
from olrank.model import Model

Config = Mapping[str, Any] | str | os.PathLike[str]


def export(
    model: Model | str | os.PathLike[str],
    to: Literal["safetensors", "pt", "torchscript", "onnx", "json", "c", "ltr", "solr", "snapshot"],
    out: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] = (),
    trust_code: bool = False,
) -> None:
    """Writes a model, its file or the folder of a finished trial in the format `to`, as `olrank export` does."""
    with tempfile.TemporaryDirectory(prefix="olrank-") as folder:
        file = as_path(model) if not isinstance(model, Model) else str(Path(folder) / "model.safetensors")
        if isinstance(model, Model):
            model.save(file)
        names = ["--feature-names", ",".join(feature_names)] if feature_names else []
        _run("export", file, "--to", to, "--out", as_path(out), "--trust-code", "true" if trust_code else "false", *names)


def trace(config: Config, file: str | os.PathLike[str], out: str | os.PathLike[str], *, detail: bool = False, force: bool = False) -> Results:
    """Plays the only trial of a configuration and writes every round into `file`, as `olrank run --trace` does; `detail` adds
    parameters, widths and certain orders."""
    return _play(config, out, force, "--trace", as_path(file), *(["--trace-detail"] if detail else []))


def replay(config: Config, log: str | os.PathLike[str], out: str | os.PathLike[str], *, force: bool = False) -> Results:
    """Learns from recorded lists and clicks in place of simulated users, as `olrank run --replay` does."""
    return _play(config, out, force, "--replay", as_path(log))


def _play(config: Config, out: str | os.PathLike[str], force: bool, *arguments: str) -> Results:
    with _as_file(config) as file:
        _run("run", file, "--out", as_path(out), "--quiet", *(["--force"] if force else []), *arguments)
    return Results(out)


@contextlib.contextmanager
def _as_file(config: Config) -> Iterator[str]:
    if not isinstance(config, Mapping):
        yield as_path(config)
        return
    with tempfile.TemporaryDirectory(prefix="olrank-") as folder:
        file = Path(folder) / "config.toml"
        file.write_text(_toml.write(config), encoding="utf-8")
        yield str(file)


def _run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "olrank", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line]
        message = said[-1].removeprefix("olrank: ") if said else f"The program ended with the code {done.returncode}."
        raise (InvalidArgument if done.returncode == 2 else Error)(in_words_of_python(message))
