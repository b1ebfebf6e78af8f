/* SPDX-License-Identifier: MIT
 * The marks of the last works, in a ring by ticket. */
#include "backends/gpu/gpu_times.h"

#include "base/alloc.h"

enum { N_WORKS = 1024 };

struct tnd_gpu_times {
    pthread_mutex_t lock; /* guards all below */
    struct work {
        uint64_t ticket;
        struct tnd_gpu_event *begin, *end;
    } works[N_WORKS];
};

enum tandem_status tnd_gpu_times_open(struct tnd_gpu_device *device, struct tandem_error *error)
{
    if (device->has_profiling) {
        device->times = tnd_calloc(1, sizeof(*device->times));
        if (device->times == NULL) {
            return tnd_gpu_no_memory(device, sizeof(*device->times), error);
        }
        pthread_mutex_init(&device->times->lock, NULL);
    }
    return TANDEM_OK;
}

static void drop(const struct tnd_gpu_device *device, const struct work *work)
{
    device->driver->event_free(device->context, work->begin);
    device->driver->event_free(device->context, work->end);
}

void tnd_gpu_times_close(struct tnd_gpu_device *device)
{
    for (int i = 0; device->times != NULL && i < N_WORKS; i++) {
        drop(device, &device->times->works[i]);
    }
    if (device->times != NULL) {
        pthread_mutex_destroy(&device->times->lock);
        tnd_free(device->times);
        device->times = NULL;
    }
}

static struct tnd_gpu_event *mark(struct tnd_gpu_device *device)
{
    struct tnd_gpu_event *event = NULL;
    (void)device->driver->mark(device->context, TND_GPU_QUEUE_WORK, &event, NULL);
    return event; /* NULL when that failed */
}

struct tnd_gpu_event *tnd_gpu_times_begin(struct tnd_gpu_device *device)
{
    return device->times != NULL ? mark(device) : NULL;
}

void tnd_gpu_times_end(struct tnd_gpu_device *device, struct tnd_gpu_event *begin, uint64_t ticket)
{
    if (begin == NULL) {
        return;
    }
    struct work *place = &device->times->works[ticket % N_WORKS];
    const struct work work = {ticket, begin, mark(device)};
    pthread_mutex_lock(&device->times->lock);
    const struct work before = *place;
    *place = work;
    pthread_mutex_unlock(&device->times->lock);
    drop(device, &before);
}

bool tnd_gpu_took(struct tnd_gpu_device *device, uint64_t ticket, int64_t *out_ns)
{
    struct tnd_gpu_times *times = device->times;
    bool is_known = false;
    if (times == NULL) {
        return false;
    }
    pthread_mutex_lock(&times->lock);
    const struct work *work = &times->works[ticket % N_WORKS];
    if (work->ticket == ticket && work->end != NULL) {
        is_known = device->driver->event_ns(device->context, work->begin, work->end, out_ns,
                                            NULL) == TANDEM_OK;
    }
    pthread_mutex_unlock(&times->lock);
    return is_known;
}
