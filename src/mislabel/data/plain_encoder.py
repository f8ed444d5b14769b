"""How columns of a table became numbers, in a few words and arrays: what a fitted encoder has learned, without the encoder.

Numbers stay, categories become one column for each of their values, times their parts; then gaps are filled, columns that say
where these were are added, and all of them get spread one. Long texts, which are encoded by what all of them hold, are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel.data.column_types import ColumnType
from mislabel.data.tables import FeatureEncoder

#: Cells of text that encoders take for gaps.
GAPS = frozenset(
    (
        "",
        "null",
        "NULL",
        "none",
        "None",
        "nan",
        "NaN",
        "-nan",
        "-NaN",
        "NA",
        "N/A",
        "n/a",
        "#NA",
        "#N/A",
        "#N/A N/A",
        "<NA>",
    )
    + ("?", "...", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND")
)
_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond", "nanosecond")
_SECOND = pd.Timedelta("1s")
_EPOCH = pd.Timestamp(1970, 1, 1)


class NotPlainError(Exception):
    """A part of an encoder that is not a few words and arrays; says which, for the middle of a sentence."""


@dataclass(frozen=True, eq=False)
class PlainPipeline:
    """The steps that follow plain columns: each column by its rule, then gaps and scales.

    rules : one for each column: its kind (numbers, categories, times or nothing), and what was learned of it.
    fill : what stands for a gap, NaN for columns that are left out. flagged : columns whose gaps are told in one of their own.
    center, unit : of every column in the end.
    """

    rules: list[dict[str, Any]]
    fill: NDArray[np.float64]
    flagged: NDArray[np.intp]
    center: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    unit: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def transform(self, plain: pd.DataFrame) -> NDArray[np.float64]:
        """The numbers for rows of plain columns."""
        parts = [_RULES[rule["kind"]](plain[rule["column"]], rule) for rule in self.rules]
        encoded = np.concatenate([*parts, np.zeros((len(plain), 0))], axis=1)
        gaps = np.isnan(encoded)
        kept = np.flatnonzero(~np.isnan(self.fill))
        filled = np.where(gaps, self.fill, encoded)[:, kept]
        found = np.concatenate([filled, gaps[:, self.flagged].astype(float)], axis=1)
        return (found - self.center) / self.unit if self.center.size else found


def plain_form(encoder: FeatureEncoder) -> PlainPipeline | None:
    """What the pipeline of an encoder has learned; None where it has none."""
    pipeline = encoder.pipeline
    if pipeline is None or isinstance(pipeline, PlainPipeline):
        return pipeline
    steps = [step for _, step in pipeline.steps]
    if hasattr(steps[0], "transformers_"):
        vectorizer, imputer, scaler = steps
        try:
            rules = [_rule_of(vectorizer, name, kind) for name, kind in encoder.plain_types.items()]
        except AttributeError as unknown:  # parts of encoders have other names in other versions
            raise NotPlainError(
                f"its columns were encoded by a version of skrub that is not known ({unknown})"
            ) from None
        center = np.zeros(scaler.scale_.size) if scaler.mean_ is None else scaler.mean_
        return PlainPipeline(rules, *_gaps_of(imputer), np.asarray(center), np.asarray(scaler.scale_))
    rules = [{"column": name, "kind": "numbers"} for name in encoder.plain_types]
    return PlainPipeline(rules, *_gaps_of(steps[0]))


def _gaps_of(imputer: Any) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    fill = np.asarray(imputer.statistics_, dtype=float)
    flagged = np.zeros(0, dtype=np.intp) if imputer.indicator_ is None else imputer.indicator_.features_
    return fill, np.asarray(flagged, dtype=np.intp)


def _rule_of(vectorizer: Any, name: str, kind: ColumnType) -> dict[str, Any]:
    """What was learned of one column."""
    if kind == "numbers":  # these pass by
        return {"column": name, "kind": "numbers"}
    step = vectorizer.transformers_.get(name)
    if step is None or not vectorizer.input_to_outputs_.get(name):
        return {"column": name, "kind": "nothing"}
    what = type(step).__name__
    if what == "OneHotEncoder":
        values = list(step.categories_[0])
        missing = bool(values) and not isinstance(values[-1], str)
        dropped = None if step.drop_idx_ is None else step.drop_idx_[0]
        known = values[:-1] if missing else values
        if not all(isinstance(value, str) for value in known):
            raise NotPlainError(f"column {name!r} has categories of several types")
        return {
            "column": name,
            "kind": "categories",
            "values": [str(value) for value in known],
            "missing": missing,
            "dropped": None if dropped is None else int(dropped),
        }
    if what == "DatetimeEncoder" and not step._periodic_encoders:
        formats = [part.format_ for part in vectorizer.all_processing_steps_[name] if hasattr(part, "format_")]
        parts = [str(part) for part in step.extracted_features_]
        return {"column": name, "kind": "times", "parts": parts, "format": next(iter(formats), None)}
    raise NotPlainError(f"column {name!r} holds texts of many kinds, which are encoded by what all of them hold")


def _numbers(column: pd.Series, rule: dict[str, Any]) -> NDArray[np.float64]:
    return column.to_numpy(dtype=float)[:, None]


def _nothing(column: pd.Series, rule: dict[str, Any]) -> NDArray[np.float64]:
    return np.zeros((len(column), 0))


def _categories(column: pd.Series, rule: dict[str, Any]) -> NDArray[np.float64]:
    """A column for each value; none of them for values that are not known."""
    values, missing = rule["values"], rule["missing"]
    codes, found = pd.factorize(column.astype(object))
    place = {value: k for k, value in enumerate(values)}
    gap = len(values) if missing else -1
    places = [gap if str(value) in GAPS or not str(value).strip() else place.get(str(value), -1) for value in found]
    at = np.array([*places, gap], dtype=np.intp)[codes]
    encoded = np.zeros((len(column), len(values) + missing))
    known = np.flatnonzero(at >= 0)
    encoded[known, at[known]] = 1.0
    return encoded if rule["dropped"] is None else np.delete(encoded, rule["dropped"], axis=1)


def _times(column: pd.Series, rule: dict[str, Any]) -> NDArray[np.float64]:
    """Parts of times, in single precision as encoders have them."""
    if not pd.api.types.is_datetime64_any_dtype(column):
        cells = column.where(~column.isin(GAPS), None)
        column = pd.Series(pd.to_datetime(cells, format=rule["format"], errors="coerce", utc=True)).dt.tz_localize(None)
    gone = column.isna().to_numpy()
    parts = [np.where(gone, np.nan, _part(column, part)) for part in rule["parts"]]
    return np.stack(parts, axis=1) if parts else np.zeros((len(column), 0))


def _part(column: pd.Series, part: str) -> NDArray[np.float64]:
    if part == "total_seconds":
        found = (column - _EPOCH) / _SECOND
    elif part == "weekday":
        found = column.dt.day_of_week + 1
    elif part == "day_of_year" or part in _PARTS:
        found = getattr(column.dt, part)
    else:
        raise NotPlainError(f"times have a part {part!r}")
    return np.asarray(found.to_numpy(dtype=np.float32), dtype=float)


_RULES = {"numbers": _numbers, "nothing": _nothing, "categories": _categories, "times": _times}
