#include "cpp_programs.h"

#include "capture/context/cpp_name_search.h"
#include "capture/symbols/loader_state.h"
#include "clock.h"
#include "context_source.h"
#include "cpp_context.h"
#include "helper.h"
#include "helper_load.h"
#include "process_context_publisher.h"

#include <dlfcn.h>
#include <string.h>

enum {
    SEARCH_MS = 200, /* CPU time that one poll may use at most */
    PAYLOAD_BYTES = 256,
    CHECK_FRACTION = 1000,
};

/* Holds the state, which only the helper uses. */
static struct {
    struct cpp_name_search search;
    cpp_context_scan *examine; /* function of libotelprof-cpp.so; NULL: not loaded yet */
    bool not_loaded;           /* loading failed, and that was logged */
    bool cut_reported;
    struct process_context_publication publication; /* any thread may read its address */
    /* CLOCK_MONOTONIC: when to check for another context */
    uint64_t next_check_ns;
} programs;

/* --- loading --- */

static void cpp_programs_load(void) {
    const char *why = NULL;
    void *const library =
        helper_load_beside("libotelprof-cpp.so", CPP_CONTEXT_RELEASE_SYMBOL, &why);
    void *const found = library ? dlsym(library, CPP_CONTEXT_SCAN_SYMBOL) : NULL;
    memcpy(&programs.examine, &found, sizeof found);
    programs.not_loaded = !found;
    if (!found)
        log_debug(helper.log,
                  "the program uses OpenTelemetry's C++ API; libotelprof-cpp.so cannot be loaded "
                  "(%s), and its spans are in no profile",
                  why ? why : "symbol missing");
}

/* --- publishing --- */

/* Publishes a process context, unless the process has one: it shows readers in other processes that
 * there are records, and of which kind. */
static void cpp_programs_publish(void) {
    static const char *const no_keys[] = {NULL};
    static const struct published_attribute beside[] = {
        {.key = "threadlocal.schema_version", .text = "tlsdesc_v1_dev"},
        {.key = "threadlocal.attribute_key_map", .list = no_keys},
    };
    uint8_t payload[PAYLOAD_BYTES];
    const size_t size = process_context_payload(
        payload, sizeof payload, (struct published_attributes){NULL, 0},
        (struct published_attributes){beside, sizeof beside / sizeof *beside});
    if (!process_context_is_published() &&
        !process_context_publish(&programs.publication, payload, size))
        log_debug(helper.log, "no process context can be published (OTEL_CTX); profilers outside "
                              "of this process do not see its spans");
}

/* Checks for another context of the process, in at most a thousandth of the time. */
void cpp_programs_give_way(void) {
    const uint64_t start = thread_cpu_nano();
    if (!programs.publication.header || monotonic_nano() < programs.next_check_ns)
        return;
    if (process_context_is_published_beside(&programs.publication))
        process_context_unpublish(&programs.publication);
    programs.next_check_ns = monotonic_nano() + (thread_cpu_nano() - start) * CHECK_FRACTION;
}

const struct process_context_publication *cpp_programs_publication(void) {
    return &programs.publication;
}

/* --- the results --- */

static void cpp_programs_report(enum cpp_outcome outcome, unsigned long place) {
    if (outcome == CPP_FOLLOWED)
        log_debug(helper.log,
                  "OpenTelemetry's C++ API is in the object at 0x%lx: samples are linked to "
                  "its spans",
                  place);
    else if (outcome == CPP_UNKNOWN_SHAPE)
        log_debug(helper.log,
                  "OpenTelemetry's C++ API is in the object at 0x%lx in a form that is not "
                  "known; its spans are in no profile",
                  place);
    else if (outcome == CPP_NOT_WRITABLE)
        log_debug(helper.log,
                  "OpenTelemetry's C++ API is in the object at 0x%lx, and its functions "
                  "cannot be replaced; its spans are in no profile",
                  place);
    else if (outcome == CPP_TOO_MANY)
        log_debug(helper.log,
                  "OpenTelemetry's C++ API is in more objects than are followed; the spans "
                  "of that at 0x%lx are in no profile",
                  place);
}

static void cpp_programs_follow(void) {
    bool any = false;
    for (size_t i = 0; i < programs.search.count; i++)
        programs.search.found[i].outcome = CPP_NOT_LOADED;
    programs.examine(programs.search.found, programs.search.count);
    for (size_t i = 0; i < programs.search.count; i++) {
        struct cpp_object *const object = &programs.search.found[i];
        if (object->logged != object->outcome)
            cpp_programs_report(object->outcome, (unsigned long)object->bias);
        object->logged = object->outcome;
        any |= object->outcome == CPP_FOLLOWED;
    }
    if (any)
        cpp_programs_publish();
}

/* Follows the objects with the loader's locks held, if the loader's state is known: the class in an
 * object that is not relocated yet cannot be examined. Returns false if another thread is inside
 * the loader. */
static bool try_follow(void) {
    const bool locks = loader_state_is_known();
    if (locks && !loader_state_try_enter())
        return false;
    cpp_programs_follow();
    if (locks)
        loader_state_leave();
    return true;
}

bool cpp_programs_poll(void) {
    if (!(helper.config->context & CONTEXT_OPENTELEMETRY_CPP) || programs.not_loaded)
        return true;
    const enum cpp_search_result result =
        cpp_name_search(&programs.search, SEARCH_MS * (uint64_t)NANO_PER_MILLI);
    if (result != CPP_SEARCH_DONE)
        return result == CPP_SEARCH_SAME;
    if (programs.search.cut && !programs.cut_reported)
        log_debug(helper.log, "too much is loaded to search all of it for OpenTelemetry's C++ API");
    programs.cut_reported = programs.search.cut;
    if (programs.search.count && !programs.examine && helper_may_open_by_path())
        cpp_programs_load();
    if (!programs.search.count || !programs.examine || try_follow())
        return true;
    programs.search.adds = 0; /* so that the next poll searches again */
    return false;
}

void cpp_programs_after_fork(void) {
    programs.search.adds = 0; /* makes the next poll search */
}
