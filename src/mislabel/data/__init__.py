"""The outside world: tables, shipped examples, label corruption for experiments."""

from mislabel.data.corruption import CorruptedLabels, corrupt_labels
from mislabel.data.examples import load_example_table
from mislabel.data.tables import LabelledTable, read_labelled_table

__all__ = ["CorruptedLabels", "LabelledTable", "corrupt_labels", "load_example_table", "read_labelled_table"]
