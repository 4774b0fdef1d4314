/* The hooks' side of the start: each family is described in its own file. Context of all: calm, at
 * start.
 */
#ifndef OTELPROF_HOOKS_H
#define OTELPROF_HOOKS_H

#include "capture/symbols/object_symbols.h"

#include <stdbool.h>
#include <stddef.h>

/* environment.c: copies `environment`, or only its proxy variables if `proxies_alone`: the rest may
 * name files and code (OPENSSL_CONF, SSLKEYLOGFILE), and be another user's (preload_source.h).
 * Without memory for the copy, the helper finds nothing set. Called once, before there is a helper.
 */
void hooks_environment_keep(const char *const *environment, bool proxies_alone);

/* blocking.c: binds the calls, those of locks.c, too, if a profiled type needs waits. */
void hooks_blocking_start(unsigned types);

/* locks.c: resolves the next functions, for bound_calls_start(). */
void hooks_locks_add(void);

/* operator_new.c: resolves the next functions, so that no first call of one of these must. */
void hooks_new_finish_init(void);

/* --- functions that are exported in vain: each lists them, and returns how many --- */

enum {
    HOOKS_NEW_FUNCTIONS = 22,
    HOOKS_GENERATED_CODE_FUNCTIONS = 9,
    HOOKS_MMAP_FUNCTIONS = 4,
};

/* operator_new.c: those in which nothing is counted, HOOKS_NEW_FUNCTIONS at most. */
size_t hooks_new_unneeded(struct symbol *unneeded);

/* generated_code.c: where nothing is profiled. */
size_t hooks_generated_code_unneeded(struct symbol *unneeded);

/* mmap.c: where mappings are not profiled. */
size_t hooks_mmap_unneeded(struct symbol *unneeded);

#endif
