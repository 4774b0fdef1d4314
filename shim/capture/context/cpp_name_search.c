#include "cpp_name_search.h"

#include "clock.h"
#include "hash.h"
#include "loader_counters.h"
#include "object_build.h"
#include "object_segments.h"
#include "readable_memory.h"
#include "symbols/loader_state.h"
#include "symbols/object_symbols.h"

#include <link.h>
#include <string.h>

/* a piece of so many bytes is searched in about half a millisecond */
enum { PIECE_BYTES = 2 << 20 };

#define PREFIX "N13opentelemetry2v"
#define REST   "7context25ThreadLocalContextStorageE"
_Static_assert(sizeof CPP_STORAGE_NAME("1") == sizeof PREFIX + sizeof REST, "its two parts");

/* --- the loader's list --- */

/* Visits the loaded objects while no other thread is inside the loader: in glibc dl_iterate_phdr()
 * may follow a null pointer if it meets an object that another thread is just loading, with
 * thread-local variables (_dl_tls_get_addr_soft: the object has a module number for which there is
 * no entry yet). Returns false if another thread is inside. If the loader's state is not known,
 * visits them in any case. */
static bool visit_list(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg) {
    const bool locks = loader_state_is_known();
    if (locks && !loader_state_try_enter())
        return false;
    dl_iterate_phdr(visit, arg);
    if (locks)
        loader_state_leave();
    return true;
}

/* --- which objects to search --- */

/* Hashes the object's address and build: another object, or another build of the same size, may be
 * loaded at the address of an unloaded one. */
static uint64_t identity_of(const struct dl_phdr_info *object) {
    return hash_word(object_build(object), object->dlpi_addr) | 1;
}

static bool was_searched(const struct cpp_name_search *search, uint64_t identity) {
    for (size_t i = 0; i < search->searched_count; i++)
        if (search->searched[i] == identity)
            return true;
    return false;
}

static void note_searched(struct cpp_name_search *search, uint64_t identity) {
    if (search->searched_count < CPP_SEARCHED)
        search->searched[search->searched_count++] = identity;
    search->place = 0;
    search->offset = 0;
}

/* --- unloaded objects --- */

struct loaded {
    const struct cpp_name_search *search;
    /* identities of the searched objects that are still loaded */
    uint64_t identities[CPP_SEARCHED];
    size_t count;
};

static int note_loaded(struct dl_phdr_info *object, size_t size, void *arg) {
    struct loaded *const loaded = arg;
    const uint64_t identity = identity_of(object);
    (void)size;
    if (loaded->count < CPP_SEARCHED && was_searched(loaded->search, identity))
        loaded->identities[loaded->count++] = identity;
    return 0;
}

static struct loaded loaded_objects; /* only the helper uses this list */

/* Drops unloaded objects from both lists, so that a library that is loaded again and again, each
 * time at another address, takes one entry only. Returns false if another thread is inside the
 * loader. */
static bool forget_unloaded_objects(struct cpp_name_search *search) {
    size_t kept = 0;
    loaded_objects.search = search;
    loaded_objects.count = 0;
    if (!visit_list(note_loaded, &loaded_objects))
        return false;
    memcpy(search->searched, loaded_objects.identities,
           loaded_objects.count * sizeof *search->searched);
    search->searched_count = loaded_objects.count;
    for (size_t i = 0; i < search->count; i++) {
        if (!was_searched(search, search->found_in[i]))
            continue;
        search->found[kept] = search->found[i];
        search->found_in[kept++] = search->found_in[i];
    }
    search->count = kept;
    return true;
}

/* Returns true for the two functions that register destructors: the C++ library defines the first;
 * libc defines the second, which an object uses if the C++ library is linked into it. */
static bool registers_destructors(const char *name) {
    return strcmp(name, "__cxa_thread_atexit") == 0 ||
           strcmp(name, "__cxa_thread_atexit_impl") == 0;
}

/* Returns true if the object has thread-local variables with destructors: the API stores a thread's
 * contexts in such a variable. */
static bool may_have_it(const struct dl_phdr_info *object) {
    const struct object_segments segments = object_segments_of(object);
    const struct link_map map = object_symbols_map(object);
    return object_header(&segments, PT_TLS) && object_symbols_refers(&map, registers_destructors);
}

/* --- the search in one object --- */

static bool is_constant(const ElfW(Phdr) * segment, uint32_t with) {
    return segment->p_type == PT_LOAD && segment->p_flags == (PF_R | with);
}

/* Returns the flag that the segment of constants has in addition to PF_R. Older linkers put
 * constants into the code's segment. */
static uint32_t kind_of_constants(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (is_constant(&object->dlpi_phdr[i], 0))
            return 0;
    return PF_X;
}

/* Returns true if the name follows _ZTS or the like: then it is in the dynamic string table, and is
 * not the type name of a class. */
static bool is_symbol(const char *name, const char *start) {
    return name - start >= 4 && memcmp(name - 4, "_ZT", 3) == 0;
}

/* Returns the name if it is, with its final 0, in `size` bytes; NULL: it is not. */
static const char *find_name(const char *from, size_t size) {
    const size_t prefix = sizeof PREFIX; /* counts the digit of the name's length, too */
    const char *at = from;
    for (;;) {
        const char *const rest = memmem(at, size - (size_t)(at - from), REST, sizeof REST);
        if (!rest)
            return NULL;
        const char *const name = rest - prefix;
        at = rest + 1;
        if ((size_t)(rest - from) >= prefix && memcmp(name, PREFIX, sizeof PREFIX - 1) == 0 &&
            (rest[-1] == '1' || rest[-1] == '2') && !is_symbol(name, from))
            return name;
    }
}

static void note_found(struct cpp_name_search *search, uintptr_t bias, uint64_t identity,
                       const char *name) {
    const struct cpp_object found = {
        .bias = bias, .name = (uintptr_t)name, .abi = (unsigned)(name[sizeof PREFIX - 1] - '0')};
    for (size_t i = 0; i < search->count; i++)
        if (search->found[i].bias == bias && search->found[i].name == found.name)
            return;
    if (search->count == CPP_OBJECTS) {
        search->cut = true;
        return;
    }
    search->found_in[search->count] = identity;
    search->found[search->count++] = found;
}

/* --- piece by piece --- */

struct step {
    struct cpp_name_search *search;
    bool worked; /* a piece was searched, and more may follow */
    bool first;
};

/* Searches the next piece of the object. search->offset counts over its constant segments. Returns
 * true after the last piece, when the name is found, or when the rest cannot be read. */
static bool search_piece(struct cpp_name_search *search, const struct dl_phdr_info *object) {
    const size_t overlap = sizeof CPP_STORAGE_NAME("1") + 4;
    const uint32_t kind = kind_of_constants(object);
    uint64_t before = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];
        if (!is_constant(segment, kind) || before + segment->p_filesz <= search->offset) {
            before += is_constant(segment, kind) ? segment->p_filesz : 0;
            continue;
        }
        const uint64_t skip = search->offset - before;
        const uint64_t left = segment->p_filesz - skip;
        const size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        const char *const from = (const char *)(object->dlpi_addr + segment->p_vaddr + skip);
        const size_t readable = readable_memory((uintptr_t)from, size);
        const char *const name = find_name(from, readable);
        if (name)
            note_found(search, object->dlpi_addr, identity_of(object), name);
        search->offset += size == left ? size : size - overlap;
        return name || readable < size;
    }
    return true;
}

static int search_some(struct dl_phdr_info *object, size_t size, void *arg) {
    struct step *const step = arg;
    struct cpp_name_search *const search = step->search;
    (void)size;
    if (step->first) {
        search->adds = object->dlpi_adds;
        search->subs = object->dlpi_subs;
    }
    step->first = false;
    const uint64_t identity = identity_of(object);
    if (was_searched(search, identity))
        return 0;
    if (search->place != identity) {
        search->place = identity;
        search->offset = 0;
    }
    step->worked = true;
    if (!may_have_it(object)) {
        note_searched(search, identity);
        return 0;
    }
    if (search_piece(search, object))
        note_searched(search, identity);
    return 1; /* dl_iterate_phdr() returns, and releases the loader's lock */
}

/* Returns `result`, and makes the counters differ from the loader's, so that the next poll
 * continues. */
static enum cpp_search_result search_is_cut(struct cpp_name_search *search,
                                            enum cpp_search_result result) {
    search->adds = 0;
    return result;
}

enum cpp_search_result cpp_name_search(struct cpp_name_search *search, uint64_t most_nano) {
    const struct loader_counters now = loader_counters_read();
    const uint64_t start = thread_cpu_nano();
    struct step step = {.search = search, .worked = true};
    if (search->adds == now.adds && search->subs == now.subs)
        return CPP_SEARCH_SAME;
    if (search->subs != now.subs && !forget_unloaded_objects(search))
        return search_is_cut(search, CPP_SEARCH_PREVENTED);
    while (step.worked && search->searched_count < CPP_SEARCHED) {
        step.worked = false;
        step.first = true;
        if (!visit_list(search_some, &step))
            return search_is_cut(search, CPP_SEARCH_PREVENTED);
        if (step.worked && thread_cpu_nano() - start > most_nano) {
            search->cut = true;
            return search_is_cut(search, CPP_SEARCH_DONE);
        }
    }
    return CPP_SEARCH_DONE;
}
