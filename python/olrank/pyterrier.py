"""A model of olrank as a transformer of PyTerrier."""

from __future__ import annotations

from typing import Any

import numpy as np

from olrank.errors import Error
from olrank.model import Model

try:
    import pyterrier as pt
except ImportError as error:
    raise Error("OlrankTransformer needs PyTerrier: pip install python-terrier") from error


class OlrankTransformer(pt.Transformer):  # type: ignore[misc]
    """Re-ranks the documents of each query by a model. The table has `qid`, `docno` and `features`, an array for each row."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def transform(self, results: Any) -> Any:
        if not len(results):
            return results.assign(score=np.zeros(0), rank=np.zeros(0, dtype=np.int64))
        results = results.sort_values("qid", kind="stable").reset_index(drop=True)
        X = np.stack(results["features"].to_numpy()).astype(np.float32)
        group = results.groupby("qid", sort=False).size().to_numpy()
        ids = {"qid": results["qid"].drop_duplicates(), "docid": results["docno"]}  # by which a snapshot remembers documents
        return pt.model.add_ranks(results.assign(score=self.model.score(X, group, **ids)))
