/* SPDX-License-Identifier: MIT
 * usage: shaped-switch GBIT_S LATENCY_MS LOSS_PERCENT NAMESPACE...
 * A switch with links of so much bandwidth (each way), latency (one way) and loss, for kernels
 * without netem: a TAP device `t0` in each network namespace (of `ip netns`), with the address
 * 10.213.7.1, .2, ..., and MTU 9000, so that a link of 1 Gb/s takes little of a CPU. Prints
 * "ready", and runs until standard input ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, FRAME = 9000 + 64, QUEUED = 2048 /* frames: longer queues drop */ };

struct frame {
    int64_t at_ns; /* when it is out of the switch */
    size_t bytes;
    char data[FRAME];
};

/* A host's end. Frames leave in the order in which they came, as all have the same latency. */
struct port {
    int tap;
    int64_t sent_ns, received_ns; /* until then its link is busy, either way */
    struct frame *queue;          /* {QUEUED} to this host */
    unsigned first, end;
};

static struct port ports[MOST];
static int n_ports;
static double ns_a_byte, loss;
static int64_t latency_ns;
static uint64_t random_state = 1;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int fail(const char *what)
{
    fprintf(stderr, "shaped-switch: %s: %s\n", what, strerror(errno));
    return 1;
}

/* A TAP device in a namespace, which this process enters; -1 after a message. */
static int open_tap(const char *name, int i)
{
    char path[300];
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    struct sockaddr_in address = {.sin_family = AF_INET};
    snprintf(path, sizeof(path), "/var/run/netns/%s", name);
    const int space = open(path, O_RDONLY);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
        fail(path);
        return -1;
    }
    close(space);
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    const int any = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(r.ifr_name, sizeof(r.ifr_name), "t0");
    bool is_good = tap >= 0 && any >= 0 && ioctl(tap, TUNSETIFF, &r) == 0;
    r.ifr_hwaddr.sa_family = 1; /* Ethernet */
    memcpy(r.ifr_hwaddr.sa_data, (char[]){2, 0, 0, 0, 0, (char)(i + 1)}, 6);
    is_good = is_good && ioctl(any, SIOCSIFHWADDR, &r) == 0;
    address.sin_addr.s_addr = htonl(10U << 24 | 213U << 16 | 7U << 8 | (unsigned)(i + 1));
    memcpy(&r.ifr_addr, &address, sizeof(address));
    is_good = is_good && ioctl(any, SIOCSIFADDR, &r) == 0;
    address.sin_addr.s_addr = htonl(0xffffff00U);
    memcpy(&r.ifr_netmask, &address, sizeof(address));
    is_good = is_good && ioctl(any, SIOCSIFNETMASK, &r) == 0;
    r.ifr_mtu = 9000;
    is_good = is_good && ioctl(any, SIOCSIFMTU, &r) == 0;
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    is_good = is_good && ioctl(any, SIOCSIFFLAGS, &r) == 0;
    if (!is_good) {
        fail("TAP device");
    }
    close(any);
    return is_good ? tap : -1;
}

/* (xorshift; a seed makes losses the same in each run.) */
static bool is_lost(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) * 0x1p-53 < loss;
}

/* A frame that is out of its sender's link at `sent_ns` goes to one port. */
static void enqueue(struct port *port, const char *data, size_t bytes, int64_t sent_ns)
{
    if (port->end - port->first == QUEUED) {
        return;
    }
    struct frame *frame = &port->queue[port->end++ % QUEUED];
    const int64_t wire_ns = (int64_t)((double)bytes * ns_a_byte);
    /* Its last byte is in behind those of frames of other senders. */
    int64_t received_ns = port->received_ns + wire_ns;
    received_ns = received_ns > sent_ns ? received_ns : sent_ns;
    port->received_ns = received_ns;
    frame->at_ns = received_ns + latency_ns;
    frame->bytes = bytes;
    memcpy(frame->data, data, bytes);
}

static void take_frames(int from)
{
    char data[FRAME];
    for (int i = 0; i < 64; i++) {
        const ssize_t n = read(ports[from].tap, data, sizeof(data));
        if (n < 14) {
            return;
        }
        const int64_t now = now_ns();
        const int64_t begin = ports[from].sent_ns > now ? ports[from].sent_ns : now;
        ports[from].sent_ns = begin + (int64_t)((double)n * ns_a_byte);
        const bool is_one = data[0] == 2;
        for (int p = 0; p < n_ports && !is_lost(); p++) {
            if (p != from && (!is_one || data[5] == p + 1)) {
                enqueue(&ports[p], data, (size_t)n, ports[from].sent_ns);
            }
        }
    }
}

/* Hands over what is due. Returns when the next frame is; -1: there is none. */
static int64_t hand_over(void)
{
    int64_t next = -1;
    for (int p = 0; p < n_ports; p++) {
        struct port *port = &ports[p];
        while (port->first != port->end && port->queue[port->first % QUEUED].at_ns <= now_ns()) {
            const struct frame *frame = &port->queue[port->first++ % QUEUED];
            if (write(port->tap, frame->data, frame->bytes) < 0) {
                continue; /* a link that is down */
            }
        }
        if (port->first != port->end) {
            const int64_t at = port->queue[port->first % QUEUED].at_ns;
            next = next < 0 || at < next ? at : next;
        }
    }
    return next;
}

int main(int argc, char **argv)
{
    struct pollfd polled[MOST + 1];
    n_ports = argc - 4;
    if (n_ports < 2 || n_ports > MOST) {
        fprintf(stderr, "usage: shaped-switch GBIT_S LATENCY_MS LOSS_PERCENT NAMESPACE...\n");
        return 2;
    }
    ns_a_byte = 8 / strtod(argv[1], NULL);
    latency_ns = (int64_t)(1e6 * strtod(argv[2], NULL));
    loss = strtod(argv[3], NULL) / 100;
    random_state = 88172645463325252u;
    for (int p = 0; p < n_ports; p++) {
        ports[p].queue = calloc(QUEUED, sizeof(ports[p].queue[0]));
        ports[p].tap = open_tap(argv[4 + p], p);
        if (ports[p].queue == NULL || ports[p].tap < 0) {
            return 1;
        }
        polled[p] = (struct pollfd){.fd = ports[p].tap, .events = POLLIN};
    }
    polled[n_ports] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        const int64_t next = hand_over();
        const int64_t wait = next < 0 ? 1000000000 : next - now_ns();
        const struct timespec time = {.tv_sec = wait > 0 ? wait / 1000000000 : 0,
                                      .tv_nsec = wait > 0 ? wait % 1000000000 : 0};
        if (ppoll(polled, (nfds_t)n_ports + 1, &time, NULL) < 0 && errno != EINTR) {
            return fail("poll");
        }
        if (polled[n_ports].revents != 0) {
            return 0;
        }
        for (int p = 0; p < n_ports; p++) {
            if ((polled[p].revents & POLLIN) != 0) {
                take_frames(p);
            }
        }
    }
}
