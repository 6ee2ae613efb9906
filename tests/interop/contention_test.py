#!/usr/bin/python3
"""Sixteen processes in C++, Go, TypeScript and Python fight for one page of DynamoDB Local.

    contention_test.py --worker build/release/tests/protocol_worker [--languages go,typescript,python]
                       [--cycles 2000] [--processes 16]

Each process acquires the lease, reads META, publishes, and notes the publish in a log with the s3_key that it replaced.
So the publishes form a chain, and if the lease excludes, a single one: no two of them replace the same page. The C++
workers keep history (VER# rows) and bodies; the others replace META as a whole and know nothing of either.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from dynamodb_local import DynamoDbLocal, spawn
from workers import LANGUAGES, example_command

KEY = "/contended"
PK = "CACHE#" + hashlib.sha256(KEY.encode()).hexdigest()
LEASE = 30  # seconds: longer than any stall of a busy machine, so that every cycle counts
HISTORY = 20
DEADLINE = 240  # seconds, for all of it
SHARES = {"cpp": 8, "go": 4, "typescript": 2, "python": 2}  # of the processes


class Watcher(threading.Thread):
    """Looks at META and the versions during the run, as a reader would; remembers what went back."""

    def __init__(self, table):
        super().__init__(daemon=True)
        self.table, self.over, self.problems = table, threading.Event(), []
        self.looks, self.newest, self.seen_keys = 0, 0, set()
        self.versions = {}  # version -> the VER# row that has it

    def run(self):
        generated_at = 0
        while not self.over.wait(0.02):
            meta = self.table.row(PK, "META")
            self.looks += 1
            if not meta:
                if generated_at:
                    self.problems.append("META vanished")
                continue
            if meta["generated_at"] < generated_at:
                self.problems.append(f"generated_at went back from {generated_at} to {meta['generated_at']}")
            generated_at = meta["generated_at"]
            self.seen_keys.add(meta["s3_key"])
            if self.looks % 10 == 0:
                self.look_at_versions()

    def look_at_versions(self):
        rows = self.table.rows(PK, "VER#")
        for row in rows:
            if self.versions.setdefault(row["version"], row["sk"]) != row["sk"]:
                self.problems.append(f"version {row['version']} is {self.versions[row['version']]} and {row['sk']}")
        newest = max((row["version"] for row in rows), default=0)
        if newest < self.newest:
            self.problems.append(f"the newest version went back from {self.newest} to {newest}")
        self.newest = newest


class Check:
    """Prints one line for each thing that must hold."""

    failures = 0

    def __call__(self, name, problems):
        for problem in list(problems)[:10]:
            print(problem)
        print(f"{'not ok' if problems else 'ok'} {name}", flush=True)
        self.failures += bool(problems)


def shares(languages, processes):
    """How many processes each language gets: by SHARES, and at least one."""
    whole = sum(SHARES[language] for language in languages)
    counts = {language: max(1, processes * SHARES[language] // whole) for language in languages}
    counts[languages[0]] += processes - sum(counts.values())
    return counts


def start(options, table, folder):
    """All processes, with the cycles that each has to do."""
    languages = options.languages.split(",")
    names = [language for language, count in shares(languages, options.processes).items() for _ in range(count)]
    commands = {language: example_command(language) for language in languages if language != "cpp"}
    processes = []
    for index, language in enumerate(names):
        cycles = options.cycles // len(names) + (index < options.cycles % len(names))
        words = [
            "contend",
            KEY,
            "--cycles",
            cycles,
            "--for",
            LEASE,
            "--deadline",
            DEADLINE,
            "--log",
            folder / f"{index}.log",
        ]
        if language == "cpp":
            worker = pathlib.Path(options.worker).resolve()
            words += ["--table", "dynamodb:", "--bodies", f"file:{folder / 'bodies'}", "--history", HISTORY]
        command = [worker] if language == "cpp" else commands[language]
        processes.append(
            (
                language,
                cycles,
                spawn(
                    [*command, *words],
                    env=table.environment(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                ),
            )
        )
    return processes


def chain_problems(publishes, current):
    """From META back to the first publish: every one of them once, and generated_at never rising on the way."""
    by_key = {publish["s3_key"]: publish for publish in publishes}
    problems = [f"{publish} does not say what it replaced" for publish in publishes if "previous_s3_key" not in publish]
    visited, key = set(), current
    while not problems and key and key in by_key and key not in visited:
        visited.add(key)
        publish = by_key[key]
        previous = by_key.get(publish["previous_s3_key"])
        if previous and previous["generated_at"] > publish["generated_at"]:
            problems.append(f"generated_at goes back from {previous} to {publish}")
        key = publish["previous_s3_key"]
    if key:
        problems.append(f"the chain ends at {key}, which " + ("comes twice" if key in visited else "nobody published"))
    if len(visited) != len(publishes):
        problems.append(f"{len(publishes) - len(visited)} of {len(publishes)} publishes are not in the chain")
    return problems


def repeated(values):
    return [f"{value} comes {count} times" for value, count in collections.Counter(values).items() if count > 1]


def wait_for(processes, started):
    """Until each has ended or its time is over; what went wrong."""
    problems = []
    for language, _, process in processes:
        try:
            output, _ = process.communicate(timeout=max(1, DEADLINE + 30 - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        if process.returncode != 0:
            problems.append(f"{language} ended with {process.returncode}: {output[-500:]}")
    return problems


def check_publishes(check, publishes, meta, watcher):
    check("a lease has exactly one publisher", repeated(publish["lease_token"] for publish in publishes))
    check("no body is published twice", repeated(publish["s3_key"] for publish in publishes))
    check(
        "the publishes form one chain along which generated_at never goes back",
        chain_problems(publishes, meta["s3_key"] if meta else None),
    )
    check(
        "no page is older than the lease it was rendered under",
        [publish for publish in publishes if publish["generated_at"] < publish["acquired_at"]],
    )
    check(
        "readers saw META and the versions only go forward",
        watcher.problems or ([] if watcher.looks > 10 else ["there was hardly a look"]),
    )
    known = {publish["s3_key"] for publish in publishes}
    check("readers saw only pages that were published", sorted(watcher.seen_keys - known))


def check_history(check, publishes, meta, versions, bodies):
    """Only our own workers keep versions."""
    known = {publish["s3_key"] for publish in publishes}
    numbers = [row["version"] for row in versions]  # in the order of their ids, that is of time
    check(
        "versions rise with time and none comes twice",
        [] if numbers and numbers == sorted(set(numbers)) else [f"versions {numbers}"],
    )
    check("the history is trimmed", [] if 0 < len(versions) <= HISTORY else [f"{len(versions)} versions"])
    check("every version was published", [row for row in versions if row["s3_key"] not in known])
    foreign = tuple(f"{language}/" for language in LANGUAGES if language != "cpp")
    wanted = [row["s3_key"] for row in [meta, *versions] if not row["s3_key"].startswith(foreign)]
    check("no body is missing", [key for key in wanted if not body_file(bodies, key).is_file()])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--worker", default="build/release/tests/protocol_worker")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=16)
    options = parser.parse_args()

    check, table = Check(), DynamoDbLocal()
    with tempfile.TemporaryDirectory() as name:
        folder, watcher, started = pathlib.Path(name), Watcher(table), time.monotonic()
        processes = start(options, table, folder)
        watcher.start()
        problems = wait_for(processes, started)
        seconds = time.monotonic() - started
        watcher.over.set()
        watcher.join()
        watcher.look_at_versions()
        publishes = [json.loads(line) for log in sorted(folder.glob("*.log")) for line in log.read_text().splitlines()]
        counts = collections.Counter(publish["language"] for publish in publishes)
        print(
            f"{len(publishes)} publishes in {seconds:.1f} s by {len(processes)} processes {dict(counts)}; "
            f"META was looked at {watcher.looks} times"
        )

        meta, versions = table.row(PK, "META"), table.rows(PK, "VER#")
        check(
            "every process did all of its cycles",
            problems or ([f"{len(publishes)} publishes"] if len(publishes) != options.cycles else []),
        )
        check_publishes(check, publishes, meta, watcher)
        check("no lease is left", [row for row in [table.row(PK, "LOCK")] if row])
        if "cpp" in counts:
            check_history(check, publishes, meta, versions, folder / "bodies")
    table.stop()
    sys.exit(1 if check.failures else 0)


def body_file(bodies, key):
    """Where a body store of files keeps a key (docs/formats.md)."""
    name = hashlib.sha256(key.encode()).hexdigest()
    return bodies / name[:2] / name


if __name__ == "__main__":
    main()
