#include "stack_memory.h"

#include "readable_memory.h"

bool memory_is_readable(uintptr_t address) {
    return word_is_readable(address);
}
