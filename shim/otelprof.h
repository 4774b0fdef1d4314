/* Declares libotelprof's public interface: programs pass information to the profiler, or query it.
 *
 * Programs need not use it: the profiler is preloaded, and configured by OTEL_* variables. This
 * header is enough, in C99, C++11 and later: there is no library to link with. Where the profiler
 * is not preloaded, in a static executable too, each call does nothing, and returns 0 or NULL.
 * docs/programs.md has an example of each function.
 *
 * A thread's context is the span that it works for, and labels; each sample of the thread carries
 * it. A context is a stack: scopes nest. Threads begin with an empty context; a forked child's
 * thread continues with the context of the thread that called fork(). On a thread that the profiler
 * does not know, or for whose context there is no memory, the context stays empty.
 *
 * Each comment says where a function may be called. "Any": on any thread, before main and at exit,
 * with any lock held, in signal handlers, too; the function is async-signal-safe, takes no lock,
 * and makes no system call, except that a thread's first call may map memory. A signal handler must
 * leave a thread's context as it found it. "Calm": not in a signal handler, nor in a child of
 * vfork(). No function changes errno.
 *
 * Other languages find the functions by their names, with dlsym().
 */
#ifndef OTELPROF_H
#define OTELPROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OTELPROF_EXPORT __attribute__((visibility("default")))

/* --- how the functions are found: internal --- */

/* Declares each function twice: as a weak reference to the profiler's function, and as an inline
 * function of the same name in C, which the program calls and which calls the profiler's function
 * if there is one. The reference goes through the global offset table. Without that table a linker
 * would set the reference to 0 for good in an executable that is not position-independent. */
#ifdef __cplusplus
#define OTELPROF_NULL nullptr
#else
#define OTELPROF_NULL NULL
#endif
#if defined(OTELPROF_IMPLEMENTATION)
#include "arch_entry.h"
#define OTELPROF_DOES(name, parameters, arguments)                                                 \
    OTELPROF_EXPORT ARCH_ANY_STACK void otelprof_##name parameters;
#define OTELPROF_GIVES(result, otherwise, name, parameters, arguments)                             \
    OTELPROF_EXPORT ARCH_ANY_STACK result otelprof_##name parameters;
#else
#if defined(__clang__) || !defined(__GNUC__) || __GNUC__ < 6
#define OTELPROF_BY_TABLE
#else
#define OTELPROF_BY_TABLE , __noplt__
#endif
#if defined(__x86_64__) && !defined(__ILP32__) && !defined(__PIC__) &&                             \
    (defined(__clang__) || __GNUC__ < 6)
#define OTELPROF_FIND(name)                                                                        \
    __asm__(".weak otelprof_" #name "\n\tmovq otelprof_" #name "@GOTPCREL(%%rip), %0" : "=r"(found))
#else
#define OTELPROF_FIND(name) (found = &otelprof_imported_##name)
#endif
#define OTELPROF_DECLARE(result, name, parameters)                                                 \
    extern result otelprof_imported_##name parameters __asm__("otelprof_" #name)                   \
        __attribute__((__weak__, __visibility__("default") OTELPROF_BY_TABLE));                    \
    static inline result otelprof_##name parameters __asm__("otelprof_inline_" #name)
#define OTELPROF_DOES(name, parameters, arguments)                                                 \
    OTELPROF_DECLARE(void, name, parameters);                                                      \
    static inline void otelprof_##name parameters {                                                \
        __typeof__(&otelprof_imported_##name) found;                                               \
        OTELPROF_FIND(name);                                                                       \
        if (found)                                                                                 \
            found arguments;                                                                       \
    }
#define OTELPROF_GIVES(result, otherwise, name, parameters, arguments)                             \
    OTELPROF_DECLARE(result, name, parameters);                                                    \
    static inline result otelprof_##name parameters {                                              \
        __typeof__(&otelprof_imported_##name) found;                                               \
        OTELPROF_FIND(name);                                                                       \
        return found ? found arguments : (otherwise);                                              \
    }
#endif

/* --- version --- */

/* Returns the version of the loaded profiler, "MAJOR.MINOR.PATCH", in static storage, or NULL
 * without the profiler. Context: any. */
OTELPROF_GIVES(const char *, OTELPROF_NULL, version, (void), ())

/* --- the span that a thread works for --- */

enum { OTELPROF_TRACE_ID_BYTES = 16, OTELPROF_SPAN_ID_BYTES = 8 };

/* Holds the ids of a span, as bytes in the order of W3C Trace Context: the first two hexadecimal
 * digits are the first byte. All zero: no id. */
struct otelprof_span {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

/* Sets the span that the calling thread works for from now on. Copies both ids, of 16 and of 8
 * bytes; if one of them is NULL or all zero, the thread works for no span. Context: any. */
OTELPROF_DOES(span_set, (const uint8_t *trace_id, const uint8_t *span_id), (trace_id, span_id))

/* Ends the calling thread's work for a span. Context: any. */
OTELPROF_DOES(span_clear, (void), ())

/* Writes the calling thread's ids to `*span`; an id that is not set is all zero. Returns 1 if both
 * ids are set, otherwise 0. Without a profiler returns 0 and writes nothing. Context: any. */
OTELPROF_GIVES(int, 0, span_get, (struct otelprof_span * span), (span))

/* --- the thread's labels --- */

/* Adds a label to the calling thread's samples until otelprof_label_pop(). A later label of the
 * same key hides this one until the later label is popped. Both strings are UTF-8, at most 255
 * bytes each, the key not empty; the profiler copies them. A thread has at most 16 labels, of 448
 * bytes in all; a label takes two bytes more than its strings. A label that is NULL or beyond these
 * limits is not kept, and samples are counted until it is popped (otelprof.dropped.context_cut).
 * Returns the number of labels, kept or not, that were pushed before and are not popped; 0 without
 * a profiler. Context: any. */
OTELPROF_GIVES(unsigned, 0, label_push, (const char *key, const char *value), (key, value))

/* Removes the label that was pushed last, kept or not, if there is one. Context: any. */
OTELPROF_DOES(label_pop, (void), ())

/* Removes the label whose otelprof_label_push() returned `before`, and all labels that were pushed
 * after it. Context: any. */
OTELPROF_DOES(label_pop_to, (unsigned before), (before))

/* --- programs that do several things on one thread: event loops, coroutines --- */

/* Holds a context outside of a thread, for example a waiting request's. The program provides the
 * memory; all zero is an empty context. Only the profiler reads and writes the content, which is
 * valid only in this process. */
struct otelprof_context {
    uint64_t opaque[96];
};

/* Exchanges the calling thread's context with the one in `*context`: an event loop calls this
 * function before it works for a request, and again afterwards. Does nothing if `context` is NULL.
 * Context: any but a signal handler. */
OTELPROF_DOES(context_swap, (struct otelprof_context * context), (context))

/* Copies the calling thread's context to `*context`: for work that is passed to another thread. The
 * thread's context stays unchanged. Context: any. */
OTELPROF_DOES(context_save, (struct otelprof_context * context), (context))

/* Sets the calling thread's context to a copy of `*context`, or to an empty context if its content
 * is not valid. Does nothing if `context` is NULL. Context: any but a signal handler. */
OTELPROF_DOES(context_restore, (const struct otelprof_context *context), (context))

/* --- the process --- */

struct otelprof_attribute {
    const char *key;
    const char *value;
};

/* Describes the process ("service.name", "service.version"): sets `count` attributes, at most 64,
 * of its profiles' resource, and publishes them as OpenTelemetry's process context, so that other
 * profilers read them, too. Replaces the attributes of an earlier call. Copies the strings, which
 * are UTF-8; encoded as protobuf, which adds about ten bytes to each attribute, all attributes have
 * at most 8,000 bytes. Returns 1 if the attributes are published. Returns 0, and leaves those of an
 * earlier call, if they are too many or too long, a string is NULL, the kernel refused, this
 * process is not profiled, or the program, or one of its libraries, publishes a process context by
 * itself. A forked child does not inherit the attributes: it must call again. Only one thread may
 * call at a time. Context: calm. */
OTELPROF_GIVES(int, 0, resource_publish,
               (const struct otelprof_attribute *attributes, size_t count), (attributes, count))

/* Stop and restart sampling on all threads. Recorded samples are exported as usual. CPU time, waits
 * and allocations in between are in no profile. Return 1 on success; 0 if this process is not
 * profiled, the calling thread is unknown to the profiler, or another thread is changing the
 * sampling. Context: calm. */
OTELPROF_GIVES(int, 0, stop, (void), ())
OTELPROF_GIVES(int, 0, start, (void), ())

/* Requests an export of all recorded samples, and waits at most `timeout_ms` for it; 0: does not
 * wait. The export begins at least a tenth of a second after the last one, and not before
 * OTEL_PROFILER_MIN_LIFETIME. Returns 1 if it, and every export that was waiting, has ended in that
 * time, and none has failed; otherwise 0, at once if this process is not profiled. Samples that
 * OTEL_PROFILER_CONDITION holds back do not leave the process. Context: calm. */
OTELPROF_GIVES(int, 0, flush, (unsigned timeout_ms), (timeout_ms))

/* Holds the profiler's counters in this process so far. */
struct otelprof_counters {
    size_t size;             /* sizeof(struct otelprof_counters), set by the caller */
    uint64_t samples;        /* samples that were recorded */
    uint64_t linked_samples; /* samples of a thread that worked for a span */
    uint64_t lost_samples;   /* samples that were not recorded, or were in a lost export */
    uint64_t exports;        /* exports that a receiver, the file or the console has accepted */
    uint64_t failed_exports; /* exports that were given up */
    uint64_t cpu_nano;       /* CPU time of the profiler's own thread */
};

/* Fills in the fields after `size`, up to `size` bytes of the struct, and returns 1; fields that
 * the loaded profiler does not know become 0. Without a profiler, or if the process is not profiled
 * or the calling thread unknown to the profiler, writes no field and returns 0. Context: calm. */
OTELPROF_GIVES(int, 0, counters_read, (struct otelprof_counters * counters), (counters))

#if !defined(OTELPROF_IMPLEMENTATION)

/* --- scopes in C: until the end of the enclosing block; at most one of each kind on a line ---
 *
 *     OTELPROF_SPAN_SCOPE(trace_id, span_id);
 *     OTELPROF_LABEL_SCOPE("tenant", tenant);
 *     OTELPROF_CONTEXT_SCOPE(&request->context);
 */
#define OTELPROF_SPAN_SCOPE(trace_id, span_id)                                                     \
    struct otelprof_span OTELPROF_UNIQUE(otelprof_span_before_, __LINE__)                          \
        __attribute__((__cleanup__(otelprof_span_end), __unused__)) =                              \
            otelprof_span_begin(trace_id, span_id)
#define OTELPROF_LABEL_SCOPE(key, value)                                                           \
    unsigned OTELPROF_UNIQUE(otelprof_labels_before_, __LINE__)                                    \
        __attribute__((__cleanup__(otelprof_label_end), __unused__)) =                             \
            otelprof_label_push(key, value)
#define OTELPROF_CONTEXT_SCOPE(context)                                                            \
    struct otelprof_context *OTELPROF_UNIQUE(otelprof_context_, __LINE__)                          \
        __attribute__((__cleanup__(otelprof_context_end), __unused__)) =                           \
            otelprof_context_begin(context)
#define OTELPROF_UNIQUE(name, line) OTELPROF_JOINED(name, line)
#define OTELPROF_JOINED(name, line) name##line

static inline struct otelprof_span otelprof_span_begin(const uint8_t *trace_id,
                                                       const uint8_t *span_id) {
    struct otelprof_span before = {{0}, {0}};
    (void)otelprof_span_get(&before);
    otelprof_span_set(trace_id, span_id);
    return before;
}
static inline void otelprof_span_end(const struct otelprof_span *before) {
    otelprof_span_set(before->trace_id, before->span_id);
}
static inline void otelprof_label_end(const unsigned *before) {
    otelprof_label_pop_to(*before);
}
static inline struct otelprof_context *otelprof_context_begin(struct otelprof_context *context) {
    otelprof_context_swap(context);
    return context;
}
static inline void otelprof_context_end(struct otelprof_context *const *context) {
    otelprof_context_swap(*context);
}
#endif

#ifdef __cplusplus
}
#endif

/* --- scopes in C++: as long as the object lives, on the thread that made it --- */

#if defined(__cplusplus) && !defined(OTELPROF_IMPLEMENTATION)
namespace otelprof {

class span_scope {
  public:
    span_scope(const uint8_t *trace_id, const uint8_t *span_id) noexcept
        : before_(otelprof_span_begin(trace_id, span_id)) {
    }
    ~span_scope() {
        otelprof_span_end(&before_);
    }
    span_scope(const span_scope &) = delete;
    span_scope &operator=(const span_scope &) = delete;

  private:
    otelprof_span before_;
};

class label_scope {
  public:
    label_scope(const char *key, const char *value) noexcept
        : before_(otelprof_label_push(key, value)) {
    }
    ~label_scope() {
        otelprof_label_pop_to(before_);
    }
    label_scope(const label_scope &) = delete;
    label_scope &operator=(const label_scope &) = delete;

  private:
    unsigned before_;
};

class context_scope {
  public:
    explicit context_scope(otelprof_context &context) noexcept : context_(context) {
        otelprof_context_swap(&context_);
    }
    ~context_scope() {
        otelprof_context_swap(&context_);
    }
    context_scope(const context_scope &) = delete;
    context_scope &operator=(const context_scope &) = delete;

  private:
    otelprof_context &context_;
};

} /* namespace otelprof */
#endif

#endif
