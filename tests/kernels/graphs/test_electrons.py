"""Extended Hückel theory and the term it gives the molecular kernel."""

from types import SimpleNamespace

import numpy as np
import pytest
from ase import Atoms
from ase.build import bulk, molecule
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation
from sklearn.base import clone

from mislabel import LabelNoiseRegressor
from mislabel.errors import GramFileError, InvalidGraphError, InvalidParameterError
from mislabel.kernels import ElectronicTerm, FarWalk, Graph, MolecularKernel, gram_matrix
from mislabel.kernels.graphs.molecular.extended_huckel import BOHR, ELEMENTS, PARAMETERS, electrons_of, slater_overlaps
from tests.kernels.graphs.slopes import assert_slopes

EXACT = {"tol": 1e-12, "dtype": "float64"}
MOLECULES = [molecule(name) for name in ("CH4", "H2O", "NH3", "C6H6", "CH3OH", "C2H6", "CO2", "HCN")]
FAR = FarWalk(weight=0.3, stopping_probability=0.1)
TERM = ElectronicTerm(weight=0.2, highest_scale=0.9, lowest_scale=3.0)


def orbital(element, p_direction=None):
    """A Slater orbital as a function of positions (Bohr) around its atom, written down straightforwardly."""
    from math import factorial

    shell, _, s_exponent, _, p_exponent, _ = PARAMETERS[element]
    exponent = s_exponent if p_direction is None else p_exponent
    norm = (2 * exponent) ** (shell + 0.5) / np.sqrt(factorial(2 * shell))

    def value(place):
        radius = np.linalg.norm(place, axis=-1)
        radial = norm * radius ** (shell - 1) * np.exp(-exponent * radius)
        if p_direction is None:
            return radial * np.sqrt(1 / (4 * np.pi))
        return radial * np.sqrt(3 / (4 * np.pi)) * place[..., p_direction] / radius

    return value


def overlap_on_a_grid(first, second, distance):
    """Sums over a fine grid of points in space."""
    side = np.arange(-10.0, 10.0, 0.15) + 0.037
    x, y, z = np.meshgrid(side, side, side, indexing="ij", sparse=True)
    place = np.stack(np.broadcast_arrays(x, y, z), axis=-1)
    there = place - np.array([0.0, 0.0, distance / BOHR])
    s, p, d, q = orbital(first)(place), orbital(first, 2)(place), orbital(second)(there), orbital(second, 2)(there)
    across, beyond = orbital(first, 0)(place), orbital(second, 0)(there)
    return np.array([np.sum(a * b) for a, b in ((s, d), (s, q), (p, d), (p, q), (across, beyond))]) * 0.15**3


@pytest.mark.parametrize(("first", "second", "distance"), [(6, 6, 1.4), (6, 8, 1.1), (16, 7, 1.9)])
def test_overlaps_equal_sums_over_space(first, second, distance):
    expected = overlap_on_a_grid(first, second, distance)
    np.testing.assert_allclose(slater_overlaps(first, second, np.array([distance]))[0], expected, atol=1e-3)


def test_overlaps_of_hydrogens_have_a_closed_form():
    distance = np.array([0.3, 0.74, 2.0, 6.0])
    scaled = 1.3 * distance / BOHR
    expected = np.exp(-scaled) * (1 + scaled + scaled**2 / 3)
    np.testing.assert_allclose(slater_overlaps(1, 1, distance)[:, 0], expected, rtol=1e-12)
    assert not slater_overlaps(1, 1, distance)[:, 1:].any()


@given(st.sampled_from(sorted(ELEMENTS)), st.sampled_from(sorted(ELEMENTS)), st.floats(0.3, 8.0))
@settings(max_examples=60, deadline=None)
def test_overlaps_are_those_of_normalised_orbitals(first, second, distance):
    here, back = (slater_overlaps(*pair, np.array([distance]))[0] for pair in ((first, second), (second, first)))
    # Seen from the other atom, p orbitals along the line change their sign.
    np.testing.assert_allclose(here, [back[0], -back[2], -back[1], back[3], back[4]], atol=1e-10)
    assert np.all(np.abs(here) < 1)
    if PARAMETERS[first].p_exponent:
        close = slater_overlaps(first, first, np.array([1e-3]))[0]
        np.testing.assert_allclose(close, [1, 0, 0, 1, 1], atol=2e-2)


def test_overlaps_are_those_of_another_program():
    chem, huckel = pytest.importorskip("rdkit.Chem"), pytest.importorskip("rdkit.Chem.rdEHTTools")
    from mislabel.kernels.graphs.molecular.extended_huckel import _matrices

    for atoms in (molecule("CH3OH"), molecule("SO2"), molecule("CH3Cl"), molecule("PH3"), molecule("SiH4")):
        found = chem.RWMol()
        for number in atoms.numbers:
            atom = chem.Atom(int(number))
            atom.SetNoImplicit(True)
            found.AddAtom(atom)
        conformer = chem.Conformer(len(atoms))
        for k, place in enumerate(atoms.positions.tolist()):
            conformer.SetAtomPosition(k, place)
        found.AddConformer(conformer)
        found.UpdatePropertyCache(False)
        done, result = huckel.RunMol(found.GetMol(), keepOverlapAndHamiltonianMatrices=True)
        assert done
        upper = np.triu_indices(result.GetOverlapMatrix().shape[0], 1)
        overlap, energies = _matrices(atoms.numbers, atoms.positions, "")
        np.testing.assert_allclose(energies, result.GetHamiltonian().diagonal(), atol=1e-9)
        # Its p orbitals come in the order x, y, z too; its Bohr radius differs in the fifth digit.
        np.testing.assert_allclose(overlap[upper], result.GetOverlapMatrix()[upper], atol=2e-4)


def test_levels_of_the_hydrogen_molecule():
    scaled = 1.3 * 0.74 / BOHR
    overlap = np.exp(-scaled) * (1 + scaled + scaled**2 / 3)
    resonance = -1.75 * 13.6 * overlap
    bonding, antibonding = (-13.6 + resonance) / (1 + overlap), (-13.6 - resonance) / (1 - overlap)
    found = electrons_of(Atoms("H2", [(0, 0, 0), (0, 0, 0.74)]))
    assert found.highest == pytest.approx(bonding, rel=1e-6)
    assert found.lowest == pytest.approx(antibonding, rel=1e-6)
    assert found.binding == pytest.approx(2 * bonding + 2 * 13.6, rel=1e-6)
    assert found.softness == pytest.approx(1 / np.hypot(antibonding - bonding, 1.0), rel=1e-6)


def test_equals_a_plain_double_loop():
    atoms = molecule("CH3OH")
    atoms.rattle(0.05, seed=1)
    orbitals = [(k, axis) for k, z in enumerate(atoms.numbers) for axis in (None, 0, 1, 2)[: 1 if z == 1 else 4]]
    energies = np.array(
        [PARAMETERS[atoms.numbers[k]][3 if axis is None else 5] for k, axis in orbitals],
    )
    overlap = np.eye(len(orbitals))
    for a, (i, here) in enumerate(orbitals):
        for b, (j, there) in enumerate(orbitals):
            if i == j:
                continue
            apart = atoms.positions[j] - atoms.positions[i]
            distance = np.linalg.norm(apart)
            u = apart / distance
            pair = (int(atoms.numbers[i]), int(atoms.numbers[j]))
            ss, sp, ps, sigma, pi = slater_overlaps(*pair, np.array([distance]))[0]
            if here is None:
                overlap[a, b] = ss if there is None else sp * u[there]
            elif there is None:
                overlap[a, b] = ps * u[here]
            else:
                overlap[a, b] = sigma * u[here] * u[there] + pi * ((here == there) - u[here] * u[there])
    hamiltonian = 1.75 * overlap * np.add.outer(energies, energies) / 2
    np.fill_diagonal(hamiltonian, energies)
    levels = eigh(hamiltonian, overlap, eigvals_only=True)
    occupied = 7  # 4 + 6 + 4 electrons
    found = electrons_of(atoms)
    free = (2 * -21.4 + 2 * -11.4) + (2 * -32.3 + 4 * -14.8) + 4 * -13.6
    assert found.binding == pytest.approx(2 * levels[:occupied].sum() - free, rel=1e-7)
    assert (found.highest, found.lowest) == pytest.approx((levels[occupied - 1], levels[occupied]), rel=1e-7)
    gaps = levels[occupied:] - levels[:occupied][:, None]
    assert found.softness == pytest.approx((1 / np.sqrt(gaps**2 + 1)).sum(), rel=1e-7)


def test_does_not_depend_on_how_a_molecule_is_written_down(rng):
    atoms = molecule("CH3CH2OH")
    order = rng.permutation(len(atoms))
    turned = atoms.positions @ Rotation.random(random_state=3).as_matrix().T + [1.0, -2.0, 0.5]
    other = electrons_of(SimpleNamespace(numbers=atoms.numbers[order], positions=turned[order]))
    found = electrons_of(atoms)
    np.testing.assert_allclose(
        [other.binding, other.softness, other.highest, other.lowest],
        [found.binding, found.softness, found.highest, found.lowest],
        rtol=1e-8,
    )


def test_molecules_far_apart_do_not_see_each_other():
    one, two = molecule("CH4"), molecule("H2O")
    two.positions += [50.0, 0.0, 0.0]
    both = electrons_of(one + two)
    alone = electrons_of(one), electrons_of(two)
    assert both.binding == pytest.approx(alone[0].binding + alone[1].binding, rel=1e-9)
    assert both.highest == pytest.approx(max(item.highest for item in alone), rel=1e-9)


def test_single_atoms_and_odd_electrons():
    helium = electrons_of(Atoms("He"))
    assert (helium.binding, helium.softness, helium.highest, helium.lowest) == (0.0, 0.0, -23.4, 0.0)
    assert electrons_of(Atoms("C")).binding == pytest.approx(0.0, abs=1e-12)
    hydrogen = electrons_of(Atoms("H"))
    assert hydrogen.highest == hydrogen.lowest == -13.6
    assert hydrogen.softness == pytest.approx(0.25)  # half an electron's worth, in a gap of nothing
    radical = electrons_of(molecule("CH3"))
    assert radical.binding < 0
    assert radical.highest == radical.lowest


def test_what_it_cannot_do_is_said():
    with pytest.raises(InvalidGraphError, match="Fe.*main groups.*electrons=None"):
        electrons_of(Atoms("FeO", [(0, 0, 0), (0, 0, 1.6)]))
    with pytest.raises(InvalidGraphError, match="periodic.*electrons=None"):
        electrons_of(bulk("NaCl", "rocksalt", a=5.6))
    with pytest.raises(InvalidGraphError, match="atoms 0 and 1 are at the same place"):
        electrons_of(Atoms("H2", [(0, 0, 0), (0, 0, 0.001)]))
    with pytest.raises(InvalidGraphError, match="no atoms"):
        electrons_of(Atoms())
    with pytest.raises(InvalidGraphError, match="NaN"):
        electrons_of(SimpleNamespace(numbers=[1], positions=[[np.nan, 0, 0]]))
    with pytest.raises(InvalidParameterError, match="weight of the electronic term"):
        MolecularKernel(electrons=ElectronicTerm(weight=-1.0))(MOLECULES[:1])
    views = MolecularKernel.accurate().graphs_of(MOLECULES[:1])
    with pytest.raises(InvalidGraphError, match="far walk and electronic term, which this is not"):
        MolecularKernel.with_far_walk()(views)
    with pytest.raises(InvalidGraphError, match="nothing but one walk, which this is not"):
        MolecularKernel.accurate()([Graph.from_ase(MOLECULES[0])])


def expected_term(property, left, right):
    found = [[electrons_of(item) for item in side] for side in (left, right)]
    if property == "extensive":
        return np.array([[a.binding * b.binding / 16 + a.softness * b.softness for b in found[1]] for a in found[0]])
    return np.array(
        [
            [
                np.exp(-0.5 * ((a.highest - b.highest) / 0.9) ** 2 - 0.5 * ((a.lowest - b.lowest) / 3) ** 2)
                for b in found[1]
            ]
            for a in found[0]
        ]
    )


@pytest.mark.parametrize("far", [None, FAR])
@pytest.mark.parametrize("property", ["extensive", "intensive"])
def test_is_added_to_the_walks(property, far):
    walks = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=far, property=property, hydrogen_weight=0.4, **EXACT)
    kernel = clone(walks).set_params(electrons=TERM)
    expected = walks(MOLECULES) + 0.2 * 1.69 * expected_term(property, MOLECULES, MOLECULES)
    np.testing.assert_allclose(kernel(MOLECULES), expected, rtol=1e-10)
    np.testing.assert_allclose(kernel(MOLECULES[:3], MOLECULES[3:]), expected[:3, 3:], rtol=1e-10)
    np.testing.assert_allclose(kernel.diag(MOLECULES), expected.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(kernel.scaled(2.0)(MOLECULES), 2 * expected, rtol=1e-10)
    assert np.linalg.eigvalsh(expected).min() > 0


@pytest.mark.parametrize("far", [None, FAR])
@pytest.mark.parametrize("property", ["extensive", "intensive"])
def test_derivatives_equal_finite_differences(property, far, rng):
    kernel = MolecularKernel(0.3, 0.5, 0.1, 1.3, far=far, electrons=TERM, property=property, **EXACT)
    assert_slopes(kernel, MOLECULES[:4], 5 if far is None else 6, rng)


def test_protocol():
    kernel = MolecularKernel.accurate(starting_probability=2.0)
    assert clone(kernel) == kernel
    assert kernel.n_dims == 1
    assert kernel.scale_power == 2.0
    free = MolecularKernel(far=FAR, electrons=TERM)
    assert [item.name for item in free.parameters()][-2:] == ["far_weight", "electrons_weight"]
    moved = free.clone_with_theta(free.theta + 1.0)
    assert (moved.far.weight, moved.electrons.weight) == pytest.approx((0.3 * np.e, 0.2 * np.e))
    assert MolecularKernel.accurate("intensive").property == "intensive"


def test_matrices_on_disk_know_the_electrons(tmp_path):
    kernel = MolecularKernel.accurate(dtype="float64")
    matrix = gram_matrix(kernel, MOLECULES, path=tmp_path / "k.gram")
    np.testing.assert_allclose(matrix, kernel(MOLECULES), rtol=1e-12)
    with pytest.raises(GramFileError):
        gram_matrix(MolecularKernel.with_far_walk(dtype="float64"), MOLECULES, path=tmp_path / "k.gram")


def test_a_label_that_follows_the_electrons_is_learned():
    rng = np.random.default_rng(0)
    molecules = [item.copy() for item in MOLECULES * 6]
    for item in molecules:
        item.rattle(0.06, rng=rng)
    labels = np.array([25.0 * electrons_of(item).binding for item in molecules])
    wrong = labels.copy()
    wrong[5] += 40.0
    settings = {"dtype": "float64"}
    errors = []
    for kernel in (MolecularKernel.with_far_walk(**settings), MolecularKernel.accurate(**settings)):
        model = LabelNoiseRegressor(kernel=kernel).fit(molecules[:40], wrong[:40])
        errors.append(np.abs(model.predict(molecules[40:]) - labels[40:]).mean())
    assert errors[1] < 0.2 * errors[0]
    assert np.argmax(np.abs(model.z_)) == 5
