# Namesake: make help lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Every Go module of the tree. Tools have modules of their own, so that their
# dependencies never meet ours.
MODULES := . sandbox tools/golangci-lint tools/controller-gen tools/gotestsum

BIN    := $(CURDIR)/bin
ASSETS := $(BIN)/assets
TOOLS  := $(BIN)/tools

# One set of flags for build, test and lint: they then share one build cache,
# and Kubernetes is compiled once instead of three times. Version control
# stamping is off because it would relink kubebox at each commit.
export GOFLAGS     := $(filter-out -trimpath -buildvcs=%,$(shell go env GOFLAGS)) -trimpath -buildvcs=false
export CGO_ENABLED ?= 0

KUBE_VERSION    := v1.37.2
VERSION_PACKAGE := k8s.io/component-base/version
KUBEBOX_LDFLAGS := -s -w \
	-X $(VERSION_PACKAGE).gitVersion=$(KUBE_VERSION) \
	-X $(VERSION_PACKAGE).gitMajor=1 \
	-X $(VERSION_PACKAGE).gitMinor=37

VERSION ?= $(or $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null),v0.0.0-dev)
COMMIT  := $(shell git rev-parse --verify --quiet HEAD)
LDFLAGS := -X $(VERSION_PACKAGE).gitVersion=$(VERSION) -X $(VERSION_PACKAGE).gitCommit=$(COMMIT)

# Settings for the caller; help prints them.
KEEP      ?=#@ demo: 1 keeps the fleet afterwards and says what to try next
MEMBERS   ?=#@ demo, chaos: number of member clusters
SEED      ?=#@ chaos: seed of the first round; alone, of the only one (default: a new one, which is shown)
DURATION  ?=#@ chaos: how long to go on with rounds (default: 10m)
TESTFLAGS ?=#@ test: more flags for go test, for example TESTFLAGS='-v -run TestName'
BENCH     ?= .#@ bench-go: which benchmarks, a regular expression
N         ?= 5#@ bench: number of members, or several: N='5 10 20'
BENCHFLAGS ?=#@ bench: more flags for bench run, for example BENCHFLAGS='--many 500 --foreign 5000'

##@ Use

.PHONY: help
help: ## list targets and settings (this text)
	@awk 'BEGIN { FS = ":.*## "; print "make TARGET [SETTING=value]" } \
		/^##@ /           { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nSettings\n'
	@sed -n 's/^\([A-Z]*\) *?=.*#@ \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  %-14s %s\n", $$1, $$2 }'

.PHONY: build
build: build-namesake build-sandbox ## compile everything into bin/

.PHONY: demo
demo: build packages ## show the main job on three real control planes
	$(BIN)/sandbox demo $(if $(filter-out 0,$(KEEP)),--keep) $(if $(MEMBERS),--members $(MEMBERS))

.PHONY: test-chaos
test-chaos: bin/tools/gotestsum ## run a short form of the chaos test, with seeds that are known
	NAMESAKE_BIN=$(BIN) $(TWICE) --packages ./test/chaos -- -count 1 -timeout 10m $(TESTFLAGS)

.PHONY: chaos
chaos: build ## break what a fleet depends on, at random, until something is found (docs/chaos.md)
	NAMESAKE_BIN=$(BIN) go test -count 1 -timeout 0 -v -run TestChaos ./test/chaos \
		-chaos.seed $(or $(SEED),$(shell date +%s)) -chaos.duration $(or $(DURATION),$(if $(SEED),0s,10m)) -chaos.members $(or $(MEMBERS),5)

.PHONY: bench
bench: build ## measure speed and cost on fleets of N members: tables, JSON and plots
	go build -o $(BIN)/bench ./test/bench
	@mkdir -p $(BIN)/results
	@for n in $(N); do \
		$(BIN)/bench run --sandbox $(BIN)/sandbox --members $$n --out $(BIN)/results/$$n.json $(BENCHFLAGS); \
	done
	@$(BIN)/bench report --plots $(BIN)/results $(N:%=$(BIN)/results/%.json) >$(BIN)/results/report.md
	@echo 'results, plots and report.md are in bin/results'

##@ Develop

.PHONY: build-namesake
build-namesake: ## compile bin/controller-manager, bin/agent and bin/namesakectl
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/controller-manager ./cmd/agent ./cmd/namesakectl

.PHONY: build-sandbox
build-sandbox: build-kubebox ## compile bin/sandbox and bin/kubebox
	cd sandbox && go build -ldflags '-X main.version=$(VERSION)' -o $(BIN)/sandbox ./cmd/sandbox

.PHONY: build-kubebox
build-kubebox: ## compile Kubernetes into bin/kubebox (six minutes the first time, then seconds)
	@tools/build-kubebox.sh $(BIN)/kubebox '$(KUBEBOX_LDFLAGS)'
	@mkdir -p $(ASSETS)
	@ln -sfn ../kubebox $(ASSETS)/etcd
	@ln -sfn ../kubebox $(ASSETS)/kube-apiserver

.PHONY: test
test: build packages ## run every test, and fail if one leaves a process behind
	@+tools/leave-nothing.sh $(MAKE) --keep-going test-unit test-sandbox test-e2e test-chaos

.PHONY: packages
packages: ## install the Debian packages that the data plane needs, or say which
	@tools/debian-packages.sh

.PHONY: test-unit
test-unit: ## run the tests of the root module, on a real API server where they need one
	KUBEBUILDER_ASSETS=$(ASSETS) KUBE_CACHE_MUTATION_DETECTOR=true go test -p 2 -timeout 10m $(TESTFLAGS) $$(go list ./... | grep -Ev '/test/(e2e|chaos$$)')

.PHONY: test-sandbox
test-sandbox: ## run the tests of the sandbox module
	cd sandbox && NAMESAKE_BIN=$(BIN) go test -p 1 -timeout 10m $(TESTFLAGS) ./...

# Tests on fleets share the machine with a dozen API servers. One that fails is run
# once more, by itself and on a fleet of its own; both outcomes are shown. More than
# two that fail are no accident.
TWICE = $(TOOLS)/gotestsum --format $(if $(filter -v,$(TESTFLAGS)),standard-verbose,standard-quiet) \
	--rerun-fails=1 --rerun-fails-max-failures=2 --rerun-fails-run-root-test

.PHONY: test-e2e
test-e2e: bin/tools/gotestsum ## run the end-to-end tests, on fleets that bin/sandbox starts
	NAMESAKE_BIN=$(BIN) $(TWICE) --packages ./test/e2e/... -- -count 1 -p 1 -timeout 30m $(TESTFLAGS)
	NAMESAKE_BIN=$(BIN) $(MIXED) $(TWICE) --packages ./test/e2e -- -count 1 -timeout 10m -run '$(MIXED_TESTS)' $(TESTFLAGS)

# Members that an agent stands in for: two of the usual three, and of the five of
# the larger fleets. The tests do not know which.
MIXED       := NAMESAKE_E2E_PULL=member2,member3
MIXED_TESTS := ^(TestSpread|TestLists_C33|TestMemberDown_C26|TestSilentMember_C25|TestUnjoin_C29)$$

.PHONY: test-e2e-mixed
test-e2e-mixed: bin/tools/gotestsum ## run all end-to-end tests on three push and two pull members (test-e2e runs a few, on three)
	NAMESAKE_BIN=$(BIN) NAMESAKE_E2E_MEMBERS=5 $(MIXED) $(TWICE) --packages ./test/e2e -- -count 1 -timeout 30m $(TESTFLAGS)

.PHONY: bench-go
bench-go: ## run the Go benchmarks of the root module (none of them starts a fleet)
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: verify
verify: bin/tools/golangci-lint bin/tools/controller-gen ## regenerate, tidy and lint; fail if that changes a file
	@+tools/change-nothing.sh $(MAKE) generate tidy
	@+$(MAKE) lint

# golangci-lint would read all of Kubernetes to judge the few lines of kubebox:
# four minutes and 7 GB.
.PHONY: lint
lint: bin/tools/golangci-lint ## lint both modules
	@status=0; \
	$(TOOLS)/golangci-lint run ./... || status=1; \
	cd sandbox; \
	$(TOOLS)/golangci-lint run --config ../.golangci.yml $$(go list -f '{{.Dir}}' ./... | grep -v /cmd/kubebox) || status=1; \
	go vet ./cmd/kubebox || status=1; \
	exit $$status

.PHONY: fmt
fmt: bin/tools/golangci-lint ## format both modules
	@for module in . sandbox; do (cd "$$module" && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: generate
generate: bin/tools/controller-gen ## write deepcopy functions, CRDs and whatever go generate makes
	rm -rf $(BIN)/crds
	$(TOOLS)/controller-gen object crd paths=./api/... output:crd:dir=$(BIN)/crds
	mkdir -p charts/namesake/crds
	rm -f charts/namesake/crds/*.yaml
	mv $(BIN)/crds/*.yaml charts/namesake/crds/
	go generate ./...

.PHONY: tidy
tidy: ## tidy the go.mod of each module
	@for module in $(MODULES); do echo "go mod tidy in $$module"; (cd "$$module" && go mod tidy); done

.PHONY: clean
clean: ## remove bin/ (a running fleet needs it: bring it down first)
	rm -rf $(BIN)

# The tools, rebuilt when their pinned versions change.

bin/tools/golangci-lint: tools/golangci-lint/go.mod tools/golangci-lint/go.sum
	@echo "compiling golangci-lint into bin/tools: a few minutes the first time"
	@cd tools/golangci-lint && go build -ldflags '-s -w' -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/tools/controller-gen: tools/controller-gen/go.mod tools/controller-gen/go.sum
	@echo "compiling controller-gen into bin/tools"
	@cd tools/controller-gen && go build -ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen
	@touch $@

bin/tools/gotestsum: tools/gotestsum/go.mod tools/gotestsum/go.sum
	@echo "compiling gotestsum into bin/tools"
	@cd tools/gotestsum && go build -ldflags '-s -w' -o $(CURDIR)/$@ gotest.tools/gotestsum
	@touch $@
