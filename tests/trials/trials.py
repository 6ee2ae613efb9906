"""What runs a trial: a gateway with several event loops under load while something fails. degraded_modes.py lists them.

A trial starts an origin whose pages name their URL, stores, and a gateway, all of them real processes; lets many
clients ask for pages, new ones and popular ones; makes something fail meanwhile; lets it come back; and looks whether
everything goes on. The clients (trial_load) check every byte of every answer and know nothing of the gateway. A trial
fails when

- an answer is not the page that was asked for, or a connection has bytes that nobody asked for (it ends at once);
- the process dies (unless that is the fault: then it is started again and must go on), or a sanitizer reports;
- an answer is cut off, fails with a status or takes longer than the trial says it may, or never comes;
- /livez is not 200, or a health check takes longer than HEALTH_LIMIT;
- after the fault new pages are not `miss` and then `hit` within RECOVERY_LIMIT, requests stay in flight at the origin
  (a wedge), /readyz does not become 200, or healthy load fails;
- SIGTERM does not end the process in time.

docs/reliability.md says which promise is attacked by which trial.
"""
import collections
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "scenarios"), str(HERE.parent / "support")]

from harness import BUCKET, CLEAN, Stores, read_what_it_says, spawn, until  # noqa: E402
from ports import free_port  # noqa: E402

HEALTH_LIMIT = 5.0  # seconds for an answer of /livez or /readyz; both cores are busy with the load
RECOVERY_LIMIT = 20  # seconds from the end of a fault until a new page is stored again
ANSWER_LIMIT = 5.0  # seconds for an answer after the fault
STOP_LIMIT = 12  # seconds from SIGTERM to the end; drain_timeout is 5 s
MOST_LINES = 5000  # of stderr that are kept
ISR = "x-facetheory-isr"
RARELY = 100_000
MISHAPS = {
    "hanging": "requests that nobody answered",
    "late": "answers that took too long",
    "cut": "answers that were cut off",
    "unanswered": "connections that were closed instead of an answer",
    "refused": "connections that were refused",
}


class Failed(Exception):
    """What a trial found."""


def check(holds, what):
    if not holds:
        raise Failed(what)


# --- The attackers ---


class Controlled:
    """trial_origin or trial_relay."""

    def __init__(self, program, *options):
        self.process = spawn([program, *options], stdout=subprocess.PIPE, text=True)
        self.port, self.control = map(int, self.process.stdout.readline().split())

    def say(self, words):
        with socket.create_connection(("127.0.0.1", self.control), timeout=10) as connection:
            connection.sendall(words.encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
        if "error" in answer:
            raise Failed(f"{words}: {answer['error']}")
        return answer

    def fault(self, name, percent=100, milliseconds=100):
        return self.say(f"fault {name} {percent} {milliseconds}")

    def state(self):
        return self.say("state")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Load:
    """trial_load, in the background."""

    def __init__(self, program, **options):
        words = [f"--{name.replace('_', '-')}={value}".split("=", 1) for name, value in options.items()]
        self.process = spawn(
            [program, *(word for pair in words for word in pair)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def is_over(self):
        return self.process.poll() is not None

    def report(self):
        """What it counted; a wrong page is an exception."""
        out, trouble = self.process.communicate(timeout=60)
        if self.process.returncode == 1:
            report = json.loads(out)
            raise Failed(f"A WRONG PAGE after {report['answers']} answers and {report['seconds']} s\n{trouble}")
        check(self.process.returncode == 0, f"the load ended with {self.process.returncode}: {trouble}")
        return json.loads(out)

    def stop(self):
        if not self.is_over():
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


# --- What is tried ---


class Gateway:
    """`facetheory serve`."""

    def __init__(self, program, folder, environment, settings, prefix=()):
        (folder / "trial.toml").write_text(settings)
        self.program, self.folder, self.environment, self.prefix = program, folder, environment, prefix
        self.start()

    def start(self):
        self.said, self.port, self.admin = [], None, None
        self.listening = threading.Event()
        self.process = spawn(
            [*self.prefix, self.program, "serve", "--config", self.folder / "trial.toml"],
            cwd=self.folder,
            env=CLEAN | self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.reading = threading.Thread(target=read_what_it_says, args=(self, MOST_LINES), daemon=True)
        self.reading.start()
        check(self.listening.wait(60) and self.admin, f"the gateway does not start: {self.last_words()}")

    def start_again(self):
        """At the same address, since the clients know no other."""
        self.process.wait()
        self.reading.join(5)
        self.process.stderr.close()
        self.start()

    def last_words(self):
        return "".join(self.said[-30:])

    def is_alive(self):
        return self.process.poll() is None

    def check_alive(self):
        if self.is_alive():
            return
        code = self.process.wait()
        self.reading.join(5)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise Failed(f"THE PROCESS DIED: {name}\n{self.last_words()}")

    def health(self, path):
        """The status of /livez or /readyz, or the name of what happened instead of an answer."""
        try:
            return self.get(path, self.admin, "127.0.0.1", HEALTH_LIMIT)[0]
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__

    def get(self, path, port=None, host="site0.test", limit=ANSWER_LIMIT):
        """Status and state of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=limit)
        try:
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader(ISR, "")
        finally:
            connection.close()

    def check_reports(self):
        """Of a sanitizer."""
        for i, line in enumerate(self.said):
            if "Sanitizer" in line or "runtime error:" in line:
                raise Failed("A SANITIZER REPORTS\n" + "".join(self.said[max(i - 1, 0) : i + 60]))

    def ends_in_time(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"it still runs {STOP_LIMIT} s after SIGTERM: {self.last_words()}") from None
        self.reading.join(5)
        self.check_reports()
        check(code == 0, f"exit code {code} after SIGTERM: {self.last_words()}")

    def stop(self):
        if self.is_alive():
            self.process.kill()
        self.process.wait()
        self.reading.join(5)
        self.process.stderr.close()


class Health:
    """Asks /livez and /readyz again and again, as an orchestrator does."""

    def __init__(self, gateway):
        self.gateway, self.counts, self.slowest = gateway, collections.Counter(), 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self):
        while not self.over.wait(0.1):
            for path in ("/livez", "/readyz"):
                began = time.monotonic()
                status = self.gateway.health(path)
                if self.over.is_set():
                    return
                self.counts[f"{path} {status}"] += 1
                self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self):
        self.over.set()
        self.thread.join(2 * HEALTH_LIMIT)

    def judge(self):
        bad = set(self.counts) - {"/livez 200", "/readyz 200", "/readyz 503"}
        check(not bad, f"health checks: {dict(self.counts)}")


# --- A trial ---


@dataclasses.dataclass
class Trial:
    """`begin` makes something fail, `during` is called again and again while clients ask (for what comes and goes),
    `end` lifts it. Each gets the bed."""

    name: str
    about: str
    begin: object
    end: object
    during: object = None
    stores: str = "lmdb"  # or "aws" (DynamoDB Local and s3rver behind relays), "files" (an LMDB table, bodies in files)
    mount: str = ""  # options of a tmpfs for all data, or of "files" for the bodies
    sees: tuple = ()  # of these states at least one must be seen, or the fault was not met
    statuses: tuple = ()  # other than 200 that clients may get while it lasts
    rare: tuple = ()  # likewise, but no more than one answer in RARELY: in a short run none
    late: float = 8.0  # seconds that no answer may take
    least: int = 0  # seconds that it lasts at least, however few are asked for: in fewer the fault may not be met
    allows: tuple = ()  # of MISHAPS
    load: dict = dataclasses.field(default_factory=dict)  # options of trial_load
    health: bool = True  # whether the health checks must be answered while it lasts
    unready: bool = False  # whether /readyz must say 503 while it lasts
    prefix: tuple = ()  # before the gateway's command
    sanitized: bool = True  # whether it works with a sanitizer
    settings: str = ""  # more of the configuration's first lines
    readers: int = 4  # in a long run so many clients more ask for known pages alone: enough for a million answers
    dies: bool = False  # whether the process ends (by SIGABRT) and is started again, as a supervisor would


class Bed:
    """Everything of one run of a trial."""

    def __init__(self, trial, options, stores, stack):
        self.trial, self.options, self.stack, self.deaths = trial, options, stack, 0
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trial-")))
        self.data = self.folder / "data"
        self.origin = self.keep(Controlled(options.programs / "trial_origin", "--jitter", "3"))
        self.environment = {}
        if trial.stores == "aws":
            self._open_aws(stores)
        else:
            self._open_folder()
        settings = self._settings()
        self.gateway = self.keep(Gateway(options.facetheory, self.folder, self.environment, settings, trial.prefix))

    def keep(self, started):
        self.stack.callback(started.stop)
        return started

    def _open_folder(self):
        self.mounted = self.data / "bodies" if self.trial.stores == "files" else self.data
        self.mounted.mkdir(parents=True)
        if self.trial.mount:
            mount("-t", "tmpfs", "-o", self.trial.mount, "trial", self.mounted)
            self.stack.callback(mount, "--lazy", self.mounted, command="umount")
        self.table = f"lmdb:{self.data}/table"
        self.bodies = f"{'file' if self.trial.stores == 'files' else 'lmdb'}:{self.data}/bodies"

    def _open_aws(self, stores):
        relay = self.options.programs / "trial_relay"
        table, bodies = (store.endpoint.rsplit(":", 1)[1] for store in (stores.dynamodb, stores.s3))
        self.table_relay = self.keep(Controlled(relay, "--upstream", table))
        self.bodies_relay = self.keep(Controlled(relay, "--upstream", bodies))
        self.environment = stores.dynamodb.environment(f"http://127.0.0.1:{self.table_relay.port}")
        self.environment |= {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.bodies_relay.port}"}
        self.environment.pop("FACETHEORY_CACHE_TABLE_NAME")
        name = f"trial-{os.getpid()}-{time.monotonic_ns()}"
        self.table, self.bodies = f"dynamodb:{name}", f"s3://{BUCKET}/{name}"
        words = [self.options.facetheory, "table", "create", "--table", self.table, "--bodies", self.bodies]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=CLEAN | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        check(done.returncode == 0, f"table create: {done.stderr}")

    def _settings(self):
        port = free_port(1)
        return f"""
listen = "127.0.0.1:{port}"
admin = "127.0.0.1:{port + 1}"
{self.trial.settings}
access_log = "off"
threads = {self.options.loops}
table = "{self.table}"
bodies = "{self.bodies}"
[limits]
drain_timeout = "5s"
[origins.web]
url = "http://127.0.0.1:{self.origin.port}"
connect_timeout = "1s"
read_timeout = "2s"
render_timeout = "3s"
[defaults]
lease = "2s"
wait_limit = "6s"
[[routes]]
pattern = "/pass/*"
cache = false
[[routes]]
pattern = "/*"
"""

    def load(self, name, **more):
        late = int(self.trial.late * 1000 * self.options.patience)
        options = {
            "connections": 12,
            "pass": 10,
            "abandon": 1,
            "give_up": 20000,
            "late": late,
            "tally": ISR,
            "readers": self.trial.readers if self.options.readers else 0,
        }
        options |= more | {"port": self.gateway.port, "name": name, "seed": self.options.seed}
        return self.keep(Load(self.options.programs / "trial_load", **options))

    def finish(self, load, during=None):
        """What the load counted. It ends early when the process is gone."""
        while not load.is_over():
            self.look_after()
            if during:
                during(self)
            time.sleep(0.05)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.gateway.process.wait(0.2)  # A process that dies breaks connections first.
        report = load.report()
        self.look_after()
        return report

    def look_after(self):
        """The process lives, or is started again where that is part of the trial."""
        if self.trial.dies and self.gateway.process.poll() == -signal.SIGABRT:
            self.deaths += 1
            self.gateway.start_again()
            self.trial.begin(self)
        elif not self.trial.dies or self.gateway.process.poll() is not None:
            self.gateway.check_alive()


def mount(*words, command="mount"):
    done = subprocess.run([command, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(
            f"{command} {' '.join(map(str, words))}: {done.stderr.strip()}\nThis trial needs a small file system of "
            "its own: run it as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
        )


def in_own_namespace():
    """Starts this program again where it may mount file systems that nobody else sees. Without the right to, the trials
    that need it say so."""
    if os.environ.get("TRIAL_NAMESPACE"):
        return
    os.environ["TRIAL_NAMESPACE"] = "1"
    words = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
        os.execvp("unshare", [*words, sys.executable, *sys.argv])


def is_sanitized(program):
    """A sanitizer needs several times the time, and address space without a limit."""
    needed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return "libtsan" in needed or "libasan" in needed


def run(trial, options, stores):
    """One line of figures. A failure is an exception."""
    with contextlib.ExitStack() as stack:
        bed = Bed(trial, options, stores, stack)
        calm = 3 if options.seconds >= 10 else 1  # seconds before and after the fault
        warm = bed.finish(
            bed.load("warm", answers=1000 * calm, seconds=10 * calm, **{"hot": 100, "again": 0, "pass": 0})
        )
        judge_healthy(warm, "before the fault")
        bed.health = bed.keep(Health(bed.gateway))
        trial.begin(bed)
        load = bed.load("warm", answers=options.answers, seconds=max(options.seconds, trial.least), **trial.load)
        report = bed.finish(load, trial.during)
        if trial.unready:
            wait_for(lambda: bed.gateway.health("/readyz") == 503, "while it lasts /readyz says 503", 5)
        trial.end(bed)
        judge(trial, report)
        check(bed.deaths > 0 or not trial.dies, "the fault was not met: the process did not end")
        seconds = recover(bed)
        if trial.health:
            bed.health.judge()
        bed.health.stop()
        after = bed.finish(bed.load("after", answers=2000 * calm**2, seconds=calm))
        judge_healthy(after, "after the fault")
        bed.gateway.ends_in_time()
        return report | {
            "recovered_after": round(seconds, 2),
            "origin": bed.origin.state(),
            "health": dict(bed.health.counts),
        }


def judge(trial, report):
    figures = json.dumps(report)
    check(report["ok"] > 0, f"no page at all while it lasted: {figures}")
    for name, meaning in MISHAPS.items():
        check(name in trial.allows or not report[name], f"{meaning}: {figures}")
    rare = trial.rare if sum(report["failed"].values()) * RARELY <= report["answers"] else ()
    odd = [status for status in report["failed"] if int(status) not in (*trial.statuses, *rare)]
    check(not odd, f"answers with {', '.join(odd)}: {figures}")
    if trial.sees:
        check(any(report["tally"].get(state) for state in trial.sees), f"the fault was not met: {figures}")


def judge_healthy(report, when):
    figures = json.dumps(report)
    check(report["ok"] > 0 and not report["failed"], f"{when} answers fail: {figures}")
    for name, meaning in MISHAPS.items():
        check(not report[name], f"{when} there are {meaning}: {figures}")


def wait_for(condition, what, limit):
    try:
        until(condition, what, limit)
    except AssertionError as error:
        raise Failed(str(error)) from None


def recover(bed):
    """The seconds until new pages are rendered, stored and served from there, on every loop; then nothing may be left
    of the fault."""
    began = time.monotonic()
    number, in_a_row = 0, 0
    while in_a_row < (8 if bed.options.seconds >= 10 else 2) * bed.options.loops:
        found = is_stored(bed, f"/recovered/{number}")
        number += 1
        in_a_row = in_a_row + 1 if found == "stored" else 0
        if not in_a_row:
            check(
                time.monotonic() - began < RECOVERY_LIMIT,
                f"no new page is stored {RECOVERY_LIMIT} s after the fault: {found}",
            )
            time.sleep(0.05)
    seconds = time.monotonic() - began
    wait_for(
        lambda: bed.origin.state()["in_flight"] == 0,
        f"after the fault nothing is in flight at {bed.origin.state()}",
        10,
    )
    wait_for(
        lambda: bed.gateway.health("/readyz") == 200, "after the fault /readyz says that all is well", RECOVERY_LIMIT
    )
    return seconds


def is_stored(bed, path):
    """ "stored" if a new page is rendered and then a hit, else what happened. A page that is not answered is a
    wedge."""
    try:
        first = bed.gateway.get(path)
        if first != (200, "miss"):
            return first
        deadline = time.monotonic() + 2  # The page may have reached its first client before it was stored.
        while (then := bed.gateway.get(path)) != (200, "hit"):
            if then[0] != 200 or time.monotonic() > deadline:
                return first, then
            time.sleep(0.01)
        return "stored"
    except TimeoutError:
        bed.gateway.check_alive()
        if "hanging" in bed.trial.allows:
            return "not answered"  # Those who left before are still in the queue.
        raise Failed(
            f"A WEDGE: {path} is not answered within {ANSWER_LIMIT} s, after the fault; the origin says "
            f"{bed.origin.state()}, /readyz {bed.gateway.health('/readyz')}"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        bed.gateway.check_alive()
        return error


def summary(report):
    """For people: a few lines."""
    by_count = sorted(report["tally"].items(), key=lambda one: -one[1])
    states = ", ".join(f"{count:,} {state or 'without a state'}" for state, count in by_count)
    failed = ", ".join(f"{count:,} × {status}" for status, count in report["failed"].items()) or "none failed"
    odd = ", ".join(f"{name} {report[name]:,}" for name in (*MISHAPS, "abandoned") if report[name])
    times, origin = report["milliseconds"], report["origin"]
    health = ", ".join(f"{name} × {count}" for name, count in sorted(report["health"].items()))
    return (
        f"  {report['answers']:,} answers in {report['seconds']:.0f} s ({states}); wrong 0; {failed}; {odd}\n"
        f"  p50 {times['p50']} ms, p99 {times['p99']} ms, longest {times['max']} ms; "
        f"origin asked {origin['requests']:,} times, at most {origin['most_in_flight']} at once; "
        f"stored again {report['recovered_after']} s after the fault; {health}"
    )
