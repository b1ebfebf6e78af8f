/* SPDX-License-Identifier: MIT
 * Reader of what stands in a JSON table beside the times: checks, slow-downs, sweeps. The rest is
 * read by table_json.c. */
#include "table/table_json_evidence.h"

#ifdef TND_HAVE_CJSON

#include <inttypes.h>
#include <stdio.h>

#include "table/table_cells.h"

static const char error_range[] = "an error from 0 to 1e12";

static enum tandem_status read_check(struct tnd_json_reader *r, const cJSON *object,
                                     struct tandem_table *out)
{
    struct tnd_check check = {0};
    char type[16] = "";
    TND_TRY(tnd_json_string(r, object, "profile", true, check.profile, sizeof(check.profile)));
    TND_TRY(tnd_json_string(r, object, "type", true, type, sizeof(type)));
    if (!tandem_type_from_name(type, &check.type)) {
        return tnd_json_wrong(r, "type", "a weight type such as q4_0",
                              tnd_json_get(object, "type"));
    }
    TND_TRY(tnd_json_int(r, object, "n", true, 1, TND_TABLE_MAX_EXTENT, &check.n));
    TND_TRY(tnd_json_int(r, object, "k", true, 1, TND_TABLE_MAX_EXTENT, &check.k));
    TND_TRY(tnd_json_int(r, object, "m", true, 1, TND_TABLE_MAX_EXTENT, &check.m));
    TND_TRY(tnd_json_real(r, object, "nmse", 0, TND_CHECK_NOT_FINITE, error_range, &check.nmse));
    TND_TRY(tnd_json_real(r, object, "bound", 0, TND_CHECK_NOT_FINITE, error_range, &check.bound));
    TND_TRY(tnd_json_int(r, object, "when", false, 0, (int64_t)1 << 53, &check.when));
    return tnd_json_refused(r, tnd_table_add_check(out, &check));
}

static enum tandem_status read_slowdown(struct tnd_json_reader *r, const cJSON *object,
                                        struct tandem_table *out)
{
    struct tnd_slowdown slowdown = {.factor = 1};
    int64_t count = 0;
    TND_TRY(
        tnd_json_string(r, object, "backend", true, slowdown.backend, sizeof(slowdown.backend)));
    TND_TRY(tnd_json_string(r, object, "beside", true, slowdown.beside, sizeof(slowdown.beside)));
    TND_TRY(tnd_json_real(r, object, "factor", 1, TND_TABLE_MAX_FACTOR, "a factor from 1 to 1000",
                          &slowdown.factor));
    TND_TRY(tnd_json_int(r, object, "count", false, 0, UINT32_MAX, &count));
    TND_TRY(tnd_json_int(r, object, "when", false, 0, (int64_t)1 << 53, &slowdown.when));
    slowdown.count = (uint32_t)count;
    return tnd_json_refused(r, tnd_table_add_slowdown(out, &slowdown));
}

static enum tandem_status read_reference(struct tnd_json_reader *r, const cJSON *object,
                                         const char *key, struct tnd_reference_time *out)
{
    const cJSON *time = tnd_json_get(object, key);
    if (!cJSON_IsObject(time)) {
        return tnd_json_wrong(r, key, "an object", time);
    }
    TND_TRY(tnd_json_time(r, time, "fastest_us", true, &out->fastest_us));
    return tnd_json_time(r, time, "mean_us", true, &out->mean_us);
}

static enum tandem_status read_sweep(struct tnd_json_reader *r, const cJSON *object,
                                     struct tandem_table *out)
{
    struct tnd_sweep_state sweep = {0};
    TND_TRY(tnd_json_int(r, object, "when", true, 0, (int64_t)1 << 53, &sweep.when));
    TND_TRY(read_reference(r, object, "before", &sweep.before));
    TND_TRY(read_reference(r, object, "between", &sweep.between));
    TND_TRY(read_reference(r, object, "after", &sweep.after));
    return tnd_json_refused(r, tnd_table_add_sweep(out, &sweep));
}

enum tandem_status tnd_table_read_evidence(struct tnd_json_reader *r, const cJSON *root,
                                           struct tandem_table *out)
{
    static const struct {
        const char *name;
        enum tandem_status (*read)(struct tnd_json_reader *r, const cJSON *object,
                                   struct tandem_table *out);
    } lists[] = {{"checks", read_check}, {"slowdowns", read_slowdown}, {"sweeps", read_sweep}};
    for (int i = 0; i < 3; i++) {
        const cJSON *list = NULL;
        const cJSON *object;
        int index = 0;
        if (tnd_json_get(root, lists[i].name) == NULL) {
            continue; /* files of versions that knew none */
        }
        TND_TRY(tnd_json_array(r, root, lists[i].name, &list));
        cJSON_ArrayForEach(object, list)
        {
            snprintf(r->path, sizeof(r->path), "%s[%d].", lists[i].name, index++);
            TND_TRY(lists[i].read(r, object, out));
        }
        r->path[0] = '\0';
    }
    return TANDEM_OK;
}

#endif
