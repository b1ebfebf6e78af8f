/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Version numbers and symbol visibility. Every other public header includes this one. */
#ifndef TANDEM_VERSION_H
#define TANDEM_VERSION_H

#define TANDEM_VERSION_MAJOR  0
#define TANDEM_VERSION_MINOR  1
#define TANDEM_VERSION_PATCH  0
#define TANDEM_VERSION_STRING "0.1.0"

/** Binary interface number. Programs and out-of-tree backends built for another number are refused.
 *  */
#define TANDEM_ABI 2

#if defined(__GNUC__) || defined(__clang__)
#define TANDEM_API __attribute__((visibility("default")))
#else
#define TANDEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the library that is running, for example "0.1.0". Any thread. Static storage. */
TANDEM_API const char *tandem_version(void);

#ifdef __cplusplus
}
#endif
#endif
