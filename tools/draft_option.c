/* SPDX-License-Identifier: MIT
 * Opening a draft model beside a model. */
#include "tools/draft_option.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"

static enum tandem_status open_model(const char *path, tandem_runtime *runtime,
                                     const struct tandem_session_options *options,
                                     struct tnd_draft_option *out, struct tandem_error *error)
{
    TND_TRY(tandem_source_open(path, &out->source, error));
    TND_TRY(tandem_model_new(out->source, &out->model, error));
    return tandem_session_new(out->model, runtime, options, &out->session, error);
}

enum tandem_status tnd_draft_option_open(const char *text, tandem_session *session,
                                         tandem_runtime *runtime, int n_sequences, int64_t n_cells,
                                         struct tnd_draft_option *out, struct tandem_error *error)
{
    struct tandem_draft_options draft = TANDEM_DRAFT_OPTIONS_INIT;
    if (text == NULL) {
        return TANDEM_OK;
    }
    draft.by_heads = strcmp(text, "mtp") == 0;
    if (strcmp(text, "lookup") != 0 && !draft.by_heads) {
        const struct tandem_session_options options = {.size = sizeof(options),
                                                       .context = tandem_session_context(session),
                                                       .n_sequences = n_sequences,
                                                       .n_cells = n_cells};
        const enum tandem_status status = open_model(text, runtime, &options, out, error);
        if (status != TANDEM_OK) {
            char why[sizeof(error->text)];
            snprintf(why, sizeof(why), "%s", error->text);
            return tnd_error_set(error, status, "draft", 0, 0,
                                 "--draft expects lookup, mtp or a model's file: %.190s", why);
        }
        draft.model = out->session;
    }
    return tandem_session_set_draft(session, &draft, error);
}

void tnd_draft_option_close(struct tnd_draft_option *draft)
{
    tandem_session_free(draft->session);
    tandem_model_free(draft->model);
    tandem_source_close(draft->source);
    memset(draft, 0, sizeof(*draft));
}

void tnd_draft_option_print(const tandem_session *session)
{
    struct tandem_draft_info info;
    if (tandem_session_draft_info(session, &info)) {
        fprintf(stderr,
                "drafts: %lld tokens drafted, %lld of them right; %lld tokens in %lld batches\n",
                (long long)info.drafted, (long long)info.accepted, (long long)info.tokens,
                (long long)info.batches);
        if (info.has_failed) {
            fprintf(stderr, "        the draft model failed: nothing is drafted any more\n");
        }
    }
}
