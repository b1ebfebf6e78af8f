/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of request bodies and the grammar of JSON mode: a body that is refused says
 * why; a text that the grammar takes whole is read by cJSON, whatever its pieces. */
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_members(struct srv_body *body)
{
    static const char *const names[] = {"a", "n", "stop", "prompt"};
    for (int i = 0; i < 4; i++) {
        double number = 1.0;
        int64_t integer = 1;
        bool flag = false;
        const char *text = NULL;
        body->fault[0] = '\0';
        must(tnd_srv_body_number(body, names[i], 0.0, 2.0, &number) == (body->fault[0] == '\0'));
        must(number >= 0.0 && number <= 2.0);
        (void)tnd_srv_body_integer(body, names[i], -3, 5, &integer);
        must(integer >= -3 && integer <= 5);
        (void)tnd_srv_body_flag(body, names[i], &flag);
        (void)tnd_srv_body_string(body, names[i], &text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct srv_body body;
    const bool is_good = tnd_srv_body_read(&body, text, size);
    must(is_good == (body.fault[0] == '\0'));
    if (is_good) {
        check_members(&body);
    }
    tnd_srv_body_free(&body);

    struct srv_text out = {0};
    tnd_srv_add_json(&out, text, size);
    must(out.n >= 2 && out.n <= 6 * size + 2);
    tnd_srv_text_free(&out);
    return 0;
}
