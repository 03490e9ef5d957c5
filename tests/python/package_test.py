"""`pip install .` into an environment of its own, and the package's tests there.

The environment stays in the build folder, so that a second run installs the package alone. Its torch is the LibTorch of the
build: the package needs the libraries and not torch itself.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["OLRANK_BUILD"])
ENVIRONMENT = BUILD / "python-tests"
REQUIREMENTS = ROOT / "tests/python/requirements.txt"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def torch_folder():
    found = re.search(r"^OLRANK_TORCH_DIR:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return found[1]


def make_environment():
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / "requirements.txt"
    if done.exists() and done.read_bytes() == REQUIREMENTS.read_bytes():
        return python
    run(sys.executable, "-m", "venv", "--clear", ENVIRONMENT)
    try:
        # Most of their modules are never imported.
        run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "-r", REQUIREMENTS)
    except subprocess.CalledProcessError:
        print("The packages of tests/python/requirements.txt cannot be had: is there a package index?")
        sys.exit(77)
    done.write_bytes(REQUIREMENTS.read_bytes())
    return python


def main():
    if sys.version_info < (3, 11):
        print("The package is for Python 3.11 and newer.")
        sys.exit(77)
    python = make_environment()
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, check=True, text=True
    ).stdout.strip()
    (pathlib.Path(packages) / "libtorch.pth").write_text(torch_folder() + "\n")
    # Variables that name other packages are left out, so that the tests see nothing of another environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_TARGET"))}
    environment |= {
        "OLRANK_CUDA": "ON" if BUILD.name == "cuda" else "OFF",
        "OLRANK_TORCH_DIR": torch_folder(),
        "OLRANK_EMULATED_LIBRARY": str(BUILD / "bin/tests/emulated"),
        "PATH": f"{ENVIRONMENT / 'bin'}:{environment['PATH']}",
    }
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "-v", "."]
    installed = subprocess.run([str(word) for word in install], cwd=ROOT, env=environment, capture_output=True, text=True)
    if installed.returncode != 0:
        sys.exit(installed.stdout[-6000:] + installed.stderr[-3000:])
    tests = subprocess.run([python, "-m", "pytest", "-q", "--durations=5", "-p", "no:cacheprovider"], cwd=ROOT, env=environment)
    # These run exported models by packages that only this environment has in the pinned versions.
    exports = subprocess.run([python, "tests/apps/export_test.py", "-k", "onnx", "-k", "safetensors"], cwd=ROOT, env=environment)
    return tests.returncode or exports.returncode


if __name__ == "__main__":
    sys.exit(main())
