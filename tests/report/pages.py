"""Review pages in a browser, and the data inside them."""

import json

import numpy as np

from mislabel.report.content import CONTENT_FORMAT, _audit_id, _packed
from mislabel.report.html import render_page

KINDS = {
    "position": "<i4",
    "label": "<f8",
    "expected": "<f8",
    "half": "<f8",
    "suggested": "<f8",
    "z": "<f4",
    "q": "<f4",
    "suspect": "u1",
    "detectable": "<f4",
}


#: Milliseconds that a browser may take to pass on what a page stored.
STORED_WITHIN = 500


class Page:
    """A page that remembers what must not happen: console messages, errors, requests."""

    def __init__(self, browser, path, **options):
        self.context = options.pop("context", None) or browser.new_context(accept_downloads=True, **options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.address = path.as_uri()
        self.open()

    def _request(self, request):
        if request.url != self.address and not request.url.startswith(("data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def open(self):
        if self.page.url == self.address:
            # What a page stores reaches the browser's storage a moment later; a page that replaces it at once may come before.
            self.page.wait_for_timeout(STORED_WITHIN)
        self.page.goto(self.address)
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def rows(self):
        return [row.inner_text() for row in self.page.locator("tr.row > th").all()]

    def verdicts(self):
        return self.page.locator("tr.row .verdict").all_inner_texts()

    def download(self, button, folder):
        with self.page.expect_download() as started:
            self.page.click(button)
        target = folder / started.value.suggested_filename
        started.value.save_as(target)
        return target

    def decisions(self, folder):
        """The exported decisions, by position, without the evidence that this page shows beside them."""
        found = {item["position"]: item for item in self.exported(folder)["decisions"]}
        return {position: {name: item[name] for name in item if name != "evidence"} for position, item in found.items()}

    def exported(self, folder):
        """All of the exported file."""
        return json.loads(self.download("#export-decisions", folder).read_text(encoding="utf-8"))

    def n_decided(self):
        """How many decisions the page counts."""
        tally = self.page.inner_text("#progress").split(";")[1]
        return sum(int(word) for word in tally.split() if word.isdigit())

    def find(self, position):
        """Open the row at a position of the file."""
        self.page.select_option("#view", "all")
        row = self.page.locator("tr.row").filter(has=self.page.get_by_text(f"row-{position}!", exact=True))
        if self.page.locator("tr.row.current + tr.detail").count() == 0 or "current" not in row.get_attribute("class"):
            row.click()
        row.focus()
        return row

    def verdict(self, position):
        return self.find(position).locator(".verdict").inner_text()


class Served(Page):
    """A page of a server; requests to the server itself are allowed."""

    def _request(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def saved(self):
        """Wait until everything is saved."""
        self.page.locator("#saved", has_text="All decisions are saved.").wait_for()


class Address(str):
    def as_uri(self):
        return str(self)


def made_up(size=20, *, order=None, label=None, suggested=None, suspects=8, **changes):
    """The content of a page about rows that are called row-0!, row-1!, ...; ``order`` lists positions by rank."""
    order = np.arange(size) if order is None else np.asarray(order)
    label = 100.0 + np.arange(size) if label is None else np.asarray(label, dtype=float)
    suggested = label + 0.5 if suggested is None else np.asarray(suggested, dtype=float)
    columns = {
        "position": order,
        "label": label[order],
        "expected": suggested[order],
        "half": np.full(order.size, 0.25),
        "suggested": suggested[order],
        "z": np.linspace(9, 0, order.size),
        "q": np.linspace(0, 1, order.size),
        "suspect": np.arange(order.size) < suspects,
        "detectable": np.full(order.size, 1.5),
    }
    rows = {name: _packed(values, KINDS[name]) for name, values in columns.items()}
    content = {
        "format": CONTENT_FORMAT,
        "version": "0",
        "audit": _audit_id(rows),
        "file": {"name": "made up.csv", "sha256": "0" * 64, "rows": size, "sheet": None, "apply": None},
        "label": "y",
        "numbers": {"decimal": ".", "thousands": "", "decimals": None, "most": None},
        "id": "id",
        "fdr": 0.05,
        "suspects": suspects,
        "words": [],
        "meaning": "",
        "kinds": [],
        "settings": {"mislabel": "0"},
        "contents": None,
        "earlier": [],
        "again": [],
        "trust": [],
        "patternLine": "",
        "patterns": [],
        "used": [],
        "leftOut": [],
        "notes": [],
        "byFeature": [],
        "calibration": [[0.5, 0.5], [0.95, 0.95]],
        "detectable": {"sizes": [1.0, 2.0, 4.0], "shares": [0.1, 0.5, 0.9]},
        "histogram": {"edges": [-6, 0, 6], "trusted": [1, 1], "suspect": [0, 0], "cut": None, "beyond": 0},
        "rows": rows,
        "certificate": {
            "order": _packed(np.random.default_rng(0).permutation(suspects), "<i4"),
            "confidence": 0.95,
            "expected": 0.05,
            "promised": 0.05,
        }
        if suspects
        else None,
        "ids": [f"row-{position}!" for position in order],
        "details": {"columns": [], "features": [], "rank": {}, "near": [], "nearOf": [], "gaps": {}},
        "telling": None,
        "cells": None,
    }
    return {**content, **changes}


def written(path, content):
    path.write_text(render_page(content), encoding="utf-8")
    return path
