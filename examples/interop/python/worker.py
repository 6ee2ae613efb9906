#!/usr/bin/python3
"""A worker of a FaceTheory ISR table, in Python with boto3, as services in this language behave towards it.

It knows the rows of models.py and nothing else: it publishes by Recipe A, replacing META as a whole. A lease is held
iff lease_expires_at > now; a page is fresh iff now < generated_at + revalidate_seconds; ttl decides neither. The SDK's
own retries are off, because a conditional write that got no answer may have been carried out: send() repeats, and says
so.

worker.go and worker.ts are the same program. ../README.md shows the commands.
"""
import dataclasses
import functools
import hashlib
import json
import os
import random
import re
import sys
import time
import uuid
from decimal import Decimal

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ChecksumError, ClientError, HTTPClientError
from botocore.parsers import ResponseParserError

from models import (
    FaceTheoryCacheLease,
    FaceTheoryCacheMetadata,
    FaceTheoryCacheVersion,
    FaceTheoryRequest,
    from_item,
    table_name,
    to_item,
)

LOCK_BUFFER = 3600  # ttl of a row beyond its use; garbage collection only
REQUEST_BUFFER = 86400
LONGEST_LEASE = 3600  # a STARTED record without a time is left alone that long
DONE, FAILED, USAGE, SOMEBODY_ELSE_WON = 0, 1, 2, 3
TRIES = 8
HELD_PAUSE = 0.02, 0.08  # seconds between two attempts to get a lease that is held
REFUSED_FOR_NOW = {
    "TransactionConflict",
    "TransactionConflictException",
    "ThrottlingError",
    "ThrottlingException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
}


class Failure(Exception):
    """Ends the program with exit code 1, or 2 when the command line is at fault."""

    def __init__(self, message, code=FAILED):
        super().__init__(message)
        self.code = code


# --- Canonical forms: every language computes the same ---


def sha256_hex(text):
    return hashlib.sha256(text.encode()).hexdigest()


def partition_key(cache_key, tenant=None):
    return (f"TENANT#{tenant}#" if tenant else "") + "CACHE#" + sha256_hex(cache_key)


def idempotency_key(cache_key, deploy_id, policy_version):
    return sha256_hex(f"{cache_key}|{deploy_id}|{policy_version}")


def request_hash(inputs):
    """SHA-256 of the RFC 8785 form: members by UTF-16 code units; json escapes strings as the RFC wants them."""
    members = sorted(inputs.items(), key=lambda member: member[0].encode("utf-16-be"))
    return sha256_hex(json.dumps(dict(members), ensure_ascii=False, separators=(",", ":")))


# --- The table ---


class Table:
    def __init__(self, name):
        self.name = name
        # This boto3 is older than the endpoint variables, so they are read here.
        endpoint = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        once = Config(retries={"total_max_attempts": 1}, connect_timeout=3, read_timeout=10)
        self.client = boto3.resource("dynamodb", endpoint_url=endpoint, region_name=region, config=once).meta.client

    def read_item(self, pk, sk):
        """All that is stored, also what no model knows; empty when there is none."""
        request = {"TableName": self.name, "Key": {"pk": pk, "sk": sk}, "ConsistentRead": True}
        answer, _ = send(self.client.get_item, lambda: request)
        return plain(answer.get("Item", {}))

    def metadata(self, pk):
        return from_item(FaceTheoryCacheMetadata, pk, "META", self.read_item(pk, "META"))

    def lease(self, pk):
        return from_item(FaceTheoryCacheLease, pk, "LOCK", self.read_item(pk, "LOCK"))

    def request(self, pk, sk):
        return from_item(FaceTheoryRequest, pk, sk, self.read_item(pk, sk))

    def versions(self, pk):
        """The generations that were kept, the oldest first."""
        request = {
            "TableName": self.name,
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :prefix)",
            "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
            "ExpressionAttributeValues": {":pk": pk, ":prefix": "VER#"},
        }
        found = []
        while True:
            answer, _ = send(self.client.query, lambda: request)
            found += [from_item(FaceTheoryCacheVersion, pk, item["sk"], plain(item)) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


@functools.cache
def open_table():
    name = table_name()
    if not name:
        raise Failure("FACETHEORY_CACHE_TABLE_NAME is not set: it names the DynamoDB table", USAGE)
    return Table(name)


def send(operation, make_request):
    """The answer, None when a condition failed; and whether an earlier try may have been carried out unseen."""
    doubtful = False
    for attempt in range(TRIES):
        time.sleep(random.uniform(0, 0.01 * 2**attempt) if attempt else 0)
        try:
            return operation(**make_request()), doubtful
        except ClientError as error:
            code = error.response["Error"]["Code"]
            codes = {reason["Code"] for reason in error.response.get("CancellationReasons", [])} - {"None"} or {code}
            if codes & {"ConditionalCheckFailed", "ConditionalCheckFailedException"}:
                return None, doubtful
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            unread = code == str(status)  # half an answer: boto3 found no code in it
            if status >= 500 or unread or code == "TransactionInProgressException":
                doubtful = True
            elif not codes <= REFUSED_FOR_NOW:
                raise
        except (HTTPClientError, ChecksumError, ResponseParserError, UnicodeDecodeError):  # no answer, or none to read
            doubtful = True
    raise Failure("DynamoDB gave no answer to rely on; the write may or may not have happened")


def plain(value):
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, set)) else value


def condition(expression, *names, **values):
    """Every name aliased: status and ttl are reserved words."""
    request = {"ConditionExpression": expression, "ExpressionAttributeNames": {f"#{name}": name for name in names}}
    return request | ({"ExpressionAttributeValues": {f":{name}": v for name, v in values.items()}} if values else {})


def now():
    return int(time.time())


# --- The protocol ---

HELD = "#lease_token = :token AND #lease_expires_at > :now"


def acquire(table, pk, seconds):
    """The lease and when it was acquired, or None when it is held. Each try has a token of its own; whichever of them
    is stored is ours."""
    tries = []

    def make_request():
        started = now()
        lease = FaceTheoryCacheLease(pk, "LOCK", str(uuid.uuid4()), started + seconds, started + seconds + LOCK_BUFFER)
        tries.append((lease, started))
        return {
            "TableName": table.name,
            "Item": to_item(lease),
            **condition(
                "attribute_not_exists(#pk) OR attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now",
                "pk",
                "lease_expires_at",
                now=started,
            ),
        }

    answer, doubtful = send(table.client.put_item, make_request)
    if answer is not None:
        return tries[-1]
    stored = table.lease(pk).lease_token if doubtful else None
    return next((one for one in tries if one[0].lease_token == stored), None)


def refresh(table, pk, token, seconds):
    """The new expiry, or None when the lease is lost. Repeating it is harmless: the token stays."""
    expires = now() + seconds
    request = {
        "TableName": table.name,
        "Key": {"pk": pk, "sk": "LOCK"},
        "UpdateExpression": "SET #lease_expires_at = :expires, #ttl = :ttl",
        **condition(
            HELD,
            "lease_token",
            "lease_expires_at",
            "ttl",
            token=token,
            now=now(),
            expires=expires,
            ttl=expires + LOCK_BUFFER,
        ),
    }
    answer, _ = send(table.client.update_item, lambda: request)
    return None if answer is None else expires


def release(table, pk, token):
    """False when the lease was not ours any more, which harms nobody."""
    request = {
        "TableName": table.name,
        "Key": {"pk": pk, "sk": "LOCK"},
        **condition("#lease_token = :token", "lease_token", token=token),
    }
    answer, doubtful = send(table.client.delete_item, lambda: request)
    return answer is not None or doubtful


def publish(table, token, meta, request_id=None, owner=None):
    """META, the end of the lease and the end of the request, all or nothing. False: the lease or the request is lost.

    DynamoDB takes one operation per row, so the check of the lease is the condition of its delete. The client token
    makes a repeat of this very request harmless.
    """
    held = condition(HELD, "lease_token", "lease_expires_at", token=token, now=now())
    steps = [
        {"Put": {"TableName": table.name, "Item": to_item(meta)}},
        {"Delete": {"TableName": table.name, "Key": {"pk": meta.pk, "sk": "LOCK"}, **held}},
    ]
    if request_id:
        steps.append({"Update": completion(table, meta.pk, request_id, owner, meta.s3_key)})
    request = {"TransactItems": steps, "ClientRequestToken": str(uuid.uuid4())}
    answer, doubtful = send(table.client.transact_write_items, lambda: request)
    return answer is not None or (doubtful and table.metadata(meta.pk).s3_key == meta.s3_key)


def claim(table, pk, request_id, inputs, seconds):
    """What became of the claim, and the record that says so.

    A record whose time is over is taken over: its worker died. So is one that was handed back. A STARTED record without
    a time is of a service that knows the specification alone; whoever meets it first notes when, and it is taken over
    when that is longer ago than any lease lasts and nobody holds the page's lease. What is taken over must still be as
    it was read.
    """
    sk, hashed, ours = f"REQ#{request_id}", request_hash(inputs), {}
    met, guard = None, None  # what stands in the way, and the condition on which it is replaced
    for _ in range(2 * TRIES):
        answer, unless_leased = try_claim(table, pk, sk, hashed, seconds, ours, met, guard)
        if answer is not None:
            return "claimed", list(ours.values())[-1]
        before, met, guard = met, table.request(pk, sk), None
        if met.status is None or (met.ttl is not None and met.ttl <= now()):
            met = None  # past its ttl it counts as absent
            continue
        if met.request_hash != hashed:
            return "mismatch", met
        if met.status == "COMPLETED":
            return "completed", met
        if met.status == "FAILED" and met.retryable is False:
            return "failed", met
        if met.status == "STARTED" and met.owner_token in ours:
            return "claimed", met
        until = free_at(met)
        if until > now() or (unless_leased and met == before):  # in the second case somebody holds the lease
            if met.status == "STARTED" and met.in_progress_expires_at is None and met.first_seen_at is None:
                note_first_seen(table, met)
            return "in_progress", dataclasses.replace(met, in_progress_expires_at=until)
        guard = as_read(met)
    raise Failure(f"the request {request_id} kept changing hands")


def try_claim(table, pk, sk, hashed, seconds, ours, met, guard):
    """One attempt: its answer, and whether it needed the page's lease to be free. `ours` gets what it tried to
    write."""

    def row():
        started = now()
        claimed = FaceTheoryRequest(
            pk,
            sk,
            hashed,
            "STARTED",
            owner_token=str(uuid.uuid4()),
            started_at=started,
            in_progress_expires_at=started + seconds,
            ttl=started + seconds + REQUEST_BUFFER,
            attempt=(met.attempt or 1) + 1 if met else 1,
        )
        ours[claimed.owner_token] = claimed
        expression, names, values = guard or ("", [], {})
        expression = "attribute_not_exists(#pk) OR #ttl <= :now" + (f" OR ({expression})" if guard else "")
        return {
            "TableName": table.name,
            "Item": to_item(claimed),
            **condition(expression, "pk", "ttl", *names, now=started, **values),
        }

    if not met or met.status != "STARTED" or met.in_progress_expires_at is not None:
        return send(table.client.put_item, row)[0], False
    free = condition(
        "attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now", "lease_expires_at", now=now()
    )
    steps = [{"Put": row()}, {"ConditionCheck": {"TableName": table.name, "Key": {"pk": pk, "sk": "LOCK"}, **free}}]
    request = {"TransactItems": steps, "ClientRequestToken": str(uuid.uuid4())}
    return send(table.client.transact_write_items, lambda: request)[0], True


def free_at(row):
    """When a record that has not ended for good may be taken over, at the earliest."""
    if row.status == "FAILED":
        return 0
    if row.in_progress_expires_at is not None:
        return row.in_progress_expires_at
    return (now() if row.first_seen_at is None else row.first_seen_at) + LONGEST_LEASE + 1


def as_read(row):
    """Expression, names and values that hold while nobody has changed the record."""
    names = ["status", "request_hash", "owner_token", "in_progress_expires_at", "first_seen_at"]
    stored = {name: getattr(row, name) for name in names}
    parts = [
        f"attribute_not_exists(#{name})" if value is None else f"#{name} = :{name}" for name, value in stored.items()
    ]
    return " AND ".join(parts), names, {name: value for name, value in stored.items() if value is not None}


def note_first_seen(table, row):
    """Somebody else may do so first; then theirs counts."""
    expression, names, values = as_read(row)
    request = {
        "TableName": table.name,
        "Key": {"pk": row.pk, "sk": row.sk},
        "UpdateExpression": "SET #first_seen_at = :seen",
        **condition(expression, *names, seen=now(), **values),
    }
    send(table.client.update_item, lambda: request)


def change(table, pk, request_id, owner, update, also="", **values):
    """An update of a record that is ours and in progress; `also` is a further condition. Services that know nothing of
    owner_token go by the status alone."""
    expression = "#status = :started" + (" AND #owner_token = :owner" if owner else "") + also
    values |= {"started": "STARTED"} | ({"owner": owner} if owner else {})
    names = sorted(set(re.findall(r"#(\w+)", update + expression)))
    return {
        "TableName": table.name,
        "Key": {"pk": pk, "sk": f"REQ#{request_id}"},
        "UpdateExpression": update,
        **condition(expression, *names, **values),
    }


def completion(table, pk, request_id, owner, result):
    """STARTED to COMPLETED."""
    update = "SET #status = :completed, #result_s3_key = :result, #ttl = :ttl " "REMOVE #in_progress_expires_at, #error"
    return change(
        table, pk, request_id, owner, update, completed="COMPLETED", result=result, ttl=now() + REQUEST_BUFFER
    )


def changed(table, pk, request_id, owner, request, done):
    """Whether the update took place. Where its answer was lost, the record tells: `done` judges it."""
    answer, _ = send(table.client.update_item, lambda: request)
    if answer is not None:
        return True
    row = table.request(pk, f"REQ#{request_id}")
    return row.owner_token == owner and done(row)


def complete(table, pk, request_id, owner, result):
    return changed(
        table,
        pk,
        request_id,
        owner,
        completion(table, pk, request_id, owner, result),
        lambda row: (row.status, row.result_s3_key) == ("COMPLETED", result),
    )


def extend(table, pk, request_id, owner, seconds):
    """The time until which the claim is kept, or None when it is lost. A call that arrives late shortens nothing."""
    until = now() + seconds
    request = change(
        table,
        pk,
        request_id,
        owner,
        "SET #in_progress_expires_at = :until, #ttl = :ttl",
        " AND (attribute_not_exists(#in_progress_expires_at) OR #in_progress_expires_at <= :until)",
        until=until,
        ttl=until + REQUEST_BUFFER,
    )
    kept = changed(
        table,
        pk,
        request_id,
        owner,
        request,
        lambda row: row.status == "STARTED" and (row.in_progress_expires_at or 0) >= until,
    )
    return table.request(pk, f"REQ#{request_id}").in_progress_expires_at if kept else None


def fail(table, pk, request_id, owner, error, retryable):
    """Hands the record back: the same request may be claimed anew, if it is retryable."""
    noted = {} if error is None else {"error": error}
    update = (
        "SET #status = :failed, #retryable = :retryable, #ttl = :ttl"
        + (", #error = :error" if noted else "")
        + " REMOVE #in_progress_expires_at"
    )
    request = change(
        table, pk, request_id, owner, update, failed="FAILED", retryable=retryable, ttl=now() + REQUEST_BUFFER, **noted
    )
    return changed(table, pk, request_id, owner, request, lambda row: row.status == "FAILED")


def verdict(meta):
    if not meta.s3_key:
        return "missing"
    return "fresh" if now() < (meta.generated_at or 0) + (meta.revalidate_seconds or 0) else "stale"


# --- The commands: each returns what to print; exit_code says what the outcome means to a shell ---


def run_key(options):
    return {"outcome": "done", "pk": options["pk"]}


def run_hash(options):
    return {"outcome": "done", "request_hash": request_hash(options["input"])}


def run_idempotency_key(options):
    return {"outcome": "done", "idempotency_key": idempotency_key(options["key"], options["deploy"], options["policy"])}


def run_acquire(options):
    table = open_table()
    acquired = acquire(table, options["pk"], options["for"])
    if not acquired:
        return {"outcome": "held", "lease_expires_at": table.lease(options["pk"]).lease_expires_at}
    lease, started = acquired
    return {
        "outcome": "acquired",
        "lease_token": lease.lease_token,
        "lease_expires_at": lease.lease_expires_at,
        "acquired_at": started,
    }


def run_refresh(options):
    expires = refresh(open_table(), options["pk"], options["token"], options["for"])
    return {"outcome": "refreshed", "lease_expires_at": expires} if expires else {"outcome": "lost"}


def run_release(options):
    return {"outcome": "released" if release(open_table(), options["pk"], options["token"]) else "lost"}


def run_publish(options):
    meta = FaceTheoryCacheMetadata(
        options["pk"],
        "META",
        options["s3-key"],
        options.get("generated-at", now()),
        options["revalidate"],
        options.get("etag"),
    )
    if "ttl-seconds" in options:
        if options["ttl-seconds"] < options["revalidate"]:
            raise Failure("--ttl-seconds ends inside --revalidate: the table would delete a fresh page", USAGE)
        meta.ttl = meta.generated_at + options["ttl-seconds"]
    done = publish(open_table(), options["token"], meta, options.get("id"), options.get("owner"))
    return {"outcome": "published", **to_item(meta)} if done else {"outcome": "lost"}


def run_read(options):
    item = open_table().read_item(options["pk"], "META")
    return {"outcome": verdict(from_item(FaceTheoryCacheMetadata, options["pk"], "META", item)), **item}


def run_versions(options):
    return {"outcome": "done", "versions": [to_item(row) for row in open_table().versions(options["pk"])]}


def run_claim(options):
    outcome, row = claim(open_table(), options["pk"], options["id"], options["input"], options.get("for", 60))
    told = ["request_hash", "result_s3_key", "in_progress_expires_at", "attempt", "error"]
    told += ["owner_token", "started_at"] if outcome == "claimed" else []  # the token is its owner's alone
    return {"outcome": outcome, **{name: value for name, value in to_item(row).items() if name in told}}


def run_extend(options):
    until = extend(open_table(), options["pk"], options["id"], options["token"], options["for"])
    return {"outcome": "extended", "in_progress_expires_at": until} if until else {"outcome": "lost"}


def run_complete(options):
    done = complete(open_table(), options["pk"], options["id"], options["token"], options["result"])
    return {"outcome": "completed", "result_s3_key": options["result"]} if done else {"outcome": "lost"}


def run_fail(options):
    final = "final" in options
    done = fail(open_table(), options["pk"], options["id"], options["token"], options.get("error"), not final)
    return {"outcome": "lost" if not done else "given_up" if final else "handed_back"}


def run_contend(options):
    """Publishes --cycles times against whoever else wants the page; previous_s3_key links all publishes to a chain."""
    table, pk, published = open_table(), options["pk"], 0
    give_up = time.monotonic() + options.get("deadline", 300)
    with open(options["log"], "a", encoding="utf-8") as log:
        while published < options["cycles"]:
            if time.monotonic() > give_up:
                raise Failure(f"{published} of {options['cycles']} cycles done within --deadline")
            acquired = acquire(table, pk, options["for"])
            if not acquired:
                time.sleep(random.uniform(*HELD_PAUSE))
                continue
            lease, started = acquired
            before = table.metadata(pk)
            generated_at = max(started, before.generated_at or 0, before.last_generated_at or 0)
            meta = FaceTheoryCacheMetadata(pk, "META", f"python/{uuid.uuid4()}.html", generated_at, 60)
            if publish(table, lease.lease_token, meta):
                published += 1
                entry = {
                    "language": "python",
                    "lease_token": lease.lease_token,
                    "acquired_at": started,
                    "generated_at": meta.generated_at,
                    "s3_key": meta.s3_key,
                    "previous_s3_key": before.s3_key or "",
                }
                log.write(json.dumps(entry) + "\n")
                log.flush()
    return {"outcome": "done", "published": published}


# name: what to run, the options it needs, the options it takes besides (--tenant and --pk always)
COMMANDS = {
    "key": (run_key, "", ""),
    "hash": (run_hash, "input", ""),
    "idempotency-key": (run_idempotency_key, "deploy policy", ""),
    "acquire": (run_acquire, "for", ""),
    "refresh": (run_refresh, "token for", ""),
    "release": (run_release, "token", ""),
    "publish": (run_publish, "token s3-key revalidate", "generated-at etag ttl-seconds id owner"),
    "read": (run_read, "", ""),
    "versions": (run_versions, "", ""),
    "claim": (run_claim, "id input", "for"),
    "extend": (run_extend, "id token for", ""),
    "complete": (run_complete, "id token result", ""),
    "fail": (run_fail, "id token", "error final"),
    "contend": (run_contend, "cycles for log", "deadline"),
}
NUMBERS = {"for", "revalidate", "generated-at", "ttl-seconds", "cycles", "deadline"}
FLAGS = {"final"}


def exit_code(run, outcome):
    """Of a claim only "claimed" is 0, so that a script works on what it was given and on nothing else."""
    if run is run_claim:
        return DONE if outcome == "claimed" else SOMEBODY_ELSE_WON
    return SOMEBODY_ELSE_WON if outcome in ("held", "lost") else DONE


def parse(words):
    """The command's function and its options by name; "key" is the cache key and "pk" always there."""
    positional, options, words = [], {}, iter(words)
    for word in words:
        if not word.startswith("--"):
            positional.append(word)
            continue
        name = word[2:]
        value = "" if name in FLAGS else next(words, None)
        if value is None:
            raise Failure(f"{word} needs a value", USAGE)
        if name == "input":
            member, mark, value = value.partition("=")
            if not member or not mark or member in options.setdefault("input", {}):
                raise Failure("--input takes name=value, each name once", USAGE)
            options["input"][member] = value
        elif name in NUMBERS:
            if not (value.isascii() and value.isdigit() and len(value) <= 15):
                raise Failure(f"{word} takes a whole number, not '{value}'", USAGE)
            options[name] = int(value)
        else:
            options[name] = value

    command = positional[0] if positional else ""
    if command not in COMMANDS:
        raise Failure(f"'{command}' is none of {', '.join(COMMANDS)}", USAGE)
    run, needed, allowed = COMMANDS[command]
    for name in needed.split():
        if name not in options:
            raise Failure(f"{command} needs --{name}", USAGE)
    for name in options:
        if name not in needed.split() + allowed.split() + ["tenant", "pk"]:
            raise Failure(f"{command} takes no --{name}", USAGE)
    if options.get("for", 2) < 2:
        raise Failure("--for takes two seconds or more: languages round differently", USAGE)
    if command == "hash":
        return run, options
    if len(positional) + ("pk" in options) != 2 or (command == "idempotency-key" and "pk" in options):
        raise Failure(f"{command} needs one cache key, or --pk", USAGE)
    tenant = options.get("tenant")
    if tenant is not None and (not tenant or "#" in tenant or "pk" in options):
        raise Failure("--tenant is not empty, has no '#', and does not go with --pk", USAGE)
    if "pk" not in options:
        options |= {"key": positional[1], "pk": partition_key(positional[1], tenant)}
    return run, options


def execute(words):
    """What a command line answers, and its exit code."""
    try:
        run, options = parse(words)
        result = run(options)
        return result, exit_code(run, result["outcome"])
    except (Failure, BotoCoreError, ClientError, OSError, TypeError, UnicodeError) as error:
        print(f"worker.py: {error}", file=sys.stderr)
        code = getattr(error, "code", FAILED)
        return {"outcome": "usage" if code == USAGE else "failed", "message": str(error)}, code


def session():
    """A service: each line of stdin is a command line, as a JSON array, answered by a line with its exit_code."""
    for line in sys.stdin:
        result, code = execute(json.loads(line))
        print(json.dumps(result | {"exit_code": code}), flush=True)


def main():
    if sys.argv[1:] == ["session"]:
        session()
        return
    result, code = execute(sys.argv[1:])
    print(json.dumps(result))
    sys.exit(code)


if __name__ == "__main__":
    main()
