"""Figures as tables, as bars to meet, as a picture and as a part of docs/performance.md."""
import pathlib
import re
import textwrap

from gateway import peers

ORDER = list(peers.ALL)
BEGIN, END = "<!-- gateway_bench: begin -->", "<!-- gateway_bench: end -->"
PICTURE = "images/hits.svg"
SPREADS = ("spread", "spread-small")
COLUMNS = 118  # the width of prose
COLOURS = {"ours": "#1b7f5c", "nginx": "#8a8f98", "haproxy": "#5b7db1", "varnish": "#c08a3e", "floor": "#c9ccd1"}


def title(name):
    return peers.ALL[name].title


def number(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def find(rows, **wanted):
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)


def figure(row, name):
    return row.get(name) if row else None


def ratio(above, below):
    return above / below if above is not None and below else None


def requests(results):
    """The rows of all workloads that are steady hits."""
    return [row for name in ("hits", "conditional", "compressed", "zipf") for row in results["workloads"].get(name, [])]


def windows(row):
    return f"{row['clean']} of {row['windows']}" + (f", void: {'; '.join(row['void'])}" if row["void"] else "")


def beside_ours(row, rows):
    """Whose row it is, and its times, beside our row of the same workload."""
    ours = figure(find(rows, workload=row["workload"], peer="ours"), "cpu_us")
    return [
        title(row["peer"]),
        number(row.get("cpu_us"), 1),
        "" if row["peer"] == "ours" else number(ratio(ours, row.get("cpu_us")), 2),
        number(row.get("rps")),
        number(row.get("p50_us")),
        number(row.get("p99_us")),
    ]


def hits_table(results):
    rows = requests(results)
    return table(
        [
            "workload",
            "server",
            "CPU µs a request",
            "ours / it",
            "requests/s",
            "p50 µs",
            "p99 µs",
            "bytes",
            "clean windows",
        ],
        [[row["workload"], *beside_ours(row, rows), number(row.get("bytes")), windows(row)] for row in rows],
    )


def spread_table(results):
    rows = [row for name in SPREADS for row in results["workloads"].get(name, [])]
    return table(
        [
            "workload",
            "server",
            "CPU µs a hit",
            "ours / it",
            "requests/s",
            "p50 µs",
            "p99 µs",
            "hits",
            "MiB of its own",
            "and of files, or shared",
            "clean windows",
        ],
        [
            [
                row["workload"],
                *beside_ours(row, rows),
                f"{row['hit_share']:.2%}",
                number(row["own_mib"]),
                number(row["files_mib"]),
                windows(row),
            ]
            for row in rows
        ],
    )


def fill_table(results):
    rows = results["workloads"].get("fill", [])
    return table(
        [
            "server",
            "CPU µs a page",
            "ours / it",
            "pages/s",
            "p50 µs",
            "p99 µs",
            "of its core",
            "load and origin, of theirs",
            "clean windows",
        ],
        [
            [
                *beside_ours(row, rows),
                f"{row['server_use']:.0%}",
                f"{row['load_use'] + row['origin_use']:.0%}",
                windows(row),
            ]
            for row in rows
        ],
    )


def expiry_table(results):
    rows = results["workloads"].get("expiry", [])
    lines = []
    for pace in ("paced", "full load"):
        for name in ORDER:
            pair = [find(rows, kind=kind, pace=pace, peer=name) for kind in ("steady", "expiring")]
            if all(pair):
                cells = [
                    number(row.get(key), digits)
                    for key, digits in (("p99_us", 0), ("rps", 0), ("cpu_us", 1))
                    for row in pair
                ]
                cells.insert(2, number(ratio(pair[1].get("p99_us"), pair[0].get("p99_us")), 2))
                cells += [number(pair[1].get("rendered")), number(cost_of_a_render(*pair))]
                lines.append([pace, title(name), *cells, f"{windows(pair[0])}, {windows(pair[1])}"])
    return table(
        [
            "load",
            "server",
            "p99 µs, steady",
            "expiring",
            "ratio",
            "requests/s, steady",
            "expiring",
            "CPU µs a request, steady",
            "expiring",
            "renders in a window",
            "CPU µs a render",
            "clean windows",
        ],
        lines,
    )


def cost_of_a_render(steady, expiring):
    """What the server needed beyond the cost of its hits."""
    if "cpu_us" not in steady or not expiring.get("rendered"):
        return None
    return (expiring["cpu_us"] - steady["cpu_us"]) * expiring["rps"] * expiring["seconds"] / expiring["rendered"]


def stampede_table(results):
    return table(
        ["server", "renders", "half have it, ms", "all have it, ms", "failed"],
        [
            [
                title(row["peer"]),
                number(row["renders"]),
                number(row["p50_ms"]),
                number(row["max_ms"]),
                number(row["failed"]),
            ]
            for row in results["workloads"].get("stampede", [])
        ],
    )


def growth_table(results):
    rows = results["workloads"].get("growth", [])
    budget = next((row["budget_mib"] for row in rows), 0)
    columns = [
        ("pages of 1 KiB", "pages", 0),
        ("start-up s", "start_seconds", 3),
        ("bytes of memory a page", "own_bytes_per_page", 0),
        ("MiB, all in memory", "full_mib", 0),
        (f"MiB, {budget} MiB allowed", "budget_own_mib", 0),
        ("and of mapped files", "budget_files_mib", 0),
        ("fill s", "fill_seconds", 0),
    ]
    lines = []
    for row in rows:
        cells = [number(row[key], digits) for _, key, digits in columns]
        costs = [number(row[kind].get("cpu_us"), 1) for kind in ("in_memory", "in_budget")]
        lines.append([cells[0], *costs, *cells[1:], f"{windows(row['in_memory'])}, {windows(row['in_budget'])}"])
    costs = ["CPU µs a hit, all in memory", f"the same, {budget} MiB allowed"]
    heads = [head for head, _, _ in columns]
    return table([heads[0], *costs, *heads[1:], "clean windows"], lines)


class Bar:
    """A promise of the project, and what was measured; None: not in this run."""

    def __init__(self, text, limit, value, rows, unit=""):
        self.text, self.limit, self.value, self.unit = text, limit, value, unit
        self.doubtful = any(not row or not row.get("clean") for row in rows)

    def line(self):
        if self.value is None:
            return f"not measured  {self.text}"
        verdict = "met" if self.value <= self.limit else "MISSED"
        doubt = ", on a disturbed machine" if self.doubtful else ""
        return f"{verdict:13} {self.text}: {self.value:.2f}{self.unit} (at most {self.limit:g}{self.unit}{doubt})"


def worst(rows, key):
    """(the highest ratio of ours to nginx, the two rows that it comes from) of all workloads in these rows."""
    pairs = [
        (row, find(rows, workload=row["workload"], peer="nginx"))
        for row in rows
        if row["peer"] == "ours" and key in row
    ]
    ratios = [(ratio(figure(ours, key), figure(nginx, key)), [ours, nginx]) for ours, nginx in pairs]
    return max((found for found in ratios if found[0] is not None), key=lambda found: found[0], default=(None, []))


def bars(results):
    rows = requests(results)

    def cost(workload, peer, limit):
        pair = [find(rows, workload=workload, peer="ours"), find(rows, workload=workload, peer=peer)]
        return Bar(
            f"{workload}: CPU of ours / {title(peer)}", limit, ratio(*(figure(row, "cpu_us") for row in pair)), pair
        )

    found = [
        cost("hit, 1 KiB", "nginx", 0.55),
        cost("hit, 1 KiB", "haproxy", 0.80),
        cost("hit, 1 KiB", "floor", 1.30),
        cost("hit, 16 KiB", "nginx", 0.70),
        cost("hit, 128 KiB", "nginx", 0.70),
    ]
    for name in SPREADS:
        for key, text in (("cpu_us", "CPU of a hit"), ("p99_us", "p99")):
            value, pair = worst(results["workloads"].get(name, []), key)
            found.append(Bar(f"{name}: {text}, ours / nginx, the worst case", 1, value, pair))
    value, pair = worst(results["workloads"].get("fill", []), "cpu_us")
    found.append(Bar("fill: CPU of a page, ours / nginx", 1, value, pair))
    expiring = results["workloads"].get("expiry", [])
    for pace in ("paced", "full load"):
        pair = [find(expiring, kind=kind, pace=pace, peer="ours") for kind in ("expiring", "steady")]
        p99 = ratio(*(figure(row, "p99_us") for row in pair))
        found.append(Bar(f"p99 of hits while all pages expire / while none does, {pace}", 2, p99, pair))
    grown = results["workloads"].get("growth", [])
    small, large = find(grown, pages=1000), find(grown, pages=1_000_000)
    pair = [row and row["in_memory"] for row in (large, small)]
    found.append(
        Bar("CPU of a hit at 1,000,000 pages / at 1,000", 1.5, ratio(*(figure(row, "cpu_us") for row in pair)), pair)
    )
    found.append(Bar("start-up with 1,000,000 pages", 2, figure(large, "start_seconds"), [], " s"))
    held = ratio(large["budget_own_mib"] - large["empty_mib"], large["budget_mib"]) if large else None
    found.append(
        Bar("memory beyond an empty gateway's, 1,000,000 pages and a budget for fewer / that budget", 1.25, held, [])
    )
    return found


HITS = """\
`ours / it` compares the processor time: below 1, ours needs less. Requests per second say little where the load
generator's core is the limit. Each answer was found in the cache.

For gzip, the origin offers a compressed page to those who accept one, and all servers send stored bytes: nginx,
HAProxy and Varnish those of the origin, ours what it compressed itself when the page was stored. In the 304s of
HAProxy a rule removes `Content-Length`, which wrk would take for the length of a body."""
SPREAD = """\
Pages in no order, all equally often or by Zipf's law (the page of rank r with a weight of 1/r). All were asked for
before, so that the files lie in the kernel's page cache. The load is `bench/bench_client.cc`, which sees from each body
that it is the page that was asked for. A single request that is no hit ends the workload.

`spread`: ours has the memory that it takes by default. `spread-small`: ours may take a tenth of the pages' bytes."""
FILL = """\
{pages:,} pages of 4 KiB that nobody has asked for are asked for once each, in no order, over 64 connections, of a
server whose cache is empty. Each is rendered once; a sample is asked for again, and has been kept. CPU is the server's
for a page. Our gateway waits until a page is on the disk; the others do not wait, or keep pages in memory."""
EXPIRY = """\
1,000 pages of 16 KiB that are fresh for two seconds, at random, beside as many that do not expire. Stale ones may be
served while they are rendered. They expire together, as pages do that were filled together.

- Paced: 64 connections that pause 10 ms on average. So server, load and origin, which shares the load's core, are far
  from busy, and p99 shows what a hit waits for. A window is clean when little else ran on the machine.
- Full load: 16 connections without a pause.

HAProxy serves nothing stale and is not here."""
STAMPEDE = """\
{clients:,} clients ask at once for a page of 16 KiB that nobody has and that takes {delay_ms} ms to render."""
GROWTH = """\
Pages at random, all equally often, of our gateway. Table and bodies lie in a file system in memory, so that a fill
takes minutes. The numbers of pages take turns. Start-up is the time until the first page is answered. Mapped files
are those of table and bodies, which the kernel takes back when it needs the memory."""


def sections(results):
    """(heading, what must be said before, the table) of every workload that was run."""
    present = results["workloads"]
    if requests(results):
        yield "Hits", HITS, hits_table(results)
    if any(name in present for name in SPREADS):
        yield "Hits on many pages", SPREAD, spread_table(results)
    if "fill" in present:
        yield "Filling an empty cache", FILL.format(**present["fill"][0]), fill_table(results)
    if "expiry" in present:
        yield "Hits while every page expires", EXPIRY, expiry_table(results)
    if "stampede" in present:
        yield "A cold stampede", STAMPEDE.format(**present["stampede"][0]), stampede_table(results)
    if "growth" in present:
        yield "Growth", GROWTH, growth_table(results)


def describe(results):
    machine = results["machine"]
    return (
        f"{machine['date']}; {machine['cores']} cores of an {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['file_system']}, Linux {machine['kernel']}; {', '.join(results['versions'].values())}."
    )


def text(results):
    parts = [describe(results)]
    for heading, _, body in sections(results):
        parts.append(f"{heading}\n\n{body}")
    parts.append("\n".join(bar.line() for bar in bars(results)))
    return "\n\n".join(parts)


def wrapped(paragraph):
    return textwrap.fill(paragraph, COLUMNS, break_long_words=False, break_on_hyphens=False)


def document(results):
    """What stands between the markers in docs/performance.md."""
    parts = [wrapped(describe(results) + f" Medians of clean windows of {results['seconds']} s, the servers in turn.")]
    if results.get("remark"):
        parts += [wrapped(paragraph) for paragraph in results["remark"].split("\n\n")]
    if results["workloads"].get("hits"):
        parts.append(f"![Processor time of a hit by server and size of the page]({PICTURE})")
    setups = [[results["versions"][name], peers.ALL[name].setup] for name in ORDER if name in results["versions"]]
    parts.append(table(["server", "configuration"], setups))
    for heading, remark, body in sections(results):
        parts.append(f"### {heading}\n\n{remark}\n\n{body}")
    parts.append("### Goals\n\n" + table(["", "goal", "measured"], [goal(bar) for bar in bars(results)]))
    return "\n\n".join(parts)


def goal(bar):
    if bar.value is None:
        return ["not measured", bar.text, ""]
    verdict = "met" if bar.value <= bar.limit else "**missed**"
    doubt = " (disturbed)" if bar.doubtful else ""
    return [verdict + doubt, f"{bar.text}: at most {bar.limit:g}{bar.unit}", f"{bar.value:.2f}{bar.unit}"]


def write_docs(results, docs):
    path = pathlib.Path(docs) / "performance.md"
    old = path.read_text()
    marked = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not marked.search(old):
        raise ValueError(f"{path} lacks the lines {BEGIN} and {END}")
    path.write_text(marked.sub(lambda _: f"{BEGIN}\n{document(results)}\n{END}", old))
    if results["workloads"].get("hits"):
        picture = pathlib.Path(docs) / PICTURE
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(draw(results["workloads"]["hits"]))


def draw(rows):
    """Horizontal bars, a group for each size of a page; each group has its own scale, since sizes differ more than
    servers do."""
    sizes = list(dict.fromkeys(row["workload"] for row in rows))
    left, width, height, gap, y = 110, 430, 20, 6, 48
    parts = []
    for size in sizes:
        group = [row for row in rows if row["workload"] == size and row.get("cpu_us")]
        largest = max((row["cpu_us"] for row in group), default=1)
        parts.append(f'<text x="16" y="{y}" font-weight="600">{size.removeprefix("hit, ")}</text>')
        y += 10
        for name in ORDER:
            if row := find(group, peer=name):
                length = max(1, row["cpu_us"] / largest * width)
                middle = y + height / 2 + 5
                parts.append(
                    f'<text x="{left - 8}" y="{middle:.0f}" text-anchor="end">{title(name)}</text>'
                    f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{height}" rx="2" fill="{COLOURS[name]}"/>'
                    f'<text x="{left + length + 6:.0f}" y="{middle:.0f}">{row["cpu_us"]:.1f}</text>'
                )
                y += height + gap
        y += 26
    whole = left + width + 70
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{y - 10}" viewBox="0 0 {whole} {y - 10}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#22262b" role="img" '
        'aria-label="Processor time of a hit">\n'
        f'<rect width="{whole}" height="{y - 10}" fill="#ffffff"/>\n'
        '<text x="16" y="22" font-size="14">CPU microseconds a hit, one core; less is better</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
