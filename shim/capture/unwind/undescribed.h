/* Steps out of frames whose code no unwind table describes: generated code, or code of an object
 * that its tables do not cover.
 *
 * Follows the code's instructions (code_rule.h) first, then tries a frame record. Both are guesses,
 * so a return address is accepted only if a call instruction precedes it and the stack pointer
 * grows. If neither guess finds one, the walk ends. Generated code has its instructions followed
 * only where a frame record cannot be trusted: in the leaf, and where there is no record.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_UNDESCRIBED_H
#define OTELPROF_UNDESCRIBED_H

#include "unwind.h"
#include "walk_frame.h"

/* Steps out of code outside of all objects, or in a large gap of an object's tables. Cost: in a
 * leaf about 2 µs, otherwise 0.2 µs. */
enum step step_out_of_generated(const struct unwinder *unwinder, struct unwind *u,
                                struct frame *frame);

/* Leaves code of an object; `rule` is the result of code_rule(). */
enum step step_out_of_object(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                             struct rule rule);

#endif
