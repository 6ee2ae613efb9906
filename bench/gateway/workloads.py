"""What is measured. Each function is a workload that gets a Run and returns its figures."""
import bisect
import itertools
import random
import statistics
import sys
import time

from gateway import load, peers
from gateway.bed import Failed, fetch

PAGES = {"1 KiB": "/1k/page", "16 KiB": "/16k/page", "128 KiB": "/128k/page"}
CONDITIONAL, COMPRESSED = "/16k/conditional", "/16k-gzip/compressed"


def say(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    """A run of the benchmark: its bed, the servers that take part, the time that is left."""

    def __init__(self, bed, options):
        self.bed = bed
        self.options = options
        self.ends = time.monotonic() + options.minutes * 60
        self.weights_left = 0.0

    def server(self, name, **settings):
        return peers.ALL[name](self.bed, self.options, **settings)

    def names(self, *among):
        return [name for name in self.options.peers if not among or name in among]

    def share(self, weight):
        """When a workload of this weight must end, so that those after it have their time."""
        left = max(0.0, self.ends - time.monotonic())
        part = left * weight / max(weight, self.weights_left)
        self.weights_left -= weight
        return time.monotonic() + part

    def rounds(self, subjects, deadline):
        """`subjects`: {key: function that measures a window of so many seconds}. Rounds in which each has one window, until all have enough
        clean ones or the time is over."""
        for key, measure in subjects.items():
            measure(1)  # Warms up.
        windows = {key: [] for key in subjects}
        for number in itertools.count(1):
            for key, measure in subjects.items():
                window = measure(self.options.seconds)
                windows[key].append(window)
                state = window["void"] or ("clean" if window["clean"] else "disturbed")
                say(f"  round {number:2}  {' '.join(key):30} {window['cpu_us']:8.1f} µs  {window['rps']:8.0f}/s  p99 {window['p99_us']:7} µs"
                    f"  server {window['server_use']:4.0%} load {window['load_use']:4.0%} steal {window['steal']:3.0%} foreign {window['foreign']:3.0%}  {state}")
            enough = all(sum(w["clean"] for w in ws) >= self.options.clean for ws in windows.values())
            if enough or time.monotonic() > deadline or number >= self.options.rounds:
                return {key: summary(ws) for key, ws in windows.items()}


def summary(windows):
    """Medians of the clean windows; of all that are not void when there is no clean one."""
    good = [w for w in windows if w["clean"]] or [w for w in windows if not w["void"]]
    voids = sorted({w["void"] for w in windows if w["void"]})
    figures = {name: statistics.median(w[name] for w in good) for name in
               ("rps", "p50_us", "p99_us", "cpu_us", "bytes", "server_use", "load_use", "rendered")} if good else {}
    return figures | {"clean": sum(w["clean"] for w in windows), "windows": len(windows), "void": voids}


def started(run, names, paths, headers=None):
    """Starts servers and has them store the pages; {name: (server, {path: an answer that was a hit})}. The floor sends what the first one sent."""
    servers = {}
    for name in sorted(names, key=lambda name: name == "floor"):
        server = run.server(name)
        if name == "floor":
            if not servers:
                raise Failed("gateway_bench: the floor repeats what another server sends; name one more in --peers")
            for path, answer in next(iter(servers.values()))[1].items():
                server.learn(path, answer.raw)
            server.learn(peers.FIRST_PAGE, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        server.start()
        answers = {}
        for path in paths:
            first = fetch(server.port, path, headers)
            if headers is None or "If-None-Match" not in headers:
                answers[path] = first if name == "floor" else hit(run, server, path, headers)
            else:
                etag = first.headers.get("etag")
                answers[path] = first if name == "floor" else hit(run, server, path, {"If-None-Match": etag}, 304)
        servers[name] = (server, answers)
    return servers


def hit(run, server, path, headers, status=200):
    """An answer for which the origin was not asked."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        before = run.bed.renders()
        answer = fetch(server.port, path, headers)
        if run.bed.renders() == before:
            if answer.status != status:
                raise Failed(f"{server.title} answers {answer.status} for {path}, not {status}")
            return answer
        time.sleep(0.01)
    raise Failed(f"{server.title} stores no {path}")


def figure(workload, name, answer, figures):
    return {"workload": workload, "peer": name, "answer_bytes": len(answer.raw)} | figures


def hits(run, deadline):
    """The same page again and again: 1, 16 and 128 KiB."""
    servers = started(run, run.names(), PAGES.values())
    subjects, answers = {}, {}
    for size, path in PAGES.items():
        asked = load.Load(run.bed.folder, f"hits {size}", path)
        for name in run.names():
            server, seen = servers[name]
            answers[size, name] = seen[path]
            subjects[size, name] = lambda seconds, server=server, asked=asked, answer=seen[path]: load.measure(
                run.bed, server, asked, seconds, len(answer.raw))
    found = run.rounds(subjects, deadline)
    stop(servers)
    return [figure(f"hit, {size}", name, answers[size, name], figures) for (size, name), figures in found.items()]


def stop(servers):
    for server, _ in servers.values():
        server.stop()


WORKLOADS = {"hits": (hits, 4)}
