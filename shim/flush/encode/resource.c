#include "resource.h"

#include "arch_object.h"
#include "clock.h"
#include "emulated_program.h"
#include "files/by_path.h"
#include "files/system_files.h"
#include "glob.h"
#include "keyvalues.h"
#include "open_flags.h"
#include "process_context.h"
#include "process_file.h"
#include "program_path.h"
#include "redact.h"
#include "utc_time.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES = 512, FILE_BYTES = 256 << 10 };

/* Orders the sources of attributes: a later one wins. */
enum source { DETECTED, PUBLISHED, CONFIGURED, DECLARED, SOURCES };

struct resource {
    struct attribute_set sets[SOURCES];
    struct process_context context;
    /* the attributes as read; the accepted ones are in sets[PUBLISHED] */
    struct attribute_set published;
    const char *redact; /* globs of the configuration */
    enum resource_detail detail;
    uid_t owner; /* the user whose name the attribute process.owner has */
};

/* --- the attributes --- */

static const struct attribute *find_above(const struct resource *r, int source, const char *key) {
    for (int above = SOURCES - 1; above > source; above--) {
        const struct attribute *const attribute = attributes_find(&r->sets[above], key);
        if (attribute)
            return attribute;
    }
    return NULL;
}

const char *resource_find(const struct resource *r, const char *key) {
    const struct attribute *const attribute = find_above(r, DETECTED - 1, key);
    return attribute && attribute->value.kind == ATTRIBUTE_TEXT ? attribute->value.text : NULL;
}

/* Sets a text, but skips an empty one, which was not detected. */
static void resource_set_text(struct resource *r, const char *key, const char *value) {
    if (*value)
        attributes_set_text(&r->sets[DETECTED], key, value);
}

static void set_number(struct resource *r, const char *key, int64_t value) {
    attributes_set_int(&r->sets[DETECTED], key, value);
}

/* --- the process --- */

/* Reads the beginning of a file, as process_file_text(). Callers name /proc/thread-self, because
 * /proc/self has no executable once the main thread has ended; only the start of the process is in
 * /proc/self. */

static bool resource_read_text(const char *path, char *text, size_t size) {
    return process_file_text(may_open_by_path() ? process_file_open_path(path) : -1, text, size);
}

/* Returns the program that the process emulates, in `text`, or `path` if it emulates none. */
static const char *program_of(const char *path, char *text, size_t size) {
    if (!emulates_a_program(path))
        return path;
    /* clears the buffer: arguments that do not fit then still end with a NUL */
    memset(text, 0, size);
    if (!resource_read_text("/proc/thread-self/cmdline", text, size))
        return path;
    while (size > 1 && !text[size - 2])
        size--;
    const char *const guest = emulated_program(path, text, size);
    return guest ? guest : path;
}

/* Sets the executable's attributes. `path`: its path at the process's start, or "" if not known. */
static void set_executable(struct resource *r, const char *path, const char *redact) {
    char now[PATH_MAX];
    if (path[0] != '/' && may_open_by_path() && program_path(now, sizeof now))
        path = now;
    if (path[0] != '/')
        return;
    char arguments[PATH_MAX];
    const char *const program = program_of(path, arguments, sizeof arguments);
    const char *const shown = redact_path(redact, program);
    if (program[0] == '/') /* otherwise the folder is not known any more */
        resource_set_text(r, "process.executable.path", shown);
    resource_set_text(r, "process.executable.name", glob_base_name(shown));
}

/* Sets the command to the path given to exec. argv[0] and the arguments are not sent, because they
 * may hold secrets, and a program that sets its title overwrites them. If the executable's path is
 * hidden, the command is hidden, too: it may be a relative path, which no glob matches. */
static void set_command(struct resource *r, const char *redact) {
    const char *const command = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    const char *const path = resource_find(r, "process.executable.path");
    const bool hidden = path && path[0] != '/';
    /* takes the program's path, because the loader's option --argv0 may give any text */
    if (program_is_run_by_loader())
        resource_set_text(r, "process.command", path ? path : "");
    else if (command)
        resource_set_text(r, "process.command", hidden ? path : redact_path(redact, command));
}

/* Reads the start of the process, in clock ticks since boot. Returns false if it is not known. */
static bool started_ticks(long long *ticks) {
    enum { STARTED = 22 };
    char text[1024];
    if (!resource_read_text("/proc/self/stat", text, sizeof text))
        return false;
    const char *const at = process_stat_field(text, STARTED);
    return at && sscanf(at, "%lld", ticks) == 1;
}

static void set_created(struct attribute_set *set, uint64_t unix_seconds) {
    char text[UTC_TIME_BYTES];
    utc_time((uint32_t)unix_seconds, text);
    attributes_set_text(set, "process.creation.time", text);
}

static void set_creation_time(struct resource *r) {
    long long ticks;
    const uint64_t since_boot = clock_nano(CLOCK_BOOTTIME);
    const long rate = sysconf(_SC_CLK_TCK);
    if (!started_ticks(&ticks) || rate <= 0 || since_boot == 0)
        return;
    const uint64_t booted = (realtime_nano() - since_boot) / NANO_PER_SECOND;
    set_created(&r->sets[DETECTED], booted + (uint64_t)(ticks / rate));
}

void resource_began(struct resource *r, uint64_t unix_nano) {
    if (!resource_find(r, "process.creation.time"))
        set_created(&r->sets[DETECTED], unix_nano / NANO_PER_SECOND);
}

/* Makes a UUID of RFC 9562, version 4. */
static void set_instance_id(struct attribute_set *set) {
    uint8_t b[16];
    char text[37];
    if (getrandom(b, sizeof b, GRND_NONBLOCK) != (ssize_t)sizeof b) {
        const uint64_t fallback[] = {monotonic_nano(), (uint64_t)getpid() << 32 ^ realtime_nano()};
        memcpy(b, fallback, sizeof b);
    }
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    snprintf(text, sizeof text,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    attributes_set_text(set, "service.instance.id", text);
}

static void set_host(struct resource *r) {
    struct utsname names;
    char text[64];
    char id[33];
    if (uname(&names) == 0) {
        const bool is_build_machine = strcmp(names.machine, ARCH_MACHINE_NAME) == 0;
        resource_set_text(r, "host.name", names.nodename);
        resource_set_text(r, "host.arch", is_build_machine ? ARCH_HOST_NAME : names.machine);
    }
    if ((resource_read_text("/etc/machine-id", text, sizeof text) && machine_id(text, id)) ||
        (resource_read_text("/var/lib/dbus/machine-id", text, sizeof text) && machine_id(text, id)))
        resource_set_text(r, "host.id", id);
}

/* --- its environment --- */

/* Reads at most `most` bytes of a file, in several calls, because files in /proc come in pieces.
 * Returns malloc'ed text; "" if the file cannot be read; NULL without memory.
 */
static char *resource_read_file(const char *path, size_t most) {
    char *const text = malloc(most + 1);
    const int file = text && may_open_by_path() ? open(path, OPEN_TO_READ) : -1;
    size_t have = 0;
    ssize_t got = 1;
    while (file >= 0 && have < most && got > 0) {
        got = read(file, text + have, most - have);
        have += got > 0 ? (size_t)got : 0;
    }
    if (file >= 0)
        close(file);
    if (text)
        text[have] = 0;
    return text;
}

/* Reads this thread's files, because /proc/self has none once the main thread has ended. */
static void set_container(struct resource *r) {
    char id[CONTAINER_ID_BYTES];
    char *text = resource_read_file("/proc/thread-self/cgroup", FILE_BYTES);
    bool found = text && container_of_cgroup(text, id);
    free(text);
    if (!found) {
        text = resource_read_file("/proc/thread-self/mountinfo", FILE_BYTES);
        found = text && container_of_mounts(text, id);
        free(text);
    }
    if (found)
        resource_set_text(r, "container.id", id);
}

static void set_system(struct resource *r) {
    static const char *const keys[][2] = {{"NAME", "os.name"},
                                          {"VERSION_ID", "os.version"},
                                          {"PRETTY_NAME", "os.description"},
                                          {"BUILD_ID", "os.build_id"}};
    char value[VALUE_BYTES];
    char *text = resource_read_file("/etc/os-release", FILE_BYTES);
    if (text && !*text) { /* os-release(5) allows a second place for the file */
        free(text);
        text = resource_read_file("/usr/lib/os-release", FILE_BYTES);
    }
    for (size_t i = 0; text && i < sizeof keys / sizeof *keys; i++)
        if (os_release_value(text, keys[i][0], value, sizeof value))
            resource_set_text(r, keys[i][1], value);
    free(text);
    resource_set_text(r, "os.type", "linux");
}

/* Sets the owner's name. Searches only /etc/passwd for it, because the name service might use the
 * network and load libraries. If the user has no name there, or the process has another root, the
 * owner is the user's number, as in ps(1). */
static void set_owner(struct resource *r) {
    char name[VALUE_BYTES];
    r->owner = geteuid();
    char *const text = resource_read_file("/etc/passwd", FILE_BYTES);
    if (!text || !passwd_name(text, r->owner, name, sizeof name))
        snprintf(name, sizeof name, "%u", r->owner);
    resource_set_text(r, "process.owner", name);
    free(text);
}

/* --- configured attributes --- */

/* Sets a configured attribute. Accepts an empty value, which replaces the detected value; but a
 * service must have a name. */
static void set_pair(void *arg, const char *key, const char *value) {
    if (*value || strcmp(key, "service.name") != 0)
        attributes_set_text(arg, key, value);
}

static void set_configured(struct resource *r, const struct config *config) {
    struct attribute_set *const set = &r->sets[CONFIGURED];
    char *const scratch = malloc(strlen(config->resource_attributes) + 1);
    if (scratch)
        (void)keyvalues_parse(config->resource_attributes, scratch, set_pair, set);
    free(scratch);
    set_pair(set, "service.name", config->service_name);
}

void resource_declare(struct resource *r, const struct attribute_set *declared) {
    for (size_t i = 0; i < declared->count; i++)
        attributes_set(&r->sets[DECLARED], declared->items[i].key, declared->items[i].value);
}

static void set_default_service(struct resource *r) {
    char name[VALUE_BYTES];
    const char *const executable = resource_find(r, "process.executable.name");
    const bool known = executable && *executable;
    snprintf(name, sizeof name, "unknown_service%s%s", known ? ":" : "", known ? executable : "");
    resource_set_text(r, "service.name", name);
}

/* --- the application's attributes --- */

static bool may_be_published(const char *key) {
    static const char *const never[] = {"telemetry.", "process.command_line",
                                        "process.command_args"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strncmp(key, never[i], strlen(never[i])) == 0)
            return false;
    return true;
}

static bool was_redacted(const struct attribute *detected) {
    return detected && detected->value.kind == ATTRIBUTE_TEXT &&
           strcmp(detected->value.text, REDACTED) == 0;
}

/* Returns the published value, hidden if it is a path or name of the executable that the operator
 * hides: the application need not know of that. If the profiler has hidden its own value of the
 * key, the published value is hidden, too: a glob that matches the path may not match the name
 * alone. */
static struct attribute_value redacted(const struct resource *r, const struct attribute *from) {
    static const char *const paths[] = {"process.executable.path", "process.executable.name",
                                        "process.command"};
    struct attribute_value value = from->value;
    for (size_t i = 0; value.kind == ATTRIBUTE_TEXT && i < sizeof paths / sizeof *paths; i++)
        if (strcmp(from->key, paths[i]) == 0)
            value.text = was_redacted(attributes_find(&r->sets[DETECTED], from->key))
                             ? REDACTED
                             : redact_path(r->redact, value.text);
    return value;
}

void resource_update(struct resource *r) {
    /* updates the owner, because a server gives up root after it has forked its workers */
    if (r->owner != geteuid())
        set_owner(r);
    if (!process_context_update(&r->context, &r->published))
        return;
    attributes_clear(&r->sets[PUBLISHED]);
    for (size_t i = 0; i < r->published.count; i++) {
        const struct attribute *const attribute = &r->published.items[i];
        if (may_be_published(attribute->key))
            attributes_set(&r->sets[PUBLISHED], attribute->key, redacted(r, attribute));
    }
}

const struct key_names *resource_key_names(const struct resource *r) {
    return &r->context.names;
}

void resource_find_key_names(struct resource *r) {
    process_context_expect(&r->context);
    resource_update(r);
}

/* --- all sources --- */

struct resource *resource_open(const struct config *config, const struct log *log,
                               const char *executable) {
    struct resource *const r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->context.log = log;
    r->redact = config->redact;
    r->detail = config->resource;
    set_instance_id(&r->sets[DETECTED]);
    set_number(r, "process.pid", getpid());
    set_number(r, "process.parent_pid", getppid());
    set_executable(r, executable, config->redact);
    set_command(r, config->redact);
    set_creation_time(r);
    set_host(r);
    set_system(r);
    set_owner(r);
    set_container(r);
    /* "opentelemetry" is reserved for the official SDKs */
    resource_set_text(r, "telemetry.sdk.name", "libotelprof");
    resource_set_text(r, "telemetry.sdk.language", "c");
    resource_set_text(r, "telemetry.sdk.version", OTELPROF_VERSION);
    resource_set_text(r, "telemetry.distro.name", "libotelprof");
    resource_set_text(r, "telemetry.distro.version", OTELPROF_VERSION);
    set_configured(r, config);
    set_default_service(r);
    return r;
}

void resource_close(struct resource *r) {
    if (!r)
        return;
    for (int source = 0; source < SOURCES; source++)
        attributes_clear(&r->sets[source]);
    attributes_clear(&r->published);
    process_context_clear(&r->context);
    free(r);
}

static bool is_identifying(const char *key) {
    enum when { DESCRIBING, IDENTIFYING };
    static const struct {
        const char *key;
        enum when when;
    } known[] = {
#define RESOURCE_ATTRIBUTE(key, when, what) {key, when},
#include "resource_attributes.def"
#undef RESOURCE_ATTRIBUTE
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].key, key) == 0)
            return known[i].when == IDENTIFYING;
    return false;
}

/* Returns false if another source wins, or if the attribute was detected and does not identify the
 * process: receivers have limits, and must not refuse attributes that the operator asked for
 * because of detected ones. */
static bool is_sent(const struct resource *r, int source, const char *key) {
    if (find_above(r, source, key))
        return false;
    return source != DETECTED || r->detail == RESOURCE_FULL || is_identifying(key);
}

/* Writes the attributes. Those of `instead` replace detected ones; NULL: none are replaced. */
static void write_attributes(const struct resource *r, const struct attribute_set *instead,
                             struct otlp_writer *writer) {
    for (int source = 0; source < SOURCES; source++)
        for (size_t i = 0; i < r->sets[source].count; i++) {
            const struct attribute *const own = &r->sets[source].items[i];
            const struct attribute *const other =
                instead && source == DETECTED ? attributes_find(instead, own->key) : NULL;
            if (is_sent(r, source, own->key))
                attribute_write(other ? other : own, writer);
        }
}

void resource_write(const struct resource *r, struct otlp_writer *writer) {
    write_attributes(r, NULL, writer);
}

void resource_write_child(const struct resource *r, const struct ended_child *child,
                          struct otlp_writer *writer) {
    struct attribute_set own = {0};
    set_instance_id(&own);
    attributes_set_int(&own, "process.pid", child->pid);
    attributes_set_int(&own, "process.parent_pid", child->parent);
    set_created(&own, child->start_unix_nano / NANO_PER_SECOND);
    write_attributes(r, &own, writer);
    attributes_clear(&own);
}
