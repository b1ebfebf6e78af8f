# SPDX-License-Identifier: MIT
# The pack of prebuilt kernels for CUDA without NVRTC (docs/cuda.md), by a clang that has the target
# nvptx64. Nothing of CUDA is needed. CLANG= names another one, NO_PTX=1 leaves the pack out. It takes
# half a minute of two cores, so make install makes it, where users are, and plain make does not.

CLANG ?= clang
# For the oldest GPUs that we use, and drivers from CUDA 10 on: each driver compiles for its own GPU.
PTX_FLAGS := -x cuda --cuda-device-only -nocudainc -nocudalib --no-cuda-version-check \
    --cuda-gpu-arch=sm_60 -Xclang -target-feature -Xclang +ptx63 -include __clang_cuda_builtin_vars.h \
    -std=c++17 -O3 -w -S
# A clang may have the target and yet not that GPU, that PTX or the header: it is asked to compile.
PTX := $(if $(NO_PTX)$(SAN)$(findstring mingw,$(MACHINE)),,$(if $(IS_NATIVE),$(shell \
    echo '__attribute__((global)) void f(float *x) { x[threadIdx.x] = 1; }' | \
    $(CLANG) $(PTX_FLAGS) -o /dev/null - >/dev/null 2>&1 && echo nvptx64)))
PTX_PACK := $(BIN)/tandem-cuda-kernels.pack
PTX_GEN := $(BUILD)/gen/ptx

.PHONY: ptx
ptx: $(PTX_PACK) ## make kernels for CUDA without NVRTC, by clang (part of install where clang is found)

$(BUILD)/cuda-pack: $(call obj,tools/cuda-pack/main.c) $(STATIC)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Texts have the names of their contents: only those that changed are compiled.
$(PTX_PACK): $(BUILD)/cuda-pack mk/cuda_pack.mk
	$(call say,PTX,$@)
	@mkdir -p $(PTX_GEN) && rm -f $(PTX_GEN)/*.cu
	$(Q)$(BUILD)/cuda-pack texts $(PTX_GEN)
	$(Q)cd $(PTX_GEN) && for text in *.cu; do \
	    [ $${text%.cu}.s -nt $(CURDIR)/mk/cuda_pack.mk ] || echo $${text%.cu}; done | \
	    xargs -r -P $$(nproc) -I{} $(CLANG) $(PTX_FLAGS) -o {}.s {}.cu
	$(Q)$(BUILD)/cuda-pack join $(PTX_GEN) $@ $(if $(V),,> $(PTX_GEN)/log)
