#!/usr/bin/python3
"""Every vector of vectors.py, sent for a page that is a hit, a miss and stale, alone and behind an innocent request on
its connection.

Either the origin sees exactly the one request that the client's bytes mean, well-formed, or none, and the client is
refused and its connection closed. Whoever comes next gets its own page, from memory and over the connections to the
origin that the vector has used.

    smuggling_test.py --facetheory build/release/facetheory [WORD...]
"""
import collections
import contextlib
import itertools
import re
import time

import wire  # noqa: I001  (finds the harness)
import harness
from harness import check, same
from vectors import CLOSED, CUT, OWN, PAGE, REFUSED, VECTORS, Passed
from wire import HOST, RecordingOrigin, Wire, get, page

STATES = {"hit": "/long", "miss": "/long", "stale": "/short"}  # Below /short pages are fresh for a second.
WAYS = ("alone", "behind")
MEMORY = 512  # MiB: what a gateway may need for all of this; the pages alone are a few megabytes.
SETTLED = 1.1  # Seconds after which what is below /short is stale.


def path_of(number, state, way):
    return f"{STATES[state]}/{number}-{state}-{way}"


def smuggled(path):
    """What hides in a vector: a request of its own that nobody has sent."""
    return get(f"/smuggled{path}", "X-Pad: " + "x" * (100 - len(path)))


class IndexedOrigin(RecordingOrigin):
    """Finds the requests that have to do with a vector's path without looking through all of them."""

    NUMBER = re.compile(r"[0-9]+-(?:hit|miss|stale)-(?:alone|behind)")

    def __init__(self):
        self.index = collections.defaultdict(list)
        super().__init__()

    def note(self, request):
        for number in set(self.NUMBER.findall(request.target)) or {""}:
            self.index[number].append(request)

    def about(self, path):
        return list(self.index[self.NUMBER.search(path)[0]])


class Bed:
    """One gateway and one origin for all vectors. Everything is told apart by path."""

    def __init__(self, program):
        self.stack = contextlib.ExitStack()
        scenario = harness.Scenario(program, None, 0, self.stack).in_memory()
        self.origin = scenario.behind(IndexedOrigin())
        self.gateway = scenario.gateway(
            origin='host = "client"', limits='header_timeout = "200ms"\nbody_timeout = "200ms"'
        )
        for state in ("hit", "stale"):
            self.fill([path_of(number, state, way) for number, _ in enumerate(VECTORS) for way in WAYS])
        self.stale_at = time.monotonic() + SETTLED

    def fill(self, paths):
        client = Wire(self.gateway)
        for some in (paths[i : i + 50] for i in range(0, len(paths), 50)):
            client.send(b"".join(get(path) for path in some))
            for path in some:
                same(client.answer().body, page(path), "of a page that is made before it all begins")
        client.close()

    def stop(self):
        self.stack.close()


def fill_in(data, path):
    inner = smuggled(path)
    for name, value in (
        (b"<P>", path.encode()),
        (b"<S#>", b"%d" % len(inner)),
        (b"<S#x>", b"%x" % len(inner)),
        (b"<S>", inner),
    ):
        data = data.replace(name, value)
    return data


def host_of(bed, then):
    return f"127.0.0.1:{bed.gateway.port}" if then.host == OWN else then.host


def method_of(data):
    """For reading the answer: that to HEAD has no body."""
    return "HEAD" if data.startswith(b"HEAD ") else "GET"


def attempt(bed, vector, path, state, way):
    data = fill_in(vector.data, path)
    client = Wire(bed.gateway)
    if way == "behind":
        client.send(get("/before" + path) + data)
        same(client.answer().body, page("/before" + path), "the answer to the innocent request before it")
    else:
        client.send(data)
    then = vector.then
    closes = then in (REFUSED, CLOSED, CUT) or (isinstance(then, Passed) and then.closed)
    answer = client.answer(method_of(data))
    if then == REFUSED or (then == CUT and answer):
        check(answer and answer.status >= 400, f"not refused: {answer}")
        check(
            not vector.statuses or answer.status in vector.statuses,
            f"refused with {answer}, not with {vector.statuses}",
        )
        same(answer.get("connection"), "close", "Connection")
    elif then in (PAGE, CLOSED):
        same(
            (answer and answer.status, answer and answer.body),
            (200, b"" if method_of(data) == "HEAD" else page(path)),
            "the page",
        )
        same(answer.isr, state, "the state of the page")
    elif isinstance(then, Passed):
        target = fill_in(then.target.encode(), path).decode()
        same(
            (answer and answer.status, answer and answer.body),
            (200, page(target, host_of(bed, then), then.method)),
            "the answer",
        )
    if not closes:
        client.send(get("/after" + path))
        same(client.answer().body, page("/after" + path), "the next answer on its connection")
        client.close()
    elif answer and answer.status < 400 and then not in (CLOSED, CUT):
        # The bytes that follow the request may make no sense: then they are refused.
        more = client.answer()
        check(more is None or more.status >= 400, f"what follows is answered: {more}")
        client.closed()
    else:
        client.closed()


def verdict(bed, vector, path, state):
    """What the origin has seen of it, all in all: the page's own renders, and what the vector means."""
    requests = bed.origin.about(path)
    check(not any("/smuggled" in request.target for request in requests), f"smuggled: {requests}")
    requests = [r for r in requests if not r.target.startswith(("/before", "/after", "/next"))]
    renders = [
        r for r in requests if r.whole and (r.method, r.target, r.get("host"), r.body) == ("GET", path, HOST, b"")
    ]
    others = [r for r in requests if r not in renders]
    then = vector.then
    if isinstance(then, Passed):
        meant = (
            then.method,
            fill_in(then.target.encode(), path).decode(),
            host_of(bed, then),
            fill_in(then.body, path),
        )
        if meant == ("GET", path, HOST, b""):
            same(len(requests), 1 + (state != "miss"), f"requests at the origin: {requests}")
            return
        same(
            [(r.whole, r.method, r.target, r.get("host"), r.body) for r in others],
            [(True, *meant)],
            "requests at the origin",
        )
    elif then == CUT:
        check(
            len(others) <= 1 and all(not r.whole and (r.method, r.target) == ("POST", path) for r in others),
            f"requests at the origin: {requests}",
        )
    else:
        same(others, [], "requests at the origin")
    allowed = {"hit": (1,), "stale": (1, 2), "miss": (1,)}[state] if then in (PAGE, CLOSED) else (int(state != "miss"),)
    check(len(renders) in allowed, f"{len(renders)} renders, not {allowed}: {requests}")


def others_get_their_own(bed, path):
    client = Wire(bed.gateway)
    client.send(get("/next/passed" + path, "Cookie: session=1"))
    answer = client.answer()
    same(
        (answer.isr, answer.body),
        ("pass", page("/next/passed" + path)),
        "over a connection that requests are passed on by",
    )
    client.send(get("/next/made" + path))
    answer = client.answer()
    same((answer.isr, answer.body), ("miss", page("/next/made" + path)), "over a connection that pages are made by")
    client.send(get(path))
    same(client.answer().body, page(path), "the page that the vector was about")
    client.close()


def try_vector(number):
    vector = VECTORS[number]

    def case(s):
        bed = s.stores.get("bed", lambda: Bed(s.program))
        time.sleep(max(0, bed.stale_at - time.monotonic()))
        for state, way in itertools.product(STATES, WAYS):
            path = path_of(number, state, way)
            try:
                attempt(bed, vector, path, state, way)
                verdict(bed, vector, path, state)
                others_get_their_own(bed, path)
                faults, bed.origin.faults = bed.origin.faults, []
                same(
                    faults, [], "what came to the origin and should not, from this vector or another at the same moment"
                )
                same(bed.origin.index[""], [], "requests of nobody")
                bed.gateway.takes_less_than(MEMORY)
            except Exception as error:
                raise AssertionError(
                    f"{state}, {way}: {error}; {vector.why}: {fill_in(vector.data, path)[:400]!r}"
                ) from error

    return case


def whoever_comes_next_uses_the_connections_that_vectors_have_used(s):
    """So that what a vector could leave behind on one of them would be met."""
    bed = s.stores.get("bed", lambda: Bed(s.program))
    shared = 0
    for i in range(20):
        path = path_of(len(VECTORS) + i, "miss", "alone")
        client = Wire(bed.gateway)
        client.send(get("/next/posted" + path, "Transfer-Encoding: chunked", method="POST") + b"3\r\nabc\r\n0\r\n\r\n")
        same(client.answer().status, 200, "a request that is passed on")
        client.send(get(path))
        same(client.answer().status, 200, "a page")
        others_get_their_own(bed, path)
        client.close()
        posted, made, passed, innocent = (
            [r.connection for r in bed.origin.about(path) if r.target == start + path]
            for start in ("/next/posted", "", "/next/passed", "/next/made")
        )
        shared += posted == passed and made == innocent
    check(shared > 0, "no connection was used twice")


if __name__ == "__main__":
    harness.main(
        __name__, side_by_side=8, more=[(vector.name, try_vector(number)) for number, vector in enumerate(VECTORS)]
    )
