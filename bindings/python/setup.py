# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, with the libattune that the variable LIBATTUNE selects:

- not set: CMake builds it from the source tree that contains this folder;
- an absolute path: that file;
- "system": none is included; the package loads libattune.so.0 at run time.
"""
import os
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBATTUNE = os.environ.get("LIBATTUNE", "")
NAME = "libattune.so.0"


def version():
    """It is written once, in a public header of the sources."""
    path = os.path.join(ROOT, "include", "attune", "types.h")
    if not os.path.exists(path):
        raise SystemExit(f"{path} does not exist; build the package in attune's source tree: pip install ./bindings/python")
    with open(path, encoding="utf-8") as file:
        return ".".join(re.findall(r"(?m)^#define ATTUNE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", file.read()))


class Build(build_py):
    """The modules, and the library beside them."""

    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "attune", NAME)
        if os.path.exists(target):
            os.remove(target)
        if LIBATTUNE == "system" or getattr(self, "editable_mode", False):
            return
        if LIBATTUNE and not (os.path.isabs(LIBATTUNE) and os.path.isfile(LIBATTUNE)):
            raise SystemExit(f"LIBATTUNE is {LIBATTUNE}; should be the absolute path of a libattune.so, or system")
        shutil.copy2(os.path.realpath(LIBATTUNE) if LIBATTUNE else self.compiled(), target)

    def compiled(self):
        """The library, compiled in a folder of its own."""
        folder = os.path.join(self.get_finalized_command("build").build_temp, "libattune")
        fresh = not os.path.exists(os.path.join(folder, "CMakeCache.txt"))
        generator = ["-GNinja"] if fresh and shutil.which("ninja") else []
        try:
            subprocess.run(["cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release",
                            "-DATTUNE_TESTS=OFF", "-DATTUNE_BENCH=OFF", "-DATTUNE_EXAMPLES=OFF"], check=True)
            subprocess.run(["cmake", "--build", folder, "--target", "attune",
                           "--parallel", str(os.cpu_count() or 1)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"libattune could not be built: {error}. Run scripts/setup to install what the build needs; "
                             "LIBATTUNE=/path/to/libattune.so uses an existing one") from error
        return os.path.realpath(os.path.join(folder, "libattune.so"))


class Wheel(bdist_wheel):
    """Any Python 3, but only this kind of machine."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = LIBATTUNE == "system"

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if not self.root_is_pure else (python, abi, platform)


class Binary(Distribution):
    """Its files go where those with machine code go."""

    def has_ext_modules(self):
        return LIBATTUNE != "system"


setup(version=version(), cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Binary)
