# SPDX-License-Identifier: MIT
# The GPU backend: the C that tools/kernel-pack makes of its kernels, and whether its OpenCL driver
# is built. NO_OPENCL=1 leaves that out although the headers are there. Nothing of a driver is linked:
# the libraries are found when the program runs.

OPENCL := $(if $(NO_OPENCL),,$(or $(call have,OpenCL-Headers),$(call have,OpenCL)))
CL_GEN := $(BUILD)/gen/backends/gpu
kernels_SRC := $(sort $(wildcard backends/opencl/kernels/*.cl))
CL_INCLUDED := $(wildcard backends/opencl/kernels/*.clh)

# kernel-pack runs on the machine that builds, whatever CC builds for.
IS_NATIVE := $(if $(findstring mingw,$(MACHINE)),,$(findstring $(shell uname -m),$(MACHINE)))
HOST_CC ?= $(if $(IS_NATIVE),$(CC),cc)
HOST_ZLIB := $(if $(IS_NATIVE),$(ZLIB))

CL_HEADER := $(CL_GEN)/gpu_kernels.h
ifneq ($(OPENCL),)
backends_SRC := $(filter-out backends/opencl/opencl_absent.c,$(backends_SRC))
CL_TESTS :=
else
backends_SRC := $(filter-out backends/opencl/%,$(backends_SRC)) backends/opencl/opencl_absent.c \
    backends/opencl/cl_profiles.c
CL_TESTS := tests/suite_opencl%
endif
ifneq ($(findstring mingw,$(MACHINE)),)
backends_SRC := $(filter-out backends/gpu/% backends/cuda/%,$(backends_SRC)) backends/gpu/gpu_profiles.c
else
backends_SRC += backends/gpu/gpu_kernels.c
endif

$(BUILD)/kernel-pack: $(wildcard tools/kernel-pack/*.[ch]) base/hash.h
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -std=c11 -O1 $(WARN) -D_GNU_SOURCE -I. $(if $(HOST_ZLIB),-DTND_HAVE_ZLIB) \
	    -o $@ $(filter %.c,$^) $(if $(HOST_ZLIB),-lz)

# kernel-pack leaves files alone that would not change; the stamp says when it ran.
$(CL_GEN)/pack.stamp: $(BUILD)/kernel-pack $(kernels_SRC) $(CL_INCLUDED) $(BUILD)/kernels.list
	$(call say,PACK,$(@D))
	@mkdir -p $(@D)
	$(Q)$(BUILD)/kernel-pack $(@D) $(kernels_SRC)
	@touch $@
$(CL_GEN)/gpu_kernels.h $(CL_GEN)/gpu_kernels.c: $(CL_GEN)/pack.stamp ;

# The generated header is included as "backends/gpu/gpu_kernels.h".
CL_USERS := backends/gpu backends/opencl backends/cuda tune measure tests bench tools
$(foreach users,$(CL_USERS),$(eval $(OBJ)/$(users)/%.o: private TND_CPPFLAGS += -I$(BUILD)/gen))
$(OBJ)/backends/gpu/gpu_kernels.o: $(CL_GEN)/gpu_kernels.c $(BUILD)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

.PHONY: kernels
kernels: $(CL_HEADER) ## make C of the OpenCL kernels (in BUILD/gen)
