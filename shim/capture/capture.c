/* Switches the capture world on and off. */
#include "capture.h"

#include "change_settings.h"
#include "clock.h"
#include "context/program_context.h"
#include "cpu/program_handlers.h"
#include "helper_heap/helper_heap.h"
#include "helper_heap/memory_guard.h"
#include "kernel/first_page.h"
#include "kernel/profiler_memory.h"
#include "kernel/signals_blocked.h"
#include "record/countdown.h"
#include "thread_life.h"

#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

struct capture capture;
IN_FIRST_PAGE _Atomic bool capture_is_off;

enum { MAX_MAIN_STACK = 1 << 30, MIN_MAIN_STACK = 8 << 20 };

/* --- the main thread --- */

/* Returns the range in which the main thread's stack may lie. It ends at the program's name
 * (AT_EXECFN), above which the kernel puts nothing. */
static struct stack_range main_stack(void) {
    const uintptr_t top = (getauxval(AT_EXECFN) | 7) + 1 - 8;
    struct rlimit limit = {MIN_MAIN_STACK, MIN_MAIN_STACK};
    getrlimit(RLIMIT_STACK, &limit);
    uintptr_t size = limit.rlim_cur;
    if (size > MAX_MAIN_STACK)
        size = MAX_MAIN_STACK;
    if (size < MIN_MAIN_STACK)
        size = MIN_MAIN_STACK;
    return (struct stack_range){top > size ? top - size : 4096, top};
}

static bool register_this_thread(struct stack_range stack, uint64_t cpu_so_far) {
    struct thread_state *const thread = thread_table_take(&capture.threads);
    if (!thread)
        return false;
    thread->last_cpu_nano = cpu_so_far;
    wait_sampler_begin_here(&capture.waits, thread, sampler_may_open());
    atomic_store(&capture.live_threads, 1);
    thread_begin(thread, stack);
    return true;
}

/* --- start --- */

static bool start_heap(void) {
    if (!capture.malloc_is_profilers) {
        log_debug(capture.log,
                  "the program brings its own malloc; its allocations cannot be profiled");
        return false;
    }
    heap_start(&capture.heap, capture.config, capture.log, &capture.recorder);
    capture.mmap_on = capture.config->types & PROFILE_MMAP;
    const struct cfi_tables *const allocator =
        fixed_modules_at(&capture.modules.fixed, (uintptr_t)(void *)allocation_path.next.malloc);
    capture.allocator_base = allocator ? allocator->start : 0;
    return capture.heap.offers != 0;
}

static bool start_modules(void) {
    if (!modules_start(&capture.modules)) {
        log_debug(capture.log, "no memory for the list of modules; nothing is profiled");
        return false;
    }
    const struct harvest_module *const own =
        modules_find(&capture.modules, (uintptr_t)(void *)capture_start);
    capture.unwinder = (struct unwinder){.modules = &capture.modules,
                                         .rules = &capture.rules,
                                         .registered = &capture.registered_tables,
                                         .generated = &capture.generated_code,
                                         .profiler_start = own ? own->text_start : 0,
                                         .profiler_end = own ? own->text_end : 0};
    capture.recorder.threads = &capture.threads;
    capture.recorder.unwinder = &capture.unwinder;
    capture.recorder.contexts = &capture.contexts;
    capture.recorder.python = &capture.python;
    return true;
}

bool capture_start(const struct config *config, const struct log *log) {
    capture.config = config;
    capture.log = log;
    capture.pid = getpid();
    const struct settings_values configured = settings_configured(config);
    settings_publish(&capture.settings, &configured);
    capture.wanted = configured;
    capture.recorder.settings = &capture.settings;
    capture.contexts.sources = config->context;
    capture.contexts.modules = &capture.modules;
    thread_table_init(&capture.threads, (uint32_t)config->max_stack_depth);
    capture.malloc_is_profilers = allocation_path_is_used();
    helper_heap_prepare(capture.malloc_is_profilers, config->max_queue_bytes);
    sampler_prepare(config, log, &capture.recorder, &capture.armed, &capture.want_helper);
    memory_guard_timed_by(sampler_watch_helper, &sampler.timers.signal);
    signals_give_way_to(&capture.live_threads, &sampler.timers.signal);
    if (!start_modules())
        return false;
    python_start(&capture.python, config->python, &capture.modules, log);
    const size_t heap = capture.malloc_is_profilers ? heap_first_bytes(config) : 0;
    profiler_memory_map_ahead(thread_table_first_bytes(&capture.threads), heap);
    if (config->types & (PROFILE_ALLOC | PROFILE_HEAP))
        capture.alloc_on = start_heap();
    if ((config->types & PROFILE_CPU) && sampler_install()) {
        sampler_follow_settings(); /* applies the settings, which may have turned CPU time off */
        program_handlers_give_all_entries();
    }
    wait_sampler_start(&capture.waits, config, &capture.recorder, log);
    if (!register_this_thread(main_stack(), thread_cpu_nano())) {
        log_debug(log, "no memory for the table of threads; nothing is profiled");
        capture_stop();
        return false;
    }
    atomic_store(&capture.armed, true);
    if (!sampler.on)
        program_handlers_unwrap();
    return true;
}

void capture_decline(void) {
    atomic_store(&capture_is_off, true);
    profiler_tls.alloc_left = COUNTDOWN_NEVER;
}

void capture_after_fork(void) {
    const bool tables_are_whole = profiler_tls.tables_locked;
    profiler_tls.tables_locked = false;
    profiler_tls.thread = NULL;
    profiler_tls.inside = 0;
    atomic_store(&capture.left, false);
    capture.pid = getpid();
    if (!atomic_load(&capture.armed))
        return;
    profiler_memory_after_fork(thread_table_is_emptied(&capture.threads));
    thread_table_reset(&capture.threads);
    memory_guard_after_fork();
    helper_heap_after_fork();
    heap_after_fork(&capture.heap);
    modules_after_fork(&capture.modules, profiler_tls.unloads);
    registered_tables_after_fork(&capture.registered_tables, tables_are_whole);
    rule_cache_after_fork(&capture.rules);
    context_after_fork(&capture.contexts);
    python_after_fork(&capture.python);
    capture_settings_after_fork();
    sampler_after_fork();
    wait_sampler_after_fork(&capture.waits);
    for (int i = 0; i < DROP_REASON_COUNT; i++)
        atomic_store(&capture.recorder.dropped[i], 0);
    if (profiler_tls.stack.high == 0 || !register_this_thread(profiler_tls.stack, 0))
        profiler_tls.alloc_left = COUNTDOWN_NEVER;
    /* keeps the context, because the child's thread still works for the same request */
    else if (profiler_tls.program_context) {
        profiler_tls.program_context =
            program_context_keep(profiler_tls.thread->index, profiler_tls.program_context);
        profiler_tls.thread->program_context = profiler_tls.program_context;
    }
}

void capture_stop(void) {
    /* stops the sampler first: until the signal's action is restored, timers run and the hooks must
     * hide the signal */
    sampler_stop();
    atomic_store(&capture.armed, false);
    atomic_store(&capture_is_off, true);
    heap_stop(&capture.heap);
}

void capture_stop_and_wait(void) {
    capture_stop();
    thread_table_close(&capture.threads);
    sampler_wait_for_handlers();
}
