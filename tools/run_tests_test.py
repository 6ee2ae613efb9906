#!/usr/bin/python3
"""That the test runner fails when it must. Stand-ins for test programs are shell commands."""
import json
import tempfile
import unittest

import run_tests


def program(script, labels=(), timeout=10, **properties):
    entry = {
        "name": "stand-in",
        "command": ["/bin/sh", "-c", script, "stand-in"],
        "properties": [
            {"name": "LABELS", "value": list(labels)},
            {"name": "TIMEOUT", "value": timeout},
            {"name": "WORKING_DIRECTORY", "value": tempfile.gettempdir()},
        ],
    }
    entry["properties"] += [{"name": name, "value": value} for name, value in properties.items()]
    return run_tests.Test(entry, 1)


def counts(test):
    outcome, _, _ = run_tests.run(test)
    return outcome.passed, outcome.failed, outcome.skipped


def gtest(cases, exit_code=0):
    """A program that writes GoogleTest's report ($1 is --gtest_output=json:PATH) and ends so."""
    report = json.dumps({"testsuites": [{"name": "S", "testsuite": cases}]})
    return program(f"printf '%s' '{report}' > \"${{1#*json:}}\"; exit {exit_code}", ["gtest"])


PASSED = {"name": "A", "status": "RUN", "result": "COMPLETED"}
FAILED = {"name": "B", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "1 != 2"}]}
SKIPPED = {"name": "C", "status": "RUN", "result": "SKIPPED"}
DISABLED = {"name": "D", "status": "NOTRUN", "result": "SUPPRESSED"}


class RunnerTest(unittest.TestCase):
    def test_a_script_is_one_case(self):
        self.assertEqual(counts(program("exit 0")), (1, 0, 0))
        self.assertEqual(counts(program("exit 3")), (0, 1, 0))

    def test_a_script_may_print_its_cases(self):
        self.assertEqual(counts(program("echo ok one; echo ok two; echo okay; echo ' ok not'")), (2, 0, 0))
        self.assertEqual(counts(program("echo ok one; echo not ok two; exit 1")), (1, 1, 0))
        self.assertEqual(counts(program("echo not ok two")), (0, 1, 0))
        self.assertEqual(counts(program("echo ok one; exit 1")), (1, 1, 0))

    def test_counts_the_cases_of_a_googletest_program(self):
        self.assertEqual(counts(gtest([PASSED, PASSED])), (2, 0, 0))
        self.assertEqual(counts(gtest([PASSED, FAILED], 1)), (1, 1, 0))
        self.assertEqual(counts(gtest([PASSED, SKIPPED, DISABLED])), (1, 0, 2))

    def test_a_googletest_program_without_cases_or_report_fails(self):
        self.assertEqual(counts(gtest([])), (0, 1, 0))
        self.assertEqual(counts(program("exit 0", ["gtest"])), (0, 1, 0))

    def test_a_bad_exit_fails_although_every_case_passed(self):
        self.assertEqual(counts(gtest([PASSED], 66)), (1, 1, 0))

    def test_a_crash_fails(self):
        self.assertEqual(counts(program("kill -SEGV $$", ["gtest"])), (0, 1, 0))
        self.assertEqual(counts(program("kill -KILL $$")), (0, 1, 0))

    def test_a_program_that_does_not_end_fails_with_all_it_started(self):
        test = program("sleep 60 & sleep 60", timeout=0.2)
        outcome, _, seconds = run_tests.run(test)
        self.assertEqual(outcome.failed, 1)
        self.assertLess(seconds, 10)
        self.assertIn("did not end", outcome.trouble[0])

    def test_a_program_that_is_not_there_fails(self):
        test = program("")
        test.command = ["/nonexistent/program"]
        self.assertEqual(counts(test), (0, 1, 0))

    def test_shows_the_cases_that_failed_or_crashed_and_no_others(self):
        good = "[ RUN      ] S.Good\nnoise\n[       OK ] S.Good (0 ms)\n"
        bad = "[ RUN      ] S.Bad\na.cc:1: Failure\n[  FAILED  ] S.Bad (0 ms)\n"
        crash = "[ RUN      ] S.Crash\nlast words\n"
        shown = run_tests.without_successes(f"[----------] 4 tests\n{good}{bad}{good}\n{crash}")
        self.assertEqual(shown, bad + crash)

    def test_words_choose_programs_and_else_cases(self):
        tests = [
            program("printf 'Suite.\\n  First\\n  Second/0  # GetParam() = lmdb\\n'", ["gtest"]),
            program("exit 0"),
        ]
        tests[0].name, tests[1].name = "table_test", "format"

        def chosen(*words):
            for test in tests:
                test.only = None
            found, unmatched = run_tests.select(tests, words)
            return [(test.name, test.only) for test in found], unmatched

        self.assertEqual(chosen(), ([("table_test", None), ("format", None)], []))
        self.assertEqual(chosen("TABLE"), ([("table_test", None)], []))
        self.assertEqual(chosen("second"), ([("table_test", ["Suite.Second/0"])], []))
        self.assertEqual(
            chosen("second", "first", "for"),
            ([("table_test", ["Suite.Second/0", "Suite.First"]), ("format", None)], []),
        )
        self.assertEqual(chosen("table", "first"), ([("table_test", None)], []))
        self.assertEqual(chosen("first", "table"), ([("table_test", None)], []))
        self.assertEqual(chosen("nothing", "format"), ([("format", None)], ["nothing"]))


if __name__ == "__main__":
    unittest.main()
