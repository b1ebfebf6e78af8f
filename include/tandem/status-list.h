/* SPDX-License-Identifier: MIT
 * room: base
 *
 * X(NAME, number, "text"): the only place where a status is added. Numbers are pinned (they may be
 * stored by programs); they stand in tens by class: 10 argument, 20 state, 30 memory, 40 file and
 * format, 50 table, 60 unsupported, 70 device, 80 ended early. */
#define TANDEM_STATUS_LIST(X)                                                                      \
    X(OK, 0, "success")                                                                            \
    X(ARGUMENT, 10, "an argument is out of its range")                                             \
    X(SHAPE, 11, "tensor shapes do not fit together")                                              \
    X(TYPE, 12, "a tensor has a type that this operation does not take")                           \
    X(ABI, 13, "program and library were built for different interfaces")                          \
    X(STATE, 20, "the object is not in the state that this call needs")                            \
    X(BUSY, 21, "the object is in use by another thread")                                          \
    X(MEMORY, 30, "out of memory")                                                                 \
    X(OVERFLOW, 31, "a size does not fit into the machine's integers")                             \
    X(FILE, 40, "a file could not be read or written")                                             \
    X(FORMAT, 41, "a file's contents break the rules of its format")                               \
    X(TRUNCATED, 42, "a file ends before its contents do")                                         \
    X(NOT_FOUND, 43, "a named thing does not exist")                                               \
    X(EXISTS, 44, "a thing of that name exists already")                                           \
    X(TABLE, 50, "a timing table cannot be used")                                                  \
    X(TABLE_FOREIGN, 51, "a timing table was measured on another machine")                         \
    X(TABLE_VERSION, 52, "a timing table has a version that this library does not know")           \
    X(UNSUPPORTED_BUILD, 60, "not supported by this build of the library")                         \
    X(UNSUPPORTED_MACHINE, 61, "not supported by this machine")                                    \
    X(UNSUPPORTED_BACKEND, 62, "not supported by this backend")                                    \
    X(DEVICE, 70, "a device failed")                                                               \
    X(DEVICE_LOST, 71, "a device is gone")                                                         \
    X(DEVICE_MEMORY, 72, "a device is out of memory")                                              \
    X(DEVICE_TIMEOUT, 73, "a device did not answer in time")                                       \
    X(THREAD, 74, "a thread could not be started or configured")                                   \
    X(RANK, 75, "another process of a shared computation failed or did not answer")                \
    X(CANCELLED, 80, "cancelled by the caller")                                                    \
    X(LIMIT, 81, "a limit that the caller set was reached")
