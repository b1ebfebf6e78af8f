/* SPDX-License-Identifier: MIT
 * Small models and their naive forward pass, formula by formula of the papers. */
#include "tests/suite_llama_naive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf.h"
#include "formats/source.h"

enum { DIM = 128, HIDDEN = 96, LAYERS = 2, HEADS = 4, KV_HEADS = 2, LONGEST_ROW = 512 };

static int64_t head_size_of(const struct naive_spec *spec)
{
    return spec->head_size == 0 ? 32 : spec->head_size;
}

static int64_t n_rot_of(const struct naive_spec *spec)
{
    return spec->n_rot == 0 ? head_size_of(spec) : spec->n_rot;
}

static int64_t context_of(const struct naive_spec *spec)
{
    return spec->context == 0 ? 64 : spec->context;
}

static double base_of(const struct naive_spec *spec)
{
    return spec->freq_base == 0 ? 10000.0 : spec->freq_base;
}

static bool has_window(const struct naive_spec *spec, int layer)
{
    return spec->window > 0 && (spec->windowed == 0 || (spec->windowed >> layer & 1) != 0);
}

void naive_tokens(int32_t *tokens, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)((i * 29 + i / 7 + 3) % NAIVE_VOCABULARY);
    }
}

/* ---- the source ---- */

static void add_matrices(tandem_source *source, struct tnd_test_rng *rng, const char *name,
                         int64_t k, int64_t n, int64_t matrices, double mean, double width)
{
    void *memory = NULL;
    const int64_t ne[] = {k, n, matrices};
    const int64_t values = k * n * matrices;
    const size_t bytes = (size_t)values * sizeof(float);
    check_ok(tnd_source_alloc(source, name, bytes, 0, &memory, NULL));
    for (int64_t i = 0; i < values; i++) {
        ((float *)memory)[i] =
            (float)(mean + width * ((double)tnd_test_rng_int(rng, -1000, 1000) / 1000.0));
    }
    check_ok(tnd_source_add(source, name, TANDEM_TYPE_F32,
                            matrices > 1 ? 3
                            : n == 1     ? 1
                                         : 2,
                            ne, memory, bytes, NULL));
}

static void add(tandem_source *source, struct tnd_test_rng *rng, const char *name, int64_t k,
                int64_t n, double mean, double width)
{
    add_matrices(source, rng, name, k, n, 1, mean, width);
}

static int64_t expert_hidden_of(const struct naive_spec *spec)
{
    return spec->expert_hidden == 0 ? HIDDEN : spec->expert_hidden;
}

static void add_experts(tandem_source *source, struct tnd_test_rng *rng,
                        const struct naive_spec *spec, int layer)
{
    const int64_t hidden = expert_hidden_of(spec);
    const int64_t shared = spec->shared_hidden;
    const struct {
        const char *name;
        int64_t k, n, matrices;
    } rows[] = {
        {"ffn_gate_inp", DIM, spec->experts, 1},
        {"ffn_gate_exps", DIM, hidden, spec->experts},
        {"ffn_up_exps", DIM, hidden, spec->experts},
        {"ffn_down_exps", hidden, DIM, spec->experts},
        {"ffn_gate_inp_shexp", DIM, 1, 1},
        {"ffn_gate_shexp", DIM, shared, 1},
        {"ffn_up_shexp", DIM, shared, 1},
        {"ffn_down_shexp", shared, DIM, 1},
    };
    for (int i = 0; i < (shared > 0 ? 8 : 4); i++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, rows[i].name);
        add_matrices(source, rng, name, rows[i].k, rows[i].n, rows[i].matrices, 0.0, 0.2);
    }
}

/* Divisor of pair i's angle. Llama 3.1's rule in the words of its model card: waves longer than
 * original / low are slowed by the factor, those shorter than original / high are not. */
static double llama3_divisor(const struct naive_spec *spec, int64_t i)
{
    const double low = 1.0, high = 4.0;
    const double wave = 2.0 * 3.14159265358979323846 *
                        pow(base_of(spec), 2.0 * (double)i / (double)head_size_of(spec));
    if (wave < spec->original / high) {
        return 1.0;
    }
    if (wave > spec->original / low) {
        return spec->factor;
    }
    const double smooth = (spec->original / wave - low) / (high - low);
    return 1.0 / ((1.0 - smooth) / spec->factor + smooth);
}

/* Pairs of yarn from which on angles are slowed in part, and wholly (Peng et al. 2023, section 3.2,
 * with whole pairs): those that turn `often` times in the original context. */
static double yarn_pair(const struct naive_spec *spec, double often)
{
    const double length = spec->original / (2.0 * 3.14159265358979323846 * often);
    return log(length) / log(base_of(spec)) * (double)n_rot_of(spec) / 2.0;
}

static double yarn_divisor(const struct naive_spec *spec, int64_t i)
{
    double first = floor(yarn_pair(spec, spec->has_betas ? 20.0 : 32.0));
    double last = ceil(yarn_pair(spec, spec->has_betas ? 2.0 : 1.0));
    first = first < 0.0 ? 0.0 : first;
    last = last > (double)n_rot_of(spec) - 1.0 ? (double)n_rot_of(spec) - 1.0 : last;
    const double share = fmin(fmax(((double)i - first) / (last - first), 0.0), 1.0);
    return 1.0 / (share / spec->factor + 1.0 - share);
}

/* LongRoPE's divisors that these tests make up. */
static double longrope_divisor(bool is_long, int64_t i)
{
    return is_long ? 1.5 + 0.25 * (double)i : 1.0 + 0.03125 * (double)i;
}

static double divisor(const struct naive_spec *spec, const char *scaling, int64_t i)
{
    const bool is_long = context_of(spec) > (int64_t)spec->original;
    return strcmp(scaling, "linear") == 0     ? spec->factor
           : strcmp(scaling, "llama3") == 0   ? llama3_divisor(spec, i)
           : strcmp(scaling, "yarn") == 0     ? yarn_divisor(spec, i)
           : strcmp(scaling, "longrope") == 0 ? longrope_divisor(is_long, i)
                                              : 1.0;
}

static void add_longrope(tandem_source *source, const struct naive_spec *spec)
{
    const int64_t n = n_rot_of(spec) / 2;
    for (int is_long = 0; is_long < 2; is_long++) {
        const char *name = is_long ? "rope_factors_long.weight" : "rope_factors_short.weight";
        void *memory = NULL;
        check_ok(tnd_source_alloc(source, name, (size_t)n * 4, 0, &memory, NULL));
        for (int64_t i = 0; i < n; i++) {
            ((float *)memory)[i] = (float)longrope_divisor(is_long, i);
        }
        check_ok(tnd_source_add(source, name, TANDEM_TYPE_F32, 1, &n, memory, (size_t)n * 4, NULL));
    }
}

static void add_layer(tandem_source *source, struct tnd_test_rng *rng,
                      const struct naive_spec *spec, int layer)
{
    const int64_t q_dim = HEADS * head_size_of(spec);
    const int64_t kv_dim = KV_HEADS * head_size_of(spec);
    const struct {
        const char *name;
        int64_t k, n;
    } matrices[] = {
        {"attn_q", DIM, q_dim},      {"attn_k", DIM, kv_dim},   {"attn_v", DIM, kv_dim},
        {"attn_output", q_dim, DIM}, {"ffn_gate", DIM, HIDDEN}, {"ffn_up", DIM, HIDDEN},
        {"ffn_down", HIDDEN, DIM},
    };
    char name[64];
    if (spec->experts > 0) {
        add_experts(source, rng, spec, layer);
    }
    for (int i = 0; i < (spec->experts > 0 ? 4 : 7); i++) {
        snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, matrices[i].name);
        add(source, rng, name, matrices[i].k, matrices[i].n, 0.0, 0.2);
        snprintf(name, sizeof(name), "blk.%d.%s.bias", layer, matrices[i].name);
        if ((spec->has_biases && i < 3) || spec->has_all_biases) {
            add(source, rng, name, matrices[i].n, 1, 0.1, 0.5);
        }
    }
    for (int i = 0; spec->has_head_norms && i < 2; i++) {
        snprintf(name, sizeof(name), "blk.%d.attn_%c_norm.weight", layer, i == 0 ? 'q' : 'k');
        add(source, rng, name, head_size_of(spec), 1, 1.0, 0.3);
    }
    snprintf(name, sizeof(name), "blk.%d.attn_norm.weight", layer);
    add(source, rng, name, DIM, 1, 1.0, 0.3);
    snprintf(name, sizeof(name), "blk.%d.ffn_norm.weight", layer);
    add(source, rng, name, DIM, 1, 1.0, 0.3);
}

static void set(tandem_source *source, const struct naive_spec *spec, const char *name,
                int64_t value)
{
    char key[96];
    snprintf(key, sizeof(key), "%s.%s", spec->architecture == NULL ? "llama" : spec->architecture,
             name);
    check_ok(tnd_source_set_integer(source, key, value, NULL));
}

static void set_number(tandem_source *source, const struct naive_spec *spec, const char *name,
                       double value)
{
    char key[96];
    snprintf(key, sizeof(key), "%s.%s", spec->architecture == NULL ? "llama" : spec->architecture,
             name);
    check_ok(tnd_source_set_number(source, key, value, NULL));
}

static void set_rope(tandem_source *source, const struct naive_spec *spec)
{
    char key[96];
    set_number(source, spec, "rope.freq_base", base_of(spec));
    if (spec->has_halves) {
        check_ok(tnd_source_set_text(source, "tandem.rope.pairs", "halves", NULL));
    }
    if (spec->has_rope_freqs) {
        void *memory = NULL;
        const int64_t n = head_size_of(spec) / 2;
        check_ok(tnd_source_alloc(source, "rope_freqs.weight", (size_t)n * 4, 0, &memory, NULL));
        for (int64_t i = 0; i < n; i++) {
            ((float *)memory)[i] = (float)llama3_divisor(spec, i);
        }
        check_ok(tnd_source_add(source, "rope_freqs.weight", TANDEM_TYPE_F32, 1, &n, memory,
                                (size_t)n * 4, NULL));
    } else if (spec->scaling != NULL) {
        snprintf(key, sizeof(key), "%s.rope.scaling.type",
                 spec->architecture == NULL ? "llama" : spec->architecture);
        check_ok(tnd_source_set_text(source, key, spec->scaling, NULL));
        if (strcmp(spec->scaling, "longrope") == 0) {
            add_longrope(source, spec);
        } else {
            set_number(source, spec, "rope.scaling.factor", spec->factor);
        }
        set(source, spec, "rope.scaling.original_context_length", (int64_t)spec->original);
        if (spec->attn_factor > 0.0) {
            set_number(source, spec, "rope.scaling.attn_factor", spec->attn_factor);
        }
        if (spec->has_betas) {
            set(source, spec, "rope.scaling.yarn_beta_fast", 20);
            set_number(source, spec, "rope.scaling.yarn_beta_slow", 2.0);
        }
    }
    if (spec->n_rot > 0) {
        set(source, spec, "rope.dimension_count", spec->n_rot);
    }
}

tandem_source *naive_source(const struct naive_spec *spec)
{
    tandem_source *source = NULL;
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const char *architecture = spec->architecture == NULL ? "llama" : spec->architecture;
    check_ok(tnd_source_new("made for tests", &source, NULL));
    check_ok(tnd_source_set_text(source, "general.architecture", architecture, NULL));
    set(source, spec, "embedding_length", DIM);
    set(source, spec, "feed_forward_length", HIDDEN);
    set(source, spec, "block_count", LAYERS);
    set(source, spec, "attention.head_count", HEADS);
    set(source, spec, "attention.head_count_kv", KV_HEADS);
    set(source, spec, "context_length", context_of(spec));
    set(source, spec, "attention.key_length", head_size_of(spec));
    if (spec->window > 0) {
        set(source, spec, "attention.sliding_window", spec->window);
    }
    if (spec->windowed != 0) {
        char key[96];
        uint8_t windowed[LAYERS];
        for (int layer = 0; layer < LAYERS; layer++) {
            windowed[layer] = has_window(spec, layer);
        }
        snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", architecture);
        check_ok(
            tnd_source_set_array(source, key, TND_GGUF_BOOL, LAYERS, windowed, LAYERS, true, NULL));
    }
    if (spec->activation != NULL) {
        check_ok(tnd_source_set_text(source, "tandem.activation", spec->activation, NULL));
    }
    if (spec->experts > 0) {
        set(source, spec, "expert_count", spec->experts);
        set(source, spec, "expert_used_count", spec->used);
    }
    if (spec->expert_hidden > 0) {
        set(source, spec, "expert_feed_forward_length", spec->expert_hidden);
    }
    if (spec->shared_hidden > 0) {
        set(source, spec, "expert_shared_feed_forward_length", spec->shared_hidden);
    }
    if (spec->normed != 0) {
        set(source, spec, "expert_weights_norm", spec->normed > 0);
    }
    set_number(source, spec, "attention.layer_norm_rms_epsilon", 1e-5);
    set_rope(source, spec);
    add(source, &rng, "token_embd.weight", DIM, NAIVE_VOCABULARY, 0.0, 1.0);
    add(source, &rng, "output_norm.weight", DIM, 1, 1.0, 0.3);
    add(source, &rng, "output.weight", DIM, NAIVE_VOCABULARY, 0.0, 0.2);
    for (int layer = 0; layer < LAYERS; layer++) {
        add_layer(source, &rng, spec, layer);
    }
    return source;
}

/* ---- the forward pass ---- */

static const float *weights(const tandem_source *source, int layer, const char *name)
{
    char full[64];
    struct tandem_source_tensor found = {0};
    snprintf(full, sizeof(full), "blk.%d.%s", layer, name);
    (void)tandem_source_find(source, layer < 0 ? name : full, &found);
    return found.data;
}

/* y = W x + b */
static void multiply(const float *w, const float *b, const double *x, double *y, int64_t k,
                     int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = b == NULL ? 0.0 : (double)b[i];
        for (int64_t j = 0; j < k; j++) {
            y[i] += (double)w[i * k + j] * x[j];
        }
    }
}

/* y may be x. g NULL: y is x. */
static void norm_n(const float *g, const double *x, double *y, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = g == NULL ? x[i] : (double)g[i] * x[i] / sqrt(sum / (double)n + 1e-5);
    }
}

static void norm(const float *g, const double *x, double *y)
{
    norm_n(g, x, y, DIM);
}

static double activate(const char *name, double x)
{
    if (name == NULL) {
        return x / (1.0 + exp(-x));
    }
    return strcmp(name, "gelu") == 0 ? 0.5 * x * (1.0 + erf(x / sqrt(2.0)))
           : strcmp(name, "gelu_tanh") == 0
               ? 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)))
           : strcmp(name, "quick_gelu") == 0 ? x / (1.0 + exp(-1.702 * x))
           : strcmp(name, "relu") == 0       ? fmax(x, 0.0)
           : strcmp(name, "relu2") == 0      ? fmax(x, 0.0) * fmax(x, 0.0)
                                             : x;
}

static void turn(const struct naive_spec *spec, double *x, int64_t position)
{
    const int64_t n = n_rot_of(spec);
    const bool halves = spec->has_halves ||
                        (spec->architecture != NULL && strncmp(spec->architecture, "qwen", 4) == 0);
    const char *scaling = spec->scaling == NULL ? "" : spec->scaling;
    const double usual = strcmp(scaling, "yarn") == 0 ? 1.0 + log(spec->factor) / 10.0 : 1.0;
    const double magnitude = usual * (spec->attn_factor > 0.0 ? spec->attn_factor : 1.0);
    double base = base_of(spec);
    if (strcmp(scaling, "ntk") == 0) {
        base *= pow(spec->factor, (double)n / (double)(n - 2));
    }
    for (int64_t i = 0; i < n / 2; i++) {
        double angle = (double)position * pow(base, -2.0 * (double)i / (double)n);
        angle /= divisor(spec, scaling, i);
        double *a = halves ? &x[i] : &x[2 * i];
        double *b = halves ? &x[i + n / 2] : &x[2 * i + 1];
        const double a0 = *a;
        *a = magnitude * (a0 * cos(angle) - *b * sin(angle));
        *b = magnitude * (a0 * sin(angle) + *b * cos(angle));
    }
}

/* One query of one head against the tokens that it sees. `k`, `v`: rows of kv_dim. */
static void attend(const struct naive_spec *spec, bool is_windowed, const double *q,
                   const double *k, const double *v, int64_t kv_dim, int64_t position, double *out)
{
    const int64_t n = head_size_of(spec);
    const int64_t first = is_windowed && position >= spec->window ? position - spec->window + 1 : 0;
    double weight[256], sum = 0.0, largest = -1e300;
    for (int64_t t = first; t <= position; t++) {
        weight[t] = 0.0;
        for (int64_t i = 0; i < n; i++) {
            weight[t] += q[i] * k[t * kv_dim + i];
        }
        weight[t] /= sqrt((double)n);
        largest = fmax(largest, weight[t]);
    }
    for (int64_t t = first; t <= position; t++) {
        weight[t] = exp(weight[t] - largest);
        sum += weight[t];
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.0;
        for (int64_t t = first; t <= position; t++) {
            out[i] += weight[t] / sum * v[t * kv_dim + i];
        }
    }
}

/* z = W2 (act(W1 y) * W3 y), with the matrices of expert `e` where the tensors hold several. */
static void run_network(const tandem_source *s, const struct naive_spec *spec, int l,
                        const char *kind, int64_t e, int64_t hidden, const double *y, double *z)
{
    double gate[HIDDEN], up[HIDDEN];
    char names[3][64];
    static const char *const parts[] = {"gate", "up", "down"};
    const int64_t skip = e * DIM * hidden;
    for (int i = 0; i < 3; i++) {
        snprintf(names[i], sizeof(names[i]), "ffn_%s%s.weight", parts[i], kind);
    }
    multiply(weights(s, l, names[0]) + skip, weights(s, l, "ffn_gate.bias"), y, gate, DIM, hidden);
    multiply(weights(s, l, names[1]) + skip, weights(s, l, "ffn_up.bias"), y, up, DIM, hidden);
    for (int i = 0; i < hidden; i++) {
        gate[i] = activate(spec->activation, gate[i]) * up[i];
    }
    multiply(weights(s, l, names[2]) + skip, weights(s, l, "ffn_down.bias"), gate, z, hidden, DIM);
}

enum { MOST_EXPERTS = 64 };
static int64_t expert_hits[LAYERS][MOST_EXPERTS];

int64_t naive_expert_hits(int layer, int expert)
{
    return expert_hits[layer][expert];
}

/* The experts with the largest probabilities, one after another, each with its share. */
static void run_experts(const tandem_source *s, const struct naive_spec *spec, int l,
                        const double *y, double *z)
{
    double p[MOST_EXPERTS], one[DIM], sum = 0.0, used = 0.0;
    const bool is_normed = spec->normed > 0 || (spec->normed == 0 && spec->shared_hidden == 0);
    multiply(weights(s, l, "ffn_gate_inp.weight"), NULL, y, p, DIM, spec->experts);
    for (int e = 0; e < spec->experts; e++) {
        p[e] = exp(p[e]);
        sum += p[e];
    }
    memset(z, 0, DIM * sizeof(*z));
    for (int u = 0; u < 2 * spec->used; u++) { /* first their sum, then they themselves */
        double taken[MOST_EXPERTS];
        memcpy(taken, p, sizeof(taken));
        int best = 0;
        for (int skip = 0; skip <= u % spec->used; skip++) {
            best = 0;
            for (int e = 1; e < spec->experts; e++) {
                best = taken[e] > taken[best] ? e : best;
            }
            taken[best] = -1.0;
        }
        if (u < spec->used) {
            used += p[best];
            continue;
        }
        expert_hits[l][best]++;
        run_network(s, spec, l, "_exps", best, expert_hidden_of(spec), y, one);
        for (int i = 0; i < DIM; i++) {
            z[i] += p[best] / (is_normed ? used : sum) * one[i];
        }
    }
    if (spec->shared_hidden > 0) {
        double share = 0.0;
        multiply(weights(s, l, "ffn_gate_inp_shexp.weight"), NULL, y, &share, DIM, 1);
        run_network(s, spec, l, "_shexp", 0, spec->shared_hidden, y, one);
        for (int i = 0; i < DIM; i++) {
            z[i] += one[i] / (1.0 + exp(-share));
        }
    }
}

/* x of all tokens, {n, DIM}, through one layer. */
static void run_layer(const tandem_source *s, const struct naive_spec *spec, int l, double *x,
                      int64_t n)
{
    const int64_t hs = head_size_of(spec), q_dim = HEADS * hs, kv_dim = KV_HEADS * hs;
    double *k = calloc((size_t)(n * kv_dim), sizeof(*k));
    double *v = calloc((size_t)(n * kv_dim), sizeof(*v));
    double y[DIM], q[LONGEST_ROW], o[LONGEST_ROW], z[DIM];
    for (int64_t t = 0; t < n; t++) {
        double *row = x + t * DIM;
        norm(weights(s, l, "attn_norm.weight"), row, y);
        multiply(weights(s, l, "attn_q.weight"), weights(s, l, "attn_q.bias"), y, q, DIM, q_dim);
        multiply(weights(s, l, "attn_k.weight"), weights(s, l, "attn_k.bias"), y, k + t * kv_dim,
                 DIM, kv_dim);
        multiply(weights(s, l, "attn_v.weight"), weights(s, l, "attn_v.bias"), y, v + t * kv_dim,
                 DIM, kv_dim);
        for (int h = 0; h < KV_HEADS; h++) {
            double *head = k + t * kv_dim + h * hs;
            norm_n(weights(s, l, "attn_k_norm.weight"), head, head, hs);
            turn(spec, head, t);
        }
        for (int h = 0; h < HEADS; h++) {
            const int64_t kv = h / (HEADS / KV_HEADS) * hs;
            norm_n(weights(s, l, "attn_q_norm.weight"), q + h * hs, q + h * hs, hs);
            turn(spec, q + h * hs, t);
            attend(spec, has_window(spec, l), q + h * hs, k + kv, v + kv, kv_dim, t, o + h * hs);
        }
        multiply(weights(s, l, "attn_output.weight"), weights(s, l, "attn_output.bias"), o, z,
                 q_dim, DIM);
        for (int i = 0; i < DIM; i++) {
            row[i] += z[i];
        }
        norm(weights(s, l, "ffn_norm.weight"), row, y);
        if (spec->experts > 0) {
            run_experts(s, spec, l, y, z);
        } else {
            run_network(s, spec, l, "", 0, HIDDEN, y, z);
        }
        for (int i = 0; i < DIM; i++) {
            row[i] += z[i];
        }
    }
    free(k);
    free(v);
}

void naive_logits(const tandem_source *source, const struct naive_spec *spec, const int32_t *tokens,
                  int64_t n, double *out)
{
    double *x = calloc((size_t)(n * DIM), sizeof(*x));
    double y[DIM];
    const float *embedding = weights(source, -1, "token_embd.weight");
    memset(expert_hits, 0, sizeof(expert_hits));
    for (int64_t i = 0; i < n * DIM; i++) {
        x[i] = (double)embedding[tokens[i / DIM] * DIM + i % DIM];
    }
    for (int layer = 0; layer < LAYERS; layer++) {
        run_layer(source, spec, layer, x, n);
    }
    norm(weights(source, -1, "output_norm.weight"), x + (n - 1) * DIM, y);
    multiply(weights(source, -1, "output.weight"), NULL, y, out, DIM, NAIVE_VOCABULARY);
    free(x);
}
