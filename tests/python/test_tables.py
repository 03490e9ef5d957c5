"""Tables as users have them: pandas, and by Arrow's interface polars, pyarrow and DuckDB; files; and what is refused."""

import decimal
import json
import sys

import numpy as np
import pytest

import olrank
from olrank import _arrow

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
    bits = arrow.table({"x": [True, False] * 11, "y": [0] * 22, "qid": ["q"] * 22}).slice(9)
    assert olrank.Dataset.from_table(bits).X[:, 0].tolist() == [0.0, 1.0] * 6 + [0.0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"qid": None}, "no column 'qid'"),
        ({"b": [1, None, 3, 4]}, "null value|NaN|not finite|finite"),
        ({"qid": ["x", None, "y", "y"]}, "null value"),
        ({"b": ["1", "2", "3", "x"]}, "Column 'b' of the table has the type .*: give real numbers"),
    ],
)
def test_bad_tables_have_one_sentence(change, sentence):
    columns = {name: values for name, values in (COLUMNS | change).items() if values is not None}
    for table in tables(columns):
        with pytest.raises((olrank.Error, TypeError), match=sentence) as told:
            olrank.Dataset.from_table(table)
        assert "\n" not in str(told.value)


def test_files_of_tables(tmp_path, monkeypatch):
    names = {"a": "first", "b": "second", "c": "third", "y": "grade", "qid": "query"}
    lines = [",".join(names.values())] + [",".join(str(float(v)) if isinstance(v, bool) else str(v) for v in row) for row in zip(*COLUMNS.values())]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert olrank.load_table(tmp_path / "t.csv", y="grade", qid="query").fingerprint == expected().fingerprint
    (tmp_path / "t.csv").write_text("a,y,qid\n1,0,\n")
    with pytest.raises(olrank.DataError, match="line 2"):
        olrank.load_table(tmp_path / "t.csv")
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
    with pytest.raises(olrank.InvalidArgument, match="needs pyarrow"):
        olrank.load_table(tmp_path / "t.parquet")


def test_lightgbms_files(tmp_path):
    (tmp_path / "rank.train").write_text("2 0:0.5 1:1 2:1\n0 0:1 1:2\n1 0:0.25 1:3 2:1\n0 0:2 1:4\n")
    with pytest.raises(olrank.DataError, match="query is missing"):
        olrank.load_lightgbm(tmp_path / "rank.train")
    (tmp_path / "rank.train.query").write_text("2\n1\n1\n")
    data = olrank.load_lightgbm(tmp_path / "rank.train")
    assert np.array_equal(data.X, expected().X) and data.group.tolist() == [2, 1, 1]
    (tmp_path / "rank.train.weight").write_text("1\n" * 4)
    with pytest.warns(UserWarning, match="weight is not used"):
        olrank.load_lightgbm(tmp_path / "rank.train")


def test_clicks_with_features(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"f": [1.0, 2, 3, 4], "qid": ["s1", "s2", "s1", "s2"], "position": [2, 1, 1, 2], "click": [0, 1, 1, 0], "when": [5, 1, 5, 1]})
    data = olrank.click_log(table, tmp_path / "shown.jsonl", time="when")
    lines = [json.loads(line) for line in (tmp_path / "shown.jsonl").read_text().splitlines()]
    assert lines == [{"qid": "s2", "shown": [0, 1], "clicks": [1, 0]}, {"qid": "s1", "shown": [1, 0], "clicks": [1, 0]}]
    assert data.qids == ["s2", "s1"] and data.X[:, 0].tolist() == [2, 4, 1, 3]
    with pytest.raises(olrank.InvalidArgument, match="give them the positions 1 to 2"):
        olrank.click_log(table.assign(position=[3, 1, 1, 2]), tmp_path / "shown.jsonl")
    with pytest.raises(olrank.InvalidArgument, match="other than 0 and 1"):
        olrank.click_log(table.assign(click=[3, 1, 1, 2]), tmp_path / "shown.jsonl")


def test_frames_come_out_and_notebooks_show():
    pd = pytest.importorskip("pandas")
    data = olrank.synthetic("small", queries=10)
    model = olrank.fit(data, epochs=1)
    frame = pd.DataFrame(data.X, index=np.arange(len(data.X)) + 100)
    scores = model.score(frame, data.group)
    assert scores.index.equals(frame.index) and np.array_equal(scores, model.score(data.X, data.group))
    assert "scaled by query" in repr(model)
    assert "<td>0</td>" in data._repr_html_() and "<olrank" not in data._repr_html_()
    assert "<td>lambda</td>" in olrank.Ranker("pairrank", features=3)._repr_html_()


def test_decimals_below_zero_keep_their_values():
    pyarrow = pytest.importorskip("pyarrow")
    values = [decimal.Decimal(text) for text in ("-1.25", "-0.01", "123.45", "0.00", "-11805916207174113034.24")]
    found = _arrow.read(pyarrow.table({"x": values}), "t")["x"]
    assert np.allclose(found, [float(value) for value in values], rtol=1e-15, atol=0.0)


def test_null_rows_of_a_table_are_refused():
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.StructArray.from_arrays([pyarrow.array([1.0, 2.0, 3.0])], ["x"], mask=pyarrow.array([False, True, False]))
    with pytest.raises(olrank.InvalidArgument, match="null row"):
        _arrow.read(pyarrow.chunked_array([rows]), "t")
