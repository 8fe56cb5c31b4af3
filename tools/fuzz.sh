#!/usr/bin/env bash
# Runs every fuzz target of the given packages for a time, one after another.
#
#   tools/fuzz.sh 5s ./...
#
# A target that fails does not stop the others; the failures are listed at the end and the exit status is 1.
# go test writes the input that failed below testdata/fuzz of its package: commit it together with the repair.
set -euo pipefail

if [ $# -lt 2 ]; then
	echo "usage: tools/fuzz.sh TIME PACKAGE..." >&2
	exit 2
fi
go=${GO:-go}
fuzztime=$1
shift

# go test -list prints the names of a package's targets, then "ok <package> <time>".
if ! listed=$("$go" test -list '^Fuzz' "$@" 2>&1); then
	printf '%s\n' "$listed" >&2
	exit 1
fi
targets=$(awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' <<<"$listed")
if [ -z "$targets" ]; then
	echo "fuzz: no targets"
	exit 0
fi
echo "fuzz: $(wc -l <<<"$targets") targets, $fuzztime each"

out=$(mktemp)
trap 'rm -f "$out"' EXIT

# go test stops fuzzing after fuzztime; 3 minutes are allowed on top of it, to build, to minimise and to wind up.
in_seconds() {
	case $1 in
	*[!0-9smh]* | *[smh]?* | [smh]* | '') echo "fuzz: time \"$1\": want a whole number with one unit, such as 5s, 10m, 1h" >&2; return 2 ;;
	*h) echo $((${1%h} * 3600)) ;;
	*m) echo $((${1%m} * 60)) ;;
	*s) echo "${1%s}" ;;
	*) echo "fuzz: time \"$1\": the unit is missing, such as 5s, 10m, 1h" >&2; return 2 ;;
	esac
}
limit=$(($(in_seconds "$fuzztime") + 180))

# Minimising is bounded by tries: go test makes smaller every input that is new to it, not only those that fail, and
# with long files that took all of a short fuzztime.
fuzz_one() {
	timeout --kill-after=10 "$limit" \
		"$go" test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x "$1" >"$out" 2>&1
}

# Go before 1.27 now and then reports the end of fuzztime itself as a failure (go.dev/issue/75804).
ended_by_the_clock() {
	grep -q '^ *context deadline exceeded$' "$out" && ! grep -q 'Failing input written' "$out"
}

failed=()
while read -r pkg name; do
	if fuzz_one "$pkg" "$name" </dev/null ||
		{ ended_by_the_clock && echo "fuzz: $pkg $name: deadline race of go test, once more" && fuzz_one "$pkg" "$name" </dev/null; }; then
		echo "fuzz: ok   $pkg $name $(sed -n 's/.*\(execs: [0-9]*\).*/\1/p' "$out" | tail -1)"
	else
		cat "$out"
		echo "fuzz: FAIL $pkg $name"
		failed+=("$pkg $name")
	fi
done <<<"$targets"

if [ ${#failed[@]} -gt 0 ]; then
	echo "fuzz: ${#failed[@]} failed:"
	printf '  %s\n' "${failed[@]}"
	exit 1
fi
