"""Units of measurement as people write them: in a row of their own below the header, or in cells beside the numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: Units that take prefixes, and those that do not, as alternatives of a pattern.
_PREFIXED = (
    "m|g|s|A|K|mol|cd|Hz|N|Pa|J|W|V|C|F|Ω|S|T|H|lm|lx|Bq|Gy|Sv|L|l|bar|eV|Wh|bit|Da|M|Ah|VA|var|cal|t|Ci|St|U|Wp"
)
_ALONE = (
    "%|‰|°|°C|°F|deg|rad|ppm|ppb|ppt|dB|dBm|dBA|rpm|psi|mmHg|atm|Torr|lb|lbs|oz|ft|in|inch|yd|mi|mph|gal|kn|hp|PS|btu|BTU|Å|IU|ha|"
    "kB|MB|GB|TB|min|h|d|a|yr|hartree|Ha|sec|hr|hrs|kph|kmh|px|pcs|Stk|Stück|Jahre?|Tage?|Stunden|Minuten|Sekunden|Monate|Wochen|years?|yrs|"
    "months?|weeks?|days?|hours?|minutes?|seconds?|percent|Prozent"
)
_CODES = (
    "CHF",
    "AUD",
    "CAD",
    "NZD",
    "SEK",
    "NOK",
    "DKK",
    "PLN",
    "CZK",
    "HUF",
    "INR",
    "CNY",
    "BRL",
    "ZAR",
    "SGD",
    "HKD",
    "Fr.",
)
#: Currencies by how they are written; those of one spelling have one sign.
CURRENCIES = {
    **{sign: sign for sign in ("€", "$", "£", "¥", "₹", *_CODES)},
    **{"EUR": "€", "Euro": "€", "USD": "$", "US$": "$", "GBP": "£", "JPY": "¥"},
}
#: Other spellings of the same unit.
_SPELLINGS = {
    **{"KW": "kW", "Kw": "kW", "kw": "kW", "kwh": "kWh", "KWh": "kWh", "KWH": "kWh", "Kwh": "kWh"},
    **{"KG": "kg", "Kg": "kg", "KM": "km", "Km": "km", "CM": "cm", "Cm": "cm", "MM": "mm", "KHz": "kHz"},
    **{"ohm": "Ω", "Ohm": "Ω", "percent": "%", "Prozent": "%", "ml": "mL", "dl": "dL", "µl": "µL", "l": "L"},
    **{"sec": "s", "hr": "h", "hrs": "h", "lbs": "lb", "inch": "in", "yrs": "yr", "kmh": "km/h", "kph": "km/h"},
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_FACTOR = re.compile(rf"(?:{_ALONE}|[yzafpnµumcdhkMGTPEZY]?(?:{_PREFIXED}))(?:\^?[+-]?[1-9])?")
_BETWEEN = re.compile(r"\s*[/·*\u22c5\u00d7]\s*|\s+per\s+|\s+")
_LONGEST = 24
#: Signs for numbers that have no unit, in a row of units.
NO_UNIT = frozenset({"", "-", "\u2013", "\u2014", "1", "n/a", "none"})
_MONEY = "|".join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))
_CELL = re.compile(
    rf"(?P<sign>[+-]?)(?P<money>(?:{_MONEY})\s*)?(?P<number>[+-]?[0-9.,](?:[0-9.,'\u2019\u00a0\u202f\u2009 ]*[0-9.,])?"
    r"(?:[eE][+-]?[0-9]+)?)(?P<gap>\s*)(?P<unit>.*)",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def unit_in(text: str) -> str:
    """The unit that a text is, in one spelling; nothing where it is none. Brackets around it do not count."""
    text = text.strip().replace("\u03bc", "µ").replace("\u2126", "Ω")
    if len(text) > 1 and text[0] + text[-1] in ("[]", "()"):
        text = text[1:-1].strip()
    if not text or len(text) > _LONGEST:
        return ""
    if text in CURRENCIES:
        return CURRENCIES[text]
    if text in _SPELLINGS:
        return _SPELLINGS[text]
    plain = _SUPERSCRIPT.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text)
    # W/(m²K): factors that an exponent or a bracket sets apart.
    plain = re.sub(r"(\^-?[1-9])(?=[A-Za-zµΩ°])", r"\1·", plain.replace("(", "").replace(")", ""))
    *pieces, last = re.split(rf"({_BETWEEN.pattern})", plain)
    found = []
    for factor, between in zip([*pieces[::2], last], [*pieces[1::2], ""], strict=True):
        if not (factor == "1" or factor in CURRENCIES or factor in _SPELLINGS or _FACTOR.fullmatch(factor)):
            return ""
        found += [CURRENCIES.get(factor) or _SPELLINGS.get(factor) or factor.replace("^", "")]
        found += ["/" if between.strip() in ("/", "per") else "·" if between else ""]
    return "".join(found) if found != ["1", ""] else ""


@dataclass(frozen=True)
class Measured:
    """A cell that holds a number and a unit: ``sign`` and ``money`` before the number, ``gap`` and ``after`` behind it.

    unit : in one spelling.
    """

    sign: str
    money: str
    number: str
    gap: str
    after: str
    unit: str

    @property
    def plain(self) -> str:
        """The number alone, with its sign."""
        return self.sign + self.number

    def with_number(self, number: str) -> str:
        """The same cell with another number."""
        sign = "-" if self.money and number.startswith("-") else ""
        return sign + self.money + number[len(sign) :] + self.gap + self.after


def measured(text: str) -> Measured | None:
    """A number with one known unit beside it (``42.3 kW``, ``12 %``, ``€ 3.50``); None for all other cells."""
    found = _CELL.fullmatch(text.strip())
    if found is None or (found["sign"] and found["number"][0] in "+-"):
        return None
    money, after = found["money"] or "", found["unit"]
    unit = CURRENCIES[money.strip()] if money else unit_in(after) if after[:1] not in ("[", "(") else ""
    if not unit or (money and after):
        return None
    return Measured(found["sign"], money, found["number"], found["gap"], after, unit)
