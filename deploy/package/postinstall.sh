#!/bin/sh
# After deb and rpm are installed: the user, the group, the folder for settings. Services are left to the administrator.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers /usr/lib/sysusers.d/perseus.conf || true
	systemd-tmpfiles --create /usr/lib/tmpfiles.d/perseus.conf || true
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	# After an upgrade: jobs train on, and the agent restores GPUs before it takes them again.
	systemctl try-restart perseus-server.service perseus-agent.service || true
fi
