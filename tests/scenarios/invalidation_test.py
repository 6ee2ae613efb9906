#!/usr/bin/python3
"""An invalidation by one process is seen by the very next request to another on LMDB, and within pointer_ttl on
DynamoDB.

    invalidation_test.py --facetheory build/release/facetheory [WORD...]
"""
import email.utils
import json
import threading
import time

import harness
from harness import check, same, until

POINTER_TTL = 1.0  # seconds, the default of DynamoDB
BLOCKING = 'mode = "blocking"'


def two_gateways_with_a_page(s, **options):
    """Both have it in memory, fresh for an hour."""
    s.origin.windows["/page"] = [3600]
    here, there = s.gateways(2, **options)
    here.get("/page").is_(200, "miss", 1)
    there.get("/page").is_(200, "hit", 1)
    here.get("/page").is_(200, "hit", 1)
    return here, there


def an_invalidation_by_command_is_seen_by_the_very_next_request_which_waits_for_the_new_page(s):
    here, there = two_gateways_with_a_page(s, defaults=BLOCKING)
    for number in range(2, 12):
        s.invalidate("/page")
        there.get("/page").is_(200, "miss", number)
        here.get("/page").is_(200, "hit", number)
    same(s.origin.count("/page"), 11, "renders")


def an_invalidation_by_command_is_seen_by_the_very_next_request_which_gets_the_page_as_stale(s):
    here, there = two_gateways_with_a_page(s)
    s.origin.hold("/page")
    s.invalidate("/page")
    there.get("/page").is_(200, "stale", 1)
    here.get("/page").is_(200, "stale", 1)
    s.origin.release("/page")
    there.becomes("/page", "hit", 2)
    here.get("/page").is_(200, "hit", 2)
    same(s.origin.count("/page"), 2, "renders")


def a_post_through_one_gateway_is_seen_by_the_very_next_request_to_another(s):
    here, there = two_gateways_with_a_page(s, defaults=BLOCKING)
    for number in range(2, 12):
        here.get("/page", method="POST", body=b"change").is_(200, "pass")
        there.get("/page").is_(200, "miss", number)
        here.get("/page").is_(200, "hit", number)
    same((s.origin.count("/page"), len(s.origin.posts)), (11, 10), "renders and posts")


def after_a_post_nothing_older_is_served_not_even_as_stale(s):
    here, there = two_gateways_with_a_page(s)
    here.get("/page", method="POST", body=b"change").is_(200, "pass")
    there.get("/page").is_(200, "miss", 2)
    here.get("/page").is_(200, "hit", 2)
    same(s.origin.count("/page"), 2, "renders")


def a_post_that_fails_invalidates_nothing(s):
    here, there = two_gateways_with_a_page(s, defaults=BLOCKING)
    s.origin.fail("/page", 422)
    here.get("/page", method="POST", body=b"change").is_(422, "pass")
    s.origin.heal("/page")
    there.get("/page").is_(200, "hit", 1)


def a_tag_invalidates_all_its_pages_for_the_very_next_request(s):
    s.origin.windows.update({"/a": [3600], "/b": [3600], "/c": [3600]})
    s.origin.fields.update({"/a": {"Cache-Tag": "news"}, "/b": {"Cache-Tag": "sport, news"}})
    here, there = s.gateways(2, defaults=BLOCKING)
    for path in ("/a", "/b", "/c"):
        here.get(path).is_(200, "miss", 1)
        there.get(path).is_(200, "hit", 1)
    s.cli("invalidate", "--tag", "news")
    there.get("/a").is_(200, "miss", 2)
    here.get("/b").is_(200, "miss", 2)
    there.get("/c").is_(200, "hit", 1)


TAGGED = [f"/tagged/{i}" for i in range(30)]
# Thirty renders at once on a busy machine take longer than the two seconds that leases last in scenarios, and one whose
# lease has expired is rendered again, rightly.
LONG_LEASE = 'lease = "30s"'


def with_clock(offset):
    """Of a gateway: its clock is wrong by so many seconds."""
    return {
        "LD_PRELOAD": "/usr/$LIB/faketime/libfaketime.so.1",
        "FAKETIME": f"{offset:+}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def one_invalidation_is_one_render(s, gateways, *words, seconds=5):
    """Of each of thirty pages, although everybody asks for them all the time. Returns what was answered."""
    s.origin.delay = 0.05
    s.origin.windows.update({path: [3600] for path in TAGGED})
    s.origin.fields.update({path: {"Cache-Tag": "news"} for path in TAGGED})
    for path in TAGGED:
        gateways[0].get(path).is_(200, "miss", 1)
    over = threading.Event()

    def ask(gateway):
        client, answers = gateway.client(), []
        while not over.is_set():
            answers += [client(path) for path in TAGGED]
        client.close()
        return answers

    with harness.concurrent.futures.ThreadPoolExecutor(len(gateways)) as pool:
        asking = [pool.submit(ask, gateway) for gateway in gateways]
        try:
            time.sleep(1)
            s.cli("invalidate", *words)
            time.sleep(seconds)
        finally:
            over.set()
        answers = [answer for asked in asking for answer in asked.result()]
    same({a.status for a in answers}, {200}, "statuses")
    check({a.render for a in answers} == {1, 2}, f"renders that were served: { {a.render for a in answers} }")
    same({path: s.origin.count(path) for path in TAGGED}, {path: 2 for path in TAGGED}, "renders")
    for gateway in gateways:
        for path in TAGGED:
            gateway.get(path).is_(200, "hit", 2)
    return answers


def one_invalidation_of_a_tag_under_load_is_one_render_of_each_page_and_keeps_the_history(s):
    gateway = s.gateway(defaults=f"history = 3\n{LONG_LEASE}")
    one_invalidation_is_one_render(s, [gateway], "--tag", "news")
    for path in TAGGED:
        kept = json.loads(s.cli("versions", f"http://{harness.HOST}{path}", "--json"))["versions"]
        same(len(kept), 2, f"versions of {path}")


def one_purge_of_a_tag_under_load_is_one_render_of_each_page(s):
    answers = one_invalidation_is_one_render(s, [s.gateway(defaults=LONG_LEASE)], "--tag", "news", "--purge")
    check("stale" not in {a.isr for a in answers}, "a purged page was served as stale")


def one_invalidation_of_a_tenant_under_load_is_one_render_of_each_page(s):
    gateway = s.gateway(defaults=f'tenant = "host"\n{LONG_LEASE}')
    one_invalidation_is_one_render(s, [gateway], "--whole-tenant", harness.HOST)


def fleet_with_clocks_far_apart(s, defaults=""):
    """Three gateways on DynamoDB, five seconds one from the other."""
    s.on("aws")
    # A lease must be longer than clocks may differ, or whoever is ahead takes it away.
    gateways = [
        s.gateway(f"gateway{i}", defaults=f"{LONG_LEASE}\n{defaults}", environment=with_clock(offset))
        for i, offset in enumerate((0, -5, 5))
    ]
    dates = [email.utils.parsedate_to_datetime(g.get(f"/date/{g.name}").fields["date"]) for g in gateways]
    check((dates[2] - dates[1]).total_seconds() >= 8, f"the clocks are not apart: {dates}")
    return gateways


def on_DynamoDB_with_clocks_far_apart_one_invalidation_of_a_tag_is_one_render_of_each_page_in_the_fleet(s):
    one_invalidation_is_one_render(s, fleet_with_clocks_far_apart(s), "--tag", "news", seconds=8)


def on_DynamoDB_with_clocks_far_apart_one_purge_of_a_tag_is_one_render_of_each_page_in_the_fleet(s):
    answers = one_invalidation_is_one_render(s, fleet_with_clocks_far_apart(s), "--tag", "news", "--purge")
    check("stale" not in {a.isr for a in answers}, "a purged page was served as stale")


def on_DynamoDB_with_clocks_far_apart_one_invalidation_of_a_tenant_is_one_render_of_each_page_in_the_fleet(s):
    gateways = fleet_with_clocks_far_apart(s, 'tenant = "host"')
    one_invalidation_is_one_render(s, gateways, "--whole-tenant", harness.HOST)


def on_DynamoDB_with_clocks_far_apart_one_purge_of_a_tenant_is_one_render_of_each_page_in_the_fleet(s):
    gateways = fleet_with_clocks_far_apart(s, 'tenant = "host"')
    answers = one_invalidation_is_one_render(s, gateways, "--whole-tenant", harness.HOST, "--purge")
    check("stale" not in {a.isr for a in answers}, "a purged page was served as stale")


def a_purged_page_is_not_even_served_as_stale(s):
    here, there = two_gateways_with_a_page(s)
    s.cli("invalidate", f"http://{harness.HOST}/page", "--purge")
    s.origin.fail("/page")
    there.get("/page").is_(500, "failed")
    check(b"render 1" not in here.get("/page").body, "the purged page came back")


def an_invalidation_is_not_lost_to_a_render_that_began_before_it(s):
    here, there = two_gateways_with_a_page(s, defaults=BLOCKING)
    s.invalidate("/page")
    s.origin.hold("/page")
    with harness.concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(here.get, "/page")
        s.origin.waits_for("/page", 2)
        s.invalidate("/page")
        s.origin.release("/page")
        waiting.result().is_(200, "miss", 3)
    there.get("/page").is_(200, "hit", 3)
    same(s.origin.count("/page"), 3, "renders")


def on_DynamoDB_an_invalidation_by_command_is_seen_within_pointer_ttl(s):
    here, there = two_gateways_with_a_page(s.on("aws"), defaults=BLOCKING)
    for number in (2, 3, 4):
        there.get("/page").is_(200, "hit", number - 1)  # Its pointer is as new as it can be.
        s.invalidate("/page")
        time.sleep(POINTER_TTL)
        there.get("/page").is_(200, "miss", number)
        until(lambda: here.get("/page").render == number, "the other one sees it", limit=POINTER_TTL + 2)


def on_DynamoDB_an_invalidation_is_seen_within_a_shorter_pointer_ttl(s):
    here, there = two_gateways_with_a_page(s.on("aws"), defaults=BLOCKING, settings='pointer_ttl = "0s"')
    for number in (2, 3, 4):
        here.get("/page", method="POST", body=b"change").is_(200, "pass")
        there.get("/page").is_(200, "miss", number)


def on_DynamoDB_a_post_is_seen_by_its_own_gateway_at_once_and_by_others_within_pointer_ttl(s):
    here, there = two_gateways_with_a_page(s.on("aws"), defaults=BLOCKING)
    for number in (2, 3):
        there.get("/page").is_(200, "hit", number - 1)
        here.get("/page", method="POST", body=b"change").is_(200, "pass")
        here.get("/page").is_(200, "miss", number)
        time.sleep(POINTER_TTL)
        there.get("/page").is_(200, "hit", number)


if __name__ == "__main__":
    harness.main(__name__, side_by_side=3)
