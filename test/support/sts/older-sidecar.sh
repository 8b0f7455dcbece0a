#!/bin/sh
# The sidecar as pods have it that were injected before errors followed RFC 8693. Frozen: new replicas must keep it working.
# Keeps the workload tokens of one pod fresh. POSIX shell; needs curl, date, od, mktemp, base64, tr, sed, cat, chmod, mv, sleep.
#
# STS_TARGETS       lines of "address token-file credential-file audience", the audience as JSON has it
# STS_FILE_MODE     of the token files, such as 0440
# STS_READY_FILE    made once every token was written
# STS_TRUST_FILE    PEM to trust besides STS_CERTIFICATES; it may be absent or empty
# STS_CERTIFICATES  PEM to trust instead of the public authorities
#
# Ends with 0 on SIGTERM and SIGINT, with 1 when the service refuses a token for good, and with 2 when it was set up wrongly.
set -eu
export LC_ALL=C
umask 022
newline='
'
child=''
temporary=''
trust=''

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

gather_trust() {
  trust=''
  if [ -z "${STS_TRUST_FILE:-}" ]; then return; fi
  gathered="${STS_READY_FILE%/*}/.trust"
  {
    printf '%s\n' "${STS_CERTIFICATES:-}"
    if [ -r "$STS_TRUST_FILE" ]; then cat "$STS_TRUST_FILE"; fi
  } >"$gathered"
  while read -r line; do
    case $line in *'BEGIN CERTIFICATE'*) trust=$gathered ;; esac
  done <"$gathered"
}

# Sets expires; fails when the text is no token that could be meant for this target.
check_token() {
  expires=''
  case $1 in
    *[!A-Za-z0-9._-]* | *.*.*.*) return 1 ;;
    ?*.?*.?*) ;;
    *) return 1 ;;
  esac
  [ "${#1}" -le 16384 ] || return 1
  claims=${1#*.}
  claims=${claims%%.*}
  case $((${#claims} % 4)) in
    2) claims="$claims==" ;;
    3) claims="$claims=" ;;
  esac
  claims=$(printf %s "$claims" | tr '_-' '/+' | base64 -d 2>/dev/null | tr -d '\000')
  case $claims in
    *"\"aud\":$2"* | *'"aud":['*"$2"*) ;;
    *) return 1 ;;
  esac
  expires=$(printf '%s\n' "$claims" | sed -n 's/.*"exp":\([0-9]\{1,11\}\)[,}].*/\1/p')
  [ -n "$expires" ] && [ "$expires" -gt "$(date +%s)" ]
}

# Asks once. Sets verdict to done, again or refused, and delay to the seconds until the next attempt.
exchange() {
  address=$1 file=$2 credential=$3 audience=$4
  folder=${file%/*}
  verdict=again delay=0
  if [ ! -s "$credential" ]; then
    say "$credential: there is no credential yet"
    return
  fi
  # What a killed predecessor left.
  set +f
  rm -f "$folder"/.token.*
  set -f
  if ! mkdir -p "$folder" || ! temporary=$(mktemp "$folder/.token.XXXXXX"); then
    say "$folder: cannot be written"
    return
  fi
  notes="${STS_READY_FILE%/*}/.answer"
  answer=';;'
  if attend bounded curl -q --silent --show-error --globoff --connect-timeout 5 --max-time 10 --max-filesize 65536 \
    ${trust:+--cacert "$trust"} --header 'Accept: application/jwt' --header 'Expect:' \
    --data-urlencode 'grant_type=urn:ietf:params:oauth:grant-type:token-exchange' \
    --data-urlencode 'subject_token_type=urn:ietf:params:oauth:token-type:jwt' \
    --data-urlencode "subject_token@$credential" \
    --output "$temporary" --write-out '%{http_code};%header{refresh-after};%header{retry-after}' \
    "$address" >"$notes"; then
    answer=$(cat "$notes")
  fi
  status=${answer%%;*}
  answer=${answer#*;}
  body=$(tr -d '\000' <"$temporary")
  case $status in
    200)
      if check_token "$body" "$audience"; then
        if printf %s "$body" >"$temporary" && chmod "$STS_FILE_MODE" "$temporary" && mv -f "$temporary" "$file"; then
          verdict='done' delay=$(refresh_delay "${answer%%;*}")
        fi
      else
        say "$address: the answer is not a token with the audience $audience"
      fi
      ;;
    400 | 403)
      verdict=refused
      case $body in *'"invalid_grant"'*) verdict=again ;; esac
      ;;
  esac
  rm -f "$temporary"
  temporary=''
  if [ "$verdict" != 'done' ]; then
    delay=$(number_or "${answer##*;}" 0)
    say "$address: status ${status:-none}, $verdict: $(printf '%.200s' "$body" | tr -c ' -~' ' ')"
  fi
}

# A random part of what the server says, so that pods do not come together; never too close to the token's end.
refresh_delay() {
  left=$((expires - $(date +%s)))
  wait_for=$(number_or "$1" $((left * 2 / 3)))
  if [ "$wait_for" -gt $((left * 9 / 10)) ]; then wait_for=$((left * 9 / 10)); fi
  if [ "$wait_for" -gt 43200 ]; then wait_for=43200; fi
  wait_for=$((wait_for - $(random_below $((wait_for / 5 + 1)))))
  if [ "$wait_for" -lt 1 ]; then wait_for=1; fi
  echo "$wait_for"
}

# After $1 failures in a row, of which the last one asked for $2 seconds.
retry_delay() {
  base=1 failure=1
  while [ "$failure" -lt "$1" ] && [ "$base" -lt 64 ]; do
    base=$((base * 2)) failure=$((failure + 1))
  done
  asked=$2
  if [ "$asked" -gt 300 ]; then asked=300; fi
  if [ "$asked" -gt "$base" ]; then base=$asked; fi
  echo $((base + $(random_below $((base / 2 + 1)))))
}

if [ -z "${STS_TARGETS:-}" ] || [ -z "${STS_FILE_MODE:-}" ] || [ -z "${STS_READY_FILE:-}" ]; then
  say 'STS_TARGETS, STS_FILE_MODE and STS_READY_FILE must be set'
  exit 2
fi
rm -f "$STS_READY_FILE"
set -f
IFS=$newline
# Each parameter is "when failures target", the first two in numbers.
set --
for target in $STS_TARGETS; do
  set -- "$@" "0 0 $target"
done
IFS=' '

while :; do
  now=$(date +%s)
  next=$((now + 3600)) refused='' waiting='' left_over=$#
  gather_trust
  while [ "$left_over" -gt 0 ]; do
    left_over=$((left_over - 1))
    entry=$1
    shift
    due=${entry%% *} entry=${entry#* }
    failures=${entry%% *} target=${entry#* }
    rest=${target#* }
    path=${rest%% *} rest=${rest#* }
    if [ "$due" -le "$now" ]; then
      exchange "${target%% *}" "$path" "${rest%% *}" "${rest#* }"
      case $verdict in
        'done')
          if [ "$failures" -gt 0 ] || [ "$due" -eq 0 ]; then say "$path: written, next in $delay s"; fi
          failures=0
          ;;
        *)
          failures=$((failures + 1))
          delay=$(retry_delay "$failures" "$delay")
          if [ "$verdict" = refused ]; then refused=$path; fi
          ;;
      esac
      due=$(($(date +%s) + delay))
    fi
    if [ "$due" -lt "$next" ]; then next=$due; fi
    if [ ! -s "$path" ]; then waiting=true; fi
    set -- "$@" "$due $failures $target"
  done
  if [ -n "$refused" ]; then
    say "$refused: refused for good; mend the rules or the pod and start it again"
    exit 1
  fi
  if [ -z "$waiting" ]; then : >"$STS_READY_FILE"; fi
  pause=$((next - $(date +%s)))
  if [ "$pause" -gt 0 ]; then attend sleep "$pause" || :; fi
done
