/* SPDX-License-Identifier: MIT
 * Where the tile numbers of a device are kept: beside its cached programs, in a file named by a
 * hash of platform, device and driver. What is found there is used only if it is whole and fits. */
#include <errno.h>

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_tune.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "base/hash.h"

static bool tune_path(const struct tnd_gpu_device *device, struct tnd_text *out)
{
    const char *folder = tnd_gpu_programs_folder(device);
    if (folder == NULL) {
        return false;
    }
    uint64_t key = tnd_hash_string(device->info.platform, 0);
    key = tnd_hash_string(device->info.name, key);
    key = tnd_hash_string(device->info.driver, key);
    tnd_text_printf(out, "%s/%016llx.tune", folder, (unsigned long long)key);
    return !out->failed;
}

enum { LIMIT_BYTES = 65536 };

/* What stands there and cannot be read took somebody minutes of measuring: it is kept. */
static enum tandem_status keep_unread(const char *name, struct tandem_error *error)
{
    struct tnd_file file = {0};
    struct tnd_gpu_tiles tiles;
    struct tandem_error why = {0};
    char backup[4096];
    enum tandem_status status = tnd_file_read(name, LIMIT_BYTES, &file, &why);
    if (status == TANDEM_E_FILE && why.got == ENOENT) {
        return TANDEM_OK;
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_tiles_read(file.data, file.bytes, name, &tiles, NULL) == TANDEM_OK
                     ? TANDEM_OK
                     : tnd_file_back_up(name, "bad", backup, sizeof(backup), &why);
        tnd_file_close(&file);
    }
    return status == TANDEM_OK ? TANDEM_OK
                               : tnd_error_set(error, status, name, why.got, why.limit,
                                               "%.180s; the file is not replaced", why.text);
}

enum tandem_status tnd_gpu_tiles_save(const struct tnd_gpu_device *device,
                                      struct tandem_error *error)
{
    struct tnd_text path = TND_TEXT_INIT;
    struct tnd_text text = TND_TEXT_INIT;
    enum tandem_status status = TANDEM_OK;
    if (tune_path(device, &path)) {
        tnd_gpu_tiles_print(&device->matmul->tiles, device->name, &text);
        const char *name = tnd_text_string(&path);
        status = tnd_file_make_folders(name, error);
        status = status == TANDEM_OK ? keep_unread(name, error) : status;
        if (status == TANDEM_OK) {
            status = text.failed ? tnd_error_set(error, TANDEM_E_MEMORY, name, 0, 0,
                                                 "tuning of %s: no memory", device->name)
                                 : tnd_file_write_atomic(name, text.bytes, text.n, error);
        }
    }
    tnd_text_fini(&path);
    tnd_text_fini(&text);
    return status;
}

bool tnd_gpu_tiles_load(struct tnd_gpu_device *device, struct tnd_gpu_tiles *out)
{
    struct tnd_text path = TND_TEXT_INIT;
    struct tnd_file file = {0};
    struct tnd_gpu_tiles tiles;
    bool is_good = false;
    if (tune_path(device, &path) &&
        tnd_file_read(tnd_text_string(&path), LIMIT_BYTES, &file, NULL) == TANDEM_OK) {
        is_good = tnd_gpu_tiles_read(file.data, file.bytes, tnd_text_string(&path), &tiles, NULL) ==
                      TANDEM_OK &&
                  tnd_gpu_tiles_fit(&device->caps, &tiles);
        tnd_file_close(&file);
    }
    tnd_text_fini(&path);
    if (is_good) {
        *out = tiles;
    }
    return is_good;
}
