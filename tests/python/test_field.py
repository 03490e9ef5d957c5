"""The part of evidence/field.py that needs neither torch nor an old Python: metrics of ir-measures, replay of river."""

import pathlib
import re
import sys

import pytest

import olrank

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = {"ir-measures": 5e-6, "river": 1e-9}  # those of evidence/field.py


@pytest.fixture(autouse=True)
def field(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests/field")
    monkeypatch.chdir(ROOT)


def agree(rows, cases):
    assert len(rows) == cases and all(one["cases"] == 5 and one["difference"] <= LARGEST[one["package"]] for one in rows), rows


def test_metrics_are_those_of_ir_measures():
    pytest.importorskip("ir_measures")
    import metrics

    agree(metrics.by_ir_measures(olrank), 8)


def test_replay_is_that_of_river(tmp_path):
    pytest.importorskip("river")
    import estimates

    agree(estimates.by_river(olrank, tmp_path), 1)


def test_versions_are_those_of_the_table():
    pins = set(re.findall(r"[\w-]+==[\d.]+", (ROOT / "evidence/field.py").read_text()))
    ours = set((ROOT / "tests/python/requirements.txt").read_text().split())
    assert {pin for pin in pins if pin.startswith(("ir-measures", "pytrec", "river"))} <= ours
