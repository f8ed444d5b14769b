"""What an audit is asked for: checked once, the same from Python, the command line and Dask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from mislabel.data.column_names import HasColumns, check_column
from mislabel.data.corrections import Decisions
from mislabel.data.formats.contract import ReadOptions
from mislabel.data.lists import holds_lists
from mislabel.data.number_text import NumberOptions
from mislabel.errors import InvalidParameterError, unknown_name

#: Kernels that are chosen by name.
KERNELS = ("auto", "table", "extensive", "intensive", "bonds", "precomputed")


@dataclass(frozen=True)
class Beside:
    """What is known of every row beside its features: each an array or the name of a column, None where it was not given.

    predictions, prediction_std : out-of-fold predictions of the user's own model, and how uncertain they are.
    groups : rows of one group are predicted by models that have seen none of it. sample_weight : of the mean model's fits.
    group : rows of one group may be wrong together, and are judged together; implies ``groups`` where that was not given.
    censored : which labels are only limits.
    process_on_residuals : whether a Gaussian process corrects the predictions.
    """

    predictions: Any = None
    prediction_std: Any = None
    groups: Any = None
    group: Any = None
    sample_weight: Any = None
    process_on_residuals: bool = False
    censored: Any = None

    @property
    def columns(self) -> dict[str, str]:
        """Those that are columns of the table."""
        names = ("predictions", "prediction_std", "groups", "group", "sample_weight", "censored")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if isinstance(value, str)}

    @property
    def judges_alone(self) -> bool:
        """Whether labels are judged by predictions alone, for which no features are needed."""
        return self.predictions is not None and not self.process_on_residuals

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was given that a mean model or its substitute needs."""
        given = (self.predictions, self.prediction_std, self.groups, self.group, self.sample_weight)
        return all(value is None for value in given)

    def check(self) -> None:
        """Refuse what makes no sense alone."""
        if self.predictions is None and self.prediction_std is not None:
            raise InvalidParameterError("prediction_std goes with predictions: pass those, too.")
        if self.predictions is None and self.process_on_residuals:
            raise InvalidParameterError("process_on_residuals goes with predictions: pass those, too.")


@dataclass(frozen=True)
class Request:
    """Everything about an audit but its data.

    label : the name of a column or property. id, drop, features : names of columns.
    errors : known standard deviations of the labels, an array or the name of a column.
    kernel : a name from KERNELS or a kernel. reading : how to read a file.
    decision : score, threshold, cutoff and confidence. model : parameters of LabelNoiseRegressor.
    beside : predictions, groups and weights. of_new_rows : whether these are rows for a gate, of which there may be few.
    decisions : earlier ones, with the names of their files.
    """

    label: str
    fdr: float = 0.05
    id: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    errors: Any = None
    kernel: Any = "auto"
    reading: ReadOptions = field(default_factory=ReadOptions)
    client: Any = None
    memory: str | float | None = None
    decision: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)
    of_new_rows: bool = False
    decisions: tuple[tuple[str, Decisions], ...] = ()

    @property
    def numbers(self) -> NumberOptions:
        """The marks in numbers that stand as text."""
        return self.reading.numbers

    @property
    def error_column(self) -> str | None:
        """The column of known standard deviations, where they are one."""
        return self.errors if isinstance(self.errors, str) else None

    @property
    def mean(self) -> Any:
        """The mean model, None for none."""
        mean = self.model["mean"]
        return None if isinstance(mean, str) and mean == "none" else mean

    @property
    def wants_mean(self) -> bool:
        """Whether a mean model was asked for, rather than left open."""
        return not (self.mean is None or (isinstance(self.mean, str) and self.mean == "auto"))

    def with_label(self, label: str) -> Request:
        """The same for another label, with the earlier decisions about it."""
        own = tuple((name, chosen) for name, chosen in self.decisions if chosen.label == label)
        return replace(self, label=label, decisions=own)

    def check(self) -> None:
        """Refuse what cannot be, before anything is read."""
        if self.id is not None and self.id == self.label:
            raise InvalidParameterError(f"column {self.id!r} cannot be the label and the id of the rows at once.")
        if self.error_column == self.label:
            raise InvalidParameterError(f"column {self.label!r} cannot be the label and its own error.")
        for name, column in self.beside.columns.items():
            if column == self.label:
                raise InvalidParameterError(
                    f"column {column!r} cannot be the label and its own {name.replace('_', ' ')}."
                )
        self.beside.check()
        if isinstance(self.kernel, str) and self.kernel not in KERNELS:
            raise unknown_name("kernel", self.kernel, KERNELS)
        if not 0.0 < self.fdr < 1.0:
            raise InvalidParameterError(f"fdr must lie between 0 and 1, got {self.fdr!r}; 0.05 is a common choice.")

    def check_several(self) -> None:
        """Refuse what belongs to one label where several are audited."""
        beside = self.beside
        own = {"predictions": beside.predictions, "prediction std": beside.prediction_std, "censored": beside.censored}
        given = [name for name, value in own.items() if value is not None]
        if given:
            raise InvalidParameterError(
                f"{', '.join(given)}: that is known of one label, not of several; audit each label in a call of its own."
            )

    def check_columns(self, frame: HasColumns, *, label: bool = True) -> None:
        """Refuse names of columns that the table does not have; ``label`` is whether that of the label is one."""
        named = self.beside.columns.values()
        for name in [
            self.label if label else None,
            self.id,
            *self.drop,
            *(self.features or ()),
            self.error_column,
            *named,
        ]:
            if name is not None:
                check_column(frame, name)

    def candidates(self, frame: HasColumns) -> list[str]:
        """Columns that may be features.

        That of the groups which may be wrong together is none: it would explain their errors. Lists of names are one still, since
        other groups share the names.
        """
        beside = self.beside.columns
        if isinstance(frame, pd.DataFrame) and "group" in beside and holds_lists(frame[beside["group"]]):
            del beside["group"]
        excluded = {self.label, self.id, self.error_column, *self.drop, *beside.values()}
        return [
            name for name in (self.features if self.features is not None else frame.columns) if name not in excluded
        ]

    def refuse(self, what: str, names: Sequence[str]) -> None:
        """Complain about options that mean nothing for molecules, rather than ignore them."""
        given = {
            "id": self.id,
            "drop": self.drop,
            "features": self.features,
            "label error": self.errors,
            **self.reading.as_dict(),
            "mean": self.mean if self.wants_mean else None,
        }
        useless = [name for name in names if given[name] is not None and not _is_empty(given[name])]
        if useless:
            raise InvalidParameterError(
                f"{', '.join(useless)}: {what} holds molecules, for which that cannot be used yet; leave it out."
            )


def _is_empty(value: Any) -> bool:
    return isinstance(value, tuple) and not value
