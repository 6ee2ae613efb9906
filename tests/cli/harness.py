"""facetheory as a shell sees it, for the tests beside this file, and how they run."""
import argparse
import concurrent.futures
import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

DEADLINE = 60  # seconds that one command may take
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_"))
}


class Answer:
    """What a command printed, and how it ended. `answer["field"]` is a field of its JSON object."""

    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    @property
    def fields(self):
        lines = self.out.decode().splitlines()
        if len(lines) != 1:
            raise AssertionError(f"not one line on stdout: {self}")
        fields = json.loads(lines[0])
        if not isinstance(fields, dict) or not isinstance(fields.get("outcome"), str):
            raise AssertionError(f"not an object with an outcome: {self}")
        return fields

    def __getitem__(self, name):
        return self.fields[name]

    def __contains__(self, name):
        return name in self.fields

    def is_(self, outcome, exit_code=0, **fields):
        """The answer has this outcome and exit code and, among others, these fields."""
        found = self.fields
        expected = {"outcome": outcome, **fields}
        if self.code != exit_code or {name: found.get(name) for name in expected} != expected:
            raise AssertionError(f"expected {exit_code}, {expected}, found: {self}")
        if exit_code != 0 and not self.err.startswith("facetheory: "):
            raise AssertionError(f"no message on stderr: {self}")
        return self

    def says(self, *texts):
        """stderr contains all of these."""
        for text in texts:
            if text not in self.err:
                raise AssertionError(f"stderr lacks {text!r}: {self}")
        return self

    def __str__(self):
        return (
            f"{' '.join(map(str, self.words))}: exit code {self.code}\nstdout: {self.out[:2000]!r}\n"
            f"stderr: {self.err[:2000]}"
        )


class Cli:
    """facetheory in a folder of its own, where its table and bodies are."""

    def __init__(self, program, folder, environment=None):
        self.program, self.folder = str(program), pathlib.Path(folder)
        self.environment = CLEAN | (environment or {})

    def with_environment(self, **variables):
        return Cli(self.program, self.folder, self.environment | variables)

    def __call__(self, *words, stdin=b""):
        """With --json."""
        return self.plain(*words[:1], "--json", *words[1:], stdin=stdin) if words else self.plain("--json")

    def plain(self, *words, stdin=b""):
        done = subprocess.run(
            [self.program, *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            timeout=DEADLINE,
        )
        return Answer(words, done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def shell(self, script):
        """A shell command line in which $FT is the program."""
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment | {"FT": self.program},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE,
        )
        return Answer([script], done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def start(self, *words):
        """In the background, with --json; give it to `finish`."""
        return subprocess.Popen(
            [self.program, "--json", *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, process):
        out, err = process.communicate(timeout=DEADLINE)
        return Answer(process.args, process.returncode, out, err.decode(errors="replace"))

    def file(self, name, content=b"<h1>Hello</h1>\n"):
        (self.folder / name).write_bytes(content)
        return name

    def publish(self, key, *words, body=b"<h1>Hello</h1>\n"):
        """Acquires and publishes, for an hour unless the words say otherwise."""
        tenant = words[words.index("--tenant") :][:2] if "--tenant" in words else []
        token = self("lease", "acquire", key, *tenant).is_("acquired")["lease_token"]
        if "--revalidate" not in words:
            words = (*words, "--revalidate", "1h")
        return self("publish", key, "--token", token, "--body", "-", *words, stdin=body).is_("published")


def same(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def between(low, found, high):
    if not low <= found <= high:
        raise AssertionError(f"{found} is not between {low} and {high}")


def until(condition, what):
    """Waits until the condition holds, and returns what it returned."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {DEADLINE} s")


def appears(path):
    """Waits for a file with something in it; its text."""
    return until(lambda: path.exists() and path.read_text().strip(), f"{path.name}")


def is_running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class Gateway:
    """`facetheory serve` on a free port, in the folder of a Cli. Ends with the block that it stands in, and must end
    well."""

    def __init__(self, cli, *words, admin="off"):
        self.stdout = tempfile.TemporaryFile("w+")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [cli.program, "serve", *map(str, words), "--listen", "127.0.0.1:0", "--admin", admin],
            cwd=cli.folder,
            env=cli.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self.messages, self.url, self.admin_url, self.out = [], None, None, ""
        for line in self.process.stderr:
            self.messages.append(line)
            if "listening on " in line:
                self.url = line.split()[-1]
            if "metrics and health on " in line:
                self.admin_url = line.split()[-1]
            if line.startswith("facetheory: table "):
                break
        if self.url is None:
            self.process.wait(DEADLINE)
            raise AssertionError(f"the gateway did not start: {''.join(self.messages)}")

    def get(self, path, **headers):
        """Status, how it was served, and the body."""
        request = urllib.request.Request(
            self.url + path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, answer.headers["x-facetheory-isr"], answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.headers["x-facetheory-isr"], answer.read().decode()

    def asks_admin(self, path):
        with urllib.request.urlopen(self.admin_url + path, timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        _, rest = self.process.communicate(timeout=DEADLINE)
        self.stdout.seek(0)
        self.out = self.stdout.read().splitlines()[-1:]  # What stands after the access log.
        self.out = self.out[0] if self.out else ""
        self.stdout.close()
        if kind is None and self.process.returncode != 0:
            raise AssertionError(f"the gateway ended with {self.process.returncode}: {''.join(self.messages)}{rest}")


def options(usage):
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument(
        "--facetheory", default="build/release/facetheory", type=lambda path: pathlib.Path(path).resolve()
    )
    parser.add_argument("--list", action="store_true", help="prints the cases' names and runs nothing")
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def outcome_of(name, function, cli, *arguments):
    """Runs one case in a folder of its own: that it is ok, or the lines that it gives if it stands for several."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            lines = function(Cli(cli.program, folder, cli.environment), *arguments)
            return lines if isinstance(lines, str) else f"ok {name}\n"
        except Exception:  # pylint: disable=broad-except
            return f"{traceback.format_exc()}not ok {name}\n"


def run_all(cases, chosen, workers):
    """Cases are names, functions and their arguments; those with all the words in their names. Whether all were ok, or,
    with --list, whether there are any."""
    cases = [case for case in cases if all(word in case[0] for word in chosen.words)]
    well = bool(cases)
    if chosen.list:
        print("".join(f"{name}\n" for name, *_ in cases), end="")
        return well
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for job in concurrent.futures.as_completed([pool.submit(outcome_of, *case) for case in cases]):
            print(job.result(), end="", flush=True)
            well = well and "not ok " not in job.result()
    return well


def main(module):
    """Runs the functions of a test's module that take a Cli and nothing else."""
    chosen = options(sys.modules[module].__doc__)
    cases = [
        (f.__name__.replace("_", " "), f, Cli(chosen.facetheory, "."))
        for _, f in inspect.getmembers(sys.modules[module], inspect.isfunction)
        if list(inspect.signature(f).parameters) == ["cli"]
    ]
    sys.exit(0 if run_all(cases, chosen, 4) else 1)
