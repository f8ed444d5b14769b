"""Every kernel under the contract: a new one is one class here, and inherits all tests."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.metrics.pairwise import laplacian_kernel

from mislabel.kernels import (
    CallableKernel,
    Graph,
    KroneckerDelta,
    MarginalizedGraphKernel,
    MolecularKernel,
    PrecomputedKernel,
    SquaredExponential,
    TableKernel,
    TunableKernel,
    bond_kernel,
)
from mislabel.kernels.adapters import tunable
from tests import naive
from tests.kernels.contract import DenseTwin, KernelContract
from tests.kernels.graphs.test_marginalized import random_graph

EXACT = {"dtype": "float64", "tol": 1e-12}


class Numbers:
    """A few rows of features."""

    def points(self, rng):
        return rng.normal(size=(9, 3)) * [1.0, 5.0, 0.2]


@pytest.mark.parametrize("shape", ["matern52", "gaussian"])
@pytest.mark.parametrize("scales", [2.0, np.array([0.9, 4.0, 0.3])], ids=["one", "each"])
@pytest.mark.parametrize("free", ["all", "amplitude", "length scales"])
class TestTable(Numbers, DenseTwin):
    @pytest.fixture
    def case(self, rng, shape, scales, free):
        kernel = TableKernel(1.7, scales, shape, (1e-3, 1e3), (1e-3, 1e3))
        if free != "all":
            fixed = "length_scale" if free == "amplitude" else "amplitude"
            kernel.set_params(**{f"{fixed}_bounds": "fixed"})
        points = self.points(rng)
        return kernel, points, kernel(points)

    def dense(self, kernel, points):
        squared = np.sum(((points[:, None] - points[None]) / kernel.length_scale) ** 2, axis=2)
        if kernel.shape == "gaussian":
            return kernel.amplitude * np.exp(-0.5 * squared)
        root = np.sqrt(5.0 * squared)
        return kernel.amplitude * (1.0 + root + 5.0 / 3.0 * squared) * np.exp(-root)


class TestTableOfManyFeatures(KernelContract):
    def make(self, rng):
        points = rng.normal(size=(12, 40)) * 10.0 ** rng.uniform(-3, 3, size=40)
        return TableKernel.for_features(points), points


class TestPrecomputed(DenseTwin):
    starting_diagonal = 1.0

    def make(self, rng):
        return PrecomputedKernel(2.0, (1e-3, 1e3)), naive.random_covariance(rng, 9)

    def cross(self, kernel, points, rows, columns):
        return kernel(points[np.ix_(rows, columns)])

    def dense(self, kernel, points):
        return 2.0 * points


class TestPrecomputedAsItIs(TestPrecomputed):
    def make(self, rng):
        return PrecomputedKernel(2.0), naive.random_covariance(rng, 9)


class TestCallableOnArrays(Numbers, DenseTwin):
    starting_diagonal = 1.0

    def make(self, rng):
        return CallableKernel(laplacian_kernel, 1.5, (1e-3, 1e3)), self.points(rng)

    def dense(self, kernel, points):
        return 1.5 * np.exp(-np.abs(points[:, None] - points[None]).sum(axis=2) / 3.0)


def shared_letters(left, right):
    return float(len(set(left) & set(right)))


class TestCallableOnObjects(DenseTwin):
    starting_diagonal = 1.0

    def make(self, rng):
        return CallableKernel(shared_letters, 1.5, (1e-3, 1e3)), [
            "acid",
            "base",
            "salt",
            "sugar",
            "ester",
            "amine",
            "iron",
        ]

    def dense(self, kernel, points):
        return 1.5 * np.array([[sum(letter in right for letter in set(left)) for right in points] for left in points])


PLAIN = [
    RBF(2.0),
    RBF([1.0, 2.0, 0.5]),
    RBF(2.0, "fixed"),
    Matern(2.0, nu=1.5),
    RationalQuadratic(),
    DotProduct(),
    ConstantKernel(2.0),
    WhiteKernel(0.5),
    Exponentiation(RBF(2.0), 2.0),
]


@pytest.mark.parametrize("plain", PLAIN, ids=str)
class TestPlain(Numbers, KernelContract):
    @pytest.fixture
    def case(self, rng, plain):
        points = self.points(rng)
        return plain, points, plain(points)

    def test_it_keeps_nothing_of_the_contract(self, plain):
        assert not isinstance(plain, TunableKernel)

    def test_a_scale_that_is_all_that_is_free(self, case):
        assert tunable(case[0]).scale_power is None


COMBINED = [
    ConstantKernel(2.0) * RBF([1.0, 2.0, 0.5]) + WhiteKernel(0.3),
    RationalQuadratic() * ConstantKernel(3.0, "fixed"),
    ConstantKernel(2.0) * (RBF(1.0) + DotProduct()) + RBF(0.3),
    TableKernel(2.0, 1.3, length_scale_bounds=(1e-2, 1e2)) + WhiteKernel(0.1),
    TableKernel(2.0, np.array([1.3, 2.0, 0.4])) * Matern(3.0, nu=2.5),
    ConstantKernel(1.0, "fixed") * Exponentiation(TableKernel(1.2, 2.0), 2.0),
    RBF(1.0, "fixed") + DotProduct(1.0, "fixed"),
]


@pytest.mark.parametrize("combined", COMBINED, ids=str)
class TestSumsAndProducts(Numbers, KernelContract):
    @pytest.fixture
    def case(self, rng, combined):
        points = self.points(rng)
        return combined, points, combined(points)


GRAPHS = [random_graph(seed) for seed in (31, 32, 33, 34, 36, 37)]


def by_pairs(points, value):
    return np.array([[value(left, right) for right in points] for left in points])


class TestMolecular(DenseTwin):
    starting_diagonal = 1.0

    def make(self, rng):
        return MolecularKernel(0.04, 0.4, 0.2, 1.3, **EXACT), GRAPHS

    def dense(self, kernel, points):
        return by_pairs(points, lambda one, two: naive.molecular_kernel(one, two, 0.04, 0.4, 0.2, 1.3)[0])


class TestMolecularInSinglePrecision(TestMolecular):
    accuracy = 2e-6

    def make(self, rng):
        return MolecularKernel(0.04, 0.4, 0.2, 1.3), GRAPHS


class TestMolecularIntensive(DenseTwin):
    starting_diagonal = 1.0

    def make(self, rng):
        return MolecularKernel(0.04, 0.4, 0.2, 1.3, property="intensive", exponent=2.0, **EXACT), GRAPHS

    def dense(self, kernel, points):
        walks = by_pairs(points, lambda one, two: naive.molecular_kernel(one, two, 0.04, 0.4, 0.2)[0])
        return 1.3**2 * (walks / np.sqrt(np.outer(np.diag(walks), np.diag(walks)))) ** 2.0


class TestMolecularOfWhichOnlyTheAmplitudeIsFree(KernelContract):
    starting_diagonal = 1.0

    def make(self, rng):
        fixed = {f"{name}_bounds": "fixed" for name in ("stopping_probability", "element_prior", "edge_length_scale")}
        return MolecularKernel(0.04, 0.4, 0.2, 1.3, **fixed, **EXACT), GRAPHS


class TestMarginalized(DenseTwin):
    def make(self, rng):
        walk = KroneckerDelta("element", 0.4), SquaredExponential("length", 0.2)
        return MarginalizedGraphKernel(*walk, 0.1, 1.3, **EXACT), GRAPHS

    def dense(self, kernel, points):
        return by_pairs(points, lambda one, two: naive.molecular_kernel(one, two, 0.1, 0.4, 0.2, 1.3)[0])


class TestSumOfGraphKernels(KernelContract):
    def make(self, rng):
        walk = MarginalizedGraphKernel(KroneckerDelta("element", 0.4), None, 0.2, **EXACT)
        return ConstantKernel(2.0) * MolecularKernel(0.04, 0.4, 0.2, tuning_size=77, **EXACT) + walk, GRAPHS

    def test_it_is_tuned_like_its_most_expensive_part(self, case):
        assert tunable(case[0]).tuning_size == 77


class Bonds(KernelContract):
    def make(self, rng):
        pytest.importorskip("rdkit", reason="RDKit is not installed")
        molecules = ["CCO", "CC(=O)O", "c1ccccc1O", "CCN", "C#N", "CC[NH3+]"]
        return self.kernel(), [Graph.from_smiles(smiles) for smiles in molecules]

    def dense(self, kernel, points):
        return self.walks(points)

    def walks(self, points):
        """Normalised similarities by the definition."""
        nodes = {"element": 0.3, "aromatic": 0.7, "charge": 0.5}

        def value(one, two):
            def of_nodes(i, j):
                same = (one.nodes[name][i] == two.nodes[name][j] for name in nodes)
                return float(
                    np.prod([1.0 if like else prior for like, prior in zip(same, nodes.values(), strict=True)])
                )

            def of_edges(i, j):
                return 1.0 if one.edge_labels["order"][i] == two.edge_labels["order"][j] else 0.4

            return naive.marginalized_kernel(one, two, of_nodes, of_edges, 0.1)[0]

        found = np.array([[value(one, two) for two in points] for one in points])
        return found / np.sqrt(np.outer(np.diag(found), np.diag(found)))


class TestBonds(Bonds, DenseTwin):
    def kernel(self):
        return bond_kernel().set_params(kernel__tol=1e-12)


class TestPowerOfBonds(Bonds, DenseTwin):
    def kernel(self):
        return bond_kernel(3.0).set_params(kernel__kernel__tol=1e-12)

    def dense(self, kernel, points):
        return self.walks(points) ** 3.0


class OwnKernel(TunableKernel, RBF):
    """Nothing but the inheritance: what a kernel gets that overrides nothing."""


class TestDefaults(Numbers, DenseTwin):
    def make(self, rng):
        return OwnKernel(2.0), self.points(rng)

    def dense(self, kernel, points):
        return np.exp(-0.5 * np.sum(((points[:, None] - points[None]) / 2.0) ** 2, axis=2))

    def test_it_is_no_view(self, case):
        assert tunable(case[0]) is case[0]
