#!/bin/bash
# Idempotency with nothing but the CLI: the three outcomes of a repeated request, the mismatch, the takeover after a
# crash.
#
#     FACETHEORY_TABLE=lmdb:/tmp/t FACETHEORY_BODIES=file:/tmp/b tests/cli/idempotency.sh build/release/facetheory
#
# Prints "ok" or "not ok" for each thing it shows.
set -uo pipefail
facetheory=${1:?give the path of facetheory}
page=/idempotency/$$-$RANDOM
failures=0

# shows SENTENCE EXIT_CODE OUTCOME COMMAND...: the command ends with that code and that outcome. Its answer is in
# $answer.
shows() {
  local sentence=$1 code=$2 outcome=$3 found
  shift 3
  answer=$("$facetheory" --json "$@" 2>/dev/null)
  found=$?
  if [[ $found == "$code" && $answer == '{"outcome":"'$outcome'"'* ]]; then
    echo "ok $sentence"
  else
    echo "not ok $sentence: exit code $found, $answer; expected $code, $outcome"
    failures=$((failures + 1))
  fi
}

# field NAME: that text of $answer.
field() {
  sed -nE 's/.*"'"$1"'":"([^"]*)".*/\1/p' <<<"$answer"
}

# same SENTENCE A B
same() {
  if [[ -n $2 && $2 == "$3" ]]; then
    echo "ok $1"
  else
    echo "not ok $1: '$2' is not '$3'"
    failures=$((failures + 1))
  fi
}

# --- The three outcomes, and the mismatch ---

shows "a first attempt claims the request" 0 claimed request claim "$page" --id r-1 --input locale=en --input policy=7
owner=$(field owner_token)

shows "a repetition meanwhile is told that it is in progress" 3 in_progress \
  request claim "$page" --id r-1 --input policy=7 --input locale=en
shows "the same id with other inputs is refused" 3 mismatch \
  request claim "$page" --id r-1 --input locale=de --input policy=7

shows "the worker takes the lease" 0 acquired lease acquire "$page" --for 30s
token=$(field lease_token)
echo '<h1>Hello</h1>' >"${TMPDIR:-/tmp}/idempotency-$$.html"
shows "it publishes the page and completes the request in one step" 0 published publish "$page" --token "$token" \
  --body "${TMPDIR:-/tmp}/idempotency-$$.html" --revalidate 60s --id r-1 --owner "$owner"
rm -f "${TMPDIR:-/tmp}/idempotency-$$.html"
published=$(field s3_key)

shows "a repetition afterwards is given the result, and no claim" 3 completed \
  request claim "$page" --id r-1 --input locale=en --input policy=7
same "which is the page that was published" "$(field result_s3_key)" "$published"
same "a script that works only with a claim does not work again" \
  "$(owner=$("$facetheory" request claim "$page" --id r-1 --input locale=en --input policy=7 2>/dev/null) &&
    echo worked || echo "rested:$owner")" \
  "rested:"
shows "other inputs are refused still" 3 mismatch request claim "$page" --id r-1 --input locale=de --input policy=7
shows "a request completes once" 3 lost request complete "$page" --id r-1 --token "$owner" --result another.html

# --- A worker that dies ---

shows "a worker claims a request for two seconds, and extends its claim" 0 claimed \
  request claim "$page" --id r-4 --input a=b --for 2s
busy=$(field owner_token)
shows "for as long as it works" 0 extended request extend "$page" --id r-4 --token "$busy" --for 60s
shows "a worker claims a request for two seconds, and dies" 0 claimed \
  request claim "$page" --id r-2 --input a=b --for 2s
dead=$(field owner_token)
shows "until then the request is in progress" 3 in_progress request claim "$page" --id r-2 --input a=b
sleep 3
shows "what was extended is in progress still" 3 in_progress request claim "$page" --id r-4 --input a=b
shows "afterwards it is taken over" 0 claimed request claim "$page" --id r-2 --input a=b --for 30s
alive=$(field owner_token)
shows "the dead worker, should it come back, extends nothing" 3 lost request extend "$page" --id r-2 --token "$dead"
shows "the dead worker, should it come back, changes nothing" 3 lost \
  request complete "$page" --id r-2 --token "$dead" --result late.html
shows "the living one completes it" 0 completed request complete "$page" --id r-2 --token "$alive" --result in-time.html

# --- A worker that gives up ---

shows "a worker claims a request" 0 claimed request claim "$page" --id r-3
shows "it hands the request back" 0 handed_back \
  request fail "$page" --id r-3 --token "$(field owner_token)" --error 'origin is down'
shows "the request can be claimed anew" 0 claimed request claim "$page" --id r-3
shows "a worker gives it up for good" 0 given_up request fail "$page" --id r-3 --token "$(field owner_token)" --final
shows "it cannot be claimed any more" 3 failed request claim "$page" --id r-3

# --- All of it in one command ---

shows "the page is invalidated" 0 invalidated invalidate "$page"
shows "a job regenerates it" 0 regenerated regenerate "$page" --id job-1 --input v=1 --revalidate 60s -- echo one
first=$(field s3_key)
shows "the page is invalidated again" 0 invalidated invalidate "$page"
shows "the same job, delivered twice, is replayed and not run" 0 replayed \
  regenerate "$page" --id job-1 --input v=1 --revalidate 60s -- false
same "with the result of its first delivery" "$(field result_s3_key)" "$first"
shows "with another input it is refused" 3 mismatch regenerate "$page" --id job-1 --input v=2 --revalidate 60s -- false

exit $((failures > 0))
