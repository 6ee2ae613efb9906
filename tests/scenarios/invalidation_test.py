#!/usr/bin/python3
"""An invalidation by one process is seen by the very next request to another on LMDB, and within pointer_ttl on DynamoDB.

    invalidation_test.py --facetheory build/release/facetheory [WORD...]
"""
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
