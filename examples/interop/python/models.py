"""The rows of a FaceTheory ISR table, as the specification models them. models.go and models.ts are the same.

The attributes have the names of the fields. None is an attribute that is not there: a row of another writer may lack
what is optional here, and attributes that no model names are ignored. Times are whole seconds since 1970.
"""
from __future__ import annotations

import dataclasses
import os
import typing
from dataclasses import dataclass


def table_name() -> str | None:
    """All models live in one table."""
    return os.environ.get("FACETHEORY_CACHE_TABLE_NAME") or None


@dataclass
class FaceTheoryCacheMetadata:
    """META: what was generated. Fresh iff now < generated_at + revalidate_seconds."""

    pk: str
    sk: str
    s3_key: str | None = None
    generated_at: int | None = None
    revalidate_seconds: int | None = None
    etag: str | None = None
    ttl: int | None = None
    current_sk: str | None = None  # with history: the VER# row that it points at
    version: int | None = None
    last_generated_at: int | None = None  # left by an invalidation; only read


@dataclass
class FaceTheoryCacheLease:
    """LOCK: who is regenerating. Held iff lease_expires_at > now; without lease_expires_at it is not held."""

    pk: str
    sk: str
    lease_token: str | None = None
    lease_expires_at: int | None = None
    ttl: int | None = None


@dataclass
class FaceTheoryCacheVersion:
    """VER#<id>: one generation that was kept. Ids sort by time of creation."""

    pk: str
    sk: str
    s3_key: str | None = None
    generated_at: int | None = None
    revalidate_seconds: int | None = None
    etag: str | None = None
    ttl: int | None = None
    version: int | None = None


@dataclass
class FaceTheoryRequest:
    """REQ#<idempotency key>: one regeneration intent. Past its ttl it counts as absent."""

    pk: str
    sk: str
    request_hash: str | None = None
    status: str | None = None  # STARTED, COMPLETED or FAILED
    result_s3_key: str | None = None
    ttl: int | None = None
    # What keeps a dead worker from blocking its key. Records of services that know the specification alone lack it.
    owner_token: str | None = None
    started_at: int | None = None
    in_progress_expires_at: int | None = None
    attempt: int | None = None
    first_seen_at: int | None = None  # of a STARTED record without a time: when somebody met it who could note that
    error: str | None = None
    retryable: bool | None = None  # of a FAILED record; absent means yes


def from_item(model, pk, sk, item):
    """The row of an item; of an item that is not there, a row without attributes."""
    row = model(pk, sk)
    types = typing.get_type_hints(model)
    for field in dataclasses.fields(model):
        value = item.get(field.name)
        if value is None:
            continue
        hint = types[field.name]
        wanted = next(kind for kind in (bool, str, int) if kind in (hint, *typing.get_args(hint)))
        if wanted is int and isinstance(value, float):
            value = int(value)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise TypeError(f"{sk} of {pk}: {field.name} is {value!r} and should be of type {wanted.__name__}")
        setattr(row, field.name, value)
    return row


def to_item(row):
    return {name: value for name, value in dataclasses.asdict(row).items() if value is not None}
