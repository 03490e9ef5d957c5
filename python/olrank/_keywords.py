"""Written by python/tools/keywords.py from the engine's own descriptions."""

from collections.abc import Sequence
from typing import Literal, TypedDict


class RankerSettings(TypedDict, total=False):
    """The settings of a [[ranker]]."""

    start_from: str
    trust_code: bool
    own: str
    network: Literal["linear", "mlp", "module"]
    module: str
    activation: Literal["relu", "gelu", "silu", "tanh"]
    width: int
    depth: int
    parameterisation: Literal["ntk", "standard"]
    scaling: Literal["width", "none"]
    initialisation: Literal["usual", "symmetric"]
    covariance: Literal["full", "inducing", "diagonal", "diagonal-of-inverse", "none"]
    form: Literal["auto", "dual", "primal"]
    budget: int
    shadow: Literal["none", "full"]
    observe_at: Literal["before", "after"]
    lambda_: float
    members: int
    noise_variance: float
    prior_noise: bool
    alpha: float
    alpha_schedule: Literal["constant", "theory"]
    c1: float
    c2: float
    delta: float
    list: Literal["certain", "blocks", "blocks-certain", "greedy"]
    refine: bool
    pairs: Literal["adjacent", "matched", "expected", "all"]
    examined_after: int
    debias: Sequence[float]
    optimizer: Literal["gd", "nesterov", "adam"]
    loss: Literal["sum", "mean"]
    restart: Literal["warm", "first", "fresh"]
    learning_rate: float
    learning_rate_decay: float
    steps: int
    epochs: int
    batch: int
    training_kernel: Literal["auto", "persistent", "recorded"]
    retrain: Literal["every-round", "growth"]
    retrain_growth: float
    replay_steps: int
    replay: int
    exploration: Literal["greedy", "epsilon"]
    epsilon: float
    exploration_radius: float
    interleaving: Literal["team-draft", "probabilistic"]
    candidates: int
    fair: Literal["none", "fairexp", "fairco"]
    template_search: Literal["fairswap", "exact"]
    fair_gain: float
    terms: Literal["linear", "additive", "products"]
    memory_limit: float
    forget: float
    explore_floor: float


class TrainSettings(TypedDict, total=False):
    """The settings of [train]."""

    loss: Literal["listnet", "smooth-dcg", "ranksvm", "ranknet", "lambdarank", "listmle", "rankcosine"]
    smoothing: float
    smooth_at: int
    pair_mean: bool
    network: Literal["linear", "mlp", "module"]
    module: str
    activation: Literal["relu", "gelu", "silu", "tanh"]
    width: int
    depth: int
    parameterisation: Literal["ntk", "standard"]
    initialisation: Literal["usual", "symmetric"]
    optimizer: Literal["adam", "lbfgs", "ogd-average", "proximal"]
    l2: float
    l1: float
    radius: float
    radius_norm: Literal["l2", "l1"]
    epochs: int
    batch: int
    learning_rate: float
    learning_rate_decay: float
    tolerance: float
    patience: int
    cutoff: int
    empty_queries: Literal["zero", "one", "skip"]
