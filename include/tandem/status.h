/* SPDX-License-Identifier: MIT
 * room: base
 *
 * How calls report failure. Every function that can fail returns an enum tandem_status; slow calls
 * also fill a caller-owned struct tandem_error with a sentence for people. The library never
 * aborts, exits or prints. */
#ifndef TANDEM_STATUS_H
#define TANDEM_STATUS_H

#include <stdint.h>

#include "tandem/status-list.h"
#include "tandem/version.h"

TANDEM_BEGIN_C

/** Result of a call. 0 is success. See status-list.h for the meaning of each value. */
enum tandem_status {
#define TANDEM_STATUS_ENUM(name, number, text) TANDEM_E_##name = number,
    TANDEM_STATUS_LIST(TANDEM_STATUS_ENUM)
#undef TANDEM_STATUS_ENUM
};
/** Success, without the E. */
#define TANDEM_OK TANDEM_E_OK

/** What went wrong. The caller owns it (usually on its stack) and passes it as last argument; NULL
 * is allowed everywhere. Filled only when the call fails; untouched on success. The layout is fixed
 * for good. */
struct tandem_error {
    enum tandem_status status; /**< what the call returned */
    int64_t got;               /**< the value found, if it is a number (bytes, index, count) */
    int64_t limit;             /**< the value expected or allowed */
    char where[96];            /**< file, tensor, node or backend concerned; may be empty */
    char text[256];            /**< "thing: what was found, what was expected"; always terminated */
};

/** Name of a status without prefix ("OK", "SHAPE", ...); "UNKNOWN" for an unknown number. Static
 * storage. Never fails. Any thread. */
TANDEM_API const char *tandem_status_name(enum tandem_status status);

/** One sentence for a status, for use without a struct tandem_error. Static storage. Never fails.
 * Any thread. */
TANDEM_API const char *tandem_status_text(enum tandem_status status);

TANDEM_END_C
#endif
