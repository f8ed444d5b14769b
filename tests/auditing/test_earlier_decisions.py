"""Verdicts are remembered: what was decided is known to the next audit, wherever its rows stand by then."""

import json

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.cli import main
from mislabel.data.corrections import read_decisions
from mislabel.errors import DecisionsError
from mislabel.report.content import report_content

SIZE = 90
WRONG = (4, 11, 23, 37, 52, 66, 78, 85)
#: What is decided about the wrong labels, in turn.
ACTIONS = ("keep", "accept", "edit", "drop", "keep", "accept", "edit", "drop")
QUICK = {"mean": "none", "label_transform": "none", "row_noise": "none"}


def make_frame():
    rng = np.random.default_rng(3)
    x, kind = np.round(rng.uniform(-2, 2, SIZE), 4), rng.choice(["a", "b"], SIZE)
    y = np.round(3 * x + (kind == "a") + 0.05 * rng.normal(size=SIZE), 3)
    y[list(WRONG)] += np.tile([2.0, -2.5], 4)
    return pd.DataFrame({"name": [f"s{k:03d}" for k in range(SIZE)], "x": x, "kind": kind, "y": np.round(y, 3)})


@pytest.fixture(scope="module")
def frame():
    return make_frame()


def reviewed(found, actions=ACTIONS, reviewer="Anna", positions=WRONG):
    """Decisions of a person about the wrong labels, as the page exports them."""
    content = json.loads(json.dumps(found.decisions))
    entries = {entry["position"]: entry for entry in content["decisions"]}
    assert set(positions) <= set(entries)
    for position, action in zip(positions, actions, strict=True):
        entry = entries[position]
        entry.update(action=action, reviewed=True, note=f"about {position}")
        if action == "edit":
            entry["value"] = round(entry["value"] + 0.01, 3)
        elif action != "accept":
            entry["value"] = None
    content["decisions"] = [entries[position] for position in positions]
    return {**content, "reviewer": reviewer, "exported": "2026-01-02T03:04:05.678Z"}


@pytest.fixture(scope="module")
def first(frame):
    return audit(frame, "y", id="name", **QUICK)


@pytest.fixture(scope="module")
def decisions(first):
    return reviewed(first)


def decided(found):
    """What the table says was decided, by the name of the row."""
    table = found.to_pandas()
    return {str(row): action for row, action in zip(table["row"], table["decided"], strict=True) if action}


def expected(names=WRONG, actions=ACTIONS, *, dropped=True):
    return {f"s{k:03d}": action for k, action in zip(names, actions, strict=True) if dropped or action != "drop"}


# ---- what a decision says to the next audit ------------------------------------------------------------------------------


def test_nothing_decided_is_asked_again_and_new_values_are_suggested(frame, first, decisions):
    assert set(WRONG) <= set(np.flatnonzero(first.findings.suspect))
    found = audit(frame, "y", id="name", decisions=decisions, **QUICK)
    table = found.to_pandas().set_index("row")
    assert decided(found) == expected()
    assert not table.loc[list(expected()), "suspect"].any()
    assert table.loc["s011", "suggested_label"] == decisions["decisions"][1]["value"]
    assert table.loc["s023", "suggested_label"] == decisions["decisions"][2]["value"]
    # The table shows the labels that the data has.
    np.testing.assert_array_equal(table["label"].sort_index(), frame["y"])
    assert found.summary["decided_before"] == {
        "files": ["decisions 1"],
        "labels": 8,
        **dict.fromkeys(("keep", "accept", "edit", "drop"), 2),
        "changed": [],
        "unmatched": 0,
        "ambiguous": 0,
        "dropped_before": 0,
        "not_looked_at": 0,
    }
    assert any("8 labels were decided earlier (2 kept, 2 accepted" in line for line in found.summary["summary"])
    assert "decided" not in first.to_pandas().columns


def test_known_labels_have_no_noise_of_their_own_and_others_see_new_values(frame, first, decisions):
    found = audit(frame, "y", id="name", decisions=decisions, **QUICK)
    kept, dropped = [4, 52], [37, 85]
    assert (first.model.noise_variance_[kept] > 0).all()
    np.testing.assert_array_equal(found.model.noise_variance_[kept], 0.0)
    # Kept labels, which the others find unlikely, spread the noise of right ones; and dropped ones take no part.
    assert found.model.base_noise_variance_ > first.model.base_noise_variance_
    assert np.isnan(found.model.labels_[dropped]).all()
    values = {entry["position"]: entry["value"] for entry in decisions["decisions"] if entry["value"] is not None}
    np.testing.assert_array_equal(found.model.labels_[list(values)], list(values.values()))


def test_verdicts_are_about_the_labels_that_were_seen(frame, first, decisions):
    """The calibration hears of the label that was wrong, whether the data was corrected since or not."""
    before = audit(frame, "y", id="name", decisions=decisions, **QUICK)
    cleaned = first.apply(decisions)
    after = audit(cleaned, "y", id="name", decisions=decisions, **QUICK)
    memory = after.findings.remembered
    place = {row: k for k, row in enumerate(cleaned["name"])}
    for entry in decisions["decisions"]:
        if entry["action"] in ("accept", "edit"):
            assert memory.originals[place[entry["row"]]] == entry["label"]
            assert memory.verdicts[place[entry["row"]]] == 1.0
    assert after.model.calibration_.learned is not None
    # Two rows less take part in the fit in both: the same labels give the same odds.
    one, other = before.model.calibration_.learned, after.model.calibration_.learned
    assert other.shift == pytest.approx(one.shift, abs=0.3)


def test_what_nobody_looked_at_is_no_verdict(frame, first):
    content = json.loads(json.dumps(first.decisions))
    for entry in content["decisions"][:2]:
        entry.update(action="keep", value=None)
    found = audit(frame, "y", id="name", decisions=content, **QUICK)
    memory = found.findings.remembered
    kept = [entry["row"] for entry in content["decisions"][:2]]
    assert memory.not_looked_at == 2
    assert not set(kept) & set(decided(found))
    assert set(kept) <= set(found.suspects["row"])
    assert not memory.right.any()
    assert np.isnan(memory.verdicts).all()
    assert any("nobody looked at them" in note for note in found.notes)


def test_a_decision_is_kept_until_it_is_applied_and_goes_on_with_the_next_ones(frame, first, decisions):
    found = audit(frame, "y", id="name", decisions=decisions, **QUICK)
    entries = {entry["position"]: entry for entry in found.decisions["decisions"]}
    assert set(WRONG) <= set(entries)
    assert entries[4]["action"] == "keep"
    assert entries[4]["reviewer"] == "Anna"
    pd.testing.assert_frame_equal(found.apply(), first.apply(found.decisions))
    # The later file alone says all that both say.
    again = audit(frame, "y", id="name", decisions=found.decisions, **QUICK)
    assert expected().items() <= decided(again).items()
    # And nothing of it is a verdict on a suspect of this audit.
    assert found.certify(found.decisions).drawn == 0


def test_a_later_review_leaves_what_was_decided_alone(frame, decisions):
    loose = audit(frame, "y", id="name", decisions=decisions, threshold="top-k", cutoff=6, **QUICK)
    assert len(loose.suspects) == 6
    new = loose.decisions
    for entry in new["decisions"]:
        if not entry["reviewed"]:
            entry.update(action="keep", reviewed=True)
    learned = loose.with_verdicts(new)
    assert decided(learned) == expected()
    assert not learned.to_pandas().set_index("row").loc[list(expected()), "suspect"].any()


# ---- how rows are found again ---------------------------------------------------------------------------------------------


def grown(frame):
    """More rows, in another order."""
    more = make_frame().iloc[:20].assign(name=[f"t{k:03d}" for k in range(20)], x=lambda rows: rows["x"] + 5.0)
    more["y"] = np.round(more["y"] + 15.0, 3)
    return pd.concat([frame, more]).sample(frac=1.0, random_state=2).reset_index(drop=True)


@pytest.mark.parametrize("by", ["id", "content"])
@pytest.mark.parametrize("applied", [False, True])
def test_rows_of_a_grown_and_reordered_table_are_found(frame, first, decisions, by, applied):
    data = grown(first.apply(decisions) if applied else frame)
    options = {"id": "name"} if by == "id" else {"drop": ["name"]}
    found = audit(data, "y", decisions=[decisions], **options, **QUICK)
    table = found.to_pandas()
    names = table["row"] if by == "id" else data["name"].to_numpy()[table["row"].to_numpy(dtype=int)]
    told = {str(name): action for name, action in zip(names, table["decided"], strict=True) if action}
    assert told == expected(dropped=not applied)
    assert not table.loc[table["decided"] != "", "suspect"].any()
    memory = found.findings.remembered
    assert (memory.unmatched, memory.ambiguous, memory.gone) == (0, 0, 2 if applied else 0)


def test_an_older_file_of_decisions_works_by_position_where_the_file_is_the_same(frame, decisions, tmp_path):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    old = audit(path, "y", **QUICK, drop=["name"]).decisions
    known = {"position", "row", "label", "action", "value", "note", "reviewed"}
    entries = [{**entry, "row": str(entry["position"])} for entry in decisions["decisions"]]
    older = {
        **{name: old[name] for name in ("format", "file", "label")},
        "decisions": [{name: entry[name] for name in known} for entry in entries],
    }
    found = audit(path, "y", decisions=older, drop=["name"], **QUICK)
    assert sorted(decided(found)) == sorted(str(position) for position in WRONG)
    # Even without labels: the file is the same.
    for entry in older["decisions"]:
        del entry["label"], entry["row"]
    assert len(decided(audit(path, "y", decisions=older, drop=["name"], **QUICK))) == len(WRONG)
    # In another file nothing tells where its rows are.
    frame.iloc[::-1].to_csv(path, index=False)
    found = audit(path, "y", decisions=older, drop=["name"], **QUICK)
    assert not decided(found)
    assert found.findings.remembered.unmatched == len(WRONG)
    assert any("8 decisions could not be matched with any row" in note for note in found.notes)


def test_a_label_that_is_neither_the_old_nor_the_new_one_is_asked_for_again(frame, decisions):
    data = frame.copy()
    data.loc[[4, 11], "y"] += 40.0
    found = audit(data, "y", id="name", decisions=decisions, **QUICK)
    assert found.summary["decided_before"]["changed"] == ["s004", "s011"]
    assert not {"s004", "s011"} & set(decided(found))
    assert {"s004", "s011"} <= set(found.suspects["row"])
    assert any(
        "2 labels are neither what was decided about nor the new value (rows s004, s011)" in n for n in found.notes
    )


@pytest.mark.parametrize(("alike", "ambiguous"), [(True, 0), (False, 2)])
def test_of_rows_that_hold_the_same_all_or_none_are_meant(frame, alike, ambiguous):
    twice = pd.concat([frame, frame.iloc[[4]]]).drop(columns="name").reset_index(drop=True)
    found = audit(twice, "y", **QUICK)
    both = reviewed(found, ["keep", "keep" if alike else "drop"], positions=(4, SIZE))
    assert [entry["copies"] for entry in both["decisions"]] == [2, 2]
    again = audit(twice.iloc[::-1].reset_index(drop=True), "y", decisions=both, **QUICK)
    memory = again.findings.remembered
    assert sorted(memory.decided) == ([0, SIZE - 4] if alike else [])
    assert memory.ambiguous == ambiguous
    # Of one decision nobody can tell which of both it is about.
    one = {**both, "decisions": both["decisions"][:1]}
    assert (
        audit(twice.iloc[::-1].reset_index(drop=True), "y", decisions=one, **QUICK).findings.remembered.ambiguous == 1
    )


def test_ids_that_are_there_twice_are_not_guessed(frame, decisions):
    data = pd.concat([frame, frame.iloc[[4]]]).reset_index(drop=True)
    memory = audit(data, "y", id="name", decisions=decisions, **QUICK).findings.remembered
    assert memory.ambiguous == 1
    assert 4 not in memory.decided


def test_another_sheet_of_the_same_workbook_is_another_table(frame, tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "two.xlsx"
    with pd.ExcelWriter(path) as book:
        frame.drop(columns="name").to_excel(book, sheet_name="one", index=False)
        frame.drop(columns="name").iloc[::-1].to_excel(book, sheet_name="two", index=False)
    chosen = reviewed(audit(path, "y", sheet="one", **QUICK))
    found = audit(path, "y", sheet="two", decisions=chosen, **QUICK)
    assert sorted(found.findings.remembered.decided) == sorted(SIZE - 1 - position for position in WRONG)


def test_missing_labels_that_were_filled_in_or_left_alone(frame):
    data = frame.copy()
    data.loc[[1, 2], "y"] = np.nan
    found = audit(data, "y", id="name", **QUICK)
    entry = {"label": None, "note": "", "reviewed": True}
    content = {
        **found.decisions,
        "decisions": [
            {**entry, "position": 1, "row": "s001", "action": "edit", "value": 2.5},
            {**entry, "position": 2, "row": "s002", "action": "keep", "value": None},
        ],
    }
    again = audit(data.iloc[::-1], "y", id="name", decisions=content, **QUICK)
    assert decided(again) == {"s001": "edit", "s002": "keep"}
    filled = data.assign(y=data["y"].where(data.index != 1, 2.5))
    assert decided(audit(filled.iloc[::-1], "y", id="name", decisions=content, **QUICK)) == {
        "s001": "edit",
        "s002": "keep",
    }


# ---- several reviewers ----------------------------------------------------------------------------------------------------


def test_reviewers_who_differ_are_both_heard_and_the_row_stays_open(frame, first, tmp_path):
    one, other = tmp_path / "anna.json", tmp_path / "ben.json"
    one.write_text(json.dumps(reviewed(first)))
    differing = ("accept", "accept", *ACTIONS[2:7], "keep")
    other.write_text(json.dumps(reviewed(first, differing, "Ben")))
    found = audit(frame, "y", id="name", decisions=[one, other], **QUICK)
    conflicts = {entry["row"]: entry["opinions"] for entry in found.summary["conflicts"]}
    assert set(conflicts) == {"s004", "s085"}
    assert [(opinion["file"], opinion["reviewer"], opinion["action"]) for opinion in conflicts["s085"]] == [
        (str(one), "Anna", "drop"),
        (str(other), "Ben", "keep"),
    ]
    assert set(decided(found)) == set(expected()) - set(conflicts)
    # The page asks for them whether they look wrong now or not.
    asked = report_content(found.findings, found.source)["again"]
    assert set(found.to_pandas()["row"].iloc[asked]) == set(conflicts)
    line = next(line for line in found.summary["summary"] if "Reviewers differ" in line)
    assert "Reviewers differ about 2 rows" in line
    assert "ben.json, Ben" in line
    # That one of both was carried out does not settle it.
    cleaned = first.apply(reviewed(first, differing, "Ben"))
    after = audit(cleaned, "y", id="name", decisions=[one, other], **QUICK)
    assert {entry["row"] for entry in after.summary["conflicts"]} == set(conflicts)


def test_a_decision_about_a_corrected_label_follows_the_first_one(frame, first, decisions):
    cleaned = first.apply(decisions)
    value = decisions["decisions"][1]["value"]
    later = {
        **first.decisions,
        "decisions": [
            {"position": 0, "row": "s011", "label": value, "action": "edit", "value": value + 0.5, "reviewed": True}
        ],
        "file": {"name": "cleaned", "sha256": "0" * 64, "rows": len(cleaned)},
    }
    for data in (cleaned, cleaned.assign(y=cleaned["y"].where(cleaned["name"] != "s011", value + 0.5))):
        found = audit(data, "y", id="name", decisions=[decisions, later], **QUICK)
        assert not found.summary["conflicts"]
        assert decided(found)["s011"] == "edit"


def test_agreeing_in_other_words_is_no_conflict(frame, first, decisions):
    other = json.loads(json.dumps(decisions))
    other["decisions"][1]["action"] = "edit"  # to the value that the other one accepted
    found = audit(frame, "y", id="name", decisions=[decisions, other], **QUICK)
    assert not found.summary["conflicts"]
    assert len(decided(found)) == len(WRONG)


def test_decisions_about_another_label_are_refused_or_go_to_it(frame, decisions):
    two = frame.assign(w=frame["y"] + 1.0)
    with pytest.raises(DecisionsError, match="about the label 'y', not about 'w': leave it out"):
        audit(two, "w", id="name", drop=["y"], decisions=decisions, **QUICK)
    found = audit(two, ["y", "w"], id="name", features=["x", "kind"], decisions=decisions, **QUICK)
    assert len(decided(found["y"])) == len(WRONG)
    assert found["w"].summary["decided_before"] is None
    with pytest.raises(DecisionsError, match="no such file"):
        audit(frame, "y", decisions="nowhere.json", **QUICK)


# ---- every format: audit, review, apply, audit again -----------------------------------------------------------------------


def write_csv(frame, path):
    frame.to_csv(path, index=False)


def write_excel(frame, path):
    pytest.importorskip("openpyxl")
    frame.to_excel(path, index=False)


def write_parquet(frame, path):
    pytest.importorskip("pyarrow")
    frame.astype({"y": "float32"}).to_parquet(path)


def write_xyz(frame, path):
    lines = [
        f"1\ny={y}\nHe {x} 0 {int(kind == 'a')}\n"
        for x, kind, y in zip(frame["x"], frame["kind"], frame["y"], strict=True)
    ]
    path.write_text("".join(lines))


def write_sdf(frame, path):
    Chem = pytest.importorskip("rdkit.Chem")
    with Chem.SDWriter(str(path)) as writer:
        for x, kind, y in zip(frame["x"], frame["kind"], frame["y"], strict=True):
            molecule = Chem.RWMol()
            molecule.AddAtom(Chem.Atom("He"))
            place = Chem.Conformer(1)
            place.SetAtomPosition(0, (float(x), 0.0, float(kind == "a")))
            molecule.AddConformer(place)
            molecule.SetProp("y", str(y))
            writer.write(molecule)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", write_csv),
        ("t.xlsx", write_excel),
        ("t.parquet", write_parquet),
        ("t.xyz", write_xyz),
        ("t.sdf", write_sdf),
    ],
)
def test_audit_review_apply_and_audit_again(frame, tmp_path, name, write):
    path = tmp_path / name
    write(frame, path)
    molecules = name.endswith(("xyz", "sdf"))

    def run(path, rows, **more):
        # Molecules are judged by predictions, which takes no time.
        own = {"predictions": 3 * rows["x"].to_numpy() + (rows["kind"] == "a").to_numpy()} if molecules else {}
        own = own or {"drop": ["name"]}
        return audit(path, "y", **own, **QUICK, **more)

    found = run(path, frame)
    chosen = reviewed(found)
    decisions = tmp_path / "decisions.json"
    decisions.write_text(json.dumps(chosen))
    done = found.apply(decisions, output=tmp_path / f"cleaned{path.suffix}")
    left = frame.drop(index=[position for position, action in zip(WRONG, ACTIONS, strict=True) if action == "drop"])
    again = run(done.target, left, decisions=decisions)
    where = left.index.get_indexer([k for k, action in zip(WRONG, ACTIONS, strict=True) if action != "drop"])
    assert sorted(again.findings.remembered.decided) == sorted(where)
    assert not again.findings.suspect[where].any()
    memory = again.findings.remembered
    assert (memory.unmatched, memory.ambiguous, memory.changed, memory.gone) == (0, 0, {}, 2)
    # Also in the file as it was, and in another order.
    same = run(path, frame, decisions=decisions)
    assert sorted(same.findings.remembered.decided) == list(WRONG)
    turned = tmp_path / f"turned{path.suffix}"
    write(frame.iloc[::-1].reset_index(drop=True), turned)
    other = run(turned, frame.iloc[::-1], decisions=decisions)
    assert sorted(other.findings.remembered.decided) == sorted(SIZE - 1 - position for position in WRONG)


def test_from_the_command_line(frame, tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "out"
    frame.to_csv(path, index=False)
    run = ["audit", str(path), "--label", "y", "--id", "name", "--mean", "none", "--out", str(out)]
    assert main([*run, "--quiet"]) == 0
    anna = tmp_path / "anna.json"
    anna.write_text(json.dumps(reviewed(audit(path, "y", id="name", **QUICK))))
    capsys.readouterr()
    assert main([*run, "--decisions", str(anna), str(anna)]) == 0
    assert "8 labels were decided earlier" in capsys.readouterr().out
    table = pd.read_csv(out / "audit.csv")
    assert table["decided"].notna().sum() == len(WRONG)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["decided_before"]["files"] == [str(anna), str(anna)]
    assert "were decided earlier" in (out / "report.html").read_text()
    assert read_decisions(anna).reviewer == "Anna"
