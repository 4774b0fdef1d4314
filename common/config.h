/* Reads the configuration, every OTEL_* variable, once.
 *
 * config_parse() is a pure function over an environment: it keeps no state, calls no getenv (bash
 * exports its own) and takes memory only from the caller's buffer. So the constructor of the
 * preloaded object, the unit tests and the fuzzer use the same code. If a value cannot be used, the
 * parser gives one warning through `warn`, and takes the value of the variable's generic form, or
 * the default; for a list of names to hide or to send, the value that sends least. The program
 * always runs on. options.def lists all variables; the tables in docs/ are generated from it.
 */
#ifndef OTELPROF_CONFIG_H
#define OTELPROF_CONFIG_H

#include "condition.h"
#include "profile_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum protocol { PROTOCOL_HTTP_PROTOBUF, PROTOCOL_HTTP_JSON, PROTOCOL_GRPC };
enum compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD };
enum file_format { FILE_JSON, FILE_PROTOBUF };
enum resource_detail { RESOURCE_IDENTITY, RESOURCE_FULL };
enum at_start { START_ON, START_OFF };
enum symbols { SYMBOLS_NONE, SYMBOLS_FUNCTIONS, SYMBOLS_LINES };

/* Lists the bits of config.exporters; 0 = "none". */
enum { EXPORTER_OTLP = 1, EXPORTER_OTLP_FILE = 2, EXPORTER_CONSOLE = 4 };

struct config {
    bool disabled;
    const char *service_name;        /* "" = unset */
    const char *resource_attributes; /* raw text; common/keyvalues.h decodes it */
    enum resource_detail resource;
    enum log_level log_level;
    bool log_level_set;   /* false: the default level, which applies only to stderr (log.h) */
    const char *log_file; /* "" = stderr */
    unsigned exporters;   /* EXPORTER_* bits */
    const char *file;     /* "" = a generated name; shim/flush/export/file_export.h */
    enum file_format file_format;
    enum protocol protocol;
    bool insecure;        /* applies to an endpoint without a scheme, and to a Unix socket */
    const char *endpoint; /* complete URL, including the path of the signal or the call */
    bool endpoint_set;    /* false: the default endpoint, where perhaps no receiver listens */
    /* absolute path of the socket to connect to instead of the URL's host; "": none */
    const char *unix_socket;
    const char *headers; /* raw text, never logged */
    enum compression compression;
    uint64_t timeout_ms;
    const char *certificate;
    const char *client_key;
    const char *client_certificate;
    uint64_t interval_ms; /* >= 1 */
    uint64_t export_timeout_ms;
    uint64_t max_queue_bytes;
    unsigned types;          /* PROFILE_* bits: profile_kind.h */
    uint64_t cpu_frequency;  /* Hz */
    uint64_t signal;         /* number of the signal that CPU timers raise */
    uint64_t alloc_interval; /* bytes, >= 1 */
    uint64_t wait_frequency; /* Hz, >= 1 */
    uint64_t lock_interval;  /* nanoseconds, >= 1 */
    uint64_t max_overhead;   /* millionths of the program's CPU time; UINT64_MAX: no limit */
    uint64_t heap_max_live;  /* sampled objects, 64 to 2^24 */
    bool heap_age;
    bool python;
    unsigned context;   /* CONTEXT_* bits: context_source.h */
    const char *labels; /* a list of globs of keys; "" = none: encode/contexts.h */
    bool link_attributes;
    uint64_t max_stack_depth;
    uint64_t max_samples;
    uint64_t max_profile_bytes; /* size of a request before compression */
    enum symbols symbols;
    const char *exclude; /* list of globs: process/eligibility/process_filter.h */
    const char *include;
    const char *redact; /* list of globs: encode/redact.h */
    uint64_t min_lifetime_ms;
    uint64_t shutdown_timeout_ms;
    const char *config_file; /* "" = unset; only the exporter reads it: flush/declare */
    const char *listen;      /* "" = no server: flush/serve */
    bool listen_control;
    const char *listen_token; /* "": requests need no token; never logged */
    enum at_start start;      /* START_OFF: profiling waits until it is turned on */
    const char *control_file; /* "" = unset; flush/control polls it */
    uint64_t cpu_threshold;   /* percent; 0 = none: flush/control/shedding.h */
    struct condition condition;
    /* false: the default, which is shorter until an export has succeeded */
    bool shutdown_timeout_set;
};

/* Receives one complete sentence for each wrong value, without a newline. */
typedef void config_warn(void *arg, const char *message);

/* Reads `envp` (NULL-terminated "NAME=value" strings, as environ) into `*config`. Copies the
 * configuration's strings into `buffer` of `size` bytes, which must live as long as the
 * configuration. A string that does not fit counts as a value that cannot be used. If a name
 * appears twice, the first entry counts, as with getenv(). Context: calm. Async-signal-safe: yes
 * (no libc state is touched). */
void config_parse(const char *const *envp, struct config *config, char *buffer, size_t size,
                  config_warn *warn, void *arg);

/* Return whether otlp_file is configured and writes to standard output, or to a file. Context: any.
 * Async-signal-safe: yes. */
bool config_writes_to_output(const struct config *config);
bool config_writes_file(const struct config *config);

/* Returns whether profiles can leave the process: by an exporter, or on request
 * (OTEL_PROFILER_LISTEN). Context: any. Async-signal-safe: yes. */
bool config_has_receiver(const struct config *config);

/* Returns whether a setting names a destination for profiles: then the user expects profiles there.
 * Context: any. Async-signal-safe: yes. */
bool config_names_destination(const struct config *config);

#endif
