/* Runs code of its own making, as a JIT compiler does. It writes no perf map: the test that started
 * it can, in any form.
 *
 * usage: reported_code MILLISECONDS GO [DUMP | debugger]
 *
 * Prints the address and the size of its code, in hexadecimal, and waits until the file GO exists.
 * Then the file DUMP is mapped as code, by which readers of jitdump files find it; or "debugger":
 * the first function is reported in the form of debuggers, by an object in memory. The code has two
 * functions, one in each half. For so many milliseconds they take CPU samples, in turns, each of
 * 10 ms, and there are no others.
 */
#include "cpu_sample.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CODE_BYTES = 4096, HALF = CODE_BYTES / 2, SAMPLE_MS = 10 };

/* Is a function that makes the system call by which the signal is delivered: push %rbp; mov
 * %rsp,%rbp; mov %rcx,%r10; mov $SYS_rt_sigprocmask,%eax; syscall; pop %rbp; ret */
static const uint8_t sets_mask[] = {0x55, 0x48, 0x89, 0xe5, 0x49, 0x89, 0xca, 0xb8,
                                    0x0e, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x5d, 0xc3};

typedef void function(uint64_t how, const uint64_t *set, uint64_t *before, uint64_t bytes);

static uint8_t *make_code(void) {
    uint8_t *const code =
        mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        abort();
    memcpy(code, sets_mask, sizeof sets_mask);
    memcpy(code + HALF, sets_mask, sizeof sets_mask);
    if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC) != 0)
        abort();
    return code;
}

static void map_as_code(const char *path) {
    const int file = open(path, O_RDONLY);
    if (file < 0 ||
        mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
        abort();
    close(file);
}

/* Follows the GDB JIT interface: a list of objects, which begins in __jit_debug_descriptor. */
struct object {
    Elf64_Ehdr head;
    Elf64_Shdr sections[4]; /* empty, code, symbols, names */
    Elf64_Sym symbols[2];
    char names[24];
};

struct entry {
    struct entry *next;
    struct entry *previous;
    const struct object *object;
    uint64_t size;
};

struct {
    uint32_t version;
    uint32_t action;
    struct entry *relevant;
    struct entry *first;
} __jit_debug_descriptor = {.version = 1};

static void report_to_debuggers(const uint8_t *code) {
    static struct object object = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                 .e_type = ET_REL,
                 .e_machine = EM_X86_64,
                 .e_shoff = offsetof(struct object, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 4},
        .sections = {[1] = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR},
                     [2] = {.sh_type = SHT_SYMTAB,
                            .sh_link = 3,
                            .sh_offset = offsetof(struct object, symbols),
                            .sh_size = sizeof object.symbols},
                     [3] = {.sh_type = SHT_STRTAB,
                            .sh_offset = offsetof(struct object, names),
                            .sh_size = sizeof object.names}},
        .symbols = {[1] = {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_size = HALF}},
        .names = "\0_ZN3jit5firstEv",
    };
    static struct entry entry = {.object = &object, .size = sizeof object};
    object.sections[1].sh_addr = (uintptr_t)code;
    __jit_debug_descriptor.first = &entry;
}

NOIPA static void take_sample(function *code) {
    siginfo_t expiry;
    WORK_FOR(SAMPLE_MS * NS_PER_MS);
    if (!describe_expiry(&expiry))
        return;
    const uint64_t bit = UINT64_C(1) << (expiry.si_signo - 1);
    bare_sigprocmask(SIG_BLOCK, bit);
    TAKE_CPU_SAMPLE(); /* the code unblocks the signal */
    code(SIG_UNBLOCK, &bit, NULL, sizeof bit);
}

static void run(function *first, function *second, uint64_t milliseconds) {
    cpu_samples_hold();
    for (uint64_t burnt = 0; burnt < milliseconds; burnt += 2 * SAMPLE_MS) {
        take_sample(first);
        take_sample(second);
    }
}

int main(int argc, char **argv) {
    uint8_t *const code = make_code();
    if (argc != 3 && argc != 4)
        return 2;
    printf("%" PRIxPTR " %x\n", (uintptr_t)code, CODE_BYTES);
    fflush(stdout);
    while (access(argv[2], F_OK) != 0)
        usleep(10000);
    if (argc == 4 && strcmp(argv[3], "debugger") == 0)
        report_to_debuggers(code);
    else if (argc == 4)
        map_as_code(argv[3]);
    run((function *)(void *)code, (function *)(void *)(code + HALF), strtoull(argv[1], NULL, 10));
    return 0;
}
