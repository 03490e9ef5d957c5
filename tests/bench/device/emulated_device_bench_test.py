"""device_bench on the emulated device: what it writes, and what it starts for profilers."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["OLRANK_PROGRAM"]).parent / "emulated_device_bench"


def bench(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=900)


class EmulatedDeviceBench(unittest.TestCase):
    def test_measures_ceilings_at_both_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "rows.json"
            ran = bench("--only", "training/step", "--only", "certain_by_width", "--json", report)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            found = json.loads(report.read_text())
        self.assertEqual(set(found["ceilings"]), set(found["ceilings_at_end"]))
        rows = {(one["name"], *one["parameters"].values()): one for one in found["measurements"]}
        wide = rows["training/step", 140, 1, 12, 5]
        self.assertGreater(wide["libtorch"]["seconds"]["median"], 0)

    def test_starts_each_operation_once_for_profilers(self):
        ran = bench("--once", "--only", "apply_factor n=140", "--only", "forward_history n=140 N=3")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual([line.split(" ")[0] for line in ran.stdout.splitlines()],
                         ["inverse_factor/apply_factor", "pair_training/forward_history"])

    def test_refuses_an_unknown_operation(self):
        ran = bench("--only", "apply_factor", "--only", "nothing")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--only nothing", ran.stderr)

    def test_lists_operations_with_their_sizes_on_a_gpu(self):
        self.assertIn("training/step n=10000 N=1 m=512 d=136\n", bench("--list").stdout)


if __name__ == "__main__":
    unittest.main()
