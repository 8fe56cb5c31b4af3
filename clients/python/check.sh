#!/usr/bin/env bash
# Checks, tests and builds the Python client: clients/python/check.sh [--torch]
#
# Makes .venv with the pinned tools, runs ruff, mypy and pytest, builds the wheel into dist/, and runs what needs no
# tools once more from the wheel alone. --torch also trains with real PyTorch (CPU only is used; the package with all it
# pulls in takes 5.4 GB in .torch, made once); without it these tests are skipped, unless PERSEUS_TORCH_PYTHON names a
# Python that has PyTorch 2.6 or later. PYTHON is the interpreter to use, python3 by default.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
torch=2.15.0

# venv FOLDER STAMP PACKAGE…: makes it anew unless it was finished with the same stamp.
venv() {
	local folder=$1 stamp=$2
	shift 2
	if [ "$(cat "$folder/.finished" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$folder"
		"$python" -m venv "$folder"
		"$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
		echo "$stamp" >"$folder/.finished"
	fi
}

version=$("$python" --version)
venv .venv "$version $(cksum <requirements-dev.txt)" -r requirements-dev.txt
if [ "${1:-}" = --torch ]; then
	venv .torch "$version $torch" "torch==$torch" numpy
	PERSEUS_TORCH_PYTHON=$PWD/.torch/bin/python
	export PERSEUS_TORCH_PYTHON
fi

.venv/bin/ruff format --check --quiet .
.venv/bin/ruff check --quiet .
.venv/bin/mypy
.venv/bin/python -m pytest --quiet

rm -rf dist build
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --wheel-dir dist .
rm -rf build src/*.egg-info
wheel=$(echo dist/perseus_client-*-py3-none-any.whl)
PYTHONPATH=$wheel .venv/bin/python -c '
import perseus_client, zipfile, sys
names = zipfile.ZipFile(sys.argv[1]).namelist()
assert "perseus_client/py.typed" in names and any(n.endswith("licenses/LICENSE") for n in names), names
assert sys.argv[1] in perseus_client.__file__, perseus_client.__file__
import perseus_client.megatron, perseus_client.deepspeed, perseus_client.pipelining
with perseus_client.PerseusClient(enabled=False).step(): pass
' "$wheel"
echo "$wheel: checked, tested, built"
