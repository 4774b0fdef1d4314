#include "thread_variable.h"

#include "arch_machine.h"
#include "safe_read.h"

#include <string.h>

bool thread_variables_get(const struct thread_variables *variables, uint32_t number,
                          struct thread_variable *variable) {
    uint64_t words[THREAD_VARIABLE_WORDS];
    /* pairs with the release at the end of thread_variables_set() */
    const uint32_t version = atomic_load_explicit(&variables->version, memory_order_acquire);
    if (number >= atomic_load_explicit(&variables->count, memory_order_relaxed))
        return false;
    for (int i = 0; i < THREAD_VARIABLE_WORDS; i++)
        words[i] = atomic_load_explicit(&variables->words[number][i], memory_order_relaxed);
    /* pairs with the fence at its beginning */
    atomic_thread_fence(memory_order_acquire);
    if ((version & 1) || atomic_load_explicit(&variables->version, memory_order_relaxed) != version)
        return false;
    memcpy(variable, words, sizeof words);
    return true;
}

uintptr_t thread_variable_address(const struct thread_variable *variable,
                                  struct memory_range *block) {
    const uintptr_t base = variable->module
                               ? thread_vector_block(variable->module, variable->generation)
                               : thread_pointer() + (uintptr_t)variable->block;
    if (!base)
        return 0;
    *block = (struct memory_range){base, base + variable->bytes};
    return base + (uintptr_t)(variable->offset - variable->block);
}

/* As thread_vector_block(), of memory that may go. */
static uintptr_t vector_block_of(uintptr_t pointer, uint64_t module, uint64_t generation) {
    uintptr_t head[THREAD_VECTOR_HEAD];
    uintptr_t vector;
    uintptr_t block;
    if (!safe_read(thread_vector_place(pointer), &vector, sizeof vector) || !vector ||
        !safe_read(vector + sizeof vector - sizeof head, head, sizeof head) ||
        !thread_vector_has(head, module, generation) ||
        !safe_read(thread_vector_entry(vector, module), &block, sizeof block))
        return 0;
    return block == UINTPTR_MAX ? 0 : block;
}

uintptr_t thread_variable_address_of(const struct thread_variable *variable, uintptr_t pointer) {
    if (!variable->module)
        return pointer + (uintptr_t)variable->offset;
    const uintptr_t block = vector_block_of(pointer, variable->module, variable->generation);
    return block ? block + (uintptr_t)variable->offset : 0;
}

void thread_variables_set(struct thread_variables *variables, const struct thread_variable *list,
                          uint32_t count) {
    const uint32_t version = atomic_load_explicit(&variables->version, memory_order_relaxed);
    atomic_store_explicit(&variables->version, version | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with thread_variables_get() */
    atomic_store_explicit(&variables->count, count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[THREAD_VARIABLE_WORDS];
        memcpy(words, &list[i], sizeof words);
        for (int word = 0; word < THREAD_VARIABLE_WORDS; word++)
            atomic_store_explicit(&variables->words[i][word], words[word], memory_order_relaxed);
    }
    atomic_store_explicit(&variables->version, (version | 1) + 1, memory_order_release);
}

void thread_variables_after_fork(struct thread_variables *variables) {
    if (atomic_load_explicit(&variables->version, memory_order_relaxed) & 1)
        thread_variables_set(variables, NULL, 0);
}
