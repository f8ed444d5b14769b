"""Rows that are there more than once: one record, not several that confirm each other.

A copy agrees perfectly with its original, whatever both are worth: leave-one-out would find it trustworthy, and a few of them
make a model believe that there is no noise at all. So only the first of several copies takes part in a fit, and all of them get
its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mislabel.kernels.on_data import each_block, n_features, take_points
from mislabel.linalg.contract import FloatArray, IntArray

#: Labels that agree for one in so many random pairs of rows are too coarse to say by themselves that rows which agree are
#: copies.
RARE_AGREEMENT = 1000
#: Where labels are coarse, equal rows are copies if fewer than one in so many pairs of rows with equal features is expected
#: by accident, at least half of all rows have features of their own, and labels of rows with equal features agree so much
#: more often than chance has it (Cohen's kappa).
RARE_FEATURES = 100
LEAST_KAPPA = 1.0 / 3.0
#: An odd number; multiplying with it spreads the bits of a hash.
_SPREADING = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Copies:
    """Positions of rows that are copies, and those of the first row that is like each of them."""

    positions: IntArray
    originals: IntArray

    @classmethod
    def none(cls) -> Copies:
        """Every row is there once."""
        return cls(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))

    @classmethod
    def among(cls, points: Any, columns: tuple[FloatArray, ...], present: IntArray) -> Copies:
        """Copies among the rows ``present``: equal in all features and in ``columns``, of which the first are the labels.

        Points are features, here or elsewhere; for others there are none. Where labels are coarse,
        equal rows may be repeated measurements: then it takes more to be a copy.
        """
        if present.size < 2 or not n_features(points):
            return cls.none()
        features = np.concatenate(each_block(points, feature_hashes))
        hashes = _hashed(features, columns)[present]
        order = np.argsort(hashes, kind="stable")
        begins = np.append(True, np.diff(hashes[order]) != 0)
        first = present[order[begins]][np.cumsum(begins) - 1]
        positions, originals = present[order[~begins]], first[~begins]
        if positions.size:
            # Equal hashes of unequal rows are nearly impossible, but a verdict must not rest on that.
            equal = (take_points(points, positions) == take_points(points, originals)).all(axis=1)
            equal &= np.all([column[positions] == column[originals] for column in columns], axis=0)
            positions, originals = positions[equal], originals[equal]
        if not positions.size:
            return cls.none()
        by_chance = _agreement(np.delete(columns[0], positions))
        if by_chance > 1.0 / RARE_AGREEMENT and (
            not isinstance(points, np.ndarray)
            or not _is_no_accident(points[present], features[present], hashes, by_chance)
        ):
            return cls.none()
        return cls(positions, originals)

    def without(self, present: IntArray) -> IntArray:
        """The positions ``present`` less those of copies."""
        return np.setdiff1d(present, self.positions, assume_unique=True) if self.positions.size else present

    def follow(self, values: FloatArray) -> None:
        """Give every copy the value of its original."""
        values[self.positions] = values[self.originals]


def feature_hashes(points: FloatArray) -> np.ndarray:
    """A number for every row that rows with equal features share."""
    return _hashed(np.zeros(len(points), dtype=np.uint64), points.T)


def row_hashes(points: Any, columns: tuple[FloatArray, ...]) -> np.ndarray:
    """A number for every row that rows share which are equal in all features and in ``columns``."""
    features = np.concatenate(each_block(points, feature_hashes)) if len(points) else np.zeros(0, dtype=np.uint64)
    return _hashed(features, columns)


def _hashed(start: np.ndarray, columns: Iterable[FloatArray]) -> np.ndarray:
    found = start
    for column in columns:
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)  # -0 becomes 0
        found = (found ^ bits) * _SPREADING
        found ^= found >> np.uint64(29)
    return found


def _is_no_accident(points: FloatArray, features: np.ndarray, rows: np.ndarray, by_chance: float) -> bool:
    """Whether rows that are equal, coarse labels included, are records that were copied.

    ``features`` and ``rows`` are hashes without and with the labels, which agree ``by_chance`` in random pairs.
    """
    if np.unique(features).size < 0.5 * features.size:
        return False
    equal = _agreement(features)
    if RARE_FEATURES * np.prod([_agreement(column) for column in points.T]) > equal:
        return False
    return bool(_agreement(rows) / equal - by_chance >= LEAST_KAPPA * (1.0 - by_chance))


def _agreement(values: np.ndarray) -> float:
    """How often two different values, drawn at random, are equal."""
    _, counts = np.unique(values[values == values], return_counts=True)  # NaN equals nothing
    total = counts.sum()
    return float(np.sum(counts * (counts - 1.0)) / max(total * (total - 1.0), 1.0))
