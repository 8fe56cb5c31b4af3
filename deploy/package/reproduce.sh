#!/bin/sh
# Makes the packages in dist, and again from a copy of the source elsewhere that is of another age and has other modes.
# Fails where the two differ in any byte.
set -eu
cd "$(dirname "$0")/../.."
root=$(pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
if [ -z "${VERSION:-}" ]; then
	# As goreleaser has it: that of the commit's tag, and between tags the one to come.
	tag=$(git describe --tags --match 'v[0-9]*' --abbrev=0 2>/dev/null || echo v0.0.0)
	if [ "$(git describe --tags --match 'v[0-9]*' 2>/dev/null)" = "$tag" ]; then
		VERSION=${tag#v}
	else
		VERSION=$(echo "${tag#v}" | awk -F '[.+-]' '{ print $1 "." $2 "." $3 + 1 "-next" }')
	fi
fi
export SOURCE_DATE_EPOCH VERSION

git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf "$copy/source.tar"
mkdir "$copy/source"
(umask 077 && tar -C "$copy/source" --touch --no-same-owner --no-same-permissions -xf "$copy/source.tar")

rm -rf dist
sh deploy/package/build.sh dist
cd "$copy/source"
(umask 077 && sh deploy/package/build.sh dist)
diff -r "$root/dist" dist || {
	echo "two builds of the same source differ, so packages are not reproducible" >&2
	exit 1
}
(cd "$root/dist" && cat SHA256SUMS)
