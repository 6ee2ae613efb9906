// A worker of a FaceTheory ISR table, in Go with the AWS SDK, as services in this language behave towards it.
//
// It knows the rows of models.go and nothing else: it publishes by Recipe A, replacing META as a whole. A lease is held
// iff lease_expires_at > now; a page is fresh iff now < generated_at + revalidate_seconds; ttl decides neither. The
// SDK's own retries are off, because a conditional write that got no answer may have been carried out: send repeats,
// and says so.
//
// worker.ts and worker.py are the same program. ../README.md shows the commands.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	lockBuffer    = 3600 // ttl of a row beyond its use; garbage collection only
	requestBuffer = 86400
	longestLease  = 3600 // a STARTED record without a time is left alone that long
	tries         = 8

	exitDone            = 0
	exitFailed          = 1
	exitUsage           = 2
	exitSomebodyElseWon = 3
)

// heldPause is how long to wait before asking again for a lease that is held.
func heldPause() time.Duration { return time.Duration(20000+mathrand.Intn(60000)) * time.Microsecond }

// Canonical forms: every language computes the same.

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func partitionKey(cacheKey, tenant string) string {
	if tenant != "" {
		return "TENANT#" + tenant + "#CACHE#" + sha256Hex(cacheKey)
	}
	return "CACHE#" + sha256Hex(cacheKey)
}

func idempotencyKey(cacheKey, deployID, policyVersion string) string {
	return sha256Hex(cacheKey + "|" + deployID + "|" + policyVersion)
}

// requestHash is the SHA-256 of the RFC 8785 form, which sorts members by UTF-16 code units.
func requestHash(inputs map[string]string) string {
	names := make([]string, 0, len(inputs))
	for name := range inputs {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := utf16.Encode([]rune(names[i])), utf16.Encode([]rune(names[j]))
		for k := 0; k < len(a) && k < len(b); k++ {
			if a[k] != b[k] {
				return a[k] < b[k]
			}
		}
		return len(a) < len(b)
	})
	members := make([]string, len(names))
	for i, name := range names {
		members[i] = canonicalString(name) + ":" + canonicalString(inputs[name])
	}
	return sha256Hex("{" + strings.Join(members, ",") + "}")
}

// canonicalString escapes what RFC 8785 wants escaped. encoding/json escapes more.
func canonicalString(text string) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}
	var out strings.Builder
	for _, r := range text {
		if escape, ok := short[r]; ok {
			out.WriteString(escape)
		} else if r < 0x20 {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return `"` + out.String() + `"`
}

// The table.

type Table struct {
	name   string
	client *dynamodb.Client
}

var opened *Table

func openTable() (*Table, error) {
	if opened != nil {
		return opened, nil
	}
	name := tableName()
	if name == "" {
		return nil, usage("FACETHEORY_CACHE_TABLE_NAME is not set: it names the DynamoDB table")
	}
	settings, err := config.LoadDefaultConfig(context.Background(),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(10*time.Second)),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, err
	}
	// This SDK is older than the endpoint variables, so they are read here.
	endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
	if endpoint == "" {
		endpoint = os.Getenv("AWS_ENDPOINT_URL")
	}
	opened = &Table{name, dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) {
		if endpoint != "" {
			o.EndpointResolver = dynamodb.EndpointResolverFromURL(endpoint)
		}
	})}
	return opened, nil
}

// send repeats try until it is answered. done is false when a condition failed; doubtful says that an earlier try may
// have been carried out unseen.
func send(try func(context.Context) error) (done, doubtful bool, err error) {
	for attempt := 0; attempt < tries; attempt++ {
		if attempt > 0 {
			time.Sleep(time.Duration(mathrand.Int63n(int64(10*time.Millisecond) << attempt)))
		}
		if err = try(context.Background()); err == nil {
			return true, doubtful, nil
		}
		var answered *awshttp.ResponseError
		var fault smithy.APIError
		switch {
		case !errors.As(err, &answered) || answered.HTTPStatusCode() >= 500 || !errors.As(err, &fault):
			doubtful = true // no answer, half of one, or one that does not say
		case conditionFailed.MatchString(reasons(fault)):
			return false, doubtful, nil
		case !refusedForNow.MatchString(reasons(fault)):
			return false, doubtful, err
		}
	}
	return false, doubtful, fmt.Errorf("DynamoDB gave no answer to rely on; the write may have happened: %w", err)
}

var (
	conditionFailed = regexp.MustCompile(`ConditionalCheckFailed`)
	refusedForNow   = regexp.MustCompile(
		`^(TransactionConflict|TransactionInProgress|Throttling|ProvisionedThroughputExceeded|RequestLimitExceeded)`)
)

// reasons is what the answer names: of a cancelled transaction, the reason of each item that has one.
func reasons(fault smithy.APIError) string {
	cancelled, ok := fault.(*types.TransactionCanceledException)
	if !ok {
		return fault.ErrorCode()
	}
	var codes []string
	for _, reason := range cancelled.CancellationReasons {
		if code := aws.ToString(reason.Code); code != "None" {
			codes = append(codes, code)
		}
	}
	return strings.Join(codes, " ")
}

func (t *Table) read(pk, sk string, row interface{}) error {
	var item map[string]types.AttributeValue
	_, _, err := send(func(ctx context.Context) error {
		answer, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &t.name, Key: key(pk, sk), ConsistentRead: aws.Bool(true)})
		if err == nil {
			item = answer.Item
		}
		return err
	})
	if err != nil {
		return err
	}
	return attributevalue.UnmarshalMap(item, row)
}

// versions returns the generations that were kept, the oldest first.
func (t *Table) versions(pk string) ([]FaceTheoryCacheVersion, error) {
	found := []FaceTheoryCacheVersion{}
	request := &dynamodb.QueryInput{TableName: &t.name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk AND begins_with(#sk, :prefix)"),
		ExpressionAttributeNames:  names("pk", "sk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": text(pk), ":prefix": text("VER#")}}
	for {
		var answer *dynamodb.QueryOutput
		_, _, err := send(func(ctx context.Context) (err error) {
			answer, err = t.client.Query(ctx, request)
			return err
		})
		if err != nil {
			return nil, err
		}
		var page []FaceTheoryCacheVersion
		if err := attributevalue.UnmarshalListOfMaps(answer.Items, &page); err != nil {
			return nil, err
		}
		found = append(found, page...)
		if request.ExclusiveStartKey = answer.LastEvaluatedKey; len(request.ExclusiveStartKey) == 0 {
			return found, nil
		}
	}
}

func key(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk)}
}

func text(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }

func number(value int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(value, 10)}
}

// names aliases every attribute name: status and ttl are reserved words.
func names(attributes ...string) map[string]string {
	aliases := map[string]string{}
	for _, name := range attributes {
		aliases["#"+name] = name
	}
	return aliases
}

func item(row interface{}) map[string]types.AttributeValue {
	attributes, err := attributevalue.MarshalMap(row)
	if err != nil {
		panic(err) // The row types above can be marshalled.
	}
	return attributes
}

func now() int64 { return time.Now().Unix() }

func uuid() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// The protocol.

const held = "#lease_token = :token AND #lease_expires_at > :now"

// acquired is a lease that is ours, and when it became so: the render begins then.
type acquired struct {
	FaceTheoryCacheLease
	at int64
}

// acquire returns nil when the lease is held. Each try has a token of its own; whichever of them is stored is ours.
func (t *Table) acquire(pk string, seconds int64) (*acquired, error) {
	var attempts []*acquired
	done, doubtful, err := send(func(ctx context.Context) error {
		started := now()
		lease := FaceTheoryCacheLease{pk, "LOCK", uuid(), started + seconds, started + seconds + lockBuffer}
		attempts = append(attempts, &acquired{lease, started})
		_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: item(lease),
			ConditionExpression: aws.String("attribute_not_exists(#pk) OR attribute_not_exists(#lease_expires_at) " +
				"OR #lease_expires_at <= :now"),
			ExpressionAttributeNames:  names("pk", "lease_expires_at"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":now": number(started)}})
		return err
	})
	if err != nil || (!done && !doubtful) {
		return nil, err
	}
	if done {
		return attempts[len(attempts)-1], nil
	}
	var stored FaceTheoryCacheLease
	if err := t.read(pk, "LOCK", &stored); err != nil {
		return nil, err
	}
	for _, lease := range attempts {
		if lease.LeaseToken == stored.LeaseToken {
			return lease, nil
		}
	}
	return nil, nil
}

// refresh returns the new expiry, 0 when the lease is lost. Repeating it is harmless: the token stays.
func (t *Table) refresh(pk, token string, seconds int64) (int64, error) {
	started := now()
	expires := started + seconds
	done, _, err := send(func(ctx context.Context) error {
		_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &t.name, Key: key(pk, "LOCK"),
			UpdateExpression:         aws.String("SET #lease_expires_at = :expires, #ttl = :ttl"),
			ConditionExpression:      aws.String(held),
			ExpressionAttributeNames: names("lease_token", "lease_expires_at", "ttl"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":token": text(token), ":now": number(started),
				":expires": number(expires), ":ttl": number(expires + lockBuffer)}})
		return err
	})
	if !done {
		return 0, err
	}
	return expires, nil
}

// release returns false when the lease was not ours any more, which harms nobody.
func (t *Table) release(pk, token string) (bool, error) {
	done, doubtful, err := send(func(ctx context.Context) error {
		_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.name, Key: key(pk, "LOCK"),
			ConditionExpression:       aws.String("#lease_token = :token"),
			ExpressionAttributeNames:  names("lease_token"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":token": text(token)}})
		return err
	})
	return done || (doubtful && err == nil), err
}

// publish writes META, ends the lease and ends the request, all or nothing. False: the lease or the request is lost.
//
// DynamoDB takes one operation per row, so the check of the lease is the condition of its delete. The client token
// makes a repeat of this very request harmless.
func (t *Table) publish(token string, meta FaceTheoryCacheMetadata, requestID, owner string) (bool, error) {
	steps := []types.TransactWriteItem{
		{Put: &types.Put{TableName: &t.name, Item: item(meta)}},
		{Delete: &types.Delete{TableName: &t.name, Key: key(meta.PK, "LOCK"),
			ConditionExpression:       aws.String(held),
			ExpressionAttributeNames:  names("lease_token", "lease_expires_at"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":token": text(token), ":now": number(now())}}},
	}
	if requestID != "" {
		steps = append(steps, types.TransactWriteItem{Update: t.completion(meta.PK, requestID, owner, meta.S3Key)})
	}
	request := &dynamodb.TransactWriteItemsInput{TransactItems: steps, ClientRequestToken: aws.String(uuid())}
	done, doubtful, err := send(func(ctx context.Context) error {
		_, err := t.client.TransactWriteItems(ctx, request)
		return err
	})
	if err != nil || done || !doubtful {
		return done, err
	}
	var stored FaceTheoryCacheMetadata
	err = t.read(meta.PK, "META", &stored)
	return stored.S3Key == meta.S3Key, err
}

// claim returns what became of it, and the record that says so.
//
// A record whose time is over is taken over: its worker died. So is one that was handed back. A STARTED record without
// a time is of a service that knows the specification alone; whoever meets it first notes when, and it is taken over
// when that is longer ago than any lease lasts and nobody holds the page's lease. What is taken over must still be as
// it was read.
func (t *Table) claim(pk, requestID string, inputs map[string]string, seconds int64) (
	string, FaceTheoryRequest, error) {
	hash, ours := requestHash(inputs), map[string]FaceTheoryRequest{}
	var met *FaceTheoryRequest // what stands in the way, and may be replaced while it is as it was read
	for attempt := 0; attempt < 2*tries; attempt++ {
		claimed, unlessLeased, err := t.tryClaim(pk, "REQ#"+requestID, hash, seconds, ours, met)
		if err != nil || claimed != nil {
			return "claimed", valueOf(claimed), err
		}
		before, row := met, FaceTheoryRequest{}
		if err := t.read(pk, "REQ#"+requestID, &row); err != nil {
			return "", row, err
		}
		met = nil
		until := freeAt(row)
		_, written := ours[row.OwnerToken]
		switch {
		case row.Status == "" || (row.TTL != 0 && row.TTL <= now()): // past its ttl it counts as absent
			continue
		case row.RequestHash != hash:
			return "mismatch", row, nil
		case row.Status == "COMPLETED":
			return "completed", row, nil
		case row.Status == "FAILED" && row.Retryable != nil && !*row.Retryable:
			return "failed", row, nil
		case row.Status == "STARTED" && written:
			return "claimed", row, nil
		case unlessLeased && reflect.DeepEqual(before, &row): // somebody holds the lease
			row.InProgressExpiresAt = &until
			return "in_progress", row, nil
		case until > now():
			if row.Status == "STARTED" && row.InProgressExpiresAt == nil && row.FirstSeenAt == nil {
				err = t.noteFirstSeen(row)
			}
			row.InProgressExpiresAt = &until
			return "in_progress", row, err
		}
		met = &row
	}
	return "", FaceTheoryRequest{}, fmt.Errorf("the request %s kept changing hands", requestID)
}

func valueOf(row *FaceTheoryRequest) FaceTheoryRequest {
	if row == nil {
		return FaceTheoryRequest{}
	}
	return *row
}

// tryClaim is one attempt: the record that it wrote, or nil; and whether it needed the page's lease to be free. ours
// gets all that it tried to write.
func (t *Table) tryClaim(pk, sk, hash string, seconds int64, ours map[string]FaceTheoryRequest,
	met *FaceTheoryRequest) (*FaceTheoryRequest, bool, error) {
	var row FaceTheoryRequest
	makePut := func() *types.Put {
		started := now()
		expires := started + seconds
		row = FaceTheoryRequest{PK: pk, SK: sk, RequestHash: hash, Status: "STARTED", OwnerToken: uuid(),
			StartedAt: started, InProgressExpiresAt: &expires, TTL: expires + requestBuffer, Attempt: 1}
		condition, aliases, values := "", names(), map[string]types.AttributeValue{}
		if met != nil {
			row.Attempt = latest(met.Attempt, 1) + 1
			condition, aliases, values = asRead(*met)
			condition = " OR (" + condition + ")"
		}
		ours[row.OwnerToken] = row
		aliases["#pk"], aliases["#ttl"], values[":now"] = "pk", "ttl", number(started)
		return &types.Put{TableName: &t.name, Item: item(row), ExpressionAttributeNames: aliases,
			ConditionExpression:       aws.String("attribute_not_exists(#pk) OR #ttl <= :now" + condition),
			ExpressionAttributeValues: values}
	}
	unlessLeased := met != nil && met.Status == "STARTED" && met.InProgressExpiresAt == nil
	var done bool
	var err error
	if unlessLeased {
		request := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(uuid()),
			TransactItems: []types.TransactWriteItem{{Put: makePut()}, {ConditionCheck: &types.ConditionCheck{
				TableName: &t.name, Key: key(pk, "LOCK"),
				ConditionExpression: aws.String(
					"attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now"),
				ExpressionAttributeNames:  names("lease_expires_at"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":now": number(now())}}}}}
		done, _, err = send(func(ctx context.Context) error {
			_, err := t.client.TransactWriteItems(ctx, request)
			return err
		})
	} else {
		done, _, err = send(func(ctx context.Context) error {
			put := makePut()
			_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: put.TableName, Item: put.Item,
				ConditionExpression: put.ConditionExpression, ExpressionAttributeNames: put.ExpressionAttributeNames,
				ExpressionAttributeValues: put.ExpressionAttributeValues})
			return err
		})
	}
	if err != nil || !done {
		return nil, unlessLeased, err
	}
	return &row, unlessLeased, nil
}

// freeAt is when a record that has not ended for good may be taken over, at the earliest.
func freeAt(row FaceTheoryRequest) int64 {
	switch {
	case row.Status == "FAILED":
		return 0
	case row.InProgressExpiresAt != nil:
		return *row.InProgressExpiresAt
	case row.FirstSeenAt != nil:
		return *row.FirstSeenAt + longestLease + 1
	}
	return now() + longestLease + 1
}

// asRead is a condition that holds while nobody has changed the record, with its names and values.
func asRead(row FaceTheoryRequest) (string, map[string]string, map[string]types.AttributeValue) {
	stored, values, parts := item(row), map[string]types.AttributeValue{}, []string{}
	attributes := []string{"status", "request_hash", "owner_token", "in_progress_expires_at", "first_seen_at"}
	for _, name := range attributes {
		if value, there := stored[name]; there {
			parts = append(parts, "#"+name+" = :"+name)
			values[":"+name] = value
		} else {
			parts = append(parts, "attribute_not_exists(#"+name+")")
		}
	}
	return strings.Join(parts, " AND "), names(attributes...), values
}

// noteFirstSeen writes when the record was met. Somebody else may do so first; then theirs counts.
func (t *Table) noteFirstSeen(row FaceTheoryRequest) error {
	condition, aliases, values := asRead(row)
	values[":seen"] = number(now())
	_, _, err := send(func(ctx context.Context) error {
		_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &t.name, Key: key(row.PK, row.SK),
			UpdateExpression: aws.String("SET #first_seen_at = :seen"), ConditionExpression: &condition,
			ExpressionAttributeNames: aliases, ExpressionAttributeValues: values})
		return err
	})
	return err
}

var aliased = regexp.MustCompile(`#\w+`)

// change is an update of a record that is ours and in progress; also is a further condition. Services that know nothing
// of owner_token go by the status alone.
func (t *Table) change(pk, requestID, owner, update, also string,
	values map[string]types.AttributeValue) *types.Update {
	condition := "#status = :started"
	values[":started"] = text("STARTED")
	if owner != "" {
		condition += " AND #owner_token = :owner"
		values[":owner"] = text(owner)
	}
	condition += also
	aliases := map[string]string{}
	for _, alias := range aliased.FindAllString(update+condition, -1) {
		aliases[alias] = alias[1:]
	}
	return &types.Update{TableName: &t.name, Key: key(pk, "REQ#"+requestID), UpdateExpression: &update,
		ConditionExpression: &condition, ExpressionAttributeNames: aliases, ExpressionAttributeValues: values}
}

// completion turns STARTED into COMPLETED.
func (t *Table) completion(pk, requestID, owner, result string) *types.Update {
	return t.change(pk, requestID, owner, "SET #status = :completed, #result_s3_key = :result, #ttl = :ttl "+
		"REMOVE #in_progress_expires_at, #error", "", map[string]types.AttributeValue{":completed": text("COMPLETED"),
		":result": text(result), ":ttl": number(now() + requestBuffer)})
}

// changed carries the update out. Where its answer was lost, the record tells: done judges it.
func (t *Table) changed(pk, requestID, owner string, step *types.Update,
	done func(FaceTheoryRequest) bool) (bool, error) {
	written, _, err := send(func(ctx context.Context) error {
		_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: step.TableName, Key: step.Key,
			UpdateExpression: step.UpdateExpression, ConditionExpression: step.ConditionExpression,
			ExpressionAttributeNames: step.ExpressionAttributeNames, ExpressionAttributeValues: step.ExpressionAttributeValues})
		return err
	})
	if written || err != nil {
		return written, err
	}
	var row FaceTheoryRequest
	err = t.read(pk, "REQ#"+requestID, &row)
	return row.OwnerToken == owner && done(row), err
}

func (t *Table) complete(pk, requestID, owner, result string) (bool, error) {
	return t.changed(pk, requestID, owner, t.completion(pk, requestID, owner, result), func(row FaceTheoryRequest) bool {
		return row.Status == "COMPLETED" && row.ResultS3Key == result
	})
}

// extend returns until when the claim is kept, 0 when it is lost. A call that arrives late shortens nothing.
func (t *Table) extend(pk, requestID, owner string, seconds int64) (int64, error) {
	until := now() + seconds
	step := t.change(pk, requestID, owner, "SET #in_progress_expires_at = :until, #ttl = :ttl",
		" AND (attribute_not_exists(#in_progress_expires_at) OR #in_progress_expires_at <= :until)",
		map[string]types.AttributeValue{":until": number(until), ":ttl": number(until + requestBuffer)})
	kept, err := t.changed(pk, requestID, owner, step, func(row FaceTheoryRequest) bool {
		return row.Status == "STARTED" && row.InProgressExpiresAt != nil && *row.InProgressExpiresAt >= until
	})
	if err != nil || !kept {
		return 0, err
	}
	var row FaceTheoryRequest
	err = t.read(pk, "REQ#"+requestID, &row)
	return aws.ToInt64(row.InProgressExpiresAt), err
}

// fail hands the record back: the same request may be claimed anew, if it is retryable.
func (t *Table) fail(pk, requestID, owner string, message *string, retryable bool) (bool, error) {
	update := "SET #status = :failed, #retryable = :retryable, #ttl = :ttl"
	values := map[string]types.AttributeValue{":failed": text("FAILED"), ":ttl": number(now() + requestBuffer),
		":retryable": &types.AttributeValueMemberBOOL{Value: retryable}}
	if message != nil {
		update += ", #error = :error"
		values[":error"] = text(*message)
	}
	step := t.change(pk, requestID, owner, update+" REMOVE #in_progress_expires_at", "", values)
	return t.changed(pk, requestID, owner, step, func(row FaceTheoryRequest) bool { return row.Status == "FAILED" })
}

func verdict(meta FaceTheoryCacheMetadata) string {
	if meta.S3Key == "" {
		return "missing"
	}
	if now() < meta.GeneratedAt+meta.RevalidateSeconds {
		return "fresh"
	}
	return "stale"
}

// The commands: each returns what to print; exitCode says what the outcome means to a shell.

type Answer map[string]interface{}

type Options struct {
	key, pk string
	texts   map[string]string
	numbers map[string]int64
	inputs  map[string]string
}

func (o Options) number(name string, otherwise int64) int64 {
	if given, ok := o.numbers[name]; ok {
		return given
	}
	return otherwise
}

// on runs a command on the table; the others look at none.
func on(run func(*Table, Options) (Answer, error)) func(Options) (Answer, error) {
	return func(o Options) (Answer, error) {
		table, err := openTable()
		if err != nil {
			return nil, err
		}
		return run(table, o)
	}
}

func outcome(done bool, name string, err error) (Answer, error) {
	if !done {
		name = "lost"
	}
	return Answer{"outcome": name}, err
}

func runAcquire(t *Table, o Options) (Answer, error) {
	lease, err := t.acquire(o.pk, o.numbers["for"])
	if err != nil {
		return nil, err
	}
	if lease != nil {
		return Answer{"outcome": "acquired", "lease_token": lease.LeaseToken, "lease_expires_at": lease.LeaseExpiresAt,
			"acquired_at": lease.at}, nil
	}
	var stored FaceTheoryCacheLease
	err = t.read(o.pk, "LOCK", &stored)
	return Answer{"outcome": "held", "lease_expires_at": stored.LeaseExpiresAt}, err
}

func runRefresh(t *Table, o Options) (Answer, error) {
	expires, err := t.refresh(o.pk, o.texts["token"], o.numbers["for"])
	if expires == 0 {
		return outcome(false, "refreshed", err)
	}
	return Answer{"outcome": "refreshed", "lease_expires_at": expires}, err
}

func runRelease(t *Table, o Options) (Answer, error) {
	done, err := t.release(o.pk, o.texts["token"])
	return outcome(done, "released", err)
}

func runPublish(t *Table, o Options) (Answer, error) {
	meta := FaceTheoryCacheMetadata{PK: o.pk, SK: "META", S3Key: o.texts["s3-key"],
		GeneratedAt: o.number("generated-at", now()), RevalidateSeconds: o.numbers["revalidate"], ETag: o.texts["etag"]}
	if seconds, given := o.numbers["ttl-seconds"]; given {
		if seconds < meta.RevalidateSeconds {
			return nil, usage("--ttl-seconds ends inside --revalidate: the table would delete a fresh page")
		}
		meta.TTL = meta.GeneratedAt + seconds
	}
	done, err := t.publish(o.texts["token"], meta, o.texts["id"], o.texts["owner"])
	if !done {
		return outcome(done, "published", err)
	}
	answer := Answer{}
	err = attributevalue.UnmarshalMap(item(meta), &answer)
	answer["outcome"] = "published"
	return answer, err
}

func runRead(t *Table, o Options) (Answer, error) {
	answer, meta := Answer{}, FaceTheoryCacheMetadata{}
	if err := t.read(o.pk, "META", &answer); err != nil {
		return nil, err
	}
	err := attributevalue.UnmarshalMap(item(answer), &meta)
	answer["outcome"] = verdict(meta)
	return answer, err
}

func runVersions(t *Table, o Options) (Answer, error) {
	versions, err := t.versions(o.pk)
	return Answer{"outcome": "done", "versions": versions}, err
}

func runClaim(t *Table, o Options) (Answer, error) {
	outcome, row, err := t.claim(o.pk, o.texts["id"], o.inputs, o.number("for", 60))
	if err != nil {
		return nil, err
	}
	stored, answer := Answer{}, Answer{"outcome": outcome}
	if err := attributevalue.UnmarshalMap(item(row), &stored); err != nil {
		return nil, err
	}
	told := "request_hash result_s3_key in_progress_expires_at attempt error"
	if outcome == "claimed" {
		told += " owner_token started_at" // the token is its owner's alone
	}
	for _, name := range strings.Fields(told) {
		if value, there := stored[name]; there {
			answer[name] = value
		}
	}
	return answer, nil
}

func runExtend(t *Table, o Options) (Answer, error) {
	until, err := t.extend(o.pk, o.texts["id"], o.texts["token"], o.numbers["for"])
	if until == 0 {
		return outcome(false, "extended", err)
	}
	return Answer{"outcome": "extended", "in_progress_expires_at": until}, err
}

func runFail(t *Table, o Options) (Answer, error) {
	var message *string
	if given, ok := o.texts["error"]; ok {
		message = &given
	}
	_, final := o.texts["final"]
	done, err := t.fail(o.pk, o.texts["id"], o.texts["token"], message, !final)
	if final {
		return outcome(done, "given_up", err)
	}
	return outcome(done, "handed_back", err)
}

func runComplete(t *Table, o Options) (Answer, error) {
	done, err := t.complete(o.pk, o.texts["id"], o.texts["token"], o.texts["result"])
	if !done {
		return outcome(done, "completed", err)
	}
	return Answer{"outcome": "completed", "result_s3_key": o.texts["result"]}, nil
}

// runContend publishes --cycles times against whoever else wants the page; previous_s3_key links the publishes to a
// chain.
func runContend(t *Table, o Options) (Answer, error) {
	log, err := os.OpenFile(o.texts["log"], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	giveUp := time.Now().Add(time.Duration(o.number("deadline", 300)) * time.Second)
	for published := int64(0); published < o.numbers["cycles"]; {
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%d of %d cycles done within --deadline", published, o.numbers["cycles"])
		}
		lease, err := t.acquire(o.pk, o.numbers["for"])
		if err != nil {
			return nil, err
		}
		if lease == nil {
			time.Sleep(heldPause())
			continue
		}
		var before FaceTheoryCacheMetadata
		if err := t.read(o.pk, "META", &before); err != nil {
			return nil, err
		}
		meta := FaceTheoryCacheMetadata{PK: o.pk, SK: "META", S3Key: "go/" + uuid() + ".html", RevalidateSeconds: 60,
			GeneratedAt: latest(lease.at, before.GeneratedAt, before.LastGeneratedAt)}
		done, err := t.publish(lease.LeaseToken, meta, "", "")
		if err != nil {
			return nil, err
		}
		if !done {
			continue
		}
		published++
		line, _ := json.Marshal(Answer{"language": "go", "lease_token": lease.LeaseToken, "acquired_at": lease.at,
			"generated_at": meta.GeneratedAt, "s3_key": meta.S3Key, "previous_s3_key": before.S3Key})
		if _, err := log.Write(append(line, '\n')); err != nil {
			return nil, err
		}
	}
	return Answer{"outcome": "done", "published": o.numbers["cycles"]}, nil
}

func latest(first int64, others ...int64) int64 {
	for _, other := range others {
		if first < other {
			first = other
		}
	}
	return first
}

type command struct {
	run             func(Options) (Answer, error)
	needed, allowed string // options, besides --tenant and --pk
}

var commands = map[string]command{
	"acquire":  {on(runAcquire), "for", ""},
	"refresh":  {on(runRefresh), "token for", ""},
	"release":  {on(runRelease), "token", ""},
	"publish":  {on(runPublish), "token s3-key revalidate", "generated-at etag ttl-seconds id owner"},
	"read":     {on(runRead), "", ""},
	"versions": {on(runVersions), "", ""},
	"claim":    {on(runClaim), "id input", "for"},
	"extend":   {on(runExtend), "id token for", ""},
	"fail":     {on(runFail), "id token", "error final"},
	"complete": {on(runComplete), "id token result", ""},
	"contend":  {on(runContend), "cycles for log", "deadline"},
	"key":      {func(o Options) (Answer, error) { return Answer{"outcome": "done", "pk": o.pk}, nil }, "", ""},
	"hash": {func(o Options) (Answer, error) {
		return Answer{"outcome": "done", "request_hash": requestHash(o.inputs)}, nil
	}, "input", ""},
	"idempotency-key": {func(o Options) (Answer, error) {
		return Answer{"outcome": "done", "idempotency_key": idempotencyKey(o.key, o.texts["deploy"], o.texts["policy"])}, nil
	}, "deploy policy", ""},
}

// exitCode of a claim is 0 only for "claimed", so that a script works on what it was given and on nothing else.
func exitCode(command string, outcome interface{}) int {
	if outcome == "held" || outcome == "lost" || (command == "claim" && outcome != "claimed") {
		return exitSomebodyElseWon
	}
	return exitDone
}

type usageError struct{ error }

func usage(format string, arguments ...interface{}) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

var numbers = regexp.MustCompile(`^(for|revalidate|generated-at|ttl-seconds|cycles|deadline)$`)

// take is called with each option of the command line.
func (o *Options) take(name, value string) error {
	switch {
	case !utf8.ValidString(value):
		return fmt.Errorf("is not UTF-8")
	case name == "input":
		member, text, marked := strings.Cut(value, "=")
		if _, twice := o.inputs[member]; twice || !marked || member == "" {
			return fmt.Errorf("takes name=value, each name once")
		}
		o.inputs[member] = text
	case numbers.MatchString(name):
		number, err := strconv.ParseUint(value, 10, 48)
		if err != nil || (name == "for" && number < 2) {
			return fmt.Errorf("takes whole seconds (a lease, two at least) or a count")
		}
		o.numbers[name] = int64(number)
	}
	o.texts[name] = value
	return nil
}

// flagValue is --final, which takes no value.
type flagValue struct{ options *Options }

func (flagValue) String() string   { return "" }
func (flagValue) IsBoolFlag() bool { return true }
func (f flagValue) Set(value string) error {
	return f.options.take("final", value)
}

// parse returns the command and its options; the pk is always there.
func parse(words []string) (command, Options, error) {
	options := Options{texts: map[string]string{}, numbers: map[string]int64{}, inputs: map[string]string{}}
	if len(words) == 0 {
		words = []string{""}
	}
	chosen, known := commands[words[0]]
	if !known {
		return chosen, options, usage("'%s' is no command; README.md shows them", words[0])
	}
	flags := flag.NewFlagSet(words[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range strings.Fields("tenant pk " + chosen.needed + " " + chosen.allowed) {
		name := name
		if name == "final" {
			flags.Var(flagValue{&options}, name, "")
			continue
		}
		flags.Func(name, "", func(value string) error { return options.take(name, value) })
	}
	var keys []string
	for rest := words[1:]; len(rest) > 0; { // options may follow the cache key
		if err := flags.Parse(rest); err != nil {
			return chosen, options, usageError{err}
		}
		if rest = flags.Args(); len(rest) > 0 {
			keys, rest = append(keys, rest[0]), rest[1:]
		}
	}
	for _, name := range strings.Fields(chosen.needed) {
		if _, given := options.texts[name]; !given {
			return chosen, options, usage("%s needs --%s", words[0], name)
		}
	}
	tenant, tenantGiven := options.texts["tenant"]
	pk, pkGiven := options.texts["pk"]
	switch {
	case tenantGiven && (tenant == "" || strings.Contains(tenant, "#") || pkGiven):
		return chosen, options, usage("--tenant is not empty, has no '#', and does not go with --pk")
	case pkGiven && len(keys) == 0 && words[0] != "idempotency-key":
		options.pk = pk
	case !pkGiven && len(keys) == 1 && utf8.ValidString(keys[0]):
		options.key, options.pk = keys[0], partitionKey(keys[0], tenant)
	case words[0] != "hash":
		return chosen, options, usage("%s needs one cache key, in UTF-8, or --pk", words[0])
	}
	return chosen, options, nil
}

// execute returns what a command line answers, and its exit code.
func execute(words []string) (Answer, int) {
	chosen, options, err := parse(words)
	var answer Answer
	if err == nil {
		answer, err = chosen.run(options)
	}
	if err == nil {
		return answer, exitCode(words[0], answer["outcome"])
	}
	fmt.Fprintln(os.Stderr, "worker:", err)
	if errors.As(err, new(usageError)) {
		return Answer{"outcome": "usage", "message": err.Error()}, exitUsage
	}
	return Answer{"outcome": "failed", "message": err.Error()}, exitFailed
}

// session is a service: each line of stdin is a command line, as a JSON array, and is answered by a line with its
// exit_code.
func session() error {
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var words []string
		if err := requests.Decode(&words); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		answer, code := execute(words)
		answer["exit_code"] = code
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}

func main() {
	mathrand.Seed(time.Now().UnixNano() + int64(os.Getpid()))
	if len(os.Args) == 2 && os.Args[1] == "session" {
		if err := session(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(exitFailed)
		}
		return
	}
	answer, code := execute(os.Args[1:])
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		code = exitFailed
	}
	os.Exit(code)
}
