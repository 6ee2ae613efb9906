#!/usr/bin/python3
"""The public caching suite against the gateway, in the two configurations of docs/http_caching.md.

Every case that must or should pass is a test, in each of them. Those that the document lists must fail, with its
reason; all others must pass. So the document is right, or this is red. The last cases compare the scores with those
that the suite has stored of other caches.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import suite

DOCUMENT = suite.ROOT / "docs/http_caching.md"
CONFIGURATIONS = ("strict", "default")  # in the document's order

# The gateway needs these settings besides those that the document names.
SETTINGS = """
origin = "http://127.0.0.1:{origin}"
listen = "127.0.0.1:0"
admin = "off"
access_log = "json"
table = "memory:"
bodies = "memory:"
"""


class Document:
    def __init__(self):
        self.text = DOCUMENT.read_text()
        found = re.findall(r"^```toml\n(.*?)^```", self.text[self.text.index("## Beside other caches") :], re.M | re.S)
        self.configurations = dict(zip(CONFIGURATIONS, found, strict=True))

    def failing(self, configuration):
        """The ids in the tables of cases that fail in this configuration."""
        listed = []
        tables = self.text[self.text.index("## What still fails") :]
        for cases, which in re.findall(r"^\| (`.*?) \| (\w+) \|", tables, re.M):
            if which in ("both", configuration):
                listed += re.findall(r"`([^`]+)`", cases)
        return listed


def start_gateway(facetheory, folder, origin, configuration):
    (folder / "facetheory.toml").write_text(SETTINGS.format(origin=origin) + configuration)
    log = folder / "log"
    with log.open("w") as output:
        gateway = subprocess.Popen([facetheory, "serve"], cwd=folder, stdout=output, stderr=output)
    for _ in range(400):
        if found := re.search(r"listening on (http://\S+)", log.read_text()):
            return gateway, found.group(1)
        time.sleep(0.05)
    raise SystemExit(f"the gateway does not start: {log.read_text()}")


def run_suite(facetheory, configuration):
    with suite.origin() as origin, tempfile.TemporaryDirectory() as folder:
        gateway, url = start_gateway(facetheory, pathlib.Path(folder), origin, configuration)
        with suite.ended(gateway):
            found = suite.run(url)
        return found, (pathlib.Path(folder) / "log").read_text().splitlines()


class Report:
    def __init__(self):
        self.red = 0

    def say(self, ok, name, why=""):
        print(f"{'ok' if ok else 'not ok'} {name}", flush=True)
        if not ok:
            self.red += 1
            print(f"  {why}", flush=True)


def compare(report, document, configuration, found, log):
    """The outcome of every case with what the document says of it. The log tells what the gateway did in one that is
    red."""
    expected_to_fail = document.failing(configuration)
    judged = [case for case in found["cases"] if case["kind"] in ("required", "optimal")]
    for case in judged:
        listed = case["id"] in expected_to_fail
        name = f"{configuration}: {case['suite']}: {case['id']}" + (" (fails, as documented)" if listed else "")
        why = "docs/http_caching.md lists it, but it passes" if listed else case["why"]
        why = "\n  ".join([why] + [line for line in log if case["path"] in line])
        report.say(case["passed"] != listed, name, why)
    unknown = sorted(set(expected_to_fail) - {case["id"] for case in judged})
    report.say(not unknown, f"{configuration}: the document lists cases that exist", ", ".join(unknown))
    scores = {f"facetheory, {configuration}": suite.score(found), **found["peers"]}
    wrong = [
        f"{name}: {passed} and {supported}"
        for name, (passed, supported) in scores.items()
        if f"| {name} | {passed} | {supported} |" not in document.text
    ]
    report.say(not wrong, f"{configuration}: the document has the scores", "; ".join(wrong))
    best = max(passed for passed, _ in found["peers"].values())
    report.say(suite.score(found)[0] > best, f"{configuration}: the score is above every peer's", str(scores))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facetheory", required=True)
    options = parser.parse_args()
    document, report = Document(), Report()
    for name, configuration in document.configurations.items():
        found, log = run_suite(pathlib.Path(options.facetheory).resolve(), configuration)
        compare(report, document, name, found, log)
    return 1 if report.red else 0


if __name__ == "__main__":
    sys.exit(main())
