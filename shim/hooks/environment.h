/* getenv and secure_getenv: on the profiler's threads they read a copy of the environment of the
 * start; on all others they forward.
 *
 * Libraries that the exporter needs read the environment when they are loaded and at every transfer
 * (libcurl for its proxies). The program may change it concurrently, and with one thread of its own
 * it has every right to: glibc before 2.41 frees the array that getenv is reading, a program's own
 * putenv frees the texts, and a program's own getenv (bash) works on tables of its own. */
#ifndef OTELPROF_HOOKS_ENVIRONMENT_H
#define OTELPROF_HOOKS_ENVIRONMENT_H

#include <stdbool.h>

/* Copies `environment`, or only its proxy variables if `proxies_alone`: the rest may name files and
 * code (OPENSSL_CONF, SSLKEYLOGFILE), and be another user's (preload_source.h). Without memory for
 * the copy, the helper finds nothing set. Context: calm, once, before there is a helper. */
void hooks_environment_keep(const char *const *environment, bool proxies_alone);

#endif
