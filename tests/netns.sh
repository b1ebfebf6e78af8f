# SPDX-License-Identifier: MIT
# Sourced by scripts that run ranks over real links: network namespaces of our own, each with a host name,
# joined by a switch that has bandwidth, latency and loss (shaped_switch.c, which needs no netem).
#     net_up BUILD N GBIT_S LATENCY_MS LOSS_PERCENT     makes them, or says why that is not possible
#     net_launch MPI N COMMAND...     one rank on each of the first N, one CPU each
#     net_cut I                       takes the link of namespace I, from 0, away
#     net_down                        removes all of it
# With net_realtime=1 ranks run at real-time priority, below the switch and the kernel's own threads that
# deliver frames, so that other programs of this machine do not disturb them: for runs of seconds. TCP sends as
# the kernel's `cubic` does, where that may be chosen (net.ipv4.tcp_allowed_congestion_control).
net_name=tnd$$
net_n=0
net_agent=
net_pipe=
net_limit=300 # seconds of a launch
net_realtime=
net_first=() net_rank=() # what commands of launchers, and of ranks, begin with

net_up() {
    local i names=()
    [ -x "$1/shaped-switch" ] || { echo "no $1/shaped-switch: make BUILD=... shaped-switch"; return 1; }
    command -v ip >/dev/null || { echo "no ip (Debian: iproute2)"; return 1; }
    [ -e /dev/net/tun ] || { echo "no /dev/net/tun"; return 1; }
    for i in $(seq 0 $(($2 - 1))); do
        ip netns add "$net_name-$i" 2>/dev/null || { echo "network namespaces are not permitted here"; net_down; return 1; }
        net_n=$((i + 1))
        ip -n "$net_name-$i" link set lo up
        ip netns exec "$net_name-$i" sysctl -qw net.ipv4.tcp_congestion_control=cubic 2>/dev/null # as most machines
        names+=("$net_name-$i")
    done
    # What launchers call to start something on a host.
    net_agent=$(mktemp)
    net_first=() net_rank=()
    # (In turns: a rank that waits must leave its CPU to its launcher, and to its own threads.)
    if [ -n "$net_realtime" ] && chrt -f 20 true 2>/dev/null; then
        net_first=(chrt -r 26) net_rank=(chrt -r 24)
        net_deliver -f -p 28
    fi
    cat >"$net_agent" <<AGENT
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
i=\$((\${1##*.} - 1))
shift
exec ${net_first[*]} ip netns exec $net_name-\$i unshare --uts taskset -c \$((i % $(nproc))) bash -c "hostname host\$i; \$*"
AGENT
    chmod +x "$net_agent"
    # (At real-time priority, where that may be: a switch does not wait for a CPU.)
    local first=()
    chrt -f 20 true 2>/dev/null && first=(chrt -f 30)
    coproc net_switch { exec "${first[@]}" "$1/shaped-switch" "$3" "$4" "$5" "${names[@]}" 2>&1; }
    read -r i <&"${net_switch[0]}"
    [ "$i" = ready ] || { echo "$i"; net_down; return 1; }
}
# With ARGUMENTS of chrt for the kernel's threads that deliver frames where a CPU has none free.
net_deliver() {
    local pid
    for pid in $(pgrep '^ksoftirqd/'); do
        chrt "$@" "$pid" 2>/dev/null
    done
}
net_cut() { ip -n "$net_name-$1" link set t0 down; }
net_launch() {
    local mpi=$1 n=$2 hosts
    shift 2
    hosts=$(seq -s, -f '10.213.7.%g' 1 "$n")
    local run=("${net_first[@]}" ip netns exec "$net_name-0" unshare --uts taskset -c 0 bash -c 'hostname host0; exec "$@"' - timeout --kill-after=5 "$net_limit")
    case $mpi in
    openmpi) "${run[@]}" mpirun.openmpi --allow-run-as-root -np "$n" --host "$hosts" --bind-to none \
        --mca plm_rsh_agent "$net_agent" --mca btl self,tcp --mca btl_tcp_if_include t0 --mca oob_tcp_if_include t0 "${net_rank[@]}" "$@" ;;
    mpich) "${run[@]}" env MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=t0 mpirun.mpich -np "$n" -hosts "$hosts" -localhost 10.213.7.1 -iface t0 -launcher ssh \
        -launcher-exec "$net_agent" "${net_rank[@]}" "$@" ;;
    esac
}
net_down() {
    local i
    [ -z "${net_switch_PID:-}" ] || kill "$net_switch_PID" 2>/dev/null
    for i in $(seq 0 $((net_n - 1))); do
        ip netns del "$net_name-$i"
    done
    [ ${#net_first[@]} = 0 ] || net_deliver -o -p 0
    net_first=() net_rank=()
    rm -f "$net_agent"
    net_n=0
}
