"""The package on an emulated GPU, whose library a child process loads in the place of the package's own."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import olrank

PLAY = """
import sys, threading
import numpy as np
import olrank

draw = np.random.default_rng(1)
queries = draw.random((6, 20, 6), dtype=np.float32)
taste = np.array([1, 0.5, 0, 0, 0, -1], dtype=np.float32)

def play(ranker, rounds):
    for round in range(rounds):
        X = queries[round % 6]
        shown = ranker.rank(X, qid=f"q{round % 6}", k=5)
        ranker.learn(shown, [X[doc] @ taste > 0.3 for doc in shown.docs[:5]])
    return ranker

def make(device, **more):
    return olrank.Ranker("olranknet", features=6, device=device, width=4, steps=3, retrain="every-round", **more)

rankers = {}
def in_thread(name, device):
    rankers[name] = play(make(device), 8)
threads = [threading.Thread(target=in_thread, args=(device, device)) for device in ("cpu", "cuda:0", "cuda:1")]
[one.start() for one in threads]
[one.join() for one in threads]
at = {name: ranker.score(queries[0]) for name, ranker in rankers.items()}
assert np.array_equal(at["cuda:0"], at["cuda:1"])
np.testing.assert_allclose(at["cuda:0"], at["cpu"], atol=2e-4)

rankers["cuda:0"].save(sys.argv[1])
again = olrank.Ranker.load(sys.argv[1], device="cuda:1")
play(again, 3), play(rankers["cuda:0"], 3)
assert np.array_equal(again.score(queries[0]), rankers["cuda:0"].score(queries[0]))

data = olrank.Dataset.from_arrays(queries.reshape(-1, 6), (queries.reshape(-1, 6) @ taste * 2).clip(0, 4).astype(int), group=[20] * 6)
fitted = [olrank.fit(data, device=device, network="mlp", width=4, epochs=3) for device in ("cpu", "cuda")]
# Losses know differences of scores alone: what all of a query share is rounding.
scores = [model.score(queries[1], group=[20]) for model in fitted]
np.testing.assert_allclose(*(one - one.mean() for one in scores), atol=2e-4)
print("played")
"""


def test_package_on_an_emulated_gpu(tmp_path):
    library = pathlib.Path(os.environ.get("OLRANK_EMULATED_LIBRARY", ""))
    if not (library / "libolrank.so").exists():
        pytest.skip("OLRANK_EMULATED_LIBRARY names no folder with a library on emulated GPUs")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "OLRANK_EMULATED_GPUS": "Card=8GB,Card=8GB"}
    done = subprocess.run(
        [sys.executable, "-c", PLAY, str(tmp_path / "ranker")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "played\n"), done.stderr


class TensorOnGpu:
    """What the package uses of a tensor, whose numbers numpy() gives only once it is on the host."""

    __module__ = "torch"
    is_sparse = False

    def __init__(self, values, on_host=False):
        self.values, self.on_host = values, on_host

    def detach(self):
        return self

    def cpu(self):
        return TensorOnGpu(self.values, True)

    def numpy(self):
        assert self.on_host
        return self.values


def test_tensors_of_a_gpu_come_to_the_host(queries):
    ranker = olrank.Ranker("pairrank", features=6)
    shown = olrank.Ranker("pairrank", features=6).rank(queries(1))
    assert np.array_equal(ranker.rank(TensorOnGpu(queries(1))).docs, shown.docs)
    assert np.array_equal(ranker.score(TensorOnGpu(queries(2))), ranker.score(queries(2)))
