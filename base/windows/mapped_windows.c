/* SPDX-License-Identifier: MIT
 * In place of base/mapped.c: on Windows files are read instead of mapped (posix.c), so later
 * changes of a file do not matter. */
#include "base/tnd_mapped.h"

int64_t tnd_mapped_changed_ns(const struct stat *info)
{
    return (int64_t)info->st_mtime * 1000000000;
}

void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info)
{
    (void)data;
    (void)bytes;
    (void)path;
    (void)info;
}

void tnd_mapped_leave(const void *data)
{
    (void)data;
}

bool tnd_mapped_set_present(const void *data, const struct tnd_spans *present)
{
    (void)data;
    (void)present;
    return false;
}

bool tnd_mapped_find(const void *data, size_t bytes, struct tnd_mapped_file *out)
{
    (void)data;
    (void)bytes;
    (void)out;
    return false;
}

bool tnd_mapped_has_faults(void)
{
    return false;
}

enum tandem_status tandem_mapped_check(const void *data, size_t bytes, struct tandem_error *error)
{
    (void)data;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error)
{
    (void)data;
    (void)error;
    return TANDEM_OK;
}

enum tandem_status tandem_guard_mapped_files(struct tandem_error *error)
{
    (void)error;
    return TANDEM_OK;
}

enum tandem_status tandem_mapped_files_status(struct tandem_error *error)
{
    (void)error;
    return TANDEM_OK;
}
