"""What was found, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mislabel.decisions.patterns import confidence_words
from mislabel.estimators.mean_functions import mean_words
from mislabel.estimators.process import CONSTANT
from mislabel.report.findings import Findings
from mislabel.report.group_words import group_line
from mislabel.report.kind_words import detection_line, is_weak, kind_facts, promise_line
from mislabel.report.plain_words import count, number, percent, plain_text


def summary_lines(audit: Findings, decimal: str = ".") -> list[str]:
    """Three lines: how many, the worst, what to do with them, and one of groups that were judged as a whole; numbers have the
    ``decimal`` mark of the file.
    """
    table = audit.table
    size = int(table["label"].notna().sum())
    suspects = audit.n_suspects
    verb = "looks" if suspects == 1 else "look"
    lines = [f"{suspects:,} of {count(size, 'label')} {verb} wrong{_how_called(audit)}."]
    if suspects:
        worst = table[table["suspect"]].iloc[0]
        half = (worst["expected_high"] - worst["expected_low"]) / 2
        lines.append(
            f"The worst is row {plain_text(worst['row'])}: {label_words(worst, decimal)}, expected "
            f"{number(worst['expected'], decimal=decimal)} ± {number(half, 2, decimal)}."
        )
    else:
        closest = table.iloc[0]
        lines.append(
            f"The least expected is row {plain_text(closest['row'])}: {label_words(closest, decimal)}, expected "
            f"{number(closest['expected'], decimal=decimal)}; it may well be right."
        )
    lines.append(pattern_line(audit))
    if audit.groups is not None:
        lines.append(group_line(audit.groups, audit.fdr))
    return lines


def label_words(entry: pd.Series, decimal: str) -> str:
    """A label with its sign where it is only a limit: ``< 0.5``."""
    sign = entry.get("censored", "")
    return f"{sign} {number(entry['label'], decimal=decimal)}" if sign else number(entry["label"], decimal=decimal)


def _how_called(audit: Findings) -> str:
    if audit.threshold == "fdr" and is_weak(audit):
        return "; how many of them are right labels cannot be promised here"
    if audit.threshold == "fdr" or audit.cutoff is None:
        return f" at a false discovery rate of {percent(audit.fdr)}"
    if audit.threshold == "top-k":
        those = "most suspicious one was" if audit.cutoff == 1 else f"{audit.cutoff:,.0f} most suspicious were"
        return f" since the {those} asked for"
    return f" beyond {audit.cutoff:g} standard deviations" if audit.threshold == "z" else f" by {audit.threshold}"


def pattern_line(audit: Findings) -> str:
    """What the suspects have in common, or that they have nothing."""
    if audit.patterns:
        told = [
            f"{count(pattern.positions.size, 'suspect')} {'fits' if pattern.positions.size == 1 else 'fit'} "
            f"{plain_text(pattern.words, 90)} ({confidence_words(pattern.p_value)})"
            for pattern in audit.patterns[:3]
        ]
        more = len(audit.patterns) - len(told)
        return "Patterns: " + "; ".join(told) + (f"; and {more} more" if more > 0 else "") + "."
    missing = int(audit.table["label"].isna().sum())
    filled = f" {count(missing, 'missing label')} got a suggestion too." if missing else ""
    if audit.n_suspects == 1:
        return f"One suspect alone shows no pattern.{filled}"
    if audit.n_suspects:
        return f"No unit error, swap or shifted group explains several of them at once.{filled}"
    return f"Nothing stands out enough to be called wrong.{filled}"


def model_line(audit: Findings) -> str:
    """Which model judged the labels."""
    choice = audit.model.mean_choice_
    if choice is not None:
        return f"Model: {choice.sentence}."
    if audit.model.mean_model_ is not None:
        asked = audit.model.mean
        over = mean_words(asked) if isinstance(asked, str) else f"a {type(audit.model.mean_model_).__name__}"
        alone = isinstance(audit.model.kernel, str) and audit.model.kernel == CONSTANT
        return f"Model: {over}, cross-fitted." if alone else f"Model: a Gaussian process over {over}, cross-fitted."
    if audit.model.has_predictions_:
        alone = isinstance(audit.model.kernel, str) and audit.model.kernel == CONSTANT
        given = "predictions that were given, by a model of your own"
        return f"Model: {given}." if alone else f"Model: a Gaussian process over {given}."
    return "Model: a Gaussian process in which every label has its own noise variance."


def set_aside_line(audit: Findings) -> str:
    """Which labels were set aside before the fit, and why."""
    reason = plain_text(audit.model.set_aside_reason_, 400)
    return f"{reason[:1].upper()}{reason[1:]}."


def trust_lines(audit: Findings, decimal: str = ".") -> list[str]:
    """How sure all this is: fit, spread of clean labels, what kind they are, what the rate means, and what would be noticed."""
    kinds = list(kind_facts(audit, decimal).values())
    return [*fit_lines(audit, decimal), *kinds, promise_line(audit), detection_line(audit, decimal)]


def fit_lines(audit: Findings, decimal: str = ".") -> list[str]:
    """How well the others predict a label, how right ones spread, and what the fit could not do."""
    model = audit.model
    evidence = model.calibrated_evidence_
    calibration = model.calibration_
    plausible = np.isfinite(evidence.error) & ~evidence.absurd
    trusted = np.abs(evidence.error[plausible])
    spread = float(np.std(evidence.label[plausible])) if plausible.any() else 0.0
    typical = float(np.median(trusted)) if trusted.size else float("nan")
    lines = [set_aside_line(audit)] if model.set_aside_reason_ else []
    if spread > 0:
        share = typical / spread
        quality = "well" if share < 0.15 else "fairly well" if share < 0.4 else "poorly"
        lines.append(
            f"The other labels predict a label {quality}: half of all labels lie within {number(typical, 3, decimal)} of what "
            f"was expected, {percent(share)} of the labels' own standard deviation."
            + (" Only gross errors can be seen." if share >= 0.4 else "")
        )
    if calibration.noticeable:
        heavy = f" with heavy tails (Student t, {calibration.degrees:.2g} degrees of freedom)"
        tails = "" if np.isinf(calibration.degrees) else heavy
        relative = float(np.sqrt(calibration.relative))
        larger = f", more where labels are large (by {percent(relative)} of the label)" if relative >= 1e-3 else ""
        lines.append(
            f"Clean labels spread differently from what the model alone would promise{tails}{larger}; z, p-values and "
            "intervals allow for that."
        )
    if model.n_copies_:
        lines.append(
            f"{count(model.n_copies_, 'row')} repeat an earlier one, label included: each such record was judged once, and all "
            "its copies get that verdict."
        )
    if model.base_noise_status_ == "majority wrong":
        lines.append("More labels seem wrong than right: trust the ranking more than the cut.")
    elif model.base_noise_status_ == "absorbed":
        lines.append("The noise that clean labels have could not be told: trust the ranking more than the cut.")
    if not model.converged_:
        lines.append(f"The solver stopped at a residual of {model.residual_:.1e}.")
    return lines
