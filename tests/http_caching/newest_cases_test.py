#!/usr/bin/python3
"""What the newest version of the public suite asks of a cache beyond npm's, written anew from the RFCs: answers before
the answer (RFC 9110, 15.2), stale-while-revalidate (RFC 5861), Age that is no number or several (RFC 9111, 5.1), and an
origin that closes the connection when a page has become stale (RFC 9111, 4.2.4).

    newest_cases_test.py --facetheory build/release/facetheory

Each case is a page of its own. All run side by side, in each of the two configurations of docs/http_caching.md.
"""
import argparse
import asyncio
import dataclasses
import pathlib
import sys
import tempfile

import suite
from caching_suite_test import Document, Report, start_gateway

LIMIT = 15  # seconds for an answer


@dataclasses.dataclass
class Planned:
    """What the origin answers to one request; `before` are interim answers, as (status, fields)."""

    fields: list
    before: list = dataclasses.field(default_factory=list)
    closes: bool = False


@dataclasses.dataclass
class Case:
    name: str
    first: Planned
    expected: str  # what the second request gets: "stored", "new" or "error"
    pause: float = 2.1  # seconds before the second request
    second: Planned = dataclasses.field(default_factory=lambda: Planned([]))


def lines_of(fields):
    return "".join(f"{name}: {value}\r\n" for name, value in fields)


class Origin:
    def __init__(self, cases):
        self.plans = {f"/{i}": [case.first, case.second] for i, case in enumerate(cases)}
        self.asked = dict.fromkeys(self.plans, 0)

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                number = self.asked[path] = self.asked[path] + 1
                planned = self.plans[path][min(number, 2) - 1]
                if planned.closes:
                    break
                for status, fields in planned.before:
                    writer.write(f"HTTP/1.1 {status} Before\r\n{lines_of(fields)}\r\n".encode())
                    await writer.drain()
                    await asyncio.sleep(0.01)
                body = f"render {number}"
                head = f"HTTP/1.1 200 OK\r\n{lines_of(planned.fields)}Content-Length: {len(body)}\r\n\r\n"
                writer.write((head + body).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def get(port, path):
    """The interim answers, the answer's head, and its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n".encode())
    rest = (await asyncio.wait_for(reader.read(), LIMIT)).decode("latin-1")
    writer.close()
    before = []
    while rest.startswith("HTTP/1.1 1"):
        head, _, rest = rest.partition("\r\n\r\n")
        before.append(head)
    head, _, body = rest.partition("\r\n\r\n")
    return before, head, body


EARLY = [("Link", "</style.css>; rel=preload; as=style"), ("X-Early", "yes")]
FRESH = ("Cache-Control", "max-age=3600")
CASES = [
    Case("a page that came after a 102 is stored, and the 102 is not", Planned([FRESH], [(102, [])]), "stored"),
    Case("a page that came after a 103 is stored without its fields", Planned([FRESH], [(103, EARLY)]), "stored"),
    *(
        Case(
            f"{'stale' if expected == 'stored' else 'nothing stale'} is served when the origin closes: {control}",
            Planned([("Cache-Control", control)]),
            expected,
            3.1,
            Planned([], closes=True),
        )
        for control, expected in {
            "max-age=2, must-revalidate": "error",
            "max-age=2, proxy-revalidate": "error",
            "max-age=2, no-cache": "error",
            "max-age=2, s-maxage=2": "error",
            "max-age=2": "stored",
        }.items()
    ),
    Case(
        "within stale-while-revalidate what is stale is served",
        Planned([("Cache-Control", "max-age=1, stale-while-revalidate=60")]),
        "stored",
    ),
    Case(
        "after stale-while-revalidate it is not",
        Planned([("Cache-Control", "max-age=1, stale-while-revalidate=1")]),
        "new",
        3.1,
    ),
    *(
        Case(f"Age: {' and '.join(values)}", Planned([FRESH, *(("Age", value) for value in values)]), expected)
        for expected, ages in {
            # Ignored, or no older than an hour.
            "stored": [["abc"], ["-7200"], ["7200.0"], ["0, 7200"], ["0", "7200"], ["0, 0"], ["30", "30"]],
            # The first of several counts; what is larger than any number is old.
            "new": [["7200"], ["7200, 0"], ["7200", "0"], ["2147483647"], ["2147483648"], ["99999999999999999999"]],
        }.items()
        for values in ages
    ),
]


async def what_came(case, port, path):
    """ "" if all is as it should be."""
    before, head, body = await get(port, path)
    interim = [int(one.split(" ")[1]) for one in before]
    if body != "render 1" or interim != [status for status, _ in case.first.before] or "X-Early" in head:
        return f"first {before} {head} {body}"
    for one, (_, fields) in zip(before, case.first.before):
        if any(f"{name}: {value}" not in one for name, value in fields):
            return f"the fields of {one}"
    await asyncio.sleep(case.pause)
    before, head, body = await get(port, path)
    is_error = head.startswith("HTTP/1.1 5")
    found = "error" if is_error else {"render 1": "stored", "render 2": "new"}.get(body, body)
    is_right = found == case.expected and not before and "x-early" not in head.lower()
    return "" if is_right else f"expected {case.expected}, found {found}: {before} {head}"


async def run(facetheory, name, configuration, report):
    origin = Origin(CASES)
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        port = server.sockets[0].getsockname()[1]
        gateway, url = start_gateway(facetheory, pathlib.Path(folder), port, configuration)
        with suite.ended(gateway):
            port = int(url.rsplit(":", 1)[1])
            came = await asyncio.gather(*(what_came(case, port, f"/{i}") for i, case in enumerate(CASES)))
    server.close()
    for case, why in zip(CASES, came):
        report.say(not why, f"{name}: {case.name}", why)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facetheory", required=True)
    options = parser.parse_args()
    report = Report()
    for name, configuration in Document().configurations.items():
        asyncio.run(run(pathlib.Path(options.facetheory).resolve(), name, configuration, report))
    return 1 if report.red else 0


if __name__ == "__main__":
    sys.exit(main())
