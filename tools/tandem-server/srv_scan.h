/* SPDX-License-Identifier: MIT
 * JSON within other text: where a value ends and what its members are, as they were written, so
 * that no number changes. */
#ifndef TANDEM_SERVER_SRV_SCAN_H
#define TANDEM_SERVER_SRV_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum srv_scan { SRV_SCAN_DONE, SRV_SCAN_SHORT /* it goes on */, SRV_SCAN_WRONG };

/** A text and the place in it. */
struct srv_cursor {
    const char *text;
    size_t n, at;
};

void tnd_srv_skip_blanks(struct srv_cursor *cursor);
/** Whether the word stands at the cursor, which moves behind it. */
bool tnd_srv_skip(struct srv_cursor *cursor, const char *word);
/** Whether the rest of the text begins the word, and more may follow. */
bool tnd_srv_may_begin(const struct srv_cursor *cursor, const char *word);
/** Moves to the next place of the word. False: there is none; the cursor stays. */
bool tnd_srv_seek(struct srv_cursor *cursor, const char *word);
/** Moves behind a value that begins at the cursor; checked by its brackets and texts only. */
enum srv_scan tnd_srv_scan_value(struct srv_cursor *cursor);
/** Finds a member of an object {text[begin, end)} that tnd_srv_scan_value has passed. */
bool tnd_srv_scan_member(const char *text, size_t begin, size_t end, const char *name,
                         struct srv_cursor *out_value);

#endif
