/* SPDX-License-Identifier: MIT
 * Weights in flight: which slot each node uses, where uploads are inserted among the steps, and the
 * memory of the slots. */
#include "sched/stream.h"

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/run.h"

/* ---- steps ---- */

bool tnd_stream_has(const struct tnd_unfolding *unfolding, int i)
{
    const struct tnd_item *item = &unfolding->items[i];
    return unfolding->out->residency != NULL &&
           tnd_task_is(item->choice->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W) &&
           tnd_residency_region(unfolding->out->residency, item->tensor, 0)->kind ==
               TND_REGION_CONSTANT;
}

/* The next such item on the device; n_items: none. */
static int next_on(const struct tnd_unfolding *unfolding, int i, int slot)
{
    do {
        i++;
    } while (i < unfolding->n_items &&
             (unfolding->items[i].choice->stage[TANDEM_STAGE_COMPUTE].backend != slot ||
              !tnd_stream_has(unfolding, i)));
    return i;
}

static enum tandem_status add_upload(struct tnd_unfolding *unfolding, int i, int slot)
{
    struct tnd_stream *stream = &unfolding->out->streams[slot];
    const struct tandem_tensor *weight = unfolding->items[i].tensor->src[0];
    size_t bytes = tandem_tensor_bytes(weight);
    struct tnd_step step = {
        .item = i,
        .kind = TND_STEP_STREAM,
        .on_device = true,
        .stage = TANDEM_STAGE_INIT,
        .backend = (uint8_t)slot,
        .stream = (uint8_t)(stream->n_uploads % TND_STREAM_SLOTS + 1),
        .own_threads = 1,
        .moved = {TND_SPACE_MEMORY, -1, (uintptr_t)weight->root->data + weight->root_offset, bytes},
    };
    stream->n_uploads++;
    stream->bytes = bytes > stream->bytes ? bytes : stream->bytes;
    return tnd_unfold_add_step(unfolding, &step);
}

enum tandem_status tnd_stream_begin(struct tnd_unfolding *unfolding, struct tnd_step *step)
{
    struct tnd_stream *stream = &unfolding->out->streams[step->backend];
    if (stream->n_uploads == stream->n_works) { /* the first one */
        TND_TRY(add_upload(unfolding, step->item, step->backend));
    }
    TND_ASSERT(stream->n_uploads == stream->n_works + 1);
    step->stream = (uint8_t)(stream->n_works++ % TND_STREAM_SLOTS + 1);
    return TANDEM_OK;
}

enum tandem_status tnd_stream_ahead(struct tnd_unfolding *unfolding, int i, int slot)
{
    int next = next_on(unfolding, i, slot);
    return next < unfolding->n_items ? add_upload(unfolding, next, slot) : TANDEM_OK;
}

/* ---- memory ---- */

static void unmap(struct tnd_run *run, int slot)
{
    struct tnd_run_stream *stream = &run->streams[slot];
    for (int i = 0; i < TND_STREAM_SLOTS; i++) {
        if (stream->handles[i] != NULL) {
            tnd_backend_unmap(tnd_registry_backend(run->registry, slot), stream->handles[i]);
            stream->handles[i] = NULL;
        }
    }
    stream->bytes = 0;
}

enum tandem_status tnd_stream_map(struct tnd_run *run, int slot, struct tandem_error *error)
{
    struct tnd_run_stream *stream = &run->streams[slot];
    size_t bytes = run->steps->streams[slot].bytes;
    if (bytes <= stream->bytes) {
        return TANDEM_OK;
    }
    unmap(run, slot);
    for (int i = 0; i < TND_STREAM_SLOTS; i++) {
        enum tandem_status status = tnd_backend_map(tnd_registry_backend(run->registry, slot),
                                                    bytes, &stream->handles[i], error);
        if (status != TANDEM_OK) {
            unmap(run, slot);
            return status;
        }
    }
    stream->bytes = bytes;
    return TANDEM_OK;
}

void tnd_stream_unmap(struct tnd_run *run)
{
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        unmap(run, slot);
    }
}

struct tandem_place tnd_stream_place(const struct tnd_run *run, const struct tnd_step *step)
{
    TND_ASSERT(step->stream > 0 && step->stream <= TND_STREAM_SLOTS);
    void *handle = run->streams[step->backend].handles[step->stream - 1];
    TND_ASSERT(handle != NULL);
    return (struct tandem_place){handle, 0};
}
