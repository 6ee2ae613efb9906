#!/usr/bin/python3
"""docs/tutorial.md is true of examples/quickstart: the program prints what stands there.

    quickstart_test.py --quickstart build/release/examples/quickstart/quickstart
"""
import argparse
import pathlib
import re
import subprocess
import sys

from harness import CLEAN, DEADLINE
from readme_test import ROOT, matches

TUTORIAL = ROOT / "docs/tutorial.md"
PRINTED = re.compile(r"quickstart/quickstart` runs it, and prints\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--quickstart", type=pathlib.Path, required=True)
    options = parser.parse_args()
    expected = PRINTED.search(TUTORIAL.read_text())
    if expected is None:
        raise SystemExit("docs/tutorial.md does not say any more what the quickstart prints")
    done = subprocess.run(
        [options.quickstart.resolve(), "memory:", "memory:"],
        env=CLEAN,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE,
        check=False,
    )
    printed = done.stdout.decode(errors="replace").splitlines()
    good = done.returncode == 0 and matches(expected.group(1).splitlines(), printed)
    if not good:
        print("\n".join(["the tutorial says:", expected.group(1), "the program prints:", *printed]))
    print(f"{'ok' if good else 'not ok'} the quickstart prints what stands in the tutorial")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
