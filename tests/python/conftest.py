"""The tests share these: small queries and the program, where it is built."""

import os
import subprocess

import numpy as np
import pytest

import olrank


@pytest.fixture
def queries():
    """Queries of 20 documents with 6 features, a function of their number alone."""

    def make(number, docs=20, features=6):
        return np.random.default_rng(number).random((docs, features), dtype=np.float32)

    return make


@pytest.fixture(scope="session")
def program():
    """Runs the program, and returns what it printed."""
    path = os.environ.get("OLRANK_PROGRAM")
    if not path:
        pytest.skip("OLRANK_PROGRAM names no program")
    return lambda *words: subprocess.run([path, *map(str, words)], check=True, capture_output=True, text=True, timeout=900).stdout


def refused(sentence, call, error=olrank.InvalidArgument):
    """Fails unless the call raises this error, whose sentence matches."""
    with pytest.raises(error, match=sentence):
        call()
