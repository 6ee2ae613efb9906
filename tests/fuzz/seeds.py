#!/usr/bin/python3
"""Writes inputs for the fuzz targets to begin with: tests/fuzz/seeds.py FOLDER makes FOLDER/<target>/<number> for each.

They come from the vectors of tests/hostile and from what the unit tests are about. tools/fuzz takes them in beside the kept
corpora; what they reach is kept in those."""
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

seed("request_head",
     b"\0\0GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\1\0\r\nGET /a?b=c HTTP/1.0\r\n\r\n",
     b"\2\0POST /x HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 007\r\nConnection: keep-alive, close\r\n\r\nabcdefg",
     b"\3\0OPTIONS * HTTP/1.1\r\nHost:\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"\4\0CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n",
     b"\5\x84GET /" + b"a" * 100 + b" HTTP/1.1\r\n", b"\6\x90GET / HTTP/1.1\r\n" + b"X: y\r\n" * 30, b"\7\0GET / HTTP/2.0\r\n\r\n",
     b"\0\0\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0\0GET / HTTP/1.1\r\nA:\t b \t\r\nA: \xff\x80\r\n\r\n",
     b"\0\0GET / HTTP/1.1\r\n" + b"a:\r\n" * 257 + b"\r\n", b"\0\0" + b"M" * 65 + b" / HTTP/1.1\r\n\r\n")
seed("response_head",
     b"\0\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"\0\0HTTP/1.0 200\r\n\r\n", b"\1\0HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
     b"\0\0HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n", b"\0\0HTTP/1.1 100 Continue\r\n\r\n", b"\2\0HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
     b"\0\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"\0\0HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
     b"\0\0HTTP/1.1 999 caf\xe9\r\nX : y\r\n\r\n", b"\0\x84HTTP/1.1 200 OK\r\nA: b\r\n" * 4, b"\0\0HTTP/2 200 OK\r\n\r\n", b"\0\0HTTP/1.1 099 x\r\n\r\n")
seed("chunked",
     b"\0005\r\nhello\r\n0\r\n\r\n", b"\1" b"5;a=b;c=\"d\"\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\nEtag: \"a\"\r\n\r\nnext",
     b"\2" b"7fffffffffffffff\r\n", b"\3" b"8000000000000000\r\n", b"\4" b"0000000000000001\r\na\r\n0\r\n\r\n", b"\5" b"00000000000000001\r\n",
     b"\6" b"1\r\na\n0\r\n\r\n", b"\7" b"0\r\nContent-Length: 3\r\n\r\n", b"\7" b"0;" + b"x" * 1023 + b"\r\n\r\n", b"\7" b"0\r\n" + b"a: b\r\n" * 65 + b"\r\n",
     b"\7" b"0\r\na: " + b"b" * 17000 + b"\r\n\r\n", b"\x08" + b"1\r\nx\r\n" * 40 + b"0\r\n\r\n", b"\1" b"-1\r\n", b"\1" b"0x1\r\na\r\n", b"\1" b"1 \r\na\r\n")
seed("field_values",
     "a, b ,,c", '"a,b", c', '"a, b', '"a\\", b", c', 'x"y, z"w', "18446744073709551615", "18446744073709551616", "00042", '"abc"\nW/"abc"',
     "example.com:8080", "[::1]:80", "[::1", 'W/"a b"', '""', '"a\\"b"', ", ,", "close\nKeep-Alive, close", "\t a \t,\tb")
seed("structured_fields",
     "max-age=60, s-maxage=10;x=?0, must-revalidate", "a, b;c=1;d, (e f;g=2.5);h", '"a\\"b\\\\"', "-999999999999999, 123456789012.123, -0.5",
     ":aGVsbG8=:;x", "@1659578233, @-1", '%"f%c3%bc"', "?1, ?0, *tok:en/x", "a=(1 2);b, c=?0", "a;b;b=2, c", "x=1.0000", "()", "a=1,", "1.", '"\\a"', "*=*",
     'hit; fwd=stale; fwd-status=304; key="a b"; detail=x')
seed("http_date",
     b"\x37\0Sun, 06 Nov 1994 08:49:37 GMT", b"\x37\0Sunday, 06-Nov-94 08:49:37 GMT", b"\x37\0Sun Nov  6 08:49:37 1994", b"\x37\0sun, 06 nov 1994 08:49:37 gmt",
     b"\x37\0Sat, 31 Dec 2016 23:59:60 GMT", b"\x37\0Thu, 29 Feb 2024 00:00:00 GMT", b"\x37\0Thu, 29 Feb 2023 00:00:00 GMT", b"\x10\0Wednesday, 15-Nov-49 08:12:31 GMT",
     b"\0\0Thu, 01 Jan 1970 00:00:00 GMT", b"\0\0Fri, 31 Dec 9999 23:59:59 GMT", b"\0\0Sat, 01 Jan 0000 00:00:00 GMT", b"\0\x000", b"\0\0Mon, 06 Nov 1994 08:49:37 GMT",
     b"\xff\xffTuesday, 03-Jan-26 08:49:37 GMT", b"\0\0Sun Nov 16 08:49:37 1994")
seed("origin_url",
     "http://127.0.0.1:8000", "https://[::1]", "https://s3.eu-west-1.amazonaws.com/", "HTTP://Example.COM:80/", "https://user:secret@host", "http://[::ffff:1.2.3.4]:1",
     "http://[fe80::1%eth0]", "http://a:65536", "http://a:0", "http://a:+1", "http://", "ftp://a", "http://a/b", "http://a?b", "//a", "http://[::1", "http://a:", "https://a_b.c-d")


def main():
    folder = pathlib.Path(sys.argv[1])
    for target, inputs in SEEDS.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(inputs):
            (folder / target / f"seed-{i:04}").write_bytes(data)


if __name__ == "__main__":
    main()
