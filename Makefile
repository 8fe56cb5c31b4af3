# `make check` is exactly what CI runs. `make` alone prints what there is.

GO       ?= go
FUZZTIME ?= 10m
COUNT    ?= 6
KILLS    ?= 200
BENCH    ?= .
PKG      ?= ./...
ARCHES   ?= amd64 arm64
NEW      ?= bench-new.txt

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The tools are pinned in tools/go.mod, so that they are not in the module graph of those who import Perseus.
TOOL := $(GO) tool -modfile=tools/go.mod

# The steps run in the order written, whatever -j says: each of them uses all cores by itself.
.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: need-race fmt-check vet staticcheck tidy-check build fuzz-short test ## All that CI checks: format, vet, staticcheck, tidy, build, short fuzzing, tests

.PHONY: build
build: ## Build bin/perseus, and bin/perseus-static: without NVML, for servers and laptops
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) build -tags nonvml -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/perseus-static ./cmd/perseus
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/perseus ./cmd/perseus

# Under the race detector computing takes ten times as long: what runs beside each other is tested whole with it, the
# optimizer in short with it and whole without, and of the commands those that wait for a server, a GPU or an interrupt.
PARALLEL := ./internal/... ./deploy/...
COMPUTE   = $(shell $(GO) list ./... | grep -vE '/(internal|deploy)(/|$$)')
WAITING  := Jobs|Doctor|Interrupt|Agent|Serve

.PHONY: test
test: need-race ## Run all tests, with the race detector (PKG=./dag for those of one package)
ifeq ($(PKG),./...)
	$(GO) test -timeout 20m $(COMPUTE)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $(filter-out %/cmd/perseus,$(COMPUTE))
	CGO_ENABLED=1 $(GO) test -race -timeout 20m -run '$(WAITING)' ./cmd/perseus
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $(PARALLEL)
else
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $(PKG)
endif

.PHONY: lint
lint: fmt-check vet staticcheck tidy-check ## All checks that do not run the code

.PHONY: fmt
fmt: ## Format all Go files with gofumpt
	$(TOOL) gofumpt -l -w .

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10m); PKG=./profile for one package
	@GO='$(GO)' tools/fuzz.sh $(FUZZTIME) $(PKG)

# Only a FUZZTIME that was given (command line or environment) replaces these 5 seconds.
.PHONY: fuzz-short
fuzz-short:
	@GO='$(GO)' tools/fuzz.sh $(if $(filter file default undefined,$(origin FUZZTIME)),5s,$(FUZZTIME)) ./...

.PHONY: bench
bench: ## Run benchmarks COUNT (6) times into NEW (bench-new.txt); OLD=file compares; BENCH, PKG select
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG) > $(NEW) || { cat $(NEW); exit 1; }
	$(TOOL) benchstat $(OLD) $(NEW)

.PHONY: soak
soak: ## Kill server and agent KILLS (200) times while jobs train, and check that nothing is lost
	PERSEUS_KILLS=$(KILLS) $(GO) test -count 1 -timeout 60m -v -run 'Killed' ./internal/server ./internal/agent

.PHONY: python-check
python-check: ## Check, test and build the Python client
	clients/python/check.sh

.PHONY: package
package: ## Build deb, rpm, SBOM, man page and completions in dist, twice, and compare (ARCHES="amd64 arm64")
	@GO='$(GO)' ARCHES='$(ARCHES)' VERSION='$(PACKAGE_VERSION)' deploy/package/reproduce.sh

.PHONY: clean
clean: ## Remove what make built
	rm -rf bin dist dist-extra

.PHONY: fmt-check
fmt-check:
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$files" ]; then \
		$(TOOL) gofumpt -d $$files; \
		printf 'not formatted (make fmt does it):\n%s\n' "$$files" >&2; exit 1; \
	fi

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: staticcheck
staticcheck:
	$(TOOL) staticcheck ./...

.PHONY: tidy-check
tidy-check:
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) -C tools/package mod tidy -diff

.PHONY: need-race
need-race:
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null || { \
		echo "go test -race needs a C compiler and '$$cc' is not there; on Debian: apt-get install gcc libc6-dev" >&2; exit 1; }
