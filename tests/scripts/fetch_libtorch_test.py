#!/usr/bin/env python3
"""scripts/fetch-libtorch against a local package index with small wheels."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch-libtorch"
TORCH = "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl"
RUNTIME = "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.whl"
NVCC = "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.whl"
SANITIZER = "nvidia_cuda_sanitizer_api-13.0.85-py3-none-manylinux_2_25_x86_64.whl"
LIBRARY = random.Random(1).randbytes(300_000)  # incompressible, so that the wheel is as large


def load_script() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("fetch_libtorch", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def make_wheel(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


WHEELS = {
    TORCH: make_wheel({
        "torch/lib/libtorch_cpu.so": LIBRARY,
        "torch/lib/libc10.so": b"c10",
        "torch/lib/libtorch_cuda.so": b"cuda",
        "torch/lib/libtorch_python.so": b"python",
        "torch/include/ATen/ATen.h": b"#pragma once\n",
        "torch/version.py": b"__version__ = '2.11.0+cu130'\n",
        "torch/nn/functional.py": b"pass\n",
        "torch-2.11.0.dist-info/licenses/LICENSE": b"terms\n",
    }),
    RUNTIME: make_wheel({
        "nvidia/cu13/lib/libcudart.so.13": b"cudart",
        "nvidia/cu13/lib/libcudart_static.a": b"static",
        "nvidia/cu13/include/cuda_runtime.h": b"#pragma once\n",
    }),
    NVCC: make_wheel({"nvidia/cu13/bin/nvcc": b"#!/bin/sh\n"}),
    SANITIZER: make_wheel({
        "nvidia/cu13/bin/compute-sanitizer": b"#!/bin/sh\n",
        "nvidia/cu13/lib/libsanitizer-public.so": b"library",
    }),
}
GROUPS = {TORCH: "cpu", RUNTIME: "cpu", NVCC: "nvcc", SANITIZER: "sanitizer"}


def project_of(filename: str) -> str:
    return filename.partition("-")[0].replace("_", "-")


class Index(ThreadingHTTPServer):
    """A simple package index. Its attributes make it misbehave."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(WHEELS)
        self.missing: set[str] = set()
        self.honours_range = True
        self.cuts: list[int] = []  # the next connections break after these numbers of bytes
        self.always_cut: int | None = None  # every connection breaks after this number of bytes
        self.pause = 0.0  # seconds before each file
        self.ranges: list[tuple[str, str | None]] = []  # each requested file with its Range header
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class Handler(BaseHTTPRequestHandler):
    server: Index

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple":
            self.send_page(parts[1])
        else:
            self.send_file(parts[1])

    def send_page(self, project: str) -> None:
        names = [name for name in self.server.files if project_of(name) == project and name not in self.server.missing]
        page = "".join(f'<a href="../../files/{name}#md5=0">{name}</a><br>\n' for name in names).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def send_file(self, name: str) -> None:
        content = self.server.files[name]
        asked = self.headers.get("Range")
        self.server.ranges.append((name, asked))
        time.sleep(self.server.pause)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.honours_range else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = len(content)
        if self.server.cuts:
            end = self.server.cuts.pop(0)
        if self.server.always_cut is not None:
            end = min(end, self.server.always_cut)
        self.wfile.write(content[start:end])


class FetchLibtorchTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.into = self.folder / "deps"
        self.cache = self.folder / "cache" / "olrank" / "wheels"
        self.lock = self.folder / "wheels.lock"
        self.lock.write_text(
            "# GROUP PROJECT FILENAME SHA256\n"
            + "".join(f"{GROUPS[n]} {project_of(n)} {n} {hashlib.sha256(c).hexdigest()}\n" for n, c in WHEELS.items())
        )
        self.index = Index()
        self.addCleanup(self.index.server_close)
        self.addCleanup(self.index.shutdown)
        self.set_index(self.index.url)
        self.script = load_script()
        self.script.FIRST_DELAY = 0.01
        self.script.SLACK = 0

    def set_index(self, url: str) -> None:
        self.environment = {
            **os.environ,
            "PIP_INDEX_URL": url,
            "PIP_CERT": "none",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "no_proxy": "*",
            "NO_PROXY": "*",
        }

    def arguments(self, *more: str) -> list[str]:
        return ["--lock", str(self.lock), "--into", str(self.into), *more]

    def fetch(self, *more: str) -> tuple[int, str]:
        """Runs the script in this process; returns its exit status and stderr."""
        said = io.StringIO()
        with mock.patch.dict(os.environ, self.environment, clear=True), contextlib.redirect_stderr(said):
            status = self.script.main(self.arguments(*more))
        return status, said.getvalue()

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPT), *self.arguments(*more)]
        return subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True)

    def make_part(self, content: bytes) -> Path:
        self.cache.mkdir(parents=True)
        part = self.cache / f"{TORCH}.part"
        part.write_bytes(content)
        return part

    def assert_complete(self) -> None:
        target = self.into / "libtorch-cpu"
        self.assertEqual((target / "torch/lib/libtorch_cpu.so").read_bytes(), LIBRARY)
        self.assertTrue((target / "nvidia/cu13/lib/libcudart.so.13").is_file())
        self.assert_no_leftovers()

    def assert_no_leftovers(self) -> None:
        left = [path.name for path in self.into.glob(".unpack-*")] if self.into.is_dir() else []
        self.assertEqual(left, [])

    def assert_refused(self, result: tuple[int, str], *words: str) -> None:
        """Checks that the run failed with a final sentence containing `words`, and left no partial output."""
        status, said = result
        self.assertEqual(status, 1, said)
        last = said.strip().splitlines()[-1]
        self.assertTrue(last.startswith("olrank: ") and last.endswith("."), last)
        for word in words:
            self.assertIn(word, last)
        self.assertNotIn("Traceback", said)
        self.assertFalse((self.into / "libtorch-cpu").exists())
        self.assert_no_leftovers()

    def test_fresh_fetch_unpacks_the_files_of_a_cpu_build(self) -> None:
        status, said = self.fetch("--flavour", "cpu")
        self.assertEqual(status, 0, said)
        self.assert_complete()
        target = self.into / "libtorch-cpu"
        files = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
        self.assertEqual(
            files,
            {
                "stamp.json",
                "torch/version.py",
                "torch/include/ATen/ATen.h",
                "torch/lib/libc10.so",
                "torch/lib/libtorch_cpu.so",
                "nvidia/cu13/lib/libcudart.so.13",
                "torch-2.11.0.dist-info/licenses/LICENSE",
            },
        )

    def test_cuda_keeps_headers_and_omits_the_python_library(self) -> None:
        status, said = self.fetch("--flavour", "cuda")
        self.assertEqual(status, 0, said)
        target = self.into / "libtorch-cuda"
        self.assertTrue((target / "torch/lib/libtorch_cuda.so").is_file())
        self.assertTrue((target / "nvidia/cu13/include/cuda_runtime.h").is_file())
        self.assertTrue((target / "nvidia/cu13/lib/libcudart.so").samefile(target / "nvidia/cu13/lib64/libcudart.so.13"))
        self.assertFalse((target / "torch/lib/libtorch_python.so").exists())

    def test_nvcc_is_executable_and_has_the_runtime(self) -> None:
        status, said = self.fetch("--nvcc")
        self.assertEqual(status, 0, said)
        target = self.into / "nvcc" / "nvidia/cu13"
        self.assertTrue(os.access(target / "bin/nvcc", os.X_OK))
        self.assertTrue((target / "lib64/libcudart_static.a").is_file())
        self.assertFalse((self.into / "libtorch-cpu").exists())

    def test_sanitizer_is_fetched_alone_and_is_executable(self) -> None:
        status, said = self.fetch("--sanitizer")
        self.assertEqual(status, 0, said)
        self.assertTrue(os.access(self.into / "compute-sanitizer/nvidia/cu13/bin/compute-sanitizer", os.X_OK))
        self.assertEqual([path.name for path in self.into.iterdir() if path.is_dir()], ["compute-sanitizer"])

    def test_is_fast_and_silent_when_up_to_date(self) -> None:
        self.assertEqual(self.fetch()[0], 0)
        asked = len(self.index.ranges)
        self.set_index("http://127.0.0.1:1/simple")
        seconds = []
        for _ in range(3):
            began = time.monotonic()
            process = self.start()
            self.assertEqual(process.communicate()[1], "")
            self.assertEqual(process.returncode, 0)
            seconds.append(time.monotonic() - began)
        self.assertEqual(len(self.index.ranges), asked)
        # Takes 0.1 s on an idle machine; the bound leaves room for other tests on the same cores.
        self.assertLess(min(seconds), 1.0)

    def test_restores_a_lost_library_without_a_download(self) -> None:
        self.assertEqual(self.fetch()[0], 0)
        (self.into / "libtorch-cpu/torch/lib/libtorch_cpu.so").unlink()
        self.set_index("http://127.0.0.1:1/simple")
        self.assertEqual(self.fetch()[0], 0)
        self.assert_complete()

    def test_a_changed_lock_file_replaces_the_libraries(self) -> None:
        self.assertEqual(self.fetch()[0], 0)
        wheel = make_wheel({"nvidia/cu13/lib/libcudart.so.13": b"newer"})
        self.index.files[RUNTIME] = wheel
        old, new = (hashlib.sha256(content).hexdigest() for content in (WHEELS[RUNTIME], wheel))
        self.lock.write_text(self.lock.read_text().replace(old, new))
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assertEqual((self.into / "libtorch-cpu/nvidia/cu13/lib/libcudart.so.13").read_bytes(), b"newer")
        self.assert_complete()

    def test_resumes_a_partial_download(self) -> None:
        self.make_part(WHEELS[TORCH][:1000])
        self.assertEqual(self.fetch()[0], 0)
        self.assertIn((TORCH, "bytes=1000-"), self.index.ranges)
        self.assert_complete()

    def test_restarts_a_partial_download_if_the_server_ignores_ranges(self) -> None:
        self.index.honours_range = False
        self.make_part(WHEELS[TORCH][:1000])
        self.assertEqual(self.fetch()[0], 0)
        self.assert_complete()

    def test_uses_a_partial_download_that_is_complete(self) -> None:
        self.make_part(WHEELS[TORCH])
        self.assertEqual(self.fetch()[0], 0)
        self.assert_complete()

    def test_discards_a_partial_download_of_another_file(self) -> None:
        self.make_part(b"something else")
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assertIn("does not match", said)
        self.assert_complete()

    def test_retries_a_broken_connection(self) -> None:
        self.index.cuts = [1000, 2000]
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assertEqual([asked for name, asked in self.index.ranges if name == TORCH], [None, "bytes=1000-", "bytes=2000-"])
        self.assert_complete()

    def test_reports_a_truncated_download_and_resumes_it(self) -> None:
        self.index.always_cut = 1000
        self.assert_refused(self.fetch(), TORCH, "run this again")
        self.assertEqual((self.cache / f"{TORCH}.part").stat().st_size, 1000)
        self.index.always_cut = None
        self.assertEqual(self.fetch()[0], 0)
        self.assert_complete()

    def test_rejects_a_tampered_download(self) -> None:
        self.index.files[TORCH] = WHEELS[TORCH][:-1] + b"?"
        self.assert_refused(self.fetch(), TORCH, "SHA-256", "deleted")
        self.assertEqual(list(self.cache.glob("torch*")), [])

    def test_replaces_a_tampered_cache_entry(self) -> None:
        self.cache.mkdir(parents=True)
        (self.cache / TORCH).write_bytes(b"?" + WHEELS[TORCH][1:])
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assertIn("damaged", said)
        self.assert_complete()

    def test_reports_a_file_missing_from_the_index(self) -> None:
        self.index.missing = {RUNTIME}
        self.assert_refused(self.fetch(), RUNTIME, "PIP_INDEX_URL")

    def test_reports_an_unreachable_index(self) -> None:
        self.set_index("http://127.0.0.1:1/simple")  # nothing listens on this port
        self.assert_refused(self.fetch(), "127.0.0.1:1", "cannot be reached", "check the network")

    def test_never_shows_the_index_credentials(self) -> None:
        self.set_index("http://name:secret@127.0.0.1:1/simple")
        result = self.fetch()
        self.assert_refused(result, "127.0.0.1:1")
        self.assertNotIn("secret", result[1])

    def test_concurrent_runs_download_each_wheel_once(self) -> None:
        self.index.pause = 0.5
        first = self.start()
        while not self.index.ranges:
            time.sleep(0.01)
        second = self.start()
        said = [process.communicate(timeout=60)[1] for process in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], said)
        self.assertIn("waiting", said[1])
        self.assertEqual(len(self.index.ranges), 2)  # each wheel once
        self.assert_complete()

    def test_removes_leftovers_of_a_killed_run(self) -> None:
        left = self.into / ".unpack-libtorch-cpu"
        left.mkdir(parents=True)
        (left / "file").write_bytes(b"half")
        self.assertEqual(self.fetch()[0], 0)
        self.assert_complete()

    def test_reports_an_unwritable_target(self) -> None:
        self.into.write_bytes(b"")  # permissions do not stop root, but a file in the way does
        status, said = self.fetch()
        self.assertEqual(status, 1)
        self.assertIn("is not writable", said)
        self.assertEqual(len(said.strip().splitlines()), 1)

    def test_works_without_a_cache_folder(self) -> None:
        (self.folder / "cache").write_bytes(b"")
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assertTrue((self.into / "wheels" / TORCH).is_file())
        self.assert_complete()

    def test_reports_too_little_space_for_the_download(self) -> None:
        self.script.SLACK = 1 << 60
        self.assert_refused(self.fetch(), TORCH, "free", "make room")

    def test_reports_too_little_space_for_unpacking(self) -> None:
        self.assertEqual(self.fetch("--nvcc")[0], 0)  # puts one wheel into the cache
        self.cache.joinpath(TORCH).write_bytes(WHEELS[TORCH])
        self.script.SLACK = 1 << 60
        self.assert_refused(self.fetch(), str(self.into), "unpacking", "make room")

    def test_reports_a_disk_that_fills_up_while_unpacking(self) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", "libtorch_cpu.so")

        self.script.unpack = full
        self.assert_refused(self.fetch(), "disk is full", "make room")

    def test_rejects_other_architectures(self) -> None:
        with mock.patch.object(self.script.platform, "machine", return_value="aarch64"):
            self.assert_refused(self.fetch(), "aarch64", "x86_64")

    def test_rejects_unknown_flavours(self) -> None:
        with self.assertRaises(SystemExit) as ended:
            self.fetch("--flavour", "gpu")
        self.assertEqual(ended.exception.code, 2)

    def test_reports_that_pip_is_missing(self) -> None:
        del self.environment["PIP_INDEX_URL"]
        pip = {name: None for name in ("pip", "pip._internal", "pip._internal.models.index")}
        with mock.patch.dict(sys.modules, pip), mock.patch.object(self.script, "pip_settings", return_value={}):
            self.assert_refused(self.fetch(), "python3-pip")


if __name__ == "__main__":
    unittest.main()
