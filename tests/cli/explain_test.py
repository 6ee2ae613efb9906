#!/usr/bin/python3
"""facetheory explain says what a running gateway then does, in every state of a page, and changes nothing by it.

    explain_test.py --facetheory build/release/facetheory [WORD...]
"""
import contextlib
import http.server
import os
import pathlib
import shutil
import subprocess
import threading

import harness
from harness import Cli, Gateway, same, until


class Origin(http.server.ThreadingHTTPServer):
    """Pages that say how often they were asked for. /greeting is one for each language, /broken fails once `broken` is
    set."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.broken, self.renders = False, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        self.server.renders += 1
        body = f"{self.path} {self.server.renders}".encode()
        self.send_response(500 if self.server.broken else 200)
        if self.path == "/greeting":
            self.send_header("Vary", "Accept-Language")
            body = self.headers.get("Accept-Language", "none").encode()
        if self.path == "/tagged":
            self.send_header("Cache-Tag", "from-the-origin")
        if self.path == "/strict":
            self.send_header("Cache-Control", "max-age=1, must-revalidate")
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def site(cli, lines="", revalidate="1h", top=""):
    """An origin and a gateway; `explain` is asked with the gateway's own configuration, and its URL before every
    path."""
    with Origin() as origin:
        cli.file(
            "facetheory.toml",
            f'origin = "{origin.url}"\n{top}[defaults]\nrevalidate = "{revalidate}"\n{lines}'.encode(),
        )
        with Gateway(cli) as gateway:
            yield origin, gateway, lambda path, *words: cli("explain", gateway.url + path, *words)
        origin.shutdown()


def row(answer, sk):
    return next((row for row in answer["rows"] if row["sk"] == sk), None)


def a_page_goes_from_wait_to_hit_and_its_rows_are_shown(cli):
    with site(cli, '[[routes]]\npattern = "/{name}"\nhistory = 5\ntags = ["all", "one-{name}"]\n') as (
        origin,
        gateway,
        explain,
    ):
        before = explain("/a").is_(
            "wait",
            state="missing",
            route="/{name}",
            configured_in="facetheory.toml:4",
            rows=[],
            url=gateway.url + "/a",
            cache_key=gateway.url + "/a",
            route_tags=["all", "one-a"],
        )
        if "up to 30 s" not in before["next"] or "an error" not in before["next"]:
            raise AssertionError(before)
        same(origin.renders, 0)
        same(cli("lease", "show", gateway.url + "/a")["outcome"], "free")
        same(gateway.get("/a"), (200, "miss", "/a 1"))
        after = explain("/a").is_("hit", state="fresh", body="there, 4 bytes", pk=before["pk"])
        same(row(after, "META")["tags"], ["all", "one-a"])
        same(row(after, row(after, "META")["current_sk"])["current"], True)
        same("s3_key" in row(after, "META"), True)
        same(gateway.get("/a"), (200, "hit", "/a 1"))


def an_invalidated_page_is_stale_and_served_at_once(cli):
    with site(cli) as (origin, gateway, explain):
        gateway.get("/a")
        cli("invalidate", gateway.url + "/a").is_("invalidated")
        answer = explain("/a").is_("stale", state="stale", reason="it was invalidated")
        if "rendered in the background" not in answer["next"]:
            raise AssertionError(answer)
        same(origin.renders, 1)
        same(gateway.get("/a"), (200, "stale", "/a 1"))


def the_mark_of_a_tag_is_shown_with_the_page_that_it_made_stale(cli):
    with site(cli) as (_, gateway, explain):
        gateway.get("/tagged")
        explain("/tagged").is_("hit")
        cli("invalidate", "--tag", "from-the-origin").is_("invalidated")
        answer = explain("/tagged").is_("stale")
        same("invalidated_at" in row(answer, "TAG#from-the-origin"), True)
        same(row(answer, "META")["generated_at"] > 0, True)  # nothing has closed its window


def a_mark_is_shown_beside_what_the_page_has_seen_of_it(cli):
    """A page whose render came after the mark has seen as much as there is, whatever the clocks say."""

    def counts(answer):
        mark = row(answer, "TAG#news")
        return mark["invalidations"], mark.get("seen_invalidations"), mark.get("seen_purges")

    with site(cli, '[[routes]]\npattern = "/a"\ntags = ["news"]\n') as (_, gateway, explain):
        gateway.get("/a")
        same(row(explain("/a").is_("hit"), "TAG#news"), None)  # Nobody has said anything of it.
        cli("invalidate", "--tag", "news").is_("invalidated")
        same(counts(explain("/a").is_("stale")), (1, 0, 0))
        same("seen_invalidated_at" in row(explain("/a"), "TAG#news"), False)
        gateway.get("/a")
        answer = until(lambda: (found := explain("/a"))["outcome"] == "hit" and found, "its render")
        same(counts(answer), (1, 1, 0))
        mark = row(answer, "TAG#news")
        same(mark["seen_invalidated_at"], mark["invalidated_at"])
    with site(cli) as (_, gateway, explain):
        gateway.get("/tagged")  # Only the answer names its tag: the render could not look for its mark.
        cli("invalidate", "--tag", "from-the-origin").is_("invalidated")
        same("seen_invalidations" in row(explain("/tagged").is_("stale"), "TAG#from-the-origin"), False)


def a_page_that_may_not_be_served_stale_is_waited_for(cli):
    with site(cli) as (_, gateway, explain):
        gateway.get("/strict")
        until(lambda: explain("/strict")["state"] == "stale", "the end of its window")
        answer = explain("/strict").is_("wait")
        if "an error" not in answer["next"]:
            raise AssertionError(answer)
        same(gateway.get("/strict")[1], "miss")


def in_mode_blocking_a_stale_page_is_what_a_failed_render_gives(cli):
    with site(cli, 'mode = "blocking"\nwait_limit = "1500ms"\n') as (_, gateway, explain):
        gateway.get("/a")
        cli("invalidate", gateway.url + "/a")
        answer = explain("/a").is_("wait", state="stale")
        for part in ("up to 1500 ms", "if that fails it gets the stale page"):
            if part not in answer["next"]:
                raise AssertionError(answer)


def somebody_who_renders_is_named(cli):
    with site(cli) as (_, gateway, explain):
        cli("lease", "acquire", gateway.url + "/a", "--for", "60s", "--owner", "web-7").is_("acquired")
        answer = explain("/a").is_("wait")
        lock = row(answer, "LOCK")
        same((lock["held"], lock["back_off"], lock["owner"]), (True, False, "web-7"))
        same("lease_token" in lock, False)
        if "web-7 is at" not in answer["next"]:
            raise AssertionError(answer)


def after_a_failure_the_end_of_the_back_off_and_its_cause_are_told(cli):
    with site(cli, 'on_failure = "serve-stale"\nmode = "blocking"\n') as (origin, gateway, explain):
        origin.broken = True
        same(gateway.get("/a")[:2], (500, "failed"))
        answer = explain("/a").is_("back_off", state="missing")
        lock = row(answer, "LOCK")
        same((lock["back_off"], lock["failures"]), (True, 1))
        for part in (
            "what the origin answers to it, not stored: ",
            "500" if "500" in lock["last_error"] else lock["last_error"],
            "nobody renders the page again for ",
        ):
            if part not in answer["next"]:
                raise AssertionError(answer)
        same(gateway.get("/a")[:2], (500, "pass"))
        origin.broken = False
        gateway.get("/b")
        origin.broken = True
        cli("invalidate", gateway.url + "/b")
        same(gateway.get("/b")[:2], (200, "stale"))
        if not explain("/b").is_("back_off", state="stale")["next"].startswith("the stale page, at once"):
            raise AssertionError(explain("/b"))


def a_body_that_is_gone_is_rendered_again(cli):
    with site(cli) as (origin, gateway, explain):
        gateway.get("/a")
    for body in (cli.folder / "facetheory-data/bodies").rglob("*"):
        if body.is_file():
            body.unlink()
    answer = cli("explain", gateway.url + "/a").is_("wait", state="fresh")
    if "is gone" not in answer["body"]:
        raise AssertionError(answer)
    same(origin.renders, 1)


def a_pinned_page_is_a_hit(cli):
    with site(cli, revalidate="1s") as (_, gateway, explain):
        gateway.get("/a")
        cli("pin", gateway.url + "/a").is_("pinned")
        same(row(explain("/a").is_("hit"), "META")["pinned"], True)


def another_variant_is_looked_up_under_its_own_key(cli):
    with site(cli, 'forward = ["accept-language"]\n') as (_, gateway, explain):
        same(gateway.get("/greeting", Accept_Language="de")[1:], ("miss", "de"))
        german = explain("/greeting", "--header", "Accept-Language: de").is_("hit", vary=["accept-language"])
        same("other_variants" in german, False)
        danish = explain("/greeting", "--header", "Accept-Language: da").is_("wait", state="missing")
        same([other["cache_key"] for other in danish["other_variants"]], [german["cache_key"]])
        same(danish["cache_key"].startswith(german["cache_key"] + " v:"), True)
        same(gateway.get("/greeting", Accept_Language="da")[1:], ("miss", "da"))
        explain("/greeting", "--header", "Accept-Language: da").is_("hit", cache_key=danish["cache_key"])


def what_is_passed_on_is_told_with_its_reason(cli):
    with site(cli, '[[routes]]\npattern = "/{path*}"\n[[routes]]\npattern = "/api/*"\ncache = false\n') as (
        _,
        gateway,
        explain,
    ):
        for path, header, reason in (
            ("/a", "Cookie: session=1", "session"),
            ("/a", "Authorization: Basic eA==", "authorization"),
            ("/a", 'If-Match: "x"', "origin"),
            ("/api/x", "X-Any: 1", ""),
        ):
            answer = explain(path, "--header", header).is_("pass")
            same("rows" in answer, False)
            if reason not in answer["next"]:
                raise AssertionError(answer)
        same(gateway.get("/a", Cookie="session=1")[1], "pass")


def what_is_refused_is_told_with_its_reason(cli):
    lines = '[[routes]]\npattern = "/{path*}"\ntenant = "header:x-tenant-id"\n'
    with site(cli, lines, top='trusted_peers = ["10.0.0.0/8"]\n') as (_, gateway, explain):
        explain("/../a").is_("refused")
        explain("/a").is_("refused", route="/{path*}")
        same(gateway.get("/a")[0], 403)
        explain("/a", "--header", "X-Tenant-Id: acme").is_("refused")
        same(gateway.get("/a", X_Tenant_Id="acme")[0], 403)
    trusted = cli("explain", "http://example.com/a", "--header", "X-Tenant-Id: acme", "--peer", "10.1.2.3")
    trusted.is_("wait", tenant="acme", trusted_peer=True, cache_key="http://example.com/a")
    https = cli(
        "explain",
        "http://example.com/a",
        "--header",
        "X-Tenant-Id: acme",
        "--peer",
        "10.1.2.3",
        "--header",
        "X-Forwarded-Proto: https",
    )
    https.is_("wait", cache_key="https://example.com/a")
    cli("explain", "http://example.com/a", "--header", "X-Tenant-Id: acme", "--peer", "192.0.2.1").is_("refused")


def only_if_cached_and_no_store_are_understood(cli):
    with site(cli) as (_, gateway, explain):
        explain("/a", "--header", "Cache-Control: only-if-cached").is_("absent")
        explain("/a", "--header", "Cache-Control: no-store").is_("pass")
        gateway.get("/a")
        explain("/a", "--header", "Cache-Control: only-if-cached").is_("hit")


def a_path_alone_is_one_of_where_the_gateway_listens(cli):
    cli("table", "create").is_("done")
    with Origin() as origin:
        words = ("--origin", origin.url, "--listen", "127.0.0.1:8099")
        cli("explain", "/a", *words).is_("wait", cache_key="http://127.0.0.1:8099/a")
        cli("explain", "/a", *words, "--header", "Host: example.com").is_("wait", cache_key="http://example.com/a")
        cli("explain", "/a", "--demo", "--data", "elsewhere").is_("failed", 1).says("elsewhere/table by --data")
        same((cli.folder / "elsewhere").exists(), False)
        cli("table", "create", "--data", "elsewhere").is_("done")
        cli("explain", "/a", "--demo", "--data", "elsewhere").is_("wait")
        origin.shutdown()


def text_for_people_begins_with_the_sentence(cli):
    cli("table", "create").is_("done")
    answer = cli.plain("explain", "http://127.0.0.1:8080/news", "--demo")
    same(answer.code, 0)
    lines = answer.out.decode().splitlines()
    same(lines[0], "wait")
    same(lines[1].startswith("next "), True)
    same(any(line.split() == ["cache_key", "http://127.0.0.1:8080/news"] for line in lines), True)


def what_cannot_be_asked_for_is_a_usage_error(cli):
    cli("explain", "/a").is_("usage", 2).says("origin")
    cli("explain", "--demo").is_("usage", 2).says("URL")
    cli("explain", "/a", "--demo", "--origin", "http://127.0.0.1:1").is_("usage", 2).says("--demo")
    cli("explain", "/a", "--demo", "--header", "no field").is_("usage", 2).says("--header", "Name: value")
    cli("explain", "/a", "--demo", "--peer", "here").is_("usage", 2).says("--peer")
    cli("explain", "/a", "--demo", "--data", "").is_("usage", 2).says("--data")
    cli("explain", "/a", "--demo", "--config", "none.toml").is_("usage", 2).says("none.toml")


def data_names_table_and_bodies_for_every_command(cli):
    token = cli("lease", "acquire", "/a", "--data", "here")["lease_token"]
    cli("publish", "/a", "--token", token, "--body", cli.file("a.html"), "--revalidate", "1h", "--data", "here").is_(
        "published"
    )
    cli("meta", "/a", "--data", "here").is_("fresh")
    cli("meta", "/a", "--table", "lmdb:here/table").is_("fresh")
    cli("meta", "/a").is_("failed", 1).says("lmdb:facetheory-data/table by the default")
    same(cli.plain("get", "/a", "--data", "here").out, b"<h1>Hello</h1>\n")
    cli.with_environment(FACETHEORY_TABLE="lmdb:other")("meta", "/a", "--data", "here").is_("fresh")


def a_table_that_this_user_may_not_write_is_told_with_the_remedy(cli):
    cli.publish("http://a.test/page")
    program = pathlib.Path(shutil.copy(cli.program, cli.folder))
    for path in [cli.folder, *cli.folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path == program else 0o444)
    for path in (cli.folder / "facetheory-data" / "table", cli.folder / "facetheory-data" / "bodies"):
        path.chmod(0o555)
    nobody = 65534 if os.geteuid() == 0 else None  # The administrator may write everything.
    ended = subprocess.run(
        [program, "explain", "http://a.test/page", "--origin", "http://127.0.0.1:1"],
        cwd=cli.folder,
        env=cli.environment,
        user=nobody,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    for path in cli.folder.rglob("*"):
        path.chmod(0o755)
    same(ended.returncode, 2)
    for text in (
        "Permission denied",
        "facetheory-data/table",
        "writable for this user",
        "who reads takes locks there, too",
    ):
        same((text in ended.stderr, ended.stderr), (True, ended.stderr))


if __name__ == "__main__":
    harness.main(__name__)
