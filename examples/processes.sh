# Sourced by the run scripts of the examples: programs that end with the script, and requests that are shown.
# shellcheck shell=bash
set -euo pipefail

folder=$(mktemp -d)
started=()
stop_all() {
  trap - EXIT
  local i
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do kill -TERM "${started[i]}" 2>/dev/null || true; done
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do wait "${started[i]}" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND...: in the background; what it prints goes to a file of that name.
start() {
  local name=$1
  shift
  "$@" >"$folder/$name.log" 2>&1 </dev/null &
  started+=($!)
}

# announced NAME TEXT: the word that follows TEXT in what NAME prints, as soon as it does.
announced() {
  local word i
  for ((i = 0; i < 900; i++)); do
    word=$(sed -n "s|.*$2\([^ ]*\).*|\1|p" "$folder/$1.log" | head -n 1)
    [[ -z $word ]] || { echo "$word"; return; }
    sleep 0.1
  done
  echo "$1 did not start:" >&2
  cat "$folder/$1.log" >&2
  return 1
}

# ask CURL_ARGUMENT...: one request, on one line: status, how it was served, how long it took, what the page says.
ask() {
  local status seconds state
  read -r status seconds < <(
    curl -sS --max-time 30 -D "$folder/head" -o "$folder/body" -w '%{http_code} %{time_total}\n' "$@")
  state=$(sed -n 's/^x-facetheory-isr: *\([a-z-]*\).*/\1/Ip' "$folder/head")
  printf '  %-52s %s %-9s %6.0f ms  %s\n' "curl ${*#"http://"}" "$status" "$state" \
    "$(echo "$seconds" | awk '{ print $1 * 1000 }')" \
    "$(sed -n 's/.*<p>\(.*\)<\/p>.*/\1/p' "$folder/body" | head -n 1)"
}
