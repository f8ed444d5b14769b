"""What kind of labels these are, what the promised rate rests on, and which errors would not be noticed: in words."""

from __future__ import annotations

import numpy as np

from mislabel.report.findings import Findings
from mislabel.report.plain_words import count, number, percent

#: Tails of right labels (degrees of freedom) and shares of wrong ones beyond which no rate is promised.
HEAVY = 2.5
MANY = 0.4
#: Limits of rows are told where so many rows have one; also told: what nearly all rows are below.
MOSTLY = 0.5
NEARLY_ALL = 0.9


def kind_lines(audit: Findings, decimal: str) -> list[str]:
    """What kind of labels these are, and why none was called wrong."""
    model, lines = audit.model, []
    if not model.label_transform_.is_identity:
        lines.append(
            f"Labels were compared {model.label_transform_.words}, on which right ones spread more evenly; all values are told "
            "in the unit of the data."
        )
    if audit.censored is not None:
        upper, lower = audit.censored.count("<"), audit.censored.count(">")
        kinds = [count(size, f"{side} limit") for size, side in ((upper, "upper"), (lower, "lower")) if size]
        lines.append(
            f"Among the labels are {' and '.join(kinds)}: one is suspect only if the others put the value firmly on the other "
            "side of it."
        )
    held = int(np.count_nonzero(model.atoms_.holds(model.labels_)))
    if held:
        values = " or ".join(number(value, decimal=decimal) for value in model.atoms_.values)
        share = percent(held / int(np.count_nonzero(np.isfinite(model.labels_))))
        treated = (
            "there and beyond, labels were taken to be cut off"
            if model.bounds_.has_bounds
            else "whether a label is one of these is judged by the features, and the others are judged by one another"
        )
        verb = "equals" if held == 1 else "equal"
        lines.append(f"{count(held, 'label')} ({share}) {verb} {values}, far more than any value nearby: {treated}.")
    if audit.threshold == "fdr" and model.calibration_.contested:
        lines.append(
            "Some labels lie far from what the others predict, but right labels with heavy tails explain that as well as wrong "
            "ones do: none is called wrong. The ranking may still help; more or other columns would help more."
        )
    return lines


def is_weak(audit: Findings) -> bool:
    """Whether the false discovery rate cannot be promised: tails are too heavy, or most labels would have to be wrong."""
    calibration = audit.model.calibration_
    return (
        calibration.adjusted
        and audit.n_suspects > 0
        and (calibration.degrees < HEAVY or calibration.wrong_fraction > MANY)
    )


def promise_lines(audit: Findings) -> list[str]:
    """What the false discovery rate rests on, or why it is no promise."""
    if audit.threshold != "fdr" or not audit.n_suspects:
        return []
    calibration = audit.model.calibration_
    look = "verdicts on a random sample of the suspects bound how many of them are right labels, whatever the model is worth"
    if not calibration.adjusted:
        return [
            f"There are too few labels to tell how right ones spread: the rate takes the model at its word; {look}."
        ]
    if calibration.wrong_fraction > MANY:
        return [
            f"So many labels would have to be wrong that the model may not fit: trust the ranking more than the cut; {look}."
        ]
    if calibration.degrees < HEAVY:
        return [
            f"Right labels have such heavy tails here that a rate would be a guess: trust the ranking more than the cut; {look}."
        ]
    return [
        f"The rate of {percent(audit.fdr)} is an expectation: it rests on how far all labels spread around what the others "
        f"predict, and holds on average over tables, not for each; {look}."
    ]


def detection_lines(audit: Findings, decimal: str) -> list[str]:
    """How large an error would have to be to be noticed."""
    limit = audit.table["detectable"].to_numpy(dtype=float)
    known = np.isfinite(limit)
    if known.mean() < MOSTLY:
        return [
            "In most rows no error of any plausible size would be noticed: no suspect does not mean no wrong label."
        ]
    most = float(np.quantile(limit, NEARLY_ALL)) if known.mean() >= NEARLY_ALL else np.inf
    rest = f", in nine of ten one of {number(most, 2, decimal)}" if np.isfinite(most) else ""
    spread = float(np.nanstd(audit.table["label"]))
    share = (
        f" ({number(float(np.median(limit)) / spread, 2, decimal)} standard deviations of the labels)"
        if spread > 0
        else ""
    )
    return [
        f"In half of the rows an error of {number(float(np.median(limit)), 2, decimal)}{share} would probably be noticed{rest}; "
        "smaller ones would mostly not."
    ]
