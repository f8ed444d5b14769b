"""Detection limits on real tables: are errors of the size that the audit says would be noticed indeed noticed?

    python benchmarks/detection_limits.py ../shared/data/tables > benchmarks/detection_limits.txt [--tables odd]

A table of up to 400 rows is audited as it is. Then errors of the size in column ``detectable`` are put onto some of the labels that
were trusted, up or down, and the table is audited again from the beginning, fit and all. "noticed" is the share of them that are then
called wrong (at 5 %), which should be about 80 %; "half" is the same for errors of half that size. "limit" is the median of the column
over the standard deviation of the labels; rows in which no error would be noticed are counted under "none".
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from decisions import decimals
from threadpoolctl import threadpool_limits

from mislabel import audit

MOST_ROWS = 400
SHARE = 0.03
SEED = 0


def noticed(frame, detectable, trusted, part):
    """Share of errors of this part of the limit that are called wrong; NaN where there is no limit."""
    rng = np.random.default_rng(SEED)
    able = np.flatnonzero(trusted & np.isfinite(detectable))
    if able.size < len(frame) / 4:
        return np.nan
    chosen = rng.choice(able, max(5, round(SHARE * len(frame))), replace=False)
    label = frame["label"].to_numpy(dtype=float).copy()
    sign = rng.choice([-1.0, 1.0], chosen.size)
    # The limit counts from what is expected; labels carry the error that they have anyway.
    label[chosen] = np.round(label[chosen] + sign * part * detectable[chosen], decimals(label))
    found = audit(frame.assign(label=label), "label", verbose=0)
    return float(np.mean(found.findings.suspect[chosen]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", choices=["even", "odd", "all"], default="odd")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.csv.gz"))
    paths = {"even": paths[::2], "odd": paths[1::2], "all": paths}[options.tables]
    print(f"{'table':18} {'limit':>7} {'none':>6} {'noticed':>8} {'half':>6}")
    rows = []
    for path in paths:
        frame = pd.read_csv(path).dropna(subset=["label"])
        frame = frame.sample(min(MOST_ROWS, len(frame)), random_state=SEED).reset_index(drop=True)
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            found = audit(frame, "label", verbose=0)
            table = found.findings.model.audit(by_position=True).sort_values("row")
            limit = table["detectable"].to_numpy()
            trusted = ~table["suspect"].to_numpy()
            shares = [noticed(frame, limit, trusted, part) for part in (1.0, 0.5)]
        none = float(np.mean(~np.isfinite(limit)))
        median = float(np.median(limit[np.isfinite(limit)]) / frame["label"].std()) if none < 1 else np.inf
        rows.append((median, none, *shares))
        print(f"{path.name[:-7]:18} {median:7.2f} {none:6.2f} {shares[0]:8.2f} {shares[1]:6.2f}", flush=True)
    mean = np.nanmean(np.array(rows)[:, 1:], axis=0)
    print(f"{'mean':18} {'':7} {mean[0]:6.2f} {mean[1]:8.2f} {mean[2]:6.2f}")


if __name__ == "__main__":
    main()
