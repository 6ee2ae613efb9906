#!/usr/bin/python3
"""What clients get while the origin, the table, the bodies or the disk fail: every row of docs/outages.md.

    outages_test.py --facetheory build/release/facetheory [WORD...]

A row is prepared (the page's state), its failure begins, the page is asked for several times: status and
x-facetheory-isr must be those of the row, each time, within LIMIT. Then the failure ends, and the page must become a
hit without a restart, never a 5xx on the way if it was known.

The disk is full by RLIMIT_FSIZE, set and lifted while the gateway runs: its writes fail with EFBIG where a full disk
says ENOSPC. A small file system would need the right to mount one.
"""
import concurrent.futures
import ctypes
import pathlib
import re
import resource
import shutil
import time

import harness
from harness import below, check, same, until

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "outages.md"
LIMIT = 5.0  # seconds that an answer may take in the worst of rows; without limits of ours it would be minutes
RECOVERY = 20  # seconds: the longest of the first pauses, and time to breathe
ASKED = 3  # times
ORIGIN = 'connect_timeout = "1s"\nread_timeout = "1500ms"\nrender_timeout = "1500ms"\n'
DEFAULTS = 'wait_limit = "1s"\n'
PATH = "/page"


class Row:
    """A cell may say two things: "failed, then pass" of the first request and of later ones, "503 or 502" of each."""

    def __init__(self, failure, page, status, isr):
        self.failure, self.page = failure, page
        self.statuses, self.states = ([one.split(" or ") for one in cell.split(", then ")] for cell in (status, isr))
        self.name = f"{failure}: {page} page gets {status} {isr}"

    def __call__(self, s):
        failure = FAILURES[self.failure](s)
        gateway = prepare(s, self.page)
        if hasattr(failure, "prepare"):
            failure.prepare(gateway)
        renders = s.origin.count(PATH)
        failure.begin(gateway)
        try:
            for i in range(ASKED):
                answer, which = gateway.get(PATH), 0 if i == 0 else -1
                check(
                    str(answer.status) in self.statuses[which] and answer.isr in self.states[which],
                    f"expected {self.name}, found {answer}",
                )
                below(answer.seconds, LIMIT, f"seconds for {answer}")
                if answer.isr == "failed" and self.failure == "origin fails":
                    check("retry-after" in answer.fields, f"no Retry-After: {answer}")
                if answer.isr in ("hit", "stale", "stale-metadata-error") and self.failure != "folder moved away":
                    same(answer.render, renders, f"the page: {answer}")
                time.sleep(0.1)
        finally:
            failure.end(gateway)
        known = self.statuses == [["200"]]

        def healthy():
            after = gateway.get(PATH)
            check(not known or after.status == 200, f"while it recovers: {after}")
            below(after.seconds, LIMIT, f"seconds for {after}")
            return after.status == 200 and after.isr == "hit"

        until(healthy, "the page is a hit again", limit=RECOVERY)
        if "stale" in self.page or self.page == "missing":
            check(s.origin.count(PATH) > renders, "it was rendered after the failure")
        until(gateway.ready, "/readyz says that all is well", limit=RECOVERY)


def rows():
    found = []
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.match(r"\d{3}", cells[2]):
            found.append(Row(*cells[:4]))
    return found


# --- States of a page ---


def prepare(s, page):
    words = [word.strip() for word in page.split(",")]
    s.origin.windows[PATH] = [1, 3600] if "stale" in words else [3600]
    s.origin.allows_stale = "blocking" not in words
    defaults = DEFAULTS + ('mode = "blocking"\n' if "blocking" in words else "")
    # Started before anything fails; SIGXFSZ would end it where the disk only is full.
    gateway = s.gateway(defaults=defaults, origin=ORIGIN, prefix=["env", "--ignore-signal=XFSZ"])
    if words[0] == "missing":
        return gateway
    elsewhere = "not in memory" in words or "not known here" in words
    first = s.gateway("another", defaults=defaults, origin=ORIGIN) if elsewhere else gateway
    first.get(PATH).is_(200, "miss", 1)
    # The window must have ended, in whole seconds; and pointers of DynamoDB are believed for one.
    if "stale" in words or s.table.startswith("dynamodb:"):
        time.sleep(2.1)
    return gateway


# --- Failures ---


class OriginRefuses:
    def __init__(self, s):
        self.s = s

    def begin(self, _):
        self.s.origin.vanish()

    def end(self, _):
        self.s.origin.appear()


class OriginHangs(OriginRefuses):
    def begin(self, _):
        self.s.origin.hold()

    def end(self, _):
        self.s.origin.release()


class OriginFails(OriginRefuses):
    def begin(self, _):
        self.s.origin.fail()

    def end(self, _):
        self.s.origin.heal()


class TableRefuses:
    def __init__(self, s):
        self.s = s.on("aws", relayed=True)
        self.relay = self.s.table_relay

    def begin(self, _):
        self.relay.vanish()

    def end(self, _):
        self.relay.appear()


class TableHangs(TableRefuses):
    def begin(self, _):
        self.relay.hang()

    def end(self, _):
        self.relay.go_on()


def wait_until_stored(gateway):
    """A page may reach its first client before it is stored."""
    until(lambda: gateway.metrics()["facetheory_pages_being_stored"] == 0, "what was rendered is stored")


class TableWritesHang(TableHangs):
    prepare = staticmethod(wait_until_stored)

    def begin(self, _):
        self.relay.hang_writes()


class TableWriterHeld:
    """Another process has the write lock of the LMDB table, as one has that was stopped in the middle of a write."""

    def __init__(self, s):
        self.folder, self.lmdb = s.folder / "data/table", ctypes.CDLL("liblmdb.so.0")
        self.environment, self.write = ctypes.c_void_p(), ctypes.c_void_p()

    def begin(self, _):
        codes = [self.lmdb.mdb_env_create(ctypes.byref(self.environment))]
        codes.append(self.lmdb.mdb_env_open(self.environment, str(self.folder).encode(), 0, 0o600))
        codes.append(self.lmdb.mdb_txn_begin(self.environment, None, 0, ctypes.byref(self.write)))
        same(codes, [0, 0, 0], "what LMDB says")

    def end(self, _):
        self.lmdb.mdb_txn_abort(self.write)
        self.lmdb.mdb_env_close(self.environment)


class TableAndOriginRefuse(TableRefuses):
    def begin(self, _):
        self.relay.vanish()
        self.s.origin.vanish()

    def end(self, _):
        self.relay.appear()
        self.s.origin.appear()


class BodiesRefuse(TableRefuses):
    def __init__(self, s):
        super().__init__(s)
        self.relay = self.s.bodies_relay


class BodiesHang(TableHangs):
    prepare = staticmethod(wait_until_stored)

    def __init__(self, s):
        super().__init__(s)
        self.relay = self.s.bodies_relay


class BodyWritesHang(BodiesHang):
    def begin(self, _):
        self.relay.hang_writes()


class BodiesLeftAlone(BodiesHang):
    """They hang, and the gateway has noticed."""

    def prepare(self, gateway):
        """Pages that it has not in memory."""
        first = self.s.gateway("elsewhere", defaults=DEFAULTS, origin=ORIGIN)
        self.others = [f"/other/{i}" for i in range(5)]
        for path in self.others:
            self.s.origin.windows[path] = [3600]
            first.get(path).is_(200, "miss", 1)
        del gateway

    def begin(self, gateway):
        super().begin(gateway)
        with concurrent.futures.ThreadPoolExecutor(len(self.others)) as pool:
            for answer in pool.map(gateway.get, self.others):
                answer.is_(200, "uncached")
        same(gateway.metrics()["facetheory_bodies_up"], 0, "bodies that are up")


class FolderMovedAway:
    def __init__(self, s):
        self.s, self.bodies, self.away = s, s.folder / "data/bodies", s.folder / "away"
        s.bodies = f"file:{self.bodies}"  # Those of a table stay open.

    def begin(self, _):
        shutil.move(self.bodies, self.away)

    def end(self, _):
        shutil.copytree(self.away, self.bodies, dirs_exist_ok=True)


class FolderBlocked(FolderMovedAway):
    def begin(self, gateway):
        super().begin(gateway)
        self.bodies.write_text("not a folder")

    def end(self, _):
        self.bodies.unlink()
        shutil.move(self.away, self.bodies)


class DataFolderGone:
    """With the table and the bodies, from under a gateway that has them open."""

    def __init__(self, s):
        self.data, self.away = s.folder / "data", s.folder / "away"

    def begin(self, gateway):
        shutil.move(self.data, self.away)
        until(lambda: not gateway.ready(), "/readyz says that the folder is gone")
        time.sleep(1.1)  # Whoever writes looks once a second.

    def end(self, _):
        shutil.move(self.away, self.data)


class DiskFull:
    def __init__(self, s):
        self.s = s

    def begin(self, gateway):
        self._limit(gateway, 0)

    def end(self, gateway):
        self._limit(gateway, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(gateway, soft):
        _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(
            gateway.process.pid, resource.RLIMIT_FSIZE, (hard if soft == resource.RLIM_INFINITY else soft, hard)
        )


FAILURES = {
    "origin refuses": OriginRefuses,
    "origin hangs": OriginHangs,
    "origin fails": OriginFails,
    "table refuses": TableRefuses,
    "table hangs": TableHangs,
    "table and origin refuse": TableAndOriginRefuse,
    "bodies refuse": BodiesRefuse,
    "bodies hang": BodiesHang,
    "bodies left alone": BodiesLeftAlone,
    "table writes hang": TableWritesHang,
    "body writes hang": BodyWritesHang,
    "table writer held": TableWriterHeld,
    "folder blocked": FolderBlocked,
    "folder moved away": FolderMovedAway,
    "disk full": DiskFull,
    "data folder gone": DataFolderGone,
}


def a_data_folder_that_was_deleted_is_told_and_another_gateway_begins_anew_beside_it(s):
    gateway = s.gateway()
    s.origin.windows |= {PATH: [3600], "/later": [3600]}
    gateway.get(PATH).is_(200, "miss", 1)
    same((s.folder / "data/table").stat().st_mode & 0o777, 0o700, "mode of the folder")
    check("chmod" not in gateway.stderr, f"a warning about a folder of its own: {gateway.stderr}")
    shutil.rmtree(s.folder / "data")
    gateway.says("the folder of the table", "was deleted or replaced", "restart this gateway")
    until(lambda: not gateway.ready(), "it is not ready")
    client = harness.Client(gateway.admin)
    check(b"was deleted or replaced" in client("/readyz").body, "/readyz says why")
    client.close()
    time.sleep(1.1)
    gateway.get(PATH).is_(200, "hit", 1)
    gateway.get("/later").is_(200, "uncached", 1)
    second = s.gateway("second")
    second.get("/later").is_(200, "miss", 2)
    check(second.ready(), "the second gateway is ready")
    check(not gateway.ready(), "the first one is not")
    gateway.get("/later").is_(200, "uncached", 3)
    same(gateway.stderr.count("the folder of the table"), 1, "how often it is told")


def a_table_that_takes_no_writes_is_told_and_a_client_who_changes_something_is_answered(s):
    gateway = s.on("aws", relayed=True).gateway(defaults=DEFAULTS, origin=ORIGIN)
    s.origin.windows |= {PATH: [3600]} | {f"/later/{i}": [3600] for i in range(5)}
    gateway.get(PATH).is_(200, "miss", 1)
    s.table_relay.hang_writes()
    client = harness.Client(gateway.port)
    changed = client(PATH, "POST", b"")
    below(changed.seconds, 3.5, f"seconds for {changed}")
    same(changed.status, 200, "the origin's answer to the POST")
    client.close()
    for i in range(5):
        gateway.get(f"/later/{i}").is_(200, "uncached", 1)
    until(lambda: not gateway.ready(), "it is not ready")
    admin = harness.Client(gateway.admin)
    check(b"the table cannot be written" in admin("/readyz").body, f"/readyz says why: {admin('/readyz').body}")
    admin.close()
    same(gateway.metrics()["facetheory_table_writable"], 0, "table that can be written")
    same(gateway.metrics()["facetheory_purges_late_total"], 1, "purges that were late")
    s.table_relay.go_on()
    until(gateway.ready, "/readyz says that all is well", limit=RECOVERY)
    until(
        lambda: gateway.get(PATH).render == 2 or gateway.get(PATH).render == 3,
        "what was changed is rendered again",
        limit=RECOVERY,
    )


def a_full_disk_is_told_and_hits_go_on(s):
    """On stderr and in the metrics. The gateway stays ready: another one would answer no better from this disk."""
    gateway = s.gateway(prefix=["env", "--ignore-signal=XFSZ"])
    s.origin.windows |= {PATH: [3600], "/later": [3600]}
    gateway.get(PATH).is_(200, "miss", 1)
    wait_until_stored(gateway)
    check("failed" not in gateway.stderr, f"a warning before anything failed: {gateway.stderr}")
    disk = DiskFull(s)
    disk.begin(gateway)
    for i in range(ASKED):
        answer = gateway.get("/later")
        same((answer.status, answer.render), (200, i + 1), f"a page for which there is no room: {answer}")
    gateway.get(PATH).is_(200, "hit", 1)
    gateway.says(" failed (write): exhausted: ", "make room on the disk", "facetheory_store_errors_total")

    def errors():
        return sum(n for name, n in gateway.metrics().items() if name.startswith("facetheory_store_errors_total{"))

    until(lambda: errors() >= ASKED, "each failure is counted")
    told = gateway.stderr.count("exhausted: ")
    check(told < errors(), f"{errors()} failures are told {told} times")
    check(gateway.ready(), "it is ready")
    disk.end(gateway)
    gateway.becomes("/later", "hit", limit=RECOVERY)


def a_data_folder_that_others_may_read_is_named(s):
    (s.folder / "data/table").mkdir(parents=True)
    (s.folder / "data/table").chmod(0o755)
    s.gateway().says("others may read or write the folder of the table", "(mode 0755)", "chmod 700")


def the_document_has_a_row_for_every_failure(s):
    del s
    same({row.failure for row in rows()}, set(FAILURES), "failures of docs/outages.md")
    check(len(rows()) >= 30, f"{len(rows())} rows")


if __name__ == "__main__":
    harness.main(__name__, side_by_side=6, more=[(row.name, row) for row in rows()])
