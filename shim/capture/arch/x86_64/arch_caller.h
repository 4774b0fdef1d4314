/* Reads the caller's registers from the frame of a C function.
 *
 * Source: System V psABI for AMD64, figure 3.3: the caller's frame pointer, then the return
 * address, then the top of the caller's stack after the call has returned.
 */
#ifndef OTELPROF_ARCH_CALLER_H
#define OTELPROF_ARCH_CALLER_H

#include <stdint.h>

/* Initializes a struct of the caller's stack pointer, frame pointer and program counter. `frame`:
 * __builtin_frame_address(0), in the function itself. */
#define ARCH_CALLER(frame)                                                                         \
    {                                                                                              \
        (uintptr_t)((const uintptr_t *)(frame) + 2), ((const uintptr_t *)(frame))[0],              \
            ((const uintptr_t *)(frame))[1]                                                        \
    }

#endif
