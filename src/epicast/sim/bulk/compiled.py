"""Makes machine code of a kernel, and keeps it for the next process.

Only the kernels import this, and whoever needs a kernel imports it when it is needed: numba is slow to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from epicast.core.errors import EpicastError

try:
    import numba
except ModuleNotFoundError:
    raise EpicastError("the bulk kernels are not installed: pip install 'epicast[pipeline]'") from None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function, compiled when it is first called.

    The machine code is kept beside the source or, where that cannot be written, in the user's cache. Where there is no
    place at all it is made anew by each process: numba itself would refuse. What is kept depends on the file that holds
    the function, so a kernel and the functions that it calls share one file.
    """
    try:
        return _jit(function, cache=True)
    except RuntimeError:
        return _jit(function, cache=False)


def _jit(function: F, *, cache: bool) -> F:
    return cast(F, numba.njit(cache=cache, error_model="numpy")(function))
