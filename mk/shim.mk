# SPDX-License-Identifier: MIT
# The OpenCL library that fails on purpose (tests/shim); suites load it from their own folder.

SHIM := $(BUILD)/libOpenCL-shim.so

$(SHIM): $(call obj,$(wildcard tests/shim/*.c))
	$(call say,LD,$@)
	$(Q)$(LINK) -shared $(NO_UNDEFINED) -o $@ $^ -ldl -pthread

# In builds without OpenCL the suites skip what needs the library.
ifneq ($(OPENCL),)
$(BUILD)/suite_opencl $(BUILD)/suite_faults: | $(SHIM)
endif

# Lets calls of libc fail in the tools (tests/faults.sh). It stands in libc's place: no FORTIFY, nothing
# inlined, and a compiler's own idea of malloc left out.
FAULTS := $(BUILD)/libfaults.so
.PHONY: faults
faults: $(FAULTS) tools $(BUILD)/make-models
$(FAULTS): tests/faults/fault_preload.c $(BUILD)/flags.stamp
	$(call say,LD,$@)
	$(Q)$(CC) -std=c11 -O1 -g $(WARN) -D_GNU_SOURCE -I. -fPIC -fno-builtin -shared $(NO_UNDEFINED) \
	    -o $@ $< -ldl -pthread
