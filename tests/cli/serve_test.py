#!/usr/bin/python3
"""What `facetheory serve` tells its operator: mistakes in the configuration, limits of the machine, stores that fail,
and how it ended.

    serve_test.py --facetheory build/release/facetheory [WORD...]
"""
import contextlib
import http.server
import json
import pathlib
import shutil
import signal
import socket
import threading
import urllib.error

import harness
from harness import DEADLINE, Cli, Gateway, same, until

ORIGIN = 'origin = "http://127.0.0.1:1"\n'


def lines_of(answer):
    return answer.err.removesuffix("\n").split("\n")


def next_lines(gateway, count):
    """Of stderr. A gateway that says less is killed."""
    too_long = threading.Timer(20, gateway.process.kill)
    too_long.start()
    lines = [gateway.process.stderr.readline() for _ in range(count)]
    too_long.cancel()
    return lines


def every_mistake_stands_on_a_line_of_its_own(cli):
    cli.file("facetheory.toml", (ORIGIN + 'memory = "1 KB"\nthreads = 0\n').encode())
    for words in (["serve", "--check-config"], ["serve"], ["explain", "/"]):
        answer = cli.plain(*words)
        same(answer.code, 2)
        lines = lines_of(answer)
        same(
            [line.split(": ")[:2] for line in lines],
            [["facetheory", "facetheory.toml:2:10"], ["facetheory.toml:3:11", "threads"]],
        )
        same(lines[-1].endswith(f"see: facetheory {words[0]} --help"), True)
    same(cli("serve", "--check-config").is_("usage", 2)["error"].count("\n"), 1)


def a_value_adds_no_line_and_no_control_character(cli):
    cli.file("facetheory.toml", (ORIGIN + 'memory = "1\\nfacetheory: all is well\\u001b[2J"\n"a\\nb" = 1\n').encode())
    answer = cli.plain("serve", "--check-config")
    same(answer.code, 2)
    same(len(lines_of(answer)), 2)
    same([c for c in answer.err if ord(c) < 32 and c != "\n"], [])
    answer.says("\\x0afacetheory: all is well\\x1b[2J", "a\\x0ab")
    for words in (["--config", "no\nsuch\x1bfile"], ["--table", "x\ny"], ["--origin", "x\ny"]):
        answer = cli.plain("serve", "--check-config", *words)
        same(answer.code, 2)
        same([c for c in answer.err[:-1] if ord(c) < 32 and c != "\n"], [])
        answer.says("\\x0a")


def a_variable_is_named_and_no_file_that_is_not_there(cli):
    answer = cli.with_environment(FACETHEORY_TABLE="redis:x").plain(
        "serve", "--check-config", "--origin", "http://127.0.0.1:1"
    )
    same(answer.code, 2)
    same(answer.err.startswith('facetheory: FACETHEORY_TABLE: "redis:x" is no table'), True)


def a_reload_that_fails_names_every_mistake_on_a_line_of_its_own(cli):
    cli.file("facetheory.toml", ORIGIN.encode())
    with Gateway(cli) as gateway:
        cli.file(
            "facetheory.toml",
            (ORIGIN + 'memory = "1 KB"\n[origins.web]\nurl = "https://x"\nca_file = "nowhere.pem"\n').encode(),
        )
        gateway.process.send_signal(signal.SIGHUP)
        said = next_lines(gateway, 3)
    same(said[0], "facetheory: not reloaded, the configuration stays as it was:\n")
    same(said[1].startswith("facetheory.toml:2:10: memory: "), True)
    same(said[2].startswith("facetheory.toml:5:11: origins.web.ca_file: nowhere.pem cannot be loaded: "), True)


def a_reload_without_the_file_that_was_there_keeps_the_configuration(cli):
    for words in ([], ["--config", "facetheory.toml"]):
        cli.file("facetheory.toml", ORIGIN.encode())
        with Gateway(cli, *words) as gateway:
            (cli.folder / "facetheory.toml").unlink()
            gateway.process.send_signal(signal.SIGHUP)
            said = next_lines(gateway, 2)
            same(gateway.get("/")[0], 502)
        same(said[0], "facetheory: not reloaded, the configuration stays as it was:\n")
        same(said[1], "facetheory.toml: there is no such file any more; put it back\n")


def its_help_tells_what_a_second_signal_does(cli):
    text = " ".join(cli.plain("serve", "--help").out.decode().split())
    same("A second signal while it stops ends it at once, as signals do: 143 for SIGTERM" in text, True)


def what_a_log_that_cannot_be_written_costs_is_told_and_counted(cli):
    cli.file("facetheory.toml", ORIGIN.encode())
    for redirection, why in ((">/dev/full", "No space left on device"), (">&-", "stdout is closed")):
        shell = cli.folder / "redirected"
        shell.write_text(f'#!/bin/sh\nexec {cli.program} "$@" {redirection}\n')
        shell.chmod(0o755)
        with Gateway(Cli(shell, cli.folder), admin="127.0.0.1:0") as gateway:
            for _ in range(3):
                same(gateway.get("/")[0], 502)
            said = next_lines(gateway, 1)[0]
            same(
                (said.startswith("facetheory: warning: the access log cannot be written: "), why in said), (True, True)
            )

            def lost(gateway=gateway):
                metrics = gateway.asks_admin("/metrics")[1].splitlines()
                return "facetheory_access_log_lines_lost_total 3" in metrics

            until(lost, "three lost lines are counted")


def check_config_refuses_what_could_answer_no_request(cli):
    cli.file("facetheory.toml", b'[origins.web]\nurl = "https://127.0.0.1:1"\nca_file = "nowhere.pem"\n')
    cli("serve", "--check-config").is_("usage", 2).says("origins.web.ca_file: nowhere.pem cannot be loaded")
    cli.file("facetheory.toml", b'[origins.a]\nurl = "http://127.0.0.1:1"\n[origins.b]\nurl = "http://127.0.0.1:2"\n')
    cli("serve", "--check-config").is_("usage", 2).says('facetheory.toml: origin: is missing', 'write origin = "a"')


class SlowOrigin(http.server.ThreadingHTTPServer):
    """Answers once it is `released`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), SlowAnswers)
        self.asked, self.released = threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def lines(self):
        return f'origin = "http://127.0.0.1:{self.server_port}"\n'


class SlowAnswers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        self.server.asked.set()
        self.server.released.wait(DEADLINE)
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", "1")
            self.end_headers()
            self.wfile.write(b"x")

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def open_files(gateway):
    """Soft and hard limit of the running process."""
    limits = pathlib.Path(f"/proc/{gateway.process.pid}/limits").read_text().splitlines()
    return next(line for line in limits if line.startswith("Max open files")).split()[3:5]


def the_limit_of_open_files_is_raised_and_one_that_is_too_low_told(cli):
    cli.file("facetheory.toml", (ORIGIN + "threads = 2\n[limits]\nconnections = 300\n").encode())
    for hard, enough in (("500", False), ("2000", True)):
        shell = cli.folder / "limited"
        shell.write_text(f'#!/bin/sh\nulimit -Sn 100\nulimit -Hn {hard}\nexec {cli.program} "$@"\n')
        shell.chmod(0o755)
        with Gateway(Cli(shell, cli.folder)) as gateway:
            same(open_files(gateway), [hard, hard])
        warnings = [line for line in gateway.messages if "warning" in line]
        same(len(warnings), 0 if enough else 1)
        for text in (
            ()
            if enough
            else ("may have 500 files", f"may need {300 + 64 * 3 + 256},", "300 of them", "ulimit -n", "LimitNOFILE")
        ):
            same((text in warnings[0], warnings[0]), (True, warnings[0]))


def the_limit_of_memory_is_that_of_what_is_counted(cli):
    cli.file("facetheory.toml", (ORIGIN + 'memory = "16 MiB"\n').encode())
    with Gateway(cli, admin="127.0.0.1:0") as gateway:
        metrics = gateway.asks_admin("/metrics")[1]
    # All but what answers, lent pages and pointers may come to need within a second, as long as there are none.
    limit = (16 << 20) - 3 * ((16 << 20) // 128)
    same(f'facetheory_memory_limit_bytes{{kind="pages"}} {limit}' in metrics, True)


def connections_that_the_end_cuts_are_counted(cli):
    with SlowOrigin() as origin:
        cli.file("facetheory.toml", (origin.lines() + '[limits]\ndrain_timeout = "500ms"\n').encode())
        with Gateway(cli, "--json") as gateway:
            host, port = gateway.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as asking:
                asking.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                same(origin.asked.wait(DEADLINE), True)
                gateway.process.send_signal(signal.SIGTERM)
                same(
                    next_lines(gateway, 2)[1],
                    "facetheory: cut 1 connection that had not ended within limits.drain_timeout\n",
                )
                gateway.process.wait(DEADLINE)  # A second signal would end it at once.
        same(json.loads(gateway.out), {"outcome": "stopped", "connections_cut": 1})
        origin.released.set()
        origin.shutdown()


def an_end_without_haste_cuts_nobody(cli):
    cli.file("facetheory.toml", (ORIGIN + '[limits]\ndrain_timeout = "0s"\n').encode())
    with Gateway(cli, "--json") as gateway:
        same(gateway.get("/")[0], 502)
        host, port = gateway.url.removeprefix("http://").split(":")
        idle = socket.create_connection((host, int(port)))
    idle.close()
    same(json.loads(gateway.out), {"outcome": "stopped", "connections_cut": 0})


def bodies_that_cannot_be_written_are_told(cli):
    with SlowOrigin() as origin:
        origin.released.set()
        cli.file("facetheory.toml", (origin.lines() + 'bodies = "file:bodies"\n').encode())
        with Gateway(cli, admin="127.0.0.1:0") as gateway:
            shutil.rmtree(cli.folder / "bodies")
            cli.file("bodies")
            same(gateway.get("/")[:2], (200, "uncached"))
            # Others who use the bodies, such as cleanup, may have met the mistake before.
            lines = iter(lambda: next_lines(gateway, 1)[0], "")
            said = next((line for line in lines if "the body store failed (write)" in line), "")
            same(said.startswith("facetheory: warning: the body store failed (write): "), True)
        origin.shutdown()


class UnknownUser(http.server.BaseHTTPRequestHandler):
    """What Versity's S3 gateway says to every request that is signed with an access key that it does not know."""

    def do_GET(self):  # pylint: disable=invalid-name
        self.send_response(404)
        said = b"<?xml version='1.0'?><Error><Code>XAdminUserNotFound</Code><Message>No user exists</Message></Error>"
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def a_body_store_that_does_not_know_the_user_is_not_ready(cli):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), UnknownUser) as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        cli.file("facetheory.toml", (ORIGIN + 'table = "memory:"\nbodies = "s3://pages/isr"\n').encode())
        with_store = cli.with_environment(
            AWS_ENDPOINT_URL_S3=f"http://127.0.0.1:{store.server_port}",
            AWS_ACCESS_KEY_ID="unknown",
            AWS_SECRET_ACCESS_KEY="x",
            AWS_REGION="us-east-1",
        )
        with Gateway(with_store, admin="127.0.0.1:0") as gateway:
            try:
                raise AssertionError(f"ready: {gateway.asks_admin('/readyz')}")
            except urllib.error.HTTPError as refusal:
                same(refusal.code, 503)
                same("404 XAdminUserNotFound" in refusal.read().decode(), True)
        store.shutdown()


if __name__ == "__main__":
    harness.main(__name__)
