"""How many of the suspects are right labels at most, from what a person found on a random sample of them."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mislabel.auditing.files import usual_folder
from mislabel.auditing.given import check_made_for
from mislabel.data.corrections import Decisions, read_decisions
from mislabel.data.table_files import fingerprint_of, similar_file
from mislabel.decisions.certificates import Bound, Certificate
from mislabel.errors import DecisionsError, InvalidParameterError, ResultsError, TableFileError, describe_rows
from mislabel.report.drawn_sample import DrawnSample
from mislabel.report.plain_words import count, percent, plain_text

#: Rows to look at next that are named where nobody says how many.
_NEXT = 10
NO_VERDICTS = (
    'none of these decisions is a verdict: no entry about a suspect says "reviewed": true, that a person looked at this row. '
    "Those that Python makes, or that accept a pattern as a whole, do not count: review rows of the random sample on the page, "
    "one by one, and export decisions.json there."
)


@dataclass(frozen=True, eq=False)
class ReviewCertificate:
    """What a review says of the suspects; prints as sentences.

    sample : the suspects, and the random order in which they are looked at.
    verdicts : of a person, True for a right label, by position in the data; those on rows that are no suspects do not count.
    confidence : of all bounds together, at every moment of the review.
    not_reviewed : decisions about suspects that are no verdicts, since nobody looked at the row.

    Examples
    --------
    >>> certificate = result.certify("decisions.json")  # doctest: +SKIP
    >>> print(certificate)  # doctest: +SKIP
    >>> certificate.bound(result.suspects["row"].head(20))  # doctest: +SKIP
    """

    sample: DrawnSample
    verdicts: Mapping[int, bool]
    confidence: float = 0.95
    not_reviewed: int = 0

    def __post_init__(self) -> None:
        _ = self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        place = {int(position): k for k, position in enumerate(self.sample.positions)}
        known = {place[position]: right for position, right in self.verdicts.items() if position in place}
        return Certificate(len(place), self.sample.order, known, self.confidence, self.sample.expected)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self.sample.rows):
            found.setdefault(row, []).append(place)
        return found

    @property
    def suspects(self) -> int:
        """How many suspects there are."""
        return self._certificate.count

    @property
    def drawn(self) -> int:
        """How many of the random sample have a verdict, without a gap."""
        return int(self._certificate.sample.size)

    @property
    def right(self) -> int:
        """How many of these are right labels."""
        return self._certificate.found_right

    @cached_property
    def more_to_halve(self) -> int | None:
        """How many more verdicts would about halve the bound, if they go on like those so far; None if none can."""
        return self._certificate.more_to_halve()

    @cached_property
    def cut(self) -> int:
        """How many of the most suspicious can be called wrong, and the promised share of right ones holds."""
        return self._certificate.cut()

    def bound(self, rows: Iterable[Any] | None = None) -> Bound:
        """The most right labels among all suspects, or among those with these ids, whichever you pick and whenever."""
        if rows is None:
            return self._certificate.bound()
        names = Counter(str(row) for row in rows)
        strangers = [name for name in names if name not in self._places]
        if strangers:
            raise InvalidParameterError(
                f"{describe_rows(strangers)} {'is no suspect' if len(strangers) == 1 else 'are no suspects'} of this audit: "
                "a bound is for suspects, by the ids in the column row of the table."
            )
        shared = [name for name, times in names.items() if times < len(self._places[name])]
        if shared:
            raise InvalidParameterError(
                f"{describe_rows(shared)}: several suspects have this id; name it as often, or audit with ids of their own."
            )
        return self._certificate.bound([place for name in names for place in self._places[name]])

    def next(self, size: int = _NEXT) -> list[str]:
        """Ids of the rows to look at next, in this order."""
        return [self.sample.rows[place] for place in self._certificate.next(size)]

    @cached_property
    def lines(self) -> list[str]:
        """What is certain, in sentences."""
        total = count(self.suspects, "suspect")
        if not self.suspects:
            return ["No label was called suspect: there is nothing to certify."]
        if not self.drawn:
            found = [f"None of the random sample has been reviewed yet: all of {total} may be right labels."]
        else:
            are = "is a right label" if self.right == 1 else "are right labels"
            found = [f"{self.drawn:,} of {total} were reviewed as a random sample: {self.right:,} of them {are}."]
        bound = self.bound()
        if self.drawn:
            share = f"({percent(bound.share)})"
            found.append(
                f"With {percent(self.confidence)} confidence at most {bound.right:,} of {total} {share} are right labels."
            )
            found += self._promise_lines()
        if bound.right and self.drawn < self.suspects:
            found.append(self._halving_line())
        others = len(self._certificate.verdicts) - self.drawn
        if others:
            found.append(f"{count(others, 'verdict')} beside the random sample say nothing of other rows.")
        if self.not_reviewed:
            found.append(
                f"{count(self.not_reviewed, 'decision')} on rows that nobody looked at one by one do not count."
            )
        return found

    def _promise_lines(self) -> list[str]:
        promised = self.sample.promised
        if promised is None:
            return []
        if self.cut == self.suspects:
            return [f"The promised {percent(promised)} is certain."]
        if not self.cut:
            return [f"The promised {percent(promised)} is not certain yet, not even for the most suspicious."]
        some = "most suspicious one" if self.cut == 1 else f"{self.cut:,} most suspicious"
        return [f"The promised {percent(promised)} is certain so far for the {some} only."]

    def _halving_line(self) -> str:
        more = self.more_to_halve
        if more is None:
            return "No further verdicts can halve that."
        if self.drawn:
            return f"About {count(more, 'more verdict')} like these would halve that."
        return f"About {count(more, 'verdict')} would halve that, if the labels are as wrong as they look."

    def as_dict(self, size: int = _NEXT) -> dict[str, Any]:
        """The same for machines, with so many rows to look at next."""
        bound, coming = self.bound(), self._certificate.next(size)
        promised = self.sample.promised
        return {
            "confidence": self.confidence,
            "suspects": self.suspects,
            "reviewed": self.drawn,
            "right": self.right,
            "reviewed_beside_the_sample": len(self._certificate.verdicts) - self.drawn,
            "not_reviewed": self.not_reviewed,
            "most_right": bound.right,
            "most_right_share": bound.share,
            "more_to_halve": self.more_to_halve,
            "promised": promised,
            "promise_holds": None if promised is None else self.cut == self.suspects,
            "cut": None if promised is None else self.cut,
            "next": [
                {"row": self.sample.rows[place], "position": int(self.sample.positions[place])} for place in coming
            ],
            "words": self.lines,
        }

    def told(self, size: int = _NEXT) -> list[str]:
        """The sentences, and the rows to look at next."""
        coming = ", ".join(plain_text(row) for row in self.next(size))
        return [*self.lines, f"Look next at: {coming}."] if coming else self.lines

    def __str__(self) -> str:
        return "\n".join(self.told())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in self.told())


def certified(sample: DrawnSample, decisions: Decisions | None, confidence: float) -> ReviewCertificate:
    """The certificate of a review; decisions that nobody looked at one by one are refused where there are no others."""
    if decisions is None:
        return ReviewCertificate(sample, {}, confidence)
    suspects = set(sample.positions.tolist())
    about = [decision for decision in decisions.decisions if decision.position in suspects]
    unseen = sum(not decision.reviewed for decision in about)
    if about and unseen == len(about):
        raise DecisionsError(NO_VERDICTS)
    return ReviewCertificate(sample, decisions.verdicts, confidence, unseen)


def certify_file(
    path: str | Path, decisions: str | Path, folder: str | Path | None = None, confidence: float = 0.95
) -> ReviewCertificate:
    """The certificate of a file whose audit was written into ``folder`` (by default where ``mislabel audit`` writes it)."""
    path = Path(path)
    if not path.is_file():
        raise TableFileError(f"{path}: no such file.{similar_file(path)}")
    folder = usual_folder(path) if folder is None else Path(folder)
    summary, chosen = _summary_in(folder), read_decisions(decisions)
    try:
        audits = summary.get("audits", {summary.get("label"): summary})
        if chosen.label not in audits:
            raise DecisionsError(
                f"these decisions are about the label {chosen.label!r}, but {folder} holds the audit of "
                f"{', '.join(repr(str(label)) for label in audits)}."
            )
        found = audits[chosen.label]
        if "certificate" not in found:
            raise ResultsError(
                f"{folder} was written by a version that drew no random sample: audit {path.name} again."
            )
        check_made_for(chosen.label, int(found["rows"]), str(found["sha256"]), chosen)
        sample = DrawnSample.from_dict(found["certificate"], int(found["rows"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, DecisionsError | ResultsError):
            raise
        raise ResultsError(
            f"{folder / 'summary.json'} is damaged: {type(error).__name__} {str(error)[:200]}."
        ) from None
    if fingerprint_of(path) != found["sha256"]:
        raise ResultsError(f"{folder} does not hold the audit of {path.name} as it is now: audit it again.")
    return certified(sample, chosen, confidence)


def _summary_in(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(
            f"{folder} holds no results of an audit: name the folder they are in with --audit, or run mislabel audit first."
        ) from None
    except (NotADirectoryError, ValueError, RecursionError) as error:
        raise ResultsError(f"{folder / 'summary.json'} cannot be read: {str(error)[:200]}.") from None
    if not isinstance(found, dict):
        raise ResultsError(f"{folder / 'summary.json'} is damaged: it holds no summary.")
    return found
