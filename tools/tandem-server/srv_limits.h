/* SPDX-License-Identifier: MIT
 * Which connections may stay, so that one client cannot keep the others out. Each connection has a
 * phase with a deadline; when all places are taken, the one that has sent no whole request for the
 * longest time gives way; some places are kept for /health. The clock is the caller's, as are
 * locks: nothing here knows sockets but as numbers. */
#ifndef TANDEM_SERVER_SRV_LIMITS_H
#define TANDEM_SERVER_SRV_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum srv_phase {
    SRV_WAITS,    /* for a request: nothing has come, or the last one was answered */
    SRV_HEADERS,  /* a request has begun */
    SRV_BODY,     /* its headers are there */
    SRV_COMPUTED, /* all of it is there; the server's turn */
    SRV_SENT      /* the reply is waiting to be read */
};

enum { SRV_RESERVE = 16 /* connections beyond the most that are taken, for /health */ };

struct srv_limit_options {
    int max_connections;
    int max_of_address;  /* requests in hand of one address */
    double idle_seconds; /* between requests, and for a block of a reply to be read */
    double headers_seconds, body_seconds;
    size_t max_bytes;          /* of all bodies that are received or wait to be read */
    void (*close)(int socket); /* cuts a connection; tnd_srv_limits_remove follows later */
};

/** A connection. */
struct srv_place {
    int socket;
    uint64_t address; /* equal for one client; 0: this machine, whose clients are not told apart */
    enum srv_phase phase;
    double since, deadline; /* of the phase */
    size_t n_bytes;         /* of its body */
    bool is_reserve;        /* may ask for /health alone */
    bool is_closing;
    struct srv_place *next, *previous;
};

struct srv_limits {
    struct srv_limit_options options;
    struct srv_place *first; /* the oldest */
    struct srv_place *last;
    int n; /* without those that are closing */
    size_t n_bytes;
};

/** A new connection, and maybe an end of another one. NULL: no memory. */
struct srv_place *tnd_srv_limits_add(struct srv_limits *limits, int socket, uint64_t address,
                                     double now);
/** The connection is closed. NULL is allowed. */
void tnd_srv_limits_remove(struct srv_limits *limits, struct srv_place *place);
/** The connection enters a phase, anew if it is in it. False, of SRV_BODY only: its address has too
 *  many requests in hand. */
bool tnd_srv_limits_enter(struct srv_limits *limits, struct srv_place *place, enum srv_phase phase,
                          double now);
/** A reply of n bytes is to be read as a whole. */
void tnd_srv_limits_send(struct srv_limits *limits, struct srv_place *place, size_t n, double now);
/** n more bytes of a body. False: there are too many in all. */
bool tnd_srv_limits_receive(struct srv_limits *limits, struct srv_place *place, size_t n);
/** The body was read and freed. */
void tnd_srv_limits_release(struct srv_limits *limits, struct srv_place *place);
/** Closes what is behind its deadline; returns how many. */
int tnd_srv_limits_expire(struct srv_limits *limits, double now);

#endif
