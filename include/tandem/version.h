/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Version numbers and symbol visibility. Every other public header includes this one. */
#ifndef TANDEM_VERSION_H
#define TANDEM_VERSION_H

#define TANDEM_VERSION_MAJOR  0
#define TANDEM_VERSION_MINOR  2
#define TANDEM_VERSION_PATCH  0
#define TANDEM_VERSION_STRING "0.2.0"

/** Binary interface number. A plugin built for another number is refused. For programs, the
 * library's file name and the version of its symbols change: libtandem.so.0.2, TANDEM_0.2. Within
 * one number, structures that begin with `size` (or with `abi` and `size`) only grow at their ends,
 * and shorter ones are accepted; all others keep their layout; numbers of statuses, types, kinds
 * and stages do not change. tests/suite_runtime_abi.c checks each size and offset. */
#define TANDEM_ABI 2

/** Marks what libtandem.so exports. */
#if defined(__GNUC__) || defined(__clang__)
#define TANDEM_API __attribute__((visibility("default")))
#else
#define TANDEM_API
#endif

/** Around the declarations of each public header: C linkage in C++. */
#ifdef __cplusplus
#define TANDEM_BEGIN_C extern "C" {
#define TANDEM_END_C   }
#else
#define TANDEM_BEGIN_C
#define TANDEM_END_C
#endif

TANDEM_BEGIN_C

/** Version of the library that is running, for example "0.2.0". Static storage. Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_version(void);

TANDEM_END_C
#endif
