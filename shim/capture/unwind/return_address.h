/* Checks whether a word on a stack may be a return address of code that no rule describes.
 *
 * A return address points behind a call instruction, or to the code that a signal handler returns
 * to. The stale address of a finished call does, too; so the caller must know where to search.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_RETURN_ADDRESS_H
#define OTELPROF_RETURN_ADDRESS_H

#include "unwind.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true if `address` may be in code that calls code at `from`, or in code that code at
 * `from` calls: in an object, or near enough for a call, or near code that was seen running. */
bool return_address_is_code(const struct unwinder *unwinder, const struct unwind *u, uintptr_t from,
                            uintptr_t address);

/* Returns true if a call ends at `address`, in code of the object. */
bool return_address_follows_call(const struct cfi_tables *tables, uintptr_t address);

/* Returns true if a call ends at `address`, in code outside of loaded objects, which may be
 * unmapped by now. Cost: 0.2 µs. */
bool return_address_follows_generated_call(uintptr_t address);

/* Returns true if code at `from` may return to `address`. Cost: 30 ns, in generated code 0.2 µs. */
bool return_address_is_credible(const struct unwinder *unwinder, const struct unwind *u,
                                uintptr_t from, uintptr_t address);

#endif
