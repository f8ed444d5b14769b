"""Rules by which a label can go wrong: a power of ten, a sign, a unit; and which of them the label's name allows."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mislabel.decisions.evidence import FloatArray


@dataclass(frozen=True)
class Rule:
    """label = factor * expected + offset, in words.

    quantity : what is measured in such units (``length``); empty for rules that concern any label.
    unit : the unit of the labels that are right.
    """

    name: str
    words: str
    factor: float
    offset: float = 0.0
    quantity: str = ""
    unit: str = ""

    def undo(self, label: FloatArray) -> FloatArray:
        """What the label would have been without the error."""
        return (label - self.offset) / self.factor


def _unit(one: str, other: str, factor: float, quantity: str) -> Rule:
    words = f"a label in {one} where the others are in {other}"
    return Rule(f"{one} for {other}", words, factor, quantity=quantity, unit=other)


def _temperature(name: str, one: str, other: str, factor: float, offset: float) -> Rule:
    words = f"a label in {one} where the others are in {other}"
    return Rule(name, words, factor, offset, "temperature", other.rsplit(" ", 1)[-1].lower())


_KELVIN = 273.15
#: Rules that any label may have broken, whatever it measures.
PLAIN_RULES: tuple[Rule, ...] = (
    *(Rule(f"times {factor:g}", f"label = {factor:g} x expected", float(factor)) for factor in (10, 100, 1000, 1e6)),
    *(Rule(f"over {factor:g}", f"label = expected / {factor:g}", 1.0 / factor) for factor in (10, 100, 1000, 1e6)),
    Rule("sign", "label = -expected", -1.0),
    Rule("doubled", "label = 2 x expected", 2.0),
    Rule("halved", "label = expected / 2", 0.5),
)
UNIT_RULES: tuple[Rule, ...] = (
    _temperature("fahrenheit", "degrees Fahrenheit", "Celsius", 1.8, 32.0),
    _temperature("celsius", "degrees Celsius", "Fahrenheit", 1 / 1.8, -32.0 / 1.8),
    _temperature("kelvin", "kelvin", "degrees Celsius", 1.0, _KELVIN),
    _temperature("not kelvin", "degrees Celsius", "kelvin", 1.0, -_KELVIN),
    _unit("inches", "centimetres", 1 / 2.54, "length"),
    _unit("centimetres", "inches", 2.54, "length"),
    _unit("feet", "metres", 1 / 0.3048, "length"),
    _unit("metres", "feet", 0.3048, "length"),
    _unit("miles", "kilometres", 1 / 1.609344, "length"),
    _unit("kilometres", "miles", 1.609344, "length"),
    _unit("angstrom", "bohr", 0.529177, "length"),
    _unit("bohr", "angstrom", 1 / 0.529177, "length"),
    _unit("pounds", "kilograms", 1 / 0.45359237, "mass"),
    _unit("kilograms", "pounds", 0.45359237, "mass"),
    _unit("kcal", "kJ", 1 / 4.184, "energy"),
    _unit("kJ", "kcal", 4.184, "energy"),
    _unit("hartree", "eV", 1 / 27.211386, "energy"),
    _unit("eV", "hartree", 27.211386, "energy"),
    _unit("hartree", "kcal/mol", 1 / 627.5095, "energy"),
    _unit("kcal/mol", "hartree", 627.5095, "energy"),
    _unit("eV", "kcal/mol", 1 / 23.0605, "energy"),
    _unit("kcal/mol", "eV", 23.0605, "energy"),
    _unit("horsepower", "kilowatts", 1.3410221, "power"),
    _unit("kilowatts", "horsepower", 0.7456999, "power"),
    _unit("BTU per hour", "watts", 3.412142, "power"),
    _unit("psi", "kPa", 1 / 6.894757, "pressure"),
    _unit("kPa", "psi", 6.894757, "pressure"),
    _unit("cubic bohr", "cubic angstrom", 6.748334, "volume"),
    _unit("cubic angstrom", "cubic bohr", 1 / 6.748334, "volume"),
    _unit("minutes", "hours", 60.0, "time"),
    _unit("hours", "minutes", 1 / 60.0, "time"),
    _unit("seconds", "hours", 3600.0, "time"),
)
RULES: tuple[Rule, ...] = (*PLAIN_RULES, *UNIT_RULES)

#: Words in the name of a label that tell what it measures. The last line: quantities that have none of our units.
_QUANTITY_WORDS = {
    "temperature": "temperature temp degree melting boiling mp bp tm tg",
    "length": "length height width depth distance diameter radius elevation altitude thickness wavelength bond size",
    "mass": "mass weight load bodyweight birthweight",
    "energy": "energy energies enthalpy homo lumo gap heat calorie calories atomization ionization u0 u298 h298 g298 zpve",
    "power": "power output capacity consumption",
    "pressure": "pressure",
    "volume": "volume polarizability alpha",
    "time": "time duration age delay latency lifetime period",
    "other": (
        "price cost wage salary income revenue sales amount money budget usd eur gbp dollar euro count number counts clicks "
        "visits percent percentage share fraction ratio rate probability score rating quality grade rank mpg ph voltage "
        "current charge dipole density concentration speed velocity area solubility logp log pki pic50 pec50"
    ),
}
#: Units in the name of a label: what they measure, and how the rules spell them ("" where no rule starts from them).
_UNIT_WORDS = {
    "temperature": {"celsius": "celsius", "degc": "celsius", "fahrenheit": "fahrenheit", "degf": "fahrenheit"}
    | {"kelvin": "kelvin", "°c": "celsius", "°f": "fahrenheit"},
    "length": {"cm": "centimetres", "mm": "", "m": "metres", "km": "kilometres", "inch": "inches", "inches": "inches"}
    | {
        "ft": "feet",
        "feet": "feet",
        "foot": "feet",
        "miles": "miles",
        "mi": "miles",
        "bohr": "bohr",
        "nm": "",
        "um": "",
    }
    | {"angstrom": "angstrom", "ang": "angstrom", "å": "angstrom", "meter": "metres", "metre": "metres"}
    | {"meters": "metres", "metres": "metres", "centimetres": "centimetres", "kilometres": "kilometres"},
    "mass": {"kg": "kilograms", "kilograms": "kilograms", "lb": "pounds", "lbs": "pounds", "pounds": "pounds"}
    | {"g": "", "grams": "", "mg": "", "t": "", "tonnes": ""},
    "energy": {
        "ev": "eV",
        "hartree": "hartree",
        "ha": "hartree",
        "kcal": "kcal/mol",
        "kj": "kJ",
        "kwh": "",
        "joule": "",
    }
    | {"mev": "", "rydberg": "", "j": ""},
    "power": {
        "kw": "kilowatts",
        "hp": "horsepower",
        "horsepower": "horsepower",
        "w": "watts",
        "watts": "watts",
        "mw": "",
    },
    "pressure": {"kpa": "kPa", "psi": "psi", "bar": "", "mbar": "", "hpa": "", "pa": "", "mpa": "", "atm": ""},
    "volume": {"bohr3": "cubic bohr", "ang3": "cubic angstrom", "å3": "cubic angstrom", "litre": "", "liter": ""},
    "time": {"hours": "hours", "h": "hours", "hr": "hours", "minutes": "minutes", "min": "minutes", "s": "", "sec": ""}
    | {"seconds": "", "ms": "", "days": "", "years": "", "year": "", "months": ""},
    "other": {"%": "", "$": "", "€": "", "£": "", "usd": "", "eur": ""},
}
#: Units of one letter count only in brackets: ``x_m`` may be anything.
_BRACKETED = re.compile(r"[\[(]([^\])]*)[\])]")
_PARTS = re.compile(r"[A-Z]{2,}(?![a-z])\d*|[A-Za-zÅå°]+\d*|[%$€£]")
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")


def rules_for(name: str = "") -> tuple[Rule, ...]:
    """The rules a label of this name can have broken.

    Units belong to quantities: a name that speaks of energies allows units of energy, a name that says nothing known allows all,
    one that gives the unit itself allows rules whose other labels are in this unit. Rules of no quantity are always allowed.
    """
    quantities, units = _spoken_of(str(name))
    if not quantities:
        return RULES
    allowed = tuple(rule for rule in UNIT_RULES if rule.quantity in quantities)
    known = {unit for unit in units if unit}
    if known:
        allowed = tuple(rule for rule in allowed if rule.unit in known or (rule.unit == "kcal" and "kcal/mol" in known))
    elif units:
        allowed = ()
    return (*PLAIN_RULES, *allowed)


def _spoken_of(name: str) -> tuple[set[str], set[str]]:
    """Quantities a name speaks of, and the units it gives as the rules spell them."""
    bracketed = [part.lower() for text in _BRACKETED.findall(name) for part in _PARTS.findall(text)]
    parts = [part.lower() for part in _PARTS.findall(_CAMEL.sub(" ", _BRACKETED.sub(" ", name)))]
    quantities, units = set(), set()
    for quantity, words in _UNIT_WORDS.items():
        given = [part for part in bracketed if part in words]
        given += [part for part in parts if part in words and (len(part) > 1 or not part.isalpha())]
        if given:
            quantities.add(quantity)
            units |= {words[part] for part in given}
    # A bracket of one letter is a unit too: kelvin, degrees Celsius or Fahrenheit.
    for letter, unit in (("k", "kelvin"), ("c", "celsius"), ("f", "fahrenheit")):
        if bracketed == [letter]:
            quantities, units = {"temperature"}, {unit}
    if quantities:
        return quantities, units
    for quantity, text in _QUANTITY_WORDS.items():
        vocabulary = set(text.split())
        if any(
            part in vocabulary or part.rstrip("s") in vocabulary or part.rstrip("0123456789") in vocabulary
            for part in parts
        ):
            quantities.add(quantity)
    return quantities, units


def without_float_noise(values: FloatArray) -> FloatArray:
    """Numbers with at most 15 significant digits: 3977.18, not 3977.1800000000003."""
    return np.array([float(f"{value:.15g}") for value in values], dtype=np.float64)
