"""The examples of docs/PYTHON.md and the notebooks run, and types are as they say."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import olrank

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
# A comment before an example says why it does not run.
EXAMPLES = re.findall(r"(<!-- not run[^>]*-->\n)?```python\n(.*?)```", PAGE, re.S)
PROGRAM = "\n".join(code for skipped, code in EXAMPLES[1:] if not skipped)  # the first one is what the page begins with
QUICK = EXAMPLES[0][1]


def test_the_page_runs(tmp_path):
    assert sum(1 for skipped, _ in EXAMPLES if skipped) == 3
    try:
        import sklearn  # noqa: F401
    except ImportError:
        pytest.skip("scikit-learn is not installed")
    for code in (QUICK, PROGRAM):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    assert "<olrank.Dataset 50 queries" in done.stdout


def test_the_examples_have_types(tmp_path):
    pytest.importorskip("mypy")
    for number, code in enumerate((QUICK, PROGRAM)):
        (tmp_path / f"example{number}.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    environment = os.environ | {"MYPYPATH": ""}
    strict = subprocess.run([*command, "-p", "olrank"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert strict.returncode == 0, strict.stdout
    # Examples leave their own functions without types, and use ours as the stubs have them.
    lenient = ["--no-strict-optional", "--allow-untyped-defs", "--allow-untyped-calls", "--check-untyped-defs"]
    files = [str(path) for path in sorted(tmp_path.glob("example*.py"))]
    told = subprocess.run([*command, *lenient, *files], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stdout
    (tmp_path / "wrong.py").write_text("import olrank\nolrank.Ranker('pairrank', features=3, widht=5)\n")
    wrong = subprocess.run([*command, str(tmp_path / "wrong.py")], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "widht" in wrong.stdout


def test_the_keywords_are_the_engines_settings():
    done = subprocess.run([sys.executable, str(ROOT / "python/tools/keywords.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_stub_names_what_its_classes_have():
    stub = (ROOT / "python/olrank/_core.pyi").read_text(encoding="utf-8")
    for name in ("ShownList", "RankerQuery"):
        body = re.search(rf"^class {name}:\n((?:(?:    .*)?\n)+)", stub, re.M)[1]
        there = {method for method in vars(getattr(olrank._core, name)) if not method.startswith("_") or method == "__len__"}
        assert there == set(re.findall(r"def (\w+)\(", body)), name


def played(name):
    """A notebook, the names that its cells leave, and what its last cell shows."""
    cells = json.loads((ROOT / f"examples/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    names = {}
    for cell in code:
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{name}.ipynb", "exec"), names)
        shown = last and eval(compile(ast.Expression(last.value), f"{name}.ipynb", "eval"), names)
    return code, names, shown


@pytest.mark.parametrize("name", ["quickstart", "labels", "clicks"])
def test_the_notebooks_run(name, tmp_path, monkeypatch):
    if name != "quickstart":
        pytest.importorskip("pandas")
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    code, names, shown = played(name)
    if name == "quickstart":
        assert len(code) == 3 and all(ranker in shown._repr_svg_() for ranker in ("<svg", "clickgp", "pairrank", "network", "pdgd"))
    elif name == "labels":
        assert names["card"]["ndcg@10"].idxmax() == "LTRModel()"
    else:
        examination = names["reading"]["models"][-1]["examination"]
        assert examination[0] > 2 * examination[5] and len(names["shown"].certain) > 0


def test_the_notebook_of_a_papers_table_was_executed_and_runs(tmp_path, monkeypatch, capsys):
    """The outputs in the file are those of a run, apart from the figures, whose last bits are those of the processor."""
    monkeypatch.chdir(tmp_path)
    code, names, _ = played("paper-table")
    assert [cell["execution_count"] for cell in code] == [1, 2, 3]
    printed = capsys.readouterr().out
    kept = "".join("".join(output["text"]) for cell in code[1:] for output in cell["outputs"])
    tables = [re.sub(r"\$[^$]*\$", "$", text[text.index("% Needs"):]) for text in (printed, kept)]
    assert tables[0] == tables[1] and tables[0].count("$ & $") >= 4
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == names["results"].to_latex(users=[["perfect", "navigational"]], baseline="pdgd")
