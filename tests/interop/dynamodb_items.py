#!/usr/bin/python3
"""The other end of the test that our items and boto3's are the same.

    dynamodb_items.py ENDPOINT TABLE check     reads what dynamodb_table_test.cc wrote and compares it with ITEM
    dynamodb_items.py ENDPOINT TABLE write     writes ITEM under sk "from-boto3"
    dynamodb_items.py ENDPOINT TABLE shape     makes the table with another key
    dynamodb_items.py ENDPOINT TABLE expire    makes the table with rows expiring by "expires"
"""

import sys
from decimal import Decimal

import boto3
from boto3.dynamodb.types import Binary

# The same values stand in dynamodb_table_test.cc. (boto3 cannot read numbers of more than 38 written digits.)
ITEM = {
    "S": "é € 😀 \u0000 \"\\",
    "S empty": "",
    "N": Decimal("-12345678901234567890123456789.012345678"),
    "N large": Decimal("1E+37"),
    "N small": Decimal("1E-130"),
    "B": Binary(bytes(range(256))),
    "BOOL": False,
    "NULL": None,
    "L": ["a", Decimal(1), [], {}, None, True],
    "M": {"pk": "inner", "m": {"deep": {"x", "y"}}},
    "SS": {"", "a", "é"},
    "NS": {Decimal("-1"), Decimal("0.5"), Decimal(10)},
    "BS": {Binary(b""), Binary(b"\x00\xff")},
}


def main():
    endpoint, name, mode = sys.argv[1:]
    database = boto3.resource(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="AKIDTESTACCESSKEY001",
        aws_secret_access_key="unchecked",
    )
    table = database.Table(name)
    if mode == "check":
        found = table.get_item(Key={"pk": "items", "sk": "from-us"}, ConsistentRead=True)["Item"]
        expected = {"pk": "items", "sk": "from-us", **ITEM}
        for attribute in sorted(found.keys() | expected.keys()):
            if attribute not in found or attribute not in expected or found[attribute] != expected[attribute]:
                sys.exit(f"{attribute}: found {found.get(attribute)!r}, expected {expected.get(attribute)!r}")
    elif mode == "write":
        table.put_item(Item={"pk": "items", "sk": "from-boto3", **ITEM})
    elif mode == "shape":
        database.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        )
    elif mode == "expire":
        database.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        )
        database.meta.client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
        )
    else:
        sys.exit(f"unknown mode {mode}")
    print("done")


if __name__ == "__main__":
    main()
