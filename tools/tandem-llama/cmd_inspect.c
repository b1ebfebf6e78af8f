/* SPDX-License-Identifier: MIT
 * tandem-llama inspect: prints the contents of a model file as a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/tandem-llama/cli.h"

#define SHOWN_BYTES 60 /* of a text */
#define SHOWN_ITEMS 4  /* of a list */

/* Prints a text on one line. */
static void print_text(const char *text, size_t n)
{
    const size_t shown = n < SHOWN_BYTES ? n : SHOWN_BYTES;
    char visible[8 * SHOWN_BYTES];
    (void)tandem_text_visible(text, shown, visible, sizeof(visible));
    printf("\"%s", visible);
    printf(n > shown ? "\"... (%zu bytes)" : "\"", n);
}

static void print_name(const char *name)
{
    char visible[8 * SHOWN_BYTES];
    (void)tandem_text_visible(name, strlen(name), visible, sizeof(visible));
    printf("  %-44s ", visible);
}

static void print_item(const struct tandem_array *array, int64_t i)
{
    const char *text = NULL;
    size_t n = 0;
    int64_t integer = 0;
    double number = 0.0;
    if (tandem_array_text(array, i, &text, &n)) {
        print_text(text, n);
    } else if (tandem_array_integer(array, i, &integer)) {
        printf("%lld", (long long)integer);
    } else if (tandem_array_number(array, i, &number)) {
        printf("%g", number);
    } else {
        printf("[...]");
    }
}

static void print_array(const struct tandem_array *array)
{
    static const char *const kinds[] = {"integers", "numbers", "texts", "lists"};
    printf("%lld %s: ", (long long)array->count, kinds[array->kind]);
    for (int64_t i = 0; i < array->count && i < SHOWN_ITEMS; i++) {
        printf(i > 0 ? ", " : "");
        print_item(array, i);
    }
    printf(array->count > SHOWN_ITEMS ? ", ..." : "");
}

static void print_values(const tandem_source *source)
{
    const int n = tandem_source_value_count(source);
    printf("%d values\n", n);
    for (int i = 0; i < n; i++) {
        struct tandem_source_value value;
        (void)tandem_source_value_at(source, i, &value);
        print_name(value.key);
        if (value.kind == TANDEM_VALUE_INTEGER) {
            printf("%lld", (long long)value.integer);
        } else if (value.kind == TANDEM_VALUE_NUMBER) {
            printf("%g", value.number);
        } else if (value.kind == TANDEM_VALUE_TEXT) {
            print_text(value.text, strlen(value.text));
        } else {
            print_array(&value.array);
        }
        printf("\n");
    }
}

/* Extents in the order of ne: the fastest first. */
static void shape_text(const struct tandem_source_tensor *tensor, char out[96])
{
    snprintf(out, 96, "1");
    for (int i = 0, at = 0; i < tensor->n_dims; i++) {
        at += snprintf(out + at, 96 - (size_t)at, "%s%lld", i > 0 ? " x " : "",
                       (long long)tensor->ne[i]);
    }
}

struct sums {
    long long bytes, values;
    long long by_type[TANDEM_TYPE_NUMBERS];
};

static void print_tensors(const tandem_source *source, struct sums *sums)
{
    const int n = tandem_source_tensor_count(source);
    printf("\n%d tensors%s\n", n, n > 0 ? " (extents: the fastest first)" : "");
    for (int i = 0; i < n; i++) {
        struct tandem_source_tensor tensor;
        char shape[96];
        (void)tandem_source_tensor_at(source, i, &tensor);
        shape_text(&tensor, shape);
        print_name(tensor.name);
        printf("%-5s %20s %14zu bytes\n", tandem_type_name(tensor.type), shape, tensor.bytes);
        sums->bytes += (long long)tensor.bytes;
        sums->values += tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3];
        sums->by_type[tensor.type]++;
    }
}

static void print_sums(const struct sums *sums)
{
    printf("\n%lld values in %lld bytes (%.2f bits each):", sums->values, sums->bytes,
           sums->values > 0 ? 8.0 * (double)sums->bytes / (double)sums->values : 0.0);
    for (int type = 0; type < TANDEM_TYPE_NUMBERS; type++) {
        if (sums->by_type[type] > 0) {
            printf(" %lld %s", sums->by_type[type], tandem_type_name((enum tandem_type)type));
        }
    }
    printf("\n");
}

static void print_role(const tandem_tokenizer *tokenizer, const char *role, int32_t id, bool adds)
{
    char bytes[SHOWN_BYTES];
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, false);
    stream.shows_special = true;
    printf("; %s ", role);
    if (id < 0) {
        printf("none");
        return;
    }
    const size_t n = tandem_token_stream_next(&stream, id, bytes, sizeof(bytes));
    printf("%d ", (int)id);
    print_text(bytes, n <= sizeof(bytes) ? n : 0);
    printf(adds ? ", added" : ", not added");
}

/* Prints the special tokens around a text, which may depend on the kind of tokenizer instead of the
 * file. */
static void print_tokenizer(const tandem_source *source, const char *path)
{
    tandem_tokenizer *tokenizer = NULL;
    struct tandem_error error = {.text = ""};
    struct tandem_array tokens;
    struct stat info;
    const bool is_inside = tandem_source_array(source, "tokenizer.ggml.tokens", &tokens);
    if (!is_inside && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))) {
        return;
    }
    const enum tandem_status status = is_inside
                                          ? tandem_tokenizer_from_source(source, &tokenizer, &error)
                                          : tandem_tokenizer_open(path, 0, &tokenizer, &error);
    if (status == TANDEM_OK) {
        printf("tokenizer: %lld tokens", (long long)tandem_tokenizer_vocabulary(tokenizer));
        print_role(tokenizer, "a text begins with", tandem_tokenizer_bos(tokenizer),
                   tandem_tokenizer_adds_bos(tokenizer));
        print_role(tokenizer, "ends with", tandem_tokenizer_eos(tokenizer),
                   tandem_tokenizer_adds_eos(tokenizer));
        printf("\n");
    } else if (is_inside) {
        printf("no tokenizer that can be used: %s\n", error.text);
    }
    tandem_tokenizer_close(tokenizer);
}

/* Whether the model can be run, by the same check as `run`. */
static void print_verdict(const tandem_source *source)
{
    struct tandem_hparams h;
    struct tandem_error error = {.text = ""};
    if (tandem_source_hparams(source, &h, &error) == TANDEM_OK) {
        printf("a model that can be run: %s, %lld layers\n", h.architecture, (long long)h.layers);
        if (h.experts > 0) {
            printf("%lld experts a layer, of which a token uses %lld%s\n", (long long)h.experts,
                   (long long)h.experts_used, h.shared_hidden > 0 ? ", and one that all use" : "");
        }
    } else {
        printf("no model that can be run: %s\n", error.text);
    }
}

/* Prints the model's identity; reads all weights. */
static enum tandem_status print_identity(const tandem_source *source, struct tandem_error *error)
{
    uint64_t identity = 0;
    const enum tandem_status status = tandem_source_identity(source, &identity, error);
    if (status == TANDEM_OK) {
        printf("identity %016" PRIx64 "\n", identity);
    }
    return status;
}

int tnd_cmd_inspect(int argc, char **argv)
{
    bool shows_identity = false;
    const struct args_option options[] = {
        {"identity", ARGS_FLAG, &shows_identity, 0, 0, NULL,
         "read all weights and print the number that saved states know the model by"}};
    const struct args_command command = {
        "inspect",
        "FILE",
        "Prints what is in a model file: GGUF, safetensors (or the folder of a model), PyTorch or\n"
        "llama2.c.",
        options,
        1,
        1,
        1};
    const char *path = NULL;
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    struct sums sums = {.bytes = 0};
    const int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (tandem_source_open(path, &source, &error) != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    printf("%s: %s\n\n", path, tandem_source_format(source));
    print_values(source);
    print_tensors(source, &sums);
    print_sums(&sums);
    print_verdict(source);
    print_tokenizer(source, path);
    const enum tandem_status status = shows_identity ? print_identity(source, &error) : TANDEM_OK;
    tandem_source_close(source);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
