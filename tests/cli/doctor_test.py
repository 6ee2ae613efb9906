#!/usr/bin/python3
"""What `facetheory doctor` finds out about stores: those that are as they should be, and servers that keep one promise
less; and what a gateway that starts says of these.

    doctor_test.py --facetheory build/release/facetheory [WORD...]
"""
import contextlib
import http.client
import http.server
import inspect
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import boto3
from botocore.config import Config

import harness
from harness import Cli, Gateway, same

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "interop"))
from dynamodb_local import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    TABLE,
    DynamoDbLocal,
    s3rver_command,
    spawn,
)  # pylint: disable=wrong-import-position

BUCKET = "bodies"
REACHED, READ, CONDITION = (
    "the table can be reached",
    "a row is read as it was written",
    "a row is written only if its condition holds",
)
DESCRIBED, KEYS, EXPIRY = (
    "the table describes itself",
    "its keys are pk and sk, both text",
    "rows go away after their `ttl`",
)
WHOLE, NOTHING = (
    "a transaction is written as a whole",
    "a transaction with a condition that does not hold writes nothing",
)
TWICE, ROWS_REMOVED = "a transaction that names a row twice is refused", "rows are removed"
SEVERAL = "several rows are read at once"
OF_ANY_TABLE = [REACHED, READ, SEVERAL, CONDITION, WHOLE, NOTHING, TWICE, ROWS_REMOVED]
OF_DYNAMODB = [REACHED, KEYS, EXPIRY, READ, SEVERAL, CONDITION, WHOLE, NOTHING, TWICE, ROWS_REMOVED]
BODIES_REACHED, BODY_READ = "the body store can be reached", "a body is read as it was written, with its metadata"
ONCE, LISTED, BODY_REMOVED = (
    "a key that exists is not written again",
    "a body is found in the list",
    "bodies are removed",
)
OF_BODIES = [BODIES_REACHED, BODY_READ, ONCE, LISTED, BODY_REMOVED]


class S3:
    """A server as it is, with one bucket: nothing of ours stands before it."""

    def __init__(self, command, mark, access_key, secret_key):
        self.process = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = next((line for line in self.process.stdout if mark in line), None)
        if said is None:
            raise SystemExit(f"{command[0]} did not start; run tools/install")
        self.endpoint = "http://127.0.0.1:" + said.split(mark)[1].split()[0]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # What it says later.
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        self.client.create_bucket(Bucket=BUCKET)
        self.environment = {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def keys(self, prefix):
        return [entry["Key"] for entry in self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])]

    def stop(self):
        self.process.kill()
        self.process.wait()


class Servers:
    def __init__(self, stack):
        self.dynamodb = DynamoDbLocal()
        stack.callback(self.dynamodb.stop)
        python = TESTS.parent / "build/tools/moto/bin/python"
        self.moto = S3(
            [python, "-u", "-m", "moto.server", "--host", "127.0.0.1", "--port", "0"],
            "http://127.0.0.1:",
            ACCESS_KEY,
            SECRET_KEY,
        )
        stack.callback(self.moto.stop)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.s3rver = S3(s3rver_command(folder), "listening on 127.0.0.1:", "S3RVER", "S3RVER")
        stack.callback(self.s3rver.stop)


def checked(answer, store):
    """The checks of a store with their results, and what is said of those that are not ok."""
    checks = [check for check in answer["checks"] if check["store"] == store]
    return [check["check"] for check in checks], {
        check["check"]: (check["result"], check["detail"]) for check in checks if check["result"] != "ok"
    }


def finds(answer, store, check, result, *texts):
    """That this check, and no other of the store, has this result, with these texts in what is said of it."""
    _, found = checked(answer, store)
    same({name: outcome for name, (outcome, _) in found.items()}, {check: result})
    for text in texts:
        if text not in found[check][1]:
            raise AssertionError(f"lacks {text!r}: {found}")


# --- Stores that are as they should be ---


def stores_of_this_machine_are_healthy_and_left_as_they_were(cli, _):
    for words in ([], ["--bodies", "file:files"], ["--table", "memory:", "--bodies", "memory:"]):
        answer = cli("doctor", *words).is_("healthy")
        same(checked(answer, "table"), (OF_ANY_TABLE, {}))
        same(checked(answer, "bodies"), (OF_BODIES, {}))
    cli("table", "describe").is_("done", items=0)
    cli("gc", "--dry-run").is_("done", rows_seen=0, bodies_seen=0)
    cli("gc", "--dry-run", "--bodies", "file:files").is_("done", bodies_seen=0)


def dynamodb_and_s3_are_healthy_and_left_as_they_were(cli, servers):
    aws = cli.with_environment(**servers.dynamodb.environment() | servers.moto.environment)
    aws("table", "create", "--table", "dynamodb:healthy").is_("done")
    servers.moto.client.put_object(Bucket=BUCKET, Key="isr/0123/1.html", Body=b"a page")
    answer = aws("doctor", "--table", "dynamodb:healthy", "--bodies", f"s3://{BUCKET}/isr").is_(
        "healthy", bodies=f"s3://{BUCKET}/isr"
    )
    same(checked(answer, "table"), (OF_DYNAMODB, {}))
    same(checked(answer, "bodies"), (OF_BODIES, {}))
    same(servers.dynamodb.client.scan(TableName="healthy", ConsistentRead=True)["Items"], [])
    same(servers.moto.keys("isr/"), ["isr/0123/1.html"])


def people_get_a_line_for_each_check(cli, servers):
    s3 = cli.with_environment(**servers.s3rver.environment)
    answer = s3.plain("doctor", "--table", "memory:", "--bodies", f"s3://{BUCKET}/isr")
    same(answer.code, 1)
    lines = answer.out.decode().splitlines()
    same([line.split()[0] for line in lines], ["ok"] * len(OF_ANY_TABLE) + ["ok", "ok", "failed", "ok", "ok"])
    same(lines[0], f"ok       table   {REACHED}")
    same(lines[len(OF_ANY_TABLE) + 2].startswith(f"failed   bodies  {ONCE}: the server overwrites"), True)
    same(answer.err, f"facetheory: 1 of {len(lines)} checks of table memory: and bodies s3://{BUCKET}/isr failed\n")


def a_shared_table_with_bodies_of_this_machine_is_refused(cli, servers):
    aws = cli.with_environment(**servers.dynamodb.environment())
    for bodies in ([], ["--bodies", "memory:"]):
        aws("doctor", "--table", "dynamodb:any", *bodies).is_("usage", 2).says("the table is shared")


def the_configuration_names_the_stores(cli, _):
    cli.file("facetheory.toml", b'table = "memory:"\nbodies = "file:from-the-file"\n')
    cli("doctor").is_("healthy", table="memory:", bodies="file:from-the-file")
    cli("doctor", "--data", "elsewhere").is_("healthy", table="lmdb:elsewhere/table", bodies="lmdb:elsewhere/bodies")
    cli.file("other.toml", b'table = "memory:"\nbodies = "memory:"\n[origins.default]\nurl = "http://127.0.0.1:1"\n')
    cli("doctor", "--config", "other.toml").is_("healthy", table="memory:", bodies="memory:")
    cli.file("bad.toml", b'table = "redis:"\n')
    cli("doctor", "--config", "bad.toml").is_("usage", 2).says('"redis:" is no table')
    same("origin" in cli.plain("doctor", "--config", "bad.toml").err, False)


# --- Bodies that are not ---


def a_server_that_overwrites_bodies_is_named(cli, servers):
    s3 = cli.with_environment(**servers.s3rver.environment)
    answer = s3("doctor", "--table", "memory:", "--bodies", f"s3://{BUCKET}/overwritten").is_("unhealthy", 1)
    finds(
        answer, "bodies", ONCE, "failed", "overwrites", "If-None-Match", "use a server that honours conditional writes"
    )
    same(checked(answer, "table")[1], {})
    same(servers.s3rver.keys("overwritten/"), [])


def a_bucket_that_is_not_there_is_told_and_nothing_more_is_tried(cli, servers):
    s3 = cli.with_environment(**servers.moto.environment)
    answer = s3("doctor", "--table", "memory:", "--bodies", "s3://nobodys").is_("unhealthy", 1)
    finds(answer, "bodies", BODIES_REACHED, "failed", "404 NoSuchBucket", "create the bucket")
    same(checked(answer, "bodies")[0], [BODIES_REACHED])


def a_folder_that_cannot_be_written_is_told(cli, _):
    cli.file("bodies")
    answer = cli("doctor", "--table", "memory:", "--bodies", "file:bodies")
    same(answer.code != 0, True)
    answer.says("bodies")


# --- Tables that are not ---


class Spoiled(http.server.ThreadingHTTPServer):
    """DynamoDB Local, but `spoil(operation, request)` may change a request, or give the code of the error that answers
    it."""

    daemon_threads = True

    def __init__(self, upstream, spoil):
        super().__init__(("127.0.0.1", 0), SpoiledAnswers)
        self.upstream, self.spoil = urllib.parse.urlsplit(upstream).netloc, spoil
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"


class SpoiledAnswers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        error = self.server.spoil(self.headers["X-Amz-Target"].split(".")[1], request)
        if error:
            status, said = (
                400,
                json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{error}", "message": "not here"}).encode(),
            )
        else:
            kept = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("content-length", "host", "connection")
            }
            upstream = http.client.HTTPConnection(self.server.upstream, timeout=harness.DEADLINE)
            upstream.request("POST", "/", json.dumps(request).encode(), kept)
            answer = upstream.getresponse()
            status, said = answer.status, answer.read()
            upstream.close()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def examined(cli, servers, spoil, table=TABLE):
    with Spoiled(servers.dynamodb.endpoint, spoil) as server:
        aws = cli.with_environment(**servers.dynamodb.environment(server.endpoint))
        answer = aws("doctor", "--table", f"dynamodb:{table}", "--bodies", "file:bodies")
        server.shutdown()
    return answer


def without_condition(write):
    for name in ("ConditionExpression", "ReturnValuesOnConditionCheckFailure"):
        write.pop(name, None)
    # DynamoDB refuses names and values that no expression uses.
    write.pop("ExpressionAttributeNames", None)
    write.pop("ExpressionAttributeValues", None)


def a_table_that_ignores_conditions_is_named(cli, servers):
    def spoil(operation, request):
        if operation == "PutItem":
            without_condition(request)

    answer = examined(cli, servers, spoil).is_("unhealthy", 1)
    finds(answer, "table", CONDITION, "failed", "two workers would hold one lease", "ConditionExpression")


def a_table_without_transactions_is_named(cli, servers):
    def spoil(operation, _):
        return "UnknownOperationException" if operation == "TransactWriteItems" else None

    answer = examined(cli, servers, spoil).is_("unhealthy", 1)
    _, found = checked(answer, "table")
    same(sorted(found), sorted([WHOLE, NOTHING, TWICE]))
    for name in found:
        same(
            (
                "UnknownOperationException" in found[name][1],
                "use a server that has TransactWriteItems" in found[name][1],
            ),
            (True, True),
        )


def a_table_whose_transactions_ignore_conditions_is_named(cli, servers):
    def spoil(operation, request):
        for item in request["TransactItems"] if operation == "TransactWriteItems" else ():
            without_condition(item["Put"])

    finds(examined(cli, servers, spoil).is_("unhealthy", 1), "table", NOTHING, "failed", "wrote it nevertheless")


def a_table_that_writes_half_of_a_transaction_is_named(cli, servers):
    def spoil(operation, request):
        if operation == "TransactWriteItems" and request["TransactItems"][0]["Put"]["Item"]["sk"]["S"] == "2":
            del request["TransactItems"][1]

    finds(examined(cli, servers, spoil).is_("unhealthy", 1), "table", WHOLE, "failed", "half of a transaction")


def a_table_that_takes_a_row_twice_in_one_transaction_is_named(cli, servers):
    def spoil(operation, request):
        if operation == "TransactWriteItems":
            rows = {item["Put"]["Item"]["sk"]["S"]: item for item in request["TransactItems"]}
            request["TransactItems"] = list(rows.values())

    finds(examined(cli, servers, spoil).is_("unhealthy", 1), "table", TWICE, "failed", "the server wrote it")


def a_table_whose_reads_lag_is_named(cli, servers):
    def spoil(operation, request):
        if operation == "GetItem":
            request["Key"]["sk"]["S"] += "-as-it-was"

    answer = examined(cli, servers, spoil).is_("unhealthy", 1)
    finds(answer, "table", READ, "failed", "ConsistentRead")
    same(checked(answer, "table")[0], [REACHED, KEYS, EXPIRY, READ, ROWS_REMOVED])


def a_table_that_does_not_let_several_rows_be_read_is_named(cli, servers):
    def forbid(operation, _):
        return "AccessDeniedException" if operation == "BatchGetItem" else None

    finds(examined(cli, servers, forbid).is_("unhealthy", 1), "table", SEVERAL, "failed", "dynamodb:BatchGetItem")

    def forget(operation, request):
        if operation == "BatchGetItem":
            for table in request["RequestItems"].values():
                table["Keys"] = [key for key in table["Keys"] if key["sk"]["S"] != "1"]

    finds(examined(cli, servers, forget).is_("unhealthy", 1), "table", SEVERAL, "failed", "BatchGetItem")


def rows_that_cannot_be_removed_are_told(cli, servers):
    def spoil(operation, _):
        return "AccessDeniedException" if operation == "DeleteItem" else None

    finds(
        examined(cli, servers, spoil).is_("unhealthy", 1),
        "table",
        ROWS_REMOVED,
        "failed",
        "dynamodb:DeleteItem",
        "DOCTOR#",
        "until their `ttl`",
    )


def a_table_that_says_nothing_of_itself_is_a_warning(cli, servers):
    def spoil(operation, _):
        return "UnknownOperationException" if operation == "DescribeTimeToLive" else None

    finds(
        examined(cli, servers, spoil).is_("healthy"),
        "table",
        DESCRIBED,
        "warning",
        "UnknownOperationException",
        "facetheory gc",
    )


def a_table_that_keeps_old_rows_is_a_warning(cli, servers):
    servers.dynamodb.client.create_table(
        TableName="keeps",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    )
    answer = examined(cli, servers, lambda *_: None, "keeps").is_("healthy")
    finds(answer, "table", EXPIRY, "warning", "not switched on", "facetheory table create")


def a_table_with_other_keys_is_named_and_left_alone(cli, servers):
    servers.dynamodb.client.create_table(
        TableName="other-keys",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    answer = examined(cli, servers, lambda *_: None, "other-keys").is_("unhealthy", 1)
    _, found = checked(answer, "table")
    same([name for name, (result, _) in found.items() if result == "failed"], [KEYS])
    same("expected pk S HASH, sk S RANGE" in found[KEYS][1], True)
    same(READ in checked(answer, "table")[0], False)


def a_table_that_is_not_there_is_told_and_bodies_are_checked_nevertheless(cli, servers):
    for table, environment, text in (
        ("nobodys", {}, "facetheory table create"),
        (TABLE, {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}, "127.0.0.1:9"),
    ):
        aws = cli.with_environment(**servers.dynamodb.environment() | environment)
        answer = aws("doctor", "--table", f"dynamodb:{table}", "--bodies", "file:bodies").is_("unhealthy", 1)
        finds(answer, "table", REACHED, "failed", text)
        same(checked(answer, "table")[0], [REACHED])
        same(checked(answer, "bodies"), (OF_BODIES, {}))


# --- A gateway that starts ---


def warnings_of_a_gateway(cli, *words, count):
    """The first so many lines in which it says that a server lacks something; fewer, if it says no more in time."""
    found = []
    with Gateway(cli, "--origin", "http://127.0.0.1:1", *words) as gateway:
        enough = threading.Timer(20 if count else 3, gateway.process.send_signal, [signal.SIGTERM])
        enough.start()
        for line in gateway.process.stderr:
            if "does not keep what pages rely on" in line:
                found.append(line)
            if count and len(found) == count:
                break
        enough.cancel()
    return found


def a_gateway_names_the_servers_that_keep_one_promise_less_when_it_starts(cli, servers):
    def spoil(operation, _):
        return "UnknownOperationException" if operation == "TransactWriteItems" else None

    with Spoiled(servers.dynamodb.endpoint, spoil) as server:
        stores = ["--table", "dynamodb:asked", "--bodies", f"s3://{BUCKET}/asked"]
        aws = cli.with_environment(**servers.dynamodb.environment(server.endpoint) | servers.s3rver.environment)
        aws("table", "create", *stores).is_("done")
        table, bodies = warnings_of_a_gateway(aws, *stores, count=2)
        server.shutdown()
    for line, texts in (
        (table, ["dynamodb:asked", server.endpoint, "UnknownOperationException", "use a server that has Transact"]),
        (bodies, [f"s3://{BUCKET}/asked", servers.s3rver.endpoint, "If-None-Match", "use a server that honours"]),
    ):
        for text in [*texts, "facetheory doctor"]:
            if text not in line:
                raise AssertionError(f"lacks {text!r}: {line}")
    same(servers.s3rver.keys("asked/"), ["asked/facetheory-partner"])


def a_gateway_says_nothing_of_servers_that_keep_what_they_promise(cli, servers):
    aws = cli.with_environment(**servers.dynamodb.environment() | servers.moto.environment)
    stores = ["--table", "dynamodb:kept", "--bodies", f"s3://{BUCKET}/kept"]
    aws("table", "create", *stores).is_("done")
    same(warnings_of_a_gateway(aws, *stores, count=0), [])
    same(servers.moto.keys("kept/"), ["kept/facetheory-partner"])
    rows = servers.dynamodb.client.scan(TableName="kept", ConsistentRead=True)["Items"]
    same([row["pk"] for row in rows if "DOCTOR" in str(row["pk"])], [])


def main():
    chosen = harness.options(__doc__)
    with contextlib.ExitStack() as stack:
        servers = None if chosen.list else Servers(stack)
        cases = [
            (f.__name__.replace("_", " "), f, Cli(chosen.facetheory, "."), servers)
            for _, f in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
            if list(inspect.signature(f).parameters)[:1] == ["cli"] and len(inspect.signature(f).parameters) == 2
        ]
        well = harness.run_all(cases, chosen, 4)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
