#!/usr/bin/python3
"""Builds a preset and runs what its CTest knows, counting test cases. Called by ./test, which explains the options.

A test with the label `gtest` is a GoogleTest program: its cases are counted from its own JSON report. Any other test is
one case, unless it prints lines "ok NAME" and "not ok NAME", which are then its cases. Tests with the label `check`
look at the tree rather than run the code, and belong to the release build only. The property RUN_SERIAL keeps a test
from sharing the machine with another one; TIMEOUT bounds it.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0))
DEFAULT_TIMEOUT = 300  # seconds
SANITIZER_FACTOR = 4  # how much longer a sanitized program may take

# The developer's own set-up must not reach the tests, least of all an account at AWS.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_", "GTEST_"))
}

running = set()  # process groups to end when we are interrupted
running_lock = threading.Lock()


class Test:
    def __init__(self, entry, factor):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command", [])
        self.labels = properties.get("LABELS", [])
        self.serial = properties.get("RUN_SERIAL", False)
        self.timeout = properties.get("TIMEOUT", DEFAULT_TIMEOUT) * factor
        self.cwd = properties["WORKING_DIRECTORY"]
        self.environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
        self.only = None  # of a GoogleTest program, the cases to run; None: all

    @property
    def is_gtest(self):
        return "gtest" in self.labels

    def cases(self):
        if not self.is_gtest:
            return [self.name]
        listing = subprocess.run(
            self.command + ["--gtest_list_tests"],
            cwd=self.cwd,
            env=ENVIRONMENT | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        names, suite = [], ""
        for line in listing.stdout.splitlines():
            name = line.split("#")[0].rstrip()
            if name.startswith("  "):
                names.append(suite + name.strip())
            elif name.endswith("."):
                suite = name
        return names


class Outcome:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.trouble = []  # what to say besides the program's own output


def build(preset):
    """Configures and builds; whether that went well."""
    ninja = ["-k", "0"] if preset == "tidy" else []  # lint: all findings at once
    ninja += [] if sys.stdout.isatty() else ["--quiet"]
    for step in (
        ["cmake", "--preset", preset],
        ["cmake", "--build", "--preset", preset, "-j", str(CORES), "--", *ninja],
    ):
        quiet = "--build" not in step
        done = subprocess.run(
            step,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            text=True,
            stdout=subprocess.PIPE if quiet else None,
            stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            print(done.stdout or "", end="")
            return False
    return True


def fuzz(words):
    """tools/fuzz with what it says; (passed, failed)."""
    process = subprocess.Popen(
        [ROOT / "tools" / "fuzz", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    counted = Outcome()
    for line in process.stdout:
        print(line, end="", flush=True)
        count_lines(line, counted)
    if process.wait() != 0 and not counted.failed:
        counted.failed = 1
    return counted.passed, counted.failed


def known_tests(preset):
    shown = subprocess.run(
        ["ctest", "--show-only=json-v1"], cwd=ROOT / "build" / preset, capture_output=True, text=True, check=True
    )
    factor = SANITIZER_FACTOR if preset in ("asan", "tsan") else 1
    tests = [Test(entry, factor) for entry in json.loads(shown.stdout)["tests"]]
    return [test for test in tests if preset == "release" or "check" not in test.labels]


def select(tests, words):
    """The tests that the words name, and the words that name nothing."""
    if not words:
        return tests, []
    chosen, unmatched = {}, []
    for word in words:
        programs = [test for test in tests if word.lower() in test.name.lower()]
        for test in programs:
            test.only = None
            chosen[test.name] = test
        if programs:
            continue
        found = False
        for test in tests:
            cases = [case for case in test.cases() if word.lower() in case.lower()]
            found = found or bool(cases)
            if cases and (test.name not in chosen or test.only is not None):
                test.only = (test.only or []) + cases
                chosen[test.name] = test
        if not found:
            unmatched.append(word)
    return list(chosen.values()), unmatched


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(test):
    """Runs one test; its outcome, output and seconds."""
    started = time.monotonic()
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report, output = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "output"
        command = list(test.command)
        if test.is_gtest:
            command += [f"--gtest_output=json:{report}", "--gtest_color=no"]
            if test.only is not None:
                command.append("--gtest_filter=" + ":".join(test.only))
        try:
            with output.open("wb") as sink:
                process = subprocess.Popen(
                    command,
                    cwd=test.cwd,
                    env=ENVIRONMENT | test.environment,
                    stdout=sink,
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            with running_lock:
                running.add(process.pid)
            try:
                code = process.wait(test.timeout)
            except subprocess.TimeoutExpired:
                outcome.trouble.append(f"did not end within {test.timeout:.0f} s")
                code = None
            finally:
                end_group(process.pid)  # also what the test left behind
                process.wait()
                with running_lock:
                    running.discard(process.pid)
        except (OSError, ValueError, IndexError) as error:
            outcome.trouble.append(f"cannot be started: {error}")
            code = None
        text = output.read_text(errors="replace") if output.exists() else ""
        if test.is_gtest:
            count_gtest(report, outcome)
        else:
            count_lines(text, outcome)
    if code is not None and code < 0:
        outcome.trouble.append(f"ended by {signal.Signals(-code).name}")
    elif code and not outcome.failed:
        outcome.trouble.append(f"ended with exit code {code}")
    if code == 0 and outcome.passed + outcome.failed + outcome.skipped == 0:
        if test.is_gtest:
            outcome.trouble.append("ran no tests")
        else:
            outcome.passed = 1
    if outcome.trouble:
        outcome.failed += 1
    return outcome, text, time.monotonic() - started


def count_gtest(report, outcome):
    if not report.exists():
        return
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                outcome.failed += 1
            elif case["status"] != "RUN" or case["result"] != "COMPLETED":
                outcome.skipped += 1
            else:
                outcome.passed += 1


def count_lines(text, outcome):
    for failed in re.findall(r"^(not )?ok\b", text, re.MULTILINE):
        if failed:
            outcome.failed += 1
        else:
            outcome.passed += 1


def without_successes(text):
    """GoogleTest's output less the cases that passed and the decoration; a case that crashed stays."""
    text = re.sub(r"^\[ RUN      \] (\S+)\n(?:(?!\[ RUN  ).*\n)*?\[       OK \] \1.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^(\[-{10}\].*|)\n", "", text, flags=re.MULTILINE)


def run_all(tests):
    """Runs all of them, printing as they end; (passed, failed, skipped)."""
    width = max(len(test.name) for test in tests)
    total = [0, 0, 0]

    def report(test, outcome, text, seconds):
        counts = f"{outcome.passed} passed" + "".join(
            f", {n} {what}" for n, what in ((outcome.failed, "failed"), (outcome.skipped, "skipped")) if n
        )
        bad = outcome.failed or outcome.skipped
        if bad:
            text = without_successes(text) if test.is_gtest else text
            print(f"\n--- {test.name}: {' '.join(test.command)}")
            print(text, end="" if text.endswith("\n") else "\n")
            for trouble in outcome.trouble:
                print(f"{test.name} {trouble}")
            print(f"--- end of {test.name}\n")
        print(f"{'FAILED' if bad else 'ok':6} {test.name:{width}}  {counts}  {seconds:.1f} s", flush=True)
        for i, n in enumerate((outcome.passed, outcome.failed, outcome.skipped)):
            total[i] += n

    with concurrent.futures.ThreadPoolExecutor(max_workers=min(2, CORES)) as pool:
        jobs = {pool.submit(run, test): test for test in tests if not test.serial}
        for job in concurrent.futures.as_completed(jobs):
            report(jobs[job], *job.result())
    for test in tests:
        if test.serial:
            report(test, *run(test))
    return total


def interrupted(*_):
    with running_lock:
        for pid in running:
            end_group(pid)
    print("\ninterrupted", file=sys.stderr)
    os._exit(130)


def close(passed, failed, skipped):
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(0 if passed and not failed and not skipped else 1)


def main():
    parser = argparse.ArgumentParser(
        prog="./test", usage="./test [WORD...] [--asan | --tsan | --tidy | --fuzz] [--list]"
    )
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    preset_flags = parser.add_mutually_exclusive_group()
    for preset in ("asan", "tsan", "tidy", "fuzz"):
        preset_flags.add_argument(f"--{preset}", dest="preset", action="store_const", const=preset, default="release")
    arguments = parser.parse_intermixed_args()
    preset = arguments.preset
    if preset == "fuzz":
        close(*fuzz(arguments.words + (["--list"] if arguments.list else [])), 0)

    started = time.monotonic()
    print(f"Building build/{preset}", flush=True)
    if not build(preset):
        print("The build failed; nothing was run." if preset != "tidy" else "clang-tidy is not content.")
        close(0, 1, 0)
    print(f"Built in {time.monotonic() - started:.0f} s", flush=True)
    if preset == "tidy":
        close(1, 0, 0)

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    tests, unmatched = select(known_tests(preset), arguments.words)
    if unmatched:
        print(
            "Nothing is called "
            + " or ".join(f"'{word}'" for word in unmatched)
            + "; ./test --list shows what there is."
        )
        close(0, 0, 0)
    if arguments.list:
        for test in tests:
            print(test.name)
            for case in (test.only or test.cases()) if test.is_gtest else []:
                print("  " + case)
        return
    close(*run_all(tests))


if __name__ == "__main__":
    main()
