/* SPDX-License-Identifier: MIT
 * The option --table, alike in all tools: a table that somebody named has to serve. */
#ifndef TND_TABLE_OPTION_H
#define TND_TABLE_OPTION_H

#include "tandem/runtime.h"

/** OK when the table that the runtime was opened with serves it; `named` NULL, "" and "none" name
 *  none. Errors: those of tandem_table_load; TABLE_FOREIGN when none of its times hold here. */
enum tandem_status tnd_table_option_check(const char *named, const tandem_runtime *runtime,
                                          struct tandem_error *error);

#endif
