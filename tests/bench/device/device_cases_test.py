"""Every operation that a header of cuda/ops declares is measured by device_bench under its own name."""

import pathlib
import re
import unittest

DECLARED = re.compile(r"^(?:inline )?void (\w+)\((?:Stream|Products&) ", re.M)


class DeviceCases(unittest.TestCase):
    def test_every_operation_has_a_case(self):
        declared = {f"{header.stem}/{name}" for header in pathlib.Path("cuda/ops").glob("*.h")
                    for name in DECLARED.findall(header.read_text())}
        self.assertLessEqual({"optimizer_step/adam_step", "relu_layers/forward"}, declared)
        named = set()
        for source in pathlib.Path("bench/device").glob("*_cases.cpp"):
            named |= set(re.findall(r'\(\s*"([\w/-]+)"', source.read_text()))
        self.assertEqual(set(), declared - named)


if __name__ == "__main__":
    unittest.main()
