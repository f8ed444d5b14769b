import numpy as np
import pandas as pd
import pytest

from mislabel.data.columns import choose_features, columns_to_audit
from mislabel.data.tables import FeatureEncoder, read_labelled_table
from mislabel.errors import InvalidFeaturesError


@pytest.fixture
def frame(rng):
    size = 200
    label = rng.normal(10, 2, size)
    return pd.DataFrame(
        {
            "x": rng.normal(size=size),
            "constant": "same",
            "empty": np.nan,
            "counter": np.arange(size) + 5,
            "sample_id": rng.permutation(size) * 7,
            "code": [f"S-{k:05d}" for k in range(size)],
            "comment": [f"a note about row {k} in words" for k in range(size)],
            "when": pd.date_range("2024-01-01", periods=size).strftime("%Y-%m-%d"),
            "copy": label,
            "in_fahrenheit": 1.8 * label + 32,
            "log_label": np.log(label + 20),
            "close": label + rng.normal(0, 0.2, size),
            "kind": rng.choice(["a", "b"], size),
            "label": label,
        }
    )


def test_each_kind_of_useless_column_is_named(frame):
    names = [name for name in frame.columns if name != "label"]
    kept, left_out = choose_features(frame, frame["label"].to_numpy(), names, asked_for=False)
    assert {item.column: item.kind for item in left_out} == {
        "constant": "constant",
        "empty": "empty",
        "counter": "id",
        "sample_id": "id",
        "code": "id",
        "copy": "leak",
        "in_fahrenheit": "leak",
        "log_label": "leak",
    }
    assert kept == ["x", "comment", "when", "close", "kind"]


def test_columns_asked_for_are_only_refused_if_they_say_nothing(frame):
    kept, left_out = choose_features(frame, frame["label"].to_numpy(), ["counter", "copy", "constant"], asked_for=True)
    assert kept == ["counter", "copy"]
    assert [item.column for item in left_out] == ["constant"]


def test_a_copy_is_recognised_despite_gaps_and_wrong_labels(frame):
    frame.loc[:2, "copy"] = np.nan
    frame.loc[5, "label"] = 1000.0
    _, left_out = choose_features(frame, frame["label"].to_numpy(), ["copy", "close"], asked_for=False)
    assert [item.column for item in left_out] == ["copy"]
    assert "equals the label in 99.49 %" in left_out[0].reason


def test_nothing_left_to_learn_from(frame):
    with pytest.raises(InvalidFeaturesError, match="'counter' was left out: it counts the rows"):
        read_labelled_table(frame[["counter", "constant", "label"]], "label")


def test_columns_of_measured_quantities_can_be_audited_and_no_others(rng):
    size = 100
    plain = pd.DataFrame(
        {
            "length": rng.normal(size=size),
            "grade": rng.integers(1, 8, size).astype(float),
            "half_steps": rng.integers(0, 8, size) / 2,
            "yes": rng.integers(0, 2, size).astype(float),
            "counter": np.arange(size, dtype=float),
            "constant": 3.0,
            "rare": np.where(np.arange(size) < 40, rng.normal(size=size), np.nan),
            "text": "a",
        }
    )
    chosen, left_out = columns_to_audit(plain)
    assert chosen == ["length", "half_steps"]
    kinds = {item.column: item.kind for item in left_out}
    assert kinds == {"grade": "classes", "yes": "classes", "counter": "id", "constant": "constant", "rare": "few"}


def test_an_encoder_does_without_columns_that_were_left_out(rng):
    frame = pd.DataFrame({"a": rng.normal(size=30), "kind": rng.choice(["x", "y", "z"], 30), "b": rng.normal(size=30)})
    frame.loc[4, "a"] = np.nan
    whole, encoder = FeatureEncoder.of(frame)
    for left_out in (["a"], ["kind"], ["a", "kind"]):
        part, kept = encoder.without(left_out)
        assert part.columns == [name for name in ("a", "kind", "b") if name not in left_out]
        assert not any(name.removeprefix("missingindicator_").split("_")[0] in left_out for name in part.names)
        np.testing.assert_allclose(part.encode(frame.drop(columns=left_out)), whole[:, kept])
