/* SPDX-License-Identifier: MIT
 * Choosing the next token: suppressed tokens, and the rules of timestamps. */
#include <math.h>

#include "tools/tandem-graph/speech.h"

enum { MAX_FIRST_TIMESTAMP = 50 }; /* in steps of 0.02 s: the text begins within the first second */

static bool is_listed(const struct tnd_speech_tokens *list, int64_t id)
{
    for (int i = 0; i < list->n; i++) {
        if (list->ids[i] == id) {
            return true;
        }
    }
    return false;
}

bool tnd_speech_is_end(const struct tnd_speech_config *config, int32_t token)
{
    return is_listed(&config->ends, token);
}

static bool is_timestamp(const struct tnd_speech_rules *rules, int32_t token)
{
    return rules->timestamp >= 0 && token >= rules->timestamp;
}

/* Constraints on the next token by the previous ones. */
struct demand {
    bool no_text, no_timestamp;
    int64_t low, high; /* range of timestamp ids */
};

static struct demand demand_of(const struct tnd_speech_rules *rules, const int32_t *tokens,
                               int64_t n, int64_t vocabulary)
{
    struct demand demand = {.low = rules->timestamp, .high = vocabulary - 1};
    const int64_t written = n - rules->n_prompt;
    if (rules->timestamp < 0) {
        return demand;
    }
    if (written == 0) {
        demand.no_text = true;
        demand.high = rules->timestamp + MAX_FIRST_TIMESTAMP;
        return demand;
    }
    const bool was_one = is_timestamp(rules, tokens[n - 1]);
    const bool was_before = written < 2 || is_timestamp(rules, tokens[n - 2]);
    demand.no_timestamp = was_one && was_before; /* after a pair, or the first one: text */
    demand.no_text = was_one && !was_before;     /* after the end of a segment: the next begin */
    for (int64_t i = rules->n_prompt; i < n; i++) {
        if (is_timestamp(rules, tokens[i])) {
            demand.low = tokens[i] + (was_one && !was_before ? 0 : 1);
        }
    }
    return demand;
}

static bool is_allowed(const struct tnd_speech_rules *rules, const struct demand *demand,
                       int64_t id, bool is_first)
{
    const struct tnd_speech_config *config = rules->config;
    if (rules->timestamp >= 0 && id >= rules->timestamp) {
        return !demand->no_timestamp && id >= demand->low && id <= demand->high;
    }
    if (is_listed(&config->ends, id)) {
        return !(is_first && is_listed(&config->never_first, id));
    }
    return !demand->no_text && id != config->no_timestamps && !is_listed(&config->never, id) &&
           !(is_first && is_listed(&config->never_first, id));
}

int32_t tnd_speech_choose(const struct tnd_speech_rules *rules, const int32_t *tokens, int64_t n,
                          const float *logits, int64_t vocabulary)
{
    const struct demand demand = demand_of(rules, tokens, n, vocabulary);
    const bool is_first = n == rules->n_prompt;
    int64_t text = -1;
    int64_t timestamp = -1;
    for (int64_t i = 0; i < vocabulary; i++) {
        int64_t *best = rules->timestamp >= 0 && i >= rules->timestamp ? &timestamp : &text;
        if (is_allowed(rules, &demand, i, is_first) && (*best < 0 || logits[i] > logits[*best])) {
            *best = i;
        }
    }
    double sum = 0; /* of the timestamps' probabilities, relative to the most likely text token */
    for (int64_t i = rules->timestamp; timestamp >= 0 && text >= 0 && i < vocabulary; i++) {
        if (is_allowed(rules, &demand, i, is_first)) {
            sum += exp((double)logits[i] - (double)logits[text]);
        }
    }
    if (text < 0 || (timestamp >= 0 && sum > 1)) {
        text = timestamp >= 0 ? timestamp : text;
    }
    return text >= 0 ? (int32_t)text : (rules->config->ends.n > 0 ? rules->config->ends.ids[0] : 0);
}
