#!/usr/bin/env python3
"""scripts/fetch-libtorch with small wheels, which pip takes from a local package index."""

import hashlib
import io
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch-libtorch"
TORCH = "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl"
RUNTIME = "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
NVCC = "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl"
SANITIZER = "nvidia_cuda_sanitizer_api-13.0.85-py3-none-manylinux_2_25_x86_64.whl"
LIBRARY = random.Random(1).randbytes(300_000)  # incompressible, so that the wheel is as large


def project_of(filename):
    return filename.partition("-")[0].replace("_", "-")


def make_wheel(filename, members):
    name, version = filename.split("-")[:2]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{name}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    return buffer.getvalue()


WHEELS = {filename: (group, make_wheel(filename, members)) for filename, group, members in (
    (TORCH, "cpu", {
        "torch/lib/libtorch_cpu.so": LIBRARY,
        "torch/lib/libc10.so": b"c10",
        "torch/lib/libtorch_cuda.so": b"cuda",
        "torch/lib/libtorch_python.so": b"python",
        "torch/include/ATen/ATen.h": b"#pragma once\n",
        "torch/version.py": b"__version__ = '2.11.0+cu130'\n",
        "torch/nn/functional.py": b"pass\n",
        "torch-2.11.0.dist-info/licenses/LICENSE": b"terms\n",
    }),
    (RUNTIME, "cpu", {
        "nvidia/cu13/lib/libcudart.so.13": b"cudart",
        "nvidia/cu13/lib/libcudart_static.a": b"static",
        "nvidia/cu13/include/cuda_runtime.h": b"#pragma once\n",
    }),
    (NVCC, "nvcc", {"nvidia/cu13/bin/nvcc": b"#!/bin/sh\n"}),
    (SANITIZER, "sanitizer", {
        "nvidia/cu13/bin/compute-sanitizer": b"#!/bin/sh\n",
        "nvidia/cu13/lib/libsanitizer-public.so": b"library",
    }),
)}


class Index(ThreadingHTTPServer):
    """The listing of a folder of each project's wheels is a page of a package index."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), lambda *arguments: Handler(*arguments, directory=folder))
        self.folder, self.asked = folder, []
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, address):
        """A run that was interrupted closes its connection."""

    def add(self, filename, content):
        (self.folder / project_of(filename)).mkdir(exist_ok=True)
        (self.folder / project_of(filename) / filename).write_bytes(content)


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def copyfile(self, source, outputfile):
        if self.path.endswith(".whl"):
            self.server.asked.append(self.path.rpartition("/")[2])
            outputfile.write(source.read(1000))
            outputfile.flush()
            self.server.reached.set()
            self.server.go_on.wait()
        super().copyfile(source, outputfile)


class FetchLibtorchTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.into = self.folder / "deps"
        self.cache = self.folder / "cache" / "olrank" / "wheels"
        (self.folder / "index").mkdir()
        self.index = Index(self.folder / "index")
        self.addCleanup(self.index.server_close)
        self.addCleanup(self.index.shutdown)
        self.lock = self.folder / "wheels.lock"
        self.pin({name: content for name, (_, content) in WHEELS.items()})
        self.environment = {**os.environ, "PIP_INDEX_URL": self.index.url, "XDG_CACHE_HOME": str(self.folder / "cache"), "PIP_RETRIES": "0",
                            "PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull, "no_proxy": "*", "NO_PROXY": "*"}

    def pin(self, wheels):
        """Puts wheels into the lock file and on the index."""
        self.lock.write_text("# GROUP PROJECT FILENAME SHA256\n\n" + "".join(
            f"{WHEELS[name][0]} {project_of(name)} {name} {hashlib.sha256(content).hexdigest()}\n" for name, content in wheels.items()))
        for name, content in wheels.items():
            self.index.add(name, content)

    def without_index(self):
        self.environment["PIP_INDEX_URL"] = "http://name:secret@127.0.0.1:1"  # nothing listens on this port

    def start(self, *more, program=(sys.executable, SCRIPT)):
        return subprocess.Popen([*program, "--lock", self.lock, "--into", self.into, *more], env=self.environment, stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)

    def fetch(self, *more, **program):
        """The exit status and stderr."""
        with self.start(*more, **program) as process:
            said = process.communicate(timeout=900)[1]
        return process.returncode, said

    def assert_fetched(self, *more):
        status, said = self.fetch(*more)
        self.assertEqual(status, 0, said)
        self.assert_no_leftovers()
        return said

    def assert_complete(self):
        target = self.into / "libtorch-cpu"
        self.assertEqual((target / "torch/lib/libtorch_cpu.so").read_bytes(), LIBRARY)
        self.assertTrue((target / "nvidia/cu13/lib/libcudart.so.13").is_file())
        self.assert_no_leftovers()

    def assert_no_leftovers(self):
        folders = {"libtorch-cpu", "libtorch-cuda", "nvcc", "compute-sanitizer", "wheels", ".lock"}
        self.assertLessEqual({path.name for path in self.into.glob("*")}, folders)
        self.assertLessEqual({path.name for path in self.cache.glob("*")}, {*WHEELS, ".lock"})

    def assert_refused(self, result, *words):
        """The run failed with a last sentence that contains `words`, and left nothing half-made."""
        status, said = result
        self.assertEqual(status, 1, said)
        last = said.strip().splitlines()[-1]
        self.assertTrue(last.startswith("olrank: ") and last.endswith("."), last)
        for word in words:
            self.assertIn(word, last)
        self.assertNotIn("Traceback", said)
        self.assertFalse((self.into / "libtorch-cpu").exists())
        self.assert_no_leftovers()

    def test_cpu_is_the_default_and_holds_the_files_of_a_cpu_build(self):
        self.assert_fetched()
        target = self.into / "libtorch-cpu"
        files = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
        self.assertEqual(files, {
            "stamp.json", "torch/version.py", "torch/include/ATen/ATen.h", "torch/lib/libc10.so", "torch/lib/libtorch_cpu.so",
            "nvidia/cu13/lib/libcudart.so.13", "torch-2.11.0.dist-info/licenses/LICENSE"})

    def test_cuda_keeps_headers_and_omits_the_python_library(self):
        self.assert_fetched("--flavour", "cuda")
        target = self.into / "libtorch-cuda"
        self.assertTrue((target / "torch/lib/libtorch_cuda.so").is_file())
        self.assertTrue((target / "nvidia/cu13/include/cuda_runtime.h").is_file())
        self.assertTrue((target / "nvidia/cu13/lib/libcudart.so").samefile(target / "nvidia/cu13/lib64/libcudart.so.13"))
        self.assertFalse((target / "torch/lib/libtorch_python.so").exists())

    def test_tools_are_fetched_alone_and_are_executable(self):
        self.assert_fetched("--nvcc", "--sanitizer")
        self.assertTrue(os.access(self.into / "nvcc/nvidia/cu13/bin/nvcc", os.X_OK))
        self.assertTrue((self.into / "nvcc/nvidia/cu13/lib64/libcudart_static.a").is_file())
        self.assertTrue(os.access(self.into / "compute-sanitizer/nvidia/cu13/bin/compute-sanitizer", os.X_OK))
        self.assertEqual({path.name for path in self.into.iterdir() if path.is_dir()}, {"nvcc", "compute-sanitizer"})

    def test_a_complete_folder_needs_no_index_and_a_lost_library_comes_from_the_cache(self):
        self.assert_fetched()
        self.without_index()
        self.assertEqual(self.fetch(), (0, ""))
        (self.into / "libtorch-cpu/torch/lib/libtorch_cpu.so").unlink()
        self.assert_fetched()
        self.assert_complete()

    def test_a_changed_lock_file_replaces_the_libraries(self):
        self.assert_fetched()
        self.pin({TORCH: WHEELS[TORCH][1], RUNTIME: make_wheel(RUNTIME, {"nvidia/cu13/lib/libcudart.so.13": b"newer"})})
        self.assertIn("damaged", self.assert_fetched())
        self.assertEqual((self.into / "libtorch-cpu/nvidia/cu13/lib/libcudart.so.13").read_bytes(), b"newer")
        self.assert_complete()

    def test_an_interrupted_download_leaves_nothing_and_a_second_run_completes_it(self):
        self.index.go_on.clear()
        with self.start() as process:
            self.assertTrue(self.index.reached.wait(60))
            process.terminate()
            process.communicate(timeout=900)
        self.index.go_on.set()
        self.assertEqual(process.returncode, 143)
        self.assertFalse((self.into / "libtorch-cpu").exists())
        self.assert_no_leftovers()
        for left in (self.into / ".unpack", self.cache / ".download"):  # those of a run that was killed
            left.mkdir()
            (left / TORCH).write_bytes(b"half")
        self.assert_fetched()
        self.assert_complete()

    def test_rejects_a_tampered_download_and_reports_a_missing_one(self):
        self.index.add(TORCH, WHEELS[TORCH][1][:-1] + b"?")
        self.assert_refused(self.fetch(), TORCH, "SHA-256")
        self.index.add(TORCH, WHEELS[TORCH][1])
        (self.index.folder / project_of(RUNTIME) / RUNTIME).unlink()
        self.assert_refused(self.fetch(), RUNTIME, "PIP_INDEX_URL")

    def test_reports_an_unreachable_index_without_its_credentials(self):
        self.without_index()
        result = self.fetch()
        self.assert_refused(result, "check the network")
        self.assertNotIn("secret", result[1])

    def test_concurrent_runs_download_each_wheel_once(self):
        self.index.go_on.clear()
        with self.start() as first:
            self.assertTrue(self.index.reached.wait(60))
            with self.start() as second:
                self.assertIn("waiting", second.stderr.readline())
                self.index.go_on.set()
                said = [process.communicate(timeout=900)[1] for process in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], said)
        self.assertEqual(sorted(self.index.asked), sorted([TORCH, RUNTIME]))
        self.assert_complete()

    def test_reports_an_unwritable_target(self):
        self.into.write_bytes(b"")  # permissions do not stop root, but a file in the way does
        status, said = self.fetch()
        self.assertEqual((status, len(said.splitlines())), (1, 1))
        self.assertIn("is not writable", said)

    def test_works_without_a_cache_folder(self):
        (self.folder / "cache").write_bytes(b"")
        self.assert_fetched()
        self.assertTrue((self.into / "wheels" / TORCH).is_file())
        self.assert_complete()

    def test_reports_what_this_machine_lacks(self):
        for change, *words in (
                ("sys.modules['pip'] = None\nimport importlib.util\nimportlib.util.find_spec = lambda name: None", "python3-pip"),
                ("def full(*_): raise OSError(28, 'No space left on device', 'libtorch_cpu.so')\nscript.unpack = full", "disk is full", "make room"),
                ("script.platform.machine = lambda: 'aarch64'", "aarch64", "x86_64")):
            self.assert_refused(self.fetch(program=(sys.executable, "-c", "import importlib.machinery, sys; sys.dont_write_bytecode = True\n"
                                f"script = importlib.machinery.SourceFileLoader('script', {str(SCRIPT)!r}).load_module()\n"
                                f"{change}\nsys.exit(script.main(sys.argv[1:]))")), *words)


if __name__ == "__main__":
    unittest.main()
