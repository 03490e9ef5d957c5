#!/usr/bin/env python3
"""Measures what a round costs more from Python than from C++: the same queries and clicks through both, in one process and in turn.

    python bench/python_rounds.py [--library build/bin/liblibrary_bench.so] [--rounds 1000] [--times 5] [--out FILE]

Run it where the package is installed. Both have to end in the same state, bit for bit.
"""

import argparse
import ctypes
import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np

import olrank

DOCS, FEATURES = 120, 136
CASES = {
    "clickgp": {},
    "pairrank": {},
    "olranknet, m = 16": {"width": 16, "retrain": "growth"},
    "olranknet, m = 100": {"width": 100, "retrain": "growth"},
}


CHUNK = 10  # rounds before it is the other's turn: noise of the machine hits both


def play_both(library, kind, settings, queries):
    """Microseconds a round in C++ and in Python."""
    lines = "".join(f"{key}={value}\n" for key, value in settings.items())
    theirs = library.bench_ranker(kind.encode(), FEATURES, lines.encode())
    ranker = olrank.Ranker(kind, features=FEATURES, **settings)
    cpp = python = 0.0
    for first in range(0, len(queries), CHUNK):
        chunk = queries[first : first + CHUNK]
        for is_cpp in (True, False) if first // CHUNK % 2 else (False, True):
            begin = time.perf_counter()
            if is_cpp:
                library.bench_play(theirs, chunk.ctypes.data, len(chunk), DOCS)
                cpp += time.perf_counter() - begin
                continue
            for X in chunk:
                shown = ranker.rank(X)
                ranker.learn(shown, X[shown.docs, 0] > 0.7)
            python += time.perf_counter() - begin
    fingerprint = ctypes.create_string_buffer(32)
    library.bench_end(theirs, fingerprint)
    if fingerprint.raw.decode() != ranker.fingerprint:
        raise SystemExit(f"{kind}: Python ends in {ranker.fingerprint}, C++ in {fingerprint.raw.decode()}")
    return 1e6 * cpp / len(queries), 1e6 * python / len(queries)


def load(path):
    library = ctypes.CDLL(path)
    library.bench_ranker.restype = ctypes.c_void_p
    library.bench_ranker.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_char_p]
    library.bench_play.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    library.bench_end.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return library


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", default="build/bin/liblibrary_bench.so")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--out", help="also write the figures as JSON")
    options = parser.parse_args()
    library = load(options.library)
    queries = np.random.default_rng(1).random((options.rounds, DOCS, FEATURES), dtype=np.float32)
    rows = []
    print(f"{options.rounds} rounds, V = {DOCS}, d = {FEATURES}; microseconds a round, medians of {options.times} times in turn")
    print(f"{'ranker':<20} {'C++':>9} {'Python':>9} {'more':>7} {'ratio':>7}")
    for name, settings in CASES.items():
        pairs = [play_both(library, name.partition(",")[0], settings, queries) for _ in range(options.times)]
        cpp, python = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        more = statistics.median(python - cpp for cpp, python in pairs)
        ratio = statistics.median(python / cpp for cpp, python in pairs)
        rows.append({"ranker": name, "cpp_us": cpp, "python_us": python, "more_us": more, "ratio": ratio})
        print(f"{name:<20} {cpp:9.1f} {python:9.1f} {more:7.1f} {ratio:7.3f}", flush=True)
    if options.out:
        about = {"rounds": options.rounds, "docs": DOCS, "features": FEATURES, "python": platform.python_version()}
        Path(options.out).write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
