import numpy as np
import pytest

from mislabel.data import Molecule, load_qm7, load_qm9, read_molecules
from mislabel.errors import DownloadError, MissingDependencyError, MoleculeFileError

WATER = """3
energy=-76.4 name=water Properties=species:S:1:pos:R:3
O 0.0 0.0 0.119
H 0.0 0.763 -0.477
H 0.0 -0.763 -0.477
"""
HYDROGEN = """2

H 0 0 0
1 0 0 0.74
"""
QM9 = """5
gdb 1 157.71 157.70 157.70 0. 13.21 -0.3877 0.1171 0.5048 35.3641 0.044749 -40.47893 -40.476062 -40.475117 -40.498597 6.469
C\t-0.0126981359\t 1.0858041578\t 0.0080009958\t-0.535689
H\t 2.150416*^-3\t-0.0060313176\t 0.0019761204\t 0.133921
H\t 1.0117308433\t 1.4637511618\t 0.0002765748\t 0.133922
H\t-0.540815069\t 1.4475266138\t-0.8766437152\t 0.133923
H\t-0.5238136345\t 1.4379326443\t 0.9063972942\t 0.133923
1341.307\t1341.3284
C\tC
InChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="some.xyz"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_xyz_with_and_without_properties(write):
    found = read_molecules(write(WATER + "\n" + HYDROGEN))
    assert [molecule.formula for molecule in found] == ["H2O", "H2"]
    assert found[0].name == "water"
    np.testing.assert_allclose(found[0].positions[1], [0.0, 0.763, -0.477])
    assert found.properties["energy"][0] == -76.4
    assert np.isnan(found.labels("energy")[1])
    with pytest.raises(MoleculeFileError, match="no property 'gap'; it has: .*energy"):
        found.labels("gap")


def test_extended_xyz_with_a_cell_and_columns_in_another_order(write):
    text = '2\nLattice="3 0 0 0 4 0 0 0 5" Properties=id:I:1:pos:R:3:species:S:1 pbc="T F T" E=1.5\n7 0 0 0 Na\n8 1.5 2 2.5 Cl\n'
    molecule = read_molecules(write(text, "salt.extxyz"))[0]
    assert molecule.formula == "ClNa"
    np.testing.assert_allclose(molecule.cell, np.diag([3, 4, 5]))
    assert molecule.pbc.tolist() == [True, False, True]
    np.testing.assert_allclose(molecule.positions[1], [1.5, 2.0, 2.5])


def test_qm9_dialect(write):
    found = read_molecules(write(QM9 + QM9))
    assert len(found) == 2
    assert found[1].positions[1, 0] == pytest.approx(2.150416e-3)
    assert found.labels("gap")[0] == 0.5048
    assert found.units["gap"] == "hartree"
    loaded = load_qm9(write(QM9))
    # The atomization energy of methane at this level is -395.999 kcal/mol.
    assert loaded.labels("energy")[0] == pytest.approx(-395.999, abs=0.01)
    assert loaded.labels("gap")[0] == pytest.approx(0.5048 * 27.2114, rel=1e-5)
    assert loaded.units == {"energy": "kcal/mol", "polarizability": "bohr^3", "gap": "eV"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("\n\n", "no molecules"),
        ("three\n\nH 0 0 0\n", "molecule 0, line 1: expected the number of atoms"),
        (
            HYDROGEN + "4\n\nH 0 0 0\n",
            "molecule 1, line 5: 4 atoms announced, but the file ends after 1; it is truncated",
        ),
        ("1\n\nXx 0 0 0\n", "line 3: unknown element 'Xx'"),
        ("1\n\nH 0 zero 0\n", "line 3: a coordinate is not a number"),
        ("1\n\nH 0 nan 0\n", "line 3: a coordinate is NaN"),
        ("1\n\nH 0 0\n", "line 3: expected an element and three coordinates"),
        ("0\n\n", "0 atoms"),
    ],
)
def test_damaged_files_are_named_to_the_line(write, text, message):
    with pytest.raises(MoleculeFileError, match=message) as error:
        read_molecules(write(text))
    assert "some.xyz" in str(error.value)


def test_unknown_formats_and_missing_files(tmp_path, write):
    with pytest.raises(MoleculeFileError, match="unknown format 'docx'"):
        read_molecules(write("x", "a.docx"))
    with pytest.raises(MoleculeFileError, match="does not exist"):
        read_molecules(tmp_path / "none.xyz")
    with pytest.raises(MoleculeFileError, match="does not exist"):
        load_qm7(tmp_path / "none.mat")


def test_sdf(tmp_path):
    chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    from rdkit.Chem import AllChem

    path = tmp_path / "two.sdf"
    writer = chem.SDWriter(str(path))
    for smiles in ("CCO", "c1ccccc1"):
        molecule = chem.AddHs(chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(molecule, randomSeed=1)
        molecule.SetProp("logS", "1.25")
        writer.write(molecule)
    writer.close()
    found = read_molecules(path)
    assert [molecule.formula for molecule in found] == ["C2H6O", "C6H6"]
    np.testing.assert_allclose(found.labels("logS"), 1.25)
    path.write_text(path.read_text()[:200])
    with pytest.raises(MoleculeFileError, match="molecule 0, from line 1 on: cannot be read"):
        read_molecules(path)


def test_smiles_tables(write):
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    found = read_molecules(write("name,SMILES,logS\na,CCO,1.0\nb,c1ccccc1,2.0\n", "t.csv"))
    assert found[1].n_nodes == 6
    assert found.labels("logS").tolist() == [1.0, 2.0]
    with pytest.raises(MoleculeFileError, match="line 3: .*C1CC"):
        read_molecules(write("smiles,y\nC,1\nC1CC,2\n", "t.csv"))
    with pytest.raises(MoleculeFileError, match="no SMILES column"):
        read_molecules(write("a,b\n1,2\n", "t.csv"))


def test_qm7_in_its_public_layout(tmp_path):
    from scipy.io import savemat

    numbers = np.zeros((5, 23))
    positions = np.zeros((5, 23, 3))
    numbers[:, :2] = 1
    positions[:, 1, 2] = 1.4
    path = tmp_path / "qm7.mat"
    savemat(path, {"Z": numbers, "R": positions, "T": -np.arange(5.0)[None], "P": np.arange(5)[:, None], "X": 0})
    found = load_qm7(path)
    assert len(found) == 5
    assert found[0].positions[1, 2] == pytest.approx(1.4 * 0.529177, rel=1e-5)
    assert found.labels("energy").tolist() == [0.0, -1.0, -2.0, -3.0, -4.0]
    assert [fold.tolist() for fold in found.folds] == [[0], [1], [2], [3], [4]]
    path.write_text("not a mat file")
    with pytest.raises(MoleculeFileError, match="not the public qm7.mat"):
        load_qm7(path)


def test_qm7_and_qm9_as_shared(shared_data):
    qm7 = load_qm7(shared_data / "qm7.npz")
    assert len(qm7) == 7165
    assert qm7.labels("energy").mean() == pytest.approx(-1538.04, abs=0.01)
    assert sorted(np.concatenate(qm7.folds).tolist()) == list(range(7165))
    qm9 = load_qm9(shared_data / "qm9_random8000.npz", limit=100)
    stored = dict(np.load(shared_data / "qm9_random8000.npz"))
    np.testing.assert_allclose(qm9.labels("energy"), stored["E_at_kcal_mol"][:100], atol=0.05)


def test_qm9pack():
    pytest.importorskip("qm9pack", reason="the package qm9pack is not installed")
    found = load_qm9(limit=3)
    assert found[0].formula == "CH4"
    assert found.labels("energy")[0] == pytest.approx(-395.999, abs=0.01)


def test_without_qm9pack_there_is_advice(monkeypatch):
    import importlib.resources

    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.resources, "files", missing)
    with pytest.raises(MissingDependencyError, match="pip install qm9pack"):
        load_qm9()


def test_offline_downloads_say_what_to_do(monkeypatch):
    pooch = pytest.importorskip("pooch", reason="pooch is not installed")

    def fail(*args, **options):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(DownloadError, match="load_qm7\\(path='qm7.mat'\\)"):
        load_qm7()


def test_molecule_as_ase():
    pytest.importorskip("ase", reason="ASE is not installed")
    atoms = Molecule(np.array([6, 8]), np.array([[0, 0, 0], [0, 0, 1.13]])).to_ase()
    assert str(atoms.symbols) == "CO"


def test_two_hundred_thousand_atoms(write):
    from mislabel.kernels import MolecularKernel

    rng = np.random.default_rng(0)
    grid = 1.6 * np.stack(np.meshgrid(*[np.arange(7)] * 3), axis=-1).reshape(-1, 3)
    cluster = grid[:300] + rng.normal(scale=0.05, size=(300, 3))
    rows = "".join(f"C {x:.4f} {y:.4f} {z:.4f}\n" for x, y, z in cluster)
    found = read_molecules(write(f"300\n\n{rows}" * 667))
    assert sum(map(len, found)) == 200_100
    kernel = MolecularKernel(0.05)
    matrix = kernel([found[0]])
    assert matrix[0, 0] > 300
    np.testing.assert_allclose(kernel([found[0]], [found[1]]), matrix, rtol=1e-6)
