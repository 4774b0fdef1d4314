/* Declares the functions by which the hooks start; each family is described in its own file.
 * Context of all: calm, at start.
 */
#ifndef OTELPROF_HOOKS_H
#define OTELPROF_HOOKS_H

#include "capture/symbols/object_symbols.h"

#include <stdbool.h>
#include <stddef.h>

/* Copies `environment` (environment.c); if `proxies_alone`, copies only its proxy variables,
 * because other variables may name files and code (OPENSSL_CONF, SSLKEYLOGFILE), and may come from
 * another user (preload_source.h). Without memory for the copy, the helper finds no variable set.
 * Called once, before there is a helper.
 */
void hooks_environment_keep(const char *const *environment, bool proxies_alone);

/* Binds the calls of blocking.c and locks.c, if a profiled type needs waits (blocking.c). */
void hooks_blocking_start(unsigned types);

/* Adds the calls of locks.c to those that bound_calls_start() binds. */
void hooks_locks_add(void);

/* Resolves the next functions of operator_new.c, so that no first call must resolve them. */
void hooks_new_finish_init(void);

/* --- functions whose exports are not needed: each call lists some, and returns how many --- */

enum {
    HOOKS_NEW_FUNCTIONS = 22,
    HOOKS_GENERATED_CODE_FUNCTIONS = 9,
    HOOKS_MMAP_FUNCTIONS = 4,
};

/* Lists the functions of operator_new.c in which nothing is counted, at most
 * HOOKS_NEW_FUNCTIONS. */
size_t hooks_new_unneeded(struct symbol *unneeded);

/* Lists the functions of generated_code.c, if nothing is profiled. */
size_t hooks_generated_code_unneeded(struct symbol *unneeded);

/* Lists the functions of mmap.c, if mappings are not profiled. */
size_t hooks_mmap_unneeded(struct symbol *unneeded);

#endif
