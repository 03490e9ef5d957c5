"""Conan's recipe of the program and the library without LibTorch, from the source archive of a release:
conan create deploy/conan --build missing, in the unpacked archive."""

import pathlib
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Olrank(ConanFile):
    name = "olrank"
    description = "Learns a ranking function online, from clicks, and knows which orders it is sure of"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    requires = ("cli11/2.4.2", "fmt/10.2.1", "hiredis/1.2.0", "nlohmann_json/3.11.3", "openblas/0.3.27", "openssl/[>=3.0 <4]",
                "tomlplusplus/3.4.0", "boost/1.84.0", "xxhash/0.8.2", "zlib/[>=1.2.13 <2]", "zstd/[>=1.5 <1.6]")
    tool_requires = ("cmake/[>=3.25]", "ninja/[>=1.11]")
    default_options = {"boost/*:header_only": True, "openblas/*:build_lapack": True, "openblas/*:dynamic_arch": True}

    def set_version(self):
        lists = pathlib.Path(self.recipe_folder, "../../CMakeLists.txt").read_text(encoding="utf-8")
        self.version = re.search(r"^project\(olrank VERSION ([0-9.]+)", lists, re.M)[1]

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder, "../..")
        folders = re.findall(r"^add_subdirectory\((\w+)\)", (root / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
        for pattern in ("CMakeLists.txt", "LICENSE", *(f"{folder}/*" for folder in [*folders, "third_party"])):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self, generator="Ninja")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables.update(OLRANK_TORCH=False, BUILD_TESTING=False)
        toolchain.generate()

    def build(self):
        CMake(self).configure()
        CMake(self).build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(pathlib.Path(self.package_folder, "licenses")))

    def package_info(self):
        self.cpp_info.libs = ["olrank"]
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package has its own olrankConfig.cmake
        self.cpp_info.builddirs = ["lib/cmake/olrank"]
