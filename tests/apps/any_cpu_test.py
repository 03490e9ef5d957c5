"""`--same-bits-on any-cpu`: one result on CPUs of different types, which qemu emulates."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from command_line import PROGRAM, InFolder

QEMU = shutil.which("qemu-x86_64")
# Without AVX; with AVX2, by Intel, to which MKL gives other code than to the same instructions by AMD; by AMD.
CPUS = ("Nehalem", "Haswell", "EPYC")
EXPERIMENT = ("run", "--quiet", "--data", "synth:small?queries=20&seed=3", "--clicks", "perfect", "--seeds", "1",
              "--threads", "1", "--protocol-eval-every", "5")
NETWORK = ("--ranker", "olranknet", "--width", "8")


class AnyCpu(InFolder):
    def start(self, *arguments, ranker=NETWORK, cpu=None, environment=None):
        emulator = [] if cpu is None else [QEMU, "-cpu", cpu]
        return subprocess.run([*emulator, PROGRAM, *EXPERIMENT, *ranker, *map(str, arguments)], capture_output=True, text=True,
                              timeout=900, env={**os.environ, **(environment or {})})

    def fingerprint(self, name, *arguments, rounds=10, **options):
        out = self.folder / name
        done = self.start("--rounds", rounds, "--out", out, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = next(out.glob("trials/**/summary.json"))
        return json.loads(summary.read_text())["result_fingerprint"]

    @unittest.skipUnless(QEMU, "requires qemu-x86_64, of Debian's package qemu-user")
    def test_results_have_the_same_bits_on_different_cpus_if_asked_for(self):
        usual = {self.fingerprint(f"usual-{cpu}", cpu=cpu) for cpu in CPUS[:2]}
        self.assertGreater(len(usual), 1, "these CPUs agree anyway, so this test shows nothing")
        asked = {self.fingerprint(f"asked-{cpu}", "--same-bits-on", "any-cpu", cpu=cpu) for cpu in CPUS}
        asked.add(self.fingerprint("asked-here", "--same-bits-on", "any-cpu"))
        self.assertEqual(len(asked), 1)
        clicks = {self.fingerprint(f"clicks-{cpu}", "--same-bits-on", "any-cpu", ranker=("--ranker", "clickgp"), cpu=cpu)
                  for cpu in (CPUS[0], None)}
        self.assertEqual(len(clicks), 1)

    def test_cpus_without_fma_give_the_same_bits(self):
        without = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA"}  # as the C library computes on such a CPU
        trial = ("--clicks", "informational", "--seeds", "6")  # one whose lists the last bits decide
        usual, asked = ([self.fingerprint(f"{name}-{len(environment)}", *trial, *more, rounds=2000, ranker=("--ranker", "clickgp"),
                                          environment=environment) for environment in ({}, without)]
                        for name, more in (("usual", ()), ("asked", ("--same-bits-on", "any-cpu"))))
        self.assertNotEqual(*usual, "they agree anyway, so this test shows nothing")
        self.assertEqual(*asked)

    def test_plain_loops_are_right_and_have_the_same_bits_on_different_cpus(self):
        plain = {"OLRANK_BLAS": "plain"}
        algebra = subprocess.run([pathlib.Path(PROGRAM).resolve().parent / "tests/ops_test", "--gtest_filter=GemmTest*:BlasTest.*"],
                                 capture_output=True, text=True, timeout=300, env={**os.environ, **plain})
        self.assertEqual(algebra.returncode, 0, algebra.stdout)
        self.assertNotIn("Running 0 tests", algebra.stdout)
        done = self.start("--rounds", 1, "--out", self.folder / "refused", environment={"OLRANK_BLAS": "quick"})
        self.assertEqual((done.returncode, done.stderr), (2, "olrank: OLRANK_BLAS is 'quick': set it to plain, or leave it out.\n"))
        here = self.fingerprint("plain", environment=plain)
        self.assertIn("plain loops", json.loads((self.folder / "plain/manifest.json").read_text())["blas"])
        self.assertNotEqual(here, self.fingerprint("usual"), "the loops round as MKL does, so that this test shows nothing")
        if QEMU:
            self.assertEqual({self.fingerprint(f"plain-{cpu}", cpu=cpu, environment=plain) for cpu in CPUS[:2]}, {here})

    def test_what_restricts_the_instructions_is_part_of_the_trial(self):
        out = self.folder / "out"
        self.fingerprint("out", "--same-bits-on", "any-cpu")
        self.assertIn("MKL_CBWR=COMPATIBLE", json.loads((out / "manifest.json").read_text())["blas"])
        for environment in ({}, {"MKL_CBWR": "AVX2"}):
            done = self.start("--rounds", 10, "--seeds", "1,2", "--resume", "--out", out, environment=environment)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("MKL_CBWR", done.stderr)


if __name__ == "__main__":
    unittest.main()
