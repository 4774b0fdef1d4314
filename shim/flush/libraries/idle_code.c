#include "idle_code.h"

#include "clock.h"
#include "exporter_libraries.h"
#include "files/by_path.h"
#include "open_flags.h"
#include "refused_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    /* libcurl and libdw bring some 40 libraries, each with two or three segments */
    MAX_SEGMENTS = 256,
    PAGES_AT_ONCE = 512,
};

/* Lists the bits of an entry: Linux, Documentation/admin-guide/mm/pagemap.rst. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

struct segment {
    uintptr_t start; /* page-aligned */
    size_t pages;
};

struct idle_code {
    size_t count;
    struct refused_file refused; /* pagemap, which is root's if the process has changed its user */
    struct segment segments[MAX_SEGMENTS];
};

/* --- segments --- */

/* Joins adjacent segments, to make fewer calls, because each call interrupts every processor that
 * runs the program. */
static void idle_code_add_object(const struct dl_phdr_info *info, void *arg) {
    struct idle_code *const code = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) || header->p_filesz == 0)
            continue;
        const uintptr_t start = (info->dlpi_addr + header->p_vaddr) & -(uintptr_t)PAGE_BYTES;
        const uintptr_t end = info->dlpi_addr + header->p_vaddr + header->p_filesz;
        const size_t pages = (end - start + PAGE_BYTES - 1) / PAGE_BYTES;
        struct segment *const last = code->count ? &code->segments[code->count - 1] : NULL;
        if (last && last->start + last->pages * PAGE_BYTES == start)
            last->pages += pages;
        else if (code->count < MAX_SEGMENTS)
            code->segments[code->count++] = (struct segment){start, pages};
    }
}

struct idle_code *idle_code_open(void) {
    struct idle_code *const code = calloc(1, sizeof *code);
    if (code && sysconf(_SC_PAGESIZE) == PAGE_BYTES)
        exporter_libraries_visit(idle_code_add_object, code);
    return code;
}

void idle_code_close(struct idle_code *code) {
    free(code);
}

/* --- dropping --- */

static bool comes_back(uint64_t page) {
    return !(page & PAGE_SWAPPED) && (!(page & PAGE_PRESENT) || (page & PAGE_OF_FILE));
}

/* Gives back each run of restorable pages by one call. */
static void drop_pages(uintptr_t start, const uint64_t *pages, size_t count) {
    for (size_t i = 0; i < count;) {
        const size_t first = i;
        uint64_t any = 0;
        for (; i < count && comes_back(pages[i]); i++)
            any |= pages[i];
        /* the kernel refuses to take pages back if the program locks its memory */
        if (any & PAGE_PRESENT)
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
    const uint64_t now = monotonic_nano();
    if (!code || !code->count || refused_file_pauses(&code->refused, now) || !may_open_by_path())
        return;
    const int pagemap = open("/proc/self/pagemap", OPEN_TO_READ);
    refused_file_note(&code->refused, pagemap < 0 ? -errno : pagemap, now);
    if (pagemap < 0)
        return;
    for (size_t i = 0; i < code->count && drop_segment(pagemap, code->segments[i]); i++)
        continue;
    close(pagemap);
}
