"""One window: a load generator on its core asks a server on its own for a few seconds, and what both did is read from
/proc. wrk asks for one page or a few, bench_client for many.

A window is clean when the host took less than 5 % of a core away (0.5 % where p99 is what counts: more than that is
p99) and either the server or the generator used at least 85 % of its core: then the one that was slower set the pace,
and not somebody else's work. A paced window leaves both idle on purpose, so that there the rest of the machine must be
idle instead; either will do for a window of filling, where the disk is waited for. A window is void when a request
failed, the bytes are not those that were expected, or the origin was asked although every request should have been a
hit."""
import json
import os
import pathlib
import re
import subprocess
import time

from gateway import cpu
from gateway.bed import HOST, Failed

CONNECTIONS = 64
CLEAN_STEAL, CLEAN_STEAL_FOR_P99, CLEAN_USE, CLEAN_FOREIGN = 0.05, 0.005, 0.85, 0.15
# Five fields besides Host and what a workload adds, as a browser sends them.
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
    "Upgrade-Insecure-Requests": "1",
    "Sec-Fetch-Mode": "navigate",
}
REPORT = """
done = function(summary, latency)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  local form = '{"requests": %d, "seconds": %f, "bytes": %d, "failed": %d, "p50_us": %d, "p99_us": %d, "setup": %f}'
  io.write("RESULT " .. string.format(form, summary.requests, summary.duration / 1e6, summary.bytes, failed,
    latency:percentile(50), latency:percentile(99), setup_seconds) .. "\\n")
end
"""


def lua(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\\r\\n") + '"'


def head(headers):
    """Everything of a request after its path."""
    fields = {"Host": HOST} | BROWSER | (headers or {})
    return " HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"


class Load:
    """What wrk asks for. `paths` is one path, or a pair (prefix, numbers): pages of which the file of numbers is drawn
    in turn, or, when numbers is an int, any below it with equal chance."""

    def __init__(self, folder, name, paths, headers=None, connections=CONNECTIONS, pause_ms=0):
        self.connections = connections
        self.paced, self.waits_for_disk = pause_ms > 0, False
        self.script = pathlib.Path(folder) / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.lua"
        self.script.write_text(
            "\n".join(
                [
                    self.request(paths, head(headers)),
                    f"delay = function() return math.random(0, {2 * pause_ms}) end" if pause_ms else "",
                    "setup_seconds = os.clock()",
                    REPORT,
                ]
            )
        )

    @staticmethod
    def request(paths, tail):
        if isinstance(paths, str):
            return f"local text = {lua('GET ' + paths + tail)}\nrequest = function() return text end"
        prefix, numbers = paths
        if isinstance(numbers, int):
            return (
                f"local tail = {lua(tail)}\nmath.randomseed(os.time())\n"
                f"request = function() return {lua('GET ' + prefix)} .. math.random(0, {numbers - 1}) .. tail end"
            )
        return (
            f"local tail, made, draws = {lua(tail)}, {{}}, {{}}\n"
            f"for number in io.lines({lua(str(numbers))}) do\n"
            f"  made[number] = made[number] or {lua('GET ' + prefix)} .. number .. tail\n"
            "  draws[#draws + 1] = made[number]\nend\n"
            "local count = #draws\nmath.randomseed(os.time())\nlocal i = math.random(1, count)\n"
            "request = function()\n  i = i < count and i + 1 or 1\n  return draws[i]\nend"
        )

    def run(self, port, seconds):
        """wrk's own figures, and the processor time that it took before its first request."""
        command = [
            "wrk",
            "-t1",
            f"-c{self.connections}",
            f"-d{seconds}s",
            "--timeout",
            "10s",
            "-s",
            str(self.script),
            f"http://127.0.0.1:{port}/",
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds + 60,
        )
        found = re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE)
        if done.returncode or not found:
            raise Failed(f"wrk failed:\n{done.stdout}")
        return json.loads(found[1])


class Spread:
    """What bench_client asks for: pages in its order "uniform" or "zipf" until the time is over, or, when it is
    "shuffled", each page once."""

    def __init__(self, bed, prefix, pages, order):
        self.bed, self.prefix, self.pages, self.order = bed, prefix, pages, order
        self.connections = CONNECTIONS
        self.paced, self.waits_for_disk = False, order == "shuffled"
        self.windows = 0

    def run(self, port, seconds):
        self.windows += 1  # The seed, so that each window goes another way, the same for all servers.
        done = ask(self.bed, port, self.prefix + "#", self.pages, self.connections, seconds, self.order, self.windows)
        return {
            "requests": done["answered"],
            "failed": done["failed"],
            "seconds": done["seconds"],
            "bytes": done["bytes"],
            "p50_us": round(done["p50_ms"] * 1000),
            "p99_us": round(done["p99_ms"] * 1000),
            "setup": done["setup"],
        }


def measure(bed, peer, load, seconds, expected_bytes=None, renders=None, clean_steal=CLEAN_STEAL):
    """A window. `expected_bytes`: of each answer, with its head. `renders`: how many the origin must give at least;
    None: none at all."""
    bed.settle()
    renders_before, cores_before, origin_before = bed.renders(), cpu.cores(), bed.origin_seconds()
    server_before, began = peer.seconds(), time.monotonic()
    load_before = os.times()
    done = load.run(peer.port, seconds)
    load_after = os.times()
    elapsed = time.monotonic() - began
    server = cpu.seconds_between(server_before, peer.seconds())
    cores_after = cpu.cores()
    origin = bed.origin_seconds() - origin_before
    rendered = bed.renders() - renders_before

    load_seconds = load_after.children_user + load_after.children_system
    load_seconds -= load_before.children_user + load_before.children_system + done["setup"]
    requests = max(1, done["requests"])
    steal = max((after[1] - before[1]) / elapsed for before, after in zip(cores_before, cores_after))
    busy = sum(after[0] - before[0] for before, after in zip(cores_before, cores_after))
    foreign = max(0.0, (busy - server - load_seconds - origin) / elapsed)
    window = {
        "requests": done["requests"],
        "rps": requests / done["seconds"],
        "p50_us": done["p50_us"],
        "p99_us": done["p99_us"],
        "cpu_us": server / requests * 1e6,
        "bytes": done["bytes"] / requests,
        "server_use": server / done["seconds"],
        "load_use": max(0.0, load_seconds) / done["seconds"],
        "origin_use": origin / done["seconds"],
        "steal": steal,
        "foreign": foreign,
        "rendered": rendered,
    }
    window["void"] = void(done, load, rendered, expected_bytes, renders)
    used = max(window["server_use"], window["load_use"]) >= CLEAN_USE
    alone = foreign < CLEAN_FOREIGN
    undisturbed = alone if load.paced else used or (load.waits_for_disk and alone)
    window["clean"] = not window["void"] and steal < clean_steal and undisturbed
    return window


def void(done, load, rendered, expected_bytes, renders):
    if not done["requests"]:
        return "no request was answered"
    if done["failed"]:
        return f"{done['failed']} requests failed"
    if renders is None and rendered:
        return f"{rendered} requests were no hits"
    if renders and rendered < renders:
        return f"only {rendered} of {renders} pages were rendered"
    if expected_bytes:
        # What was under way at the end is counted in bytes and not in requests; Age has a digit more now and then.
        surplus = done["bytes"] - done["requests"] * expected_bytes
        if not -8 * done["requests"] <= surplus <= load.connections * expected_bytes + 8 * done["requests"]:
            return f"{done['bytes'] / done['requests']:.0f} bytes an answer, not {expected_bytes}"
    return None


def ask(bed, port, path, pages, connections, limit, order="turn", seed=1):
    """Has pages asked for in an order that bench_client knows, by default each once; what it says."""
    fields = [word for name, value in BROWSER.items() for word in ("--field", f"{name}: {value}")]
    options = ["--order", order, "--seed", str(seed), *fields]
    numbers = [str(int(number)) for number in (port, connections, pages, limit)]
    done = subprocess.run(
        [str(bed.tools / "bench_client"), *options, *numbers, path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit + 60,
    )
    if done.returncode:
        raise Failed(f"bench_client failed: {done.stderr.strip()}")
    return json.loads(done.stdout)
