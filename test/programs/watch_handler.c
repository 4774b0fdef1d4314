/* Watches a signal handler from its first instruction to its return, instruction by instruction,
 * from outside: every function, system call and locked instruction.
 *
 * usage: watch_handler SIGNAL COUNT LIBRARY PROGRAM [ARGUMENTS...]
 * Runs PROGRAM with LIBRARY preloaded, and steps through the first COUNT handlers of SIGNAL in any
 * of its threads; then the program runs on to its end. Prints, with the number of times each:
 * - call FILE FUNCTION: an instruction of that function was executed
 * - syscall NUMBER
 * - lock FILE FUNCTION: an instruction with a lock prefix, or an exchange with memory
 * - handlers, instructions
 *
 * The status is the program's.
 */
/* flags: -ldw -lelf */
#define _GNU_SOURCE
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_THREADS = 4096,
    MAX_ROWS = 512,
    PLACES = 1 << 16,
    MAX_SYSCALLS = 512,
    MAX_FILES = 64,
};

static struct {
    int signal;
    long wanted;
    pid_t process;
    long handlers;
    long instructions;
    long system_calls[MAX_SYSCALLS];
    bool stepping[MAX_THREADS]; /* by thread id, modulo */
} watch;

static struct row {
    char file[64];
    char function[128];
    long calls;
    long locks;
} rows[MAX_ROWS];
static int row_count;

static struct {
    uint64_t pc;
    struct row *row;
} places[PLACES];

/* --- naming --- */

/* Describes the segment of a file that is mapped at an address. One line of the list of mappings is
 * whole whatever the loader does meanwhile in another thread; several lines together are not: the
 * lines of a second libc, mapped right below the first (dlmopen), look like one mapping. */
struct mapping {
    uint64_t start;
    uint64_t file_offset;
    char path[PATH_MAX];
};

static void find_mapping(uint64_t pc, struct mapping *mapping) {
    static char line[PATH_MAX + 128];
    snprintf(line, sizeof line, "/proc/%d/maps", watch.process);
    FILE *const list = fopen(line, "re");
    uint64_t end = 0;
    while (list && pc >= end && fgets(line, sizeof line, list)) {
        int path_at = 0;
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &mapping->start, &end,
               &mapping->file_offset, &path_at);
        line[strcspn(line, "\n")] = 0;
        snprintf(mapping->path, sizeof mapping->path, "%s", line + path_at);
    }
    if (list)
        fclose(list);
    if (pc >= end || pc < mapping->start || !mapping->path[0])
        *mapping = (struct mapping){.path = "[none]"};
}

/* Returns NULL for a file that cannot be read. */
static Dwfl_Module *open_module(const char *path) {
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo};
    Dwfl *const names = path[0] == '/' ? dwfl_begin(&callbacks) : NULL;
    Dwfl_Module *const module = names ? dwfl_report_elf(names, path, path, -1, 0, true) : NULL;
    if (names)
        dwfl_report_end(names, NULL, NULL);
    return module;
}

static Dwfl_Module *module_of(const char *path) {
    static struct {
        char *path;
        Dwfl_Module *module;
    } files[MAX_FILES];
    int i = 0;
    while (i < MAX_FILES - 1 && files[i].path && strcmp(files[i].path, path) != 0)
        i++;
    if (!files[i].path) {
        files[i].path = strdup(path);
        files[i].module = open_module(path);
    }
    return strcmp(files[i].path, path) == 0 ? files[i].module : NULL;
}

/* Returns the address in the file's own headers; 0: none. */
static uint64_t virtual_address(Dwfl_Module *module, uint64_t file_offset) {
    GElf_Addr bias;
    size_t count = 0;
    GElf_Phdr header;
    Elf *const elf = dwfl_module_getelf(module, &bias);
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
            file_offset - header.p_offset < header.p_filesz)
            return header.p_vaddr + file_offset - header.p_offset + bias;
    return 0;
}

static const char *function_at(uint64_t pc, struct mapping *mapping) {
    find_mapping(pc, mapping);
    Dwfl_Module *const module = module_of(mapping->path);
    const uint64_t address =
        module ? virtual_address(module, pc - mapping->start + mapping->file_offset) : 0;
    const char *const function = address ? dwfl_module_addrname(module, address) : NULL;
    return function ? function : "?";
}

static struct row *row_of(const char *file, const char *function) {
    for (int i = 0; i < row_count; i++)
        if (strcmp(rows[i].file, file) == 0 && strcmp(rows[i].function, function) == 0)
            return &rows[i];
    struct row *const row = &rows[row_count < MAX_ROWS - 1 ? row_count++ : MAX_ROWS - 1];
    snprintf(row->file, sizeof row->file, "%s", file);
    snprintf(row->function, sizeof row->function, "%s", function);
    return row;
}

static struct row *name(uint64_t pc) {
    const uint64_t place = pc * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    if (places[place].pc == pc)
        return places[place].row;
    static struct mapping mapping;
    const char *const function = function_at(pc, &mapping);
    const char *const slash = strrchr(mapping.path, '/');
    struct row *const row = row_of(slash ? slash + 1 : mapping.path, function);
    places[place].pc = pc;
    places[place].row = row;
    return row;
}

/* --- one instruction --- */

/* Skips prefixes that do not matter here: the operand's size, the segment, REX. */
static const uint8_t *opcode_of(const uint8_t *code, bool *lock) {
    for (int i = 0; i < 8; i++, code++) {
        if (*code == 0xf0)
            *lock = true;
        else if (*code != 0x66 && *code != 0x64 && *code != 0xf2 && *code != 0xf3 &&
                 (*code & 0xf0) != 0x40)
            return code;
    }
    return code;
}

/* Notes the instruction; returns true if it leaves the handler. */
static bool look_at(pid_t thread) {
    struct user_regs_struct registers;
    uint8_t code[2 * sizeof(long)] = {0};
    ptrace(PTRACE_GETREGS, thread, NULL, &registers);
    for (size_t i = 0; i < sizeof code; i += sizeof(long)) {
        const long word = ptrace(PTRACE_PEEKTEXT, thread, (void *)(registers.rip + i), NULL);
        memcpy(code + i, &word, sizeof word);
    }
    struct row *const row = name(registers.rip);
    bool lock = false;
    const uint8_t *const opcode = opcode_of(code, &lock);
    watch.instructions++;
    row->calls++;
    if ((opcode[0] & 0xfe) == 0x86 && opcode[1] < 0xc0) /* xchg with memory locks by itself */
        lock = true;
    row->locks += lock;
    if (opcode[0] != 0x0f || opcode[1] != 0x05)
        return false;
    if (registers.rax < MAX_SYSCALLS)
        watch.system_calls[registers.rax]++;
    return registers.rax == SYS_rt_sigreturn;
}

/* --- all threads --- */

static void go_on(pid_t thread, int signal) {
    const bool step = watch.stepping[thread % MAX_THREADS];
    ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, thread, NULL, (void *)(intptr_t)signal);
}

static void on_stop(pid_t thread, int status) {
    bool *const stepping = &watch.stepping[thread % MAX_THREADS];
    const int signal = WSTOPSIG(status);
    if (status >> 16) { /* a clone or an exec */
        go_on(thread, 0);
        return;
    }
    if (signal == SIGTRAP && *stepping) {
        *stepping = !look_at(thread);
        watch.handlers += !*stepping;
        go_on(thread, 0);
        return;
    }
    if (signal == watch.signal && watch.handlers < watch.wanted && !*stepping)
        *stepping = true;
    go_on(thread, signal == SIGSTOP ? 0 : signal);
}

static int run_to_the_end(void) {
    for (;;) {
        int status;
        const pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == ECHILD)
            return 1;
        if (WIFSTOPPED(status)) {
            on_stop(thread, status);
            continue;
        }
        watch.stepping[thread % MAX_THREADS] = false;
        if (thread == watch.process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void print_all(void) {
    for (int i = 0; i < row_count; i++)
        printf("call %s %s %ld\n", rows[i].file, rows[i].function, rows[i].calls);
    for (int i = 0; i < row_count; i++)
        if (rows[i].locks)
            printf("lock %s %s %ld\n", rows[i].file, rows[i].function, rows[i].locks);
    for (int i = 0; i < MAX_SYSCALLS; i++)
        if (watch.system_calls[i])
            printf("syscall %d %ld\n", i, watch.system_calls[i]);
    printf("handlers %ld\ninstructions %ld\n", watch.handlers, watch.instructions);
}

int main(int argc, char **argv) {
    int status;
    if (argc < 5)
        return 2;
    watch.signal = atoi(argv[1]);
    watch.wanted = atol(argv[2]);
    watch.process = fork();
    if (watch.process == 0) {
        setenv("LD_PRELOAD", argv[3], 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    waitpid(watch.process, &status, 0);
    ptrace(PTRACE_SETOPTIONS, watch.process, NULL,
           (void *)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL));
    ptrace(PTRACE_CONT, watch.process, NULL, NULL);
    const int result = run_to_the_end();
    print_all();
    return result;
}
