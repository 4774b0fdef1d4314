/* Reads the record of a thread's context that an instrumentation publishes (OpenTelemetry's OTEP
 * 4947).
 *
 * A thread-local variable, otel_thread_ctx_v1, points to it, or is NULL:
 *     0  trace id, 16 bytes      24  valid: 1, anything else is not
 *    16  span id, 8 bytes        25  trace flags
 *                                26  bytes of attributes, uint16_t
 *    28  attributes: {key's number, length, bytes}, without padding
 * Its writer swaps the pointer, or marks the record as not valid while it changes it. So a signal
 * handler on the thread finds a complete record or none. The last entry with a key counts; an entry
 * that would end behind the attributes ends them. The exporter maps the numbers of keys to names,
 * which the process context has.
 */
#ifndef OTELPROF_THREAD_CONTEXT_H
#define OTELPROF_THREAD_CONTEXT_H

#include "context_outcome.h"
#include "foreign_memory.h"
#include "sample_context.h"

#include <stdint.h>

/* Bounds the bytes of attributes that are read; a record should not be larger than 640 bytes. */
enum { THREAD_CONTEXT_ATTRIBUTE_BYTES = 2048 };

/* Reads the record that the pointer at `variable` (readable) leads to. Ids of zeros mean that there
 * is no span. After CONTEXT_READ or CONTEXT_CUT there is a span or an attribute; otherwise the
 * content of `*context` is undefined. Cost: 10 ns, and a system call where the record is not in
 * memory that `memory` knows. Context: signal. Async-signal-safe: yes. */
enum context_outcome thread_context_read(uintptr_t variable, struct foreign_memory *memory,
                                         struct sample_context *context);

#endif
