#!/usr/bin/python3
"""An origin that answers what no origin should: for a page that is missing, for one that is stale, and to a request
that is passed on.

The client gets a clean error, the stale page, or an answer that it can tell is cut off; nothing of it is stored, nobody
else gets any of it, and the gateway lives on, with no more memory than before.

    origin_test.py --facetheory build/release/facetheory [WORD...]
"""
import asyncio
import contextlib
import gzip
import socket
import struct
import time

import wire  # noqa: I001  (finds the harness)
import harness
from harness import check, same, until
from wire import RecordingOrigin, Wire, answer, ask, get, page

MEMORY = 256  # MiB, resident, whatever the origin sends: pages may be 16 MiB, and few are made at once.
SILENCE = 0.5  # Seconds: read_timeout.
EVIL = b"EVIL"
OK = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n"


# --- What it does instead of answering ---


def drips(start, piece, times, pause=0.05):
    async def act(writer):
        writer.write(start)
        for _ in range(times):
            writer.write(piece)
            await writer.drain()
            if pause:
                await asyncio.sleep(pause)

    return act


async def is_silent(writer):
    await asyncio.sleep(2 * SILENCE)
    del writer


def breaks_off(start):
    async def act(writer):
        writer.write(start)
        await writer.drain()
        await asyncio.sleep(0.02)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return act


# --- Answers that must never be one. Where a body is promised, EVIL is in it. ---

BODY = b"\r\n\r\nEVIL!"
HEADS = {
    "both lengths": OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked" + BODY,
    "both lengths, the other order": OK
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nEVIL!\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6" + BODY,
    "the same length twice": OK + b"Content-Length: 5\r\nContent-Length: 5" + BODY,
    "a list of lengths": OK + b"Content-Length: 5, 5" + BODY,
    "a signed length": OK + b"Content-Length: +5" + BODY,
    "a negative length": OK + b"Content-Length: -5" + BODY,
    "a hexadecimal length": OK + b"Content-Length: 0x5" + BODY,
    "a length of 2^64 + 5": OK + b"Content-Length: 18446744073709551621" + BODY,
    "an empty length": OK + b"Content-Length:" + BODY,
    "an unknown coding": OK + b"Transfer-Encoding: cow" + BODY,
    "chunked, identity": OK + b"Transfer-Encoding: chunked, identity" + BODY,
    "gzip, chunked": OK + b"Transfer-Encoding: gzip, chunked" + BODY,
    "chunked in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nEVIL!\r\n0\r\n\r\n",
    "lines that end with LF": OK.replace(b"\r", b"") + b"Content-Length: 5\n\nEVIL!",
    "one line that ends with LF": OK + b"X: EVIL\nContent-Length: 5" + BODY,
    "a bare CR that splits": OK + b"X: y\rSet-Cookie: EVIL=1\r\nContent-Length: 5" + BODY,
    "a folded line": OK + b"X: y\r\n EVIL\r\nContent-Length: 5" + BODY,
    "a folded length": OK + b"Content-Length:\r\n 5" + BODY,
    "NUL in a value": OK + b"X: \x00EVIL\r\nContent-Length: 5" + BODY,
    "NUL in a name": OK + b"X\x00: EVIL\r\nContent-Length: 5" + BODY,
    "ESC in a value": OK + b"X: \x1b[31mEVIL\r\nContent-Length: 5" + BODY,
    "space before a colon": OK + b"X : EVIL\r\nContent-Length: 5" + BODY,
    "space before the length's colon": OK + b"Content-Length : 5" + BODY,
    "no colon": OK + b"EVIL\r\nContent-Length: 5" + BODY,
    "an empty name": OK + b": EVIL\r\nContent-Length: 5" + BODY,
    "300 fields": OK + b"X: EVIL\r\n" * 300 + b"Content-Length: 5" + BODY,
    "a field of 2 MB": OK + b"X: " + b"EVIL" * 500_000 + b"\r\nContent-Length: 5" + BODY,
    "a reason of 2 MB": b"HTTP/1.1 200 " + b"EVIL" * 500_000 + b"\r\nContent-Length: 5" + BODY,
    "204 with a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 5" + BODY,
    "a chunked 204": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nEVIL!\r\n0\r\n\r\n",
    "304 that nobody asked for": b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"EVIL\"\r\n\r\n",
    "101 that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: EVIL\r\n"
    b"\r\nEVIL!",
    "100 interim answers": b"HTTP/1.1 103 Early Hints\r\nLink: </EVIL>\r\n\r\n" * 100
    + OK
    + b"Content-Length: 5"
    + BODY,
    "an interim answer with a body": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nEVIL!"
    + OK
    + b"Content-Length: 5"
    + BODY,
    "nothing but interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    "status 000": b"HTTP/1.1 000 EVIL\r\nContent-Length: 5" + BODY,
    "status 99": b"HTTP/1.1 99 EVIL\r\nContent-Length: 5" + BODY,
    "status 1000": b"HTTP/1.1 1000 EVIL\r\nContent-Length: 5" + BODY,
    "status -200": b"HTTP/1.1 -200 EVIL\r\nContent-Length: 5" + BODY,
    "status abc": b"HTTP/1.1 abc EVIL\r\nContent-Length: 5" + BODY,
    "no status": b"HTTP/1.1\r\nContent-Length: 5" + BODY,
    "two spaces before the status": b"HTTP/1.1  200 EVIL\r\nContent-Length: 5" + BODY,
    "HTTP/2": b"HTTP/2 200 EVIL\r\nContent-Length: 5" + BODY,
    "HTTP/1.2": b"HTTP/1.2 200 EVIL\r\nContent-Length: 5" + BODY,
    "http/1.1": b"http/1.1 200 EVIL\r\nContent-Length: 5" + BODY,
    "ICY": b"ICY 200 EVIL\r\nContent-Length: 5" + BODY,
    "HTTP/0.9": b"<html>EVIL</html>",
    "an empty line first": b"\r\n" + OK + b"Content-Length: 5" + BODY,
    "a banner first": b"220 EVIL\r\n" + OK + b"Content-Length: 5" + BODY,
    "a request": b"GET /EVIL HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "TLS": bytes.fromhex("150301000202") + b"EVIL",
    "nothing": b"",
    "half a head": OK + b"X: EVIL",
}
BODIES = {
    "a body that is too short": OK + b"Content-Length: 50" + BODY,
    "a body of 2^63 - 1 bytes": OK + b"Content-Length: 9223372036854775807" + BODY,
    "a chunk that is too short": OK + b"Transfer-Encoding: chunked\r\n\r\n50\r\nEVIL!",
    "no last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nEVIL!\r\n",
    "no end of the trailers": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nEVIL!\r\n0\r\n",
    "a signed chunk size": OK + b"Transfer-Encoding: chunked\r\n\r\n+5\r\nEVIL!\r\n0\r\n\r\n",
    "a chunk size with 0x": OK + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nEVIL!\r\n0\r\n\r\n",
    "a chunk size of 2^64 + 5": OK + b"Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nEVIL!\r\n0\r\n\r\n",
    "a chunk size and LF": OK + b"Transfer-Encoding: chunked\r\n\r\n5\nEVIL!\r\n0\r\n\r\n",
    "no CRLF behind a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nEVIL!0\r\n\r\n",
    "a chunk longer than it says": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nEVIL!\r\n0\r\n\r\n",
    "LF in a chunk's extension": OK + b"Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nEVIL!\r\n0\r\n\r\n",
    "endless extensions": OK + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"EVIL" * 500_000,
    "endless trailers": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nEVIL!\r\n0\r\n" + b"X: EVIL\r\n" * 200_000,
    "no chunks at all": OK + b"Transfer-Encoding: chunked" + BODY,
}
OUTGROWN = {"a body of 2^63 - 1 bytes"}  # Larger than a page may be: no page any more, but passed on.
ACTS = {
    "endless fields": drips(OK, b"X: EVIL\r\n" * 1000, 400, pause=0),
    "an endless field": drips(OK + b"X: ", b"EVIL" * 2000, 400, pause=0),
    "endless interim answers": drips(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000, 100, pause=0),
    "silence": is_silent,
    "a head that drips": drips(b"HTTP/1.1 200 OK\r\nX: ", b"E", 25),
    "a body that stops": drips(OK + b"Content-Length: 500\r\n\r\nEVIL!", b"", 20),
    "a body that drips": drips(OK + b"Content-Length: 500\r\n\r\nEVIL!", b"!", 25),
    "a reset at once": breaks_off(b""),
    "a reset in the head": breaks_off(OK + b"X: EVIL"),
    "a reset in the body": breaks_off(OK + b"Content-Length: 50" + BODY),
    "a reset in a body without a length": breaks_off(OK + BODY[2:]),
}


class Orderly(bytes):
    """An answer after which the connection is kept."""


class HostileOrigin(RecordingOrigin):
    """As RecordingOrigin, unless a path has a plan: bytes, after which the connection is closed, or something to do.

    Connections that were not in order are not kept by the gateway; of those that are, none is closed unless that is
    said. Otherwise the next request could meet one in the moment it is closed, and that is no fault of anybody's.
    """

    def __init__(self):
        self.plans, self.played = {}, set()
        super().__init__()

    async def answer(self, request, writer):
        plan = self.plans.get(request.target)
        if plan is None:
            return await super().answer(request, writer)
        try:
            if isinstance(plan, Orderly):
                return plan
            if isinstance(plan, bytes):
                writer.write(plan)
                await writer.drain()
            else:
                await plan(writer)
        finally:
            self.played.add(request.target)
        return None


class Bed:
    def __init__(self, program):
        self.stack = contextlib.ExitStack()
        scenario = harness.Scenario(program, None, 0, self.stack).in_memory()
        self.origin = scenario.behind(HostileOrigin())
        self.gateway = scenario.gateway(
            origin='host = "client"\nread_timeout = "500ms"\nrender_timeout = "1s"\nconnections = 1000'
        )
        same(ask(self.gateway, "/short/first").status, 200, "of an innocent page")

    def stop(self):
        self.stack.close()


def bed_of(s):
    return s.stores.get("bed", lambda: Bed(s.program))


def own_bed_of(s):
    """For cases about the connections to the origin, which others must not use meanwhile."""
    bed = Bed(s.program)
    s.stack.callback(bed.stop)
    return bed


def outcome(gateway, *request):
    """An answer, or None where it is cut off so that the client can tell, or the connection is just closed."""
    client = Wire(gateway)
    try:
        return client.send(get(*request)).answer()
    except AssertionError as error:
        check("cut off" in str(error), str(error))
        return None
    finally:
        client.close()


def clean(found, what):
    check(found is not None, f"{what}: cut off or closed")
    check(
        EVIL not in found.body and all(EVIL not in value for _, value in found.fields),
        f"{what}: {found} {found.fields}",
    )
    return found


def survives(name, plan, breaks_in_body):
    def case(s):
        bed = bed_of(s)
        origin, gateway = bed.origin, bed.gateway
        slug = name.replace(" ", "-").replace(",", "")
        missing, stale, passed = f"/long/{slug}", f"/short/{slug}", f"/long/{slug}/passed"
        found = ask(gateway, stale)
        same((found.isr, found.body), ("miss", page(stale)), "while all is well")
        fresh_until = time.monotonic() + 1.1
        origin.plans |= {missing: plan, passed: plan}

        # Without a page there is nothing to hide what the origin says behind: it is passed on.
        for path, lines in ((missing, ()), (passed, ("Cookie: session=1",))):
            found = outcome(gateway, path, *lines)
            if found is None:
                check(breaks_in_body, f"{path}: cut off or closed")
            else:
                check(clean(found, path).status in (502, 503, 504), f"{path}: {found}")

        time.sleep(max(0, fresh_until - time.monotonic()))
        origin.plans[stale] = plan
        found = ask(gateway, stale)
        same((found.isr, found.body), ("stale", page(stale)), "stale, while it is made again")
        until(lambda: stale in origin.played, "the origin is asked for the stale page")
        found = outcome(gateway, stale)
        if name not in OUTGROWN:
            same((found and found.status, found and found.body), (200, page(stale)), "stale, after that")

        for path in (missing, stale, passed):
            del origin.plans[path]
            same(clean(outcome(gateway, path), "when all is well again").body, page(path), "when all is well again")
        same(origin.faults, [], "what came to the origin and should not")
        gateway.takes_less_than(MEMORY)

    return case


# --- Answers that are odd and yet answers ---


def what_follows_an_answer_reaches_nobody(s):
    bed = own_bed_of(s)
    for state, lines in (("made", ()), ("passed", ("Cookie: session=1",))):
        path = f"/long/follows/{state}"
        bed.origin.plans[path] = answer(b"first", "Cache-Control: max-age=60") + answer(
            b"EVIL", "Cache-Control: max-age=60"
        )
        same(ask(bed.gateway, path, *lines).body, b"first", "its own length counts")
        for i in range(10):
            same(ask(bed.gateway, f"{path}/{i}", *lines).body, page(f"{path}/{i}"), "the next answers")


def an_answer_that_nobody_asked_for_reaches_nobody(s):
    """Sent on an idle connection some time after the answer before it."""
    bed = own_bed_of(s)

    async def unasked(writer):
        writer.write(answer(b"first", "Cache-Control: max-age=60"))
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.write(answer(b"EVIL", "Cache-Control: max-age=60"))
        await writer.drain()
        await asyncio.sleep(0.5)

    for state, lines in (("made", ()), ("passed", ("Cookie: session=1",))):
        path = f"/long/unasked/{state}"
        bed.origin.plans[path] = unasked
        same(ask(bed.gateway, path, *lines).body, b"first", "the answer before it")
        time.sleep(0.3)
        for i in range(10):
            same(ask(bed.gateway, f"{path}/{i}", *lines).body, page(f"{path}/{i}"), "the next answers")


def a_body_behind_an_answer_to_HEAD_or_a_304_reaches_nobody(s):
    bed = own_bed_of(s)
    bed.origin.plans["/long/head"] = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
    same(ask(bed.gateway, "/long/head", "Cookie: session=1", method="HEAD").status, 200, "HEAD")
    bed.origin.plans[
        "/long/304"
    ] = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 42\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    same(ask(bed.gateway, "/long/304", "Cookie: session=1", "If-None-Match: \"x\"").status, 304, "304")
    for i in range(10):
        same(ask(bed.gateway, f"/long/head/{i}", "Cookie: session=1").body, page(f"/long/head/{i}"), "the next answers")


def a_bomb_is_passed_through_as_the_bytes_it_is(s):
    bed = bed_of(s)
    bomb = gzip.compress(b"\0" * (64 << 20), 9)
    before = bed.gateway.memory()
    bed.origin.plans["/long/bomb"] = Orderly(answer(bomb, "Content-Encoding: gzip", "Cache-Control: max-age=60"))
    for state in ("miss", "hit"):
        found = ask(bed.gateway, "/long/bomb", "Accept-Encoding: gzip")
        same((found.isr, found.get("content-encoding"), found.body == bomb), (state, "gzip", True), "the bomb")
    check(bed.gateway.memory() < before + (32 << 20), "it was expanded")


def an_endless_body_is_stopped(s):
    bed = bed_of(s)
    bed.origin.plans["/long/endless"] = drips(OK + b"\r\n", b"x" * 65536, 1200, pause=0)
    client = Wire(bed.gateway)
    client.send(get("/long/endless"))
    harness.check(client.socket.recv(100).startswith(b"HTTP/1.1 "), "an answer begins")
    client.close()  # Nobody waits for the rest.
    bed.gateway.takes_less_than(MEMORY)


def trailers_of_an_answer_are_no_fields(s):
    bed = bed_of(s)
    evil = (
        b"Transfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n4\r\ntext\r\n0\r\nSet-Cookie: EVIL=1\r\n"
        b"Content-Length: 9\r\nCache-Control: private\r\n\r\n"
    )
    bed.origin.plans["/long/trailers"] = Orderly(OK + evil)
    for lines in ((), ("TE: trailers", "Connection: TE"), ("Cookie: session=1", "TE: trailers", "Connection: TE")):
        found = clean(ask(bed.gateway, "/long/trailers", *lines), "trailers")
        same(found.body, b"text", "the page")


def a_304_does_not_bring_a_cookie_into_a_page(s):
    bed = bed_of(s)
    bed.origin.plans["/short/304"] = Orderly(answer(b"page", "Cache-Control: max-age=1", 'ETag: "1"'))
    same(ask(bed.gateway, "/short/304").body, b"page", "the page")
    time.sleep(1.1)
    bed.origin.plans["/short/304"] = Orderly(
        b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nCache-Control: max-age=60\r\nSet-Cookie: EVIL=1\r\n\r\n'
    )
    bed.origin.played.discard("/short/304")
    clean(ask(bed.gateway, "/short/304"), "stale")
    until(lambda: "/short/304" in bed.origin.played, "it is confirmed")
    for _ in range(20):
        same(clean(ask(bed.gateway, "/short/304"), "afterwards").body, b"page", "afterwards")
        time.sleep(0.01)


def odd_statuses_are_never_stored(s):
    bed = bed_of(s)
    for status in (206, 416, 500, 599, 600, 999):
        path = f"/long/status/{status}"
        bed.origin.plans[path] = Orderly(
            answer(b"odd", "Cache-Control: max-age=60", "Content-Range: bytes 0-2/100", status=f"{status} Odd")
        )
        check(ask(bed.gateway, path).status in (status, 502), f"status {status}")
        del bed.origin.plans[path]
        same(ask(bed.gateway, path).body, page(path), f"after status {status}")


def an_answer_cannot_hide_that_it_is_private(s):
    bed = bed_of(s)
    for number, lines in enumerate(
        (
            ("Connection: Cache-Control", "Cache-Control: private"),
            ("Connection: Set-Cookie", "Set-Cookie: EVIL=1"),
            ("Cache-Control: PRIVATE",),
            ("Cache-Control: max-age=60, Private ",),
            ("Cache-Control: max-age=60", "Cache-Control: private"),
            ('Cache-Control: max-age=60, x="a, private"', "cache-control: no-store"),
            ("Vary: *",),
            ("Vary: accept, *",),
            ("set-cookie: EVIL=1",),
            ("Cache-Control: public, max-age=60", "SET-COOKIE: EVIL=1"),
            ("Cache-Control: private=\"",),
            ("Cache-Control: max-age=60,,private",),
            ("Cache-Control:\tprivate\t",),
        )
    ):
        path = f"/long/private/{number}"
        bed.origin.plans[path] = Orderly(answer(EVIL, *lines))
        same(ask(bed.gateway, path).body, EVIL, f"for who asked first: {lines}")
        del bed.origin.plans[path]
        same(clean(ask(bed.gateway, path), f"for who comes next, after {lines}").body, page(path), f"after {lines}")


def private_answers_are_not_shared_by_those_who_wait_together(s):
    bed = bed_of(s)
    count = 0

    async def somebodys(writer):
        nonlocal count
        count += 1
        mine, cookie = f"EVIL of {count}", f"Set-Cookie: session={count}"
        await asyncio.sleep(0.2)
        writer.write(answer(mine.encode(), cookie, "Connection: close"))
        await writer.drain()

    bed.origin.plans["/long/together"] = somebodys
    clients = [Wire(bed.gateway).send(get("/long/together")) for _ in range(20)]
    answers = [client.answer() for client in clients]
    for client in clients:
        client.close()
    same(len({found.body for found in answers}), 20, f"different answers for different clients: {answers}")
    same(len({found.get("set-cookie") for found in answers}), 20, "different cookies")


def the_gateway_lives(s):
    bed = bed_of(s)
    check(bed.gateway.process.poll() is None, bed.gateway.stderr)
    check(bed.gateway.ready(), "ready")


if __name__ == "__main__":
    cases = [(name, survives(name, plan, "body" in name)) for name, plan in ACTS.items()]  # The slow ones first.
    cases += [(name, survives(name, plan, False)) for name, plan in HEADS.items()]
    cases += [(name, survives(name, plan, True)) for name, plan in BODIES.items()]
    harness.main(__name__, side_by_side=24, more=cases)
