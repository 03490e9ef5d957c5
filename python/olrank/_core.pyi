"""What the package hands on of the engine. Its other functions and classes are described where they are bound (python/bindings)."""

from typing import Any

import numpy as np
import numpy.typing as npt

def __getattr__(name: str) -> Any: ...

class ShownList:
    """A list to show, with what the ranker knows about it."""

    def __len__(self) -> int:
        """Documents shown."""

    @property
    def docs(self) -> npt.NDArray[np.int32]:
        """Rows of X to show, best first."""

    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """The score of every document, by row of X."""

    @property
    def propensity(self) -> npt.NDArray[np.float64] | None:
        """Of each rank, the probability of its document there given those above; None where it has no closed form."""

    @property
    def certain(self) -> npt.NDArray[np.int32]:
        """Pairs (a, b) of shown documents: a certainly belongs before b."""

    @property
    def widths(self) -> npt.NDArray[np.float64] | None:
        """How uncertain the order of every two documents is, where rank() was asked for it; else None."""

class RankerQuery:
    """What a ranker knows about the query of a round."""

    @property
    def number(self) -> int:
        """Of the query within its part of the data."""
    @property
    def qid(self) -> str:
        """Its name there."""
    @property
    def ids(self) -> list[str]:
        """Names of the documents; empty where they have none."""
    @property
    def person(self) -> int:
        """Who asks, from 0, where the user is several people."""
    @property
    def X(self) -> npt.NDArray[np.float32]:
        """Features of the documents [V × d], normalised."""
