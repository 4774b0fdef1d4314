/* Reads the caller's registers from the frame of a C function.
 *
 * Source: Procedure Call Standard for the Arm 64-bit Architecture (6.4.6): the frame record has the
 * caller's frame pointer, then the return address.
 */
#ifndef OTELPROF_ARCH_CALLER_H
#define OTELPROF_ARCH_CALLER_H

#include "arch_code.h"

#include <stdint.h>

/* Initializes a struct of the caller's stack pointer, frame pointer and program counter. `frame`:
 * __builtin_frame_address(0), in the function itself. */
#define ARCH_CALLER(frame)                                                                         \
    {                                                                                              \
        (uintptr_t) __builtin_dwarf_cfa(), ((const uintptr_t *)(frame))[0],                        \
            arch_return_address(((const uintptr_t *)(frame))[1])                                   \
    }

#endif
