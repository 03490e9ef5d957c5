"""Loads the LibTorch of the installed torch, so that the engine's library finds it by name.

Without a torch, the LibTorch of the build serves, which stays in the checkout.
"""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re

import olrank
from olrank.errors import Error


def _places_of(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return [] if spec is None else list(spec.submodule_search_locations or [])


def _prefer_the_engine_with_torch() -> None:
    """The package olrank-torch brings it to the small wheel, whose own engine is without LibTorch."""
    if places := _places_of("olrank_torch"):
        there, here = (importlib.metadata.version(name) for name in ("olrank-torch", "olrank"))
        if there != here:
            raise Error(f"olrank-torch {there} is beside olrank {here}: pip install olrank-torch=={here}")
        olrank.__path__[:0] = places


_prefer_the_engine_with_torch()
from olrank import _build  # noqa: E402


def _torch_folder() -> str:
    for place in _places_of("torch"):
        if os.path.exists(os.path.join(place, "version.py")):
            return place
    if os.path.exists(os.path.join(_build.LIBTORCH, "version.py")):
        return _build.LIBTORCH
    raise Error(f"olrank needs torch {_build.TORCH}, and no torch is installed: pip install torch=={_build.TORCH}")


def _version_of(folder: str) -> str:
    # Importing torch would take seconds, and the engine needs its libraries alone.
    with open(os.path.join(folder, "version.py"), encoding="utf-8") as handle:
        found = re.search(r"^__version__\s*=\s*['\"]([0-9]+\.[0-9]+\.[0-9]+)", handle.read(), re.M)
    return found[1] if found else "of an unknown version"


def _refuse_other_interpreters() -> None:
    """The engine's types belong to one interpreter: making them in another would break those of the first."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise Error("olrank works in the main interpreter of a process alone: import it there, or start another process.")
        return


def load() -> None:
    """Loads LibTorch once for the whole process. Raises Error for a torch of another version, and in a sub-interpreter."""
    _refuse_other_interpreters()
    if not _build.LIBRARIES:
        return  # built without LibTorch
    folder = _torch_folder()
    version = _version_of(folder)
    if version.split(".")[:2] != _build.TORCH.split(".")[:2]:
        raise Error(
            f"olrank was built for torch {_build.TORCH}, and torch {version} is installed: "
            f"pip install torch=={_build.TORCH}, or build olrank again."
        )
    for name in _build.LIBRARIES:
        path = os.path.join(folder, "lib", name)
        try:
            ctypes.CDLL(path)
        except OSError as error:
            raise Error(f"olrank cannot load {path}: {error}.") from error


def explained(error: ImportError) -> ImportError:
    """The error of a build for newer systems in a sentence that says what to do, and any other as it is."""
    needed = re.search(r"`GLIBC_([\d.]+)' not found", str(error))
    system = platform.libc_ver()[1]
    advice = f"This olrank was built for glibc {needed[1]} or newer, and this system has {system}: " if needed else ""
    return ImportError(advice + "build olrank on this system, or use a newer one.") if needed else error
