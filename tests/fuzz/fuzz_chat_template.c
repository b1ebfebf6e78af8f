/* SPDX-License-Identifier: MIT
 * Chat templates of strangers: the template, and behind a zero byte its variables as JSON. Whatever
 * is taken renders within its bounds, and each byte of the result has a mark. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/chat_template.h"

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char plain[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a b\"},{\"role\":"
                                "\"assistant\",\"content\":\"x\",\"n\":[1,2.5,null,true]}],"
                                "\"add_generation_prompt\":true}";
    struct tandem_error error = {0};
    tandem_chat_template *chat_template = NULL;
    if (size > 1 << 14) {
        return 0;
    }
    const char *text = size > 0 ? (const char *)data : "";
    const char *end = size > 0 ? memchr(text, 0, size) : NULL;
    const size_t n = end != NULL ? (size_t)(end - text) : size;
    const char *variables = end != NULL ? end + 1 : plain;
    const size_t n_variables = end != NULL ? size - n - 1 : sizeof(plain) - 1;
    enum tandem_status status = tandem_chat_template_parse(text, n, "fuzz", &chat_template, &error);
    must((status == TANDEM_OK) == (chat_template != NULL));
    must(status == TANDEM_OK || error.text[0] != '\0');
    if (chat_template != NULL) {
        struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
        status = tandem_chat_template_render(chat_template, variables, n_variables, NULL, 1,
                                             &rendered, &error);
        must((status == TANDEM_OK) == (rendered.text != NULL));
        for (size_t i = 0; i < rendered.n; i++) {
            must(rendered.from_variables[i] <= 1);
        }
        tandem_rendered_free(&rendered);
    }
    tandem_chat_template_free(chat_template);
    return 0;
}
