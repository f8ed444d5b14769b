import numpy as np
import pandas as pd

from mislabel import audit
from mislabel.auditing import assemble


def test_patterns_are_looked_for_with_the_name_and_tails_of_the_label(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(60, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "energy": 5 + x[:, 0] + 0.05 * rng.normal(size=60)})
    given = {}

    def find(*arrays, **options):
        given.update(options)
        return []

    monkeypatch.setattr(assemble, "find_patterns", find)
    found = audit(frame, "energy", mean="none")
    assert given == {"name": "energy", "degrees": found.model.calibrated_evidence_.degrees}
