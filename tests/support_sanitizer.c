/* SPDX-License-Identifier: MIT
 * Settings of the sanitizers, compiled into suites and fuzz targets (they are asked for by name),
 * so that every way of starting a test has the same ones. Other builds ignore them. */
#include <unistd.h>

#define ASKED_FOR __attribute__((visibility("default"), used))

ASKED_FOR const char *__asan_default_options(void);
ASKED_FOR const char *__tsan_default_options(void);
ASKED_FOR const char *__ubsan_default_options(void);
ASKED_FOR const char *__tsan_default_suppressions(void);
ASKED_FOR const char *__lsan_default_suppressions(void);

/* Thread-local variables of libraries loaded later are not tracked: after a dlclose the sanitizer
 * may read what it noted of them, and its search for leaks dies. Ours are linked in. */
#define ASAN_OPTIONS                                                                               \
    "strict_string_checks=1:allocator_may_return_null=1:intercept_tls_get_addr=0:detect_leaks="

/* The search for leaks reads /proc, which a bare chroot lacks (and so are settings from the
 * environment). */
const char *__asan_default_options(void)
{
    return access("/proc/self/task", F_OK) == 0 ? ASAN_OPTIONS "1" : ASAN_OPTIONS "0";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

const char *__tsan_default_options(void)
{
    return "second_deadlock_stack=1:ignore_noninstrumented_modules=1";
}

/* OpenBLAS is not compiled with ThreadSanitizer: its own threads are out of our hands. (A
 * suppression called_from_lib ends the process at the first dlopen after it was loaded, with "is
 * matched against 2 libraries", gcc 12.) */
const char *__tsan_default_suppressions(void)
{
    return "race:libopenblas\n";
}

/* What other libraries keep until the program ends. PoCL's compiler loses some of what it makes;
 * nothing of ours is C++. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libopenblas\nleak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libstdc++\n";
}
