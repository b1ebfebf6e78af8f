/* SPDX-License-Identifier: MIT
 * Decides which connections may stay, so that one client cannot lock out the others. Each
 * connection has a phase with a deadline; when the limit is reached, the one that has gone longest
 * without sending a complete request is closed; some connections are reserved for /health. The
 * caller provides clock and locks; sockets are only numbers here. */
#ifndef TANDEM_SERVER_SRV_LIMITS_H
#define TANDEM_SERVER_SRV_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum srv_phase {
    SRV_WAITS,    /* for a request: nothing received yet, or the last one was answered */
    SRV_HEADERS,  /* a request has begun */
    SRV_BODY,     /* the headers are complete */
    SRV_COMPUTED, /* the request is complete; the server works on it */
    SRV_SENT      /* the client reads the reply */
};

enum { SRV_RESERVE = 16 /* connections beyond the limit, for /health only */ };

struct srv_limit_options {
    int max_connections;
    int max_of_address;  /* concurrent requests of one address */
    double idle_seconds; /* between requests, and for reading a block of a reply */
    double headers_seconds, body_seconds;
    size_t max_bytes;          /* of all bodies that are being received or processed */
    void (*close)(int socket); /* shuts a connection down; tnd_srv_limits_remove follows later */
};

/** A connection. */
struct srv_place {
    int socket;
    uint64_t address; /* identifies a client; 0: this machine, whose clients are not told apart */
    enum srv_phase phase;
    double since, deadline; /* of the phase */
    size_t n_bytes;         /* of its body */
    bool is_reserve;        /* may only ask for /health */
    bool is_closing;
    struct srv_place *next, *previous;
};

struct srv_limits {
    struct srv_limit_options options;
    struct srv_place *first; /* oldest first */
    struct srv_place *last;
    int n; /* without those being closed */
    size_t n_bytes;
};

/** Adds a connection, and may close another one. NULL: out of memory. */
struct srv_place *tnd_srv_limits_add(struct srv_limits *limits, int socket, uint64_t address,
                                     double now);
/** Removes a closed connection. NULL is allowed. */
void tnd_srv_limits_remove(struct srv_limits *limits, struct srv_place *place);
/** Moves a connection to a phase, or restarts its phase. False, only for SRV_BODY: its address has
 * too many concurrent requests. */
bool tnd_srv_limits_enter(struct srv_limits *limits, struct srv_place *place, enum srv_phase phase,
                          double now);
/** Sets the deadline for reading a whole reply of n bytes. */
void tnd_srv_limits_send(struct srv_limits *limits, struct srv_place *place, size_t n, double now);
/** Counts n more bytes of a body. False: too many in total. */
bool tnd_srv_limits_receive(struct srv_limits *limits, struct srv_place *place, size_t n);
/** Call when the body was processed and freed. */
void tnd_srv_limits_release(struct srv_limits *limits, struct srv_place *place);
/** Closes connections past their deadline; returns how many. */
int tnd_srv_limits_expire(struct srv_limits *limits, double now);

#endif
