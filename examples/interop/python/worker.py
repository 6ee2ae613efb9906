#!/usr/bin/python3
"""A worker of a FaceTheory ISR table, in Python with boto3, as services in this language behave towards it.

It knows META, LOCK and REQ# rows and nothing else: it publishes by Recipe A, replacing META as a whole. A lease
is held iff lease_expires_at > now; a page is fresh iff now < generated_at + revalidate_seconds; ttl decides
neither. The SDK's own retries are off, because a conditional write that got no answer may have been carried out:
send() repeats, and says so.

worker.go and worker.mjs are the same program. ../README.md shows the commands.
"""
import functools
import hashlib
import json
import os
import random
import sys
import time
import uuid
from decimal import Decimal

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ChecksumError, ClientError, HTTPClientError
from botocore.parsers import ResponseParserError

LOCK_BUFFER = 3600  # ttl of a row beyond its use; garbage collection only
REQUEST_BUFFER = 86400
DONE, FAILED, USAGE, SOMEBODY_ELSE_WON = 0, 1, 2, 3
TRIES = 8
HELD_PAUSE = 0.02, 0.08  # seconds between two attempts to get a lease that is held
REFUSED_FOR_NOW = {"TransactionConflict", "TransactionConflictException", "ThrottlingError", "ThrottlingException",
                   "ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "RequestLimitExceeded"}


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

    def read(self, pk, sk):
        request = {"TableName": self.name, "Key": {"pk": pk, "sk": sk}, "ConsistentRead": True}
        answer, _ = send(self.client.get_item, lambda: request)
        return {name: plain(value) for name, value in answer.get("Item", {}).items()}


@functools.cache
def open_table():
    name = os.environ.get("FACETHEORY_CACHE_TABLE_NAME")
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
            if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500 or code == "TransactionInProgressException":
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
    """The lease, or None when it is held. Each try has a token of its own; whichever of them is stored is ours."""
    tries = []

    def make_request():
        started = now()
        tries.append({"lease_token": str(uuid.uuid4()), "lease_expires_at": started + seconds, "acquired_at": started})
        row = {"pk": pk, "sk": "LOCK", "lease_token": tries[-1]["lease_token"], "lease_expires_at": started + seconds,
               "ttl": started + seconds + LOCK_BUFFER}
        return {"TableName": table.name, "Item": row, **condition(
            "attribute_not_exists(#pk) OR attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now",
            "pk", "lease_expires_at", now=started)}

    answer, doubtful = send(table.client.put_item, make_request)
    if answer is not None:
        return tries[-1]
    stored = table.read(pk, "LOCK").get("lease_token") if doubtful else None
    return next((lease for lease in tries if lease["lease_token"] == stored), None)


def refresh(table, pk, token, seconds):
    """The new expiry, or None when the lease is lost. Repeating it is harmless: the token stays."""
    expires = now() + seconds
    request = {"TableName": table.name, "Key": {"pk": pk, "sk": "LOCK"},
               "UpdateExpression": "SET #lease_expires_at = :expires, #ttl = :ttl",
               **condition(HELD, "lease_token", "lease_expires_at", "ttl", token=token, now=now(), expires=expires,
                           ttl=expires + LOCK_BUFFER)}
    answer, _ = send(table.client.update_item, lambda: request)
    return None if answer is None else expires


def release(table, pk, token):
    """False when the lease was not ours any more, which harms nobody."""
    request = {"TableName": table.name, "Key": {"pk": pk, "sk": "LOCK"},
               **condition("#lease_token = :token", "lease_token", token=token)}
    answer, doubtful = send(table.client.delete_item, lambda: request)
    return answer is not None or doubtful


def publish(table, pk, token, meta, request_id=None, owner=None):
    """META, the end of the lease and the end of the request, all or nothing. False: the lease or the request is lost.

    DynamoDB takes one operation per row, so the check of the lease is the condition of its delete. The client token
    makes a repeat of this very request harmless.
    """
    held = condition(HELD, "lease_token", "lease_expires_at", token=token, now=now())
    steps = [{"Put": {"TableName": table.name, "Item": {"pk": pk, "sk": "META", **meta}}},
             {"Delete": {"TableName": table.name, "Key": {"pk": pk, "sk": "LOCK"}, **held}}]
    if request_id:
        steps.append({"Update": completion(table, pk, request_id, owner, meta["s3_key"])})
    request = {"TransactItems": steps, "ClientRequestToken": str(uuid.uuid4())}
    answer, doubtful = send(table.client.transact_write_items, lambda: request)
    return answer is not None or (doubtful and table.read(pk, "META").get("s3_key") == meta["s3_key"])


def completion(table, pk, request_id, owner, result):
    """STARTED to COMPLETED. Services that know nothing of owner_token go by the status alone."""
    owned = " AND #owner_token = :owner" if owner else ""
    names = ("status", "result_s3_key", *(["owner_token"] if owner else []))
    values = {"completed": "COMPLETED", "started": "STARTED", "result": result} | ({"owner": owner} if owner else {})
    return {"TableName": table.name, "Key": {"pk": pk, "sk": f"REQ#{request_id}"},
            "UpdateExpression": "SET #status = :completed, #result_s3_key = :result",
            **condition("#status = :started" + owned, *names, **values)}


def claim(table, pk, request_id, inputs, seconds):
    """What became of the claim, and of whose record."""
    hashed, tokens = request_hash(inputs), []

    def make_request():
        started = now()
        tokens.append(str(uuid.uuid4()))
        row = {"pk": pk, "sk": f"REQ#{request_id}", "request_hash": hashed, "status": "STARTED",
               "owner_token": tokens[-1], "started_at": started, "in_progress_expires_at": started + seconds,
               "ttl": started + seconds + REQUEST_BUFFER}
        return {"TableName": table.name, "Item": row,
                **condition("attribute_not_exists(#pk) OR #ttl <= :now", "pk", "ttl", now=started)}

    answer, _ = send(table.client.put_item, make_request)
    if answer is not None:
        return {"outcome": "claimed", "owner_token": tokens[-1], "request_hash": hashed}
    row = table.read(pk, f"REQ#{request_id}")
    if row.get("owner_token") in tokens:
        return {"outcome": "claimed", "owner_token": row["owner_token"], "request_hash": hashed}
    if row and row.get("request_hash") != hashed:
        return {"outcome": "mismatch", "request_hash": row.get("request_hash")}
    outcome = {"COMPLETED": "completed", "FAILED": "failed"}.get(row.get("status"), "in_progress")
    told = ("result_s3_key", "in_progress_expires_at")
    return {"outcome": outcome, **{name: row[name] for name in told if name in row}}


def complete(table, pk, request_id, owner, result):
    request = completion(table, pk, request_id, owner, result)
    answer, _ = send(table.client.update_item, lambda: request)
    if answer is not None:
        return True
    row = table.read(pk, f"REQ#{request_id}")
    return (row.get("status"), row.get("owner_token"), row.get("result_s3_key")) == ("COMPLETED", owner, result)


def verdict(meta):
    if not meta.get("s3_key"):
        return "missing"
    return "fresh" if now() < meta.get("generated_at", 0) + meta.get("revalidate_seconds", 0) else "stale"


# --- The commands: each returns what to print; what the outcome means to a shell stands in EXIT_CODES ---

def run_key(options):
    return {"outcome": "done", "pk": options["pk"]}


def run_hash(options):
    return {"outcome": "done", "request_hash": request_hash(options["input"])}


def run_idempotency_key(options):
    return {"outcome": "done", "idempotency_key": idempotency_key(options["key"], options["deploy"], options["policy"])}


def run_acquire(options):
    table = open_table()
    lease = acquire(table, options["pk"], options["for"])
    if lease:
        return {"outcome": "acquired", **lease}
    return {"outcome": "held", "lease_expires_at": table.read(options["pk"], "LOCK").get("lease_expires_at")}


def run_refresh(options):
    expires = refresh(open_table(), options["pk"], options["token"], options["for"])
    return {"outcome": "refreshed", "lease_expires_at": expires} if expires else {"outcome": "lost"}


def run_release(options):
    return {"outcome": "released" if release(open_table(), options["pk"], options["token"]) else "lost"}


def run_publish(options):
    meta = {"s3_key": options["s3-key"], "generated_at": options.get("generated-at", now()),
            "revalidate_seconds": options["revalidate"]}
    if "etag" in options:
        meta["etag"] = options["etag"]
    if "ttl-seconds" in options:
        if options["ttl-seconds"] < options["revalidate"]:
            raise Failure("--ttl-seconds ends inside --revalidate: the table would delete a fresh page", USAGE)
        meta["ttl"] = meta["generated_at"] + options["ttl-seconds"]
    done = publish(open_table(), options["pk"], options["token"], meta, options.get("id"), options.get("owner"))
    return {"outcome": "published", **meta} if done else {"outcome": "lost"}


def run_read(options):
    meta = open_table().read(options["pk"], "META")
    return {"outcome": verdict(meta), **meta}


def run_claim(options):
    return claim(open_table(), options["pk"], options["id"], options["input"], options.get("for", 60))


def run_complete(options):
    done = complete(open_table(), options["pk"], options["id"], options["token"], options["result"])
    return {"outcome": "completed", "result_s3_key": options["result"]} if done else {"outcome": "lost"}


def run_contend(options):
    """Publishes --cycles times against whoever else wants the page; previous_s3_key links all publishes to a chain."""
    table, pk, published = open_table(), options["pk"], 0
    give_up = time.monotonic() + options.get("deadline", 300)
    with open(options["log"], "a", encoding="utf-8") as log:
        while published < options["cycles"]:
            if time.monotonic() > give_up:
                raise Failure(f"{published} of {options['cycles']} cycles done within --deadline")
            lease = acquire(table, pk, options["for"])
            if not lease:
                time.sleep(random.uniform(*HELD_PAUSE))
                continue
            before = table.read(pk, "META")
            meta = {"s3_key": f"python/{uuid.uuid4()}.html", "revalidate_seconds": 60, "generated_at": max(
                lease["acquired_at"], before.get("generated_at", 0), before.get("last_generated_at", 0))}
            if publish(table, pk, lease["lease_token"], meta):
                published += 1
                entry = {"language": "python", "lease_token": lease["lease_token"], "acquired_at": lease["acquired_at"],
                         "generated_at": meta["generated_at"], "s3_key": meta["s3_key"],
                         "previous_s3_key": before.get("s3_key", "")}
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
    "claim": (run_claim, "id input", "for"),
    "complete": (run_complete, "id token result", ""),
    "contend": (run_contend, "cycles for log", "deadline"),
}
NUMBERS = {"for", "revalidate", "generated-at", "ttl-seconds", "cycles", "deadline"}
EXIT_CODES = {"held": SOMEBODY_ELSE_WON, "lost": SOMEBODY_ELSE_WON, "in_progress": SOMEBODY_ELSE_WON,
              "mismatch": SOMEBODY_ELSE_WON, "failed": SOMEBODY_ELSE_WON}


def parse(words):
    """The command's function and its options by name; "key" is the cache key and "pk" always there."""
    positional, options, words = [], {}, iter(words)
    for word in words:
        if not word.startswith("--"):
            positional.append(word)
            continue
        name, value = word[2:], next(words, None)
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
        return result, EXIT_CODES.get(result["outcome"], DONE)
    except (Failure, BotoCoreError, ClientError, OSError, UnicodeError) as error:
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
