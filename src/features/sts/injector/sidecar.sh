#!/bin/sh
# Keeps the workload tokens of one pod fresh. POSIX shell; needs curl, date, od, mktemp, base64, tr, sed, cat, chmod, mkdir, mv, rm, sleep.
#
# STS_TARGETS       lines of "address token-file credential-file audience", the audience as JSON has it
# STS_FILES         lines of "file text": written before the first token, such as a credential configuration of an SDK
# STS_FILE_MODE     of the token files, such as 0440
# STS_READY_FILE    "deadline reason": the probe succeeds while the uptime is below the deadline, and prints the reason otherwise
# STS_TRUST_FILE    PEM to trust besides STS_CERTIFICATES; it may be absent or empty
# STS_CERTIFICATES  PEM to trust instead of the public authorities
# STS_UPTIME_FILE   in tests; /proc/uptime otherwise
#
# Beside each token, status.json has the times of the last success and of the token's expiry (seconds since 1970; the latter by
# the token service's clock), and the last error.
#
# Delays are measured by the uptime, and a token's life is what the token service says (exp - iat), so the node's date may be
# wrong and may be set at any time.
#
# Twice a minute it asks whether the keys of its tokens were revoked, and gets another token if so.
#
# Ends with 0 on SIGTERM and SIGINT, with 1 when the service refuses every token and none is valid, and with 2 when it was set up
# wrongly.
set -eu
export LC_ALL=C
umask 022
newline='
'
child=''
temporary=''
trust=''
# A probe that ran just before a token expires must not count after it: more than the probe's period and a slow node.
margin=10
# Also the longest time until a machine that was suspended refreshes.
longest_sleep=30

say() {
  printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >&2
}

finish() {
  trap '' TERM INT
  if [ -n "$child" ]; then kill "$child" 2>/dev/null || :; fi
  if [ -n "$temporary" ]; then rm -f "$temporary"; fi
  exit "$1"
}
trap 'finish 0' TERM INT
trap '' HUP USR1 USR2

# Sets now, in seconds of a clock that no one can set.
tick() {
  if read -r now _ 2>/dev/null <"${STS_UPTIME_FILE:-/proc/uptime}"; then now=${now%%.*}; else now=$(date +%s); fi
}

# Runs a command that a signal can interrupt at once.
attend() {
  "$@" &
  child=$!
  outcome=0
  wait "$child" || outcome=$?
  child=''
  return "$outcome"
}

# No answer may fill the volume: 128 blocks are 64 KiB. For the command only, since what is trusted may be longer.
bounded() {
  ulimit -f 128
  exec "$@"
}

# A number from 0 to $1 - 1.
random_below() {
  number=$(od -An -N2 -tu2 /dev/urandom | tr -cd 0-9)
  echo $((${number:-0} % $1))
}

# $1 if it is a whole number of at most six digits, else $2.
number_or() {
  case $1 in
    '' | *[!0-9]* | 0?* | ???????*) echo "$2" ;;
    *) echo "$1" ;;
  esac
}

# Replaces the file $1 by the text $2 with the mode $3, as a whole.
replace() {
  printf %s "$2" >"$1.new" && chmod "$3" "$1.new" && mv -f "$1.new" "$1"
}

# Fails where the volume is full: half of the certificates would refuse the service, and none would trust any.
gather_trust() {
  trust=''
  if [ -z "${STS_TRUST_FILE:-}" ]; then return; fi
  gathered="${STS_READY_FILE%/*}/.trust"
  {
    printf '%s\n' "${STS_CERTIFICATES:-}" && if [ -r "$STS_TRUST_FILE" ]; then cat "$STS_TRUST_FILE"; fi
  } 2>/dev/null >"$gathered" || return 1
  while read -r line; do
    case $line in *'BEGIN CERTIFICATE'*) trust=$gathered ;; esac
  done <"$gathered"
}

# The time $1 in the claims. Shells take a number with a leading zero for an octal one, and end where it is none.
time_of() {
  printf '%s\n' "$claims" | sed -n "s/.*\"$1\":\\([1-9][0-9]\\{0,10\\}\\)[,}].*/\\1/p"
}

# The text of the part $1 of a token.
decode() {
  part=$1
  case $((${#part} % 4)) in
    2) part="$part==" ;;
    3) part="$part=" ;;
  esac
  printf %s "$part" | tr '_-' '/+' | base64 -d 2>/dev/null | tr -d '\000'
}

# Sets kid, and exp and life in seconds; fails when the text is no token that could be meant for this target.
check_token() {
  case $1 in
    *[!A-Za-z0-9._-]* | *.*.*.*) return 1 ;;
    ?*.?*.?*) ;;
    *) return 1 ;;
  esac
  [ "${#1}" -le 16384 ] || return 1
  claims=${1#*.}
  claims=$(decode "${claims%%.*}")
  case $claims in
    *"\"aud\":$2"* | *'"aud":['*"$2"*) ;;
    *) return 1 ;;
  esac
  exp=$(time_of exp)
  [ -n "$exp" ] || return 1
  here=$(date +%s)
  iat=$(time_of iat)
  iat=${iat:-$here}
  [ "$exp" -gt "$iat" ] || return 1
  life=$((exp - iat))
  kid=$(decode "${1%%.*}" | sed -n 's/.*"kid":"\([A-Za-z0-9_-]\{1,128\}\)".*/\1/p')
  skew=$((here - iat))
  if [ "${skew#-}" -gt 60 ] && [ -z "${skewed:-}" ]; then
    say "the clock of this node differs by $skew s from that of the token service"
    skewed=true
  fi
}

# Runs curl with limits, on what is trusted.
call() {
  attend bounded curl -q --silent --show-error --globoff --connect-timeout 3 --max-time 10 --max-filesize 65536 \
    ${trust:+--cacert "$trust"} "$@"
}

# Whether the endpoint $1 says that the key $2 was revoked. Other answers mean no; without one, the others are not asked.
is_revoked() {
  gather_trust || return 1
  notes="${STS_READY_FILE%/*}/.answer"
  if ! call --output /dev/null --write-out '%{http_code}' "$1/key/$2" >"$notes" 2>/dev/null; then
    checks=''
    return 1
  fi
  [ "$(cat "$notes")" = 410 ]
}

# Asks once. Sets verdict to done, again or refused, error to a short code, detail to a text, and asked to the seconds of Retry-After.
exchange() {
  address=$1 file=$2 credential=$3 audience=$4
  folder=${file%/*}
  verdict=again error='' detail='' asked=0
  if [ ! -s "$credential" ]; then
    error=no-credential detail="there is no credential yet in $credential"
    return
  fi
  if ! gather_trust; then
    error=not-writable detail="$gathered cannot be written"
    return
  fi
  # What a killed predecessor left.
  set +f
  rm -f "$folder"/.token.*
  set -f
  if ! mkdir -p "$folder" || ! temporary=$(mktemp "$folder/.token.XXXXXX"); then
    error=not-writable detail="$folder cannot be written"
    return
  fi
  notes="${STS_READY_FILE%/*}/.answer"
  answer=';;'
  if call --header 'Accept: application/jwt' --header 'Expect:' \
    --data-urlencode 'grant_type=urn:ietf:params:oauth:grant-type:token-exchange' \
    --data-urlencode 'subject_token_type=urn:ietf:params:oauth:token-type:jwt' \
    --data-urlencode "subject_token@$credential" \
    --output "$temporary" --write-out '%{http_code};%header{refresh-after};%header{retry-after}' \
    "$address" >"$notes" 2>"$notes.error"; then
    answer=$(cat "$notes")
  else
    detail=$(tr -c ' -~' ' ' <"$notes.error") || detail=''
    detail=$(printf %.200s "$detail")
  fi
  status=${answer%%;*}
  answer=${answer#*;}
  error=${status:-curl-$outcome}
  body=$(tr -d '\000' <"$temporary")
  case $status in
    200)
      if ! check_token "$body" "$audience"; then
        error=bad-token detail="the answer is not a token with the audience $audience"
      elif printf %s "$body" >"$temporary" && chmod "$STS_FILE_MODE" "$temporary" && mv -f "$temporary" "$file"; then
        verdict='done' error=''
      else
        error=not-writable
      fi
      ;;
    '') ;;
    *)
      # Nothing else of an answer is logged: it may repeat what it was sent.
      keyword=$(printf %.2000s "$body" | sed -n 's/.*"error": *"\([a-z_]\{1,40\}\)".*/\1/p')
      error="$status${keyword:+-$keyword}"
      detail=$(printf %.2000s "$body" | tr -c ' -~' ' ' | sed -n 's/.*"error_description": *"\([^"\\]\{1,200\}\).*/\1/p')
      case $detail in *eyJ*) detail='' ;; esac
      case $error in
        # The credential may be about to be replaced. Older token services say invalid_grant for it.
        *-invalid_grant | *-invalid_request | *-temporarily_unavailable) ;;
        400* | 403*) verdict=refused error="refused-$error" ;;
      esac
      ;;
  esac
  rm -f "$temporary"
  temporary=''
  asked=$(number_or "${answer##*;}" 0)
}

# A random part of what the server says, so that pods do not come together; never too close to the token's end.
refresh_delay() {
  wait_for=$(number_or "$1" $((life * 2 / 3)))
  if [ "$wait_for" -gt $((life * 9 / 10)) ]; then wait_for=$((life * 9 / 10)); fi
  if [ "$wait_for" -gt 43200 ]; then wait_for=43200; fi
  wait_for=$((wait_for - $(random_below $((wait_for / 5 + 1)))))
  if [ "$wait_for" -lt 1 ]; then wait_for=1; fi
  echo "$wait_for"
}

# After $1 failures in a row, with $2 seconds of the token left, where the server asked for $3 seconds: the less is left, the
# shorter, and 2 or 3 seconds once the token has expired.
retry_delay() {
  base=1 failure=1
  while [ "$failure" -lt "$1" ] && [ "$base" -lt 64 ]; do
    base=$((base * 2)) failure=$((failure + 1))
  done
  longest=$(($2 / 32))
  if [ "$longest" -lt 2 ]; then longest=2; fi
  # The service has been away for more than ten minutes.
  if [ "$1" -gt 240 ] && [ "$longest" -lt 10 ]; then longest=10; fi
  if [ "$base" -gt "$longest" ]; then base=$longest; fi
  longest=$(($2 / 20))
  if [ "$longest" -lt 3 ]; then longest=3; fi
  if [ "$longest" -gt 300 ]; then longest=300; fi
  if [ "$3" -lt "$longest" ]; then longest=$3; fi
  if [ "$longest" -gt "$base" ]; then base=$longest; fi
  echo $((base + $(random_below $((base / 2 + 1)))))
}

if [ -z "${STS_TARGETS:-}" ] || [ -z "${STS_FILE_MODE:-}" ] || [ -z "${STS_READY_FILE:-}" ]; then
  say 'STS_TARGETS, STS_FILE_MODE and STS_READY_FILE must be set'
  exit 2
fi
set -f
IFS=$newline
for line in ${STS_FILES:-}; do
  file=${line%% *}
  if ! mkdir -p "${file%/*}" || ! replace "$file" "${line#* }" "$STS_FILE_MODE"; then
    say "$file: cannot be written"
    exit 2
  fi
done
# Each parameter is "due deadline failures success expires error key target": when to ask next and until when the token is valid,
# by the uptime; the last success and the expiry, by dates; and the last error and the key of the token, or "-".
set --
for target in $STS_TARGETS; do
  set -- "$@" "0 0 0 0 0 - - $target"
done
check_due=0
IFS=' '
readiness='0 no token yet'
if ! replace "$STS_READY_FILE" "$readiness$newline" 0644; then
  say "$STS_READY_FILE: cannot be written"
  exit 2
fi

while :; do
  tick
  next=$((now + longest_sleep)) first='' reason='' remaining=$# refusals=0 valid=0 checks=''
  if [ "$check_due" -le "$now" ]; then checks=true check_due=$((now + 25 + $(random_below 11))); fi
  if [ "$check_due" -lt "$next" ]; then next=$check_due; fi
  while [ "$remaining" -gt 0 ]; do
    remaining=$((remaining - 1))
    read -r due deadline failures success expires last key target <<END
$1
END
    shift
    rest=${target#* }
    path=${rest%% *} rest=${rest#* } revoked=''
    if [ -n "$checks" ] && [ "$key" != - ] && [ "$due" -gt "$now" ] && is_revoked "${target%% *}" "$key"; then
      say "$path: the key of the token was revoked"
      revoked=$key due=$now
    fi
    if [ "$due" -le "$now" ]; then
      exchange "${target%% *}" "$path" "${rest%% *}" "${rest#* }"
      asked_at=$now
      tick
      if [ "$verdict" = 'done' ]; then
        delay=$(refresh_delay "${answer%%;*}")
        if [ "$failures" -gt 0 ] || [ "$due" -eq 0 ]; then say "$path: written, next in $delay s"; fi
        # From when it was asked for: the server's clock has gone on since it signed.
        failures=0 deadline=$((asked_at + life)) success=$(date +%s) expires=$exp key=${kid:--}
        # Another process of the service did not know of the revocation yet.
        if [ "$key" = "$revoked" ]; then delay=$((5 + $(random_below 6))) key=-; fi
      else
        failures=$((failures + 1)) left=$((deadline - now))
        if [ "$left" -lt 0 ]; then left=0; fi
        if [ "$verdict" = refused ]; then
          delay=$((20 + $(random_below 11)))
        else
          delay=$(retry_delay "$failures" "$left" "$asked")
        fi
        # Every failure of a long outage would fill the log.
        if [ "$error" != "$last" ] || [ $((failures & (failures - 1))) -eq 0 ]; then
          say "${target%% *}: $error: ${detail:-no token}; $left s of the last one left, again in $delay s"
        fi
        last=$error
      fi
      due=$((now + delay))
      status_file="${path%/*}/status.json"
      status="{\"lastSuccess\":$success,\"expires\":$expires,\"failures\":$failures,\"lastError\":\"$last\"}"
      if ! mkdir -p "${path%/*}" || ! replace "$status_file" "$status$newline" 0644; then say "$status_file: cannot be written"; fi
    fi
    case $failures$last in [1-9]*refused-*) refusals=$((refusals + 1)) ;; esac
    if [ "$deadline" -gt "$now" ]; then valid=$((valid + 1)); fi
    if [ "$due" -lt "$next" ]; then next=$due; fi
    if [ -z "$first" ] || [ "$deadline" -lt "$first" ]; then first=$deadline reason="$path: no valid token; last error: $last"; fi
    set -- "$@" "$due $deadline $failures $success $expires $last $key $target"
  done
  if [ "$first" -gt 0 ]; then first=$((first - margin)); fi
  if [ "$readiness" != "$first $reason" ]; then
    readiness="$first $reason"
    replace "$STS_READY_FILE" "$readiness$newline" 0644 || say "$STS_READY_FILE: cannot be written"
  fi
  if [ "$refusals" -eq $# ] && [ "$valid" -eq 0 ]; then
    say "$reason: refused for good; change the rules or the pod, and start it again"
    exit 1
  fi
  tick
  if [ "$next" -gt "$now" ]; then attend sleep $((next - now)) || :; fi
done
