#!/usr/bin/python3
"""An HTTP/1.1 proxy in front of one DynamoDB or S3 server, for tests.

It does what the local servers do not: it checks every request's signature (recomputed by botocore, which shares no code
with ours), honours `If-None-Match: *` on S3 writes, counts requests, and injects faults on command.

    fault_proxy.py --service dynamodb|s3 --upstream http://127.0.0.1:PORT --access-key K --secret-key S
                   [--session-token T] [--region R]

It prints "listening on PORT" once it answers. `GET /__control` returns its counters, `GET /__log` the latest requests;
`POST /__control` takes a JSON object with any of:

    "reset": true                 forget faults, random mode, counters and the log
    "clear": true                 forget faults and random mode
    "faults": [{...}, ...]        append; each is applied to the next `count` (1) requests of its `operation` ("": any),
                                  after letting `skip` (0) of them through
    "random": {"seed": n, "probabilities": {kind: p, ...}, "operation": ""}   for requests that meet no listed fault

The operation is the suffix of X-Amz-Target, or PutObject, GetObject, HeadObject, DeleteObject, ListObjectsV2.
Kinds of faults, with what reaches the upstream server:

    throttle      nothing   400 ProvisionedThroughputExceededException (`code` may name another) / 503 SlowDown
    conflict      nothing   400 TransactionConflictException, for TransactWriteItems TransactionCanceledException whose
                            reasons name a conflict for all items but the first / 409 ConditionalRequestConflict
    delay         request   the answer comes after `delay_ms`
    cut_before    nothing   the connection is closed
    cut_after     request   the connection is closed without an answer
    cut_answer    request   the connection is closed in the middle of the answer
    error_before  nothing   `status` (500), with `code` if given
    error_after   request   `status` (500), with `code` if given
    garbage       request   200 with a body that is neither JSON nor XML
    not_http      nothing   bytes that are no HTTP
    corrupt       request   the answer's body has one byte flipped
"""

import argparse
import collections
import datetime
import hashlib
import hmac
import http.client
import http.server
import json
import random
import socket
import threading
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}
MAX_SKEW = datetime.timedelta(minutes=15)


class Refused(Exception):
    """The request is answered without being forwarded."""

    def __init__(self, status, code, message):
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message = status, code, message


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.operation = ""

    def header(self, name):
        for field, value in self.headers:
            if field.lower() == name:
                return value
        return None


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def encode(self, method):
        length = None
        lines = [f"HTTP/1.1 {self.status} {http.client.responses.get(self.status, 'Unknown')}"]
        for field, value in self.headers:
            if field.lower() == "content-length":
                length = value
            elif field.lower() not in HOP_BY_HOP:
                lines.append(f"{field}: {value}")
        if method == "HEAD":
            lines.append(f"Content-Length: {length or 0}")
        elif self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        return head if method == "HEAD" else head + self.body


class SignatureCheck:
    """Recomputes the signature of a request from what was received."""

    def __init__(self, service, access_key, secret_key, session_token, region):
        self.service, self.region, self.access_key, self.session_token = service, region, access_key, session_token
        credentials = botocore.credentials.Credentials(access_key, secret_key, session_token or None)
        signer = botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
        self.signer = signer(credentials, service, region)

    def refuse_unless_signed(self, request):
        s3 = self.service == "s3"
        status = 403 if s3 else 400
        mismatch = "SignatureDoesNotMatch" if s3 else "InvalidSignatureException"
        unknown = "InvalidAccessKeyId" if s3 else "UnrecognizedClientException"

        authorization = request.header("authorization")
        if not authorization or not authorization.startswith("AWS4-HMAC-SHA256 "):
            raise Refused(
                status,
                "AccessDenied" if s3 else "MissingAuthenticationTokenException",
                "Request is missing Authentication Token",
            )
        fields = dict(part.strip().partition("=")[::2] for part in authorization.split(" ", 1)[1].split(","))
        scope = fields.get("Credential", "").split("/")
        signed = fields.get("SignedHeaders", "").split(";")
        timestamp = request.header("x-amz-date") or ""
        if scope[0] != self.access_key:
            raise Refused(status, unknown, "The security token included in the request is invalid.")
        if (request.header("x-amz-security-token") or "") != self.session_token:
            raise Refused(
                status, "InvalidToken" if s3 else unknown, "The security token included in the request is invalid."
            )
        if scope[1:] != [timestamp[:8], self.region, self.service, "aws4_request"]:
            raise Refused(status, mismatch, f"Credential should be scoped to {self.region}/{self.service}")
        try:
            signed_at = datetime.datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ")
        except ValueError:
            raise Refused(status, mismatch, f"X-Amz-Date is malformed: {timestamp}") from None
        if abs(datetime.datetime.utcnow() - signed_at) > MAX_SKEW:
            raise Refused(status, "RequestTimeTooSkewed" if s3 else mismatch, "Signature expired")

        if signed != sorted(signed):
            raise Refused(status, mismatch, "SignedHeaders are not sorted")
        must = {"host"} | {field.lower() for field, _ in request.headers if field.lower().startswith("x-amz-")}
        if not must <= set(signed):
            raise Refused(status, mismatch, f"Not signed: {', '.join(sorted(must - set(signed)))}")
        body_hash = hashlib.sha256(request.body).hexdigest()
        claimed = request.header("x-amz-content-sha256")
        if s3 and claimed is None:
            raise Refused(400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
        if claimed is not None and claimed != body_hash:
            raise Refused(400, "XAmzContentSHA256Mismatch", "The provided x-amz-content-sha256 does not match the body")

        copy = botocore.awsrequest.AWSRequest(
            method=request.method, url=f"http://{request.header('host')}{request.target}", data=request.body
        )
        for field, value in request.headers:
            if field.lower() in signed:
                copy.headers.add_header(field, value.encode("latin-1").decode("utf-8", "surrogateescape"))
        copy.context["timestamp"] = timestamp
        canonical = self.signer.canonical_request(copy)
        expected = self.signer.signature(self.signer.string_to_sign(copy, canonical), copy)
        if not hmac.compare_digest(expected, fields.get("Signature", "")):
            raise Refused(
                status,
                mismatch,
                "The request signature we calculated does not match the signature you "
                f"provided. The canonical string should have been:\n{canonical}",
            )


class Faults:
    """What to do to the next requests. Guarded by the proxy's lock."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.listed, self.random, self.probabilities, self.random_operation = [], None, [], ""

    def configure(self, command):
        for fault in command.get("faults", []):
            self.listed.append({"operation": "", "count": 1, "skip": 0, **fault})
        if "random" in command:
            self.random = random.Random(command["random"]["seed"])
            self.probabilities = sorted(command["random"]["probabilities"].items())
            self.random_operation = command["random"].get("operation", "")

    def next(self, operation):
        for fault in self.listed:
            if fault["operation"] not in ("", operation):
                continue
            if fault["skip"] > 0:
                fault["skip"] -= 1
                continue
            fault["count"] -= 1
            if fault["count"] == 0:
                self.listed.remove(fault)
            return fault
        if self.random and self.random_operation in ("", operation):
            point = self.random.random()
            for kind, probability in self.probabilities:
                if point < probability:
                    return {"kind": kind, "delay_ms": 1 + self.random.randrange(20)}
                point -= probability
        return None


class Proxy:
    def __init__(self, options):
        self.service = options.service
        upstream = urllib.parse.urlsplit(options.upstream)
        self.upstream = (upstream.hostname, upstream.port)
        self.check = SignatureCheck(
            options.service, options.access_key, options.secret_key, options.session_token, options.region
        )
        self.lock = threading.Lock()
        self.s3_lock = threading.Lock()
        self.faults = Faults()
        self.reset_counters()

    def reset_counters(self):
        self.requests = collections.Counter()
        self.forwarded = collections.Counter()
        self.applied = collections.Counter()
        self.signature_failures = []
        self.log = collections.deque(maxlen=500)

    def operation_of(self, request):
        if self.service == "dynamodb":
            return (request.header("x-amz-target") or "").rpartition(".")[2]
        path = urllib.parse.urlsplit("http://x" + request.target).path
        if request.method == "GET" and path.strip("/").count("/") == 0:
            return "ListObjectsV2"
        return {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}.get(
            request.method, request.method
        )

    def error(self, status, code, message, extra=None):
        if self.service == "s3":
            text = message.replace("&", "&amp;").replace("<", "&lt;")
            body = (
                f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{text}</Message></Error>'
            )
            return Answer(status, [("Content-Type", "application/xml")], body.encode())
        namespace = "com.amazonaws.dynamodb.v20120810"
        if code in (
            "UnrecognizedClientException",
            "InvalidSignatureException",
            "AccessDeniedException",
            "MissingAuthenticationTokenException",
            "ThrottlingException",
        ):
            namespace = "com.amazon.coral.service"
        body = json.dumps({"__type": f"{namespace}#{code}", "message": message, **(extra or {})}).encode()
        return Answer(status, [("Content-Type", "application/x-amz-json-1.0")], body)

    def failure(self, fault):
        status = fault.get("status", 500)
        if self.service == "s3":
            codes = {
                500: "InternalError",
                501: "NotImplemented",
                503: "ServiceUnavailable",
                403: "AccessDenied",
                409: "ConditionalRequestConflict",
            }
        else:
            codes = {500: "InternalServerError", 503: "ServiceUnavailable", 400: "ValidationException"}
        return self.error(status, fault.get("code") or codes.get(status, "Unknown"), "A fault was injected.")

    def throttled(self, fault):
        if self.service == "s3":
            return self.error(503, fault.get("code") or "SlowDown", "Please reduce your request rate.")
        return self.error(
            400,
            fault.get("code") or "ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded.",
        )

    def conflict(self, request):
        if self.service == "s3":
            return self.error(409, "ConditionalRequestConflict", "A conflicting operation is in progress.")
        if request.operation != "TransactWriteItems":
            return self.error(400, "TransactionConflictException", "Transaction is ongoing for the item")
        items = len(json.loads(request.body)["TransactItems"])
        reasons = [
            {"Code": "None"}
            if i == 0 and items > 1
            else {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
            for i in range(items)
        ]
        codes = ", ".join(reason["Code"] for reason in reasons)
        return self.error(
            400,
            "TransactionCanceledException",
            f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
            {"CancellationReasons": reasons},
        )

    def send_upstream(self, connection, method, request):
        # s3rver would judge the signature by rules of its own; DynamoDB Local wants to see one.
        dropped = {"authorization", "x-amz-security-token", "x-amz-content-sha256", "x-amz-date", "if-none-match"}
        fields = {}
        for field, value in request.headers:
            if field.lower() in HOP_BY_HOP | {"host"} or (self.service == "s3" and field.lower() in dropped):
                continue
            fields[field] = value
        fields["Host"] = f"{self.upstream[0]}:{self.upstream[1]}"
        for last_attempt in (False, True):
            try:
                connection.request(method, request.target, request.body or None, fields)
                response = connection.getresponse()
                return Answer(response.status, response.getheaders(), response.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # A kept connection that the server had closed meanwhile: nothing was sent on it.
                connection.close()
                if last_attempt:
                    raise

    def forward(self, connection, request):
        with self.lock:
            self.forwarded[request.operation] += 1
        if self.service != "s3":
            return self.send_upstream(connection, request.method, request)
        # s3rver's operations are not atomic and it has no conditional writes: one at a time here, and a write is
        # answered when its bytes are all there.
        with self.s3_lock:
            probe = Request("HEAD", request.target, [], b"")
            if request.method == "PUT" and request.header("if-none-match") == "*":
                if self.send_upstream(connection, "HEAD", probe).status == 200:
                    return self.error(
                        412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"
                    )
            answer = self.send_upstream(connection, request.method, request)
            if request.method == "PUT" and answer.status == 200:
                for _ in range(200):
                    stored = dict(self.send_upstream(connection, "HEAD", probe).headers)
                    if stored.get("Content-Length") == str(len(request.body)):
                        break
                    time.sleep(0.01)
            return answer

    def control(self, method, body):
        with self.lock:
            if method == "POST":
                command = json.loads(body)
                if command.get("reset") or command.get("clear"):
                    self.faults.clear()
                if command.get("reset"):
                    self.reset_counters()
                self.faults.configure(command)
            return {
                "requests": self.requests,
                "forwarded": self.forwarded,
                "faults": self.applied,
                "pending": len(self.faults.listed),
                "signature_failures": self.signature_failures,
            }

    def handle(self, connection, request):
        """Returns the bytes to send and whether the connection is to be closed after them."""
        if request.target in ("/__control", "/__log"):
            reply = self.control(request.method, request.body) if request.target == "/__control" else list(self.log)
            headers = [("Content-Type", "application/json")]
            return Answer(200, headers, json.dumps(reply).encode()).encode(request.method), False

        request.operation = self.operation_of(request)
        with self.lock:
            self.requests[request.operation] += 1
            self.log.append(
                {
                    "operation": request.operation,
                    "method": request.method,
                    "target": request.target,
                    "headers": request.headers,
                    "body": request.body[:65536].decode("latin-1"),
                }
            )
        try:
            self.check.refuse_unless_signed(request)
        except Refused as refusal:
            with self.lock:
                self.signature_failures.append(str(refusal))
            return self.error(refusal.status, refusal.code, refusal.message).encode(request.method), False

        with self.lock:
            fault = self.faults.next(request.operation) or {"kind": "none"}
            kind = fault["kind"]
            if kind != "none":
                self.applied[kind] += 1
        if kind == "throttle":
            return self.throttled(fault).encode(request.method), False
        if kind == "conflict":
            return self.conflict(request).encode(request.method), False
        if kind == "error_before":
            return self.failure(fault).encode(request.method), False
        if kind == "cut_before":
            return b"", True
        if kind == "not_http":
            return b"\x00\x01 this is not the protocol you are looking for\r\n\r\n", True
        if kind == "delay":
            time.sleep(fault.get("delay_ms", 100) / 1000)

        answer = self.forward(connection, request)
        if kind == "error_after":
            return self.failure(fault).encode(request.method), False
        if kind == "cut_after":
            return b"", True
        if kind == "garbage":
            answer = Answer(200, [("Content-Type", "application/octet-stream")], b"\xff\xfe{<garbage")
        if kind == "corrupt" and answer.body:
            middle = len(answer.body) // 2
            flipped = bytes([answer.body[middle] ^ 1])
            answer = Answer(answer.status, answer.headers, answer.body[:middle] + flipped + answer.body[middle + 1 :])
        whole = answer.encode(request.method)
        if kind == "cut_answer":
            return whole[: -max(1, len(answer.body) // 2)], True
        return whole, False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy = None

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.upstream = http.client.HTTPConnection(*self.proxy.upstream, timeout=60)

    def finish(self):
        self.upstream.close()
        super().finish()

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        # The target from the request line: the base class "repairs" its own copy.
        request = Request(
            self.command, self.requestline.split(" ")[1], list(self.headers.items()), self.rfile.read(length)
        )
        try:
            reply, close = self.proxy.handle(self.upstream, request)
        except OSError as problem:
            reply, close = self.proxy.error(502, "BadGateway", f"upstream: {problem}").encode(self.command), True
        self.connection.sendall(reply)
        if close:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = serve

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # Clients hang up in the middle of things; that is what these tests are about.


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--service", choices=["dynamodb", "s3"], required=True)
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--access-key", required=True)
    parser.add_argument("--secret-key", required=True)
    parser.add_argument("--session-token", default="")
    parser.add_argument("--region", default="us-east-1")
    options = parser.parse_args()
    Handler.proxy = Proxy(options)
    server = Server(("127.0.0.1", 0), Handler)
    print(f"listening on {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
