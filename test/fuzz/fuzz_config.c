/* Fuzzes the environment of a process: whatever it holds, the configuration is within its
 * documented bounds, every wrong value is one line, and the line has nothing secret.
 *
 * Input: a byte for the size of the buffer, then the entries, each ended by NUL. An entry's first
 * byte, if small, stands for a variable's name (with the highest bit: in the form for profiles), so
 * that mostly values are tried; any other entry is taken unchanged.
 */
#include "config.h"
#include "fuzz.h"

#include <signal.h>

enum { MAX_ENTRIES = 200, MANY = 150, MESSAGE_BYTES = 512 };

static const char *const names[] = {
#define OPTION(field, kind, name, standard, help) name,
#include "options.def"
#undef OPTION
};
enum { NAMES = sizeof names / sizeof *names };
enum { FOR_PROFILES = 0x80 };
_Static_assert(NAMES <= 'O', "texts that begin with OTEL_ are themselves");

struct said {
    unsigned count;
    uint64_t hash;
};

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static void heed(void *arg, const char *message) {
    struct said *const said = arg;
    said->count++;
    for (const char *at = message; *at; at++)
        said->hash = said->hash * 31 + (unsigned char)*at;
    promise(strlen(message) < MESSAGE_BYTES - 1);
    promise(is_one_line(message));
    promise(starts_with(message, "OTEL_"));
    promise(strstr(message, "; using "));
    const size_t name = strcspn(message, "= ");
    const char *const place = strstr(message, "HEADERS");
    if (place && place < message + name)
        promise(message[name] == ' '); /* no value */
    const char *const endpoint = strstr(message, "ENDPOINT");
    if (endpoint && endpoint < message + name)
        promise(!strchr(message, '@'));
}

static char *entry_of(char *text) {
    const unsigned code = (unsigned char)*text;
    static const char generic[] = "OTEL_EXPORTER_OTLP_";
    char *entry;
    const unsigned number = code & ~(unsigned)FOR_PROFILES;
    if (!code || number >= NAMES)
        return text;
    const char *const name = names[number];
    const bool for_profiles = (code & FOR_PROFILES) && starts_with(name, generic);
    const int size = for_profiles ? asprintf(&entry, "%sPROFILES_%s=%s", generic,
                                             name + sizeof generic - 1, text + 1)
                                  : asprintf(&entry, "%s=%s", name, text + 1);
    promise(size > 0);
    free(text);
    return entry;
}

static void check_endpoint(const struct config *c) {
    promise(strncasecmp(c->endpoint, "http://", 7) == 0 ||
            strncasecmp(c->endpoint, "https://", 8) == 0);
    promise(!strpbrk(c->endpoint, " \t\r\n"));
    promise(!*c->unix_socket || (*c->unix_socket == '/' && strlen(c->unix_socket) < 108));
    if (c->protocol == PROTOCOL_GRPC)
        promise(strstr(c->endpoint, "ProfilesService/Export"));
}

static void check_bounds(const struct config *c) {
    const char *const texts[] = {
        c->service_name, c->resource_attributes, c->log_file,           c->file,    c->headers,
        c->certificate,  c->client_key,          c->client_certificate, c->exclude, c->include,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        promise(texts[i] && strlen(texts[i]) < 1 << 20);
    promise((unsigned)c->log_level <= LOG_DEBUG);
    promise(c->exporters <= (EXPORTER_OTLP | EXPORTER_OTLP_FILE | EXPORTER_CONSOLE));
    promise((unsigned)c->file_format <= FILE_PROTOBUF);
    promise((unsigned)c->protocol <= PROTOCOL_GRPC);
    promise((unsigned)c->compression <= COMPRESSION_ZSTD);
    promise((unsigned)c->symbols <= SYMBOLS_LINES);
    promise(c->types >= 1 && c->types <= (PROFILE_CPU | PROFILE_ALLOC | PROFILE_HEAP));
    promise(c->timeout_ms >= 1 && c->timeout_ms <= 3600 * 1000);
    promise(c->interval_ms >= 1 && c->interval_ms <= 24 * 3600 * 1000);
    promise(c->min_lifetime_ms <= 24 * 3600 * 1000);
    promise(c->shutdown_timeout_ms <= 24 * 3600 * 1000);
    promise(c->max_queue_bytes >= 1 && c->max_queue_bytes <= UINT64_C(1) << 40);
    promise(c->alloc_interval >= 1 && c->alloc_interval <= UINT64_C(1) << 40);
    promise(c->cpu_frequency >= 1 && c->cpu_frequency <= 4000);
    promise(c->heap_max_live >= 64 && c->heap_max_live <= 1 << 24);
    promise(c->cpu_threshold <= 100);
    promise(c->condition.cpu_percent <= 1000000);
    promise(condition_is_set(c->condition) || !c->condition.span_milli);
    promise(c->max_stack_depth >= 1 && c->max_stack_depth <= 1024);
    promise(c->max_samples >= 1 && c->max_samples <= 1 << 30);
    promise(c->signal >= 1 && c->signal <= (uint64_t)SIGRTMAX);
    promise(c->signal != SIGKILL && c->signal != SIGSTOP && c->signal != SIGSEGV);
    check_endpoint(c);
}

static void check_same(const struct config *a, const struct config *b) {
#define OPTION(field, ...) promise(memcmp(&a->field, &b->field, sizeof a->field) == 0);
#include "options.def"
#undef OPTION
    promise(a->shutdown_timeout_set == b->shutdown_timeout_set);
    promise(strcmp(a->unix_socket, b->unix_socket) == 0);
}

struct parsed {
    struct config config;
    struct said said;
};

static struct parsed parse(char *const *entries, char *buffer, size_t room) {
    struct parsed parsed = {.said = {0, 0}};
    config_parse((const char *const *)entries, &parsed.config, buffer, room, heed, &parsed.said);
    return parsed;
}

/* Checks that many further entries without a meaning change nothing: so many are not compared one
 * by one. */
static void check_among_many(char *const *entries, size_t count, char *buffer, size_t room,
                             const struct parsed *expected) {
    static char nobodys[] = "OTEL_X=1";
    char *many[MAX_ENTRIES + MANY + 1];
    for (size_t i = 0; i < MANY; i++)
        many[i] = nobodys;
    memcpy(many + MANY, entries, (count + 1) * sizeof *entries);
    const struct parsed parsed = parse(many, buffer, room);
    check_same(&parsed.config, &expected->config);
    promise(parsed.said.count == expected->said.count && parsed.said.hash == expected->said.hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *entries[MAX_ENTRIES + 1];
    size_t count = 0;
    struct input input = {data, size};
    const uint8_t first = take_byte(&input);
    const size_t room = (size_t)first * 16;
    while (input.left && count < MAX_ENTRIES)
        entries[count++] = entry_of(take_text(&input, 0));
    entries[count] = NULL;
    char *const buffer = malloc(room ? room : 1);
    const struct parsed parsed = parse(entries, buffer, room);
    check_bounds(&parsed.config);
    promise(parsed.said.count <= 2 * NAMES);
    if (first % 8 == 7) /* the check is slow */
        check_among_many(entries, count, buffer, room, &parsed);
    for (size_t i = 0; i < count; i++)
        free(entries[i]);
    free(buffer);
    return 0;
}
