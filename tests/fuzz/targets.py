"""The readers and writers under attack: for each, valid files to start from, how they are damaged, and what must hold."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz import checks, faulty, seeds
from tests.fuzz.mutate import Mutation, mutate_bytes, mutate_table, mutate_text
from tests.fuzz.mutate_containers import mutate_gzip_table, mutate_json, mutate_members, mutate_workbook
from tests.fuzz.mutate_parquet import mutate_parquet
from tests.fuzz.seeds import Seed


@dataclass(frozen=True)
class Target:
    """One thing to attack.

    seeds : makes valid files. mutate : damages one. run : gets the path of a damaged file, alone in its folder; may
    raise a MislabelError, and nothing else; may write into a new folder ``out`` beside it.
    """

    seeds: Callable[[], list[Seed]]
    mutate: Mutation
    run: Callable[[Path], None]

    def case(self, name: str, seed: int, number: int) -> Seed:
        """The damaged file of a number; always the same one."""
        random = Random(f"{name}/{seed}/{number}")
        start, other = random.choice(self.seeds()), random.choice(self.seeds())
        return Seed(start.suffix, self.mutate(random, start.data, other.data))


def _smiles_damage(random: Random, data: bytes, other: bytes) -> bytes:
    zipped = b"\x1f\x8b"
    if data.startswith(zipped):
        return mutate_gzip_table(random, data, other if other.startswith(zipped) else data)
    return mutate_table(random, data, other)


TARGETS: dict[str, Target] = {
    "csv": Target(seeds.text_tables, mutate_table, checks.check_table),
    "layout": Target(seeds.laid_out_tables, mutate_table, checks.check_table),
    "json-lines": Target(seeds.json_lines, mutate_text, checks.check_table),
    "feather": Target(seeds.feather_tables, mutate_bytes, checks.check_table),
    "zip": Target(seeds.zipped_tables, mutate_members(mutate_text), checks.check_table),
    "tsv-gz": Target(seeds.gzipped_tables, mutate_gzip_table, checks.check_table),
    "excel": Target(seeds.workbooks, mutate_workbook, checks.check_table),
    "parquet": Target(seeds.parquet_tables, mutate_parquet, checks.check_table),
    "large": Target(seeds.parquet_tables, mutate_parquet, checks.check_large_table),
    "xyz": Target(seeds.xyz_files, mutate_text, checks.check_molecules),
    "extxyz": Target(seeds.extended_xyz_files, mutate_text, checks.check_molecules),
    "qm9": Target(seeds.qm9_files, mutate_text, checks.check_molecules),
    "sdf": Target(seeds.sd_files, mutate_text, checks.check_molecules),
    "mol": Target(seeds.mol_files, mutate_text, checks.check_molecules),
    "smiles": Target(seeds.smiles_tables, _smiles_damage, checks.check_molecules),
    "decisions": Target(seeds.decision_files, mutate_json, checks.check_decisions),
    "apply-text": Target(seeds.text_tables, mutate_table, checks.check_applied_table),
    "apply-layout": Target(seeds.laid_out_tables, mutate_table, checks.check_applied_table),
    "apply-json-lines": Target(seeds.json_lines, mutate_text, checks.check_applied_table),
    "apply-feather": Target(seeds.feather_tables, mutate_bytes, checks.check_applied_table),
    "apply-zip": Target(seeds.zipped_tables, mutate_members(mutate_text), checks.check_applied_table),
    "apply-excel": Target(seeds.workbooks, mutate_workbook, checks.check_applied_table),
    "apply-parquet": Target(seeds.parquet_tables, mutate_parquet, checks.check_applied_table),
    "apply-xyz": Target(
        lambda: seeds.xyz_files() + seeds.extended_xyz_files() + seeds.qm9_files(),
        mutate_text,
        checks.check_applied_molecules,
    ),
    "apply-sdf": Target(seeds.sd_files, mutate_text, checks.check_applied_molecules),
    "gram": Target(seeds.gram_files, mutate_members(mutate_bytes), checks.check_gram),
}
#: Not attacked by default: what the attack must say about it is known.
SELF_TEST = {"faulty": Target(faulty.faulty_files, faulty.insert_fault, faulty.faulty_reader)}


def find_target(name: str) -> Target:
    """A target by its name."""
    return {**TARGETS, **SELF_TEST}[name]
