/* Steps out of frames whose code no unwind table describes: generated code, or code that an
 * object's tables do not cover.
 *
 * First follows the code's instructions (code_rule.h), then tries a frame record. Both are guesses,
 * so a return address is accepted only if a call instruction precedes it and the stack pointer
 * grows. If neither guess finds a return address, the walk ends. In generated code the instructions
 * are followed only where a frame record cannot be trusted: in the leaf, and where there is no
 * record.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_UNDESCRIBED_H
#define OTELPROF_UNDESCRIBED_H

#include "unwind.h"
#include "walk_frame.h"

/* Steps out of code outside of all objects, or of code in a large gap of an object's tables. Cost:
 * in a leaf about 2 µs, otherwise 0.2 µs. */
enum step step_out_of_generated(const struct unwinder *unwinder, struct unwind *u,
                                struct frame *frame);

/* Steps out of code of an object; `rule` is the result of code_rule(). */
enum step step_out_of_object(const struct unwinder *unwinder, struct unwind *u, struct frame *frame,
                             struct rule rule);

#endif
