"""Users and rankers in Python, behind what the engine calls."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import math
import pickle
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import as_clicks, as_numbers
from olrank.errors import InvalidArgument

Docs = npt.NDArray[np.int32]


class User(Protocol):
    """A simulated user. Clicks follow from the arguments alone: it has no state that changes.

    With an attribute `people`, a whole number, each round is one of so many people's: `query.person` says whose, to the ranker, too.
    """

    def click(self, query: UserQuery, shown: Docs, round: int) -> Any:
        """One truth value for each document of `shown`, rows of the query, best first; or a tuple (clicks, examined) of two
        such lists, where the user looks at some documents alone."""


class OnlineRanker(Protocol):
    """A ranker. It is made for each trial by RANKER(features=…, cutoff=…, seed=…, fold=…), and pickled for checkpoints, unless it
    has save(), which returns its state as bytes, and load(state), which takes it. A CertainRanker knows more.
    """

    def rank(self, query: _core.RankerQuery, round: int) -> Any:
        """Rows of query.X, best first: the first `cutoff` at least. The others follow in their order."""

    def learn(self, query: _core.RankerQuery, shown: Docs, clicks: npt.NDArray[np.uint8], round: int) -> None: ...

    @property
    def score(self) -> Callable[..., Any]:
        """score(X) returns a score for each document, for evaluations: those of all queries together. score(X, query) is called
        query by query."""


class CertainRanker(OnlineRanker, Protocol):
    """A ranker that is certain of some orders, which gives its trials figures of certainty."""

    def certain_orders(self, query: _core.RankerQuery) -> Any:
        """After rank(): pairs (a, b) of rows, of which a certainly belongs before b. They have no circle."""


class Metric(Protocol):
    """A metric of one query, the larger the better; the mean over the queries is a curve."""

    def __call__(self, grades: npt.NDArray[np.uint8], scores: npt.NDArray[np.float32], /) -> float | None:
        """A finite number, by the true grades and the scores of the documents; None leaves the query out of the mean."""


class UserQuery:
    """It is what a simulated user knows about the query of a round: its name, documents and grades, and coins of its own.

    Coins belong to the round, the document and the decision, so that a document gets the same ones at every rank and
    for every ranker. Built-in users decide by the same coins.
    """

    __slots__ = ("_engine", "number", "qid", "ids", "person")

    def __init__(self, engine: _core.UserQuery) -> None:
        self._engine = engine
        self.number = engine.number  # of the query within the training part
        self.qid = engine.qid
        self.ids = engine.ids  # names of the documents; empty where they have none
        self.person = engine.person  # who asks, from 0 to the user's `people` − 1, each as often, and the same for every ranker

    @property
    def X(self) -> npt.NDArray[np.float32]:
        """Features of the documents [V × d], normalised."""
        return self._engine.X

    @property
    def grades(self) -> npt.NDArray[np.uint8]:
        """The true grades of all documents of the query."""
        return self._engine.grades

    def coin(self, doc: int, decision: str = "click") -> float:
        """A number in [0, 1): a built-in user does what has the probability p if it is below p. The decisions are click, stop,
        noise, examination and perseverance."""
        if decision not in _DECISIONS:
            raise InvalidArgument(f"There is no decision '{decision}': choose {', '.join(_DECISIONS)}.")
        return self._engine.uniform(int(doc), _DECISIONS[decision])

    def own_coin(self, doc: int, number: int = 0) -> float:
        """Further coins for what built-in users do not decide, in [0, 1), independent by `number`."""
        return self._engine.own(int(doc), int(number))


_OWN_STATE = b"olrank own state\n"  # before what a ranker's own save() returned; pickles begin otherwise
_DECISIONS = {
    name: getattr(_core.UserDecision, name) for name in ("click", "stop", "noise", "examination", "perseverance")
}


def description_of(thing: Any) -> str:
    """Returns what tells one kind of user or ranker from another when a folder of results is continued."""
    given = getattr(thing, "description", None)
    if isinstance(given, str):
        return given
    if isinstance(thing, functools.partial):
        words = [repr(value) for value in thing.args] + [f"{key}={value!r}" for key, value in thing.keywords.items()]
        return f"{description_of(thing.func)}({', '.join(words)})"
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


Clicks = npt.NDArray[np.uint8]


def _clicks_of(user: User, query: _core.UserQuery, shown: Docs, round: int) -> Clicks | tuple[Clicks, Clicks]:
    shown.flags.writeable = False
    told = user.click(UserQuery(query), shown, round)
    if isinstance(told, tuple) and len(told) == 2 and np.ndim(told[0]) == 1:
        clicks = as_clicks(told[0], len(shown), f"The clicks of round {round} that click() returned")
        return clicks, as_clicks(told[1], len(shown), f"The examined documents of round {round} that click() returned")
    return as_clicks(told, len(shown), f"What click() returned in round {round}")


def _mean_of(name: str, metric: Metric, grades: Clicks, scores: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]) -> float:
    values = []
    for query, (begin, end) in enumerate(itertools.pairwise(offsets.tolist())):
        value = metric(grades[begin:end], scores[begin:end])
        if value is None:
            continue
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"Metric '{name}' returned a {type(value).__name__} for query {query}: return a number, or None.")
        if not math.isfinite(value):
            raise InvalidArgument(f"Metric '{name}' returned {value} for query {query}: return a finite number, or None to leave the query out.")
        values.append(float(value))
    if not values:
        raise InvalidArgument(f"Metric '{name}' returned None for all {len(offsets) - 1} queries: it needs one at least.")
    return math.fsum(values) / len(values)


class _RankerInTrial:
    """One ranker of one trial."""

    def __init__(self, ranker: OnlineRanker) -> None:
        self.ranker = ranker
        self.scores_queries = _takes_query(ranker.score)
        self.knows_orders = callable(getattr(ranker, "certain_orders", None))

    def rank(self, query: _core.RankerQuery, round: int) -> Docs:
        order = as_numbers(self.ranker.rank(query, round), f"What rank() returned in round {round}")
        if order.ndim != 1 or (order != np.floor(order)).any() or (np.abs(order) >= 2**31).any():
            raise InvalidArgument(f"rank() must return the rows of the query one after another, and in round {round} it did not.")
        return np.ascontiguousarray(order, dtype=np.int32)

    def learn(self, query: _core.RankerQuery, shown: Docs, clicks: npt.NDArray[np.uint8], round: int) -> None:
        shown.flags.writeable = clicks.flags.writeable = False
        self.ranker.learn(query, shown, clicks, round)

    def certain_orders(self, query: _core.RankerQuery, round: int) -> Docs:
        given = self.ranker.certain_orders(query)  # type: ignore[attr-defined]
        label = f"What certain_orders() returned in round {round}"
        pairs = as_numbers(given, label) if np.size(given) else np.zeros((0, 2))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs != np.floor(pairs)).any() or (np.abs(pairs) >= 2**31).any():
            raise InvalidArgument(f"{label} must be pairs (a, b) of rows of the query, and it has the shape {pairs.shape}.")
        return np.ascontiguousarray(pairs, dtype=np.int32).ravel()

    def score(self, X: npt.NDArray[np.float32], query: _core.RankerQuery | None) -> npt.NDArray[np.float32]:
        scores = as_numbers(self.ranker.score(X) if query is None else self.ranker.score(X, query), "What score() returned")
        if scores.shape != (len(X),):
            raise InvalidArgument(f"score() returned the shape {scores.shape} for {len(X)} documents: give one score for each.")
        return np.ascontiguousarray(scores, dtype=np.float32)

    def save(self) -> bytes:
        if not _saves_itself(self.ranker):
            return pickle.dumps(self.ranker, protocol=5)
        state = self.ranker.save()  # type: ignore[attr-defined]
        if not isinstance(state, bytes):
            raise TypeError(f"save() of a {type(self.ranker).__name__} returned a {type(state).__name__}: return bytes.")
        return _OWN_STATE + state

    def load(self, state: bytes) -> None:
        self.ranker = loaded(state, self.ranker)


def _saves_itself(ranker: Any) -> bool:
    """Whether it has save() and load(state); another save(), such as of a file, is not meant."""
    save, load = (getattr(ranker, name, None) for name in ("save", "load"))
    needed = [one for one in inspect.signature(save).parameters.values() if one.default is one.empty] if callable(save) else [None]
    return callable(load) and not needed


def loaded(state: bytes, into: Any) -> Any:
    """The ranker of a state; where the state is that of its own save(), `into`, after its load()."""
    if not state.startswith(_OWN_STATE):
        return pickle.loads(state)
    if into is None:
        raise InvalidArgument("The ranker saves itself: give an object of its class, which load() makes the trained one.")
    into.load(state.removeprefix(_OWN_STATE))
    return into


def _takes_query(score: Callable[..., Any]) -> bool:
    """Whether it is score(X, query): its second argument has no default, or is named so."""
    try:
        arguments = list(inspect.signature(score).parameters.values())
    except ValueError:  # of a function that does not tell
        return False
    return len(arguments) > 1 and (arguments[1].name == "query" or arguments[1].default is inspect.Parameter.empty) and (
        arguments[1].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    )


def in_configuration(name: str, parameters: Mapping[str, Any]) -> str:
    """The setting `own` of a ranker with these parameters."""
    told = ", ".join(f"{key}={value.item() if isinstance(value, np.generic) else value!r}" for key, value in parameters.items())
    parameters_of(name, told)  # whether it reads back
    return f"{name}({told})"


def parameters_of(name: str, told: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"ranker({told})", mode="eval").body
        assert isinstance(call, ast.Call) and not call.args
        return {str(given.arg): ast.literal_eval(given.value) for given in call.keywords if given.arg}
    except (AssertionError, SyntaxError, ValueError) as error:
        raise InvalidArgument(f"Ranker '{name}' has the parameters ({told}): write name=value, with values of Python.") from error


def _maker_of(name: str, ranker: Callable[..., OnlineRanker]) -> Callable[[int, int, int, int, str], _RankerInTrial]:
    def make(features: int, cutoff: int, seed: int, fold: int, parameters: str) -> _RankerInTrial:
        own = ranker(features=features, cutoff=cutoff, seed=seed, fold=fold, **parameters_of(name, parameters))
        for method in ("rank", "learn", "score"):
            if not callable(getattr(own, method, None)):
                raise TypeError(f"Ranker '{name}' made a {type(own).__name__}, which has no {method}().")
        made = _RankerInTrial(own)
        try:
            made.save()  # now, and not at the first checkpoint
        except Exception as error:
            raise InvalidArgument(
                f"Ranker '{name}' cannot be pickled, which checkpoints need ({error}): define its class at the top of a module."
            ) from error
        return made

    return make


@dataclass(frozen=True)
class Own:
    """Users, rankers and metrics of the caller's, by name."""

    users: Mapping[str, User] = field(default_factory=dict)
    rankers: Mapping[str, Callable[..., OnlineRanker]] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    # As the caller names their classes: a worker may name the module of a script otherwise.
    descriptions: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        users: Mapping[str, User] | None, rankers: Mapping[str, Callable[..., OnlineRanker]] | None, metrics: Mapping[str, Metric] | None
    ) -> Own:
        given: list[Mapping[str, Any]] = [dict(things or {}) for things in (users, rankers, metrics)]
        return Own(given[0], given[1], given[2], {name: description_of(thing) for things in given for name, thing in things.items()})

    def in_table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration's tables with these added to those that it names."""
        whole = {**table}
        for name, key, own in (("clicks", "models", self.users), ("protocol", "metrics", self.metrics)):
            named = whole.get(name, {}).get(key, [])
            named = [named] if isinstance(named, str) else list(named)
            if own:
                whole[name] = {**whole.get(name, {}), key: named + [one for one in own if one not in named]}
        if not self.rankers:
            return whole
        rows = whole.get("ranker", [])
        rows = [rows] if isinstance(rows, Mapping) else list(rows)
        used = {key for row in rows if isinstance(row, Mapping) for key in (row.get("name"), row.get("kind"), str(row.get("own")).split("(")[0])}
        rows += [{"kind": name} for name in self.rankers if name not in used]
        sweep = dict(whole.get("sweep", {}))
        sweep |= {key.removeprefix("sweep."): whole.pop(key) for key in list(whole) if key.startswith("sweep.")}
        for at, row in enumerate(rows):
            if not isinstance(row, Mapping) or row.get("kind") not in self.rankers:
                continue
            of, name = row["kind"], row.get("name", row["kind"])
            fixed = {key: value for key, value in row.items() if key not in ("kind", "name")}
            rows[at] = {"name": name, "kind": "external"} | ({"own": in_configuration(of, fixed)} if fixed or of != name else {})
            axes = sweep.get(name)
            if isinstance(axes, Mapping):
                points = [in_configuration(of, fixed | chosen) for chosen in _points_of(name, axes, whole.get("search", {}))]
                sweep[name] = {"own": list(dict.fromkeys(points))}
        return whole | {"ranker": rows} | ({"sweep": sweep} if sweep else {})

    @contextlib.contextmanager
    def registered(self) -> Iterator[None]:
        """Makes them known to the engine for as long as this lasts."""
        for name, metric in self.metrics.items():
            if not callable(metric):
                raise TypeError(f"Metric '{name}' must be a function of grades and scores, not {metric!r}.")
        for name, user in self.users.items():
            people = getattr(user, "people", 1)
            if isinstance(people, bool) or not isinstance(people, int) or people < 1:
                raise TypeError(f"User '{name}' has people = {people!r}: it must be a whole number of at least 1.")
            if not callable(getattr(user, "click", None)) or isinstance(user, type):
                raise TypeError(f"User '{name}' must be an object with click(query, shown, round), not {user!r}.")
        for name, ranker in self.rankers.items():
            if not callable(ranker):
                raise TypeError(f"Ranker '{name}' must be a class, called as RANKER(features=…, cutoff=…, seed=…, fold=…), not {ranker!r}.")
        with contextlib.ExitStack() as stack:
            for name, user in self.users.items():
                _core.register_user(name, self.descriptions[name], functools.partial(_clicks_of, user), getattr(user, "people", 1))
                stack.callback(_core.unregister_user, name)
            for name, ranker in self.rankers.items():
                _core.register_ranker(name, self.descriptions[name], _maker_of(name, ranker))
                stack.callback(_core.unregister_ranker, name)
            for name, metric in self.metrics.items():
                _core.register_metric(name, self.descriptions[name], functools.partial(_mean_of, name, metric))
                stack.callback(_core.unregister_metric, name)
            yield


def _points_of(name: str, axes: Mapping[str, Any], search: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations of the axes' values, or as many draws of them as [search] says. As the engine's, a draw depends on the
    seed, the parameter and its number alone."""
    draws = search.get("draws", 0)
    listed = {key: axis if isinstance(axis, (list, tuple, Mapping)) else [axis] for key, axis in axes.items()}
    for key, axis in listed.items():
        if isinstance(axis, Mapping):
            _check_range(f"range for '{key}' of ranker '{name}'", axis, draws)
    if not draws:
        yield from (dict(zip(listed, chosen, strict=True)) for chosen in itertools.product(*listed.values()))
    for draw in range(draws):
        coins = {key: random.Random(f"{search.get('seed', 1)} {key} {draw}") for key in listed}
        yield {key: _drawn(axis, coins[key]) if isinstance(axis, Mapping) else coins[key].choice(axis) for key, axis in listed.items()}


def _check_range(what: str, axis: Mapping[str, Any], draws: int) -> None:
    begin, end, scale = (axis.get(key, usual) for key, usual in (("from", math.nan), ("to", math.nan), ("scale", "linear")))
    known = scale in ("linear", "log") and not axis.keys() - {"from", "to", "scale"}
    if not known or not all(isinstance(one, (int, float)) for one in (begin, end)) or not begin < end < math.inf or (scale == "log" and begin <= 0):
        raise InvalidArgument(f"The {what} must have from and a larger to, and with scale \"log\" a from above 0: it is {dict(axis)}.")
    if not draws:
        raise InvalidArgument(f'There is a {what}: give the number of points to draw, "search": {{"draws": 20}}, or list its values.')


def _drawn(axis: Mapping[str, Any], coins: random.Random) -> float:
    """A number of a range: whole where both ends are, else of three digits."""
    begin, end = axis["from"], axis["to"]
    whole = isinstance(begin, int) and isinstance(end, int)
    low, high = (begin - 0.5, end + 0.5) if whole else (begin, end)
    share = coins.random()
    value: float = low * (high / low) ** share if axis.get("scale") == "log" else low + share * (high - low)
    return min(max(round(value) if whole else float(f"{value:.3g}"), begin), end)
