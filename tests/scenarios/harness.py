"""System behaviour as scenarios: an origin whose renders are counted, gateways that are real processes, clients.

A case is a function whose name is a sentence and whose first parameter is the scenario `s`, which owns a folder, an
origin and whatever is started by it; all of that ends with the case. `main` runs the cases of a file side by side or
one after the other and prints "ok NAME" or "not ok NAME" for each.

Origin, relays and crowds of clients share one event loop on a thread of its own, so that a case reads from top to
bottom.
"""
import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import http.client
import inspect
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

from dynamodb_local import DynamoDbLocal, FaultProxy, s3rver_command, spawn  # noqa: E402

HOST = "site.test"  # of all requests, so that all gateways have the same keys
DEADLINE = 30  # seconds for anything that must happen at last
BUCKET = "pages"
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_"))
}


# --- Saying what must hold ---


def same(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def below(found, limit, what):
    if not found < limit:
        raise AssertionError(f"{what}: {found:.3f} is not below {limit}")


def until(condition, what, limit=DEADLINE):
    """Waits until the condition holds, and returns what it returned."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"not within {limit} s: {what}")


def raise_descriptor_limit(wanted):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
        except (ValueError, PermissionError):
            raise AssertionError(
                f"this needs {wanted} open files, and the machine allows {hard} (ulimit -Hn)"
            ) from None
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# --- The event loop of origin, relays and crowds ---


class Loop:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine, limit=120):
        """From any other thread: what the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(limit)


LOOP = Loop()


class Listener:
    """Something on a port of its own that can vanish and come back there. `serve` handles one connection."""

    def __init__(self):
        self.port, self.server, self.writers = 0, None, set()
        self.appear()

    def appear(self):
        LOOP.run(self._listen())

    def vanish(self):
        """From now on connections are refused; those there are break."""
        LOOP.run(self._close())

    async def _listen(self):
        self.server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _close(self):
        if self.server:
            self.server.close()
            self.server = None
        for writer in list(self.writers):
            writer.transport.abort()

    async def _accepted(self, reader, writer):
        self.writers.add(writer)
        try:
            await self.serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()


class Render:
    def __init__(self, path, number, gateway):
        self.path, self.number, self.gateway = path, number, gateway


class Origin(Listener):
    """Every page says which render of it this is. Counted are GET requests; the Host names the gateway that asks."""

    def __init__(self):
        self.renders = collections.defaultdict(list)  # by path
        self.posts = []
        self.held, self.failing, self.delay = set(), {}, 0.0  # paths, "*" for all
        self.windows = {}  # path: max-age of its first, second, ... render; the last holds on
        self.allows_stale = True  # while a page is rendered again
        self.sizes, self.fields = {}, {}  # path: bytes of a page, path: header fields
        super().__init__()

    def hold(self, path="*"):
        """Requests are counted, and answered after `release`."""
        self.held.add(path)

    def release(self, path="*"):
        self.held.discard(path)

    def fail(self, path="*", status=500):
        self.failing[path] = status

    def heal(self, path="*"):
        self.failing.pop(path, None)

    def count(self, path):
        return len(self.renders[path])

    def waits_for(self, path, count):
        return until(lambda: self.count(path) >= count and self.renders[path][count - 1], f"render {count} of {path}")

    async def serve(self, reader, writer):
        while True:
            method, path, fields = await self._read_head(reader)
            body = await self._read_body(reader, fields)
            if method == "GET":
                render = Render(path, self.count(path) + 1, fields.get("host", ""))
                self.renders[path].append(render)
                text = f"{path} render {render.number}\n".encode()
                text += b"." * (self.sizes.get(path, 0) - len(text))
            else:
                self.posts.append((path, body))
                text = b"done\n"
            if self.delay:
                await asyncio.sleep(self.delay)
            while self.held & {path, "*"} and not reader.at_eof():
                await asyncio.sleep(0.005)
            status = self.failing.get(path, self.failing.get("*", 200))
            head = f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(text)}\r\nContent-Type: text/plain\r\n"
            windows = self.windows.get(path)
            if method == "GET" and windows:
                stale = ", stale-while-revalidate=3600" if self.allows_stale else ""
                head += f"Cache-Control: max-age={windows[min(render.number, len(windows)) - 1]}{stale}\r\n"
            for name, value in self.fields.get(path, {}).items():
                head += f"{name}: {value}\r\n"
            writer.write(head.encode() + b"\r\n" + text)
            await writer.drain()

    @staticmethod
    async def _read_head(reader):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ")
        return (
            method,
            path,
            {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)},
        )

    @staticmethod
    async def _read_body(reader, fields):
        if "chunked" not in fields.get("transfer-encoding", ""):
            return await reader.readexactly(int(fields.get("content-length", 0)))
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body


class Relay(Listener):
    """Before a store: it can vanish, or hang: connections are taken and nothing goes through until `go_on`. Where only
    writes hang, those are lost."""

    WRITES = re.compile(
        rb"(PUT|DELETE) |POST .*?\r\nx-amz-target: "
        rb"\S+\.(PutItem|UpdateItem|DeleteItem|TransactWriteItems|BatchWriteItem)\r\n",
        re.IGNORECASE | re.DOTALL,
    )

    def __init__(self, upstream):
        self.upstream, self.hanging, self.losing_writes = int(upstream.rsplit(":", 1)[1]), False, False
        super().__init__()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def hang(self):
        self.hanging = True

    def hang_writes(self):
        self.losing_writes = True

    def go_on(self):
        self.hanging = self.losing_writes = False

    async def serve(self, reader, writer):
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            await asyncio.gather(self._pump(reader, upstream_writer, self.WRITES), self._pump(upstream_reader, writer))
        finally:
            upstream_writer.close()

    async def _pump(self, reader, writer, lost=None):
        while data := await reader.read(65536):
            if lost and self.losing_writes and lost.match(data):
                while self.losing_writes:
                    await asyncio.sleep(0.01)
                break
            while self.hanging and not writer.is_closing():
                await asyncio.sleep(0.01)
            writer.write(data)
            await writer.drain()
        writer.close()


# --- Clients ---


class Answer:
    def __init__(self, status, fields, body, seconds):
        self.status, self.body, self.seconds = status, body, seconds
        self.fields = {name.lower(): value for name, value in fields}

    @property
    def isr(self):
        return self.fields.get("x-facetheory-isr", "")

    @property
    def render(self):
        """Which render of the page this is."""
        words = self.body[:200].split()
        return int(words[2]) if len(words) > 2 and words[1] == b"render" and words[2].isdigit() else None

    def is_(self, status, isr=None, render=None):
        found = (self.status, self.isr if isr else None, self.render if render else None)
        if found != (status, isr, render):
            raise AssertionError(f"expected {status} {isr or ''} {f'render {render}' if render else ''}, found {self}")
        return self

    def __repr__(self):
        return f"{self.status} {self.isr} {self.body[:100]!r} after {self.seconds:.2f} s, {self.fields}"


class Client:
    """One keep-alive connection."""

    def __init__(self, port, limit=DEADLINE):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)

    def __call__(self, path, method="GET", body=None, fields=None):
        began = time.monotonic()
        self.connection.request(method, path, body, {"Host": HOST} | (fields or {}))
        answer = self.connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read(), time.monotonic() - began)

    def close(self):
        self.connection.close()


async def _one_of_crowd(port, path, everybody, limit):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        everybody.discard(asyncio.current_task())
        return error
    everybody.discard(asyncio.current_task())
    while everybody:
        await asyncio.sleep(0.01)
    began = time.monotonic()
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        whole = await asyncio.wait_for(reader.read(-1), limit)
        head, _, body = whole.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        if not lines[0].startswith("HTTP/1.1 "):
            return ConnectionResetError("closed without an answer")
        return Answer(int(lines[0].split(" ")[1]), fields, body, time.monotonic() - began)
    except (OSError, asyncio.TimeoutError) as error:
        return error
    finally:
        writer.close()


async def _crowd(ports, path, count, limit):
    everybody = set()
    tasks = [
        asyncio.create_task(_one_of_crowd(ports[i % len(ports)], path.replace("{i}", str(i)), everybody, limit))
        for i in range(count)
    ]
    everybody.update(tasks)
    return await asyncio.gather(*tasks)


class Crowd:
    """Clients that all ask for one page at once when the last has connected, spread over the gateways; one answer (or
    exception) each. With "{i}" in its path each asks for a page of its own."""

    def __init__(self, gateways, path, count=1000, limit=DEADLINE):
        raise_descriptor_limit(4096)
        self.gateways = gateways
        self.future = asyncio.run_coroutine_threadsafe(
            _crowd([g.port for g in gateways], path, count, limit), LOOP.loop
        )

    def answers(self):
        return self.future.result(DEADLINE + 30)

    def answers_of(self, gateways):
        """Of those that were connected to one of these."""
        return [answer for i, answer in enumerate(self.answers()) if self.gateways[i % len(self.gateways)] in gateways]


def tally(answers):
    """How often each (status, state, render) came; exceptions by their kind."""
    return dict(
        collections.Counter((a.status, a.isr, a.render) if isinstance(a, Answer) else type(a).__name__ for a in answers)
    )


# --- Gateways and stores ---


def read_what_it_says(gateway, most_lines=None):
    """On stderr, until it ends; its addresses among it. `listening` is set when they are known, or never will be."""
    for line in gateway.process.stderr:
        if most_lines is None or len(gateway.said) < most_lines:
            gateway.said.append(line)
        if "listening on http://127.0.0.1:" in line:
            gateway.port = int(line.rsplit(":", 1)[1])
        if "metrics and health on http://127.0.0.1:" in line:
            gateway.admin = int(line.rsplit(":", 1)[1])
            gateway.listening.set()
    gateway.listening.set()


class Gateway:
    """`facetheory serve` with a configuration file of its own."""

    def __init__(
        self,
        scenario,
        name,
        settings="",
        limits="",
        origin="",
        defaults="",
        routes="",
        environment=None,
        expect_start=True,
        prefix=(),
    ):
        self.name, self.folder = name, scenario.folder
        self.file = self.folder / f"{name}.toml"
        self.parts = {"settings": settings, "limits": limits, "origin": origin, "defaults": defaults, "routes": routes}
        self.origin_port = scenario.origin.port
        self.configure()
        self.said, self.port, self.admin = [], None, None
        self.process = spawn(
            [*prefix, scenario.program, "serve", "--config", self.file],
            cwd=self.folder,
            env=CLEAN | scenario.environment | (environment or {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.listening = threading.Event()
        self.reading = threading.Thread(target=read_what_it_says, args=(self,), daemon=True)
        self.reading.start()
        if expect_start and (not self.listening.wait(DEADLINE) or not self.port):
            raise AssertionError(f"{name} does not listen: {self.stderr}")

    def configure(self, **parts):
        """Writes the file; it is read at the start and at SIGHUP."""
        self.parts |= parts
        text = self.parts["settings"]
        for key, value in {
            "listen": '"127.0.0.1:0"',
            "admin": '"127.0.0.1:0"',
            "admin_hosts": f'["{HOST}"]',
            "access_log": '"off"',
            "threads": "2",
        }.items():
            if not any(line.startswith(f"{key} =") for line in text.splitlines()):
                text += f"\n{key} = {value}"
        host = "" if "host =" in self.parts["origin"] else f'host = "{self.name}"'
        text += (
            f'\n[limits]\n{self.parts["limits"]}\n'
            f'[origins.web]\nurl = "http://127.0.0.1:{self.origin_port}"\n{host}\n{self.parts["origin"]}\n'
        )
        lease = "" if "lease =" in self.parts["defaults"] else 'lease = "2s"'
        text += f'[defaults]\n{lease}\n{self.parts["defaults"]}\n{self.parts["routes"]}\n'
        self.file.write_text(text)

    @property
    def stderr(self):
        return "".join(self.said)

    def says(self, *texts):
        until(lambda: all(text in self.stderr for text in texts), f"{self.name} says {texts}: {self.said}")

    def client(self, **options):
        return Client(self.port, **options)

    def get(self, path, **options):
        client = self.client()
        try:
            return client(path, **options)
        finally:
            client.close()

    def becomes(self, path, isr, render=None, limit=DEADLINE):
        """Asks until the answer is this one; all answers before must be pages, too."""

        def asked():
            answer = self.get(path)
            same(answer.status, 200, f"while waiting for {isr}: {answer}")
            return answer if answer.isr == isr and render in (None, answer.render) else None

        return until(asked, f"{path} becomes {isr} {render or ''}", limit)

    def metrics(self):
        """By name with labels, as /metrics writes them."""
        client = Client(self.admin)
        try:
            lines = client("/metrics").is_(200).body.decode().splitlines()
        finally:
            client.close()
        return {
            name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
        }

    def counts(self, name, **labels):
        """One series; 0 where there is none."""
        text = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
        return int(self.metrics().get(f"{name}{{{text}}}" if text else name, 0))

    def ready(self):
        client = Client(self.admin)
        try:
            return client("/readyz").status == 200
        finally:
            client.close()

    def memory(self):
        """Resident, in bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"{self.name} is gone")

    def takes_less_than(self, megabytes, before=0):
        """Checks its memory, or by how much that is more than before."""
        mapped = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        if "libasan" in mapped or "libtsan" in mapped:
            megabytes *= 4  # A sanitizer keeps notes on every byte, and for a while what was freed.
        taken = self.memory() - before
        check(
            taken < megabytes << 20,
            f"it takes {taken >> 20} MiB {'more ' if before else ''}of memory, not less than {megabytes}",
        )

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ends(self, code, limit):
        """Within the limit, with this exit code."""
        try:
            found = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {limit} s: {self.said}") from None
        self.reading.join(DEADLINE)
        same(found, code, f"exit code of {self.name}, which said {self.said}")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reading.join(DEADLINE)
        self.process.stderr.close()


class S3Server:
    """s3rver, and before it the proxy that gives it conditional writes."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.server = spawn(
            s3rver_command(self.folder.name, "--configure-bucket", BUCKET),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        port = next((line.rsplit(":", 1)[1] for line in self.server.stdout if "listening on 127.0.0.1:" in line), None)
        if port is None:
            raise SystemExit("s3rver did not start")
        self.proxy = FaultProxy(f"http://127.0.0.1:{int(port)}", "s3")
        self.endpoint = self.proxy.endpoint

    def stop(self):
        self.proxy.stop()
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()
        self.folder.cleanup()


class Scenario:
    """Everything one case has. `on` says where pages are kept: "lmdb" (a folder that all gateways share) or "aws"
    (DynamoDB Local and s3rver, which all cases share, each in a table of its own)."""

    def __init__(self, program, stores, number, stack):
        self.program, self.stores, self.stack = program, stores, stack
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.table, self.bodies = f"lmdb:{self.folder}/data/table", f"lmdb:{self.folder}/data/bodies"
        self.environment, self.number = {}, number
        self.origin = Origin()
        stack.callback(self.origin.vanish)

    def behind(self, origin):
        """Another origin than the one that counts renders."""
        self.origin.vanish()
        self.origin = origin
        self.stack.callback(origin.vanish)
        return origin

    def in_memory(self):
        self.table, self.bodies = "memory:", "memory:"
        return self

    def on(self, kind, relayed=False):
        if kind == "lmdb":
            return self
        table, bodies = self.stores.dynamodb.endpoint, self.stores.s3.endpoint
        if relayed:
            self.table_relay, self.bodies_relay = Relay(table), Relay(bodies)
            self.stack.callback(self.table_relay.vanish)
            self.stack.callback(self.bodies_relay.vanish)
            table, bodies = self.table_relay.endpoint, self.bodies_relay.endpoint
        self.environment = self.stores.dynamodb.environment(table) | {"AWS_ENDPOINT_URL_S3": bodies}
        self.environment.pop("FACETHEORY_CACHE_TABLE_NAME")
        self.table, self.bodies = f"dynamodb:scenario-{self.number}", f"s3://{BUCKET}/scenario-{self.number}"
        self.cli("table", "create")
        return self

    def gateway(self, name="gateway", settings="", **options):
        settings += f'\ntable = "{self.table}"\nbodies = "{self.bodies}"\n'
        gateway = Gateway(self, name, settings, **options)
        self.stack.callback(gateway.stop)
        return gateway

    def gateways(self, count, **options):
        return [self.gateway(f"gateway-{i}", **options) for i in range(count)]

    def cli(self, *words):
        """A command that must succeed; what it printed."""
        done = subprocess.run(
            [self.program, *words, "--table", self.table, "--bodies", self.bodies],
            cwd=self.folder,
            env=CLEAN | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        if done.returncode != 0:
            raise AssertionError(f"{words}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def invalidate(self, path):
        self.cli("invalidate", f"http://{HOST}{path}")


class Stores:
    """Started when the first case needs them. Children die with the thread that started them; those of the pool stay
    until all cases ended."""

    def __init__(self):
        self.lock, self.started = threading.Lock(), {}

    def get(self, name, make):
        """What all cases of a file share; it is made once, and stopped at the end."""
        with self.lock:
            if name not in self.started:
                self.started[name] = make()
            return self.started[name]

    dynamodb = property(lambda self: self.get("dynamodb", DynamoDbLocal))
    s3 = property(lambda self: self.get("s3", S3Server))

    def stop(self):
        for server in self.started.values():
            server.stop()


# --- Running cases ---


def run(name, case, program, stores, number):
    began = time.monotonic()
    try:
        with contextlib.ExitStack() as stack:
            case(Scenario(program, stores, number, stack))
        return f"ok {name}  ({time.monotonic() - began:.1f} s)\n"
    except Exception:  # pylint: disable=broad-except
        return f"{traceback.format_exc()}not ok {name}  ({time.monotonic() - began:.1f} s)\n"


def on_each(stores, cases):
    """Each case on each of the stores, for main's `more`: the case gets the store as its second parameter."""
    return [
        (f"{case.__name__.replace('_', ' ')} on {name}", lambda s, case=case, store=store: case(s, store))
        for name, store in stores.items()
        for case in cases
    ]


def main(module, side_by_side=1, more=()):
    """`more`: (name, case) beside the module's functions."""
    parser = argparse.ArgumentParser(usage=sys.modules[module].__doc__)
    parser.add_argument("--facetheory", default="build/release/facetheory")
    parser.add_argument("--list", action="store_true", help="prints the cases' names and runs nothing")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    program = pathlib.Path(options.facetheory).resolve()
    functions = [
        f
        for f in vars(sys.modules[module]).values()
        if inspect.isfunction(f) and f.__module__ == module and list(inspect.signature(f).parameters) == ["s"]
    ]
    cases = [(f.__name__.replace("_", " "), f) for f in functions] + list(more)
    cases = [case for case in cases if all(word in case[0] for word in options.words)]
    failed = not cases
    if options.list:
        print("".join(f"{name}\n" for name, _ in cases), end="")
        sys.exit(1 if failed else 0)
    shared = Stores()
    try:
        with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
            jobs = [pool.submit(run, name, case, program, shared, number) for number, (name, case) in enumerate(cases)]
            for job in concurrent.futures.as_completed(jobs):
                print(job.result(), end="", flush=True)
                failed = failed or "not ok " in job.result()
    finally:
        shared.stop()
    sys.exit(1 if failed else 0)
