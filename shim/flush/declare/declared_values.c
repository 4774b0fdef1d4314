#include "declared_values.h"

#include "declared_resource.h"
#include "declared_settings.h"
#include "text_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds the versions of the file format that are supported: from 0.3, the first with today's
 * resource section, to 1.x. */
enum { OLDEST_MINOR_OF_0 = 3, MAJOR = 1 };

static const char section[] = "distribution.otelprof.";

struct reader {
    struct document document;
    struct declared_values *values;
};

static void complain_of(struct reader *r, const yaml_node_t *node, const char *before,
                        const char *key, const char *what) {
    complain(&r->values->complaints, document_line(node), before, key, what);
}

static bool is_null(const yaml_node_t *node, const struct value *value) {
    return node->type == YAML_SCALAR_NODE && value->scalar.type == SCALAR_NULL;
}

/* --- file_format --- */

/* Accepts a supported version, for example "1.0" and "1.1-rc.2". */
static bool format_fits(const char *text) {
    uint64_t major;
    uint64_t minor;
    const char *end = number_read(text, 10, &major);
    if (!end || *end != '.')
        return false;
    end = number_read(end + 1, 10, &minor);
    if (!end || (*end && *end != '-'))
        return false;
    return major == MAJOR || (major == 0 && minor >= OLDEST_MINOR_OF_0);
}

static void read_format(struct reader *r, const yaml_node_t *root) {
    struct value value;
    const yaml_node_t *const node = document_child(&r->document, root, "file_format");
    struct refusal *const refusal = &r->values->refusal;
    if (!node)
        *refusal = (struct refusal){"has no file_format at its top", document_line(root)};
    else if (!document_value(&r->document, node, &value) || !format_fits(value.text))
        *refusal = (struct refusal){"has a file_format that is not known (0.3 to 1.x)",
                                    document_line(node)};
}

/* --- settings --- */

static bool has_setting(const struct declared_values *values, const char *variable) {
    const size_t length = strlen(variable);
    for (size_t i = 0; i < values->count; i++)
        if (strncmp(values->settings[i].text, variable, length) == 0 &&
            values->settings[i].text[length] == '=')
            return true;
    return false;
}

static void add_setting(struct reader *r, const yaml_node_t *node, const char *variable,
                        const char *text) {
    struct declared_values *const values = r->values;
    if (has_setting(values, variable))
        document_refuse_twice(&r->document, node);
    if (values->count == MAX_DECLARED_SETTINGS)
        return;
    const size_t size = strlen(variable) + strlen(text) + 2;
    struct declared_setting_value *const setting = &values->settings[values->count];
    setting->line = document_line(node);
    setting->text = malloc(size);
    if (!setting->text)
        return;
    snprintf(setting->text, size, "%s=%s", variable, text);
    values->count++;
}

static void read_disabled(struct reader *r, const yaml_node_t *node) {
    struct value value;
    if (!node)
        return;
    const bool known = document_value(&r->document, node, &value);
    if (known && value.scalar.type == SCALAR_BOOL)
        r->values->disabled = value.scalar.truth;
    else if (!known || !is_null(node, &value))
        complain_of(r, node, "", "disabled", "is neither true nor false; taken as false");
}

/* Returns the profiler's level for the lowest severity to log, one of OpenTelemetry's 24; NULL for
 * another text. Each line of the profiler's log has the first severity of its group. */
static const char *convert_severity(const char *text) {
    static const struct {
        const char *word;
        const char *exactly; /* level for the first severity of the group */
        const char *above;   /* level for a later severity, such as trace2: excludes the group */
    } levels[] = {{"trace", "debug", "debug"}, {"debug", "debug", "info"},
                  {"info", "info", "warn"},    {"warn", "warn", "error"},
                  {"error", "error", "none"},  {"fatal", "none", "none"}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const size_t length = strlen(levels[i].word);
        if (strncmp(text, levels[i].word, length) != 0)
            continue;
        const char *const rest = text + length;
        if (!*rest)
            return levels[i].exactly;
        return *rest >= '2' && *rest <= '4' && !rest[1] ? levels[i].above : NULL;
    }
    return NULL;
}

static void read_log_level(struct reader *r, const yaml_node_t *node) {
    struct value value;
    if (!node)
        return;
    const bool known = document_value(&r->document, node, &value);
    if (known && is_null(node, &value))
        return;
    const char *const level = known ? convert_severity(value.text) : NULL;
    if (level)
        add_setting(r, node, "OTEL_LOG_LEVEL", level);
    else
        complain_of(r, node, "", "log_level",
                    "is not one of trace, debug, info, warn, error, fatal; it is ignored");
}

/* --- distribution.otelprof --- */

/* Joins a list with commas, as the environment has it. Returns false if an item is no text, has a
 * comma, or does not fit. */
static bool join_list(struct reader *r, const yaml_node_t *sequence, char *text, size_t size) {
    struct value value;
    yaml_node_t *item;
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; document_item(&r->document, sequence, i, &item); i++) {
        if (!document_value(&r->document, item, &value) || strchr(value.text, ','))
            return false;
        const int more = snprintf(text + length, size - length, "%s%s", i ? "," : "", value.text);
        if (more < 0 || (size_t)more >= size - length)
            return false;
        length += (size_t)more;
    }
    return true;
}

/* Refuses the value of a setting. If it is a list that protects data, assumes the strictest
 * value. */
static void refuse_value(struct reader *r, const yaml_node_t *node, const char *key,
                         const char *variable) {
    if (strcmp(variable, "OTEL_PROFILER_REDACT") == 0) {
        add_setting(r, node, variable, "*");
        complain_of(r, node, section, key, "is neither a text nor a list of texts; using *");
    } else if (strcmp(variable, "OTEL_PROFILER_LABELS") == 0) {
        add_setting(r, node, variable, "none");
        complain_of(r, node, section, key, "is neither a text nor a list of texts; using none");
    } else {
        complain_of(r, node, section, key, "is neither a text nor a list of texts; it is ignored");
    }
}

static void read_value(struct reader *r, const yaml_node_t *node, const char *key,
                       const char *variable) {
    struct value value;
    if (node->type == YAML_SEQUENCE_NODE) {
        if (join_list(r, node, value.text, sizeof value.text))
            add_setting(r, node, variable, value.text);
        else
            refuse_value(r, node, key, variable);
    } else if (!document_value(&r->document, node, &value)) {
        refuse_value(r, node, key, variable);
    } else if (value.scalar.type != SCALAR_NULL) {
        add_setting(r, node, variable, value.text);
    }
}

static void read_setting(struct reader *r, const yaml_node_t *node, const char *key) {
    char variable[SETTING_NAME_BYTES];
    switch (declared_setting_find(key, variable)) {
    case SETTING_FOLLOWED:
        read_value(r, node, key, variable);
        return;
    case SETTING_OF_THE_START:
        complain_of(r, node, section, key,
                    "is decided when the process starts, by its environment variable; it is "
                    "ignored here");
        return;
    default:
        complain_of(r, node, section, key, "is not known; it is ignored");
    }
}

/* Refuses the file if the section is malformed: the section might name values to hide. */
static void refuse_section(struct reader *r, const yaml_node_t *node, const char *what) {
    struct value value;
    const bool is_absent = !node || node->type == YAML_MAPPING_NODE ||
                           (document_value(&r->document, node, &value) && is_null(node, &value));
    if (!is_absent && !r->values->refusal.what)
        r->values->refusal = (struct refusal){what, document_line(node)};
}

static void read_distribution(struct reader *r, const yaml_node_t *distribution) {
    const char *key;
    yaml_node_t *node;
    const yaml_node_t *const profiler_section =
        document_child(&r->document, distribution, "otelprof");
    refuse_section(r, distribution, "has a distribution that is no mapping");
    refuse_section(r, profiler_section, "has a distribution.otelprof that is no mapping");
    for (size_t i = 0; document_pair(&r->document, profiler_section, i, &key, &node); i++)
        read_setting(r, node, key);
}

/* --- the whole file --- */

static void read_root(struct reader *r, const yaml_node_t *root) {
    struct declared_values *const values = r->values;
    struct document *const document = &r->document;
    if (!root || root->type != YAML_MAPPING_NODE) {
        values->refusal.what = "is no mapping of keys to values";
        return;
    }
    read_format(r, root);
    if (values->refusal.what)
        return;
    read_disabled(r, document_child(document, root, "disabled"));
    read_log_level(r, document_child(document, root, "log_level"));
    declared_resource_read(document, document_child(document, root, "resource"),
                           &values->attributes, &values->complaints);
    read_distribution(r, document_child(document, root, "distribution"));
}

void declared_values_read(const char *text, size_t size, substitution_look_up *look_up,
                          struct declared_values *values) {
    struct reader reader = {.values = values};
    if (document_open(&reader.document, text, size, look_up)) {
        read_root(&reader, document_root(&reader.document));
        document_close(&reader.document);
    }
    if (reader.document.refusal.what)
        values->refusal = reader.document.refusal;
}

void declared_values_free(struct declared_values *values) {
    for (size_t i = 0; i < values->count; i++)
        free(values->settings[i].text);
    values->count = 0;
}
