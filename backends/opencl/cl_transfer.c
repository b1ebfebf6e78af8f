/* SPDX-License-Identifier: MIT
 * The ring: parts of pinned memory are filled one after the other by uploads, each of which is then
 * written to the device by a command that nobody waits for; a part is filled again when its last
 * command is over. So copying into the next part overlaps with the device's reading of the one
 * before, and small uploads never wait.
 *
 * Tickets count what was submitted. In an in-order queue an event that is over means that
 * everything before it is over. */
#include "backends/opencl/cl_transfer.h"

#include <stdio.h>
#include <string.h>

#include "backends/opencl/cl_memory.h"
#include "base/alloc.h"

enum { N_PARTS = 4, PART_BYTES = 4 << 20, PART_ALIGN = 256, N_DOWNLOADS = 256 };

struct part {
    size_t used;
    cl_event last; /* command that reads the part; NULL: none */
};

struct download {
    uint64_t ticket; /* 0: free */
    cl_event event;
};

struct ring {
    pthread_mutex_t lock; /* guards all below; ahead of ticket_lock */
    cl_mem pinned;        /* NULL until the first upload */
    char *host;           /* `pinned` as the host sees it */
    struct part parts[N_PARTS];
    int current;
    int64_t bytes; /* that went through */
};

struct tnd_cl_transfer {
    struct ring uploads;
    struct ring streams; /* apart, so that an upload waits for no weights in flight */

    pthread_mutex_t ticket_lock; /* guards all below */
    uint64_t next_ticket;
    uint64_t done; /* tickets up to here are over */
    int next_download;
    struct download downloads[N_DOWNLOADS];
    int64_t downloaded_bytes;
    uint64_t failed_ticket;     /* 0: none; the first that did not end well */
    struct tandem_error failed; /* how */
};

enum tandem_status tnd_cl_transfer_open(struct tnd_cl_device *device, struct tandem_error *error)
{
    struct tnd_cl_transfer *transfer = tnd_calloc(1, sizeof(*transfer));
    if (transfer == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "opencl", (int64_t)sizeof(*transfer), 0,
                             "backend opencl: no memory");
    }
    pthread_mutex_init(&transfer->uploads.lock, NULL);
    pthread_mutex_init(&transfer->streams.lock, NULL);
    pthread_mutex_init(&transfer->ticket_lock, NULL);
    transfer->next_ticket = 1;
    device->transfer = transfer;
    return TANDEM_OK;
}

static void close_ring(const struct tnd_cl_device *device, struct ring *ring)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    for (int i = 0; i < N_PARTS; i++) {
        if (ring->parts[i].last != NULL) {
            cl->ReleaseEvent(ring->parts[i].last);
        }
    }
    if (ring->host != NULL) {
        cl->EnqueueUnmapMemObject(device->queue, ring->pinned, ring->host, 0, NULL, NULL);
        cl->Finish(device->queue);
    }
    if (ring->pinned != NULL) {
        cl->ReleaseMemObject(ring->pinned);
    }
    pthread_mutex_destroy(&ring->lock);
}

void tnd_cl_transfer_close(struct tnd_cl_device *device)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    const struct tnd_cl_functions *cl = &device->library->cl;
    if (transfer == NULL) {
        return;
    }
    for (int i = 0; i < N_DOWNLOADS; i++) {
        if (transfer->downloads[i].ticket != 0) {
            cl->ReleaseEvent(transfer->downloads[i].event);
        }
    }
    close_ring(device, &transfer->uploads);
    close_ring(device, &transfer->streams);
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

void tnd_cl_transfer_count(struct tnd_cl_device *device, struct tnd_cl_statistics *statistics)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    statistics->streamed_bytes = count_bytes(&transfer->streams);
    statistics->uploaded_bytes = count_bytes(&transfer->uploads) + statistics->streamed_bytes;
    pthread_mutex_lock(&transfer->ticket_lock);
    statistics->downloaded_bytes = transfer->downloaded_bytes;
    pthread_mutex_unlock(&transfer->ticket_lock);
}

/* ---- up: under the lock of the ring ---- */

static enum tandem_status make_ring(const struct tnd_cl_device *device, struct ring *ring,
                                    struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    cl_int code = CL_SUCCESS;
    if (ring->pinned == NULL) {
        cl_mem pinned = cl->CreateBuffer(device->context, CL_MEM_ALLOC_HOST_PTR,
                                         (size_t)N_PARTS * PART_BYTES, NULL, &code);
        TND_TRY(tnd_cl_check(device, "clCreateBuffer of pinned memory", code, error));
        ring->pinned = pinned;
    }
    if (ring->host == NULL) {
        char *host =
            cl->EnqueueMapBuffer(device->queue, ring->pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                 0, (size_t)N_PARTS * PART_BYTES, 0, NULL, NULL, &code);
        TND_TRY(tnd_cl_check(device, "clEnqueueMapBuffer", code, error));
        ring->host = host;
    }
    return TANDEM_OK;
}

/* Room for at least one byte in the current part. */
static enum tandem_status make_room(const struct tnd_cl_device *device, struct ring *ring,
                                    struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    TND_TRY(make_ring(device, ring, error));
    if (ring->parts[ring->current].used < PART_BYTES) {
        return TANDEM_OK;
    }
    int next = (ring->current + 1) % N_PARTS;
    struct part *part = &ring->parts[next];
    if (part->last != NULL) {
        TND_TRY(tnd_cl_check(device, "clWaitForEvents", cl->WaitForEvents(1, &part->last), error));
        cl->ReleaseEvent(part->last);
        part->last = NULL;
    }
    part->used = 0;
    ring->current = next;
    return TANDEM_OK;
}

/* Writes as much as the current part takes, behind `after` (NULL: nothing). */
static enum tandem_status write_some(const struct tnd_cl_device *device, struct ring *ring,
                                     cl_command_queue queue, cl_event after, struct tnd_cl_range to,
                                     const char *from, size_t bytes, size_t *out_n,
                                     struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    TND_TRY(make_room(device, ring, error));
    struct part *part = &ring->parts[ring->current];
    size_t n = PART_BYTES - part->used;
    n = n < bytes ? n : bytes;
    char *staged = ring->host + (size_t)ring->current * PART_BYTES + part->used;
    memcpy(staged, from, n);
    cl_event event = NULL;
    TND_TRY(
        tnd_cl_check(device, "clEnqueueWriteBuffer",
                     cl->EnqueueWriteBuffer(queue, to.buffer, CL_FALSE, to.offset, n, staged,
                                            after != NULL, after != NULL ? &after : NULL, &event),
                     error));
    if (part->last != NULL) {
        cl->ReleaseEvent(part->last);
    }
    part->last = event;
    part->used = (part->used + n + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    ring->bytes += (int64_t)n;
    *out_n = n;
    return TANDEM_OK;
}

/* The device reads one part while the next one is filled. */
static enum tandem_status write_all(const struct tnd_cl_device *device, struct ring *ring,
                                    cl_command_queue queue, cl_event after, struct tnd_cl_range to,
                                    const char *from, size_t bytes, struct tandem_error *error)
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
            status = tnd_cl_check(device, "clFlush", device->library->cl.Flush(queue), error);
        }
    }
    return status;
}

/* Many bytes into memory that is the host's too: one copy by the driver is better than two. */
static enum tandem_status write_directly(struct tnd_cl_device *device, struct tnd_cl_range to,
                                         const void *from, size_t bytes, struct tandem_error *error)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    TND_TRY(
        tnd_cl_check(device, "clEnqueueWriteBuffer",
                     device->library->cl.EnqueueWriteBuffer(device->queue, to.buffer, CL_TRUE,
                                                            to.offset, bytes, from, 0, NULL, NULL),
                     error));
    pthread_mutex_lock(&transfer->uploads.lock);
    transfer->uploads.bytes += (int64_t)bytes;
    pthread_mutex_unlock(&transfer->uploads.lock);
    return TANDEM_OK;
}

enum tandem_status tnd_cl_write(struct tnd_cl_device *device, struct tnd_cl_range to,
                                const void *from, size_t bytes, struct tandem_error *error)
{
    if (device->caps.unified && bytes > (size_t)N_PARTS * PART_BYTES) {
        return write_directly(device, to, from, bytes, error);
    }
    struct ring *ring = &device->transfer->uploads;
    pthread_mutex_lock(&ring->lock);
    enum tandem_status status =
        write_all(device, ring, device->queue, NULL, to, from, bytes, error);
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* Under the lock of the streams. */
static enum tandem_status open_stream_queue(struct tnd_cl_device *device,
                                            struct tandem_error *error)
{
    cl_int code = CL_SUCCESS;
    if (device->stream_queue == NULL) {
        cl_command_queue queue =
            device->library->cl.CreateCommandQueue(device->context, device->id, 0, &code);
        TND_TRY(tnd_cl_check(device, "clCreateCommandQueue for streams", code, error));
        device->stream_queue = queue;
    }
    return TANDEM_OK;
}

/* An event for all that stands in the queue of the streams, which is in order. */
static enum tandem_status mark_stream(struct tnd_cl_device *device, cl_event *out_event,
                                      struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    cl_event event = NULL;
    TND_TRY(tnd_cl_check(device, "clEnqueueMarkerWithWaitList",
                         cl->EnqueueMarkerWithWaitList(device->stream_queue, 0, NULL, &event),
                         error));
    *out_event = event;
    return tnd_cl_check(device, "clFlush", cl->Flush(device->stream_queue), error);
}

enum tandem_status tnd_cl_write_stream(struct tnd_cl_device *device, cl_event after,
                                       struct tnd_cl_range to, const void *from, size_t bytes,
                                       cl_event *out_event, struct tandem_error *error)
{
    struct ring *ring = &device->transfer->streams;
    pthread_mutex_lock(&ring->lock);
    enum tandem_status status = open_stream_queue(device, error);
    if (status == TANDEM_OK) {
        status = write_all(device, ring, device->stream_queue, after, to, from, bytes, error);
    }
    if (status == TANDEM_OK) {
        status = mark_stream(device, out_event, error);
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* ---- down and waiting: under ticket_lock ---- */

static void keep_failure(struct tnd_cl_transfer *transfer, uint64_t ticket,
                         const struct tandem_error *told)
{
    if (transfer->failed_ticket == 0 || ticket < transfer->failed_ticket) {
        transfer->failed_ticket = ticket;
        transfer->failed = *told;
    }
}

/* Takes a download out of the list. An event that ended badly is remembered. */
static void drop_download(struct tnd_cl_device *device, struct download *download)
{
    const struct tnd_cl_functions *cl = &device->library->cl;
    cl_int state = CL_COMPLETE;
    cl_int code = cl->GetEventInfo(download->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                   sizeof(state), &state, NULL);
    struct tandem_error told = {0};
    if (tnd_cl_check(device, "clEnqueueReadBuffer", code == CL_SUCCESS && state < 0 ? state : code,
                     &told) != TANDEM_OK) {
        keep_failure(device->transfer, download->ticket, &told);
    }
    cl->ReleaseEvent(download->event);
    *download = (struct download){0, NULL};
}

static void drop_downloads_until(struct tnd_cl_device *device, uint64_t ticket)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    for (int i = 0; i < N_DOWNLOADS; i++) {
        if (transfer->downloads[i].ticket != 0 && transfer->downloads[i].ticket <= ticket) {
            drop_download(device, &transfer->downloads[i]);
        }
    }
}

/* A place for a new download: the oldest one's, which is waited for if it is still there. */
static enum tandem_status free_place(struct tnd_cl_device *device, struct download **out_place,
                                     struct tandem_error *error)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    struct download *place = &transfer->downloads[transfer->next_download];
    if (place->ticket != 0) {
        TND_TRY(tnd_cl_check(device, "clWaitForEvents",
                             device->library->cl.WaitForEvents(1, &place->event), error));
        uint64_t ticket = place->ticket;
        drop_downloads_until(device, ticket);
        transfer->done = ticket > transfer->done ? ticket : transfer->done;
    }
    transfer->next_download = (transfer->next_download + 1) % N_DOWNLOADS;
    *out_place = place;
    return TANDEM_OK;
}

static enum tandem_status read_locked(struct tnd_cl_device *device, struct tnd_cl_range from,
                                      void *to, size_t bytes, uint64_t *out_ticket,
                                      struct tandem_error *error)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    const struct tnd_cl_functions *cl = &device->library->cl;
    struct download *place = NULL;
    cl_event event = NULL;
    TND_TRY(free_place(device, &place, error));
    TND_TRY(tnd_cl_check(device, "clEnqueueReadBuffer",
                         cl->EnqueueReadBuffer(device->queue, from.buffer, CL_FALSE, from.offset,
                                               bytes, to, 0, NULL, &event),
                         error));
    *place = (struct download){transfer->next_ticket++, event};
    transfer->downloaded_bytes += (int64_t)bytes;
    *out_ticket = place->ticket;
    return TANDEM_OK;
}

enum tandem_status tnd_cl_read(struct tnd_cl_device *device, struct tnd_cl_range from, void *to,
                               size_t bytes, uint64_t *out_ticket, struct tandem_error *error)
{
    if (bytes == 0) {
        *out_ticket = tnd_cl_ticket(device);
        return TANDEM_OK;
    }
    uint64_t ticket = 0;
    pthread_mutex_lock(&device->transfer->ticket_lock);
    enum tandem_status status = read_locked(device, from, to, bytes, &ticket, error);
    pthread_mutex_unlock(&device->transfer->ticket_lock);
    TND_TRY(status);
    *out_ticket = ticket;
    /* The read is in the queue and will write to `to`: whatever a flush says, it has a ticket. */
    return tnd_cl_check(device, "clFlush", device->library->cl.Flush(device->queue), error);
}

uint64_t tnd_cl_ticket(struct tnd_cl_device *device)
{
    pthread_mutex_lock(&device->transfer->ticket_lock);
    uint64_t ticket = device->transfer->next_ticket++;
    pthread_mutex_unlock(&device->transfer->ticket_lock);
    return ticket;
}

/* The event of a ticket, now the caller's; NULL: it has none. */
static cl_event take_event(struct tnd_cl_transfer *transfer, uint64_t ticket)
{
    for (int i = 0; i < N_DOWNLOADS; i++) {
        if (transfer->downloads[i].ticket == ticket) {
            cl_event event = transfer->downloads[i].event;
            transfer->downloads[i] = (struct download){0, NULL};
            return event;
        }
    }
    return NULL;
}

bool tnd_cl_poll(struct tnd_cl_device *device, uint64_t ticket, bool *out_is_over)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    bool is_known = ticket == 0;
    cl_int state = CL_COMPLETE; /* below: it ended badly, which a sync tells */
    pthread_mutex_lock(&transfer->ticket_lock);
    if (ticket <= transfer->done) {
        is_known = true;
    }
    for (int i = 0; i < N_DOWNLOADS && !is_known; i++) {
        const struct download *one = &transfer->downloads[i];
        is_known = one->ticket == ticket &&
                   device->library->cl.GetEventInfo(one->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                    sizeof(state), &state, NULL) == CL_SUCCESS;
    }
    pthread_mutex_unlock(&transfer->ticket_lock);
    *out_is_over = state <= CL_COMPLETE;
    return is_known;
}

enum tandem_status tnd_cl_sync(struct tnd_cl_device *device, uint64_t ticket,
                               struct tandem_error *error)
{
    struct tnd_cl_transfer *transfer = device->transfer;
    const struct tnd_cl_functions *cl = &device->library->cl;
    struct tandem_error told = {0};
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&transfer->ticket_lock);
    cl_event event = take_event(transfer, ticket);
    bool is_done = ticket <= transfer->done;
    pthread_mutex_unlock(&transfer->ticket_lock);

    /* Nobody waits for us while we wait. */
    if (event != NULL) {
        status = tnd_cl_check(device, "clWaitForEvents", cl->WaitForEvents(1, &event), &told);
        cl->ReleaseEvent(event);
    } else if (!is_done) {
        status = tnd_cl_check(device, "clFinish", cl->Finish(device->queue), &told);
    }

    pthread_mutex_lock(&transfer->ticket_lock);
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
