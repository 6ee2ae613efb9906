"""Bytes as they are on both sides of a gateway: clients that send whatever they like, and an origin that keeps every
byte it gets and takes nothing but exactly one well-formed request at a time.
"""
import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scenarios"))

import harness  # noqa: E402

HOST = harness.HOST
TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ((?:/[!-\"$-~]*)|\*) HTTP/1\.1")
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-9][0-9]{2}) ([\t -~\x80-\xff]*)")
FIELD = re.compile(rb"(" + TOKEN + rb"): ([!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
AUTHORITY = re.compile(rb"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
# These concern one connection, or must be known before the content: no origin may find them behind it.
NEVER_TRAILERS = {
    b"content-length",
    b"transfer-encoding",
    b"host",
    b"authorization",
    b"cookie",
    b"connection",
    b"te",
    b"expect",
    b"range",
    b"content-type",
    b"cache-control",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-tenant-id",
}


class Malformed(Exception):
    pass


def fields_of(lines):
    fields = []
    for line in lines:
        match = FIELD.fullmatch(line)
        if not match:
            raise Malformed(f"field {line!r}")
        fields.append((match[1].lower(), match[2] or b""))
    return fields


def values(fields, name):
    return [value for found, value in fields if found == name]


def framing_of(fields):
    """A length, "chunked" or None; anything that two readers could read in two ways is malformed."""
    lengths, codings = values(fields, b"content-length"), values(fields, b"transfer-encoding")
    if len(lengths) + len(codings) > 1:
        raise Malformed(f"lengths {lengths} and codings {codings}")
    if codings and codings != [b"chunked"]:
        raise Malformed(f"codings {codings}")
    if lengths and not re.fullmatch(rb"0|[1-9][0-9]{0,18}", lengths[0]):
        raise Malformed(f"length {lengths[0]}")
    return "chunked" if codings else int(lengths[0]) if lengths else None


class Request:
    def __init__(self, head):
        lines = head.split(b"\r\n")
        line = REQUEST_LINE.fullmatch(lines[0])
        if not line:
            raise Malformed(f"request line {lines[0][:200]!r}")
        self.method, self.target = line[1].decode(), line[2].decode()
        self.fields, self.body, self.trailers, self.whole = fields_of(lines[1:]), b"", [], False
        self.framing = framing_of(self.fields)
        hosts = self.all("host")
        if len(hosts) != 1 or not AUTHORITY.fullmatch(hosts[0].encode("latin-1")):
            raise Malformed(f"hosts {hosts}")

    def all(self, name):
        return [value.decode("latin-1") for value in values(self.fields, name.encode())]

    def get(self, name, otherwise=""):
        return (self.all(name) or [otherwise])[0]

    def __repr__(self):
        return (
            f"{self.method} {self.target} at {self.get('host')} "
            f"with {self.body[:60]!r}{'' if self.whole else ', cut off'}"
        )


class Pieces:
    """Bytes that come one after the other, and may be asked for by size or by what they end with."""

    def __init__(self, more):
        self.more, self.bytes = more, b""

    async def until(self, end):
        while end not in self.bytes:
            await self._grow()
        piece, _, self.bytes = self.bytes.partition(end)
        return piece

    async def exactly(self, size):
        while len(self.bytes) < size:
            await self._grow()
        piece, self.bytes = self.bytes[:size], self.bytes[size:]
        return piece

    async def ended(self):
        """Whether nothing comes any more."""
        if not self.bytes:
            self.bytes = await self.more()
        return not self.bytes

    async def _grow(self):
        piece = await self.more()
        if not piece:
            raise EOFError
        self.bytes += piece


async def chunks(pieces, content, trailers):
    """Without extensions, and nothing but CRLF ends a line: gateways write no others."""
    while True:
        line = await pieces.until(b"\r\n")
        if not re.fullmatch(rb"[0-9a-f]{1,16}", line):
            raise Malformed(f"chunk size {line[:100]!r}")
        size = int(line, 16)
        if size == 0:
            break
        content(await pieces.exactly(size))
        if await pieces.exactly(2) != b"\r\n":
            raise Malformed("no CRLF where a chunk ends")
    while line := await pieces.until(b"\r\n"):
        trailers += fields_of([line])
    for name, _ in trailers:
        if name in NEVER_TRAILERS or name.startswith(b"x-facetheory-"):
            raise Malformed(f"trailer {name!r}")


class RecordingOrigin(harness.Listener):
    """`requests` are all that began well, in order; `faults` is whatever should not have come, with the bytes. What
    `answer` returns is sent."""

    def __init__(self):
        self.requests, self.faults, self.connections = [], [], []  # connections: how many requests each has carried
        super().__init__()

    async def serve(self, reader, writer):
        number, record = len(self.connections), bytearray()
        self.connections.append(0)

        async def more():
            piece = await reader.read(65536)
            record.extend(piece)
            return piece

        pieces = Pieces(more)
        try:
            while not await pieces.ended():
                began = len(record) - len(pieces.bytes)
                request = Request(await pieces.until(b"\r\n\r\n"))
                self.connections[number] += 1
                request.connection = number
                self.note(request)
                if request.get("expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await self._read_body(request, pieces)
                request.whole = True
                if pieces.bytes:
                    raise Malformed(f"{pieces.bytes[:200]!r} behind a request that is not answered yet")
                answer = await self.answer(request, writer)
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except EOFError:
            if b"\r\n\r\n" not in record[began:]:
                self.faults.append(f"a head that was cut off: {bytes(record[began:])!r}")
        except Malformed as malformed:
            self.faults.append(f"{malformed} in {bytes(record[began:][:2000])!r}")

    def note(self, request):
        """Its head has come; `whole` says whether its body has too."""
        self.requests.append(request)

    async def _read_body(self, request, pieces):
        body = bytearray()
        try:
            if request.framing == "chunked":
                await chunks(pieces, body.extend, request.trailers)
            elif request.framing:
                body += await pieces.exactly(request.framing)
        finally:
            request.body = bytes(body)

    async def answer(self, request, writer):
        """The page says what it is of. Below /short it is fresh for a second, and may then be stale while it is
        rendered."""
        text = page(request.target, request.get("host"), request.method)
        age = 1 if request.target.startswith("/short") else 3600
        control = f"Cache-Control: max-age={age}, stale-while-revalidate=3600"
        return answer(text, control if request.method in ("GET", "HEAD") else "", head=request.method == "HEAD")

    def of(self, part):
        """The requests whose target contains this."""
        return [request for request in self.requests if part in request.target]


def page(target, host=HOST, method="GET"):
    return f"{method} {target} of {host}\n".encode()


def answer(text, *lines, status="200 OK", head=False):
    start = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(text)}", *(line for line in lines if line)])
    return start.encode("latin-1") + b"\r\n\r\n" + (b"" if head else text)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def get(self, name):
        return b", ".join(values(self.fields, name.encode())).decode("latin-1")

    @property
    def isr(self):
        return self.get("x-facetheory-isr")

    def __repr__(self):
        return f"{self.status} {self.isr} {self.body[:200]!r}"


class Wire:
    """One connection of a client. What comes back must be well-formed too."""

    def __init__(self, gateway, limit=15):
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pieces = Pieces(self._receive)

    async def _receive(self):
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # Refused before all of it was sent; the answer tells.
        return self

    def answer(self, method="GET"):
        """The next one that is final; None: the connection is closed."""
        return now(self._answer(method))

    async def _answer(self, method):
        try:
            if await self.pieces.ended():
                return None
            while True:
                lines = (await self.pieces.until(b"\r\n\r\n")).split(b"\r\n")
                line = STATUS_LINE.fullmatch(lines[0])
                if not line:
                    raise AssertionError(f"the gateway answers {lines[0][:200]!r}")
                status, fields = int(line[1]), fields_of(lines[1:])
                if status >= 200 or status == 101:
                    break
            framing, body = framing_of(fields), bytearray()
            if method == "HEAD" or status in (101, 204, 304):
                framing = 0
            if framing == "chunked":
                await chunks(self.pieces, body.extend, [])
            elif framing is None:
                while not await self.pieces.ended():
                    body += await self.pieces.exactly(len(self.pieces.bytes))
            else:
                body += await self.pieces.exactly(framing)
            return Answer(status, fields, bytes(body))
        except Malformed as malformed:
            raise AssertionError(f"the gateway's answer: {malformed}") from None
        except EOFError:
            raise AssertionError(f"the gateway's answer is cut off after {self.pieces.bytes[:200]!r}") from None

    def closed(self):
        """Closed by the gateway, and not a byte before."""
        harness.check(now(self.pieces.ended()), f"something more comes: {self.pieces.bytes[:300]!r}")
        self.close()

    def close(self):
        self.socket.close()


def now(coroutine):
    """Runs what only awaits a blocking socket: it never waits for anybody else."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def get(target, *lines, host=HOST, method="GET"):
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode("latin-1")


def ask(gateway, target, *lines, host=HOST, method="GET"):
    """On a connection of its own."""
    wire = Wire(gateway)
    try:
        found = wire.send(get(target, *lines, host=host, method=method)).answer(method)
        harness.check(found, f"{target}: closed without an answer")
        return found
    finally:
        wire.close()
