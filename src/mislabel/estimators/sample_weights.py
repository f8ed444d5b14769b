"""Weights of rows in the fits of any mean model: they reach every regressor inside pipelines, ensembles and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_regressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object, process_routing
from sklearn.utils.validation import has_fit_parameter

from mislabel.errors import InvalidParameterError
from mislabel.linalg.contract import FloatArray

_NAME = "sample_weight"


def weight_parameters(model: Any, weights: FloatArray | None) -> dict[str, FloatArray]:
    """What the model's fit is passed inside :func:`routed`; all regressors inside it are made to ask for the weights."""
    if weights is None:
        return {}
    params = {_NAME: np.asarray(weights, dtype=float)}
    with routed(model, params):
        if _passes_on(model) or not has_fit_parameter(model, _NAME):
            _check_parts(model, params)
    return params


def routed(model: Any, params: dict[str, FloatArray] | None) -> config_context:
    """scikit-learn's routing of weights to the parts that ask for them, where a model consists of others."""
    return config_context(enable_metadata_routing=bool(params) and _passes_on(model))


def _passes_on(model: Any) -> bool:
    """Whether a model consists of others, to which it passes what they ask for."""
    try:
        # RidgeCV cannot be asked while routing is off.
        with config_context(enable_metadata_routing=True):
            return isinstance(get_routing_for_object(model), MetadataRouter)
    except NotImplementedError:
        return False


def _check_parts(model: Any, params: dict[str, FloatArray]) -> None:
    """Let the parts of a model ask for weights; refuses models that would lose them on the way."""
    for part in _parts(model):
        if not _asks(part):
            raise InvalidParameterError(
                f"sample_weight was given, but {type(part).__name__} takes none: leave it out, or use another mean model."
            )
    try:
        process_routing(model, "fit", **params)
    except (UnsetMetadataPassedError, TypeError, NotImplementedError) as error:
        raise InvalidParameterError(f"sample_weight cannot be passed through the mean model: {error}") from None


def _parts(model: Any) -> list[Any]:
    """The model and all estimators inside it."""
    inside = model.get_params(deep=True).values()
    return [part for part in (model, *inside) if hasattr(part, "fit") and not isinstance(part, type)]


def _asks(part: Any) -> bool:
    """Let a part of a model ask for weights if it is a regressor; False where it should, but takes none."""
    takes = has_fit_parameter(part, _NAME) and hasattr(part, "set_fit_request")
    if not is_regressor(part):
        # What is made of the features does not depend on the weights.
        if takes:
            part.set_fit_request(sample_weight=False)
        return True
    if takes:
        part.set_fit_request(sample_weight=True)
        part.set_score_request(sample_weight=True)
    return takes or _passes_on(part)
