#!/usr/bin/python3
"""The public caching suite against the gateway, in a configuration without windows of its own.

Every case that must or should pass is a test. Those that docs/http_caching.md lists must fail, with its reason; all others must pass. So
the document is right, or this is red. The last case compares the score with those that the suite has stored of other caches.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import suite

DOCUMENT = suite.ROOT / "docs/http_caching.md"

CONFIGURATION = """
origin = "http://127.0.0.1:{origin}"
listen = "127.0.0.1:0"
admin = "off"
access_log = "off"
table = "memory:"
bodies = "memory:"
[defaults]
revalidate = "origin"
mode = "blocking"
client_freshness = "honour"
forward = ["*"]
bypass = {{ headers = [] }}
"""


def start_gateway(facetheory, folder, origin):
    (folder / "facetheory.toml").write_text(CONFIGURATION.format(origin=origin))
    gateway = subprocess.Popen([facetheory, "serve"], cwd=folder, stderr=subprocess.PIPE, text=True)
    for line in gateway.stderr:
        if found := re.search(r"listening on (http://\S+)", line):
            return gateway, found.group(1)
    raise SystemExit("the gateway does not start")


def documented():
    """The ids in the document's tables of cases that fail."""
    text = DOCUMENT.read_text()
    listed = []
    for row in re.findall(r"^\| (`.*?) \|", text[text.index("## What still fails"):], re.M):
        listed += re.findall(r"`([^`]+)`", row)
    return listed


def run_suite(facetheory):
    with suite.origin() as origin, tempfile.TemporaryDirectory() as folder:
        gateway, url = start_gateway(facetheory, pathlib.Path(folder), origin)
        with suite.ended(gateway):
            return suite.run(url)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facetheory", required=True)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = run_suite(pathlib.Path(options.facetheory).resolve())
    expected_to_fail = documented()
    red = 0

    def say(ok, name, why=""):
        nonlocal red
        print(f"{'ok' if ok else 'not ok'} {name}", flush=True)
        if not ok:
            red += 1
            print(f"  {why}", flush=True)

    judged = [case for case in found["cases"] if case["kind"] in ("required", "optimal")]
    for case in judged:
        if not case["depends"]:
            continue
        listed = case["id"] in expected_to_fail
        name = f"{case['suite']}: {case['id']}" + (" (fails, as documented)" if listed else "")
        say(case["passed"] != listed, name, "docs/http_caching.md lists it, but it passes" if listed else case["why"])
    unknown = sorted(set(expected_to_fail) - {case["id"] for case in judged if case["depends"]})
    say(not unknown, "the document lists cases that exist", ", ".join(unknown))

    score = suite.score(found)
    scores = {"facetheory": score, **found["peers"]}
    text = DOCUMENT.read_text()
    wrong = [f"{name} passes {passed}" for name, passed in scores.items() if f"| {name} | {passed} |" not in text]
    say(not wrong, "the document has the scores", "; ".join(wrong))
    say(score > max(found["peers"].values()), "the score is above every peer's", str(scores))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
