/* Binds calls that may block at their call sites.
 *
 * `read`, `poll`, `sleep` and their like are names that programs and libraries give to functions
 * and variables of their own, so the profiler exports none of them. If the hooks of these calls are
 * wanted, the addresses of libc's functions that the loader has written into the loaded objects are
 * replaced by the addresses of the hooks. An entry is changed only if it holds the address of
 * libc's default definition or of the profiler's own export, or if its first call would bind it to
 * one of the two. Names that an object other than libc defines first (the executable, another
 * preload) are not bound. Old versions (pthread_cond_wait of glibc 2.2.5) are not bound: they are
 * other functions, at other addresses. */
#ifndef OTELPROF_BOUND_CALLS_H
#define OTELPROF_BOUND_CALLS_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

/* Places a table of next functions on the pages that the loader makes read-only after it has
 * relocated the object: a stray write of the program cannot reach the table, and the table takes no
 * page of its own. bound_calls_start() opens these pages and closes them again. */
#define IN_BOUND_CALLS __attribute__((section(".data.rel.ro.bound_calls")))

/* Registers `hook` to be called in place of `name`. bound_calls_start() writes the next function to
 * `next`. At most 300 names in all. Context: calm, at start. */
void bound_calls_add(const char *name, void *hook, void **next);

/* Writes `address` to `*function`, a variable of IN_BOUND_CALLS that bound_calls_start() does not
 * set. Call it before bound_calls_start(). Returns false if the page cannot be made writable.
 * Context: calm, at start. */
bool bound_calls_write(void **function, void *address);

/* Binds the registered calls in all loaded objects. A call whose next function cannot be written is
 * not bound. Context: calm, at start, when no other thread can be inside the loader. */
void bound_calls_start(void);

/* Requests a bound_calls_poll(), because an object is about to be loaded. Returns true if the
 * helper may sleep too long and the caller should wake it: it does not poll yet, and calls are
 * bound in this process. Context: any. */
bool bound_calls_expect(void);

/* Returns the time of the next bound_calls_poll(); UINT64_MAX: none is due. Context: the helper. */
uint64_t bound_calls_next_poll(void);

/* Binds the calls in newly loaded objects, if it is time. Context: the helper. */
void bound_calls_poll(void);

/* Binds the calls in newly loaded objects, even if no load was announced: libc loads libraries by
 * itself. Context: the helper. */
void bound_calls_catch_up(void);

/* Logs how many call sites were bound. Context: the helper. */
void bound_calls_report(const struct log *log);

#endif
