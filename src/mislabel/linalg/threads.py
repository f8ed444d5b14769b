"""How many BLAS threads to use.

NumPy and SciPy wheels each bring a BLAS with a thread pool of its own, and idle threads of one pool spin on the cores that
the other one needs. The heavy work here goes through SciPy's LAPACK, so NumPy's pool is held to one thread; small matrices
are faster with one thread altogether.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import ThreadpoolController

#: Below this size the cost of waking threads exceeds what they save.
SINGLE_THREAD_BELOW = 800


@contextmanager
def blas_threads(size: int) -> Iterator[None]:
    """Limit BLAS threads sensibly for matrices of this size; restores the limits afterwards."""
    controller = ThreadpoolController().select(user_api="blas")
    with ExitStack() as stack:
        if size < SINGLE_THREAD_BELOW:
            stack.enter_context(controller.limit(limits=1))
        else:
            paths = [library.filepath for library in controller.lib_controllers]
            of_numpy = [path for path in paths if "numpy" in path]
            if of_numpy and len(paths) > len(of_numpy):
                stack.enter_context(controller.select(filepath=of_numpy).limit(limits=1))
        yield
