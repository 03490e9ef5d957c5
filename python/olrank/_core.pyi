from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

def settings_json() -> str: ...
def version() -> str: ...
def end_interpreter() -> None: ...

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

class GpuDocs:
    @staticmethod
    def of(capsule: Any, /) -> GpuDocs: ...

class Ranker:
    @staticmethod
    def make(
        kind: str,
        features: int,
        cutoff: int,
        seed: int,
        protocol: str,
        normalise: str,
        fold: int,
        user: str,
        threads: int,
        device: str,
        settings: dict[str, str],
        /,
    ) -> Ranker: ...
    @staticmethod
    def load(file: str, threads: int, trust_code: bool, device: str, /) -> Ranker: ...
    @staticmethod
    def from_bytes(state: bytes, threads: int, /) -> Ranker: ...
    def rank(self, docs: npt.NDArray[np.float32] | GpuDocs, query: str, widths: bool, ranks: int) -> ShownList: ...
    def gpu(self) -> int: ...
    def gpu_stream(self) -> int: ...
    def shown_list(self, docs: npt.NDArray[np.float32], shown: npt.NDArray[np.int32], query: str) -> ShownList: ...
    def learn(self, list: ShownList, clicks: npt.NDArray[np.uint8], rewards: npt.NDArray[np.float64]) -> int: ...
    def score(self, docs: npt.NDArray[np.float32] | GpuDocs, /) -> npt.NDArray[np.float32]: ...
    def widths(self, docs: npt.NDArray[np.float32] | GpuDocs, /) -> npt.NDArray[np.float64]: ...
    def bytes(self) -> bytes: ...
    def save(self, file: str, /) -> None: ...
    def save_model(self, file: str, /) -> None: ...
    def fingerprint(self) -> str: ...
    def settings(self) -> str: ...
    def kind(self) -> str: ...
    def features(self) -> int: ...
    def feature_names(self) -> list[str]: ...
    def name_features(self, names: list[str], /) -> None: ...
    def cutoff(self) -> int: ...
    def parameters(self) -> int: ...
    def rounds(self) -> int: ...

class RankingData:
    @staticmethod
    def load(source: str, part: str, fold: int, threads: int, /) -> RankingData: ...
    @staticmethod
    def of(
        values: npt.NDArray[np.float32],
        grades: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        names: list[str],
        weights: npt.NDArray[np.float32],
        arrays: object,
        /,
    ) -> RankingData: ...
    @staticmethod
    def of_sparse(
        begins: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        values: npt.NDArray[np.float32],
        features: int,
        grades: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        names: list[str],
        weights: npt.NDArray[np.float32],
        arrays: object,
        /,
    ) -> RankingData: ...
    def is_sparse(self) -> bool: ...
    def sparse_values(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...
    def queries(self) -> int: ...
    def docs(self) -> int: ...
    def features(self) -> int: ...
    def values(self) -> npt.NDArray[np.float32]: ...
    def grades(self) -> npt.NDArray[np.uint8]: ...
    def offsets(self) -> npt.NDArray[np.int64]: ...
    def weights(self) -> npt.NDArray[np.float32]: ...
    def name(self, query: int, /) -> str: ...
    def fingerprint(self) -> str: ...
    def write(self, file: str, /) -> None: ...
    @staticmethod
    def from_bytes(data: bytes, /) -> RankingData: ...
    def bytes(self) -> bytes: ...

def evaluate(
    data: RankingData,
    scores: npt.NDArray[np.float64],
    at: list[int],
    metrics: list[str],
    convention: str,
    gain: str,
    empty_queries: str,
    max_grade: int | None,
    by_query: bool,
    threads: int,
    /,
) -> Any: ...

def off_policy_values(
    data: RankingData | None,
    log: str,
    models: list[str],
    policy: str,
    reward: str,
    estimators: list[str],
    click_model: str,
    at: int,
    clip: float,
    confidence: float,
    replicates: int,
    seed: int,
    threads: int,
    trust_code: bool,
    page: str,
    /,
) -> str: ...
def fit_click_models(log: str, model: str, holdout: float, at: int, iterations: int, /) -> str: ...

class Model:
    @staticmethod
    def load(file: str, trust_code: bool, /) -> Model: ...
    @staticmethod
    def from_bytes(state: bytes, /) -> Model: ...
    def features(self) -> int: ...
    def feature_names(self) -> list[str]: ...
    def normalises_by_query(self) -> bool: ...
    def score(self, docs: npt.NDArray[Any], offsets: npt.NDArray[Any], queries: list[str], ids: list[str], /) -> npt.NDArray[np.float64]: ...
    def score_data(self, data: RankingData, /) -> npt.NDArray[np.float64]: ...
    def bytes(self) -> bytes: ...
    def save(self, file: str, /) -> None: ...

def fit_model(
    train: RankingData | None,
    validation: RankingData | None,
    settings: dict[str, str],
    normalise: str,
    seed: int,
    threads: int,
    device: str,
    feature_names: list[str],
    log: str,
    estimator: str,
    click_model: str,
    clip: float,
    /,
) -> Model: ...

class UserDecision(Enum):
    click = 0
    stop = 1
    noise = 2
    examination = 3
    perseverance = 4

class UserQuery:
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
    @property
    def grades(self) -> npt.NDArray[np.uint8]: ...
    def uniform(self, doc: int, decision: UserDecision) -> float: ...
    def own(self, doc: int, number: int) -> float: ...

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

def register_user(name: str, description: str, click: Callable[..., Any], people: int, /) -> None: ...
def unregister_user(name: str, /) -> None: ...
def register_ranker(name: str, description: str, make: Callable[..., Any], /) -> None: ...
def unregister_ranker(name: str, /) -> None: ...
def register_metric(name: str, description: str, mean: Callable[..., float], /) -> None: ...
def unregister_metric(name: str, /) -> None: ...
def play(
    configuration: str, origin: str, out: str, earlier: str, command: str, tell: Callable[[str], None], shard: str, plays: bool, /
) -> tuple[str, list[str], list[str], int]: ...
def tune(
    configuration: str, origin: str, out: str, earlier: str, tell: Callable[[str], None], by: str, per: str, step: str, /
) -> tuple[str, str, bool, int]: ...
def program(arguments: list[str], /) -> int: ...
def external_state(trial: str, /) -> bytes: ...
def report(folders: list[str], form: str, baseline: str, users: list[list[str]], /) -> str: ...
def figures(out: str, dark: bool, /) -> list[tuple[str, str, str]]: ...
