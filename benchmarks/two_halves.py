"""The average over right and wrong labels begun from the fits of two random halves, against begun at once: work and result.

    python benchmarks/two_halves.py ../shared/data --work grams > benchmarks/two_halves.txt

3,000 training molecules of QM7 (drawn with seed 7 from those outside the first fold), energies with planted errors (seeds 5000 + 1000 rate + level,
none of the table's), tested on the first fold. Both fits see the same similarities and have the same shared numbers from 1,000 labels to begin with.
Work is in n^3 floating-point operations, the halves and theirs in turn included; the objective is minus twice the logarithm of the evidence. MAE in
kcal/mol. The similarities are those of ``mislabel reproduce table1`` and kept in ``--work``.
"""

from __future__ import annotations

import numpy as np
from average_or_maximum import molecules
from sklearn.metrics import roc_auc_score

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels
from mislabel.noise import mixture_start

ROWS = [(10, 10), (30, 10), (30, 100), (50, 10), (50, 50), (70, 10), (70, 200), (90, 50)]
SIZE = 3000


def main():
    train, test, similarity, cross, clean = molecules(__doc__, SIZE)
    print("rate level  start      work  iterations  objective    MAE   AUROC z")
    work = {"at once": 0.0, "halves": 0.0}
    for rate, level in ROWS:
        noisy = corrupt_labels(clean, rate / 100, level / 100, random_state=5000 + 1000 * rate + level)
        labels, wrong = noisy.labels[train], noisy.mask[train]
        for start, most in (("at once", SIZE), ("halves", mixture_start.SMALL)):
            mixture_start.SMALL, kept = most, mixture_start.SMALL
            model = LabelNoiseRegressor("precomputed", center="none", tol=1e-2).fit(similarity, labels)
            mixture_start.SMALL = kept
            work[start] += model.solver_cost_
            error = np.mean(np.abs(model.predict(cross) - clean[test]))
            print(
                f"{rate:3d}% {level:4d}%  {start:8s} {model.solver_cost_:6.1f}  {model.n_iter_:10d}  {model.objective_:9.1f} {error:6.3f}"
                f"   {roc_auc_score(wrong, np.abs(model.z_)):.4f}",
                flush=True,
            )
    print(
        f"work in all: {work['at once']:.0f} at once, {work['halves']:.0f} by halves: {work['at once'] / work['halves']:.2f} times less"
    )


if __name__ == "__main__":
    main()
