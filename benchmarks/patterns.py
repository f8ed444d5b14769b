"""Error patterns: how often one is named where there is none, and how often the right one where there is one.

    python benchmarks/patterns.py FOLDER OTHER > benchmarks/patterns.txt
    python benchmarks/patterns.py FOLDER OTHER --further >> benchmarks/patterns.txt

FOLDER holds tables/*.csv.gz, real tables whose column to audit is ``label``. Sets without a rule have random errors only; sets with
one have 5 to 20 rows that follow it among random errors. Evidence comes from a stand-in for the model (the true function with an
error of its own, expectations that are shrunken towards the mean, variances that are misjudged), from ridge regression and forests
cross-validated on the real tables, and for some from LabelNoiseRegressor; all of it is calibrated and cut at a false discovery rate
of 0.05 as in an audit. Settings were chosen on the sets of even number (--even); the sets of odd number are the measurement. --further measures as many
sets again, of numbers that follow, with the same settings: one set in a hundred is too rare to be told from few.

A pattern is right if its rule is the one that was planted; a corrected value, if it lies within three standard deviations of a
clean label (by the calibrated evidence) of the label before the error. A rule is clear where 5 of its rows or more are
suspect and their expectation is typically at least 10 standard deviations from zero. OTHER, which may be left out, is the file
patterns.py of another version, to be measured on the same evidence.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mislabel import LabelNoiseRegressor
from mislabel.data.tables import read_labelled_table
from mislabel.decisions import find_patterns
from mislabel.decisions.calibration import calibrate
from mislabel.decisions.evidence import Evidence
from mislabel.decisions.thresholds import by_false_discovery_rate

NO_RULE, WITH_RULE, REAL_MODEL = 1000, 500, 20
MOST_ROWS = 400
ERRORS = ("normal", "heavy", "swap", "factor")
RULES = {
    "times 10": (10.0, 0.0, ""),
    "times 100": (100.0, 0.0, ""),
    "times 1000": (1000.0, 0.0, ""),
    "over 10": (0.1, 0.0, ""),
    "over 100": (0.01, 0.0, ""),
    "over 1000": (0.001, 0.0, ""),
    "sign": (-1.0, 0.0, ""),
    "feet for metres": (1 / 0.3048, 0.0, "height"),
    "kcal for kJ": (1 / 4.184, 0.0, "energy"),
    "eV for hartree": (27.211386, 0.0, "energy"),
    "pounds for kilograms": (1 / 0.45359237, 0.0, "weight"),
    "inches for centimetres": (1 / 2.54, 0.0, "y"),
    "fahrenheit": (1.8, 32.0, "temperature"),
    "factor": (5.43, 0.0, "y"),
}
OTHER_KINDS = ("offset", "stuck", "swapped")


@dataclass
class Case:
    """Labels before and after errors, and what the model that audits them may know."""

    kind: str
    clean: np.ndarray
    function: np.ndarray | None
    features: np.ndarray | None
    noise: float
    name: str
    groups: dict[str, list]
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rule: str = ""
    ruled: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))


def simulated(rng: np.random.Generator) -> Case:
    size = int(rng.integers(100, 601))
    kind = str(rng.choice(["smooth", "friedman", "zero-inflated", "lognormal", "energies", "percentages", "integers"]))
    x = rng.uniform(size=(size, 5))
    wave = np.sin(2 * np.pi * x[:, 0]) + np.cos(3 * x[:, 1]) + x[:, 2]
    friedman = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    share = float(rng.choice([0.03, 0.1, 0.2, 0.4]))
    name = "y"
    if kind == "smooth":
        function = wave * 10 ** rng.uniform(-2, 3) + rng.choice([0.0, 5.0, 50.0])
        clean = function + rng.normal(0, share * function.std(), size)
    elif kind == "friedman":
        function = friedman
        clean = function + rng.normal(0, share * function.std(), size)
    elif kind == "zero-inflated":
        rate = np.where(x[:, 3] < rng.uniform(0.3, 0.8), 0.003, np.exp(wave + rng.uniform(0, 2)))
        function, name = rate, str(rng.choice(["visits", "y"]))
        clean = rng.poisson(rate).astype(float)
    elif kind == "lognormal":
        function = np.exp(rng.uniform(0.5, 1.5) * wave + rng.uniform(0, 8))
        clean, name = function * np.exp(rng.normal(0, share, size)), str(rng.choice(["price", "y", "concentration"]))
    elif kind == "energies":
        function = -(rng.uniform(100, 2000) + 150 * wave) if rng.uniform() < 0.7 else 8 * wave - 4
        clean, name = (
            function + rng.normal(0, 0.3 * share * function.std(), size),
            str(rng.choice(["energy", "E_at_kcal_mol"])),
        )
    elif kind == "percentages":
        function = 100 / (1 + np.exp(-1.5 * wave))
        clean, name = np.clip(function + rng.normal(0, 20 * share, size), 0, 100), "yield [%]"
    else:
        function = np.clip(3 + 2 * wave, 1, 10)
        clean, name = np.clip(np.round(function + rng.normal(0, share * 2, size)), 1, 10), "quality"
    groups = {"batch": rng.choice(list("abcdef"), size).tolist(), "site": rng.choice(["N", "S"], size).tolist()}
    return Case(kind, clean, function, x, float(np.std(clean - function)), name, groups)


@dataclass
class Table:
    """A real table: its label, features as numbers, columns of categories."""

    name: str
    label: np.ndarray
    features: np.ndarray
    groups: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> Table:
        frame = pd.read_csv(path)
        read = read_labelled_table(frame, "label")
        columns = [name for name in read.used if 1 < frame[name].nunique() <= 50]
        groups = {name: frame[name].astype(str).to_numpy() for name in columns}
        return cls(path.name.split(".")[0], read.label, np.nan_to_num(read.features), groups)


def of_table(rng: np.random.Generator, tables: list[Table], index: int) -> Case:
    table = tables[index % len(tables)]
    rows = np.sort(rng.permutation(table.label.size)[:MOST_ROWS])
    groups = {name: values[rows].tolist() for name, values in table.groups.items()}
    name = str(rng.choice(["y", "label", "energy"]))
    if not groups:
        groups = {"batch": rng.choice(list("abcdef"), rows.size).tolist()}
    return Case(table.name, table.label[rows], None, table.features[rows], 0.0, name, groups)


def plant_random(case: Case, rng: np.random.Generator, count: int) -> None:
    labels, sd = case.clean.copy(), case.clean.std()
    wrong = rng.permutation(labels.size)[:count]
    kind, level = str(rng.choice(ERRORS)), float(rng.choice([0.3, 1.0, 3.0]))
    if kind == "normal":
        labels[wrong] += rng.normal(0, level * sd, count)
    elif kind == "heavy":
        labels[wrong] += level * sd * rng.standard_t(1.5, count)
    elif kind == "swap":
        labels[wrong] = rng.choice(case.clean, count)
    else:
        labels[wrong] *= np.exp(rng.normal(0, level, count))
    if case.kind in ("zero-inflated", "integers"):
        labels[wrong] = np.round(labels[wrong])
    case.labels = labels


def plant_rule(case: Case, rng: np.random.Generator, rule: str) -> None:
    """Change 5 to 20 rows by a rule."""
    count = int(rng.integers(5, 21))
    size, labels = case.clean.size, case.labels
    rows = rng.permutation(size)[:count]
    if rule in RULES:
        factor, offset, name = RULES[rule]
        labels[rows] = factor * case.clean[rows] + offset
        case.name = name or case.name
    elif rule == "offset":
        # Half of the rows of a category at most: a model that sees the category learns what concerns all of it.
        column = str(rng.choice(list(case.groups)))
        values = np.array(case.groups[column], dtype=object)
        category = rng.choice(values)
        members = np.flatnonzero(values == category)
        rows = rng.permutation(members)[: min(count, max(members.size // 2, 3))]
        labels[rows] = case.clean[rows] + rng.choice([-1, 1]) * rng.uniform(1, 4) * case.clean.std()
    elif rule == "stuck":
        value = float(np.round(rng.choice([-999.0, 9999.0, rng.choice(case.clean) + 0.123, case.clean.max() * 1.5]), 3))
        labels[rows] = value
    else:
        first = rng.permutation(size // 2 - 1)[: max(count // 2, 3)] * 2
        rows = np.concatenate([first, first + 1])
        labels[first], labels[first + 1] = case.clean[first + 1], case.clean[first]
    case.rule, case.ruled = rule, rows


def stand_in(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Expected labels and variances as a model might give them that was not spoilt by the errors."""
    function, size = case.function, case.clean.size
    if rng.uniform() < 0.3:
        function = function.mean() + rng.uniform(0.3, 0.9) * (function - function.mean())
    relative = case.kind == "lognormal" and rng.uniform() < 0.7
    own = rng.uniform(0, 0.7) * case.noise
    expected = function + rng.normal(0, own, size) if not relative else function * np.exp(rng.normal(0, 0.1, size))
    spread = np.sqrt(np.mean((case.clean - expected) ** 2)) * float(rng.choice([0.5, 1.0, 2.0]))
    return expected, np.full(size, spread**2) * rng.uniform(0.5, 1.5, size)


def cross_validated(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if rng.uniform() < 0.5:
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 7)))
    else:
        model = ExtraTreesRegressor(25, min_samples_leaf=2, random_state=0)
    expected = cross_val_predict(model, case.features, case.labels, cv=5)
    spread = 1.4826 * float(np.median(np.abs(case.labels - expected)))
    return expected, np.full(expected.size, max(spread, 1e-9) ** 2)


def evidence_of(case: Case, rng: np.random.Generator, real_model: bool) -> Evidence:
    if real_model:
        return LabelNoiseRegressor().fit(case.features, case.labels).calibrated_evidence_
    expected, variance = stand_in(case, rng) if case.function is not None else cross_validated(case, rng)
    error = case.labels - expected
    nothing = np.zeros(error.size)
    plain = Evidence(
        np.arange(error.size),
        case.labels,
        expected,
        variance,
        error,
        error / np.sqrt(variance),
        nothing,
        nothing,
        expected,
    )
    return calibrate(error, variance, expected).apply(plain)


def make(seed: int, tables: list[Table], with_rule: bool, real_model: bool) -> Case:
    rng = np.random.default_rng([seed, with_rule, real_model])
    of_real_table = seed % 5 < 2 and not real_model
    case = of_table(rng, tables, seed // 5 * 2 + seed % 5) if of_real_table else simulated(rng)
    if real_model:
        keep = slice(0, 200)
        case.clean, case.function, case.features = case.clean[keep], case.function[keep], case.features[keep]
        case.groups = {name: values[keep] for name, values in case.groups.items()}
    plant_random(case, rng, int(rng.uniform(0.01, 0.12) * case.clean.size))
    if with_rule:
        plant_rule(case, rng, [*RULES, *OTHER_KINDS][seed // 2 % (len(RULES) + len(OTHER_KINDS))])
    return case


def other_version(path: str) -> Callable[..., list]:
    spec = importlib.util.spec_from_file_location("other_patterns", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["other_patterns"] = module
    spec.loader.exec_module(module)
    return module.find_patterns


def patterns_of(case: Case, evidence: Evidence, find: Callable[..., list] = find_patterns) -> list:
    accepted = inspect.signature(find).parameters
    known = {"name": case.name, "degrees": evidence.degrees}
    options = {key: value for key, value in known.items() if key in accepted}
    suspect = by_false_discovery_rate(evidence, evidence.z, 0.05)
    return find(evidence.label, evidence.expected, evidence.variance, suspect, case.groups, **options)


def is_right(case: Case, pattern) -> bool:
    if pattern.name == "factor" and case.rule in RULES and RULES[case.rule][1] == 0.0:
        return abs(pattern.details["factor"] / RULES[case.rule][0] - 1.0) < 0.05
    return pattern.name == case.rule


class Score:
    """Counts over many sets."""

    def __init__(self) -> None:
        self.count = Counter()
        self.by_rule = defaultdict(Counter)

    def add(self, case: Case, evidence: Evidence, patterns: list) -> None:
        self.count["sets"] += 1
        self.count["any"] += bool(patterns)
        suspect = by_false_discovery_rate(evidence, evidence.z, 0.05)
        held = int(np.count_nonzero(suspect[case.ruled])) if case.rule else 0
        std = np.sqrt(evidence.variance)
        sharp = np.median(np.abs(evidence.expected[case.ruled]) / std[case.ruled]) >= 10 if case.rule else False
        clear = held >= 5 and sharp
        right = [pattern for pattern in patterns if is_right(case, pattern)]
        tally = self.by_rule[case.rule]
        for counter in (self.count, tally):
            counter["rules"] += 1
            counter["found"] += bool(right)
            counter["clear"] += clear
            counter["clear found"] += clear and bool(right)
            counter["named"] += len(patterns)
            counter["right"] += len(right)
        for pattern in patterns:
            off = np.abs(pattern.corrected - case.clean[pattern.positions])
            self.count["values"] += pattern.positions.size
            self.count["good values"] += int(np.count_nonzero(off <= 3 * std[pattern.positions] + 1e-9))


def share(part: int, whole: int) -> str:
    return f"{part:5d} of {whole:5d} ({100 * part / max(whole, 1):5.1f} %)"


def report(score: Score, with_rule: bool, title: str, by_rule: bool = False) -> None:
    count = score.count
    print(title)
    if not with_rule:
        print(f"  sets with any pattern           {share(count['any'], count['sets'])}")
        return
    print(f"  named patterns that are right   {share(count['right'], count['named'])}")
    print(f"  corrected values that are right {share(count['good values'], count['values'])}")
    print(f"  planted rules found             {share(count['found'], count['rules'])}")
    print(f"  clear rules found               {share(count['clear found'], count['clear'])}")
    for rule, tally in score.by_rule.items() if by_rule else ():
        print(
            f"    {rule:24s} found {tally['found']:3d} of {tally['rules']:3d}, clear {tally['clear found']:3d} of "
            f"{tally['clear']:3d}, named {tally['named']:3d}, right {tally['right']:3d}"
        )


def measure(
    versions: dict[str, Callable[..., list]], tables: list[Table], seeds: range, with_rule: bool, real: bool
) -> None:
    scores = {version: Score() for version in versions}
    for seed in seeds:
        case = make(seed, tables, with_rule, real)
        evidence = evidence_of(case, np.random.default_rng([seed, 7]), real)
        for version, find in versions.items():
            scores[version].add(case, evidence, patterns_of(case, evidence, find))
    title = f"{'With' if with_rule else 'Without'} a rule{', LabelNoiseRegressor' if real else ''}"
    for version, score in scores.items():
        report(score, with_rule, f"{title}{version}", by_rule=not real)
    sys.stdout.flush()


def main() -> None:
    warnings.simplefilter("ignore")
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    tables = [Table.read(path) for path in sorted((Path(arguments[0]) / "tables").glob("*.csv.gz"))]
    versions: dict[str, Callable[..., list]] = {"": find_patterns}
    if len(arguments) > 1:
        versions[", other version"] = other_version(arguments[1])
    further, first = "--further" in sys.argv, 0 if "--even" in sys.argv else 1
    print("Further sets" if further else f"Sets of {'odd' if first else 'even'} number")
    plan = (NO_RULE, False, False), (WITH_RULE, True, False), (REAL_MODEL, False, True), (REAL_MODEL, True, True)
    for total, with_rule, real in plan:
        seeds = range(total, 2 * total) if further else range(first, total, 2)
        measure(versions, tables, seeds, with_rule, real)


if __name__ == "__main__":
    main()
