# SPDX-License-Identifier: MIT
# The libraries that stand in for NVIDIA's (tests/fake_cuda); suites load them from their own folder.
# Programs are compiled with CXX when tests run.

ifeq ($(shell uname -s)$(if $(findstring $(shell uname -m),$(MACHINE)),,-cross),Linux)
FAKE_CUDA := $(addprefix $(BUILD)/fake_cuda/,libcuda.so.1 libcublas.so.12 libnvrtc.so.12)
endif
FAKE_CXX ?= $(or $(CXX),c++)
FAKE_FLAGS = -std=c11 -O1 -g $(WARN) -Wno-missing-prototypes -D_GNU_SOURCE -I. -fPIC -shared \
    -fvisibility=hidden $(NO_UNDEFINED)

.PHONY: fake-cuda
fake-cuda: $(FAKE_CUDA) ## the libraries that stand in for libcuda, cuBLAS and NVRTC in tests
$(BUILD)/fake_cuda/libcuda.so.1: $(wildcard tests/fake_cuda/*.[ch]) $(BUILD)/flags.stamp
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FAKE_FLAGS) -DTND_FAKE_NVRTC='"$(abspath $(@D))/libnvrtc.so.12"' \
	    -DTND_FAKE_TEXTS='"$(abspath $(PTX_GEN))"' -o $@ $(filter-out %/fake_nvrtc.c,$(filter %.c,$^)) -ldl -pthread
$(BUILD)/fake_cuda/libcublas.so.12: $(BUILD)/fake_cuda/libcuda.so.1
	$(call say,LN,$@)
	$(Q)ln -sf $(<F) $@
$(BUILD)/fake_cuda/libnvrtc.so.12: tests/fake_cuda/fake_nvrtc.c $(wildcard tests/fake_cuda/*h) \
    backends/opencl/kernels/vectors.clh $(BUILD)/flags.stamp
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(FAKE_FLAGS) -DTND_FAKE_CXX='"$(FAKE_CXX)"' -DTND_FAKE_SOURCES='"$(CURDIR)"' \
	    -DTND_FAKE_CACHE='"$(abspath $(@D))/programs"' -DTND_FAKE_DIALECT_HASH=$$(cat \
	    $(filter %.clh %/fake_item.h,$^) | cksum | cut -d' ' -f1)u -o $@ $< -pthread
# The same driver without NVRTC, beside a pack of prebuilt kernels.
FAKE_ALONE := $(if $(FAKE_CUDA),$(if $(PTX),$(BUILD)/fake_cuda_alone/libcuda.so.1))
$(BUILD)/fake_cuda_alone/libcuda.so.1: $(FAKE_CUDA) $(PTX_PACK)
	$(call say,LN,$@)
	@mkdir -p $(@D)
	$(Q)ln -sf ../fake_cuda/$(@F) $@ && ln -f $(PTX_PACK) $(@D)/
$(BUILD)/suite_cuda: | $(FAKE_CUDA)

# The suite of the GPU backend once more, on the stand-ins.
ifneq ($(OPENCL)$(FAKE_CUDA),$(OPENCL))
$(BUILD)/suite_opencl-cuda: $(BUILD)/suite_opencl $(FAKE_CUDA)
	$(call say,LN,$@)
	$(Q)ln -f $< $@
$(BUILD)/suite_opencl-ptx: $(BUILD)/suite_opencl $(FAKE_ALONE)
	$(call say,LN,$@)
	$(Q)ln -f $< $@
SUITE_BINS += $(if $(and $(OPENCL),$(filter opencl,$(SUITES))),$(BUILD)/suite_opencl-cuda \
    $(if $(FAKE_ALONE),$(BUILD)/suite_opencl-ptx))
suites: $(filter %-cuda %-ptx,$(SUITE_BINS))
endif
