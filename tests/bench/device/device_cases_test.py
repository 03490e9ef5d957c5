"""Every header of cuda/ops that declares launches has one that device_bench measures, under the header's name and its own."""

import pathlib
import re
import unittest

DECLARED = re.compile(r"^(?:inline )?void (\w+)\((?:Stream|Products&) ", re.M)


class DeviceCases(unittest.TestCase):
    def test_every_header_has_a_case(self):
        declared = {header.stem: set(DECLARED.findall(header.read_text())) for header in pathlib.Path("cuda/ops").glob("*.h")}
        self.assertLessEqual({"optimizer_step"}, declared["replay"])
        named = set()
        for source in pathlib.Path("bench/device").glob("*_cases.cpp"):
            named |= set(re.findall(r'\(\s*"([\w/-]+)"', source.read_text()))
        for stem, launches in declared.items():
            with self.subTest(stem):
                self.assertTrue(not launches or any(f"{stem}/{launch}" in named for launch in launches))


if __name__ == "__main__":
    unittest.main()
