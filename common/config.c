#include "config.h"

#include "config_kind.h"
#include "config_names.h"
#include "config_values.h"
#include "endpoint.h"
#include "keyvalues.h"
#include "sentence.h"

#include <string.h>

enum { MAX_NARROW = 128 };
#define GENERIC_PREFIX  "OTEL_EXPORTER_OTLP_"
#define PROFILES_PREFIX "OTEL_EXPORTER_OTLP_PROFILES_"

struct option {
    const char *name;
    const char *standard; /* the default, as the user would write it */
    enum config_kind kind;
    void *field;
};

struct parse {
    const char *const *envp;
    struct config *config;
    char *at; /* the unused part of the caller's buffer */
    char *end;
    config_warn *warn;
    void *arg;
};

/* --- warnings --- */

static void config_warn_value(const struct parse *p, const char *name, const char *value,
                              const char *what, const char *instead) {
    struct sentence sentence = {.length = 0};
    sentence_add(&sentence, name);
    if (value) {
        sentence_add(&sentence, "=\"");
        sentence_add_value(&sentence, value, strlen(value));
        sentence_add(&sentence, "\"");
    }
    sentence_add(&sentence, " ");
    sentence_add(&sentence, what);
    sentence_add(&sentence, "; using ");
    sentence_add(&sentence, *instead ? instead : "none");
    p->warn(p->arg, sentence.text);
}

static const char *expectation(const struct parse *p, enum config_kind kind) {
    return kind == OPTION_ENDPOINT_OTLP && p->config->protocol == PROTOCOL_GRPC
               ? "is not an http://, https:// or unix: URL, nor host:port"
               : config_kind_expectation(kind);
}

/* --- the environment --- */

static const char *environment_value(const struct parse *p, const char *name) {
    return config_names_value(p->envp, name);
}

/* Copies `a` and `b`, joined, into the caller's buffer. NULL: they do not fit. */
static const char *config_keep(struct parse *p, const char *a, const char *b) {
    const size_t left = strlen(a);
    const size_t right = strlen(b) + 1;
    if (left + right > (size_t)(p->end - p->at))
        return NULL;
    char *const kept = p->at;
    memcpy(kept, a, left);
    memcpy(kept + left, b, right);
    p->at += left + right;
    return kept;
}

/* --- one value --- */

static bool set_text(const struct option *option, const char *text) {
    const char **const field = option->field;
    if (!text)
        return false;
    *field = text;
    return true;
}

/* Returns the value of a variable with two forms; if both are set, the profiles' form wins. NULL:
 * neither is set. */
static const char *environment_value_either(const struct parse *p, const char *profiles_name,
                                            const char *generic_name) {
    const char *const text = environment_value(p, profiles_name);
    return text ? text : environment_value(p, generic_name);
}

static bool says_false(const struct parse *p, const char *name) {
    const char *const text = environment_value(p, name);
    return text && text_equals_ignoring_case(text, "false");
}

/* Returns true if a Unix socket uses TLS. Such an endpoint has no scheme, and uses TLS only if a
 * variable requests it, or names a certificate or key. A certificate counts even if there was no
 * room for its file's name. */
static bool wants_unix_tls(const struct parse *p) {
    if (p->config->insecure)
        return false;
#define EITHER(rest) environment_value_either(p, PROFILES_PREFIX rest, GENERIC_PREFIX rest)
    return says_false(p, PROFILES_PREFIX "INSECURE") || says_false(p, GENERIC_PREFIX "INSECURE") ||
           EITHER("CERTIFICATE") || EITHER("CLIENT_KEY") || EITHER("CLIENT_CERTIFICATE");
#undef EITHER
}

static enum endpoint_result read_endpoint(const struct parse *p, const char *text,
                                          bool for_profiles, struct endpoint *endpoint) {
    const struct endpoint_rules rules = {.grpc = p->config->protocol == PROTOCOL_GRPC,
                                         .insecure = p->config->insecure,
                                         .unix_tls = wants_unix_tls(p),
                                         .for_profiles = for_profiles};
    return endpoint_parse(text, rules, p->at, (size_t)(p->end - p->at), endpoint);
}

static bool set_endpoint(struct parse *p, const char *text, bool for_profiles) {
    struct endpoint endpoint;
    if (read_endpoint(p, text, for_profiles, &endpoint) != ENDPOINT_FITS)
        return false;
    p->config->endpoint = endpoint.url;
    p->config->unix_socket = endpoint.unix_socket;
    p->config->endpoint_set = true;
    p->at += endpoint.size;
    return true;
}

static bool config_set(struct parse *p, const struct option *option, const char *text,
                       bool for_profiles) {
    switch (option->kind) {
    case OPTION_STRING:
    case OPTION_STRING_OTLP:
    case OPTION_REDACT:
        return set_text(option, config_keep(p, text, ""));
    case OPTION_LABELS:
        return set_text(option,
                        text_equals_ignoring_case(text, "none") ? "" : config_keep(p, text, ""));
    case OPTION_ENDPOINT_OTLP:
        return set_endpoint(p, text, for_profiles);
    default:
        return config_kind_parse(option->kind, text, option->field);
    }
}

/* --- one variable --- */

static bool has_two_forms(enum config_kind kind) {
    return kind == OPTION_BOOL_OTLP || kind == OPTION_STRING_OTLP || kind == OPTION_ENDPOINT_OTLP ||
           kind == OPTION_PROTOCOL_OTLP || kind == OPTION_COMPRESSION_OTLP ||
           kind == OPTION_MILLISECONDS_OTLP;
}

/* Returns true if the text may have a secret: even a URL with an error may have a password,
 * "user:password@host", or a key, "?key=...". */
static bool is_secret(const struct option *option, const char *text) {
    return strstr(option->name, "HEADERS") != NULL ||
           (option->kind == OPTION_ENDPOINT_OTLP && strpbrk(text, "@?"));
}

/* Returns true for a list of names that must not be sent, or of names that may be sent. */
static bool is_privacy_list(const struct option *option) {
    return option->kind == OPTION_REDACT || option->kind == OPTION_LABELS;
}

/* Returns true if a text of the right form was refused because there is no room for it. */
static bool is_too_long(const struct parse *p, const struct option *option, const char *text) {
    struct endpoint ignored;
    return option->kind == OPTION_STRING || option->kind == OPTION_STRING_OTLP ||
           is_privacy_list(option) ||
           (option->kind == OPTION_ENDPOINT_OTLP &&
            read_endpoint(p, text, false, &ignored) == ENDPOINT_TOO_LONG);
}

/* Returns the default, as the user would write it. The default endpoint depends on the protocol. */
static const char *standard_of(const struct parse *p, const struct option *option) {
    return option->kind == OPTION_ENDPOINT_OTLP
               ? endpoint_default_base(p->config->protocol == PROTOCOL_GRPC)
               : option->standard;
}

static void config_refuse(const struct parse *p, const struct option *option, const char *name,
                          const char *text, const char *instead) {
    const bool too_long = is_too_long(p, option, text);
    config_warn_value(p, name, is_secret(option, text) || too_long ? NULL : text,
                      too_long ? "is too long to keep" : expectation(p, option->kind), instead);
}

/* Reads the profiles' form of a variable with two forms. If its value is wrong, warns, and uses the
 * generic form if that is valid; the warning names the generic form instead of showing its value,
 * which might be a secret. Returns false if the option is not set by either. */
static bool read_profiles_form(struct parse *p, const struct option *option) {
    char name[64] = PROFILES_PREFIX;
    const char *const rest = option->name + sizeof GENERIC_PREFIX - 1;
    memcpy(name + sizeof PROFILES_PREFIX - 1, rest, strlen(rest) + 1);
    const char *const text = environment_value(p, name);
    if (!text)
        return false;
    if (config_set(p, option, text, true))
        return true;
    const char *const generic = environment_value(p, option->name);
    const bool used = generic && config_set(p, option, generic, false);
    config_refuse(p, option, name, text, used ? option->name : standard_of(p, option));
    return used;
}

/* Replaces a list that cannot be kept: hides every name, or sends no label. Otherwise a name might
 * be sent by mistake. */
static void withhold_all(const struct parse *p, const struct option *option, const char *text) {
    const char *const nothing_sent = option->kind == OPTION_REDACT ? "*" : "";
    config_refuse(p, option, option->name, text, nothing_sent);
    (void)set_text(option, nothing_sent);
}

static void read_option(struct parse *p, const struct option *option) {
    if (has_two_forms(option->kind) && read_profiles_form(p, option))
        return;
    const char *const text = environment_value(p, option->name);
    if (text && config_set(p, option, text, false))
        return;
    if (text && is_privacy_list(option)) {
        withhold_all(p, option, text);
        return;
    }
    if (text)
        config_refuse(p, option, option->name, text, standard_of(p, option));
    if (option->kind == OPTION_ENDPOINT_OTLP) /* a value of this kind takes no room in the buffer */
        p->config->endpoint = endpoint_default_url(p->config->protocol == PROTOCOL_GRPC);
    else
        (void)config_set(p, option, option->standard, false);
}

/* Adds the types that other types need: mappings appear only among allocations and live objects. */
static void complete_types(const struct parse *p) {
    static const char name[] = "OTEL_PROFILER_TYPES";
    unsigned *const types = &p->config->types;
    if (*types & PROFILE_HEAP_PEAK)
        *types |= PROFILE_HEAP; /* the peak needs the live heap */
    if (!(*types & PROFILE_MMAP) || (*types & (PROFILE_ALLOC | PROFILE_HEAP)))
        return;
    *types |= PROFILE_ALLOC;
    config_warn_value(p, name, environment_value(p, name),
                      "has neither alloc nor heap, which mmap adds to",
                      *types & PROFILE_CPU ? "cpu,mmap,alloc" : "mmap,alloc");
}

/* Checks a list of pairs: an error anywhere discards the whole list, with a warning. */
static void check_pairs(const struct parse *p, const char *name, const char **list, bool secret) {
    if (keyvalues_are_valid(*list))
        return;
    config_warn_value(p, name, secret ? NULL : *list, "is not a list of key=value pairs", "");
    *list = "";
}

static bool is_explicit(const struct parse *p, const char *name, uint64_t value) {
    uint64_t parsed;
    const char *const text = environment_value(p, name);
    return text && parse_number(text, 0, UINT64_MAX, &parsed) && parsed == value;
}

/* Selects the entries OTEL_*, because every process reads its configuration, and environments are
 * long. Returns all entries if MAX_NARROW or more match. */
static const char *const *select_profiler_entries(const char *const *envp,
                                                  const char *selected[static MAX_NARROW]) {
    size_t count = 0;
    for (size_t i = 0; envp && envp[i]; i++) {
        if (strncmp(envp[i], "OTEL_", 5) != 0)
            continue;
        if (count == MAX_NARROW - 1)
            return envp;
        selected[count++] = envp[i];
    }
    selected[count] = NULL;
    return selected;
}

void config_parse(const char *const *envp, struct config *config, char *buffer, size_t size,
                  config_warn *warn, void *arg) {
    const char *selected[MAX_NARROW];
    struct parse p = {
        select_profiler_entries(envp, selected), config, buffer, buffer + size, warn, arg};
    *config = (struct config){.service_name = "",
                              .resource_attributes = "",
                              .log_file = "",
                              .unix_socket = "",
                              .file = "",
                              .headers = "",
                              .certificate = "",
                              .client_key = "",
                              .exclude = "default",
                              .include = "",
                              .labels = "*",
                              .redact = "",
                              .config_file = "",
                              .listen = "",
                              .listen_token = "",
                              .control_file = "",
                              .client_certificate = ""};
    const struct option options[] = {
#define OPTION(field, kind, name, standard, help) {name, standard, OPTION_##kind, &config->field},
#include "options.def"
#undef OPTION
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        read_option(&p, &options[i]);
    complete_types(&p);
    check_pairs(&p, "OTEL_RESOURCE_ATTRIBUTES", &config->resource_attributes, false);
    check_pairs(&p, "OTEL_EXPORTER_OTLP_HEADERS", &config->headers, true);
    config->shutdown_timeout_set =
        is_explicit(&p, "OTEL_PROFILER_SHUTDOWN_TIMEOUT", config->shutdown_timeout_ms);
    config->log_level_set = environment_value(&p, "OTEL_LOG_LEVEL") != NULL;
}

/* --- derived facts --- */

bool config_writes_to_output(const struct config *config) {
    return strcmp(config->file, "stdout") == 0 || strcmp(config->file, "-") == 0;
}

bool config_writes_file(const struct config *config) {
    return (config->exporters & EXPORTER_OTLP_FILE) && !config_writes_to_output(config);
}

bool config_has_receiver(const struct config *config) {
    return config->exporters != 0 || *config->listen;
}

bool config_names_destination(const struct config *config) {
    return config->endpoint_set || (config->exporters & ~(unsigned)EXPORTER_OTLP);
}
