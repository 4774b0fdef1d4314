/* Reports what the profiler knows of a Python function, for a program of the function's own
 * interpreter to compare (python_names.py), which loads it by ctypes. */
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

/* Forgets all functions when there is no room: the library has more functions. */
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

/* Counts wrong lines of the function whose instruction i, of `count`, has the line lines[i]; 0:
 * none. Code behind its end has none. */
uint32_t names_wrong_lines(uint32_t number, const int *lines, uint32_t count, bool is_whole) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i++)
        wrong += !names_find(number, i) || named.line != lines[i];
    return wrong + (is_whole && names_find(number, count) && named.line != 0);
}
