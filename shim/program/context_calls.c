/* Implements the calls by which the program sets the calling thread's span and labels (otelprof.h).
 */
#define OTELPROF_IMPLEMENTATION
#include "otelprof.h"

#include "capture/capture.h"
#include "capture/context/program_context.h"
#include "capture/record/thread_table.h"

#include <stdatomic.h>

_Static_assert(sizeof(struct program_content) <= sizeof(struct otelprof_context),
               "programs keep contexts");

/* Makes the thread's context at the first call. Returns NULL if the thread is inside the profiler
 * or has left it, belongs to another process, or there is no memory. */
static struct program_context *make_context(struct thread_state *thread) {
    if (profiler_tls.inside >= OWN_WORK || atomic_load(&capture_is_off) || thread_is_wiped(thread))
        return NULL;
    struct program_context *const own = program_context_make(thread->index);
    /* pairs with the handlers of this thread: one that sees the context finds it empty */
    atomic_signal_fence(memory_order_seq_cst);
    profiler_tls.program_context = own;
    thread->program_context = own;
    return own;
}

/* Returns the thread's context; NULL: it has none. */
static struct program_context *existing_context(void) {
    const struct thread_state *const thread = profiler_tls.thread;
    return thread ? thread->program_context : NULL;
}

static struct program_context *existing_or_new_context(void) {
    struct thread_state *const thread = profiler_tls.thread;
    if (!thread)
        return NULL;
    return thread->program_context ? thread->program_context : make_context(thread);
}

/* --- the span --- */

void otelprof_span_set(const uint8_t *trace_id, const uint8_t *span_id) {
    struct program_context *const own = existing_or_new_context();
    if (own)
        program_context_set_span(own, trace_id, span_id);
}

void otelprof_span_clear(void) {
    struct program_context *const own = existing_context();
    if (own)
        program_context_set_span(own, NULL, NULL);
}

int otelprof_span_get(struct otelprof_span *span) {
    static const struct otelprof_span none;
    const struct program_context *const own = existing_context();
    *span = none;
    if (own)
        program_context_get_span(own, span->trace_id, span->span_id);
    return memcmp(span->trace_id, none.trace_id, sizeof none.trace_id) != 0 &&
           memcmp(span->span_id, none.span_id, sizeof none.span_id) != 0;
}

/* --- labels --- */

unsigned otelprof_label_push(const char *key, const char *value) {
    struct program_context *const own = existing_or_new_context();
    return own ? program_context_push(own, key, value) : 0;
}

void otelprof_label_pop(void) {
    struct program_context *const own = existing_context();
    const uint32_t depth = own ? program_context_depth(own) : 0;
    if (depth > 0)
        program_context_pop_to(own, depth - 1);
}

void otelprof_label_pop_to(unsigned before) {
    struct program_context *const own = existing_context();
    if (own)
        program_context_pop_to(own, before);
}

/* --- a context as a whole --- */

static struct program_content *content_in(struct otelprof_context *context) {
    return (struct program_content *)(void *)context->opaque;
}

void otelprof_context_swap(struct otelprof_context *context) {
    struct program_context *const own = context ? existing_or_new_context() : NULL;
    if (own)
        program_context_swap(own, content_in(context));
}

/* Saves an empty context for a thread that cannot have one, so that `*context` keeps no stale
 * content.
 */
void otelprof_context_save(struct otelprof_context *context) {
    static const struct otelprof_context empty;
    struct program_context *const own = context ? existing_or_new_context() : NULL;
    if (own)
        program_context_save(own, content_in(context));
    else if (context)
        *context = empty;
}

void otelprof_context_restore(const struct otelprof_context *context) {
    struct program_context *const own = context ? existing_or_new_context() : NULL;
    if (own)
        program_context_restore(own, (const struct program_content *)(const void *)context->opaque);
}
