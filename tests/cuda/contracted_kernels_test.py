#!/usr/bin/env python3
"""The kernels' tests hold for contracted products and sums in another order, too. Argument: the test program."""

import os
import pathlib
import sys

# Kernels by one order of threads, and rankers whose lists and pairs are the CPU's.
TESTS = ("*KernelTest*/0:*KernelTest*/0_*:*/DeviceRankerTest.MatchesCpu/0:*/DeviceRankerTest.ShadowsMatchCpu/0:"
         "*/ResidentPosteriorTest.MatchesTheWholeHistoryInEachRoundAndRebuilt/0")

if " fma " not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
    print("this CPU has no fused multiplication and addition")
    sys.exit(77)
os.execv(sys.argv[1], [sys.argv[1], f"--gtest_filter={TESTS}", "--gtest_brief=1"])
