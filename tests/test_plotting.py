import numpy as np
import pandas as pd
import pytest

from mislabel import LabelNoiseRegressor

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt

from mislabel.plotting import CalibrationDisplay, FeatureNoiseDisplay, LabelsDisplay, ZDisplay


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (120, 1))
    y = np.sin(x[:, 0]) + 0.05 * rng.normal(size=120)
    y[:6] += 3.0
    return LabelNoiseRegressor().fit(x, y), pd.Series(np.where(np.arange(120) < 12, "bad", "good"), name="sensor")


def test_displays_draw_into_the_axes_given(model):
    fitted, sensor = model
    displays = [
        LabelsDisplay.from_model(fitted),
        ZDisplay.from_model(fitted),
        CalibrationDisplay.from_model(fitted),
        FeatureNoiseDisplay.from_model(fitted, sensor),
    ]
    figure, axes = plt.subplots(2, 2)
    for display, ax in zip(displays, axes.ravel(), strict=True):
        assert display.plot(ax=ax) is display
        assert display.ax_ is ax
        assert ax.get_xlabel()
    suspects = axes[0, 0].collections[1].get_offsets()
    assert len(suspects) == fitted.audit()["suspect"].sum() >= 6
    heights = [bar.get_width() for bar in axes[1, 1].patches]
    assert heights[0] == pytest.approx(displays[3].entry.bins[0].suspects / 12)
    plt.close(figure)


def test_without_axes_a_figure_is_made(model):
    display = LabelsDisplay.from_model(model[0]).plot()
    assert display.ax_.figure is not None
    plt.close(display.ax_.figure)


def test_the_audit_table_in_a_notebook(model):
    table = model[0].audit()
    html = table._repr_html_()
    assert f"{table['suspect'].sum()} of 120 labels look wrong." in html
    assert html.count("<tr") <= 22
    assert "<script>" not in table.assign(row="<script>")._repr_html_()
    assert isinstance(table.head(3), pd.DataFrame)
    assert table[["row", "z"]]._repr_html_().count("<tr") > 5
