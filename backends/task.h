/* SPDX-License-Identifier: MIT
 * The columns of include/tandem/task-list.h: what scheduler, planner and reports know about a task.
 * Knows no backend and no node. */
#ifndef TND_TASK_H
#define TND_TASK_H

#include "base/tnd_assert.h"
#include "tandem/backend.h"

enum tnd_task_column {
    TND_TASK_WHOLE = 1 << 0,       /* the whole operation, whatever the operation is */
    TND_TASK_READS_W = 1 << 1,     /* the first operand as given */
    TND_TASK_READS_X = 1 << 2,     /* the other operands as given */
    TND_TASK_LEAVES_W = 1 << 3,    /* leaves the weights in F32 in the workspace, for any backend */
    TND_TASK_LEAVES_X = 1 << 4,    /* leaves quantised activations there, for the same backend */
    TND_TASK_USES_LEFT_W = 1 << 5, /* reads W from the workspace, unless W is F32 as given */
    TND_TASK_USES_LEFT_X = 1 << 6, /* reads X from the workspace */
    TND_TASK_USES_PACKED = 1 << 7, /* reads a packed copy of W that the backend keeps */
    TND_TASK_BY_TOKEN = 1 << 8,    /* is divided by tokens: one token keeps one worker busy */
    TND_TASK_WRITES_RESULT = 1 << 9, /* writes all or part of the node's result */
    TND_TASK_FETCHES = 1 << 10,  /* downloads the result from device memory when the host needs it,
                                  * which the executor does; touches nothing else in host memory */
    TND_TASK_STREAMS_W = 1 << 11 /* constant weights stay in host memory and are uploaded for each
                                  * use; backends are asked for TANDEM_TASK_NODE (sched/stream.h) */
};

/** By enum tandem_task: bits of enum tnd_task_column; 0 for numbers that are no task, which
 * hand-made plans may contain. */
extern const uint16_t tnd_task_columns[UINT8_MAX + 1];

/** The task that a backend is asked to run for a plan's task: backends know no streaming. */
static inline enum tandem_task tnd_task_told(enum tandem_task task)
{
    return task == TANDEM_TASK_NODE_STREAMED ? TANDEM_TASK_NODE : task;
}

/** Whether any of the columns is set. */
static inline bool tnd_task_is(unsigned task, unsigned columns)
{
    TND_ASSERT(task <= UINT8_MAX);
    return (tnd_task_columns[task] & columns) != 0;
}

#endif
