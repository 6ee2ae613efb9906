#!/usr/bin/python3
"""The console sessions of README.md and docs/tutorial.md are true: their commands are run, and must print what stands
below them.

    readme_test.py --facetheory build/release/facetheory [DOCUMENT...]

A session is a fenced block `console`: lines that begin with "$ " are commands, what follows is what they print, on
either stream. All sessions of a document run one after the other in one shell, in an empty folder. Where they speak of
http://127.0.0.1:8080 a gateway is running as ./run starts it, but on a free port, which both sides call 8080. Tokens,
ids of versions, times and names of machines differ from run to run; "…" stands for anything on its line, and a line
that is nothing but "…" for any lines.
"""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import CLEAN, Cli, DEADLINE, Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run, and what it becomes on both sides.
VOLATILE = [
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\bVER#[0-9A-Z]{26}\b"), "VER#<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \((now|in \d+ s|\d+ s ago)\)"), "<moment>"),
    (re.compile(r"\b\d{10,13}\b"), "<time>"),
    (re.compile(r"\bfor \d+ s\b"), "for <seconds>"),
    (re.compile(r"\bby [\w.-]+:\d+"), "by <owner>"),
    (re.compile(r"\bttl=(-1|0)\b"), "ttl=<over>"),
    (re.compile(r"\bttl=(8|9|10)\b"), "ttl=<almost all>"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"), "<date>"),
    (re.compile(r"\bCACHE#[0-9a-f]{64}\b"), "CACHE#<digest>"),
]
DEMO = "http://127.0.0.1:8080"


def commands_of(document):
    """Pairs of a command and the lines it is said to print."""
    commands = []
    for session in SESSION.findall(document):
        for line in session.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif not commands:
                raise SystemExit(f"a session begins without a command: {line}")
            else:
                commands[-1][1].append(line)
    return commands


def run(commands, program):
    """The lines that each command printed."""
    mark = "\x01next\x01"
    script = "".join(f"{command}\nprintf '{mark}'\n" for command, _ in commands)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        # The program under its name, first in the path; and where ./run has it, with what it was built from.
        work = pathlib.Path(folder) / "work"
        for link in (pathlib.Path(folder) / "bin/facetheory", work / "build/release/facetheory"):
            link.parent.mkdir(parents=True)
            link.symlink_to(program)
        (work / "examples").symlink_to(ROOT / "examples")
        if DEMO in script:
            gateway = stack.enter_context(
                Gateway(
                    Cli(program, work),
                    "--demo",
                    "--config",
                    "examples/demo/facetheory.toml",
                    "--data",
                    "build/demo-8080",
                )
            )
            script = script.replace(DEMO, gateway.url)
        environment = CLEAN | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "TZ": "UTC"}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        if DEMO in "".join(command for command, _ in commands):
            output = output.replace(gateway.url, DEMO)
    return [part.splitlines() for part in output.split(mark)[:-1]]


def settled(line):
    for pattern, name in VOLATILE:
        line = pattern.sub(name, line)
    return line.rstrip()


def matches(expected, found):
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, settled(line).split("…"))) + r"\n"
        for line in expected
    )
    return re.fullmatch(pattern, "".join(settled(line) + "\n" for line in found)) is not None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--facetheory", default=ROOT / "build/release/facetheory")
    parser.add_argument("documents", nargs="*", default=[ROOT / "README.md", ROOT / "docs/tutorial.md"])
    options = parser.parse_args()
    failures = 0
    for document in map(pathlib.Path, options.documents):
        commands = commands_of(document.read_text())
        if not commands:
            raise SystemExit(f"{document} has no console session")
        outputs = run(commands, pathlib.Path(options.facetheory).resolve())
        outputs += [["(it was not reached)"]] * (len(commands) - len(outputs))
        for (command, expected), found in zip(commands, outputs):
            good = matches(expected, found)
            failures += not good
            if not good:
                print("\n".join(["the document says:", *expected, "the command prints:", *found]))
            print(f"{'ok' if good else 'not ok'} {document.name}: {command}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
