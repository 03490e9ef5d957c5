#!/usr/bin/env python3
"""scripts/gpu-evidence: a rehearsal with the built programs, and its verdicts on fake programs."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu-evidence"
PROGRAM = os.environ.get("OLRANK_PROGRAM")

# Stands in for every program: its name selects the program, plan.json next to it the behaviour.
FAKE_PROGRAM = r'''#!/usr/bin/env python3
import json, os, pathlib, sys, time
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
part = pathlib.Path(sys.argv[0]).resolve().parent
plan = json.loads((part / "plan.json").read_text())
if plan.get("hangs") == name:
    print(plan.get("word", ""), flush=True)
    os.system("sleep 60")
def after(flag):
    return words[words.index(flag) + 1]
def flag_value(start):
    return next(word[len(start):] for word in words if word.startswith(start))
if name == "olrank" and words[0] == "info":
    devices = [{"index": 0, "name": "A card", "capability": "9.0", "memory_bytes": 2**37}] if plan.get("gpu", True) else []
    print(json.dumps({"version": "1", "revision": "abc", "compiler": "c", "libtorch": {"version": "2"}, "threads": 1,
                      "cuda": {"runtime": "13.0", "driver": "13.0", "devices": devices,
                               "no_device_because": None if devices else "the driver reports no device"}}))
elif name == "olrank" and words[:2] == ["bench", "round"]:
    if "--help" in words:
        print("--device" if plan.get("rounds", True) else "nothing")
    else:
        stages = {"total": 0.0004, "idle": 0.0001}
        pathlib.Path(after("--json")).write_text(json.dumps({"measurements": [
            {"name": "round/full/" + stage, "seconds": {"median": seconds}} for stage, seconds in stages.items()]}))
elif name == "olrank" and words[0] == "run":
    out = pathlib.Path(after("--out")) / "trials/olranknet/perfect/fold1/seed1"
    out.mkdir(parents=True)
    runs = len(list(part.glob("run-*")))
    (part / f"run-{runs}").write_text(" ".join(words))
    print(plan.get("word", "done"))
    if plan.get("run_status"):
        sys.exit(plan["run_status"])
    seconds = 3.0 if "tf32" in words else 4.0 if "full" in words else 2.0
    (out / "summary.json").write_text(json.dumps({"seconds": seconds, "last": {"pairs": 5},
                                                  "result_fingerprint": "f" + str(runs if plan.get("drifts") else 0)}))
    (out / "curve.jsonl").write_text("".join(json.dumps({"round": r, "pairs": r, "offline": {"ndcg@10": 0.4}}) + "\n" for r in (0, 5)))
elif name == "rounds":
    print("  full        first 1000: 0.3000 ms (0.1 GEMM), last 200: 0.4000 ms  first 5000: 0.9 ms (0.1 GEMM), last 200: 1.6000 ms\\n     eval 3.0 us")
elif name == "cuda_test":
    case = {"name": "A/0", "classname": "KernelTest", "result": "SKIPPED" if plan.get("tests_skip") else "COMPLETED"}
    if plan.get("tests_fail"):
        case["failures"] = [{"failure": "x"}]
    pathlib.Path(flag_value("--gtest_output=json:")).write_text(json.dumps({"testsuites": [{"testsuite": [case]}]}))
    sys.exit(1 if plan.get("tests_fail") else 0)
elif name == "compute-sanitizer":
    print("========= ERROR SUMMARY: %d errors" % plan.get("errors", 0) if not plan.get("refused") else "Error: Device not supported")
    sys.exit(9 if plan.get("errors") else 0)
elif name == "device_bench":
    row = {"name": "training/step", "parameters": {"n": 10000}, "seconds": {"median": 2e-5, "min": 2e-5, "max": 3e-5},
           "operations": 1e9, "bytes": 1e6, "ceiling": {"name": "gemm float", "value": 5e13}, "share": None,
           "libtorch": {"ratio": 2.5, "started_ratio": 4.0}, "targets": [{"what": "times LibTorch", "measured": 2.5, "target": 2.0, "at_most": False},
                                                    {"what": "share", "measured": None, "target": 0.7, "at_most": False}]}
    pathlib.Path(after("--json")).write_text(json.dumps({"ceilings": {"copy": 4e12}, "measurements": [row]}))
    sys.exit(plan.get("bench_status", 0))
'''


def load_script() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("gpu_evidence", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Evidence(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.folder = self.scratch / "evidence"
        self.script = load_script()

    def read(self) -> dict:
        return json.loads((self.folder / "evidence.json").read_text(encoding="utf-8"))

    def steps(self) -> dict[str, dict]:
        return {step["name"]: step for step in self.read()["steps"]}


class FakeProgramsTest(Evidence):
    def setUp(self) -> None:
        super().setUp()
        self.bin = self.scratch / "bin"
        (self.bin / "tests").mkdir(parents=True)
        (self.scratch / "compute-sanitizer").mkdir()
        for place in ("bin/olrank", "bin/device_bench", "bin/rounds", "bin/tests/cuda_test", "compute-sanitizer/compute-sanitizer"):
            path = self.scratch / place
            path.write_text(FAKE_PROGRAM)
            path.chmod(0o755)
        self.plan()

    def plan(self, **parts: object) -> None:
        for folder in (self.bin, self.bin / "tests", self.scratch / "compute-sanitizer"):
            (folder / "plan.json").write_text(json.dumps(parts))

    def prove(self, *more: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = self.script.main([str(self.folder), "--programs", str(self.bin), *more])
        return status, said.getvalue()

    def test_reports_that_everything_passed(self) -> None:
        status, said = self.prove()
        self.assertEqual(status, 0, said)
        found = self.read()
        self.assertEqual((found["kind"], found["outcome"]), ("evidence", "passed"))
        self.assertEqual([step["name"] for step in found["steps"]], list(self.script.STEPS))
        self.assertEqual({step["outcome"] for step in found["steps"]}, {"passed"}, said)
        page = (self.folder / "evidence.md").read_text(encoding="utf-8")
        self.assertIn("A card", page)
        self.assertIn("| bench | training/step n=10000: times LibTorch | 2.5 | ≥ 2 | OK |", page)
        self.assertIn("| trials | full over diagonal | 2 | ≤ 1.3 | below |", page)
        self.assertIn("| trials | training in TF32 over float32, whole trials | 0.75 | ≤ 1 | OK |", page)
        self.assertLessEqual({path.name for path in self.folder.iterdir()},
                             {"evidence.json", "evidence.md", "log.txt", "parity.json", "device_bench.json"})

    def test_missed_or_unmeasured_targets_do_not_fail(self) -> None:
        self.assertEqual(self.prove("--only", "bench", "--only", "trials")[0], 0)
        found = self.read()
        checks = [check for step in found["steps"] for check in step["checks"]]
        self.assertEqual([check["ok"] for check in checks], [True, False, True, False, True])
        self.assertEqual(found["targets"], {"met": 3, "missed": 2})
        self.assertNotIn("NaN", (self.folder / "evidence.json").read_text(encoding="utf-8"))

    def test_runs_on_the_gpu_except_for_the_cpu_reference(self) -> None:
        self.prove("--only", "determinism", "--only", "curves")
        runs = [(self.bin / f"run-{number}").read_text() for number in range(4)]
        self.assertEqual([run.split("--device ")[1].split()[0] for run in runs], ["cuda", "cuda", "cpu", "cuda"])

    def test_failures_do_not_stop_other_steps(self) -> None:
        self.plan(drifts=True, tests_fail=True, errors=3, bench_status=1)
        status, said = self.prove()
        self.assertEqual(status, 1)
        steps = self.steps()
        failed = {name for name, step in steps.items() if step["outcome"] == "failed"}
        self.assertEqual(failed, {"parity", "determinism", "bench", "memcheck", "racecheck", "synccheck", "initcheck"}, said)
        self.assertIn("KernelTest.A/0", steps["parity"]["reason"])
        self.assertIn("f0 and f1", steps["determinism"]["reason"])
        self.assertEqual(steps["memcheck"]["numbers"]["errors"], 3)
        self.assertEqual(self.read()["outcome"], "failed")

    def test_skipped_parity_tests_fail(self) -> None:
        self.plan(tests_skip=True)
        self.assertEqual(self.prove("--only", "parity")[0], 1)
        self.assertIn("must run", self.steps()["parity"]["reason"])

    def test_quotes_the_output_of_a_failed_program(self) -> None:
        self.plan(run_status=1, word="the card is on fire")
        self.assertEqual(self.prove("--only", "determinism")[0], 1)
        self.assertIn("the card is on fire", self.steps()["determinism"]["reason"])
        self.assertIn("the card is on fire", (self.folder / "log.txt").read_text(encoding="utf-8"))

    def test_ends_a_hanging_program_and_continues(self) -> None:
        self.plan(hangs="device_bench")
        began = time.monotonic()
        with mock.patch.dict(self.script.STEPS, {"bench": (self.script.bench, 1.0)}):
            status, _ = self.prove("--only", "bench", "--only", "trials")
        self.assertEqual(status, 1)
        self.assertLess(time.monotonic() - began, 30.0)
        self.assertIn("still running", self.steps()["bench"]["reason"])
        self.assertEqual(self.steps()["trials"]["outcome"], "passed")

    def test_skips_when_the_sanitizer_does_not_support_the_device(self) -> None:
        self.plan(refused=True)
        self.assertEqual(self.prove("--only", "memcheck")[0], 0)
        self.assertIn("Device not supported", self.steps()["memcheck"]["reason"])
        self.assertEqual(self.steps()["memcheck"]["outcome"], "skipped")

    def test_a_slow_sanitizer_fails_only_if_it_found_an_error(self) -> None:
        for word, outcome in (("all tests so far are well", "skipped"), ("========= Invalid __global__ write of size 8 bytes", "failed")):
            self.plan(hangs="compute-sanitizer", word=word)
            with mock.patch.dict(self.script.STEPS, {"memcheck": (self.script.sanitize("memcheck"), 4.0)}):
                self.prove("--only", "memcheck")
            self.assertEqual(self.steps()["memcheck"]["outcome"], outcome, word)

    def test_takes_rounds_from_trials_if_single_rounds_have_no_device(self) -> None:
        self.plan(rounds=False)
        self.assertEqual(self.prove("--only", "rounds")[0], 0)
        checks = self.steps()["rounds"]["checks"]
        self.assertEqual([(check["measured"], check["ok"]) for check in checks], [(0.4, True), (1.6, False)])

    def test_skips_steps_when_the_time_budget_is_used_up(self) -> None:
        self.assertEqual(self.prove("--only", "trials", "--budget", "1")[0], 0)
        self.assertIn("time of all steps", self.steps()["trials"]["reason"])

    def test_prints_one_sentence_and_makes_no_folder_without_a_gpu(self) -> None:
        self.plan(gpu=False)
        status, said = self.prove()
        self.assertEqual(status, 2)
        self.assertEqual(len(said.strip().splitlines()), 1)
        self.assertIn("the driver reports no device", said)
        self.assertFalse(self.folder.exists())

    def test_refuses_a_folder_with_other_files(self) -> None:
        self.folder.mkdir()
        (self.folder / "thesis.txt").write_text("mine")
        self.assertEqual(self.prove()[0], 2)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["thesis.txt"])

    def test_reports_missing_programs(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(self.script.main([str(self.folder), "--programs", str(self.scratch / "none")]), 2)
        self.assertIn("olrank is not built", said.getvalue())


@unittest.skipUnless(PROGRAM, "OLRANK_PROGRAM is not set")
class RehearsalTest(Evidence):
    def test_a_rehearsal_runs_every_step_without_measuring(self) -> None:
        done = subprocess.run([sys.executable, SCRIPT, self.folder, "--rehearse", "--programs", Path(PROGRAM).parent],
                              capture_output=True, text=True, check=False, timeout=400)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.read()
        self.assertEqual((found["kind"], found["targets"]), ("rehearsal", {"met": 0, "missed": 0}))
        outcomes = {name: step["outcome"] for name, step in self.steps().items()}
        self.assertEqual(set(outcomes), set(self.script.STEPS))
        for name in ("machine", "parity", "determinism", "curves", "trials", "rounds", "members", "jobs", "memory"):
            self.assertEqual(outcomes[name], "passed", self.steps()[name]["reason"])
        for name in ("memcheck", "racecheck", "synccheck", "initcheck"):
            self.assertEqual(outcomes[name], "skipped")
        self.assertIn("nothing here is a measurement", (self.folder / "evidence.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
