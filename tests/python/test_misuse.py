"""Misuse is an exception with a sentence, never the end of the process."""

import random
import subprocess
import sys

import numpy as np
import pytest

import olrank
from olrank import _libraries
from small_experiment import ended
from conftest import refused


def test_what_is_wrong_is_said(queries, tmp_path):
    ranker, other = olrank.Ranker("pairrank", features=6), olrank.Ranker("pairrank", features=6)
    X = queries(1)
    shown = ranker.rank(X)
    data, wide = olrank.synthetic("small", queries=5), [[1.0], [2.0]]
    of, run, refused = olrank.Dataset.from_arrays, olrank.run, olrank.InvalidArgument
    flat = of(np.ones((4, 2)), [1, 1, 1, 1], group=[2, 2])
    (tmp_path / "broken.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:x\n")
    (tmp_path / "log").write_text('{"qid": "1", "shown": [0, 1], "clicks": [1, 0]}\n')
    cases = [
        (lambda: ranker.rank(X[:, :5]), ValueError, "5 columns, and documents here have 6 features"),
        (lambda: ranker.rank(X[0]), ValueError, "1 dimension"),
        (lambda: ranker.rank(X[:0]), ValueError, "no rows"),
        (lambda: ranker.rank(X.astype(complex)), TypeError, "complex"),
        (lambda: ranker.rank(np.full((2, 6), "a")), TypeError, "give real numbers"),
        (lambda: ranker.rank([[1, 2], [1]]), ValueError, "not a table"),
        (lambda: ranker.rank(np.where(X > 0.5, np.nan, X)), ValueError, "is not finite"),
        (lambda: ranker.rank(None), TypeError, "give real numbers"),
        (lambda: ranker.rank(X, k=0), ValueError, "k must be at least 1"),
        (lambda: ranker.rank(X, k=1.5), TypeError, "k must be a whole number"),
        (lambda: ranker.learn(shown, [1]), ValueError, "1 values for 10 shown documents"),
        (lambda: ranker.learn(shown, [2] + [0] * 9), ValueError, "clicks has 2 at rank 1"),
        (lambda: ranker.learn(shown, np.full(10, np.nan)), ValueError, "nan at rank 1"),
        (lambda: ranker.learn(shown, [[1] * 10]), ValueError, "2 dimensions"),
        (lambda: ranker.learn(shown, ["yes"] * 10), TypeError, "give real numbers"),
        (lambda: ranker.learn(X, [1] * 10), TypeError, "must be what rank\\(\\) returned"),
        (lambda: other.learn(shown, [1] + [0] * 9), ValueError, "not from this ranker"),
        (lambda: olrank.Ranker("pairrank", features=0), ValueError, "features must be at least 1"),
        (lambda: olrank.Ranker("pairrank", features="6"), TypeError, "features must be a whole number"),
        (lambda: ranker.rank(np.ma.masked_array(X)), TypeError, "has a mask"),
        (lambda: olrank.evaluate([1], [1.0], [1], at=[1.5]), ValueError, "at must be whole numbers"),
        (lambda: olrank.Ranker("pairrank", features=6, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: olrank.Ranker("pairank", features=6), ValueError, "Did you mean 'pairrank'"),
        (lambda: olrank.Ranker("external", features=6), ValueError, "experiments only"),
        (lambda: olrank.Ranker("pairrank", features=6, normalise="zscore"), ValueError, "zscore"),
        (lambda: olrank.Ranker.load("/nowhere/at/all"), olrank.Error, "/nowhere/at/all"),
        (lambda: olrank.Ranker("pdgd", features=6).widths(X), ValueError, "has no widths"),
        (lambda: olrank.load_model(__file__), olrank.Error, "test_misuse.py"),
        (lambda: olrank.settings("rankers"), ValueError, "no table 'rankers'"),
        (lambda: olrank.run("nowhere.toml"), ValueError, "'nowhere.toml' cannot be read"),
        (lambda: olrank.run({}, resume=True, force=True), ValueError, "choose one of them"),
        (lambda: olrank.Results("/tmp"), ValueError, "no results"),
        (lambda: olrank.fit({"a": [1]}), TypeError, "^train is of the type dict: give a Dataset"),
        (lambda: olrank.fit(olrank.synthetic("small", queries=5), 3), TypeError, "^validation is of the type int: give a Dataset"),
        (lambda: olrank.evaluate([1, 0], [1.0, 2.0], [[1], [1]]), ValueError, r"^qid has the shape \(2, 1\) for 2 documents: give one value"),
        (lambda: olrank.evaluate([1, 0], [1.0, 2.0], [1]), ValueError, "^qid has 1 values for 2 documents"),
        (lambda: of([[1.0]], [1], None), refused, "either qid"),
        (lambda: of([[1.0]], [1, 2], [1, 1]), refused, "2 grades for 1 rows"),
        (lambda: of(wide, [1, 0], [1]), refused, "1 values for 2 documents"),
        (lambda: of(wide, [1, 0], np.array(["a", 1], dtype=object)), refused, "qid has values of several types"),
        (lambda: of([[1.0]], [0.5], [1]), refused, "grade 0.5 for document 0"),
        (lambda: of([[1.0]], [-1], [1]), refused, "grade -1"),
        (lambda: of([[1.0]], [32], [1]), refused, "grade 32"),
        (lambda: of([[np.nan]], [1], [1]), refused, "Feature 1 of document 0 is not finite"),
        (lambda: of([[1e300]], [1], [1]), refused, "Feature 1 of document 0 is not finite"),
        (lambda: of([1.0], [1], [1]), refused, "1 dimension"),
        (lambda: olrank.load_letor(tmp_path / "broken.txt"), olrank.DataError, "broken.txt:2:11"),
        (lambda: olrank.load_letor(tmp_path / "nowhere.txt"), olrank.Error, "nowhere"),
        (lambda: olrank.synthetic("mslr-lik"), refused, "mslr-lik"),
        (lambda: olrank.evaluate([1], [1.0], [1], metrics=["ndgc@5"]), refused, "ndgc"),
        (lambda: olrank.evaluate([1], [1.0, 2.0], [1]), refused, "2 scores for 1 documents"),
        (lambda: olrank.evaluate([1, 0], [float("nan"), 1.0], [1, 1]), olrank.NumericError, "finite|nan|NaN"),
        (lambda: olrank.fit(data, los="listnet"), refused, "los.*loss"),
        (lambda: olrank.fit(data, patience=3), refused, "validation"),
        (lambda: olrank.fit(data, of([[1.0]], [1], [1])), refused, "10 features and the validation part 1|features"),
        (lambda: olrank.fit(flat), olrank.Error, "one grade|same grade"),
        (lambda: olrank.fit(data, estimator="dr"), refused, "say how to learn from a log: give log="),
        (lambda: olrank.fit(None, log=tmp_path / "log"), olrank.DataError, "give the data that the log refers to as train"),
        (lambda: ranker.partial_fit(queries(1), [0] * 20), TypeError, "data is a list: give a log and the Dataset"),
        (lambda: run({"data": {"train": data.X}}), TypeError, "data.train is a ndarray: give a Dataset"),
        (lambda: run({"data": {"sorce": "synth:small"}}), refused, "sorce.*source"),
        (lambda: run({"data": 5}), refused, "must be a table"),
        (lambda: run({"datta": {}}), refused, "datta"),
        (lambda: run({"data": {"source": "synth:small"}, "ranker": [{"kind": "pairank"}]}), refused, "pairank.*pairrank"),
        (lambda: run({"data": {"source": "synth:small"}, "ranker": [{"kind": "olranknet", "alpha": -1}]}), refused, "alpha"),
        (lambda: run({}), refused, "No data given"),
        (lambda: run({"data": {"source": {"a": 1}}}), refused, "not a table"),
    ]
    for number, (call, error, message) in enumerate(cases):
        with pytest.raises(error, match=message):
            call()
            pytest.fail(f"case {number} was accepted")
    before = ranker.fingerprint
    ranker.learn(shown, [1] + [0] * 9)
    assert ranker.fingerprint != before


def test_a_state_that_is_damaged_is_refused(queries, tmp_path):
    ranker = olrank.Ranker("pairrank", features=6)
    for number in range(5):
        shown = ranker.rank(queries(number))
        ranker.learn(shown, [1] + [0] * 9)
    ranker.save(tmp_path / "state")
    whole = (tmp_path / "state").read_bytes()
    draw = random.Random(1)
    for _ in range(50):
        place = draw.randrange(len(whole))
        (tmp_path / "state").write_bytes(whole[:place] + bytes([whole[place] ^ (1 << draw.randrange(8))]) + whole[place + 1:])
        with pytest.raises(olrank.Error):
            olrank.Ranker.load(tmp_path / "state")
        (tmp_path / "state").write_bytes(whole[:place])
        with pytest.raises(olrank.Error):
            olrank.Ranker.load(tmp_path / "state")


VALUES = [
    None, True, -1, 0, 3, 2**40, 2**70, 1.5, float("nan"), float("inf"), "", "x", "pairrank", b"x", [], [[]], [1], [[1.0]], {}, (),
    object(), int, np.zeros((0, 6), np.float32), np.zeros((3, 6), np.float32), np.zeros((3, 6), np.float64), np.zeros((3, 7), np.float32),
    np.zeros((6, 3), np.float32).T, np.full((3, 6), np.nan, np.float32), np.zeros((3, 6), complex), np.zeros((3, 6), object),
    np.zeros((3, 6), "U1"), np.zeros(10, bool), np.ones(10, np.int8), np.zeros((1, 3, 6), np.float32), np.zeros((3, 6), np.float16),
    np.zeros((3, 6), ">f4"), np.array(5), memoryview(b"abc"),
]  # fmt: skip


def test_random_misuse_never_ends_the_process():
    draw = random.Random(7)
    ranker = olrank.Ranker("olranknet", features=6, width=4, steps=2)
    shown = ranker.rank(np.random.default_rng(1).random((12, 6), np.float32))
    data = olrank.synthetic("small", queries=3)

    def value():
        return draw.choice([*VALUES, shown, ranker, data])

    calls = [
        lambda: ranker.rank(value(), k=draw.choice([None, value()]), qid=value(), widths=value()),
        lambda: ranker.learn(value(), value()),
        lambda: ranker.learn(shown, value()),
        lambda: ranker.score(value()),
        lambda: ranker.widths(value()),
        lambda: olrank.Ranker(value(), features=value(), cutoff=value(), seed=value()),
        lambda: olrank.Ranker("olranknet", features=6, **{draw.choice(["width", "alpha", "covariance", "x", "lambda"]): value()}),
        lambda: olrank.Dataset.from_arrays(value(), value(), qid=value()),
        lambda: olrank.Dataset.from_arrays(value(), value(), group=value()),
        lambda: olrank.evaluate(value(), value(), value(), at=value()),
        lambda: olrank.evaluate(data, value(), at=value(), convention=value(), max_grade=value()),
        lambda: olrank.load_letor(value(), part=value(), fold=value()),
        lambda: olrank.Ranker.load(value()),
        lambda: olrank.load_model(value()),
        lambda: olrank.fit(data, validation=value(), loss=value(), epochs=1),
        lambda: olrank.run(value(), progress=False),
        lambda: olrank.run({"data": {"source": "synth:small?queries=3"}, "protocol": {"rounds": 1}, "ranker": value()}, progress=False),
        lambda: ranker.__setstate__(value()),
    ]  # fmt: skip
    refused = 0
    for _ in range(600):
        try:
            draw.choice(calls)()
        except (ValueError, TypeError, olrank.Error, OverflowError, AttributeError, MemoryError, OSError):
            refused += 1
    assert refused > 400


def importing(folder):
    """Returns what importing the package prints on standard error where the modules of a folder come first."""
    environment = {"PYTHONPATH": f"{folder}:{':'.join(sys.path)}", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", "import olrank"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_another_torch_is_refused(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.4.1'\n")
    from olrank._build import TORCH

    assert f"olrank was built for torch {TORCH}, and torch 2.4.1 is installed: pip install torch=={TORCH}" in importing(tmp_path)


def test_the_engine_of_olrank_torch_goes_before_the_own_one(tmp_path):
    for folder in ("olrank_torch", "olrank_torch-0.dist-info"):
        (tmp_path / folder).mkdir()
    (tmp_path / "olrank_torch" / "_build.py").write_text("TORCH, LIBTORCH, LIBRARIES = '9.8.7', '/', ('libc10.so',)\n")
    for version, sentence in (("0.0.1", f"olrank-torch 0.0.1 is beside olrank {olrank.__version__}: pip install olrank-torch=={olrank.__version__}"),
                              (olrank.__version__, "torch 9.8.7")):  # fmt: skip
        (tmp_path / "olrank_torch-0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: olrank-torch\nVersion: {version}\n")
        assert sentence in importing(tmp_path)


def test_a_forked_child_may_drop_what_has_threads():
    code = """
        import os, sys
        import numpy as np, olrank
        ranker = olrank.Ranker("pairrank", features=6, threads=3)
        shown = ranker.rank(np.random.default_rng(1).random((12, 6)))
        child = os.fork()
        if child == 0:
            ranker = olrank.Ranker("pairrank", features=6)
            ranker.rank(np.random.default_rng(1).random((12, 6)))
            del ranker
            os._exit(0)
        _, status = os.waitpid(child, 0)
        ranker.learn(shown, [1] + [0] * 9)
        print(os.waitstatus_to_exitcode(status))
    """
    assert ended(code)[:2] == (0, "0\n")


def test_a_forked_child_ends_although_threads_were_in_the_engine():
    code = """
        import os, sys, threading, time
        import numpy as np, olrank
        X = np.random.default_rng(1).random((12, 6))  # small, so that threads often wait for Python's lock
        def work():
            ranker = olrank.Ranker("pairrank", features=6)
            while True:
                ranker.rank(X)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(6):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                sys.exit(0)
            os.waitpid(child, 0)
    """
    # A child that waited for the parent's threads would take five seconds.
    assert ended(code, 25)[0] == 0


def test_threads_in_the_engine_do_not_hold_up_the_end():
    code = """
        import threading, time
        import numpy as np, olrank
        X = np.random.default_rng(1).random((200, 50))
        def work():
            ranker = olrank.Ranker("pairrank", features=50)
            while True:
                ranker.learn(ranker.rank(X), [1] + [0] * 9)
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
    """
    for _ in range(3):
        assert ended(code) == (0, "", "")


def test_fit_ends_within_a_second_of_ctrl_c():
    code = """
        import os, signal, threading, time
        import olrank
        signal.signal(signal.SIGINT, signal.default_int_handler)
        data = olrank.synthetic("mslr-like", queries=300)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            olrank.fit(data, loss="lambdarank", network="mlp", width=64, epochs=10000, threads=1)
        except KeyboardInterrupt:
            print(time.monotonic() - began < 2.0)
    """
    assert ended(code)[:2] == (0, "True\n")


def test_names_that_letor_text_cannot_hold_are_refused(tmp_path):
    for name in ("a b", "a#b", "1\n2 qid:9 1:1", "", "tab\t", "\x7f"):
        data = olrank.Dataset.from_arrays([[1.0], [2.0]], [0, 1], qid=[name, "right"])
        refused("Query 1 has a name that LETOR text cannot hold", lambda: data.save(tmp_path / "data.txt"), ValueError)
        assert not (tmp_path / "data.txt").exists()


def test_a_path_with_nul_is_refused(queries, tmp_path):
    ranker = olrank.Ranker("pairrank", features=6)
    (tmp_path / "state").write_text("precious")
    path = f"{tmp_path}/state\0.other"
    for call in (ranker.save, ranker.save_model, olrank.Ranker.load, olrank.load_model, olrank.load_letor, olrank.synthetic("small", queries=2).save,
                 lambda name: olrank.run({}, out=name), lambda name: olrank.run({"data": {"source": name}}, progress=False),
                 lambda name: olrank.Ranker("olranknet", features=6, start_from=name)):
        refused("NUL", lambda: call(path), ValueError)
    assert (tmp_path / "state").read_text() == "precious"


def test_a_failed_import_elsewhere_changes_nothing_here():
    code = """
        import sys
        import numpy as np, olrank
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        ranker = olrank.Ranker("pairrank", features=6)
        other = interpreters.create()
        try:
            interpreters.run_string(other, "import olrank")
        except BaseException as error:
            print(type(error).__name__, file=sys.stderr)
        interpreters.destroy(other)
        shown = ranker.rank(np.random.default_rng(1).random((12, 6)))
        ranker.learn(shown, [1] + [0] * 9)
        try:
            olrank.Ranker("pairrank", features=0)
        except olrank.InvalidArgument as error:
            print(error)
    """
    code, out, err = ended(code)
    assert code == 0 and out.startswith("features must be at least 1"), err


def test_a_newer_c_library_is_named():
    error = ImportError("/lib/libc.so.6: version `GLIBC_9.38' not found (required by _core.abi3.so)")
    assert "glibc 9.38 or newer, and this system has 2." in str(_libraries.explained(error))
    other = ImportError("libz.so.1: cannot open shared object file")
    assert _libraries.explained(other) is other
