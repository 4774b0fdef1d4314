/* References to environment variables in the values of a declarative configuration file:
 * ${NAME}, ${env:NAME}, ${NAME:-default}, and $$ for a dollar sign.
 *
 * By the rules of OpenTelemetry's configuration data model: $$ is found first, from left to right,
 * and references lie between two of them; what a variable holds is never looked through again; a
 * variable that is empty is as one that is not set. Context: flush.
 */
#ifndef OTELPROF_SUBSTITUTION_H
#define OTELPROF_SUBSTITUTION_H

#include <stddef.h>

/* The value of a variable, or NULL. */
typedef const char *substitution_look_up(const char *name);

enum substitution {
    SUBSTITUTED,
    SUBSTITUTION_MALFORMED, /* a reference, or one of another prefix than env */
    SUBSTITUTION_TOO_LONG,  /* for `out` */
};

/* Writes `text` with its references replaced, and a 0 behind it, to `out` of `size` bytes, one at
 * least. */
enum substitution substitute(const char *text, substitution_look_up *look_up, char *out,
                             size_t size);

#endif
