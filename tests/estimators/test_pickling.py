import copy
import pickle
import re
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from mislabel import LabelNoiseRegressor, __version__
from mislabel.errors import MislabelError, PickleVersionError
from mislabel.estimators import pickling


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(7).uniform(size=(30, 2))


@pytest.fixture(scope="module")
def model(features):
    return LabelNoiseRegressor(tune="none").fit(features, np.sin(3 * features[:, 0]))


def written_by(version, model, monkeypatch, format_number=pickling.FORMAT):
    with monkeypatch.context() as other:
        other.setattr(pickling, "__version__", version)
        other.setattr(pickling, "FORMAT", format_number)
        return pickle.dumps(model)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_the_same_version_reads_what_it_wrote(model, features, protocol):
    again = pickle.loads(pickle.dumps(model, protocol))
    np.testing.assert_array_equal(again.predict(features), model.predict(features))
    assert vars(again).keys() == vars(model).keys()


def test_another_version_is_refused_with_both_numbers_and_what_to_do(model, monkeypatch):
    blob = written_by("99.7.5", model, monkeypatch)
    message = f"LabelNoiseRegressor was pickled by mislabel 99.7.5, and is read by mislabel {__version__}"
    with pytest.raises(PickleVersionError, match=re.escape(message)) as refusal:
        pickle.loads(blob)
    assert "Fit it again, or install that version (pip install mislabel==99.7.5)." in str(refusal.value)
    assert isinstance(refusal.value, MislabelError)
    assert isinstance(refusal.value, pickle.UnpicklingError)


def test_another_format_of_the_same_version_is_refused(model, monkeypatch):
    blob = written_by(__version__, model, monkeypatch, format_number=pickling.FORMAT + 1)
    with pytest.raises(
        PickleVersionError, match=rf"format {pickling.FORMAT + 1}, this one reads format {pickling.FORMAT}"
    ):
        pickle.loads(blob)


class Unversioned(LabelNoiseRegressor):
    """Pickles as all estimators did before they recorded a version."""

    __reduce__ = object.__reduce__
    __getstate__ = BaseEstimator.__getstate__


def test_a_pickle_without_a_version_is_refused():
    with pytest.raises(PickleVersionError, match="did not record its number.*Fit it again, or install the version"):
        pickle.loads(pickle.dumps(Unversioned(tol=1e-3)))


class Part:
    """Something that a fitted model holds."""


def test_another_version_is_refused_before_parts_that_are_gone_are_missed(model, monkeypatch):
    holder = copy.copy(model)
    holder.part_ = Part()
    blob = written_by("99.7.5", holder, monkeypatch)
    monkeypatch.delattr(sys.modules[__name__], "Part")
    with pytest.raises(PickleVersionError, match="99.7.5"):
        pickle.loads(blob)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_are_as_before(model, features, duplicate):
    again = duplicate(model)
    assert type(again) is LabelNoiseRegressor
    assert vars(again).keys() == vars(model).keys()
    np.testing.assert_array_equal(again.predict(features), model.predict(features))
    assert (again._predictor is model._predictor) == (duplicate is copy.copy)


def test_clones_are_unfitted_and_carry_no_version(model):
    again = clone(model)
    assert vars(again) == {**vars(LabelNoiseRegressor()), "tune": "none"}


def test_joblib_reads_what_it_wrote_and_refuses_other_versions(model, features, monkeypatch, tmp_path):
    file = tmp_path / "model.joblib"
    joblib.dump(model, file)
    np.testing.assert_array_equal(joblib.load(file).predict(features), model.predict(features))
    monkeypatch.setattr(pickling, "__version__", "99.7.5")
    with pytest.raises(PickleVersionError, match=f"pickled by mislabel {__version__}, and is read by mislabel 99.7.5"):
        joblib.load(file)
