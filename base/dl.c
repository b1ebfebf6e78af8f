/* SPDX-License-Identifier: MIT
 * Optional libraries by dlopen. Independent of what the libraries do. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dl.h"

/* Appends "; reason" to a bounded text. */
static void add_reason(char *text, size_t bytes, const char *reason)
{
    size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s", n > 0 ? "; " : "", reason);
}

/* Name of the first required symbol that the library lacks, or NULL. */
static const char *missing_symbol(void *library, const struct tnd_dl_symbol *symbols, int n_symbols)
{
    for (int i = 0; i < n_symbols; i++) {
        if (symbols[i].is_required && dlsym(library, symbols[i].name) == NULL) {
            return symbols[i].name;
        }
    }
    return NULL;
}

enum tandem_status tnd_dl_open(const char *const *names, const struct tnd_dl_symbol *symbols,
                               int n_symbols, void *table, void **out_library,
                               struct tandem_error *error)
{
    char reasons[200] = "";
    for (; *names != NULL; names++) {
        struct stat facts;
        if (strchr(*names, '/') != NULL && stat(*names, &facts) == 0 && !S_ISREG(facts.st_mode)) {
            add_reason(reasons, sizeof(reasons), *names); /* opening a pipe would block */
            add_reason(reasons, sizeof(reasons), "not a regular file");
            continue;
        }
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            const char *reason = dlerror();
            add_reason(reasons, sizeof(reasons), reason != NULL ? reason : *names);
            continue;
        }
        const char *missing = missing_symbol(library, symbols, n_symbols);
        if (missing != NULL) {
            char reason[128];
            snprintf(reason, sizeof(reason), "%s has no function %s", *names, missing);
            add_reason(reasons, sizeof(reasons), reason);
            dlclose(library);
            continue;
        }
        for (int i = 0; i < n_symbols; i++) {
            /* POSIX promises that a function fits into a void pointer; ISO C does not. */
            void *symbol = dlsym(library, symbols[i].name);
            memcpy((char *)table + symbols[i].offset, &symbol, sizeof(symbol));
        }
        *out_library = library;
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, NULL, 0, 0,
                         "no usable library found: %s", reasons);
}

void tnd_dl_close(void *library)
{
    if (library != NULL) {
        dlclose(library);
    }
}

const char *tnd_dl_path(void (*function)(void))
{
    Dl_info info;
    void *address;
    memcpy(&address, &function, sizeof(address));
    return dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}
