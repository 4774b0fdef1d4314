/* pthread_create: every thread starts in our routine, which registers it, runs the program's own
 * routine, and unregisters it in every way that a thread can end. */
#include "capture.h"
#include "next.h"
#include "otelprof.h"

#include "arch/x86_64.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static void end_thread(void *argument) {
    struct thread_state *const thread = argument;
    if (own_tls.thread != thread) /* a fork made this another process's thread */
        return;
    thread_record_end(thread);
    thread_end(thread);
    thread_is_gone();
}

/* Worker threads of libraries (liblzma's, for one) block every signal: they want none of the
 * program's, and with ours blocked too their CPU time would be invisible. A program that handles
 * SIGPROF itself has switched us off before this matters. */
static void unblock_sigprof(void) {
    sigset_t profiling;
    if (!atomic_load(&capture.cpu_on))
        return;
    sigemptyset(&profiling);
    sigaddset(&profiling, SIGPROF);
    pthread_sigmask(SIG_UNBLOCK, &profiling, NULL);
}

static void *thread_main(void *argument) {
    struct thread_state *const thread = argument;
    void *(*const start_routine)(void *) = thread->start_routine;
    void *const start_argument = thread->start_argument;
    void *result;
    /* glibc keeps the thread's static TLS and control block on top of its stack */
    const uintptr_t top = thread_pointer();
    thread_begin(thread, (struct stack_range){top - thread->stack_size, top});
    unblock_sigprof();
    /* covers return, pthread_exit and cancellation alike */
    pthread_cleanup_push(end_thread, thread);
    result = start_routine(start_argument);
    pthread_cleanup_pop(1);
    return result;
}

static size_t default_stack_size(void) {
    pthread_attr_t attributes;
    size_t size = 8u << 20;
    if (pthread_attr_init(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &size);
        pthread_attr_destroy(&attributes);
    }
    return size;
}

static size_t stack_size_of(const pthread_attr_t *attributes) {
    size_t size;
    if (attributes && pthread_attr_getstacksize(attributes, &size) == 0 && size)
        return size;
    return default_stack_size();
}

static struct thread_state *prepare(const pthread_attr_t *attributes, void *(*start)(void *),
                                    void *argument) {
    /* threads that our helper's libraries create are not the application's */
    if (!atomic_load(&capture.armed) || own_tls.inside)
        return NULL;
    void (*const want_helper)(void) = atomic_load(&capture.want_helper);
    if (want_helper)
        want_helper();
    struct thread_state *const thread = thread_table_take(&capture.threads);
    if (!thread)
        return NULL;
    thread->stack_size = stack_size_of(attributes);
    thread->start_routine = start;
    thread->start_argument = argument;
    return thread;
}

OTELPROF_EXPORT int pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                   void *(*start)(void *), void *argument) {
    struct thread_state *const thread = prepare(attributes, start, argument);
    if (!thread)
        return next_pthread_create(id, attributes, start, argument);
    atomic_fetch_add(&capture.live_threads, 1);
    const int error = next_pthread_create(id, attributes, thread_main, thread);
    if (error) {
        thread_table_give_back(&capture.threads, thread);
        thread_is_gone();
    }
    return error;
}

int next_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *),
                        void *argument) {
    static _Atomic(void *) found;
    void *next = atomic_load_explicit(&found, memory_order_relaxed);
    if (!next) {
        next = dlsym(RTLD_NEXT, "pthread_create");
        atomic_store_explicit(&found, next, memory_order_relaxed);
    }
    int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    memcpy(&call, &next, sizeof next);
    return call(id, attributes, start, argument);
}
