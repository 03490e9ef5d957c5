"""The files in deploy/ work: their commands, run with the variables that Kubernetes and Slurm set, play shards that together
give the same summary as one run, byte for byte."""

import os
import pathlib
import re
import subprocess
import tempfile

PROGRAM = os.environ["OLRANK_PROGRAM"]


def call(arguments, **variables):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=900, env={**os.environ, **variables})
    assert done.returncode == 0, (arguments, done.stderr)


def summary(out):
    call([PROGRAM, "report", str(out)])
    return (out / "summary.csv").read_bytes()


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    config = folder / "experiment.toml"
    config.write_text(pathlib.Path("tests/serve/experiment.toml").read_text().replace("[1, 2]", "[1, 2, 3]"))
    call([PROGRAM, "run", config, "--out", folder / "whole", "--quiet"])
    whole = summary(folder / "whole")
    assert whole.count(b"\n") == 13, whole

    job = pathlib.Path("deploy/experiment-job.yaml").read_text()
    shards = int(re.search(r"completions: (\d+)", job)[1])
    assert re.search(r'OLRANK_SHARDS\n\s*value: "(\d+)"', job)[1] == str(shards)
    arguments = re.search(r"args: \[(.*)\]", job)[1].replace('"', "").split(", ")
    arguments = [PROGRAM, *(word.replace("/config/", f"{folder}/").replace("/out/", f"{folder}/kubernetes/") for word in arguments)]
    for index in range(shards):
        call(arguments, JOB_COMPLETION_INDEX=str(index), OLRANK_SHARDS=str(shards))
    assert summary(folder / "kubernetes" / "experiment") == whole

    script = pathlib.Path("deploy/experiment.slurm").read_text()
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", script).groups())
    for task in range(first, last + 1):
        more = ["--jobs", "2"] if task == last else []
        call(["bash", "deploy/experiment.slurm", config, folder / "slurm", *more], OLRANK=PROGRAM, SLURM_ARRAY_TASK_ID=str(task),
             SLURM_ARRAY_TASK_MIN=str(first), SLURM_ARRAY_TASK_MAX=str(last), SLURM_ARRAY_TASK_COUNT=str(last - first + 1),
             SLURM_CPUS_PER_TASK="1")
    assert summary(folder / "slurm") == whole
    print(f"{shards} pods and {last - first + 1} array tasks gave the summary of a single run: {len(whole)} bytes")
