"""The outside world: tables, molecule files, public data sets, shipped examples, label corruption for experiments."""

from mislabel.data.corruption import CorruptedLabels, corrupt_labels
from mislabel.data.datasets import load_qm7, load_qm9
from mislabel.data.examples import load_example_table
from mislabel.data.molecules import Molecule, MoleculeSet, read_molecules
from mislabel.data.tables import LabelledTable, read_labelled_table

__all__ = [
    "CorruptedLabels",
    "LabelledTable",
    "Molecule",
    "MoleculeSet",
    "corrupt_labels",
    "load_example_table",
    "load_qm7",
    "load_qm9",
    "read_labelled_table",
    "read_molecules",
]
