"""Models in ONNX, whose scores onnxruntime computes."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from olrank.errors import DataError, NumericError

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def read(data: bytes) -> tuple[int, Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float64]]]:
    """The number of features, and the model as a function of one query's raw documents. The engine calls it for each file."""
    try:
        import onnxruntime
    except ImportError:
        raise DataError("onnxruntime computes the scores of an ONNX model, and this Python lacks it: pip install onnxruntime.") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # so that sums have one order
    options.log_severity_level = 4  # errors are raised
    # Weights outside the file would be sought where the program runs.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        where = "another file, where external_data=False of torch.onnx.export makes one"
        raise DataError(f"onnxruntime cannot read this ONNX model: it is damaged, cut short, or has its weights in {where} ({_short(error)}).") from None
    taken, given = session.get_inputs(), session.get_outputs()
    if len(taken) != 1 or len(taken[0].shape) != 2 or taken[0].type not in _TYPES or not isinstance(taken[0].shape[1], int):
        wanted = "export it with one input, documents × features, float or double, whose number of features is fixed"
        raise DataError(f"This ONNX model takes {_described(taken)}: {wanted}.")
    name = next((output.name for output in given if output.name == "scores" or len(given) == 1), None)
    if name is None:
        raise DataError(f"This ONNX model gives {_described(given)}: export it with one output, or call that of the scores 'scores'.")
    kind, features = _TYPES[taken[0].type], taken[0].shape[1]

    def computed(docs: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        try:
            scores = np.asarray(session.run([name], {taken[0].name: docs.astype(kind, copy=False)})[0])
        except Exception as error:
            raise DataError(f"This ONNX model does not score a table of documents: export it with a free number of rows ({_short(error)}).") from None
        if scores.size != len(docs) or scores.dtype.kind not in "fiu":
            raise DataError(f"This ONNX model gives {scores.size} numbers for {len(docs)} documents: export the score of each document alone.")
        return scores

    def score(docs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        scores = computed(docs)
        if not np.isfinite(scores).all():
            raise NumericError("The ONNX model gives a score that is not finite: check the features and the model.")
        return np.ascontiguousarray(scores, dtype=np.float64).ravel()

    computed(np.zeros((2, features), dtype=np.float32))  # raises what each call would raise; a model need not score zeros
    return features, score


def _described(values: list[Any]) -> str:
    return " and ".join(f"'{value.name}' ({value.type} of {value.shape})" for value in values)


def _short(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
