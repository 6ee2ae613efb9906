"""Requests that two readers might read in two ways, each with the reason why it is here and what must become of it.

<P> stands for the path of a page that is a hit, a miss or stale; <S> for a whole request to /smuggled, which nobody
must ever answer or pass on; <S#> for its length. What must become of a vector:

  REFUSED   4xx or 5xx, the connection closed, nothing at the origin
  PAGE      the page of <P>; the connection goes on
  CLOSED    the page of <P>, and the connection closed: the body that nobody needs is broken, or is never sent, or it is
            HTTP/1.0
  CUT       4xx or nothing, the connection closed; the origin may see the beginning of the one request, and then its
            connection's end
  Passed    exactly one request at the origin, with this method, target, host and body
"""


class Passed:
    def __init__(self, method="POST", target="<P>", host="site.test", body=b"", closed=False):
        self.method, self.target, self.host, self.body, self.closed = method, target, host, body, closed

    def __repr__(self):
        return f"Passed {self.method} {self.target}"


REFUSED, PAGE, CLOSED, CUT = "REFUSED", "PAGE", "CLOSED", "CUT"
OWN = "<own>"  # As a host: the address that the client has connected to.


class Vector:
    def __init__(self, name, why, data, then, statuses=None):
        self.name, self.why, self.data, self.then, self.statuses = name, why, data, then, statuses


VECTORS = []


def add(name, why, data, then, statuses=None):
    VECTORS.append(Vector(name, why, data, then, statuses))


def request(*lines, method=b"GET", target=b"<P>", version=b"HTTP/1.1", host=b"Host: site.test", body=b"", end=b"\r\n"):
    parts = [method + b" " + target + b" " + version] + ([host] if host is not None else []) + list(lines)
    return end.join(parts) + end + end + body


def post(*lines, body=b"", **options):
    return request(*lines, method=b"POST", body=body, **options)


def show(data):
    return repr(data)[2:-1].replace(" ", "␣")


CHUNKED = b"3\r\nabc\r\n0\r\n\r\n"
TE = b"Transfer-Encoding: "
CL = b"Content-Length: "

# --- Content-Length and Transfer-Encoding, in every spelling and order ---

PLAIN_CODINGS = [
    b"chunked",
    b"Chunked",
    b"CHUNKED",
    b"chunKeD",
    b" chunked",
    b"\tchunked",
    b"chunked ",
    b"chunked\t",
    b" \t chunked \t ",
]
ODD_CODINGS = [
    (b"\x0bchunked", "some take a vertical tab for a space"),
    (b"\x0cchunked", "some take a form feed for a space"),
    (b"chunked\x0b", "some take a vertical tab for a space"),
    (b"chunked\x0c", "some take a form feed for a space"),
    (b"chunked\x00", "the end of a text for a reader in C"),
    (b"\x00chunked", "an empty text for a reader in C"),
    (b"chunked, identity", "chunked is not the last"),
    (b"identity, chunked", "identity is no coding any more"),
    (b"identity", "no coding any more: some ignore it, some read until the end"),
    (b"xchunked", "some look for the word anywhere"),
    (b"chunkedx", "some compare seven letters"),
    (b"chunked-ish", "some compare seven letters"),
    (b"chunked;q=1", "a parameter"),
    (b"chunked;", "an empty parameter"),
    (b"chunked,", "an empty element"),
    (b",chunked", "an empty element"),
    (b", , chunked", "empty elements"),
    (b"chunked,chunked", "twice"),
    (b"chunked, chunked", "twice"),
    (b'"chunked"', "quoted"),
    (b"'chunked'", "quoted"),
    (b"(chunked)", "a comment"),
    (b"gzip, chunked", "a coding before it that is not undone here"),
    (b"chunked, gzip", "chunked is not the last"),
    (b"gzip", "chunked is missing"),
    (b"", "empty: some ignore it"),
    (b"chu nked", "a space within"),
    (b"chunked chunked", "two words"),
    (b"cow", "unknown"),
    (b"\xa0chunked", "a space in Latin-1"),
    (b"chun\xe2\x84\xaaed", "the Kelvin sign becomes k in lower case"),
    (b"\xef\xbb\xbfchunked", "a byte order mark"),
    (b"chunked\xff", "a byte beyond ASCII"),
    (b"chunked\r\n\t, identity", "folded"),
    (b"\r\n chunked", "folded"),
    (b"\rchunked", "a bare CR"),
    (b"chunked\r", "a bare CR"),
    (b"chunked\nX: y", "a bare LF"),
]

for coding in PLAIN_CODINGS:
    add(f"TE {show(coding)}", "this is chunked", post(TE + coding, body=CHUNKED), Passed(body=b"abc"))
for coding in PLAIN_CODINGS:
    add(
        f"CL then TE {show(coding)}",
        "both lengths",
        post(CL + b"<S#>", TE + coding, body=b"0\r\n\r\n<S>"),
        REFUSED,
        {400},
    )
    add(
        f"TE {show(coding)} then CL",
        "both lengths",
        post(TE + coding, CL + b"4", body=b"5c\r\n<S>\r\n0\r\n\r\n"),
        REFUSED,
        {400},
    )
for coding, reason in ODD_CODINGS:
    add(f"TE {show(coding)}", reason, post(TE + coding, body=b"0\r\n\r\n<S>"), REFUSED, {400, 501})
    add(f"CL then TE {show(coding)}", reason, post(CL + b"5", TE + coding, body=b"0\r\n\r\n<S>"), REFUSED, {400})
    add(f"GET with TE {show(coding)}", reason, request(TE + coding, body=b"0\r\n\r\n<S>"), REFUSED, {400, 501})

for line, reason in [
    (b"Transfer-Encoding : chunked", "space before the colon"),
    (b"Transfer-Encoding\t: chunked", "tab before the colon"),
    (b" Transfer-Encoding: chunked", "folded, or a space before the name"),
    (b"\tTransfer-Encoding: chunked", "folded"),
    (b"Transfer-Encoding\x00: chunked", "NUL in the name"),
    (b"\x00Transfer-Encoding: chunked", "NUL in the name"),
    (b"Transfer-Encoding\x0b: chunked", "vertical tab"),
    (b"Transfer-Encoding", "no colon"),
    (b"Transfer-Encoding = chunked", "no colon"),
    (b"Transfer\xadEncoding: chunked", "a byte beyond ASCII in the name"),
    (b"Transfer Encoding: chunked", "space in the name"),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "twice"),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow", "twice"),
    (b"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked", "twice"),
    (b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "twice"),
    (b"Transfer-Encoding: \r\nTransfer-Encoding: chunked", "twice"),
    (b"X: y\nTransfer-Encoding: chunked", "bare LF before it"),
    (b"X: y\rTransfer-Encoding: chunked", "bare CR before it"),
    (b"X: y\x00Transfer-Encoding: chunked", "NUL before it"),
    (b"X: y\r\r\nTransfer-Encoding: chunked", "CR CR LF before it"),
    (b"X: y\n\rTransfer-Encoding: chunked", "LF CR before it"),
    (b"X:\r\n y\r\nTransfer-Encoding: chunked", "a folded line before it"),
    (b"Transfer-Encoding:\r\n\tchunked", "folded"),
    (b"\"Transfer-Encoding\": chunked", "quoted"),
    (b":Transfer-Encoding: chunked", "an empty name"),
    (b"Transfer-Encoding:chunked\x7f", "DEL"),
]:
    add(f"{show(line)} with CL", reason, post(CL + b"5", line, body=b"0\r\n\r\n<S>"), REFUSED, {400})
    add(f"{show(line)}", reason, post(line, body=b"0\r\n\r\n<S>"), REFUSED, {400, 501})
add(
    "Transfer_Encoding beside CL",
    "another field: the length counts",
    post(CL + b"<S#>", b"Transfer_Encoding: chunked", body=b"<S>"),
    Passed(body=b"<S>"),
)
add(
    "Content_Length beside CL",
    "another field: the length counts",
    post(CL + b"3", b"Content_Length: 0", body=b"abc"),
    Passed(body=b"abc"),
)
add(
    "Content_Length alone",
    "another field: there is no body, and what follows is no request",
    post(b"Content_Length: 3", body=b"abc\r\n\r\n"),
    Passed(closed=True),
    None,
)
add(
    "X-Transfer-Encoding",
    "another field",
    post(CL + b"3", b"X-Transfer-Encoding: chunked", body=b"abc"),
    Passed(body=b"abc"),
)
add(
    "TE is no coding of this request",
    "TE says what the client takes",
    post(CL + b"3", b"TE: chunked", body=b"abc"),
    Passed(body=b"abc"),
)
add("TE: trailers", "what the client takes", request(b"TE: trailers", b"Connection: TE"), PAGE)
add(
    "TE in HTTP/1.0",
    "HTTP/1.0 does not know it",
    post(TE + b"chunked", version=b"HTTP/1.0", body=b"0\r\n\r\n<S>"),
    REFUSED,
    {400},
)
add(
    "TE in HTTP/1.0 kept alive",
    "HTTP/1.0 does not know it",
    post(TE + b"chunked", b"Connection: keep-alive", version=b"HTTP/1.0", body=b"0\r\n\r\n<S>"),
    REFUSED,
    {400},
)
add(
    "CL and TE in HTTP/1.0",
    "both",
    post(CL + b"5", TE + b"chunked", version=b"HTTP/1.0", body=b"0\r\n\r\n<S>"),
    REFUSED,
    {400},
)
for named in (
    b"Content-Length",
    b"Transfer-Encoding",
    b"Host",
    b"close, Content-Length",
    b"Cookie",
    b"X-Forwarded-For, X-Forwarded-Host",
):
    add(
        f"Connection: {named.decode()}",
        "a field named by Connection is dropped by the next hop; framing must not be",
        post(CL + b"<S#>", b"Connection: " + named, body=b"<S>"),
        Passed(body=b"<S>", closed=named.startswith(b"close")),
    )
add(
    "Connection: Transfer-Encoding, chunked",
    "likewise",
    post(TE + b"chunked", b"Connection: transfer-encoding", body=CHUNKED),
    Passed(body=b"abc"),
)
add(
    "Keep-Alive and Proxy-Connection",
    "of one connection",
    request(b"Keep-Alive: timeout=5", b"Proxy-Connection: keep-alive"),
    PAGE,
)

# --- Lengths ---

for length, reason in [
    (b"", "empty"),
    (b"+5", "signed"),
    (b"-5", "signed"),
    (b"-0", "signed"),
    (b"+0", "signed"),
    (b"0x5", "hexadecimal"),
    (b"5h", "hexadecimal"),
    (b"a", "hexadecimal"),
    (b"5 5", "two numbers"),
    (b"5,5", "a list"),
    (b"5, 5", "a list"),
    (b"5, 6", "a list"),
    (b"5,", "a list"),
    (b",5", "a list"),
    (b"5;", "a parameter"),
    (b"5_0", "a digit separator"),
    (b"5'0", "a digit separator"),
    (b"1 000", "a digit separator"),
    (b"5.0", "a fraction"),
    (b"5e0", "a float"),
    (b"\"5\"", "quoted"),
    (b"'5'", "quoted"),
    (b"five", "no number"),
    (b"18446744073709551616", "2^64, which is 0 in 64 bits"),
    (b"18446744073709551621", "2^64 + 5, which is 5 in 64 bits"),
    (b"9223372036854775808", "2^63, which is negative in 64 bits"),
    (b"99999999999999999999999999", "overflows"),
    (b"00000000000000000005", "more digits than a length has"),
    (b"5\x0b", "vertical tab"),
    (b"\x0c5", "form feed"),
    (b"5\x00", "NUL"),
    (b"\xef\xbc\x95", "a full-width digit"),
    (b"\xb2", "a superscript digit"),
    (b"5\x85", "NEL"),
    (b"5\r\n\t", "folded"),
    (b"\r\n 5", "folded"),
    (b"5\n", "bare LF"),
    (b"5\r", "bare CR"),
    (b"NaN", "a float"),
    (b"inf", "a float"),
    (b"~5", "a sign"),
]:
    add(f"CL {show(length)}", reason, post(CL + length, body=b"abcde<S>"), REFUSED, {400})
    add(f"GET with CL {show(length)}", reason, request(CL + length, body=b"abcde<S>"), REFUSED, {400})
for pair, reason in [
    ((b"5", b"5"), "the same twice"),
    ((b"5", b"6"), "two"),
    ((b"0", b"<S#>"), "two"),
    ((b"<S#>", b"0"), "two"),
    ((b"5", b""), "two"),
    ((b"5", b"05"), "two spellings"),
]:
    add(
        f"CL {show(pair[0])} and {show(pair[1])}",
        reason,
        post(CL + pair[0], CL + pair[1], body=b"abcde<S>"),
        REFUSED,
        {400},
    )
    add(
        f"CL {show(pair[0])} and another case {show(pair[1])}",
        reason,
        post(CL + pair[0], b"content-LENGTH: " + pair[1], body=b"abcde<S>"),
        REFUSED,
        {400},
    )
for name, reason in [
    (b"Content-Length ", "space before the colon"),
    (b" Content-Length", "folded"),
    (b"Content-Length\t", "tab before the colon"),
    (b"Content-Length\x00", "NUL"),
    (b"Content\x00-Length", "NUL"),
    (b"Content Length", "space within"),
    (b"\x0bContent-Length", "vertical tab"),
]:
    add(f"{show(name)}: 5", reason, post(name + b": 5", body=b"abcde<S>"), REFUSED, {400})
add("CL 05", "leading zeros are digits", post(CL + b"05", body=b"abcde"), Passed(body=b"abcde"))
add(
    "CL 0000000000000000005",
    "leading zeros are digits",
    post(CL + b"0000000000000000005", body=b"abcde"),
    Passed(body=b"abcde"),
)
add(
    "CL with spaces around",
    "optional whitespace",
    post(b"Content-Length:\t 5 \t", body=b"abcde"),
    Passed(body=b"abcde"),
)
add("CL without a space", "optional whitespace", post(b"Content-Length:5", body=b"abcde"), Passed(body=b"abcde"))
add("CL 0", "no body", post(CL + b"0"), Passed())
add("POST without any length", "no body", post(), Passed())
add("CL that never comes", "the rest is waited for, and not made up", post(CL + b"1000", body=b"<S>"), CUT)
add("CL 2^63 - 1", "the largest length", post(CL + b"9223372036854775807", body=b"<S>"), CUT)
add("CL 2^32 + 5", "5 in 32 bits", post(CL + b"4294967301", body=b"abcde<S>"), CUT)

# --- A body where none is needed ---

add("GET with a body that is a request", "on a hit nobody reads the body", request(CL + b"<S#>", body=b"<S>"), PAGE)
add(
    "GET with a chunked body that is a request",
    "on a hit nobody reads the body",
    request(TE + b"chunked", body=b"<S#x>\r\n<S>\r\n0\r\n\r\n"),
    PAGE,
)
add(
    "HEAD with a body that is a request",
    "nobody reads the body",
    request(CL + b"<S#>", method=b"HEAD", body=b"<S>"),
    PAGE,
)
add("GET with CL 0", "no body", request(CL + b"0"), PAGE)
add("GET with a body that never comes", "the answer comes, the body not", request(CL + b"10000", body=b"<S>"), CLOSED)
add(
    "GET with a body too large to skip",
    "the connection is closed instead",
    request(CL + b"1000000", body=b"<S>" + b"x" * 2000),
    CLOSED,
)
add("HTTP/1.0 GET with a body", "closed after it", request(CL + b"<S#>", version=b"HTTP/1.0", body=b"<S>"), CLOSED)
add(
    "HTTP/1.0 GET with what follows",
    "HTTP/1.0 closes: what follows is nothing",
    request(version=b"HTTP/1.0", body=b"<S>"),
    CLOSED,
)
add(
    "HTTP/1.0 POST without a length",
    "there is no body until the end in requests",
    post(version=b"HTTP/1.0", body=b"<S>"),
    Passed(closed=True),
)
add("HTTP/1.0 kept alive", "asked for", request(b"Connection: keep-alive", version=b"HTTP/1.0"), PAGE)
add(
    "Connection: close and what follows",
    "closed: what follows is nothing",
    request(b"Connection: close", body=b"<S>"),
    CLOSED,
)
add("Connection: keep-alive, close", "close counts", request(b"Connection: keep-alive, close", body=b"<S>"), CLOSED)
add(
    "Connection: close in a second line",
    "close counts",
    request(b"Connection: keep-alive", b"Connection: CLOSE", body=b"<S>"),
    CLOSED,
)

# --- Lines ---

add("all lines end with LF", "only CRLF ends a line", request(b"X: y", end=b"\n"), REFUSED, {400})
add("all lines end with CR", "only CRLF ends a line", request(b"X: y", end=b"\r"), REFUSED, {400})
add("request line ends with LF", "only CRLF", b"GET <P> HTTP/1.1\nHost: site.test\r\n\r\n", REFUSED, {400})
add("request line ends with CR", "only CRLF", b"GET <P> HTTP/1.1\rHost: site.test\r\n\r\n", REFUSED, {400})
add("request line ends with CR CR LF", "only CRLF", b"GET <P> HTTP/1.1\r\r\nHost: site.test\r\n\r\n", REFUSED, {400})
add("first field ends with LF", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\nX: y\r\n\r\n", REFUSED, {400})
add("last field ends with LF", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\n\r\n", REFUSED, {400})
add("head ends with LF LF", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\n\n<S>", REFUSED, {400})
add("head ends with CRLF LF", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\r\n\n<S>", REFUSED, {400})
add("head ends with LF CRLF", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\n\r\n<S>", REFUSED, {400})
add("head ends with CRLF CR", "only CRLF", b"GET <P> HTTP/1.1\r\nHost: site.test\r\n\rX<S>", REFUSED, {400})
add("LF CR for a line end", "only CRLF", b"GET <P> HTTP/1.1\n\rHost: site.test\n\r\n\r", REFUSED, {400})
for byte in [0, 1, 7, 8, 10, 11, 12, 13, 14, 27, 31, 127]:
    char = bytes([byte])
    add(f"{show(char)} in a value", "a control character", request(b"X: a" + char + b"b"), REFUSED, {400})
    add(f"{show(char)} in a name", "a control character", request(b"X" + char + b"Y: b"), REFUSED, {400})
    add(f"{show(char)} in the target", "a control character", request(target=b"<P>" + char + b"x"), REFUSED, {400})
    add(f"{show(char)} in the method", "a control character", request(method=b"G" + char + b"ET"), REFUSED, {400})
    add(
        f"{show(char)} before the request",
        "a control character" if byte != 13 else "a bare CR",
        char + request(),
        REFUSED,
        {400},
    )
add("tab in a value", "allowed", request(b"X: a\tb"), PAGE)
for char, name in [
    (b"\x80", "0x80"),
    (b"\xff", "0xff"),
    (b"\xc3\xa9", "e acute"),
    (b"\xc4\x8d\xc4\x8a", "U+010D U+010A, which lose a byte to CR LF"),
]:
    add(f"{name} in a name", "a name is a token", request(b"X" + char + b": y"), REFUSED, {400})
    add(f"{name} in the target", "a target is ASCII", request(target=b"<P>" + char), REFUSED, {400})
    add(f"{name} in the method", "a method is a token", request(method=b"GET" + char), REFUSED, {400})
    add(f"{name} in a value", "allowed, and a page's render has nothing of it", request(b"X: " + char), PAGE)
    add(f"{name} in a value that is passed on", "allowed", post(CL + b"0", b"X: " + char), Passed())
for line, reason in [
    (b"X : y", "space before the colon"),
    (b"X\t: y", "tab before the colon"),
    (b" X: y", "folded"),
    (b"\tX: y", "folded"),
    (b"X: y\r\n z", "folded"),
    (b"X: y\r\n\tz", "folded"),
    (b"X: y\r\n ", "folded, and empty"),
    (b"X", "no colon"),
    (b"GET /smuggled HTTP/1.1", "a second request line"),
    (b": y", "an empty name"),
    (b" : y", "an empty name"),
    (b":", "an empty name"),
    (b"X y: z", "a space in the name"),
    (b"X(y): z", "a bracket in the name"),
    (b"X[y]: z", "a bracket in the name"),
    (b"X/y: z", "a slash in the name"),
    (b"X,y: z", "a comma in the name"),
    (b"X@y: z", "an at sign in the name"),
    (b"{X}: z", "a brace in the name"),
    (b"X=y", "no colon"),
    (b"\"X\": z", "quotes in the name"),
    (b"X;y: z", "a semicolon in the name"),
    (b"<X>: z", "angle brackets in the name"),
]:
    add(f"field {show(line)}", reason, request(line), REFUSED, {400})
add(
    "a space before the first field",
    "folded into the request line",
    b"GET <P> HTTP/1.1\r\n Host: site.test\r\n\r\n",
    REFUSED,
    {400},
)
add("an empty value", "allowed", request(b"X:"), PAGE)
add("a name of odd token characters", "allowed", request(b"!#$%&'*+-.^_`|~: y"), PAGE)
add("one empty line before the request", "RFC 9112, 2.2 lets a server skip it", b"\r\n" + request(), PAGE)
add("two empty lines before the request", "one is enough", b"\r\n\r\n" + request(), REFUSED, {400})
add("an LF before the request", "only CRLF", b"\n" + request(), REFUSED, {400})
add("a space before the method", "astray", b" " + request(), REFUSED, {400})
add("a head that never ends", "waited for, then given up", request(b"X: y")[:-2], REFUSED, {408})
add("a byte order mark", "no token", b"\xef\xbb\xbf" + request(), REFUSED, {400})

# --- Methods ---

for method in [
    b"get",
    b"Get",
    b"post",
    b"FOO",
    b"M-SEARCH",
    b"!#$%&'*+-.^_`|~",
    b"DELETE",
    b"PUT",
    b"PATCH",
    b"PURGE",
    b"BAN",
    b"OPTIONS",
    b"PROPFIND",
]:
    add(
        f"method {method.decode()}",
        "a token: methods are told apart by case",
        request(CL + b"<S#>", method=method, body=b"<S>"),
        Passed(method=method.decode(), body=b"<S>"),
    )
for method, reason in [
    (b"", "empty"),
    (b"G ET", "a space"),
    (b"[GET]", "brackets"),
    (b"GET/", "a slash"),
    (b"\"GET\"", "quotes"),
    (b"GET,", "a comma"),
    (b"GET:", "a colon"),
    (b"(GET)", "brackets"),
    (b"{GET}", "braces"),
    (b"GET=", "an equals sign"),
    (b"GET\\", "a backslash"),
    (b"<GET>", "angle brackets"),
]:
    add(f"method {show(method)}", reason, request(method=method), REFUSED, {400})
add("a method of 100 kB", "longer than any", request(method=b"G" * 100_000), REFUSED, {501})
add("a method of 65 letters", "longer than any", request(method=b"G" * 65), REFUSED, {501})
add("TRACE", "echoes fields that scripts must not see", request(method=b"TRACE"), REFUSED, {405})
add("CONNECT", "no proxy", request(method=b"CONNECT", target=b"site.test:80", body=b"<S>"), REFUSED, {501})
add(
    "CONNECT with a path",
    "no proxy; what follows belongs to the tunnel",
    request(method=b"CONNECT", body=b"<S>"),
    REFUSED,
    {501},
)
add(
    "CONNECT with a body",
    "no proxy",
    request(CL + b"<S#>", method=b"CONNECT", target=b"site.test:80", body=b"<S>"),
    REFUSED,
    {501},
)

# --- Targets ---

add("absolute form", "the same page", request(target=b"http://site.test<P>"), PAGE)
add("absolute form in capitals", "the same page", request(target=b"HTTP://SITE.TEST<P>"), PAGE)
add("absolute form with the scheme's port", "the same page", request(target=b"http://site.test:80<P>"), PAGE)
add(
    "absolute form of another host",
    "RFC 9112, 3.2.2: the target counts, not Host",
    request(target=b"http://other.test<P>"),
    Passed("GET", host="other.test"),
)
add(
    "absolute form with another port",
    "another page",
    request(target=b"http://site.test:81<P>"),
    Passed("GET", host="site.test:81"),
)
for target, reason in [
    (b"http://user@site.test<P>", "userinfo"),
    (b"http://site.test:80@other.test<P>", "userinfo that looks like a host"),
    (b"http://site.test:x<P>", "no port"),
    (b"http://site.test:99999<P>", "no port"),
    (b"http://site.test:0<P>", "no port"),
    (b"http://<P>", "no host"),
    (b"http:<P>", "no authority"),
    (b"http", "a scheme alone"),
    (b"https", "a scheme alone"),
    (b"ftp://site.test<P>", "another scheme"),
    (b"file://<P>", "another scheme"),
    (b"javascript:alert(1)", "another scheme"),
    (b"http://[::1<P>", "half an address"),
    (b"http://site.test\\<P>", "a backslash in a host"),
    (b"http://site.test#<P>", "a fragment"),
    (b"http://si te.test<P>", "a space"),
    (b"http://site.test%2f<P>", "an encoded slash in a host"),
    (b"http://site.test,other.test<P>", "two hosts"),
    (b"site.test:80", "authority form"),
    (b"site.test<P>", "no slash"),
    (b"*", "asterisk form"),
    (b"?x", "no slash"),
    (b"\\<P>", "no slash"),
    (b"%2f<P>", "no slash"),
    (b"<P>#fragment", "a fragment is the client's own"),
    (b"<P>?x#fragment", "a fragment is the client's own"),
    (b"#", "a fragment"),
    (b"<P> x", "a space"),
    (b"<P> ", "a space"),
    (b" <P>", "a space"),
    (b"", "empty"),
    (b"<P>\tx", "a tab"),
    (b"<P> HTTP/1.1", "two versions"),
    (b"<P>%0d%0aX:%20y", "a line end for who decodes early"),
    (b"<P>%0aX", "a line end"),
    (b"<P>%0D", "a line end"),
    (b"<P>%00", "the end of a text"),
    (b"<P>%00.css", "the end of a text"),
    (b"<P>%7f", "a control character"),
    (b"<P>%1b", "a control character"),
    (b"<P>/..", "dot segment"),
    (b"<P>/../x", "dot segment"),
    (b"<P>/.", "dot segment"),
    (b"<P>/./x", "dot segment"),
    (b"<P>/%2e%2e/x", "encoded dots"),
    (b"<P>/.%2e/x", "encoded dots"),
    (b"<P>/%2E./x", "encoded dots"),
    (b"<P>/..%2fx", "encoded slash behind dots"),
    (b"<P>%2f..%2fx", "encoded slashes around dots"),
    (b"<P>/..%5cx", "encoded backslash"),
    (b"<P>\\..\\x", "backslashes"),
    (b"<P>/..;/x", "dots with a parameter"),
    (b"<P>/..;x=y/x", "dots with a parameter"),
    (b"<P>%", "half an encoding"),
    (b"<P>%4", "half an encoding"),
    (b"<P>%zz", "no encoding"),
    (b"<P>%u0041", "an encoding of others"),
    (b"<P>/%25%", "half an encoding"),
]:
    add(f"target {show(target)}", reason, request(target=target), REFUSED, {400})
for target, seen in [
    (b"/<P>", "/<P>"),
    (b"<P>//x", "<P>//x"),
    (b"<P>/", "<P>/"),
    (b"<P>%2fx", "<P>%2Fx"),
    (b"<P>%252e%252e%252fx", "<P>%252e%252e%252fx"),
    (b"<P>\\x", "<P>\\x"),
    (b"<P>;x", "<P>;x"),
    (b"<P>%3fx", "<P>%3Fx"),
    (b"<P>%23x", "<P>%23x"),
    (b"<P>%6e", "<P>n"),
    (b"<P>?x=%0d%0aSet-Cookie:%20y", "<P>?x=%0D%0ASet-Cookie:%20y"),
    (b"<P>?x=/../y", "<P>?x=/../y"),
    (b"<P>?", "<P>"),
    (b"<P>??", "<P>??"),
    (b"<P>?a=1&a=2", "<P>?a=1&a=2"),
    (b"<P>?http://other.test/", "<P>?http://other.test/"),
    (b"<P>%20HTTP/1.1", "<P>%20HTTP/1.1"),
    (b"<P>@other.test", "<P>@other.test"),
    (b"<P>%c3%a9", "<P>%C3%A9"),
    (b"<P>...", "<P>..."),
    (b"<P>|<>^`{}\"", "<P>|<>^`{}\""),
]:
    add(
        f"target {show(target)}",
        "means what it says, and nothing is decoded on the way",
        request(target=target),
        PAGE if seen == "<P>" else Passed("GET", target=seen),
    )
add(
    "POST to a fragment",
    "a fragment is the client's own",
    post(CL + b"<S#>", target=b"<P>?x#y", body=b"<S>"),
    REFUSED,
    {400},
)
add("a target of 100 kB", "too long", request(target=b"<P>" + b"x" * 100_000), REFUSED, {414})

# --- Versions ---

for version in [b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/3.0", b"HTTP/9.9", b"HTTP/2.1"]:
    add(f"version {version.decode()}", "not spoken here", request(version=version, body=b"<S>"), REFUSED, {505})
for version in [
    b"HTTP/1.10",
    b"HTTP/1.1.1",
    b"HTTP/01.1",
    b"HTTP/1.01",
    b"HTTP/1",
    b"HTTP/1.",
    b"HTTP/.1",
    b"HTTP/",
    b"HTTP",
    b"",
    b"http/1.1",
    b"Http/1.1",
    b"HTTP/1,1",
    b"HTTP /1.1",
    b"HTTP/ 1.1",
    b"HTTP/1.1 ",
    b" HTTP/1.1",
    b"HTTP/1.1\t",
    b"HTTP/1.1\x0b",
    b"HTTP\\1.1",
    b"HTTPS/1.1",
    b"ICY/1.1",
    b"HTTP/+1.1",
    b"HTTP/-1.1",
    b"HTTP/1.x",
    b"HTTP/x.1",
    b"HTTP/1.1 HTTP/1.1",
    b"HTTP/1.1\x00",
]:
    add(
        f"version {show(version)}",
        "not HTTP/1.0 or HTTP/1.1, letter for letter",
        request(version=version, body=b"<S>"),
        REFUSED,
        {400, 505},
    )
add("HTTP/0.9", "no version at all", b"GET <P>\r\n", REFUSED, {400})
add("HTTP/0.9 with what follows", "no version at all", b"GET <P>\r\n\r\n<S>", REFUSED, {400})

# --- Hosts ---

for hosts, reason in [
    ((b"Host: site.test", b"Host: site.test"), "two"),
    ((b"Host: site.test", b"Host: other.test"), "two"),
    ((b"Host: other.test", b"host: site.test"), "two"),
    ((b"Host:", b"Host: site.test"), "two"),
    ((), "none"),
    ((b"Host",), "no colon"),
    ((b"Host : site.test",), "space before the colon"),
    ((b"Host: site.test\r\n other.test",), "folded"),
    ((b"Host: site.test<P>",), "a path"),
    ((b"Host: user@site.test",), "userinfo"),
    ((b"Host: site.test@other.test",), "userinfo"),
    ((b"Host: site.test:",), "an empty port"),
    ((b"Host: site.test:x",), "no port"),
    ((b"Host: site.test:-80",), "no port"),
    ((b"Host: site.test:99999",), "no port"),
    ((b"Host: site.test:0",), "no port"),
    ((b"Host: site.test:80:80",), "two ports"),
    ((b"Host: site.test:80 other",), "a space"),
    ((b"Host: site test",), "a space"),
    ((b"Host: site.test, other.test",), "a list"),
    ((b"Host: site.test?x",), "a query"),
    ((b"Host: site.test#x",), "a fragment"),
    ((b"Host: site.test\\x",), "a backslash"),
    ((b"Host: http://site.test",), "a URL"),
    ((b"Host: //site.test",), "slashes"),
    ((b"Host: [::1",), "half an address"),
    ((b"Host: ::1",), "an address without brackets"),
    ((b"Host: [site.test]",), "a name in brackets"),
    ((b"Host: site%2etest",), "encoded"),
    ((b"Host: *",), "a star"),
    ((b"Host: .",), "a dot"),
    ((b"Host: site..test",), "two dots"),
    ((b"Host: .site.test",), "a dot first"),
    ((b"Host: site.test\x00.other",), "NUL"),
    ((b"Host: s\xc3\xadte.test",), "beyond ASCII"),
    ((b"Host: " + b"a" * 300,), "longer than a name can be"),
    ((b"Host: ",), "empty"),
    ((b"Host: \"site.test\"",), "quotes"),
    ((b"Host: ${site}",), "a variable"),
    ((b"Host: <script>",), "angle brackets"),
]:
    add(f"hosts {show(b' | '.join(hosts))[:90]}", reason, request(*hosts, host=None), REFUSED, {400})
add(
    "no Host in HTTP/1.0",
    "the address that it came to is its host",
    request(host=None, version=b"HTTP/1.0"),
    Passed("GET", host=OWN, closed=True),
)
add("an empty Host in HTTP/1.0", "nobody guesses", request(host=b"Host:", version=b"HTTP/1.0"), REFUSED, {400})
add(
    "Upgrade in HTTP/1.0",
    "HTTP/1.0 knows no other protocols",
    request(b"Connection: Upgrade", b"Upgrade: websocket", version=b"HTTP/1.0"),
    CLOSED,
)
for host in [b"SITE.TEST", b"site.test.", b"site.test:80", b"site.test:00080", b"\tsite.test "]:
    add(f"Host {show(host)}", "the same host", request(host=b"Host:" + host), PAGE)
add("Host of another port", "another page", request(host=b"Host: site.test:81"), Passed("GET", host="site.test:81"))

# --- Chunks ---

BAD_CHUNKS = [
    (b"-3\r\nabc\r\n0\r\n\r\n", "signed"),
    (b"+3\r\nabc\r\n0\r\n\r\n", "signed"),
    (b" 3\r\nabc\r\n0\r\n\r\n", "space before"),
    (b"3 \r\nabc\r\n0\r\n\r\n", "space behind"),
    (b"3\t\r\nabc\r\n0\r\n\r\n", "tab behind"),
    (b"\t3\r\nabc\r\n0\r\n\r\n", "tab before"),
    (b"0x3\r\nabc\r\n0\r\n\r\n", "0x"),
    (b"x3\r\nabc\r\n0\r\n\r\n", "x"),
    (b"3h\r\nabc\r\n0\r\n\r\n", "h"),
    (b"0_3\r\nabc\r\n0\r\n\r\n", "underscore"),
    (b"3_\r\nabc\r\n0\r\n\r\n", "underscore"),
    (b"3,3\r\nabc\r\n0\r\n\r\n", "a list"),
    (b"3.0\r\nabc\r\n0\r\n\r\n", "a fraction"),
    (b"g\r\nabc\r\n0\r\n\r\n", "no digit"),
    (b"\r\nabc\r\n0\r\n\r\n", "empty"),
    (b";x\r\nabc\r\n0\r\n\r\n", "empty with an extension"),
    (b"\r\n3\r\nabc\r\n0\r\n\r\n", "an empty line first"),
    (b"\"3\"\r\nabc\r\n0\r\n\r\n", "quoted"),
    (b"3\x00\r\nabc\r\n0\r\n\r\n", "NUL"),
    (b"3\x0b\r\nabc\r\n0\r\n\r\n", "vertical tab"),
    (b"10000000000000003\r\nabc\r\n0\r\n\r\n", "2^64 + 3, which is 3 in 64 bits"),
    (b"ffffffffffffffff\r\nabc\r\n0\r\n\r\n", "2^64 - 1, which is -1"),
    (b"8000000000000000\r\nabc\r\n0\r\n\r\n", "2^63"),
    (b"00000000000000000000000010000000000000003\r\nabc\r\n0\r\n\r\n", "2^64 + 3 behind zeros"),
    (b"0" * 5000 + b"3\r\nabc\r\n0\r\n\r\n", "5000 digits"),
    (b"3\nabc\r\n0\r\n\r\n", "LF alone behind the size"),
    (b"3\rabc\r\n0\r\n\r\n", "CR alone behind the size"),
    (b"3\r\r\nabc\r\n0\r\n\r\n", "CR CR LF"),
    (b"3\r\nabc\n0\r\n\r\n", "LF alone behind the data"),
    (b"3\r\nabc\r0\r\n\r\n", "CR alone behind the data"),
    (b"3\r\nabc0\r\n\r\n", "nothing behind the data"),
    (b"3\r\nabcX\r\n0\r\n\r\n", "more data than said"),
    (b"3\r\nab\r\n0\r\n\r\n", "less data than said"),
    (b"3\r\nabc\r\n\r\n0\r\n\r\n", "an empty line behind the data"),
    (b"2\r\nabc\r\n0\r\n\r\n", "a longer chunk than said"),
    (b"0\n\n<S>", "LF alone at the end"),
    (b"0\r\n\n<S>", "LF alone behind the last chunk"),
    (b"0\n\r\n<S>", "LF alone behind the last size"),
    (b"0\r\n\rX<S>", "CR alone"),
    (b"0\r\r\n\r\n<S>", "CR CR LF"),
    (b"3;a\nb\r\nabc\r\n0\r\n\r\n", "LF in an extension"),
    (b"3;a\rb\r\nabc\r\n0\r\n\r\n", "CR in an extension"),
    (b"3;\nxx\r\nabc\r\n0\r\n\r\n", "LF in an extension"),
    (b"3;a=\"\r\n\"\r\nabc\r\n0\r\n\r\n", "a line end in quotes"),
    (b"3;\x00\r\nabc\r\n0\r\n\r\n", "NUL in an extension"),
    (b"3;" + b"x" * 70_000 + b"\r\nabc\r\n0\r\n\r\n", "70 kB of extensions"),
    (b"3 ;x\r\nabc\r\n0\r\n\r\n", "space before an extension"),
    (b"3\r\nabc\r\n0\r\nX: y\n\r\n", "LF alone behind a trailer"),
    (b"3\r\nabc\r\n0\r\n X: y\r\n\r\n", "a trailer that begins with a space"),
    (b"3\r\nabc\r\n0\r\nX : y\r\n\r\n", "space before a trailer's colon"),
    (b"3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n", "a folded trailer"),
    (b"3\r\nabc\r\n0\r\nX\r\n\r\n", "a trailer without a colon"),
    (b"3\r\nabc\r\n0\r\n: y\r\n\r\n", "a trailer without a name"),
    (b"3\r\nabc\r\n0\r\nX: \x00\r\n\r\n", "NUL in a trailer"),
    (b"3\r\nabc\r\n0\r\nX: a\rb\r\n\r\n", "CR in a trailer"),
    (b"3\r\nabc\r\n0\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", "a request where trailers are"),
    (b"3\r\nabc\r\n0\r\n" + b"X: y\r\n" * 100 + b"\r\n", "100 trailers"),
    (b"3\r\nabc\r\n0\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", "a trailer of 70 kB"),
    (b"3\r\nabc\r\n", "no last chunk"),
    (b"3\r\nabc\r\n0\r\n", "no end of the trailers"),
    (b"7fffffffffffffff\r\nabc\r\n0\r\n\r\n<S>", "a chunk of 2^63 - 1 bytes"),
    (b"100\r\n<S>", "a chunk that never ends"),
]
for body, reason in BAD_CHUNKS:
    add(f"chunks {show(body)[:70]}, {reason}", reason, post(TE + b"chunked", body=body), CUT, {400, 408, 413})
    add(f"GET with chunks {show(body)[:70]}, {reason}", reason, request(TE + b"chunked", body=body), CLOSED)
for body, content, reason in [
    (b"3;x=y\r\nabc\r\n0\r\n\r\n", b"abc", "an extension"),
    (b"3;x=\"a;b\"\r\nabc\r\n0;z\r\n\r\n", b"abc", "a quoted extension"),
    (b"3;;;\r\nabc\r\n0\r\n\r\n", b"abc", "empty extensions"),
    (b"003\r\nabc\r\n000\r\n\r\n", b"abc", "leading zeros"),
    (b"00000000000000003\r\nabc\r\n" + b"0" * 36 + b"\r\n\r\n", b"abc", "more leading zeros than a number has digits"),
    (b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789", "a capital digit"),
    (b"<S#x>\r\n<S>\r\n0\r\n\r\n", b"<S>", "a request in a chunk"),
    (b"0\r\n\r\n", b"", "nothing"),
    (b"1\r\n0\r\n2\r\n\r\n\r\n3\r\n\r\n0\r\n0\r\n\r\n", b"0\r\n\r\n0", "data that looks like the end"),
]:
    add(f"chunks {show(body)}, {reason}", reason, post(TE + b"chunked", body=body), Passed(body=content))
    add(f"GET with chunks {show(body)}, {reason}", reason, request(TE + b"chunked", body=body), PAGE)
for trailer in [
    b"Content-Length: 100",
    b"Transfer-Encoding: chunked",
    b"TE: chunked",
    b"Host: other.test",
    b"Authorization: Basic eDp5",
    b"Cookie: session=1",
    b"X-Forwarded-For: 1.2.3.4",
    b"X-Forwarded-Host: other.test",
    b"X_Forwarded_Host: other.test",
    b"X-Tenant-Id: other",
    b"X-FaceTheory-Tenant: other",
    b"Connection: close",
    b"Expect: 100-continue",
    b"Range: bytes=0-1",
    b"Content-Type: text/html",
    b"Cache-Control: no-store",
]:
    add(
        f"trailer {trailer.decode()}",
        "a trailer that poses as a header field",
        post(TE + b"chunked", b"Trailer: " + trailer.split(b":")[0], body=b"3\r\nabc\r\n0\r\n" + trailer + b"\r\n\r\n"),
        Passed(body=b"abc"),
    )
    add(
        f"GET with trailer {trailer.decode()}",
        "a trailer that poses as a header field",
        request(TE + b"chunked", body=b"3\r\nabc\r\n0\r\n" + trailer + b"\r\n\r\n"),
        PAGE,
    )

# --- Expectations and other protocols ---

add(
    "Expect with its body",
    "the body comes without being asked for",
    post(CL + b"<S#>", b"Expect: 100-continue", body=b"<S>"),
    Passed(body=b"<S>"),
)
add("Expect in capitals", "the same", post(CL + b"3", b"Expect: 100-CONTINUE", body=b"abc"), Passed(body=b"abc"))
add("Expect without a body", "nothing to be continued", request(b"Expect: 100-continue"), PAGE)
add(
    "GET with Expect and its body",
    "the body of a page may never come: the connection is closed",
    request(CL + b"<S#>", b"Expect: 100-continue", body=b"<S>"),
    CLOSED,
)
for expectation in (
    b"200-ok",
    b"100-continue, x",
    b"100-continue=y",
    b" ",
    b"x\r\nExpect: 100-continue",
    b"100-continue\r\nExpect: x",
    b"100-continue\r\nExpect: 100-continue",
):
    add(
        f"Expect {show(expectation)}",
        "an expectation that nobody knows",
        post(CL + b"<S#>", b"Expect: " + expectation, body=b"<S>"),
        REFUSED,
        {400, 417},
    )
add(
    "Expect in HTTP/1.0",
    "HTTP/1.0 does not know it",
    post(CL + b"3", b"Expect: 100-continue", version=b"HTTP/1.0", body=b"abc"),
    Passed(body=b"abc", closed=True),
)
add(
    "Upgrade that the origin does not take",
    "the bytes behind it are the next request or nothing",
    request(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: eA==")
    + b"\x81\x05hello",
    Passed("GET", closed=True),
)
add(
    "Upgrade with a body",
    "the body is the request's",
    post(CL + b"<S#>", b"Connection: Upgrade", b"Upgrade: websocket", body=b"<S>"),
    Passed(body=b"<S>"),
)
add("Upgrade not named by Connection", "it is meant for nobody", request(b"Upgrade: websocket"), PAGE)
add(
    "h2c upgrade",
    "a tunnel past everything that is checked here",
    request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"),
    PAGE,
)
add(
    "h2c upgrade among others",
    "likewise",
    request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: websocket, H2C", b"HTTP2-Settings: AAMAAABkAAQAAP__"),
    PAGE,
)
add(
    "h2c upgrade that is passed on",
    "likewise",
    post(CL + b"0", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"),
    Passed(),
)
add("HTTP/2 preface", "not spoken here", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0", REFUSED, {505})
add(
    "HTTP/2 preface with version 1.1",
    "a method that nobody has",
    b"PRI * HTTP/1.1\r\nHost: site.test\r\n\r\n",
    REFUSED,
    {400},
)
add("TLS hello", "not spoken here", bytes.fromhex("16030100c8010000c40303") + b"\x11" * 190, REFUSED, {400})
add(
    "PROXY protocol line",
    "nobody was told to believe it",
    b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + request(),
    REFUSED,
    {400},
)
add(
    "PROXY protocol, binary",
    "nobody was told to believe it",
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + b"\x7f\0\0\1" * 3 + request(),
    REFUSED,
    {400},
)
add("SMTP", "not spoken here", b"EHLO site.test\r\n", REFUSED, {400})
add("an answer instead of a request", "not a request", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REFUSED, {400})

# --- Too much of it ---

add("257 fields", "more than there is room for", request(*[b"X: y"] * 256), REFUSED, {431})
add("256 fields", "as many as there is room for", request(*[b"X: y"] * 255), PAGE)
add("a field of 1 MB", "too large", request(b"X: " + b"y" * 1_000_000), REFUSED, {431})
add("a name of 100 kB", "too large", request(b"X" * 100_000 + b": y"), REFUSED, {431})
add("10000 cookies", "too large", request(*[b"Cookie: a=b"] * 10_000), REFUSED, {431})
