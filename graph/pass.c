/* SPDX-License-Identifier: MIT
 * The table of passes and the loop over them. */
#include <string.h>

#include "graph/pass_internal.h"

const struct tnd_pass tnd_passes[TND_N_PASSES] = {
    [TND_PASS_QUANTISE] = {"quantise", "sums products of 8-bit integers as integers",
                           tnd_pass_quantise, false},
    [TND_PASS_FOLD] = {"fold", "computes what depends on constants alone", tnd_pass_fold, false},
    [TND_PASS_DEAD] = {"dead", "removes what no output needs", tnd_pass_dead, false},
    [TND_PASS_EQUAL] = {"equal", "keeps one of equal operations, and no copies of views",
                        tnd_pass_equal, true},
    [TND_PASS_WIDEN] = {"widen", "computes float16 and bfloat16 in float32", tnd_pass_widen, false},
    [TND_PASS_STRENGTH] = {"strength", "puts cheaper operations of the same result",
                           tnd_pass_strength, false},
    [TND_PASS_CLAMP] = {"clamp", "merges chains of lower and upper bounds", tnd_pass_clamp, false},
    [TND_PASS_RECOGNISE] = {"recognise",
                            "makes one operation of softmax, norms, attention and silu",
                            tnd_pass_recognise, false},
    [TND_PASS_LAYOUT] = {"layout", "keeps the order of dimensions behind convolutions",
                         tnd_pass_layout, false},
    [TND_PASS_AFFINE] = {"affine", "puts scales into the weights of products, combines constants",
                         tnd_pass_affine, false},
};

bool tnd_passes_read(const char *text, unsigned *out)
{
    unsigned set = text == NULL ? TND_PASSES_ALL : 0;
    if (text == NULL || strcmp(text, "none") == 0) {
        text = "";
    }
    while (*text != '\0') {
        const size_t n = strcspn(text, ",");
        int id = 0;
        while (id < TND_N_PASSES &&
               (strncmp(tnd_passes[id].name, text, n) != 0 || tnd_passes[id].name[n] != '\0')) {
            id++;
        }
        if (id == TND_N_PASSES) {
            return false;
        }
        set |= TND_PASS_BIT(id);
        text += n + (text[n] == ',');
    }
    *out = set;
    return true;
}

/* More rounds than any net needs; a bound all the same. */
#define MAX_ROUNDS 16

static void tell(const struct tnd_pass_dump *dump, const struct tnd_net *net,
                 const struct tnd_pass *pass, int round, int fired)
{
    if (dump != NULL) {
        dump->dump(dump->context, net, pass, round, fired);
    }
}

enum tandem_status tnd_net_optimize(struct tnd_net *net, unsigned passes,
                                    const struct tnd_pass_dump *dump, struct tandem_error *error)
{
    if (net->status != TANDEM_OK) {
        *error = net->error;
        return net->status;
    }
    int quiet = 0; /* passes since the last one that changed something */
    tnd_rewrite_tidy(net);
    for (int i = 0; i < MAX_ROUNDS * TND_N_PASSES && quiet < TND_N_PASSES; i++) {
        const struct tnd_pass *pass = &tnd_passes[i % TND_N_PASSES];
        const int round = i / TND_N_PASSES;
        int fired = 0;
        if ((passes & TND_PASS_BIT(i % TND_N_PASSES)) != 0) {
            tell(dump, net, pass, round, -1);
            TND_TRY(tnd_rewrite_run(net, pass, &fired, error));
            tell(dump, net, pass, round, fired);
        }
        quiet = fired > 0 ? 0 : quiet + 1;
    }
    return passes == 0 ? TANDEM_OK : tnd_rewrite_pack(net, error);
}
