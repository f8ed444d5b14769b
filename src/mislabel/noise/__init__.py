"""The paper: objective, penalties, leave-one-out, solvers, base noise, hyperparameters; right and wrong averaged."""
