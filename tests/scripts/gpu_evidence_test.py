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
small_kernel = name == "cuda_test" and flag_value("--gtest_output=") is None and flag_value("--gtest_filter=") == "*OptimizerStep*"
if small_kernel and (root / "dead").exists():
    sys.exit(1)
if plan.get("hangs") == name and not small_kernel:
    print(plan.get("word", ""), flush=True)
    os.system("sleep 60")
if plan.get("kills_device") == name and "--list" not in words:
    (root / "dead").touch()
    os.kill(os.getpid(), signal.SIGSEGV)
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
elif name == "device_bench" and "--list" in words:
    print("\n".join(plan.get("operations", ["inverse_factor/apply_factor n=10000 V=125", "training/step n=10000"])))
elif name == "device_bench" and "--once" not in words:
    row = {"name": "training/step", "parameters": {"n": 10000}, "seconds": {"median": 2e-5, "min": 2e-5, "max": 3e-5},
           "operations": 1e9, "bytes": 1e6, "ceiling": {"name": "gemm float", "value": 5e13}, "share": None,
           "libtorch": {"ratio": 2.5}, "targets": [{"what": "times LibTorch", "measured": 2.5, "target": 2.0, "at_most": False},
                                                    {"what": "share", "measured": None, "target": 0.7, "at_most": False}]}
    copy = 4e12 if "--ceilings" not in words else 3e12
    pathlib.Path(after("--json")).write_text(json.dumps({"ceilings": {"copy": copy}, "ceilings_at_end": {"copy": 4e12}, "measurements": [row]}))
    sys.exit(plan.get("bench_status", 0))
elif name == "ncu":
    if plan.get("no_counters"):
        print("==ERROR== ERR_NVGPUCTRPERM - no permission")
        sys.exit(1)
    (root / "profiled").write_text(" ".join(words))
    rows = [("ID", "Process Name", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
            ("0", "device_bench", "void olrank::device::<unnamed>::apply_kernel<(int)8>(int, double *)", "GPU Speed Of Light Throughput", "Duration", "usecond", "190.5"),
            ("0", "device_bench", "void olrank::device::<unnamed>::apply_kernel<(int)8>(int, double *)", "GPU Speed Of Light Throughput", "DRAM Throughput", "%", "71.2"),
            ("0", "device_bench", "void olrank::device::<unnamed>::apply_kernel<(int)8>(int, double *)", "Launch Statistics", "Waves Per SM", "", "3")]
    pathlib.Path(after("--log-file")).write_text("==PROF== Connected\n" + "\n".join(",".join('"%s"' % cell for cell in row) for row in rows))
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


def evidence_run() -> types.ModuleType:
    return sys.modules["evidence.run"]


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
        for place in ("bin/olrank", "bin/device_bench", "bin/tests/cuda_test", "compute-sanitizer/compute-sanitizer", "cuda/bin/ncu",
                      "tools/nvidia-smi"):
            path = self.scratch / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FAKE_PROGRAM)
            path.chmod(0o755)
        here = {"PATH": f"{self.scratch / 'tools'}:{os.environ['PATH']}", "CUDA_HOME": str(self.scratch / "cuda"), "CUDA_VISIBLE_DEVICES": ""}
        for patch in (mock.patch.dict(os.environ, here), mock.patch("evidence.programs.glob.glob", return_value=[]),
                      mock.patch("evidence.checks.os.cpu_count", return_value=4), mock.patch("evidence.run.PAUSE", 0.1), mock.patch("evidence.run.HEALTH", 30.0), mock.patch("evidence.run.LEAST", 1.5)):
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

    def test_reports_that_everything_passed(self) -> None:
        status, said = self.prove()
        self.assertEqual(status, 0, said)
        found = self.read()
        self.assertEqual((found["kind"], found["outcome"]), ("evidence", "passed"))
        self.assertEqual([step["name"] for step in found["steps"]], list(self.script.STEPS))
        self.assertEqual({step["outcome"] for step in found["steps"]}, {"passed"}, said)
        for line in ("bench        passed       2 of 3 targets met", "  copy after all steps, over its first measurement: 0.75, not ≥ 0.97",
                     "  seconds of a trial, full covariance, T = 5000, the slower of two: 4.5, not ≤ 4", "  full over diagonal: 2.125, not ≤ 1.2"):
            self.assertIn(line, said)
        numbers = {name: step["numbers"] for name, step in self.steps().items()}
        self.assertEqual(numbers["machine"]["devices"][0]["name"], "A card")
        self.assertEqual((numbers["trials"]["spread of full"], numbers["trials"]["full 1"]["seconds"]), (0.125, 4))
        self.assertEqual(numbers["counters"]["kernels"][0]["kernel"], "apply_kernel")
        self.assertLessEqual({path.name for path in self.folder.iterdir()},
                             {"evidence.json", "log.txt", "parity.json", "device_bench.json", "variants.json", "ceilings.json", "counters.csv"})

    def test_steps_share_the_time_in_proportion_and_leave_the_rest_to_later_ones(self) -> None:
        names = list(self.script.STEPS)
        whole = self.script.seconds_of(names)
        for budget in (whole, 100.0):
            self.folder.mkdir(exist_ok=True)
            run = evidence_run().Run(self.folder, self.script.Programs(self.bin), False, budget, self.scratch, names)
            left = budget
            for name in names:  # even if each uses all it may, the last one has its part
                run.deadline = time.monotonic() + left
                limit = run.limit_of(self.script.STEPS, names, name)
                part = self.script.STEPS[name][1] * budget / whole
                self.assertGreaterEqual(limit, part - 0.1)
                left -= limit
            self.assertGreaterEqual(left, -0.1)

    def test_four_calls_of_less_than_500_seconds_make_every_step_once(self) -> None:
        script = self.script
        for call, steps in script.CALLS.items():
            chosen = script.chosen_steps(script.parse(["x", "--call", str(call)]))
            self.assertEqual(chosen, [*script.FIRST, *steps])
            self.assertLessEqual(script.seconds_of(chosen) + script.ANSWER, script.CALL)
        quarter = [script.seconds_of([*script.FIRST, *script.CALLS[call]]) + script.ANSWER for call in (1, 2)]
        self.assertLessEqual(sum(quarter), script.QUARTER)
        self.assertEqual(sum(map(len, script.CALLS.values())) + len(script.FIRST), len(script.STEPS))
        self.assertLessEqual(sum(script.seconds_of([*script.FIRST, *steps]) for steps in script.CALLS.values()), 45 * 60)

    def test_steps_finish_on_a_machine_whose_programs_start_three_seconds_later(self) -> None:
        """Each step has to its limit what it took on an H200, and 3 s more for each program that it starts, one after another."""
        measured: dict[str, float] = {}
        for record in (ROOT / "docs/evidence/2026-11-26-h200").glob("*.json"):
            for step in json.loads(record.read_text(encoding="utf-8")).get("steps", []):
                measured[step["name"]] = max(measured.get(step["name"], 0.0), step["seconds"])
        self.assertGreater(len(measured), 9)
        late = [0.0]
        start, of_step = evidence_run().Step.command, evidence_run().Run.run_step

        def slow_command(step, *arguments, **named):
            late[0] += 3.0
            return start(step, *arguments, **named)

        def slow_step(run, name, *arguments):
            body = arguments[0]

            def whole(step):
                late[0] += measured.get(name, 0.0)
                return body(step)

            return of_step(run, name, whole, *arguments[1:])

        clock = mock.Mock(wraps=time, monotonic=lambda: time.monotonic() + late[0])
        for call in self.script.CALLS:
            late[0] = 0.0
            with mock.patch("evidence.run.time", clock), mock.patch.object(evidence_run().Step, "command", slow_command), \
                    mock.patch.object(evidence_run().Run, "run_step", slow_step):
                status, said = self.prove("--call", str(call))
            self.assertEqual(status, 0, said)
            self.assertEqual({step["outcome"] for step in self.read()["steps"]}, {"passed"}, said)
            self.assertGreater(late[0], 20.0)

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

    def test_refuses_to_mix_the_evidence_of_two_builds(self) -> None:
        self.prove("--only", "curves")
        before = self.read()
        self.plan(revision="def")
        status, said = self.prove("--only", "trials")
        self.assertEqual(status, 2)
        self.assertIn("another build or card", said)
        self.assertEqual(self.read(), before)

    def test_missed_or_unmeasured_targets_do_not_fail(self) -> None:
        self.assertEqual(self.prove("--only", "bench", "--only", "trials")[0], 0)
        found = self.read()
        checks = [check for step in found["steps"] for check in step["checks"]]
        self.assertEqual([check["ok"] for check in checks], [False, False, False, True, False, True])
        self.assertEqual(found["targets"], {"met": 2, "missed": 4})
        self.assertNotIn("NaN", (self.folder / "evidence.json").read_text(encoding="utf-8"))

    def test_runs_on_the_gpu_except_for_the_cpu_reference(self) -> None:
        for step in ("curves", "determinism"):
            self.prove("--only", step)
        runs = [(self.scratch / f"run-{number}").read_text() for number in range(4)]
        self.assertEqual([run.split("--device ")[1].split()[0] for run in runs], ["cpu", "cuda", "cuda", "cuda"])

    def test_plays_the_full_covariance_on_growth(self) -> None:
        self.prove("--only", "covariances")
        self.assertEqual(self.steps()["covariances"]["outcome"], "passed")
        runs = [(self.scratch / f"run-{number}").read_text() for number in range(2)]
        found = [(run.split("--covariance ")[1].split()[0], "--retrain growth" in run) for run in runs]
        self.assertEqual(found, [("full", False), ("full", True)])
        self.assertEqual(self.steps()["covariances"]["numbers"]["growth, full over every round, full"], 1.0)

    def test_makes_each_data_set_once(self) -> None:
        self.prove("--only", "trials", "--only", "members", "--only", "determinism")
        self.assertEqual(sorted((self.scratch / "made").read_text().splitlines()),
                         ["mslr-like?queries=600&test_queries=250", "mslr-like?queries=6000&test_queries=2000"])

    def test_gpu_time_that_no_stage_accounts_for_is_idle(self) -> None:
        self.prove("--only", "trials")
        # The list is made by the CPU.
        self.assertEqual(self.steps()["trials"]["numbers"]["full 1"]["idle_share"], 0.25)

    def test_failures_do_not_stop_other_steps(self) -> None:
        self.plan(drifts=True, tests_fail=True, errors=3, bench_status=1)
        status, said = self.prove()
        self.assertEqual(status, 1)
        steps = self.steps()
        failed = {name for name, step in steps.items() if step["outcome"] == "failed"}
        self.assertEqual(failed, {"parity", "variants", "determinism", "bench", "memcheck", "racecheck", "synccheck", "initcheck", "ceilings"}, said)
        self.assertIn("KernelTest.A/0", steps["parity"]["reason"])
        self.assertRegex(steps["determinism"]["reason"], "in a second run: first f.*with many jobs.*after an interr.*across")
        self.assertEqual(steps["memcheck"]["numbers"]["kernels"]["errors"], 3)
        self.assertEqual(self.read()["outcome"], "failed")

    def test_determinism_needs_an_interruption_and_a_change_of_form(self) -> None:
        for flag, words in (("unstoppable", "before it could be stopped"), ("stays_dual", "did not change")):
            self.plan(**{flag: True})
            self.assertEqual(self.prove("--only", "determinism")[0], 1)
            self.assertIn(words, self.steps()["determinism"]["reason"])

    def test_starts_nothing_once_the_device_is_lost(self) -> None:
        self.plan(kills_device="device_bench")
        status, said = self.prove("--only", "machine", "--only", "bench", "--only", "training", "--only", "members")
        self.assertEqual(status, 1, said)
        self.assertEqual([step["outcome"] for step in self.read()["steps"]], ["passed", "failed", "skipped", "skipped"])
        self.assertIn("no longer runs a small kernel", self.steps()["members"]["reason"])
        self.assertIn("since the step bench", self.steps()["members"]["reason"])
        self.assertFalse((self.scratch / "run-0").exists())

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
        with mock.patch.dict(self.script.STEPS, {"bench": (self.script.measurements.bench, 2), "trials": (self.script.measurements.trials, 20)}):
            status, said = self.prove("--only", "bench", "--only", "trials", "--budget", "22")
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

    def test_skips_when_the_sanitizer_does_not_support_the_device(self) -> None:
        self.plan(refused=True)
        self.assertEqual(self.prove("--only", "memcheck")[0], 0)
        self.assertIn("Device not supported", self.steps()["memcheck"]["reason"])
        self.assertEqual(self.steps()["memcheck"]["outcome"], "skipped")

    def test_a_slow_sanitizer_fails_only_if_it_found_an_error(self) -> None:
        for word, outcome in (("all tests so far are well", "not finished"), ("========= Invalid __global__ write of size 8 bytes", "failed")):
            self.plan(slow_engine=True, word=word)
            self.prove("--only", "memcheck", "--budget", "8")
            found = self.steps()["memcheck"]
            self.assertEqual(found["outcome"], outcome, word)
            self.assertEqual(found["numbers"]["kernels"]["errors"], 0)
            self.assertEqual(found["numbers"]["engine"]["processes that did not finish"], 1)
            self.assertIn("tests of engine (3 tests passed)" if outcome == "not finished" else "errors found", found["reason"])

    def test_profiles_the_operations_that_exist(self) -> None:
        self.assertEqual(self.prove("--only", "counters")[0], 0)
        command = (self.scratch / "profiled").read_text()
        self.assertIn("--once --only inverse_factor/apply_factor n=10000 ", command)
        self.assertNotIn("training/step", command)
        self.assertEqual(len(self.steps()["counters"]["numbers"]["missing"]), 7)
        self.assertEqual(self.steps()["counters"]["numbers"]["kernels"],
                         [{"kernel": "apply_kernel", "Duration": "190.5 usecond", "DRAM Throughput": "71.2 %"}])

    def test_counters_may_be_refused(self) -> None:
        self.plan(no_counters=True)
        self.assertEqual(self.prove("--only", "counters")[0], 0)
        self.assertEqual(self.steps()["counters"]["outcome"], "skipped")
        self.assertIn("ERR_NVGPUCTRPERM", self.steps()["counters"]["reason"])

    def test_measures_rounds_of_members(self) -> None:
        self.prove("--only", "rounds")
        found = self.steps()["rounds"]["numbers"]
        self.assertLessEqual({f"ensemble-10 n={n}" for n in (100, 1000, 10_000)}, set(found))

    def test_runs_without_nvidia_smi(self) -> None:
        with mock.patch("evidence.checks.shutil.which", return_value=None):
            self.assertEqual(self.prove("--only", "machine")[0], 0)
        self.assertEqual(self.steps()["machine"]["numbers"]["card"], "nvidia-smi is not installed")

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

    def test_skips_steps_when_the_time_budget_is_used_up(self) -> None:
        self.assertEqual(self.prove("--only", "trials", "--budget", "1")[0], 0)
        self.assertIn("time of all steps", self.steps()["trials"]["reason"])

    def test_prints_one_sentence_and_makes_no_folder_without_a_gpu(self) -> None:
        self.plan(gpu=False)
        status, said = self.prove()
        self.assertEqual(status, 2)
        self.assertEqual(len(said.strip().splitlines()), 1)
        self.assertIn("the driver reports no device", said)
        self.plan(refusal="The loaded cuSOLVER is version 12.1.0.")
        self.assertIn("cuSOLVER is version 12.1.0. --rehearse", self.prove()[1])
        self.assertFalse(self.folder.exists())

    def test_a_driver_that_does_not_answer_is_no_gpu(self) -> None:
        self.plan(hangs="olrank")
        with mock.patch.object(self.script, "ANSWER", 1.0):
            status, said = self.prove()
        self.assertEqual(status, 2)
        self.assertIn("has not answered within 1 s", said)

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
                              capture_output=True, text=True, check=False, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.read()
        self.assertEqual((found["kind"], found["targets"]), ("rehearsal", {"met": 0, "missed": 0}))
        outcomes = {name: step["outcome"] for name, step in self.steps().items()}
        self.assertEqual(set(outcomes), set(self.script.STEPS))
        self.assertEqual(set(outcomes.values()), {"passed"}, done.stderr)
        self.assertEqual(self.steps()["counters"]["numbers"]["missing"], [])
        # The test that one card leaves out exists, and initcheck's processes share the tests.
        tests = subprocess.run([Path(PROGRAM).parent / "tests/emulated_kernels_test", "--gtest_list_tests",
                                f"--gtest_filter={self.script.checks.NEEDS_TWO_CARDS}"], capture_output=True, text=True, check=True).stdout
        self.assertIn("EveryDeviceHasTheSameBits", tests)
        kernels = self.steps()["initcheck"]["numbers"]["kernels"]
        self.assertEqual((kernels["processes"], kernels["processes that did not finish"]), (2, 0))
        self.assertGreater(kernels["tests passed"], 2)


if __name__ == "__main__":
    unittest.main()
