import numpy as np
import pytest

from mislabel.decisions.pattern_rules import PLAIN_RULES, RULES, rules_for, without_float_noise


def units(name):
    return {rule.name for rule in rules_for(name) if rule.quantity}


@pytest.mark.parametrize("name", ["y", "label", "target", "", "x_m", "property"])
def test_a_name_that_says_nothing_allows_every_unit(name):
    assert rules_for(name) == RULES


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("energy", "energy"),
        ("FormationEnergy", "energy"),
        ("total_energies", "energy"),
        ("height", "length"),
        ("Temperature", "temperature"),
        ("birth_weight", "mass"),
        ("Pressure", "pressure"),
        ("time", "time"),
    ],
)
def test_a_name_that_speaks_of_a_quantity_allows_its_units_only(name, quantity):
    allowed = rules_for(name)
    assert set(PLAIN_RULES) <= set(allowed)
    assert {rule.quantity for rule in allowed if rule.quantity} == {quantity}


@pytest.mark.parametrize(
    "name", ["price", "n_visits", "yield [%]", "quality", "sales ($)", "count", "mass (mg)", "log_p"]
)
def test_quantities_of_other_units_have_powers_of_ten_only(name):
    assert rules_for(name) == PLAIN_RULES


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("height (cm)", {"inches for centimetres"}),
        ("height_ft", {"metres for feet"}),
        ("T [K]", {"not kelvin"}),
        ("temperature (C)", {"fahrenheit", "kelvin"}),
        ("gap_hartree", {"eV for hartree", "kcal/mol for hartree"}),
        ("E_at_kcal_mol", {"hartree for kcal/mol", "eV for kcal/mol", "kJ for kcal"}),
        ("load [kW]", {"horsepower for kilowatts"}),
    ],
)
def test_a_name_that_gives_the_unit_allows_what_others_are_in(name, expected):
    assert units(name) == expected


def test_corrected_values_show_no_float_noise():
    values = np.array([0.1 + 0.2, 3977.1800000000003, -1e300 / 3.0, 0.0, np.nan])
    shown = without_float_noise(values)
    assert shown[:2].tolist() == [0.3, 3977.18]
    np.testing.assert_allclose(shown, values, rtol=1e-14)
