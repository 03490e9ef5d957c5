"""Users and rankers in Python, behind what the engine calls."""

from __future__ import annotations

import contextlib
import functools
import inspect
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import as_clicks, as_numbers
from olrank.errors import InvalidArgument

Docs = npt.NDArray[np.int32]


class User(Protocol):
    """A simulated user. Clicks follow from the arguments alone: it has no state that changes.

    With an attribute `people`, a whole number, each round is one of so many people's: `query.person` says whose.
    """

    def click(self, query: UserQuery, shown: Docs, round: int) -> Any:
        """One truth value for each document of `shown`, rows of the query, best first."""


class OnlineRanker(Protocol):
    """A ranker. It is made for each trial by RANKER(features=…, cutoff=…, seed=…, fold=…), and pickled for checkpoints, unless it
    has save(), which returns its state as bytes, and load(state), which takes it.
    """

    def rank(self, query: _core.RankerQuery, round: int) -> Any:
        """Rows of query.X, best first: the first `cutoff` at least. The others follow in their order."""

    def learn(self, query: _core.RankerQuery, shown: Docs, clicks: npt.NDArray[np.uint8], round: int) -> None: ...

    def score(self, X: npt.NDArray[np.float32]) -> Any:
        """A score for each document, for evaluations. They are those of all queries together."""


class UserQuery:
    """It is what a simulated user knows about the query of a round: its grades, and coins of its own.

    Coins belong to the round, the document and the decision, so that a document gets the same ones at every rank and
    for every ranker. Built-in users decide by the same coins.
    """

    __slots__ = ("_engine", "_people")

    def __init__(self, engine: _core.UserQuery, people: int = 1) -> None:
        self._engine = engine
        self._people = people

    @property
    def person(self) -> int:
        """Who asks in this round, from 0 to the user's `people` − 1, each as often, and the same for every ranker."""
        return int(self._engine.own(0, _WHO) * self._people)

    @property
    def grades(self) -> npt.NDArray[np.uint8]:
        """The true grades of all documents of the query."""
        return self._engine.grades

    def coin(self, doc: int, decision: str = "click") -> float:
        """In [0, 1): a built-in user does what has the probability p if it is below p. The decisions are click, stop,
        noise, examination and perseverance."""
        if decision not in _DECISIONS:
            raise InvalidArgument(f"There is no decision '{decision}': choose {', '.join(_DECISIONS)}.")
        return self._engine.uniform(int(doc), _DECISIONS[decision])

    def own_coin(self, doc: int, number: int = 0) -> float:
        """Further coins for what built-in users do not decide, in [0, 1), independent by `number`."""
        return self._engine.own(int(doc), int(number))


_WHO = 2**31 - 1  # the number of a coin that own_coin() hardly reaches
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


def _clicks_of(user: User, query: _core.UserQuery, shown: Docs, round: int) -> npt.NDArray[np.uint8]:
    asked = UserQuery(query, getattr(user, "people", 1))
    return as_clicks(user.click(asked, shown, round), len(shown), f"What click() returned in round {round}")


class _RankerInTrial:
    """One ranker of one trial."""

    def __init__(self, ranker: OnlineRanker) -> None:
        self.ranker = ranker

    def rank(self, query: _core.RankerQuery, round: int) -> Docs:
        order = as_numbers(self.ranker.rank(query, round), f"What rank() returned in round {round}")
        if order.ndim != 1 or (order != np.floor(order)).any() or (np.abs(order) >= 2**31).any():
            raise InvalidArgument(f"rank() must return the rows of the query one after another, and in round {round} it did not.")
        return np.ascontiguousarray(order, dtype=np.int32)

    def learn(self, query: _core.RankerQuery, shown: Docs, clicks: npt.NDArray[np.uint8], round: int) -> None:
        self.ranker.learn(query, shown, clicks, round)

    def score(self, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        scores = as_numbers(self.ranker.score(X), "What score() returned")
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


def _maker_of(name: str, ranker: Callable[..., OnlineRanker]) -> Callable[[int, int, int, int], _RankerInTrial]:
    def make(features: int, cutoff: int, seed: int, fold: int) -> _RankerInTrial:
        made = _RankerInTrial(ranker(features=features, cutoff=cutoff, seed=seed, fold=fold))
        for method in ("rank", "learn", "score"):
            if not callable(getattr(made.ranker, method, None)):
                raise TypeError(f"Ranker '{name}' made a {type(made.ranker).__name__}, which has no {method}().")
        try:
            made.save()  # now, and not at the first checkpoint
        except Exception as error:
            raise InvalidArgument(
                f"Ranker '{name}' cannot be pickled, which checkpoints need ({error}): define its class at the top of a module."
            ) from error
        return made

    return make


@contextlib.contextmanager
def registered(
    users: Mapping[str, User], rankers: Mapping[str, Callable[..., OnlineRanker]], descriptions: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Makes them known to the engine for as long as this lasts. `descriptions` by name take the place of their own."""
    given = descriptions or {}
    for name, user in users.items():
        people = getattr(user, "people", 1)
        if isinstance(people, bool) or not isinstance(people, int) or people < 1:
            raise TypeError(f"User '{name}' has people = {people!r}: it must be a whole number of at least 1.")
        if not callable(getattr(user, "click", None)) or isinstance(user, type):
            raise TypeError(f"User '{name}' must be an object with click(query, shown, round), not {user!r}.")
    for name, ranker in rankers.items():
        if not callable(ranker):
            raise TypeError(f"Ranker '{name}' must be a class, called as RANKER(features=…, cutoff=…, seed=…, fold=…), not {ranker!r}.")
    with contextlib.ExitStack() as stack:
        for name, user in users.items():
            _core.register_user(name, given.get(name) or description_of(user), functools.partial(_clicks_of, user))
            stack.callback(_core.unregister_user, name)
        for name, ranker in rankers.items():
            _core.register_ranker(name, given.get(name) or description_of(ranker), _maker_of(name, ranker))
            stack.callback(_core.unregister_ranker, name)
        yield
