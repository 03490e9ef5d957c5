"""Experiments as `olrank run` plays them, with users and rankers of yours beside the built-in ones."""

from __future__ import annotations

import contextlib
import html
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from olrank import _core, _distributed, _toml
from olrank._arrays import as_path
from olrank._external import Metric, OnlineRanker, Own, User, loaded, parameters_of
from olrank.data import Dataset
from olrank.errors import Error, InvalidArgument
from olrank.progress import Progress

if TYPE_CHECKING:
    import pandas

_log = logging.getLogger("olrank")


@dataclass(frozen=True)
class Trial:
    """A ranker with a user on a fold, by one seed."""

    ranker: str
    user: str
    fold: int
    seed: int
    folder: Path
    keep: Any = field(default=None, repr=False, compare=False)  # a temporary folder, which lives as long as its trials

    def __getstate__(self) -> dict[str, Any]:
        if self.keep is not None:
            raise Error("Results in a temporary folder cannot be pickled or copied: give run() a folder, out=….")
        return self.__dict__

    @property
    def _about(self) -> dict[str, str | int]:
        return {"ranker": self.ranker, "user": self.user, "fold": self.fold, "seed": self.seed}

    @property
    def curve(self) -> list[dict[str, Any]]:
        """The evaluations, as lines of curve.jsonl."""
        try:
            text = (self.folder / "curve.jsonl").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    @property
    def finished(self) -> bool:
        return (self.folder / "summary.json").exists()

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json: the figures at the end."""
        if not self.finished:
            raise Error(f"The trial in {self.folder} has not finished: continue the experiment with resume=True.")
        return json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))

    def own_ranker(self, into: Any = None) -> Any:
        """The trained object of a ranker of yours. One that saves itself is loaded `into` an object of its class.

        It is unpickled, which runs code: do so with folders that you trust. Ranker.load() takes trials of built-in rankers.
        """
        return loaded(_core.external_state(as_path(self.folder)), into)

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that stand for the result: the same for the same settings, data and seed."""
        return str(self.summary["result_fingerprint"])


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The figures of one trial after one round.

    `offline` are those of the model on the evaluation part, such as offline["ndcg@10"]; `online` those of the lists that
    the user saw so far; `figures` has all of them, as a line of curve.jsonl.
    """

    trial: Trial
    round: int
    figures: dict[str, Any] = field(repr=False)

    @property
    def offline(self) -> dict[str, Any]:
        return dict(self.figures["offline"])

    @property
    def online(self) -> dict[str, Any]:
        return dict(self.figures["online"])

    def _repr_html_(self) -> str:
        figures = _flat({"offline": self.offline, "online": self.online}).items()
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{value:.4g}</td></tr>" for name, value in figures if value is not None)
        return f"<p>{html.escape(repr(self))}</p><table>{rows}</table>"

    def __repr__(self) -> str:
        trial = f"{self.trial.ranker}, {self.trial.user}, fold {self.trial.fold}, seed {self.trial.seed}"
        offline = ", ".join(f"{name} {value:.4f}" for name, value in self.offline.items() if value is not None)
        return f"<olrank.Evaluation {trial}, round {self.round}: {offline}>"


class Callback(Protocol):
    """It is called after each evaluation of each trial, in the thread that called run(). `close()`, if it has one, ends it."""

    def __call__(self, figures: dict[str, float], step: int, trial: Trial) -> object:
        """`figures` by name, such as "offline.ndcg@10", after the round `step`."""


class Results:
    """The results in a folder. Iterating gives the evaluations of all trials, one trial after another."""

    def __init__(self, out: str | os.PathLike[str], keep: Any = None) -> None:
        self.out = Path(out)
        self._keep = keep  # a temporary folder, which lives as long as its results
        if not (self.out / "manifest.json").exists():
            raise InvalidArgument(f"'{self.out}' has no results of an experiment.")

    @property
    def trials(self) -> list[Trial]:
        listed = json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))["trial_folders"]
        return [_trial_of(self.out, folder, self._keep) for folder in listed]

    def __iter__(self) -> Iterator[Evaluation]:
        for trial in self.trials:
            for figures in trial.curve:
                yield Evaluation(trial, figures["round"], figures)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each evaluation: ranker, user, fold, seed, round and the figures, such as "offline.ndcg@10"."""
        try:
            import pandas
        except ImportError as error:
            raise Error("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame([one.trial._about | _flat(one.figures) for one in self])

    def to_latex(self, users: Sequence[Sequence[str]] = (), baseline: str = "") -> str:
        """LaTeX tables (booktabs), one for each user, or for each of `users` with those side by side; differences from `baseline`."""
        return report([self], "latex", baseline=baseline, users=users)

    def compare(self, *others: Results | str | os.PathLike[str], baseline: str = "") -> dict[str, Any]:
        """Metrics, curves and paired tests of these rankers and those of other results, as of `olrank report --json`."""
        return json.loads(report([self, *others], "json", baseline=baseline))

    def figures(self, dark: bool = False) -> dict[str, Figure]:
        """The figures of the report by name."""
        return {name: Figure(name, caption, svg) for name, caption, svg in _core.figures(as_path(self.out), dark)}

    def plot(self, name: str | None = None, dark: bool = False) -> Figure:
        """A figure of the report, which a notebook shows; without a name the first one: the learning curves."""
        figures = self.figures(dark)
        if not figures:
            raise Error(f"There is nothing to plot in {self.out} yet.")
        if name is None:
            return next(iter(figures.values()))
        if name not in figures:
            raise InvalidArgument(f"There is no figure '{name}': choose {', '.join(figures)}.")
        return figures[name]

    def _repr_html_(self) -> str:
        return "".join(f"<p>{figure.caption}</p>{figure.svg}" for figure in list(self.figures().values())[:1])

    def __repr__(self) -> str:
        trials = self.trials
        return f"<olrank.Results {sum(trial.finished for trial in trials)} of {len(trials)} trials in {self.out}>"


@dataclass(frozen=True)
class Figure:
    """A picture of a report, as SVG."""

    name: str
    caption: str
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.svg, encoding="utf-8")


def report(
    results: Results | str | os.PathLike[str] | Sequence[Results | str | os.PathLike[str]],
    form: Literal["latex", "csv", "json"] = "json",
    *,
    baseline: str = "",
    users: Sequence[Sequence[str]] = (),
) -> str:
    """The report of results or their folders, finished or not, as `olrank report` writes it to --latex, --csv or --json."""
    given = [results] if isinstance(results, (Results, str, os.PathLike)) else list(results)
    folders = [as_path(one.out if isinstance(one, Results) else one) for one in given]
    return _core.report(folders, form, baseline, [[names] if isinstance(names, str) else list(names) for names in users])


def run(
    config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    users: Mapping[str, User] | None = None,
    rankers: Mapping[str, Callable[..., OnlineRanker]] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    callbacks: Sequence[Callback] = (),
    executor: _distributed.Executor | None = None,
) -> Results:
    """Plays an experiment: rankers × users × folds × seeds. The same bits as `olrank run` with the same configuration.

    `config` is a dict of tables, such as {"data": {"source": "synth:small"}, "ranker": [{"kind": "pairrank"}]}, or the
    path of a TOML file. data.train, data.test and data.vali may be a Dataset, which is written to OUT.data. Results are in `out`, else in the configuration's run.out, else in a temporary folder that goes
    with the returned object. `resume` continues a run that was interrupted, `force` replaces its results. Ctrl-C stops
    between rounds, with checkpoints, and raises KeyboardInterrupt.

    `users` maps names to objects with click(query, shown, round), `rankers` to classes with rank(query, round),
    learn(query, shown, clicks, round) and score(X) or score(X, query), and `metrics` to functions of a query's grades and scores.
    They join those that the configuration names; where it names no users or rankers, they are all. A [[ranker]] whose `kind` is a
    name of `rankers` has further keys as arguments of the class. `clicks.models` and `protocol.metrics` may name them, too.

    `callbacks` are called after each evaluation with its figures, the round and the trial; olrank.callbacks has ready ones.

    `executor` plays each trial as a task of its own, with one thread unless run.threads says more: a pool of
    concurrent.futures, Dask's client.get_executor(), one of submitit or of MPI. Trials of lost workers are played again.
    The folder is here, and has the bits of a local run.
    """
    _require_callbacks(callbacks)
    own = Own.of(users, rankers, metrics)
    config, out, temporary, earlier = _prepared(config, out, "run", resume, force)
    text, origin, table = _read(config, own)
    bar = Progress() if progress else None
    here = Path(as_path(table["run"]["out"] if out is None else out))
    take = _taker(bar, callbacks, here, temporary)
    with _closing(callbacks):
        if executor is None:
            with own.registered():
                folder, _, failures, signal = _core.play(
                    text, origin, "" if out is None else as_path(out), earlier, "olrank.run(…)", take, "", True
                )
        else:
            folder, failures, signal = _distributed.play(executor, table, text, origin, here, earlier, own, take)
    if bar is not None:
        bar.end(done=signal == 0)
    for failure in failures:
        _log.warning("Failed: %s", failure)
    if signal != 0:
        if temporary is None:
            _log.warning("Stopped, with checkpoints in %s: run it again with resume=True to continue.", folder)
        raise KeyboardInterrupt
    return Results(folder, temporary)


@dataclass(frozen=True)
class Tuning:
    """It tells what a tuning came to: the winners, and the two experiments behind them."""

    out: Path
    winners: list[dict[str, Any]]  # "ranker", "chosen" values, the figures in the "tuning" and in the "test"; as of `olrank tune --json`
    keep: Any = field(default=None, repr=False, compare=False)  # a temporary folder, which lives as long as this

    @property
    def tuning(self) -> Results:
        """The grid on the validation set."""
        return Results(self.out / "tuning", self.keep)

    @property
    def test(self) -> Results:
        """The winners on the test set."""
        return Results(self.out / "test", self.keep)


def tune(
    config: Mapping[str, Any] | str | os.PathLike[str],
    progress: bool = True,
    *,
    out: str | os.PathLike[str] | None = None,
    by: str = "offline",
    resume: bool = False,
    force: bool = False,
    users: Mapping[str, User] | None = None,
    rankers: Mapping[str, Callable[..., OnlineRanker]] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    callbacks: Sequence[Callback] = (),
    executor: _distributed.Executor | None = None,
) -> Tuning:
    """Tries the values of the configuration's [sweep] on the validation set and tests the winners, as `olrank tune` does.

    The area under the learning curve `by` decides ("offline", "online", "both"; or "worst"), once for each ranker.
    Everything else is as in run(): data sets, own users, rankers and metrics, callbacks, trials on an `executor`, `resume`, `force`, Ctrl-C.
    """
    _require_callbacks(callbacks)
    own = Own.of(users, rankers, metrics)
    prepared, out, temporary, earlier = _prepared(config, out, "tuning", resume, force)
    text, origin, table = _read(prepared, own)
    folder = Path(as_path(table["run"]["out"] if out is None else out))
    bar = Progress() if progress else None
    take = _taker(bar, callbacks, folder, temporary)

    def step(name: str, earlier: str) -> tuple[str, bool]:
        with own.registered():
            told = _core.tune(text, origin, str(folder), earlier, take, by, name)
        stop(told[3])
        return told[1], told[2]

    def stop(signal: int) -> None:
        if signal == 0:
            return
        if temporary is None:
            _log.warning("Stopped, with checkpoints in %s: tune it again with resume=True to continue.", folder)
        raise KeyboardInterrupt

    def play(part: Path) -> None:
        assert executor is not None
        configuration = _toml.read(part / "config.toml")
        trials = _toml.parse(configuration, str(part / "config.toml"))
        stop(_distributed.play(executor, trials, configuration, str(part / "config.toml"), part, "resume", own, take)[2])

    with _closing(callbacks):
        if executor is not None:
            step("grid", earlier)
            play(folder / "tuning")
            step("choose", "resume")
            play(folder / "test")
            earlier = "resume"
        winners, complete = step("whole", earlier)
    if bar is not None:
        bar.end(done=True)
    if not complete:
        _log.warning("Trials failed: their messages are above.")
    found = json.loads(winners)["winners"]
    for winner in found:
        if told := winner["chosen"].pop("own", None):  # "counts(step=0.1)"
            winner["chosen"] |= parameters_of(winner["ranker"], told.partition("(")[2].removesuffix(")"))
    return Tuning(folder, found, temporary)


def _read(config: Config, own: Own | None = None) -> tuple[str, str, dict[str, Any]]:
    """The configuration as text, where it is from, and its tables, with what is the caller's own."""
    text, origin, table = "", "configuration", {}
    if isinstance(config, Mapping):
        table = dict(config)
    elif config is not None:
        text, origin = _toml.read(config), as_path(config)
        table = _toml.parse(text, origin)
    if own is not None and (own.users or own.rankers or own.metrics):
        table = own.in_table(table)
        text = ""
    return text or _toml.write(table), origin, table


Config = Mapping[str, Any] | str | os.PathLike[str] | None
Prepared = tuple[Config, str | os.PathLike[str] | None, tempfile.TemporaryDirectory[str] | None, str]


def _prepared(config: Config, out: str | os.PathLike[str] | None, what: str, resume: bool, force: bool) -> Prepared:
    """The configuration with files in place of data sets; the folder to write, None for that of the configuration; where it is a
    temporary one, its object, with which it goes; and what becomes of earlier results."""
    if resume and force:
        raise InvalidArgument("resume continues and force replaces earlier results: choose one of them.")
    earlier = "resume" if resume else "replace" if force else "refuse"
    table = config if isinstance(config, Mapping) else _read(config)[2]
    temporary = None
    if out is None and "out" not in table.get("run", {}):
        if resume:
            raise InvalidArgument(f"resume needs the folder of the earlier {what}: give out.")
        temporary = tempfile.TemporaryDirectory(prefix="olrank-")
        out = Path(temporary.name) / what
    data = table.get("data")
    if isinstance(data, Dataset):
        raise InvalidArgument('data is a Dataset: give one for each part, {"train": …, "test": …}.')
    given = data if isinstance(data, Mapping) else {}
    for part in ("train", "test", "vali"):
        if not isinstance(given.get(part), (Dataset, str, os.PathLike, type(None))):
            kind = type(given[part]).__name__
            raise TypeError(f"data.{part} is a {kind}: give a Dataset, such as Dataset.from_table() makes, or the path of a file.")
    parts = {part: one for part, one in given.items() if isinstance(one, Dataset)}
    if not parts:
        return config, out, temporary, earlier
    folder = Path(f"{as_path(table['run']['out'] if out is None else out)}.data").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    names = parts["train"].feature_names if "train" in parts else None
    for part, one in parts.items():
        one.in_order(names).save(folder / f"{part}.txt")
    return {**table, "data": {**given, **{part: folder / f"{part}.txt" for part in parts}}}, out, temporary, earlier


def in_words_of_python(message: str) -> str:
    """The program's sentence with arguments in place of its flags, and functions in place of its commands."""
    for word, of_python in (
        ("--resume", "resume=True"),
        ("--force", "force=True"),
        ("--trace", "trace()"),
        ("--replay", "replay()"),
        ("another --out", "another out"),
        ("with --data", "by data.source"),
        ("'olrank run'", "olrank.run"),
        ("'olrank tune'", "olrank.tune"),
    ):
        message = message.replace(word, of_python)
    return message


def _taker(bar: Progress | None, callbacks: Sequence[Callback], out: Path, keep: Any) -> Callable[[str], None]:
    """A function that takes the events of an experiment."""

    def take(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "warning":
            _log.warning("%s", event["message"])
        elif event["event"] in ("info", "detail"):
            _log.info("%s", event["message"])
        elif bar is not None:
            bar.tell(event)
        if event["event"] == "evaluation" and callbacks:
            of = event["trial"]
            below = Path("trials", of["ranker"], of["clicks"], f"fold{of['fold']}", f"seed{of['seed']}")
            places = (out / part / below for part in ("test", "tuning"))  # of tune(), whose winners have names of their own
            folder = next((place for place in places if place.exists()), out / below)
            trial = Trial(of["ranker"], of["clicks"], of["fold"], of["seed"], folder, keep)
            figures = _flat({part: event[part] for part in ("offline", "online", "metrics") if part in event})
            for callback in callbacks:
                callback({name: value for name, value in figures.items() if value is not None}, event["round"], trial)

    return take


def _require_callbacks(callbacks: Any) -> None:
    wrong = [one for one in callbacks if isinstance(one, type) or not callable(one)] if isinstance(callbacks, Sequence) else [callbacks]
    if wrong:
        raise InvalidArgument(f"callbacks must be a list of functions of figures, step and trial, or of objects with such a __call__, not {wrong[0]!r}.")


@contextlib.contextmanager
def _closing(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Puts the program's errors in words of Python, and ends all callbacks, also where one raises."""
    with contextlib.ExitStack() as stack:
        for callback in reversed(callbacks):
            stack.callback(getattr(callback, "close", lambda: None))
        try:
            yield
        except InvalidArgument as error:
            error.args = (in_words_of_python(str(error)),)
            raise


def _trial_of(out: Path, folder: str, keep: Any) -> Trial:
    """trials/RANKER/USER/fold1/seed1"""
    _, ranker, user, fold, seed = Path(folder).parts
    return Trial(ranker, user, int(fold.removeprefix("fold")), int(seed.removeprefix("seed")), out / folder, keep)


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested figures with dotted names; lists stay as they are."""
    flat: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
