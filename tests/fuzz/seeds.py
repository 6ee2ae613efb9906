#!/usr/bin/python3
"""Writes inputs for the fuzz targets to begin with: tests/fuzz/seeds.py FOLDER makes FOLDER/<target>/<number> for each.

They come from the vectors of tests/hostile and from what the unit tests are about. tools/fuzz takes them in beside the
kept corpora; what they reach is kept in those."""
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "hostile"))

SEEDS = {}


def seed(target, *inputs):
    SEEDS.setdefault(target, []).extend(text.encode() if isinstance(text, str) else text for text in inputs)


def from_hostile_vectors():
    import vectors

    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: site.test\r\n\r\n"
    for vector in vectors.VECTORS:
        data = vector.data.replace(b"<P>", b"/page").replace(b"<S#>", b"%d" % len(smuggled)).replace(b"<S>", smuggled)
        head, found, body = data.partition(b"\r\n\r\n")
        seed("request_head", b"\x07\x00" + data[:2000])
        if found and b"chunked" in head.lower():
            seed("chunked", b"\x05" + body)


from_hostile_vectors()

seed(
    "request_head",
    b"\0\0GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\1\0\r\nGET /a?b=c HTTP/1.0\r\n\r\n",
    b"\2\0POST /x HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 007\r\nConnection: keep-alive, close\r\n\r\nabcdefg",
    b"\3\0OPTIONS * HTTP/1.1\r\nHost:\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"\4\0CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n",
    b"\5\x84GET /" + b"a" * 100 + b" HTTP/1.1\r\n",
    b"\6\x90GET / HTTP/1.1\r\n" + b"X: y\r\n" * 30,
    b"\7\0GET / HTTP/2.0\r\n\r\n",
    b"\0\0\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\0\0GET / HTTP/1.1\r\nA:\t b \t\r\nA: \xff\x80\r\n\r\n",
    b"\0\0GET / HTTP/1.1\r\n" + b"a:\r\n" * 257 + b"\r\n",
    b"\0\0" + b"M" * 65 + b" / HTTP/1.1\r\n\r\n",
)
seed(
    "response_head",
    b"\0\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"\0\0HTTP/1.0 200\r\n\r\n",
    b"\1\0HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    b"\0\0HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n",
    b"\0\0HTTP/1.1 100 Continue\r\n\r\n",
    b"\2\0HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"\0\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"\0\0HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    b"\0\0HTTP/1.1 999 caf\xe9\r\nX : y\r\n\r\n",
    b"\0\x84HTTP/1.1 200 OK\r\nA: b\r\n" * 4,
    b"\0\0HTTP/2 200 OK\r\n\r\n",
    b"\0\0HTTP/1.1 099 x\r\n\r\n",
)
seed(
    "chunked",
    b"\0005\r\nhello\r\n0\r\n\r\n",
    b"\1" b"5;a=b;c=\"d\"\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\nEtag: \"a\"\r\n\r\nnext",
    b"\2" b"7fffffffffffffff\r\n",
    b"\3" b"8000000000000000\r\n",
    b"\4" b"0000000000000001\r\na\r\n0\r\n\r\n",
    b"\5" b"00000000000000001\r\n",
    b"\6" b"1\r\na\n0\r\n\r\n",
    b"\7" b"0\r\nContent-Length: 3\r\n\r\n",
    b"\7" b"0;" + b"x" * 1023 + b"\r\n\r\n",
    b"\7" b"0\r\n" + b"a: b\r\n" * 65 + b"\r\n",
    b"\7" b"0\r\na: " + b"b" * 17000 + b"\r\n\r\n",
    b"\x08" + b"1\r\nx\r\n" * 40 + b"0\r\n\r\n",
    b"\1" b"-1\r\n",
    b"\1" b"0x1\r\na\r\n",
    b"\1" b"1 \r\na\r\n",
)
seed(
    "field_values",
    "a, b ,,c",
    '"a,b", c',
    '"a, b',
    '"a\\", b", c',
    'x"y, z"w',
    "18446744073709551615",
    "18446744073709551616",
    "00042",
    '"abc"\nW/"abc"',
    "example.com:8080",
    "[::1]:80",
    "[::1",
    'W/"a b"',
    '""',
    '"a\\"b"',
    ", ,",
    "close\nKeep-Alive, close",
    "\t a \t,\tb",
)
seed(
    "structured_fields",
    "max-age=60, s-maxage=10;x=?0, must-revalidate",
    "a, b;c=1;d, (e f;g=2.5);h",
    '"a\\"b\\\\"',
    "-999999999999999, 123456789012.123, -0.5",
    ":aGVsbG8=:;x",
    "@1659578233, @-1",
    '%"f%c3%bc"',
    "?1, ?0, *tok:en/x",
    "a=(1 2);b, c=?0",
    "a;b;b=2, c",
    "x=1.0000",
    "()",
    "a=1,",
    "1.",
    '"\\a"',
    "*=*",
    'hit; fwd=stale; fwd-status=304; key="a b"; detail=x',
)
seed(
    "http_date",
    b"\x37\0Sun, 06 Nov 1994 08:49:37 GMT",
    b"\x37\0Sunday, 06-Nov-94 08:49:37 GMT",
    b"\x37\0Sun Nov  6 08:49:37 1994",
    b"\x37\0sun, 06 nov 1994 08:49:37 gmt",
    b"\x37\0Sat, 31 Dec 2016 23:59:60 GMT",
    b"\x37\0Thu, 29 Feb 2024 00:00:00 GMT",
    b"\x37\0Thu, 29 Feb 2023 00:00:00 GMT",
    b"\x10\0Wednesday, 15-Nov-49 08:12:31 GMT",
    b"\0\0Thu, 01 Jan 1970 00:00:00 GMT",
    b"\0\0Fri, 31 Dec 9999 23:59:59 GMT",
    b"\0\0Sat, 01 Jan 0000 00:00:00 GMT",
    b"\0\x000",
    b"\0\0Mon, 06 Nov 1994 08:49:37 GMT",
    b"\xff\xffTuesday, 03-Jan-26 08:49:37 GMT",
    b"\0\0Sun Nov 16 08:49:37 1994",
)
seed(
    "origin_url",
    "http://127.0.0.1:8000",
    "https://[::1]",
    "https://s3.eu-west-1.amazonaws.com/",
    "HTTP://Example.COM:80/",
    "https://user:secret@host",
    "http://[::ffff:1.2.3.4]:1",
    "http://[fe80::1%eth0]",
    "http://a:65536",
    "http://a:0",
    "http://a:+1",
    "http://",
    "ftp://a",
    "http://a/b",
    "http://a?b",
    "//a",
    "http://[::1",
    "http://a:",
    "https://a_b.c-d",
)

seed(
    "cache_control",
    b"\x05\x0a\1Cache-Control: max-age=60, no-cache=\"Set-Cookie, X-A\", private=x\n"
    b"CDN-Cache-Control: max-age=1;x, no-store",
    b"\x05\xfa\1Cache-Control: max-stale=100, min-fresh=3, only-if-cached, no-transform",
    b"\x05\xfa\1Cache-Control: max-stale\ncache-control: max-age=soon",
    b"\x05\x0a\2Cache-Control: public=x, s-maxage=\"10\", stale-while-revalidate, stale-if-error=99999999999",
    b"\0\0\0pragma: no-cache",
    b"\0\1\0Cache-Control: no-store; private, max-age =10, must-revalidate=?, proxy-revalidate, must-understand",
    b"\0\0\0CDN-Cache-Control: max-age=?0, no-cache=?1, private=\"a\", must-revalidate=?0, s-maxage=-1",
)
for response in [
    "Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:49:37 GMT\nAge: 10",
    "Expires: Sun, 06 Nov 2044 08:49:37 GMT\nVary: Accept, Cookie\nETag: \"x\"",
    "Cache-Control: s-maxage=1, stale-while-revalidate=5, stale-if-error=7\nCache-Tag: a,b,, c\nSurrogate-Key: d e",
    "Set-Cookie: a=b\nCache-Control: public",
    "CDN-Cache-Control: max-age=5\nCache-Control: no-store",
    "Surrogate-Control: no-store\nCache-Control: max-age=9",
    "Cache-Groups: \"a\", \"b\";x\nCache-Control: must-understand, no-store",
    "Cache-Control: no-cache=\"x-a\", private=\"x-b\", max-age=10\nX-A: 1\nX-B: 2\nConnection: x-c\nX-C: 3\n"
    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
    "Vary: *",
    "Expires: 0",
    "Age: 5, 6\nDate: never\nCache-Control: max-age=2147483649",
    "Cache-Control: stale-while-revalidate",
]:
    for front in (b"\0\0\0\0", b"\0\1\x03\1", b"\0\2\xff\x1e", b"\0\3\0\1", b"\0\xff\x19\0\0"):
        seed(
            "storing",
            front + b"Authorization: Basic x\n\n" + response.encode(),
            front + b"\n\n" + response.encode(),
            front + b"Cache-Control: no-store\n\n" + response.encode(),
        )
TARGETS = [
    "/",
    "http",
    "https",
    "http:",
    "/a/b?c=d&e",
    "/%41%2f%2e%c3%bc",
    "/a/../b",
    "/a/%2e%2e/b",
    "/a%2F..%5c",
    "/..;x/",
    "/%00",
    "/a%",
    "//a//b/",
    "http://Example.com:80/a?b",
    "https://[::1]:443",
    "*",
    "/a?b#c",
    "http://u@h/",
    "/\xc3\xbc",
    "/a;b=c/.",
    "/%252e%252e/",
    "/a\\..\\b",
    "/?%zz&%41=%42",
    "http://a.b.?x",
]
for target in TARGETS:
    seed(
        "request_target",
        b"\0" + target.encode() + b"\nHost: example.com:8080",
        b"\1" + target.encode() + b"\nHost: [::1]:80\nX-Forwarded-Proto: http, https",
        b"\1" + target.encode() + b"\nHost: EXAMPLE.com.:443\nX-Forwarded-Proto: https",
    )
for vary in [
    "Accept-Encoding",
    "accept, Accept-Language",
    "Cookie, User-Agent, x-list",
    "*",
    "a b",
    "Authorization",
    "x-a,x-a, x-b",
    "accept-charset",
]:
    seed(
        "vary",
        vary
        + "\nAccept-Encoding: gzip;q=0.5, br, *;q=0\nAccept-Language: de, en;q=0.8 , fr ; q=0.123\nCookie: a=b; c=d\n"
        "x-list: a, \"b,c\" ,d\nx-a: =x\naccept: text/*;level=1;q=1.000\nuser-agent: a, b\n\n"
        "accept-encoding: identity;q=0, zstd\nx-list: a,\"b,c\",d\naccept-language: en\nx-b:\n"
        "authorization: Basic x",
        vary + "\nx-list: " + "a" * 210 + "\nx-b: %=&\n\nx-b:\nx-a:",
    )
for request in [
    "If-None-Match: W/\"a\", \"b\"",
    "If-None-Match: *",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
    "Range: bytes=0-4",
    "Range: bytes=-5",
    "Range: bytes=5-",
    "Range: bytes=0-1,3-4",
    "Range: items=1",
    "Range: bytes=10-",
    "Range: bytes=9-3",
    "Range: bytes=-0",
    "If-Range: \"a\"\nRange: bytes=1-2",
    "If-Range: Sun, 06 Nov 1994 08:49:37 GMT\nRange: bytes=1-2",
    "If-Range: W/\"a\"\nRange: bytes=1-2",
    "Range: bytes=18446744073709551615-18446744073709551616",
    "If-None-Match: \"x\"\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
    "ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
]:
    for front in (b"\0\0\0\3\"a\"\n", b"\1\0\1\2W/\"a\"\n", b"\0\0\4\1\n", b"\0\1\2\0\"a\"\n"):
        seed("preconditions", front + request.encode())
seed(
    "replay",
    "x-a\nConnection: x-c, close, cookie\nX-C: 1\nCookie: a\nContent-Type: text/html\nContent-Encoding: gzip\n"
    "ETag: \"a\"\nX-FaceTheory-ISR: hit\nX-A: 1\nAge: 4\nSet-Cookie: a=b\nLink: x\nLink: y\n"
    "\nLink: z\nContent-Encoding: br\nContent-Type: text/plain\nContent-Length: 4\nTransfer-Encoding: chunked\n"
    "Cache-Tag: q",
    "\nTE: trailers\nTrailer: x\nUpgrade: h2c\nProxy-Authorization: x\nKeep-Alive: 5\n\nVary: a",
)
for reference in [
    "/a/../b?c#d",
    "b/./c",
    "?x",
    "",
    "//example.com/x",
    "//evil.test/x",
    "https://example.com:443/y",
    "HTTPS://EXAMPLE.com",
    "http://example.com/",
    "mailto:x",
    "../../..",
    "/a//b/",
    "https://example.com\\x",
    "/%2e%2e/",
    "https://example.com?q",
    ":x",
    "a:b",
    "./",
]:
    seed(
        "invalidation",
        "/p/q/r?s=t\n"
        + reference
        + "\nLocation: "
        + reference
        + "\nContent-Location: /other\nCache-Group-Invalidation: \"a\", \"b\"",
    )
seed(
    "route",
    "/news/archive\n/news/{slug}\n/news/{slug}/edit\n/docs/{rest...}\n/docs/{rest*}\n/*\n/\n\n/news/archive\n/news/x\n"
    "/news/x/edit\n/docs\n/docs/\n/docs/a//b\n/\n//\n/news/",
    "/{a}/{b}/{c}\n/{a}/x/{c}\n/{a}/{b*}\n/x/{b+}\n/%41/%c3\n\n/1/2/3\n/1/x/3\n/x/y\n/A/%C3\n/1",
    "/{a}{b}\n/a*\n/{a...}/b\n/{a}/{a}\n/{1}\nx\n/..\n/a?b\n/%zz\n/"
    + "/".join("{v%d}" % i for i in range(17))
    + "\n\n/x",
    "/{x*}\n/{x...}\n/{x}\n\n/\n/a\n/a/b",
)
KEYS = """cache revalidate mode stale_for wait_limit on_failure on_contention history ttl lease not_found gone tags
query cookies ignore_cookies other_cookies headers forward client_freshness
tenant bypass key preset pattern hosts methods origin""".split()
CONFIGS = [
    "",
    'origin = "http://127.0.0.1:3000"\n',
    'origin = "http://127.0.0.1:3000"\nlisten = ["127.0.0.1:8080", "[::1]:8080"]\nadmin = "off"\nthreads = 2\n'
    'memory = "64MiB"\ntrusted_peers = ["10.0.0.0/8", "::1"]\naccess_log = "json"\n'
    '[limits]\nheader_bytes = "16KiB"\nbody_bytes = 1000\nheader_timeout = "5s"\nconnections = 10\n[origins.api]\n'
    'url = "https://api.example"\nverify_tls = false\nhost = "origin"\nconnections = 4\nread_timeout = "3s"\n'
    '[defaults]\nrevalidate = "5m"\n[[routes]]\npattern = "/a/{b}"\ntags = ["x-{b}"]\norigin = "api"\n[[routes]]\n'
    'pattern = "/*"\nhosts = ["*.example.com"]\nmethods = ["GET"]\n',
    'origin = "http://h"\n[[routes]]\npattern = "/x/{proxy*}"\nkey = "facetheory"\ntenant = "host"\n'
    'query = { include = ["a*"], ignore = ["b"], tracking = "keep" }\n'
    'bypass = { paths = ["/x/admin/*"], cookies = ["s"], headers = ["authorization"] }\n'
    'cookies = ["lang"]\nother_cookies = "strip"\nmode = "blocking"\non_contention = "wait"\nstale_for = "forever"\n'
    'ttl = "never"\nhistory = 3\nlease = "10s"\nforward = ["accept*"]\nclient_freshness = "honour"\npreset = "none"\n',
    'table = "dynamodb:x"\nbodies = "s3://b/p"\npointer_ttl = "1s"\norigin = "default"\n[origins.default]\n'
    'url = "http://h:1"\nhost = "fixed.example"\nca_file = "x"\n',
    'orign = 1\n',
    'a = [1, {b = 2}, """x\ny"""]\n',
    'x = 1979-05-27T07:32:00Z\ny = 1.5\n',
    "data = \"\"\norigin = \"http://h\"\n[[routes]]\npattern = \"/a\"\n[[routes]]\npattern = \"/a\"\n",
]
seed(
    "config",
    *CONFIGS,
    *(
        'origin = "http://h"\n[[routes]]\npattern = "/a"\n%s = %s\n' % (key, value)
        for key in KEYS
        for value in ('"0s"', "1", "true", '["a", "b*"]', "{}")
    ),
)
seed(
    "addresses",
    "10.0.0.0/8",
    "192.0.2.1",
    "2001:db8::/32",
    "::ffff:10.0.0.0/104",
    "::1",
    "10.0.0.1/8",
    "0.0.0.0/0",
    "::/0",
    "fe80::1%eth0",
    "1.2.3",
    "1.2.3.4/33",
    "30s",
    "1500ms",
    "5m",
    "2h",
    "7d",
    "36525d",
    "36526d",
    "99999999999999999999s",
    "-1s",
    "1.5s",
    "10",
    "",
    "\u00fc\U0001F600",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    b"a\xffb",
)
seed(
    "access_log",
    b"\x32\x01\x10/news?id=1\ncurl/8 x\nhttp://r\nexample.org\nGET\nabc\nwhy",
    b"\0\0\0/\"\\\x1b[2J\n\xe2\x80\xae\xff\n\xc2\x9b\n\n\n\n" + b"x" * 3000,
    "\0\0\0/\u2028\u200b\ufeff\n\t\r\0\x7f\n\u202e\u2066",
)
REQUESTS = [
    "GET /news/x?page=2&utm_source=a&q=%41&Q=1",
    "HEAD /news/%41%42?q1=a+b&q1=c",
    "GET /all/a/b?b=2&a=1&a=0&&c",
    "GET /shop/?x=%zz",
    "GET /team/a",
    "GET /theory/x/y/z?b=1&a=%C3%BC",
    "GET /theory/x?a+b=c",
    "GET /next/_next/data/x.json?_rsc=1&nxtPa=b&__nextLocale=c",
    "POST /news/x",
    "GET /pass/x",
    "GET http://a.example/all/x",
    "GET /all/x#y",
    "GET /theory/x/",
    "GET /theory/x",
    "GET https",
]
HEADERS = [
    "Host: example.com\nAccept-Language: de\nX-Variant: a\nX-Variant: b\nAuthorization: Bearer x\n"
    "Cookie: a=b; c=d; a=e",
    "Host: EXAMPLE.com:80\nCookie: lang=de; theme=x; country=ch; =x; y\nX-Tenant-Id: acme",
    "Host: [::1]:8080\nRSC: 1\nNext-Url: /x\nx-nextjs-data: 1\nx-middleware-subrequest: a\n"
    "Cookie: flag=1; flagx=2; lang=",
    "Host: a.b\nX-Variant: " + "v" * 70 + "\nCookie: =a=b; session=1; __prerender_bypass=1\nX-Api-Key: k",
    "Host: a.b\nConnection: x-variant, cookie\nX-Forwarded-Proto: https\nX-Variant: %20 h:x=y\n"
    "Cookie: \"a;b\"=c; d e=f",
]
for request in REQUESTS:
    for i, headers in enumerate(HEADERS):
        other = REQUESTS[(len(request) + i) % len(REQUESTS)] if i % 2 else request
        seed(
            "page_key",
            ("\1" if i % 2 else "\0")
            + request
            + "\n"
            + headers
            + "\n\n"
            + other
            + "\n"
            + HEADERS[(i + 1) % len(HEADERS)],
        )


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def sized(data):
    return varint(len(data)) + data


def encoded(value):
    """As item_codec.cc has it: the type's number in the order S N B BOOL NULL L M SS NS BS, then the content."""
    kind, content = value
    number = ["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"].index(kind)
    if kind in "SNB":
        body = sized(content)
    elif kind == "BOOL":
        body = bytes([content])
    elif kind == "NULL":
        body = b""
    elif kind == "L":
        body = varint(len(content)) + b"".join(map(encoded, content))
    elif kind == "M":
        body = attributes(content)
    else:
        body = varint(len(content)) + b"".join(map(sized, content))
    return bytes([number]) + body


def attributes(content):
    return varint(len(content)) + b"".join(sized(name) + encoded(value) for name, value in sorted(content.items()))


VALUES = {
    b"s": ("S", b"text"),
    b"n": ("N", b"-12.5"),
    b"b": ("B", b"\0\xff"),
    b"t": ("BOOL", 1),
    b"u": ("NULL", None),
    b"l": ("L", [("S", b""), ("L", [("N", b"0")])]),
    b"m": ("M", {b"a": ("S", b"x"), b"b": ("M", {})}),
    b"ss": ("SS", [b"a", b"b"]),
    b"ns": ("NS", [b"1", b"2.5"]),
    b"bs": ("BS", [b"\0", b"\1"]),
}
seed(
    "item_codec",
    attributes(VALUES),
    attributes({}),
    *(attributes({name: value}) for name, value in VALUES.items()),
    attributes({b"d": ("L", [("L", [("L", [("NULL", None)])])])}),
    b"\xff" * 10,
    b"\x80\x01",
)
nested = ("NULL", None)
for _ in range(45):
    nested = ("L", [nested])
seed("item_codec", attributes({b"deep": nested}))
seed(
    "lmdb_keys",
    "CACHE#a\nMETA\nCACHE#a\nVER#1",
    b"a\xf0\nb\xf0\na\xf0\nb\xf1",
    b"p\nx\xff\np\nx",
    b"\x01\x07CACHE#aMETA",
    b"\x02" + b"h" * 32 + b"META",
    b"\x01\x80" + b"p" * 128 + b"s" * 380 + b"\x01",
    b"\x01\x00s",
    b"\x03x",
)
ITEM = '{"pk":{"S":"CACHE#x"},"sk":{"S":"%s"},%s}'
META = (
    '"s3_key":{"S":"a/1-b.isr.html"},"generated_at":{"N":"1700000000"},"revalidate_seconds":{"N":"60"},'
    '"etag":{"S":"\\"x\\""},"ttl":{"N":"1800000000.5"},"version":{"N":"3"},"tags":{"SS":["a","b"]},'
    '"pinned":{"BOOL":false},"current_sk":{"S":"VER#1"}'
)
LOCK = (
    '"lease_token":{"S":"t"},"lease_expires_at":{"N":"1700000030"},"failures":{"N":"2"},"last_error":{"S":"e"},'
    '"backoff_token":{"S":"t"},"owner":{"S":"o"}'
)
REQUEST = (
    '"request_hash":{"S":"h"},"status":{"S":"%s"},"attempt":{"N":"1"},"ttl":{"N":"1"},"retryable":{"BOOL":false},'
    '"result_s3_key":{"S":"k"}'
)
ROWS = [
    (0, ITEM % ("META", META)),
    (1, ITEM % ("LOCK", LOCK)),
    (2, ITEM % ("VER#01", META + ',"status":{"N":"200"},"content_type":{"S":"text/html"}')),
    *((3, ITEM % ("REQ#k", REQUEST % status)) for status in ("STARTED", "COMPLETED", "FAILED", "?")),
    (4, '{"pk":{"S":"TAG#a"},"sk":{"S":"META"},"invalidated_at":{"N":"5"},"purged_at":{"N":"-1e3"}}'),
    (0, ITEM % ("META", '"s3_key":{"N":"1"},"generated_at":{"N":"9007199254740993"}')),
    (
        0,
        ITEM
        % (
            "META",
            '"s3_key":{"S":""},"generated_at":{"N":"-9007199254740992"},"revalidate_seconds":{"N":"9007199254740992"},'
            '"last_generated_at":{"N":"-0.5"},"cache_key":{"S":"k"}',
        ),
    ),
]
seed("rows", *(bytes([kind]) + text.encode() for kind, text in ROWS))
seed(
    "dynamodb_json",
    *(text for _, text in ROWS),
    '{"B":"AP8="}',
    '{"B":"AP8"}',
    '{"NULL":true}',
    '{"L":[{"M":{"a":{"NS":["1","2.50"]}}},{"BS":["AA==","AQ=="]}]}',
    '{"SS":[]}',
    '{"SS":["a","a"]}',
    '{"NS":["1","1.0"]}',
    '{"N":"1e400"}',
    '{"S":"\\u00fc\\ud83d\\ude00"}',
    '{"S":1}',
    '{"X":1}',
    '{"S":"a","N":"1"}',
    "[1,2.5,null]",
    '{"L":' * 40 + "[]" + "}" * 40,
)
seed(
    "number",
    "12\n-0.50\n1.5e10",
    "0\n-0\n0.0",
    "99999999999999999999999999999999999999\n1",
    "9.9999999999999999999999999999999999999e125\n1e-130",
    "1e126\n1e-131",
    "+5\n-5",
    "9223372036854775807\n9223372036854775808\n-9223372036854775808",
    ".5\n5.\n.",
    "1e+5\n1E-5\n1e",
    "00012.3400\n12.34",
    "1e99999\n1e-100001",
    "0.1\n0.2\n-0.3",
    "1e37\n1e-1\n-1e37",
)
seed(
    "page_names",
    "acme\n/news/42\narticle-1\nCACHE#" + "a" * 64 + "\nb=2\na=1\nlang=de\nauthorization=x",
    "\n/x\n\nTENANT#acme#CACHE#" + "0" * 64,
    "a#b\n/\n#\nTENANT##CACHE#x",
    "a::/b\n/x/{y}\nt\nCACHE#a::/x?b=c#auth=d",
    "\u00fc\n\u00fc\n\u00fc\nTAG#x",
    "t\n/r\nx\n" + "0" * 24 + "/1700000000000-00000000-0000-4000-8000-000000000000.isr.html",
    "t\n/r\nx\nVER#01JCQ5ABCDEFGHJKMNPQRSTVWX\n\u00e9=1\ne\u0301=2\nB=3\na=4",
    b"\xff\n\xff\n\xff\n\xff\n\xff=\xff",
)
seed(
    "body_metadata",
    b"\0facetheory-status: 404\nfacetheory-content-type: text/html\n"
    b"facetheory-content-security-policy: default-src 'self'\nfacetheory-sha256: "
    + b"a" * 64
    + b'\nfacetheory-headers: [["content-security-policy"],["cache-tag","a"],["x","\\u00e9 b"]]',
    b"\0facetheory-status: 99",
    b"\0facetheory-headers: [[1]]",
    b'\0facetheory-headers: [["content-type","x"],["content-security-policy","y"]]',
    b"\0facetheory-content-security-policy: x",
    b"\0other: x",
    b'\1{"format":1,"key":"a/b","status":200,"content_type":"text/html","headers":[["cache-tag","a"],["x","\\u00ff"]],'
    b'"sha256":"' + b"a" * 64 + b'","size":5}',
    b'\1{"format":2}',
    b'\1{"format":0}',
    b'\1{"format":1,"key":1}',
    b'\1{"format":1,"key":"a","status":1e2,"content_type":"","headers":[[]],"sha256":"","size":18446744073709551615}',
    b'\1{"format":1,"key":"a","status":-1,"content_type":"\\u0100","headers":[],"sha256":"","size":-1}',
)
LIST = (
    '<?xml version="1.0"?><ListBucketResult><IsTruncated>%s</IsTruncated><Contents>'
    '<Key>pages/a&amp;b</Key><LastModified>2026-11-15T08:55:12.000Z</LastModified><Size>%s</Size></Contents>'
    '<Contents><Key>  </Key><LastModified>%s</LastModified><Size>0</Size></Contents>%s</ListBucketResult>'
)
seed(
    "aws_answers",
    "\0" + LIST % ("false", "5", "2026-11-15T08:55:12Z", ""),
    "\0" + LIST % ("true", "5", "2026-11-15T08:55:12.5Z", "<NextContinuationToken>x</NextContinuationToken>"),
    "\0" + LIST % ("true", "-1", "x", ""),
    "\0<Error><Code>NoSuchKey</Code><Message>m</Message><Region>eu</Region></Error>",
    '\1{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2024-01-31T23:59:59Z"}',
    '\1{"Code":"Failed","Message":"m"}',
    '\1{"AccessKeyId":"A","SecretAccessKey":"S","Expiration":"2024-01-31T23:59:59.123+00:00"}',
    '\1{"AccessKeyId":"A","SecretAccessKey":"S","Expiration":"2024-13-01T-1:99:99Z"}',
    "\2[default]\naws_access_key_id = A\nregion=eu-west-1\n[profile  'my name']\ns3 =\n  endpoint_url = http://x\n"
    "  plain\n# c\n; c\n[services local]\ndynamodb =\n\tendpoint_url = y",
    "\2[x\n",
    "\2a = b",
    "\2[ ]\n",
    "\2[a]\n= b",
    "\2[a]\nnonsense",
)


def main():
    folder = pathlib.Path(sys.argv[1])
    for target, inputs in SEEDS.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(inputs):
            (folder / target / f"seed-{i:04}").write_bytes(data)


if __name__ == "__main__":
    main()
