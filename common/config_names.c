#include "config_names.h"

#include <string.h>

#define GENERIC_PREFIX  "OTEL_EXPORTER_OTLP_"
#define PROFILES_PREFIX "OTEL_EXPORTER_OTLP_PROFILES_"

static bool name_begins_with(const char *text, size_t size, const char *beginning) {
    const size_t length = strlen(beginning);
    return size >= length && memcmp(text, beginning, length) == 0;
}

/* Compares `name` with `beginning` and `rest`, joined. */
static bool is_joined(const char *name, size_t size, const char *beginning, const char *rest) {
    const size_t length = strlen(beginning);
    return name_begins_with(name, size, beginning) && size - length == strlen(rest) &&
           memcmp(name + length, rest, size - length) == 0;
}

static bool is_one(const char *name, size_t size, const char *option) {
    static const char generic[] = GENERIC_PREFIX;
    if (is_joined(name, size, "", option))
        return true;
    return name_begins_with(option, strlen(option), generic) &&
           is_joined(name, size, PROFILES_PREFIX, option + sizeof generic - 1);
}

bool config_names_have(const char *name, size_t size) {
    /* is one string, because pointers would be relocated in each process */
    static const char names[] =
#define OPTION(field, kind, name, standard, help) name "\0"
#include "options.def"
#undef OPTION
        ;
    for (const char *option = names; option < names + sizeof names - 1;
         option += strlen(option) + 1)
        if (is_one(name, size, option))
            return true;
    return false;
}

const char *config_names_value(const char *const *entries, const char *name) {
    const size_t size = strlen(name);
    /* compares the first letter first, because most entries differ there */
    for (; entries && *entries; entries++)
        if (**entries == *name && strncmp(*entries, name, size) == 0 && (*entries)[size] == '=')
            return (*entries)[size + 1] ? *entries + size + 1 : NULL;
    return NULL;
}
