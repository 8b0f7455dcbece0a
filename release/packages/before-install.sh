#!/bin/sh
# Creates the user of the service and its group, also below another root (dpkg --root). Each may be there already.
set -e
root=${DPKG_ROOT:-}
exists() {
  grep -q '^gatehouse:' "$root/etc/$1" && return
  [ -z "$root" ] && getent "$1" gatehouse >/dev/null
}
exists group || groupadd ${root:+--prefix "$root"} --system gatehouse
exists passwd || useradd ${root:+--prefix "$root"} --system --gid gatehouse --home-dir /var/lib/gatehouse \
  --no-create-home --shell /usr/sbin/nologin gatehouse
