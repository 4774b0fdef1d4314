#include "idle_code.h"
#include "object_span.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    MAX_SEGMENTS = 256, /* libcurl and libdw bring some 40 libraries of two or three each */
    MAX_NEEDED = 512,
    PAGES_AT_ONCE = 512,
};

/* Linux, Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

struct segment {
    uintptr_t start; /* of a page */
    size_t pages;
};

struct idle_code {
    size_t count;
    struct segment segments[MAX_SEGMENTS];
};

/* --- which libraries are ours --- */

/* The loader lists libotelprof-flush.so, then what it needs and had to load, each behind the first
 * that needs it; an object that another thread loaded meanwhile is needed by none of them. */
struct closure {
    struct idle_code *code;
    bool found_own;
    size_t needed_count;
    const char *needed[MAX_NEEDED];
};

struct dynamic {
    const ElfW(Dyn) * entries;
    const char *strings;
    const char *soname;
};

static struct dynamic dynamic_of(const struct dl_phdr_info *info) {
    struct dynamic dynamic = {NULL, NULL, NULL};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic.entries = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    uintptr_t strings = 0;
    size_t soname = SIZE_MAX;
    for (const ElfW(Dyn) *d = dynamic.entries; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = d->d_un.d_ptr;
        if (d->d_tag == DT_SONAME)
            soname = d->d_un.d_val;
    }
    if (strings &&
        strings < info->dlpi_addr) /* the loader cannot write there: the vDSO, rodynamic */
        strings += info->dlpi_addr;
    dynamic.strings = (const char *)strings;
    if (dynamic.strings && soname != SIZE_MAX)
        dynamic.soname = dynamic.strings + soname;
    return dynamic;
}

static bool is_needed(const struct closure *closure, const char *soname) {
    for (size_t i = 0; soname && i < closure->needed_count; i++)
        if (strcmp(closure->needed[i], soname) == 0)
            return true;
    return false;
}

static void add_needed(struct closure *closure, const struct dynamic *dynamic) {
    if (!dynamic->strings)
        return;
    for (const ElfW(Dyn) *d = dynamic->entries; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && closure->needed_count < MAX_NEEDED)
            closure->needed[closure->needed_count++] = dynamic->strings + d->d_un.d_val;
}

/* One that follows the last one goes on with it: fewer calls, each of which stops every processor
 * that the program runs on. */
static void add_segment(struct idle_code *code, struct segment segment) {
    struct segment *const last = code->count ? &code->segments[code->count - 1] : NULL;
    if (last && last->start + last->pages * PAGE_BYTES == segment.start)
        last->pages += segment.pages;
    else if (code->count < MAX_SEGMENTS)
        code->segments[code->count++] = segment;
}

static void add_segments(struct idle_code *code, const struct dl_phdr_info *info) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) || header->p_filesz == 0)
            continue;
        const uintptr_t start = (info->dlpi_addr + header->p_vaddr) & -(uintptr_t)PAGE_BYTES;
        const uintptr_t end = info->dlpi_addr + header->p_vaddr + header->p_filesz;
        add_segment(code, (struct segment){start, (end - start + PAGE_BYTES - 1) / PAGE_BYTES});
    }
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct closure *const closure = arg;
    (void)size;
    const bool own = !closure->found_own && object_spans(info, (uintptr_t)(void *)idle_code_drop);
    closure->found_own |= own;
    if (!closure->found_own)
        return 0;
    const struct dynamic dynamic = dynamic_of(info);
    if (!own && !is_needed(closure, dynamic.soname))
        return 0;
    add_needed(closure, &dynamic);
    add_segments(closure->code, info);
    return 0;
}

struct idle_code *idle_code_open(void) {
    struct closure *const closure = calloc(1, sizeof *closure);
    struct idle_code *const code = closure ? calloc(1, sizeof *code) : NULL;
    if (code && sysconf(_SC_PAGESIZE) == PAGE_BYTES) {
        closure->code = code;
        dl_iterate_phdr(visit_object, closure);
    }
    free(closure);
    return code;
}

void idle_code_close(struct idle_code *code) {
    free(code);
}

/* --- dropping --- */

static bool comes_back(uint64_t page) {
    return !(page & PAGE_SWAPPED) && (!(page & PAGE_PRESENT) || (page & PAGE_OF_FILE));
}

/* Runs of pages that come back, each given back by one call. */
static void drop_pages(uintptr_t start, const uint64_t *pages, size_t count) {
    for (size_t i = 0; i < count;) {
        const size_t first = i;
        uint64_t any = 0;
        for (; i < count && comes_back(pages[i]); i++)
            any |= pages[i];
        if (any & PAGE_PRESENT) /* refused where the program locks its memory */
            (void)madvise((void *)(start + first * PAGE_BYTES), (i - first) * PAGE_BYTES,
                          MADV_DONTNEED);
        if (i == first)
            i++;
    }
}

static bool drop_segment(int pagemap, struct segment segment) {
    uint64_t pages[PAGES_AT_ONCE];
    for (size_t at = 0; at < segment.pages; at += PAGES_AT_ONCE) {
        const uintptr_t start = segment.start + at * PAGE_BYTES;
        const size_t left = segment.pages - at;
        const size_t bytes = (left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE) * sizeof *pages;
        if (pread(pagemap, pages, bytes, (off_t)(start / PAGE_BYTES * sizeof *pages)) !=
            (ssize_t)bytes)
            return false;
        drop_pages(start, pages, bytes / sizeof *pages);
    }
    return true;
}

void idle_code_drop(struct idle_code *code) {
    const int pagemap = code && code->count ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
    if (pagemap < 0)
        return;
    for (size_t i = 0; i < code->count && drop_segment(pagemap, code->segments[i]); i++)
        continue;
    close(pagemap);
}
