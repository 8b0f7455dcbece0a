#!/bin/sh
# The service is not started: it has no configuration yet. One that runs gets the new version.
set -e
root=${DPKG_ROOT:-}
if [ -n "$root" ]; then
  # dpkg looked for the group outside of that root.
  gid=$(sed -n 's/^gatehouse:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/group")
  chgrp "$gid" "$root/etc/gatehouse" "$root/etc/gatehouse/config"
elif [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart gatehouse.service
fi
