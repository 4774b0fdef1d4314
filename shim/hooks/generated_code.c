/* Hooks __register_frame, __deregister_frame and their like: by these a JIT compiler passes the
 * unwind tables of its code to the C++ runtime, and so to us (unwind/registered_tables.h).
 *
 * libgcc defines these functions, or LLVM's libunwind, but not libc. The hooks forward to the
 * function that the program would have called without us. That is the first definition if its
 * object is never unloaded (it is in the global scope); else the caller's own definition, for
 * example if libgcc is linked into a library; else the first. If there is none (old compilers'
 * start files refer weakly), a registration has no effect. Its later removal is then not passed on,
 * because libgcc ends a program that removes a registration that it never saw. libgcc's functions
 * call one another by these names: such an inner call is only forwarded. */
#include "capture/capture.h"
#include "capture/record/list_iterations.h"
#include "capture/symbols/next_symbol.h"
#include "entry.h"
#include "hooks.h"
#include "object_segments.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

enum {
    DEFINERS = 8,  /* number of libraries that define these functions: nearly always one */
    UNPASSED = 64, /* number of remembered registrations that reached no definer */
};

/* Lists the hooked functions, in the order of the table. */
enum function {
#define HOOKED(...)
#define HOOKED_TABLES(result, name, parameters, arguments) CALL_##name,
#include "hooked.def"
    FUNCTIONS
};
_Static_assert(HOOKS_GENERATED_CODE_FUNCTIONS == (int)FUNCTIONS, "room for each");

static const char *const names[] = {
#define HOOKED(...)
#define HOOKED_TABLES(result, name, parameters, arguments) #name,
#include "hooked.def"
};

/* --- the next definitions --- */

struct definer {
    uintptr_t in_it; /* an address inside the object */
    bool is_fixed;
    void *functions[FUNCTIONS];
};

/* Holds the definers in one state of the loader's list. Only used inside dl_iterate_phdr(), which
 * admits one thread at a time. */
static struct {
    bool known;
    unsigned long long adds;
    unsigned long long subs;
    uint32_t count;
    struct definer definers[DEFINERS];
} found;

struct question {
    enum function function;
    uintptr_t caller;
    bool begun;
    bool is_stale; /* the loader's list has changed */
    const struct definer *of_caller;
    void *next_definition;
};

static void definers_scan_object(const struct dl_phdr_info *info) {
    struct symbol symbols[FUNCTIONS];
    const struct link_map map = object_symbols_map(info);
    if (!map.l_ld || map.l_ld == _DYNAMIC || found.count == DEFINERS)
        return;
    struct definer *const definer = &found.definers[found.count];
    bool defines = false;
    for (size_t i = 0; i < FUNCTIONS; i++)
        symbols[i] = (struct symbol){.name = names[i]};
    object_symbols_find_all(&map, symbols, FUNCTIONS);
    for (size_t i = 0; i < FUNCTIONS; i++) {
        definer->functions[i] = symbols[i].address;
        defines |= symbols[i].address != NULL;
    }
    definer->in_it = (uintptr_t)map.l_ld;
    definer->is_fixed = fixed_modules_at(&capture.modules.fixed, definer->in_it) != NULL;
    found.count += defines;
}

static void definers_begin_scan(const struct dl_phdr_info *info, struct question *question) {
    question->begun = true;
    question->is_stale =
        !found.known || found.adds != info->dlpi_adds || found.subs != info->dlpi_subs;
    if (question->is_stale)
        found.count = 0;
    found.known = true;
    found.adds = info->dlpi_adds;
    found.subs = info->dlpi_subs;
}

static void note_caller(const struct dl_phdr_info *info, struct question *question) {
    for (uint32_t i = 0; i < found.count; i++)
        if (object_spans(info, found.definers[i].in_it) && object_spans(info, question->caller))
            question->of_caller = &found.definers[i];
}

static int definers_visit(struct dl_phdr_info *info, size_t size, void *argument) {
    struct question *const question = argument;
    (void)size;
    if (!question->begun)
        definers_begin_scan(info, question);
    if (question->is_stale)
        definers_scan_object(info);
    note_caller(info, question);
    /* the best definer so far */
    const struct definer *definer = found.count ? &found.definers[0] : NULL;
    if (definer && !definer->is_fixed && question->of_caller)
        definer = question->of_caller;
    question->next_definition = definer ? definer->functions[question->function] : NULL;
    const bool is_one = found.count <= 1 || found.definers[0].is_fixed;
    return !question->is_stale && is_one;
}

/* Returns the next definition for this caller; NULL if no object defines the function. Preserves
 * errno. */
static void *next_of(enum function function, const void *caller) {
    struct question question = {.function = function, .caller = (uintptr_t)caller};
    const int saved = errno;
    if (object_symbols_own()) {
        list_iteration_begin();
        /* not by loader_state_visit(): a compiler must not wait for another thread's constructor */
        dl_iterate_phdr(definers_visit, &question);
        list_iteration_end();
    } else {
        question.next_definition = next_symbol(names[function]);
    }
    errno = saved;
    return question.next_definition;
}

/* --- registrations that reached no definer --- */

static _Atomic uintptr_t unpassed[UNPASSED];

static bool exchange_unpassed(uintptr_t from, uintptr_t to) {
    for (size_t i = 0; i < UNPASSED; i++) {
        uintptr_t expected = from;
        if (atomic_compare_exchange_strong(&unpassed[i], &expected, to))
            return true;
    }
    return false;
}

/* --- our records of them --- */

static void registered(const void *begin, const void *data_base, bool passed) {
    if (profiler_tls.registering) /* libgcc calls this hook from another of these functions */
        return;
    if (!passed)
        (void)exchange_unpassed(0, (uintptr_t)begin);
    if (atomic_load(&capture.armed))
        registered_tables_add(&capture.registered_tables, &capture.rules, &capture.modules,
                              (uintptr_t)begin, (uintptr_t)data_base);
}

/* Removes the record of a registration. Returns false if the registration reached no definer. */
static bool deregistered(const void *begin) {
    if (profiler_tls.registering)
        return true;
    registered_tables_remove(&capture.registered_tables, &capture.rules, (uintptr_t)begin);
    return !begin || !exchange_unpassed((uintptr_t)begin, 0);
}

/* --- the hooks --- */

#define HOOKED(...)
#define HOOKED_TABLES(result, name, parameters, arguments) HOOK result name parameters;
#include "hooked.def"

/* NEXT_OF returns the next definition, or NULL; PASS_ON calls it. */
#define NEXT_OF(name) ((__typeof__(name) *)next_of(CALL_##name, __builtin_return_address(0)))
#define PASS_ON(next, ...)                                                                         \
    do {                                                                                           \
        profiler_tls.registering++;                                                                \
        next(__VA_ARGS__);                                                                         \
        profiler_tls.registering--;                                                                \
    } while (0)

void __register_frame(const void *begin) {
    __typeof__(__register_frame) *const next = NEXT_OF(__register_frame);
    if (next)
        PASS_ON(next, begin);
    registered(begin, NULL, next != NULL);
}

void __register_frame_info(const void *begin, void *object) {
    __typeof__(__register_frame_info) *const next = NEXT_OF(__register_frame_info);
    if (next)
        PASS_ON(next, begin, object);
    registered(begin, NULL, next != NULL);
}

void __register_frame_info_bases(const void *begin, void *object, void *text, void *data) {
    __typeof__(__register_frame_info_bases) *const next = NEXT_OF(__register_frame_info_bases);
    if (next)
        PASS_ON(next, begin, object, text, data);
    registered(begin, data, next != NULL);
}

/* Register several sections, each by its address. Compilers do not use these functions, so they are
 * only forwarded. */

void __register_frame_table(const void *begins) {
    __typeof__(__register_frame_table) *const next = NEXT_OF(__register_frame_table);
    if (next)
        PASS_ON(next, begins);
}

void __register_frame_info_table(const void *begins, void *object) {
    __typeof__(__register_frame_info_table) *const next = NEXT_OF(__register_frame_info_table);
    if (next)
        PASS_ON(next, begins, object);
}

void __register_frame_info_table_bases(const void *begins, void *object, void *text, void *data) {
    __typeof__(__register_frame_info_table_bases) *const next =
        NEXT_OF(__register_frame_info_table_bases);
    if (next)
        PASS_ON(next, begins, object, text, data);
}

void __deregister_frame(const void *begin) {
    __typeof__(__deregister_frame) *const next = NEXT_OF(__deregister_frame);
    if (deregistered(begin) && next)
        PASS_ON(next, begin);
}

void *__deregister_frame_info(const void *begin) {
    __typeof__(__deregister_frame_info) *const next = NEXT_OF(__deregister_frame_info);
    void *object = NULL;
    if (deregistered(begin) && next)
        PASS_ON(object = next, begin);
    return object;
}

void *__deregister_frame_info_bases(const void *begin) {
    __typeof__(__deregister_frame_info_bases) *const next = NEXT_OF(__deregister_frame_info_bases);
    void *object = NULL;
    if (deregistered(begin) && next)
        PASS_ON(object = next, begin);
    return object;
}

size_t hooks_generated_code_unneeded(struct symbol *unneeded) {
    if (atomic_load(&capture.armed))
        return 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        unneeded[i] = (struct symbol){.name = names[i]};
    return FUNCTIONS;
}
