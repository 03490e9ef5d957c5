"""Tables as users have them: pandas, and by Arrow's interface polars, pyarrow and DuckDB; files; and what is refused."""

import decimal
import json
import os
import sys

import numpy as np
import pytest

import olrank
from olrank._arrays import columns_of
from conftest import refused

COLUMNS = {"a": [0.5, 1.0, 0.25, 2.0], "b": [1, 2, 3, 4], "c": [True, False, True, False], "y": [2, 0, 1, 0], "qid": ["x", "x", "a longer name", "y"]}


def tables(columns):
    for library in ("pandas", "polars", "pyarrow", "duckdb"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        if library == "duckdb":
            # DuckDB hands tables on with Arrow's interface alone.
            rows = ", ".join(str(row) for row in zip(*columns.values())).replace("None", "NULL")
            yield module.sql(f"SELECT * FROM (VALUES {rows}) t({', '.join(columns)})")
        else:
            yield getattr(module, "table" if library == "pyarrow" else "DataFrame")(columns)


def expected():
    return olrank.Dataset.from_arrays(np.column_stack([COLUMNS[one] for one in "abc"]), COLUMNS["y"], COLUMNS["qid"])


def test_every_library_gives_the_same_data():
    there = [olrank.Dataset.from_table(table) for table in tables(COLUMNS)]
    assert there and {data.fingerprint for data in there} == {expected().fingerprint}


def test_chunks_slices_and_dictionaries():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(COLUMNS)
    table = table.set_column(4, "qid", table["qid"].dictionary_encode())
    assert olrank.Dataset.from_table(arrow.concat_tables([table.slice(0, 1), table.slice(1)])).fingerprint == expected().fingerprint
    mine = olrank.Dataset.from_arrays(table.select(["a", "b", "c"]), table["y"], table["qid"])
    assert mine.fingerprint == expected().fingerprint
    assert olrank.Dataset.from_table(table.to_reader()).fingerprint == expected().fingerprint
    bits = arrow.table({"x": [True, False] * 11, "y": [0] * 22, "qid": ["q"] * 22}).slice(9)
    assert olrank.Dataset.from_table(bits).X[:, 0].tolist() == [0.0, 1.0] * 6 + [0.0]


def test_labels_of_pandas_are_not_taken_for_attributes():
    pandas = pytest.importorskip("pandas")
    data = olrank.Dataset.from_table(pandas.DataFrame({"column_names": [1.0, 2.0], "y": [0, 1], "qid": ["q", "q"]}, index=["type", "null_count"]))
    assert list(data.feature_names) == ["column_names"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"qid": None}, "no column 'qid'"),
        ({"b": [1, None, 3, 4]}, "null value|NaN|not finite|finite"),
        ({"qid": ["x", None, "y", "y"]}, "null value"),
        ({"b": [[1.0, None], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]}, "null value|give real numbers"),
        ({"b": [[1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]}, "Column 'b' of the table has lists of different lengths"),
        ({"b": ["1", "2", "3", "x"]}, "Column 'b' of the table has the type .*: give real numbers"),
    ],
)
def test_bad_tables_have_one_sentence(change, sentence):
    columns = {name: values for name, values in (COLUMNS | change).items() if values is not None}
    for table in tables(columns):
        with pytest.raises((olrank.Error, TypeError), match=sentence) as told:
            olrank.Dataset.from_table(table)
        assert "\n" not in str(told.value)


def test_sparse_tables_are_refused_with_the_size_of_the_dense_one():
    class Sparse:
        """As those of SciPy."""

        shape = (2000, 100_000)

        def toarray(self):
            raise AssertionError("The table must not be made.")

    with pytest.raises(TypeError, match=r"X is sparse, .* dense features: pass X.toarray\(\), 0.8 GB here"):
        olrank.Dataset.from_arrays(Sparse(), [0] * 2000, [1] * 2000)


def test_files_of_tables(tmp_path, monkeypatch):
    names = {"a": "first", "b": "second", "c": "third", "y": "grade", "qid": "query"}
    lines = [",".join(names.values())] + [",".join(str(float(v)) if isinstance(v, bool) else str(v) for v in row) for row in zip(*COLUMNS.values())]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert olrank.load_table(tmp_path / "t.csv", y="grade", qid="query").fingerprint == expected().fingerprint
    (tmp_path / "t.csv").write_text("a,y,qid\n1,0,\n")
    refused("line 2", lambda: olrank.load_table(tmp_path / "t.csv"), olrank.DataError)
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        pass
    else:
        parquet.write_table(pyarrow.table(COLUMNS), tmp_path / "t.parquet")
        feather.write_feather(pyarrow.table(COLUMNS), tmp_path / "t.feather")
        for kind in ("parquet", "feather"):
            assert olrank.load_table(tmp_path / f"t.{kind}").fingerprint == expected().fingerprint
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    refused("needs pyarrow", lambda: olrank.load_table(tmp_path / "t.parquet"))


def test_a_column_of_weights(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(COLUMNS | {"c": [1, 0, 1, 0], "w": [2.0, 2.0, 1.0, 0.5]})
    data = olrank.Dataset.from_table(table, weight="w")
    assert np.array_equal(data.X, expected().X) and data.weight.tolist() == [2, 1, 0.5]
    table.to_csv(tmp_path / "t.csv", index=False)
    assert olrank.load_table(tmp_path / "t.csv", weight="w").fingerprint == data.fingerprint
    assert data.fingerprint != expected().fingerprint


def test_lightgbms_trees_score_alike(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    draws = np.random.default_rng(3)
    docs = draws.normal(size=(200, 5)).astype(np.float32)
    grades = np.clip(np.floor(docs[:, 0] + docs[:, 1] * docs[:, 2] + 1), 0, 3)
    settings = {"objective": "lambdarank", "num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1}
    trees = lightgbm.train(settings, lightgbm.Dataset(docs, grades, group=[20] * 10), 5)
    trees.save_model(tmp_path / "trees.txt")
    expected = trees.predict(docs, raw_score=True)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(olrank.load_model(tmp_path / "trees.txt").score(docs), expected, rtol=1e-6)


def test_lightgbms_files(tmp_path):
    (tmp_path / "rank.train").write_text("2 0:0.5 1:1 2:1\n0 0:1 1:2\n1 0:0.25 1:3 2:1\n0 0:2 1:4\n")
    refused("query is missing", lambda: olrank.load_lightgbm(tmp_path / "rank.train"), olrank.DataError)
    (tmp_path / "rank.train.query").write_text("2\n1\n1\n")
    data = olrank.load_lightgbm(tmp_path / "rank.train")
    assert np.array_equal(data.X, expected().X) and data.group.tolist() == [2, 1, 1]
    (tmp_path / "rank.train.weight").write_text("1\n" * 4)
    assert olrank.load_lightgbm(tmp_path / "rank.train").weight is None
    for weights, wanted in (("2\n2\n0.5\n3\n", [2, 0.5, 3]), ("2\n2\n0.5\n1\n", [2, 0.5, 1])):
        (tmp_path / "rank.train.weight").write_text(weights)
        assert olrank.load_lightgbm(tmp_path / "rank.train").weight.tolist() == wanted
    for weights, error, sentence in (("1\n2\n3\n4\n", olrank.InvalidArgument, "rank.train.weight has 1.0 and 2.0 for documents of query '1'"),
                                     ("1\n1\n-3\n4\n", olrank.InvalidArgument, "rank.train.weight has -3.0 in row 2: a weight must be finite"),
                                     ("1\n1\nnan\n4\n", olrank.InvalidArgument, "rank.train.weight has nan in row 2: a weight must be finite"),
                                     ("1\n1\n1\n", olrank.DataError, "rank.train.weight has 3 weights for 4 rows"),
                                     ("1\n1\nx\n4\n", olrank.DataError, "rank.train.weight cannot be read: could not convert string 'x'")):  # fmt: skip
        (tmp_path / "rank.train.weight").write_text(weights)
        refused(sentence, lambda: olrank.load_lightgbm(tmp_path / "rank.train"), error)


def test_lightgbms_files_beside_must_be_files(tmp_path):
    (tmp_path / "rank.train").write_text("2 0:0.5\n0 0:1\n")
    (tmp_path / "rank.train.query").write_text("2\n")
    for kind in ("weight", "position", "query"):
        beside = tmp_path / f"rank.train.{kind}"
        beside.unlink(missing_ok=True)
        for make in (lambda: beside.symlink_to("nowhere"), lambda: os.mkfifo(beside)):
            make()
            with pytest.raises(olrank.DataError, match=f"rank.train.{kind} is a folder, a pipe, a device or a link to no file: remove"):
                olrank.load_lightgbm(tmp_path / "rank.train")
            beside.unlink()


def test_lightgbms_positions_make_a_log(tmp_path):
    file, log = tmp_path / "rank.train", tmp_path / "shown.jsonl"
    file.write_text("1 0:0.5\n0 0:1\n0 0:0.25\n1 0:2\n")
    (tmp_path / "rank.train.query").write_text("3\n1\n")
    refused("rank.train.position", lambda: olrank.load_lightgbm(file, log), olrank.DataError)
    (tmp_path / "rank.train.position").write_text("3\n1\n2\n1\n")
    with pytest.warns(UserWarning, match="position is not used"):
        plain = olrank.load_lightgbm(file)
    assert olrank.load_lightgbm(file, log).fingerprint == plain.fingerprint
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["shown"], line["clicks"]) for line in lines] == [([1, 2, 0], [0, 0, 1]), ([0], [1])]
    for positions, sentence in (("4\n1\n2\n1\n", "has 3 documents: give them the positions 1 to 3"), ("1\n2\n", "position has 2 values: give one for each of 4")):
        (tmp_path / "rank.train.position").write_text(positions)
        refused(sentence, lambda: olrank.load_lightgbm(file, log))
    file.write_text("2 0:0.5\n0 0:1\n0 0:0.25\n1 0:2\n")
    refused("y has values other than 0 and 1", lambda: olrank.load_lightgbm(file, log))


def test_clicks_with_features(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"f": [1.0, 2, 3, 4], "qid": ["s1", "s2", "s1", "s2"], "position": [2, 1, 1, 2], "click": [0, 1, 1, 0], "when": [5, 1, 5, 1]})
    data = olrank.click_log(table, tmp_path / "shown.jsonl", time="when")
    lines = [json.loads(line) for line in (tmp_path / "shown.jsonl").read_text().splitlines()]
    assert lines == [{"qid": "s2", "shown": [0, 1], "clicks": [1, 0]}, {"qid": "s1", "shown": [1, 0], "clicks": [1, 0]}]
    assert data.qids == ["s1", "s2"] and data.X[:, 0].tolist() == [1, 3, 2, 4]
    refused("give them the positions 1 to 2", lambda: olrank.click_log(table.assign(position=[3, 1, 1, 2]), tmp_path / "shown.jsonl"))
    refused("other than 0 and 1", lambda: olrank.click_log(table.assign(click=[3, 1, 1, 2]), tmp_path / "shown.jsonl"))


def test_aol4foltrs_files(tmp_path):
    """LETOR text with a click as the grade, and metadata.csv with the user and the time of each query."""
    pd = pytest.importorskip("pandas")
    (tmp_path / "letor.txt").write_text("0 qid:8 1:0.5\n1 qid:8 1:2\n1 qid:3 1:1\n0 qid:3 1:4\n")
    (tmp_path / "metadata.csv").write_text("qid,user_id,timestamp,query,target_doc_id,candidate_doc_ids\n3,u,2006-03-01 10:00:00,a,d,\"{'d', 'e'}\"\n8,v,2006-03-02 09:00:00,b,f,\"{'f', 'g'}\"\n")
    data = olrank.load_letor(tmp_path / "letor.txt")
    context = pd.read_csv(tmp_path / "metadata.csv", parse_dates=["timestamp"], dtype={"qid": str}).set_index("qid").loc[data.qids]
    assert olrank.click_log(data, tmp_path / "shown.jsonl", position=None, time=context["timestamp"]) is data
    lines = [json.loads(line) for line in (tmp_path / "shown.jsonl").read_text().splitlines()]
    assert lines == [{"qid": "3", "shown": [0, 1], "clicks": [1, 0]}, {"qid": "8", "shown": [0, 1], "clicks": [0, 1]}]
    refused("position must be an array or None for a data set", lambda: olrank.click_log(data, tmp_path / "shown.jsonl"))
    with pytest.raises(olrank.InvalidArgument, match="time has 4 values: give one for each of 2 queries"):
        olrank.click_log(data, tmp_path / "shown.jsonl", position=None, time=[1, 2, 3, 4])


def test_ir_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))  # which importing makes
    ir_datasets = pytest.importorskip("ir_datasets")
    for name, lines in (("docs", "d1\tred jacket\nd2\tblue\nd3\tjacket\n"), ("queries", "q1\tjacket\nq2\tblue jacket\n"),
                        ("qrels", "q1 0 d3 2\nq2 0 d2 -1\nq1 0 d2 0\nq2 0 d1 1\n")):  # fmt: skip
        (tmp_path / name).write_text(lines)
    judged = ir_datasets.create_dataset(tmp_path / "docs", tmp_path / "queries", tmp_path / "qrels")

    def features(query, doc):
        return [len(set(query.text.split()) & set(doc.text.split())), len(doc.text)]

    data, docs = olrank.load_ir_dataset(judged, features)
    assert (data.qid.tolist(), docs, data.y.tolist()) == (["q1", "q1", "q2", "q2"], ["d3", "d2", "d2", "d1"], [2, 0, 0, 1])
    assert data.X.tolist() == [[1, 6], [0, 4], [1, 4], [1, 10]]
    retrieved = tmp_path / "run"
    retrieved.write_text("q1 Q0 d1 1 0.5 bm25\nq1 Q0 d3 2 0.25 bm25\nq9 Q0 d1 1 0.5 bm25\n")
    scored = ir_datasets.formats.TrecScoredDocs(ir_datasets.util.LocalDownload(retrieved))
    data, docs = olrank.load_ir_dataset(ir_datasets.datasets.base.Dataset(judged, scored), features, scoreddocs=True)
    assert (docs, data.y.tolist()) == (["d1", "d3"], [0, 2])
    refused("has no scoreddocs", lambda: olrank.load_ir_dataset(judged, features, scoreddocs=True))
    refused("ir_datasets has no data set 'none'", lambda: olrank.load_ir_dataset("none", features))
    refused("X is not a table of numbers", lambda: olrank.load_ir_dataset(judged, lambda query, doc: [1] * len(doc.text)))
    (tmp_path / "qrels").write_text("q1 0 d7 2\n")
    with pytest.raises(olrank.DataError, match="The data set has no document 'd7', which its judgements"):
        olrank.load_ir_dataset(ir_datasets.create_dataset(tmp_path / "docs", tmp_path / "queries", tmp_path / "qrels"), features)


def test_frames_come_out_and_notebooks_show():
    pd = pytest.importorskip("pandas")
    data = olrank.synthetic("small", queries=10)
    model = olrank.fit(data, epochs=1)
    frame = pd.DataFrame(data.X, index=np.arange(len(data.X)) + 100)
    scores = model.score(frame, data.group)
    assert scores.index.equals(frame.index) and np.array_equal(scores, model.score(data.X, data.group))
    polars = pytest.importorskip("polars")
    scores = model.score(polars.DataFrame(data.X), data.group)
    assert isinstance(scores, polars.Series) and scores.name == "score" and np.array_equal(scores, model.score(data.X, data.group))
    assert "scaled by query" in repr(model)
    assert "<td>0</td>" in data._repr_html_() and "<olrank" not in data._repr_html_()
    assert "<td>lambda</td>" in olrank.Ranker("pairrank", features=3)._repr_html_()
    trial = olrank.Trial("pairrank", "navigational", 1, 2, None)
    evaluation = olrank.Evaluation(trial, 30, {"offline": {"ndcg@10": 0.51236}, "online": {"ndcg@10": 0.5, "regret": None}})
    assert repr(evaluation) == "<olrank.Evaluation pairrank, navigational, fold 1, seed 2, round 30: ndcg@10 0.5124>"
    assert "<td>online.ndcg@10</td><td>0.5</td>" in evaluation._repr_html_() and "regret" not in evaluation._repr_html_()


def test_decimals_below_zero_keep_their_values():
    values = [decimal.Decimal(text) for text in ("-1.25", "-0.01", "123.45", "0.00", "-11805916207174113034.24")]
    for library in ("pyarrow", "polars"):
        module = pytest.importorskip(library)
        found = columns_of((module.table if library == "pyarrow" else module.DataFrame)({"x": values}), "t")["x"]
        assert np.allclose(found, [float(value) for value in values], rtol=1e-15, atol=0.0)


def test_lists_of_a_column_become_columns_in_every_library():
    for table in tables({"e": [[0.5, 1.0], [2.0, 3.0]], "y": [1, 0], "qid": ["x", "x"]}):
        assert olrank.Dataset.from_table(table).X.tolist() == [[0.5, 1.0], [2.0, 3.0]]


def test_other_tables_with_arrows_interface_need_pyarrow(monkeypatch):
    class Table:
        """As those of Ibis, DataFusion and others."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.table(COLUMNS).__arrow_c_stream__(requested_schema)

    pyarrow = pytest.importorskip("pyarrow")
    assert olrank.Dataset.from_table(Table()).fingerprint == expected().fingerprint
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused("^The table is a table of .*, which needs pyarrow to be read: pip install pyarrow.$", lambda: olrank.Dataset.from_table(Table()))
