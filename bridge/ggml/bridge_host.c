/* SPDX-License-Identifier: MIT
 * Finding ggml's functions in the host: by the address that called us, then by their names. */
#include "bridge/ggml/bridge_host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tnd_host tnd_host;

/* ISO C cannot convert void * to a function pointer; POSIX allows it. */
static ggml_any_fn symbol(void *library, const char *name)
{
    union ggml_word word = {.p = dlsym(library, name)};
    return word.fn;
}

/* The library that contains the address, or the program. dlsym also searches its dependencies. */
static void *open_host(void *address)
{
    Dl_info info;
    void *library = NULL;
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL) {
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    return library != NULL ? library : dlopen(NULL, RTLD_LAZY);
}

bool tnd_host_find(void *return_address, char *out_why, size_t why_bytes)
{
    struct tnd_host found = {.library = open_host(return_address)};
    const char *missing = NULL;
    if (found.library == NULL) {
        (void)snprintf(out_why, why_bytes, "the program that loads it cannot be opened");
        return false;
    }
#define TND_HOST_FIND(result, name, parameters)                                                    \
    found.name = (result(*) parameters)symbol(found.library, #name);                               \
    missing = missing == NULL && found.name == NULL ? #name : missing;
    TND_HOST_FUNCTIONS(TND_HOST_FIND)
#undef TND_HOST_FIND
    found.log = (void (*)(int, const char *, ...))symbol(found.library, "ggml_log_internal");
    if (missing != NULL) {
        (void)snprintf(out_why, why_bytes,
                       "the program does not export %s: is ggml linked into it statically?",
                       missing);
        return false;
    }
    const char *version = found.ggml_version();
    if (version == NULL ||
        sscanf(version, "%d.%d.%d", &found.major, &found.minor, &found.patch) != 3) {
        (void)snprintf(out_why, why_bytes, "the program's ggml does not tell its version");
        return false;
    }
    tnd_host = found;
    return true;
}

void tnd_host_log(int level, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (tnd_host.log == NULL) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    tnd_host.log(level, "tandem: %s\n", text);
}
