"""Builds the compiled engine where that is possible. All else about the package stands in pyproject.toml.

The engine is optional: without a C compiler or Cython, with EPICAST_PURE=1, or when compiling fails, the install
succeeds with a one-line notice and the simulator runs its pure Python engine.
"""

from __future__ import annotations

import os
import sys
from glob import glob
from textwrap import shorten

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NAME = "epicast.sim._engine"
SOURCE = "src/epicast/sim/_engine.pyx"
PURE = os.environ.get("EPICAST_PURE", "") not in ("", "0")


def skip_engine(why: str) -> None:
    print(f"epicast: the compiled engine was skipped, the pure Python one is used: {why}", file=sys.stderr)


def remove_old_engine() -> None:
    """What an earlier install left among the sources or in build/ would be taken for the engine of today's source."""
    for place in ("src", "build/lib*"):
        for built in glob(f"{place}/epicast/sim/_engine.*.so"):
            os.remove(built)


class BuildEngine(build_ext):
    """Compiles, or says in one line why not."""

    def build_extension(self, ext: Extension) -> None:
        try:
            from Cython.Build import cythonize

            (compiled,) = cythonize(
                [Extension(NAME, [SOURCE])],
                build_dir=self.build_temp,
                compiler_directives={"language_level": 3},
                quiet=True,
            )
            ext.sources = compiled.sources
            super().build_extension(ext)
        except Exception as error:
            remove_old_engine()
            skip_engine(shorten(f"{type(error).__name__}: {error}", 100))


if PURE and {"build_ext", "bdist_wheel", "editable_wheel"} & set(sys.argv):
    skip_engine("EPICAST_PURE is set")
    remove_old_engine()

extensions = [Extension(NAME, [SOURCE], extra_compile_args=["-O2"], optional=True)]
setup(
    ext_modules=extensions if os.path.exists(SOURCE) and not PURE else [],
    cmdclass={"build_ext": BuildEngine},
)
