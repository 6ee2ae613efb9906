"""What stands around a server that is measured: a folder, two cores, an origin, and the processes that were started."""
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from gateway import cpu

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "support"))
from ports import free_port  # noqa: E402  (the tests' way to a free port is the benchmark's)

HOST = "bench.test"
READY_LIMIT = 30  # seconds


class Failed(Exception):
    """The benchmark cannot go on; the text says why and what to do."""


class Answer:
    def __init__(self, raw, head_bytes):
        self.raw = raw
        lines = raw[:head_bytes].decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        self.body = raw[head_bytes:]


def fetch(port, path, headers=None, timeout=30):
    """One request over a connection of its own. The answer must say how long it is."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}"] + [f"{name}: {value}" for name, value in (headers or {}).items()]
    with socket.create_connection(("127.0.0.1", port), timeout) as client:
        client.settimeout(timeout)
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        raw, expected = b"", None
        while expected is None or len(raw) < expected:
            piece = client.recv(1 << 18)
            if not piece:
                raise Failed(f"{path}: the connection ended within an answer")
            raw += piece
            end = raw.find(b"\r\n\r\n")
            if expected is None and end >= 0:
                answer = Answer(raw, end + 4)
                length = 0 if answer.status == 304 else answer.headers.get("content-length")
                if length is None:
                    raise Failed(f"{path}: an answer without Content-Length")
                expected = end + 4 + int(length)
        return Answer(raw, end + 4)


def most_files():
    """How many files a server may have open here."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1_000_000 if limit == resource.RLIM_INFINITY else limit


class Process:
    """A program on a core, its output in a file. Never a daemon; ended by its id."""

    def __init__(self, command, core, folder, variables=None):
        self.log = pathlib.Path(folder) / "log"

        def prepare():
            os.sched_setaffinity(0, {core})
            resource.setrlimit(resource.RLIMIT_NOFILE, (most_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=os.environ | (variables or {}),
                preexec_fn=prepare,
            )
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def stop(self, signal_number=signal.SIGTERM, patience=60):
        if self.alive():
            self.popen.send_signal(signal_number)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()

    def said(self):
        return self.log.read_text(errors="replace")[-2000:].strip()


def until_it_answers(process, port, path, name):
    """Waits for the first answer of a server and returns the seconds from now to then."""
    began = time.monotonic()
    while time.monotonic() - began < READY_LIMIT:
        if not process.alive():
            raise Failed(f"{name} ended at once:\n{process.said()}")
        try:
            if fetch(port, path).status == 200:
                return time.monotonic() - began
        except OSError:
            pass
        time.sleep(0.002)
    raise Failed(f"{name} gave no page within {READY_LIMIT} s:\n{process.said()}")


class Bed:
    """`with Bed(...)`: at the end all that was started is stopped and the folder removed."""

    def __init__(self, tools, parent=None, keep=False, one_core_will_do=False):
        available = sorted(os.sched_getaffinity(0))
        if len(available) < 2 and not one_core_will_do:
            raise Failed("gateway_bench: needs two cores, one for the server and one for the load")
        self.load_core, self.server_core = available[0], available[-1]
        self.tools = pathlib.Path(tools)
        self.keep = keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gateway_bench.", dir=parent))
        self.started = []

    def __enter__(self):
        os.sched_setaffinity(0, {self.load_core})
        try:
            self.origin_port = free_port()
            self.origin = self.run(
                "origin", [str(self.tools / "bench_origin"), str(self.origin_port)], core=self.load_core
            )
            until_it_answers(self.origin, self.origin_port, "/__count", "bench_origin")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.stop()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, name, command, core=None, variables=None, folder=None):
        folder = pathlib.Path(folder or self.folder / name)
        folder.mkdir(parents=True, exist_ok=True)
        process = Process(command, self.server_core if core is None else core, folder, variables)
        self.started.append(process)
        return process

    def stop(self, process):
        process.stop()
        self.started.remove(process)

    def stop_servers(self):
        for process in [process for process in self.started if process is not self.origin]:
            self.stop(process)

    def renders(self):
        """How many pages the origin has given so far."""
        return int(fetch(self.origin_port, "/__count").body)

    def settle(self):
        """Waits until the origin has nothing to do any more, since pages that expired in the window before may still be
        rendered, and until all that was written is on the disk: no server pays for what another one left to the kernel
        to write."""
        for _ in range(100):
            before = self.renders()
            time.sleep(0.1)
            if self.renders() == before:
                os.sync()
                return
        raise Failed("the origin is still asked for pages, ten seconds after the last request")

    def origin_seconds(self):
        return sum(cpu.seconds_by_process(self.origin.pid).values())
