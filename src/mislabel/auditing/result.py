"""The result of an audit: its table and everything that can be done with it."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel.auditing.accepted import accepted
from mislabel.auditing.assemble import with_verdicts
from mislabel.auditing.certify import NO_VERDICTS, ReviewCertificate, certified
from mislabel.auditing.files import check_folder, check_page, folders_of, write_cells, write_results, write_summary
from mislabel.auditing.gate_files import KeptGate, gate_of, write_gate
from mislabel.auditing.given import DecisionsLike, Given, GivenFile, check_made_for, read_given
from mislabel.auditing.request import Request
from mislabel.auditing.summary import CellsFound, Summary, summary, summary_of_cells, summary_of_several
from mislabel.decisions import Pattern
from mislabel.errors import DecisionsError, GateError
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.report.content import Source
from mislabel.report.drawn_sample import DrawnSample
from mislabel.report.findings import Findings
from mislabel.report.html import write_report
from mislabel.report.plain_words import count
from mislabel.report.words import summary_lines


class AuditResult:
    """What an audit found. It behaves like its table, and knows more.

    Parameters
    ----------
    findings : everything that is known about the labels. source : where they came from.
    given : what the user passed. notes : what had to be decided, in words. request : what was asked for.

    Examples
    --------
    >>> result = audit("prices.csv", "price")  # doctest: +SKIP
    >>> result.head(10)  # as on the table  # doctest: +SKIP
    >>> print(result.summary)  # doctest: +SKIP
    >>> result.report("report.html")  # doctest: +SKIP
    >>> result.apply(output="prices-cleaned.csv")  # doctest: +SKIP
    """

    def __init__(
        self, findings: Findings, source: Source, given: Given, notes: list[str], request: Request | None = None
    ) -> None:
        self.findings, self.source, self.notes = findings, source, notes
        self._given, self._request = given, request
        self.folder: Path | None = None

    @property
    def table(self) -> Any:
        """One row per label, the most suspicious first; of polars or pyarrow where the data was, else of pandas.

        A copy: what is changed in it changes nothing here.
        """
        return self._given.table(self.to_pandas())

    def to_pandas(self) -> pd.DataFrame:
        """The same table in pandas, whatever the data was."""
        return self.findings.table.copy()

    def head(self, n: int = 5) -> Any:
        """The ``n`` most suspicious rows of the table."""
        return self._given.table(self.findings.table.iloc[:n].copy())

    @property
    def suspects(self) -> Any:
        """The rows of the table that look wrong."""
        found = self.findings.table
        return self._given.table(found[found["suspect"]].copy())

    @property
    def patterns(self) -> list[Pattern]:
        """Systematic errors among the suspects."""
        return self.findings.patterns

    @property
    def groups(self) -> Any:
        """One row per group, the most suspicious first, where ``group=`` said what may be wrong as a whole; else None.

        Columns: group, rows, kind (of error), size (of it, in its own way), words (which say it), gain (by how many nats it is
        likelier than a right group), p_value, q_value, suspect.
        """
        found = self.findings.groups
        return None if found is None else self._given.table(found.table.copy())

    @property
    def model(self) -> LabelNoiseRegressor:
        """The fitted model."""
        return self.findings.model

    @cached_property
    def summary(self) -> Summary:
        """What was found: prints as sentences, and is the content of summary.json as a dict."""
        return summary(self.findings, self.source, self.notes, self._gate.why_not)

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """Decisions in the format that the page exports: every suspect accepted with its suggestion. Edit them as you like.
        What was decided earlier, and passed to the audit, is among them as it was decided.

        Nobody has looked at any of them: they are no verdicts for :meth:`certify` until an entry says ``"reviewed": True``.

        >>> result.decisions["decisions"][0]["action"] = "keep"  # doctest: +SKIP
        >>> cleaned = result.apply()  # doctest: +SKIP
        """
        return accepted(self.findings, self.source)

    def apply(
        self,
        decisions: DecisionsLike | None = None,
        *,
        output: str | Path | None = None,
        trail: bool = False,
        overwrite: bool = False,
        reviewer: str | None = None,
    ) -> Any:
        """Your own data with decisions carried out; nothing else changes.

        Parameters
        ----------
        decisions : as :attr:`decisions` (the default), or the path of a decisions.json that the page exported.
        output : where the cleaned copy of a file goes. Data that was passed in Python comes back as what it was: a frame,
            or features and labels.
        trail, overwrite : for files: add columns that tell what was done; replace ``output`` if it exists.
        reviewer : for files: who decided; the provenance beside the cleaned file says so.
        """
        chosen = self.decisions if decisions is None else decisions
        options = {"output": output, "trail": trail, "overwrite": overwrite, "reviewer": reviewer}
        return self._given.applied(chosen, self.source, self.findings.label, len(self), **options)

    def certify(self, decisions: DecisionsLike | None = None, *, confidence: float = 0.95) -> ReviewCertificate:
        """How many of the suspects are right labels at most, from verdicts on a random sample of them.

        That needs no model to be right: it holds however suspects were called, and after every verdict.

        Parameters
        ----------
        decisions : a decisions.json that the page exported, or its content; None for no verdicts yet, which says what to look
            at first. "keep" says that a label is right, all others that it is wrong; only entries that are ``"reviewed"`` count.
        confidence : of all bounds together.
        """
        found = self.findings
        chosen = None if decisions is None else read_given(decisions)
        if chosen is not None:
            check_made_for(found.label, len(found.table), self.source.fingerprint, chosen)
        return certified(DrawnSample.of(found, self.source), chosen, confidence)

    def with_verdicts(self, decisions: DecisionsLike) -> AuditResult:
        """This audit after a review, without a new fit: what it found of some labels changes the odds of all others.

        Labels that were kept are no suspects any more, those that were accepted, edited or dropped are; of the others, those
        are suspects whose new ``q_value`` is low enough. Apply the decisions themselves first: the result knows their values, but
        not which rows were to be dropped. Patterns are those from before, as far as their rows are suspects.

        decisions : as for :meth:`certify`.
        """
        found, chosen = self.findings, read_given(decisions)
        check_made_for(found.label, len(found.table), self.source.fingerprint, chosen)
        known = found.table["label"].notna().to_numpy()[found.ranks]
        earlier = () if found.remembered is None else found.remembered.decided
        right = {
            position: is_right
            for position, is_right in chosen.verdicts.items()
            if known[position] and position not in earlier
        }
        if not right:
            raise DecisionsError(NO_VERDICTS)
        kept = sum(right.values())
        note = f"A review found {count(kept, 'label')} right and {len(right) - kept:,} wrong; the odds of all others follow it."
        learned = with_verdicts(found, right, chosen.values)
        return AuditResult(learned, self.source, self._given, [*self.notes, note], self._request)

    def report(self, path: str | Path) -> Path:
        """Write the page to review on, and say where it is."""
        return write_report(self.findings, self.source, check_page(Path(path)))

    def write(self, folder: str | Path) -> Path:
        """Write audit.csv, report.html, summary.json and a gate for new rows into a folder: all of them or none."""
        folder = Path(folder)
        if isinstance(self._given, GivenFile):
            check_folder(self._given.path, folder)
        write_results(self.findings, self.source, folder, self.notes, self._gate)
        self.folder = folder
        return folder

    @cached_property
    def _gate(self) -> KeptGate:
        return gate_of(self.findings, self.source, self._request)

    def save_gate(self, folder: str | Path) -> Path:
        """Write only what :class:`mislabel.Gate` judges new rows by, gate.json and gate.npz, into a folder."""
        folder = Path(folder)
        if self._gate.why_not is not None:
            raise GateError(self._gate.why_not)
        write_gate(self._gate, folder)
        return folder

    @property
    def report_path(self) -> Path | None:
        """The page that was written last, by :meth:`write`."""
        return None if self.folder is None else self.folder / "report.html"

    def plot(self, kind: str = "labels", ax: Any = None, column: str | None = None) -> Any:
        """Draw one of the page's pictures with matplotlib.

        kind : "labels" (label against expected), "z", "calibration", or "column", the suspects by the values of ``column``.
        """
        from mislabel.plotting import display_of

        found = self.findings
        return display_of(kind, found.model, found.suspect, found.by_feature, column).plot(ax=ax)

    def __len__(self) -> int:
        return len(self.findings.table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __contains__(self, item: object) -> bool:
        return item in self.findings.table

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, list) and all(isinstance(name, str) for name in item):
            return self._given.table(self.findings.table[item].copy())  # Arrow's tables take one name at a time
        return self.table[item]

    def __getattr__(self, name: str) -> Any:
        # Only what the result does not have itself; copies and pickles ask before there is anything.
        if name.startswith("__") or "findings" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.table, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # pandas.DataFrame(result) asks for this, too, and would have columns without names.
        raise TypeError("an audit's columns have names and types, which an array has not: use result.to_pandas().")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.table)})

    def __repr__(self) -> str:
        return "\n".join([*self.summary["summary"], repr(self.table)])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in summary_lines(self.findings, self.source.decimal))
        table: Any = self.findings.table
        return f"{lines}{table._repr_html_()}"


class AuditResults(Mapping[str, AuditResult]):
    """The audits of several labels of the same data, by the names of the labels.

    >>> found = audit("tests.csv", ["power_kw", "pressure_bar"])  # doctest: +SKIP
    >>> found["power_kw"].suspects  # doctest: +SKIP
    """

    def __init__(self, audits: Mapping[str, AuditResult], found: CellsFound | None = None) -> None:
        self._audits, self._found = audits, found
        self.folder: Path | None = None

    @property
    def cells(self) -> Any:
        """One row per cell of all audited columns, the most suspicious first, where ``label="all"`` was asked for; else None.

        A cell that is suspect is the likeliest culprit in its row: others may contradict it and be right. As a frame of the kind
        that the data was.
        """
        if self._found is None:
            return None
        return self._found.given.table(self._found.table.copy())

    def __getitem__(self, label: str) -> AuditResult:
        return self._audits[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._audits)

    def __len__(self) -> int:
        return len(self._audits)

    @cached_property
    def summary(self) -> Summary:
        """One summary of all: under "audits" that of each label, and under "cells" what was found of cells."""
        found = summary_of_several({label: found.summary for label, found in self.items()})
        return found if self._found is None else summary_of_cells(found, self._found)

    def write(self, folder: str | Path) -> Path:
        """Write one folder of results per label into ``folder``, and one summary.json; where cells were audited, cells.csv."""
        folder = Path(folder)
        for label, out in folders_of(list(self), folder).items():
            self[label].write(out)
        if self._found is not None:
            write_cells(self._found.table, folder)
        write_summary(self.summary, folder)
        self.folder = folder
        return folder

    def __repr__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        parts = [f"<h4>{html.escape(label)}</h4>{found._repr_html_()}" for label, found in self.items()]
        if self._found is not None:
            lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.summary["cells"]["summary"])
            worst: Any = self._found.table[self._found.table["suspect"]].head(20)
            parts.insert(0, f"{lines}{worst._repr_html_()}")
        return "".join(parts)
