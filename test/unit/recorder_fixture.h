/* Sets up recording for tests of the capture side: threads, the modules of this process, and an
 * unwinder of their code. No thread is registered until the test calls begin_thread(). */
#ifndef OTELPROF_TEST_RECORDER_FIXTURE_H
#define OTELPROF_TEST_RECORDER_FIXTURE_H

#include "record/record.h"

#include <sys/auxv.h>

static struct thread_table threads;
static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static const struct unwinder unwinder = {
    .modules = &modules, .rules = &rules, .generated = &generated};
static struct settings settings;
static struct context_reader contexts;
static struct python python; /* no interpreter is there */
static struct recorder recorder = {.threads = &threads,
                                   .unwinder = &unwinder,
                                   .contexts = &contexts,
                                   .settings = &settings,
                                   .python = &python};

/* Publishes settings with all types and the deepest samples. */
static struct settings_values set_most(uint32_t depth) {
    const struct settings_values most = {.on = true,
                                         .types = (1u << PROFILE_WORDS) - 1,
                                         .cpu_frequency = 100,
                                         .alloc_interval = 1,
                                         .wait_frequency = 49,
                                         .lock_interval = 10000,
                                         .max_stack_depth = depth};
    settings_publish(&settings, &most);
    return most;
}

/* Sets the recorder up once, before the first test. */
static bool recorder_is_ready(uint32_t depth) {
    (void)set_most(depth);
    thread_table_init(&threads, depth);
    return modules_start(&modules);
}

/* Takes a slot for a thread, with the state that thread_begin() would set and the main thread's
 * stack. Returns NULL without memory. */
static struct thread_state *begin_thread(uint32_t tid) {
    struct thread_state *const thread = thread_table_take(&threads);
    if (!thread)
        return NULL;
    memset(&thread->dropped, 0, sizeof thread->dropped);
    atomic_store(&thread->tid, tid);
    thread->stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    thread->random = 1;
    thread->cpu_settings = thread->alloc_settings = settings_version(&settings);
    return thread;
}

#endif
