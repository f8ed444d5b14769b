"""What the user passed, and how results and corrected data are given back as the same kind of thing."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.auditing.dask_tables import corrected_lazily
from mislabel.auditing.frames import Changes, corrected_frame, corrected_series, in_kind_of, is_frame
from mislabel.data.corrections import Applied, Decisions, apply_decisions, read_decisions
from mislabel.data.molecules import MoleculeSet
from mislabel.errors import DecisionsError, InvalidParameterError
from mislabel.report.content import Source

#: Decisions as the page exports them: as data, or the file they are in.
DecisionsLike = dict[str, Any] | str | Path


class Given:
    """What the user passed. Subclasses say how it comes back."""

    def table(self, table: pd.DataFrame) -> Any:
        """The audit table as the kind of frame that came in."""
        return table

    def applied(self, decisions: DecisionsLike, source: Source, label: str, **options: Any) -> Any:
        """The user's own data with decisions carried out."""
        if any(value is not None and value is not False for value in options.values()):
            raise InvalidParameterError(
                f"{', '.join(options)} go with files; data that was passed in Python comes back corrected."
            )
        found = read_given(decisions)
        check_made_for(label, self._size(), source.fingerprint, found)
        return self._corrected(label, Changes(found.values, found.dropped))

    def _size(self) -> int:
        raise NotImplementedError

    def _corrected(self, label: str, changes: Changes) -> Any:
        raise NotImplementedError


def read_given(decisions: DecisionsLike) -> Decisions:
    """Decisions, checked as those from a file are."""
    if not isinstance(decisions, dict):
        return read_decisions(decisions)
    with tempfile.TemporaryDirectory() as folder:
        return read_decisions(_written(decisions, folder))


def _written(decisions: dict[str, Any], folder: str) -> Path:
    path = Path(folder) / "decisions.json"
    path.write_text(json.dumps(decisions), encoding="utf-8")
    return path


def check_made_for(label: str, rows: int, fingerprint: str, found: Decisions) -> None:
    """Refuse decisions that were made about other data."""
    if found.label != label or found.rows != rows:
        raise DecisionsError(
            f"these decisions are about the label {found.label!r} of {found.rows} rows, not about {label!r} of {rows} rows."
        )
    if found.fingerprint != fingerprint:
        raise DecisionsError(
            f"these decisions were made about other data (fingerprint {found.fingerprint[:12]}, expected "
            f"{fingerprint[:12]}): audit the data again."
        )


@dataclass(frozen=True, eq=False)
class GivenFile(Given):
    """The path of a file."""

    path: Path

    def applied(self, decisions: DecisionsLike, source: Source, label: str, **options: Any) -> Applied:
        """A cleaned copy of the file."""
        output = options.pop("output", None)
        if output is None:
            raise InvalidParameterError(
                f"{self.path.name} is never changed: name the cleaned file to write, apply(output='cleaned"
                f"{''.join(self.path.suffixes[-1:])}')."
            )
        options = {name: bool(value) for name, value in options.items()}
        if not isinstance(decisions, dict):
            return apply_decisions(self.path, decisions, output, **options)
        with tempfile.TemporaryDirectory() as folder:
            return apply_decisions(self.path, _written(decisions, folder), output, **options)


@dataclass(frozen=True, eq=False)
class GivenFrame(Given):
    """A frame of any kind with the label among its columns."""

    frame: Any
    size: int

    def table(self, table: pd.DataFrame) -> Any:
        """As the kind of frame that came in."""
        return in_kind_of(self.frame, table)

    def _size(self) -> int:
        return self.size

    def _corrected(self, label: str, changes: Changes) -> Any:
        return corrected_frame(self.frame, label, changes)


@dataclass(frozen=True, eq=False)
class GivenDask(GivenFrame):
    """A dask dataframe: results come as pandas, corrected data as a dask dataframe."""

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """As it is."""
        return table

    def _corrected(self, label: str, changes: Changes) -> Any:
        return corrected_lazily(self.frame, label, changes)


@dataclass(frozen=True, eq=False)
class GivenPair(Given):
    """Features, or objects, and labels beside them; they come back as a pair."""

    features: Any
    labels: Any
    size: int

    def table(self, table: pd.DataFrame) -> Any:
        """As the kind of frame that the features came in."""
        return in_kind_of(self.features, table) if is_frame(self.features) else table

    def _size(self) -> int:
        return self.size

    def _corrected(self, label: str, changes: Changes) -> Any:
        return _without(self.features, changes, self.size), corrected_series(self.labels, changes)


def _without(features: Any, changes: Changes, size: int) -> Any:
    """Features, or objects, without dropped rows; a kernel matrix loses their columns too."""
    if not changes.dropped:
        return features
    kept = changes.kept(size)
    if isinstance(features, pd.DataFrame):
        return features.iloc[kept]
    if is_frame(features):
        return corrected_frame(features, "", Changes({}, changes.dropped))
    if isinstance(features, np.ndarray):
        return features[kept]
    return [features[k] for k in kept.tolist()]


@dataclass(frozen=True, eq=False)
class GivenMolecules(Given):
    """A set of molecules with their properties."""

    molecules: MoleculeSet

    def _size(self) -> int:
        return len(self.molecules)

    def _corrected(self, label: str, changes: Changes) -> MoleculeSet:
        kept = changes.kept(len(self.molecules))
        properties = {name: np.array(values)[kept] for name, values in self.molecules.properties.items()}
        properties[label] = corrected_series(np.array(self.molecules.properties[label]), changes)
        folds = self.molecules.folds
        if changes.dropped and folds is not None:
            place = {int(position): new for new, position in enumerate(kept)}
            folds = [
                np.array([place[k] for k in np.asarray(fold).tolist() if k in place], dtype=np.intp) for fold in folds
            ]
        return replace(
            self.molecules,
            molecules=[self.molecules.molecules[k] for k in kept.tolist()],
            properties=properties,
            folds=folds,
        )
