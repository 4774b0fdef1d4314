#include "context.h"

#include "clock.h"
#include "custom_labels.h"
#include "kernel/wait.h"
#include "loader_counters.h"
#include "program_context.h"
#include "safe_read.h"
#include "symbols/loader_state.h"
#include "thread_context.h"
#include "variable_search.h"

#include <link.h>
#include <string.h>

/* a process that ends earlier never searches */
static const uint64_t first_poll_delay_ns = 3 * NANO_PER_MILLI;
static const uint64_t last_delay = NANO_PER_SECOND / 2;
enum {
    FORGET_ROUNDS = 2000, /* rounds of wait.h */
    REST_FACTOR = 50,     /* the helper searches for at most one part in so many of the time */
};

/* --- reading --- */

/* Identifies the thread whose context is read. */
struct owner {
    const struct program_context *programs;
    uintptr_t pointer; /* another thread's thread pointer; 0: the calling thread is the owner */
    uint8_t *room;     /* the buffer of foreign_memory */
};

static enum context_outcome context_read_at(const struct thread_variable *variable,
                                            uintptr_t address, struct foreign_memory *memory,
                                            struct sample_context *context) {
    if (variable->source == CONTEXT_CUSTOM_LABELS)
        return custom_labels_read(address, memory, context);
    return thread_context_read(address, memory, context);
}

static enum context_outcome read_others(const struct thread_variable *variable,
                                        const struct owner *owner, struct sample_context *context) {
    struct foreign_memory memory = {.room = owner->room, .of_another = true};
    const uintptr_t address = thread_variable_address_of(variable, owner->pointer);
    uintptr_t value;
    if (!address)
        return CONTEXT_NONE;
    if (!safe_read(address, &value, sizeof value))
        return CONTEXT_WRONG;
    return context_read_at(variable, (uintptr_t)&value, &memory, context);
}

static enum context_outcome read_held(const struct thread_variable *variable,
                                      const struct owner *owner, struct sample_context *context) {
    struct foreign_memory memory = {.room = owner->room};
    if (owner->pointer)
        return read_others(variable, owner, context);
    const uintptr_t address = thread_variable_address(variable, &memory.known);
    return address ? context_read_at(variable, address, &memory, context) : CONTEXT_NONE;
}

static enum context_outcome read_variable(const struct context_reader *reader, uint32_t number,
                                          const struct owner *owner,
                                          struct sample_context *context) {
    struct thread_variable variable;
    if (!thread_variables_get(&reader->variables, number, &variable))
        return CONTEXT_WRONG;
    if (!variable.may_go)
        return read_held(&variable, owner, context);
    if (!modules_hold(reader->modules))
        return CONTEXT_WRONG;
    const enum context_outcome outcome = read_held(&variable, owner, context);
    modules_release(reader->modules);
    return outcome;
}

static bool context_is_there(enum context_outcome outcome) {
    return outcome == CONTEXT_READ || outcome == CONTEXT_CUT;
}

/* Reads the variables in the order of the table, which is the order of the sources, up to the first
 * one with a context. */
static enum context_outcome read_variables(const struct context_reader *reader,
                                           const struct owner *owner,
                                           struct sample_context *context) {
    const uint32_t count = thread_variables_count(&reader->variables);
    enum context_outcome worst = CONTEXT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const enum context_outcome outcome = read_variable(reader, i, owner, context);
        if (context_is_there(outcome))
            return outcome;
        if (outcome == CONTEXT_WRONG)
            worst = outcome;
    }
    return worst;
}

/* Reads the program's own context (otelprof.h) first. If the program is just changing it, no other
 * source is read: the span of another source was never the thread's, neither before nor after the
 * change. If the own context has labels but no span, the labels are added to the span of another
 * source. */
static enum context_outcome context_read_all(const struct context_reader *reader,
                                             const struct owner *owner,
                                             struct sample_context *context) {
    const struct program_context *const programs = owner->programs;
    enum context_outcome program_outcome = CONTEXT_NONE;
    if (programs && (reader->sources & CONTEXT_OTELPROF))
        program_outcome = program_context_read(programs, context);
    if (program_outcome == CONTEXT_WRONG || !thread_variables_any(&reader->variables) ||
        (context_is_there(program_outcome) && context_has_span(context)))
        return program_outcome;
    const enum context_outcome published = read_variables(reader, owner, context);
    if (!context_is_there(program_outcome))
        return published == CONTEXT_NONE ? program_outcome : published;
    /* reads the own context again, because a source that failed may have left attributes there */
    if (!context_is_there(published))
        return program_context_read(programs, context);
    return program_context_add_labels(programs, context) ? published : CONTEXT_CUT;
}

enum context_outcome context_read(const struct context_reader *reader,
                                  const struct program_context *programs,
                                  struct sample_context *context) {
    uint8_t room[FOREIGN_COPY_BYTES];
    return context_read_all(reader, &(struct owner){.programs = programs, .room = room}, context);
}

/* --- of another thread --- */

static bool sample_context_equals(const struct sample_context *a, const struct sample_context *b) {
    return context_words(a) == context_words(b) && memcmp(a, b, context_words(a) * 8u) == 0;
}

static enum context_outcome read_once_of(const struct context_reader *reader, uintptr_t pointer,
                                         const struct program_context *programs,
                                         struct sample_context *context) {
    uint8_t room[FOREIGN_COPY_BYTES];
    struct program_context copy;
    if (programs && !program_context_copy(programs, &copy))
        return CONTEXT_WRONG;
    const struct owner owner = {
        .programs = programs ? &copy : NULL, .pointer = pointer, .room = room};
    return context_read_all(reader, &owner, context);
}

enum context_outcome context_read_of(const struct context_reader *reader, uintptr_t pointer,
                                     const struct program_context *programs,
                                     struct sample_context *context) {
    struct sample_context again;
    const enum context_outcome first = read_once_of(reader, pointer, programs, context);
    if (!context_is_there(first))
        return first;
    const enum context_outcome second = read_once_of(reader, pointer, programs, &again);
    return second == first && sample_context_equals(context, &again) ? first : CONTEXT_WRONG;
}

/* --- searching --- */

/* Returns the source of a variable of OTEP 4947: the profiler's library for C++ programs publishes
 * it, too. */
static uint64_t source_of_thread_context(const struct dl_phdr_info *object, const char *path) {
    (void)object;
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    return strcmp(name, "libotelprof-cpp.so") == 0 ? CONTEXT_OPENTELEMETRY_CPP : CONTEXT_THREAD;
}

static uint64_t source_of_labels(const struct dl_phdr_info *object, const char *path) {
    return custom_labels_are_of(object, path) ? CONTEXT_CUSTOM_LABELS : 0;
}

/* Sorts the variables in the order of the sources. */
static void context_put_in_order(struct thread_variable *list, uint32_t count) {
    struct thread_variable found[THREAD_VARIABLES];
    uint32_t kept = 0;
    memcpy(found, list, sizeof found);
    for (int bit = 0; bit < CONTEXT_SOURCES; bit++)
        for (uint32_t i = 0; i < count; i++)
            if (found[i].source == 1u << bit)
                list[kept++] = found[i];
}

/* Returns true if the search was complete. */
static bool context_search_variables(struct context_reader *reader) {
    struct thread_variable found[THREAD_VARIABLES] = {{0}};
    struct variable_search contexts = {.name = "otel_thread_ctx_v1",
                                       .source = source_of_thread_context,
                                       .wanted = reader->sources,
                                       .fixed = &reader->modules->fixed,
                                       .found = found};
    bool complete = variable_search_run(&contexts);
    struct variable_search labels = {.name = "custom_labels_current_set",
                                     .source = source_of_labels,
                                     .wanted = reader->sources,
                                     .fixed = &reader->modules->fixed,
                                     .found = found,
                                     .count = contexts.count};
    if (reader->sources & CONTEXT_CUSTOM_LABELS)
        complete &= variable_search_run(&labels);
    context_put_in_order(found, labels.count);
    if (labels.count || thread_variables_any(&reader->variables))
        thread_variables_set(&reader->variables, found, labels.count);
    return complete;
}

static bool context_try_begin(void *busy) {
    return !atomic_exchange((_Atomic bool *)busy, true);
}

/* Searches under the loader's locks, so that every object is relocated. */
static bool context_search_locked(struct context_reader *reader) {
    struct context_poll *const polling = &reader->polling;
    const struct loader_counters now = loader_counters_read();
    if (now.adds == polling->adds && now.subs == polling->subs)
        return true;
    if (!context_try_begin(&polling->busy))
        return false;
    const bool complete = context_search_variables(reader);
    atomic_store(&polling->busy, false);
    if (complete) {
        polling->adds = now.adds;
        polling->subs = now.subs;
    }
    return complete;
}

/* Searches for variables. Returns false if the search was prevented and must be repeated. */
static bool context_try_search(struct context_reader *reader) {
    const bool locks = loader_state_is_known();
    if (locks && !loader_state_try_enter())
        return false;
    const bool done = context_search_locked(reader);
    if (locks)
        loader_state_leave();
    return done;
}

static bool context_is_wanted(const struct context_reader *reader) {
    return reader->sources & ~(unsigned)CONTEXT_OTELPROF;
}

bool context_expect(struct context_reader *reader) {
    if (!context_is_wanted(reader))
        return false;
    /* both pair with the helper, which clears `announced` before it reads `expected` again */
    atomic_fetch_add(&reader->polling.expected, 1);
    return !atomic_exchange(&reader->polling.announced, true);
}

/* Schedules a search, never later than already scheduled: otherwise a program that loads all the
 * time would postpone the search for ever. */
static void expect_at(struct context_poll *polling, uint64_t delay) {
    const uint64_t next = monotonic_nano() + delay;
    polling->delay = delay;
    if (!polling->next || next < polling->next)
        polling->next = next;
}

uint64_t context_next_poll(struct context_reader *reader) {
    struct context_poll *const polling = &reader->polling;
    const uint64_t expected = atomic_load(&polling->expected);
    if (!context_is_wanted(reader))
        return UINT64_MAX;
    if (expected != polling->seen) {
        polling->seen = expected;
        polling->is_expecting = true;
        expect_at(polling, NANO_PER_MILLI);
    } else if (!polling->adds && !polling->next) {
        expect_at(polling, first_poll_delay_ns);
    }
    if (!polling->next)
        return UINT64_MAX;
    return polling->next > polling->rest_end ? polling->next : polling->rest_end;
}

void context_rest_after(struct context_reader *reader, uint64_t cpu_nano) {
    const uint64_t rest = cpu_nano < last_delay / REST_FACTOR ? cpu_nano * REST_FACTOR : last_delay;
    reader->polling.rest_end = monotonic_nano() + rest;
}

void context_poll(struct context_reader *reader, bool others_done) {
    struct context_poll *const polling = &reader->polling;
    if (!context_is_wanted(reader))
        return;
    atomic_store(&polling->announced, false);
    const bool done = context_try_search(reader) && others_done;
    polling->next = 0;
    if (polling->delay < last_delay && (polling->is_expecting || !done))
        expect_at(polling, polling->delay ? 2 * polling->delay : NANO_PER_MILLI);
    else
        polling->is_expecting = false;
}

/* --- forgetting --- */

struct presence {
    uint64_t object;
    bool found;
};

static int context_check_presence(struct dl_phdr_info *info, size_t size, void *arg) {
    struct presence *const presence = arg;
    (void)size;
    presence->found |= presence->object == (uintptr_t)info->dlpi_phdr;
    return presence->found;
}

static bool variable_is_loaded(const struct thread_variable *variable) {
    struct presence presence = {variable->object, !variable->may_go};
    if (!presence.found)
        loader_state_visit(context_check_presence, &presence);
    return presence.found;
}

void context_forget_unloaded(struct context_reader *reader) {
    struct thread_variable kept[THREAD_VARIABLES];
    struct thread_variable variable;
    uint32_t count = 0;
    uint32_t i = 0;
    if (!thread_variables_any(&reader->variables) ||
        !wait_for_rounds(context_try_begin, &reader->polling.busy, FORGET_ROUNDS))
        return;
    for (; thread_variables_get(&reader->variables, i, &variable); i++)
        if (variable_is_loaded(&variable))
            kept[count++] = variable;
    if (count != i)
        thread_variables_set(&reader->variables, kept, count);
    atomic_store(&reader->polling.busy, false);
}

void context_after_fork(struct context_reader *reader) {
    atomic_store(&reader->polling.busy, false);
    atomic_store(&reader->polling.announced, false);
    reader->polling.is_expecting = false;
    reader->polling.next = 0;
    reader->polling.rest_end = 0;
}
