/* Holds the context that the program sets for its threads by otelprof.h: a thread's span, and
 * labels.
 *
 * A thread changes only its own context. At any instruction the profiler's handler may interrupt it
 * and read the context; so may handlers of the program, which may change the context and must
 * restore it. There is no lock, and no thread waits:
 *  - the span's words have a check word beside them: a mixture of two spans is none. A writer
 *    checks afterwards that its words are there, and writes again if not.
 *  - a writer reserves the place of a label by one store, writes the label there, and publishes it
 *    by another store.
 *  - a writer that replaces the whole context writes it to the unused one of two places; one store
 *    then swaps the two places.
 *
 * Labels are a stack. A label hides older labels of its key until it is popped. A label that does
 * not fit is not stored, but it hides older ones, and it is counted, so that the labels are
 * reported as cut.
 *
 * Contexts are in memory of the profiler that is never freed, because the handler may read at any
 * time; each thread's slot has a place there. A forked child keeps this memory, unlike the
 * profiler's other memory, so its thread continues with the parent thread's context.
 */
#ifndef OTELPROF_PROGRAM_CONTEXT_H
#define OTELPROF_PROGRAM_CONTEXT_H

#include "context.h"
#include "sample_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_LABELS = CONTEXT_ATTRIBUTES, PROGRAM_LABEL_BYTES = 448, PROGRAM_TEXT_BYTES = 255 };

struct program_label {
    uint16_t start; /* where the label's entry in `bytes` begins (sample_context.h) */
    uint16_t size;
    uint32_t depth; /* number of labels pushed so far, this one included */
    uint32_t state; /* 0: being written, or removed; 1: shown; n: hidden by that of depth n - 1 */
};

/* Holds a context, in the profiler's memory or saved by the program (struct otelprof_context). */
struct program_content {
    uint32_t form; /* OWN_FORM; 0: empty */
    uint32_t reserved;
    uint64_t span[3]; /* trace id and span id */
    uint64_t check;
    uint64_t top; /* labels pushed << 32 | labels kept << 16 | bytes in use */
    struct program_label labels[PROGRAM_LABELS];
    uint8_t bytes[PROGRAM_LABEL_BYTES];
};

struct program_context {
    _Atomic uint32_t current;
    uint32_t reserved;
    struct program_content contents[2];
};

/* Makes an empty context for the thread of slot `index`. Returns NULL if there is no memory for it.
 * Context: any, on the thread itself. Async-signal-safe: yes. */
struct program_context *program_context_make(uint32_t index);

/* Makes a context as program_context_make() does, and copies the contents of `before`, which may be
 * the same memory. Context: fork handler. */
struct program_context *program_context_keep(uint32_t index, const struct program_context *before);

/* --- by the thread itself. Context: any. Async-signal-safe: yes --- */

/* Sets the thread's span; removes it if one of the ids is NULL. */
void program_context_set_span(struct program_context *programs, const uint8_t *trace_id,
                              const uint8_t *span_id);

/* Writes 24 bytes: the trace id and the span id, zeros if there is no span. */
void program_context_get_span(const struct program_context *programs, uint8_t *trace_id,
                              uint8_t *span_id);

/* program_context_push() returns the number of labels before this one. A NULL label, or one that
 * does not fit, is counted, too; after some 2^32 labels further ones are ignored.
 * program_context_pop_to() removes all labels but the first `depth`, and shows the labels that the
 * removed ones had hidden. */
uint32_t program_context_push(struct program_context *programs, const char *key, const char *value);
void program_context_pop_to(struct program_context *programs, uint32_t depth);
uint32_t program_context_depth(const struct program_context *programs);

void program_context_save(const struct program_context *programs, struct program_content *saved);

/* Restores `saved`, or an empty context if `saved`, which is the program's memory, is not valid.
 * program_context_swap() then stores the former context in `saved`. A signal handler that
 * interrupts one of the two functions must not call either. */
void program_context_restore(struct program_context *programs, const struct program_content *saved);
void program_context_swap(struct program_context *programs, struct program_content *saved);

/* --- the reader --- */

/* Reads the context as context_read() does, on the thread itself. Context: signal.
 * Async-signal-safe: yes.
 */
enum context_outcome program_context_read(const struct program_context *programs,
                                          struct sample_context *context);

/* Copies the present context of a thread to `*copied`, the caller's memory. Returns false if the
 * context is just being changed, or is not valid. Context: the helper, or any thread.
 * Async-signal-safe: yes. */
bool program_context_copy(const struct program_context *programs, struct program_context *copied);

/* Adds the labels to the labels in `*context`; of two labels with one key the later label counts.
 * Returns false if not all fit, or if some were pushed that are not stored. Context: signal.
 * Async-signal-safe: yes. */
bool program_context_add_labels(const struct program_context *programs,
                                struct sample_context *context);

#endif
