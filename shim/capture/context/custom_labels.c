#include "custom_labels.h"

#include "context_attributes.h"
#include "object_segments.h"
#include "symbols/object_symbols.h"

#include <string.h>

enum { VERSION = 1, MOST_BYTES = UINT8_MAX };

struct text {
    uint64_t size;
    uintptr_t bytes;
};

struct label {
    struct text key;
    struct text value;
};

struct label_set {
    uintptr_t labels;
    uint64_t count;
    uint64_t capacity;
};

/* --- which libraries --- */

static bool is_library_name(const char *path) {
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    static const char prefix[] = "libcustomlabels";
    return strcmp(name, "customlabels.node") == 0 ||
           (strncmp(name, prefix, sizeof prefix - 1) == 0 && strstr(name, ".so"));
}

bool custom_labels_are_of(const struct dl_phdr_info *object, const char *path) {
    const struct object_segments segments = object_segments_of(object);
    const struct link_map map = object_symbols_map(object);
    struct symbol version = {.name = "custom_labels_abi_version"};
    uint32_t number;
    if (!is_library_name(path))
        return false;
    object_symbols_find_all(&map, &version, 1);
    if (!version.address ||
        !object_is_readable(&segments, (uintptr_t)version.address, sizeof number))
        return false;
    memcpy(&number, version.address, sizeof number);
    return number == VERSION;
}

/* --- reading --- */

/* Reads one label. Returns false if it cannot be read. Clears `*fits` if the label does not fit
 * into the context. */
static bool read_label(const struct label *label, struct foreign_memory *memory,
                       struct context_attributes *attributes, bool *fits) {
    uint8_t key[MOST_BYTES];
    uint8_t value[MOST_BYTES];
    *fits = true;
    if (!label->key.bytes || !label->key.size)
        return true;
    *fits = label->key.size <= MOST_BYTES && label->value.size <= MOST_BYTES;
    if (!*fits)
        return true;
    if (!foreign_memory_copy(memory, key, label->key.bytes, label->key.size) ||
        !foreign_memory_copy(memory, value, label->value.bytes, label->value.size))
        return false;
    const struct context_attribute attribute = {.key = key,
                                                .key_bytes = (uint8_t)label->key.size,
                                                .value = value,
                                                .value_bytes = (uint8_t)label->value.size};
    *fits = context_attributes_have(attributes, &attribute) ||
            context_attributes_add(attributes, &attribute);
    return true;
}

enum context_outcome custom_labels_read(uintptr_t variable, struct foreign_memory *memory,
                                        struct sample_context *context) {
    struct context_attributes attributes = {context, 0};
    struct label_set set;
    struct label label;
    uintptr_t address;
    bool fits;
    memcpy(&address, (const void *)variable, sizeof address);
    if (!address)
        return CONTEXT_NONE;
    if (!foreign_memory_copy(memory, &set, address, sizeof set) || set.count > set.capacity)
        return CONTEXT_WRONG;
    bool complete = set.count <= CUSTOM_LABELS;
    memset(context, 0, offsetof(struct sample_context, attributes));
    for (uint64_t i = 0; i < set.count && i < CUSTOM_LABELS; i++) {
        if (!foreign_memory_copy(memory, &label, set.labels + i * sizeof label, sizeof label) ||
            !read_label(&label, memory, &attributes, &fits))
            return CONTEXT_WRONG;
        complete &= fits;
    }
    context_attributes_end(&attributes);
    if (!context->attribute_bytes)
        return CONTEXT_NONE;
    return complete ? CONTEXT_READ : CONTEXT_CUT;
}
