"""Certified by review: which decisions are verdicts, in which order suspects come, and what is certain then."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from mislabel import audit
from mislabel.auditing.certify import ReviewCertificate, certify_file
from mislabel.cli import main
from mislabel.decisions.certificates import Bound, most_right
from mislabel.errors import DecisionsError, InvalidParameterError, ResultsError
from mislabel.report.drawn_sample import DrawnSample

SIZE, SUSPECTS = 150, 40


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    x = rng.uniform(-2, 2, SIZE)
    return pd.DataFrame(
        {"name": [f"n{k:03d}" for k in range(SIZE)], "x": x, "y": np.round(x + rng.normal(size=SIZE), 3)}
    )


@pytest.fixture(scope="module")
def result(frame):
    """A model that knows nothing: suspects are the labels farthest from it."""
    return audit(frame, "y", id="name", mean="none", threshold="top-k", cutoff=SUSPECTS)


def looked_at(result, actions):
    """Decisions of a person: actions by position."""
    values = {"accept": 0.0, "edit": 1.0}
    return {
        **result.decisions,
        "decisions": [
            {"position": int(k), "action": action, "value": values.get(action), "reviewed": True}
            for k, action in actions.items()
        ],
    }


def drawn(result):
    """Positions of the suspects in the order of the sample."""
    sample = DrawnSample.of(result.findings, result.source)
    return sample.positions[sample.order].tolist()


def test_keep_says_right_and_all_else_wrong(result):
    order = drawn(result)
    actions = dict(zip(order, ["accept", "keep", "edit", "drop", "keep", "accept"], strict=False))
    certificate = result.certify(looked_at(result, actions))
    assert (certificate.drawn, certificate.right) == (6, 2)
    assert certificate.suspects == SUSPECTS
    assert certificate.lines[0] == "6 of 40 suspects were reviewed as a random sample: 2 of them are right labels."
    bound = certificate.bound()
    assert bound.right == most_right(40, 6, 2, 0.025, 0.05)
    share = f"{100 * bound.right / 40:.3g} %"
    assert (
        certificate.lines[1] == f"With 95 % confidence at most {bound.right} of 40 suspects ({share}) are right labels."
    )
    assert "Look next at: " + ", ".join(result.findings.frame["name"][k] for k in order[6:16]) in repr(certificate)
    assert "are right labels.</p>" in certificate._repr_html_()


def test_without_verdicts_it_says_what_to_look_at_first(result):
    certificate = result.certify()
    assert certificate.bound().right == SUSPECTS
    assert certificate.lines[0].startswith("None of the random sample has been reviewed yet: all of 40 suspects may")
    assert certificate.next(3) == [f"n{k:03d}" for k in drawn(result)[:3]]
    assert json.loads(json.dumps(certificate.as_dict(2)))["next"] == [
        {"row": f"n{k:03d}", "position": k} for k in drawn(result)[:2]
    ]


def test_decisions_that_nobody_looked_at_are_refused(result):
    with pytest.raises(DecisionsError, match='no entry about a suspect says "reviewed": true'):
        result.certify(result.decisions)
    mixed = copy.deepcopy(result.decisions)
    first = drawn(result)[0]
    next(entry for entry in mixed["decisions"] if entry["position"] == first)["reviewed"] = True
    certificate = result.certify(mixed)
    assert (certificate.drawn, certificate.right, certificate.not_reviewed) == (1, 0, 39)
    assert "39 decisions on rows that nobody looked at one by one do not count." in certificate.lines


def test_decisions_about_other_rows_say_nothing(result):
    trusted = int(np.flatnonzero(~result.findings.suspect)[0])
    assert result.certify(looked_at(result, {trusted: "keep"})).lines == result.certify().lines
    assert result.certify(result.decisions | {"decisions": []}).drawn == 0


def test_verdicts_beside_the_sample_count_for_their_own_rows(result):
    order = drawn(result)
    certificate = result.certify(looked_at(result, {order[0]: "accept", order[20]: "drop", order[30]: "keep"}))
    assert (certificate.drawn, certificate.right) == (1, 0)
    assert "2 verdicts beside the random sample say nothing of other rows." in certificate.lines
    assert certificate.bound([f"n{order[20]:03d}"]) == Bound(0, 1)
    assert certificate.bound([f"n{order[20]:03d}", f"n{order[30]:03d}"]) == Bound(1, 2)


def test_bounds_of_rows_by_their_ids(result):
    order = drawn(result)
    certificate = result.certify(looked_at(result, dict.fromkeys(order[:30], "accept")))
    table = result.findings.table
    some = certificate.bound(table["row"].head(20))
    assert some.size == 20
    assert some.right <= min(certificate.bound().right, 20 - 5)
    with pytest.raises(InvalidParameterError, match="rows n.*, ... are no suspects of this audit"):
        certificate.bound([row for row in table["row"] if row not in set(table["row"].head(SUSPECTS))])
    sample = DrawnSample(np.arange(3), ["a", "a", "b"], np.arange(3), 0.05)
    with pytest.raises(InvalidParameterError, match="row a: several suspects have this id"):
        ReviewCertificate(sample, {}).bound(["a"])
    assert ReviewCertificate(sample, {}).bound(["a", "a"]).size == 2


def test_nobody_chooses_the_order(frame, result):
    again = audit(frame, "y", id="name", mean="none", threshold="top-k", cutoff=SUSPECTS, random_state=5)
    assert drawn(again) == drawn(result)
    assert drawn(result) != sorted(drawn(result))
    fewer = audit(frame, "y", id="name", mean="none", threshold="top-k", cutoff=SUSPECTS - 1)
    common = set(drawn(fewer))
    assert drawn(fewer) != [k for k in drawn(result) if k in common]


def test_rows_without_an_id_are_named_by_where_they_stand(frame):
    unnamed = frame.assign(name=[None] * SIZE)
    unnamed.loc[0, "name"] = "first"
    result = audit(unnamed, "y", id="name", mean="none", threshold="top-k", cutoff=SIZE)
    names = result.certify().next(SIZE)
    assert set(names) == {"first", *(f"position {k}" for k in range(1, SIZE))}
    assert result.certify().bound(names[:7]).size == 7


def test_the_promise_and_the_cut():
    # Right labels are the last of the suspects: for the others the promised rate becomes certain.
    total = 300
    right = np.arange(total) >= 250
    sample = DrawnSample(
        np.arange(total), [str(k) for k in range(total)], np.random.default_rng(0).permutation(total), 0.1
    )
    verdicts = {int(k): bool(right[k]) for k in sample.order[:200]}
    certificate = ReviewCertificate(sample, verdicts)
    assert 0 < certificate.cut < 290
    assert f"The promised 10 % is certain so far for the {certificate.cut} most suspicious only." in certificate.lines
    found = certificate.as_dict()
    assert (found["promised"], found["promise_holds"], found["cut"]) == (0.1, False, certificate.cut)
    assert certificate.bound(range(certificate.cut)).share <= 0.1
    few = ReviewCertificate(sample, dict(list(verdicts.items())[:5]))
    assert "The promised 10 % is not certain yet, not even for the most suspicious." in few.lines
    all_wrong = ReviewCertificate(sample, dict.fromkeys(verdicts, False))
    assert "The promised 10 % is certain." in all_wrong.lines
    assert all_wrong.as_dict()["promise_holds"] is True


def test_no_suspects_leave_nothing_to_certify():
    sample = DrawnSample(np.arange(0), [], np.arange(0), 0.05)
    certificate = ReviewCertificate(sample, {4: True})
    assert repr(certificate) == "No label was called suspect: there is nothing to certify."
    assert certificate.as_dict()["most_right"] == 0


def test_everything_holds_at_every_moment_when_suspects_are_drawn_by_lot():
    # A model that is wrong in every way: suspects are labels taken at random, of which 30 % are right. After every verdict
    # of the whole review, the bounds for all, for the most suspicious, for the rest and the cut are compared with the truth.
    rng, total, runs, broken = np.random.default_rng(9), 60, 150, 0
    for _ in range(runs):
        right = rng.random(total) < 0.3
        sample = DrawnSample(np.arange(total), [str(k) for k in range(total)], rng.permutation(total), 0.05)
        fails = False
        for size in range(1, total, 2):
            verdicts = {int(k): bool(right[k]) for k in sample.order[:size]}
            certificate = ReviewCertificate(sample, verdicts)
            unseen = [k for k in range(total) if k not in verdicts]
            for chosen in (range(total), range(10), range(30), unseen, np.flatnonzero(right)):
                fails |= certificate.bound(chosen).right < np.count_nonzero(right[list(chosen)])
            fails |= bool(certificate.cut) and right[: certificate.cut].mean() > 0.05
        broken += fails
    assert broken / runs <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / runs)


@pytest.fixture(scope="module")
def audited(frame, tmp_path_factory):
    """A file, the folder of its audit, and the result."""
    folder = tmp_path_factory.mktemp("certified")
    path = folder / "table.csv"
    spoiled = frame.assign(y=frame["x"] + 0.01 * np.random.default_rng(1).normal(size=SIZE))
    spoiled.loc[np.arange(0, SIZE, 12), "y"] += 5.0
    spoiled.to_csv(path, index=False)
    out = folder / "table-audit"
    result = audit(path, "y", id="name", mean="none")
    result.write(out)
    return path, out, result


def written(folder, decisions):
    path = folder / "decisions.json"
    path.write_text(json.dumps(decisions), encoding="utf-8")
    return path


def test_command_line_file_and_result_say_the_same(audited, tmp_path, capsys, monkeypatch):
    path, out, result = audited
    actions = dict.fromkeys(drawn(result)[:6], "drop")
    decisions = written(tmp_path, looked_at(result, actions))
    assert main(["certify", str(path), str(decisions), "--audit", str(out), "--next", "3"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == result.certify(decisions).told(3)
    assert "6 of 13 suspects were reviewed as a random sample: 0 of them are right labels." in told
    # Without a folder it looks where the audit writes by default.
    monkeypatch.chdir(path.parent)
    assert main(["certify", "table.csv", str(decisions), "--json", "--confidence", "0.8"]) == 0
    assert json.loads(capsys.readouterr().out) == result.certify(decisions, confidence=0.8).as_dict()
    assert certify_file(path, decisions, out).as_dict() == result.certify(looked_at(result, actions)).as_dict()


def test_the_summary_holds_the_order(audited):
    out, result = audited[1:]
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))["certificate"]
    assert [found["suspects"][place] for place in found["order"]] == drawn(result)
    assert found["rows"] == result.findings.table["row"].head(13).tolist()
    assert found["promised"] == 0.05


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "x"}, "these decisions are about the label 'x', but .* holds the audit of 'y'"),
        ({"file": {"name": "t", "sha256": "0" * 64, "rows": SIZE}}, "were made about other data"),
        (
            {"file": {"name": "t", "sha256": "0" * 64, "rows": 3}, "decisions": []},
            "of 3 rows, not about 'y' of 150 rows",
        ),
        ({"format": "mislabel-decisions/9"}, "not a decisions file of this version"),
    ],
)
def test_decisions_of_something_else_are_refused(audited, tmp_path, capsys, changes, message):
    path, out, result = audited
    decisions = written(tmp_path, looked_at(result, {0: "keep"}) | changes)
    with pytest.raises(DecisionsError, match=message):
        certify_file(path, decisions, out)
    assert main(["certify", str(path), str(decisions), "--audit", str(out)]) == 2
    assert capsys.readouterr().err.startswith("mislabel: ")


def test_folders_that_hold_no_such_audit_are_refused(audited, tmp_path, capsys):
    path, out, result = audited
    decisions = written(tmp_path, looked_at(result, {0: "keep"}))
    with pytest.raises(ResultsError, match="holds no results of an audit: name the folder they are in with --audit"):
        certify_file(path, decisions, tmp_path)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))

    def refused(text):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(ResultsError) as caught:
            certify_file(path, decisions, tmp_path)
        return str(caught.value)

    assert "cannot be read" in refused("{")
    assert "holds no summary" in refused("[1]")
    assert "drew no random sample" in refused(json.dumps({k: v for k, v in summary.items() if k != "certificate"}))
    order = summary["certificate"]["order"]
    for broken in (
        {"order": order[1:]},
        {"order": [0, *order[1:-1], 0]},
        {"order": None},
        {"suspects": [SIZE, *range(12)]},
        {"rows": ["a"]},
        {"promised": 5},
    ):
        assert "is damaged" in refused(json.dumps({**summary, "certificate": {**summary["certificate"], **broken}}))
    changed = tmp_path / "table.csv"
    changed.write_bytes(path.read_bytes() + b"n150,0.5,0.5\n")
    with pytest.raises(ResultsError, match="does not hold the audit of table.csv as it is now"):
        certify_file(changed, decisions, out)


def test_of_several_labels_the_one_of_the_decisions_counts(frame, tmp_path):
    path = tmp_path / "two.csv"
    frame.assign(w=frame["y"] ** 2).to_csv(path, index=False)
    results = audit(path, ["y", "w"], id="name", mean="none", threshold="top-k", cutoff=12)
    results.write(tmp_path / "two-audit")
    decisions = written(tmp_path, looked_at(results["w"], {drawn(results["w"])[0]: "keep"}))
    assert certify_file(path, decisions, tmp_path / "two-audit").as_dict() == results["w"].certify(decisions).as_dict()
    assert results["w"].certify(decisions).right == 1
    with pytest.raises(DecisionsError, match="about the label 'w'"):
        results["y"].certify(decisions)


@pytest.mark.parametrize("options", [["--confidence", "1.5"], ["--next", "-1"], ["--next", "many"]])
def test_wrong_options_exit_with_two(audited, tmp_path, capsys, options):
    path, out, result = audited
    decisions = written(tmp_path, looked_at(result, {drawn(result)[0]: "keep"}))
    try:
        status = main(["certify", str(path), str(decisions), "--audit", str(out), *options])
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    assert options[1] in capsys.readouterr().err


def test_a_review_changes_the_odds_of_all_other_labels(audited):
    path, _, result = audited
    order = drawn(result)
    spoiled = set(range(0, SIZE, 12))
    actions = {k: ("accept" if k in spoiled else "keep") for k in order[:5]}
    decisions = looked_at(result, actions)
    decisions["decisions"][0] |= {"action": "edit", "value": 1.25}
    kept = int(result.findings.positions[-1])
    decisions["decisions"].append({"position": kept, "action": "keep", "reviewed": True})
    learned = result.with_verdicts(decisions)
    table, ids = learned.table.set_index("row"), result.findings.frame["name"]
    wrong = [ids[k] for k, action in actions.items() if action == "accept"]
    assert table.loc[wrong, "suspect"].all()
    assert (table.loc[wrong, "q_value"] == 0.0).all()
    assert table.loc[ids[order[0]], "suggested_label"] == 1.25
    assert not table.loc[ids[kept], "suspect"]
    assert table.loc[ids[kept], "q_value"] == 1.0
    rest = [name for name in ids if name not in {*wrong, ids[kept]}]
    before = result.table.set_index("row")
    assert not np.allclose(table.loc[rest, "score"], before.loc[rest, "score"])
    assert learned.notes[-1] == "A review found 1 label right and 5 wrong; the odds of all others follow it."
    # The result is an audit like any other; the former one is as it was.
    assert set(np.flatnonzero(learned.findings.suspect)) == spoiled
    assert learned.summary["suspects"] == 13
    assert result.model.calibration_.learned is None
    assert result.table.set_index("row").equals(before)
    assert learned.certify(decisions).bound(wrong).right == 0


def test_kept_suspects_leave_the_list_and_bring_others_down(result):
    order = drawn(result)
    learned = result.with_verdicts(looked_at(result, dict.fromkeys(order[:30], "keep")))
    table = learned.findings.table
    at = learned.findings.ranks[order[:30]]
    assert not table["suspect"].to_numpy()[at].any()
    assert (table["suggested_label"] == table["label"]).to_numpy()[at].all()
    with pytest.raises(DecisionsError, match='no entry about a suspect says "reviewed": true'):
        result.with_verdicts(result.decisions)


def test_the_results_of_a_review_can_be_written(audited, tmp_path):
    result = audited[2]
    learned = result.with_verdicts(looked_at(result, dict.fromkeys(drawn(result)[:5], "drop")))
    out = learned.write(tmp_path / "after")
    found = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert "A review found 0 labels right and 5 wrong; the odds of all others follow it." in found["notes"]
    assert learned.apply(output=tmp_path / "cleaned.csv").corrected == 13
