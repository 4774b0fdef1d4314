#include "waits.h"

#include "capture/capture.h"
#include "capture/kernel/first_page.h"
#include "capture/symbols/next_symbol.h"
#include "otelprof.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* Their places in hooks_waits_next. */
enum {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) PLACE_##name,
#include "hooked.def"
    CALLS
};

/* Six registers of arguments, and eight bytes to align the stack. */
#define CALL_KEEPING_ARGUMENTS(function)                                                           \
    "pushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"                                                \
    "pushq %%rcx\n\tpushq %%r8\n\tpushq %%r9\n\t"                                                  \
    "subq $8, %%rsp\n\t"                                                                           \
    ".cfi_adjust_cfa_offset 56\n\t"                                                                \
    "call " #function "\n\t"                                                                       \
    "addq $8, %%rsp\n\t"                                                                           \
    "popq %%r9\n\tpopq %%r8\n\tpopq %%rcx\n\t"                                                     \
    "popq %%rdx\n\tpopq %%rsi\n\tpopq %%rdi\n\t"                                                   \
    ".cfi_adjust_cfa_offset -56\n\t"

/* Their types are libc's own business: the registers go on as they came. */
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters)                               \
    static void first_##name(void);                                                                \
    OTELPROF_EXPORT void own_##name(void) __asm__(#name);                                          \
    __attribute__((naked)) void own_##name(void) {                                                 \
        __asm__ volatile(                                                                          \
            "cmpq $0, capture+%c[wanted](%%rip)\n\t"                                               \
            "jne 1f\n\t"                                                                           \
            "jmpq *hooks_waits_next+8*%c[place](%%rip)\n"                                          \
            "1:\n\t" CALL_KEEPING_ARGUMENTS(                                                       \
                capture_offer_helper) "jmpq *hooks_waits_next+8*%c[place](%%rip)"                  \
            :                                                                                      \
            : [wanted] "i"(offsetof(struct capture, want_helper)), [place] "i"(PLACE_##name));     \
    }                                                                                              \
    __attribute__((naked)) static void first_##name(void) {                                        \
        __asm__ volatile(CALL_KEEPING_ARGUMENTS(                                                   \
                             hooks_waits_resolve) "jmpq *hooks_waits_next+8*%c[place](%%rip)"      \
                         :                                                                         \
                         : [place] "i"(PLACE_##name));                                             \
    }
#include "hooked.def"

/* Read by the assembler above. Written with the same addresses by whoever comes first. */
extern void (*hooks_waits_next[])(void);
IN_FIRST_PAGE void (*hooks_waits_next[])(void) = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, name, parameters) [PLACE_##name] = first_##name,
#include "hooked.def"
};

__attribute__((used)) void hooks_waits_resolve(void) {
    struct symbol symbols[CALLS] = {
#define HOOKED(...)
#define HOOKED_WAIT(number, call, version, result, symbol, parameters)                             \
    [PLACE_##symbol] = {.name = #symbol},
#include "hooked.def"
    };
    _Static_assert(sizeof hooks_waits_next == CALLS * sizeof symbols->address, "a place for each");
    const int saved = errno;
    next_symbols(symbols, CALLS);
    for (size_t i = 0; i < CALLS; i++)
        if (symbols[i].address)
            __atomic_store_n((void **)(void *)&hooks_waits_next[i], symbols[i].address,
                             __ATOMIC_RELAXED);
    errno = saved;
}
