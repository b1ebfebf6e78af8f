# SPDX-License-Identifier: MIT
# Targets for people who work on Tandem: checks, variants, fuzzing, measuring, tidying.

.PHONY: deps demo deb bench check check-full check-fast docs soak judges fuzz fuzz-all asan tsan clang cover
.PHONY: model tidy lint compdb sbom stats

deps: ## install what is missing (as root), or say which packages to install
	@sh tools/dev/deps.sh check

# The second make sees what deps.sh has installed.
demo: ## measure this machine, then run a synthetic model with and without the plan (QUICK=1)
	@sh tools/dev/deps.sh demo
	@echo "0. Building the library and the tools, a minute or two (V=1: line by line)"
	@$(MAKE) --no-print-directory -j$(shell nproc 2>/dev/null || echo 2) QUIET=1 all
	@bash tools/dev/demo.sh $(if $(QUICK),--quick) $(ARGS)

check: ## before a merge: GCC, sanitizers, tools, style, documents, install (15 minutes on 2 cores)
	@sh tools/dev/deps.sh check
	@bash tools/dev/check.sh $(JOBS)

check-full: ## all of that, and fuzzing, faults, odd machines, ARM, Windows, other compilers, a clone without data
	@sh tools/dev/deps.sh check
	@bash tools/dev/check.sh full

check-fast: ## before each commit, a few minutes: the suites with little effort, includes, style, words
	@TANDEM_TEST_EFFORT=1 $(MAKE) --no-print-directory BUILD=build/fast ASSERT=1 check-suites
	@bash tools/dev/check_includes.sh
	@bash tools/dev/check_style.sh
	@bash tools/dev/check_words.sh

soak: ## hours of attacks: JOBS="fuzz ..." selects, SECONDS_EACH=N or MINUTES=N limits each job
	@bash tools/dev/soak.sh $(JOBS)

mutants: ## N=20 SEED=1: plant N random single changes, and tell which no suite finds
	@bash tools/dev/mutants.sh random $(or $(N),20) $(or $(SEED),1)

# Each suite with the rooms that it links.
.PHONY: mutants suite-rooms
suite-rooms:
	@$(foreach s,$(ALL_SUITES),echo $(s) $(or $($(s)_ARCH),report $(llama_ARCH));)

docs: tools $(BUILD)/make-models ## check the documents (links, commands, spelling) and make a site of them in build/docs
	@bash tools/dev/docs.sh $(BIN) $(BUILD)/make-models
judges: lib tools bridge $(if $(filter cuda,$(JOBS)),$(if $(PTX),$(PTX_PACK))) ## other libraries judge ours, fetched from the Python index: JOBS="models converted tokenizers quants trained bridge python server"
	@BUILD=$(BIN) bash tools/judges/run.sh $(JOBS)

deb: ## build the Debian packages into build/deb and let lintian look at them
	@bash tools/dev/make_deb.sh build/deb

bench: all benches ## this machine: kernels, attention, a llama, hand-offs, waiting, sampling
	@for bench in $(addprefix $(BIN)/,$(BENCHES)); do ./$$bench || exit 1; done

# ---- variants side by side -----------------------------------------------------------------------
asan: ## the suites with Clang's address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory BUILD=build/asan CC=clang WERROR=1 ASSERT=1 SAN=address,undefined \
	    CFLAGS='-O1 -g' check-suites

tsan: ## the suites that start threads with the thread sanitizer
	@$(MAKE) --no-print-directory BUILD=build/tsan CC=clang WERROR=1 ASSERT=1 SAN=thread \
	    CFLAGS='-O1 -g' SUITES='sched stress runtime backends' check-suites

model: ## every interleaving of parking and waking, by the model checker spin
	@bash tests/model/check.sh

clang: ## build and test with Clang
	@$(MAKE) --no-print-directory BUILD=build/clang CC=clang all check-suites

COVER_MAKE = $(MAKE) --no-print-directory BUILD=build/cover CC=gcc CFLAGS='-O0 -g --coverage'

cover: ## line coverage of suites and fuzz seeds, a summary for each room; 95 % of the parsers
	@$(COVER_MAKE) check-suites build/cover/make-seeds $(addprefix build/cover/replay_,$(FUZZ))
	@build/cover/make-seeds build/cover/seeds
	@for target in $(FUZZ); do \
	    build/cover/replay_$$target build/cover/seeds/$$target tests/fuzz/corpus/$$target || exit 1; \
	done
	@bash tools/dev/cover.sh build/cover

# ---- fuzzing -------------------------------------------------------------------------------------
FUZZ_MAKE = $(MAKE) --no-print-directory BUILD=build/fuzz CC=clang WERROR=1 \
    SAN=address,undefined,fuzzer-no-link CFLAGS='-O1 -g1'
SECONDS_EACH ?= 60

fuzz: ## T=NAME: fuzz one parser for SECONDS_EACH (60) seconds, from tests/fuzz/corpus/NAME
	@$(if $(filter $(FUZZ),$(T)),:,echo "make fuzz T=NAME; names: $(FUZZ)"; exit 2)
	+@$(FUZZ_MAKE) build/fuzz/fuzz_$(T) build/fuzz/make-seeds
	@bash tools/dev/fuzz.sh $(SECONDS_EACH) $(T)

fuzz-all: ## fuzz every parser for SECONDS_EACH (60) seconds
	+@$(FUZZ_MAKE) $(addprefix build/fuzz/fuzz_,$(FUZZ)) build/fuzz/make-seeds
	@bash tools/dev/fuzz.sh $(SECONDS_EACH) $(FUZZ)

# ---- tidying -------------------------------------------------------------------------------------
tidy: ## clang-format the files that differ from the last commit (F=FILES: these), then lint them
	@bash tools/dev/tidy.sh $(F)

lint: $(CL_HEADER) ## clang-tidy over all sources (F=FILES: these)
	@bash tools/dev/tidy.sh --lint-only $(or $(F),$(wildcard $(LIB_SRC)) $(llama_SRC) \
	    $(wildcard tools/*/*.c))

compdb: ## write compile_commands.json
	@$(MAKE) --no-print-directory -Bnk V=1 all suites benches 2>/dev/null | \
	    bash tools/dev/compdb.sh > compile_commands.json

sbom: all ## write build/sbom.json: libraries that are linked or loaded, with versions (CycloneDX)
	@bash tools/dev/sbom.sh $(BIN) > $(BIN)/sbom.json && echo $(BIN)/sbom.json

stats: ## file and function lengths, comment share, and the rules' violations
	@bash tools/dev/stats.sh
