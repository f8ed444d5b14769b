"""How much of the kernel a fit keeps: all of it, or so many columns, by what memory allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mislabel.errors import InvalidParameterError, MemoryBudgetError, unknown_name
from mislabel.estimators.fitting import TUNING_ROWS
from mislabel.estimators.validation import ARRAYS_HELD, exact_memory, free_memory
from mislabel.kernels.inducing import STORAGES

AUTO = "auto"
#: Up to this many labels the exact fit takes minutes, and rank="auto" makes it.
EXACT_UP_TO = 5000
#: Doubles per label, and rows of the factor in double precision, that a fit holds at its peak, working copies included.
VECTORS_HELD = 40
WORKING_ROWS = 60_000
#: Labels from which hyperparameters are tuned exactly, at least.
LEAST_TUNING_ROWS = 500
#: rank="auto" takes as many columns as cost this many operations per pass (n m^2), within limits.
AUTO_OPERATIONS = 5e10
AUTO_RANKS = (500, 2000)
#: Blocks of the rest by number of labels: exact similarities among so many neighbours each.
BLOCK_SIZES = ((20_000, 1000), (60_000, 500), (200_000, 250))


@dataclass(frozen=True)
class RankPlan:
    """How much of the kernel is kept: ``rank`` columns, and exact blocks of ``block_size`` similar points (0: none).

    at_most : whether fewer columns will do where they leave next to nothing.
    storage : how columns are kept.
    tuning_rows : labels from which hyperparameters are tuned exactly, at most.
    """

    rank: int
    block_size: int
    at_most: bool = False
    storage: str = "double"
    tuning_rows: int = TUNING_ROWS

    def memory(self, size: int) -> float:
        """Bytes held at the peak: the factor, a working copy of it, the blocks and their factors, vectors by label."""
        kept = {"double": 2.0, "file": 0.0}[self.storage]
        shared = self.rank * (WORKING_ROWS + 4 * self.rank)
        return 8.0 * (size * (kept * self.rank + 2.0 * self.block_size + VECTORS_HELD) + shared)

    def within(self, available: float) -> RankPlan:
        """The same with no more labels for the tuning than fit into half of the memory."""
        rows = np.sqrt(0.5 * available / (8 * ARRAYS_HELD))
        return replace(self, tuning_rows=int(max(min(self.tuning_rows, rows), LEAST_TUNING_ROWS)))


def plan_rank(rank: Any, size: int, available: float | None = None, storage: str = "double") -> RankPlan | None:
    """The plan for ``rank=None`` (exact: no plan), a number, or "auto"; refuses what does not fit into memory.

    available : bytes to plan with; default: what is free.
    """
    if storage not in STORAGES:
        raise unknown_name("storage", storage, list(STORAGES))
    available = free_memory() if available is None else available
    exact_fits = available is None or exact_memory(size) <= available
    if rank is None or (rank == AUTO and size <= EXACT_UP_TO and exact_fits):
        return None
    if rank != AUTO and (isinstance(rank, bool | str) or rank != int(rank) or rank < 1):
        raise InvalidParameterError(f"rank must be None, 'auto' or a whole number >= 1, got {rank!r}.")
    block = next((block for limit, block in BLOCK_SIZES if size <= limit), 0)
    columns = int(np.clip(np.sqrt(AUTO_OPERATIONS / size), *AUTO_RANKS)) if rank == AUTO else int(rank)
    if storage != "double":
        block = 0
    plan = RankPlan(min(columns, size), min(block, size), rank == AUTO, storage, TUNING_ROWS)
    if available is None:
        return plan
    plan = plan.within(available)
    if plan.memory(size) <= available:
        return plan
    if plan.block_size and replace(plan, block_size=0).memory(size) <= available:
        return replace(plan, block_size=0)
    fits = _largest_rank(replace(plan, block_size=0), size, available)
    if rank == AUTO and fits >= 32:
        return replace(plan, rank=fits, block_size=0)
    needed = replace(plan, block_size=0).memory(size)
    raise MemoryBudgetError(
        f"a fit of rank {plan.rank} to {size} labels needs about {needed / 1e9:.2g} GB, but {available / 1e9:.2g} GB may be "
        f"used; {_what_would_fit(plan, fits, size, available)}."
    )


def _largest_rank(plan: RankPlan, size: int, available: float) -> int:
    """The rank up to that of the plan that fits; 0 if none does."""
    low, high = 0, plan.rank
    while low < high:
        middle = (low + high + 1) // 2
        if replace(plan, rank=middle).memory(size) <= available:
            low = middle
        else:
            high = middle - 1
    return low


def _what_would_fit(plan: RankPlan, fits: int, size: int, available: float) -> str:
    in_file = replace(plan, block_size=0, storage="file")
    if fits >= 1:
        other = ", or storage='file'" if plan.storage != "file" and in_file.memory(size) <= available else ""
        return f"rank={fits} would fit{other}"
    least = replace(in_file, rank=32).memory(size)
    if least <= available:
        return "storage='file' would fit"
    return (
        f"not even storage='file' with rank=32 fits, which needs {least / 1e9:.2g} GB: give more memory or fewer labels"
    )


def plan_on_workers(rank: Any, size: int) -> RankPlan:
    """The plan for rows that are kept elsewhere: never exact, and without blocks, which would move rows."""
    plan = plan_rank(AUTO if rank is None else rank, max(size, EXACT_UP_TO + 1), np.inf)
    assert plan is not None
    return replace(plan, rank=min(plan.rank, size), block_size=0)
