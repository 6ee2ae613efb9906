#!/usr/bin/python3
"""A thousand clients of four gateways ask for one page at once: the origin renders it once.

    stampede_test.py --facetheory build/release/facetheory [WORD...]

On a shared LMDB folder, and on DynamoDB Local with s3rver for bodies.
"""
import time

import harness
from harness import Answer, Crowd, check, same, tally, until

CLIENTS = 1000
STORES = {"LMDB": "lmdb", "DynamoDB": "aws"}


def pages_of(answers, renders):
    """Everybody got a page, and one of these renders."""
    counted = tally(answers)
    wrong = {kind: count for kind, count in counted.items() if kind[0] != 200 or kind[2] not in renders}
    check(not wrong and sum(counted.values()) == len(answers), f"not everybody got one of the renders {renders}: {counted}")
    return counted


def by_state(counted):
    return {state: sum(n for kind, n in counted.items() if kind[1] == state) for state in {kind[1] for kind in counted}}


def wait_for_waiters(gateways):
    until(lambda: sum(gateway.counts("facetheory_waiters") for gateway in gateways) == CLIENTS, "the whole crowd waits for the render")


def total(gateways, name, **labels):
    return sum(gateway.counts(name, **labels) for gateway in gateways)


def a_missing_page_is_rendered_once(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", CLIENTS)
    rendering = s.origin.waits_for("/page", 1).gateway
    wait_for_waiters(gateways)
    s.origin.release("/page")
    counted = pages_of(crowd.answers(), {1})
    same(s.origin.count("/page"), 1, "renders")
    same(by_state(counted), {"miss": CLIENTS // 4, "wait-hit": CLIENTS - CLIENTS // 4}, "states")
    theirs = pages_of(crowd.answers_of([g for g in gateways if g.name == rendering]), {1})
    same(by_state(theirs), {"miss": CLIENTS // 4}, "states of those whose gateway rendered")
    same(total(gateways, "facetheory_regenerations_total", outcome="published"), 1, "published")
    same(total(gateways, "facetheory_requests_total", state="wait-hit"), CLIENTS - CLIENTS // 4, "counted requests")
    for gateway in gateways:
        gateway.get("/page").is_(200, "hit", 1)
    same(s.origin.count("/page"), 1, "renders in the end")


def an_expired_page_is_served_to_all_while_it_is_rendered_once(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [1, 3600]
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    crowd = Crowd(gateways, "/page", CLIENTS)
    # The origin does not answer until everybody was served: nobody waits for it.
    counted = pages_of(crowd.answers(), {1})
    same(by_state(counted), {"stale": CLIENTS}, "states")
    s.origin.waits_for("/page", 2)
    s.origin.release("/page")
    for gateway in gateways:
        gateway.becomes("/page", "hit", 2)
    same(s.origin.count("/page"), 2, "renders, with the first one")


def expired(origin):
    """The page's window has ended, and the origin holds every further render of it."""
    origin.hold("/page")
    time.sleep(2.1)  # A window of 1 s, in whole seconds; pointers of DynamoDB are believed for 1 s.
    same(origin.count("/page"), 1, "renders before the page has expired")


def an_expired_page_that_must_be_fresh_is_waited_for_and_rendered_once(s, store):
    gateways = s.on(store).gateways(4, defaults='mode = "blocking"')
    s.origin.windows["/page"] = [1, 3600]
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    crowd = Crowd(gateways, "/page", CLIENTS)
    s.origin.waits_for("/page", 2)
    wait_for_waiters(gateways)
    s.origin.release("/page")
    pages_of(crowd.answers(), {2})
    same(s.origin.count("/page"), 2, "renders, with the first one")


def another_gateway_takes_over_when_the_rendering_one_is_killed(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", CLIENTS)
    name = s.origin.waits_for("/page", 1).gateway
    killed = next(gateway for gateway in gateways if gateway.name == name)
    wait_for_waiters(gateways)
    killed.kill()
    taker = s.origin.waits_for("/page", 2).gateway
    check(taker != name, f"{taker} rendered twice")
    s.origin.release("/page")
    others = [gateway for gateway in gateways if gateway is not killed]
    pages_of(crowd.answers_of(others), {2})
    lost = [answer for answer in crowd.answers_of([killed]) if isinstance(answer, Answer)]
    same(lost, [], "answers of the gateway that was killed")
    same(total(others, "facetheory_leases_total", event="taken_over"), 1, "leases taken over")
    same(s.origin.count("/page"), 2, "renders, with the one that was lost")
    for gateway in others:
        gateway.becomes("/page", "hit", 2)
    same(s.origin.count("/page"), 2, "renders in the end")


def an_expired_page_stays_served_when_the_rendering_gateway_is_killed(s, store):
    gateways = s.on(store).gateways(4)
    s.origin.windows["/page"] = [1, 3600]
    gateways[0].get("/page").is_(200, "miss", 1)
    expired(s.origin)
    counted = pages_of(Crowd(gateways, "/page", CLIENTS).answers(), {1})
    same(by_state(counted), {"stale": CLIENTS}, "states")
    name = s.origin.waits_for("/page", 2).gateway
    killed = next(gateway for gateway in gateways if gateway.name == name)
    killed.kill()
    others = [gateway for gateway in gateways if gateway is not killed]
    def taken_over():
        for gateway in others:
            gateway.get("/page").is_(200, "stale", 1)
        return s.origin.count("/page") >= 3
    until(taken_over, "somebody takes over")
    s.origin.release("/page")
    for gateway in others:
        gateway.becomes("/page", "hit", 3)
    same(s.origin.count("/page"), 3, "renders, with the first one and the one that was lost")


CASES = [a_missing_page_is_rendered_once, an_expired_page_is_served_to_all_while_it_is_rendered_once,
         an_expired_page_that_must_be_fresh_is_waited_for_and_rendered_once, another_gateway_takes_over_when_the_rendering_one_is_killed,
         an_expired_page_stays_served_when_the_rendering_gateway_is_killed]

if __name__ == "__main__":
    harness.main(__name__, more=[(f"{case.__name__.replace('_', ' ')} on {name}", lambda s, case=case, store=store: case(s, store))
                                 for name, store in STORES.items() for case in CASES])
