# SPDX-License-Identifier: MIT
# The OpenCL library that fails on purpose (tests/shim); suite_opencl loads it from its own folder.

SHIM := $(BUILD)/libOpenCL-shim.so

$(SHIM): $(call obj,$(wildcard tests/shim/*.c))
	$(call say,LD,$@)
	$(Q)$(LINK) -shared $(NO_UNDEFINED) -o $@ $^ -ldl -pthread

# Where OpenCL's headers are missing, the suite skips what needs the library.
ifneq ($(call have,OpenCL-Headers),)
$(BUILD)/suite_opencl: | $(SHIM)
endif
