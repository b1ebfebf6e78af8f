# SPDX-License-Identifier: MIT
# The rooms up to tune/ for Windows, by the MinGW cross compiler: base/windows stands in for what the
# system lacks. `make mingw` builds their suites, `make check-mingw` runs them under wine. What works and
# what is missing: docs/platforms.md.

MINGW_CC := x86_64-w64-mingw32-gcc-posix
MINGW_PARTS := HWLOC CJSON PCRE2 UTF8PROC LIBEDIT ZLIB OPENCL SERVER

.PHONY: mingw check-mingw
mingw: ## build the rooms up to tune/ and their suites for Windows
	@$(MAKE) --no-print-directory BUILD=build/mingw CC=$(MINGW_CC) CFLAGS='-O1 -g0' HARDENING= HARDENING_LD= \
	    ASSERT=1 WERROR=1 $(MINGW_PARTS:%=NO_%=1) mingw-suites
check-mingw: ## run the suites of `make mingw` under wine
	@bash tools/dev/check_mingw.sh

ifneq ($(findstring mingw,$(MACHINE)),)
# (Formats are those of C99, which GCC does not know there by the attribute "printf". Vectors of 32 bytes
# may lie unaligned on the stack, GCC bug 54412: the assembler writes moves that allow it.)
TND_CPPFLAGS += -D__USE_MINGW_ANSI_STDIO=1 -I$(BUILD)/include -include base/windows/tnd_windows.h \
    -Wno-format -Wno-format-extra-args -Wa,-muse-unaligned-vector-move
$(OBJ)/base/alloc.o: private TND_CPPFLAGS += -Dfree=tnd_windows_free
$(OBJ)/tests/suite_ggml_run.o $(OBJ)/tests/suite_sched_random.o: private TND_CPPFLAGS += \
    -Dfree=tnd_windows_free -Daligned_alloc=tnd_windows_aligned
$(OBJ)/tests/%.o: private TND_CPPFLAGS += -include tests/windows/posix_of_tests.h \
    -Wno-unused-function

# Headers that Windows does not have: what is needed of them is included already. CUnit's: our stand-in.
MINGW_HEADERS := $(addprefix $(BUILD)/include/,dlfcn.h $(addprefix sys/,auxv.h file.h mman.h prctl.h random.h \
    resource.h syscall.h socket.h un.h wait.h) CUnit/CUnit.h CUnit/Basic.h)
$(MINGW_HEADERS):
	@mkdir -p $(@D)
	@echo '$(if $(findstring CUnit,$@),#include "tests/windows/tnd_cunit.h")' > $@

MINGW_ROOMS := base ggml-like backends sched table tune
MINGW_SUITES := base ggml backends sched tune
MINGW_OBJ := $(call obj,$(filter-out base/mapped.c,$(foreach room,$(MINGW_ROOMS),$($(room)_SRC))) \
    $(wildcard base/windows/*.c tests/windows/*.c) $(SUPPORT_SRC))
$(MINGW_OBJ): | $(MINGW_HEADERS)
.PHONY: mingw-suites
mingw-suites: $(MINGW_SUITES:%=$(BUILD)/suite_%.exe)
define mingw_rule
$$(call obj,$$($(1)_TESTS)): | $$(MINGW_HEADERS)
$$(BUILD)/suite_$(1).exe: $$(call obj,$$($(1)_TESTS) $$($(1)_MORE)) $$(BUILD)/libmingw.a
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -static -o $$@ $$^ -ladvapi32 -lm
endef
$(foreach suite,$(MINGW_SUITES),$(eval $(call mingw_rule,$(suite))))
$(BUILD)/libmingw.a: $(MINGW_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && x86_64-w64-mingw32-ar crs $@ $(filter %.o,$^)
endif
