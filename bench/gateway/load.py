"""One window: wrk on its core asks a server on its own for a few seconds, and what both did is read from /proc.

A window is clean when the host took less than 5 % of a core away (0.5 % where p99 is what counts: more than that is
p99) and either the server or wrk used at least 85 % of its core: then the one that was slower set the pace, and not
somebody else's work. A paced window leaves both idle on purpose, so that there the rest of the machine must be idle
instead. A window is void when a request failed, the bytes are not those that were expected, or the origin was asked
although every request should have been a hit."""
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
        self.name = name
        self.connections = connections
        self.paced = pause_ms > 0
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


def run_wrk(load, port, seconds, core):
    """wrk's own figures, and the processor time it took for its requests."""
    command = [
        "wrk",
        "-t1",
        f"-c{load.connections}",
        f"-d{seconds}s",
        "--timeout",
        "10s",
        "-s",
        str(load.script),
        f"http://127.0.0.1:{port}/",
    ]
    began = os.times()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds + 60,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    ended = os.times()
    found = re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise Failed(f"wrk failed:\n{done.stdout}")
    result = json.loads(found[1])
    used = ended.children_user + ended.children_system - began.children_user - began.children_system
    result["load_seconds"] = max(0.0, used - result.pop("setup"))
    return result


def measure(bed, peer, load, seconds, expected_bytes=None, renders=None, clean_steal=CLEAN_STEAL):
    """A window. `expected_bytes`: of each answer, with its head. `renders`: how many the origin must give at least;
    None: none at all."""
    bed.settle()
    renders_before, cores_before, origin_before = bed.renders(), cpu.cores(), bed.origin_seconds()
    server_before, began = peer.seconds(), time.monotonic()
    wrk = run_wrk(load, peer.port, seconds, bed.load_core)
    elapsed = time.monotonic() - began
    server = cpu.seconds_between(server_before, peer.seconds())
    cores_after = cpu.cores()
    origin = bed.origin_seconds() - origin_before
    rendered = bed.renders() - renders_before

    requests = max(1, wrk["requests"])
    steal = max((after[1] - before[1]) / elapsed for before, after in zip(cores_before, cores_after))
    busy = sum(after[0] - before[0] for before, after in zip(cores_before, cores_after))
    foreign = max(0.0, (busy - server - wrk["load_seconds"] - origin) / elapsed)
    window = {
        "requests": wrk["requests"],
        "rps": requests / wrk["seconds"],
        "p50_us": wrk["p50_us"],
        "p99_us": wrk["p99_us"],
        "cpu_us": server / requests * 1e6,
        "bytes": wrk["bytes"] / requests,
        "server_use": server / wrk["seconds"],
        "load_use": wrk["load_seconds"] / wrk["seconds"],
        "steal": steal,
        "foreign": foreign,
        "rendered": rendered,
    }
    window["void"] = void(wrk, load, rendered, expected_bytes, renders)
    used = foreign < CLEAN_FOREIGN if load.paced else max(window["server_use"], window["load_use"]) >= CLEAN_USE
    window["clean"] = not window["void"] and steal < clean_steal and used
    return window


def void(wrk, load, rendered, expected_bytes, renders):
    if not wrk["requests"]:
        return "no request was answered"
    if wrk["failed"]:
        return f"{wrk['failed']} requests failed"
    if renders is None and rendered:
        return f"{rendered} requests were no hits"
    if renders and rendered < renders:
        return f"only {rendered} of {renders} pages were rendered again"
    if expected_bytes:
        # What was under way at the end is counted in bytes and not in requests; Age has a digit more now and then.
        surplus = wrk["bytes"] - wrk["requests"] * expected_bytes
        if not -8 * wrk["requests"] <= surplus <= load.connections * expected_bytes + 8 * wrk["requests"]:
            return f"{wrk['bytes'] / wrk['requests']:.0f} bytes an answer, not {expected_bytes}"
    return None


def fill(bed, port, path, count, connections, limit):
    """Has every page asked for once; what bench_client says."""
    done = subprocess.run(
        [str(bed.tools / "bench_client"), str(port), str(connections), str(count), str(int(limit)), path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit + 60,
    )
    if done.returncode:
        raise Failed(f"bench_client failed: {done.stderr.strip()}")
    return json.loads(done.stdout)
