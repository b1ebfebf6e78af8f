/* SPDX-License-Identifier: MIT
 * Builds one program. The cache is optional: if anything is wrong with it, the program is built
 * from source. */
#include "backends/gpu/gpu_binary.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/gpu/gpu_cache.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/float_mode.h"
#include "base/hash.h"

enum { MAX_BINARY_BYTES = 256 << 20 };

void tnd_gpu_build_path(const struct tnd_gpu_device *device, const struct tnd_gpu_build *build,
                        struct tnd_text *out_key, struct tnd_text *out_path)
{
    const struct tandem_device_info *info = &device->info;
    tnd_text_printf(out_key, "%s\n%s\n%s\n%s\n%s\n%s\n%016llx\n%s\n", device->platform_version,
                    info->vendor, info->name, info->version, info->driver, build->text.name,
                    (unsigned long long)build->hash, build->text.options);
    tnd_text_printf(out_path, "%s/%s-%016llx.bin", build->folder, build->text.name,
                    (unsigned long long)tnd_hash_string(tnd_text_string(out_key), 0));
}

/* NULL: there is no usable file. */
static struct tnd_gpu_module *load(const struct tnd_gpu_device *device,
                                   const struct tnd_gpu_build *build, const char *key,
                                   const char *path)
{
    struct tnd_file file = {0};
    const void *payload = NULL;
    size_t n = 0;
    if (tnd_file_read(path, MAX_BINARY_BYTES, &file, NULL) != TANDEM_OK) {
        return NULL;
    }
    struct tnd_gpu_module *module = NULL;
    if (tnd_gpu_cache_read(file.data, file.bytes, key, &payload, &n, NULL) == TANDEM_OK && n > 0) {
        module = device->driver->load(device->context, payload, n, build->text.options);
    }
    tnd_file_close(&file);
    if (module != NULL) {
        /* recently used files are kept longest, see tnd_gpu_trim */
        (void)utimensat(AT_FDCWD, path, NULL, 0);
    }
    return module;
}

static void save(const struct tnd_gpu_device *device, struct tnd_gpu_module *module,
                 const char *key, const char *path)
{
    size_t n = 0;
    void *binary = device->driver->module_binary(device->context, module, &n);
    if (binary == NULL) {
        return;
    }
    struct tnd_text bytes = TND_TEXT_INIT;
    tnd_gpu_cache_write(key, binary, n, &bytes);
    if (!bytes.failed && tnd_file_make_folders(path, NULL) == TANDEM_OK) {
        /* if this fails, the next start compiles again */
        (void)tnd_file_write_atomic(path, bytes.bytes, bytes.n, NULL);
    }
    tnd_text_fini(&bytes);
    tnd_free(binary);
}

enum tandem_status tnd_gpu_build_program(const struct tnd_gpu_device *device,
                                         const struct tnd_gpu_build *build,
                                         struct tnd_gpu_module **out_module, bool *out_from_cache,
                                         struct tandem_error *error)
{
    struct tnd_text key = TND_TEXT_INIT;
    struct tnd_text path = TND_TEXT_INIT;
    bool has_cache = build->folder != NULL;
    if (has_cache) {
        tnd_gpu_build_path(device, build, &key, &path);
        has_cache = !key.failed && !path.failed;
    }
    struct tnd_gpu_module *module = NULL;
    if (has_cache) {
        module = load(device, build, tnd_text_string(&key), tnd_text_string(&path));
    }
    bool is_loaded = module != NULL;
    enum tandem_status status = TANDEM_OK;
    if (!is_loaded) {
        /* threads that compute flush subnormal numbers, but the compiler must keep them in
         * constants */
        const uint64_t mode = tnd_float_mode_keep();
        status = device->driver->compile(device->context, &build->text, &module, error);
        tnd_float_mode_restore(mode);
    }
    if (status == TANDEM_OK) {
        if (has_cache && !is_loaded) {
            save(device, module, tnd_text_string(&key), tnd_text_string(&path));
        }
        *out_module = module;
        *out_from_cache = is_loaded;
    }
    tnd_text_fini(&key);
    tnd_text_fini(&path);
    return status;
}
