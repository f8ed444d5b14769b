import numpy as np
import pytest

from mislabel import LabelNoiseRegressor
from mislabel.data import corrupt_labels, load_qm7
from mislabel.errors import InvalidLabelsError
from mislabel.kernels import Graph, MolecularKernel, bond_kernel


@pytest.fixture(scope="module")
def qm7(shared_data):
    data = load_qm7(shared_data / "qm7.npz")
    chosen = np.random.default_rng(3).choice(len(data), 160, replace=False)
    return [data[k] for k in chosen], data.labels("energy")[chosen]


def test_wrong_energies_are_found_and_corrected(qm7):
    molecules, energies = qm7
    labels, noise, wrong = corrupt_labels(energies[:120], 0.1, 1.0, random_state=0)
    model = LabelNoiseRegressor(kernel=MolecularKernel(tuning_size=60)).fit(molecules[:120], labels)
    assert model.center_ == 0.0
    table = model.audit(0.1)
    large = wrong & (np.abs(noise) > 60)
    assert large.sum() >= 5
    assert set(np.flatnonzero(large)) <= set(table.loc[table["suspect"], "row"])
    predicted, deviation = model.predict(molecules[120:], return_std=True)
    error = np.abs(predicted - energies[120:])
    assert np.median(error) < 15
    assert (error < 4 * deviation + 20).mean() > 0.8
    corrected = model.corrected_labels_[large]
    assert np.abs(corrected - energies[:120][large]).max() < np.abs(noise[large]).max() / 2


def test_the_fitted_kernel_is_in_scaled_label_units(qm7):
    """What tuning on a part leaves behind is one kernel object, amplitude included."""
    molecules, energies = qm7
    model = LabelNoiseRegressor(kernel=MolecularKernel(tuning_size=40, dtype="float64"), noise="uniform").fit(
        molecules[:90], energies[:90]
    )
    graphs = model.kernel_.graphs_of(molecules[:90])
    total = model.kernel_(graphs) * model.scale_**2 + np.eye(90) * (
        model.noise_variance_[0] + model.base_noise_variance_
    )
    inverse = np.linalg.inv(total)
    np.testing.assert_allclose(model.loo_error_, (inverse @ energies[:90]) / np.diag(inverse), rtol=1e-3, atol=1e-3)


def test_from_a_file(tmp_path, qm7):
    molecules, energies = qm7
    path = tmp_path / "molecules.xyz"
    with path.open("w") as file:
        for molecule, energy in zip(molecules[:30], energies[:30], strict=True):
            file.write(f"{len(molecule)}\nenergy={energy}\n")
            for number, position in zip(molecule.numbers, molecule.positions, strict=True):
                file.write(f"{number} {position[0]:.8f} {position[1]:.8f} {position[2]:.8f}\n")
    options = {"kernel": MolecularKernel(), "tune": "none", "base_noise": 1.0}
    from_file = LabelNoiseRegressor(**options).fit(path, "energy")
    from_list = LabelNoiseRegressor(**options).fit(molecules[:30], energies[:30])
    np.testing.assert_allclose(from_file.loo_mean_, from_list.loo_mean_, rtol=1e-4)
    np.testing.assert_allclose(from_file.predict(path)[:3], from_list.predict(molecules[:3]), rtol=1e-4)
    with pytest.raises(InvalidLabelsError, match="neither a molecule file"):
        LabelNoiseRegressor(**options).fit(molecules[:5], "energy")


def test_bonds_alone(shared_data):
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    import pandas as pd
    from sklearn.gaussian_process.kernels import ConstantKernel

    frame = pd.read_csv(shared_data / "freesolv_with_uncertainty.csv.gz")
    smiles = next(column for column in frame if "smiles" in column.lower())
    some = frame.sample(80, random_state=0)
    graphs = [Graph.from_smiles(text) for text in some[smiles]]
    labels = some["expt_kcal_mol"].to_numpy()
    model = LabelNoiseRegressor(kernel=ConstantKernel(1.0) * bond_kernel(), noise="uniform").fit(graphs, labels)
    assert np.corrcoef(model.loo_mean_, labels)[0, 1] > 0.6
