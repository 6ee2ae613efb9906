"""One face for the four programs that take part in a table: facetheory (C++) and those of examples/interop."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

from dynamodb_local import spawn

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples" / "interop"
LANGUAGES = ["cpp", "go", "typescript", "python"]
DEADLINE = 60  # seconds that one command may take


class Answer(dict):
    """The object on stdout, with the exit code."""

    def __init__(self, fields, exit_code, stderr=""):
        super().__init__(fields)
        self.exit_code, self.stderr = exit_code, stderr


class Worker:
    """An example program; they share one command line. One long-lived process answers all that is asked."""

    def __init__(self, language, command, environment):
        self.language, self.command, self.environment = language, [str(word) for word in command], environment
        self._lock, self._session = threading.Lock(), None

    def run(self, *words):
        with self._lock:
            if not self._session:
                self._session = spawn(
                    self.command + ["session"],
                    env=self.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            self._session.stdin.write(json.dumps([str(word) for word in words]) + "\n")
            self._session.stdin.flush()
            line = self._session.stdout.readline()
        if not line:
            raise AssertionError(f"{self.language} {words}: the program has ended")
        fields = json.loads(line)
        return Answer(fields, fields.pop("exit_code"))

    def run_process(self, *words, environment=None):
        """The same from a shell: a process of its own. What it says on stderr becomes the answer's `stderr`."""
        command = self.command + [str(word) for word in words]
        done = subprocess.run(
            command,
            env=environment or self.environment,
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=DEADLINE,
        )
        if len(done.stdout.splitlines()) != 1:
            raise AssertionError(f"{command}: exit code {done.returncode}, stdout {done.stdout}, stderr {done.stderr}")
        return Answer(json.loads(done.stdout), done.returncode, done.stderr)

    def stop(self):
        if self._session:
            self._session.communicate(timeout=DEADLINE)  # the end of its stdin is its end

    def key(self, key, tenant=None):
        return self.run("key", key, *named("tenant", tenant))

    def request_hash(self, inputs):
        return self.run("hash", *pairs(inputs))["request_hash"]

    def acquire(self, key, seconds):
        return self.run("acquire", key, "--for", seconds)

    def refresh(self, key, token, seconds):
        return self.run("refresh", key, "--token", token, "--for", seconds)

    def release(self, key, token):
        return self.run("release", key, "--token", token)

    def publish(self, key, token, body, revalidate, generated_at=None, etag=None, request=None, owner=None):
        """`body` is any text of the caller's own; the answer's s3_key says where it went."""
        return self.run(
            "publish",
            key,
            "--token",
            token,
            "--s3-key",
            f"{self.language}/{body}.html",
            "--revalidate",
            revalidate,
            *named("generated-at", generated_at),
            *named("etag", etag),
            *named("id", request),
            *named("owner", owner),
        )

    def read(self, key):
        return self.run("read", key)

    def versions(self, key):
        return self.run("versions", key)

    def claim(self, key, request, inputs, seconds=None):
        return self.run("claim", key, "--id", request, *pairs(inputs), *named("for", seconds))

    def extend(self, key, request, owner, seconds):
        return self.run("extend", key, "--id", request, "--token", owner, "--for", seconds)

    def complete(self, key, request, owner, result):
        return self.run("complete", key, "--id", request, "--token", owner, "--result", result)

    def fail(self, key, request, owner, error, final=False):
        return self.run("fail", key, "--id", request, "--token", owner, "--error", error, *["--final"] * final)


class CppWorker(Worker):
    """facetheory --json; it stores the bodies it publishes, and names them itself."""

    def __init__(self, program, environment, bodies):
        super().__init__("cpp", [program, "--table", "dynamodb:", "--bodies", f"file:{bodies}", "--json"], environment)

    def run(self, *words):
        return self.run_process(*words)

    def key(self, key, tenant=None):
        return self.run(*named("tenant", tenant), "key", key)

    def acquire(self, key, seconds):
        return self.run("lease", "acquire", key, "--for", f"{seconds}s")

    def refresh(self, key, token, seconds):
        return self.run("lease", "refresh", key, "--token", token, "--for", f"{seconds}s")

    def release(self, key, token):
        return self.run("lease", "release", key, "--token", token)

    def publish(
        self, key, token, body, revalidate, generated_at=None, etag=None, request=None, owner=None, history=None
    ):
        with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
            file.write(f"<h1>{body}</h1>")
            file.flush()
            return self.run(
                "publish",
                key,
                "--token",
                token,
                "--body",
                file.name,
                "--revalidate",
                f"{revalidate}s",
                *named("generated-at", generated_at),
                *named("etag", etag),
                *named("id", request),
                *named("owner", owner),
                *named("history", history),
            )

    def read(self, key):
        return self.run("meta", key)

    def versions(self, key):
        return self.run("versions", key)

    def claim(self, key, request, inputs, seconds=None):
        return self.run(
            "request", "claim", key, "--id", request, *pairs(inputs), *named("for", seconds and f"{seconds}s")
        )

    def extend(self, key, request, owner, seconds):
        return self.run("request", "extend", key, "--id", request, "--token", owner, "--for", f"{seconds}s")

    def complete(self, key, request, owner, result):
        return self.run("request", "complete", key, "--id", request, "--token", owner, "--result", result)

    def fail(self, key, request, owner, error, final=False):
        return self.run(
            "request", "fail", key, "--id", request, "--token", owner, "--error", error, *["--final"] * final
        )


def named(option, value):
    return [] if value is None else [f"--{option}", value]


def pairs(inputs):
    return [word for name, value in inputs.items() for word in ("--input", f"{name}={value}")]


def example_command(language):
    """How to start an example. The Go program is built, with what Debian packages, into build/interop, and the
    TypeScript program, after a strict check, into its folder's dist."""
    if language == "go":
        return [build_go()]
    if language == "typescript":
        return ["node", build_typescript()]
    return ["/usr/bin/python3", EXAMPLES / "python/worker.py"]


def compile_in(folder, command, environment=None):
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    if done.returncode != 0:
        raise SystemExit(f"{folder} does not compile:\n{done.stdout}{done.stderr}")


def build_typescript():
    folder = EXAMPLES / "typescript"
    compiler = folder / "node_modules/typescript/bin/tsc"
    if not compiler.exists():
        raise SystemExit("the packages of examples/interop/typescript are missing: run tools/install")
    # Two tests may build at the same time, so no file is seen half written.
    with tempfile.TemporaryDirectory(dir=folder / "node_modules", prefix=".build-") as temporary:
        compile_in(folder, ["node", compiler, "--strict", "--outDir", temporary])
        (folder / "dist").mkdir(exist_ok=True)
        for built in pathlib.Path(temporary).glob("*.js"):
            os.replace(built, folder / "dist" / built.name)
    return folder / "dist" / "worker.js"


def build_go():
    folder = ROOT / "build" / "interop"
    folder.mkdir(parents=True, exist_ok=True)
    go = "/usr/bin/go" if os.path.exists("/usr/bin/go") else shutil.which("go")
    environment = os.environ | {
        "GO111MODULE": "off",
        "GOPATH": "/usr/share/gocode",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(folder / "go-cache"),
    }
    # Two tests may build at the same time: the name is given to a whole program only.
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        built = pathlib.Path(temporary) / "worker"
        compile_in(EXAMPLES / "go", [go, "build", "-o", built, "."], environment)
        os.replace(built, folder / "go-worker")
    return folder / "go-worker"
