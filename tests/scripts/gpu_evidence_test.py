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
ROOT = SCRIPT.parents[1]
PROGRAM = os.environ.get("OLRANK_PROGRAM")

# Stands in for every program: its name selects the program, plan.json in the folder of all of them the behaviour. It starts
# 600 times, and without the packages of a site in a third of the time.
FAKE_PROGRAM = f"#!{sys.executable} -IS" + r'''
import json, os, pathlib, signal, sys, time
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
root = next(folder for folder in pathlib.Path(sys.argv[0]).resolve().parents if (folder / "plan.json").exists())
plan = json.loads((root / "plan.json").read_text())
def after(flag, otherwise=None):
    return words[len(words) - words[::-1].index(flag)] if flag in words else otherwise
def flag_value(start, otherwise=None):
    return next((word[len(start):] for word in words if word.startswith(start)), otherwise)
if plan.get("hangs") == name:
    print(plan.get("word", ""), flush=True)
    os.system("sleep 60")
if name == "olrank" and words[0] == "info":
    devices = [{"index": 0, "name": "A card", "capability": "9.0", "memory_bytes": 2**37}] * plan.get("cards", 1) if plan.get("gpu", True) else []
    print(json.dumps({"version": "1", "revision": plan.get("revision", "abc"), "compiler": "c", "libtorch": {"version": "2"}, "threads": 1,
                      "cuda": {"runtime": "13.0", "driver": "13.0", "devices": devices,
                               "no_device_because": plan.get("refusal") if devices else "the driver reports no device"}}))
elif name == "olrank" and words[:2] == ["data", "synth"]:
    with open(root / "made", "a") as made:
        made.write(words[2] + "\n")
elif name == "olrank" and words[:2] == ["bench", "round"]:
    stages = {"total": 0.0004, "idle": 0.0001, "elapsed": 0.0004}
    pathlib.Path(after("--json")).write_text(json.dumps({"measurements": [
        {"name": "/".join(["round", one, stage]), "parameters": {"n": int(n)}, "seconds": {"median": seconds}}
        for n in after("--pairs").split(",") for one in [after("--structure")] for stage, seconds in stages.items()]}))
elif name == "olrank" and words[0] == "train":
    out = pathlib.Path(after("--out"))
    out.mkdir(parents=True, exist_ok=True)
    (out / "curve.jsonl").write_text("".join(json.dumps({"epoch": epoch, "seconds": 0.05 * epoch}) + "\n" for epoch in range(5)))
elif name == "olrank" and words[0] == "run":
    out = pathlib.Path(after("--out"))
    runs = len(list(root.glob("run-*")))
    (root / ("run-%d" % runs)).write_text(" ".join(words))
    print(plan.get("word", "done"))
    if plan.get("run_status"):
        sys.exit(plan["run_status"])
    first, _, last = after("--seeds").partition("-")
    for seed in range(int(first), int(last or first) + 1):
        trial = out / ("trials/olranknet/perfect/fold1/seed%d" % seed)
        trial.mkdir(parents=True, exist_ok=True)
        waits = out.name == "stopped" and "--resume" not in words and not plan.get("unstoppable")
        if waits:  # before the curve, which says that it may be stopped
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        (trial / "curve.jsonl").write_text("".join(json.dumps({"round": r, "pairs": r, "offline": {"ndcg@10": 0.4}}) + "\n" for r in (0, 5, 9)))
        if waits:
            time.sleep(60)
        seconds = 4.0 + 0.5 * (out.name == "full-2") if "full" in words else 2.0
        (trial / "summary.json").write_text(json.dumps({
            "seconds": seconds, "seconds_by_stage": {"train": 0.75 * seconds, "rank": 0.2}, "seed": seed,
            "last": {"pairs": 5, "posterior_bytes": 50 if after("--form") == "auto" and not plan.get("stays_dual") else 100},
            "result_fingerprint": "f%d" % (runs if plan.get("drifts") else seed)}))
elif name == "cuda_test" and flag_value("--gtest_output=json:"):
    case = {"name": "A/0", "classname": "KernelTest", "result": "SKIPPED" if plan.get("tests_skip") else "COMPLETED"}
    if plan.get("tests_fail"):
        case["failures"] = [{"failure": "x"}]
    pathlib.Path(flag_value("--gtest_output=json:")).write_text(json.dumps({"testsuites": [{"testsuite": [case]}]}))
    sys.exit(1 if plan.get("tests_fail") else 0)
elif name == "compute-sanitizer":
    shard = [os.environ["GTEST_SHARD_INDEX"], os.environ["GTEST_TOTAL_SHARDS"], after("--port")]
    with open(root / "sanitized", "a") as sanitized:
        sanitized.write(json.dumps([flag_value("--tool="), flag_value("--report-api-errors="), flag_value("--gtest_filter="), *shard]) + "\n")
    print("[       OK ] A.B (1 ms)")
    if plan.get("slow_engine") and flag_value("--gtest_filter=").startswith("-") and shard[0] == "1":
        print(plan.get("word", ""), flush=True)
        os.system("sleep 60")
    copies, errors = plan.get("copies", 0), plan.get("errors", 0) * (shard[0] == "0")
    print("========= Host API uninitialized memory access\n=========     Uninitialized access at 0x1 on access by cudaMemcpy source\n" * copies)
    print("========= ERROR SUMMARY: %d errors" % (errors + copies) if not plan.get("refused") else "Error: Device not supported")
    sys.exit(9 if errors + copies else 0)
elif name == "device_bench":
    row = {"name": "training/step", "parameters": {"n": 10000}, "seconds": {"median": 2e-5, "min": 2e-5, "max": 3e-5},
           "operations": 1e9, "bytes": 1e6, "ceiling": {"name": "gemm float", "value": 5e13}, "share": None,
           "libtorch": {"ratio": 2.5}, "targets": [{"what": "times LibTorch", "measured": 2.5, "target": 2.0, "at_most": False},
                                                    {"what": "share", "measured": None, "target": 0.7, "at_most": False}]}
    pathlib.Path(after("--json")).write_text(json.dumps({"ceilings": {"copy": 4e12}, "ceilings_at_end": {"copy": 3e12}, "measurements": [row]}))
    sys.exit(plan.get("bench_status", 0))
elif name == "nvidia-smi":
    if os.environ.get("LD_LIBRARY_PATH") != plan.get("libraries", os.environ.get("LD_LIBRARY_PATH")):
        sys.exit(3)
    print(", ".join(["A card"] + ["1"] * 10))
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
        for place in ("bin/olrank", "bin/device_bench", "bin/tests/cuda_test", "compute-sanitizer/compute-sanitizer", "tools/nvidia-smi"):
            path = self.scratch / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FAKE_PROGRAM)
            path.chmod(0o755)
        here = {"PATH": f"{self.scratch / 'tools'}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
        for patch in (mock.patch.dict(os.environ, here), mock.patch("evidence.steps.os.cpu_count", return_value=4)):
            patch.start()
            self.addCleanup(patch.stop)
        self.plan()

    def plan(self, **parts: object) -> None:
        (self.scratch / "plan.json").write_text(json.dumps(parts))

    def prove(self, *more: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = self.script.main([str(self.folder), "--programs", os.path.relpath(self.bin), *more])
        return status, said.getvalue()

    def test_a_whole_run_tells_of_passed_steps_and_missed_targets(self) -> None:
        seconds = {}
        for call, of_call in self.script.CALLS.items():
            seconds[call] = sum(seconds for _, seconds in {**self.script.FIRST, **of_call}.values()) + self.script.ANSWER
        self.assertLessEqual(max(seconds.values()), self.script.CALL)
        self.assertLessEqual(seconds[1] + seconds[2], self.script.QUARTER)
        status, said = self.prove()
        self.assertEqual(status, 0, said)
        found, numbers = self.read(), {name: step["numbers"] for name, step in self.steps().items()}
        self.assertEqual((found["kind"], found["outcome"], found["not run"]), ("evidence", "passed", []))
        self.assertEqual([(step["name"], step["outcome"]) for step in found["steps"]], [(name, "passed") for name in self.script.STEPS], said)
        for line in ("bench        passed       1 of 3 targets met", "  copy after the operations, over its first measurement: 0.75, not ≥ 0.97",
                     "  seconds of a trial, full covariance, T = 5000, the slower of two: 4.5, not ≤ 4", "  full over diagonal: 2.125, not ≤ 1.2"):
            self.assertIn(line, said)
        self.assertEqual((numbers["machine"]["devices"][0]["name"], numbers["trials"]["spread of full"]), ("A card", 0.125))
        self.assertEqual((numbers["trials"]["full 1"]["seconds"], numbers["trials"]["full 1"]["idle_share"]), (4, 0.25))  # the CPU makes lists
        self.assertEqual(sorted((self.scratch / "made").read_text().split()),  # each data set once
                         [f"mslr-like?queries={sizes}" for sizes in ("18919&test_queries=6306", "600&test_queries=250", "6000&test_queries=2000")])
        runs = {run.read_text().split("--out ")[1].split()[0].split("/")[-1]: "--device cuda" in run.read_text() for run in self.scratch.glob("run-*")}
        self.assertEqual([name for name, on_gpu in runs.items() if not on_gpu], ["curve-cpu"])
        self.assertNotIn("NaN", (self.folder / "evidence.json").read_text(encoding="utf-8"))

    def test_failures_do_not_stop_other_steps(self) -> None:
        self.plan(drifts=True, tests_fail=True, errors=3, bench_status=1)
        status, said = self.prove()
        self.assertEqual((status, self.read()["outcome"]), (1, "failed"))
        failed = {name for name, step in self.steps().items() if step["outcome"] == "failed"}
        self.assertEqual(failed, {"parity", "variants", "determinism", "bench", "memcheck", "racecheck", "synccheck", "initcheck"}, said)
        self.assertRegex(self.steps()["determinism"]["reason"], "in a second run: first f.*with many jobs.*after an interr.*across")
        self.assertEqual(self.steps()["memcheck"]["numbers"]["kernels"]["errors"], 3)

    def test_says_why_a_step_did_not_pass(self) -> None:
        for step, plan, outcome, reason in (
                ("parity", {"tests_fail": True}, "failed", "KernelTest.A/0"), ("parity", {"tests_skip": True}, "failed", "must run"),
                ("determinism", {"unstoppable": True}, "failed", "before it could be stopped"),
                ("determinism", {"stays_dual": True}, "failed", "did not change"),
                ("determinism", {"run_status": 1, "word": "the card is on fire"}, "failed", "the card is on fire"),
                ("memcheck", {"refused": True}, "skipped", "Device not supported")):
            self.plan(**plan)
            self.assertEqual(self.prove("--only", step)[0], outcome == "failed")
            found = self.steps()[step]
            self.assertEqual(found["outcome"], outcome)
            self.assertIn(reason, found["reason"])
        self.assertIn("the card is on fire", (self.folder / "log.txt").read_text(encoding="utf-8"))
        self.prove("--only", "trials", "--budget", "1")
        self.assertIn("time of all steps", self.steps()["trials"]["reason"])

    def test_refuses_with_one_sentence(self) -> None:
        def refused(sentence: str, *more: str, **plan: object) -> None:
            self.plan(**plan)
            status, said = self.prove(*more)
            self.assertEqual((status, said.count("\n")), (2, 1))
            self.assertIn(sentence, said)

        refused("the driver reports no device", gpu=False)
        refused("cuSOLVER is version 12.1.0. --rehearse", refusal="The loaded cuSOLVER is version 12.1.0.")
        with mock.patch.object(self.script, "ANSWER", 1.0):
            refused("has not answered within 1 s", hangs="olrank")
        refused("olrank is not built", "--programs", str(self.scratch / "none"))
        self.assertFalse(self.folder.exists())
        self.folder.mkdir()
        (self.folder / "thesis.txt").write_text("mine")
        refused("exists and has no evidence.json")
        (self.folder / "thesis.txt").unlink()
        self.prove("--only", "curves")
        refused("another build or card", "--only", "trials", revision="def")

    def test_a_call_adds_to_the_evidence_of_earlier_ones(self) -> None:
        self.plan(tests_fail=True)
        status, said = self.prove("--only", "parity", "--only", "curves", "--only", "jobs")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"parity +failed .*\n(.*\n)*.*training +not run")
        log = (self.folder / "log.txt").read_text(encoding="utf-8")
        self.plan()
        status, said = self.prove("--only", "trials")  # the verdict names what the first call found, the status does not
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"parity +failed")
        self.assertRegex(said, r"trials +passed +0 of 3 targets met .*\n.*seconds of a trial.*: 4.5, not ≤ 4")
        found = self.read()
        self.assertEqual([step["name"] for step in found["steps"]], ["parity", "jobs", "trials", "curves"])
        self.assertEqual((found["outcome"], sum(found["targets"].values())), ("failed", 5))  # of both calls
        self.assertIn("members", found["not run"])
        self.assertTrue((self.folder / "log.txt").read_text(encoding="utf-8").startswith(log))
        self.prove("--only", "parity")  # replaces what it found
        self.assertEqual([step["outcome"] for step in self.read()["steps"]], ["passed"] * 4)

    def test_ends_a_hanging_program_and_continues(self) -> None:
        self.plan(hangs="device_bench")
        began = time.monotonic()
        with mock.patch.dict(self.script.STEPS, {"bench": (self.script.steps.bench, 2)}):
            status, said = self.prove("--only", "bench", "--only", "trials")
        self.assertEqual((status, self.steps()["bench"]["outcome"]), (3, "not finished"))
        self.assertRegex(said, r"bench +not finished.*still running")  # the verdict
        self.assertLess(time.monotonic() - began, 55.0)  # the program would sleep for 60
        self.assertIn("still running", self.steps()["bench"]["reason"])
        self.assertEqual(self.steps()["trials"]["outcome"], "passed")

    def test_sanitizers_check_kernels_and_then_the_engine_in_several_processes(self) -> None:
        for tool, interface in (("racecheck", None), ("memcheck", "no")):
            (self.scratch / "sanitized").unlink(missing_ok=True)
            self.prove("--only", tool)
            started = [json.loads(line) for line in (self.scratch / "sanitized").read_text().splitlines()]
            self.assertEqual([one[2] for one in started], ["*KernelTest*"] * 3 + ["-*KernelTest*"] * 3)
            for part in (started[:3], started[3:]):
                self.assertEqual(sorted(one[3:] for one in part), [[str(index), "3", str(49152 + 20 * index)] for index in range(3)])
            self.assertEqual({tuple(one[:2]) for one in started}, {(tool, interface)})
            self.assertEqual(self.steps()[tool]["numbers"]["engine"]["tests passed"], 3)

    def test_copies_of_unwritten_memory_are_counted_apart(self) -> None:
        for errors, status in ((0, 0), (2, 1)):
            self.plan(copies=4, errors=errors)
            self.assertEqual(self.prove("--only", "initcheck")[0], status)
            found = self.steps()["initcheck"]["numbers"]["kernels"]
            self.assertEqual((found["errors"], found["copies of unwritten memory to the host"]), (errors, 12))

    def test_a_slow_sanitizer_fails_only_if_it_found_an_error(self) -> None:
        for word, outcome in (("all tests so far are well", "not finished"), ("========= Invalid __global__ write of size 8 bytes", "failed")):
            self.plan(slow_engine=True, word=word)
            self.prove("--only", "memcheck", "--budget", "8")
            found = self.steps()["memcheck"]
            self.assertEqual(found["outcome"], outcome, word)
            self.assertEqual(found["numbers"]["kernels"]["errors"], 0)
            self.assertEqual(found["numbers"]["engine"]["processes that did not finish"], 1)
            self.assertIn("tests of engine (3 tests passed)" if outcome == "not finished" else "errors found", found["reason"])

    def test_nvidia_smi_has_the_libraries_of_the_programs(self) -> None:
        self.plan(libraries="/libraries")
        for libraries, answers in (("/libraries", True), ("/others", False)):
            with mock.patch.dict(os.environ, OLRANK_LIBRARY_PATH=libraries):
                self.prove("--only", "machine")
            self.assertEqual(isinstance(self.steps()["machine"]["numbers"]["card"], dict), answers)

    def test_one_card_need_not_pass_the_test_of_two(self) -> None:
        for cards in (1, 2):
            self.plan(cards=cards)
            self.prove("--only", "machine", "--only", "parity")
            self.assertEqual("-*EveryDeviceHasTheSameBits*" in (self.folder / "log.txt").read_text(encoding="utf-8"), cards == 1)
            for left in self.folder.iterdir():
                left.unlink()


@unittest.skipUnless(PROGRAM, "OLRANK_PROGRAM is not set")
class RehearsalTest(Evidence):
    def test_a_rehearsal_runs_every_step_without_measuring(self) -> None:
        done = subprocess.run([sys.executable, SCRIPT, self.folder, "--rehearse", "--programs", Path(PROGRAM).parent],
                              capture_output=True, text=True, check=False, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.read()
        self.assertEqual((found["kind"], found["targets"]), ("rehearsal", {"met": 0, "missed": 0}))
        outcomes = {name: step["outcome"] for name, step in self.steps().items()}
        self.assertEqual(set(outcomes), set(self.script.STEPS))
        self.assertEqual(set(outcomes.values()), {"passed"}, done.stderr)
        # The test that one card leaves out exists, and initcheck's processes share the tests.
        tests = subprocess.run([Path(PROGRAM).parent / "tests/emulated_kernels_test", "--gtest_list_tests",
                                f"--gtest_filter={self.script.steps.NEEDS_TWO_CARDS}"], capture_output=True, text=True, check=True).stdout
        self.assertIn("EveryDeviceHasTheSameBits", tests)
        kernels = self.steps()["initcheck"]["numbers"]["kernels"]
        self.assertEqual((kernels["processes"], kernels["processes that did not finish"]), (2, 0))
        self.assertGreater(kernels["tests passed"], 2)


if __name__ == "__main__":
    unittest.main()
