#!/usr/bin/python3
"""SIGTERM lets what is under way end, SIGHUP changes the configuration under open connections, and a start that cannot
succeed says why.

    signals_test.py --facetheory build/release/facetheory [WORD...]
"""
import concurrent.futures
import signal
import socket
import time

import harness
from harness import Crowd, below, check, same, tally, until


def refuses_connections(gateway):
    try:
        socket.create_connection(("127.0.0.1", gateway.port), timeout=5).close()
        return False
    except (ConnectionRefusedError, ConnectionResetError):  # Reset: it was in the backlog when the listener closed.
        return True


def sigterm_lets_requests_under_way_be_answered_and_refuses_new_connections(s):
    gateway = s.gateway(limits='drain_timeout = "20s"')
    idle = gateway.client()
    s.origin.hold("/page")
    idle("/other").is_(200, "miss", 1)
    s.origin.hold("/form")
    crowd = Crowd([gateway], "/page", 50)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        passing = pool.submit(gateway.get, "/form", method="POST", body=b"x" * 100_000)
        until(lambda: gateway.counts("facetheory_waiters") == 50 and s.origin.posts, "all requests are under way")
        gateway.signal(signal.SIGTERM)
        until(lambda: refuses_connections(gateway), "new connections are refused", limit=5)
        gateway.says("stopping")
        s.origin.release("/page")
        s.origin.release("/form")
        released = time.monotonic()
        same(tally(crowd.answers()), {(200, "miss", 1): 50}, "answers")
        check(
            all(answer.fields.get("connection") == "close" for answer in crowd.answers()),
            "they say that the connection ends",
        )
        passing.result().is_(200, "pass")
    gateway.ends(0, limit=10)
    below(time.monotonic() - released, 5, "seconds to the end")
    same(s.origin.count("/page"), 1, "renders")


def with_a_delay_it_is_not_ready_first_and_answers_on(s):
    gateway = s.gateway(limits='drain_delay = "4s"')
    idle = gateway.client()
    idle("/page").is_(200, "miss", 1)
    began = time.monotonic()
    gateway.signal(signal.SIGTERM)
    until(lambda: not gateway.ready(), "it is not ready", limit=2)
    for i in range(20):  # On new connections, and also what must be rendered.
        gateway.get(f"/{i}").is_(200, "miss", 1)
    idle("/page").is_(200, "hit", 1)
    below(time.monotonic() - began, 4, "seconds to the last answer, with a delay of 4")
    until(lambda: refuses_connections(gateway), "new connections are refused", limit=10)
    check(time.monotonic() - began > 3.9, "connections were refused before the delay was over")
    gateway.ends(0, limit=10)


def a_second_signal_ends_it_at_once_also_while_it_delays_its_end(s):
    gateway = s.gateway(limits='drain_delay = "1m"')
    gateway.signal(signal.SIGTERM)
    until(lambda: not gateway.ready(), "it is not ready", limit=5)
    gateway.signal(signal.SIGTERM)
    gateway.ends(-signal.SIGTERM, limit=3)


def sighup_while_it_stops_changes_nothing(s):
    gateway = s.gateway(limits='drain_delay = "2s"')
    gateway.signal(signal.SIGTERM)
    until(lambda: not gateway.ready(), "it is not ready", limit=2)
    gateway.signal(signal.SIGHUP)
    gateway.get("/page").is_(200, "miss", 1)
    gateway.ends(0, limit=10)


def a_start_that_fails_is_not_delayed(s):
    first = s.gateway("first")
    began = time.monotonic()
    second = s.gateway(
        "second", settings=f'admin = "127.0.0.1:{first.admin}"\n', limits='drain_delay = "1m"', expect_start=False
    )
    second.ends(2, limit=20)
    below(time.monotonic() - began, 20, "seconds to the end")


def what_was_rendered_while_it_drained_is_stored(s):
    gateway = s.gateway()
    s.origin.windows["/page"] = [3600]
    s.origin.hold("/page")
    crowd = Crowd([gateway], "/page", 5)
    until(lambda: gateway.counts("facetheory_waiters") == 5, "all requests are under way")
    gateway.signal(signal.SIGTERM)
    until(lambda: refuses_connections(gateway), "new connections are refused", limit=5)
    s.origin.release("/page")
    same(tally(crowd.answers()), {(200, "miss", 1): 5}, "answers")
    gateway.ends(0, limit=10)
    s.gateway("successor").get("/page").is_(200, "hit", 1)


def requests_that_take_longer_than_the_drain_limit_do_not_hold_up_the_end(s):
    gateway = s.gateway(limits='drain_timeout = "1s"')
    s.origin.hold()
    crowd = Crowd([gateway], "/page", 5)
    s.origin.waits_for("/page", 1)
    gateway.signal(signal.SIGTERM)
    began = time.monotonic()
    gateway.ends(0, limit=20)
    below(time.monotonic() - began, 1 + 2, "seconds to the end, with a limit of 1")
    check(all(isinstance(answer, Exception) for answer in crowd.answers()), f"answers: {tally(crowd.answers())}")


def a_second_signal_ends_it_at_once(s):
    gateway = s.gateway()
    s.origin.hold()
    Crowd([gateway], "/page", 5)
    s.origin.waits_for("/page", 1)
    gateway.signal(signal.SIGTERM)
    gateway.says("a second signal stops at once")
    time.sleep(0.2)
    gateway.signal(signal.SIGTERM)
    gateway.ends(-signal.SIGTERM, limit=3)


def whoever_waits_for_a_renderer_that_was_killed_gets_the_page_with_the_defaults(s):
    defaults = "# no lease = of this test's own, and no wait_limit"
    gateways = s.gateways(2, defaults=defaults)
    s.origin.windows["/page"] = [3600]
    s.origin.delay = 2  # seconds that a render takes
    s.origin.hold("/page")
    crowd = Crowd(gateways, "/page", 10, limit=60)
    name = s.origin.waits_for("/page", 1).gateway
    killed = next(gateway for gateway in gateways if gateway.name == name)
    other = next(gateway for gateway in gateways if gateway is not killed)
    until(lambda: other.counts("facetheory_waiters") == 5, "the others wait")
    killed.kill()
    s.origin.waits_for("/page", 2)
    s.origin.release("/page")
    same(tally(crowd.answers_of([other])), {(200, "miss", 2): 5}, "answers")
    other.get("/page").is_(200, "hit", 2)


def idle_connections_do_not_hold_up_the_end(s):
    gateway = s.gateway()
    clients = [gateway.client() for _ in range(20)]
    for client in clients:
        client("/page").is_(200)
    gateway.signal(signal.SIGINT)
    gateway.ends(0, limit=5)


def sighup_changes_a_route_without_dropping_an_open_connection(s):
    gateway = s.gateway()
    client = gateway.client()
    client("/page").is_(200, "miss", 1)
    before = client.connection.sock.getsockname()
    client("/page").is_(200, "hit", 1)
    s.origin.hold("/slow")
    crowd = Crowd([gateway], "/slow", 10)
    s.origin.waits_for("/slow", 1)

    gateway.configure(routes='[[routes]]\npattern = "/page"\ncache = false\n[[routes]]\npattern = "/{rest*}"\n')
    gateway.signal(signal.SIGHUP)
    gateway.says("reloaded")
    until(lambda: client("/page").isr == "pass", "the changed route is in force", limit=5)
    same(client.connection.sock.getsockname(), before, "the connection")
    s.origin.release("/slow")
    same(tally(crowd.answers()), {(200, "miss", 1): 10}, "requests that were under way")

    gateway.configure(routes="")
    gateway.signal(signal.SIGHUP)
    until(lambda: client("/page").isr == "hit", "the first configuration is back", limit=5)
    same(client.connection.sock.getsockname(), before, "the connection")


def sighup_moves_to_another_origin(s):
    gateway = s.gateway(defaults='revalidate = "1s"')
    client = gateway.client()
    client("/page").is_(200, "miss", 1)
    other = harness.Origin()
    s.stack.callback(other.vanish)
    s.origin.vanish()
    gateway.origin_port = other.port
    gateway.configure()
    gateway.signal(signal.SIGHUP)
    gateway.says("reloaded")
    until(lambda: client("/page").is_(200) and other.count("/page"), "the other origin is asked")
    client("/new").is_(200, "miss", 1)


def sighup_with_a_broken_file_keeps_the_configuration_and_says_why(s):
    gateway = s.gateway()
    client = gateway.client()
    client("/page").is_(200, "miss", 1)
    for text, said in (
        ("[[routes]]\npattern = /page\n", "gateway.toml:"),
        ("[[routes]]\npattern = \"/page\"\ncash = false\n", "cash"),
    ):
        gateway.said.clear()
        gateway.configure(routes=text)
        gateway.signal(signal.SIGHUP)
        gateway.says("not reloaded, the configuration stays as it was", said)
        client("/page").is_(200, "hit", 1)
    gateway.file.unlink()
    gateway.said.clear()
    gateway.signal(signal.SIGHUP)
    gateway.says("not reloaded", "gateway.toml")
    client("/page").is_(200, "hit", 1)
    gateway.configure(routes="")
    gateway.said.clear()
    gateway.signal(signal.SIGHUP)
    gateway.says("reloaded")
    client("/page").is_(200, "hit", 1)


def sighup_names_what_takes_a_restart(s):
    gateway = s.gateway()
    gateway.configure(settings=gateway.parts["settings"] + '\nmemory = "1 MiB"\nthreads = 1\n')
    gateway.signal(signal.SIGHUP)
    gateway.says("`memory` takes a restart", "`threads` takes a restart")
    gateway.get("/page").is_(200, "miss", 1)


def a_taken_port_is_named_with_exit_code_2(s):
    first = s.gateway("first")
    second = s.gateway("second", settings=f'listen = "127.0.0.1:{first.port}"\n', expect_start=False)
    second.ends(2, limit=10)
    check(f"127.0.0.1 port {first.port}" in second.stderr and "choose another port" in second.stderr, second.stderr)
    third = s.gateway("third", settings=f'admin = "127.0.0.1:{first.admin}"\n', expect_start=False)
    third.ends(2, limit=10)
    check(str(first.admin) in third.stderr, third.stderr)
    first.get("/page").is_(200, "miss", 1)


if __name__ == "__main__":
    harness.main(__name__, side_by_side=4)
