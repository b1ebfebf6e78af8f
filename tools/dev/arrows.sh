# SPDX-License-Identifier: MIT
# For the check scripts: which module includes which. Sourced after files.sh, not run.

# arrows: one line "FROM TO" for each include between modules of the product. A module is a source file
# and the header of its name, without suffix: sched/pool.c and sched/pool.h are sched/pool.
arrows() {
    sources | grep -vE '^(tests|bench|docs)/' | xargs grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' |
        sed -E 's/^([^:]*)\.[ch]:.*"(.*)\.h"$/\1 \2/' | awk '$1 != $2 && $2 !~ /^tandem\// && $2 ~ /\// { print $1, $2 }' |
        sort -u
}

# cycles: the modules of each set that can reach one another, a set on a line.
cycles() {
    arrows | awk '
        { out[$1] = out[$1] " " $2; node[$1]; node[$2]; in_count[$2]++; out_count[$1]++; in_of[$2] = in_of[$2] " " $1 }
        END {
            # A module that no remaining one includes, or that includes none of them, is on no cycle.
            do {
                removed = 0
                for (n in node) {
                    if (in_count[n] > 0 && out_count[n] > 0) continue
                    split(out[n], targets, " ")
                    for (i in targets) in_count[targets[i]]--
                    split(in_of[n], origins, " ")
                    for (i in origins) out_count[origins[i]]--
                    delete node[n]
                    removed = 1
                }
            } while (removed)
            for (n in node) {
                if (n in seen) continue
                forward_n = reach(n, out, forward)
                reach(n, in_of, backward)
                set = ""
                count = 0
                for (m in forward) if (m in backward) { set = set " " m; seen[m]; count++ }
                if (count > 1) print substr(set, 2)
            }
        }
        function reach(from, edges, found, stack, top, n, i, k, next_) {
            split("", found)
            stack[top = 1] = from
            found[from]
            while (top > 0) {
                n = stack[top--]
                k = split(edges[n], next_, " ")
                for (i = 1; i <= k; i++) {
                    if ((next_[i] in node) && !(next_[i] in found)) { found[next_[i]]; stack[++top] = next_[i] }
                }
            }
            return 0
        }'
}

# folder_cycles: those that join files of different folders.
folder_cycles() {
    cycles | awk '{ split("", folder); n = 0
        for (i = 1; i <= NF; i++) { f = $i; sub(/\/[^\/]*$/, "", f); if (!(f in folder)) { folder[f]; n++ } }
        if (n > 1) print }'
}
