#!/usr/bin/python3
"""Workers in C++, Go, TypeScript and Python on one table of DynamoDB Local: every pair respects each other.

    languages_test.py --facetheory build/release/facetheory [--languages go,typescript,python] [WORD...]

Runs the cases whose name contains each WORD, or all. Each uses a page of its own, so that they run side by side.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import pathlib
import sys
import tempfile
import time
import traceback
import uuid

from dynamodb_local import TABLE, DynamoDbLocal, FaultProxy
from workers import LANGUAGES, CppWorker, Worker, example_command

SHORT = 2  # seconds; the shortest lease there is
LONG = 60
LONGEST = 3600  # for so long a STARTED record without a time is left alone


def same(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def answered(answer, outcome, exit_code=0, **fields):
    """The answer has this outcome and exit code and, among others, these fields."""
    expected = {"outcome": outcome, **fields}
    if {name: answer.get(name) for name in expected} != expected or answer.exit_code != exit_code:
        raise AssertionError(f"found {answer}, exit code {answer.exit_code}; expected {expected}, {exit_code}")
    return answer


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def new_page():
    """A cache key and its partition key."""
    key = f"/pages/{uuid.uuid4()}"
    return key, "CACHE#" + sha256(key)


# --- Every ordered pair ---


def the_lease_of_one_keeps_the_other_out_until_it_is_released(table, a, b):
    key, pk = new_page()
    lease = answered(a.acquire(key, LONG), "acquired")
    same(table.row(pk, "LOCK")["lease_token"], lease["lease_token"])
    answered(b.acquire(key, LONG), "held", 3, lease_expires_at=lease["lease_expires_at"])
    answered(b.release(key, str(uuid.uuid4())), "lost", 3)
    answered(a.release(key, lease["lease_token"]), "released")
    second = answered(b.acquire(key, LONG), "acquired")
    if second["lease_token"] == lease["lease_token"]:
        raise AssertionError("the token of one lease became that of another")


def the_page_that_one_published_is_read_by_the_other(table, a, b):
    key, pk = new_page()
    lease = a.acquire(key, LONG)
    began = int(time.time()) - 5
    published = answered(a.publish(key, lease["lease_token"], "news", 50, began, '"é-1"'), "published")
    answered(b.read(key), "fresh", s3_key=published["s3_key"], generated_at=began, revalidate_seconds=50, etag='"é-1"')
    same(table.row(pk, "LOCK"), None)


def the_publish_of_one_is_cancelled_after_the_other_took_over(table, a, b):
    key, pk = new_page()
    first = answered(a.acquire(key, SHORT), "acquired")
    time.sleep(max(0, first["lease_expires_at"] - time.time()))
    second = answered(b.acquire(key, LONG), "acquired")
    answered(a.publish(key, first["lease_token"], "late", 60), "lost", 3)
    answered(a.refresh(key, first["lease_token"], LONG), "lost", 3)
    same(table.row(pk, "META"), None)
    published = answered(b.publish(key, second["lease_token"], "in time", 60), "published")
    same(table.row(pk, "META")["s3_key"], published["s3_key"])
    same(table.row(pk, "LOCK"), None)


def the_request_of_one_is_respected_by_the_other(table, a, b):
    key, pk = new_page()
    inputs = {"tenant": "acme", "path": "/é", "quote": "\"\n"}
    claimed = answered(a.claim(key, "r-1", inputs), "claimed")
    answered(b.claim(key, "r-1", dict(reversed(inputs.items()))), "in_progress", 3)
    answered(b.claim(key, "r-1", inputs | {"path": "/e"}), "mismatch", 3)
    answered(b.complete(key, "r-1", str(uuid.uuid4()), "stolen.html"), "lost", 3)
    answered(a.complete(key, "r-1", claimed["owner_token"], "result.html"), "completed")
    answered(b.claim(key, "r-1", inputs), "completed", 3, result_s3_key="result.html")
    answered(b.claim(key, "r-1", inputs | {"more": ""}), "mismatch", 3)
    same("in_progress_expires_at" in table.row(pk, "REQ#r-1"), False)


def rewind(table, pk, request, attribute, seconds):
    """As if that much time had passed since the row was written."""
    table.client.update_item(
        TableName=TABLE,
        Key={"pk": pk, "sk": f"REQ#{request}"},
        UpdateExpression="SET #a = #a - :seconds",
        ExpressionAttributeNames={"#a": attribute},
        ExpressionAttributeValues={":seconds": seconds},
    )


def lost_to_another(worker, key, request, owner):
    """Whoever had the record before can do nothing to it any more."""
    answered(worker.extend(key, request, owner, LONG), "lost", 3)
    answered(worker.fail(key, request, owner, "too late"), "lost", 3)
    answered(worker.complete(key, request, owner, "late.html"), "lost", 3)


def a_request_whose_worker_died_is_taken_over(table, a, b):
    key, pk = new_page()
    inputs = {"tenant": "acme", "path": "/"}
    dead = answered(a.claim(key, "r-3", inputs, LONG), "claimed", attempt=1)
    row = table.row(pk, "REQ#r-3")
    same((row["owner_token"], row["in_progress_expires_at"] - row["started_at"]), (dead["owner_token"], LONG))
    answered(
        b.claim(key, "r-3", inputs, LONG), "in_progress", 3, in_progress_expires_at=int(row["in_progress_expires_at"])
    )
    rewind(table, pk, "r-3", "in_progress_expires_at", LONG)
    answered(b.claim(key, "r-3", inputs | {"path": "/x"}, LONG), "mismatch", 3)
    taken = answered(b.claim(key, "r-3", inputs, LONG), "claimed", attempt=2)
    same((taken["owner_token"] == dead["owner_token"], table.row(pk, "REQ#r-3")["attempt"]), (False, 2))
    lost_to_another(a, key, "r-3", dead["owner_token"])
    answered(b.complete(key, "r-3", taken["owner_token"], "taken.html"), "completed")
    answered(a.claim(key, "r-3", inputs), "completed", 3, result_s3_key="taken.html")


def a_request_without_a_time_is_taken_over_when_no_lease_can_last_so_long(table, a, b):
    key, pk = new_page()
    inputs = {"a": "b"}
    row = {
        "pk": pk,
        "sk": "REQ#r-4",
        "request_hash": sha256('{"a":"b"}'),
        "status": "STARTED",
        "ttl": int(time.time()) + 9 * LONGEST,
    }
    table.client.put_item(TableName=TABLE, Item=row)
    answered(b.claim(key, "r-4", {"a": "c"}), "mismatch", 3)
    same(table.row(pk, "REQ#r-4"), row)
    before = int(time.time())
    answered(a.claim(key, "r-4", inputs), "in_progress", 3)
    noted = table.row(pk, "REQ#r-4")
    same(before <= noted["first_seen_at"] <= int(time.time()), True)
    rewind(table, pk, "r-4", "first_seen_at", LONGEST - 30)
    answered(b.claim(key, "r-4", inputs), "in_progress", 3)
    same(table.row(pk, "REQ#r-4"), noted | {"first_seen_at": noted["first_seen_at"] - LONGEST + 30})
    rewind(table, pk, "r-4", "first_seen_at", 60)
    lease = answered(a.acquire(key, LONG), "acquired")
    answered(b.claim(key, "r-4", inputs), "in_progress", 3)
    same(table.row(pk, "REQ#r-4")["status"], "STARTED")
    answered(a.release(key, lease["lease_token"]), "released")
    taken = answered(b.claim(key, "r-4", inputs), "claimed")
    row = table.row(pk, "REQ#r-4")
    same((row["owner_token"], row["attempt"], "first_seen_at" in row), (taken["owner_token"], 2, False))


def a_request_that_one_handed_back_is_claimed_anew(table, a, b):
    key, pk = new_page()
    inputs = {"a": "b"}
    first = answered(a.claim(key, "r-5", inputs), "claimed")
    answered(b.fail(key, "r-5", str(uuid.uuid4()), "not mine"), "lost", 3)
    answered(a.fail(key, "r-5", first["owner_token"], "the origin is down"), "handed_back")
    row = table.row(pk, "REQ#r-5")
    same(
        (row["status"], row["retryable"], row["error"], "in_progress_expires_at" in row),
        ("FAILED", True, "the origin is down", False),
    )
    answered(b.claim(key, "r-5", {"a": "c"}), "mismatch", 3)
    second = answered(b.claim(key, "r-5", inputs), "claimed", attempt=2)
    row = table.row(pk, "REQ#r-5")
    same((row["status"], "error" in row, "retryable" in row), ("STARTED", False, False))
    lost_to_another(a, key, "r-5", first["owner_token"])
    answered(b.complete(key, "r-5", second["owner_token"], "second.html"), "completed")


def a_request_that_failed_for_good_is_not_claimed_anew(table, a, b):
    key, pk = new_page()
    claimed = answered(a.claim(key, "r-6", {"a": "b"}), "claimed")
    answered(a.fail(key, "r-6", claimed["owner_token"], "no such product", final=True), "given_up")
    before = table.row(pk, "REQ#r-6")
    same((before["status"], before["retryable"]), ("FAILED", False))
    answered(b.claim(key, "r-6", {"a": "b"}), "failed", 3, error="no such product")
    same(table.row(pk, "REQ#r-6"), before)
    # A service that knows the specification alone says FAILED and nothing of whether it may be tried again.
    table.client.put_item(
        TableName=TABLE,
        Item={
            "pk": pk,
            "sk": "REQ#r-7",
            "request_hash": sha256('{"a":"b"}'),
            "status": "FAILED",
            "ttl": int(time.time()) + LONG,
        },
    )
    answered(b.claim(key, "r-7", {"a": "b"}), "claimed")


def an_extended_claim_outlives_its_first_term(table, a, b):
    key, pk = new_page()
    claimed = answered(a.claim(key, "r-8", {"a": "b"}, SHORT), "claimed")
    first = int(table.row(pk, "REQ#r-8")["in_progress_expires_at"])
    extended = answered(a.extend(key, "r-8", claimed["owner_token"], LONG), "extended")
    row = table.row(pk, "REQ#r-8")
    until = int(row["in_progress_expires_at"])
    same((until, until > first, row["ttl"] > until), (extended["in_progress_expires_at"], True, True))
    answered(a.extend(key, "r-8", claimed["owner_token"], SHORT), "extended", in_progress_expires_at=until)
    answered(b.extend(key, "r-8", str(uuid.uuid4()), LONG), "lost", 3)
    time.sleep(max(0, first - time.time()))
    answered(b.claim(key, "r-8", {"a": "b"}), "in_progress", 3, in_progress_expires_at=until)
    answered(a.complete(key, "r-8", claimed["owner_token"], "long.html"), "completed")


# --- Every language by itself ---


def a_refreshed_lease_outlives_its_first_term(table, a):
    key, _ = new_page()
    first = a.acquire(key, SHORT)
    second = answered(a.refresh(key, first["lease_token"], LONG), "refreshed")
    time.sleep(max(0, first["lease_expires_at"] - time.time()))
    answered(a.acquire(key, LONG), "held", 3, lease_expires_at=second["lease_expires_at"])
    answered(a.publish(key, first["lease_token"], "kept", 60), "published")


def publishing_with_a_request_completes_it_in_the_same_transaction(table, a):
    key, pk = new_page()
    claimed = a.claim(key, "r-2", {"a": "b"})
    lease = a.acquire(key, LONG)
    owner = claimed["owner_token"]
    published = answered(a.publish(key, lease["lease_token"], "asked for", 60, request="r-2", owner=owner), "published")
    row = table.row(pk, "REQ#r-2")
    same((row["status"], row["result_s3_key"]), ("COMPLETED", published["s3_key"]))
    same(table.row(pk, "LOCK"), None)
    again = a.acquire(key, LONG)
    same(a.publish(key, again["lease_token"], "twice", 60, request="r-2", owner=owner).exit_code, 3)
    same(table.row(pk, "META")["s3_key"], published["s3_key"])


def a_lock_row_without_an_expiry_is_not_held(table, a):
    key, pk = new_page()
    table.client.put_item(TableName=TABLE, Item={"pk": pk, "sk": "LOCK", "lease_token": ""})
    answered(a.acquire(key, LONG), "acquired")


def a_page_is_stale_after_its_window_whatever_its_ttl(table, a):
    key, pk = new_page()
    answered(a.read(key), "missing")
    now = int(time.time())
    row = {
        "pk": pk,
        "sk": "META",
        "s3_key": "x.html",
        "generated_at": now - 100,
        "revalidate_seconds": 200,
        "ttl": now - 50,
        "tags": {"of", "cpp"},
        "pinned": False,
        "added": {"by": ["others"]},
    }
    table.client.put_item(TableName=TABLE, Item=row)
    same(sorted(answered(a.read(key), "fresh", s3_key="x.html")["tags"]), ["cpp", "of"])
    table.client.put_item(TableName=TABLE, Item=row | {"revalidate_seconds": 100, "ttl": now + 9999})
    answered(a.read(key), "stale", s3_key="x.html")


def a_shell_can_tell_the_outcomes_apart(table, a):
    key, _ = new_page()
    lease = ["lease"] if a.language == "cpp" else []
    answered(a.run_process(*lease, "acquire", key, "--for", "60"), "acquired")
    answered(a.run_process(*lease, "acquire", key, "--for", "60"), "held", 3)
    for words in (
        [*lease, "refresh", key, "--for", "60"],
        [*lease, "acquire", key, "--for", "1"],
        [*lease, "acquire", key, "--for", "soon"],
        [*lease, "acquire", key, "--colour", "red"],
        ["nonsense"],
    ):
        answer = a.run_process(*words)
        same((words, answer["outcome"], answer.exit_code), (words, "usage", 2))


def what_is_missing_in_the_environment_is_named(table, a):
    variable = "FACETHEORY_CACHE_TABLE_NAME"
    read = "meta" if a.language == "cpp" else "read"
    without = {name: value for name, value in a.environment.items() if name != variable}
    answer = answered(a.run_process(read, "/x", environment=without), "usage", 2)
    same((answer.stderr, variable in answer.stderr), (answer.stderr, True))
    answer = answered(a.run_process(read, "/x", environment=a.environment | {variable: "no-such-table"}), "failed", 1)
    same(bool(answer.stderr), True)


# --- The example programs through a proxy that loses answers; the C++ side has its own tests ---


def an_answer_that_was_lost_is_recognised(table, a, proxy):
    for fault in ("cut_after", "cut_answer", "error_after", "garbage"):
        key, pk = new_page()
        proxy.inject(fault, "PutItem")
        lease = answered(a.acquire(key, LONG), "acquired")
        same(table.row(pk, "LOCK")["lease_token"], lease["lease_token"])
        proxy.inject(fault, "TransactWriteItems")
        published = answered(a.publish(key, lease["lease_token"], "once", 60), "published")
        same((table.row(pk, "META")["s3_key"], table.row(pk, "LOCK")), (published["s3_key"], None))
        proxy.inject(fault, "PutItem")
        claimed = answered(a.claim(key, "r", {"a": "b"}), "claimed")
        same(table.row(pk, "REQ#r")["owner_token"], claimed["owner_token"])
        proxy.inject(fault, "UpdateItem")
        answered(a.extend(key, "r", claimed["owner_token"], 2 * LONG), "extended")
        proxy.inject(fault, "UpdateItem")
        answered(a.fail(key, "r", claimed["owner_token"], "again"), "handed_back")
        proxy.inject(fault, "PutItem")
        claimed = answered(a.claim(key, "r", {"a": "b"}), "claimed", attempt=2)
        same(table.row(pk, "REQ#r")["owner_token"], claimed["owner_token"])
        proxy.inject(fault, "UpdateItem")
        answered(a.complete(key, "r", claimed["owner_token"], "r.html"), "completed")
        old = {
            "pk": pk,
            "sk": "REQ#old",
            "request_hash": sha256('{"a":"b"}'),
            "status": "STARTED",
            "first_seen_at": int(time.time()) - 2 * LONGEST,
        }
        table.client.put_item(TableName=TABLE, Item=old)
        proxy.inject(fault, "TransactWriteItems")
        claimed = answered(a.claim(key, "old", {"a": "b"}), "claimed")
        same(table.row(pk, "REQ#old")["owner_token"], claimed["owner_token"])
        same(proxy.state()["faults"], {fault: 1})
    same(proxy.state()["signature_failures"], [])


def a_refusal_for_now_is_tried_again(table, a, proxy):
    for fault in ("throttle", "conflict", "cut_before"):
        key, pk = new_page()
        proxy.inject(fault, "PutItem", 2)
        lease = answered(a.acquire(key, LONG), "acquired")
        proxy.inject(fault, "TransactWriteItems", 2)
        answered(a.publish(key, lease["lease_token"], "in the end", 60), "published")
        same(proxy.state()["faults"], {fault: 2})
    same(proxy.state()["signature_failures"], [])


# --- All of them ---

# Inputs and their RFC 8785 form, written by hand: members by UTF-16 code units, only the short escapes and \u00xx.
CANONICAL = [
    ({"a": "b"}, '{"a":"b"}'),
    ({"z": "", "aa": "1", "a": "2", "B": "3", " ": "4"}, '{" ":"4","B":"3","a":"2","aa":"1","z":""}'),
    (
        {"\uffee": "last", "\U0001f600": "beyond the BMP, and yet before", "\u20ac": "first"},
        '{"\u20ac":"first","\U0001f600":"beyond the BMP, and yet before","\uffee":"last"}',
    ),
    (
        {"\ue000": "after every surrogate", "\U0010ffff": "b", "\ud7ff": "a"},
        '{"\ud7ff":"a","\U0010ffff":"b","\ue000":"after every surrogate"}',
    ),
    (
        {"control": "\x01\x08\x09\x0a\x0b\x0c\x0d\x1b\x1f\x7f\x80\u2028\u2029", "\n": "\r\n"},
        '{"\\n":"\\r\\n","control":"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001b\\u001f\x7f\x80\u2028\u2029"}',
    ),
    ({"quotes": "\"'\\/<>&", "a": "b=c=", "\\u0041": "A"}, '{"\\\\u0041":"A","a":"b=c=","quotes":"\\"\'\\\\/<>&"}'),
    ({"\u00e9": "composed", "e\u0301": "decomposed"}, '{"e\u0301":"decomposed","\u00e9":"composed"}'),
    (
        {"10": "c", "9": "d", "1": "b", "__proto__": "e", "-1": "a"},
        '{"-1":"a","1":"b","10":"c","9":"d","__proto__":"e"}',
    ),
]


def all_compute_the_same_partition_key(table, workers):
    for worker in workers:
        for key in ("/", "/news/42", "/\u00e9?q=\u20ac \U0001f600", "a" * 5000):
            answered(worker.key(key), "done", pk="CACHE#" + sha256(key))
            answered(worker.key(key, "\u00e4.b c"), "done", pk="TENANT#\u00e4.b c#CACHE#" + sha256(key))
        for tenant in ("a#b", "#", ""):
            same(worker.key("/news/42", tenant).exit_code, 2)


def all_compute_the_same_request_hash(table, workers):
    for inputs, canonical in CANONICAL:
        for worker in workers:
            if worker.language == "cpp":  # its CLI shows the hash by what a claim stores
                key, pk = new_page()
                answered(worker.claim(key, "hash", inputs), "claimed")
                found = table.row(pk, "REQ#hash")["request_hash"]
            else:
                found = worker.request_hash(inputs)
            same((worker.language, found), (worker.language, sha256(canonical)))


def the_examples_compute_the_same_idempotency_key(table, workers):
    for worker in workers:
        if worker.language == "cpp":
            words = ("key", "/news/42", "--deploy-id", "d-7", "--policy-version", "\u00e9")
        else:
            words = ("idempotency-key", "/news/42", "--deploy", "d-7", "--policy", "\u00e9")
        answered(worker.run(*words), "done", idempotency_key=sha256("/news/42|d-7|\u00e9"))


def only_one_of_all_takes_a_dead_request_over(table, workers):
    for round_ in range(5):
        key, pk = new_page()
        dead = {
            "pk": pk,
            "sk": "REQ#race",
            "request_hash": sha256('{"a":"b"}'),
            "status": "STARTED",
            "owner_token": str(uuid.uuid4()),
            "attempt": 3,
            "in_progress_expires_at": int(time.time()) - 1,
        }
        table.client.put_item(TableName=TABLE, Item=dead)
        with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
            answers = list(pool.map(lambda worker, k=key: worker.claim(k, "race", {"a": "b"}), workers))
        same(
            (round_, sorted(answer["outcome"] for answer in answers)),
            (round_, ["claimed"] + ["in_progress"] * (len(workers) - 1)),
        )
        claimed = next(answer for answer in answers if answer["outcome"] == "claimed")
        row = table.row(pk, "REQ#race")
        same((row["owner_token"], row["attempt"]), (claimed["owner_token"], 4))
        same([answer for answer in answers if answer is not claimed and "owner_token" in answer], [])


def the_versions_that_cpp_keeps_are_read_by_all(table, workers):
    key, pk = new_page()
    keeper = next((worker for worker in workers if worker.language == "cpp"), None)
    if not keeper:
        return
    published = []
    for body in ("one", "two"):
        lease = keeper.acquire(key, LONG)
        published.append(
            answered(keeper.publish(key, lease["lease_token"], body, 60, history=2), "published")["s3_key"]
        )
    stored = [(row["sk"], row["s3_key"], int(row["generated_at"])) for row in table.rows(pk, "VER#")]
    same([row[1] for row in stored], published)
    for worker in workers:
        if worker.language != "cpp":
            found = answered(worker.versions(key), "done")["versions"]
            same(
                (worker.language, [(row["sk"], row["s3_key"], row["generated_at"]) for row in found]),
                (worker.language, stored),
            )
            answered(worker.read(key), "fresh", s3_key=published[-1], current_sk=stored[-1][0])


def an_attribute_of_the_wrong_type_is_refused(table, workers):
    key, pk = new_page()
    table.client.put_item(TableName=TABLE, Item={"pk": pk, "sk": "META", "s3_key": "x.html", "generated_at": "now"})
    for worker in workers:
        answer = worker.read(key)
        same((worker.language, answer["outcome"], answer.exit_code), (worker.language, "failed", 1))


def sentence(function):
    return function.__name__.replace("_", " ")


def all_cases(table, workers, proxied, proxy):
    cases = []
    for function in (
        the_publish_of_one_is_cancelled_after_the_other_took_over,
        the_lease_of_one_keeps_the_other_out_until_it_is_released,
        an_extended_claim_outlives_its_first_term,
        the_page_that_one_published_is_read_by_the_other,
        the_request_of_one_is_respected_by_the_other,
        a_request_whose_worker_died_is_taken_over,
        a_request_without_a_time_is_taken_over_when_no_lease_can_last_so_long,
        a_request_that_one_handed_back_is_claimed_anew,
        a_request_that_failed_for_good_is_not_claimed_anew,
    ):
        for a, b in itertools.permutations(workers, 2):
            cases.append((f"{a.language} and {b.language}: {sentence(function)}", function, (table, a, b)))
    for function in (
        a_refreshed_lease_outlives_its_first_term,
        publishing_with_a_request_completes_it_in_the_same_transaction,
        a_lock_row_without_an_expiry_is_not_held,
        a_page_is_stale_after_its_window_whatever_its_ttl,
        a_shell_can_tell_the_outcomes_apart,
        what_is_missing_in_the_environment_is_named,
    ):
        cases += [(f"{a.language}: {sentence(function)}", function, (table, a)) for a in workers]
    for function in (
        all_compute_the_same_partition_key,
        all_compute_the_same_request_hash,
        the_examples_compute_the_same_idempotency_key,
        only_one_of_all_takes_a_dead_request_over,
        the_versions_that_cpp_keeps_are_read_by_all,
        an_attribute_of_the_wrong_type_is_refused,
    ):
        cases.append((sentence(function), function, (table, workers)))
    faulty = [
        (f"{a.language}: {sentence(function)}", function, (table, a, proxy))
        for a in proxied
        for function in (an_answer_that_was_lost_is_recognised, a_refusal_for_now_is_tried_again)
    ]
    return cases, faulty


def run(case):
    name, function, arguments = case
    try:
        function(*arguments)
        return name, None
    except Exception:  # pylint: disable=broad-except
        return name, traceback.format_exc()


def run_in_order(cases):
    return [run(case) for case in cases]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--facetheory", default="build/release/facetheory")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    languages = options.languages.split(",")

    table = DynamoDbLocal()
    proxy = FaultProxy(table.endpoint)
    failures = 0
    with tempfile.TemporaryDirectory() as bodies:
        workers, proxied = [], []
        for language in languages:
            if language == "cpp":
                workers.append(CppWorker(pathlib.Path(options.facetheory).resolve(), table.environment(), bodies))
            else:
                command = example_command(language)
                workers.append(Worker(language, command, table.environment()))
                proxied.append(Worker(language, command, table.environment(proxy.endpoint)))
        cases, faulty = all_cases(table, workers, proxied, proxy)
        cases, faulty = (
            [case for case in some if all(word in case[0] for word in options.words)] for some in (cases, faulty)
        )
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            # The proxy injects a fault into whatever comes next, so its cases follow one another.
            jobs = [pool.submit(run_in_order, faulty)] + [pool.submit(run_in_order, [case]) for case in cases]
            for job in concurrent.futures.as_completed(jobs):
                for name, failure in job.result():
                    print(f"{failure}not ok {name}" if failure else f"ok {name}", flush=True)
                    failures += bool(failure)
        for worker in workers + proxied:
            worker.stop()
    proxy.stop()
    table.stop()
    sys.exit(1 if failures or not cases + faulty else 0)


if __name__ == "__main__":
    main()
