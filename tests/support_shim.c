/* SPDX-License-Identifier: MIT
 * Loading and judging the OpenCL shim. Start at support_shim.h. */
#include "tests/support_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/support.h"

static struct tnd_shim shim;
static char shim_path[512];

const char *tnd_test_shim_path(void)
{
    if (shim_path[0] == '\0') {
        snprintf(shim_path, sizeof(shim_path), "%s", tnd_test_beside("libOpenCL-shim.so"));
    }
    return shim_path;
}

const char *tnd_test_shim_clblast(void)
{
    /* Stays loaded: the shim uses it. */
    return dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL) != NULL ? tnd_test_shim_path() : "off";
}

static bool load_function(void *library, const char *name, void *out_pointer)
{
    void *address = dlsym(library, name);
    memcpy(out_pointer, &address, sizeof(address));
    return address != NULL;
}

/* Whether the real OpenCL has any platform; asked past the shim's plans. */
static bool has_platform(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    int32_t (*platforms)(uint32_t, void *, uint32_t *) = NULL;
    uint32_t n = 0;
    return library != NULL && load_function(library, "clGetPlatformIDs", &platforms) &&
           platforms(0, NULL, &n) == 0 && n > 0;
}

const struct tnd_shim *tnd_test_shim(void)
{
    if (shim.begin != NULL) {
        return &shim;
    }
    void *library = dlopen(tnd_test_shim_path(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        tnd_skip("optional part not built: OpenCL shim (%s)", dlerror());
        return NULL;
    }
    if (!has_platform()) {
        tnd_skip("opencl: no platform");
        return NULL;
    }
    struct tnd_shim loaded;
    if (!load_function(library, "tnd_shim_begin", &loaded.begin) ||
        !load_function(library, "tnd_shim_report", &loaded.report) ||
        !load_function(library, "tnd_shim_forget", &loaded.forget)) {
        CU_FAIL("the OpenCL shim lacks its control functions");
        return NULL;
    }
    shim = loaded;
    return &shim;
}

bool tnd_test_shim_clean(const char *what)
{
    struct tnd_shim_report report;
    shim.report(&report);
    int64_t n_live = 0;
    for (int i = 0; i < TND_SHIM_KIND_COUNT; i++) {
        n_live += report.n_live[i];
    }
    bool is_clean = n_live == 0 && report.n_stray == 0 && report.n_extra_held == 0;
    if (!is_clean) {
        printf("\n    %s: %lld objects live (%s), %lld stray releases, %lld references held\n",
               what, (long long)n_live, report.leaks, (long long)report.n_stray,
               (long long)report.n_extra_held);
    }
    CU_ASSERT_TRUE(is_clean);
    shim.forget();
    return is_clean;
}

int64_t tnd_test_walk_next(const struct tnd_test_walk *walk, int64_t n)
{
    int64_t stride = tnd_effort() < 3 ? walk->stride : walk->long_stride;
    if (n < walk->dense || stride <= 1) {
        return n + 1;
    }
    int64_t offset = (int64_t)(walk->seed % (uint64_t)stride);
    return n == walk->dense ? n + 1 + offset : n + stride;
}

int32_t tnd_test_shim_code(int64_t n)
{
    /* CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
     * CL_INVALID_VALUE (cl.h) */
    static const int32_t codes[] = {-5, -4, -6, -30};
    return codes[n % 4];
}
