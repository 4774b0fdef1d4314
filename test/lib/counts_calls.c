/* A preload behind ours, whose constructor thus comes before ours: counts the calls of FUNCTIONS (a
 * list of STUB(name), on the compiler's command line) that come from our library, and passes every
 * call on, with its registers and its stack unchanged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#pragma GCC visibility push(hidden)
unsigned long our_start, our_size;
#define STUB(name)                                                                                 \
    void *real_##name;                                                                             \
    unsigned count_##name;                                                                         \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"       \
            "movq (%rsp), %r11\nsubq our_start(%rip), %r11\ncmpq our_size(%rip), %r11\njae 1f\n"   \
            "lock incl count_" #name "(%rip)\n1: jmp *real_" #name "(%rip)\n.popsection\n");
FUNCTIONS
#undef STUB
#pragma GCC visibility pop

enum { WE_BEGIN = 1111111 };

static int visit(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/libotelprof.so"))
        return 0;
    our_start = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            our_size = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    void *(*const find)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#define STUB(name) real_##name = find(RTLD_NEXT, #name);
    FUNCTIONS
#undef STUB
    dl_iterate_phdr(visit, NULL);
    __asm__ volatile("syscall" : : "a"(SYS_getpgid), "D"(WE_BEGIN) : "rcx", "r11", "memory");
}

void say_calls(void) {
    our_size = 0;
#define STUB(name)                                                                                 \
    if (count_##name)                                                                              \
        printf("%u " #name "\n", count_##name);
    FUNCTIONS
#undef STUB
}
