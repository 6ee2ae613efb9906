#!/usr/bin/python3
"""Every command of facetheory: outcomes, exit codes, the shape of its JSON, and what it says to bad input.

    cli_test.py --facetheory build/release/facetheory [WORD...]

Runs the cases whose name contains each WORD, or all. Each has a folder of its own, so that they run side by side: most
of their time is waiting for leases to expire.
"""
import base64
import difflib
import hashlib
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

import regenerate_cases  # noqa: E402
from dynamodb_local import TABLE, DynamoDbLocal  # noqa: E402
import harness  # noqa: E402
from harness import Cli, between, same, until  # noqa: E402

COMMANDS = [
    "serve",
    "explain",
    "doctor",
    "table create",
    "table describe",
    "key",
    "lease acquire",
    "lease refresh",
    "lease release",
    "lease show",
    "publish",
    "meta",
    "get",
    "versions",
    "rollback",
    "pin",
    "unpin",
    "diff",
    "list",
    "request claim",
    "request extend",
    "request complete",
    "request fail",
    "request show",
    "invalidate",
    "regenerate",
    "gc",
]
TOKEN = "0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55"  # nobody's


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


# --- The command line itself ---


def every_command_teaches_what_it_does(cli):
    overview = cli.plain("--help")
    same(overview.code, 0)
    for command in COMMANDS:
        if f"\n  {command} " not in overview.out.decode():
            raise AssertionError(f"the overview lacks {command}: {overview}")
        help_text = cli.plain(*command.split(), "--help")
        same(help_text.code, 0)
        for part in (
            f"Usage: facetheory {command}",
            "\nExample",
            f"facetheory {command} ",
            "\nOutcomes and exit codes:\n",
            "--json",
        ):
            if part not in help_text.out.decode():
                raise AssertionError(f"lacks {part!r}: {help_text}")
        same(max(map(len, help_text.out.decode().splitlines())) <= 130, True)
        cli(*command.split(), "--help").is_("done")
    if (cli.folder / "facetheory-data").exists():
        raise AssertionError("--help has opened a table")


def without_a_command_an_overview_is_shown_and_the_exit_code_is_2(cli):
    answer = cli.plain()
    same((answer.code, b"Commands:" in answer.out), (2, True))
    cli().is_("usage", 2, code="invalid").says("needs a command")
    answer = cli.plain("lease")
    same((answer.code, b"lease acquire" in answer.out), (2, True))
    cli("lease").is_("usage", 2).says("acquire, refresh, release, show")


def the_version_is_told(cli):
    answer = cli.plain("--version")
    same(answer.code, 0)
    version = re.fullmatch(r"facetheory (\d+\.\d+\.\d+)\n", answer.out.decode()).group(1)
    cli("--version").is_("done", version=version)


def an_unknown_word_gets_a_suggestion(cli):
    cli("regenrate", "/x").is_("usage", 2).says("unknown command 'regenrate'", "did you mean regenerate?")
    cli("lease", "aquire", "/x").is_("usage", 2).says("unknown command 'aquire'", "did you mean acquire?")
    cli("lease", "acquire", "/x", "--fro", "30s").is_("usage", 2).says("unknown option --fro", "did you mean --for?")
    cli("lease", "acquire", "/x", "--colour=red").is_("usage", 2).says(
        "unknown option --colour", "facetheory lease acquire --help"
    )
    cli("--color", "meta", "/x").is_("usage", 2).says("unknown option --color")
    cli("--pk", "CACHE#abc", "meta").is_("usage", 2).says("--pk is an option of `meta`: write it after the command")
    cli("meta", "/x", "/y").is_("usage", 2).says("unexpected argument '/y'")
    cli("meta", "/x", "--", "/y").is_("usage", 2).says("unexpected argument '/y'")
    cli("xyzzy").is_("usage", 2).says("unknown command 'xyzzy'; see: facetheory --help")


def global_options_stand_before_or_after_the_command(cli):
    pk = f"TENANT#acme#CACHE#{sha256('/x')}"
    for words in (
        ["--tenant", "acme", "--json", "lease", "acquire", "/x"],
        ["lease", "--tenant", "acme", "acquire", "/x", "--json"],
        ["lease", "acquire", "/x", "--tenant=acme", "--json", "--table", "memory:"],
    ):
        answer = cli.plain(*words, "--table", "memory:") if "--table" not in words else cli.plain(*words)
        answer.is_("acquired", pk=pk, tenant="acme", cache_key="/x")
    same((cli.folder / "facetheory-data/table").exists(), False)


def a_missing_or_empty_or_repeated_value_is_refused(cli):
    cli("lease", "release", "/x", "--token").is_("usage", 2).says("--token needs a value")
    cli("lease", "release", "/x").is_("usage", 2).says("--token is required; give --token TOKEN")
    cli("lease", "release", "/x", "--token", "").is_("usage", 2).says("--token: the value is empty")
    cli("lease", "release", "/x", "--token=").is_("usage", 2).says("--token: the value is empty")
    cli("lease", "release", "/x", "--token", TOKEN, "--token", TOKEN).is_("usage", 2).says(
        "--token: is given more than once"
    )
    cli("meta").is_("usage", 2).says("KEY", "--pk")
    cli("meta", "").is_("usage", 2).says("cache key is empty")
    cli("publish", "/x", "--token", TOKEN, "--body", "-").is_("usage", 2).says("--revalidate is required")


def words_after_two_dashes_are_taken_as_they_are(cli):
    cli.plain("--json", "key", "--", "--help").is_("done", pk=f"CACHE#{sha256('--help')}")
    cli.plain("--json", "key", "--", "--json").is_("done", pk=f"CACHE#{sha256('--json')}")
    for odd in ("list", "lease", "[a,b]", "{}", "%%", "a b", "'quoted'", '"x"', "é", "-5"):
        cli("key", odd).is_("done", pk=f"CACHE#{sha256(odd)}")


def tokens_may_begin_with_a_dash(cli):
    cli("table", "create").is_("done")
    cli("lease", "release", "/x", "--token", "-5").is_("lost", 3)
    cli("lease", "release", "/x", "--token=--json").is_("lost", 3)
    cli("publish", "/x", "--token", "[a,b]", "--body", cli.file("x"), "--revalidate", "60", "--etag", '"[a,b]"').is_(
        "lost", 3
    )


def the_name_of_an_option_is_no_value(cli):
    cli("table", "create").is_("done")
    cli("request", "complete", "/x", "--id", "r", "--token", "--result", "k").is_("usage", 2).says(
        "--token needs a value, and is followed by the option --result", "write --token=--result"
    )
    cli("lease", "release", "/x", "--token", "--json").is_("usage", 2).says("--token needs a value")
    cli("lease", "release", "/x", "--token", "--help").is_("usage", 2).says("followed by the option --help")
    cli("request", "show", "/x", "--id", "--tenant=a").is_("usage", 2).says("followed by the option --tenant;")
    cli("meta", "/x", "--tenant", "--pk", "y").is_("usage", 2).says("--tenant needs a value")
    cli("request", "complete", "/x", "--id", "r", "--token=--result", "--result", "k").is_("lost", 3)
    cli("lease", "release", "/x", "--token", "--no-option").is_("lost", 3)
    cli("lease", "release", "/x", "--token", "--result").is_("lost", 3)  # An option of another command.


# --- Bad input ---


def malformed_durations_are_refused(cli):
    bad = {
        "": "is empty",
        "soon": "no duration",
        "1.5s": "no duration",
        "3w": "no duration",
        "-3s": "is negative",
        "1500ms": "whole number of seconds",
        "9999999999999999999s": "longer than a hundred years",
        "40000d": "longer than a hundred years",
    }
    for text, why in bad.items():
        for words in (
            ["lease", "acquire", "/x", "--for", text],
            ["lease", "refresh", "/x", "--token", TOKEN, "--for", text],
            ["publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", text],
            ["publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s", "--ttl", text],
            ["request", "claim", "/x", "--id", "r", "--for", text],
            ["gc", "--grace", text],
        ):
            option = [word for word in words if word.startswith("--")][-1]
            cli(*words).is_("usage", 2, code="invalid").says(f"facetheory: {option}: ", why)
    for text in ("1s", "0", "3601s", "61m"):
        cli("lease", "acquire", "/x", "--for", text).is_("usage", 2).says(f"--for: '{text}' is too")
    cli("publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "0s").is_("usage", 2).says(
        "--revalidate: '0s' is too short"
    )
    cli("regenerate", "/x", "--revalidate", "60s", "--wait=later", "--", "true").is_("usage", 2).says(
        "--wait: 'later' is no duration"
    )
    same((cli.folder / "facetheory-data").exists(), False)  # all of that was seen before a table was opened


def malformed_numbers_are_refused(cli):
    publish = ["publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s"]
    for option, texts in {
        "--history": ["-1", "81", "x", "1e2", "", "99999999999999999999"],
        "--generated-at": ["0", "-5", "now", "1731672000000", "1.5"],
        "--status": ["99", "100", "206", "304", "600", "1000", "ok"],
        "--header": [
            "Content-Length: 3",
            "transfer-encoding: chunked",
            "ETag: \"a\"",
            "Set-Cookie: a=b",
            "Connection: close",
        ],
    }.items():
        for text in texts:
            cli(*publish, option, text).is_("usage", 2).says(f"{option}: ")
    for text in ("version=", "version=x", "version=-1", "version=9223372036854775808", "versoin=7", "monotonous", ""):
        cli(*publish, "--guard", text).is_("usage", 2).says("--guard: ")
    cli(*publish, "--guard", "version=1", "--guard", "version=2").is_("usage", 2).says("two different versions")
    for text in ("0", "-1", "all"):
        cli("list", "--limit", text).is_("usage", 2).says("--limit: ")
    cli("list", "--state", "rotten").is_("usage", 2).says("--state: 'rotten'", "fresh, stale and missing")


def malformed_keys_and_names_are_refused(cli):
    cli("meta", "a\nb").is_("usage", 2).says("KEY: ", "control character")
    cli("meta", "x" * 20000).is_("usage", 2).says("KEY: ", "20000 bytes")
    cli("meta", b"\xff\xfe".decode(errors="surrogateescape")).is_("usage", 2).says("KEY: ", "UTF-8")
    for pk in ("", "META", "CACHE", "TENANT#acme#TAG#x", f"TENANT##CACHE#{sha256('/x')}", "TAG#x"):
        cli("meta", "--pk", pk).is_("usage", 2).says("--pk: ")
    for tenant in ("", "a#b", "a\x07b", "t" * 600):
        cli("meta", "/x", "--tenant", tenant).is_("usage", 2).says("--tenant: ")
        cli("list", "--tenant", tenant).is_("usage", 2).says("--tenant: ")
    cli("invalidate", "--whole-tenant", "a#b").is_("usage", 2).says("--whole-tenant: ")
    for tag in ("", "a\nb", "t" * 600):
        cli("invalidate", "--tag", tag).is_("usage", 2).says("--tag: ")
        cli("publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s", "--tag", tag).is_("usage", 2).says(
            "--tag: "
        )
    for request in ("", "a\nb"):
        cli("request", "show", "/x", "--id", request).is_("usage", 2).says("--id: ")
        cli("publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s", "--id", request).is_(
            "usage", 2
        ).says("--id: ")
    for value in ("novalue", "=x", b"a=\xff".decode(errors="surrogateescape")):
        cli("request", "claim", "/x", "--id", "r", "--input", value).is_("usage", 2).says("--input: ")
    cli("request", "claim", "/x", "--id", "r", "--input", "a=1", "--input", "a=2").is_("usage", 2).says(
        "'a' is given twice"
    )
    for token in ("a\x01b", b"\xff".decode(errors="surrogateescape")):
        cli("lease", "refresh", "/x", "--token", token).is_("usage", 2).says("--token: ")
    for header in (
        "nocolon",
        ": x",
        "a b: c",
        "Content-Type: x",
        "a: b\nc",
        b"a: \xff".decode(errors="surrogateescape"),
    ):
        cli("publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s", "--header", header).is_(
            "usage", 2
        ).says("--header: ")


def a_page_is_named_once(cli):
    pk = f"TENANT#acme#CACHE#{sha256('/x')}"
    cli("table", "create").is_("done")
    cli("meta", "/x", "--pk", pk).is_("usage", 2).says("KEY or --pk")
    cli("meta", "--pk", pk).is_("missing", pk=pk, tenant="acme")
    cli("meta", "--pk", pk, "--tenant", "acme").is_("missing", pk=pk)
    cli("meta", "--pk", pk, "--tenant", "other").is_("usage", 2).says("tenant 'acme'", "--tenant says 'other'")
    cli("meta", "--pk", f"CACHE#{sha256('/x')}", "--tenant", "acme").is_("usage", 2).says("no tenant")


def a_table_or_bodies_that_cannot_be_is_refused(cli):
    cli("meta", "/x", "--table", "sqlite:x").is_("usage", 2).says("--table", "sqlite:x", "dynamodb:<table>")
    cli("meta", "/x", "--bodies", "ftp://x").is_("usage", 2).says("--bodies", "ftp://x", "s3://bucket/prefix")
    cli.with_environment(FACETHEORY_TABLE="lmdb:")("meta", "/x").is_("usage", 2).says(
        "lmdb:<directory>", "FACETHEORY_TABLE"
    )
    cli("meta", "/x", "--table", "dynamodb:").is_("usage", 2).says("FACETHEORY_CACHE_TABLE_NAME")
    cli("table", "create").is_("done")
    cli("get", "/x", "--bodies", "s3:").is_("usage", 2).says("FACETHEORY_ISR_BUCKET")
    cli.file("file")
    answer = cli("meta", "/x", "--table", "lmdb:file/table")
    same((answer.code in (1, 2), answer["outcome"] in ("failed", "usage")), (True, True))
    answer.says("lmdb:file/table")


def the_environment_names_table_and_bodies(cli):
    named = cli.with_environment(FACETHEORY_TABLE="lmdb:here/t", FACETHEORY_BODIES="file:here/b")
    named.publish("/x")
    same((cli.folder / "here/t").is_dir() and (cli.folder / "here/b").is_dir(), True)
    same((cli.folder / "facetheory-data").exists(), False)
    named("meta", "/x", "--table", "memory:").is_("missing")


def a_table_that_is_not_there_is_made_by_commands_that_write_pages_alone(cli):
    nowhere = cli.folder / "typo/nowhere"
    page = ["/x", "--data", nowhere]
    for words in (
        ["table", "describe", *page[1:]],
        ["lease", "refresh", *page, "--token", TOKEN],
        ["lease", "release", *page, "--token", TOKEN],
        ["lease", "show", *page],
        ["meta", *page],
        ["get", *page],
        ["get", "--s3-key", "k", *page[1:]],
        ["versions", *page],
        ["rollback", *page, "VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W"],
        ["pin", *page],
        ["unpin", *page],
        ["diff", *page, "VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W"],
        ["list", *page[1:]],
        ["request", "extend", *page, "--id", "r", "--token", TOKEN],
        ["request", "complete", *page, "--id", "r", "--token", TOKEN, "--result", "k"],
        ["request", "fail", *page, "--id", "r", "--token", TOKEN],
        ["request", "show", *page, "--id", "r"],
        ["invalidate", *page],
        ["invalidate", *page, "--purge"],
        ["invalidate", "--tag", "news", *page[1:]],
        ["invalidate", "--whole-tenant", "acme", "--every-page", *page[1:]],
        ["gc", *page[1:]],
        ["gc", "--adopt", *page[1:]],
        ["explain", *page, "--origin", "http://127.0.0.1:1"],
    ):
        cli(*words).is_("failed", 1, code="invalid").says(
            f"there is no lmdb:{nowhere}/table, and none was made", "--data", "where the gateway runs"
        )
        same((words, nowhere.parent.exists()), (words, False))
    cli("invalidate", "--tag", "news").is_("failed", 1).says("lmdb:facetheory-data/table by the default")
    same((cli.folder / "facetheory-data").exists(), False)
    for number, words in enumerate(
        (
            ["table", "create"],
            ["lease", "acquire", "/x"],
            ["request", "claim", "/x", "--id", "r"],
            ["publish", "/x", "--token", TOKEN, "--body", cli.file("b"), "--revalidate", "60s"],
            ["regenerate", "/x", "--revalidate", "60s", "--", "echo", "x"],
        )
    ):
        cli(words[0], "--data", f"new-{number}", *words[1:])
        same((words, (cli.folder / f"new-{number}/table/data.mdb").exists()), (words, True))


def an_answer_that_cannot_be_written_is_a_failure(cli):
    for redirection in (">/dev/full", ">&-"):
        answer = cli.shell(f"$FT lease acquire /x --for 2s --table memory: {redirection}")
        same(answer.code, 1)
        answer.says("cannot write the answer to stdout", "acquired")
    cli.publish("/big", body=b"x" * 3_000_000)
    answer = cli.shell("$FT get /big | head -c 1; exit ${PIPESTATUS[0]}")
    same((answer.code, answer.out), (1, b"x"))
    answer.says("Broken pipe")
    same(cli.shell("$FT get /big <&- >page; wc -c <page").out.strip(), b"3000000")


# --- Table and keys ---


def a_table_is_made_and_described(cli):
    for command in ("create", "describe"):
        answer = cli("table", command).is_("done", status="ACTIVE", items=0, expires_rows=False)
        same(answer["uri"].startswith("lmdb:"), True)
    cli.publish("/x")
    cli("table", "describe").is_("done", items=2)  # META, and the row by which table and bodies know each other.


def a_key_is_computed_without_a_table(cli):
    answer = cli.plain("key", "/news/42")
    same((answer.code, answer.out.decode()), (0, f"CACHE#{sha256('/news/42')}\n"))
    cli("key", "/news/42", "--tenant", "acme").is_("done", pk=f"TENANT#acme#CACHE#{sha256('/news/42')}")
    cli(
        "key", "--tenant", "acme", "--route", "/news/{slug}", "--param", "slug=a b", "--query", "p=2", "--query", "A=1"
    ).is_("done", pk="CACHE#acme::/news/{slug}?slug=a%20b&A=1&p=2")
    auth = cli("key", "--tenant", "acme", "--route", "/", "--auth", "role=admin", "--cookie", "b=2")["pk"]
    same(re.fullmatch(r"CACHE#acme::/\?#auth=[0-9a-f]{24}&cookies=[0-9a-f]{24}", auth) is not None, True)
    cli("key").is_("usage", 2).says("CACHE_KEY", "--route")
    cli("key", "/x", "--route", "/x").is_("usage", 2).says("not both")
    cli("key", "--param", "a=b").is_("usage", 2).says("--route")
    cli("key", "--route", "/x", "--param", "ab").is_("usage", 2).says("--param: 'ab'")
    cli("key", "--tenant", "a", "--route", "no-slash").is_("usage", 2).says("--route")
    same((cli.folder / "facetheory-data").exists(), False)
    cli("table", "create").is_("done")
    cli.plain("--json", "meta", "--pk", "CACHE#acme::/news/{slug}?slug=a").is_("missing", tenant="acme")


# --- Leases ---


def a_lease_is_acquired_refreshed_and_released(cli):
    now = int(time.time())
    for command in (["lease", "acquire", "/x"], ["regenerate", "/x", "--revalidate", "1h"]):
        cli(*command, "--owner", "n" * 513, *(["--", "true"] if command[0] == "regenerate" else [])).is_(
            "usage", 2
        ).says("--owner", "512")
    first = cli("lease", "acquire", "/x", "--for", "30s", "--owner", "me").is_("acquired", pk=f"CACHE#{sha256('/x')}")
    between(now + 30, first["lease_expires_at"], now + 40)
    between(now, first["acquired_at"], now + 10)
    held = cli("lease", "acquire", "/x").is_("held", 3, owner="me", lease_expires_at=first["lease_expires_at"])
    held.says("is held until", "by me")
    same("lease_token" in held, False)
    cli("lease", "show", "/x").is_("held", owner="me")
    refreshed = cli("lease", "refresh", "/x", "--token", first["lease_token"], "--for", "5m").is_("refreshed")
    between(now + 300, refreshed["lease_expires_at"], now + 310)
    cli("lease", "refresh", "/x", "--token", TOKEN).is_("lost", 3, lease_expires_at=refreshed["lease_expires_at"]).says(
        "somebody else"
    )
    cli("lease", "release", "/x", "--token", TOKEN).is_("lost", 3)
    cli("lease", "release", "/x", "--token", first["lease_token"]).is_("released")
    cli("lease", "release", "/x", "--token", first["lease_token"]).is_("lost", 3)
    cli("lease", "show", "/x").is_("free")


def without_json_a_lease_is_its_token_alone(cli):
    answer = cli.shell(
        "token=$($FT lease acquire /x --for 1m) && $FT lease refresh /x --token $token && "
        "$FT lease release /x --token $token"
    )
    same(answer.code, 0)
    same(
        answer.out.decode().startswith("refreshed\n")
        and answer.out.decode().endswith("released\npk         CACHE#" + sha256("/x") + "\ncache_key  /x\n"),
        True,
    )
    cli("lease", "acquire", "/x").is_("acquired")
    answer = cli.plain("lease", "acquire", "/x")
    same((answer.code, answer.out), (3, b""))
    answer.says("is held until", f":")


def an_expired_lease_is_lost_and_taken_over(cli):
    first = cli("lease", "acquire", "/x", "--for", "2s").is_("acquired")
    time.sleep(max(0, first["lease_expires_at"] - time.time()) + 0.1)
    cli("lease", "refresh", "/x", "--token", first["lease_token"]).is_("lost", 3).says("its time is over")
    cli("publish", "/x", "--token", first["lease_token"], "--body", cli.file("b"), "--revalidate", "60s").is_("lost", 3)
    second = cli("lease", "acquire", "/x").is_("acquired")
    same(second["lease_token"] == first["lease_token"], False)
    cli("meta", "/x").is_("missing")


# --- Publishing and reading ---


def a_page_is_published_and_read(cli):
    lease = cli("lease", "acquire", "/x").is_("acquired")
    published = cli(
        "publish",
        "/x",
        "--token",
        lease["lease_token"],
        "--body",
        cli.file("page.html", b"<p>\xc3\xa9</p>"),
        "--revalidate",
        "60s",
        "--etag",
        '"v1"',
        "--content-type",
        "text/plain",
        "--ttl",
        "7d",
        "--tag",
        "news",
        "--tag",
        "front",
        "--status",
        "203",
        "--header",
        "X-Robots-Tag:  none ",
        "--header",
        "cache-tag: a",
    ).is_(
        "published",
        generated_at=lease["acquired_at"],
        revalidate_seconds=60,
        etag='"v1"',
        tags=["front", "news"],
        body_reused=False,
        cache_key="/x",
    )
    between(int(time.time()) + 7 * 86400 - 20, published["ttl"], int(time.time()) + 7 * 86400 + 20)
    meta = cli("meta", "/x").is_(
        "fresh", s3_key=published["s3_key"], generated_at=lease["acquired_at"], etag='"v1"', ttl=published["ttl"]
    )
    same(meta["reason"].startswith("fresh for "), True)
    cli("lease", "show", "/x").is_("free")
    same(cli.plain("get", "/x").out, b"<p>\xc3\xa9</p>")
    cli("get", "/x").is_(
        "fresh",
        body="<p>é</p>",
        status=203,
        content_type="text/plain",
        headers=["x-robots-tag: none", "cache-tag: a"],
        s3_key=published["s3_key"],
        sha256=hashlib.sha256("<p>é</p>".encode()).hexdigest(),
    )
    again = ["publish", "/x", "--token", lease["lease_token"], "--body", "-", "--revalidate", "60s"]
    cli(*again, stdin=b"again").is_("lost", 3).says("acquire a new one")


def without_etag_and_type_a_page_gets_them(cli):
    published = cli.publish("/x", body=b"1")
    same(re.fullmatch(r'"[^"]+"', published["etag"]) is not None, True)
    cli("get", "/x").is_("fresh", status=200, content_type="text/html; charset=utf-8", headers=[], body="1")
    same("ttl" in published, False)


def bytes_of_any_kind_are_kept(cli):
    body = bytes(range(256)) * 1000
    cli.publish("/x", body=body)
    same(cli.plain("get", "/x").out, body)
    answer = cli("get", "/x").is_("fresh")
    same((base64.b64decode(answer["body_base64"]), "body" in answer), (body, False))
    cli.publish("/empty", "--allow-empty", body=b"")
    same(cli.plain("get", "/empty").out, b"")
    cli("get", "/empty").is_("fresh", body="")
    cli.publish("/control", body=b"\x00\x1b[2J\n")
    cli("get", "/control").is_("fresh", body="\x00\x1b[2J\n")


def an_empty_body_is_published_only_if_that_is_meant(cli):
    token = cli("lease", "acquire", "/x")["lease_token"]
    publish = ["publish", "/x", "--token", token, "--revalidate", "60s", "--body"]
    cli(*publish, "-").is_("failed", 1, code="invalid").says("stdin (--body -) is empty", "--allow-empty")
    cli(*publish, cli.file("none", b"")).is_("failed", 1).says("the file 'none' (--body) is empty")
    cli("lease", "show", "/x").is_("held")  # It can still be published.
    moved = ["--status", "301", "--header", "Location: /y"]
    cli(*publish, "-", *moved).is_("published")
    cli("get", "/x").is_("fresh", status=301, body="")


def a_body_that_cannot_be_read_or_is_too_large_is_refused(cli):
    publish = ["publish", "/x", "--token", TOKEN, "--revalidate", "60s", "--body"]
    cli(*publish, "no-such-file").is_("failed", 1).says("no-such-file", "--body", "No such file")
    cli(*publish, ".").is_("failed", 1).says("Is a directory")
    answer = cli.shell(f"head -c 67108865 /dev/zero | $FT --json {' '.join(publish)} -")
    answer.is_("failed", 1).says("stdin (--body -)", "64 MiB")


def the_guards_hold(cli):
    def publish(key, *words):
        token = cli("lease", "acquire", key).is_("acquired")["lease_token"]
        answer = cli("publish", key, "--token", token, "--body", "-", "--revalidate", "60s", *words, stdin=b"x")
        if answer.code == 3:
            cli("lease", "release", key, "--token", token).is_("released")  # refused, but the lease is still ours
        return answer

    publish("/v", "--history", "3", "--guard", "version=0").is_("published", version=1)
    publish("/v", "--history", "3", "--guard", "version=0").is_("version", 3, version=1).says("--guard version=N")
    publish("/v", "--history", "3", "--guard", "version=1", "--guard", "version=1").is_("published", version=2)
    publish("/m", "--generated-at", "1000").is_("published", generated_at=1000)
    publish("/m", "--generated-at", "1000", "--guard", "monotonic").is_("superseded", 3, generated_at=1000)
    publish("/m", "--generated-at", "999").is_("superseded", 3)
    publish("/ahead", "--generated-at", str(int(time.time()) + 1000)).is_("usage", 2).says(
        "generated_at must be a time"
    )
    publish("/m", "--generated-at", "1001", "--guard", "monotonic").is_("published", generated_at=1001)


def a_ttl_within_the_window_is_refused(cli):
    for words in (["publish", "/x", "--token", TOKEN, "--body", "-"], ["regenerate", "/x"]):
        tail = ["--", "true"] if words[0] == "regenerate" else []
        cli(*words, "--revalidate", "1h", "--ttl", "30m", *tail).is_("usage", 2).says("--ttl", "--revalidate")
        cli(*words, "--revalidate", "1h", "--ttl", "60m", *tail).is_("usage", 2).says("more than 3600s")


def publishing_completes_a_request(cli):
    lease = cli("lease", "acquire", "/x")["lease_token"]
    publish = ["publish", "/x", "--token", lease, "--body", cli.file("b"), "--revalidate", "60s"]
    cli(*publish, "--owner", TOKEN).is_("usage", 2).says("--id")
    cli(*publish, "--id", "r").is_("failed", 1).says("no request r")
    owner = cli("request", "claim", "/x", "--id", "r")["owner_token"]
    cli(*publish, "--id", "r", "--owner", TOKEN).is_("request", 3).says("request show")
    published = cli(*publish, "--id", "r", "--owner", owner).is_("published")
    cli("request", "show", "/x", "--id", "r").is_("found", status="COMPLETED", result_s3_key=published["s3_key"])


def a_render_in_steps_is_ordered_by_the_table_and_not_by_clocks(cli):
    words = ["--body", "-", "--revalidate", "1h", "--tag", "news"]
    cli.publish("/x", "--tag", "news")
    cli("invalidate", "--tag", "news")
    cli.publish("/x", "--tag", "news")
    cli("get", "/x").is_("fresh")
    token = cli("lease", "acquire", "/x")["lease_token"]
    cli("invalidate", "--tag", "news")
    cli("publish", "/x", "--token", token, *words, stdin=b"late").is_("published")
    cli("get", "/x").is_("stale", reason="its tag news was invalidated")
    token = cli("lease", "acquire", "/new", "--tag", "news")["lease_token"]
    cli("publish", "/new", "--token", token, *words, stdin=b"new").is_("published")
    cli("get", "/new").is_("fresh")
    cli("lease", "acquire", "/y", "--tag", "").is_("usage", 2).says("--tag: ")


def the_row_alone_is_judged_by_meta_and_all_by_get(cli):
    cli("table", "create").is_("done")
    cli("meta", "/x").is_("missing", pk=f"CACHE#{sha256('/x')}")
    cli("get", "/x").is_("missing", 1).says("is missing", "facetheory regenerate")
    same(cli.plain("get", "/x").out, b"")
    cli.publish("/x", "--tag", "news")
    cli("invalidate", "--tag", "news").is_("invalidated", tag="news")
    cli("meta", "/x").is_("fresh")
    cli("get", "/x").is_("stale", reason="its tag news was invalidated")
    cli("invalidate", "--tag", "news", "--purge").is_("purged")
    cli("get", "/x").is_("missing", 1)
    cli.publish("/old", "--generated-at", "1000", "--revalidate", "5s")
    cli("meta", "/old").is_("stale", generated_at=1000)


def people_get_text(cli):
    cli.publish("/x", "--tag", "a", "--tag", "b")
    text = cli.plain("meta", "/x").out.decode()
    same(text.startswith("fresh\n"), True)
    same(
        re.search(r"^generated_at +\d{10}  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \((now|\d+ s ago)\)$", text, re.MULTILINE)
        is not None,
        True,
    )
    same(re.search(r"^tags +a, b$", text, re.MULTILINE) is not None, True)
    same(cli.plain("meta", "/y").out.decode().startswith("missing\n"), True)


def a_mark_is_in_force_although_its_time_is_ahead(cli):
    cli.publish("/x", "--tag", "a")
    for words, field in (([], "invalidated_at"), (["--purge"], "purged_at")):
        text = cli.plain("invalidate", "--tag", "a", *words).out.decode()
        wording = r" UTC \(in force now; \d s ahead, since clocks may differ\)$"
        same((re.search(rf"^{field} .*{wording}", text, re.MULTILINE) is not None, text), (True, text))


def a_table_without_pages_says_so_to_people(cli):
    cli("table", "create")
    answer = cli.plain("list")
    same((answer.code, answer.out, answer.err), (0, b"", "facetheory: no pages\n"))
    same(cli("list").is_("done", tenants=[]).err, "")
    cli.publish("/x")
    same(cli.plain("list").err, "")
    same(cli.plain("list", "--state", "stale").err, "facetheory: no pages that are so\n")


def a_body_that_vanished_or_is_damaged_is_told_and_healed(cli):
    cli = cli.with_environment(FACETHEORY_BODIES="file:bodies")
    cli.publish("/first")  # With it comes the object by which table and bodies know each other.
    for key, harm in (
        ("/gone", lambda path: path.unlink()),
        ("/damaged", lambda path: path.write_bytes(path.read_bytes()[:-2] + b"X\n")),
    ):
        bodies = cli.folder / "bodies"
        before = set(bodies.rglob("*"))
        cli.publish(key, body=key.encode() + b"\n")
        paths = [path for path in set(bodies.rglob("*")) - before if path.is_file()]
        same(len(paths), 1)
        paths[0].chmod(0o600)
        harm(paths[0])
        failed = cli("get", key).is_("failed", 1, code="corrupt").says("regenerating the page heals it (facetheory")
        same(failed.err.count("heals"), 1)
        same((cli.plain("get", key).code, cli.plain("get", key).out), (1, b""))
        cli("meta", key).is_("fresh")
        cli("regenerate", key, "--revalidate", "60s", "--", "echo", "healed").is_("regenerated")
        same(cli.plain("get", key).out, b"healed\n")


def a_store_of_bodies_that_is_gone_heals_page_by_page(cli):
    cli.publish("/gone", body=b"before\n")
    shutil.rmtree(cli.folder / "facetheory-data/bodies")
    cli("get", "/gone").is_("failed", 1, code="corrupt").says("regenerating the page heals it")
    cli("regenerate", "/gone", "--revalidate", "60s", "--", "echo", "healed").is_("regenerated")
    same(cli.plain("get", "/gone").out, b"healed\n")


# --- Versions ---


def versions_are_listed_rolled_back_and_unpinned(cli):
    for body in (b"one", b"two", b"three", b"four"):
        cli.publish("/x", "--history", "3", body=body)
    listed = cli("versions", "/x").is_("done")["versions"]
    same([row["version"] for row in listed], [4, 3, 2])
    same([row["current"] for row in listed], [True, False, False])
    same(all(row["sk"].startswith("VER#") for row in listed), True)
    cli("rollback", "/x", listed[2]["sk"]).is_(
        "rolled_back", pinned=True, s3_key=listed[2]["s3_key"], current_sk=listed[2]["sk"]
    )
    same(cli.plain("get", "/x").out, b"two")
    cli("invalidate", "/x").is_("pinned", 3).says("facetheory unpin", "--purge")
    cli("regenerate", "/x", "--revalidate", "60s", "--force", "--", "false").is_("pinned", 3, pinned=True).says(
        "facetheory unpin"
    )
    token = cli("lease", "acquire", "/x").is_("acquired")["lease_token"]
    cli("publish", "/x", "--token", token, "--body", "-", "--revalidate", "60s", stdin=b"new").is_("pinned", 3).says(
        "facetheory unpin"
    )
    cli("rollback", "/x", listed[1]["sk"].removeprefix("VER#")).is_("rolled_back")
    same(cli.plain("get", "/x").out, b"three")
    cli("rollback", "--pk", f"CACHE#{sha256('/x')}", listed[0]["sk"]).is_("rolled_back")
    cli("unpin", "/x").is_("unpinned")
    cli("unpin", "/x").is_("not_pinned")
    cli("meta", "/x").is_("stale")
    cli("pin", "/x").is_("pinned", pinned=True)
    cli("meta", "/x").is_("fresh", reason="it is pinned")


def kept_versions_and_bodies_are_printed(cli):
    for body in (b"one", b"two"):
        cli.publish("/x", "--history", "3", body=body)
    new, old = cli("versions", "/x")["versions"]
    same(cli.plain("get", "/x", "--version", old["sk"]).out, b"one")
    same(cli.plain("get", "/x", "--version", new["sk"].removeprefix("VER#")).out, b"two")
    cli("get", "/x", "--version", old["sk"]).is_(
        "found", body="one", s3_key=old["s3_key"], version=1, pk=f"CACHE#{sha256('/x')}"
    )
    same(cli.plain("get", "--s3-key", old["s3_key"]).out, b"one")
    cli("get", "--s3-key", old["s3_key"]).is_("found", body="one", s3_key=old["s3_key"])
    cli("get", "/x", "--version", "VER#nothing").is_("missing", 1).says("VER#nothing", "facetheory versions")
    cli("get", "--s3-key", "nothing.html").is_("missing", 1).says("nothing.html")
    cli("get", "/x", "--s3-key", "nothing.html").is_("usage", 2).says("--s3-key")


def two_versions_are_compared(cli):
    text = [f"line {number}" for number in range(30)]
    changed = text[:3] + ["inserted"] + text[3:20] + ["changed"] + text[21:-1] + ["last"]
    cli.publish("/x", "--history", "9", body="\n".join(text).encode())
    cli.publish("/x", "--history", "9", body="\n".join(changed).encode())
    cli.publish("/x", "--history", "9", "--status", "203", body=b"\xff\x00")
    binary, new, old = (row["sk"] for row in cli("versions", "/x")["versions"])

    answer = cli("diff", "/x", old, new).is_(
        "differs", to=new, from_bytes=len("\n".join(text)), to_sha256=sha256("\n".join(changed)), **{"from": old}
    )
    head = ["status: 200", "content-type: text/html; charset=utf-8", ""]
    expected = difflib.unified_diff(head + text, head + changed, old, new, lineterm="", n=3)
    found = [line for line in answer["diff"].splitlines() if not line.startswith("\\")]
    same(found, list(expected))
    same(answer["diff"].count("\n\\ No newline at end of file\n"), 2)
    same(cli.plain("diff", "/x", old, new).out.decode(), answer["diff"])

    same((cli.plain("diff", "/x", old, old).code, cli.plain("diff", "/x", old, old).out), (0, b""))
    cli("diff", "/x", old, old).is_("same")
    cli("diff", "--pk", f"CACHE#{sha256('/x')}", old, new.removeprefix("VER#")).is_("differs", diff=answer["diff"])
    current = cli("diff", "/x", new).is_("differs", to="META", to_bytes=2)
    same("diff" in current, False)  # it is no text
    same(cli.plain("diff", "/x", new).out.decode().splitlines()[-1], f"+2 bytes, SHA-256 {current['to_sha256']}")
    cli("diff", "/x", binary).is_("same")
    cli("diff", "/x", old, "VER#nothing").is_("missing", 1).says("VER#nothing", "facetheory versions")
    cli("diff", "/y", old).is_("missing", 1)
    cli("diff", "/x").is_("usage", 2).says("A is missing")


def pages_with_nothing_in_common_are_compared_too(cli):
    for word in ("a", "b"):
        cli.publish("/x", "--history", "9", body="".join(f"{word} {number}\n" for number in range(5000)).encode())
    new, old = (row["sk"] for row in cli("versions", "/x")["versions"])
    lines = cli("diff", "/x", old, new).is_("differs")["diff"].splitlines()
    same((sum(line.startswith("-a ") for line in lines), sum(line.startswith("+b ") for line in lines)), (5000, 5000))


def versions_that_are_not_there_are_told(cli):
    cli("table", "create").is_("done")
    cli("versions", "/x").is_("done", versions=[])
    cli("rollback", "/x", "VER#nothing").is_("missing", 1).says("VER#nothing", "facetheory versions")
    cli("rollback", "/x").is_("usage", 2).says("VERSION is missing")
    for version in ("", "VER#", "a\nb", "v" * 2000):
        cli("rollback", "/x", version).is_("usage", 2).says("VERSION")
    cli("pin", "/x").is_("missing", 1)
    cli("unpin", "/x").is_("not_pinned")


# --- Lists ---


def pages_are_listed_by_tenant(cli):
    cli.publish("/b")
    cli.publish("/a", "--generated-at", "1000", "--revalidate", "5s")
    cli.publish("/a", "--tenant", "acme")
    same(cli("list").is_("done")["tenants"][0]["tenant"], "")
    listed = {group["tenant"]: group["pages"] for group in cli("list")["tenants"]}
    same(
        {tenant: [(page["cache_key"], page["state"]) for page in pages] for tenant, pages in listed.items()},
        {"": [("/a", "stale"), ("/b", "fresh")], "acme": [("/a", "fresh")]},
    )
    between(int(time.time()) - 1000 - 20, listed[""][0]["age"], int(time.time()) - 1000)
    same(listed["acme"][0]["pk"], f"TENANT#acme#CACHE#{sha256('/a')}")
    same([group["tenant"] for group in cli("list", "--tenant", "acme")["tenants"]], ["acme"])
    cli("list", "--tenant", "nobody").is_("done", tenants=[])
    same([page["cache_key"] for group in cli("list", "--state", "stale")["tenants"] for page in group["pages"]], ["/a"])
    same(sum(len(group["pages"]) for group in cli("list", "--limit", "2")["tenants"]), 2)
    cli("invalidate", "--whole-tenant", "acme", "--purge").is_("purged", tenant="acme")
    same([page["state"] for page in cli("list", "--tenant", "acme")["tenants"][0]["pages"]], ["missing"])
    text = cli.plain("list").out.decode().splitlines()
    same(
        (text[0], text[1].split()[:2], text[4], text[5].split()[:2]),
        ("no tenant", ["stale", "/a"], "tenant acme", ["missing", "/a"]),
    )


# --- Requests ---


def requests_are_claimed_completed_and_shown(cli):
    now = int(time.time())
    claimed = cli("request", "claim", "/x", "--id", "r", "--input", "b=2", "--input", "a=1", "--for", "1m").is_(
        "claimed", status="STARTED", request_hash=sha256('{"a":"1","b":"2"}'), attempt=1
    )
    between(now + 60, claimed["in_progress_expires_at"], now + 70)
    cli("request", "claim", "/x", "--id", "r", "--input", "a=1", "--input", "b=2").is_(
        "in_progress", 3, in_progress_expires_at=claimed["in_progress_expires_at"]
    ).says("in progress")
    cli("request", "claim", "/x", "--id", "r").is_("mismatch", 3).says("--input", "--id")
    cli("request", "complete", "/x", "--id", "r", "--token", TOKEN, "--result", "k").is_("lost", 3).says("request show")
    cli("request", "complete", "/x", "--id", "r", "--token", claimed["owner_token"], "--result", "k").is_(
        "completed", status="COMPLETED", result_s3_key="k"
    )
    cli("request", "claim", "/x", "--id", "r", "--input", "a=1", "--input", "b=2").is_(
        "completed", 3, result_s3_key="k"
    )
    shown = cli("request", "show", "/x", "--id", "r").is_("found", status="COMPLETED", result_s3_key="k")
    same("owner_token" in shown, False)
    cli("request", "show", "/x", "--id", "other").is_("missing")
    cli("request", "complete", "/x", "--id", "other", "--token", TOKEN, "--result", "k").is_("lost", 3).says(
        "is not there"
    )


def requests_are_handed_back_or_given_up(cli):
    owner = cli.plain("request", "claim", "/x", "--id", "r").out.decode().strip()
    cli("request", "fail", "/x", "--id", "r", "--token", TOKEN).is_("lost", 3)
    cli("request", "fail", "/x", "--id", "r", "--token", owner, "--error", "no origin").is_(
        "handed_back", status="FAILED", retryable=True, error="no origin"
    )
    second = cli("request", "claim", "/x", "--id", "r").is_("claimed", attempt=2)
    cli(
        "request", "fail", "/x", "--id", "r", "--token", second["owner_token"], "--final", "--error", "no such page"
    ).is_("given_up", status="FAILED", retryable=False)
    cli("request", "claim", "/x", "--id", "r").is_("failed", 3, status="FAILED", error="no such page").says(
        "for good (no such page); choose"
    )
    claim = cli("request", "claim", "/x", "--id", "silent").is_("claimed")
    cli("request", "fail", "/x", "--id", "silent", "--token", claim["owner_token"], "--final").is_("given_up")
    cli("request", "claim", "/x", "--id", "silent").is_("failed", 3).says("has failed for good; choose another --id")
    cli("request", "claim", "/x", "--id", "r", "--input", "a=b").is_("mismatch", 3)


def the_ways_to_name_a_request_are_checked(cli):
    cli("request", "claim", "/x").is_("usage", 2).says("--id is required")
    cli("request", "complete", "/x", "--id", "r", "--token", TOKEN).is_("usage", 2).says("--result is required")
    cli("request", "claim", "/x", "--id", "r", "--for", "1s").is_("usage", 2).says("--for")
    cli("request", "claim", "/x", "--id", "i" * 3000).is_("claimed")  # hashed where it would not fit
    cli("request", "claim", "/x", "--id", "i" * 3000).is_("in_progress", 3)


# --- Invalidation and cleanup ---


def a_table_that_cannot_be_reached_is_described_as_far_as_it_is_known(cli):
    cli = unnamed(cli).with_environment(
        FACETHEORY_TABLE="dynamodb:away",
        AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1",
        AWS_REGION="eu-west-1",
        AWS_ACCESS_KEY_ID="a",
        AWS_SECRET_ACCESS_KEY="b",
        AWS_MAX_ATTEMPTS="1",
    )
    cli("table", "describe", "--bodies", "file:b").is_(
        "failed", 1, code="unavailable", table_by="FACETHEORY_TABLE", bodies_by="--bodies"
    )
    answer = cli.shell("$FT table describe --bodies file:b 2>&1")
    same(answer.code, 1)
    lines = answer.out.decode().splitlines()
    same(
        (
            lines[0],
            [line.split()[0] for line in lines[1:5]],
            "dynamodb:away" in lines[1],
            lines[-1].startswith("facetheory: "),
        ),
        ("failed", ["uri", "table_by", "bodies", "bodies_by"], True, True),
    )
    cli("table", "describe", "--table", "lmdb:/proc/none", "--bodies", "file:b").is_(
        "failed", 1, table_by="--table", bodies_by="--bodies"
    )


def a_page_is_invalidated_once_and_for_all(cli):
    cli("table", "create").is_("done")
    cli("invalidate", "/x").is_("nothing", had_page=False, had_lease=False)
    same(cli("table", "describe")["items"], 0)
    published = cli.publish("/x")
    token = cli("lease", "acquire", "/x")["lease_token"]
    cli("invalidate", "/x").is_("invalidated", had_page=True, had_lease=True)
    cli("meta", "/x").is_(
        "stale", generated_at=0, last_generated_at=published["generated_at"], reason="it was invalidated"
    )
    cli("publish", "/x", "--token", token, "--body", "-", "--revalidate", "60s", stdin=b"late").is_("lost", 3)
    same(cli.plain("get", "/x").out, b"<h1>Hello</h1>\n")
    cli("invalidate", "/x", "--purge").is_("purged", had_page=True)
    cli("meta", "/x").is_("missing")
    cli("invalidate", "/x", "--purge").is_("nothing")
    token = cli("lease", "acquire", "/x")["lease_token"]
    cli("invalidate", "/x").is_("invalidated", had_page=False, had_lease=True)
    cli("lease", "refresh", "/x", "--token", token).is_("lost", 3)


def exactly_one_thing_is_invalidated(cli):
    for words in (
        [],
        ["/x", "--tag", "t"],
        ["--tag", "t", "--whole-tenant", "t"],
        ["--pk", f"CACHE#{sha256('/x')}", "--whole-tenant", "t"],
    ):
        cli("invalidate", *words).is_("usage", 2).says("exactly one of")
    cli("invalidate", "--whole-tenant", "a", "--tenant", "b").is_("usage", 2).says("--whole-tenant")


def tags_and_tenants_are_invalidated_apart(cli):
    now = int(time.time())
    cli.publish("/x", "--tag", "news")
    cli.publish("/x", "--tag", "news", "--tenant", "acme")
    marked = cli("invalidate", "--tag", "news", "--tenant", "acme").is_("invalidated", tag="news", tenant="acme")
    between(now, marked["invalidated_at"], now + 20)
    cli("get", "/x", "--tenant", "acme").is_("stale")
    cli("get", "/x").is_("fresh")
    cli("invalidate", "--whole-tenant", "acme").is_("invalidated", tenant="acme")
    cli("get", "/x").is_("fresh")


def pages_without_a_tenant_are_found_by_their_tags_without_one(cli):
    pk = "CACHE#default::/news/{slug}?slug=a"  # FaceTheory's, whose applications without tenants write "default"
    for tenant in ([], ["--tenant", "default"]):
        token = cli("lease", "acquire", "--pk", pk, "--tag", "news").is_("acquired")["lease_token"]
        cli(
            "publish", "--pk", pk, "--token", token, "--body", "-", "--revalidate", "1h", "--tag", "news", stdin=b"x"
        ).is_("published")
        cli("get", "--pk", pk).is_("fresh")
        cli("invalidate", "--tag", "news", "--tenant", "acme").is_("invalidated")
        cli("get", "--pk", pk).is_("fresh")
        cli("invalidate", "--tag", "news", *tenant).is_("invalidated")
        cli("get", "--pk", pk).is_("stale")


def the_answer_says_whom_an_invalidation_reaches(cli):
    cli.publish("/x", "--tag", "news")
    for words in (["--tag", "news"], ["--tag", "news", "--purge"], ["--whole-tenant", "acme"]):
        reaches = cli("invalidate", *words)["reaches"]
        same("not readers that know only META" in reaches, True)
        same("META claims a time to come and that nobody asks for until then: --every-page" in reaches, True)
    cli("invalidate", "--tag", "news", "--every-page").is_("invalidated", reaches="every reader", untold=0)
    same("reaches" in cli("invalidate", "/x"), False)


def every_page_of_a_tag_is_closed_for_readers_that_know_only_meta(cli):
    for key in ("/a", "/b", "/c"):
        cli.publish(key, "--tag", "news")
    cli.publish("/other", "--tag", "home")
    cli.publish("/a", "--tag", "news", "--tenant", "acme")
    cli("invalidate", "--tag", "news", "--every-page", "--dry-run").is_("would", seen=3, closed=3, removed=0)
    cli("get", "/a").is_("fresh")
    same(cli("meta", "/a")["generated_at"] > 0, True)
    cli("invalidate", "--tag", "news").is_("invalidated")
    same(cli("meta", "/a")["generated_at"] > 0, True)  # that is what others see
    cli("invalidate", "--tag", "news", "--every-page").is_(
        "invalidated", seen=3, closed=3, removed=0, pinned=0, already_closed=0, current=0
    )
    for key in ("/a", "/b", "/c"):
        cli("meta", key).is_("stale", generated_at=0)
    cli("get", "/other").is_("fresh")
    cli("get", "/a", "--tenant", "acme").is_("fresh")
    cli("invalidate", "--tag", "news", "--every-page").is_("invalidated", seen=3, closed=0, already_closed=3)


def every_page_of_a_purged_tenant_is_removed(cli):
    for key in ("/a", "/b"):
        cli.publish(key, "--tenant", "acme", "--history", "2")
    cli("pin", "/b", "--tenant", "acme").is_("pinned")
    cli("invalidate", "--whole-tenant", "acme", "--every-page").is_("invalidated", seen=2, closed=1, pinned=1)
    cli("invalidate", "--whole-tenant", "acme", "--purge", "--every-page").is_("purged", seen=2, removed=2)
    for key in ("/a", "/b"):
        cli("meta", key, "--tenant", "acme").is_("missing", reason="there is no META row")
    same(len(cli("versions", "/a", "--tenant", "acme")["versions"]), 1)


REST = "every reader, if the walks before this one left no page untold"


def the_progress_of_a_walk_is_shown_on_a_terminal(cli):
    for i in range(3):
        cli.publish(f"/{i}", "--tag", "news")

    def on_a_terminal(*words):
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [cli.program, "--json", "invalidate", "--tag", "news", "--every-page", *words],
            cwd=cli.folder,
            env=cli.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # All who had it open have ended.
            pass
        os.close(ours)
        out, _ = process.communicate(timeout=60)
        same(process.returncode, 0)
        return json.loads(out), shown.decode()

    answer, shown = on_a_terminal("--limit", "1")
    same((answer["closed"], "0 %" in shown or "[#" in shown, shown.endswith("\r\x1b[K")), (1, True, True))
    # Nobody can say how much of the table is behind a walk that goes on.
    answer, shown = on_a_terminal("--after", answer["after"])
    same((answer["closed"], "%" in shown, "closed 2" in shown), (2, False, True))
    answer, shown = on_a_terminal()
    same(("[####################] 100 %, pages 3, closed 0" in shown, answer["already_closed"]), (True, 3))


def a_walk_over_every_page_goes_on_where_it_stopped(cli):
    for i in range(5):
        cli.publish(f"/{i}", "--tag", "news")
    words = ["invalidate", "--tag", "news", "--every-page", "--rate", "1000"]
    first = cli(*words, "--limit", "2").is_("invalidated", seen=2, closed=2, invalidations=1)
    same("seen so far" in first["reaches"], True)
    second = cli(*words, "--limit", "2", "--after", first["after"]).is_("invalidated", seen=2, closed=2)
    same("invalidations" in second, False)
    cli.publish("/0", "--tag", "news")  # Rendered since: going on does not invalidate it again.
    last = cli(*words, "--after", second["after"]).is_("invalidated", seen=1, closed=1, reaches=REST)
    same("after" in last, False)
    again = cli(*words, "--after", "start").is_("invalidated", seen=5, closed=0)
    same(again["already_closed"] + again["current"], 5)
    same(cli("meta", "/0")["generated_at"] > 0, again["current"] == 1)
    text = cli.plain(*words, "--limit", "1").out.decode()
    same("after" in text and "closed" in text and "reaches" in text, True)


def a_walk_that_is_interrupted_prints_its_cursor(cli):
    for i in range(10):
        cli.publish(f"/{i}", "--tag", "news")
    process = cli.start("invalidate", "--tag", "news", "--every-page", "--rate", "1")
    until(lambda: any(cli("meta", f"/{i}")["generated_at"] == 0 for i in range(10)), "a page is closed")
    process.send_signal(signal.SIGINT)
    stopped = cli.finish(process).is_("interrupted", 130).says("--after '")
    cli("invalidate", "--tag", "news", "--every-page", "--after", stopped["after"]).is_("invalidated", reaches=REST)
    for i in range(10):
        cli("meta", f"/{i}").is_("stale", generated_at=0)


def what_belongs_to_a_walk_over_every_page_is_refused_without_one(cli):
    cli("table", "create").is_("done")
    for words in (["--dry-run"], ["--rate", "5"], ["--limit", "5"], ["--after", "start"]):
        cli("invalidate", "--tag", "news", *words).is_("usage", 2).says("--every-page")
    cli("invalidate", "/x", "--every-page").is_("usage", 2).says("--every-page")
    cli("invalidate", "--tag", "news", "--every-page", "--after", "elsewhere").is_("usage", 2).says("--after")
    cli("invalidate", "--tag", "news", "--every-page", "--after", "start").is_("usage", 2).says("--after")
    cli("invalidate", "--tag", "news", "--every-page", "--rate", "0").is_("usage", 2).says("--rate")


def a_copied_table_deletes_nothing_of_the_originals(cli):
    original = ["--table", "lmdb:original", "--bodies", "file:bodies"]
    copy = ["--table", "lmdb:copy", "--bodies", "file:bodies"]
    cli("regenerate", "/a", "--revalidate", "60s", *original, "--", "echo", "a").is_("regenerated")
    shutil.copytree(cli.folder / "original", cli.folder / "copy")
    cli("regenerate", "/b", "--revalidate", "60s", *original, "--", "echo", "b").is_("regenerated")
    for _ in range(3):
        cli("gc", "--grace", "0s", *copy).is_("failed", 1).says("a copy of lmdb:", "original", "file:")
        time.sleep(0.4)
    same(cli.plain("get", "/b", *original).out, b"b\n")
    # Nor by another way to the same bodies; and that the original has once taken it makes no difference.
    (cli.folder / "link").symlink_to("bodies")
    for _ in range(2):
        cli("gc", "--grace", "0s", "--table", "lmdb:copy", "--bodies", "file:link").is_("failed", 1).says(
            "a copy of lmdb:"
        )
    cli("gc", "--grace", "0s", "--table", "lmdb:original", "--bodies", "file:link").is_("done", bodies_deleted=0)
    shutil.copytree(cli.folder / "original", cli.folder / "copy2")
    cli("regenerate", "/c", "--revalidate", "60s", *original, "--", "echo", "c").is_("regenerated")
    for _ in range(2):
        cli("gc", "--grace", "0s", "--table", "lmdb:copy2", "--bodies", "file:bodies").is_("failed", 1).says(
            "a copy of lmdb:"
        )
    same(cli.plain("get", "/c", *original).out, b"c\n")


def garbage_is_collected_in_two_passes(cli):
    token = cli("lease", "acquire", "/x")["lease_token"]
    cli("publish", "/x", "--token", token, "--body", "-", "--revalidate", "1h", stdin=b"first").is_("published")
    cli.publish("/x", body=b"second")
    cli("gc", "--dry-run", "--grace", "0").is_("done", dry_run=True, bodies_seen=2, bodies_deleted=0, bodies_recorded=1)
    same("rows" in cli.plain("gc", "--dry-run").out.decode(), True)
    cli("gc", "--grace", "0s").is_("done", bodies_recorded=1, bodies_deleted=0)
    time.sleep(1.1)
    cli("gc", "--grace", "0s").is_("done", bodies_seen=2, bodies_deleted=1, bytes_deleted=5)
    cli("gc", "--grace", "0s").is_("done", bodies_seen=1, bodies_deleted=0)
    same(cli.plain("get", "/x").out, b"second")


# --- DynamoDB: rows that others wrote, tables that are not there ---


def one_node_sweeps_at_a_time(cli, table):
    cli = cli.with_environment(FACETHEORY_TABLE="dynamodb:swept-alone")
    cli("table", "create").is_("done")
    now = int(time.time())

    def sweeps_until(time_of_its_end):
        table.client.put_item(
            TableName="swept-alone",
            Item={
                "pk": "GC#SWEEP",
                "sk": "LOCK",
                "lease_token": "t",
                "owner": "gateway-7",
                "lease_expires_at": time_of_its_end,
            },
        )

    sweeps_until(now + 60)
    cli("gc").is_("held", 3, lease_expires_at=now + 60).says("gateway-7 sweeps already")
    cli("gc", "--dry-run").is_("done")
    sweeps_until(now)
    cli("gc").is_("done")


def rows_of_wrong_type_are_told(cli, table):
    now = int(time.time())

    def put(key, **row):
        table.client.put_item(TableName=TABLE, Item={"pk": f"CACHE#{sha256(key)}", **row})

    good = {"sk": "META", "s3_key": "k.html", "generated_at": now, "revalidate_seconds": 60}
    put("/time", **good | {"generated_at": str(now)})
    put("/missing", sk="META", s3_key="k.html")
    put("/key", **good | {"s3_key": 5})
    put("/tags", **good | {"tags": {"not": "a list"}})
    for key, attribute in {"/time": "generated_at", "/key": "s3_key", "/tags": "tags"}.items():
        for command in (["meta", key], ["get", key], ["regenerate", key, "--revalidate", "60s", "--", "true"]):
            cli(*command).is_("failed", 1, code="corrupt").says("META", attribute)
    same(cli("meta", "/missing").code in (0, 1), True)
    put("/lock", sk="LOCK", lease_token="t", lease_expires_at="soon")
    cli("lease", "acquire", "/lock").is_("failed", 1, code="corrupt").says("LOCK", "lease_expires_at")
    cli("lease", "show", "/lock").is_("failed", 1, code="corrupt")
    put("/request", sk="REQ#r", request_hash="h", status=7, ttl=now + 1000)
    cli("request", "claim", "/request", "--id", "r").is_("failed", 1, code="corrupt").says("REQ#r", "status")
    cli("request", "show", "/request", "--id", "r").is_("failed", 1, code="corrupt")
    put("/request", sk="REQ#s", request_hash="h", status="UNHEARD-OF", ttl=now + 1000)
    cli("request", "show", "/request", "--id", "s").is_("failed", 1, code="corrupt").says("UNHEARD-OF")
    put("/version", sk="VER#1", s3_key=["k"], generated_at=now, revalidate_seconds=60)
    cli("versions", "/version").is_("failed", 1, code="corrupt").says("VER#1", "s3_key")
    put("/good", **good | {"extra": {"of": "another writer"}, "etag": '"e"'})
    cli("meta", "/good").is_("fresh", s3_key="k.html", etag='"e"')
    cli("get", "/good").is_("failed", 1, code="corrupt").says("k.html", "heals")
    listed = cli("list").is_("done").says("warning: skipped", sha256("/time"), "generated_at")
    same(f"CACHE#{sha256('/good')}" in [page["pk"] for group in listed["tenants"] for page in group["pages"]], True)
    same(f"CACHE#{sha256('/time')}" in [page["pk"] for group in listed["tenants"] for page in group["pages"]], False)


def pages_whose_tags_another_writer_has_dropped_are_counted_and_found_by_their_routes(cli, table):
    pages = ["CACHE#untold::/news/{slug}?slug=a", f"TENANT#untold#CACHE#{sha256('/hashed')}"]

    def replace():
        for pk in pages:
            table.client.put_item(
                TableName=TABLE,
                Item={
                    "pk": pk,
                    "sk": "META",
                    "s3_key": "k.html",
                    "generated_at": int(time.time()) - 10,
                    "revalidate_seconds": 3600,
                },
            )

    replace()
    words = ["invalidate", "--tag", "news", "--every-page", "--tenant", "untold"]
    answer = cli(*words).is_("invalidated", seen=0, untold=2)
    same(
        ("2 pages whose META another writer has replaced" in answer["reaches"], "--whole-tenant" in answer["reaches"]),
        (True, True),
    )
    same("2 pages" in cli.plain(*words).out.decode(), True)
    cli.file(
        "facetheory.toml",
        b"origin = 'http://127.0.0.1:1'\n[[routes]]\npattern = '/news/{slug}'\nhosts = ['h']\nkey = 'facetheory'\n"
        b"tags = ['news']\n",
    )
    answer = cli(*words).is_("invalidated", seen=1, closed=1, untold=1)
    same("1 page whose META another writer has replaced" in answer["reaches"], True)
    cli("meta", "--pk", pages[0]).is_("stale", generated_at=0)
    cli.file(
        "facetheory.toml", b"origin = 'http://127.0.0.1:1'\nmistake = 1\n"
    )  # It says what it cannot use, and goes on.
    cli(*words).is_("invalidated", seen=0, untold=2).says("facetheory.toml", "mistake")
    cli("invalidate", "--whole-tenant", "untold", "--every-page").is_(
        "invalidated", untold=0, closed=1, already_closed=1, reaches="every reader"
    )


def a_page_that_another_writer_has_replaced_has_the_tags_of_its_route(cli, table):
    pk = "CACHE#routed::/news/{slug}?slug=a"
    words = ["--pk", pk, "--tenant", "routed"]
    made = cli("regenerate", *words, "--revalidate", "1h", "--", "echo", "first").is_("regenerated")
    table.client.put_item(
        TableName=TABLE,
        Item={
            "pk": pk,
            "sk": "META",
            "s3_key": made["s3_key"],
            "generated_at": int(time.time()) - 10,
            "revalidate_seconds": 3600,
        },
    )
    cli("invalidate", "--tag", "news", "--tenant", "routed").is_("invalidated")

    def listed():
        (group,) = cli("list", "--tenant", "routed")["tenants"]
        (page,) = group["pages"]
        return page["state"], page.get("tags")

    cli("get", *words).is_("fresh")  # Nobody says here which tags it has.
    same(listed(), ("fresh", None))
    cli("regenerate", *words, "--revalidate", "1h", "--", "false").is_("fresh")
    cli.file(
        "facetheory.toml",
        b"origin = 'http://127.0.0.1:1'\n[[routes]]\npattern = '/news/{slug}'\nhosts = ['h']\nkey = 'facetheory'\n"
        b"tags = ['news']\n",
    )
    cli("get", *words).is_("stale", reason="its tag news was invalidated", tags=["news"])
    same(listed(), ("stale", ["news"]))
    cli("regenerate", *words, "--revalidate", "1h", "--", "echo", "second").is_("regenerated")
    same(listed(), ("fresh", None))  # Ours says itself that it has none.


def a_page_named_by_its_url_has_the_tags_of_its_route_after_another_writer(cli, table):
    url = "https://by-url.org/news/e%20g?page=2"
    words = [url, "--tenant", "by-url.org"]
    made = cli("regenerate", *words, "--revalidate", "1h", "--", "echo", "first").is_("regenerated")
    row = {
        "pk": made["pk"],
        "sk": "META",
        "s3_key": made["s3_key"],
        "generated_at": int(time.time()) - 10,
        "revalidate_seconds": 3600,
    }
    table.client.put_item(TableName=TABLE, Item=row)
    tag = ["invalidate", "--tag", "news-e g", "--tenant", "by-url.org"]
    cli(*tag).is_("invalidated")
    cli("get", *words).is_("fresh")  # Nobody says here which tags it has.
    cli.file(
        "facetheory.toml",
        b"origin = 'http://127.0.0.1:1'\n[[routes]]\npattern = '/news/{slug}'\ntenant = 'host'\n"
        b"tags = ['news-{slug}']\n",
    )
    cli("get", *words).is_("stale", reason="its tag news-e g was invalidated", tags=["news-e g"])
    cli(*tag, "--every-page").is_("invalidated", seen=0, untold=1)
    table.client.put_item(TableName=TABLE, Item={**row, "cache_key": url})
    cli(*tag, "--every-page").is_("invalidated", seen=1, closed=1, untold=0)
    table.client.put_item(TableName=TABLE, Item=row)
    cli("regenerate", *words, "--revalidate", "1h", "--", "echo", "second").is_("regenerated")


def marks_of_the_tenant_default_count_where_they_stood_before(cli, table):
    pk = "CACHE#default::/old?"
    now = int(time.time())
    table.client.put_item(
        TableName=TABLE,
        Item={
            "pk": pk,
            "sk": "META",
            "s3_key": "k.html",
            "generated_at": now - 100,
            "revalidate_seconds": 3600,
            "tags": {"old"},
        },
    )
    table.client.put_item(
        TableName=TABLE,
        Item={"pk": "TENANT#default#TAG#old", "sk": "META", "invalidated_at": now - 50, "purged_at": now - 50},
    )
    cli("get", "--pk", pk).is_("missing", 1).says("its tag old was purged")


def a_table_that_does_not_exist_is_told_and_can_be_made(cli):
    cli = cli.with_environment(FACETHEORY_TABLE="dynamodb:made-by-the-cli")
    for words in (
        ["meta", "/x"],
        ["lease", "acquire", "/x"],
        ["list"],
        ["table", "describe"],
        ["invalidate", "/x"],
        ["request", "claim", "/x", "--id", "r"],
        ["regenerate", "/x", "--revalidate", "60s", "--", "true"],
    ):
        cli(*words).is_("failed", 1).says("made-by-the-cli")
    cli("table", "create").is_("done", status="ACTIVE", uri="dynamodb:made-by-the-cli")
    cli("table", "create").is_("done", status="ACTIVE")
    cli("meta", "/x").is_("missing")
    cli.publish("/x")
    cli("meta", "/x").is_("fresh")


def a_table_named_by_a_foreign_variable_is_warned_about(cli):
    named = dict(cli.environment)
    named["APPTHEORY_CACHE_TABLE_NAME"] = named.pop("FACETHEORY_CACHE_TABLE_NAME")
    other = Cli(cli.program, cli.folder)
    other.environment = named
    other("meta", "/never").is_("missing").says(
        "warning", "APPTHEORY_CACHE_TABLE_NAME", f"FACETHEORY_CACHE_TABLE_NAME={TABLE}"
    )


def a_server_that_is_not_there_is_told(cli):
    nowhere = cli.with_environment(AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:9")
    nowhere("meta", "/x").is_("failed", 1, code="unavailable").says("127.0.0.1:9")


def a_server_that_says_nothing_is_given_up_after_about_ten_seconds(cli):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = cli.with_environment(AWS_ENDPOINT_URL_DYNAMODB=f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        hanging("meta", "/x").is_("failed", 1, code="unavailable").says("GetItem on dynamodb:")
        between(5, time.monotonic() - began, 20)


def the_form_of_pointers_is_described_and_what_says_so(cli):
    def described(bodies, **variables):
        answer = unnamed(cli, FACETHEORY_TABLE="lmdb:t", FACETHEORY_BODIES=bodies, **variables)("table", "describe")
        answer.is_("done")
        return answer.fields.get("pointers"), answer.fields.get("pointers_by"), answer.fields.get("trouble")

    unnamed(cli, FACETHEORY_TABLE="lmdb:t")("table", "create").is_("done")
    variable = "FACETHEORY_ISR_POINTERS"
    same(described("s3://b/p"), ("complete", "the default", None))
    same(described("s3://b/p", **{variable: "relative"}), ("relative", variable, None))
    same(described("s3://b/p?pointers=complete", **{variable: "relative"}), ("complete", "?pointers=complete", None))
    for bodies in ("s3://b/p", "s3:"):
        same(
            described(bodies, FACETHEORY_ISR_BUCKET="b", **{variable: "short"}),
            (None, None, f'{variable} is "short"; write complete or relative'),
        )
    same("?pointers=short" in described("s3://b/p?pointers=short")[2], True)
    same(described("file:b", **{variable: "relative"}), (None, None, None))


def the_protocol_works_on_dynamodb(cli):
    cli = cli.with_environment(
        FACETHEORY_TABLE="dynamodb:protocol-alone"
    )  # `gc` refuses a table with rows that cannot be read.
    cli("table", "create").is_("done")
    key = "/dynamodb"
    first = cli("regenerate", key, "--revalidate", "1h", "--history", "2", "--id", "job", "--", "echo", "one").is_(
        "regenerated", version=1
    )
    same(cli.plain("get", key).out, b"one\n")
    cli("invalidate", key).is_("invalidated")
    cli("regenerate", key, "--revalidate", "1h", "--history", "2", "--id", "job", "--", "false").is_(
        "replayed", result_s3_key=first["s3_key"]
    )
    cli("regenerate", key, "--revalidate", "1h", "--id", "job", "--", "false").is_("mismatch", 3)
    cli("regenerate", key, "--revalidate", "1h", "--history", "2", "--", "echo", "two").is_("regenerated", version=2)
    cli("rollback", key, first["current_sk"]).is_("rolled_back")
    same(cli.plain("get", key).out, b"one\n")
    cli("unpin", key).is_("unpinned")
    cli("gc", "--dry-run").is_("done", table_expires_rows=True)


# --- Which stores are used, and whose the bodies are ---


def unnamed(cli, **variables):
    """In DynamoDB's environment, without what names stores there."""
    rest = {name: value for name, value in cli.environment.items() if not name.startswith("FACETHEORY_")}
    other = Cli(cli.program, cli.folder)
    other.environment = rest | variables
    return other


OPTION = ("--table", "lmdb:of-option/t", "--bodies", "file:of-option/b")
EMPTY = ("--config", "empty.toml")
VARIABLES = {"FACETHEORY_TABLE": "lmdb:of-variable/t", "FACETHEORY_BODIES": "file:of-variable/b"}
SPECIFIED = {"FACETHEORY_CACHE_TABLE_NAME": TABLE, "FACETHEORY_ISR_BUCKET": "bucket"}
PREFIXED = SPECIFIED | {"FACETHEORY_ISR_PREFIX": "p"}
FOREIGN = {"APPTHEORY_CACHE_TABLE_NAME": TABLE, "FACETHEORY_BODIES": "s3://b/p"}
DYNAMODB = f"dynamodb:{TABLE}"
# Words and environment of a command, then its table, what named that, its bodies and what named those. HERE is the
# folder in which it runs.
CHOICES = (
    (OPTION, VARIABLES | SPECIFIED, "lmdb:HERE/of-option/t", "--table", "file:HERE/of-option/b", "--bodies"),
    (("--data", "of-option"), VARIABLES, "lmdb:HERE/of-option/table", "--data", "lmdb:HERE/of-option/bodies", "--data"),
    (
        (*OPTION[:2], "--data", "of-option"),
        VARIABLES,
        "lmdb:HERE/of-option/t",
        "--table",
        "lmdb:HERE/of-option/bodies",
        "--data",
    ),
    (
        (),
        VARIABLES | SPECIFIED,
        "lmdb:HERE/of-variable/t",
        "FACETHEORY_TABLE",
        "file:HERE/of-variable/b",
        "FACETHEORY_BODIES",
    ),
    (
        (),
        SPECIFIED,
        "lmdb:HERE/of-file/t",
        "table in facetheory.toml:2",
        "file:HERE/of-file/b",
        "bodies in facetheory.toml:3",
    ),
    (
        ("--config", "data.toml"),
        SPECIFIED,
        "lmdb:HERE/of-data/table",
        "data in data.toml:1",
        "lmdb:HERE/of-data/bodies",
        "data in data.toml:1",
    ),
    (EMPTY, SPECIFIED, DYNAMODB, "FACETHEORY_CACHE_TABLE_NAME", "s3://bucket/isr", "FACETHEORY_ISR_BUCKET"),
    (EMPTY, PREFIXED, DYNAMODB, "FACETHEORY_CACHE_TABLE_NAME", "s3://bucket/p", "FACETHEORY_ISR_BUCKET"),
    (EMPTY, FOREIGN, DYNAMODB, "APPTHEORY_CACHE_TABLE_NAME", "s3://b/p", "FACETHEORY_BODIES"),
    (EMPTY, {}, "lmdb:HERE/facetheory-data/table", "the default", "lmdb:HERE/facetheory-data/bodies", "the default"),
)


def one_rule_chooses_the_stores(cli):
    cli.file(
        "facetheory.toml", b"# The gateway's.\ntable = 'lmdb:of-file/t'\nbodies = 'file:of-file/b'\n[routes.mistake\n"
    )
    unnamed(cli)("table", "describe").is_("usage", 2).says("facetheory.toml:4")
    # A mistake elsewhere is the gateway's, and no reason to refuse an invalidation.
    cli.file(
        "facetheory.toml",
        b"# The gateway's.\ntable = 'lmdb:of-file/t'\nbodies = 'file:of-file/b'\nunheard_of = 1\nlisten = 5\n",
    )
    cli.file("data.toml", b"data = 'of-data'\n")
    cli.file("empty.toml", b"origin = 'http://127.0.0.1:1'\n")
    here = str(cli.folder.resolve())
    for words, environment, table, table_by, bodies, bodies_by in CHOICES:
        for command in ("create", "describe"):
            answer = unnamed(cli, **environment)("table", command, *words).is_(
                "done", table_by=table_by, bodies=bodies.replace("HERE", here), bodies_by=bodies_by
            )
            same(answer["uri"].replace("lmdb:./", "lmdb:"), table.replace("HERE", here))
    # The gateway, by the same rule, of a file that is right in all of it.
    cli.file("facetheory.toml", b"origin = 'http://127.0.0.1:1'\ntable = 'lmdb:of-file/t'\nbodies = 'file:of-file/b'\n")
    for words, environment, table, bodies in (
        ((), SPECIFIED, "lmdb:of-file/t", "file:of-file/b"),
        (OPTION, VARIABLES, "lmdb:of-option/t", "file:of-option/b"),
        ((), VARIABLES, "lmdb:of-variable/t", "file:of-variable/b"),
    ):
        unnamed(cli, **environment)("serve", "--check-config", *words).is_("ok", table=table, bodies=bodies)
    unnamed(cli)("meta", "/x", "--config", "nowhere.toml").is_("usage", 2).says("nowhere.toml")
    cli.file("facetheory.toml", b"table = 5\n")
    unnamed(cli)("invalidate", "/x").is_("usage", 2).says("facetheory.toml:1", "table")


def the_variable_of_the_specification_names_the_table_for_every_command(cli, table):
    """In the gateway's environment an invalidation is not lost in a folder. It needs no bodies, and so no bucket."""
    named = unnamed(cli, FACETHEORY_CACHE_TABLE_NAME=TABLE)
    named("invalidate", "--tag", "specified", "--purge").is_("purged")
    same(
        table.client.get_item(TableName=TABLE, Key={"pk": "TAG#specified", "sk": "META"}, ConsistentRead=True)["Item"][
            "purges"
        ],
        1,
    )
    named("lease", "acquire", "/specified").is_("acquired")
    named("lease", "show", "/specified").is_("held")
    named("meta", "/specified").is_("missing")
    named("versions", "/specified").is_("done")
    named("request", "claim", "/specified", "--id", "r").is_("claimed")
    named("list").is_("done")
    same((cli.folder / "facetheory-data").exists(), False)


def a_shared_table_with_bodies_of_one_machine_is_refused_everywhere(cli):
    named = unnamed(cli, FACETHEORY_CACHE_TABLE_NAME=TABLE)
    for words in ([], ["--bodies", "lmdb:b"], ["--bodies", "memory:"], ["--table", f"dynamodb:{TABLE}", "--data", "d"]):
        for command in (
            ["regenerate", "/x", "--revalidate", "60s", "--", "touch", "rendered"],
            ["get", "/x"],
            ["gc"],
            ["publish", "/x", "--token", TOKEN, "--body", "-", "--revalidate", "60s"],
        ):
            named(*command[:1], *words, *command[1:]).is_("usage", 2).says(
                "the table is shared", "s3://bucket", "FACETHEORY_ISR_BUCKET"
            )
        named("serve", "--origin", "http://127.0.0.1:1", "--check-config", *words).is_("usage", 2).says(
            "the table is shared"
        )
        same("the table is shared" in named("table", "describe", *words).is_("done")["trouble"], True)
    same((cli.folder / "rendered").exists(), False)
    same((cli.folder / "facetheory-data").exists(), False)


def gc_deletes_nothing_that_belongs_to_another_table(cli, table):
    """The session that once deleted everything: the gateway's environment, somebody else's bodies."""
    owner = unnamed(cli, FACETHEORY_TABLE="lmdb:theirs", FACETHEORY_BODIES="file:shared")
    for page in range(3):
        owner.publish(f"/page/{page}")
    partner = cli.folder / "shared" / sha256("facetheory-partner")[:2] / sha256("facetheory-partner")
    for name, known in (("pages", True), ("pages-of-before", False)):
        if not known:
            partner.unlink()  # As stores are that were written before they knew each other.
        stranger = unnamed(cli, FACETHEORY_CACHE_TABLE_NAME=name, FACETHEORY_BODIES="file:shared")
        stranger("table", "create").is_("done")
        for _ in range(3):
            for words in (["--grace", "0"], ["--grace", "0", "--dry-run"]):
                answer = stranger("gc", *words).is_("failed", 1)
                answer.says(
                    f"dynamodb:{name}", f"file:{cli.folder.resolve()}/shared", "--adopt", "facetheory table describe"
                )
                same("lmdb:" in answer.err, known)  # Whose they are, where that is known.
        if known:
            token = stranger("lease", "acquire", "/mine")["lease_token"]
            publish = ["publish", "/mine", "--token", token, "--body", "-", "--revalidate", "60s"]
            stranger(*publish, stdin=b"mine").is_("failed", 1).says("belongs to the table lmdb:")
            stranger("regenerate", "/other", "--revalidate", "60s", "--", "touch", "rendered").is_("failed", 1).says(
                "belongs to the table lmdb:"
            )
            same((cli.folder / "rendered").exists(), False)
            stranger("serve", "--origin", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "off").is_(
                "usage", 2
            ).says("belongs to the table lmdb:")
        else:
            stranger.publish("/mine")  # Nobody can tell: it may write, and is warned.
            stranger("gc", "--grace", "0").is_("failed", 1)
    for page in range(3):
        same(owner.plain("get", f"/page/{page}").out, b"<h1>Hello</h1>\n")
    same(
        table.client.scan(
            TableName="pages-of-before",
            ConsistentRead=True,
            FilterExpression="begins_with(pk, :gc)",
            ExpressionAttributeValues={":gc": "GC#"},
        )["Items"],
        [],
    )


def a_stranger_who_opens_files_as_a_table_leaves_them_to_their_owner(cli):
    owner = unnamed(cli, FACETHEORY_TABLE="lmdb:theirs", FACETHEORY_BODIES="file:shared")
    owner.publish("/x", body=b"theirs")
    stranger = unnamed(cli, FACETHEORY_TABLE="lmdb:mine", FACETHEORY_BODIES="lmdb:shared")
    stranger("table", "create").is_("done")
    stranger("gc", "--grace", "0").is_("failed", 1).says("belong")
    same(owner.plain("get", "/x").out, b"theirs")
    owner("gc", "--grace", "0").is_("done", bodies_seen=1)


def bodies_can_be_adopted(cli):
    owner = cli.with_environment(FACETHEORY_TABLE="lmdb:theirs")
    owner.publish("/x", body=b"theirs")
    cli("table", "create").is_("done")
    cli("gc", "--grace", "0").is_("failed", 1).says("--adopt")
    cli("gc", "--adopt", "--dry-run").is_("usage", 2).says("--dry-run")
    cli("gc", "--grace", "0", "--adopt").is_("done", bodies_recorded=1)
    time.sleep(1.1)
    cli("gc", "--grace", "0", "--adopt").is_("done", bodies_deleted=1)
    owner("regenerate", "/x", "--revalidate", "60s", "--", "true").is_("failed", 1).says("belongs to the table lmdb:")


# --- Running them ---


def idempotency_script(cli, name):
    """Its lines are cases of their own."""
    script = HERE / "idempotency.sh"
    done = subprocess.run(
        [script, cli.program],
        cwd=cli.folder,
        env=cli.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = re.sub(r"^(not ok|ok) ", rf"\1 {name}: ", done.stdout + done.stderr, flags=re.MULTILINE)
    return lines if lines.count("\n") > 20 else lines + f"not ok {name}: it ended early\n"


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Under nohup the program would ignore it, as it should.
    chosen = harness.options(__doc__)

    table = None if chosen.list else DynamoDbLocal()
    environment = table.environment() if table else {}
    on_lmdb = Cli(chosen.facetheory, ".")
    on_dynamodb = Cli(
        chosen.facetheory, ".", environment | {"FACETHEORY_TABLE": "dynamodb:", "FACETHEORY_BODIES": "file:./bodies"}
    )
    dynamodb_cases = {
        one_node_sweeps_at_a_time: (table,),
        rows_of_wrong_type_are_told: (table,),
        pages_whose_tags_another_writer_has_dropped_are_counted_and_found_by_their_routes: (table,),
        a_page_that_another_writer_has_replaced_has_the_tags_of_its_route: (table,),
        a_page_named_by_its_url_has_the_tags_of_its_route_after_another_writer: (table,),
        marks_of_the_tenant_default_count_where_they_stood_before: (table,),
        a_table_that_does_not_exist_is_told_and_can_be_made: (),
        a_table_named_by_a_foreign_variable_is_warned_about: (),
        a_server_that_is_not_there_is_told: (),
        a_server_that_says_nothing_is_given_up_after_about_ten_seconds: (),
        the_protocol_works_on_dynamodb: (),
        one_rule_chooses_the_stores: (),
        the_variable_of_the_specification_names_the_table_for_every_command: (table,),
        a_shared_table_with_bodies_of_one_machine_is_refused_everywhere: (),
        gc_deletes_nothing_that_belongs_to_another_table: (table,),
    }
    cases = [
        (name, idempotency_script, cli, name)
        for name, cli in (("idempotency on LMDB", on_lmdb), ("idempotency on DynamoDB", on_dynamodb))
    ]
    functions = regenerate_cases.CASES + [
        f
        for _, f in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
        if list(inspect.signature(f).parameters)[:1] == ["cli"] and f not in (idempotency_script, unnamed)
    ]
    for function in functions:
        cases.append(
            (
                function.__name__.replace("_", " "),
                function,
                on_dynamodb if function in dynamodb_cases else on_lmdb,
                *dynamodb_cases.get(function, ()),
            )
        )
    well = harness.run_all(cases, chosen, 8)
    if table:
        table.stop()
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
