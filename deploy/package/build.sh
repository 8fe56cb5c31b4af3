#!/bin/sh
# Makes deb, rpm and the list of components of each architecture in ARCHES, the manual page and the completions, in the
# new folder $1. They come from nothing but the source, VERSION and SOURCE_DATE_EPOCH.
set -eu
: "${VERSION:?}" "${SOURCE_DATE_EPOCH:?}"
mkdir "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
go=${GO:-go}
tool="$go tool -modfile=tools/package/go.mod"

sh deploy/package/extras.sh dist-extra
cp -r dist-extra "$out/share"
for ARCH in ${ARCHES:-amd64 arm64}; do
	BINARY=$out/bin/$ARCH/perseus
	export ARCH BINARY
	GOOS=linux GOARCH=$ARCH CGO_ENABLED=0 $go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o "$BINARY" ./cmd/perseus
	for format in deb rpm; do
		$tool nfpm package --config deploy/package/nfpm.yaml --packager "$format" --target "$out"
	done
	$tool cyclonedx-gomod bin -json -notimestamp -noserial -version "$VERSION" -output "$out/perseus_${VERSION}_linux_$ARCH.cdx.json" "$BINARY"
done
cd "$out"
sha256sum -- *.deb *.rpm *.cdx.json >SHA256SUMS
