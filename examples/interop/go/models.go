package main

import "os"

// The rows of a FaceTheory ISR table, as the specification models them. models.ts and models.py are the same.
//
// A row of another writer may lack what is optional here, and attributes that no model names are ignored. A pointer is
// where "absent" and zero differ. Times are whole seconds since 1970.

// tableName is the table in which all models live.
func tableName() string { return os.Getenv("FACETHEORY_CACHE_TABLE_NAME") }

// FaceTheoryCacheMetadata is META: what was generated. Fresh iff now < generated_at + revalidate_seconds.
type FaceTheoryCacheMetadata struct {
	PK                string `dynamodbav:"pk" json:"pk"`
	SK                string `dynamodbav:"sk" json:"sk"`
	S3Key             string `dynamodbav:"s3_key" json:"s3_key"`
	GeneratedAt       int64  `dynamodbav:"generated_at" json:"generated_at"`
	RevalidateSeconds int64  `dynamodbav:"revalidate_seconds" json:"revalidate_seconds"`
	ETag              string `dynamodbav:"etag,omitempty" json:"etag,omitempty"`
	TTL               int64  `dynamodbav:"ttl,omitempty" json:"ttl,omitempty"`
	CurrentSK         string `dynamodbav:"current_sk,omitempty" json:"current_sk,omitempty"` // with history: a VER# row
	Version           int64  `dynamodbav:"version,omitempty" json:"version,omitempty"`
	LastGeneratedAt   int64  `dynamodbav:"last_generated_at,omitempty" json:"-"` // left by an invalidation; only read
}

// FaceTheoryCacheLease is LOCK: who is regenerating. Held iff lease_expires_at > now.
type FaceTheoryCacheLease struct {
	PK             string `dynamodbav:"pk" json:"pk"`
	SK             string `dynamodbav:"sk" json:"sk"`
	LeaseToken     string `dynamodbav:"lease_token" json:"lease_token"`
	LeaseExpiresAt int64  `dynamodbav:"lease_expires_at" json:"lease_expires_at"`
	TTL            int64  `dynamodbav:"ttl,omitempty" json:"ttl,omitempty"`
}

// FaceTheoryCacheVersion is VER#<id>: one generation that was kept. Ids sort by time of creation.
type FaceTheoryCacheVersion struct {
	PK                string `dynamodbav:"pk" json:"pk"`
	SK                string `dynamodbav:"sk" json:"sk"`
	S3Key             string `dynamodbav:"s3_key" json:"s3_key"`
	GeneratedAt       int64  `dynamodbav:"generated_at" json:"generated_at"`
	RevalidateSeconds int64  `dynamodbav:"revalidate_seconds" json:"revalidate_seconds"`
	ETag              string `dynamodbav:"etag,omitempty" json:"etag,omitempty"`
	TTL               int64  `dynamodbav:"ttl,omitempty" json:"ttl,omitempty"`
	Version           int64  `dynamodbav:"version,omitempty" json:"version,omitempty"`
}

// FaceTheoryRequest is REQ#<idempotency key>: one regeneration intent. Past its ttl it counts as absent.
type FaceTheoryRequest struct {
	PK          string `dynamodbav:"pk" json:"pk"`
	SK          string `dynamodbav:"sk" json:"sk"`
	RequestHash string `dynamodbav:"request_hash" json:"request_hash"`
	Status      string `dynamodbav:"status" json:"status"` // STARTED, COMPLETED or FAILED
	ResultS3Key string `dynamodbav:"result_s3_key,omitempty" json:"result_s3_key,omitempty"`
	TTL         int64  `dynamodbav:"ttl,omitempty" json:"ttl,omitempty"`

	// What keeps a dead worker from blocking its key. Records of services that know the specification alone lack it.
	OwnerToken          string `dynamodbav:"owner_token,omitempty" json:"owner_token,omitempty"`
	StartedAt           int64  `dynamodbav:"started_at,omitempty" json:"started_at,omitempty"`
	InProgressExpiresAt *int64 `dynamodbav:"in_progress_expires_at,omitempty" json:"in_progress_expires_at,omitempty"`
	Attempt             int64  `dynamodbav:"attempt,omitempty" json:"attempt,omitempty"`
	// Of a STARTED record without a time: when somebody met it who could note that.
	FirstSeenAt *int64 `dynamodbav:"first_seen_at,omitempty" json:"first_seen_at,omitempty"`
	Error       string `dynamodbav:"error,omitempty" json:"error,omitempty"`
	Retryable   *bool  `dynamodbav:"retryable,omitempty" json:"retryable,omitempty"` // of a FAILED record; absent: yes
}
