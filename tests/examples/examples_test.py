#!/usr/bin/python3
"""The examples that are one command: each is run, and must show what it says, and end what it started.

    examples_test.py --facetheory build/release/facetheory [WORD...]
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEADLINE = 150  # seconds; Java may start slowly
REQUEST = re.compile(r"^  curl .*?(\d{3}) ([a-z-]*) +(\d+) ms  (.*)$", re.MULTILINE)


class Example:
    def __init__(self, name, program, *arguments):
        # Its temporary folder lies in one that is looked at afterwards.
        self.folder = tempfile.TemporaryDirectory()
        environment = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_"))}
        self.process = subprocess.Popen(
            [ROOT / "examples" / name / "run", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=environment | {"FACETHEORY": str(program), "TMPDIR": self.folder.name},
        )

    def group(self):
        """The processes of its session that are still there."""
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                found.append(int(stat.parent.name))
        return found

    def ends_with(self, code, output):
        if self.process.returncode != code or self.group() or os.listdir(self.folder.name):
            raise AssertionError(
                f"exit code {self.process.returncode}, left behind: {self.group()} {os.listdir(self.folder.name)}\n"
                f"{output}"
            )
        self.folder.cleanup()

    def kill(self):
        for pid in self.group():
            os.kill(pid, signal.SIGKILL)


def shown_by(name, program):
    """The requests it shows: status, how served, milliseconds, what the page says."""
    example = Example(name, program)
    try:
        output, _ = example.process.communicate(timeout=DEADLINE)
        example.ends_with(0, output)
    finally:
        example.kill()
    return [(int(status), state, int(took), text) for status, state, took, text in REQUEST.findall(output)], output


def the_node_site_goes_from_miss_to_hit_to_stale(program):
    shown, output = shown_by("node-ssr", program)
    states = [state for _, state, _, _ in shown]
    texts = [text for _, _, _, text in shown]
    assert len(shown) == 10, output
    assert {status for status, _, _, _ in shown} == {200}, output
    assert states[:4] == ["miss", "hit", "stale", "hit"], output
    assert shown[0][2] >= 500 > shown[1][2], output
    assert texts[0] == texts[1] == texts[2] != texts[3], output
    assert states[4:6] == ["uncached", "pass"] and texts[4] != texts[5], output
    assert states[6] == "pass" and "is 39 now" in texts[6], output
    assert "costs 39" in texts[8], output
    assert states[9] == "stale", output


def two_gateways_share_a_page_and_its_invalidation(program):
    shown, output = shown_by("two-gateways", program)
    states = [state for _, state, _, _ in shown]
    texts = [text for _, _, _, text in shown]
    assert states == ["miss", "hit", "stale", "hit", "hit"], output
    assert texts[0] == texts[1] == texts[2] != texts[3] == texts[4], output


def an_example_that_stays_ends_on_ctrl_c_with_all_that_it_started(program):
    example = Example("node-ssr", program, "--stay")
    try:
        lines = []
        for line in example.process.stdout:
            lines.append(line)
            if "stays until Ctrl-C" in line:
                break
        else:
            raise AssertionError("".join(lines))
        time.sleep(0.2)
        os.killpg(example.process.pid, signal.SIGINT)  # as a terminal does
        rest, _ = example.process.communicate(timeout=DEADLINE)
        example.ends_with(130, "".join(lines) + rest)
    finally:
        example.kill()


CASES = [
    the_node_site_goes_from_miss_to_hit_to_stale,
    two_gateways_share_a_page_and_its_invalidation,
    an_example_that_stays_ends_on_ctrl_c_with_all_that_it_started,
]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--facetheory", default="build/release/facetheory")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    failed = False
    for case in CASES:
        name = case.__name__.replace("_", " ")
        if not all(word in name for word in options.words):
            continue
        try:
            case(pathlib.Path(options.facetheory).resolve())
            print(f"ok {name}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed = True
            print(f"{traceback.format_exc()}not ok {name}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
