#!/usr/bin/python3
"""The gateway cleans up by itself: what was replaced goes, what is being read stays, and the disk's budget holds.

    cleanup_test.py --facetheory build/release/facetheory [WORD...]

On a shared LMDB folder, and on DynamoDB Local with s3rver for bodies. tools/trial disk-budget asks for many more pages,
for longer.
"""
import collections
import itertools
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "trials"))

import harness  # noqa: E402
import trials  # noqa: E402
from harness import check, same, until  # noqa: E402

QUICKLY = '[cleanup]\nreleased_after = "1s"\n'
STORES = {"LMDB": "lmdb", "DynamoDB": "aws"}


def seen_by_gc(scenario):
    """What a dry run counts: it changes nothing."""
    return json.loads(scenario.cli("gc", "--dry-run", "--grace", "0s", "--json"))


def bodies(scenario):
    return seen_by_gc(scenario)["bodies_seen"]


def pages(scenario):
    return sum(len(tenant["pages"]) for tenant in json.loads(scenario.cli("list", "--json"))["tenants"])


def total(gateways, name, **labels):
    return sum(gateway.counts(name, **labels) for gateway in gateways)


def used(scenario, gateway):
    """Bytes on the disk, of all files of the stores, and of those without a name that the gateway has there."""
    data = scenario.folder / "data"
    named = sum(file.stat().st_blocks * 512 for file in data.rglob("*") if file.is_file())
    unnamed = 0
    for descriptor in pathlib.Path(f"/proc/{gateway.process.pid}/fd").iterdir():
        try:
            place = os.readlink(descriptor)
            if place.startswith(str(data.resolve())) and place.endswith(" (deleted)"):
                unnamed += descriptor.stat().st_blocks * 512
        except FileNotFoundError:
            continue  # A connection that has ended meanwhile.
    return named + unnamed


class Crawl:
    """Eight clients ask for all of these, each so many times in a row; `wrong` has answers that are no page."""

    def __init__(self, gateway, paths, size, times=1):
        self.wrong, rest = [], iter(paths)

        def crawl():
            client = gateway.client()
            for path in rest:
                for _ in range(times):
                    answer = client(path)
                    if answer.status != 200 or len(answer.body) != size:
                        self.wrong.append(answer)
            client.close()

        self.clients = [threading.Thread(target=crawl) for _ in range(8)]
        for client in self.clients:
            client.start()

    def goes_on(self):
        return any(client.is_alive() for client in self.clients)


def settings(text):
    """Before the tables of the configuration come its first lines; [cleanup] must follow those."""
    return {"settings": "", "routes": text}


def pages_that_are_rendered_again_and_again_leave_few_bodies(s, store):
    gateway = s.on(store).gateway(**settings(QUICKLY))
    paths = [f"/page/{i}" for i in range(5)]
    for path in paths:
        s.origin.windows[path] = [1]
    deadline = time.monotonic() + 6
    client = gateway.client()
    while time.monotonic() < deadline:
        for path in paths:
            same(client(path).status, 200, path)
        time.sleep(0.05)
    client.close()
    renders = sum(s.origin.count(path) for path in paths)
    check(renders >= 20, f"only {renders} renders")
    until(lambda: bodies(s) == len(paths), f"one body of each page is left after {renders} renders")
    removed = gateway.counts("facetheory_cleanup_bodies_removed_total", reason="released")
    check(removed >= renders - 2 * len(paths), f"{removed} bodies were removed of {renders} renders")
    for path in paths:
        same(gateway.get(path).status, 200, path)


def two_gateways_remove_each_body_once_and_lose_no_page(s, store):
    gateways = s.on(store).gateways(2, **settings(QUICKLY))
    paths = [f"/page/{i}" for i in range(10)]
    for path in paths:
        s.origin.windows[path] = [1]
    wrong = []

    def visit(gateway):
        client = gateway.client()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for path in paths:
                answer = client(path)
                if answer.status != 200 or not answer.body.startswith(path.encode() + b" render "):
                    wrong.append(answer)
        client.close()

    threads = [threading.Thread(target=visit, args=(gateway,)) for gateway in gateways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(wrong, [], "answers that are no page")
    until(lambda: bodies(s) == len(paths), "one body of each page is left")
    # A render that has lost its lease, on a machine that is busy, takes its body away itself.
    published = total(gateways, "facetheory_regenerations_total", outcome="published")
    check(published >= 2 * len(paths), f"only {published} pages were published")
    removed = total(gateways, "facetheory_cleanup_bodies_removed_total", reason="released")
    same(removed, published - len(paths), f"bodies removed of {published} that were published, each once")


def a_gateway_sweeps_what_a_crash_has_left(s, store):
    first = s.on(store).gateway("first")
    s.origin.windows["/page"] = [1]
    first.get("/page").is_(200, "miss", 1)
    s.origin.windows["/page"] = [3600]
    until(lambda: first.get("/page").render == 2, "it was rendered again")
    first.kill()  # With a body in its queue.
    same(bodies(s), 2, "bodies after the crash")
    second = s.gateway("second", **settings('[cleanup]\ninterval = "300ms"\ngrace = "1s"\n'))
    until(lambda: second.counts("facetheory_cleanup_bodies_removed_total", reason="swept") == 1, "it is swept")
    same(bodies(s), 1, "bodies in the end")
    second.get("/page").is_(200, "hit", 2)


def bodies_of_three_thousand_pages_with_windows_of_a_second_do_not_pile_up(s):
    """Two thirds of them are rendered again every second, or as often as the machine can."""
    data = s.stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))  # Not to wait for the disk.
    s.table, s.bodies = f"lmdb:{data}/table", f"lmdb:{data}/bodies"
    programs = pathlib.Path(s.program).parent / "tests/trials"
    origin = trials.Controlled(programs / "trial_origin")
    origin.vanish = origin.stop
    s.behind(origin)
    gateway = s.gateway(origin='host = "site0.test"', **settings(QUICKLY))  # Its pages name the host.
    count, renders = 3000, 9000

    def published():
        return gateway.counts("facetheory_regenerations_total", outcome="published")

    visits = {"hot": 100, "hot-pages": count, "hosts": 1, "again": 0, "pass": 0, "answers": 10**9, "seconds": 3600}
    load = trials.Load(programs / "trial_load", port=gateway.port, **visits)
    try:
        until(lambda: published() > 0, "a page is published")  # Of bodies without any page `gc` says nothing.
        most, began = 0, time.monotonic()
        while time.monotonic() - began < (8 if published() >= renders else 3 * harness.DEADLINE):
            check(not load.is_over(), "the visitors have stopped")
            most = max(most, bodies(s))
            time.sleep(0.5)
    finally:
        load.stop()
    rendered = published()
    check(rendered >= renders, f"only {rendered} pages were published")
    # One of each page, and what was replaced within seconds: much less than half of all.
    check(most <= count + rendered / 2, f"{most} bodies of {count} pages at once, of {rendered} that were published")
    until(lambda: bodies(s) == pages(s), "one body of each page is left")
    same(pages(s), count, "pages")
    print(f"# {count} pages were published {rendered} times: at most {most} bodies", flush=True)


def a_gateway_that_is_told_not_to_removes_nothing(s):
    gateway = s.gateway(**settings('[cleanup]\nenabled = false\nreleased_after = "0s"\n'))
    s.origin.windows["/page"] = [1]
    gateway.get("/page").is_(200, "miss", 1)
    gateway.becomes("/page", "hit", 3)
    check(bodies(s) >= 3, "nothing was removed")


def many_new_pages_stay_within_the_budget_of_pages_and_hot_ones_stay(s):
    gateway = s.gateway(settings="pages = 50\n")
    for i in range(5):
        gateway.get(f"/hot/{i}").is_(200, "miss", 1)
    hot = gateway.client()
    for i in range(400):
        gateway.get(f"/new/{i}")
        for j in range(5):
            same(hot(f"/hot/{j}").isr, "hit", f"of a hot page after {i} new ones")
    hot.close()
    more = itertools.count()

    def fifty_are_evicted():
        gateway.get(f"/more/{next(more)}")  # On a fast machine many new ones were refused meanwhile.
        return gateway.counts("facetheory_pages_evicted_total") >= 50

    until(fifty_are_evicted, "pages are evicted")
    until(lambda: bodies(s) <= 53, "about fifty pages are left")
    gateway.says("are evicted to make room")
    same(gateway.stderr.count("are evicted to make room"), 1, "told once")


def ended(gateway):
    gateway.process.terminate()
    gateway.ends(0, harness.DEADLINE)


def the_budget_of_pages_is_held_over_restarts(s):
    for run in range(3):
        gateway = s.gateway(f"run{run}", settings="pages = 100\n")
        until(
            lambda g=gateway, n=min(run, 1): g.counts("facetheory_pages_stored") >= 90 * n,
            f"those of before are counted in run {run}",
        )
        client = gateway.client()
        for i in range(90):
            same(client(f"/new/{run}/{i}").status, 200, "status")
        client.close()
        until(lambda g=gateway: g.counts("facetheory_pages_stored") <= 100, "there is room again")
        same(gateway.counts("facetheory_pages_limit"), 100, "the limit's metric")
        ended(gateway)
    check(90 <= pages(s) <= 101, f"{pages(s)} pages are left")


def even_a_few_pages_are_exchanged_for_others(s):
    gateway = s.gateway(settings='disk = "64 MiB"\npages = 10\n')
    for i in range(10):
        gateway.get(f"/old/{i}").is_(200, "miss", 1)
    until(
        lambda: gateway.get(f"/new/{gateway.counts('facetheory_pages_evicted_total')}").status == 200
        and gateway.counts("facetheory_pages_evicted_total") >= 3,
        "old pages go for new ones",
    )
    gateway.says("pages, and pages = 10: pages that are least wanted are evicted")
    check("MiB of disk" not in gateway.stderr, "it is not the disk's doing")


def three_gateways_evict_one_excess_once(s):
    first = s.gateway("first", settings="")
    client = first.client()
    for i in range(400):
        same(client(f"/page/{i}").status, 200, "status")
    client.close()
    ended(first)
    fleet = s.gateways(3, settings="pages = 300\n")
    until(
        lambda: all(gateway.counts("facetheory_pages_stored") == 300 for gateway in fleet), "all see that there is room"
    )
    same(total(fleet, "facetheory_pages_evicted_total"), 100, "pages evicted by all of them")


def pages_that_are_rendered_every_second_stay_in_a_small_budget(s):
    gateway = s.gateway(settings='disk = "64 MiB"\n')
    paths = [f"/page/{i}" for i in range(100)]
    for path in paths:
        s.origin.windows[path], s.origin.sizes[path] = [1], 100_000
    deadline = time.monotonic() + 15
    states = collections.Counter()
    client = gateway.client()
    while time.monotonic() < deadline:
        for path in paths:
            states[client(path).is_(200).isr] += 1
            time.sleep(0.002)
    client.close()
    published = gateway.counts("facetheory_regenerations_total", outcome="published")
    same(
        (states["uncached"], gateway.counts("facetheory_pages_evicted_total")),
        (0, 0),
        f"passed on, evicted: {states}, {published} published",
    )
    check(published * 100_000 > 80 << 20, f"more was published than there is room for: {published}")


def a_crawler_stays_within_the_budget_of_the_disk(s):
    budget = 64 << 20
    gateway = s.gateway(settings='disk = "64 MiB"\n')
    paths = [f"/new/{i}" for i in range(2500)]
    s.origin.sizes = dict.fromkeys(paths, 40_000) | {"/hot": 20_000}
    gateway.get("/hot").is_(200, "miss", 1)
    crawl = Crawl(gateway, paths, 40_000)
    most, hits, asked = 0, 0, 0
    visitor = gateway.client()
    while crawl.goes_on():
        hits += visitor("/hot").is_(200).isr == "hit"
        asked += 1
        most = max(most, used(s, gateway))
        time.sleep(0.02)
    visitor.close()
    same(crawl.wrong, [], "answers that are no page")
    check(most < budget * 1.05, f"{most >> 10} KiB of {budget >> 10} KiB")
    evicted, refused = gateway.counts("facetheory_pages_evicted_total"), gateway.counts(
        "facetheory_pages_refused_total"
    )
    check(evicted > 100, f"only {evicted} pages were evicted, {refused} refused")
    same((s.origin.count("/hot"), hits), (1, asked), "renders and hits of the hot page")
    check(0 < gateway.counts("facetheory_disk_bytes", kind="used") < budget, "the metric tells")
    print(
        f"# {len(paths)} pages of 40 kB in 64 MiB: at most {most / 2**20:.1f} MiB; "
        f"{evicted} evicted, {refused} refused",
        flush=True,
    )


def answers_beyond_memory_count_against_the_budget_of_the_disk(s):
    budget = 64 << 20
    gateway = s.gateway(settings='disk = "64 MiB"\nmemory = "4 MiB"\nthreads = 1\n')
    paths = [f"/new/{i}" for i in range(3000)]
    s.origin.sizes = dict.fromkeys(paths, 1_000)
    # They stand in the answer that is ready; what is the same for all pages would stand there once for all.
    s.origin.fields = {path: {"X-Long": (path * 4_000)[:24_000]} for path in paths}
    most = 0
    # More than there is room for; and then again and again those that came last, of whose bodies it is known where they
    # lie once they have been read.
    for asked in (paths, *[paths[-700:]] * 8):
        crawl = Crawl(gateway, asked, 1_000)
        while crawl.goes_on():
            most = max(most, used(s, gateway))
            time.sleep(0.02)
        same(crawl.wrong, [], "answers that are no page")
    spilled = gateway.counts("facetheory_disk_bytes", kind="spilled")
    check(12 << 20 < spilled <= 16 << 20, f"{spilled} bytes are spilled")
    check(most < budget * 1.05, f"{most >> 10} KiB of {budget >> 10} KiB")
    print(f"# at most {most / 2**20:.1f} MiB, {spilled / 2**20:.1f} MiB of them spilled", flush=True)


CASES = [
    pages_that_are_rendered_again_and_again_leave_few_bodies,
    two_gateways_remove_each_body_once_and_lose_no_page,
    a_gateway_sweeps_what_a_crash_has_left,
]

if __name__ == "__main__":
    harness.main(__name__, more=harness.on_each(STORES, CASES))
