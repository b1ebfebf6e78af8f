/* SPDX-License-Identifier: MIT
 * JSON within other text: finds the end of a value and its members, without parsing, so that
 * numbers keep their spelling. */
#ifndef TANDEM_SERVER_SRV_SCAN_H
#define TANDEM_SERVER_SRV_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum srv_scan { SRV_SCAN_DONE, SRV_SCAN_SHORT /* incomplete */, SRV_SCAN_WRONG };

/** A text and a position in it. */
struct srv_cursor {
    const char *text;
    size_t n, at;
};

void tnd_srv_skip_blanks(struct srv_cursor *cursor);
/** Whether the word is at the cursor; if so, moves past it. */
bool tnd_srv_skip(struct srv_cursor *cursor, const char *word);
/** Whether the rest of the text may be the beginning of the word. */
bool tnd_srv_may_begin(const struct srv_cursor *cursor, const char *word);
/** Moves to the next occurrence of the word. False: there is none; the cursor stays. */
bool tnd_srv_seek(struct srv_cursor *cursor, const char *word);
/** Moves past a value that begins at the cursor; checks only its brackets and strings. */
enum srv_scan tnd_srv_scan_value(struct srv_cursor *cursor);
/** Finds a member of an object {text[begin, end)} that tnd_srv_scan_value has accepted. */
bool tnd_srv_scan_member(const char *text, size_t begin, size_t end, const char *name,
                         struct srv_cursor *out_value);

#endif
