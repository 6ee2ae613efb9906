"""What is measured. Each function of WORKLOADS gets a Run and the seconds that its rounds may take, and returns rows of
figures."""
import itertools
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

from gateway import cpu, load, peers
from gateway.bed import Failed, fetch

ZIPF_SIZE, EXPIRING_SIZE, EXPIRING_AGE = "4k", "16k", 2
ZIPF_MEMORY = "2 GiB"  # As much as HAProxy has; Varnish has more.
PAUSE_MS = 10  # Between two requests of a paced connection, on average.
SPREAD_SIZES, SPREAD_ORDERS = (16, 4), ("uniform", "zipf")  # KiB; orders of bench_client
SPREAD_SMALL = 10  # spread-small: as many times the memory of ours are the pages, without their heads.
LEAST_MEMORY = 1  # MiB: ours takes no less.
FILL_SIZE, FILL_ROUNDS, FILL_SAMPLE = "4k", 3, 1000
GROWTH_BUDGET, GROWTH_MEMORY = 256, 8192  # MiB: smaller than a million pages, and larger
GROWTH_BYTES_EACH = 8192  # What a page of 1 KiB takes in a file system in memory, with room to spare.


def say(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    """A run of the benchmark: its bed, the servers that take part, the time that is left."""

    def __init__(self, bed, options, weights):
        self.bed = bed
        self.options = options
        self.seconds_left = options.minutes * 60
        self.weights_left = sum(weights)

    def server(self, name, **settings):
        return peers.ALL[name](self.bed, self.options, **settings)

    def names(self, *among):
        return [name for name in self.options.peers if not among or name in among]

    def share(self, weight):
        """The seconds that a workload of this weight gets, so that those after it have theirs."""
        part = self.seconds_left * weight / self.weights_left
        self.weights_left -= weight
        return part

    def rounds(self, subjects, allowed, seconds=None, clean=None, warm_up=True):
        """`subjects`: {key: function that measures a window of so many seconds}. Rounds in which each has one window,
        until all have enough clean ones or took the seconds that are allowed; {key: summary of its windows}."""
        clean = clean or self.options.clean
        began = time.monotonic()
        if warm_up and self.options.rounds > 1:
            for measure in subjects.values():
                measure(1)
        windows = {key: [] for key in subjects}
        for number in itertools.count(1):
            for key, measure in subjects.items():
                window = measure(seconds or self.options.seconds)
                windows[key].append(window)
                say(progress(number, key, window))
            enough = all(sum(w["clean"] for w in ws) >= clean for ws in windows.values())
            elapsed = time.monotonic() - began
            if enough or elapsed > allowed or number >= self.options.rounds:
                self.seconds_left = max(0.0, self.seconds_left - elapsed)
                return {key: summary(ws) for key, ws in windows.items()}


def progress(number, key, window):
    state = window["void"] or ("clean" if window["clean"] else "disturbed")
    return (
        f"  round {number:2}  {' '.join(key):55} {window['cpu_us']:7.1f} µs {window['rps']:8.0f}/s  "
        f"p99 {window['p99_us']:6} µs"
        f"  server {window['server_use']:4.0%} load {window['load_use']:4.0%} steal {window['steal']:3.0%}"
        f" others {window['foreign']:4.0%}  {state}"
    )


def summary(windows):
    """Medians of the clean windows; of all that are not void when there is no clean one."""
    good = [w for w in windows if w["clean"]] or [w for w in windows if not w["void"]]
    names = ("rps", "p50_us", "p99_us", "cpu_us", "bytes", "server_use", "load_use", "origin_use", "rendered")
    figures = {name: statistics.median(w[name] for w in good) for name in names} if good else {}
    asked, rendered = (sum(w[name] for w in windows) for name in ("requests", "rendered"))
    return figures | {
        "hit_share": 1 - rendered / max(1, asked),
        "clean": sum(w["clean"] for w in windows),
        "windows": len(windows),
        "void": sorted({w["void"] for w in windows if w["void"]}),
    }


def hit(run, server, path, headers=None, status=200):
    """An answer for which the origin was not asked."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        before = run.bed.renders()
        answer = fetch(server.port, path, headers)
        if run.bed.renders() == before:
            if answer.status != status:
                raise Failed(f"{server.title} answers {answer.status} for {path}, not {status}")
            return answer
        time.sleep(0.01)
    raise Failed(f"{server.title} stores no {path}")


class Same:
    """The same request again and again."""

    def __init__(self, name, path, headers=None, conditional=False):
        self.name = name
        self.path = path
        self.headers = headers or {}
        self.conditional = conditional

    def prepare(self, run, server):
        """Has the page stored; (headers of the requests to measure, the answer that they get)."""
        if isinstance(server, peers.Floor):
            return self.headers, fetch(server.port, self.path, self.headers)
        headers, answer = self.headers, hit(run, server, self.path, self.headers)
        if self.conditional:
            headers = headers | {"If-None-Match": answer.headers["etag"]}
            answer = hit(run, server, self.path, headers, 304)
        if "Accept-Encoding" in headers and answer.headers.get("content-encoding") != headers["Accept-Encoding"]:
            raise Failed(f"{server.title} does not compress {self.path}")
        return headers, answer


def same_requests(run, allowed, asked, clean=None):
    """Every server gets every one of these requests. The floor repeats what the first server answered."""
    servers, prepared = {}, {}
    for name in sorted(run.names(), key=lambda name: name == "floor"):
        server = servers[name] = run.server(name)
        server.conditional = all(same.conditional for same in asked)
        if name == "floor":
            if len(servers) == 1:
                raise Failed("gateway_bench: the floor repeats what another server sends; name one more in --peers")
            first = next(iter(servers))
            for same in asked:
                server.learn(same.path, prepared[same.name, first][1].raw)
            server.learn(peers.FIRST_PAGE, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        server.start()
        for same in asked:
            prepared[same.name, name] = same.prepare(run, server)
    subjects = {}
    for same in asked:
        for name in run.names():
            headers, answer = prepared[same.name, name]
            asking = load.Load(run.bed.folder, f"{same.name} {name}", same.path, headers)
            subjects[same.name, name] = lambda seconds, name=name, asking=asking, answer=answer: load.measure(
                run.bed, servers[name], asking, seconds, len(answer.raw)
            )
    found = run.rounds(subjects, allowed, clean=clean)
    for server in servers.values():
        server.stop()
    return [
        {"workload": workload, "peer": name, "answer_bytes": len(prepared[workload, name][1].raw)} | figures
        for (workload, name), figures in found.items()
    ]


def hits(run, allowed):
    """One page of 1, of 16 and of 128 KiB."""
    # What nginx takes for 128 KiB is twice as much in one window as in the next, as BBR paces it or not: five are a
    # lottery.
    clean = 2 * run.options.clean - 1
    return same_requests(
        run, allowed, [Same(f"hit, {size} KiB", f"/{size}k/page") for size in run.options.sizes], clean
    )


def conditional(run, allowed):
    """A page of 16 KiB that the client has (If-None-Match, 304)."""
    return same_requests(run, allowed, [Same("304", "/16k/conditional", conditional=True)])


def compressed(run, allowed):
    """A page of 16 KiB for a client that accepts gzip; the origin offers it compressed to whoever asks."""
    return same_requests(run, allowed, [Same("gzip, 16 KiB", "/16k-gzip/page", {"Accept-Encoding": "gzip"})])


def filled(run, server, prefix, count, connections=32, fewer_will_do=False):
    """Has the pages stored and asked for once more; (how many there are, seconds). Fewer than wanted when the time that
    filling may take was over."""
    limit = run.options.fill_minutes * 60
    done = load.ask(run.bed, server.port, prefix + "#", count, connections, limit)
    if done["answered"] < count:
        say(
            f"  {server.title}: of {count:,} pages {done['answered']:,} were answered in {done['seconds']:.0f} s, "
            f"{done['failed']} failed"
        )
        count = done["answered"] - connections  # The last ones may not have come in their order.
        if done["failed"] or not fewer_will_do or count <= 0:
            raise Failed(f"{server.title} cannot be filled; see --fill-minutes")
    asked_once_more(run, server, prefix, count, connections)
    return count, done["seconds"]


def asked_once_more(run, server, prefix, count, connections):
    """Asks for all pages until none is rendered; what is gone after three times was never kept."""
    for _ in range(3):
        before = run.bed.renders()
        done = load.ask(run.bed, server.port, prefix + "#", count, connections, run.options.fill_minutes * 60)
        missing = run.bed.renders() - before
        if done["answered"] == count and not missing:
            return
        say(f"  {server.title}: of {count:,} stored pages {missing} were rendered again and {done['failed']} failed")
    raise Failed(f"{server.title} does not keep {count:,} pages")


def zipf(run, allowed):
    """Many pages of 4 KiB, the popular ones more often (Zipf, s = 1)."""
    count, draws = run.options.zipf_pages, 4 * run.options.zipf_pages
    prefix = f"/{ZIPF_SIZE}/zipf"
    numbers = run.bed.folder / "zipf"
    weights = list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))
    chosen = random.Random(1).choices(range(count), cum_weights=weights, k=draws)
    numbers.write_text("\n".join(str(rank * 7919 % count) for rank in chosen) + "\n")  # Popular ones anywhere.
    asking = load.Load(run.bed.folder, "zipf", (prefix, numbers))
    workload = f"Zipf, {count:,} pages of 4 KiB"
    servers, seconds, subjects = {}, {}, {}
    for name in run.names("ours", "nginx", "haproxy", "varnish"):
        server = servers[name] = run.server(name, **({"memory": ZIPF_MEMORY} if name == "ours" else {}))
        server.start()
        _, seconds[name] = filled(run, server, prefix, count)
        say(f"  {name} filled in {seconds[name]:.1f} s")
        size = len(hit(run, server, prefix + "1").raw)
        subjects[workload, name] = lambda seconds, server=server, size=size: load.measure(
            run.bed, server, asking, seconds, size
        )
    found = run.rounds(subjects, allowed)
    for server in servers.values():
        server.stop()
    return [
        {"workload": key[0], "peer": key[1], "fill_seconds": seconds[key[1]]} | figures
        for key, figures in found.items()
    ]


def spread(run, allowed):
    """10,000 pages of 16 KiB and 100,000 of 4 KiB, all equally often and by Zipf's law, ours with default memory."""
    return spread_over_sizes(run, allowed, "spread", ("ours", "nginx", "haproxy", "varnish"))


def spread_small(run, allowed):
    """The same pages, ten times as many bytes as the memory that ours is allowed."""
    return spread_over_sizes(run, allowed, "spread-small", ("ours", "nginx"), small=True)


def spread_over_sizes(run, allowed, workload, names, small=False):
    rows = []
    for size, count in zip(SPREAD_SIZES, run.options.spread_pages):
        memory = max(LEAST_MEMORY << 10, size * count // SPREAD_SMALL)
        settings = {"ours": {"memory": f"{memory} KiB"}} if small else {}
        title = f"{workload}, {count:,} pages of {size} KiB"
        rows += spread_over(run, allowed / len(SPREAD_SIZES), title, f"/{size}k/spread", count, names, settings)
    return rows


def spread_over(run, allowed, title, prefix, count, names, settings):
    """So many pages, in each order, from each of these servers with its settings."""
    servers, subjects, rows = {}, {}, {}
    for name in run.names(*names):
        server = servers[name] = run.server(name, **settings.get(name, {}))
        server.start()
        _, seconds = filled(run, server, prefix, count)
        say(f"  {title}: {name} filled in {seconds:.1f} s")
        size = len(hit(run, server, prefix + "1").raw)
        for order in SPREAD_ORDERS:
            key = f"{title}, {order}", name
            subjects[key] = hits_only(run, server, load.Spread(run.bed, prefix, count, order), size)
            rows[key] = {"workload": key[0], "peer": name, "pages": count, "order": order, "fill_seconds": seconds}
            rows[key] |= settings.get(name, {})
    found = run.rounds(subjects, allowed)
    for key, row in rows.items():
        row |= found[key] | cpu.resident(servers[key[1]].process.pid)
    for server in servers.values():
        done_with(run, server)
    return list(rows.values())


def hits_only(run, server, asking, size):
    """Measures windows. A page that the server does not have any more ends the workload: what would be measured is not
    what was promised."""

    def measure(seconds):
        window = load.measure(run.bed, server, asking, seconds, size)
        if window["rendered"]:
            raise Failed(
                f"{server.title}: {window['rendered']:,} of {window['requests']:,} requests were no hits, though all "
                f"{asking.pages:,} pages had been stored"
            )
        return window

    return measure


def fill(run, allowed):
    """100,000 pages of 4 KiB that nobody has asked for, once each, into empty caches."""
    count, limit = run.options.fill_pages, run.options.fill_minutes * 60
    workload = f"fill, {count:,} pages of 4 KiB"
    subjects = {
        (workload, name): lambda seconds, name=name: fill_once(run, run.server(name), count, seconds)
        for name in run.names("ours", "nginx", "haproxy", "varnish")
    }
    found = run.rounds(subjects, allowed, limit, min(FILL_ROUNDS, run.options.clean), warm_up=False)
    return [{"workload": key[0], "peer": key[1], "pages": count} | figures for key, figures in found.items()]


def fill_once(run, server, count, limit):
    """A window of a server that is started for it. Every page must be rendered once and then be kept."""
    prefix = f"/{FILL_SIZE}/fill"
    server.start()
    asking = load.Spread(run.bed, prefix, count, "shuffled")
    window = load.measure(run.bed, server, asking, limit, renders=count)
    if window["void"]:
        raise Failed(f"{server.title} cannot be filled: {window['void']}")
    if window["requests"] != count or window["rendered"] != count:
        raise Failed(
            f"{server.title}: of {count:,} pages {window['requests']:,} were answered within {limit:.0f} s, and "
            f"{window['rendered']:,} were rendered"
        )
    run.bed.settle()
    before = run.bed.renders()
    for number in random.Random(1).sample(range(count), min(FILL_SAMPLE, count)):
        if fetch(server.port, f"{prefix}{number}").status != 200:
            raise Failed(f"{server.title} gives no page {number} when it is asked for again")
    if missing := run.bed.renders() - before:
        raise Failed(
            f"{server.title} does not keep what it is filled with: a sample asked again misses {missing} pages"
        )
    done_with(run, server)
    return window


def done_with(run, server):
    """Its cache goes too: some are gigabytes of small files."""
    server.stop()
    if not run.bed.keep:
        shutil.rmtree(server.folder, ignore_errors=True)


def expiry(run, allowed):
    """1,000 pages of 16 KiB that are fresh for 2 s, beside as many that do not expire: p99 of both."""
    count = run.options.expiring_pages
    folder = run.bed.folder
    kinds = {"steady": f"/{EXPIRING_SIZE}/steady", "expiring": f"/{EXPIRING_SIZE}-age{EXPIRING_AGE}/expiring"}
    paces = {"paced": {"pause_ms": PAUSE_MS}, "full load": {"connections": 16}}
    servers, subjects = {}, {}
    for name in run.names("ours", "nginx", "varnish"):
        server = servers[name] = run.server(name)
        server.start()
        filled(run, server, kinds["steady"], count)
        load.ask(run.bed, server.port, kinds["expiring"] + "#", count, 16, 120)
        for pace, settings in paces.items():
            for kind, prefix in kinds.items():
                asking = load.Load(folder, f"{kind} {pace}", (prefix, count), **settings)
                renders = int(count * 0.9) if kind == "expiring" else None
                subjects[
                    kind, pace, name
                ] = lambda seconds, server=server, asking=asking, renders=renders: load.measure(
                    run.bed,
                    server,
                    asking,
                    seconds,
                    renders=renders if seconds >= 2 * EXPIRING_AGE else 0,
                    clean_steal=load.CLEAN_STEAL_FOR_P99,
                )
    seconds = 2 * EXPIRING_AGE
    found = run.rounds(subjects, allowed, seconds)
    for server in servers.values():
        server.stop()
    return [
        {"kind": kind, "pace": pace, "peer": name, "seconds": seconds} | figures
        for (kind, pace, name), figures in found.items()
    ]


def stampede(run, _):
    """1,000 clients ask at once for a page that nobody has and that takes 300 ms."""
    clients, delay = run.options.clients, 300
    rows = []
    names = run.names("ours", "nginx", "haproxy", "varnish")
    servers = {name: run.server(name) for name in names}
    results = {name: [] for name in names}
    for server in servers.values():
        server.start()
    for number in range(run.options.stampedes):
        for name, server in servers.items():
            before = run.bed.renders()
            done = load.ask(run.bed, server.port, f"/16k-delay{delay}/cold{number}", clients, clients, 60)
            done["renders"] = run.bed.renders() - before
            results[name].append(done)
            say(
                f"  {name:28} {done['renders']:5} renders, all answered after {done['max_ms']:.0f} ms, "
                f"{done['failed']} failed"
            )
    for name, server in servers.items():
        server.stop()
        middle = {
            figure: statistics.median(done[figure] for done in results[name])
            for figure in ("renders", "p50_ms", "max_ms")
        }
        failed = sum(done["failed"] for done in results[name])
        rows.append({"peer": name, "clients": clients, "delay_ms": delay, "failed": failed} | middle)
    return rows


def growth(run, allowed):
    """More and more pages of 1 KiB in ours: cost of a hit, memory, start-up. Kept in a file system in memory. The sizes
    take turns."""
    with tempfile.TemporaryDirectory(
        prefix="gateway_bench.", dir=memory_folder(sum(run.options.growth_pages))
    ) as folder:
        kept = [
            GrowthBed(run, count, pathlib.Path(folder) / str(count)) for count in sorted(set(run.options.growth_pages))
        ]
        try:
            for bed in kept:
                bed.fill()
            in_turns(run, kept, "in_memory", "in memory", allowed / 2)
            for bed in kept:
                bed.start_with_budget()
            in_turns(run, kept, "in_budget", f"{GROWTH_BUDGET} MiB", allowed / 2)
            for bed in kept:
                bed.look_at_memory()
        finally:
            run.bed.stop_servers()  # Before the folder goes that they write to.
        return [bed.row for bed in kept]


def memory_folder(count):
    folder = "/dev/shm"
    need = count * GROWTH_BYTES_EACH
    if not os.path.isdir(folder) or shutil.disk_usage(folder).free < need:
        raise Failed(
            f"gateway_bench: {count:,} pages need {need >> 20} MiB in {folder}; leave some out: --growth-pages"
        )
    return folder


def in_turns(run, beds, what, where, allowed):
    keys = {bed: (f"{bed.row['pages']:,} pages, {where}", "ours") for bed in beds}
    summaries = run.rounds({key: bed.measure for bed, key in keys.items()}, allowed)
    for bed, key in keys.items():
        bed.row[what] = summaries[key]


class GrowthBed:
    """One number of pages: the server that has them, and what was measured of it."""

    prefix = "/1k/growth"

    def __init__(self, run, count, data):
        self.run, self.wanted, self.data = run, count, data
        self.row = {}

    def fill(self):
        self.data.mkdir()
        self.server = self.run.server("ours", memory=f"{GROWTH_MEMORY} MiB", data=self.data)
        self.server.start()
        empty = cpu.resident(self.server.process.pid)
        count, seconds = filled(self.run, self.server, self.prefix, self.wanted, connections=64, fewer_will_do=True)
        full = cpu.resident(self.server.process.pid)
        self.row = {
            "pages": count,
            "fill_seconds": seconds,
            "own_bytes_per_page": (full["own_mib"] - empty["own_mib"]) * 2**20 / count,
            "empty_mib": empty["own_mib"],
            "full_mib": full["own_mib"],
            "files_mib": full["files_mib"],
        }
        say(
            f"  {count:,} pages filled in {seconds:.0f} s: {full['own_mib']:.0f} MiB, "
            f"of files {full['files_mib']:.0f} MiB"
        )
        self.asking = load.Load(self.run.bed.folder, f"growth-{count}", (self.prefix, count))
        self.size = len(hit(self.run, self.server, self.prefix + "0").raw)

    def start_with_budget(self):
        """The same pages with a budget that does not hold a million of them, from a cold start."""
        self.server.stop()
        self.server = self.run.server("ours", memory=f"{GROWTH_BUDGET} MiB", data=self.data)
        before = self.run.bed.renders()
        self.row["start_seconds"] = self.server.start()
        if self.run.bed.renders() != before:
            raise Failed("ours: the first page after a start was rendered, not found")
        asked_once_more(self.run, self.server, self.prefix, self.row["pages"], connections=64)

    def measure(self, seconds):
        return load.measure(self.run.bed, self.server, self.asking, seconds, self.size)

    def look_at_memory(self):
        held = cpu.resident(self.server.process.pid)
        self.row |= {
            "budget_mib": GROWTH_BUDGET,
            "budget_own_mib": held["own_mib"],
            "budget_files_mib": held["files_mib"],
        }
        say(
            f"  {self.row['pages']:,} pages: started in {self.row['start_seconds']:.3f} s; "
            f"with a budget of {GROWTH_BUDGET} MiB it holds {held['own_mib']:.0f} MiB"
        )


# Each workload has a name and gets its part of the time.
WORKLOADS = {
    "hits": (hits, 6),
    "conditional": (conditional, 2),
    "compressed": (compressed, 2),
    "zipf": (zipf, 4),
    "spread": (spread, 7),
    "spread-small": (spread_small, 4),
    "fill": (fill, 5),
    "expiry": (expiry, 5),
    "stampede": (stampede, 1),
    "growth": (growth, 5),
}
