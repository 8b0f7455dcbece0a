#!/bin/sh
# Only when it is removed, not before an upgrade: dpkg says "remove", rpm says 0.
set -e
case ${1:-} in
  remove | 0)
    if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then systemctl disable --now gatehouse.service; fi
    # Compiled code of commands that root ran. The data, the configuration and the user stay.
    rm -rf "${DPKG_ROOT:-}/usr/lib/gatehouse/node_modules"
    ;;
esac
