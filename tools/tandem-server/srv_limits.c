/* SPDX-License-Identifier: MIT
 * Deadlines and limits of connections. */
#include "tools/tandem-server/srv_limits.h"

#include <math.h>
#include <stdlib.h>

#define SEND_BYTES_PER_SECOND 16384.0 /* slower readers of a whole reply are disconnected */

static bool is_in_hand(const struct srv_place *place)
{
    return !place->is_closing && place->phase >= SRV_BODY;
}

/* Whether no complete request has been received. */
static bool is_half_open(const struct srv_place *place)
{
    return !place->is_closing && place->phase <= SRV_BODY;
}

static void close_place(struct srv_limits *limits, struct srv_place *place)
{
    place->is_closing = true;
    limits->n--;
    limits->options.close(place->socket);
}

static int count(const struct srv_limits *limits, uint64_t address, bool in_hand)
{
    int n = 0;
    for (const struct srv_place *p = limits->first; p != NULL; p = p->next) {
        n += p->address == address && !p->is_closing && (!in_hand || is_in_hand(p));
    }
    return n;
}

/* The connection that has been half open longest; `address`: only among those from there. */
static struct srv_place *find_stale(const struct srv_limits *limits, const uint64_t *address)
{
    struct srv_place *found = NULL;
    for (struct srv_place *p = limits->first; p != NULL; p = p->next) {
        if (is_half_open(p) && (address == NULL || p->address == *address) &&
            (found == NULL || p->since < found->since)) {
            found = p;
        }
    }
    return found;
}

/* An address with more than half of all connections gives way to its own. */
static struct srv_place *choose_stale(const struct srv_limits *limits, uint64_t address)
{
    const bool is_greedy = count(limits, address, false) > limits->options.max_connections / 2;
    struct srv_place *own = is_greedy ? find_stale(limits, &address) : NULL;
    return own != NULL ? own : find_stale(limits, NULL);
}

struct srv_place *tnd_srv_limits_add(struct srv_limits *limits, int socket, uint64_t address,
                                     double now)
{
    struct srv_place *place = calloc(1, sizeof(*place));
    if (place == NULL) {
        return NULL;
    }
    const int most = limits->options.max_connections;
    struct srv_place *stale = limits->n >= most ? choose_stale(limits, address) : NULL;
    if (stale != NULL) {
        close_place(limits, stale);
    }
    place->socket = socket;
    place->address = address;
    place->previous = limits->last;
    place->is_reserve = limits->n >= most;
    *(limits->last != NULL ? &limits->last->next : &limits->first) = place;
    limits->last = place;
    limits->n++;
    /* a new connection must send soon; between requests there is more time */
    (void)tnd_srv_limits_enter(limits, place, SRV_HEADERS, now);
    return place;
}

void tnd_srv_limits_remove(struct srv_limits *limits, struct srv_place *place)
{
    if (place == NULL) {
        return;
    }
    *(place->previous != NULL ? &place->previous->next : &limits->first) = place->next;
    *(place->next != NULL ? &place->next->previous : &limits->last) = place->previous;
    limits->n -= !place->is_closing;
    limits->n_bytes -= place->n_bytes;
    free(place);
}

void tnd_srv_limits_release(struct srv_limits *limits, struct srv_place *place)
{
    limits->n_bytes -= place->n_bytes;
    place->n_bytes = 0;
}

bool tnd_srv_limits_enter(struct srv_limits *limits, struct srv_place *place, enum srv_phase phase,
                          double now)
{
    const struct srv_limit_options *o = &limits->options;
    const double seconds[] = {o->idle_seconds, o->headers_seconds, o->body_seconds,
                              (double)INFINITY, o->idle_seconds};
    if (phase == SRV_BODY && place->address != 0 && !is_in_hand(place) &&
        count(limits, place->address, true) >= o->max_of_address) {
        return false;
    }
    if (phase != SRV_BODY && phase != SRV_COMPUTED) {
        tnd_srv_limits_release(limits, place);
    }
    place->phase = phase;
    place->since = now;
    place->deadline = now + seconds[phase];
    return true;
}

void tnd_srv_limits_send(struct srv_limits *limits, struct srv_place *place, size_t n, double now)
{
    (void)tnd_srv_limits_enter(limits, place, SRV_SENT, now);
    place->deadline += (double)n / SEND_BYTES_PER_SECOND;
}

bool tnd_srv_limits_receive(struct srv_limits *limits, struct srv_place *place, size_t n)
{
    if (n > limits->options.max_bytes - limits->n_bytes) {
        return false;
    }
    place->n_bytes += n;
    limits->n_bytes += n;
    return true;
}

int tnd_srv_limits_expire(struct srv_limits *limits, double now)
{
    int n = 0;
    for (struct srv_place *p = limits->first; p != NULL; p = p->next) {
        if (!p->is_closing && now > p->deadline) {
            close_place(limits, p);
            n++;
        }
    }
    return n;
}
