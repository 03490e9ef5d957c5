"""deploy/experiment.slurm on a real Slurm of this machine alone, as an array of three: the folder gathers the summary of a
single run, byte for byte. The daemons are this test's own, on loopback, with everything in a temporary folder."""

import contextlib
import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from running_service import PROGRAM, free_port, wait_until

DAEMONS = ("munged", "slurmctld", "slurmd")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"])
SLURM = pathlib.Path("tests/serve/slurm.conf")


def call(*arguments, **variables):
    environment = {**os.environ, "PATH": PATH, **variables}
    done = subprocess.run([str(word) for word in arguments], capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


@contextlib.contextmanager
def slurm(folder):
    """Starts Slurm, and gives the environment in which its commands find it."""
    configuration = folder / "slurm.conf"
    configuration.write_text(
        SLURM.read_text().format(controller=free_port(), node=free_port(), folder=folder, user=getpass.getuser(), host=socket.gethostname(), cpus=os.cpu_count())
    )
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    munge = [f"--{name}={folder}/munge.{ending}" for name, ending in
             (("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]
    commands = {
        "munged": ["munged", "--foreground", "--force", *munge],
        "slurmctld": ["slurmctld", "-D", "-c", "-f", configuration],
        "slurmd": ["slurmd", "-D", "-c", "-f", configuration, "-N", "localhost"],
    }
    variables = {"SLURM_CONF": str(configuration)}
    started = []
    try:
        for name in DAEMONS:
            log = (folder / f"{name}.out").open("w")
            environment = {**os.environ, "PATH": PATH, **variables}
            started.append(subprocess.Popen([str(word) for word in commands[name]], stdout=log, stderr=log, env=environment))
            if name == "munged":
                wait_until(lambda: (folder / "munge.socket").exists(), "munged listens")
        wait_until(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env={**os.environ, **variables}).stdout,
              "the node is idle")
        yield variables
    except BaseException:
        for name in DAEMONS:
            if (folder / f"{name}.out").exists():
                print(f"{name}:\n{(folder / f'{name}.out').read_text()[-3000:]}", file=sys.stderr)
        raise
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main():
    if missing := [name for name in (*DAEMONS, "sbatch") if shutil.which(name, path=PATH) is None]:
        print(f"There is no {missing[0]}: install slurm-wlm.")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)  # munged's folder
        config, whole, out = pathlib.Path("tests/serve/experiment.toml").resolve(), folder / "whole", folder / "out"
        call(PROGRAM, "run", config, "--out", whole, "--quiet")
        call(PROGRAM, "report", whole)
        with slurm(folder) as variables:
            flags = ["--parsable", "--array=0-2", "--cpus-per-task=1", "--mem=0", f"--output={folder}/task-%a.log"]
            job = call("sbatch", *flags, "deploy/experiment.slurm", config, out, OLRANK=PROGRAM, **variables).strip()
            wait_until(lambda: not call("squeue", "-h", "-j", job, **variables).strip(), "the array ends", 120)
        logs = {task: (folder / f"task-{task}.log").read_text() for task in range(3)}
        for task, trials in enumerate((3, 3, 2)):
            assert f"Running {trials} trials of 30 rounds (shard {task} of 3)" in logs[task], logs
        call(PROGRAM, "report", out)
        assert (out / "summary.csv").read_bytes() == (whole / "summary.csv").read_bytes()
        models = {file.relative_to(whole): file.read_bytes() for file in whole.rglob("model.safetensors")}
        assert len(models) == 8 and all((out / name).read_bytes() == model for name, model in models.items())
        print(f"An array of three tasks gave the summary and the {len(models)} models of a single run.")


main()
