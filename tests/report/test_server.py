"""The local server: only this machine, only with the token, only the page and its decisions."""

import http.client
import json
import threading

import pytest

from mislabel.errors import InvalidParameterError, ResultsError
from mislabel.report.server import HOST, LARGEST, ReviewServer

from .pages import made_up, written
from .test_kept_decisions import text

START = '<script type="application/json" id="content">'


@pytest.fixture
def server(tmp_path):
    written(tmp_path / "report.html", made_up())
    (tmp_path / "secret.txt").write_text("secret")
    with ReviewServer(tmp_path) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


class Answer:
    def __init__(self, found):
        self.status, self.headers, self.body = found.status, found.headers, found.read()

    @property
    def content(self):
        return json.loads(self.body)


def ask(server, method="GET", place="", *, path=None, body=None, **headers):
    """A request as the page makes it, but for headers (with _ for -) that are given; None leaves one out."""
    usual = {"Host": server.host}
    if method == "PUT":
        usual |= {"Origin": f"http://{server.host}", "Content-Type": "application/json", "If-Match": "none"}
        usual |= {"Content-Length": str(len(body or b""))}
    usual |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(*server.server_address, timeout=10)
    connection.putrequest(method, path or f"/{server.token}/{place}", skip_host=True, skip_accept_encoding=True)
    for name, value in usual.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    try:
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_the_page_is_served_and_may_ask_its_own_server_only(server):
    answer = ask(server)
    assert answer.status == 200
    assert b"<!DOCTYPE html>" in answer.body
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_page_in_the_folder_asks_nobody(server, tmp_path):
    assert "connect-src 'none'" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_decisions_are_saved_and_read(server, tmp_path):
    assert ask(server, place="decisions").content == {"revision": "none", "content": None, "problem": None}
    saved = ask(server, "PUT", "decisions", body=text("keep", "drop"))
    assert saved.status == 200
    assert (tmp_path / "decisions.json").read_bytes() == text("keep", "drop")
    found = ask(server, place="decisions").content
    assert found["revision"] == saved.content["revision"]
    assert len(found["content"]["decisions"]) == 2


def test_a_stale_save_is_a_conflict(server, tmp_path):
    first = ask(server, "PUT", "decisions", body=text("keep")).content["revision"]
    assert ask(server, "PUT", "decisions", body=text("drop"), If_Match=first).status == 200
    refused = ask(server, "PUT", "decisions", body=text(), If_Match=first)
    assert refused.status == 409
    assert "changed since" in refused.content["problem"]
    assert (tmp_path / "decisions.json").read_bytes() == text("drop")


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:80"}, 403),
        ({"Host": None}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
    ],
)
def test_other_hosts_and_origins_are_refused(server, tmp_path, method, changes, status):
    answer = ask(server, method, "decisions", body=text("keep") if method == "PUT" else None, **changes)
    assert answer.status == status
    assert not (tmp_path / "decisions.json").exists()
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Origin": None}, 403),
        ({"Content_Type": "text/plain"}, 403),
        ({"If_Match": None}, 428),
        ({"Content_Length": None}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "1e3"}, 411),
        ({"Content_Length": str(LARGEST + 1)}, 413),
        ({"Content_Length": "9" * 100}, 411),
    ],
)
def test_saves_that_no_page_makes_are_refused(server, tmp_path, changes, status):
    assert ask(server, "PUT", "decisions", body=text("keep"), **changes).status == status
    assert not (tmp_path / "decisions.json").exists()


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", text("explode"), text("keep", label="other")])
def test_what_are_no_decisions_is_refused(server, tmp_path, body):
    answer = ask(server, "PUT", "decisions", body=body)
    assert answer.status == 422
    assert "decisions" in answer.content["problem"]
    assert not (tmp_path / "decisions.json").exists()


def test_nothing_is_found_without_the_token_or_beside_the_page(server):
    token = server.token
    paths = ["/", "/decisions", f"/{token}", f"/{token}/secret.txt", f"/{token}/report.html", f"/{token}/../secret.txt"]
    paths += [f"/{token}/decisions/", f"/{token}//", f"/{token}/?x", f"/{token[:-1]}/", f"/{token}x/"]
    paths += ["/%2e%2e/secret.txt", f"/{token.swapcase()}/decisions", f"http://{server.host}/{token}/"]
    for path in paths:
        answer = ask(server, path=path)
        assert answer.status == 404, path
        assert b"secret" not in answer.body
        assert token.encode() not in answer.body


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "CONNECT"])
def test_other_methods_are_refused(server, method):
    assert ask(server, method, "decisions").status == 501


def test_the_page_itself_cannot_be_replaced(server):
    assert ask(server, "PUT", body=text("keep")).status == 405


def test_it_listens_on_this_machine_alone_with_a_new_token_each_time(server, tmp_path):
    assert server.server_address[0] == HOST == "127.0.0.1"
    with ReviewServer(tmp_path) as other:
        assert other.token != server.token
        assert len(other.token) >= 40
        assert other.url == f"http://127.0.0.1:{other.server_address[1]}/{other.token}/"


def test_a_port_in_use_is_named(server, tmp_path):
    with pytest.raises(InvalidParameterError, match=f"port {server.server_address[1]} cannot be used"):
        ReviewServer(tmp_path, server.server_address[1])


def test_a_full_disk_is_told(server, tmp_path, monkeypatch):
    def fail(raw, revision):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server.kept, "save", fail)
    answer = ask(server, "PUT", "decisions", body=text("keep"))
    assert answer.status == 500
    assert "No space left on device" in answer.content["problem"]


def test_of_a_page_only_its_data_is_taken(tmp_path):
    page = written(tmp_path / "report.html", made_up())
    page.write_text(page.read_text(encoding="utf-8").replace("<h1", "<script>hacked()</script><h1"), encoding="utf-8")
    with ReviewServer(tmp_path) as server:
        assert b"hacked" not in server.page


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no report.html"),
        ({"a/report.html": "", "b/report.html": ""}, "holds several audits; name one"),
        ({"report.html": "<html>"}, "was not written by this version"),
        ({"report.html": f'{START}{{"format": "mislabel-report/1"}}</script>'}, "is damaged: KeyError 'label'"),
        (
            {"report.html": f'{START}{{"format": "mislabel-report/1", "label": 1, "file": 2}}</script>'},
            "is damaged: TypeError",
        ),
        ({"report.html": '<script type="application/json" id="content">{</script>'}, "was not written by this version"),
        (
            {"report.html": '<script type="application/json" id="content">[]</script>'},
            "was not written by this version",
        ),
    ],
)
def test_folders_without_a_page_are_refused_in_words(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    with pytest.raises(ResultsError, match=message):
        ReviewServer(tmp_path)


def test_a_file_instead_of_a_folder_is_refused_in_words(tmp_path):
    (tmp_path / "table.csv").write_text("a,b")
    with pytest.raises(ResultsError, match="is a file: name the folder"):
        ReviewServer(tmp_path / "table.csv")
