# SPDX-License-Identifier: MIT
# The OpenCL backend: whether it is built, and the C that tools/kernel-pack makes of its kernels.
# NO_OPENCL=1 leaves it out although the headers are there. Nothing of OpenCL is linked: the library
# is found when the program runs.

OPENCL := $(if $(NO_OPENCL),,$(or $(call have,OpenCL-Headers),$(call have,OpenCL)))
CL_GEN := $(BUILD)/gen/backends/gpu
kernels_SRC := $(sort $(wildcard backends/opencl/kernels/*.cl))
CL_INCLUDED := $(wildcard backends/opencl/kernels/*.clh)

# kernel-pack runs on the machine that builds, whatever CC builds for.
HOST_CC ?= $(if $(findstring $(shell uname -m),$(MACHINE)),$(CC),cc)
HOST_ZLIB := $(if $(findstring $(shell uname -m),$(MACHINE)),$(ZLIB))

ifneq ($(OPENCL),)
backends_SRC := $(filter-out backends/opencl/opencl_absent.c,$(backends_SRC)) \
    backends/gpu/gpu_kernels.c
CL_HEADER := $(CL_GEN)/gpu_kernels.h
CL_TESTS :=
CL_FUZZ :=
else
backends_SRC := $(filter-out backends/opencl/% backends/gpu/%,$(backends_SRC)) backends/opencl/opencl_absent.c \
    backends/gpu/gpu_cache.c backends/gpu/gpu_profiles.c
CL_HEADER :=
CL_TESTS := tests/suite_opencl%
CL_FUZZ := tests/fuzz/fuzz_gpu_tiles.c
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
CL_USERS := backends/gpu backends/opencl tune measure tests bench tools
$(foreach users,$(CL_USERS),$(eval $(OBJ)/$(users)/%.o: private TND_CPPFLAGS += -I$(BUILD)/gen))
$(OBJ)/backends/gpu/gpu_kernels.o: $(CL_GEN)/gpu_kernels.c $(BUILD)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

.PHONY: kernels
kernels: $(CL_HEADER) ## make C of the OpenCL kernels (in BUILD/gen)
