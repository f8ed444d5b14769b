"""The suspects of an audit in random order: the page, summary.json and Python put them to a reviewer in the same one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mislabel._common.number_kinds import is_number, is_whole
from mislabel.decisions.certificates import sample_order
from mislabel.report.findings import Findings

if TYPE_CHECKING:
    from mislabel.report.content import Source

#: Share of right labels that is believed in where none was promised.
USUAL_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """The suspects, the most suspicious first, and the order in which they are looked at.

    positions : of the suspects in the data. rows : the user's ids of them, or where they stand if they have none.
    order : places among the suspects. promised : the false discovery rate; None where suspects were called in another way.
    """

    positions: NDArray[np.intp]
    rows: list[str]
    order: NDArray[np.intp]
    promised: float | None

    @classmethod
    def of(cls, audit: Findings, source: Source) -> DrawnSample:
        """Of an audit: the same suspects of the same data come in the same order, which nobody chose."""
        suspect = audit.table["suspect"].to_numpy(dtype=bool)
        positions = audit.positions[suspect]
        named = f"{source.fingerprint}\n{audit.label}\n".encode("utf-8", errors="replace")
        digest = hashlib.sha256(named + positions.astype("<i8").tobytes()).digest()
        order = sample_order(positions.size, int.from_bytes(digest[:8], "little"))
        ids = audit.table["row"][suspect]
        rows = [
            f"position {position}" if is_missing else str(row)
            for row, is_missing, position in zip(ids, ids.isna(), positions, strict=True)
        ]
        return cls(positions, rows, order, audit.fdr if audit.threshold == "fdr" else None)

    @classmethod
    def from_dict(cls, content: dict[str, Any], rows: int) -> DrawnSample:
        """From summary.json, of data with so many rows; ValueError where that cannot be."""
        positions, order, promised = content["suspects"], content["order"], content["promised"]
        names = [str(position) for position in positions] if content["rows"] is None else content["rows"]
        size = len(positions)
        if not all(is_whole(number) for number in [*positions, *order]) or sorted(order) != list(range(size)):
            raise ValueError("the order of the suspects is not one")
        if len(set(positions)) != size or (size and not 0 <= min(positions) <= max(positions) < rows):
            raise ValueError("suspects stand at positions that do not exist")
        if len(names) != size or not all(isinstance(name, str) for name in names):
            raise ValueError("suspects have no ids")
        if promised is not None and not (is_number(promised) and 0.0 < promised < 1.0):
            raise ValueError(f"the promised share is {str(promised)[:40]!r}")
        return cls(np.array(positions, dtype=np.intp), names, np.array(order, dtype=np.intp), promised)

    def as_dict(self) -> dict[str, Any]:
        """For summary.json; ids are None where they are the positions."""
        positions = self.positions.tolist()
        return {
            "promised": self.promised,
            "suspects": positions,
            "rows": None if self.rows == [str(position) for position in positions] else self.rows,
            "order": self.order.tolist(),
        }

    @property
    def expected(self) -> float:
        """Share of right labels that is believed in beforehand."""
        return USUAL_SHARE if self.promised is None else self.promised
