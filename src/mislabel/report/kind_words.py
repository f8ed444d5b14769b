"""What kind of labels these are, what the promised rate rests on, and which errors would not be noticed: in words."""

from __future__ import annotations

import numpy as np

from mislabel.decisions.calibration import LARGE_PART
from mislabel.report.findings import Findings
from mislabel.report.plain_words import count, number, percent

#: Tails of right labels (degrees of freedom) and shares of wrong ones beyond which no rate is promised.
HEAVY = 2.5
MANY = 0.4
#: Limits of rows are told where so many rows have one; also told: what nearly all rows are below.
MOSTLY = 0.5
NEARLY_ALL = 0.9


def kind_facts(audit: Findings, decimal: str) -> dict[str, str]:
    """What kind of labels these are, by what it is about."""
    model, facts = audit.model, {}
    if not model.label_transform_.is_identity:
        facts["Scale"] = (
            f"Labels were compared {model.label_transform_.words}, on which right ones spread more evenly; all values are told "
            "in the unit of the data."
        )
    if audit.censored is not None:
        upper, lower = audit.censored.count("<"), audit.censored.count(">")
        kinds = [count(size, f"{side} limit") for size, side in ((upper, "upper"), (lower, "lower")) if size]
        are = "is" if upper + lower == 1 else "are"
        facts["Limits"] = (
            f"Among the labels {are} {' and '.join(kinds)}: one is suspect only if the others put the value firmly on the other "
            "side of it."
        )
    if held := int(np.count_nonzero(model.atoms_.holds(model.labels_))):
        facts["Frequent values"] = _frequent(audit, held, decimal)
    if (step := 2.0 * model.calibrated_evidence_.half_step) > 0.0:
        facts["Steps"] = (
            f"Labels come in steps of {number(step, decimal=decimal)}, as counts, grades and rounded numbers do: each stands for "
            "all values within half a step of it."
        )
    return facts


def _frequent(audit: Findings, held: int, decimal: str) -> str:
    model = audit.model
    values = " or ".join(number(value, decimal=decimal) for value in model.atoms_.values)
    share = percent(held / int(np.count_nonzero(np.isfinite(model.labels_))))
    treated = (
        "there and beyond, labels were taken to be cut off"
        if model.bounds_.has_bounds
        else "whether a label is one of these is judged by the features, and the others are judged by one another"
    )
    verb = "equals" if held == 1 else "equal"
    return f"{count(held, 'label')} ({share}) {verb} {values}, far more than any value nearby: {treated}."


def is_weak(audit: Findings) -> bool:
    """Whether the false discovery rate cannot be promised: tails are too heavy, or most labels would have to be wrong."""
    calibration = audit.model.calibration_
    return (
        calibration.adjusted
        and audit.n_suspects > 0
        and (calibration.degrees < HEAVY or calibration.wrong_fraction > MANY)
    )


def promise_line(audit: Findings) -> str:
    """What was promised, and the one proof that needs no promise."""
    look = "verdicts on a random sample of the suspects bound how many of them are right labels, whatever the model is worth"
    return f"{meaning_line(audit).removesuffix('.')}; {look}." if audit.n_suspects else meaning_line(audit)


def meaning_line(audit: Findings) -> str:
    """What was promised of the labels that are called wrong, and what that rests on; or why nothing was."""
    if audit.threshold != "fdr":
        return f"{_how_called(audit)}: nothing is promised of how many of these are right labels."
    return _promised(audit) if audit.n_suspects else _none_called(audit)


def _none_called(audit: Findings) -> str:
    calibration, rate = audit.model.calibration_, percent(audit.fdr)
    if calibration.contested and calibration.wrong_fraction > LARGE_PART:
        return (
            f"{percent(calibration.wrong_fraction)} of the labels would have to be wrong: rather, what the others predict does "
            "not fit them, and none is called wrong. More or other columns would help."
        )
    if calibration.contested:
        return (
            "Some labels lie far from what the others predict, but right labels with heavy tails explain that as well as "
            "wrong ones do: none is called wrong. The ranking may still help; more or other columns would help more."
        )
    if not calibration.adjusted:
        return (
            f"At a rate of {rate} no label is called wrong; there are too few to tell how right ones spread, so that takes the "
            "model at its word."
        )
    return f"At a rate of {rate} no label is called wrong: none is so improbable that such a list could begin with it."


def _promised(audit: Findings) -> str:
    calibration, rate = audit.model.calibration_, percent(audit.fdr)
    if np.count_nonzero(audit.model.calibrated_evidence_.absurd) >= audit.n_suspects:
        return (
            f"Called wrong are labels beyond any plausible scale, whatever the rate; at {rate} none of the others is."
        )
    if not calibration.adjusted:
        return (
            f"There are too few labels to tell how right ones spread: the rate of {rate} takes the model at its word."
        )
    if calibration.wrong_fraction > MANY:
        return "So many labels would have to be wrong that the model may not fit: trust the ranking more than the cut."
    if calibration.degrees < HEAVY:
        return (
            "Right labels have such heavy tails here that a rate would be a guess: trust the ranking more than the cut."
        )
    one_in = 1.0 / audit.fdr
    share = f"about one in {one_in:.0f} is" if abs(one_in - round(one_in)) < 0.05 else f"about {rate} are"
    return (
        f"Of the labels called wrong at a rate of {rate}, {share} expected to be right, on average over tables: that rests on "
        "how far all labels spread around what the others predict."
    )


def _how_called(audit: Findings) -> str:
    if audit.threshold == "top-k" and audit.cutoff is not None:
        those = "most suspicious label was" if audit.cutoff == 1 else f"{audit.cutoff:,.0f} most suspicious labels were"
        return f"The {those} asked for"
    if audit.threshold == "z" and audit.cutoff is not None:
        return f"Called wrong is what is off by more than {audit.cutoff:g} standard deviations"
    return f"Suspects were called by {audit.threshold}"


def detection_line(audit: Findings, decimal: str) -> str:
    """How large an error would have to be to be noticed."""
    limit = audit.table["detectable"].to_numpy(dtype=float)
    known = np.isfinite(limit)
    if known.mean() < MOSTLY:
        return "In most rows no error of any plausible size would be noticed: no suspect does not mean no wrong label."
    median = float(np.median(limit))
    most = float(np.quantile(limit, NEARLY_ALL)) if known.mean() >= NEARLY_ALL else np.inf
    rest = f", in nine of ten one of {_rough(most, decimal)}" if np.isfinite(most) else ""
    spread = float(np.nanstd(audit.table["label"]))
    share = f" ({_rough(median / spread, decimal)} standard deviations of the labels)" if spread > 0 else ""
    return (
        f"In half of the rows an error of {_rough(median, decimal)}{share} would probably be noticed{rest}; "
        "smaller ones would mostly not."
    )


def _rough(value: float, decimal: str) -> str:
    """With two digits that count, also where it is large."""
    return number(float(f"{value:.2g}"), 2, decimal)
