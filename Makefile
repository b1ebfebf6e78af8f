# SPDX-License-Identifier: MIT
# Tandem is built by GNU make alone. `make help` lists the targets.
#
# Rooms are found by wildcard: a new .c file in a room is compiled without touching this file.
# Every variant (compiler, sanitizer, ...) has a tree of its own: make BUILD=build/NAME CC=clang ...

VERSION := $(shell sed -n 's/^\#define TANDEM_VERSION_STRING "\(.*\)"/\1/p' include/tandem/version.h)
# Each 0.x is an interface of its own: programs are linked with libtandem.so.0.x.
SOVERSION := $(basename $(VERSION))

# ---- what a user may set -------------------------------------------------------------------------
BUILD ?= build/release
ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
prefix ?= $(PREFIX)
exec_prefix ?= $(prefix)
bindir ?= $(exec_prefix)/bin
libdir ?= $(exec_prefix)/lib
includedir ?= $(prefix)/include
datarootdir ?= $(prefix)/share
docdir ?= $(datarootdir)/doc/tandem
mandir ?= $(datarootdir)/man
PKG_CONFIG ?= pkg-config
INSTALL ?= install
# SAN=address,undefined or SAN=thread; WERROR=1 makes warnings errors; ASSERT=1 checks the library's
# own invariants; V=1 shows the commands.
SAN ?=
WERROR ?=
ASSERT ?=
V ?=

# The release tree keeps its objects in build/release and its results directly in build/.
BIN := $(if $(filter build/release,$(BUILD)),build,$(BUILD))
OBJ := $(BUILD)/obj
Q := $(if $(V),,@)
say = $(if $(V),,$(if $(QUIET),@:,@printf '  %-7s %s\n' '$(1)' '$(2)'))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# ---- the rooms, lowest first ---------------------------------------------------------------------
base_SRC := $(wildcard base/*.c)
ggml-like_SRC := $(wildcard ggml-like/*.c)
graph_SRC := $(wildcard graph/*.c)
backends_SRC := $(wildcard backends/*.c backends/*/*.c backends/*/*/*.c) # mk/opencl.mk corrects it
sched_SRC := $(wildcard sched/*.c)
table_SRC := $(wildcard table/*.c)
tune_SRC := $(wildcard tune/*.c)
measure_SRC := $(wildcard measure/*.c)
runtime_SRC := $(wildcard runtime/*.c)
formats_SRC := $(wildcard formats/*.c)
cluster_SRC := $(wildcard cluster/*.c)
llama_SRC := $(wildcard llama/*.c)
report_SRC := $(wildcard tools/report/*.c)
bridge_SRC := $(wildcard bridge/ggml/*.c)

MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
# Said once and in words, where something is to be compiled; targets that install or tell go on.
COMPILER := $(or $(MACHINE),$(shell command -v $(firstword $(CC)) 2>/dev/null))
ifeq ($(COMPILER)$(filter deps demo check check-full help clean deb uninstall install-python,$(MAKECMDGOALS)),)
$(error there is no compiler '$(CC)': `make deps` installs it (as root), or says which packages to ask for)
endif
have = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo 1)
ZLIB := $(if $(NO_ZLIB),,$(call have,zlib))
include mk/opencl.mk
include mk/server.mk

ROOMS := base ggml-like graph backends sched table tune measure runtime formats cluster
LIB_SRC := $(foreach room,$(ROOMS),$($(room)_SRC))
TOOLS := $(filter-out kernel-pack cuda-pack report $(SERVER_LEFT_OUT),$(patsubst tools/%/main.c,%,$(wildcard tools/*/main.c)))
TOOL_COMMON_SRC := $(wildcard tools/*.c)
BENCH_MAIN_SRC := $(wildcard bench/bench_*.c)
BENCH_COMMON_SRC := $(filter-out $(BENCH_MAIN_SRC),$(wildcard bench/*.c))
BENCHES := $(subst _,-,$(patsubst bench/%.c,%,$(BENCH_MAIN_SRC)))

# What a suite of a room links: the archive of that room and of the rooms below it, highest first.
archives = $(patsubst %,$(BUILD)/room-%.a,$(1))
base_ARCH := base
ggml_ARCH := ggml-like base
backends_ARCH := backends $(ggml_ARCH)
cpu_ARCH := $(backends_ARCH)
openblas_ARCH := $(backends_ARCH)
sim_ARCH := $(backends_ARCH)
opencl_ARCH := $(backends_ARCH)
sched_ARCH := sched $(backends_ARCH)
stress_ARCH := $(sched_ARCH)
schedule_ARCH := $(sched_ARCH)
table_ARCH := table $(sched_ARCH)
tune_ARCH := tune $(table_ARCH)
measure_ARCH := measure $(tune_ARCH)
report_ARCH := report formats graph $(measure_ARCH)
runtime_ARCH := runtime graph $(measure_ARCH)
graph_ARCH := $(runtime_ARCH) # (nets are computed by a runtime)
formats_ARCH := formats graph $(ggml_ARCH)
cluster_ARCH := llama cluster formats $(runtime_ARCH) # (with what ranks share)
llama_ARCH := $(cluster_ARCH)
server_ARCH := server report $(llama_ARCH)

# ---- flags ---------------------------------------------------------------------------------------
# NO_HWLOC=1, NO_CJSON=1, NO_PCRE2=1, NO_UTF8PROC=1, NO_ZLIB=1, NO_OPENCL=1 and NO_LIBEDIT=1 leave
# the optional part out although it is there. (libedit serves tandem-llama alone, mk/server.mk has
# libmicrohttpd.)
HWLOC := $(if $(NO_HWLOC),,$(call have,hwloc))
CJSON := $(if $(NO_CJSON),,$(call have,libcjson))
PCRE2 := $(if $(NO_PCRE2),,$(call have,libpcre2-8))
UTF8PROC := $(if $(NO_UTF8PROC),,$(call have,libutf8proc))
LIBEDIT := $(if $(NO_LIBEDIT),,$(call have,libedit))
PARTS_CFLAGS := $(if $(HWLOC),-DTND_HAVE_HWLOC $(shell $(PKG_CONFIG) --cflags hwloc)) \
    $(if $(CJSON),-DTND_HAVE_CJSON $(shell $(PKG_CONFIG) --cflags libcjson)) \
    $(if $(PCRE2),-DTND_HAVE_PCRE2 $(shell $(PKG_CONFIG) --cflags libpcre2-8)) \
    $(if $(UTF8PROC),-DTND_HAVE_UTF8PROC $(shell $(PKG_CONFIG) --cflags libutf8proc)) \
    $(if $(ZLIB),-DTND_HAVE_ZLIB $(shell $(PKG_CONFIG) --cflags zlib)) \
    $(if $(OPENCL),-DTND_HAVE_OPENCL)
PARTS_LIBS := $(if $(HWLOC),$(shell $(PKG_CONFIG) --libs hwloc)) \
    $(if $(CJSON),$(shell $(PKG_CONFIG) --libs libcjson)) \
    $(if $(PCRE2),$(shell $(PKG_CONFIG) --libs libpcre2-8)) \
    $(if $(UTF8PROC),$(shell $(PKG_CONFIG) --libs libutf8proc)) \
    $(if $(ZLIB),$(shell $(PKG_CONFIG) --libs zlib))
PARTS_MISSING = $(if $(HWLOC),,hwloc(libhwloc-dev)) $(if $(CJSON),,cJSON(libcjson-dev)) \
    $(if $(PCRE2),,PCRE2(libpcre2-dev)) $(if $(UTF8PROC),,utf8proc(libutf8proc-dev)) \
    $(if $(ZLIB),,zlib(zlib1g-dev)) $(if $(OPENCL),,OpenCL(opencl-headers)) \
    $(if $(LIBEDIT),,libedit(libedit-dev)) $(if $(SERVER),,tandem-server(libmicrohttpd-dev)) \
    $(if $(MPI_LIBRARIES)$(SAN),,libtandem-mpi(libopenmpi-dev)) \
    $(if $(PTX)$(SAN),,prebuilt-CUDA-kernels(clang))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wstrict-prototypes $(if $(WERROR),-Werror)
ifeq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
# Texts for people are cut to their buffers on purpose, and GCC's guess changes with -O.
WARN += -Wno-format-truncation -Wno-stringop-truncation
endif
# No contraction into fused multiply-add: every compiler gives the same bits; kernels ask for it.
# A section a function: libtandem.so keeps only what a public function reaches (check_reach.sh).
TND_CFLAGS := -std=c11 $(WARN) -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
    -ffunction-sections -fdata-sections
TND_CPPFLAGS := -D_GNU_SOURCE -I. -Iinclude $(if $(ASSERT),-DTND_ASSERTIONS) $(PARTS_CFLAGS)
# The same bytes wherever it is built (check_reproducible.sh).
TND_CFLAGS += -ffile-prefix-map="$(CURDIR)=."
# What makes an overrun stop instead of being of use (check_hardening.sh). HARDENING= leaves it out.
HARDENING ?= -fstack-protector-strong -fstack-clash-protection \
    $(if $(filter x86_64% amd64%,$(MACHINE)),-fcf-protection=full)
ifeq ($(SAN)$(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),)
HARDENING += $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
HARDENING_LD ?= -Wl,-z,relro,-z,now,-z,noexecstack
ifneq ($(SAN),)
TND_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
LDSAN := -fsanitize=$(SAN)
else
# (A sanitizer's own symbols are in the program, not in the library.)
NO_UNDEFINED := -Wl,--no-undefined
endif
LIBS := $(PARTS_LIBS) -ldl -lm -pthread

COMPILE = $(CC) $(TND_CPPFLAGS) $(CPPFLAGS) $(TND_CFLAGS) $(HARDENING) $(CFLAGS) $(ISA)
LINK = $(CC) $(LDSAN) $(HARDENING_LD) $(CFLAGS) $(LDFLAGS)

# Instruction sets go by file name, in the folders of kernels alone: what calls them runs on every CPU. On
# other machines these files compile to nothing.
ifneq ($(filter x86_64% amd64%,$(MACHINE)),)
X86 := $(OBJ)/backends/cpu/x86
AVX2 := -mavx2 -mfma -mf16c -mbmi2
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq
$(X86)/%_avx2.o $(OBJ)/ggml-like/%_avx2.o: private ISA := $(AVX2)
$(X86)/%_avxvnni.o: private ISA := $(AVX2) -mavxvnni
$(X86)/%_avx512.o: private ISA := $(AVX512)
$(X86)/%_vnni.o: private ISA := $(AVX512) -mavx512vnni
$(X86)/%_bf16.o: private ISA := $(AVX512) -mavx512bf16
$(X86)/%_gfni.o: private ISA := $(AVX512) -mavx512vnni -mavx512vbmi -mgfni
$(X86)/%_amx.o: private ISA := $(AVX512) -mamx-tile -mamx-int8
else ifneq ($(filter aarch64%,$(MACHINE)),)
# (NEON itself is part of every 64-bit ARM CPU.)
$(OBJ)/backends/cpu/arm/%_dotprod.o: private ISA := -march=armv8.2-a+dotprod
$(OBJ)/backends/cpu/arm/%_i8mm.o: private ISA := -march=armv8.2-a+dotprod+i8mm
endif

$(OBJ)/tools/tandem-llama/line.o: private TND_CPPFLAGS += $(if $(LIBEDIT),-DTND_HAVE_LIBEDIT \
    $(shell $(PKG_CONFIG) --cflags libedit))
tandem-llama_LIBS := $(if $(LIBEDIT),$(shell $(PKG_CONFIG) --libs libedit))

# ---- building ------------------------------------------------------------------------------------
obj = $(patsubst %.c,$(OBJ)/%.o,$(1))
LIB_OBJ := $(call obj,$(LIB_SRC))
STATIC := $(BIN)/libtandem.a
SHARED := $(BIN)/libtandem.so.$(VERSION)
LLAMA := $(BIN)/libtandem-llama.a
LLAMA_SHARED := $(BIN)/libtandem-llama.so.$(VERSION)
REPORT := $(BUILD)/room-report.a

include mk/cluster.mk

.PHONY: all lib tools bridge parts benches
all: lib tools bridge cluster parts ## build the library and the tools (default)
lib: $(STATIC) $(SHARED) $(LLAMA) $(LLAMA_SHARED) ## build libtandem and libtandem-llama
tools: $(addprefix $(BIN)/,$(TOOLS)) ## build mulmat-tune, tandem-llama, tandem-graph and tandem-server
benches: $(addprefix $(BIN)/,$(BENCHES))

parts:
	@$(if $(strip $(PARTS_MISSING)),echo "left out (optional, not found): $(strip $(PARTS_MISSING)); \
'make deps' installs them",:)

# The stamp changes when a command would change, so that other flags rebuild.
$(BUILD)/flags.stamp: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(COMPILE) | $(LINK) $(LIBS)' | cmp -s - $@ || \
	    printf '%s\n' '$(COMPILE) | $(LINK) $(LIBS)' > $@
.PHONY: FORCE
FORCE:

$(OBJ)/%.o: %.c $(BUILD)/flags.stamp | $(CL_HEADER)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

# An archive is made anew from its whole list, so that a removed source leaves no old member.
define archive
$(call say,AR,$@)
@mkdir -p $(@D)
@rm -f $@
$(Q)ar crsD $@ $(filter %.o,$^)
endef

define room_rule
$$(BUILD)/room-$(1).a: $$(call obj,$$($(1)_SRC)) $$(BUILD)/$(1).list
	$$(archive)
endef
# The list of a room's files is a prerequisite: adding or removing one renews the archive.
$(BUILD)/%.list: FORCE
	@mkdir -p $(@D)
	@echo '$($*_SRC)' | cmp -s - $@ || echo '$($*_SRC)' > $@
$(foreach room,$(ROOMS) llama report $(if $(SERVER),server),$(eval $(call room_rule,$(room))))

LISTS := $(patsubst %,$(BUILD)/%.list,$(ROOMS))
$(STATIC): $(LIB_OBJ) $(LISTS)
	$(archive)
$(LLAMA): $(call obj,$(llama_SRC)) $(BUILD)/llama.list
	$(archive)

$(SHARED): $(LIB_OBJ) $(LISTS) mk/tandem.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -shared -Wl,-soname,libtandem.so.$(SOVERSION) $(NO_UNDEFINED) -Wl,--gc-sections \
	    -Wl,--version-script=mk/tandem.map -o $@ $(LIB_OBJ) $(LIBS)
	$(Q)ln -sf $(@F) $(@D)/libtandem.so.$(SOVERSION)
	$(Q)ln -sf libtandem.so.$(SOVERSION) $(@D)/libtandem.so

$(LLAMA_SHARED): $(call obj,$(llama_SRC)) $(BUILD)/llama.list mk/tandem.map | $(SHARED)
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,libtandem-llama.so.$(SOVERSION) \
	    -Wl,--version-script=mk/tandem.map $(NO_UNDEFINED) -Wl,--gc-sections -o $@ \
	    $(filter %.o,$^) -L$(@D) -ltandem -lm
	$(Q)ln -sf $(@F) $(@D)/libtandem-llama.so.$(SOVERSION)
	$(Q)ln -sf libtandem-llama.so.$(SOVERSION) $(@D)/libtandem-llama.so

# The backend for programs with ggml: one file that needs none of ours, never unloaded (its threads).
BRIDGE := $(BIN)/libggml-tandem.so
bridge: $(BRIDGE) ## build libggml-tandem.so, for programs with ggml (docs/bridge.md)
$(BRIDGE): $(call obj,$(bridge_SRC)) $(STATIC) $(BUILD)/bridge.list mk/bridge.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -shared -Wl,-soname,libggml-tandem.so $(NO_UNDEFINED) -Wl,--gc-sections \
	    -Wl,-z,nodelete -Wl,--version-script=mk/bridge.map -o $@ $(filter %.o %.a,$^) $(LIBS)

# Small hosts of each layout of ggml's structures, for tests/bridge.sh.
BRIDGE_HOSTS := $(addprefix $(BUILD)/bridge-host-,9 21 26 static)
.PHONY: bridge-hosts
bridge-hosts: $(BRIDGE_HOSTS) $(BRIDGE)
$(BUILD)/bridge-host-%: $(wildcard tests/bridge/*.[ch]) bridge/ggml/bridge_verdicts.c bridge/ggml/bridge_pace.c $(STATIC)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(LDSAN) $(if $(filter static,$*),,-rdynamic -fvisibility=default -DHOST_VERSION=$*) -o $@ \
	    $(filter %.c %.a,$^) $(LDFLAGS) $(LIBS)

define tool_rule
$$(BIN)/$(1): $$(call obj,$$(wildcard tools/$(1)/*.c) $$(TOOL_COMMON_SRC)) $$(REPORT) $$(LLAMA) $$(STATIC)
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -pie -rdynamic -o $$@ $$^ $$($(1)_LIBS) $$(LIBS)
endef
$(foreach tool,$(TOOLS),$(eval $(call tool_rule,$(tool))))

define bench_rule
$$(BIN)/$(1): $$(call obj,bench/$(subst -,_,$(1)).c $$(BENCH_COMMON_SRC)) $$(REPORT) $$(LLAMA) $$(STATIC)
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -o $$@ $$^ $$(LIBS)
endef
$(foreach b,$(BENCHES),$(eval $(call bench_rule,$(b))))

# The programs of the documents: docs/examples/X.c -> example-X.
# docs/examples/backend.c is a plugin, built against the public headers alone; it finds the library's
# functions in the program that loads it.
EXAMPLES := $(patsubst docs/examples/%.c,$(BIN)/example-%,$(filter-out %/backend.c,\
    $(wildcard docs/examples/*.c)))
PLUGIN := $(BUILD)/example-backend.so
.PHONY: examples
examples: $(EXAMPLES) $(PLUGIN) ## build the programs of docs/examples
$(BIN)/example-%: $(OBJ)/docs/examples/%.o $(LLAMA) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(LIBS)
$(PLUGIN): docs/examples/backend.c $(wildcard include/tandem/*.h)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) -fPIC -shared -Iinclude $(LDSAN) $(CFLAGS) $(LDFLAGS) -o $@ $<

FAKE_NVML := $(BUILD)/fake-nvml.so
$(FAKE_NVML): tests/fake_nvml.c
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(WARN) -fPIC -shared $(LDSAN) $(CFLAGS) $(LDFLAGS) -o $@ $<

# ---- tests ---------------------------------------------------------------------------------------
# tests/suite_X.c and tests/suite_X_*.c together are the suite of room X; X has no underscore. X_MORE
# are files of other suites that it needs.
opencl_MORE := tests/suite_backends_cases.c tests/suite_backends_stage.c
cluster_MORE := tests/suite_llama_naive.c
suite_of = $(firstword $(subst _, ,$(patsubst tests/suite_%.c,%,$(subst -like,,$(1)))))
TEST_SRC := $(filter-out $(CL_TESTS) $(SERVER_TESTS),$(wildcard tests/suite_*.c))
ALL_SUITES := $(sort $(foreach file,$(TEST_SRC),$(call suite_of,$(file))))
# SUITES="sched tune" selects some.
SUITES ?= $(ALL_SUITES)
SUITE_BINS = $(addprefix $(BUILD)/suite_,$(filter $(ALL_SUITES),$(SUITES)))
SUPPORT_SRC := $(filter-out tests/support_sanitizer.c,$(wildcard tests/support*.c))
SANITIZER_OBJ := $(OBJ)/tests/support_sanitizer.o

$(BUILD)/libsupport.a: $(call obj,$(SUPPORT_SRC))
	$(archive)
define suite_rule
$(1)_TESTS := $$(foreach file,$$(TEST_SRC),$$(if $$(filter $(1),$$(call suite_of,$$(file))),$$(file)))
$$(BUILD)/suite_$(1): $$(call obj,$$($(1)_TESTS) $$($(1)_MORE)) $$(SANITIZER_OBJ) \
    $$(BUILD)/libsupport.a \
    $$(call archives,$$(or $$($(1)_ARCH),report $$(llama_ARCH)))
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -rdynamic -o $$@ $$^ -lcunit $$($(1)_SUITE_LIBS) $$(LIBS)
$$(BUILD)/suite_$(1): | $$(PLUGIN) $$(FAKE_NVML)
.PHONY: suite_$(1)
suite_$(1): $$(BUILD)/suite_$(1)
endef
$(foreach suite,$(ALL_SUITES),$(eval $(call suite_rule,$(suite))))

# Seeds of the fuzz targets, and model files for tests/tools.sh.
$(BUILD)/make-seeds: $(call obj,tests/fuzz/make_seeds.c) $(SANITIZER_OBJ) $(BUILD)/libsupport.a \
    $(call archives,$(formats_ARCH))
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lcunit $(LIBS)
$(BUILD)/make-models: $(call obj,tests/make_models.c) $(SANITIZER_OBJ) $(BUILD)/libsupport.a \
    $(call archives,$(formats_ARCH))
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ -lcunit $(LIBS)

# Logits of ranks, for tests/cluster.sh.
$(BUILD)/cluster-ranks: $(call obj,tests/cluster_ranks.c) $(BUILD)/libsupport.a $(LLAMA) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(LINK) -rdynamic -o $@ $^ $(LIBS)

# What stands in for test data that a clone does not have (CONTRIBUTING.md, "Tests"): the files of
# tests/stand-ins, and those that are too large to be kept. Runs here, so it is built for here.
STAND_INS := $(BUILD)/stand-ins/ready
$(BUILD)/make-stand-ins: $(wildcard tests/make_stand_ins*.[ch]) $(BUILD)/flags.stamp
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -std=c11 -O1 -ffp-contract=off $(WARN) -I. -o $@ $(filter %.c,$^) -lm
$(STAND_INS): $(BUILD)/make-stand-ins $(shell find tests/stand-ins -type f 2>/dev/null)
	$(call say,MAKE,$(@D))
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/quants $(@D)/tables && cp -R tests/stand-ins/. $(@D)
	$(Q)cp bench-data/macbook-pro-2018/table.txt $(@D)/tables/macbook-pro-2018-7B-Q4_0.txt
	$(Q)$(BUILD)/make-stand-ins $(@D) && touch $@
$(addprefix $(BUILD)/suite_,$(ALL_SUITES)) $(BUILD)/make-models: | $(STAND_INS)

.PHONY: suites check-suites
suites: $(SUITE_BINS)
check-suites: suites ## build and run all test suites of one variant (BUILD=, CC=, SAN=)
	@bash tests/process.sh $(SUITE_BINS)

# ---- fuzzing: tests/fuzz/fuzz_X.c, linked with every room ------------------------------------------
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(filter-out $(SERVER_TESTS),$(wildcard tests/fuzz/fuzz_*.c)))
define fuzz_rule
$$(BUILD)/fuzz_$(1): $$(OBJ)/tests/fuzz/fuzz_$(1).o $$(SANITIZER_OBJ) \
    $$(call archives,$(if $(findstring server,$(1)),server) report $$(llama_ARCH))
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -fsanitize=fuzzer -o $$@ $$^ $$(LIBS)
$$(BUILD)/replay_$(1): $$(OBJ)/tests/fuzz/fuzz_$(1).o $$(OBJ)/tests/fuzz/replay_files.o \
    $$(SANITIZER_OBJ) $$(call archives,$(if $(findstring server,$(1)),server) report $$(llama_ARCH))
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -o $$@ $$^ $$(LIBS)
endef
$(foreach target,$(FUZZ),$(eval $(call fuzz_rule,$(target))))

include mk/shim.mk
include mk/cuda_pack.mk
include mk/fake_cuda.mk
include mk/develop.mk
include mk/mingw.mk
include mk/install.mk

.PHONY: help clean
clean: ## remove everything that was built
	rm -rf build

help: ## list the targets
	@echo "make [TARGET] [V=1] [BUILD=build/NAME] [CC=...] [CFLAGS=...] [SAN=address,undefined]"
	@grep -hE '^[a-z-]+:.*## ' Makefile mk/*.mk | sort | \
	    awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
