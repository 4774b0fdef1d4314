#include "merge.h"

#include "symbolize/slow_unwind.h"

#include <stdlib.h>
#include <string.h>

struct collector {
    struct merge *merge;
    const struct capture_api *api;
    struct slow_unwinder *unwinder; /* opened when the first unfinished stack is met */
    bool unwinder_tried;
    const struct harvest_module *modules;
    size_t module_count;
    uint64_t lost;
};

/* --- unfinished stacks --- */

static bool is_own(const struct collector *c, uint64_t address) {
    for (size_t i = 0; i < c->module_count; i++) {
        const struct harvest_module *const module = &c->modules[i];
        if (address < module->start || address >= module->end)
            continue;
        const char *const slash = strrchr(module->path, '/');
        return slash && strcmp(slash, "/libotelprof.so") == 0;
    }
    return false;
}

static uint32_t leave_out_own(const struct collector *c, uint64_t *frames, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_own(c, frames[i]))
            frames[kept++] = frames[i];
    return kept;
}

/* The finished stack replaces the walker's only if it is the longer one. */
static struct harvest_sample finish(struct collector *c, const struct harvest_sample *sample,
                                    uint64_t *frames, uint32_t max) {
    struct harvest_sample finished = *sample;
    uint32_t count = 0;
    finished.stack_copy = NULL;
    if (!c->unwinder_tried) {
        c->module_count = c->api->modules(&c->modules);
        c->unwinder = slow_unwinder_open(c->modules, c->module_count);
    }
    c->unwinder_tried = true;
    const bool complete =
        c->unwinder && slow_unwind(c->unwinder, sample->stack_copy, frames, max, &count);
    count = leave_out_own(c, frames, count);
    if (count > sample->frame_count) {
        finished.frames = frames;
        finished.frame_count = count;
    }
    if (!complete || count <= sample->frame_count)
        finished.flags |= SAMPLE_TRUNCATED;
    return finished;
}

/* --- merging --- */

struct key_head {
    uint32_t kind;
    uint32_t flags;
    uint32_t tid;
    uint32_t name_bytes;
    uint32_t age;
    uint32_t context_words; /* 0: none */
    uint32_t wait_words;    /* likewise */
    uint32_t holder_bytes;  /* with the NUL */
    uint64_t interval;
};

enum {
    MAX_FRAMES = 1024,
    MAX_NAME_BYTES = 64,
    MAX_KEY_BYTES =
        sizeof(struct key_head) + 2 * MAX_NAME_BYTES + (MAX_FRAMES + CONTEXT_WORDS + WAIT_WORDS) * 8
};

/* "" where none is known. */
static const char *holder_name_of(const struct harvest_sample *sample) {
    return sample->holder_name ? sample->holder_name : "";
}

static size_t holder_name_bytes(const struct harvest_sample *sample) {
    return strnlen(holder_name_of(sample), MAX_NAME_BYTES - 1);
}

/* The identity as bytes: head, frames, context, wait, holder's name, name. Returns its size. */
static size_t make_key(char key[static MAX_KEY_BYTES], const struct harvest_sample *sample) {
    const size_t name_bytes = strnlen(sample->thread_name, MAX_NAME_BYTES);
    const size_t holder_bytes = holder_name_bytes(sample);
    const uint32_t frame_count =
        sample->frame_count < MAX_FRAMES ? sample->frame_count : MAX_FRAMES;
    const struct key_head head = {.kind = sample->kind,
                                  .flags = sample->flags,
                                  .tid = sample->tid,
                                  .name_bytes = (uint32_t)name_bytes,
                                  .age = sample->age,
                                  .context_words =
                                      sample->context ? context_words(sample->context) : 0,
                                  .wait_words = sample->wait ? wait_words(sample->wait) : 0,
                                  .holder_bytes = (uint32_t)holder_bytes + 1,
                                  .interval = sample->interval};
    memcpy(key, &head, sizeof head);
    char *const context = key + sizeof head + frame_count * 8u;
    char *const wait = context + head.context_words * 8u;
    char *const holder = wait + head.wait_words * 8u;
    char *const name = holder + head.holder_bytes;
    memcpy(key + sizeof head, sample->frames, frame_count * 8u);
    if (sample->context)
        memcpy(context, sample->context, head.context_words * 8u);
    if (sample->wait)
        memcpy(wait, sample->wait, head.wait_words * 8u);
    memcpy(holder, holder_name_of(sample), holder_bytes);
    holder[holder_bytes] = 0;
    memcpy(name, sample->thread_name, name_bytes);
    return (size_t)(name - key) + name_bytes;
}

/* Frames, context, wait and names are the key's own: each stack is kept once. */
static struct harvest_sample *new_item(struct merge *merge, const struct harvest_sample *sample,
                                       const char *key) {
    struct arena *const arena = &merge->arena;
    struct harvest_sample *const item = arena_take(arena, sizeof *item);
    if (!item || !arena_list_add(arena, &merge->items, item))
        return NULL;
    const char *const frames = key + sizeof(struct key_head);
    *item = *sample;
    item->frames = (const uint64_t *)(const void *)frames;
    item->frame_count = sample->frame_count < MAX_FRAMES ? sample->frame_count : MAX_FRAMES;
    const char *const context = frames + item->frame_count * 8u;
    item->context = sample->context ? (const struct sample_context *)(const void *)context : NULL;
    const char *const wait = context + (item->context ? context_words(item->context) * 8u : 0);
    item->wait = sample->wait ? (const struct wait_detail *)(const void *)wait : NULL;
    item->holder_name = wait + (item->wait ? wait_words(item->wait) * 8u : 0);
    item->thread_name = item->holder_name + holder_name_bytes(sample) + 1;
    memset(item->values, 0, sizeof item->values);
    return item;
}

static struct harvest_sample *item_of(struct merge *merge, const struct harvest_sample *sample) {
    char key[MAX_KEY_BYTES];
    bool is_new;
    const size_t size = make_key(key, sample);
    const int32_t number = intern(&merge->arena, &merge->index, key, size, &is_new);
    if (number < 0)
        return NULL;
    if ((size_t)number < merge->items.count)
        return merge->items.items[number];
    /* once an item could not be kept, numbers and items no longer agree: nothing new is taken */
    if (!is_new || (size_t)number != merge->items.count)
        return NULL;
    return new_item(merge, sample, merge->index.keys[number].bytes);
}

static void add_values(struct harvest_sample *to, const struct harvest_sample *from) {
    for (int i = 0; i < SAMPLE_VALUES; i++)
        to->values[i] += from->values[i];
}

static void visit(void *arg, const struct harvest_sample *sample) {
    struct collector *const c = arg;
    uint64_t frames[MAX_FRAMES];
    const struct harvest_sample whole =
        sample->stack_copy ? finish(c, sample, frames, (uint32_t)c->api->config->max_stack_depth)
                           : *sample;
    struct harvest_sample *const item = item_of(c->merge, &whole);
    if (!item) {
        c->lost++;
        return;
    }
    add_values(item, sample);
}

bool merge_harvest(struct merge *merge, const struct capture_api *api) {
    struct collector collector = {.merge = merge, .api = api};
    api->harvest(visit, &collector);
    slow_unwinder_close(collector.unwinder);
    if (collector.lost)
        api->count_drop(DROP_ENCODE, collector.lost);
    return collector.lost == 0;
}

/* The number of the first item like this one but for its context as it was recorded; -1: no memory.
 */
static int32_t first_like(const struct merge *merge, size_t item, struct arena *arena,
                          struct intern *index, bool *is_new) {
    char key[MAX_KEY_BYTES + sizeof(void *)];
    struct harvest_sample sample = *(const struct harvest_sample *)merge->items.items[item];
    sample.context = NULL;
    const size_t size = make_key(key, &sample);
    memcpy(key + size, &merge->contexts.items[item], sizeof(void *));
    return intern(arena, index, key, size + sizeof(void *), is_new);
}

void merge_unite(struct merge *merge) {
    struct arena arena = {0};
    struct intern index = {0};
    const size_t count = merge->contexts.count;
    size_t kept = 0;
    if (count != merge->items.count)
        return;
    for (size_t i = 0; i < count; i++) {
        bool is_new = true;
        /* without memory the rest stays as it is */
        const int32_t number = arena.failed ? -1 : first_like(merge, i, &arena, &index, &is_new);
        if (number >= 0 && !is_new) {
            add_values(merge->items.items[number], merge->items.items[i]);
            continue;
        }
        merge->items.items[kept] = merge->items.items[i];
        merge->contexts.items[kept++] = merge->contexts.items[i];
    }
    merge->items.count = merge->contexts.count = kept;
    arena_free(&arena);
}

void merge_free(struct merge *merge) {
    arena_free(&merge->arena);
    *merge = (struct merge){0};
}
