/* Reads the values of a configuration file before they are merged with the environment. Settings
 * have the form "NAME=value" of the environment, so that one parser handles both. Context: flush,
 * under a guard. */
#ifndef OTELPROF_DECLARED_VALUES_H
#define OTELPROF_DECLARED_VALUES_H

#include "complaints.h"
#include "document.h"
#include "encode/attribute_set.h"

#include <stdbool.h>
#include <stddef.h>

enum { MAX_DECLARED_SETTINGS = 64 };

struct declared_setting_value {
    size_t line;
    char *text; /* "NAME=value", malloc'ed */
};

struct declared_values {
    struct refusal refusal;
    bool disabled;
    size_t count;
    struct declared_setting_value settings[MAX_DECLARED_SETTINGS];
    struct attribute_set attributes;
    struct complaints complaints;
};

/* Fills `values`, which must be all zero. */
void declared_values_read(const char *text, size_t size, substitution_look_up *look_up,
                          struct declared_values *values);
/* Frees everything except the attributes, which the caller owns. */
void declared_values_free(struct declared_values *values);

#endif
