#include "claimed_library.h"

#include "exporter_libraries.h"
#include "loader_counters.h"
#include "object_segments.h"
#include "object_tables.h"

#include <curl/curl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { NAMES = 3 };
static const char *const functions[NAMES + 1] = {"curl_global_init_mem", "curl_global_sslset",
                                                 "CRYPTO_set_mem_functions", NULL};
/* if libcurl does not use OpenSSL, only the first two functions are searched */
enum { WITHOUT_OPENSSL = 2 };

/* Caches the result for the process and for its forked children, which have the same objects. */
static struct {
    uint64_t objects;     /* the loader's count of loaded objects at the last scan */
    const char *function; /* the function that claims the library; NULL: none */
} claimed;

struct libcurl {
    /* libcurl is the bundle's, inside libotelprof-flush.so, where no other code reaches it */
    bool is_bundled;
    bool uses_openssl;
};

/* Describes the libcurl that the exporter calls. It may be a part of the program, because the
 * program's functions precede those of a library. */
static int describe_libcurl(struct dl_phdr_info *info, size_t size, void *arg) {
    struct libcurl *const libcurl = arg;
    struct object_tables tables;
    (void)size;
    if (!object_spans(info, (uintptr_t)(void *)curl_global_init))
        return 0;
    libcurl->is_bundled =
        info->dlpi_name[0] != 0 && object_spans(info, (uintptr_t)(void *)claimed_library_function);
    libcurl->uses_openssl =
        object_tables_open(&tables, info) && object_tables_import(&tables, "SSL_CTX_new");
    return 1;
}

static void claimed_library_scan(const struct dl_phdr_info *object, void *arg) {
    const struct libcurl *const libcurl = arg;
    struct object_tables tables;
    const char *names[NAMES + 1] = {NULL};
    memcpy(names, functions, (libcurl->uses_openssl ? NAMES : WITHOUT_OPENSSL) * sizeof *names);
    if (!claimed.function && object_tables_open(&tables, object))
        claimed.function = object_tables_refer(&tables, names);
}

const char *claimed_library_function(void) {
    const uint64_t objects = loader_counters_read().adds;
    struct libcurl libcurl = {false, false};
    if (claimed.function || objects == claimed.objects)
        return claimed.function;
    claimed.objects = objects;
    dl_iterate_phdr(describe_libcurl, &libcurl);
    if (!libcurl.is_bundled)
        exporter_libraries_visit_others(claimed_library_scan, &libcurl);
    return claimed.function;
}
