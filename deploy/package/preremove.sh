#!/bin/sh
# Before the package goes, but not before an upgrade: the agent gives its GPUs back when it stops.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now perseus-agent.service perseus-server.service || true
	fi
	;;
esac
