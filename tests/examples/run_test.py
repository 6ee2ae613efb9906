#!/usr/bin/python3
"""./run as a newcomer meets it: it starts, its five commands do what it says of them, a taken port is named, Ctrl-C
ends it.

It builds build/release, so this test belongs to that build.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from ports import free_port  # noqa: E402

DEADLINE = 240  # seconds; most of it for a build that has nothing to do
CLEAN = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_")) and n != "PORT"}


def shell(command):
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=CLEAN,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def states(text):
    return re.findall(r"^x-facetheory-isr: (\S+)", text, re.MULTILINE | re.IGNORECASE)


class Run:
    def __init__(self, port):
        self.process = subprocess.Popen(
            ["./run", "--port", str(port)],
            cwd=ROOT,
            env=CLEAN,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.text = ""
        for line in self.process.stdout:
            self.text += line
            if line.startswith("facetheory: table "):
                return
        raise AssertionError(f"it did not start: {self.text}")


def check(name, function, failures):
    try:
        function()
        print(f"ok {name}", flush=True)
    except Exception:  # pylint: disable=broad-except
        failures.append(name)
        print(f"{traceback.format_exc()}not ok {name}", flush=True)


def main():
    port = free_port(1000)  # Metrics are a thousand further.
    run = Run(port)
    failures = []
    try:
        commands = [
            line.strip() for line in run.text.splitlines() if line.startswith("  ") and not line.startswith("   ")
        ]

        def commands_hold():
            assert len(commands) == 5, run.text
            miss, hit, stale, invalidate, versions = map(shell, commands)
            assert states(miss) == ["miss"], miss
            assert states(hit) == ["hit"], hit
            assert states(stale) == ["stale", "hit"], stale
            assert invalidate.startswith("invalidated\n") and states(invalidate) == ["stale"], invalidate
            assert re.findall(r"^  version +(\d+)$", versions, re.MULTILINE)[-1] == "1", versions
            assert versions.count("VER#") >= 2, versions
            explain = re.search(r"`(build/release/facetheory explain .*?)`", run.text).group(1)
            assert shell(explain).split("\n")[0] in ("hit", "stale")

        def taken_port_is_named():
            for command in (f"./run --port {port}", f"PORT={port} ./run"):
                text = shell(f"{command} || echo exit code $?")
                assert re.fullmatch(
                    rf"./run: port {port} of 127.0.0.1 is taken; try ./run --port \d+\nexit code 1\n", text
                ), text
            for wrong in ("--port", "--port x", "--port 70000", "--port 0", "--nonsense"):
                text = shell(f"./run {wrong} || echo exit code $?")
                assert text.startswith("./run: ") and text.endswith("exit code 2\n"), text

        def ctrl_c_ends_it():
            os.killpg(run.process.pid, signal.SIGINT)
            rest, _ = run.process.communicate(timeout=60)
            assert run.process.returncode == 0, (run.process.returncode, rest)
            assert rest.count(" GET ") >= 5, rest  # the access log
            socket.create_server(("127.0.0.1", port)).close()

        check("the five commands do what run says of them", commands_hold, failures)
        check("a taken port is named and another suggested", taken_port_is_named, failures)
        check("Ctrl-C ends run with 0", ctrl_c_ends_it, failures)
    finally:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        shutil.rmtree(ROOT / f"build/demo-{port}", ignore_errors=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
