import numpy as np
import pandas as pd
import pytest

from mislabel.data import corrupt_labels, load_example_table, read_labelled_table
from mislabel.errors import InvalidLabelsError, InvalidParameterError


class TestCorruption:
    def test_rate_and_level(self):
        clean = np.random.default_rng(0).normal(3.0, 2.0, 20000)
        labels, noise, mask = corrupt_labels(clean, 0.3, 0.5, random_state=1)
        assert mask.sum() == 6000
        np.testing.assert_array_equal(labels, clean + noise)
        assert not noise[~mask].any()
        assert noise[mask].std() == pytest.approx(0.5 * clean.std(), rel=0.03)

    def test_seeds(self):
        clean = np.arange(50.0)
        first = corrupt_labels(clean, 0.2, 1.0, random_state=5)
        np.testing.assert_array_equal(first.labels, corrupt_labels(clean, 0.2, 1.0, random_state=5).labels)
        assert (first.labels != corrupt_labels(clean, 0.2, 1.0, random_state=6).labels).any()
        corrupt_labels(clean, 0.2, 1.0, random_state=np.random.default_rng(0))
        assert (clean == np.arange(50.0)).all()

    def test_extremes(self):
        clean = np.arange(10.0)
        assert not corrupt_labels(clean, 0.0, 1.0).mask.any()
        assert corrupt_labels(clean, 1.0, 1.0).mask.all()
        np.testing.assert_array_equal(corrupt_labels(clean, 1.0, 0.0).labels, clean)

    def test_bad_input(self):
        with pytest.raises(InvalidParameterError, match="rate"):
            corrupt_labels([1.0], 30, 1.0)
        with pytest.raises(InvalidParameterError, match="level"):
            corrupt_labels([1.0], 0.3, -1.0)
        with pytest.raises(InvalidLabelsError):
            corrupt_labels([np.nan], 0.3, 1.0)


def test_example_table():
    example = load_example_table()
    assert len(example.frame) == 600
    assert example.planted.sum() == 36
    assert example.frame[example.id].is_unique
    assert example.label in example.frame


class TestTables:
    def test_numeric_tables_are_taken_as_they_are(self):
        frame = pd.DataFrame({"a": [1, 2], "flag": [True, False], "y": [3.0, 4.0]}, index=["p", "q"])
        table = read_labelled_table(frame, "y")
        np.testing.assert_array_equal(table.features, [[1, 1], [2, 0]])
        assert table.feature_names == ["a", "flag"]
        assert table.rows.tolist() == ["p", "q"]

    def test_numbers_stored_as_text(self):
        frame = pd.DataFrame({"a": [1, 2], "y": ["3.5", "4"]})
        np.testing.assert_array_equal(read_labelled_table(frame, "y").label, [3.5, 4.0])

    def test_mixed_tables_are_encoded(self):
        pytest.importorskip("skrub")
        frame = pd.DataFrame(
            {"kind": ["u", "v", "w", "u"], "x": [1.0, None, 3.0, 4.0], "id": list("abcd"), "y": [1.0, 2.0, 3.0, 4.0]}
        )
        table = read_labelled_table(frame, "y", id="id")
        assert np.isfinite(table.features).all()
        assert table.features.shape[1] == len(table.feature_names) >= 4
        assert table.rows.tolist() == list("abcd")

    def test_choice_of_columns(self):
        frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": [5, 6], "y": [0.0, 1.0]})
        assert read_labelled_table(frame, "y", drop=["b"]).feature_names == ["a", "c"]
        assert read_labelled_table(frame, "y", features=["c", "y"]).feature_names == ["c"]
