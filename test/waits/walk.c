#include "walk.h"

#include <elfutils/libdwfl.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 4096, FRAMES = 64 };

static struct process {
    int pid;
    Dwfl *dwfl;
    void *frames; /* tsearch's: libdwfl searches all symbols for each */
} known[PROCESSES];
static const struct walk_sample *current;

struct frame {
    Dwarf_Addr pc;
    char *text;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    /* unwind information is in the files themselves */
    .debuginfo_path = &(char *){(char *)"/nowhere"},
};

static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread) {
    (void)dwfl, (void)argument;
    if (*thread)
        return 0;
    *thread = (void *)current;
    return current->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread) {
    (void)dwfl, (void)tid, (void)argument;
    *thread = (void *)current;
    return true;
}

/* Reads the stack, and constants of mapped files. */
static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *argument) {
    (void)dwfl, (void)argument;
    const uint64_t low = current->registers[7];
    if (address < low || address - low + sizeof *result > current->stack_size)
        return false;
    memcpy(result, current->stack + (address - low), sizeof *result);
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *argument) {
    (void)argument;
    return dwfl_thread_state_registers(thread, 0, WALK_REGISTERS, current->registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

static void free_frame(void *frame) {
    free(((struct frame *)frame)->text);
    free(frame);
}

void walk_forget(int pid) {
    for (int i = 0; i < PROCESSES && known[i].pid; i++)
        if (known[i].pid == pid && known[i].dwfl) {
            dwfl_end(known[i].dwfl);
            tdestroy(known[i].frames, free_frame);
            known[i] = (struct process){.pid = pid};
        }
}

static Dwfl *opened(int pid) {
    Dwfl *const dwfl = dwfl_begin(&callbacks);
    if (!dwfl)
        return NULL;
    if (dwfl_linux_proc_report(dwfl, pid) == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0 &&
        dwfl_attach_state(dwfl, NULL, pid, &thread_callbacks, NULL))
        return dwfl;
    dwfl_end(dwfl);
    return NULL;
}

static struct process *process_of(int pid) {
    int i = 0;
    while (i < PROCESSES - 1 && known[i].pid && known[i].pid != pid)
        i++;
    known[i].pid = pid;
    if (!known[i].dwfl)
        known[i].dwfl = opened(pid);
    return &known[i];
}

static int by_pc(const void *a, const void *b) {
    const struct frame *const x = a, *const y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

static char *described(Dwfl *dwfl, Dwarf_Addr pc) {
    Dwfl_Module *const module = dwfl_addrmodule(dwfl, pc);
    const char *file = "", *function = "";
    GElf_Addr bias = 0;
    if (module) {
        file = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        function = dwfl_module_addrname(module, pc);
        dwfl_module_getelf(module, &bias);
    }
    char *text;
    return asprintf(&text, "%llx %s %s", (unsigned long long)(pc - bias),
                    function && *function ? function : "?", file && *file ? file : "?") < 0
               ? NULL
               : text;
}

static const char *text_of(struct process *process, Dwarf_Addr pc) {
    struct frame *frame = calloc(1, sizeof *frame);
    if (!frame)
        return NULL;
    frame->pc = pc;
    void **const node = tsearch(frame, &process->frames, by_pc);
    if (!node || *node != frame)
        free(frame);
    if (!node)
        return NULL;
    frame = *node;
    if (!frame->text)
        frame->text = described(process->dwfl, pc);
    return frame->text;
}

struct text {
    struct process *process;
    char *start;
    size_t size, used;
    int frames;
};

static int add_frame(Dwfl_Frame *state, void *argument) {
    struct text *const text = argument;
    Dwarf_Addr pc;
    bool is_leaf;
    if (!dwfl_frame_pc(state, &pc, &is_leaf) || text->frames++ == FRAMES)
        return DWARF_CB_ABORT;
    const char *const frame = text_of(text->process, pc - !is_leaf);
    const size_t length = frame ? strlen(frame) : 0;
    if (!frame || text->used + length + 2 > text->size)
        return DWARF_CB_ABORT;
    if (text->used)
        text->start[text->used++] = ';';
    memcpy(text->start + text->used, frame, length + 1);
    text->used += length;
    return DWARF_CB_OK;
}

char *walk_text(const struct walk_sample *sample, char *text, size_t size) {
    struct text to = {.process = process_of(sample->pid), .start = text, .size = size};
    *text = 0;
    current = sample;
    if (to.process->dwfl)
        dwfl_getthread_frames(to.process->dwfl, sample->pid, add_frame, &to);
    return text;
}
