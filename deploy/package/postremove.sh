#!/bin/sh
# After the package is gone: systemd forgets the units. Users, jobs and settings that were changed are left.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
