/* SPDX-License-Identifier: MIT
 * mbind and get_mempolicy without libnuma. Numbers: Linux include/uapi/linux/mempolicy.h, mbind(2),
 * get_mempolicy(2). */
#include "base/numa.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MODE_INTERLEAVE = 3,  /* MPOL_INTERLEAVE */
    ASK_NODE = 1 << 0,    /* MPOL_F_NODE */
    ASK_ADDRESS = 1 << 1, /* MPOL_F_ADDR */
    MASK_NODES = 1024,
    WORD_BITS = 8 * sizeof(unsigned long)
};

const char *tnd_numa_policy_name(enum tnd_numa_policy policy)
{
    static const char *const names[TND_NUMA_POLICIES] = {"auto", "off", "first-touch", "interleave",
                                                         "mirror"};
    return names[policy];
}

int tnd_numa_interleave(void *pages, size_t bytes, const int *node_ids, int n)
{
    unsigned long mask[MASK_NODES / WORD_BITS];
    memset(mask, 0, sizeof(mask));
    for (int i = 0; i < n; i++) {
        if (node_ids[i] < 0 || node_ids[i] >= MASK_NODES - 1) {
            return EINVAL;
        }
        mask[(size_t)node_ids[i] / WORD_BITS] |= 1UL << ((size_t)node_ids[i] % WORD_BITS);
    }
#ifdef SYS_mbind
    return syscall(SYS_mbind, pages, bytes, MODE_INTERLEAVE, mask, (unsigned long)MASK_NODES, 0) ==
                   0
               ? 0
               : errno;
#else
    (void)pages;
    (void)bytes;
    return ENOSYS;
#endif
}

int tnd_numa_node_of(const void *page)
{
#ifdef SYS_get_mempolicy
    int node = -1;
    if (syscall(SYS_get_mempolicy, &node, NULL, 0UL, page, ASK_NODE | ASK_ADDRESS) == 0) {
        return node;
    }
#else
    (void)page;
#endif
    return -1;
}
