#!/bin/sh
# Creates the user of the service, also below another root (dpkg --root).
set -e
root=${DPKG_ROOT:-}
if grep -q '^gatehouse:' "$root/etc/passwd"; then exit 0; fi
if [ -z "$root" ] && getent passwd gatehouse >/dev/null; then exit 0; fi
useradd ${root:+--prefix "$root"} --system --user-group --home-dir /var/lib/gatehouse --no-create-home \
  --shell /usr/sbin/nologin gatehouse
