/* Reports the name, file and lines that the profiler has read of a Python function. A program of
 * the function's own interpreter loads this by ctypes, and compares (python_names.py). */
#include "frames/python_functions.h"
#include "kernel/profiler_memory.h"

#include <dlfcn.h>
#include <string.h>

static struct python_functions *functions;
static struct python_offsets offsets;
static struct named_frame named;

__attribute__((visibility("default"))) bool names_start(void);
__attribute__((visibility("default"))) uint32_t names_number(uintptr_t code, bool of_another);
__attribute__((visibility("default"))) bool names_find(uint32_t number, uint32_t position);
__attribute__((visibility("default"))) const char *names_function(void);
__attribute__((visibility("default"))) const char *names_file(void);
__attribute__((visibility("default"))) int names_start_line(void);
__attribute__((visibility("default"))) uint32_t names_wrong_lines(uint32_t number, const int *lines,
                                                                  uint32_t count, bool is_whole);

bool names_start(void) {
    const unsigned long *const version = dlsym(RTLD_DEFAULT, "Py_Version");
    const void *const runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    functions = python_functions_new();
    return functions && version && runtime &&
           python_offsets_find((uint32_t)*version, runtime, &offsets);
}

/* Returns the number of the function of this code object; 0: the object cannot be read. Forgets all
 * functions before a second attempt, because the standard library has more functions than there is
 * room for. */
uint32_t names_number(uintptr_t code, bool of_another) {
    static struct python_pages pages;
    struct python_reader reader = {.of_another = of_another, .copies = &pages};
    python_pages_forget(&pages);
    const uint32_t number = python_function(functions, &offsets, &reader, code);
    if (number)
        return number;
    profiler_memory_reset(functions, PYTHON_FUNCTIONS_BYTES);
    return python_function(functions, &offsets, &reader, code);
}

bool names_find(uint32_t number, uint32_t position) {
    return python_function_name(functions, number, position, &named);
}

const char *names_function(void) {
    return named.function;
}

const char *names_file(void) {
    return named.file;
}

int names_start_line(void) {
    return named.start_line;
}

/* Returns how many of the function's `count` instructions do not have their line in `lines`; 0
 * there: no line. `is_whole`: the code ends with them, so the place behind it must have no line,
 * and counts as one more if it has. */
uint32_t names_wrong_lines(uint32_t number, const int *lines, uint32_t count, bool is_whole) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i++)
        wrong += !names_find(number, i) || named.line != lines[i];
    return wrong + (is_whole && names_find(number, count) && named.line != 0);
}
