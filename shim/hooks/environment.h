/* getenv and secure_getenv, as our helper thread gets them answered.
 *
 * Libraries that the exporter needs ask the environment when they are loaded and at every transfer
 * (libcurl for its proxies). The program may change it meanwhile, and with one thread of its own it
 * has every right to: glibc before 2.41 frees the array that getenv is reading, a program's own
 * putenv the texts, and a program's own getenv (bash) works on tables of its own. So on our thread
 * the answer is that of the start, from a copy; on every other the program's.
 */
#ifndef OTELPROF_HOOKS_ENVIRONMENT_H
#define OTELPROF_HOOKS_ENVIRONMENT_H

#include <stdbool.h>

/* Copies `environment`, or of it what tells of proxies and nothing else: the rest may name files
 * and code (OPENSSL_CONF, SSLKEYLOGFILE), and be another user's (preload_source.h). Without memory
 * for that, the helper finds nothing set. Context: calm, once, before there is a helper. */
void hooks_environment_keep(const char *const *environment, bool proxies_alone);

#endif
