/* SPDX-License-Identifier: MIT
 * Runs a grammar on bytes. A thread is a state in a rule's automaton, with the stack of states to
 * return to; stacks share their tails and are numbered. A matcher state is the set of all threads
 * after the same text. Matcher states and their transitions are cached as they come up (as in lazy
 * regular expression engines), so that matching is mostly one table look-up per byte. Bounds:
 * threads per state, depth of stacks, number of states. A thread whose stack would get too deep
 * ends. */
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"

enum {
    MOST_THREADS = 2048, /* per state; more ambiguous grammars are refused */
    MOST_DEPTH = 192,    /* of a stack */
    MOST_STACKS = 1 << 19,
    MOST_STATES = 1 << 14,
    TIDY_STATES = 1 << 11, /* kept from one token to the next */
    TIDY_STACKS = 1 << 16,
    UNKNOWN = -2
};

struct thread {
    int32_t place; /* state of the automaton */
    int32_t stack; /* 0: empty */
};

struct stack {
    int32_t place, below;
    int32_t depth;
};

struct state {
    int32_t begin, n; /* threads that wait for a byte */
    bool accepts;     /* one of the threads is at the end with an empty stack */
};

/* Hash table of numbers, open addressing; 0: free. */
struct index {
    int32_t *slots;
    uint32_t capacity; /* a power of 2 */
};

struct tnd_matcher {
    const tandem_grammar *grammar;
    struct stack *stacks; /* from 1 */
    struct state *states; /* from 1 */
    struct thread *threads;
    int32_t *next; /* {states, classes} */
    int32_t n_stacks, n_states, n_threads;
    int32_t stack_capacity, state_capacity, thread_capacity;
    struct index stack_index, state_index;
    struct thread *found; /* of the current step: all threads, and those that wait for a byte */
    int32_t n_found;
    struct index found_index;
    struct thread *waiting;
    int32_t n_waiting;
    bool accepts;
};

enum { MOST_FOUND = 16 * MOST_THREADS };

/* ---- memory ---- */

static uint32_t mix(uint32_t hash, uint32_t value)
{
    hash = (hash ^ value) * 0x9e3779b1u;
    return hash ^ hash >> 15;
}

static bool index_init(struct index *index, uint32_t capacity)
{
    index->slots = calloc(capacity, sizeof(index->slots[0]));
    index->capacity = capacity;
    return index->slots != NULL;
}

/* Makes room for n more elements. */
static void *grow(void *array, int32_t count, int32_t n, size_t size, int32_t *capacity)
{
    if (array != NULL && count + n <= *capacity) {
        return array;
    }
    const int32_t wanted = 2 * (count + n) + 64;
    void *more = realloc(array, (size_t)wanted * size);
    *capacity = more != NULL ? wanted : *capacity;
    return more;
}

struct tnd_matcher *tnd_matcher_new(const tandem_grammar *grammar)
{
    struct tnd_matcher *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->grammar = grammar;
    m->n_stacks = 1;
    m->n_states = 1;
    m->found = calloc(MOST_FOUND, sizeof(m->found[0]));
    m->waiting = calloc(MOST_THREADS, sizeof(m->waiting[0]));
    if (!index_init(&m->stack_index, 1024) || !index_init(&m->state_index, 1024) ||
        !index_init(&m->found_index, 4 * MOST_FOUND) || m->found == NULL || m->waiting == NULL) {
        tnd_matcher_free(m);
        return NULL;
    }
    return m;
}

void tnd_matcher_free(struct tnd_matcher *m)
{
    if (m != NULL) {
        free(m->stacks);
        free(m->states);
        free(m->threads);
        free(m->next);
        free(m->stack_index.slots);
        free(m->state_index.slots);
        free(m->found_index.slots);
        free(m->found);
        free(m->waiting);
        free(m);
    }
}

/* ---- stacks ---- */

static uint32_t hash_stack(int32_t place, int32_t below)
{
    return mix(mix(0, (uint32_t)place), (uint32_t)below);
}

/* Doubles the slots; `hash_of` gives the hash of each number. */
static bool widen(struct tnd_matcher *m, struct index *index,
                  uint32_t (*hash_of)(const struct tnd_matcher *m, int32_t number), int32_t n)
{
    if ((uint32_t)n < index->capacity / 2) {
        return true;
    }
    struct index wider;
    if (!index_init(&wider, 2 * index->capacity)) {
        return false;
    }
    for (int32_t i = 1; i < n; i++) {
        uint32_t at = hash_of(m, i) & (wider.capacity - 1);
        while (wider.slots[at] != 0) {
            at = (at + 1) & (wider.capacity - 1);
        }
        wider.slots[at] = i;
    }
    free(index->slots);
    *index = wider;
    return true;
}

static uint32_t hash_of_stack(const struct tnd_matcher *m, int32_t number)
{
    return hash_stack(m->stacks[number].place, m->stacks[number].below);
}

/* The number of a stack, `below` with `place` on top; 0: too deep; or FAILED. */
static int32_t push(struct tnd_matcher *m, int32_t place, int32_t below)
{
    const int32_t depth = below == 0 ? 1 : m->stacks[below].depth + 1;
    struct index *index = &m->stack_index;
    if (depth > MOST_DEPTH) {
        return 0;
    }
    uint32_t at = hash_stack(place, below) & (index->capacity - 1);
    for (; index->slots[at] != 0; at = (at + 1) & (index->capacity - 1)) {
        const struct stack *stack = &m->stacks[index->slots[at]];
        if (stack->place == place && stack->below == below) {
            return index->slots[at];
        }
    }
    struct stack *stacks = grow(m->stacks, m->n_stacks, 1, sizeof(stacks[0]), &m->stack_capacity);
    if (stacks == NULL || m->n_stacks >= MOST_STACKS) {
        return TND_MATCHER_FAILED;
    }
    m->stacks = stacks;
    stacks[m->n_stacks] = (struct stack){place, below, depth};
    index->slots[at] = m->n_stacks++;
    return widen(m, index, hash_of_stack, m->n_stacks) ? m->n_stacks - 1 : TND_MATCHER_FAILED;
}

/* ---- the threads of a step ---- */

static void begin_step(struct tnd_matcher *m)
{
    for (int32_t i = 0; i < m->n_found; i++) { /* far fewer than slots */
        uint32_t at = hash_stack(m->found[i].place, m->found[i].stack);
        at &= m->found_index.capacity - 1;
        while (m->found_index.slots[at] != 0) {
            m->found_index.slots[at] = 0;
            at = (at + 1) & (m->found_index.capacity - 1);
        }
    }
    m->n_found = 0;
    m->n_waiting = 0;
    m->accepts = false;
}

/* Adds a thread unless it exists. False: there are too many. */
static bool find(struct tnd_matcher *m, int32_t place, int32_t stack)
{
    struct index *index = &m->found_index;
    uint32_t at = hash_stack(place, stack) & (index->capacity - 1);
    for (; index->slots[at] != 0; at = (at + 1) & (index->capacity - 1)) {
        const struct thread *thread = &m->found[index->slots[at] - 1];
        if (thread->place == place && thread->stack == stack) {
            return true;
        }
    }
    if (m->n_found >= MOST_FOUND) {
        return false;
    }
    m->found[m->n_found++] = (struct thread){place, stack};
    index->slots[at] = m->n_found;
    return true;
}

/* Follows an edge without a byte. A call at the end of a rule returns directly to the rule's caller
 * (tail call), so that right-recursive lists need no stack. */
static bool follow(struct tnd_matcher *m, struct thread from, const struct tnd_grammar_edge *edge)
{
    const tandem_grammar *g = m->grammar;
    if (edge->low == TND_EDGE_EMPTY) {
        return find(m, edge->target, from.stack);
    }
    int32_t stack = from.stack;
    if (!g->is_end[edge->target]) {
        stack = push(m, edge->target, from.stack);
        if (stack == 0) {
            return true;
        }
    }
    return stack >= 0 && find(m, g->rules[edge->rule].start, stack);
}

/* Adds all threads that are reachable without a byte. */
static bool close_step(struct tnd_matcher *m)
{
    const tandem_grammar *g = m->grammar;
    for (int32_t i = 0; i < m->n_found; i++) {
        const struct thread thread = m->found[i];
        bool waits = false;
        if (g->is_end[thread.place]) {
            const struct stack *top = thread.stack != 0 ? &m->stacks[thread.stack] : NULL;
            m->accepts = m->accepts || top == NULL;
            if (top != NULL && !find(m, top->place, top->below)) {
                return false;
            }
        }
        for (int32_t k = g->starts[thread.place]; k < g->starts[thread.place + 1]; k++) {
            waits = waits || g->edges[k].low < TND_EDGE_EMPTY;
            if (g->edges[k].low >= TND_EDGE_EMPTY && !follow(m, thread, &g->edges[k])) {
                return false;
            }
        }
        if (waits) {
            if (m->n_waiting >= MOST_THREADS) {
                return false;
            }
            m->waiting[m->n_waiting++] = thread;
        }
    }
    return true;
}

/* ---- states ---- */

static int by_place(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
                                : (x->stack > y->stack) - (x->stack < y->stack);
}

static uint32_t hash_threads(const struct thread *threads, int32_t n, bool accepts)
{
    uint32_t hash = accepts;
    for (int32_t i = 0; i < n; i++) {
        hash = mix(mix(hash, (uint32_t)threads[i].place), (uint32_t)threads[i].stack);
    }
    return hash;
}

static uint32_t hash_of_state(const struct tnd_matcher *m, int32_t number)
{
    const struct state *s = &m->states[number];
    return hash_threads(m->threads + s->begin, s->n, s->accepts);
}

static bool is_state(const struct tnd_matcher *m, const struct state *s)
{
    return s->n == m->n_waiting && s->accepts == m->accepts &&
           (s->n == 0 ||
            memcmp(m->threads + s->begin, m->waiting, (size_t)s->n * sizeof(m->waiting[0])) == 0);
}

static int32_t add_state(struct tnd_matcher *m)
{
    const int n_classes = m->grammar->n_classes;
    const int32_t capacity = m->state_capacity;
    struct thread *threads =
        grow(m->threads, m->n_threads, m->n_waiting, sizeof(threads[0]), &m->thread_capacity);
    m->threads = threads != NULL ? threads : m->threads;
    struct state *states = grow(m->states, m->n_states, 1, sizeof(states[0]), &m->state_capacity);
    m->states = states != NULL ? states : m->states;
    if (threads == NULL || states == NULL || m->n_states >= MOST_STATES) {
        return TND_MATCHER_FAILED;
    }
    if (capacity != m->state_capacity) {
        int32_t *next =
            realloc(m->next, (size_t)m->state_capacity * (size_t)n_classes * sizeof(next[0]));
        if (next == NULL) {
            m->state_capacity = capacity;
            return TND_MATCHER_FAILED;
        }
        m->next = next;
    }
    states[m->n_states] = (struct state){m->n_threads, m->n_waiting, m->accepts};
    memcpy(threads + m->n_threads, m->waiting, (size_t)m->n_waiting * sizeof(threads[0]));
    m->n_threads += m->n_waiting;
    for (int i = 0; i < n_classes; i++) {
        m->next[(size_t)m->n_states * (size_t)n_classes + (size_t)i] = UNKNOWN;
    }
    return m->n_states++;
}

/* The state for the threads that were found. */
static int32_t end_step(struct tnd_matcher *m)
{
    struct index *index = &m->state_index;
    if (!close_step(m)) {
        return TND_MATCHER_FAILED;
    }
    if (m->n_waiting == 0 && !m->accepts) {
        return TND_MATCHER_DEAD;
    }
    qsort(m->waiting, (size_t)m->n_waiting, sizeof(m->waiting[0]), by_place);
    uint32_t at = hash_threads(m->waiting, m->n_waiting, m->accepts) & (index->capacity - 1);
    for (; index->slots[at] != 0; at = (at + 1) & (index->capacity - 1)) {
        if (is_state(m, &m->states[index->slots[at]])) {
            return index->slots[at];
        }
    }
    const int32_t state = add_state(m);
    if (state > 0) {
        index->slots[at] = state;
        return widen(m, index, hash_of_state, m->n_states) ? state : TND_MATCHER_FAILED;
    }
    return state;
}

int32_t tnd_matcher_begin(struct tnd_matcher *m)
{
    begin_step(m);
    return find(m, m->grammar->rules[m->grammar->root].start, 0) ? end_step(m) : TND_MATCHER_FAILED;
}

static int32_t compute_next(struct tnd_matcher *m, int32_t state, uint8_t byte)
{
    const tandem_grammar *g = m->grammar;
    begin_step(m);
    for (int32_t i = 0; i < m->states[state].n; i++) {
        const struct thread thread = m->threads[m->states[state].begin + i];
        for (int32_t k = g->starts[thread.place]; k < g->starts[thread.place + 1]; k++) {
            const struct tnd_grammar_edge *edge = &g->edges[k];
            if (byte >= edge->low && byte <= edge->high && edge->low < TND_EDGE_EMPTY &&
                !find(m, edge->target, thread.stack)) {
                return TND_MATCHER_FAILED;
            }
        }
    }
    return end_step(m);
}

int32_t tnd_matcher_next(struct tnd_matcher *m, int32_t state, uint8_t byte)
{
    const size_t n_classes = (size_t)m->grammar->n_classes;
    const size_t at = (size_t)state * n_classes + m->grammar->byte_class[byte];
    if (state <= 0) {
        return state;
    }
    if (m->next[at] == UNKNOWN) {
        const int32_t next = compute_next(m, state, byte);
        if (next == TND_MATCHER_FAILED) {
            return next;
        }
        m->next[at] = next;
    }
    return m->next[at];
}

bool tnd_matcher_accepts(const struct tnd_matcher *m, int32_t state)
{
    return state > 0 && m->states[state].accepts;
}

bool tnd_matcher_goes_on(const struct tnd_matcher *m, int32_t state)
{
    return state > 0 && m->states[state].n > 0;
}

/* ---- dropping cached states ---- */

/* Copies a stack of another matcher into this one. */
static int32_t copy_stack(struct tnd_matcher *m, const struct stack *stacks, int32_t number)
{
    int32_t places[MOST_DEPTH];
    int32_t n = 0, copy = 0;
    for (; number != 0; number = stacks[number].below) {
        places[n++] = stacks[number].place;
    }
    while (n > 0 && copy >= 0) {
        copy = push(m, places[--n], copy);
    }
    return copy;
}

int32_t tnd_matcher_tidy(struct tnd_matcher *m, int32_t state, bool *out_changed)
{
    *out_changed = false;
    if (state <= 0 || (m->n_states < TIDY_STATES && m->n_stacks < TIDY_STACKS)) {
        return state;
    }
    struct tnd_matcher *fresh = tnd_matcher_new(m->grammar);
    if (fresh == NULL) {
        return TND_MATCHER_FAILED;
    }
    const struct state old = m->states[state];
    bool is_good = true;
    for (int32_t i = 0; i < old.n; i++) {
        const struct thread thread = m->threads[old.begin + i];
        const int32_t stack = copy_stack(fresh, m->stacks, thread.stack);
        is_good = is_good && stack >= 0 && find(fresh, thread.place, stack);
    }
    fresh->accepts = old.accepts; /* not implied by waiting threads */
    const int32_t copy = is_good ? end_step(fresh) : TND_MATCHER_FAILED;
    const struct tnd_matcher swap = *m;
    *m = *fresh;
    *fresh = swap;
    tnd_matcher_free(fresh);
    *out_changed = true;
    return copy;
}
