#!/bin/sh
# Makes the manual page and the completions, from the program itself, in the folder $1.
set -eu
out=$1
rm -rf "$out"
mkdir -p "$out"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$out/perseus" ./cmd/perseus
"$out/perseus" man >"$out/perseus.1"
gzip -9nf "$out/perseus.1"
"$out/perseus" completion bash >"$out/perseus.bash"
"$out/perseus" completion zsh >"$out/_perseus"
"$out/perseus" completion fish >"$out/perseus.fish"
rm "$out/perseus"
