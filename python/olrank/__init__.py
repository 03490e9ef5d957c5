"""olrank learns a ranking function online, from clicks, and knows which orders it is sure of.

    ranker = olrank.Ranker(features=136)
    shown = ranker.rank(X)               # X: one row a document
    ranker.learn(shown, clicks)          # clicks: one truth value for each shown document

docs/PYTHON.md has a page of examples.
"""

import atexit

from olrank import _libraries

_libraries.load()

try:
    from olrank import _core
except ImportError as error:
    raise _libraries.explained(error) from None
from olrank import _onnx  # noqa: E402

# Threads that are still in the engine then stay there, instead of ending the process with an abort.
atexit.register(_core.end_interpreter)
_core.read_onnx_by(_onnx.read)

from olrank._core import RankerQuery  # noqa: E402
from olrank._external import CertainRanker, Metric, OnlineRanker, User, UserQuery  # noqa: E402
from olrank.client import Client, ServiceError  # noqa: E402
from olrank.data import Dataset, Query, load_ir_dataset, load_letor, load_table, synthetic  # noqa: E402
from olrank.errors import DataError, Error, InvalidArgument, NumericError  # noqa: E402
from olrank.experiment import Callback, Evaluation, Results, Trial, Tuning, report, run, tune  # noqa: E402
from olrank.logs import click_log, fit_clicks, load_baidu_ultr, load_lightgbm, ope  # noqa: E402
from olrank.metrics import evaluate  # noqa: E402
from olrank.model import Model, fit, load_model  # noqa: E402
from olrank.program import export, replay, trace  # noqa: E402
from olrank.ranker import Ranker, Shown  # noqa: E402
from olrank.settings import Setting, settings  # noqa: E402

__version__ = _core.version()

__all__ = [
    "Callback",
    "CertainRanker",
    "Client",
    "DataError",
    "Dataset",
    "Error",
    "Evaluation",
    "InvalidArgument",
    "Metric",
    "Model",
    "NumericError",
    "OnlineRanker",
    "Query",
    "Ranker",
    "RankerQuery",
    "Results",
    "ServiceError",
    "Setting",
    "Shown",
    "Trial",
    "Tuning",
    "User",
    "UserQuery",
    "click_log",
    "evaluate",
    "export",
    "fit",
    "fit_clicks",
    "load_baidu_ultr",
    "load_ir_dataset",
    "load_letor",
    "load_lightgbm",
    "load_model",
    "load_table",
    "ope",
    "replay",
    "report",
    "run",
    "settings",
    "synthetic",
    "trace",
    "tune",
]
