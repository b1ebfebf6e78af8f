/* SPDX-License-Identifier: MIT
 * Building one program. The cache is a convenience: whatever is wrong with it, the program is built
 * from source. */
#include "backends/gpu/gpu_binary.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/gpu/gpu_cache.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

enum { MAX_BINARY_BYTES = 256 << 20 };

/* ---- what the compiler says ---- */

/* The log's first line that speaks of an error, or its first one. */
static void first_complaint(const char *log, char *out, size_t bytes)
{
    const char *at = strstr(log, "error");
    while (at != NULL && at > log && at[-1] != '\n') {
        at--;
    }
    at = at != NULL ? at : log;
    at += strspn(at, " \t\r\n");
    snprintf(out, bytes, "%.*s", (int)strcspn(at, "\r\n"), at);
}

static enum tandem_status refuse_build(const struct tnd_gpu_device *device,
                                       const struct tnd_gpu_build *build, cl_program program,
                                       cl_int code, struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    char complaint[128] = "no log";
    size_t n = 0;
    if (code != CL_BUILD_PROGRAM_FAILURE) {
        return tnd_gpu_check(device, "clBuildProgram", code, error);
    }
    if (cl->GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) ==
            CL_SUCCESS &&
        n > 0 && n < MAX_BINARY_BYTES) {
        char *log = tnd_calloc(1, n + 1);
        if (log != NULL && cl->GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, n,
                                                   log, NULL) == CL_SUCCESS) {
            first_complaint(log, complaint, sizeof(complaint));
        }
        tnd_free(log);
    }
    return tnd_error_set(error, TANDEM_E_DEVICE, device->name, code, 0,
                         "opencl device '%.40s': clBuildProgram failed for %s.cl: %s", device->name,
                         build->name, complaint);
}

static enum tandem_status build_from_source(const struct tnd_gpu_device *device,
                                            const struct tnd_gpu_build *build,
                                            cl_program *out_program, struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    const char *texts[] = {build->dialect, build->text};
    cl_int code = CL_SUCCESS;
    cl_program program = cl->CreateProgramWithSource(device->context, 2, texts, NULL, &code);
    TND_TRY(tnd_gpu_check(device, "clCreateProgramWithSource", code, error));
    code = cl->BuildProgram(program, 1, &device->id, build->options, NULL, NULL);
    if (code != CL_SUCCESS) {
        enum tandem_status status = refuse_build(device, build, program, code, error);
        cl->ReleaseProgram(program);
        return status;
    }
    *out_program = program;
    return TANDEM_OK;
}

/* ---- the cache ---- */

void tnd_gpu_build_path(const struct tnd_gpu_device *device, const struct tnd_gpu_build *build,
                        struct tnd_text *out_key, struct tnd_text *out_path)
{
    const struct tandem_device_info *info = &device->info;
    tnd_text_printf(out_key, "%s\n%s\n%s\n%s\n%s\n%s\n%016llx\n%s\n", device->platform_version,
                    info->vendor, info->name, info->version, info->driver, build->name,
                    (unsigned long long)build->hash, build->options);
    tnd_text_printf(out_path, "%s/%s-%016llx.bin", build->folder, build->name,
                    (unsigned long long)tnd_hash_string(tnd_text_string(out_key), 0));
}

/* NULL when there is no usable file. */
static cl_program load(const struct tnd_gpu_device *device, const struct tnd_gpu_build *build,
                       const char *key, const char *path)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    struct tnd_file file = {0};
    const void *payload = NULL;
    size_t n = 0;
    if (tnd_file_read(path, MAX_BINARY_BYTES, &file, NULL) != TANDEM_OK) {
        return NULL;
    }
    cl_program program = NULL;
    if (tnd_gpu_cache_read(file.data, file.bytes, key, &payload, &n, NULL) == TANDEM_OK && n > 0) {
        const unsigned char *binary = payload;
        cl_int code = CL_SUCCESS;
        cl_int its_code = CL_SUCCESS;
        program = cl->CreateProgramWithBinary(device->context, 1, &device->id, &n, &binary,
                                              &its_code, &code);
        if (code != CL_SUCCESS) {
            program = NULL;
        } else if (its_code != CL_SUCCESS ||
                   cl->BuildProgram(program, 1, &device->id, build->options, NULL, NULL) !=
                       CL_SUCCESS) {
            cl->ReleaseProgram(program);
            program = NULL;
        }
    }
    tnd_file_close(&file);
    if (program != NULL) {
        /* What is used stays longest, see tnd_gpu_trim. */
        (void)utimensat(AT_FDCWD, path, NULL, 0);
    }
    return program;
}

static void save(const struct tnd_gpu_device *device, cl_program program, const char *key,
                 const char *path)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    size_t n = 0;
    if (cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(n), &n, NULL) != CL_SUCCESS ||
        n == 0 || n > MAX_BINARY_BYTES) {
        return;
    }
    unsigned char *binary = tnd_alloc(n);
    struct tnd_text bytes = TND_TEXT_INIT;
    if (binary != NULL && cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary,
                                             NULL) == CL_SUCCESS) {
        tnd_gpu_cache_write(key, binary, n, &bytes);
        if (!bytes.failed && tnd_file_make_folders(path, NULL) == TANDEM_OK) {
            /* Without it the next start compiles again; that is all. */
            (void)tnd_file_write_atomic(path, bytes.bytes, bytes.n, NULL);
        }
    }
    tnd_text_fini(&bytes);
    tnd_free(binary);
}

enum tandem_status tnd_gpu_build_program(const struct tnd_gpu_device *device,
                                         const struct tnd_gpu_build *build, cl_program *out_program,
                                         bool *out_from_cache, struct tandem_error *error)
{
    struct tnd_text key = TND_TEXT_INIT;
    struct tnd_text path = TND_TEXT_INIT;
    bool has_cache = build->folder != NULL;
    if (has_cache) {
        tnd_gpu_build_path(device, build, &key, &path);
        has_cache = !key.failed && !path.failed;
    }
    cl_program program = NULL;
    if (has_cache) {
        program = load(device, build, tnd_text_string(&key), tnd_text_string(&path));
    }
    bool is_loaded = program != NULL;
    enum tandem_status status =
        is_loaded ? TANDEM_OK : build_from_source(device, build, &program, error);
    if (status == TANDEM_OK) {
        if (has_cache && !is_loaded) {
            save(device, program, tnd_text_string(&key), tnd_text_string(&path));
        }
        *out_program = program;
        *out_from_cache = is_loaded;
    }
    tnd_text_fini(&key);
    tnd_text_fini(&path);
    return status;
}
