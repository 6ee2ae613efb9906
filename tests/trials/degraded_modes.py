"""The trials: every degraded mode of docs/outages.md, and a few that are worse. trials.py says what fails them."""
import contextlib
import pathlib
import resource
import shutil
import subprocess
import time

from trials import Failed, Trial, check, mount, spawn

# --- Faults ---


def table(fault, *details):
    return lambda bed: bed.table_relay.fault(fault, *details)


def bodies(fault, *details):
    return lambda bed: bed.bodies_relay.fault(fault, *details)


def origin(fault, *details):
    return lambda bed: bed.origin.fault(fault, *details)


class Flapping:
    """One step after the other, each for a third of a second, from the first one on."""

    STEP = 0.35

    def __init__(self, *steps):
        self.steps, self.bed, self.began, self.last = steps, None, 0, None

    def __call__(self, bed):
        if self.bed is not bed:
            self.bed, self.began, self.last = bed, time.monotonic(), None
        step = int((time.monotonic() - self.began) / self.STEP)
        if step != self.last:
            self.last = step
            self.steps[step % len(self.steps)](bed)


def nothing(_):
    pass


def both(first, second):
    return lambda bed: (first(bed), second(bed))


def remount(*words):
    """A disk that is being written to is tried again until no file is open for it."""

    def act(bed):
        deadline = time.monotonic() + 10
        while True:
            try:
                return mount("-o", ",".join(("remount", *words)), bed.mounted)
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)

    return act


def limit(which, amount):
    """Of the running gateway; None: no limit."""

    def act(bed):
        most = resource.RLIM_INFINITY if amount is None else amount(bed) if callable(amount) else amount
        try:
            resource.prlimit(bed.gateway.process.pid, which, (most, resource.RLIM_INFINITY))
        except ProcessLookupError:
            bed.look_after()
            resource.prlimit(bed.gateway.process.pid, which, (most, resource.RLIM_INFINITY))

    return act


def what_it_has_and(megabytes):
    def bytes_of(bed):
        status = pathlib.Path(f"/proc/{bed.gateway.process.pid}/status").read_text()
        return (int(status.partition("VmData:")[2].split()[0]) << 10) + (megabytes << 20)

    return bytes_of


class DeleteData:
    """Under load, as somebody would who has the wrong terminal."""

    def __init__(self):
        self.bed = None

    def __call__(self, bed):
        if self.bed is not bed:
            self.bed = bed
            for _ in range(10):  # Files appear while it is being deleted.
                shutil.rmtree(bed.data, ignore_errors=True)
            bed.data.mkdir(exist_ok=True)


class FolderElsewhere:
    """The folder of the bodies is moved away, or something else stands in its place as well. Then it comes back."""

    def __init__(self, is_blocked):
        self.is_blocked = is_blocked

    def begin(self, bed):
        (bed.data / "bodies").rename(bed.data / "away")
        if self.is_blocked:
            (bed.data / "bodies").write_text("not a folder")

    @staticmethod
    def end(bed):
        here = bed.data / "bodies"
        deadline = time.monotonic() + 10
        while here.exists():  # The gateway may have made another one, and be writing there.
            check(time.monotonic() < deadline, f"{here} cannot be removed")
            here.unlink() if here.is_file() else shutil.rmtree(here, ignore_errors=True)
        (bed.data / "away").rename(here)


class Spilling:
    """Answers that have left the memory must be in the file without a name. There is none on some file systems. Where
    the disk becomes full it does so when some have been spilled."""

    def __init__(self, becomes_full):
        self.becomes_full, self.bed, self.most, self.began, self.is_full = becomes_full, None, 0, 0, False

    def __call__(self, bed):
        if self.bed is not bed:
            self.bed, self.most, self.began, self.is_full = bed, 0, time.monotonic(), False
        for file in pathlib.Path(f"/proc/{bed.gateway.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if file.readlink().name.endswith(" (deleted)"):
                    self.most = max(self.most, file.stat().st_size)
        is_time = time.monotonic() - self.began > min(15 * bed.options.patience, bed.options.seconds / 2)
        if self.becomes_full and is_time and not self.is_full:
            limit(resource.RLIMIT_FSIZE, 0)(bed)
            self.is_full = True

    def end(self, bed):
        if self.becomes_full:
            limit(resource.RLIMIT_FSIZE, None)(bed)
            # It may have come between LMDB's pages and the one that names them, where a full disk does not.
            if any("restart this process" in line for line in bed.gateway.said):
                start_again(bed)
        if any("no file for them" in line for line in bed.gateway.said):
            return print("# no answers were spilled: this file system cannot tell whether a read waits", flush=True)
        print(f"# {self.most / 2**20:.1f} MiB of answers were spilled", flush=True)
        check(self.most > 0 or bed.options.seconds < 30 * bed.options.patience, "no answer left the memory")


class WithinBudget:
    """What the data folder takes may be five percent more than `disk` says, at no moment more."""

    def __init__(self, megabytes):
        self.budget, self.bed, self.most = megabytes << 20, None, 0

    def __call__(self, bed):
        if self.bed is not bed:
            self.bed, self.most = bed, 0
        taken = 0
        for file in bed.data.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                taken += file.stat().st_blocks * 512 if file.is_file() else 0
        self.most = max(self.most, taken)
        check(
            taken <= self.budget * 1.05, f"the data takes {taken / 2**20:.1f} MiB, and disk is {self.budget >> 20} MiB"
        )

    def tell(self, bed):
        print(f"# the data took {self.most / 2**20:.1f} of {self.budget >> 20} MiB at most", flush=True)
        evicts = any("are evicted to make room" in line for line in bed.gateway.said)
        check(evicts or bed.options.seconds < 60, "the budget was not reached")


class HoldWriter:
    """Another process has the table's write lock, as a gateway has that was stopped in the middle of a write."""

    def __init__(self):
        self.holder = None

    def begin(self, bed):
        self.holder = spawn(
            [bed.options.programs / "trial_holder", bed.data / "table"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        bed.stack.callback(self.end, bed)
        check(self.holder.stdout.readline() == "held\n", "the lock is held")

    def end(self, _):
        if self.holder:
            self.holder.stdin.close()
            self.holder.wait(10)
            self.holder.stdout.close()
            self.holder = None


def start_again(bed):
    """What was deleted does not come back by itself."""
    bed.health.stop()
    bed.gateway.ends_in_time()
    bed.gateway.start_again()


# --- Loads ---

# For trials in which a miss takes long: so many hits come between that a million answers take minutes. Misses are as
# many as otherwise.
SLOW = {"hot": 96, "pass": 1, "again": 1}
# Trials that store pages ask for fewer new ones, so that a million answers fit on the disk.
STORED = {"hot": 60, "pass": 10, "again": 15}
# Trials in which readers must wait now and then have enough of them for a million answers.
MANY = 200

ONE_ROUND = 3  # seconds, of Flapping with seven steps

# More known pages than the memory has room for, on a disk: most hits are spilled answers, whose bodies are read from
# LMDB's file. Meanwhile pages change.
BEYOND_MEMORY = {"hot": 85, "hot_pages": 1000, "pass": 0, "again": 5, "change": 5, "private": 5}
LITTLE_MEMORY = 'memory = "1 MiB"'

WRITER = HoldWriter()
BLOCKED, MOVED = FolderElsewhere(is_blocked=True), FolderElsewhere(is_blocked=False)
SMALL_DISK = "size=14m"
BUDGET = WithinBudget(64)
SPILLING, SPILLING_UNTIL_FULL = Spilling(becomes_full=False), Spilling(becomes_full=True)
LARGE_DISK = "size=6g"  # of memory, so that what is tried is not the disk


# --- The trials ---


def of_table(name, about, *fault, **more):
    return Trial(
        f"table-{name}",
        about,
        table(*fault),
        table("none"),
        stores="aws",
        **{"sees": ("uncached", "stale-metadata-error")} | more,
    )


def of_bodies(name, about, *fault, **more):
    return Trial(
        f"bodies-{name}",
        about,
        bodies(*fault),
        bodies("none"),
        stores="aws",
        load=SLOW,
        **{"sees": ("uncached",)} | more,
    )


def of_origin(name, about, *fault, **more):
    return Trial(f"origin-{name}", about, origin(*fault), origin("none"), mount=LARGE_DISK, **{"load": STORED} | more)


TRIALS = [
    of_table("refused", "the table refuses connections", "refuse", unready=True),
    of_table("reset", "the table resets every connection after the request", "reset", unready=True),
    of_table("cut", "the table's answers break off", "cut"),
    of_table("hanging", "the table takes requests and does not answer", "hang", load=SLOW, unready=True, readers=MANY),
    # The first who ask for new pages wait for two seconds. A POST of theirs would, too.
    of_table(
        "writes-hanging",
        "the table answers reads and takes writes without an answer",
        "hang_writes",
        load=SLOW,
        sees=("uncached",),
        unready=True,
        least=3,
        readers=MANY,
    ),
    # In a long run a thousand readers keep such a table so busy that now and then a new page does not get through
    # within wait_limit: four of a million were 503.
    of_table(
        "slow",
        "every answer of the table takes 150 ms",
        "slow",
        100,
        150,
        load=SLOW,
        sees=(),
        rare=(503,),
        readers=5 * MANY,
    ),
    of_table("throttled", "the table's capacity is used up", "throttle"),
    of_table(
        "flapping",
        "the table comes and goes, in every way",
        "none",
        least=ONE_ROUND,
        during=Flapping(*map(table, ("reset", "none", "refuse", "none", "cut", "hang", "none"))),
    ),
    Trial(
        "table-and-origin",
        "table and origin refuse: nothing is left but what is known",
        both(table("refuse"), origin("refuse")),
        both(table("none"), origin("none")),
        stores="aws",
        sees=("stale-metadata-error",),
        statuses=(502, 503),
    ),
    of_bodies("refused", "S3 refuses connections", "refuse", unready=True),
    of_bodies("reset", "S3 resets every connection after the request", "reset"),
    of_bodies("cut", "answers of S3 break off", "cut"),
    # The first who ask for pages that are not known wait in vain, and then one each second.
    of_bodies("hanging", "S3 takes requests and does not answer", "hang", sees=("uncached", "failed"), statuses=(503,)),
    of_bodies(
        "writes-hanging", "S3 answers reads and takes writes without an answer", "hang_writes", unready=True, least=4
    ),
    of_bodies("slow", "every answer of S3 takes 150 ms", "slow", 100, 150, sees=("miss",)),
    of_bodies("busy", "S3 asks to slow down", "busy"),
    of_bodies(
        "flapping",
        "S3 comes and goes, in every way",
        "none",
        least=ONE_ROUND,
        during=Flapping(*map(bodies, ("reset", "none", "refuse", "none", "cut", "hang", "none"))),
    ),
    Trial(
        "lmdb-writer-held",
        "another process holds the table's write lock",
        WRITER.begin,
        WRITER.end,
        sees=("uncached",),
        unready=True,
        least=3,
        load=SLOW,
        readers=MANY,
        mount=LARGE_DISK,
    ),
    Trial(
        "disk-full",
        "table and bodies on a disk of 14 MB",
        nothing,
        remount("size=1g"),
        mount=SMALL_DISK,
        sees=("uncached",),
    ),
    Trial(
        "disk-inodes",
        "the disk of the bodies has room for 300 files",
        nothing,
        remount("nr_inodes=1000000"),
        stores="files",
        mount="size=1g,nr_inodes=300",
        sees=("uncached", "pass"),
    ),
    Trial(
        "disk-readonly",
        "the disk of the bodies becomes read-only",
        remount("ro"),
        remount("rw"),
        stores="files",
        mount="size=1g",
        sees=("uncached", "pass"),
    ),
    Trial(
        "disk-unwritable",
        "no file can be written any more, the table's neither",
        limit(resource.RLIMIT_FSIZE, 0),
        limit(resource.RLIMIT_FSIZE, None),
        sees=("uncached",),
        prefix=("env", "--ignore-signal=XFSZ"),
    ),
    Trial(
        "disk-budget",
        "a crawler asks for ever new pages, and disk is 64 MiB",
        nothing,
        BUDGET.tell,
        during=BUDGET,
        settings='disk = "64 MiB"',
        sees=("miss",),
        load={"connections": 24, "hot": 30, "pass": 0, "again": 0},
        readers=0,
    ),
    Trial(
        "folder-blocked",
        "the folder of the bodies is away, and a file stands in its place",
        BLOCKED.begin,
        BLOCKED.end,
        stores="files",
        load=STORED,
        sees=("uncached", "pass"),
        unready=True,
    ),
    # Known pages whose bodies are not in memory, too.
    Trial(
        "folder-moved",
        "the folder of the bodies is moved away, and comes back",
        MOVED.begin,
        MOVED.end,
        stores="files",
        settings=LITTLE_MEMORY,
        load=STORED | {"hot_pages": 1000},
        sees=("miss",),
    ),
    Trial(
        "beyond-memory",
        "a thousand popular pages, of which some change, and memory is 1 MiB",
        nothing,
        SPILLING.end,
        during=SPILLING,
        settings=LITTLE_MEMORY,
        load=BEYOND_MEMORY,
        sees=("hit",),
    ),
    Trial(
        "beyond-memory-full",
        "the same, and then no file can be written any more",
        nothing,
        SPILLING_UNTIL_FULL.end,
        during=SPILLING_UNTIL_FULL,
        settings=LITTLE_MEMORY,
        load=BEYOND_MEMORY,
        sees=("uncached",),
        prefix=("env", "--ignore-signal=XFSZ"),
    ),
    Trial(
        "data-deleted",
        "the data folder is deleted while it is used",
        nothing,
        start_again,
        during=DeleteData(),
        load=STORED,
        sees=("uncached",),
        unready=True,
    ),
    of_origin("refused", "the origin refuses connections", "refuse", statuses=(502, 503)),
    of_origin(
        "hanging", "one request of ten is never answered by the origin", "hang", 10, statuses=(502, 503, 504), load=SLOW
    ),
    of_origin("slow", "every answer of the origin takes 200 ms", "slow", 100, 200, sees=("miss",)),
    of_origin("trickling", "half of the origin's answers come in pieces", "trickle", 50, 5, sees=("miss",)),
    of_origin("failing", "the origin answers 500, two times of three", "fail", 66, statuses=(500, 503)),
    of_origin("cut-head", "one head of five of the origin's breaks off", "cut_head", 20, statuses=(502, 503)),
    of_origin(
        "cut-body", "one body of five of the origin's breaks off", "cut_body", 20, statuses=(502, 503), allows=("cut",)
    ),
    of_origin("surplus", "a second answer that nobody asked for follows every third", "surplus", 33, sees=("miss",)),
    of_origin(
        "short",
        "the origin's Content-Length is too small, one time of ten",
        "short_length",
        10,
        sees=("miss",),
        load=STORED | {"short": "yes"},
    ),
    of_origin("closing", "the origin closes connections at bad moments", "close_idle", 50, statuses=(502, 503)),
    of_origin(
        "changing",
        "pages, half of them private, come in pieces and are changed meanwhile",
        "trickle",
        70,
        5,
        sees=("miss",),
        load={"hot": 20, "pass": 5, "again": 20, "change": 20, "private": 50},
    ),
    of_origin(
        "flapping",
        "the origin comes and goes, in every way",
        "none",
        least=ONE_ROUND,
        statuses=(500, 502, 503, 504),
        allows=("cut",),
        during=Flapping(*map(origin, ("refuse", "none", "cut_body", "surplus", "hang", "fail", "close_idle"))),
    ),
    Trial(
        "memory-short",
        "96 MiB more than it takes when it is idle",
        limit(resource.RLIMIT_DATA, what_it_has_and(96)),
        limit(resource.RLIMIT_DATA, None),
        settings='memory = "8 MiB"',
        sanitized=False,
        load=STORED | {"connections": 64},
        mount=LARGE_DISK,
    ),
    Trial(
        "memory-gone",
        "no memory is left, after each start again: the process ends, and is started again",
        limit(resource.RLIMIT_DATA, what_it_has_and(6)),
        limit(resource.RLIMIT_DATA, None),
        dies=True,
        health=False,
        sanitized=False,
        allows=("cut", "unanswered", "refused"),
        load=STORED,
        mount=LARGE_DISK,
    ),
    Trial(
        "descriptors-short",
        "256 open files for 400 clients",
        nothing,
        nothing,
        statuses=(500, 502, 503),
        allows=("hanging", "late", "cut", "unanswered", "refused"),
        health=False,
        prefix=("prlimit", "--nofile=256:256"),
        load={"connections": 400, "give_up": 2000},
        readers=0,
    ),
]
