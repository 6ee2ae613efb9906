"""The rules of tools/mutate, end to end: a small tree with a build of its own, a mistake of each kind in it, and what
is said of them."""
import os
import pathlib
import subprocess
import sys
import tempfile

MUTATE = pathlib.Path(__file__).resolve().parent / "mutate"

# A test that passes as long as add() adds. BASELINE tells it to fail or to go on for ever without any mistake.
FILES = {
    "src/isr/add.cc": '#include "facetheory/isr/twice.h"\n\nint add(int a, int b) { return a + b; }\n'
    'int idle(int a) { return a; }\n'
    "int four() { return twice(2); }\n",
    "src/isr/twice.h": "#pragma once\ninline int twice(int a) { return a * 2; }\n",
    "src/isr/test.cc": """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
int add(int, int);
int four();
int main(int count, char** arguments) {
  if (count > 1 && !strcmp(arguments[1], "--gtest_list_tests")) {
    if (count == 2 || strstr(arguments[2], "Add")) puts("Add.\\n  Adds");
    return 0;
  }
  const char* baseline = getenv("BASELINE");
  if (baseline && !strcmp(baseline, "hangs")) sleep(60);
  if (add(2, 3) == 5 && four() == 4 && !baseline) return 0;
  puts("[  FAILED  ] Add.Adds (0 ms)");
  return 1;
}
""",
    # A script that has one case, and lists it.
    "tests/cli/script.py": "import sys\n"
    "if 'adding' in sys.argv: print('adding' if '--list' in sys.argv else 'ok adding')\n",
    # A compiler that takes for ever over what says SLOW.
    "compile.sh": "#!/bin/sh\nfor source; do :; done\n"
    "if grep -q SLOW \"$(sed -n 's/^#include \"\\(.*\\)\"$/\\1/p' \"$source\")\" \"$source\" 2>/dev/null; "
    "then sleep 60; fi\nexec c++ \"$@\"\n",
    "build/release/build.ninja": """rule compile
  command = sh ROOT/compile.sh -O2 -IROOT/include -o $out -c $in
rule archive
  command = rm -f $out && ar qc $out $in && ranlib $out
rule link
  command = c++ -O2 $objects -o $out $archives && :
build src/isr/CMakeFiles/isr/add.cc.o: compile ROOT/src/isr/add.cc
build src/isr/CMakeFiles/isr_test/test.cc.o: compile ROOT/src/isr/test.cc
build src/isr/libfacetheory_isr.a: archive src/isr/CMakeFiles/isr/add.cc.o
build src/isr/isr_test: link src/isr/CMakeFiles/isr_test/test.cc.o | src/isr/libfacetheory_isr.a
  objects = src/isr/CMakeFiles/isr_test/test.cc.o
  archives = src/isr/libfacetheory_isr.a
build facetheory: phony src/isr/isr_test
""",
}
HEAD = """import collections
M = collections.namedtuple("M", "name file right wrong tests layers", defaults=((("src/isr/isr_test",),), ()))
"""
SUM = 'M("adding wrongly", "isr/add.cc", "a + b", "a - b")'
IDLE = 'M("idling wrongly", "isr/add.cc", "return a;", "return a + 1;")'
ENDLESS = 'M("adding for ever", "isr/add.cc", "return a + b;", "for (volatile int i = 0;; ++i) {} return a + b;")'
HEADER = 'M("doubling wrongly", "isr/twice.h", "a * 2", "a * 3")'
SLOW = 'M("adding slowly compiled", "isr/add.cc", "a + b", "a + b /* SLOW */")'
UGLY = 'M("not even C++", "isr/add.cc", "a + b", "a +")'
LISTED = 'M("listed", "isr/add.cc", "a + b", "a - b", (("tests/cli/script.py", "adding"),))'
RENAMED = 'M("renamed", "isr/add.cc", "a + b", "a - b", (("tests/cli/script.py", "summing"),))'
FILTERED = 'M("filtered", "isr/add.cc", "a + b", "a - b", (("src/isr/isr_test", "--gtest_filter=Add*:Subtract*"),))'
UNBUILT = 'M("unbuilt", "isr/add.cc", "a + b", "a - b", (("src/isr/other_test",),))'
GONE = 'M("what is not there", "isr/add.cc", "a * b", "a")'
LOST = 'M("in a file that is not there", "isr/gone.cc", "a", "b")'

# Each case: what it is about, the mistakes, words of the command line, the environment; the exit code and what is said.
CASES = [
    (
        "a mistake that a test notices is caught, and the test named",
        [SUM],
        [],
        {},
        0,
        ["caught     adding wrongly: Add.Adds", "1 of 1 mistakes caught"],
    ),
    (
        "a mistake in a header is made in what includes it",
        [HEADER],
        [],
        {},
        0,
        ["caught     doubling wrongly: Add.Adds"],
    ),
    (
        "a mistake that no test notices fails the run",
        [SUM, IDLE],
        [],
        {},
        1,
        ["UNNOTICED  idling wrongly", "1 of 2 mistakes caught"],
    ),
    (
        "a program that does not end has noticed",
        [ENDLESS],
        ["--test-limit", "4"],
        {},
        0,
        ["adding for ever: src/isr/isr_test (did not end)"],
    ),
    (
        "a mistake that does not compile fails the run",
        [UGLY],
        [],
        {},
        1,
        ["NO BUILD   not even C++", "0 of 1 mistakes caught"],
    ),
    (
        "a compiler that does not end fails the run",
        [SLOW],
        ["--build-limit", "8"],
        {},
        1,
        ["NO BUILD   adding slowly compiled", "not within 8"],
    ),
    (
        "a text that is gone fails the run, though another was asked for",
        [SUM, GONE, LOST],
        ["adding"],
        {},
        1,
        ["NOT FOUND  what is not there", "NOT FOUND  in a file that is not there"],
    ),
    (
        "what fails anyhow catches nothing",
        [SUM],
        [],
        {"BASELINE": "fails"},
        1,
        ["src/isr/isr_test does not pass without any mistake: Add.Adds"],
    ),
    (
        "what never ends anyhow catches nothing",
        [SUM],
        ["--test-limit", "2"],
        {"BASELINE": "hangs"},
        1,
        ["src/isr/isr_test does not pass without any mistake: src/isr/isr_test (did not end)"],
    ),
    (
        "when the minutes are over, those that were not reached are named",
        [SUM, IDLE],
        ["--minutes", "0"],
        {},
        1,
        [
            "NOT REACHED  adding wrongly",
            "NOT REACHED  idling wrongly",
            "0 of 2 mistakes caught, 2 not reached within 0 minutes",
        ],
    ),
    ("what is named and exists passes the check", [SUM, LISTED], ["--check"], {}, 0, []),
    (
        "a case of a script that has another name now fails the check",
        [SUM, RENAMED],
        ["--check"],
        {},
        1,
        ["NO SUCH TEST  tests/cli/script.py: summing"],
    ),
    (
        "a part of a filter that names no case fails the check",
        [FILTERED],
        ["--check"],
        {},
        1,
        ["NO SUCH TEST  src/isr/isr_test: --gtest_filter=Subtract*"],
    ),
    ("a program that is not there fails the check", [UNBUILT], ["--check"], {}, 1, ["src/isr/other_test"]),
    ("a text that is gone fails the check", [GONE], ["--check"], {}, 1, ["NOT FOUND  what is not there"]),
    (
        "nothing is begun while a part of a filter names no case",
        [SUM, FILTERED],
        [],
        {},
        1,
        ["NO SUCH TEST  src/isr/isr_test: --gtest_filter=Subtract*", "nothing was begun"],
    ),
    (
        "a sample is taken of those that the words name",
        [IDLE, SUM, IDLE],
        ["--sample", "2", "adding"],
        {},
        0,
        ["1 of 1 mistakes caught"],
    ),
    ("a sample is no larger than asked for", [SUM, SUM, SUM], ["--sample", "2"], {}, 0, ["2 of 2 mistakes caught"]),
    ("a word that names nothing is told", [SUM], ["nothing"], {}, 1, ["no mistake is called so"]),
]


def mutate(*words, environment=None):
    return subprocess.run(
        [sys.executable, str(MUTATE), *words],
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def what_is_said(mistakes, words, environment):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in (FILES | {"tools/mistakes.py": f"{HEAD}MISTAKES = [{', '.join(mistakes)}]\n"}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text.replace("ROOT", str(root)))
        (root / "include").mkdir()
        (root / "include" / "facetheory").symlink_to(root / "src")
        before = (root / "src/isr/add.cc").read_bytes()
        done = mutate("--root", folder, *words, environment=environment)
        left = list((root / "build/mutate").glob("*")) if (root / "build/mutate").exists() else []
        if left or (root / "src/isr/add.cc").read_bytes() != before:
            return -1, f"it left {left}, or changed the source\n{done.stdout}"
        return done.returncode, done.stdout


def fits_this_tree():
    """Whether the mistakes of this tree fit it; all of them, since a sample is made of them elsewhere."""
    done = mutate("--check")
    ok = done.returncode == 0
    print(
        f"{'ok' if ok else 'not ok'} the texts and tests that tools/mistakes.py names are there\n{done.stdout}", end=""
    )
    return ok


def passes():
    good = True
    for name, mistakes, words, environment, code, texts in CASES:
        found, said = what_is_said(mistakes, words, environment)
        ok = found == code and all(text in said for text in texts)
        print(f"{'ok' if ok else 'not ok'} {name}", flush=True)
        if not ok:
            print(f"  ended by {found}, said:\n{said}")
        good = good and ok
    return fits_this_tree() and good
