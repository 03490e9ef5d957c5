"""`olrank report --latex`: pdflatex compiles the tables, which fit their column."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from synthetic_experiment import ranker, write_experiment

PROGRAM = os.environ["OLRANK_PROGRAM"]
USERS = ("perfect", "navigational", "informational")
DOCUMENT = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs}
\begin{document}
\input{table}
See %s.
\end{document}
"""


def skip(reason):
    print(f"report/latex ... skipped '{reason}'")
    sys.exit(77)


def experiments(folder):
    """Names as people give them, and as no one should."""
    yield "plain", [write_experiment(folder / "plain", seeds=range(1, 6), users=USERS)], []
    yield "side-by-side", [folder / "plain"], ["--latex-users", "perfect,navigational,informational", "--latex-users", "informational"]
    odd = [ranker(name) for name in ("50%_$x^2 {a&b}#~\\<>|\"", "--α=0.1 ν² naïve 学", "full",
                                     "olranknet-with-quite-a-long-name+alpha=0.001+lambda=100_and-more")]
    yield "odd", [write_experiment(folder / "odd", odd, seeds=range(1, 4), users=("a_user&b",),
                                   data={"source": "runs/" + "very_long-folder/" * 6})], []
    yield "single", [write_experiment(folder / "single", [ranker("alone")], seeds=(1,))], []
    other = write_experiment(folder / "other", seeds=(1, 2), folds=(1, 2, 3), fingerprint="bb", height=[0.3, 0.2],
                             data={"source": "a/very_long_path/to/data/of/another/kind/MSLR-WEB30K"})
    yield "two data sets", [folder / "plain", other], ["--latex-users", "perfect"]
    yield "unfinished", [write_experiment(folder / "unfinished", seeds=(1, 2), not_started=[("pdgd", "perfect", 1, 1),
                                                                                         ("pdgd", "perfect", 1, 2)])], []


def complaints_about(name, folders, arguments, work):
    table = work / "table.tex"
    out = work / "out"
    subprocess.run([PROGRAM, "report", "--quiet", *map(str, folders), "--out", str(out), "--latex", str(table), *arguments],
                   check=True, stdout=subprocess.DEVNULL)
    text = table.read_text()
    labels = re.findall(r"\\label\{([^}]*)\}", text)
    if not labels or len(labels) != len(set(labels)) or len(labels) != text.count("\\caption"):
        yield f"{name}: labels {labels}"
    (work / "a.tex").write_text(DOCUMENT % ", ".join(f"Table~\\ref{{{label}}}" for label in labels))
    for _ in range(2):  # the second run knows the labels
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"], cwd=work,
                              capture_output=True, text=True, errors="replace", timeout=900)
    if done.returncode != 0:
        yield f"{name}: pdflatex failed:\n{done.stdout[-1500:]}"
    for fault in re.findall(r"Overfull \\hbox.*|LaTeX Warning: (?:Reference|Label).*|Missing character.*", done.stdout):
        yield f"{name}: {fault}"
    print(f"{name}: {len(labels)} tables")


def main():
    if shutil.which("pdflatex") is None or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode != 0:
        skip("pdflatex or booktabs is not installed: packages texlive-latex-base and texlive-latex-recommended")
    complaints = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, folders, arguments in experiments(folder):
            work = folder / f"work-{name}"
            work.mkdir()
            complaints += complaints_about(name, folders, arguments, work)
    print("\n".join(complaints) or "every table compiles and fits")
    sys.exit(1 if complaints else 0)


main()
