/* SPDX-License-Identifier: MIT
 * Kinds of backends, the names of their devices, and the profiles of each kind. Opens nothing;
 * knows no particular backend. */
#ifndef TND_KINDS_H
#define TND_KINDS_H

#include <stdatomic.h>

#include "tandem/backend.h"

enum {
    TND_BACKEND_NAME = 16, /* bytes of a device's name as in timing tables, the zero included */
    TND_KIND_NAME = 14,    /* bytes of a kind's name; two more digits make a device's name */
    TND_PROFILE_NAME = 32, /* bytes of a profile's name as in plans and tables */
    TND_MAX_PROFILES = 96, /* for all devices together */
    TND_MAX_DEVICES = 16   /* of one kind; there are fewer slots */
};

/** The i-th kind of this build, in the order of backend-list.h; NULL beyond the last. */
const struct tandem_backend_api *tnd_kind_at(int i);
/** Whether devices of the i-th kind are opened when the program names no backends. */
bool tnd_kind_is_default(int i);

/** Name of device `index` of a kind: the kind's own name for 0, "opencl1" for 1. */
void tnd_device_name(const char *kind, int index, char out[TND_BACKEND_NAME]);
/** Index of the device called `name` (`n` bytes) among those of a kind; -1: another kind's. */
int tnd_device_index(const char *kind, const char *name, size_t n);

/** Number of this build's kind to which a device name belongs; TANDEM_KIND_NONE: of none. */
uint32_t tnd_kind_of(const char *device);
/** Whether it is the number of a kind with memory of its own, whose times in tables include
 * transfers. */
bool tnd_kind_is_device(uint32_t kind);

/* One profile of one device. */
struct tnd_profile {
    char name[TND_PROFILE_NAME];
    char what[128];                       /* one sentence, for users */
    const struct tandem_backend_api *api; /* the kind that has it */
    int which;                            /* its index in `api` */
    char device[TND_BACKEND_NAME];
    const struct tandem_backend_api *library; /* what TANDEM_ON_LIBRARY stands for, or NULL */
};

/* Profiles in the order of listing and trying. One thread may add while others read. */
struct tnd_profiles {
    _Atomic int n;
    struct tnd_profile list[TND_MAX_PROFILES];
};

/** Adds the profiles of device `index` of a kind; `kinds` (NULL-terminated) are searched for the
 * backend that TANDEM_ON_LIBRARY stands for. Skips profiles without such a backend, with a name
 * that is too long or already listed, or beyond the capacity. */
void tnd_profiles_add(struct tnd_profiles *profiles, const struct tandem_backend_api *api,
                      int index, const struct tandem_backend_api *const *kinds);
/** Profiles of the first device of each kind of this build. Any thread. */
const struct tnd_profiles *tnd_profiles_built_in(void);
/** Finds a profile by name; for "NAME@DEVICE" with a device that is not listed, `out` is made from
 * the profile of the kind's first device. False if there is none. */
bool tnd_profiles_find(const struct tnd_profiles *profiles, const char *name,
                       struct tnd_profile *out);
/** Stages of a profile for weights of `type`; false if it does not support the type. */
bool tnd_profile_stages(const struct tnd_profile *profile, enum tandem_type type,
                        struct tandem_backend_profile *out);

#endif
