"""Baidu-ULTR's files, made here in their published layout, become data and logs. Those of AOL4FOLTR are in test_tables.py."""

import gzip
import json
import warnings

import numpy as np
import pytest

import olrank
from conftest import refused


def words(*tokens):
    return "\x01".join(map(str, tokens))


def shown(position, url, title, abstract, click):
    """A line of 32 fields: position, url, title, abstract, type, click, and what users did on the page."""
    return "\t".join([str(position), url, words(*title), words(*abstract), "0", str(click), *["0"] * 26])


SESSIONS = [
    "\t".join(["17", words(5, 6), words(9)]),
    shown(1, "a", [5, 1], [6, 6, 2], 0),
    shown(2, "b", [4], [5], 1),
    "\t".join(["23", words(8), ""]),
    shown(1, "c", [8], [], 0),
    "\t".join(["17", words(5, 6), ""]),
    shown(2, "a", [5, 1], [6, 6, 2], 1),
    shown(1, "d", [6, 5], [3], 0),
]


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def sessions(tmp_path):
    def write(lines=SESSIONS, name="part-00000.gz"):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write("".join(line + "\n" for line in lines))
        return tmp_path / name

    return write


def test_sessions_of_baidu(sessions, tmp_path):
    log = tmp_path / "log.jsonl"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = olrank.load_baidu_ultr(sessions(), log)
    assert data.qids == ["17", "23"] and data.group.tolist() == [3, 1]  # a, b, d; c
    assert data.y.tolist() == [1, 1, 0, 0]
    assert lines_of(log) == [
        {"qid": "17", "shown": [0, 1], "clicks": [0, 1]},
        {"qid": "23", "shown": [0], "clicks": [0]},
        {"qid": "17", "shown": [2, 0], "clicks": [0, 1]},
    ]
    assert olrank.Ranker("pdgd", features=9).partial_fit(log, data).rounds == 3
    # A document has the query's length, and of each text its length, the query's tokens in it, their share, and how often they are there.
    assert data.X[0].tolist() == [2, 2, 1, 0.5, 1, 3, 1, 0.5, 2]
    assert data.X[3].tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0]
    own = olrank.load_baidu_ultr(sessions(), features=lambda query, title, abstract: [sum(query), sum(title), len(abstract)])
    assert own.X[0].tolist() == [11, 6, 3]
    assert len(olrank.load_baidu_ultr(sessions(), log, lists=1)) == 1 and len(lines_of(log)) == 1


def test_a_list_with_gaps_or_a_document_twice_moves_up(sessions, tmp_path):
    lines = [SESSIONS[0], shown(1, "a", [1], [1], 0), shown(2, "a", [1], [1], 1), shown(5, "b", [1], [1], 1)]
    with pytest.warns(UserWarning, match="1 lists of .*part-00000.gz lack a position or have a document twice: the documents below move up"):
        olrank.load_baidu_ultr(sessions(lines), tmp_path / "log.jsonl")
    assert lines_of(tmp_path / "log.jsonl") == [{"qid": "17", "shown": [0, 1], "clicks": [0, 1]}]


def test_annotations_of_baidu(sessions, tmp_path):
    lines = ["\t".join([qid, words(5), words(5, 1), words(*range(3)), grade, "2"]) for qid, grade in (("1", "4"), ("1", "0"), ("2", "2"))]
    data = olrank.load_baidu_ultr(sessions(lines))
    assert data.y.tolist() == [4, 0, 2] and data.group.tolist() == [2, 1] and data.features == 9
    refused("has grades and no lists that were shown: leave log out", lambda: olrank.load_baidu_ultr(sessions(lines), tmp_path / "log.jsonl"))


def test_features_of_baidu(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    embedding = np.arange(12).reshape(4, 3).astype(np.float16)
    columns = {
        "query_no": [0, 0, 1, 1], "query_id": ["q", "q", "q", "q"], "url_md5": ["a", "b", "b", "a"], "position": [2, 1, 1, 2], "click": [1, 0, 0, 1],
        "query_document_embedding": list(embedding), "bm25": [0.5, 1.5, 2.5, 3.5],
    }
    feather.write_feather(pyarrow.table(columns), tmp_path / "part-1_split-0.feather")
    data = olrank.load_baidu_ultr(tmp_path / "part-1_split-0.feather", tmp_path / "log.jsonl")
    assert data.X.tolist() == [[0, 1, 2, 0.5], [3, 4, 5, 1.5]] and data.y.tolist() == [1, 0]
    assert lines_of(tmp_path / "log.jsonl") == [{"qid": "q", "shown": [1, 0], "clicks": [0, 1]}] * 2
    narrow = olrank.load_baidu_ultr(tmp_path / "part-1_split-0.feather", features=["bm25"])
    assert narrow.X.tolist() == [[0.5], [1.5]]
    graded = {name: columns[name] for name in ("query_id", "query_document_embedding", "bm25")} | {"text_md5": list("abcd"), "label": [3, 0, 1, 2]}
    feather.write_feather(pyarrow.table(graded), tmp_path / "validation.feather")
    assert olrank.load_baidu_ultr(tmp_path / "validation.feather").y.tolist() == [3, 0, 1, 2]
    del columns["position"]
    feather.write_feather(pyarrow.table(columns), tmp_path / "bad.feather")
    refused("position", lambda: olrank.load_baidu_ultr(tmp_path / "bad.feather"))


def test_what_is_wrong_with_files_of_baidu_is_said(sessions, tmp_path):
    cases = [
        (SESSIONS[1:2], "line 1: it has no query's line above it, where a query has 3"),
        ([SESSIONS[0], "1\ta\t5"[:3]], "line 2: it has 2 fields, where a query has 3, an annotation 6 and a shown document 32 between tabs"),
        ([SESSIONS[0], shown("x", "a", [1], [1], 0)], "line 2: invalid literal for int"),
        ([SESSIONS[0], shown(1, "a", [1], ["x"], 0)], "line 2: invalid literal for int"),
        ([SESSIONS[0], shown(1, "a", [1], [1], 2)], "line 2: 2 at position 1 is no click at one"),
        ([SESSIONS[0], shown(0, "a", [1], [1], 1)], "line 2: 1 at position 0 is no click at one"),
        ([SESSIONS[0], shown(1, "a", [1], [1], 0), shown(1, "b", [1], [1], 0)], "two documents at position 1 of a list of query '17'"),
        (["\t".join(["1", "5", "5", "5", "9", "2"])], "line 1: 9 at position 0 is no grade"),
        ([], "has no documents"),
        (SESSIONS[:1], "has no documents"),
    ]
    for lines, said in cases:
        refused(said, lambda: olrank.load_baidu_ultr(sessions(lines)), olrank.DataError)
    (tmp_path / "torn.gz").write_bytes(sessions().read_bytes()[:-12])
    for name in ("torn.gz", "missing.gz"):
        refused(f"{name} cannot be read", lambda: olrank.load_baidu_ultr(tmp_path / name), olrank.DataError)
    refused("features must be a function of tokens", lambda: olrank.load_baidu_ultr(sessions(), features=["bm25"]))
    with pytest.raises(ZeroDivisionError):  # a fault of the caller's function stays the caller's
        olrank.load_baidu_ultr(sessions(), features=lambda *texts: 1 / 0)
