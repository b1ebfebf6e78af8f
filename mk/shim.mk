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
