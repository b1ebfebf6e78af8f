# SPDX-License-Identifier: MIT
"""Puts the libraries that make built into the wheel, with those that they need and no system is sure
to have. Nothing is compiled when a wheel is installed. TANDEM_BUILD: where the libraries are, from the
top of the source on (pip runs this in another folder); default build/release, which make fills if need
be."""
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TOP = Path(__file__).resolve().parents[2]
BUILD = (TOP / os.environ.get("TANDEM_BUILD", "build/release")).resolve()

VERSION = re.search(r'VERSION_STRING "([^"]+)"',
                    (TOP / "include" / "tandem" / "version.h").read_text()).group(1)
SUFFIX = ".so." + ".".join(VERSION.split(".")[:2])
LIBRARIES = ["libtandem" + SUFFIX, "libtandem-llama" + SUFFIX, "libggml-tandem.so"]
# Part of every glibc system, which the wheel's tag names.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\b")


def needed(library):
    """Other projects' libraries that a library needs: paths, those that others need first."""
    listing = subprocess.check_output(["ldd", str(library)], text=True)
    paths = [Path(path) for name, path in re.findall(r"^\s*(\S+) => (\S+) \(", listing, re.M)
             if not SYSTEM.match(name) and not name.startswith("libtandem")]
    found = []
    for path in paths:
        for other in needed(path) + [path]:
            if other not in found:
                found.append(other)
    return found


class BuildPy(build_py):
    def run(self):
        super().run()
        if not all((BUILD / name).exists() for name in LIBRARIES):
            subprocess.check_call(["make", "-C", str(TOP), f"-j{os.cpu_count()}", f"BUILD={BUILD}"])
        folder = Path(self.build_lib) / "tandem_infer" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        others = []
        for name in LIBRARIES:
            shutil.copy(BUILD / name, folder / name)
            others += [path for path in needed(BUILD / name) if path not in others]
        for path in others:
            shutil.copy(path, folder / path.name)
        (folder / "needed.txt").write_text("".join(path.name + "\n" for path in others))


class Wheel(bdist_wheel):
    """One wheel for every Python 3 of this architecture, with this machine's glibc or a later one."""

    def get_tag(self):
        glibc = platform.libc_ver()[1].replace(".", "_")
        return "py3", "none", f"manylinux_{glibc}_{platform.machine()}"


class HasLibraries(Distribution):
    def has_ext_modules(self):
        return True


setup(version=VERSION, distclass=HasLibraries, cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel})
