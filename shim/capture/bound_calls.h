/* Calls that may block, bound at their call sites.
 *
 * `read`, `poll`, `sleep` and their like are names that programs and libraries give to functions
 * and variables of their own, so we export none of them. Where the hooks of such calls are wanted,
 * the addresses of libc's functions that the loader has put into the loaded objects are made those
 * of the hooks. Changed is only what holds exactly libc's default definition, or our own export's
 * where we have one, or what is still to be bound by its first call and would be bound to that; and
 * nothing of a name that another object than libc defines first: the executable, another preload.
 * Old versions (pthread_cond_wait of glibc 2.2.5) are other functions, at other addresses.
 */
#ifndef OTELPROF_BOUND_CALLS_H
#define OTELPROF_BOUND_CALLS_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

/* `hook` is to be called in place of `name`. Where it finds the function that it stands in front of
 * is written to `next` by bound_calls_start(). At most 300 names in all. Context: calm, at start.
 */
void bound_calls_add(const char *name, void *hook, void **next);

/* Binds them in all that is loaded. Context: calm, at start, when nobody else can be inside the
 * loader. */
void bound_calls_start(void);

/* Something is about to be loaded: bound_calls_look() is wanted. false: it never is. Context: any.
 */
bool bound_calls_expect(void);

/* When to look for what has been loaded; UINT64_MAX: not at present. Context: the helper. */
uint64_t bound_calls_next_look(void);

/* Binds it, if it is time. Context: the helper. */
void bound_calls_look(void);

/* The same, whether or not something was expected: libc loads libraries by itself. Context: the
 * helper. */
void bound_calls_catch_up(void);

/* Says what was done. Context: the helper. */
void bound_calls_report(const struct log *log);

#endif
