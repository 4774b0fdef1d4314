#include "dynamic_object.h"

void dynamic_object_read(struct dynamic_object *object, ElfW(Dyn) * entries, size_t most,
                         uintptr_t bias, uintptr_t start) {
    size_t i = 0;
    *object = (struct dynamic_object){.bias = bias, .start = start, .entries = entries};
    for (; i < most && i < UINT16_MAX && entries[i].d_tag != DT_NULL; i++)
        object->by_tag[dynamic_slot(entries[i].d_tag)] = (uint16_t)(i + 1);
    object->count = i;
    object->by_tag[DT_NULL] = 0;
}

static uintptr_t object_start(const struct object_segments *object) {
    uintptr_t lowest = UINTPTR_MAX;
    for (uint32_t i = 0; i < object->count; i++)
        if (object->headers[i].p_type == PT_LOAD && object->headers[i].p_vaddr < lowest)
            lowest = object->headers[i].p_vaddr;
    return object->bias + lowest;
}

struct dynamic_object dynamic_object_of(const struct object_segments *segments) {
    const ElfW(Phdr) *const header = object_header(segments, PT_DYNAMIC);
    const uintptr_t address = header ? segments->bias + header->p_vaddr : 0;
    const struct readable_range range = object_readable_around(segments, address);
    const size_t most = header && range.end != range.start && address % _Alignof(ElfW(Dyn)) == 0
                            ? (range.end - address) / sizeof(ElfW(Dyn))
                            : 0;
    struct dynamic_object object;
    dynamic_object_read(&object, (ElfW(Dyn) *)address, most, segments->bias,
                        object_start(segments));
    return object;
}
