"""What the user passed, and how results and corrected data are given back as the same kind of thing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.auditing.contents import described_objects, fingerprint, label_column, labelled_frame
from mislabel.auditing.dask_tables import corrected_lazily, is_dask, token_of
from mislabel.auditing.frames import Changes, corrected_frame, corrected_series, in_kind_of, is_frame, pandas_of
from mislabel.data.column_names import with_text_names
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

    def applied(self, decisions: DecisionsLike, source: Source, label: str, rows: int, **options: Any) -> Any:
        """The user's own data, of which ``rows`` rows were audited, with decisions carried out."""
        if any(value is not None and value is not False for value in options.values()):
            raise InvalidParameterError(
                f"{', '.join(options)} go with files; data that was passed in Python comes back corrected."
            )
        found = read_given(decisions)
        check_made_for(label, rows, source.fingerprint, found)
        if not self._is_as_it_was(label, source.fingerprint):
            raise DecisionsError(
                "the data was changed in place after the audit, so its rows may not be those that were judged: audit it "
                "again, or pass a copy to the audit if you go on working with the data."
            )
        return self._corrected(label, Changes(found.values, found.dropped))

    def _is_as_it_was(self, label: str, audited: str) -> bool:
        """Whether the data still has the fingerprint that it was ``audited`` with."""
        return fingerprint(self._content(label)) == audited

    def _content(self, label: str) -> pd.DataFrame:
        """What the fingerprint is of."""
        raise NotImplementedError

    def _corrected(self, label: str, changes: Changes) -> Any:
        raise NotImplementedError


def read_given(decisions: DecisionsLike) -> Decisions:
    """Decisions, checked as those from a file are."""
    if isinstance(decisions, str | Path):
        return read_decisions(decisions)
    with _written(decisions) as path:
        return read_decisions(path)


@contextmanager
def _written(decisions: Any) -> Iterator[Path]:
    """Decisions as a file, for as long as they are read; what is said of it is said of them."""
    if not isinstance(decisions, dict):
        raise DecisionsError(
            f"decisions are a dict like result.decisions, or the path of a decisions.json, got {type(decisions).__name__}: "
            "change what you like in result.decisions, and call apply()."
        )
    try:
        text = json.dumps(decisions, default=_plain)
    except (TypeError, ValueError) as error:
        raise DecisionsError(f"decisions must be made of plain numbers and texts: {error}.") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.json"
        path.write_text(text, encoding="utf-8")
        try:
            yield path
        except DecisionsError as error:
            raise DecisionsError(str(error).replace(str(path), "what was passed as decisions")) from None


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither")


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

    def applied(self, decisions: DecisionsLike, source: Source, label: str, rows: int, **options: Any) -> Applied:
        """A cleaned copy of the file."""
        output = options.pop("output", None)
        if output is None:
            raise InvalidParameterError(
                f"{self.path.name} is never changed: name the cleaned file to write, apply(output='cleaned"
                f"{''.join(self.path.suffixes[-1:])}')."
            )
        options = {name: value if name == "reviewer" else bool(value) for name, value in options.items()}
        if isinstance(decisions, str | Path):
            return apply_decisions(self.path, decisions, output, **options)
        with _written(decisions) as path:
            return apply_decisions(self.path, path, output, **options)


@dataclass(frozen=True, eq=False)
class GivenFrame(Given):
    """A frame of any kind with the label among its columns."""

    frame: Any

    def table(self, table: pd.DataFrame) -> Any:
        """As the kind of frame that came in."""
        return in_kind_of(self.frame, table)

    def _content(self, label: str) -> pd.DataFrame:
        return with_text_names(pandas_of(self.frame))

    def _corrected(self, label: str, changes: Changes) -> Any:
        return corrected_frame(self.frame, label, changes)


@dataclass(frozen=True, eq=False)
class GivenDask(GivenFrame):
    """A dask dataframe: results come as pandas, corrected data as a dask dataframe.

    token : dask's own name for its content.
    """

    token: str

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """As it is."""
        return table

    def _is_as_it_was(self, label: str, audited: str) -> bool:
        return token_of(self.frame) == self.token

    def _corrected(self, label: str, changes: Changes) -> Any:
        return corrected_lazily(self.frame, label, changes)


@dataclass(frozen=True, eq=False)
class GivenPair(Given):
    """Features and labels beside them; they come back as a pair."""

    features: Any
    labels: Any

    def table(self, table: pd.DataFrame) -> Any:
        """As the kind of frame that the features came in."""
        return in_kind_of(self.features, table) if is_frame(self.features) else table

    def _content(self, label: str) -> pd.DataFrame:
        return labelled_frame(self.features, self.labels)[0]

    def _corrected(self, label: str, changes: Changes) -> Any:
        return self._kept(changes), corrected_series(self.labels, changes)

    def _kept(self, changes: Changes) -> Any:
        """Features, or objects, without dropped rows."""
        features = self.features
        if not changes.dropped:
            return features
        if is_frame(features):
            return corrected_frame(features, "", Changes({}, changes.dropped))
        kept = changes.kept(len(features))
        return features[kept] if isinstance(features, np.ndarray) else [features[k] for k in kept.tolist()]


@dataclass(frozen=True, eq=False)
class GivenDaskPair(GivenPair):
    """Features in a dask dataframe, and labels beside them: labels that are of dask come back so, too.

    token : dask's own name for their content.
    """

    token: str

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """As it is."""
        return table

    def _is_as_it_was(self, label: str, audited: str) -> bool:
        return token_of((self.features, self.labels)) == self.token

    def _corrected(self, label: str, changes: Changes) -> Any:
        lazy = is_dask(self.labels)
        labels = corrected_lazily(self.labels, label, changes) if lazy else corrected_series(self.labels, changes)
        return self._kept(changes), labels

    def _kept(self, changes: Changes) -> Any:
        return corrected_lazily(self.features, "", Changes({}, changes.dropped)) if changes.dropped else self.features


@dataclass(frozen=True, eq=False)
class GivenObjects(GivenPair):
    """Molecules or other objects, and labels beside them."""

    def described(self, label: str) -> pd.DataFrame:
        """The objects as a table for people."""
        return described_objects(self.features, label_column(self.labels).to_numpy(), label)

    def _content(self, label: str) -> pd.DataFrame:
        return self.described(label)


@dataclass(frozen=True, eq=False)
class GivenMatrix(GivenObjects):
    """A kernel matrix, and labels beside it; dropped rows are dropped from its columns, too."""

    def described(self, label: str) -> pd.DataFrame:
        """The labels alone."""
        return pd.DataFrame({label: label_column(self.labels).to_numpy()})

    def _kept(self, changes: Changes) -> Any:
        if not changes.dropped:
            return self.features
        if isinstance(self.features, pd.DataFrame):
            kept = changes.kept(len(self.features))
            return self.features.iloc[kept, kept]
        matrix = np.asarray(pandas_of(self.features) if is_frame(self.features) else self.features)
        kept = changes.kept(len(matrix))
        return matrix[np.ix_(kept, kept)]


@dataclass(frozen=True, eq=False)
class GivenMolecules(Given):
    """A set of molecules with their properties."""

    molecules: MoleculeSet

    def _content(self, label: str) -> pd.DataFrame:
        return self.molecules.describe()

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
