"""Fitted regressors as plain arrays: what trees, forests, boosting and linear models have learned, without the models.

A fitted scikit-learn model is code and data of one version of scikit-learn. What it predicts follows from few arrays: of trees,
which feature each node asks for, its threshold, its two children and the value of each leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mislabel.estimators.mean_functions import halved
from mislabel.linalg.contract import FloatArray, IntArray

NodeArray = NDArray[np.int32]

#: Rows that all trees are asked about at a time.
_ROWS_AT_ONCE = 4096


class ArrayModel(Protocol):
    """A regressor that consists of arrays."""

    kind: ClassVar[str]

    def predict(self, X: FloatArray) -> FloatArray:
        """One number for each row of features."""


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of regression trees: ``base + sum_t value``, all nodes in one row of arrays.

    roots : the first node of every tree. feature : that a node asks for, -1 at leaves. threshold : rows that are no larger go to
    ``left``, all others to ``right``. value : of leaves. single : whether features are rounded to single precision first.
    """

    kind: ClassVar[str] = "trees"
    roots: NodeArray
    feature: NodeArray
    threshold: FloatArray
    left: NodeArray
    right: NodeArray
    value: FloatArray
    base: FloatArray
    single: FloatArray

    @classmethod
    def of(cls, trees: list[dict[str, Any]], base: float, *, single: bool) -> Trees:
        """From the arrays of each tree, whose children are counted within it."""
        sizes = [tree["feature"].size for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)

        def joined(name: str, kind: type) -> np.ndarray:
            return np.concatenate([tree[name] for tree in trees]).astype(kind)

        shift = np.repeat(roots, sizes)
        left, right = (joined(name, np.int32) + shift for name in ("left", "right"))
        return cls(
            roots,
            joined("feature", np.int32),
            joined("threshold", np.float64),
            left,
            right,
            joined("value", np.float64),
            np.array(float(base)),
            np.array(float(single)),
        )

    def predict(self, X: FloatArray) -> FloatArray:
        """One number for each row of features."""
        X = np.asarray(X, dtype=np.float64)
        if self.single:
            X = X.astype(np.float32).astype(np.float64)
        found = np.full(len(X), float(self.base))
        for start in range(0, len(X), _ROWS_AT_ONCE):
            part = np.ascontiguousarray(X[start : start + _ROWS_AT_ONCE])
            for root in self.roots.tolist():
                found[start : start + _ROWS_AT_ONCE] += self.value[self._leaves(root, part)]
        return found

    def _leaves(self, root: int, X: FloatArray) -> IntArray:
        """The leaf of one tree that each row ends in."""
        nodes = np.full(len(X), root, dtype=np.intp)
        going = np.arange(len(X)) if self.feature[root] >= 0 else np.zeros(0, dtype=np.intp)
        width, flat = X.shape[1], X.ravel()
        while going.size:
            at = nodes[going]
            goes_left = flat[going * width + self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at])
            nodes[going] = at
            going = going[self.feature[at] >= 0]
        return nodes


@dataclass(frozen=True, eq=False)
class Linear:
    """``(X - center) / unit @ weights + base``."""

    kind: ClassVar[str] = "linear"
    center: FloatArray
    unit: FloatArray
    weights: FloatArray
    base: FloatArray

    def predict(self, X: FloatArray) -> FloatArray:
        """One number for each row of features."""
        return np.asarray((np.asarray(X, dtype=float) - self.center) / self.unit @ self.weights + self.base)


@dataclass(frozen=True, eq=False)
class Blend:
    """A weighted sum of other models."""

    kind: ClassVar[str] = "blend"
    weights: FloatArray
    parts: list[ArrayModel]

    def predict(self, X: FloatArray) -> FloatArray:
        """One number for each row of features."""
        return np.asarray(sum(weight * part.predict(X) for weight, part in zip(self.weights, self.parts, strict=True)))


def in_arrays(model: Any) -> ArrayModel | None:
    """What a fitted regressor has learned; None where that is not known to be a few arrays."""
    found = _TRANSLATED.get(type(model))
    try:
        return None if found is None else found(model)
    except AttributeError:  # parts of models have other names in other versions of scikit-learn
        return None


def arrays_of(model: ArrayModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A description of the model, and its arrays by name."""
    if isinstance(model, Blend):
        parts = [arrays_of(part) for part in model.parts]
        arrays = {f"{k}.{name}": array for k, (_, own) in enumerate(parts) for name, array in own.items()}
        return {"kind": model.kind, "parts": [told for told, _ in parts]}, {"weights": model.weights, **arrays}
    return {"kind": model.kind}, {field.name: getattr(model, field.name) for field in fields(model)}  # type: ignore[arg-type]


def model_of(told: dict[str, Any], arrays: dict[str, np.ndarray]) -> ArrayModel:
    """The model again."""
    if told["kind"] == Blend.kind:
        parts = []
        for k, part in enumerate(told["parts"]):
            own = {name.removeprefix(f"{k}."): array for name, array in arrays.items() if name.startswith(f"{k}.")}
            parts.append(model_of(part, own))
        return Blend(arrays["weights"], parts)
    kinds: dict[str, Any] = {Trees.kind: Trees, Linear.kind: Linear}
    wanted = kinds[told["kind"]]
    return wanted(**{field.name: arrays[field.name] for field in fields(wanted)})  # type: ignore[no-any-return]


def forest_in_arrays(forest: Any) -> Trees | None:
    """A fitted forest of scikit-learn: the mean of its trees."""
    trees = []
    count = len(forest.estimators_)
    for estimator in forest.estimators_:
        tree = estimator.tree_
        if tree.n_outputs != 1:
            return None
        trees.append(
            {
                "feature": np.where(tree.children_left < 0, -1, tree.feature),
                "threshold": tree.threshold,
                "left": np.maximum(tree.children_left, 0),
                "right": np.maximum(tree.children_right, 0),
                "value": tree.value[:, 0, 0] / count,
            }
        )
    return Trees.of(trees, 0.0, single=True)


def _boosting(model: Any) -> Trees | None:
    """Histogram-based boosting of squared errors, without categories."""
    if model.loss != "squared_error" or getattr(model, "is_categorical_", None) is not None:
        return None
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        trees.append(
            {
                "feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
                "threshold": nodes["num_threshold"],
                "left": np.where(leaf, 0, nodes["left"].astype(np.int64)),
                "right": np.where(leaf, 0, nodes["right"].astype(np.int64)),
                "value": nodes["value"],
            }
        )
    return Trees.of(trees, float(np.ravel(model._baseline_prediction)[0]), single=False) if trees else None


def _linear(model: Any) -> Linear | None:
    weights = np.asarray(model.coef_, dtype=float)
    if weights.ndim != 1:
        return None
    base = np.array(float(np.ravel(model.intercept_)[0]))
    return Linear(np.zeros(weights.size), np.ones(weights.size), weights, base)


def _pipeline(model: Any) -> ArrayModel | None:
    """A linear model on scaled features."""
    if len(model.steps) != 2 or type(model.steps[0][1]) is not StandardScaler:
        return None
    scaler, last = model.steps[0][1], in_arrays(model.steps[1][1])
    if not isinstance(last, Linear):
        return None
    center = np.zeros(last.weights.size) if scaler.mean_ is None else scaler.mean_
    unit = np.ones(last.weights.size) if scaler.scale_ is None else scaler.scale_
    return Linear(center, unit, last.weights, last.base)


def _voting(model: Any) -> Blend | None:
    parts = [in_arrays(part) for part in model.estimators_]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or model.weights is not None:
        return None
    return Blend(np.full(len(known), 1.0 / len(known)), known)


def _half(model: Any) -> Blend | None:
    """Half of what another model predicts, as mean functions by name have it."""
    if model.inverse_func is not halved or model.func is not np.asarray:
        return None
    part = in_arrays(model.regressor_)
    return None if part is None else Blend(np.array([0.5]), [part])


_TRANSLATED: dict[type, Callable[[Any], ArrayModel | None]] = {
    ExtraTreesRegressor: forest_in_arrays,
    RandomForestRegressor: forest_in_arrays,
    HistGradientBoostingRegressor: _boosting,
    LinearRegression: _linear,
    Ridge: _linear,
    RidgeCV: _linear,
    Pipeline: _pipeline,
    VotingRegressor: _voting,
    TransformedTargetRegressor: _half,
}
