/* SPDX-License-Identifier: MIT
 * Weights of Hugging Face's models that came quantised by others: refused, with what config.json
 * says of them. */
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/json_pull.h"
#include "formats/safetensors.h"

enum tandem_status tnd_hf_refuse_quantized(struct tnd_json *json, const char *member,
                                           struct tandem_error *error)
{
    char key[128], why[128];
    char method[32] = "a method that it does not name";
    char width[32] = "";
    bool more = false;
    TND_TRY(tnd_json_take(json, '{', error));
    for (int64_t i = 0;; i++) {
        double number = 0.0;
        int64_t bits = 0;
        bool is_whole = false;
        TND_TRY(tnd_json_more(json, '}', i, &more, error));
        if (!more) {
            break;
        }
        TND_TRY(tnd_json_key(json, key, sizeof(key), error));
        const char c = tnd_json_peek(json);
        if (c == '"' && strcmp(key, "quant_method") == 0) {
            TND_TRY(tnd_json_pull_string(json, method, sizeof(method), error));
        } else if (c >= '0' && c <= '9' &&
                   (strcmp(key, "bits") == 0 || strcmp(key, "w_bit") == 0)) {
            TND_TRY(tnd_json_number(json, &number, &bits, &is_whole, error));
            snprintf(width, sizeof(width), " in %lld bits", (long long)bits);
        } else if (c == 't' && strncmp(key, "load_in_", 8) == 0) { /* of bitsandbytes */
            snprintf(width, sizeof(width), ", %.12s", key);
            TND_TRY(tnd_json_skip(json, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    snprintf(why, sizeof(why),
             "says that the weights are quantised by %s%s; expected plain weights", method, width);
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, member, 0, 0,
                         "%s: member \"%.60s\" %.120s", tnd_short_name(json->name), member, why);
}
