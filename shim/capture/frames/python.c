#include "python.h"

#include "arch_machine.h"
#include "kernel/wait.h"
#include "loader_counters.h"
#include "object_segments.h"
#include "readable_memory.h"
#include "symbols/loader_state.h"
#include "symbols/object_symbols.h"
#include "unwind/fixed_modules.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

enum { RUNTIME, VERSION, CODE_TYPE, NAMES };
enum { FORGET_ROUNDS = 2000 }; /* waits at most so many rounds of wait.h */

/* --- holding --- */

/* Checks again after it has taken the hold, because the object may have been unloaded just
 * before. */
bool python_hold(struct python *python) {
    /* pairs with the release in switch_on() */
    if (!atomic_load_explicit(&python->on, memory_order_acquire))
        return false;
    if (!python->may_go)
        return true;
    if (!modules_hold(python->modules))
        return false;
    if (atomic_load_explicit(&python->on, memory_order_acquire))
        return true;
    modules_release(python->modules);
    return false;
}

void python_release(struct python *python) {
    if (python->may_go)
        modules_release(python->modules);
}

/* --- searching --- */

struct scan {
    struct python *python;
    struct symbol runtime; /* the symbol that is searched in each object */
    struct link_map executable;
    bool is_first;
    bool found;
};

/* Returns the offset of the object's block of thread-local variables from the thread's descriptor
 * (pthread_self): in static TLS it is the same on every thread. Returns 0 if the block is
 * elsewhere, or not known. */
static intptr_t python_static_block(const struct dl_phdr_info *info, size_t size) {
    enum { MOST_STATIC_TLS = 1 << 16 };
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data ||
        !info->dlpi_tls_data)
        return 0;
    const uintptr_t block = (uintptr_t)info->dlpi_tls_data;
    const bool is_static =
        thread_offset_is_static((intptr_t)(block - thread_pointer()), MOST_STATIC_TLS);
    return is_static ? (intptr_t)(block - (uintptr_t)pthread_self()) : 0;
}

static bool read_offsets(const struct symbol symbols[NAMES], uint32_t *version,
                         struct python_offsets *offsets) {
    const unsigned long *const version_word = symbols[VERSION].address;
    const uintptr_t runtime = (uintptr_t)symbols[RUNTIME].address;
    if ((uintptr_t)version_word % sizeof *version_word != 0 || runtime % sizeof(uint64_t) != 0 ||
        !word_is_readable((uintptr_t)version_word) ||
        readable_memory(runtime, PYTHON_TABLE_BYTES) != PYTHON_TABLE_BYTES)
        return false;
    *version = (uint32_t)*version_word;
    return python_offsets_find(*version, (const void *)runtime, offsets);
}

static void switch_on(struct scan *scan, const struct dl_phdr_info *info, size_t size,
                      const struct symbol symbols[NAMES]) {
    struct python *const python = scan->python;
    uint32_t version = 0;
    if (!read_offsets(symbols, &version, &python->offsets)) {
        log_debug(
            python->log,
            "a Python whose frames are not known (version 0x%x): its functions are in no stack",
            version);
        return;
    }
    if (!python->functions)
        python->functions = python_functions_new();
    if (!python->page_sets)
        python->page_sets = python_page_sets_new();
    if (!python->functions || !python->page_sets)
        return;
    python->object = (uintptr_t)info->dlpi_phdr;
    python->runtime = (uintptr_t)symbols[RUNTIME].address;
    python->code_type = (uintptr_t)symbols[CODE_TYPE].address;
    python->may_go =
        !fixed_modules_at(&python->modules->fixed, (uintptr_t)symbols[RUNTIME].address);
    const struct object_segments segments = object_segments_of(info);
    const ElfW(Phdr) *const variables = object_header(&segments, PT_TLS);
    python->block = variables ? python_static_block(info, size) : 0;
    python->block_bytes = variables ? variables->p_memsz : 0;
    python->block_module = variables && !python->block ? info->dlpi_tls_modid : 0;
    for (int i = 0; i < PYTHON_SLOTS; i++)
        atomic_store(&python->slots[i], 0);
    scan->found = true;
    atomic_store_explicit(&python->on, true, memory_order_release); /* pairs with python_hold() */
}

static void python_scan_symbols(struct scan *scan, const struct link_map *object,
                                const struct dl_phdr_info *info, size_t size) {
    struct symbol symbols[NAMES] = {[RUNTIME] = {.name = scan->runtime.name},
                                    [VERSION] = {.name = "Py_Version"},
                                    [CODE_TYPE] = {.name = "PyCode_Type"}};
    object_symbols_find_all(object, symbols, NAMES);
    if (!symbols[RUNTIME].address || !symbols[CODE_TYPE].address)
        return;
    if (!symbols[VERSION].address) /* Python defines this symbol from 3.11 on */
        atomic_store(&scan->python->is_old, true);
    if (!symbols[VERSION].address || !scan->python->wanted)
        return;
    /* a program without PIC has libpython's type in its own data */
    struct symbol first = {.name = symbols[CODE_TYPE].name};
    object_symbols_find_all(&scan->executable, &first, 1);
    if (first.address)
        symbols[CODE_TYPE].address = first.address;
    switch_on(scan, info, size, symbols);
}

static int python_scan_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct scan *const scan = arg;
    const struct link_map object = object_symbols_map(info);
    if (!object.l_ld)
        return 0;
    if (scan->is_first)
        scan->executable = object;
    scan->is_first = false;
    object_symbols_find_entries(&object, &scan->runtime, 1);
    if (scan->runtime.entry)
        python_scan_symbols(scan, &object, info, size);
    scan->runtime.entry = NULL;
    return scan->found;
}

static bool python_try_begin(void *busy) {
    return !atomic_exchange((_Atomic bool *)busy, true);
}

static void python_scan_objects(struct python *python) {
    struct scan scan = {.python = python, .runtime = {.name = "_PyRuntime"}, .is_first = true};
    dl_iterate_phdr(python_scan_object, &scan);
}

/* Scans under the loader's locks, so that every object is relocated. */
static void python_scan_if_more(struct python *python) {
    if (!python_try_begin(&python->busy))
        return;
    const uint64_t adds = loader_counters_read().adds;
    if (adds != python->adds) {
        python->adds = adds;
        python_scan_objects(python);
    }
    atomic_store(&python->busy, false);
}

void python_start(struct python *python, bool wanted, struct modules *modules,
                  const struct log *log) {
    python->wanted = wanted;
    python->modules = modules;
    python->log = log;
    python_scan_objects(python);
}

void python_poll(struct python *python) {
    if (!python->wanted || atomic_load(&python->on))
        return;
    const bool locks = loader_state_is_known();
    if (locks && !loader_state_try_enter())
        return;
    python_scan_if_more(python);
    if (locks)
        loader_state_leave();
}

/* --- forgetting --- */

struct presence {
    uintptr_t object;
    bool found;
};

static int python_check_presence(struct dl_phdr_info *info, size_t size, void *arg) {
    struct presence *const presence = arg;
    (void)size;
    presence->found = presence->object == (uintptr_t)info->dlpi_phdr;
    return presence->found;
}

void python_forget_unloaded(struct python *python) {
    if (!atomic_load(&python->on) || !python->may_go ||
        !wait_for_rounds(python_try_begin, &python->busy, FORGET_ROUNDS))
        return;
    struct presence presence = {.object = python->object};
    loader_state_visit(python_check_presence, &presence);
    if (!presence.found) {
        atomic_store(&python->on, false);
        python->adds = 0;
    }
    atomic_store(&python->busy, false);
}

void python_after_fork(struct python *python) {
    atomic_store(&python->busy, false);
    if (python->functions)
        python_functions_after_fork(python->functions);
    python_page_sets_after_fork(python->page_sets);
}
