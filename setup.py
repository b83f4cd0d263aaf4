"""Builds the compiled parts where that is possible. All else about the package stands in pyproject.toml.

They are optional: without a C compiler or Cython, with EPICAST_PURE=1, or when compiling fails, the install succeeds
with a one-line notice and pure Python does the same.
"""

from __future__ import annotations

import os
import sys
from glob import glob
from textwrap import shorten

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PARTS = ("sim/_engine", "wire/_frames", "live/_messages")
PURE = os.environ.get("EPICAST_PURE", "") not in ("", "0")


def skip(why: str) -> None:
    print(f"epicast: compiled parts were skipped, pure Python is used: {why}", file=sys.stderr)


def remove_old() -> None:
    """What an earlier install left among the sources or in build/ would be taken for that of today's source."""
    for place in ("src", "build/lib*"):
        for part in PARTS:
            for built in glob(f"{place}/epicast/{part}.*.so"):
                os.remove(built)


class Build(build_ext):
    """Compiles all, or says in one line why not: they are made for each other."""

    def build_extensions(self) -> None:
        self.failed = False
        super().build_extensions()
        if self.failed:
            remove_old()

    def build_extension(self, ext: Extension) -> None:
        if self.failed:
            return
        try:
            from Cython.Build import cythonize

            (compiled,) = cythonize(
                [Extension(ext.name, ext.sources)],
                build_dir=self.build_temp,
                compiler_directives={"language_level": 3},
                quiet=True,
            )
            ext.sources = compiled.sources
            super().build_extension(ext)
        except Exception as error:
            self.failed = True
            skip(shorten(f"{type(error).__name__}: {error}", 100))


if PURE and {"build_ext", "bdist_wheel", "editable_wheel"} & set(sys.argv):
    skip("EPICAST_PURE is set")
    remove_old()

extensions = [
    Extension(
        f"epicast.{part.replace('/', '.')}", [f"src/epicast/{part}.pyx"], extra_compile_args=["-O2"], optional=True
    )
    for part in PARTS
    if os.path.exists(f"src/epicast/{part}.pyx")
]
setup(ext_modules=[] if PURE else extensions, cmdclass={"build_ext": Build})
