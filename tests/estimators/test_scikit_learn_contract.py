from sklearn.utils.estimator_checks import parametrize_with_checks

from mislabel import LabelNoiseRegressor


@parametrize_with_checks(
    [
        LabelNoiseRegressor(),
        LabelNoiseRegressor(noise="uniform"),
        LabelNoiseRegressor(base_noise=0.0, tune="none"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
