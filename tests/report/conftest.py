import shutil

import numpy as np
import pandas as pd
import pytest

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="session")
def hostile_file(tmp_path_factory):
    """A table whose names, ids and cells try to do harm; six of its labels are wrong."""
    rng = np.random.default_rng(3)
    size = 90
    x, w = rng.uniform(-2, 2, size), rng.uniform(-2, 2, size)
    label = np.round(3 * np.sin(x) + w + 10 + 0.05 * rng.normal(size=size), 3)
    wrong = [5, 17, 31, 44, 58, 73]
    label[wrong] *= 10
    ids = [f"id{k}" for k in range(size)]
    ids[5] = HOSTILE
    ids[17] = "=cmd|' /C calc'!A0"
    ids[31] = "\u202eright to left \u05d0\u05d1"
    ids[44] = "bell\x07 escape\x1b[31m red"
    ids[58] = "quotes \" and ' and </script><script>window.hacked=2</script>"
    text = rng.choice(["a", "b"], size).astype(object)
    text[17] = "L" * 1_000_000
    text[31] = "@SUM(1)"
    frame = pd.DataFrame(
        {
            "id": ids,
            "x, with comma": x,
            'quote " <b>bold</b>\nnew line': w,
            HOSTILE: text,
            "label": label,
        }
    )
    path = tmp_path_factory.mktemp("hostile") / "hostile <b>.csv"
    frame.to_csv(path, index=False)
    return path, set(wrong), frame


@pytest.fixture(scope="session")
def audited(hostile_file, tmp_path_factory):
    """The hostile table, audited by the command line into a folder."""
    from mislabel.cli import main

    path, _, _ = hostile_file
    folder = tmp_path_factory.mktemp("audited")
    assert (
        main(["audit", str(path), "--label", "label", "--id", "id", "--out", str(folder), "--mean", "none", "--quiet"])
        == 0
    )
    return folder


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip(
        "playwright.sync_api", reason="the page is tested through playwright, which is not installed"
    )
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("the page is tested in chromium, which is not installed")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--no-first-run"]
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=quiet)
        yield running
        running.close()
