/* SPDX-License-Identifier: MIT
 * Suggestions for an option that a command does not have. */
#include <stdio.h>
#include <string.h>

#include "tools/args.h"

enum { LONGEST = 32 }; /* longest words to compare, in bytes */

/* Options of llama.cpp, their counterparts here (NULL: none), and their meanings. */
static const struct {
    const char *names, *option, *meaning;
} elsewhere[] = {
    {"|m|model|", NULL, "the model's file needs no option"},
    {"|c|ctx-size|", "context", "the length of a text is --context"},
    {"|prompt|", "p", "a prompt is -p"},
    {"|predict|n-predict|", "n", "the number of tokens is -n"},
    {"|b|ub|batch-size|ubatch-size|", "batch", "prompt tokens at a time are --batch"},
    {"|ctk|ctv|cache-type-k|cache-type-v|", "cache", "the type of keys and values is --cache"},
    {"|md|model-draft|", "draft", "the model that drafts is --draft"},
    {"|ngl|n-gpu-layers|gpu-layers|n-cpu-moe|", NULL, "the timing table tells what a GPU computes"},
    {"|fa|flash-attn|", "unfused", "attention is fused unless --unfused is given"},
};

/* Levenshtein's distance: letters to insert, delete or replace. */
static int distance(const char *a, int n_a, const char *b, int n_b)
{
    int row[LONGEST + 1];
    for (int j = 0; j <= n_b; j++) {
        row[j] = j;
    }
    for (int i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int least = diagonal + (a[i - 1] != b[j - 1]);
            least = row[j] + 1 < least ? row[j] + 1 : least;
            least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
            diagonal = row[j];
            row[j] = least;
        }
    }
    return row[n_b];
}

/* The option whose first name is nearest: at most two edits, and fewer than half of the letters; or
 * NULL. */
static const char *nearest(const struct args_command *command, const char *name, int length,
                           int *out_length)
{
    const char *found = NULL;
    int least = LONGEST;
    for (int i = 0; i < command->n_options; i++) {
        const char *own = command->options[i].name;
        const int n = (int)strcspn(own, "|");
        if (n > 3 && n <= LONGEST) {
            const bool begins = length >= 3 && length < n && memcmp(own, name, (size_t)length) == 0;
            const int apart = begins ? 1 : distance(name, length, own, n);
            if (apart < least && apart <= 2 && 2 * apart < n) {
                least = apart;
                found = own;
                *out_length = n;
            }
        }
    }
    return found;
}

static bool has_option(const struct args_command *command, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < command->n_options; i++) {
        const char *own = command->options[i].name;
        if (strncmp(own, name, length) == 0 && (own[length] == '\0' || own[length] == '|')) {
            return true;
        }
    }
    return false;
}

void args_hint(const struct args_command *command, const char *name, size_t length, char *out,
               size_t capacity)
{
    char quoted[LONGEST + 3];
    int n_found = 0;
    out[0] = '\0';
    if (length > LONGEST) {
        return;
    }
    const char *found = nearest(command, name, (int)length, &n_found);
    if (found != NULL) {
        snprintf(out, capacity, " (did you mean --%.*s?)", n_found, found);
        return;
    }
    snprintf(quoted, sizeof(quoted), "|%.*s|", (int)length, name);
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        const bool is_there = elsewhere[i].option != NULL
                                  ? has_option(command, elsewhere[i].option)
                                  : strstr(command->operands, "MODEL") != NULL;
        if (is_there && strstr(elsewhere[i].names, quoted) != NULL) {
            snprintf(out, capacity, " (%s)", elsewhere[i].meaning);
        }
    }
}
