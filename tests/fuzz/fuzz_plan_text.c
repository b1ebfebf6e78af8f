/* SPDX-License-Identifier: MIT
 * Any bytes as a plan: an error, or a plan that prints and reads as itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sched/plan_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tnd_registry *open_backends(void)
{
    struct tnd_registry_options options;
    struct tnd_registry *registry = NULL;
    memset(&options, 0, sizeof(options));
    options.backends = "cpu";
    options.n_threads_max = 1;
    if (tnd_registry_open(&options, &registry, NULL) != TANDEM_OK) {
        abort();
    }
    return registry;
}

static void check_round_trip(const tandem_plan *plan, uint64_t hash,
                             const struct tnd_registry *registry)
{
    struct tnd_text first = TND_TEXT_INIT;
    struct tnd_text second = TND_TEXT_INIT;
    tandem_plan *again = NULL;
    uint64_t hash_again = 0;
    if (tnd_plan_print(plan, hash, registry, &first, NULL) != TANDEM_OK ||
        tnd_plan_parse(first.bytes, first.n, "again", registry, &again, &hash_again, NULL) !=
            TANDEM_OK ||
        tnd_plan_print(again, hash_again, registry, &second, NULL) != TANDEM_OK ||
        hash != hash_again || strcmp(tnd_text_string(&first), tnd_text_string(&second)) != 0) {
        abort();
    }
    tandem_plan_free(again);
    tnd_text_fini(&first);
    tnd_text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tnd_registry *registry;
    struct tandem_error error;
    tandem_plan *plan = NULL;
    uint64_t hash = 0;
    if (registry == NULL) {
        registry = open_backends();
    }
    if (tnd_plan_parse((const char *)data, size, "fuzz", registry, &plan, &hash, &error) !=
        TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : -1;
    }
    check_round_trip(plan, hash, registry);
    tandem_plan_free(plan);
    return 0;
}
