"""Which module may import what, judged from the syntax tree alone: nothing is executed.

A *layer* is a folder of `src/epicast`. Every layer has a row in `MAY_IMPORT`; a new folder fails until it has one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

ROLES = ("membership", "topics", "dissemination", "ordering")
DRIVER = {"core", "stacks", "wire", "trace"}
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    **{role: {"core"} for role in ROLES},
    "ordering": {"core", "dissemination"},  # EpTO's order is made of its balls
    "stacks": {"core", *ROLES},
    "wire": {"core"},
    "trace": {"core"},
    "sim": DRIVER,
    "live": DRIVER,
    "experiments": {"core", "pipeline", "pipeline/sweep"},
    "pipeline": {"core", "trace"},
    "pipeline/sweep": {"core", "trace", "pipeline", "sim"},
    "dashboard": {"core", "trace", "live"},
}
FREE = {"", "cli", "cli/benchmarks"}  # the package itself and the command line may import every layer

# Layers that run alike everywhere: the standard library and these.
THIRD_PARTY: dict[str, set[str]] = {
    "core": {"msgspec"},
    **{role: {"msgspec"} for role in ROLES},
    "stacks": {"msgspec"},
    "wire": {"msgspec"},
    "trace": {"msgspec", "numpy", "pyarrow"},
}
# Modules that only some layers may import.
RESERVED: dict[str, set[str]] = {
    "pyspark": {"pipeline"},
    "asyncio": {"live", "dashboard", "cli/benchmarks"},  # other systems' clients need it too
    "time": {"live", "cli"},
    "datetime": {"live", "cli"},
}
# What would make a protocol depend on the machine that it runs on.
WORLD = {"os", "secrets", "select", "signal", "socket", "subprocess", "threading", "uuid"}
PURE_LAYERS = {"core", *ROLES}
SEEDED_NUMPY = {"BitGenerator", "Generator", "PCG64", "PCG64DXSM", "Philox", "SeedSequence", "default_rng"}


class Import(NamedTuple):
    line: int
    module: str  # "epicast.core.ids", "random"
    names: tuple[str, ...] = ()  # what a `from` import takes out of it


class Breach(NamedTuple):
    file: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def check(file: str, text: str) -> list[Breach]:
    """The broken rules of one module; `file` is its path below `src/epicast`, like "core/ids.py"."""
    layer, package = layer_of(file), package_of(file)
    if layer not in MAY_IMPORT and layer not in FREE:
        return [Breach(file, 1, f"layer {layer} has no row in the import rules")]
    found = imports_of_cython(text) if file.endswith(".pyx") else imports_of(ast.parse(text), package)
    breaches = [Breach(file, each.line, rule) for each in found for rule in rules_broken(layer, each)]
    if not file.endswith(".pyx"):
        breaches += [Breach(file, line, rule) for line, rule in unseeded_numpy(ast.parse(text))]
    return sorted(breaches)


def layer_of(file: str) -> str:
    folders = PurePosixPath(file).parts[:-1]
    below = "/".join(folders[:2])
    return below if below in MAY_IMPORT or below in FREE else (folders[0] if folders else "")


def package_of(file: str) -> str:
    return ".".join(("epicast", *PurePosixPath(file).parts[:-1]))


def rules_broken(layer: str, found: Import) -> Iterator[str]:
    top = found.module.partition(".")[0]
    folder = layer.partition("/")[0]
    if top == "epicast":
        yield from layers_broken(layer, found)
        return
    if top == "random" and found.names != ("Random",):
        yield "chance comes from a seeded Random alone: write `from random import Random`"
    if top in RESERVED and not {layer, folder} & RESERVED[top]:
        yield f"{top} may be imported under {' and '.join(sorted(RESERVED[top]))} only"
    if top in WORLD and folder in PURE_LAYERS:
        yield f"{folder} may not import {top}: a protocol sees the world through its Env"
    if folder in THIRD_PARTY and top not in sys.stdlib_module_names and top not in THIRD_PARTY[folder]:
        yield f"{folder} may import the standard library and {', '.join(sorted(THIRD_PARTY[folder]))} only, not {top}"


def layers_broken(layer: str, found: Import) -> Iterator[str]:
    if layer in FREE:
        return
    own = layer.partition("/")[0]
    for other in imported_layers(found):
        # Within its own folder a module may import all but the parts that have rules of their own.
        if other in MAY_IMPORT[layer]:
            continue
        if other.partition("/")[0] not in MAY_IMPORT[layer] | {own} or ("/" in other and other != layer):
            yield f"{layer} may import {', '.join(sorted(MAY_IMPORT[layer])) or 'no other layer'}; not {other}"


def imported_layers(found: Import) -> list[str]:
    """The layers behind one import: `from epicast import sim, live` has two, `from epicast import __version__` none."""
    parts = tuple(found.module.split(".")[1:])
    paths = [(*parts, name) for name in found.names] if found.names else [parts]
    layers = [layer_of("/".join((*path, "_"))) for path in paths]
    known = MAY_IMPORT.keys() | {"cli"}
    return [layer for layer in dict.fromkeys(layers) if parts or layer in known]


def imports_of(tree: ast.AST, package: str) -> list[Import]:
    found: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(Import(node.lineno, absolute(node, package), tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Call) and (name := imported_by_call(node)):
            found.append(Import(node.lineno, name))
    return found


def absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def imported_by_call(node: ast.Call) -> str | None:
    """The module of `import_module("x")` and `__import__("x")`."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in ("import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value)
    return None


def imports_of_cython(text: str) -> list[Import]:
    """Cython is not Python; its import lines are, once `cimport` reads `import`."""
    found: list[Import] = []
    for number, line in enumerate(text.splitlines(), 1):
        statement = re.sub(r"\bcimport\b", "import", line.strip().removesuffix("("))
        if match := re.match(r"from\s+([\w.]+)\s+import\s*(.*)", statement):
            names = tuple(name.split()[0] for name in re.sub(r"#.*|[()]", "", match[2]).split(",") if name.strip())
            found.append(Import(number, match[1], names))
        elif match := re.match(r"import\s+([\w., ]+)", statement):
            found += [Import(number, name.split()[0]) for name in match[1].split(",") if name.strip()]
    return [each for each in found if not each.module.startswith(("cython", "cpython", "libc"))]


def unseeded_numpy(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of numpy's one global generator: `np.random.shuffle(...)`, `from numpy.random import shuffle`."""
    rule = "numpy's global generator is not seeded by the run: draw from a Generator"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            line, names = node.lineno, {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            line, names = node.lineno, {node.attr}
        else:
            continue
        if names - SEEDED_NUMPY:
            yield line, rule
