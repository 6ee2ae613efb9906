"""The public caching suite: its origin, and what becomes of its cases at a cache in front of it."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))

from ports import free_port  # noqa: E402

SUITE = ROOT / "tests/servers/node_modules/http-cache-tests"


def wait_for_port(port, process):
    for _ in range(400):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


@contextlib.contextmanager
def ended(process):
    """The process within, ended after it."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def origin():
    """The port of the suite's own origin, which plays the part that each case wants."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "npm_config_protocol": "http",
            "npm_config_port": str(port),
            "npm_config_pidfile": str(pathlib.Path(folder) / "pid"),
        }
        with ended(
            subprocess.Popen(["node", "server/server.mjs"], cwd=SUITE, env=environment, stdout=subprocess.DEVNULL)
        ) as server:
            wait_for_port(port, server)
            yield port


def run(url):
    """What run_suite.mjs says of the cache at this URL."""
    found = subprocess.run(
        ["node", "--no-warnings", HERE / "run_suite.mjs", url], stdout=subprocess.PIPE, text=True, timeout=150
    )
    return json.loads(found.stdout)


def score(found):
    """Required cases that passed, and those among them of which all passed that they build on."""
    passed = [case for case in found["cases"] if case["kind"] == "required" and case["passed"]]
    return len(passed), sum(case["depends"] for case in passed)
