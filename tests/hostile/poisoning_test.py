#!/usr/bin/python3
"""Visitors who want to write into pages of others, or to read them: unkeyed fields that an origin reflects, addresses
that make private pages look public, tenants that are not theirs.

    poisoning_test.py --facetheory build/release/facetheory [WORD...]
"""
import time
import urllib.parse

import wire  # noqa: I001  (finds the harness)
import harness
from harness import check, same, until
from wire import HOST, RecordingOrigin, Wire, answer, ask, get

EVIL = b"EVIL"


class ReflectingOrigin(RecordingOrigin):
    """A page has in it all that the origin was told. Below /short it is fresh for a second; `fields` are added."""

    def __init__(self, *fields):
        self.added = fields
        super().__init__()

    async def answer(self, request, writer):
        age = 1 if request.target.startswith("/short") else 3600
        text = f"{request.method} {request.target}\n".encode() + b"".join(
            name + b": " + value + b"\n" for name, value in request.fields
        )
        return answer(
            text + request.body + b"".join(b"".join(t) for t in request.trailers),
            f"Cache-Control: max-age={age}",
            *self.added,
            head=request.method == "HEAD",
        )


UNKEYED = [
    "X-Forwarded-Host: EVIL.test",
    "X-Forwarded-Scheme: EVIL",
    "X-Forwarded-Proto: EVIL",
    "X-Forwarded-Port: 666EVIL",
    "X-Forwarded-Prefix: /EVIL",
    "X-Forwarded-For: EVIL",
    "X-Forwarded-Server: EVIL",
    "X-Forwarded-Path: /EVIL",
    "X_Forwarded_Host: EVIL.test",
    "X-Forwarded_Host: EVIL.test",
    "X-Host: EVIL.test",
    "X-Original-URL: /EVIL",
    "X-Rewrite-URL: /EVIL",
    "X-Original-Host: EVIL.test",
    "X-HTTP-Host-Override: EVIL.test",
    "Forwarded: host=EVIL.test",
    "Via: 1.1 EVIL",
    "X-HTTP-Method-Override: EVIL",
    "X-HTTP-Method: EVIL",
    "X-Method-Override: EVIL",
    "Origin: http://EVIL.test",
    "Referer: http://EVIL.test/",
    "User-Agent: EVIL",
    "Accept: EVIL/EVIL",
    "Accept-Language: EVIL",
    "Accept-Charset: EVIL",
    "Accept-Encoding: EVIL",
    "Cookie: _ga=EVIL",
    "Range: bytes=EVIL",
    "If-None-Match: \"EVIL\"",
    "If-Modified-Since: EVIL",
    "If-Range: \"EVIL\"",
    "Content-Type: text/EVIL",
    "X-Real-IP: EVIL",
    "True-Client-IP: EVIL",
    "CF-Connecting-IP: EVIL",
    "Client-IP: EVIL",
    "X-Wap-Profile: http://EVIL.test",
    "Max-Forwards: EVIL",
    "Pragma: EVIL",
    "Cache-Control: EVIL",
    "Cache-Control: no-cache, EVIL",
    "TE: EVIL",
    "Proxy-Authorization: EVIL",
    "Proxy: http://EVIL.test",
    "Destination: http://EVIL.test",
    "X-Custom: EVIL",
    "EVIL: 1",
    "X-FaceTheory-Anything: EVIL",
    "Trailer: EVIL",
    "DNT: EVIL",
    "Save-Data: EVIL",
    "X-Requested-With: EVIL",
    "Upgrade-Insecure-Requests: EVIL",
    "From: EVIL@EVIL.test",
    "Sec-Fetch-Site: EVIL",
    "X-Amz-Website-Redirect-Location: /EVIL",
    "Connection: EVIL",
    "Keep-Alive: EVIL",
    "Upgrade: EVIL",
    "HTTP2-Settings: EVIL",
    "X-Request-Id: EVIL",
    "Traceparent: EVIL",
]


def visits(gateway, path, request):
    """Somebody sends that, and whoever comes next gets a page without any of it."""
    client = Wire(gateway)
    client.send(request)
    client.answer("HEAD" if request.startswith(b"HEAD") else "GET")
    client.close()
    for _ in range(2):
        found = ask(gateway, path)
        same(found.status, 200, f"after {request!r}")
        check(
            EVIL not in found.body and all(EVIL not in value for _, value in found.fields),
            f"after {request!r}: {found.body!r} {found.fields}",
        )
        check(found.body.startswith(f"GET {path}\n".encode()), f"after {request!r}: {found}")
    return found


def an_unkeyed_field_that_the_origin_reflects_reaches_nobody_else(s):
    origin, gateway = s.in_memory().behind(ReflectingOrigin()), s.gateway(origin='host = "client"')
    for number, line in enumerate(UNKEYED):
        found = visits(gateway, f"/long/{number}", get(f"/long/{number}", line))
        check("Via" in line or found.isr == "hit" or origin.of(f"/long/{number}"), f"after {line}: {found}")
    same(origin.faults, [], "what came to the origin and should not")


def nor_when_the_page_is_made_again(s):
    origin, gateway = s.in_memory().behind(ReflectingOrigin()), s.gateway(origin='host = "client"')
    for number, _ in enumerate(UNKEYED):
        ask(gateway, f"/short/{number}")
    time.sleep(1.1)
    for number, line in enumerate(UNKEYED):
        ask(gateway, f"/short/{number}", line)
    until(lambda: len(origin.of("/short/")) >= 2 * len(UNKEYED) - 10, "pages are made again")
    for number, line in enumerate(UNKEYED):
        check(EVIL not in ask(gateway, f"/short/{number}").body, f"after {line}")


def nor_where_cookies_are_stripped(s):
    s.in_memory().behind(ReflectingOrigin())
    gateway = s.gateway(
        origin='host = "client"',
        defaults='other_cookies = "strip"\nignore_cookies = ["seen"]\nbypass = { headers = [] }',
    )
    for number, line in enumerate(
        [
            "Cookie: session=EVIL",
            "Cookie: seen=EVIL",
            "Cookie: EVIL",
            "Cookie: a=b; EVIL=1; seen=2",
            "Authorization: Basic EVIL",
            "Cookie: a=b\r\nCookie: EVIL=1",
        ]
    ):
        visits(gateway, f"/long/{number}", get(f"/long/{number}", line))


def nor_does_a_body_a_host_or_a_parameter_that_is_not_in_the_key(s):
    s.in_memory().behind(ReflectingOrigin())
    gateway = s.gateway(
        origin='host = "client"',
        routes='[[routes]]\npattern = "/only/{rest...}"\nquery = { include = ["page"] }\n'
        '[[routes]]\npattern = "/{rest*}"\n',
    )
    body = b"Content-Length: 6\r\n\r\nx=EVIL"
    for number, request in enumerate(
        [
            b"GET /long/0 HTTP/1.1\r\nHost: site.test\r\n" + body,
            b"GET /long/1 HTTP/1.1\r\nHost: site.test\r\nContent-Type: application/x-www-form-urlencoded\r\n" + body,
            b"GET /long/2 HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nx=EVIL\r\n0\r\n"
            b"X-Forwarded-Host: EVIL\r\n\r\n",
            b"HEAD /long/3 HTTP/1.1\r\nHost: site.test\r\nX-Custom: EVIL\r\n\r\n",
            b"GET http://site.test/long/4 HTTP/1.1\r\nHost: EVIL.test\r\n\r\n",
            get("/long/5?utm_source=EVIL"),
            get("/long/6?utm_source=1;x=EVIL"),
            get("/long/7?gclid=EVIL&fbclid=EVIL&utm_EVIL=1"),
            get("/long/8?&&&utm_source=EVIL"),
            get("/long/9?utm%5fsource=EVIL"),
            get("/long/10", host="SITE.TEST:80"),
            get("/long/11", host="Site.Test."),
            get("/long/12#EVIL"),
            get("/long/13?#EVIL"),
        ]
    ):
        found = visits(gateway, f"/long/{number}", request)
        check(
            b":80" not in found.body and b"SITE" not in found.body and b"test.\n" not in found.body,
            f"after {request!r}: {found.body!r}",
        )
    for number, query in enumerate(("EVIL=1", "x=EVIL", "page[]=EVIL", "Page=EVIL", "x=1;page=EVIL", "x=%26page=EVIL")):
        visits(gateway, f"/only/{number}", get(f"/only/{number}?{query}"))


def what_the_origin_varies_by_is_kept_apart(s):
    s.in_memory().behind(ReflectingOrigin("Vary: X-Custom, X-Forwarded-Host, User-Agent"))
    gateway = s.gateway(origin='host = "client"')
    for number, line in enumerate(
        (
            "X-Custom: EVIL",
            "User-Agent: EVIL",
            "X-Forwarded-Host: EVIL.test",
            "x_forwarded_host: EVIL.test",
            "X-Custom: EVIL\r\nX-Custom: EVIL",
        )
    ):
        visits(gateway, f"/long/{number}", get(f"/long/{number}", line))
        ask(gateway, f"/long/{number}", "X-Custom: other")
        visits(gateway, f"/long/{number}", get(f"/long/{number}", line))


def values_cannot_pose_as_other_parts_of_the_key(s):
    s.in_memory().behind(ReflectingOrigin())
    gateway = s.gateway(origin='host = "client"', defaults='headers = ["x-a", "x-b"]\ncookies = ["theme", "size"]')
    pages = {}
    for lines in (
        ("X-A: 1", "X-B: 2"),
        ("X-A: 1 h:x-b=2",),
        ("X-A: 1 h:x-b",),
        ("X-A: 1", "X-B: 2 c:theme=x"),
        ("X-A: 1%20h:x-b=2",),
        ("X-A: 1", "X-A: 2"),
        ("X-A: 1, X-B: 2",),
        ("X-B: 1", "X-A: 2"),
        ("X-A: 1", "X-B:"),
        ("X-A: 1",),
        (),
        ("Cookie: theme=x",),
        ("Cookie: theme=x; size=1",),
        ("Cookie: theme=x%3B size=1",),
        ("Cookie: theme=\"x; size=1\"",),
        ("Cookie: theme=x c:size=1",),
        ("Cookie: size=x",),
        ("Cookie: theme=x; theme=y",),
        ("Cookie: theme=y; theme=x",),
    ):
        found = ask(gateway, "/long/key", *lines)
        told = {line.lower().replace(" ", "") for line in lines}
        same(found.isr, "miss", f"{lines} is the page of {pages.get(found.body)}")
        pages[found.body] = told
    found = {
        ask(gateway, target).body
        for target in (
            "/long/x?a=1&b=2",
            "/long/x?a=1%26b=2",
            "/long/x?a=1%20h:x-b&b=2",
            "/long/x%3Fa=1&b=2",
            "/long/x?a=1&b=2&a=3",
            "/long/x?a=3&b=2&a=1",
        )
    }
    same(len(found), 6, f"pages: {found}")


class DecodingOrigin(RecordingOrigin):
    """Decodes what it is asked for and writes it into a field, as careless programs do."""

    async def answer(self, request, writer):
        decoded = urllib.parse.unquote(request.target, encoding="latin-1")
        return answer(b"moved", f"Location: {decoded}", "Cache-Control: max-age=60", status="302 Found")


def line_ends_that_are_encoded_split_no_answer(s):
    origin, gateway = s.in_memory().behind(DecodingOrigin()), s.gateway()
    for number, end in enumerate(
        (
            "%0d%0a",
            "%0a",
            "%0d",
            "%0D%0A%20",
            "%c4%8d%c4%8a",
            "%E5%98%8D%E5%98%8A",
            "%250d%250a",
            "\\r\\n",
            "%u000d%u000a",
            "%00",
        )
    ):
        for target in (
            f"/long/{number}{end}Set-Cookie:%20EVIL=1",
            f"/long/{number}?to={end}Set-Cookie:%20EVIL=1",
            f"/long/{number}?to={end}{end}HTTP/1.1%20200%20OK{end}{end}EVIL",
        ):
            ask(gateway, target)
            again = ask(gateway, target)
            check(not again.get("set-cookie") or again.isr != "hit", f"{target}: a stored page sets a cookie")
            check(b"EVIL" not in again.body or again.isr != "hit", f"{target}: {again}")
        found = ask(gateway, f"/long/{number}")
        check(
            b"EVIL" not in found.body and "EVIL" not in found.get("location") + found.get("set-cookie"),
            f"{end}: {found.fields}",
        )
    same(origin.faults, [], "what came to the origin and should not")


def what_only_proxies_say_is_not_passed_on(s):
    origin, gateway = s.in_memory().behind(ReflectingOrigin()), s.gateway(origin='host = "client"')
    fields = (
        "X-Forwarded-For",
        "X_Forwarded_For",
        "x-forwarded_for",
        "X-Forwarded-Host",
        "X_FORWARDED_HOST",
        "X-Forwarded-Proto",
        "X_Forwarded_Proto",
        "X-Forwarded-Port",
        "X-Forwarded-Prefix",
        "X-Forwarded-Server",
        "X-Real-IP",
        "X_Real_IP",
        "Forwarded",
        "X-FaceTheory-State",
        "X_FaceTheory_Tenant",
        "X_Tenant_Id",
    )
    for number, name in enumerate(fields):
        for method in ("GET", "POST"):
            found = ask(
                gateway,
                f"/long/{number}",
                f"{name}: EVIL",
                "Cookie: session=1",
                *(("Content-Length: 0",) if method == "POST" else ()),
                method=method,
            )
            same((found.isr, EVIL in found.body), ("pass", False), f"{method} with {name}: {found.body!r}")
        seen = origin.requests[-1]
        same(
            (seen.all("x-forwarded-for"), seen.all("x-forwarded-proto"), seen.all("x-forwarded-host")),
            (["127.0.0.1"], ["http"], [HOST]),
            name,
        )


# --- Deception ---


class AccountOrigin(RecordingOrigin):
    """Everything that has to do with /account is the visitor's own page, whatever is behind it: `style` says how the
    origin tells."""

    def __init__(self, style):
        self.style = style
        super().__init__()

    async def answer(self, request, writer):
        who = request.get("cookie") + request.get("authorization")
        decoded = urllib.parse.unquote(request.target).lower()
        if "account" not in decoded:
            return answer(b"public", "Cache-Control: max-age=3600")
        lines = {
            "private": "Cache-Control: private, max-age=3600",
            "cookie": "Set-Cookie: seen=1",
            "no-store": "Cache-Control: no-store",
            "careless": "Cache-Control: public, max-age=3600",
            "silent": "",
        }[self.style]
        return answer(f"account of {who or 'nobody'}\n".encode(), lines, "Content-Type: text/css")


DECEPTIONS = [
    "/account",
    "/account/",
    "/account/x.css",
    "/account/x.js?v=1",
    "/account.css",
    "/account;x.css",
    "/account;/x.css",
    "/account%2fx.css",
    "/account%2Fx.css",
    "/account%3bx.css",
    "/account%3fx.css",
    "/account%23x.css",
    "/account%00.css",
    "/account%0a.css",
    "/account%09.css",
    "/account%20.css",
    "/account/..%2fstatic/x.css",
    "/account/%2e%2e/static/x.css",
    "/static/..%2faccount",
    "/static/../account",
    "/static/..%2f..%2faccount",
    "/static/%2e%2e%2faccount",
    "/static/x.css/..%2f..%2faccount",
    "/static/..%5caccount",
    "/static\\..\\account",
    "//account/x.css",
    "/account//x.css",
    "/./account/x.css",
    "/account...",
    "/account./x.css",
    "/account.",
    "/ACCOUNT/x.css",
    "/%61ccount/x.css",
    "/account?x.css",
    "/account?/x.css",
    "/account&x.css",
    "/account$x.css",
    "/account!x.css",
    "/account,x.css",
    "/account:x.css",
    "/account@x.css",
    "/account~x.css",
    "/account|x.css",
    "/account^x.css",
    "/account\\x.css",
    "/account/x.css%3f",
    "/account/x.css%23",
    "/account/robots.txt",
    "/account/favicon.ico",
    "/account/.well-known/x",
    "/account%ff.css",
    "/account%c0%ae.css",
    "/account%252fx.css",
    "/account/x.css?utm_source=1",
    "/assets/account/x.woff2",
]


def deceived(s, style, defaults=""):
    origin, gateway = s.in_memory().behind(AccountOrigin(style)), s.gateway(origin='host = "client"', defaults=defaults)
    for number, path in enumerate(DECEPTIONS):
        for line in (f"Cookie: session=victim{number}", f"Authorization: Bearer victim{number}"):
            visit = ask(gateway, path, line)
            check(visit.status in (200, 400), f"{path}: {visit}")
            check(visit.isr not in ("hit", "stale") or b"victim" not in visit.body, f"{path}: {visit}")
            for lines in ((), ("Cookie: session=attacker",), ("Authorization: Bearer attacker",), ("Cookie: _ga=1",)):
                found = ask(gateway, path, *lines)
                check(
                    b"victim" not in found.body and not (found.isr == "hit" and found.get("set-cookie")),
                    f"{path} with {lines}: {found}",
                )
    same(origin.faults, [], "what came to the origin and should not")


def private_pages_are_never_stored_whatever_their_address(s):
    deceived(s, "private")


def nor_pages_that_set_a_cookie(s):
    deceived(s, "cookie")


def nor_pages_that_must_not_be_stored(s):
    deceived(s, "no-store")


def nor_pages_for_a_session_whose_origin_says_that_they_are_public(s):
    deceived(s, "careless")


def nor_those_whose_origin_says_nothing(s):
    deceived(s, "silent")


def nor_where_cookies_are_stripped_and_fields_forwarded(s):
    deceived(s, "careless", 'other_cookies = "strip"\nforward = ["accept*"]')


# --- Tenants ---


class TenantOrigin(RecordingOrigin):
    async def answer(self, request, writer):
        return answer(
            f"{request.target} for {request.get('host')} {request.get('x-tenant-id')}\n".encode(),
            "Cache-Control: max-age=3600",
        )


def hosts_are_tenants_of_their_own(s):
    s.in_memory().behind(TenantOrigin())
    gateway = s.gateway(origin='host = "client"', routes='[[routes]]\npattern = "/{rest*}"\ntenant = "host"\n')
    for host in ("a.test", "b.test"):
        same(ask(gateway, "/page", host=host).isr, "miss", host)
    for host in ("a.test", "A.TEST", "a.test.", "a.test:80"):
        found = ask(gateway, "/page", host=host)
        same((found.isr, found.body), ("hit", b"/page for a.test \n"), host)
    client = Wire(gateway)
    same(
        client.send(b"GET http://b.test/page HTTP/1.1\r\nHost: a.test\r\n\r\n").answer().body,
        b"/page for b.test \n",
        "the target counts",
    )
    for lines in (
        ("X-Forwarded-Host: b.test",),
        ("X-Host: b.test",),
        ("Forwarded: host=b.test",),
        ("X_Forwarded_Host: b.test",),
        ("Connection: host",),
    ):
        same(ask(gateway, "/page", *lines, host="a.test").body, b"/page for a.test \n", f"{lines}")
    for lines in (
        ("X-Tenant-Id: b.test",),
        ("X-FaceTheory-Tenant: b.test",),
        ("x-tenant-id: a.test", "x-tenant-id: b.test"),
        ("X-Tenant-Id: A.test",),
    ):
        same(ask(gateway, "/page", *lines, host="a.test").status, 400, f"{lines}")


def strangers_name_no_tenant(s):
    origin = s.in_memory().behind(TenantOrigin())
    gateway = s.gateway(
        settings='trusted_peers = ["10.0.0.0/8"]',
        origin='host = "client"',
        routes='[[routes]]\npattern = "/{rest*}"\ntenant = "header:x-tenant-id"\n',
    )
    for lines in (
        (),
        ("X-Tenant-Id: a",),
        ("x-tenant-id: a", "X-Forwarded-For: 10.0.0.1"),
        ("X_Tenant_Id: a",),
        ("X-Tenant-Id: a", "Connection: x-tenant-id"),
        ("X-FaceTheory-Tenant: a",),
        ("X-Tenant-Id: a", "Cookie: session=1"),
    ):
        for method in ("GET", "POST", "DELETE"):
            found = ask(gateway, "/page", *lines, *(("Content-Length: 0",) if method != "GET" else ()), method=method)
            check(found.status in (400, 403), f"{method} {lines}: {found}")
    same(origin.requests, [], "at the origin")


def a_tenant_is_named_once_and_exactly(s):
    origin = s.in_memory().behind(TenantOrigin())
    gateway = s.gateway(
        settings='trusted_peers = ["127.0.0.1"]',
        origin='host = "client"',
        routes='[[routes]]\npattern = "/{rest*}"\ntenant = "header:x-tenant-id"\n',
    )
    for tenant in ("a", "b", "A"):
        found = ask(gateway, "/page", f"X-Tenant-Id: {tenant}")
        same((found.isr, found.body), ("miss", f"/page for {HOST} {tenant}\n".encode()), tenant)
    for lines in (("X-Tenant-Id: a",), ("x-tenant-id:a",), ("X-TENANT-ID: \t a \t",)):
        found = ask(gateway, "/page", *lines)
        same((found.isr, found.body), ("hit", f"/page for {HOST} a\n".encode()), lines)
    before = len(origin.requests)
    for lines in (
        (),
        ("X-Tenant-Id:",),
        ("X-Tenant-Id: a", "X-Tenant-Id: b"),
        ("X-Tenant-Id: a", "X-Tenant-Id: a"),
        ("X-Tenant-Id: a", "x-tenant-id: b"),
        ("X-Tenant-Id: a", "X-FaceTheory-Tenant: b"),
        ("X-FaceTheory-Tenant: a",),
        ("X-Tenant-Id: a", "Connection: X-Tenant-Id"),
        ("X_Tenant_Id: a",),
        ("X-Tenant-Id: a#CACHE#x",),
        ("X-Tenant-Id: a\x00",),
        ("X-Tenant-Id : a",),
        ("X-Tenant-Id: " + "a" * 2000,),
    ):
        for method in ("GET", "POST"):
            found = ask(gateway, "/page", *lines, *(("Content-Length: 0",) if method != "GET" else ()), method=method)
            same(found.status, 400, f"{method} {lines}")
    same(len(origin.requests), before, "nothing more at the origin")
    found = ask(gateway, "/page", "X-Tenant-Id: a", "X_Tenant_Id: b", "Content-Length: 0", method="POST")
    same(found.body, f"/page for {HOST} a\n".encode(), "a field that only the origin would take for it")
    check(
        "x_tenant_id" not in dict((n.decode(), v) for n, v in origin.requests[-1].fields),
        f"{origin.requests[-1].fields}",
    )


def strangers_name_no_tenant_where_nothing_is_stored_or_no_route_is(s):
    origin = s.in_memory().behind(TenantOrigin())
    gateway = s.gateway(
        origin='host = "client"',
        settings='boundary_headers = ["x-org"]',
        routes='[[routes]]\npattern = "/api"\ncache = false\n[[routes]]\npattern = "/page"\n',
    )
    for path in ("/api", "/elsewhere", "/page"):
        for line in ("X-Tenant-Id: a", "X-FaceTheory-Tenant: a", "X-Org: a", "x-tenant-id:"):
            for method in ("GET", "POST", "OPTIONS"):
                found = ask(gateway, path, line, "Content-Length: 0", method=method)
                same(found.status, 400, f"{method} {path} {line}")
    same(origin.requests, [], "at the origin")
    for path in ("/api", "/elsewhere"):
        same(ask(gateway, path).status, 200, path)
        same(ask(gateway, path, "X_Tenant_Id: a").status, 200, "which the origin does not get")
        check(
            "x_tenant_id" not in dict((n.decode(), v) for n, v in origin.requests[-1].fields),
            f"{origin.requests[-1].fields}",
        )


def a_route_without_tenants_takes_none(s):
    origin = s.in_memory().behind(TenantOrigin())
    gateway = s.gateway(settings='trusted_peers = ["127.0.0.1"]\nboundary_headers = ["x-org"]')
    for line in ("X-Tenant-Id: a", "X-FaceTheory-Tenant: a", "X-Org: a", "x-ORG:"):
        same(ask(gateway, "/page", line).status, 400, line)
    same(origin.requests, [], "at the origin")


def the_admin_listener_answers_to_no_name_but_its_own(s):
    """As a browser would ask it that was led here under a name of somebody else's (DNS rebinding)."""
    s.in_memory().behind(TenantOrigin())
    gateway = s.gateway()
    for host, status in (
        ("evil.test", 421),
        (f"evil.test:{gateway.admin}", 421),
        ("127.0.0.1.evil.test", 421),
        (HOST, 200),
        (f"127.0.0.1:{gateway.admin}", 200),
        ("localhost", 200),
        ("[::1]:9080", 200),
    ):
        for path in ("/metrics", "/readyz", "/livez", "/"):
            client = harness.Client(gateway.admin)
            found = client(path, fields={"Host": host})
            same(found.status, status, f"{path} of {host}")
            check(status == 200 or b"facetheory_" not in found.body, f"{path} of {host}: {found.body[:100]}")
            client.close()


if __name__ == "__main__":
    harness.main(__name__, side_by_side=4)
