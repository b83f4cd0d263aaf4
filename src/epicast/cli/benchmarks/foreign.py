"""Runs a module of this folder with whatever epicast the interpreter has: so two versions are measured by one driver.

    PYTHON -P foreign.py MODULE ARGUMENT...

It is started as a file by the interpreter of another environment, so it imports nothing of its own package. The modules
that run this way use only what `import epicast` offers, in every version that is to be measured.
"""

import runpy
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGE = "epicast.cli.benchmarks"


def main() -> None:
    import_module("epicast.cli")
    ours = ModuleType(PACKAGE)
    ours.__path__ = [str(Path(__file__).resolve().parent)]
    sys.modules[PACKAGE] = ours
    module = f"{PACKAGE}.{sys.argv.pop(1)}"
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
