/* SPDX-License-Identifier: MIT
 * The ring: uploads fill parts of pinned memory in turn, and commands that nothing waits for write
 * them to the device; a part is filled again when its last command is over. So copying into the
 * next part overlaps with the device's reading of the previous one, and small uploads never wait.
 *
 * Downloads run in a queue of their own after earlier work, into pinned memory, from which the host
 * copies them when it syncs: later work runs concurrently. Work that would overwrite data of a
 * download in flight waits for it (tnd_gpu_await_reads). Devices that share the host's memory gain
 * nothing and copy between works.
 *
 * Tickets count submissions. Queues are in order and a download comes after all earlier work, so
 * when its event is over, everything before it is over. */
#include "backends/gpu/gpu_transfer.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_memory.h"
#include "base/alloc.h"

enum {
    N_PARTS = 4,
    PART_BYTES = 4 << 20,
    PART_ALIGN = 256,
    N_DOWNLOADS = 256,
    BACK_BYTES = 8 << 20
};

struct part {
    size_t used;
    struct tnd_gpu_event *last; /* command that reads the part; NULL: none */
};

struct download {
    uint64_t ticket; /* 0: free */
    struct tnd_gpu_event *event;
    void *to;
    size_t bytes;
    char *staged; /* its staging area in pinned memory; NULL: read directly into `to` */
    const struct tnd_gpu_block *block; /* source; NULL: no work needs to wait for it (any more) */
    size_t begin;                      /* in the block */
    int n_held;                        /* syncs that wait for the event, which must stay */
};

struct ring {
    pthread_mutex_t lock;          /* guards everything below; taken before ticket_lock */
    struct tnd_gpu_buffer *pinned; /* NULL until the first upload */
    void *host;                    /* `pinned` as the host sees it */
    struct part parts[N_PARTS];
    int current;
    int64_t bytes; /* transferred so far */
};

struct tnd_gpu_transfer {
    struct ring uploads;
    struct ring streams; /* separate, so that uploads do not wait for weights in flight */

    pthread_mutex_t ticket_lock; /* guards all below */
    uint64_t next_ticket;
    uint64_t done; /* all tickets up to here are over */
    struct download downloads[N_DOWNLOADS];
    atomic_int n_downloads;      /* listed with a block; changed under the lock */
    struct tnd_gpu_buffer *back; /* pinned; NULL until the first staged download */
    char *back_host;
    size_t back_head; /* end of the newest staged download */
    int64_t downloaded_bytes;
    uint64_t failed_ticket;     /* the first ticket that failed; 0: none */
    struct tandem_error failed; /* its error */
};

enum tandem_status tnd_gpu_transfer_open(struct tnd_gpu_device *device, struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = tnd_calloc(1, sizeof(*transfer));
    if (transfer == NULL) {
        return tnd_gpu_no_memory(device, sizeof(*transfer), error);
    }
    pthread_mutex_init(&transfer->uploads.lock, NULL);
    pthread_mutex_init(&transfer->streams.lock, NULL);
    pthread_mutex_init(&transfer->ticket_lock, NULL);
    transfer->next_ticket = 1;
    device->transfer = transfer;
    return TANDEM_OK;
}

static void close_ring(const struct tnd_gpu_device *device, struct ring *ring)
{
    for (int i = 0; i < N_PARTS; i++) {
        device->driver->event_free(device->context, ring->parts[i].last);
    }
    device->driver->pinned_free(device->context, ring->pinned, ring->host);
    pthread_mutex_destroy(&ring->lock);
}

void tnd_gpu_transfer_close(struct tnd_gpu_device *device)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    if (transfer == NULL) {
        return;
    }
    for (int i = 0; i < N_DOWNLOADS; i++) {
        if (transfer->downloads[i].ticket != 0) {
            device->driver->event_free(device->context, transfer->downloads[i].event);
        }
    }
    close_ring(device, &transfer->uploads);
    close_ring(device, &transfer->streams);
    device->driver->pinned_free(device->context, transfer->back, transfer->back_host);
    pthread_mutex_destroy(&transfer->ticket_lock);
    tnd_free(transfer);
    device->transfer = NULL;
}

static int64_t count_bytes(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    int64_t bytes = ring->bytes;
    pthread_mutex_unlock(&ring->lock);
    return bytes;
}

void tnd_gpu_transfer_count(struct tnd_gpu_device *device, struct tnd_gpu_statistics *statistics)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    statistics->streamed_bytes = count_bytes(&transfer->streams);
    statistics->uploaded_bytes = count_bytes(&transfer->uploads) + statistics->streamed_bytes;
    pthread_mutex_lock(&transfer->ticket_lock);
    statistics->downloaded_bytes = transfer->downloaded_bytes;
    pthread_mutex_unlock(&transfer->ticket_lock);
}

/* ---- up: under the lock of the ring ---- */

/* Makes sure that the current part has room for at least one byte. */
static enum tandem_status make_room(const struct tnd_gpu_device *device, struct ring *ring,
                                    struct tandem_error *error)
{
    if (ring->pinned == NULL) {
        TND_TRY(device->driver->pinned_new(device->context, (size_t)N_PARTS * PART_BYTES,
                                           &ring->pinned, &ring->host, error));
    }
    if (ring->parts[ring->current].used < PART_BYTES) {
        return TANDEM_OK;
    }
    int next = (ring->current + 1) % N_PARTS;
    struct part *part = &ring->parts[next];
    if (part->last != NULL) {
        TND_TRY(device->driver->event_wait(device->context, part->last, error));
        device->driver->event_free(device->context, part->last);
        part->last = NULL;
    }
    part->used = 0;
    ring->current = next;
    return TANDEM_OK;
}

/* Writes as much as fits into the current part, after `after` (NULL: nothing). */
static enum tandem_status write_some(const struct tnd_gpu_device *device, struct ring *ring,
                                     enum tnd_gpu_queue queue, struct tnd_gpu_event *after,
                                     struct tnd_gpu_range to, const char *from, size_t bytes,
                                     size_t *out_n, struct tandem_error *error)
{
    TND_TRY(make_room(device, ring, error));
    struct part *part = &ring->parts[ring->current];
    size_t n = PART_BYTES - part->used;
    n = n < bytes ? n : bytes;
    char *staged = (char *)ring->host + (size_t)ring->current * PART_BYTES + part->used;
    memcpy(staged, from, n);
    struct tnd_gpu_event *event = NULL;
    TND_TRY(device->driver->write(device->context, queue, after, to.buffer, to.offset, staged, n,
                                  &event, error));
    device->driver->event_free(device->context, part->last);
    part->last = event;
    part->used = (part->used + n + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    ring->bytes += (int64_t)n;
    *out_n = n;
    return TANDEM_OK;
}

/* The device reads one part while the next one is filled. */
static enum tandem_status write_all(const struct tnd_gpu_device *device, struct ring *ring,
                                    enum tnd_gpu_queue queue, struct tnd_gpu_event *after,
                                    struct tnd_gpu_range to, const char *from, size_t bytes,
                                    struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    while (status == TANDEM_OK && bytes > 0) {
        size_t n = 0;
        status = write_some(device, ring, queue, after, to, from, bytes, &n, error);
        after = NULL; /* the queue is in order */
        from += n;
        to.offset += n;
        bytes -= n;
        if (status == TANDEM_OK && bytes > 0) {
            status = device->driver->flush(device->context, queue, error);
        }
    }
    return status;
}

/* For large uploads to memory shared with the host: one copy by the driver instead of two. */
static enum tandem_status write_directly(struct tnd_gpu_device *device, struct tnd_gpu_range to,
                                         const void *from, size_t bytes, struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    TND_TRY(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, to.buffer, to.offset,
                                  from, bytes, NULL, error));
    pthread_mutex_lock(&transfer->uploads.lock);
    transfer->uploads.bytes += (int64_t)bytes;
    pthread_mutex_unlock(&transfer->uploads.lock);
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_write(struct tnd_gpu_device *device, struct tnd_gpu_range to,
                                 const void *from, size_t bytes, struct tandem_error *error)
{
    if (device->caps.unified && bytes > (size_t)N_PARTS * PART_BYTES) {
        return write_directly(device, to, from, bytes, error);
    }
    struct ring *ring = &device->transfer->uploads;
    pthread_mutex_lock(&ring->lock);
    enum tandem_status status =
        write_all(device, ring, TND_GPU_QUEUE_WORK, NULL, to, from, bytes, error);
    pthread_mutex_unlock(&ring->lock);
    return status;
}

enum tandem_status tnd_gpu_write_stream(struct tnd_gpu_device *device, struct tnd_gpu_event *after,
                                        struct tnd_gpu_range to, const void *from, size_t bytes,
                                        struct tnd_gpu_event **out_event,
                                        struct tandem_error *error)
{
    struct ring *ring = &device->transfer->streams;
    pthread_mutex_lock(&ring->lock);
    enum tandem_status status =
        write_all(device, ring, TND_GPU_QUEUE_STREAM, after, to, from, bytes, error);
    if (status == TANDEM_OK) { /* the queue is in order */
        status = device->driver->mark(device->context, TND_GPU_QUEUE_STREAM, out_event, error);
    }
    if (status == TANDEM_OK) {
        status = device->driver->flush(device->context, TND_GPU_QUEUE_STREAM, error);
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* ---- down and waiting: under ticket_lock ---- */

static void keep_failure(struct tnd_gpu_transfer *transfer, uint64_t ticket,
                         const struct tandem_error *told)
{
    if (transfer->failed_ticket == 0 || ticket < transfer->failed_ticket) {
        transfer->failed_ticket = ticket;
        transfer->failed = *told;
    }
}

/* The first download up to a ticket that is still in pinned memory; NULL: none. */
static struct download *oldest_staged(struct tnd_gpu_transfer *transfer, uint64_t ticket)
{
    struct download *found = NULL;
    for (int i = 0; i < N_DOWNLOADS; i++) {
        struct download *one = &transfer->downloads[i];
        if (one->ticket != 0 && one->ticket <= ticket && one->staged != NULL &&
            (found == NULL || one->ticket < found->ticket)) {
            found = one;
        }
    }
    return found;
}

/* Marks a download as one that no work waits for any more. */
static void forget_block(struct tnd_gpu_transfer *transfer, struct download *download)
{
    if (download->block != NULL) {
        download->block = NULL;
        atomic_fetch_sub_explicit(&transfer->n_downloads, 1, memory_order_relaxed);
    }
}

/* Copies the bytes of a completed download to their destination. Records the error of an event that
 * failed. */
static void deliver(struct tnd_gpu_device *device, struct download *download)
{
    struct tandem_error told = {0};
    bool is_over = false;
    if (device->driver->event_check(device->context, download->event, &is_over, &told) !=
        TANDEM_OK) {
        keep_failure(device->transfer, download->ticket, &told);
    } else if (download->staged != NULL && is_over) {
        memcpy(download->to, download->staged, download->bytes);
    }
    download->staged = NULL;
}

/* Delivers completed downloads, in order because two may have the same destination, and removes
 * them from the list. */
static void drop_downloads_until(struct tnd_gpu_device *device, uint64_t ticket)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    struct download *next;
    while ((next = oldest_staged(transfer, ticket)) != NULL) {
        deliver(device, next);
    }
    for (int i = 0; i < N_DOWNLOADS; i++) {
        struct download *one = &transfer->downloads[i];
        if (one->ticket != 0 && one->ticket <= ticket && one->n_held == 0) {
            deliver(device, one);
            forget_block(transfer, one);
            device->driver->event_free(device->context, one->event);
            *one = (struct download){.ticket = 0};
        }
    }
}

/* A slot for a new download: a free one, or the oldest one's after waiting for it. */
static enum tandem_status free_place(struct tnd_gpu_device *device, struct download **out_place,
                                     struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    struct download *place = &transfer->downloads[0];
    for (int i = 1; i < N_DOWNLOADS && place->ticket != 0; i++) {
        struct download *one = &transfer->downloads[i];
        const bool is_better =
            one->n_held == 0 && (place->n_held > 0 || one->ticket < place->ticket);
        place = is_better ? one : place;
    }
    if (place->ticket != 0) {
        TND_TRY(device->driver->event_wait(device->context, place->event, error));
        transfer->done = place->ticket > transfer->done ? place->ticket : transfer->done;
        drop_downloads_until(device, place->ticket);
    }
    if (place->ticket != 0) { /* as many threads wait for downloads */
        return tnd_gpu_no_memory(device, sizeof(*place), error);
    }
    *out_place = place;
    return TANDEM_OK;
}

/* Allocates pinned memory for a download from a ring whose tail is the oldest listed download.
 * NULL: there is no room; the driver copies directly. */
static char *take_room(struct tnd_gpu_device *device, size_t bytes)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    void *host = NULL;
    bytes = bytes <= BACK_BYTES ? (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN : bytes;
    if (bytes > BACK_BYTES / 2) {
        return NULL;
    }
    if (transfer->back == NULL) {
        if (device->driver->pinned_new(device->context, BACK_BYTES, &transfer->back, &host, NULL) !=
            TANDEM_OK) {
            return NULL;
        }
        transfer->back_host = host;
    }
    const struct download *last = oldest_staged(transfer, UINT64_MAX);
    size_t head = last != NULL ? transfer->back_head : 0;
    const size_t tail = last != NULL ? (size_t)(last->staged - transfer->back_host) : BACK_BYTES;
    if (last != NULL && head > tail) { /* the used part is contiguous: allocate after it, or before
                                        * it */
        head = BACK_BYTES - head >= bytes ? head : 0;
    }
    if (head <= tail ? tail - head < bytes + (last != NULL) : BACK_BYTES - head < bytes) {
        return NULL;
    }
    transfer->back_head = head + bytes;
    return transfer->back_host + head;
}

/* Reads in the download queue, after all work submitted so far. `place` is complete except for
 * ticket and event. */
static enum tandem_status read_beside(struct tnd_gpu_device *device, struct tnd_gpu_range from,
                                      struct download *place, struct tandem_error *error)
{
    const struct tnd_gpu_driver *driver = device->driver;
    struct tnd_gpu_event *after = NULL;
    char *staged = take_room(device, place->bytes);
    TND_TRY(driver->mark(device->context, TND_GPU_QUEUE_WORK, &after, error));
    enum tandem_status status = driver->flush(device->context, TND_GPU_QUEUE_WORK, error);
    if (status == TANDEM_OK) {
        status =
            driver->read(device->context, TND_GPU_QUEUE_BACK, after, from.buffer, from.offset,
                         staged != NULL ? staged : place->to, place->bytes, &place->event, error);
    }
    driver->event_free(device->context, after);
    TND_TRY(status);
    place->staged = staged;
    atomic_fetch_add_explicit(&device->transfer->n_downloads, 1, memory_order_relaxed);
    /* the read is submitted and will write to `to`, so it gets a ticket even if the flush fails */
    (void)driver->flush(device->context, TND_GPU_QUEUE_BACK, NULL);
    return TANDEM_OK;
}

static enum tandem_status read_locked(struct tnd_gpu_device *device, struct tandem_place place,
                                      struct tnd_gpu_range from, void *to, size_t bytes,
                                      uint64_t *out_ticket, struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    struct download *free = NULL;
    TND_TRY(free_place(device, &free, error));
    struct download one = {.to = to, .bytes = bytes, .begin = place.offset};
    if (device->caps.unified) {
        TND_TRY(device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, from.buffer,
                                     from.offset, to, bytes, &one.event, error));
        (void)device->driver->flush(device->context, TND_GPU_QUEUE_WORK, NULL);
    } else {
        one.block = place.handle;
        TND_TRY(read_beside(device, from, &one, error));
    }
    one.ticket = transfer->next_ticket++;
    *free = one;
    transfer->downloaded_bytes += (int64_t)bytes;
    *out_ticket = one.ticket;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_read(struct tnd_gpu_device *device, struct tandem_place place,
                                struct tnd_gpu_range from, void *to, size_t bytes,
                                uint64_t *out_ticket, struct tandem_error *error)
{
    if (bytes == 0) {
        *out_ticket = tnd_gpu_ticket(device);
        return TANDEM_OK;
    }
    pthread_mutex_lock(&device->transfer->ticket_lock);
    enum tandem_status status = read_locked(device, place, from, to, bytes, out_ticket, error);
    pthread_mutex_unlock(&device->transfer->ticket_lock);
    return status;
}

enum tandem_status tnd_gpu_await_reads(struct tnd_gpu_device *device, struct tandem_place place,
                                       size_t bytes, int *out_n, struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    enum tandem_status status = TANDEM_OK;
    *out_n = 0;
    /* relaxed: overwriting what another thread has just begun to read is a race of the caller's
     * anyway */
    if (place.handle == NULL || bytes == 0 ||
        atomic_load_explicit(&transfer->n_downloads, memory_order_relaxed) == 0) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&transfer->ticket_lock);
    for (int i = 0; i < N_DOWNLOADS && status == TANDEM_OK; i++) {
        struct download *one = &transfer->downloads[i];
        if (one->block == place.handle && one->begin < place.offset + bytes &&
            place.offset < one->begin + one->bytes) {
            status = device->driver->await(device->context, TND_GPU_QUEUE_WORK, one->event, error);
            if (status == TANDEM_OK) { /* the queue is in order: one wait is enough */
                forget_block(transfer, one);
                ++*out_n;
            }
        }
    }
    pthread_mutex_unlock(&transfer->ticket_lock);
    return status;
}

uint64_t tnd_gpu_ticket(struct tnd_gpu_device *device)
{
    pthread_mutex_lock(&device->transfer->ticket_lock);
    uint64_t ticket = device->transfer->next_ticket++;
    pthread_mutex_unlock(&device->transfer->ticket_lock);
    return ticket;
}

/* The download of a ticket, or else the last one before it; NULL: all are delivered. */
static struct download *last_until(struct tnd_gpu_transfer *transfer, uint64_t ticket)
{
    struct download *found = NULL;
    for (int i = 0; i < N_DOWNLOADS; i++) {
        struct download *one = &transfer->downloads[i];
        if (one->ticket != 0 && one->ticket <= ticket &&
            (found == NULL || one->ticket > found->ticket)) {
            found = one;
        }
    }
    return found;
}

bool tnd_gpu_poll(struct tnd_gpu_device *device, uint64_t ticket, bool *out_is_over)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    *out_is_over = true;
    pthread_mutex_lock(&transfer->ticket_lock);
    bool is_known = ticket == 0 || ticket <= transfer->done;
    for (int i = 0; i < N_DOWNLOADS && !is_known; i++) {
        const struct download *one = &transfer->downloads[i];
        is_known = one->ticket == ticket;
        if (is_known) { /* a command that failed is over, too: tnd_gpu_sync reports it */
            (void)device->driver->event_check(device->context, one->event, out_is_over, NULL);
        }
    }
    pthread_mutex_unlock(&transfer->ticket_lock);
    return is_known;
}

enum tandem_status tnd_gpu_sync(struct tnd_gpu_device *device, uint64_t ticket,
                                struct tandem_error *error)
{
    struct tnd_gpu_transfer *transfer = device->transfer;
    struct tandem_error told = {0};
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&transfer->ticket_lock);
    struct download *download = last_until(transfer, ticket);
    const bool is_done = ticket <= transfer->done;
    const bool is_all = download != NULL && download->ticket == ticket;
    struct tnd_gpu_event *event = download != NULL ? download->event : NULL;
    if (download != NULL) {
        download->n_held++;
    }
    pthread_mutex_unlock(&transfer->ticket_lock);

    /* without the lock: other threads must not wait for this one */
    if (!is_done && !is_all) {
        status = device->driver->finish(device->context, TND_GPU_QUEUE_WORK, &told);
    }
    if (download != NULL && status == TANDEM_OK) {
        status = device->driver->event_wait(device->context, event, &told);
    }

    pthread_mutex_lock(&transfer->ticket_lock);
    if (download != NULL) {
        download->n_held--;
    }
    if (status != TANDEM_OK) {
        keep_failure(transfer, ticket, &told);
    }
    drop_downloads_until(device, ticket);
    transfer->done = ticket > transfer->done ? ticket : transfer->done;
    status = TANDEM_OK;
    if (transfer->failed_ticket != 0 && transfer->failed_ticket <= ticket) {
        status = transfer->failed.status;
        if (error != NULL) {
            *error = transfer->failed;
        }
    }
    pthread_mutex_unlock(&transfer->ticket_lock);
    return status;
}
