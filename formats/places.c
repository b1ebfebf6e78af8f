/* SPDX-License-Identifier: MIT
 * The places of a file's tensors, sorted to find those that overlap. */
#include "formats/places.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vector.h"
#include "formats/cursor.h"

enum tandem_status tnd_places_add(struct tnd_places *places, struct tnd_place place,
                                  const char *path, struct tandem_error *error)
{
    if (!tnd_grow(&places->items, places->n, &places->capacity, sizeof(places->items[0]))) {
        return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)places->n, 0,
                             "%s: no memory for the places of %zu tensors", tnd_short_name(path),
                             places->n + 1);
    }
    places->items[places->n++] = place;
    return TANDEM_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct tnd_place *left = a;
    const struct tnd_place *right = b;
    const int order = (left->begin > right->begin) - (left->begin < right->begin);
    return order != 0 ? order : (left->end > right->end) - (left->end < right->end);
}

enum tandem_status tnd_places_check(struct tnd_places *places, const char *path,
                                    struct tandem_error *error)
{
    if (places->n > 0) {
        qsort(places->items, places->n, sizeof(places->items[0]), compare_places);
    }
    for (size_t i = 1; i < places->n; i++) {
        const struct tnd_place *before = &places->items[i - 1];
        const struct tnd_place *place = &places->items[i];
        if (place->begin < before->end) {
            return tnd_error_set(error, TANDEM_E_FORMAT, path, place->begin, before->end,
                                 "%s: overlapping data: tensor %.*s ends at byte %lld, tensor "
                                 "%.*s begins at %lld",
                                 tnd_short_name(path), before->name_bytes, before->name,
                                 (long long)before->end, place->name_bytes, place->name,
                                 (long long)place->begin);
        }
    }
    return TANDEM_OK;
}

void tnd_places_fini(struct tnd_places *places)
{
    tnd_free(places->items);
    *places = (struct tnd_places){NULL, 0, 0};
}
