"""Computes what follows from logs of shown lists and their clicks, as `olrank ope` and `olrank clicks fit` do."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pathlib
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from olrank import _core
from olrank._arrays import ArrayLike, as_array, as_numbers, as_offsets, as_path, as_weights, columns_of, joined
from olrank.data import Dataset, layout, read_table
from olrank.errors import DataError, InvalidArgument
from olrank.model import Model, load_model

Path = str | os.PathLike[str]


def ope(
    log: Path,
    models: Model | Path | Sequence[Model | Path] = (),
    *,
    data: Dataset | None = None,
    policy: str = "greedy",
    reward: str = "clicks",
    estimators: str | Sequence[str] = (),
    click_model: str = "pbm",
    at: int = 10,
    clip: float = 0.0,
    confidence: float = 0.95,
    replicates: int = 400,
    seed: int = 1,
    threads: int = 0,
    trust_code: bool = False,
    page: Path = "",
) -> dict[str, Any]:
    """Estimates what other rankers would have got in place of those that showed the lists of a log.

    `log` is a service's feedback.jsonl or its state folder, or a trace, whose documents `data` has. Each of `models` is a
    Model, a model file or the folder of a finished trial; `policy` (greedy, plackett-luce, epsilon=0.1) says how lists
    follow from its scores, or is incumbent, the order that requests brought. Without `estimators`, all that the log has
    the data for: ips, rips, snips, snrips, and by a click model direct, cascade-dr and intervention-aware.
    The result is that of `olrank ope --json`; docs/DECISIONS.md explains it. `page` also writes an HTML page.
    """
    named = [models] if isinstance(models, (Model, str, os.PathLike)) else list(models)
    with contextlib.ExitStack() as stack:
        files = []
        for number, model in enumerate(named, 1):
            if isinstance(model, Model):
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                files.append(str(pathlib.Path(folder, f"model{number}.safetensors")))
                model.save(files[-1])
            else:
                files.append(as_path(model))
            if data is not None and data.feature_names is not None:
                known = (model if isinstance(model, Model) else load_model(files[-1], trust_code=trust_code)).feature_names
                if number > 1 and data.in_order(known) is not data:
                    raise InvalidArgument("The models have features in different orders: estimate one after another.")
                data = data.in_order(known)
        told: dict[str, Any] = json.loads(
            _core.off_policy_values(
                None if data is None else data._engine, as_path(log), files, policy, reward,
                [estimators] if isinstance(estimators, str) else list(estimators), click_model, at, clip, confidence, replicates,
                seed, threads, trust_code, as_path(page),
            )
        )
    for number, (model, one) in enumerate(zip(named, told["policies"]), 1):
        if isinstance(model, Model):
            one["name"] = f"model{number}"
    return told


def click_log(
    table: Any,
    log: Path,
    *,
    click: str = "click",
    qid: str = "qid",
    position: str | ArrayLike | None = "position",
    time: str | ArrayLike | None = None,
    X: Sequence[str] | None = None,
) -> Dataset:
    """Makes a log of a table of clicks with features, one row for each shown document; the result has its documents.

    `qid` names the shown list, such as a session's query; positions begin at 1, without gaps; with
    `position=None` the rows of a list are in the order in which it was shown. Lists are in the order of the column `time`, else of the table. Grades of the data set are
    the clicks. A Dataset is taken, too, with an array of positions by document and of times by query. ope(),
    fit_clicks() and Ranker.partial_fit() take the log with the data.
    """
    for name, value in (("position", position), ("time", time)):
        if value is not None and isinstance(value, str) == isinstance(table, Dataset):
            ways = "an array or None for a data set, which has no columns" if isinstance(value, str) else "the name of a column of the table"
            raise InvalidArgument(f"{name} must be {ways}.")
    if isinstance(table, Dataset):
        data = table
        _require_clicks(data.y, "y")
        rank, when = (None if one is None else as_array(one, name) for one, name in ((position, "position"), (time, "time")))
    else:
        named = [one for one in (click, qid, position, time) if isinstance(one, str)]
        columns = columns_of(table, "the table", (*named, *(X or ())), X is None)
        _require_clicks(as_numbers(columns[click], f"Column '{click}'"), f"Column '{click}'")
        data = Dataset.from_table(columns, click, qid, [one for one in columns if one not in named] if X is None else X)
        order, _, _ = layout(columns[qid], None, len(data.y))
        rows = np.arange(len(data.y)) if order is None else order
        rank, when = (columns[one][rows] if isinstance(one, str) else None for one in (position, time))
        when = None if when is None else when[data.offsets[:-1]]
    for values, expected, name in ((rank, len(data.y), "position"), (when, len(data), "time")):
        if values is not None and values.shape != (expected,):
            raise InvalidArgument(f"{name} has {values.size} values: give one for each of {expected} {'documents' if name == 'position' else 'queries'}.")
    names, lists = data.qids, []
    for query in range(len(data)) if when is None else np.argsort(when, kind="stable"):
        begin, end = data.offsets[query : query + 2]
        order = np.arange(end - begin) if rank is None else np.argsort(rank[begin:end], kind="stable")
        if rank is not None and not np.array_equal(rank[begin:end][order], np.arange(1, end - begin + 1)):
            raise InvalidArgument(f"List '{names[query]}' has {end - begin} documents: give them the positions 1 to {end - begin}, each once.")
        lists.append((names[query], list(zip(order.tolist(), data.y[begin:end][order].tolist()))))
    _write_lists(log, lists)
    return data


def _require_clicks(values: npt.NDArray[Any], what: str) -> None:
    if not np.isin(values, (0, 1)).all():
        raise InvalidArgument(f"{what} has values other than 0 and 1: it says whether a document was clicked.")


def _numbers(name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Reads the numbers of a file with one on each line."""
    try:
        return np.loadtxt(name, dtype=kind, ndmin=1)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} cannot be read: {error}.") from error


def _beside(name: str, kind: str) -> str | None:
    """The file NAME.KIND; none where there is no such name."""
    beside = f"{name}.{kind}"
    if os.path.lexists(beside) and not os.path.isfile(beside):
        raise DataError(f"{beside} is a folder, a pipe, a device or a link to no file: remove or rename it, or make it a file.")
    return beside if os.path.lexists(beside) else None


def load_lightgbm(path: Path, log: Path | None = None) -> Dataset:
    """LightGBM's data file, grade first: LibSVM, or numbers between tabs or commas; its queries' sizes are in PATH.query.

    PATH.weight, if it is there, has a weight for each row, the same in all rows of a query.
    With `log`, the grades are clicks, PATH.position says where each document was shown, from 1, and `log` becomes the log
    of the shown lists, as by click_log().
    """
    name = as_path(path)
    if log is None and _beside(name, "position"):
        warnings.warn(f"{name}.position is not used: where grades are clicks, log=… makes a log of the shown lists.", stacklevel=2)
    beside = _beside(name, "query") or _beside(name, "group")
    if beside is None:
        raise DataError(f"{name}.query is missing: write the number of documents of each query into it, one on each line.")
    group = _numbers(beside, np.int64)
    position = None if log is None else _numbers(_beside(name, "position") or f"{name}.position", np.int64)
    weight = _numbers(f"{name}.weight", np.float64) if _beside(name, "weight") else None
    try:
        with open(name, encoding="utf-8") as file:
            rows = [re.split(r"[\s,]+", line.strip()) for line in file if line.strip()]
        if any(":" in word for row in rows for word in row[1:]):
            pairs = [(row, *word.split(":")) for row, words in enumerate(rows) for word in words[1:]]
            table = np.zeros((len(rows), 1 + max(int(column) for _, column, _ in pairs)), dtype=np.float32)
            for row, column, value in pairs:
                table[row, int(column)] = float(value)
        else:
            table = np.array([row[1:] for row in rows], dtype=np.float32)
        grades = np.array([row[0] for row in rows], dtype=np.float64)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} cannot be read: {error}.") from error
    if weight is not None and len(weight) != len(rows):
        raise DataError(f"{name}.weight has {len(weight)} weights for {len(rows)} rows: give one for each, on a line of its own.")
    of_queries = None if weight is None else as_weights(weight, as_offsets(group, len(rows)), name=f"{name}.weight")
    data = Dataset.from_arrays(table, grades, group=group, weight=of_queries)
    if log is not None:
        click_log(data, log, position=position)
    return data


def fit_clicks(
    log: Path, model: str = "all", *, holdout: float = 0.2, at: int = 100, iterations: int = 100
) -> dict[str, Any]:
    """Fits click models to a log: pbm, cascade, dcm, dbn, ubm, two-tower, trust, or all of them.

    The result is that of `olrank clicks fit --json`: how well each predicts held-out lists, the examination of each rank,
    a simulated user, and whether the log can tell examination from attraction at all (docs/DECISIONS.md).
    """
    return json.loads(_core.fit_click_models(as_path(log), model, holdout, at, iterations))


Tokens = Sequence[int]
# An entry is a shown document: its list, query, name, position, click or grade, and features.
Entry = tuple[Any, str, str, int, int, Callable[[], Any]]
# Rows of .feather files have these features beside the embedding.
_OF_TEXT = ("bm25", "bm25_title", "bm25_abstract", "tf_idf", "tf", "idf", "ql_jelinek_mercer_short", "ql_jelinek_mercer_long", "ql_dirichlet",
            "document_length", "title_length", "abstract_length")


def common_tokens(query: Tokens, title: Tokens, abstract: Tokens) -> list[float]:
    """The lengths of the three texts, and of title and abstract the tokens of the query: how many, which share, how often."""
    words = set(query)
    numbers: list[float] = [len(query)]
    for text in (title, abstract):
        there = len(words & set(text))
        numbers += [len(text), there, there / max(1, len(words)), sum(token in words for token in text)]
    return numbers


def load_baidu_ultr(
    path: Path, log: Path | None = None, *, features: Callable[[Tokens, Tokens, Tokens], Any] | Sequence[str] | None = None, lists: int | None = None
) -> Dataset:
    """Documents of Baidu-ULTR: of a part of its sessions or its annotations, plain or .gz, or of a .feather part with features (UvA's and others).

    `log` becomes the log of the shown lists, or of the first `lists` of them. The documents of a query are those of all its lists, and their grades
    are the annotations, else 1 where any list has a click. Of text, `features(query, title, abstract)` gives a document's numbers from the tokens,
    common_tokens() by default; of .feather, it names columns, by default `query_document_embedding` and those of the text, such as `bm25`.
    """
    name = as_path(path)
    of_table = name.endswith((".feather", ".parquet"))
    if features is not None and callable(features) == of_table:
        raise InvalidArgument(f"features must be {'names of columns' if of_table else 'a function of tokens'} for {name}.")
    entries: Iterator[Entry] = _of_table(name, features) if of_table else _of_text(name, features or common_tokens)  # type: ignore[arg-type]
    known: dict[str, tuple[dict[str, int], list[Any], list[int]]] = {}
    shown: dict[Any, tuple[str, dict[int, tuple[int, int]]]] = {}
    moved: set[Any] = set()
    for one, qid, doc, position, value, numbers in entries:
        if lists is not None and one not in shown and len(shown) == lists:
            break
        ranks = shown.setdefault(one, (qid, {}))[1]
        places, rows, grades = known.setdefault(qid, ({}, [], []))
        if doc not in places:
            places[doc] = len(rows)
            rows.append(numbers())
            grades.append(0)
        grades[places[doc]] = max(grades[places[doc]], value)
        if any(place == places[doc] for place, _ in ranks.values()):
            moved.add(one)
            continue
        if position in ranks:
            raise DataError(f"{name} has two documents at position {position} of a list of query '{qid}'.")
        ranks[position] = places[doc], value
    if not known:
        raise DataError(f"{name} has no documents.")
    if log is not None:
        if any(0 in ranks for _, ranks in shown.values()):
            raise InvalidArgument(f"{name} has grades and no lists that were shown: leave log out.")
        moved |= {one for one, (_, ranks) in shown.items() if len(ranks) != max(ranks)}
        if moved:
            warnings.warn(f"{len(moved)} lists of {name} lack a position or have a document twice: the documents below move up.", stacklevel=2)
        _write_lists(log, ((qid, [ranks[position] for position in sorted(ranks)]) for qid, ranks in shown.values()))
    table, y, qids = zip(*((row, grade, qid) for qid, (_, rows, grades) in known.items() for row, grade in zip(rows, grades)))
    return Dataset.from_arrays(np.array(table, dtype=np.float32), y, qid=qids)


def _write_lists(log: Path, lists: Iterable[tuple[str, list[tuple[int, int]]]]) -> None:
    with open(log, "w", encoding="utf-8") as file:
        for qid, docs in lists:
            print(json.dumps({"qid": qid, "shown": [place for place, _ in docs], "clicks": [click for _, click in docs]}), file=file)


def _opened(name: str) -> IO[str]:
    return gzip.open(name, "rt", encoding="utf-8") if name.endswith(".gz") else open(name, encoding="utf-8")


def _of_text(name: str, features: Callable[[Tokens, Tokens, Tokens], Any]) -> Iterator[Entry]:
    """Reads sessions, a line of three fields for a query and one for each of its documents; or annotations, with six fields."""
    number, found, qid, query = 0, 0, None, ""

    def tokens(text: str) -> list[int]:
        return [int(token) for token in text.split("\x01") if token]

    try:
        with _opened(name) as file:
            for number, line in enumerate(file, 1):
                fields = line.rstrip("\n").split("\t")
                if len(fields) == 3:
                    qid, query = fields[:2]
                    found += 1
                    continue
                if len(fields) == 6:
                    of, doc, position, text = fields[0], str(number), 0, fields[1:4]
                    value, most, one = int(fields[4]), 4, number
                elif len(fields) > 6 and qid is not None:
                    of, doc, position, text = qid, fields[1], int(fields[0]), [query, *fields[2:4]]
                    value, most, one = int(fields[5]), 1, found
                else:
                    what = "no query's line above it" if len(fields) > 6 else f"{len(fields)} fields"
                    raise ValueError(f"it has {what}, where a query has 3, an annotation 6 and a shown document 32 between tabs")
                if not 0 <= value <= most or (most == 1 and position < 1):
                    raise ValueError(f"{value} at position {position} is no {'click at one' if most == 1 else 'grade'}")
                three = [tokens(one) for one in text]
                yield one, of, doc, position, value, lambda three=three: features(*three)  # type: ignore[misc]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{name} cannot be read: {error}.") from error
    except ValueError as error:
        raise DataError(f"{name}, line {number}: {error}.") from error


def _of_table(name: str, features: Sequence[str] | None) -> Iterator[Entry]:
    table = read_table(name)
    there = set(table.column_names)
    graded = "label" in there and "click" not in there
    keys = ["query_no", "query_id", *(["text_md5", "label"] if graded else ["url_md5", "click", "position"])]
    if graded and "query_no" not in there:
        keys[0] = "query_id"
    wanted = list(features or ("query_document_embedding", *(one for one in _OF_TEXT if one in there)))
    columns = columns_of(table, name, [*keys, *wanted], False)
    rows, _ = joined({one: columns[one] for one in wanted}, name)
    kinds = [columns[one] for one in keys]
    ranks = np.zeros(len(rows), dtype=np.int64) if graded else kinds[4]
    values = as_numbers(kinds[3], f"Column '{keys[3]}' of {name}")
    if not graded:
        _require_clicks(values, f"Column 'click' of {name}")
    for row, (one, qid, doc) in enumerate(zip(*kinds[:3])):
        yield (f"{row}" if graded else one), str(qid), str(doc), int(ranks[row]), int(values[row]), lambda row=row: rows[row]  # type: ignore[misc]
