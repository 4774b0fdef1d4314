/* flags: -rdynamic
 *
 * Loads libraries, calls poll(), and prints which objects' functions the loaded objects call.
 *
 * usage: whose_calls SECONDS [deep:|lazy:]LIBRARY...
 *
 * For each function whose address the loader puts into a library, or into the program, it prints a
 * line: object, name, the object that the address belongs to now, and how the memory that holds it
 * is mapped. An address that is not bound yet belongs to the object itself. Waits, for at most so
 * many seconds, until each library calls a function of libotelprof.so. The last line shows whether
 * the address of read() is the same in code and data.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

/* Is data that holds a function's address. */
ssize_t (*const volatile pointer_in_data)(int, void *, size_t) = read;

static const char *base_of(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *owner_of(const void *address) {
    Dl_info info;
    return dladdr(address, &info) ? base_of(info.dli_fname) : "nobody";
}

static void rights_of(const void *address, char rights[5]) {
    char line[1024];
    unsigned long start, end;
    FILE *const maps = fopen("/proc/self/maps", "r");
    strcpy(rights, "----");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 &&
            (unsigned long)address >= start && (unsigned long)address < end)
            break;
    if (maps)
        fclose(maps);
}

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
};

static struct tables tables_of(const struct link_map *object) {
    struct tables t = {0};
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *const pointer = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            t.symbols = pointer;
        else if (entry->d_tag == DT_STRTAB)
            t.strings = pointer;
        else if (entry->d_tag == DT_RELA)
            t.relocations[0] = pointer;
        else if (entry->d_tag == DT_RELASZ)
            t.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
        else if (entry->d_tag == DT_JMPREL)
            t.relocations[1] = pointer;
        else if (entry->d_tag == DT_PLTRELSZ)
            t.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
    }
    return t;
}

static void print_entry(FILE *out, const struct link_map *object, const struct tables *t,
                        const ElfW(Rela) * entry) {
    const ElfW(Sym) *const symbol = &t->symbols[ELF64_R_SYM(entry->r_info)];
    const unsigned type = ELF64_R_TYPE(entry->r_info);
    void *const *const place = (void *const *)(object->l_addr + entry->r_offset);
    char rights[5];
    if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) ||
        ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx != SHN_UNDEF)
        return;
    rights_of(place, rights);
    fprintf(out, "%s %s %s %s\n", object->l_name[0] ? base_of(object->l_name) : "program",
            t->strings + symbol->st_name, owner_of(*place), rights);
}

static void print_object(FILE *out, const struct link_map *object) {
    const struct tables t = tables_of(object);
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < t.counts[kind]; i++)
            print_entry(out, object, &t, &t.relocations[kind][i]);
}

static char *describe(char *const *libraries) {
    char *text = NULL;
    size_t size;
    FILE *const out = open_memstream(&text, &size);
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
        if (!object->l_name[0])
            print_object(out, object);
        else
            for (char *const *library = libraries; *library; library++)
                if (strcmp(base_of(object->l_name), base_of(*library)) == 0)
                    print_object(out, object);
    fclose(out);
    return text;
}

static void load(const char *argument) {
    const char *const path = strchr(argument, ':') ? strchr(argument, ':') + 1 : argument;
    const int deep = strncmp(argument, "deep:", 5) == 0 ? RTLD_DEEPBIND : 0;
    const int lazy = strncmp(argument, "lazy:", 5) == 0 ? RTLD_LAZY : RTLD_NOW;
    if (!dlopen(path, deep | lazy))
        printf("%s\n", dlerror());
}

/* Contains calls that this program never makes: if the executable is bound lazily, the loader never
 * binds them. */
void calls_that_are_not_made(void);
void calls_that_are_not_made(void) {
    static pthread_cond_t cond;
    static pthread_mutex_t mutex;
    static cnd_t other;
    pthread_cond_wait(&cond, &mutex);
    cnd_wait(&other, (mtx_t *)&mutex);
    pthread_join(pthread_self(), NULL);
}

/* Returns whether a line of this library names libotelprof.so as the owner of an address. */
static bool calls_profiler(const char *text, const char *library) {
    const char *const name = base_of(library);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        const char *const found = strstr(line, " libotelprof.so ");
        if (strncmp(line, name, strlen(name)) == 0 && found && found < strchr(line, '\n'))
            return true;
    }
    return false;
}

int main(int argc, char **argv) {
    const int seconds = argc > 1 ? atoi(argv[1]) : 0;
    char *text;
    bool done = false;
    for (int i = 2; i < argc; i++)
        load(argv[i]);
    for (int left = seconds * 100; !done; left--) {
        text = describe(argv + 2);
        done = true;
        for (int i = 2; i < argc; i++)
            done = done && calls_profiler(text, argv[i]);
        done = done || left <= 0;
        if (!done)
            poll(NULL, 0, 10);
        else
            fputs(text, stdout);
        free(text);
    }
    printf("%d\n", pointer_in_data == read);
    return 0;
}
