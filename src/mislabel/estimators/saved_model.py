"""A fitted model as named arrays and a plain dict, and back: all that it needs to predict, and to judge labels it has not seen.

No code is kept, and no pickle. What cannot be told in arrays and words (a kernel or a mean model of the user's own) is named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as scikit_kernels
from sklearn.gaussian_process.kernels import Kernel

from mislabel.decisions import Calibration
from mislabel.decisions.verdicts import LearnedOdds
from mislabel.estimators.array_models import Trees, arrays_of, in_arrays, model_of
from mislabel.estimators.atoms_apart import ChanceOfAtom
from mislabel.estimators.new_labels import Accepted, RulesForNew
from mislabel.estimators.noise_level import NoiseByRow
from mislabel.estimators.prediction import ExactPredictor, LowRankModel, LowRankPredictor
from mislabel.estimators.regressor import LabelNoiseRegressor
from mislabel.estimators.set_aside import Plausible
from mislabel.kernels.adapters import compares_objects
from mislabel.kernels.inducing import Blocks, PivotedFactor, rest_by_block
from mislabel.kernels.on_data import scaled_kernel
from mislabel.kernels.table import TableKernel
from mislabel.likelihoods.atoms import Atoms
from mislabel.likelihoods.mixture import MixtureParameters
from mislabel.likelihoods.transforms import Transform, named_transforms
from mislabel.linalg.contract import Covariance, FloatArray
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.low_rank import LowRankCovariance, LowRankSignal
from mislabel.linalg.low_rank_blocks import BlockLowRankSignal

#: Columns of a kernel with up to so many cells are kept; found again, they differ by what rounding makes of them.
MOST_CELLS = 25_000_000
#: Numbers that JSON has no words for.
_NOT_FINITE = MappingProxyType({"inf": math.inf, "-inf": -math.inf, "nan": math.nan})


class NotSavableError(Exception):
    """A model that cannot be kept as arrays; says why, for the end of a sentence."""


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model as a dict that JSON can hold, and arrays by name."""

    told: dict[str, Any]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class RestoredModel:
    """What is needed to predict, and to judge new labels.

    typical, usual_chance : of all labels of the fit, see :class:`Evidence`.
    """

    model: LabelNoiseRegressor
    rules: RulesForNew
    accepted: Accepted | None
    calibration: Calibration
    typical: float
    usual_chance: float | None


def saved(model: LabelNoiseRegressor) -> SavedModel:
    """A fitted model as words and arrays; raises :class:`NotSavableError` where it has a part that is neither."""
    if compares_objects(model.kernel) or model._is("precomputed"):
        raise NotSavableError("molecules and other objects are not kept yet, only features of tables are")
    rules = model._rules
    if rules.mixture is None:
        raise NotSavableError(
            "the fit did not average over right and wrong labels (noise, inference, base_noise or solver)"
        )
    evidence = model._evidence.as_some
    kernel, predictor, arrays = _told_predictor(model._predictor)
    told: dict[str, Any] = {
        "features": model.n_features_in_,
        "center": model.center_,
        "scale": model.scale_,
        "has_predictions": model.has_predictions_,
        "transform": {"name": model.label_transform_.name, **_flat(model.label_transform_)},
        "atoms": _told_atoms(model.atoms_),
        "bounds": _told_atoms(model.bounds_),
        "kernel": kernel,
        "predictor": predictor,
        "rules": _told_rules(rules),
        "calibration": _flat(model.calibration_),
        "typical": _number(evidence.typical),
        "usual_chance": evidence.usual_chance,
        "mean": None,
        "accepted": model._row_keys is not None,
    }
    if model.mean_model_ is not None:
        mean = in_arrays(model.mean_model_)
        if mean is None:
            raise NotSavableError(f"the mean model, a {type(model.mean_model_).__name__}, is more than a few arrays")
        told["mean"], own = arrays_of(mean)
        arrays |= _under("mean", own)
    for name, part in (("noise_by_row", rules.noise_by_row), ("chance", rules.chance)):
        if part is not None and part.trees is not None:
            arrays |= _under(name, arrays_of(part.trees)[1])
    if model._row_keys is not None:
        accepted = Accepted.of(model._row_keys, evidence, model._verdicts)
        arrays |= _under("accepted", {field.name: getattr(accepted, field.name) for field in fields(accepted)})
    return SavedModel(told, arrays)


def restored(kept: SavedModel) -> RestoredModel:
    """The model again, as far as it predicts and judges new labels."""
    told, arrays = kept.told, kept.arrays
    kernel = _kernel_of(told["kernel"])
    model = LabelNoiseRegressor(kernel=kernel)
    model.kernel_, model.n_features_in_ = kernel, int(told["features"])
    model.center_, model.scale_ = float(told["center"]), float(told["scale"])
    transform = dict(told["transform"])
    model.label_transform_ = _transform_of(transform.pop("name"), transform)
    model.atoms_, model.bounds_ = _atoms_of(told["atoms"]), _atoms_of(told["bounds"])
    model.has_predictions_, model.table_ = bool(told["has_predictions"]), None
    model.mean_model_ = None if told["mean"] is None else model_of(told["mean"], _below("mean", arrays))
    model._predictor = _predictor_of(kernel, told["predictor"], _below("predictor", arrays))
    if isinstance(model._predictor, LowRankPredictor):
        model.kernel_ = _kernel_of(told["predictor"]["scaled_kernel"])
    accepted = Accepted(**_below("accepted", arrays)) if told["accepted"] else None
    calibration = dict(told["calibration"])
    learned = calibration.pop("learned")
    calibration = {name: value if isinstance(value, bool) else _float(value) for name, value in calibration.items()}
    usual = told["usual_chance"]
    return RestoredModel(
        model,
        _rules_of(told["rules"], arrays),
        accepted,
        Calibration(**calibration, learned=None if learned is None else LearnedOdds(**learned)),
        _float(told["typical"]),
        None if usual is None else float(usual),
    )


def _under(name: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}/{part}": array for part, array in arrays.items()}


def _below(name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    start = f"{name}/"
    return {part.removeprefix(start): array for part, array in arrays.items() if part.startswith(start)}


def _number(value: Any) -> Any:
    """A number as JSON has it; a word where it is not finite."""
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return bool(value) if isinstance(value, np.bool_) else value
    found = float(value)
    return found if math.isfinite(found) else str(found)


def _float(value: Any) -> float:
    return _NOT_FINITE[value] if isinstance(value, str) else float(value)


def _flat(values: Any) -> dict[str, Any]:
    """A dataclass of numbers, and of dataclasses of numbers."""
    own = {field.name: getattr(values, field.name) for field in fields(values)}
    return {name: _flat(value) if is_dataclass(value) else _number(value) for name, value in own.items()}


def _transform_of(name: str, numbers: dict[str, Any]) -> Transform:
    return named_transforms()[name](**{key: _float(value) for key, value in numbers.items()})


def _told_atoms(atoms: Atoms) -> dict[str, Any]:
    return {"values": list(atoms.values), "low": _number(atoms.low), "high": _number(atoms.high)}


def _atoms_of(told: dict[str, Any]) -> Atoms:
    return Atoms(tuple(float(value) for value in told["values"]), _float(told["low"]), _float(told["high"]))


def _told_rules(rules: RulesForNew) -> dict[str, Any]:
    by_row, chance = rules.noise_by_row, rules.chance
    return {
        "mixture": _flat(rules.mixture),
        "tails": rules.tails,
        "base": rules.base,
        "apart": None if rules.apart is None else list(rules.apart),
        "plausible": _flat(rules.plausible),
        "half_step": rules.half_step,
        "noise_by_row": None
        if by_row is None
        else {"usual": by_row.usual, "step": by_row.step, "strength": by_row.strength},
        "chance": None
        if chance is None
        else {"everywhere": chance.everywhere, "share": chance.share, "trees": chance.trees is not None},
    }


def _rules_of(told: dict[str, Any], arrays: dict[str, np.ndarray]) -> RulesForNew:
    by_row, chance = told["noise_by_row"], told["chance"]
    if chance is not None:
        trees = _trees_of(_below("chance", arrays)) if chance["trees"] else None
        chance = ChanceOfAtom(float(chance["everywhere"]), trees, float(chance["share"]))
    if by_row is not None:
        numbers = {name: float(value) for name, value in by_row.items()}
        by_row = NoiseByRow(_trees_of(_below("noise_by_row", arrays)), **numbers)
    return RulesForNew(
        MixtureParameters(**{name: float(value) for name, value in told["mixture"].items()}),
        str(told["tails"]),
        float(told["base"]),
        by_row,
        chance,
        None if told["apart"] is None else tuple(float(value) for value in told["apart"]),
        Plausible(**{name: _float(value) for name, value in told["plausible"].items()}),
        float(told["half_step"]),
    )


def _trees_of(arrays: dict[str, np.ndarray]) -> Trees:
    found = model_of({"kind": Trees.kind}, arrays)
    assert isinstance(found, Trees)
    return found


def _told_kernel(kernel: Any) -> dict[str, Any]:
    """A kernel by its name and its parameters; those of scikit-learn may hold others."""
    name = type(kernel).__name__
    if not isinstance(kernel, Kernel) or _kernels().get(name) is not type(kernel):
        raise NotSavableError(f"the kernel, {name}, is code of your own")
    return {"kernel": name, **{key: _told_value(value) for key, value in kernel.get_params(deep=False).items()}}


def _told_value(value: Any) -> Any:
    if isinstance(value, Kernel):
        return _told_kernel(value)
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "whole": value.dtype.kind in "iu"}
    if isinstance(value, tuple):
        return {"tuple": [_told_value(part) for part in value]}
    if value is None or isinstance(value, str | bool):
        return value
    return float(value)


def _value_of(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    if "kernel" in told:
        return _kernel_of(told)
    if "tuple" in told:
        return tuple(_value_of(part) for part in told["tuple"])
    return np.array(told["array"], dtype=np.intp if told["whole"] else float)


def _kernel_of(told: dict[str, Any]) -> Kernel:
    parameters = {key: _value_of(value) for key, value in told.items() if key != "kernel"}
    return _kernels()[told["kernel"]](**parameters)


def _kernels() -> dict[str, Any]:
    """The kernels that are told by name."""
    known = [kind for kind in vars(scikit_kernels).values() if isinstance(kind, type) and issubclass(kind, Kernel)]
    return {kind.__name__: kind for kind in [*known, TableKernel]}


def _told_predictor(predictor: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """The kernel that new points are compared by, what predicts them, and arrays."""
    if isinstance(predictor, ExactPredictor):
        arrays = {"points": np.asarray(predictor.points), "weights": predictor.weights, "noise": predictor.noise}
        return _told_kernel(predictor.kernel), {"kind": "exact"}, _under("predictor", arrays)
    assert isinstance(predictor, LowRankPredictor)
    model = predictor.model
    told = {"kind": "low rank", "amplitude": model.amplitude, "captured": model.captured}
    told["scaled_kernel"] = _told_kernel(scaled_kernel(model.kernel, model.amplitude))
    arrays = {"pivot_points": np.asarray(model.factor.pivot_points), "root": model.factor.root}
    if model.blocks is None:
        arrays |= {"coefficients": predictor.coefficients, "covariance": predictor.covariance.root}
    else:
        splits, rank = model.blocks.splits, len(model.factor.root)
        told["kind"] = "blocks"
        arrays |= {
            "points": np.asarray(model.points),
            "weights": predictor.weights,
            "noise": predictor.noise,
            "sizes": np.array([block.size for block in model.blocks.members]),
            "centers": np.array([split[0] for split in splits]).reshape(-1, rank),
            "directions": np.array([split[1] for split in splits]).reshape(-1, rank),
            "thresholds": np.array([split[2] for split in splits]),
            "children": np.array([split[3] for split in splits], dtype=np.int64).reshape(-1, 2),
        }
        columns = np.asarray(model.factor.factor)
        if columns.size <= MOST_CELLS:
            arrays["columns"] = columns
    return _told_kernel(model.kernel), told, _under("predictor", arrays)


def _predictor_of(kernel: Kernel, told: dict[str, Any], arrays: dict[str, Any]) -> ExactPredictor | LowRankPredictor:
    if told["kind"] == "exact":
        points, noise = arrays["points"], arrays["noise"]
        covariance: Covariance = DenseSignal(np.asarray(kernel(points))).with_noise(noise)
        return ExactPredictor(kernel, points, arrays["weights"], covariance, noise)
    amplitude, pivot_points, root = float(told["amplitude"]), arrays["pivot_points"], arrays["root"]
    pivots = np.arange(len(pivot_points), dtype=np.intp)
    empty = np.zeros((0, len(pivots)))
    factor = PivotedFactor(empty, np.zeros(0), pivots, pivot_points, root, float(told["captured"]))
    if told["kind"] == "low rank":
        signal = LowRankSignal(empty, np.zeros(0), amplitude=amplitude)
        model = LowRankModel(kernel, factor, np.zeros(0, dtype=np.intp), signal, amplitude)
        found = LowRankCovariance.from_root(signal, arrays["covariance"])
        return LowRankPredictor(model, arrays["coefficients"], np.zeros(0), found, np.zeros(0))
    return _with_blocks(kernel, factor, amplitude, arrays)


def _with_blocks(kernel: Kernel, factor: PivotedFactor, amplitude: float, arrays: dict[str, Any]) -> LowRankPredictor:
    points, weights, noise = arrays["points"], arrays["weights"], arrays["noise"]
    ends = np.cumsum(arrays["sizes"])
    members = [np.arange(end - size, end, dtype=np.intp) for end, size in zip(ends, arrays["sizes"], strict=True)]
    splits = [
        (center, direction, float(threshold), [int(child) for child in children])
        for center, direction, threshold, children in zip(
            arrays["centers"], arrays["directions"], arrays["thresholds"], arrays["children"], strict=True
        )
    ]
    blocks = Blocks(members, splits)
    columns: FloatArray = arrays["columns"] if "columns" in arrays else np.ascontiguousarray(factor.of(kernel, points))
    signal = BlockLowRankSignal(columns, rest_by_block(kernel, points, columns, blocks), amplitude=amplitude)
    order = np.arange(len(points), dtype=np.intp)
    model = LowRankModel(kernel, replace(factor, factor=columns), order, signal, amplitude, points, blocks)
    return model.predictor(np.zeros(0), weights, signal.with_noise(noise), noise)
