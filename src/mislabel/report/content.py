"""From an audit to plain data: what the page shows, as JSON."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel._common.version import __version__
from mislabel.data.corrections import why_not_written
from mislabel.data.formats.contract import Dialect, Reading, ReadOptions
from mislabel.data.large_tables import LargeTable
from mislabel.data.number_text import Notation
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.table_files import TableFile
from mislabel.decisions import coverage
from mislabel.decisions.patterns import confidence_words
from mislabel.report.drawn_sample import DrawnSample
from mislabel.report.findings import Findings
from mislabel.report.group_words import group_entries
from mislabel.report.kind_words import detection_line, kind_facts, meaning_line
from mislabel.report.plain_words import number
from mislabel.report.telling import telling_column
from mislabel.report.words import fit_lines, model_line, pattern_line, summary_lines

#: Of what the page is made from; another number where a page of before cannot be shown as it is.
CONTENT_FORMAT = "mislabel-report/1"
#: Rows with their own features and neighbours; the rest are shown by their numbers alone.
MOST_DETAILED = 2000
#: Rows in the page: of larger tables, so many of the most suspicious.
MOST_ROWS = 200_000
#: Also the best of those not called suspect, which a reviewer may want to see.
DETAILED_TRUSTED = 100
NEIGHBOURS = 5
MOST_FEATURES = 60
MOST_COLUMNS_CHARTED = 8
#: Characters of a cell that the page shows.
LONGEST_CELL = 200
#: Tables of up to so many characters are kept whole in the page, which can then export all of a cleaned CSV.
MOST_CELLS = 8_000_000
#: Of the bounds that a review gives.
PAGE_CONFIDENCE = 0.95
HISTOGRAM_BINS = 41
#: Points of the curve of errors that would be noticed, and the share of the rows that it reaches.
SIZES_SHOWN = 60
LARGEST_SHOWN = 0.97
HISTOGRAM_RANGE = 6.0
#: Labels beyond any plausible scale are off by more standard deviations than the page has numbers for.
_LARGEST_Z = 1e30


def _no_options() -> dict[str, Any]:
    return ReadOptions().as_dict()


@dataclass(frozen=True)
class Source:
    """Where the labels came from, and how they are written there.

    fingerprint : of the file's bytes, or of the values of a table that came from no file.
    read_options : what the user said about how to read it, which whoever writes it back must know too.
    notation, decimal : how the file writes its labels, and their decimal mark.
    reading : what was understood of the file beside its cells. notes : what had to be decided while reading.
    described : how a text table is written, in words; None for anything else.
    header, cells : of a text table, as they stand in it.
    why_not : why decisions cannot be written back into such a file, in a sentence; None where they can.
    """

    name: str
    fingerprint: str
    read_options: dict[str, Any] = field(default_factory=_no_options)
    notation: Notation = field(default_factory=Notation)
    decimal: str = "."
    reading: Reading = field(default_factory=Reading)
    notes: list[str] = field(default_factory=list)
    described: str | None = None
    dialect: Dialect | None = None
    header: list[str] = field(default_factory=list)
    cells: pd.DataFrame | None = None
    why_not: str | None = None
    is_file: bool = False

    @classmethod
    def of_file(cls, table: TableFile | LargeTable, label: str) -> Source:
        """Of a table that was read from a file."""
        common = cls(
            table.path.name,
            table.fingerprint,
            table.options.as_dict(),
            notes=list(table.notes),
            why_not=why_not_written(table.path),
            is_file=True,
        )
        if isinstance(table, LargeTable):
            return common
        found = table.notations.get(label)
        return replace(
            common,
            notation=table.notation(label),
            decimal="." if found is None else found.decimal,
            described=table.describe(),
            dialect=table.dialect,
            reading=table.reading,
            why_not=table.why_not or common.why_not,
            header=list(table.header),
            # The page writes tables that hold nothing but a header and rows, with numbers alone among the labels.
            cells=table.cells if table.is_plain and not (found and found.unit) else None,
        )


def report_content(audit: Findings, source: Source) -> dict[str, Any]:
    """Everything the page needs, ready for JSON."""
    evidence = audit.model.calibrated_evidence_
    # Limits that are not crossed are not off at all.
    known = np.isfinite(evidence.z) & ~evidence.errors.is_limit
    details, memory = _Details.of(audit), audit.remembered
    kept = _kept(audit, details)
    table, positions = audit.table.iloc[kept], audit.positions[kept]
    rows = {
        "position": _packed(positions, "<i4"),
        "label": _packed(table["label"], "<f8"),
        "expected": _packed(table["expected"], "<f8"),
        "half": _packed((table["expected_high"] - table["expected_low"]) / 2, "<f8"),
        **({} if audit.censored is None else {"side": _packed(_sides(table["censored"]), "i1")}),
        "suggested": _packed(table["suggested_label"], "<f8"),
        "z": _packed(table["z"].clip(-_LARGEST_Z, _LARGEST_Z), "<f4"),
        "q": _packed(table["q_value"], "<f4"),
        "suspect": _packed(table["suspect"], "u1"),
        "detectable": _packed(table["detectable"], "<f4"),
    }
    return {
        "format": CONTENT_FORMAT,
        "version": __version__,
        "audit": _audit_id(rows),
        "file": _file(audit, source),
        "label": audit.label,
        "numbers": _numbers(source),
        "id": audit.id,
        "fdr": audit.fdr,
        "suspects": audit.n_suspects,
        "meaning": meaning_line(audit),
        "kinds": _kinds(audit, source.decimal),
        "trust": [model_line(audit), *fit_lines(audit, source.decimal)],
        "words": [*summary_lines(audit, source.decimal)[:2], *([] if memory is None else memory.lines())],
        "settings": audit_settings(audit),
        "contents": _contents(audit, kept),
        "earlier": [] if memory is None else memory.entries(),
        "again": [] if memory is None else np.searchsorted(kept, audit.ranks[_open_again(audit)]).tolist(),
        "patternLine": pattern_line(audit),
        "patterns": _patterns(audit, kept),
        "used": audit.used,
        "leftOut": [{"column": item.column, "kind": item.kind, "reason": item.reason} for item in audit.left_out],
        "notes": source.notes,
        "reading": source.reading.as_dict(),
        "groups": group_entries(audit),
        "byFeature": _by_feature(audit),
        "calibration": _coverage(evidence.z[known], evidence.degrees),
        "detectable": _detectable(audit),
        "histogram": _histogram(evidence.z[known], audit.suspect[known]),
        "rows": rows,
        "certificate": _certificate(audit, source, kept),
        "ids": _ids(audit, kept),
        "details": details.content(audit, kept),
        "telling": details.telling(audit),
        "cells": _cells(source, audit.label),
    }


def _kinds(audit: Findings, decimal: str) -> list[dict[str, str]]:
    facts = {**kind_facts(audit, decimal), "Detection limit": detection_line(audit, decimal)}
    return [{"name": name, "words": words} for name, words in facts.items()]


def audit_settings(audit: Findings) -> dict[str, Any]:
    """How an audit was made, as its decisions carry it."""
    return {
        "mislabel": __version__,
        "id": audit.id,
        "threshold": audit.threshold,
        "cutoff": audit.fdr if audit.threshold == "fdr" else audit.cutoff,
        "score": audit.score,
        "confidence": audit.confidence,
        "suspects": audit.n_suspects,
        "model": model_line(audit),
    }


def _contents(audit: Findings, kept: NDArray[np.intp]) -> dict[str, Any] | None:
    """By what rows are known again in a file that has grown: fingerprints, and how often those are there that are not alone."""
    found = audit.fingerprints
    if found is None:
        return None
    positions = audit.positions[kept]
    copies = found.copies[positions]
    several = np.flatnonzero(copies > 1)
    return {
        "columns": list(found.columns),
        "rows": base64.b64encode(found.keys[positions].tobytes()).decode("ascii"),
        "copies": {str(int(rank)): int(copies[rank]) for rank in several},
    }


def _sides(signs: pd.Series) -> NDArray[np.int8]:
    """-1 for upper limits, 1 for lower ones, 0 for all others."""
    return np.asarray(signs.map({"<": -1, ">": 1, "": 0}), dtype=np.int8)


def _certificate(audit: Findings, source: Source, kept: NDArray[np.intp]) -> dict[str, Any] | None:
    """The random order of the suspects, as places in ``kept``; None where there are none, or more than the page holds."""
    suspects = np.flatnonzero(audit.table["suspect"].to_numpy())
    if not 0 < suspects.size <= MOST_ROWS:
        return None
    sample = DrawnSample.of(audit, source)
    return {
        "order": _packed(np.searchsorted(kept, suspects)[sample.order], "<i4"),
        "confidence": PAGE_CONFIDENCE,
        "expected": sample.expected,
        "promised": sample.promised,
    }


def _file(audit: Findings, source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": source.name,
        "sha256": source.fingerprint,
        "rows": len(audit.frame),
        **source.read_options,
        # Why decisions cannot be written back into such a file, in a sentence; None where they can.
        "apply": source.why_not,
    }
    if (dialect := source.dialect) is not None:
        found["dialect"] = {
            "delimiter": dialect.delimiter,
            "lineEnd": dialect.line_end,
            "mark": dialect.encoding == "utf-8-sig",
        }
    return found


def _audit_id(rows: dict[str, str]) -> str:
    """The same for pages that show the same rows in the same order with the same suggestions, and for no others."""
    return hashlib.sha256("\n".join(rows.values()).encode("ascii")).hexdigest()


def _numbers(source: Source) -> dict[str, Any]:
    """How the file writes its labels, which is how the page shows, reads and writes them.

    decimal, thousands : the marks; no thousands mark is "". decimals : how many every cell of the column has, None where
    they differ. most : how many the longest has.
    """
    notation = source.notation
    return {
        "decimal": notation.decimal,
        "thousands": notation.thousands,
        "decimals": notation.decimals,
        "most": notation.most,
    }


def _ids(audit: Findings, kept: NDArray[np.intp]) -> list[str] | None:
    """The ids of the rows exactly as they are written; None where they are the positions."""
    if _ids_are_positions(audit):
        return None
    return ["" if row is None or row is pd.NA or row != row else str(row) for row in audit.table["row"].iloc[kept]]


def _ids_are_positions(audit: Findings) -> bool:
    rows = audit.table["row"].to_numpy()
    return rows.dtype.kind in "iu" and bool(np.array_equal(rows, audit.positions))


def _packed(values: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(np.asarray(values), dtype=kind).tobytes()).decode("ascii")


def _cell(value: Any) -> str:
    """One cell as text that the page can show."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NaT or value is pd.NA:
        return ""
    if isinstance(value, float | np.floating):
        return number(float(value), 6)
    text = str(value)
    # Lone surrogates cannot be written as UTF-8.
    text = text.encode("utf-8", errors="replace").decode("utf-8")
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _kept(audit: Findings, details: _Details) -> NDArray[np.intp]:
    """Ranks of the rows that the page holds: all, or the most suspicious and those that others refer to."""
    size = len(audit.table)
    if size <= MOST_ROWS:
        return np.arange(size, dtype=np.intp)
    suspects = np.flatnonzero(audit.table["suspect"].to_numpy())
    parts = [np.arange(MOST_ROWS), suspects[:MOST_ROWS], details.ranks, audit.ranks[details.near.ravel()]]
    parts += [audit.ranks[pattern.positions] for pattern in audit.patterns]
    parts += [audit.ranks[_open_again(audit)]]
    return np.unique(np.concatenate(parts)).astype(np.intp)


def _open_again(audit: Findings) -> NDArray[np.intp]:
    """Positions of rows that were decided about earlier and have to be asked for again."""
    return np.array([] if audit.remembered is None else audit.remembered.open, dtype=np.intp)


def _detailed(table: pd.DataFrame) -> NDArray[np.intp]:
    suspect, missing = table["suspect"].to_numpy(), table["label"].isna().to_numpy()
    parts = [
        np.flatnonzero(kind)[:most]
        for kind, most in (
            (suspect, MOST_DETAILED),
            (missing, MOST_DETAILED),
            (~suspect & ~missing, DETAILED_TRUSTED),
        )
    ]
    return np.unique(np.concatenate(parts)).astype(np.intp)


@dataclass(frozen=True)
class _Details:
    """Rows shown with their features, and the positions of their neighbours."""

    ranks: NDArray[np.intp]
    near: NDArray[np.intp]
    similarity: NDArray[np.float64]

    @classmethod
    def of(cls, audit: Findings) -> _Details:
        ranks = np.union1d(_detailed(audit.table), audit.ranks[_open_again(audit)])
        return cls(ranks, *audit.neighbours(audit.positions[ranks].tolist(), NEIGHBOURS))

    def content(self, audit: Findings, kept: NDArray[np.intp]) -> dict[str, Any]:
        """Ranks in the page are places in ``kept``."""
        positions = audit.positions[self.ranks]
        columns = audit.used[:MOST_FEATURES]
        shown = self.shown(audit)
        where = {int(position): k for k, position in enumerate(shown)}
        subset = audit.frame_rows(shown, columns).reset_index(drop=True)
        missing = PlainColumns.of(subset).apply(subset)[0].isna().to_numpy()
        rank_of, ranks = audit.ranks, np.searchsorted(kept, self.ranks)
        return {
            "columns": columns,
            "features": [[_cell(value) for value in row] for row in subset.itertuples(index=False, name=None)],
            "rank": {str(int(rank)): where[int(position)] for rank, position in zip(ranks, positions, strict=True)},
            "near": [
                [
                    [int(np.searchsorted(kept, rank_of[other])), where[int(other)], round(float(close), 4)]
                    for other, close in zip(row, near_by, strict=True)
                ]
                for row, near_by in zip(self.near, self.similarity, strict=True)
            ],
            "nearOf": [int(rank) for rank in ranks],
            "gaps": {str(k): np.flatnonzero(missing[k]).tolist() for k in np.flatnonzero(missing.any(axis=1)).tolist()},
        }

    def shown(self, audit: Findings) -> NDArray[np.intp]:
        """Positions of the rows with features, and of their neighbours."""
        return np.unique(np.concatenate([audit.positions[self.ranks], self.near.ravel()])).astype(np.intp)

    def telling(self, audit: Findings) -> dict[str, Any] | None:
        """The column to draw labels against, with the values of the rows that are shown; None where no column tells anything."""
        found = telling_column(audit, audit.used[:MOST_FEATURES], self.shown(audit))
        if found is None:
            return None
        return {
            "column": found.column,
            "kind": found.kind,
            "names": None if found.names is None else [_cell(name) for name in found.names],
            "share": round(found.share, 4),
            "x": _packed(found.shown, "<f8"),
            "back": {"x": _packed(found.others, "<f8"), "y": _packed(found.labels, "<f8")},
        }


def _patterns(audit: Findings, kept: NDArray[np.intp]) -> list[dict[str, Any]]:
    rank_of = audit.ranks
    return [
        {
            "words": _cell(pattern.words),
            "ranks": [int(rank) for rank in np.searchsorted(kept, rank_of[pattern.positions])],
            "byAccident": round(float(pattern.by_accident), 3),
            "certainty": confidence_words(pattern.p_value),
        }
        for pattern in audit.patterns
    ]


def _by_feature(audit: Findings) -> list[dict[str, Any]]:
    return [
        {
            "column": entry.column,
            "kind": entry.kind,
            "p": entry.p_value,
            "bins": [
                {
                    "name": _cell(item.name),
                    "count": item.count,
                    "suspects": item.suspects,
                    "z": round(item.mean_abs_z, 3),
                }
                for item in entry.bins
            ],
        }
        for entry in audit.by_feature[:MOST_COLUMNS_CHARTED]
    ]


def _coverage(z: NDArray[np.float64], degrees: float) -> list[list[float]]:
    shares = np.append(np.arange(0.05, 0.96, 0.05), 0.99)
    held = coverage(z, degrees, shares)
    return [[round(float(share), 3), round(float(seen), 4)] for share, seen in zip(shares, held, strict=True)]


def _histogram(z: NDArray[np.float64], suspect: NDArray[np.bool_]) -> dict[str, Any]:
    edges = np.linspace(-HISTOGRAM_RANGE, HISTOGRAM_RANGE, HISTOGRAM_BINS + 1)
    clipped = np.clip(z, edges[0], edges[-1])
    cut = float(np.min(np.abs(z[suspect]))) if suspect.any() else None
    return {
        "edges": [round(float(edge), 4) for edge in edges],
        "trusted": np.histogram(clipped[~suspect], edges)[0].tolist(),
        "suspect": np.histogram(clipped[suspect], edges)[0].tolist(),
        "cut": cut,
        "beyond": int(np.count_nonzero(np.abs(z) > edges[-1])),
    }


def _detectable(audit: Findings) -> dict[str, list[float]]:
    """In which share of the rows errors of some sizes would be noticed; sizes that only few rows need are left out."""
    limit = np.sort(audit.table["detectable"].to_numpy(dtype=float))
    places = np.unique(np.linspace(0, LARGEST_SHOWN * (limit.size - 1), SIZES_SHOWN).round().astype(int))
    places = places[np.isfinite(limit[places])]
    return {
        "sizes": [float(f"{size:.4g}") for size in limit[places]],
        "shares": [round(float((place + 1) / limit.size), 4) for place in places],
    }


def _cells(source: Source, label: str) -> dict[str, Any] | None:
    """The file's own cells, where they are text and not too many."""
    cells, dialect = source.cells, source.dialect
    if cells is None or dialect is None:
        return None
    sizes = [int(cells[name].str.len().sum()) for name in cells.columns]
    if sum(sizes) + 3 * cells.size > MOST_CELLS:
        return None
    rows = [list(row) for row in cells.itertuples(index=False, name=None)]
    return {
        "header": source.header,
        "label": list(cells.columns).index(label),
        "rows": rows,
        "exact": _written_alike([source.header, *rows], dialect, source.fingerprint),
    }


def _written_alike(lines: list[list[str]], dialect: Dialect, fingerprint: str) -> bool:
    """Whether cells written as the page writes them make the very file: its quoting, line ends and encoding are the usual."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=dialect.delimiter, lineterminator=dialect.line_end).writerows(lines)
    written = text.getvalue().encode("utf-8-sig" if dialect.encoding == "utf-8-sig" else "utf-8", errors="replace")
    return hashlib.sha256(written).hexdigest() == fingerprint
