#include "attribute_set.h"

#include <stdlib.h>
#include <string.h>

const struct attribute *attributes_find(const struct attribute_set *set, const char *key) {
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].key, key) == 0)
            return &set->items[i];
    return NULL;
}

static void free_value(struct attribute_value *value) {
    if (value->kind == ATTRIBUTE_TEXT)
        free((char *)(uintptr_t)value->text);
}

/* Returns the attribute of `key`, and adds it if it is missing; NULL if there is no room. */
static struct attribute *place_for(struct attribute_set *set, const char *key) {
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].key, key) == 0)
            return &set->items[i];
    char *const copy = set->count < MAX_ATTRIBUTES ? strdup(key) : NULL;
    if (!copy)
        return NULL;
    struct attribute *const place = &set->items[set->count++];
    *place = (struct attribute){copy, {.kind = ATTRIBUTE_INT}};
    return place;
}

void attributes_set(struct attribute_set *set, const char *key, struct attribute_value value) {
    if (value.kind == ATTRIBUTE_TEXT) {
        value.text = value.text ? strdup(value.text) : NULL;
        if (!value.text)
            return;
    }
    struct attribute *const place = place_for(set, key);
    if (!place) {
        free_value(&value);
        return;
    }
    free_value(&place->value);
    place->value = value;
}

void attributes_set_text(struct attribute_set *set, const char *key, const char *text) {
    attributes_set(set, key, (struct attribute_value){.kind = ATTRIBUTE_TEXT, .text = text});
}

void attributes_set_int(struct attribute_set *set, const char *key, int64_t integer) {
    attributes_set(set, key, (struct attribute_value){.kind = ATTRIBUTE_INT, .integer = integer});
}

void attributes_clear(struct attribute_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        free(set->items[i].key);
        free_value(&set->items[i].value);
    }
    set->count = 0;
}

void attribute_write(const struct attribute *attribute, struct otlp_writer *writer) {
    const struct attribute_value *const value = &attribute->value;
    switch (value->kind) {
    case ATTRIBUTE_TEXT:
        otlp_resource_string(writer, attribute->key, value->text);
        return;
    case ATTRIBUTE_INT:
        otlp_resource_int(writer, attribute->key, value->integer);
        return;
    case ATTRIBUTE_DOUBLE:
        otlp_resource_double(writer, attribute->key, value->real);
        return;
    case ATTRIBUTE_BOOL:
        otlp_resource_bool(writer, attribute->key, value->truth);
        return;
    }
}
