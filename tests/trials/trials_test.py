#!/usr/bin/python3
"""Every trial of tools/trial for a second, three at a time, half of them with two event loops and half with eight.

    trials_test.py --facetheory build/release/facetheory --programs build/release/tests/trials [WORD...]

The trial that once found visitors with each other's pages runs for longer, with both. What a trial finds only now and
then is found by tools/trial, which takes its time.
"""
import argparse
import concurrent.futures
import pathlib
import sys
import time
import types

import trials
from degraded_modes import TRIALS

SECONDS = {"table-reset": 5}  # of load while the fault lasts; others 1
SIDE_BY_SIDE = 3


def run(trial, loops, arguments, stores):
    """The lines to print."""
    began = time.monotonic()
    options = types.SimpleNamespace(
        loops=loops,
        answers=10_000_000,
        seconds=SECONDS.get(trial.name, 1),
        seed=1,
        readers=False,
        programs=arguments.programs,
        facetheory=arguments.facetheory,
        patience=4 if arguments.sanitized else 1,
    )
    name = f"{trial.name} with {loops} loops: {trial.about}"
    try:
        report = trials.run(trial, options, stores)
        return f"{trials.summary(report)}\nok {name}  ({time.monotonic() - began:.1f} s)\n"
    except Exception as failure:  # pylint: disable=broad-except
        return f"  {type(failure).__name__}: {failure}\nnot ok {name}  ({time.monotonic() - began:.1f} s)\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facetheory", type=pathlib.Path, default="build/release/facetheory")
    parser.add_argument("--programs", type=pathlib.Path, default="build/release/tests/trials")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    arguments.facetheory, arguments.programs = arguments.facetheory.resolve(), arguments.programs.resolve()
    arguments.sanitized = trials.is_sanitized(arguments.facetheory)
    trials.in_own_namespace()
    cases = [(trial, 2 + 6 * (number % 2)) for number, trial in enumerate(TRIALS)]
    cases += [(trial, 10 - loops) for trial, loops in cases if trial.name in SECONDS]
    cases = [case for case in cases if all(word in case[0].name for word in arguments.words)]
    cases = [case for case in cases if case[0].sanitized or not arguments.sanitized]
    failed, stores = not cases, trials.Stores()
    try:
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for job in concurrent.futures.as_completed([pool.submit(run, *case, arguments, stores) for case in cases]):
                print(job.result(), end="", flush=True)
                failed = failed or "not ok " in job.result()
    finally:
        stores.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
