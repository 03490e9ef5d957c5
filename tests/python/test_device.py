"""The package on an emulated GPU, whose library a child process loads in the place of the package's own."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import olrank
from olrank._arrays import as_features

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


TENSORS = """
import ctypes, os, sys, types
import numpy as np
import pytest
import olrank

library = ctypes.CDLL(os.path.join(os.environ["LD_LIBRARY_PATH"], "libolrank.so"))
library.olrank_emulated_upload.restype = ctypes.c_void_p
library.olrank_emulated_upload.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64]
capsule_of = ctypes.pythonapi.PyCapsule_New
capsule_of.restype, capsule_of.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

class Managed(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("gpu", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]

class Memory:
    # Holds what a library with DLPack alone hands over: memory of an emulated GPU, and how its numbers lie there.
    def __init__(self, values, gpu=0):
        memory = np.ascontiguousarray(values, dtype=np.float32)
        numbers = ctypes.c_int64 * values.ndim
        before = np.concatenate([[np.nan, np.nan], memory.ravel()], dtype=np.float32)
        there = library.olrank_emulated_upload(gpu, before.ctypes.data, before.size)
        self.values, self.exported_to = values, None
        self.sizes = numbers(*values.shape)
        self.strides = numbers(*[stride // values.itemsize for stride in values.strides])
        bits = 8 * values.itemsize
        self.managed = Managed(there, 2, gpu, values.ndim, 2, bits, 1, self.sizes, self.strides, 8, None, None)

    def __dlpack_device__(self):
        return 2, self.managed.gpu

    def __dlpack__(self, *, stream):
        self.exported_to = stream
        return capsule_of(ctypes.addressof(self.managed), b"dltensor", None)

selected = 0

class Selected:
    def __init__(self, device):
        self.gpu = device.index

    def __enter__(self):
        global selected
        self.before, selected = selected, self.gpu

    def __exit__(self, *error):
        global selected
        selected = self.before

class Tensor(Memory):
    # A tensor of torch, which refuses to hand over what has a gradient or lies on a GPU that is not selected.
    __module__ = "torch.of.two.GPUs"
    is_sparse = detached = False
    shape, ndim = property(lambda self: self.values.shape), property(lambda self: self.values.ndim)
    dtype = property(lambda self: f"torch.{self.values.dtype}")
    device = property(lambda self: types.SimpleNamespace(index=self.managed.gpu))

    def stride(self, dimension):
        return self.strides[dimension]

    def detach(self):
        self.detached = True
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    def __dlpack__(self, *, stream):
        assert self.detached
        if selected != self.managed.gpu:
            raise BufferError("Can't export tensors on a different CUDA device index.")
        return super().__dlpack__(stream=stream)

sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(device=Selected))
X = np.random.default_rng(1).random((6, 20, 6), dtype=np.float32)
there, of_host = (olrank.Ranker("olranknet", features=6, device="cuda:1", width=4, steps=3) for _ in range(2))
for docs in X[:5]:
    tensor = Tensor(docs, 1)
    shown, expected = there.rank(tensor, qid="q", widths=True), of_host.rank(docs, qid="q", widths=True)
    assert tensor.exported_to > 2 and selected == 0  # 0 is none, 1 and 2 are default streams
    assert np.array_equal(shown.docs, expected.docs) and np.array_equal(shown.widths, expected.widths)
    clicks = docs[shown.docs, 0] > 0.5
    there.learn(shown, clicks), of_host.learn(expected, clicks)
assert there.fingerprint == of_host.fingerprint
assert np.array_equal(there.score(Tensor(X[5], 1)), of_host.score(X[5]))
assert np.array_equal(there.widths(Tensor(X[5], 1)), of_host.widths(X[5]))
assert np.array_equal(there.score(Memory(X[5], 1)), of_host.score(X[5]))
for tensor in [
    Tensor(X[0], 0), Tensor(np.asfortranarray(X[0]), 1), Tensor(np.broadcast_to(X[0, 0], (20, 6)), 1), Tensor(X[0].astype(np.float64), 1),
    Tensor(X[0].astype(np.float16), 1), Tensor(np.rint(4 * X[0]).astype(np.int32), 1),
]:
    assert np.array_equal(there.score(tensor), of_host.score(tensor.values)) and tensor.exported_to is None

bad = X[0].copy()
bad[3, 2] = np.nan
for tensor, error, sentence in [
    (Memory(X[0], 0), TypeError, "copy it to the host"),
    (Memory(X[0].astype(np.float64), 1), TypeError, "must be float32"),
    (Memory(np.asfortranarray(X[0]), 1), ValueError, "next to each other"),
    (Tensor(X[0, 0], 1), ValueError, "1 dimension"),
    (Tensor(X[0, :, :5], 1), ValueError, "of 5 features"),
    (Tensor(bad, 1), ValueError, "Feature 3 of document 3 is not finite."),
]:
    with pytest.raises(error, match=sentence) as raised:
        there.rank(tensor)
    assert str(raised.value).count(". ") == 0
assert there.rounds == 5
with pytest.raises(TypeError, match="X lies on a GPU, where this does not compute"):
    olrank.Ranker("pairrank", features=6).score(Memory(X[0]))
print("played")
"""


@pytest.mark.parametrize("script", [PLAY, TENSORS], ids=["numbers", "tensors"])
def test_package_on_emulated_gpus(script, tmp_path):
    library = pathlib.Path(os.environ.get("OLRANK_EMULATED_LIBRARY", ""))
    if not (library / "libolrank.so").exists():
        pytest.skip("OLRANK_EMULATED_LIBRARY names no folder with a library on emulated GPUs")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "OLRANK_EMULATED_GPUS": "Card=8GB,Card=8GB"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "ranker")], env=environment, capture_output=True, text=True, timeout=900
    )
    assert (done.returncode, done.stdout) == (0, "played\n"), done.stderr


class TensorOnGpu:
    """Has what the package uses of a tensor, whose numbers numpy() gives only once it is on the host."""

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


def test_tensors_of_a_gpu_come_to_the_host_for_a_ranker_on_the_cpu(queries):
    ranker = olrank.Ranker("pairrank", features=6)
    shown = olrank.Ranker("pairrank", features=6).rank(queries(1))
    assert np.array_equal(ranker.rank(TensorOnGpu(queries(1))).docs, shown.docs)
    assert np.array_equal(ranker.score(TensorOnGpu(queries(2))), ranker.score(queries(2)))


def test_tensors_of_the_host_are_read_where_they_are(queries):
    class OnHost:
        """An array of a library that knows DLPack alone."""

        values = queries(1)

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **how):
            return self.values.__dlpack__(**how)

    assert as_features(OnHost(), 6).ctypes.data == OnHost.values.ctypes.data
