#!/usr/bin/env python3
"""Reads what nvcc and ptxas make of two kernels, for the card that this build is for: registers, and the instructions that matter.

That no kernel spills is checked where all of them are compiled. A cooperative kernel reads what others have written, which a read of
constants (ld.global.nc, LDG.CONSTANT) may not see; a trial has its bits in a launch of its own and in one of several; of products in
double, and of float32 in training, there is one instruction on tensor cores, of a fixed shape.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMMANDS = Path(os.environ.get("OLRANK_BUILD", ".")) / "compile_commands.json"
MOST_REGISTERS = 255  # with 256 threads, all that a multiprocessor has


def commands_of(kernel: str) -> list[list[str]]:
    """By nvcc: the tests' emulation compiles the same file as C++."""
    found = [one for one in json.loads(COMMANDS.read_text(encoding="utf-8")) if one["file"].endswith(f"cuda/ops/{kernel}.cu")]
    return [shlex.split(one["command"]) for one in found if " -x cu " in one["command"]]


class KernelCodeTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def ptx_of(self, kernel: str) -> tuple[str, str]:
        """The file of the kernel's intermediate code, and its text."""
        (words,) = commands_of(kernel)
        begin = next(place for place, word in enumerate(words) if Path(word).name == "nvcc")
        end = words.index("-o")
        kept = [word for word in [*words[begin:end], *words[end + 2:]] if word != "-c" and not word.startswith(("--generate-code", "-Xptxas"))]
        self.nvcc, file = kept[0], self.scratch / f"{kernel}.ptx"
        subprocess.run([*kept, "-ptx", "-arch=compute_90", "-o", file], check=True, cwd=COMMANDS.parent)
        return str(file), file.read_text(encoding="utf-8")

    def assert_one_rounding(self, text: str) -> None:
        """As many products stand alone, fused with no sum, in a kernel for the launch of one trial as in that of several. The compiler may unroll
        sums differently."""
        counts: dict[tuple[str, str], dict[str, collections.Counter[str]]] = collections.defaultdict(dict)
        for entry in text.split(".entry ")[1:]:
            form, body, threads = re.search(r"(own|shared)_launchIXadL_?Z?(.*?)EELj(\d+)ELj", entry).groups()
            counts[body, threads][form] = collections.Counter(re.findall(r"\b(?:mul|div|sqrt)\.(?:rn\.)?f(?:32|64)", entry))
        self.assertGreater(len(counts), 1)
        for body, forms in counts.items():
            self.assertEqual(forms["own"], forms["shared"], body)

    def test_cooperative_training_keeps_its_registers_and_reads_no_constants(self) -> None:
        file, text = self.ptx_of("persistent_training")
        self.assertIn("ld.global.f32", text)
        self.assertNotIn("ld.global.nc", text)
        self.assert_one_rounding(text)
        done = subprocess.run([Path(self.nvcc).with_name("ptxas"), "-v", "-arch=sm_90", file, "-o", self.scratch / "code"],
                              capture_output=True, text=True, check=True)
        training = r"entry function '\w+_launch\w+persistent_training_kernel\w+' for.*?Used (\d+) registers"
        registers = [int(number) for number in re.findall(training, done.stderr, re.S)]
        self.assertEqual(len(registers), 2, done.stderr)  # for a launch of one trial and of several
        self.assertLessEqual(max(registers), MOST_REGISTERS)
        self.assertEqual(re.findall(r"[1-9]\d* bytes spill", done.stderr), [])
        page = Path("docs/evidence/GPU-RECORD.md").read_text(encoding="utf-8")
        self.assertIn(f"{max(registers)} registers of {MOST_REGISTERS}", " ".join(page.split()))

    def test_float32_products_of_training_are_three_of_tensor_cores(self) -> None:
        _, text = self.ptx_of("persistent_training")
        kernels = [entry for entry in text.split(".entry ") if "persistent_training_kernel" in entry.split("(")[0]]
        self.assertEqual(len(kernels), 2)
        for kernel in kernels:
            shapes = collections.Counter(re.findall(r"mma\.sync\.aligned\.(m\d+n\d+k\d+)[.\w]*tf32", kernel))
            self.assertEqual(shapes, {"m16n8k8": 2 * 3 * 2 * 4})  # forwards and backwards, 2 × 4 tiles of a warp
            self.assertNotIn("fma.rn.f32", kernel)

    def test_products_in_double_are_one_instruction_on_tensor_cores(self) -> None:
        _, text = self.ptx_of("inverse_factor")
        self.assertEqual(set(re.findall(r"mma\.sync\.aligned\.(m\d+n\d+k\d+)[.\w]*f64", text)), {"m16n8k16"})
        self.assertNotIn("wmma", text)
        self.assert_one_rounding(text)


if __name__ == "__main__":
    if not COMMANDS.exists() or not commands_of("persistent_training"):
        print("this build has no kernels for a GPU")
        sys.exit(77)
    unittest.main()
