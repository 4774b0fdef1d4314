#include "process_context_publisher.h"

#include "clock.h"
#include "process_maps.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41 /* linux/prctl.h, since 5.17 */
#define PR_SET_VMA_ANON_NAME 0
#endif

#define NAME "OTEL_CTX"
enum { CONTEXT_VERSION = 2, CLOEXEC = 1 /* linux/memfd.h: MFD_CLOEXEC */ };

/* Holds a publication in the OTEP's layout: native byte order, naturally aligned. */
struct published_header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    _Atomic uint64_t published_nano; /* 0: the context is being changed */
    uint64_t payload;
    uint8_t payloads[2][CONTEXT_PUBLICATION_BYTES];
};
_Static_assert(offsetof(struct published_header, payloads) == 32, "the header of OTEP 4719");

/* --- the payload (protobuf) --- */

enum {
    RESOURCE = 1,   /* field of ProcessContext */
    BESIDE = 2,     /* field of ProcessContext: attributes beside the resource */
    ATTRIBUTES = 1, /* field of Resource */
    KEY = 1,        /* field of KeyValue */
    VALUE = 2,
    TEXT = 1, /* field of AnyValue */
    LIST = 5,
    VALUES = 1, /* field of ArrayValue */
    DELIMITED = 2,
};

/* Describes a buffer; if it has no room, a put only counts the bytes. */
struct payload {
    uint8_t *to;
    size_t room;
    size_t size;
};

static void payload_put(struct payload *p, const void *bytes, size_t size) {
    if (p->to && p->size + size <= p->room)
        memcpy(p->to + p->size, bytes, size);
    p->size += size;
}

static void put_field(struct payload *p, unsigned field, size_t size) {
    uint8_t varint[11] = {(uint8_t)(field << 3 | DELIMITED)};
    size_t bytes = 1;
    for (; size >= 128; size >>= 7)
        varint[bytes++] = (uint8_t)(size | 128);
    varint[bytes++] = (uint8_t)size;
    payload_put(p, varint, bytes);
}

static void publisher_put_text(struct payload *p, unsigned field, const char *text) {
    const size_t size = strlen(text);
    put_field(p, field, size);
    payload_put(p, text, size);
}

/* Puts a nested message, which begins with its size: so the output of `write` is counted first. */
static void publisher_put_message(struct payload *p, unsigned field,
                                  void (*write)(struct payload *p, const void *what),
                                  const void *what) {
    struct payload counted = {.to = NULL};
    write(&counted, what);
    put_field(p, field, counted.size);
    write(p, what);
}

static void write_text(struct payload *p, const void *text) {
    publisher_put_text(p, TEXT, text);
}

static void write_list(struct payload *p, const void *list) {
    for (const char *const *text = list; *text; text++)
        publisher_put_message(p, VALUES, write_text, *text);
}

static void write_value(struct payload *p, const void *what) {
    const struct published_attribute *const attribute = what;
    if (attribute->text)
        write_text(p, attribute->text);
    else
        publisher_put_message(p, LIST, write_list, attribute->list);
}

static void write_attribute(struct payload *p, const void *what) {
    const struct published_attribute *const attribute = what;
    publisher_put_text(p, KEY, attribute->key);
    publisher_put_message(p, VALUE, write_value, attribute);
}

static void write_resource(struct payload *p, const void *what) {
    const struct published_attributes *const attributes = what;
    for (size_t i = 0; i < attributes->count; i++)
        publisher_put_message(p, ATTRIBUTES, write_attribute, &attributes->entries[i]);
}

size_t process_context_payload(uint8_t *to, size_t room, struct published_attributes resource,
                               struct published_attributes beside) {
    struct payload p = {to, room, 0};
    publisher_put_message(&p, RESOURCE, write_resource, &resource);
    for (size_t i = 0; i < beside.count; i++)
        publisher_put_message(&p, BESIDE, write_attribute, &beside.entries[i]);
    return p.size <= room ? p.size : 0;
}

/* --- the mapping --- */

static bool is_context_mapping(void *arg, const struct process_mapping *mapping) {
    (void)arg;
    return strstr(mapping->rest, NAME "]") || strstr(mapping->rest, "/memfd:" NAME);
}

bool process_context_is_published(void) {
    return process_maps_visit(is_context_mapping, NULL);
}

/* Returns true for a mapping named OTEL_CTX whose range is not exactly that of `own`: the mapping
 * is another publication, or the kernel has merged another one with `own`. */
static bool is_another(void *own, const struct process_mapping *mapping) {
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t bytes = (sizeof(struct published_header) + page_bytes - 1) & -page_bytes;
    if (!is_context_mapping(NULL, mapping))
        return false;
    return mapping->start != (uintptr_t)own || mapping->end - mapping->start != bytes;
}

bool process_context_is_published_beside(const struct process_context_publication *own) {
    return process_maps_visit(is_another, own->header);
}

static void *map_publication(int flags, int file) {
    const long mapped = syscall(SYS_mmap, NULL, sizeof(struct published_header),
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, file, 0L);
    return mapped == -1 ? NULL : (void *)mapped;
}

static void unmap_publication(void *memory) {
    syscall(SYS_munmap, memory, sizeof(struct published_header));
}

/* Maps anonymous memory, and names it. Returns NULL if there is no memory, or the kernel cannot
 * name it. */
static void *map_named(void) {
    void *const memory = map_publication(MAP_ANONYMOUS, -1);
    if (!memory ||
        prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, sizeof(struct published_header), NAME) == 0)
        return memory;
    unmap_publication(memory);
    return NULL;
}

static void *map_file(void) {
    const int file = (int)syscall(SYS_memfd_create, NAME, CLOEXEC);
    if (file < 0)
        return NULL;
    void *const memory = syscall(SYS_ftruncate, file, (long)sizeof(struct published_header)) == 0
                             ? map_publication(0, file)
                             : NULL;
    syscall(SYS_close, file);
    return memory;
}

/* Maps memory for a publication that forked children do not inherit. Returns NULL if that fails:
 * then no context may be published. */
static struct published_header *map_header(void) {
    void *memory = map_named();
    if (!memory)
        memory = map_file();
    if (memory && madvise(memory, sizeof(struct published_header), MADV_DONTFORK) != 0) {
        unmap_publication(memory);
        memory = NULL;
    }
    return memory;
}

/* --- publication --- */

static bool has_header(struct process_context_publication *publication) {
    if (publication->header && publication->owner != getpid())
        publication->header = NULL; /* forgets the mapping, which is the parent's */
    if (!publication->header)
        publication->header = map_header();
    publication->owner = getpid();
    return publication->header != NULL;
}

/* Returns a time that differs from `before`, even for two publications in one clock tick. */
static uint64_t time_after(uint64_t before) {
    const uint64_t now = clock_nano(CLOCK_BOOTTIME);
    return now > before ? now : before + 1;
}

bool process_context_publish(struct process_context_publication *publication,
                             const uint8_t *payload, size_t size) {
    const int saved = errno;
    const bool may = size <= CONTEXT_PUBLICATION_BYTES && has_header(publication);
    errno = saved;
    if (!may)
        return false;
    struct published_header *const header = publication->header;
    uint8_t *const place = header->payloads[publication->turn++ % 2];
    const uint64_t before = atomic_load_explicit(&header->published_nano, memory_order_relaxed);
    /* marks the context as being changed: readers compare the times before and after their read.
     * Both fences pair with those of readers: with read_once() and is_unchanged() of
     * flush/encode/process_context.c, and with the fences of OTEP 4719's readers. */
    atomic_store_explicit(&header->published_nano, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(place, payload, size);
    header->version = CONTEXT_VERSION;
    header->payload_size = (uint32_t)size;
    header->payload = (uintptr_t)place;
    memcpy(header->signature, NAME, sizeof header->signature);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&header->published_nano, time_after(before), memory_order_relaxed);
    return true;
}

void process_context_unpublish(struct process_context_publication *publication) {
    const int saved = errno;
    if (publication->header && publication->owner == getpid())
        unmap_publication(publication->header);
    publication->header = NULL;
    errno = saved;
}
