"""Rankers that learn online."""

from __future__ import annotations

import html
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, Names, as_clicks, as_features, as_numbers, as_path, capsule_on_gpu, in_order, named
from olrank.data import Dataset
from olrank.errors import DataError, InvalidArgument
from olrank.model import load_model
from olrank.settings import as_texts

if TYPE_CHECKING:
    from typing import Unpack  # noqa: F401

    from olrank._keywords import RankerSettings

Shown = _core.ShownList
_NONE = np.zeros(0, dtype=np.float64)


class Ranker:
    """An online ranker. It makes a list, learns from the clicks on it, and knows which orders it is sure of.

    `kind` is clickgp, pairrank, olranknet, ollambdarank, p2linrank, p2neurrank, ranknet, pdgd, dbgd
    or mgd; `features` is the number of columns of X; `cutoff` is how many documents users see. The same seed gives the same
    lists on any number of threads. Every other keyword is a setting: `olrank.settings("ranker")` lists them with defaults and bounds. The
    setting `lambda` is the keyword `lambda_`. `device` is "cpu", "cuda" or one of several GPUs, such as "cuda:1": documents
    go there with each call, and a ranker has bits of its own there. Tensors of that GPU stay there: float32 tables of any
    library with DLPack, such as torch and CuPy.

    Any number of rankers may work at once, each in a thread of its own; calls of one ranker follow one another.
    """

    __slots__ = ("_engine", "_features", "_cutoff", "_names", "_remembers", "_gpu", "_stream")

    def __init__(
        self,
        kind: str = "clickgp",
        *,
        features: int,
        cutoff: int = 10,
        seed: int = 1,
        protocol: str = "recommended",
        normalise: str = "query-minmax",
        fold: int = 0,
        user: str = "",
        threads: int = 1,
        device: str = "cpu",
        **settings: Unpack[RankerSettings],
    ) -> None:
        for name, number in (("features", features), ("cutoff", cutoff), ("seed", seed), ("fold", fold), ("threads", threads)):
            _require_whole(name, number)
        for name, text in (("kind", kind), ("protocol", protocol), ("normalise", normalise), ("user", user), ("device", device)):
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a text, not {text!r}.")
        self._take(_core.Ranker.make(kind, features, cutoff, seed, protocol, normalise, fold, user, threads, device, as_texts(dict(settings))))
        if settings.get("start_from"):
            start = load_model(settings["start_from"], trust_code=settings.get("trust_code", False))
            self._names = None if start.feature_names is None else tuple(start.feature_names)
            if self._names is not None:
                self._engine.name_features(list(self._names))

    def _take(self, engine: _core.Ranker) -> None:
        self._engine = engine
        self._features = engine.features()
        self._cutoff = engine.cutoff()
        self._names = tuple(engine.feature_names()) or None
        self._remembers = engine.kind() == "clickgp"
        self._gpu = engine.gpu()
        self._stream = engine.gpu_stream()

    def _docs(self, X: ArrayLike) -> npt.NDArray[np.float32] | _core.GpuDocs:
        """Documents as the engine takes them: where they lie, if that is a GPU and the ranker reads from one."""
        capsule = capsule_on_gpu(X, self._gpu, self._stream) if self._stream else None
        return self._table(X) if capsule is None else _core.GpuDocs.of(capsule)

    def _table(self, X: ArrayLike) -> npt.NDArray[np.float32]:
        """The features, those of a table in the order of the first table that came."""
        values, names = named(X)
        table = as_features(in_order(values, names, self._names), self._features)
        self._remember(names)
        return table

    def _remember(self, names: Names) -> None:
        if names is None:
            return
        if self._names is None or set(names) != set(self._names):
            self._names = names
        if not self._engine.feature_names():
            self._engine.name_features(list(self._names))

    def rank(self, X: ArrayLike, k: int | None = None, qid: object = None, widths: bool = False) -> Shown:
        """The list to show for one query, whose documents are the rows of X.

        `k` is how many users see, at most `cutoff`. `qid` names the query: documents of one name with equal features
        are one document to the ranker, whose history then does not grow when they come back; clickgp remembers no documents
        of queries without a name, and says so once. `widths` asks for
        `Shown.widths`, V × V numbers.
        """
        if k is not None:
            _require_whole("k", k)
            if k < 1:
                raise InvalidArgument(f"k must be at least 1, not {k}.")
        if qid is None and self._remembers:
            warnings.warn("A clickgp remembers documents of queries that have a name: give rank() a qid.", stacklevel=2)
        return self._engine.rank(self._docs(X), "" if qid is None else str(qid), bool(widths), k or 0)

    def shown_list(self, X: ArrayLike, shown: ArrayLike, qid: object = None) -> Shown:
        """A list in an order of yours, which learn() takes as one of rank(): rows of X, best first, at most `cutoff`."""
        rows = as_numbers(shown, "shown")
        if rows.ndim != 1 or not np.array_equal(rows, rows.astype(np.int32)):
            raise InvalidArgument("shown must be rows of the query, whole numbers from 0.")
        return self._engine.shown_list(self._table(X), np.ascontiguousarray(rows, dtype=np.int32), "" if qid is None else str(qid))

    def learn(self, shown: Shown, clicks: ArrayLike, rewards: ArrayLike | None = None) -> int:
        """Learns from what a user did with a list of this ranker: one truth value for each shown document.

        Lists may be answered in any order or not at all, each once. Returns the number of preference pairs. `rewards` say
        what each click is worth, such as 10 for a purchase: kinds that learn from pairs count these as often, clickgp its clicks.
        """
        if not isinstance(shown, Shown):
            raise TypeError(f"shown must be what rank() returned, not a {type(shown).__name__}.")
        worth = _NONE if rewards is None else np.ascontiguousarray(as_numbers(rewards, "rewards"), dtype=np.float64).ravel()
        return self._engine.learn(shown, as_clicks(clicks, len(shown)), worth)

    def partial_fit(self, log: str | os.PathLike[str] | Iterable[Mapping[str, Any]], data: Dataset) -> Ranker:
        """Learns from the lists and clicks of a log, one after another, each as a round of its own; returns itself.

        `log` is a file as click_log() writes it, or a trace; or its records: {"qid": …, "shown": rows of the query, best
        first, "clicks": 0 or 1 for each}, with "rewards" where each click has a worth. `data` has the documents. The state
        is that of a ranker that showed these lists itself. Lists before one that is refused are learned.
        """
        if not isinstance(data, Dataset):
            raise TypeError(f"data is a {type(data).__name__}: give a log and the Dataset of its documents. Grades are learned by olrank.fit().")
        data = data.in_order(self._names)
        if data.features != self._features:
            raise InvalidArgument(f"The data have {data.features} features, and documents here have {self._features}.")
        self._remember(data._names)
        place = {name: query for query, name in enumerate(data.qids)}
        X, offsets = data.X, data.offsets
        for where, record in _records(log):
            try:
                missing = next((key for key in ("qid", "shown", "clicks") if not isinstance(record, Mapping) or key not in record), None)
                if missing is not None:
                    raise InvalidArgument(f"There is no '{missing}': each list needs qid, shown and clicks.")
                name = str(record["qid"])
                if name not in place:
                    raise InvalidArgument(f"The data have no query '{name}'.")
                begin, end = offsets[place[name] : place[name] + 2]
                clicks = as_clicks(record["clicks"], np.size(record["shown"]))
                self.learn(self.shown_list(X[begin:end], record["shown"], name), clicks, record.get("rewards"))
            except (InvalidArgument, TypeError) as error:
                raise type(error)(f"{where}: {error}") from None
        return self

    def score(self, X: ArrayLike) -> npt.NDArray[np.float32]:
        """The score of each document of one query, without a list and without exploration."""
        return self._engine.score(self._docs(X))

    def widths(self, X: ArrayLike) -> npt.NDArray[np.float64]:
        """How uncertain the order of every two documents of one query is [V × V], as differences of scores."""
        return self._engine.widths(self._docs(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state. A loaded ranker goes on to the same bits. Of a clickgp it is also a snapshot for load_model()."""
        self._engine.save(as_path(path))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], threads: int = 1, *, trust_code: bool = False, device: str = "auto"
    ) -> Ranker:
        """Loads what save() wrote, or the folder of a finished trial of an experiment: the ranker as it ended.

        One with a TorchScript module has code: it is refused unless `trust_code`, as by load_model(). One that computed on
        a GPU goes on there: on the first, unless `device` names another.
        """
        ranker = cls.__new__(cls)
        ranker._take(_core.Ranker.load(as_path(path), threads, trust_code, device))
        return ranker

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes the scoring function alone, as the model file that `olrank rank`, `eval`, `export` and `serve` take."""
        self._engine.save_model(as_path(path))

    @property
    def kind(self) -> str:
        return self._engine.kind()

    @property
    def features(self) -> int:
        return self._features

    @property
    def feature_names(self) -> list[str] | None:
        """The columns of the first table that came, pandas' or another's; later ones are taken by these names, in any order."""
        return None if self._names is None else list(self._names)

    @property
    def cutoff(self) -> int:
        return self._cutoff

    @property
    def parameters(self) -> int:
        """Numbers that are learned."""
        return self._engine.parameters()

    @property
    def rounds(self) -> int:
        """Lists made so far."""
        return self._engine.rounds()

    @property
    def settings(self) -> str:
        """Every setting that counts, as lines `key = value`."""
        return self._engine.settings()

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that stand for the whole state: equal states have equal fingerprints."""
        return self._engine.fingerprint()

    def __getstate__(self) -> bytes:
        return self._engine.bytes()

    def __setstate__(self, state: bytes) -> None:
        self._take(_core.Ranker.from_bytes(state, 1))

    def _repr_html_(self) -> str:
        lines = (line.partition(" = ") for line in self.settings.splitlines())
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, _, value in lines)
        return f"<p>{html.escape(repr(self))}</p><details><summary>settings</summary><table>{rows}</table></details>"

    def __repr__(self) -> str:
        return f"<olrank.Ranker {self.kind}, {self._features} features, {self.parameters} parameters, round {self.rounds}>"


def _records(log: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The lists of a log and where each stands, without the first line of a trace, which has its configuration."""
    if not isinstance(log, (str, os.PathLike)):
        yield from ((f"Record {number} of the log", record) for number, record in enumerate(log, 1))
        return
    try:
        with open(as_path(log), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                record = json.loads(line) if line.strip() else {"config": None}
                if not isinstance(record, dict) or "config" not in record or "qid" in record:
                    yield f"{as_path(log)}, line {number}", record
    except OSError as error:
        raise DataError(f"{as_path(log)} cannot be read: {error}.") from error
    except ValueError as error:
        raise DataError(f"{as_path(log)} is no file of JSON lines: {error}.") from error


def _require_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, not {value!r}.")
    if not -(2**63) <= value < 2**63 or (value < 0 and name in ("seed", "fold")):
        raise InvalidArgument(f"{name} must be at least 0 and below 2^63, not {value}.")
