"""Slow, obvious twins of everything fast: plain NumPy, no cleverness."""

from __future__ import annotations

import numpy as np


def random_covariance(rng, size, dimensions=2, length=0.4):
    points = rng.uniform(size=(size, dimensions))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.exp(-0.5 * (distances / length) ** 2)


def random_problem(rng, size, rate=0.3, level=1.0, clean_noise=0.02):
    """Kernel matrix, labels, which are wrong, and the clean labels."""
    matrix = random_covariance(rng, size)
    clean = np.linalg.cholesky(matrix + 1e-8 * np.eye(size)) @ rng.standard_normal(size)
    labels = clean + clean_noise * clean.std() * rng.standard_normal(size)
    wrong = np.zeros(size, dtype=bool)
    wrong[rng.permutation(size)[: round(rate * size)]] = True
    labels[wrong] += rng.normal(0.0, level * clean.std(), wrong.sum())
    return matrix, labels, wrong, clean


def objective(matrix, labels, noise):
    total = matrix + np.diag(noise)
    sign, logdet = np.linalg.slogdet(total)
    assert sign > 0
    return logdet + labels @ np.linalg.solve(total, labels)


def gradient(matrix, labels, noise):
    inverse = np.linalg.inv(matrix + np.diag(noise))
    return np.diag(inverse) - (inverse @ labels) ** 2


def kkt_residual(matrix, labels, noise, penalty_slope=0.0):
    """Violation of the optimality conditions, written label by label."""
    inverse = np.linalg.inv(matrix + np.diag(noise))
    weights = inverse @ labels
    worst = 0.0
    for i in range(len(labels)):
        slope = inverse[i, i] - weights[i] ** 2 + np.broadcast_to(penalty_slope, noise.shape)[i]
        target = max(0.0, noise[i] - slope / inverse[i, i] ** 2)
        worst = max(worst, inverse[i, i] * abs(noise[i] - target))
    return worst


def leave_one_out(matrix, labels, noise, index):
    """Mean and variance of one label from a real refit without it; its own noise is not part of the variance."""
    others = np.delete(np.arange(len(labels)), index)
    inner = matrix[np.ix_(others, others)] + np.diag(noise[others])
    cross = matrix[index, others]
    mean = cross @ np.linalg.solve(inner, labels[others])
    return mean, matrix[index, index] - cross @ np.linalg.solve(inner, cross)


def finite_difference(function, point, step=1e-6):
    point = np.asarray(point, dtype=float)
    slopes = np.empty(point.size)
    for i in range(point.size):
        up, down = point.copy(), point.copy()
        up[i] += step
        down[i] -= step
        slopes[i] = (function(up) - function(down)) / (2 * step)
    return slopes


def directed_edges(graph):
    """Every direction of every edge: (from, to, weight, edge number); a self-loop has one."""
    rows = []
    for number, ((i, j), weight) in enumerate(zip(graph.edges, graph.weights, strict=True)):
        rows.append((i, j, weight, number))
        if i != j:
            rows.append((j, i, weight, number))
    return rows


def marginalized_kernel(first, second, node_similarity, edge_similarity, stopping, starting=1.0):
    """The definition, by a dense solve: (D V^-1 - (w x w') o E) x = D 1, K = sum p p' x. Returns K and x."""
    n, m = first.n_nodes, second.n_nodes
    degrees = []
    for graph in (first, second):
        degree = np.zeros(graph.n_nodes)
        for i, _, weight, _ in directed_edges(graph):
            degree[i] += weight
        degrees.append(np.where(degree > 0, degree, 1.0) / (1.0 - stopping))
    product = np.outer(*degrees)
    system = np.zeros((n, m, n, m))
    for i in range(n):
        for k in range(m):
            system[i, k, i, k] += product[i, k] / node_similarity(i, k)
    for i, j, weight, e in directed_edges(first):
        for k, to, other, f in directed_edges(second):
            system[i, k, j, to] -= weight * other * edge_similarity(e, f)
    solution = np.linalg.solve(system.reshape(n * m, n * m), product.ravel()).reshape(n, m)
    return starting**2 * solution.sum(), solution


def molecular_kernel(first, second, stopping=0.01, prior=0.2, length=0.05, starting=1.0):
    """:func:`marginalized_kernel` with elements and distances."""

    def nodes(i, k):
        return 1.0 if first.nodes["element"][i] == second.nodes["element"][k] else prior

    def edges(e, f):
        return np.exp(-((first.edge_labels["length"][e] - second.edge_labels["length"][f]) ** 2) / (2 * length**2))

    return marginalized_kernel(first, second, nodes, edges, stopping, starting)


def label_mixture(matrix, labels, fraction, base, spread):
    """Every way in which labels can be right or wrong, one after the other, weighed by its likelihood.

    Returns minus twice the log evidence (less n log 2 pi), the probability that each label is wrong, and the mean signal.
    """
    size = labels.size
    logs, wrongs, means = [], [], []
    for code in range(2**size):
        wrong = (code >> np.arange(size)) & 1 == 1
        total = matrix + np.diag(base + spread * wrong)
        weights = np.linalg.solve(total, labels)
        log_prior = wrong.sum() * np.log(fraction) + (~wrong).sum() * np.log(1.0 - fraction)
        logs.append(log_prior - 0.5 * (np.linalg.slogdet(total)[1] + labels @ weights))
        wrongs.append(wrong)
        means.append(matrix @ weights)
    logs = np.array(logs)
    shares = np.exp(logs - logs.max())
    evidence = logs.max() + np.log(shares.sum())
    shares /= shares.sum()
    return -2.0 * evidence, shares @ np.array(wrongs, dtype=float), shares @ np.array(means)
