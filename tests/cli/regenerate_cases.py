"""facetheory regenerate: what cli_test.py runs about it."""
import hashlib
import os
import pathlib
import signal
import time

from harness import appears, between, is_running, same, until

# A render that leaves a trace of having run, takes a while, and prints a page.
RENDER = "echo run >>runs; sleep 0.3; echo page"


def runs(cli):
    trace = cli.folder / "runs"
    return trace.read_text().count("run") if trace.exists() else 0


def regenerate(key, script, *words):
    return ["regenerate", key, "--revalidate", "1h", *words, "--", "sh", "-c", script]


def a_page_is_regenerated_only_if_it_is_not_fresh(cli):
    first = cli(
        *regenerate("/x", RENDER, "--tag", "t", "--content-type", "text/plain", "--ttl", "7d", "--history", "2")
    ).is_("regenerated", body_reused=False, version=1, tags=["t"], revalidate_seconds=3600, cache_key="/x")
    cli("get", "/x").is_("fresh", body="page\n", content_type="text/plain")
    cli("lease", "show", "/x").is_("free")
    cli(*regenerate("/x", RENDER)).is_("fresh", s3_key=first["s3_key"])
    same(runs(cli), 1)
    forced = cli(
        *regenerate(
            "/x", RENDER, "--history", "2", "--tag", "t", "--force", "--content-type", "text/plain", "--ttl", "7d"
        )
    ).is_("regenerated")
    same((runs(cli), forced["body_reused"], forced["s3_key"] == first["s3_key"]), (2, True, True))
    cli("invalidate", "/x").is_("invalidated")
    cli(*regenerate("/x", RENDER)).is_("regenerated")
    same(runs(cli), 3)


def what_to_run_must_be_said(cli):
    cli("regenerate", "/x", "--revalidate", "1h").is_("usage", 2).says("COMMAND is missing", "after --")
    cli("regenerate", "/x", "--revalidate", "1h", "--").is_("usage", 2).says("COMMAND is missing")
    cli("regenerate", "/x", "--", "true").is_("usage", 2).says("--revalidate is required")
    cli("regenerate", "--revalidate", "1h", "--", "true").is_("usage", 2).says("KEY", "--pk")
    cli("regenerate", "/x", "true", "--revalidate", "1h", "--", "true").is_("usage", 2).says(
        "unexpected argument 'true'"
    )
    cli("regenerate", "/x", "--revalidate", "1h", "--input", "a=b", "--", "true").is_("usage", 2).says("--id")


def the_command_finds_the_page_in_its_environment(cli):
    answer = cli("regenerate", "--tenant", "acme", "/x", "--revalidate", "1h", "--", "env").is_("regenerated")
    variables = dict(
        line.split("=", 1) for line in cli("get", "/x", "--tenant", "acme")["body"].splitlines() if "=" in line
    )
    same(
        (variables["FACETHEORY_PK"], variables["FACETHEORY_CACHE_KEY"], variables["FACETHEORY_TENANT"]),
        (answer["pk"], "/x", "acme"),
    )
    same(
        (
            "FACETHEORY_GENERATED_AT" in variables,
            len(variables["FACETHEORY_LEASE_TOKEN"]),
            variables["FACETHEORY_TABLE"],
        ),
        (False, 36, f"lmdb:{cli.folder}/facetheory-data/table"),
    )
    again = cli("regenerate", "--pk", answer["pk"], "--force", "--revalidate", "1h", "--", "env").is_("regenerated")
    variables = dict(
        line.split("=", 1) for line in cli("get", "--pk", answer["pk"])["body"].splitlines() if "=" in line
    )
    same((variables["FACETHEORY_GENERATED_AT"], variables["FACETHEORY_PK"]), (str(answer["generated_at"]), again["pk"]))


def the_command_gets_nothing_of_ours_but_stderr(cli):
    script = (
        "cat; echo to-stderr >&2; grep -E 'Sig(Blk|Ign)' /proc/self/status; "
        "for fd in /proc/self/fd/*; do readlink $fd; done; true"
    )
    cli(*regenerate("/x", script)).is_("regenerated").says("to-stderr\n")
    blocked, ignored, *files = cli("get", "/x")["body"].splitlines()
    same((int(blocked.split()[1], 16), int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1))), (0, 0))
    same([file for file in files if "facetheory-data" in file], [])
    same(files[0], "/dev/null")


def no_shell_comes_between(cli):
    cli("regenerate", "/x", "--revalidate", "1h", "--", "printf", "%s|", "a b", "$HOME", "--json", "--", "*").is_(
        "regenerated"
    )
    same(cli.plain("get", "/x").out, b"a b|$HOME|--json|--|*|")


def eight_at_once_run_the_command_once(cli):
    jobs = [cli.start(*regenerate("/x", RENDER, "--wait", "30s")) for _ in range(8)]
    outcomes = sorted(cli.finish(job)["outcome"] for job in jobs)
    same((outcomes, runs(cli)), (["fresh"] * 7 + ["regenerated"], 1))
    same([job.returncode for job in jobs], [0] * 8)


def without_wait_the_others_leave_at_once(cli):
    first = cli.start(*regenerate("/x", "echo run >>runs; echo go >started; sleep 2; echo page"))
    appears(cli.folder / "started")
    began = time.monotonic()
    cli(*regenerate("/x", RENDER)).is_("held", 3).says("is held until")
    cli(*regenerate("/x", RENDER, "--wait", "0s")).is_("held", 3)
    between(0, time.monotonic() - began, 1.5)
    cli(*regenerate("/x", RENDER, "--wait")).is_("fresh")
    cli.finish(first).is_("regenerated")
    same(runs(cli), 1)


def a_command_that_fails_publishes_nothing_and_everybody_waits(cli):
    cli.publish("/x", "--generated-at", "1000", "--revalidate", "5s", body=b"good")
    for script, why in {"echo half; exit 7": "exited with 7", "echo half; kill -SEGV $$": "signal 11"}.items():
        cli("invalidate", "/x")
        now = int(time.time())
        answer = (
            cli(*regenerate("/x", script, "--id", "job"))
            .is_("failed", 1, code="unavailable")
            .says(why, "nothing was published", "everybody waits until")
        )
        between(now + 1, answer["retry_at"], now + 12)
        same(cli.plain("get", "/x").out, b"good")
        held = cli(*regenerate("/x", RENDER, "--id", "job")).is_("held", 3, failures=1).says("failed", why)
        same(why in held["last_error"], True)
        cli("request", "show", "/x", "--id", "job").is_("found", status="FAILED", retryable=True)
    same(runs(cli), 0)
    cli(*regenerate("/x", RENDER, "--id", "job", "--wait", "30s")).is_("regenerated")
    cli("request", "show", "/x", "--id", "job").is_("found", status="COMPLETED")


def a_command_that_cannot_be_started_is_told(cli):
    cli("regenerate", "/x", "--revalidate", "1h", "--", "no-such-program").is_("usage", 2).says(
        "cannot start 'no-such-program'", "No such file", "after --"
    )
    cli.file("text")
    cli("regenerate", "/x", "--revalidate", "1h", "--", "./text").is_("usage", 2).says(
        "cannot start './text'", "Permission denied"
    )
    (cli.folder / "text").chmod(0o755)
    cli.file("script", b"#!/no/such/interpreter\necho page\n")
    (cli.folder / "script").chmod(0o755)
    for program, why in (("./text", "#!/bin/sh"), ("./script", "No such file")):
        # No render has tried what exec refuses: the lease is free at once, and nobody backs off.
        cli("regenerate", "/x", "--revalidate", "1h", "--id", "job", "--", program).is_("usage", 2).says(
            f"cannot start '{program}'", why
        )
        shown = cli("lease", "show", "/x").is_("free")
        same("failures" in shown, False)
        cli("request", "show", "/x", "--id", "job").is_("found", status="FAILED", retryable=True)
    cli(*regenerate("/x", RENDER, "--id", "job")).is_("regenerated")


def what_cannot_be_published_is_told_before_the_command_runs(cli):
    for words, why in (
        (["--etag", 'a"b'], "--etag: "),
        (["--etag", ""], "--etag: "),
        (["--etag", "a b"], "--etag: "),
        (["--content-type", "a\nb"], "--content-type: "),
        (["--ttl", "1h"], "--ttl"),
        (["--header", "x-long: " + "a" * 100_000], "header fields"),
        (["--id", "a\nb"], "--id: "),
        (["--id", "r", "--deploy-id", "d"], "one or the other"),
    ):
        cli(*regenerate("/x", RENDER, *words)).is_("usage", 2).says(why)
    same(runs(cli), 0)
    cli("lease", "show", "/x").is_("free")


def a_guard_that_cannot_hold_is_told_before_the_command_runs(cli):
    cli(*regenerate("/x", RENDER, "--guard", "version=3")).is_("version", 3)
    cli.publish("/x", "--revalidate", "5s", body=b"good")
    cli(*regenerate("/x", RENDER, "--force", "--guard", "version=3")).is_("version", 3, version=1)
    cli("pin", "/x").is_("pinned")
    cli(*regenerate("/x", RENDER, "--force")).is_("pinned", 3).says("unpin")
    cli(*regenerate("/x", RENDER)).is_("fresh")
    same(runs(cli), 0)
    cli("unpin", "/x").is_("unpinned")
    cli("lease", "show", "/x").is_("free")  # nobody backs off
    cli(*regenerate("/x", RENDER, "--guard", "version=3")).is_("regenerated", version=4)


def an_etag_is_quoted(cli):
    for given, kept in (("abc", '"abc"'), ('"abc"', '"abc"'), ('W/"abc"', 'W/"abc"'), ("W/abc", 'W/"abc"')):
        cli(*regenerate("/x", "echo page", "--force", "--etag", given)).is_("regenerated", etag=kept)


def the_command_dies_with_a_regenerate_that_is_killed(cli):
    # A process with a session of its own ends, too, and one that has lost its parent.
    script = (
        "sleep 300 & echo $! >child; (setsid sh -c 'echo $$ >daemon; sleep 300 & echo $! >its-child; wait' &); "
        "echo $$ >pid; wait"
    )
    job = cli.start(*regenerate("/x", script, "--for", "2s"))
    processes = [int(appears(cli.folder / name)) for name in ("pid", "child", "daemon", "its-child")]
    same([is_running(pid) for pid in processes], [True] * 4)
    job.kill()
    try:
        until(lambda: not any(is_running(pid) for pid in processes), "the end of the command and all it has started")
    finally:
        for pid in processes:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
    job.wait(60)


def the_command_dies_with_its_guard(cli):
    job = cli.start(*regenerate("/x", "echo $$ >pid; exec sleep 150", "--for", "2s"))
    command = int(appears(cli.folder / "pid"))
    tasks = pathlib.Path(f"/proc/{job.pid}/task").iterdir()
    guards = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    same((len(guards), command in guards), (1, False))
    os.kill(guards.pop(), signal.SIGKILL)
    until(lambda: not is_running(command), "the end of the command")
    job.wait(60)


def a_command_that_prints_too_much_is_stopped(cli):
    answer = cli("regenerate", "/x", "--revalidate", "1h", "--", "sh", "-c", "echo $$ >pid; exec cat /dev/zero").is_(
        "failed", 1
    )
    answer.says("'sh' printed more than 64 MiB")
    same(is_running(appears(cli.folder / "pid")), False)


def a_long_command_keeps_its_lease_alive(cli):
    job = cli.start(
        *regenerate("/x", "echo go >started; sleep 5; echo page", "--for", "2s", "--id", "job", "--input", "a=b")
    )
    appears(cli.folder / "started")
    began = time.monotonic()
    while time.monotonic() - began < 4:
        cli("lease", "acquire", "/x").is_("held", 3)
        cli("request", "claim", "/x", "--id", "job", "--input", "a=b", "--revalidate", "1h").is_("in_progress", 3)
        time.sleep(0.3)
    cli.finish(job).is_("regenerated")
    cli("meta", "/x").is_("fresh")


def an_interrupted_command_is_stopped_and_the_lease_released(cli):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        job = cli.start(*regenerate(f"/{code}", f"echo $$ >pid-{code}; sleep 60 & wait", "--id", "job"))
        pid = appears(cli.folder / f"pid-{code}")
        began = time.monotonic()
        job.send_signal(number)
        cli.finish(job).is_("interrupted", code).says("interrupted")
        between(0, time.monotonic() - began, 1.9)
        same(is_running(pid), False)
        cli("lease", "acquire", f"/{code}").is_("acquired")
        cli("request", "claim", f"/{code}", "--id", "job", "--revalidate", "1h").is_("claimed", attempt=2)
        cli("meta", f"/{code}").is_("missing")


def a_stubborn_command_is_killed(cli):
    job = cli.start(*regenerate("/x", "trap '' TERM INT; echo $$ >pid; while :; do sleep 1; done"))
    pid = appears(cli.folder / "pid")
    began = time.monotonic()
    job.send_signal(signal.SIGINT)
    cli.finish(job).is_("interrupted", 130)
    between(1.9, time.monotonic() - began, 6)
    same(is_running(pid), False)


def a_second_signal_ends_it_at_once(cli):
    job = cli.start(*regenerate("/x", "trap '' TERM INT; echo $$ >pid; while :; do sleep 1; done"))
    pid = appears(cli.folder / "pid")
    began = time.monotonic()
    job.send_signal(signal.SIGINT)
    time.sleep(0.3)
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=60)
    same(job.returncode, 130)
    between(0, time.monotonic() - began, 1.8)
    until(lambda: not is_running(pid), "the end of the command")


def a_waiting_one_can_be_interrupted(cli):
    cli("lease", "acquire", "/x").is_("acquired")
    job = cli.start(*regenerate("/x", RENDER, "--wait", "1h"))
    time.sleep(0.5)
    job.send_signal(signal.SIGTERM)
    cli.finish(job).is_("interrupted", 143)
    same(runs(cli), 0)


def an_ignored_signal_stays_ignored(cli):
    # The command's parent is its guard, whose parent is the program.
    script = "kill -HUP $(cut -d\" \" -f4 /proc/$PPID/stat); sleep 0.5; echo page"
    answer = cli.shell(f"trap '' HUP; $FT --json regenerate /x --revalidate 1h -- sh -c '{script}'")
    answer.is_("regenerated")


def a_command_whose_lease_is_lost_is_stopped(cli):
    job = cli.start(*regenerate("/x", "echo $$ >pid; sleep 60 & wait; echo late", "--for", "2s", "--id", "job"))
    pid = appears(cli.folder / "pid")
    began = time.monotonic()
    cli("invalidate", "/x").is_("invalidated", had_lease=True)
    cli.finish(job).is_("lost", 3).says("was lost while the command ran", "nothing was published")
    between(0, time.monotonic() - began, 5)
    same(is_running(pid), False)
    cli("meta", "/x").is_("missing")
    cli("lease", "acquire", "/x").is_("acquired")
    cli("request", "show", "/x", "--id", "job").is_("found", status="FAILED", retryable=True)


def after_a_kill_somebody_else_takes_over(cli):
    job = cli.start(*regenerate("/x", "echo $$ >pid; exec sleep 60", "--for", "2s", "--id", "job"))
    appears(cli.folder / "pid")
    job.kill()
    job.wait(60)
    cli(*regenerate("/x", RENDER)).is_("held", 3)
    cli(*regenerate("/x", RENDER, "--id", "job")).is_("in_progress", 3)
    same(runs(cli), 0)
    cli(*regenerate("/x", RENDER, "--id", "job", "--wait", "20s")).is_("regenerated")
    same(runs(cli), 1)
    cli("request", "show", "/x", "--id", "job").is_("found", status="COMPLETED", attempt=2)


def a_request_is_done_once(cli):
    words = ["--id", "job", "--input", "v=1"]
    first = cli(*regenerate("/x", RENDER, *words)).is_("regenerated")
    cli("invalidate", "/x").is_("invalidated")
    cli(*regenerate("/x", RENDER, *words)).is_("replayed", result_s3_key=first["s3_key"])
    cli(*regenerate("/x", RENDER, "--id", "job", "--input", "v=2")).is_("mismatch", 3)
    same(runs(cli), 1)
    cli(*regenerate("/x", RENDER, "--id", "job-2", "--input", "v=1")).is_("regenerated")
    owner = cli("request", "claim", "/x", "--id", "final")["owner_token"]
    cli("request", "fail", "/x", "--id", "final", "--token", owner, "--final").is_("given_up")
    cli("invalidate", "/x")
    cli(*regenerate("/x", RENDER, "--id", "final")).is_("failed", 3).says("for good")
    same(runs(cli), 2)


def a_request_under_another_policy_is_refused(cli):
    words = ["/x", "--id", "job", "--history", "2"]
    first = cli("regenerate", *words, "--revalidate", "1s", "--", "echo", "page").is_("regenerated")
    cli("invalidate", "/x")
    cli("regenerate", *words, "--revalidate", "2s", "--", "false").is_("mismatch", 3).says("--revalidate", "--history")
    cli("regenerate", "/x", "--id", "job", "--history", "3", "--revalidate", "1s", "--", "false").is_("mismatch", 3)
    cli("regenerate", *words, "--revalidate", "1s", "--ttl", "1h", "--", "false").is_("mismatch", 3)
    cli("regenerate", *words, "--revalidate", "1s", "--", "false").is_("replayed", result_s3_key=first["s3_key"])
    cli("request", "claim", "/x", "--id", "job", "--revalidate", "1s", "--history", "2").is_("completed", 3)
    cli("request", "claim", "/x", "--id", "job", "--revalidate", "1s").is_("mismatch", 3)
    for name in ("page", "history", "revalidate_seconds", "ttl_seconds"):  # These are the policy's.
        cli("regenerate", *words, "--input", f"{name}=9", "--revalidate", "1s", "--", "false").is_("usage", 2).says(
            "--input", name
        )
        cli("request", "claim", "/x", "--id", "named", "--revalidate", "1s", "--input", f"{name}=9").is_(
            "usage", 2
        ).says("--input", name)
    # Services in other languages claim by inputs alone, and have no policy that could differ.
    owner = cli("request", "claim", "/x", "--id", "theirs", "--input", "a=b")["owner_token"]
    cli("request", "complete", "/x", "--id", "theirs", "--token", owner, "--result", "k")
    cli("regenerate", "/x", "--id", "theirs", "--input", "a=b", "--revalidate", "9s", "--", "false").is_(
        "replayed", result_s3_key="k"
    )


def a_page_is_rendered_once_per_deploy(cli):
    words = ["regenerate", "/x", "--force", "--revalidate", "1h", "--deploy-id", "d-7", "--policy-version", "2"]
    first = cli(*words, "--", "echo", "one").is_("regenerated")
    key = hashlib.sha256(b"/x|d-7|2").hexdigest()
    cli("request", "show", "/x", "--id", key).is_("found", status="COMPLETED", result_s3_key=first["s3_key"])
    cli("request", "show", "/x", "--deploy-id", "d-7", "--policy-version", "2").is_("found", id=key)
    cli(*words, "--", "echo", "two").is_("replayed", result_s3_key=first["s3_key"])
    cli("regenerate", "/x", "--force", "--revalidate", "1h", "--deploy-id", "d-8", "--", "echo", "two").is_(
        "regenerated"
    )
    same(cli.plain("key", "/x", "--deploy-id", "d-7", "--policy-version", "2").out.decode(), key + "\n")
    cli("key", "/x", "--deploy-id", "d-7", "--policy-version", "2").is_("done", idempotency_key=key, pk=first["pk"])
    same("idempotency_key" in cli("key", "/x"), False)
    cli("key", "/x", "--deploy-id", "a|b").is_("usage", 2).says("--deploy-id: ")
    cli("request", "show", "--pk", first["pk"], "--deploy-id", "d-7").is_("usage", 2).says("name the page by KEY")


def a_version_that_is_left_out_is_the_configured_one(cli):
    def key_of(*words):
        return cli("key", "/x", *words).is_("done")["idempotency_key"]

    def sha(text):
        return hashlib.sha256(text.encode()).hexdigest()

    same(key_of("--deploy-id", "d"), sha("/x|d|"))
    cli.file("facetheory.toml", b'deploy_id = "d-7"\npolicy_version = "2"\n[[routes]]\nmistake = 1\n')
    same(key_of("--deploy-id", "d"), sha("/x|d|2"))
    same(key_of("--policy-version", "p"), sha("/x|d-7|p"))
    same("idempotency_key" in cli("key", "/x"), False)  # Neither was asked for.
    cli("regenerate", "/x", "--revalidate", "1h", "--policy-version", "3", "--", "echo", "one").is_("regenerated")
    cli("request", "show", "/x", "--id", sha("/x|d-7|3")).is_("found", status="COMPLETED")
    cli.file("other.toml", b'deploy_id = "a|b"\n')
    cli("key", "/x", "--deploy-id", "d", "--config", "other.toml").is_("usage", 2).says("other.toml:1:", "deploy_id")


def an_empty_page_is_a_page_if_it_is_meant(cli):
    cli("regenerate", "/x", "--revalidate", "1h", "--allow-empty", "--", "true").is_("regenerated")
    same((cli.plain("get", "/x").code, cli.plain("get", "/x").out), (0, b""))
    cli("regenerate", "/moved", "--revalidate", "1h", "--status", "301", "--", "true").is_("regenerated")


def a_command_that_prints_nothing_has_failed(cli):
    cli.publish("/x", "--revalidate", "1s")
    cli("invalidate", "/x").is_("invalidated")
    answer = cli("regenerate", "/x", "--revalidate", "1h", "--", "true").is_("failed", 1)
    answer.says("'true' ended well and printed nothing", "--allow-empty", "nothing was published", "everybody waits")
    same(cli.plain("get", "/x").out, b"<h1>Hello</h1>\n")
    cli("regenerate", "/x", "--revalidate", "1h", "--wait", "--", "echo", "page").is_("regenerated")


CASES = [
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and name not in ("runs", "regenerate")
]
