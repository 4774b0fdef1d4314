#include "settable.h"

#include "config_kind.h"
#include "config_names.h"
#include "sentence.h"
#include "setting_line.h"

#include <stdio.h>
#include <string.h>

enum finer { MOST, LEAST, BOTH, KEPT };

static const struct row {
    const char *name;
    enum config_kind kind;
    enum finer finer;
    size_t at; /* offset in struct settable_values */
    size_t size;
} rows[SETTABLES] = {
#define SETTABLE(field, kind, name, finer)                                                         \
    {name, OPTION_##kind, finer, offsetof(struct settable_values, field),                          \
     sizeof(((struct settable_values *)0)->field)},
#include "settable.def"
#undef SETTABLE
};

static bool has(const struct overlay *overlay, size_t settable) {
    return overlay->has & (1u << settable);
}

/* --- values --- */

/* Returns the value as 64 bits. Of a struct condition it returns the beginning; conditions are
 * never compared. */
static uint64_t settable_get(const struct settable_values *values, const struct row *row) {
    uint64_t number = 0;
    unsigned small;
    const char *const at = (const char *)values + row->at;
    if (row->size == sizeof number) {
        memcpy(&number, at, sizeof number);
        return number;
    }
    memcpy(&small, at, sizeof small);
    return small;
}

static void settable_put(struct settable_values *values, const struct row *row, uint64_t number) {
    const unsigned small = (unsigned)number;
    const bool is_small = row->size != sizeof number;
    memcpy((char *)values + row->at, is_small ? (const void *)&small : &number, row->size);
}

struct settable_values settable_configured(const struct config *config) {
    return (struct settable_values){
#define SETTABLE(field, kind, name, finer) .field = config->field,
#include "settable.def"
#undef SETTABLE
    };
}

struct settings_values settable_settings(const struct settable_values *values) {
    return (struct settings_values){.on = values->start == START_ON,
                                    .types = values->types,
                                    .cpu_frequency = values->cpu_frequency,
                                    .alloc_interval = values->alloc_interval,
                                    .wait_frequency = values->wait_frequency,
                                    .lock_interval = values->lock_interval,
                                    .max_stack_depth = (uint32_t)values->max_stack_depth,
                                    .span_times = values->condition.span_milli != 0};
}

/* --- texts --- */

const char *settable_name(enum settable settable) {
    return rows[settable].name;
}

static void write_set(unsigned bits, const char *const *words, size_t count, char *text) {
    *text = 0;
    for (size_t i = 0; i < count; i++)
        if (bits & (1u << i))
            text += sprintf(text, "%s,", words[i]);
    if (bits)
        text[-1] = 0;
}

/* Writes one bound and a comma, in the largest unit that gives a whole number. Returns the end. */
static char *write_bound(char *text, const char *name, uint32_t bound, const char *const units[],
                         const uint32_t factors[]) {
    if (!bound)
        return text;
    for (; *factors && bound % *factors == 0; units++)
        bound /= *factors++;
    return text + sprintf(text, "%s>%u%s,", name, bound, *units);
}

static void write_condition(struct condition condition, char *text) {
    static const char *const percent[] = {"%"};
    static const char *const bytes[] = {"KiB", "MiB", "GiB"};
    static const char *const times[] = {"ms", "s", "min"};
    char *end = write_bound(text, "cpu", condition.cpu_percent, percent, (const uint32_t[]){0});
    end = write_bound(end, "rss", condition.rss_kib, bytes, (const uint32_t[]){1024, 1024, 0});
    end = write_bound(end, "span", condition.span_milli, times, (const uint32_t[]){1000, 60, 0});
    if (end == text)
        end += sprintf(text, "none,");
    end[-1] = 0;
}

static void write_percent(uint64_t millionths, char text[static SETTABLE_VALUE_BYTES]) {
    const uint64_t digits = millionths % 10000;
    snprintf(text, SETTABLE_VALUE_BYTES, "%llu.%04llu", (unsigned long long)(millionths / 10000),
             (unsigned long long)digits);
    for (size_t i = strlen(text); text[i - 1] == '0' && text[i - 2] != '.'; i--)
        text[i - 1] = 0;
    if (digits == 0)
        text[strlen(text) - 2] = 0;
    if (millionths == UINT64_MAX)
        snprintf(text, SETTABLE_VALUE_BYTES, "none");
}

void settable_write(const struct settable_values *values, enum settable settable,
                    char text[static SETTABLE_VALUE_BYTES]) {
    const struct row *const row = &rows[settable];
    const uint64_t number = settable_get(values, row);
    size_t count;
    const char *const *const words = config_kind_words(row->kind, &count);
    if (row->kind == OPTION_TYPES)
        write_set((unsigned)number, words, count, text);
    else if (row->kind == OPTION_CONDITION)
        write_condition(values->condition, text);
    else if (row->kind == OPTION_OVERHEAD)
        write_percent(number, text);
    else if (words)
        snprintf(text, SETTABLE_VALUE_BYTES, "%s", words[number]);
    else
        snprintf(text, SETTABLE_VALUE_BYTES, "%llu", (unsigned long long)number);
}

/* --- reading a line --- */

static const struct row *settable_find(struct part name) {
    for (size_t i = 0; i < SETTABLES; i++)
        if (strlen(rows[i].name) == name.size && memcmp(rows[i].name, name.at, name.size) == 0)
            return &rows[i];
    return NULL;
}

/* Resolves "all" to all types of the configuration. Returns NULL, or the error. */
static const char *check_types(unsigned *types, const struct config *config) {
    if (*types == (1u << PROFILE_WORDS) - 1)
        *types = config->types;
    if (*types & PROFILE_HEAP_PEAK)
        *types |= PROFILE_HEAP; /* the heap's peak needs the heap profile, as at the start */
    if (*types & ~config->types)
        return "has a type that was not in OTEL_PROFILER_TYPES when the program started";
    if (*types == PROFILE_MMAP)
        return "has neither alloc nor heap, which mmap adds to";
    return NULL;
}

static const char *check(struct settable_values *values, const struct row *row,
                         const struct config *config) {
    if (row->kind == OPTION_TYPES)
        return check_types(&values->types, config);
    if (row->kind == OPTION_DEPTH && values->max_stack_depth > config->max_stack_depth)
        return "is more than when the program started";
    return NULL;
}

/* Sets one value from a line. Returns NULL, or the error. */
static const char *overlay_set(struct overlay *overlay, const struct row *row, struct part value,
                               const struct config *config) {
    char text[SETTABLE_VALUE_BYTES];
    const unsigned bit = 1u << (row - rows);
    struct settable_values values = overlay->values;
    if (value.size == 0) {
        overlay->has &= ~bit;
        return NULL;
    }
    if (value.size >= sizeof text || memchr(value.at, 0, value.size))
        return config_kind_expectation(row->kind);
    memcpy(text, value.at, value.size);
    text[value.size] = 0;
    if (!config_kind_parse(row->kind, text, (char *)&values + row->at))
        return config_kind_expectation(row->kind);
    const char *const wrong = check(&values, row, config);
    if (wrong)
        return wrong;
    overlay->values = values;
    overlay->has |= bit;
    return NULL;
}

static bool settable_read_pair(struct overlay *overlay, struct part name, struct part value,
                               const struct config *config, struct sentence *sentence) {
    enum { SHOWN = 60 }; /* bytes of a foreign text that a message shows */
    const struct row *const row = settable_find(name);
    if (!row) {
        /* Quotes only names of the profiler's variables: the file may be the wrong one, with
         * secrets in it. */
        const bool is_known = config_names_have(name.at, name.size);
        sentence_add_value(sentence, name.at, is_known ? name.size : 0);
        sentence_add(sentence, is_known ? " cannot be changed while the program runs"
                                        : "what stands there is no variable that can be changed");
        return false;
    }
    const char *const wrong = overlay_set(overlay, row, value, config);
    if (!wrong)
        return true;
    sentence_add(sentence, row->name);
    sentence_add(sentence, "=\"");
    sentence_add_value(sentence, value.at, value.size < SHOWN ? value.size : SHOWN);
    sentence_add(sentence, "\" ");
    sentence_add(sentence, wrong);
    return false;
}

static bool overlay_read_line(struct overlay *overlay, struct part line,
                              const struct config *config, struct sentence *sentence) {
    struct part name;
    struct part value;
    if (setting_is_nothing(line))
        return true;
    if (setting_split(line, &name, &value))
        return settable_read_pair(overlay, name, value, config, sentence);
    sentence_add(sentence, "what stands there is not NAME=value");
    return false;
}

void overlay_read(struct overlay *overlay, const char *text, size_t size,
                  const struct config *config, overlay_wrong *wrong, void *arg) {
    const char *const end = text + size;
    for (unsigned number = 1; text < end; number++) {
        struct sentence sentence = {.length = 0};
        const char *const feed = memchr(text, '\n', (size_t)(end - text));
        const char *const line_end = feed ? feed : end;
        const struct part line = setting_line(text, (size_t)(line_end - text));
        if (!overlay_read_line(overlay, line, config, &sentence))
            wrong(arg, number, sentence.text);
        text = line_end + 1;
    }
}

/* --- overlays --- */

void overlay_lay(struct settable_values *values, const struct overlay *overlay) {
    for (size_t i = 0; i < SETTABLES; i++)
        if (has(overlay, i))
            memcpy((char *)values + rows[i].at, (const char *)&overlay->values + rows[i].at,
                   rows[i].size);
}

static uint64_t finer_of(const struct row *row, uint64_t a, uint64_t b) {
    if (row->finer == BOTH)
        return a | b;
    return (a > b) == (row->finer == MOST) ? a : b;
}

/* Returns the types that an overlay wants: a recording that only turns profiling on wants all
 * configured types. */
static unsigned types_asked(const struct settable_values *values, const struct overlay *overlay) {
    if (has(overlay, SETTABLE_types))
        return overlay->values.types;
    const bool turns_on = has(overlay, SETTABLE_start) && overlay->values.start == START_ON;
    return turns_on ? values->types : 0;
}

static unsigned refined_types(const struct settable_values *values,
                              const struct overlay *const overlays[], size_t count) {
    unsigned types = values->start == START_ON ? values->types : 0;
    for (size_t i = 0; i < count; i++)
        types |= types_asked(values, overlays[i]);
    return types ? types : values->types;
}

void overlay_refine(struct settable_values *values, const struct overlay *const overlays[],
                    size_t count) {
    const unsigned types = refined_types(values, overlays, count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < SETTABLES; j++)
            if (has(overlays[i], j) && rows[j].finer != KEPT)
                settable_put(values, &rows[j],
                             finer_of(&rows[j], settable_get(values, &rows[j]),
                                      settable_get(&overlays[i]->values, &rows[j])));
    values->types = types;
}
