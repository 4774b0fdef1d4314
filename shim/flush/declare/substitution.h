/* Replaces references to environment variables in the values of a configuration file: ${NAME},
 * ${env:NAME}, ${NAME:-default}, and $$ for a dollar sign.
 *
 * The rules are those of OpenTelemetry's configuration data model: the text is first divided at
 * each $$, from left to right; references lie in the parts between. The value of a variable is not
 * substituted again. An empty variable counts as unset. Context: flush.
 */
#ifndef OTELPROF_SUBSTITUTION_H
#define OTELPROF_SUBSTITUTION_H

#include <stddef.h>

/* Returns the value of a variable, or NULL. */
typedef const char *substitution_look_up(const char *name);

enum substitution {
    SUBSTITUTED,
    SUBSTITUTION_MALFORMED, /* a malformed reference, or a prefix other than env */
    SUBSTITUTION_TOO_LONG,  /* the result does not fit into `out` */
};

/* Writes `text` with its references replaced and NUL-terminated to `out`, whose `size` is at least
 * 1. */
enum substitution substitute(const char *text, substitution_look_up *look_up, char *out,
                             size_t size);

#endif
