#include "exporter_bindings.h"

#include "exporter_libraries.h"
#include "object_tables.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Names a function of libotelprof.so, by which that object is found; NULL if the object is not
 * loaded. */
extern const char *otelprof_version(void) __attribute__((weak));

/* Bounds the list of libraries; some 45 come with the exporter. A reference to a library beyond
 * this limit only costs a lookup. */
enum { MAX_OWN_OBJECTS = 128 };

struct object_range {
    uintptr_t start;
    uintptr_t end;
};

/* Holds the constructor's results; read-only afterwards. */
static struct {
    struct object_range own[MAX_OWN_OBJECTS]; /* the exporter's libraries */
    size_t count;
    struct object_range libc;
    struct object_range profiler;
    struct object_range executable;
    void *handle;         /* libotelprof-flush.so; NULL: linked into a program */
    bool has_conflict;    /* a reference was redirected */
    const char *function; /* name of a function whose reference stays with the program */
} bindings;

/* --- where an address is --- */

static struct object_range object_range_of(const struct dl_phdr_info *info) {
    struct object_range range = {UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD)
            continue;
        range.start = start < range.start ? start : range.start;
        range.end = start + header->p_memsz > range.end ? start + header->p_memsz : range.end;
    }
    return range;
}

static bool object_range_has(struct object_range range, uintptr_t address) {
    return address >= range.start && address < range.end;
}

static bool is_own(uintptr_t address) {
    for (size_t i = 0; i < bindings.count; i++)
        if (object_range_has(bindings.own[i], address))
            return true;
    return false;
}

static void add_own(const struct dl_phdr_info *library, void *arg) {
    (void)arg;
    if (bindings.count < MAX_OWN_OBJECTS)
        bindings.own[bindings.count++] = object_range_of(library);
}

static void note_other(const struct dl_phdr_info *object, void *arg) {
    (void)arg;
    if (object->dlpi_name[0] == 0 && bindings.executable.end == 0)
        bindings.executable = object_range_of(object);
    else if (object_spans(object, (uintptr_t)(void *)getpid))
        bindings.libc = object_range_of(object);
    else if (otelprof_version && object_spans(object, (uintptr_t)(void *)otelprof_version))
        bindings.profiler = object_range_of(object);
}

/* --- redirecting --- */

/* Returns true for operator new and delete: an object has one allocator. */
static bool is_allocator(const char *name) {
    return strncmp(name, "_Zn", 3) == 0 || strncmp(name, "_Zd", 3) == 0;
}

/* Returns the symbol at an address; NULL: there is none. */
static const ElfW(Sym) * symbol_at(uintptr_t address) {
    Dl_info info;
    void *symbol = NULL;
    return dladdr1((void *)address, &info, &symbol, RTLD_DL_SYMENT) ? symbol : NULL;
}

static bool exporter_bindings_is_code(uintptr_t address) {
    const ElfW(Sym) *const symbol = symbol_at(address);
    return symbol && (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC ||
                      ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC);
}

/* Returns the definition in the libraries that the exporter needs; 0: there is none, or it is
 * libc's, or it is a variable, of which the executable may have a copy. */
static uintptr_t own_definition(const char *name) {
    const uintptr_t found = (uintptr_t)dlsym(bindings.handle, name);
    if (found == 0 || object_range_has(bindings.libc, found))
        return 0;
    return is_own(found) || exporter_bindings_is_code(found) ? found : 0;
}

struct redirection {
    const struct object_tables *tables;
    bool is_unlocked;
};

static bool redirect(const struct object_reference *reference, void *arg) {
    struct redirection *const r = arg;
    const uintptr_t bound = reference->slot ? *reference->slot : 0;
    if (bound == 0 || object_range_has(bindings.libc, bound) ||
        object_range_has(bindings.profiler, bound) || is_own(bound) ||
        is_allocator(reference->name))
        return false;
    const uintptr_t own = own_definition(reference->name);
    if (own == 0 || own == bound)
        return false;
    if (!r->is_unlocked && !object_tables_unlock(r->tables)) {
        bindings.function = reference->name;
        return true;
    }
    r->is_unlocked = true;
    bindings.has_conflict = true;
    *reference->slot = own;
    return false;
}

static void redirect_library(const struct dl_phdr_info *library, void *arg) {
    struct object_tables tables;
    struct redirection r = {.tables = &tables};
    (void)arg;
    if (!object_tables_open(&tables, library))
        return;
    (void)object_tables_visit(&tables, redirect, &r);
    if (r.is_unlocked)
        object_tables_lock(&tables);
}

/* --- libraries that the program had before --- */

/* Returns true if the program defines the function at the address. A non-PIE executable that takes
 * the address of a library's function has an address for it, but no definition. */
static bool is_programs_own(uintptr_t address) {
    const ElfW(Sym) *const symbol =
        object_range_has(bindings.executable, address) ? symbol_at(address) : NULL;
    return symbol && symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT;
}

/* Returns true for a name of C++. C++ programs export their copies of inline functions of the
 * standard library, to which libstdc++ is then bound. That is harmless, because all copies are the
 * same. */
static bool is_cpp(const char *name) {
    return strncmp(name, "_Z", 2) == 0;
}

/* Returns true if the reference leads into the program. A slot that leads into its own library may
 * be unbound: then the first call would bind it. */
static bool leads_into_program(const struct object_reference *reference, void *arg) {
    const struct object_range *const library = arg;
    uintptr_t bound = reference->slot ? *reference->slot : 0;
    if (bound == 0 || is_allocator(reference->name) || is_cpp(reference->name))
        return false;
    if (object_range_has(*library, bound))
        bound = (uintptr_t)dlsym(RTLD_DEFAULT, reference->name);
    if (!is_programs_own(bound) || !own_definition(reference->name))
        return false;
    bindings.function = reference->name;
    return true;
}

static void check_bindings(const struct dl_phdr_info *object, void *arg) {
    struct object_tables tables;
    struct object_range range = object_range_of(object);
    (void)arg;
    if (bindings.function || object->dlpi_name[0] == 0 ||
        object_spans(object, (uintptr_t)(void *)getpid) || !object_tables_open(&tables, object))
        return;
    const char *const soname = object_tables_soname(&tables);
    if (soname && exporter_libraries_need(soname))
        (void)object_tables_visit(&tables, leads_into_program, &range);
}

/* --- the exporter's libraries and the program's --- */

/* Keeps the handle, because the library is never unloaded. */
void exporter_bindings_take_over(void) {
    Dl_info own;
    if (!dladdr((void *)exporter_bindings_take_over, &own))
        return;
    bindings.handle = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!bindings.handle)
        return;
    exporter_libraries_visit(add_own, NULL);
    exporter_libraries_visit_others(note_other, NULL);
    exporter_libraries_visit(redirect_library, NULL);
    exporter_libraries_visit_others(check_bindings, NULL);
}

bool exporter_bindings_conflict(void) {
    return bindings.has_conflict;
}

const char *exporter_bindings_foreign_function(void) {
    return bindings.function;
}
