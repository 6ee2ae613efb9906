"""Writes requests signed by botocore, one JSON object a line, for sigv4_test.cc to sign as well and compare.

Everything comes from one seed and one frozen time, so that every run gives the same lines.
"""

import datetime
import json
import random
import sys
from urllib.parse import quote, urlsplit

import botocore.auth
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

RANDOM = random.Random(20240229)
WORDS = [
    "page",
    "a b",
    "a+b",
    "100%",
    "~user",
    "ünïcödé",
    "日本語",
    "😀",
    "x=y&z",
    "semi;colon",
    "quo'te\"s",
    "(paren)",
    "*",
    "!",
    "at@",
    "comma,",
    "dollar$",
    "back\\slash",
    "[bracket]",
    "-_.~",
    "%2F",
    "tab\there",
    "#hash",
    "q?mark",
    ":",
    "|",
    "^",
    "`",
    "{}",
]


class FrozenTime(datetime.datetime):
    current = datetime.datetime(2024, 1, 1)

    @classmethod
    def utcnow(cls):
        return cls.current


class FrozenModule:
    datetime = FrozenTime


botocore.auth.datetime = FrozenModule


def random_time():
    return datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=RANDOM.randrange(40 * 365 * 86400))


def random_credentials(session):
    return Credentials(
        "AKIA" + "".join(RANDOM.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        "".join(RANDOM.choices("abcdefghijABCDEFGHIJ0123456789+/", k=40)),
        "".join(RANDOM.choices("abcXYZ0189+/=", k=RANDOM.randrange(50, 400))) if session else None,
    )


def random_key():
    pieces = [RANDOM.choice(WORDS) for _ in range(RANDOM.randrange(1, 5))]
    return RANDOM.choice(["/", "/", "/", "//"]).join(pieces) + RANDOM.choice(["", "", "", "/"])


def emit(kind, service, method, url, headers=(), body=b"", params=None, session=None):
    FrozenTime.current = random_time()
    region = RANDOM.choice(["eu-west-1", "us-east-1", "ap-southeast-2", "us-gov-west-1", "cn-north-1"])
    credentials = random_credentials(RANDOM.random() < 0.4 if session is None else session)
    request = AWSRequest(method=method, url=url, data=body, params=params)
    for name, value in headers:
        request.headers.add_header(name, value)
    before = [[name, value] for name, value in request.headers.items()]
    auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(credentials, service, region)
    auth.add_auth(request)
    # Parameters are sent as botocore signs them; only for sending would it write a space as '+'.
    if params:
        url += "?" + "&".join(
            quote(name, safe="-_.~") + "=" + quote(value, safe="-_.~") for name, value in params.items()
        )
    parts = urlsplit(url)
    target = url[len(parts.scheme) + 3 + len(parts.netloc) :] or "/"
    added = {}
    for name in ("X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256", "Authorization"):
        values = request.headers.get_all(name)
        if values:
            assert len(values) == 1, (name, values)
            added[name] = values[0]
    print(
        json.dumps(
            {
                "kind": kind,
                "service": service,
                "region": region,
                "method": method,
                "scheme": parts.scheme,
                "host": parts.netloc,
                "target": target,
                "headers": before,
                "body": body.decode(),
                "access_key": credentials.access_key,
                "secret_key": credentials.secret_key,
                "token": credentials.token or "",
                "time": int(FrozenTime.current.replace(tzinfo=datetime.timezone.utc).timestamp()),
                "added": added,
            }
        )
    )


def dynamodb():
    operations = [
        "GetItem",
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "Scan",
        "TransactWriteItems",
        "DescribeTable",
    ]
    for operation in operations * 2:
        body = json.dumps(
            {"TableName": RANDOM.choice(WORDS), "Key": {"pk": {"S": RANDOM.choice(WORDS)}}},
            ensure_ascii=RANDOM.random() < 0.5,
        ).encode()
        emit(
            "dynamodb " + operation,
            "dynamodb",
            "POST",
            RANDOM.choice(
                ["https://dynamodb.eu-west-1.amazonaws.com/", "http://127.0.0.1:8000/", "http://localhost:80/"]
            ),
            [("X-Amz-Target", "DynamoDB_20120810." + operation), ("Content-Type", "application/x-amz-json-1.0")],
            body,
        )
    for path in ["", "/", "/a/../b", "/a/./b/", "//a//b", "/..", "/a%20b", "/a/b/../../../c/", "/ünï~*+"]:
        emit("dynamodb path", "dynamodb", "POST", "http://127.0.0.1:8000" + quote(path, safe="/%~*+."), [], b"{}")


def s3_objects():
    hosts = [
        "https://bucket.s3.eu-west-1.amazonaws.com/",
        "http://127.0.0.1:4568/bucket/",
        "https://s3.us-east-1.amazonaws.com:443/b/",
    ]
    for method in ["GET", "PUT", "HEAD", "DELETE"] * 6:
        headers = []
        body = b""
        if method == "PUT":
            body = "".join(RANDOM.choices(WORDS, k=RANDOM.randrange(0, 20))).encode()
            headers = [
                ("Content-Type", "text/html; charset=utf-8"),
                ("x-amz-meta-facetheory-status", "200"),
                ("X-Amz-Meta-Spaces", "  two  inner   spaces\t and a tab "),
                ("x-amz-meta-empty", ""),
            ]
            if RANDOM.random() < 0.5:
                headers += [("x-amz-meta-twice", "one"), ("X-Amz-Meta-Twice", " two  ")]
            if RANDOM.random() < 0.5:
                headers += [("x-amz-meta-text", quote(RANDOM.choice(WORDS))), ("User-Agent", "facetheory")]
        emit("s3 " + method, "s3", method, RANDOM.choice(hosts) + quote(random_key(), safe="/-_.~"), headers, body)
    for path in ["//a", "/a//b/", "/./a", "/a/../b", "/%2e%2e/x", "/a%2Fb", "/+", "/a%2Bb", "/~", "/"]:
        emit("s3 path", "s3", "GET", "https://bucket.s3.eu-west-1.amazonaws.com" + path)


def s3_lists():
    base = "https://bucket.s3.eu-west-1.amazonaws.com/"
    for word in WORDS:
        params = [("list-type", "2"), ("prefix", "isr/" + word)]
        extra = RANDOM.randrange(3)
        if extra == 1:
            params.append(("continuation-token", "1/" + "".join(RANDOM.choices("abcXYZ+/=", k=40))))
        elif extra == 2:
            params.append(("start-after", word + "/" + RANDOM.choice(WORDS)))
        params.append(("max-keys", str(RANDOM.randrange(1, 1001))))
        RANDOM.shuffle(params)
        emit("s3 list", "s3", "GET", base, params=dict(params))
        encoded = "&".join(quote(name, safe="-_.~") + "=" + quote(value, safe="-_.~") for name, value in params)
        emit("s3 list in the url", "s3", "GET", base + "?" + encoded)
    for query in [
        "acl",
        "acl=",
        "uploads",
        "prefix=&list-type=2",
        "a=2&a=1&a=",
        "a=1&a=1",
        "b&a&c=",
        "a=b=c",
        "a-=1&a=2&A=3&a.=4",
        "=x",
        "a&&b",
        "%C3%BC=1&z=2",
        "a%20b=c%2Bd&a=1",
    ]:
        emit("s3 query", "s3", "GET", base + "?" + query)


dynamodb()
s3_objects()
s3_lists()
emit("session token", "s3", "GET", "https://bucket.s3.eu-west-1.amazonaws.com/k", session=True)
emit("session token", "dynamodb", "POST", "http://127.0.0.1:8000/", body=b"{}", session=True)
sys.stdout.flush()
