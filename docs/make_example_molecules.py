"""Make the shipped example of molecules: python docs/make_example_molecules.py

Small organic molecules are enumerated, given coordinates by RDKit (ETKDG, MMFF94) and labelled with a polarizability in cubic
Angstrom, the sum of atomic contributions (Crippen's molar refractivity times 3 / (4 pi N_A)) with 0.5 % of noise. Some labels are then made
wrong: cubic bohr instead of cubic Angstrom, a slipped decimal point, two neighbours swapped, a typing error.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, Crippen

SEED = 7
WANTED = 240
CUBIC_BOHR = 6.748334
LARGEST = 17
FOLDER = Path(__file__).parents[1] / "src" / "mislabel" / "data" / "example_data"
CORES = [
    "C{}",
    "CC{}",
    "CCC{}",
    "CC(C){}",
    "C1CC1{}",
    "C=C{}",
    "C#C{}",
    "c1ccccc1{}",
    "C1CCC1{}",
    "CC=C{}",
    "COC{}",
    "CSC{}",
    "CNC{}",
    "c1ccoc1{}",
    "N#CC{}",
    "O=CC{}",
]
ENDS = [
    "",
    "O",
    "N",
    "F",
    "Cl",
    "S",
    "C#N",
    "C=O",
    "C(=O)O",
    "C(=O)N",
    "OC",
    "NC",
    "C(F)F",
    "CO",
    "CN",
    "C=C",
    "C#C",
    "CC",
    "SC",
    "N=O",
]


def main():
    RDLogger.DisableLog("rdApp.*")
    rng = np.random.default_rng(SEED)
    smiles = sorted({Chem.CanonSmiles(core.format(end)) for core, end in itertools.product(CORES, ENDS)})
    rng.shuffle(smiles)
    chosen = []
    for text in smiles:
        molecule = Chem.AddHs(Chem.MolFromSmiles(text))
        if not 4 <= molecule.GetNumAtoms() <= LARGEST or AllChem.EmbedMolecule(molecule, randomSeed=SEED) != 0:
            continue
        if not AllChem.MMFFHasAllMoleculeParams(molecule):
            continue
        AllChem.MMFFOptimizeMolecule(molecule, maxIters=2000)
        chosen.append((text, molecule, 0.3964 * Crippen.MolMR(molecule)))
        if len(chosen) == WANTED:
            break
    clean = np.array([value for _, _, value in chosen])
    labels = clean * (1.0 + 0.005 * rng.normal(size=clean.size))
    size = clean.size
    at = rng.permutation(np.arange(2, size - 2))
    bohr, decimal, typed = at[:6], at[6:9], at[9:13]
    swapped = [
        int(k)
        for k in at[13:40]
        if not {int(k), int(k) + 1} & {*bohr.tolist(), *decimal.tolist(), *typed.tolist()}
        and abs(clean[k] - clean[k + 1]) > 2.5
    ][:2]
    labels[bohr] *= CUBIC_BOHR
    labels[decimal] /= 10.0
    labels[typed] += rng.choice([-1, 1], typed.size) * rng.uniform(1.5, 3.0, typed.size)
    for k in swapped:
        labels[k], labels[k + 1] = labels[k + 1], labels[k]
    planted = sorted({*bohr.tolist(), *decimal.tolist(), *typed.tolist(), *swapped, *(k + 1 for k in swapped)})
    lines = []
    for (text, molecule, _), label in zip(chosen, labels, strict=True):
        positions = molecule.GetConformer().GetPositions()
        lines += [
            str(molecule.GetNumAtoms()),
            f'Properties=species:S:1:pos:R:3 name="{text}" polarizability={label:.3f}',
        ]
        lines += [
            f"{atom.GetSymbol()} {x:.4f} {y:.4f} {z:.4f}"
            for atom, (x, y, z) in zip(molecule.GetAtoms(), positions, strict=True)
        ]
    (FOLDER / "molecules.xyz").write_text("\n".join(lines) + "\n")
    about = {"label": "polarizability", "molecules": size, "planted": planted}
    (FOLDER / "molecules_planted.json").write_text(json.dumps(about) + "\n")


if __name__ == "__main__":
    main()
