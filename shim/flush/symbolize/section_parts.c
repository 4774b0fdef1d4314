#include "section_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    PART_BYTES = 8 << 10,
    INPUT_BYTES = 8 << 10,
    /* least distance, in bytes, between two kept states, which have 40 KiB each: 1 ms of
     * inflating */
    LEAST_STEP = 256 << 10,
    /* a compressed section up to this size, inflated, is read whole, because going back costs
     * more */
    MAX_SMALL = 2 << 20,
    /* the rest is read at once when more than this multiple of the section's size was inflated */
    MAX_TIMES = 2,
};

/* --- parts --- */

static uint64_t section_part_count(const struct section_parts *p) {
    return (p->size + PART_BYTES - 1) / PART_BYTES;
}

static bool section_is_present(const struct section_parts *p, uint64_t part) {
    return p->present[part / 8] >> part % 8 & 1;
}

static void set_present(struct section_parts *p, uint64_t part) {
    p->present[part / 8] |= (uint8_t)(1U << part % 8);
}

/* Returns where the part ends. */
static uint64_t section_part_end(const struct section_parts *p, uint64_t part) {
    return (part + 1) * PART_BYTES < p->size ? (part + 1) * PART_BYTES : p->size;
}

/* --- inflating --- */

/* Returns the distance between two kept states, a multiple of PART_BYTES. */
static uint64_t step_of(const struct section_parts *p) {
    const uint64_t even = (p->size / MAX_INFLATE_STATES / PART_BYTES + 1) * PART_BYTES;
    return even > LEAST_STEP ? even : LEAST_STEP;
}

/* Inflates up to `end` into `to`. */
static bool inflate_to(struct section_parts *p, uint8_t *to, uint64_t end) {
    const Elf64_Shdr *const header = p->header;
    const uint64_t input_size = header->sh_size - p->form.head;
    uint8_t input[INPUT_BYTES];
    z_stream *const stream = &p->stream;
    stream->next_out = to;
    stream->avail_out = (uInt)(end - stream->total_out);
    p->inflated += stream->avail_out;
    while (stream->avail_out) {
        const uint64_t left = input_size - stream->total_in;
        const size_t size = left < sizeof input ? left : sizeof input;
        if (!size || !elf_section_read_raw(p->sections, header, p->form.head + stream->total_in,
                                           input, size))
            return false;
        stream->next_in = input;
        stream->avail_in = (uInt)size;
        const int result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && (result != Z_STREAM_END || stream->avail_out))
            return false;
    }
    return true;
}

/* Restores the last kept state before `at`, unless the stream's position is nearer. Returns false
 * without memory. */
static bool seek(struct section_parts *p, uint64_t at) {
    z_stream *from = &p->states[0];
    for (unsigned i = 1; i < p->kept; i++)
        if (p->states[i].total_out <= at && p->states[i].total_out > from->total_out)
            from = &p->states[i];
    if (p->stream.state && p->stream.total_out <= at && p->stream.total_out >= from->total_out)
        return true;
    inflateEnd(&p->stream);
    return inflateCopy(&p->stream, from) == Z_OK;
}

/* Inflates the next part, and stores it if it is among [first, last]. */
static bool inflate_part(struct section_parts *p, uint64_t first, uint64_t last) {
    uint8_t unwanted[PART_BYTES] = {0};
    const uint64_t at = p->stream.total_out;
    const uint64_t part = at / PART_BYTES;
    const bool is_new = part >= first && !section_is_present(p, part);
    if (!inflate_to(p, is_new ? p->to + at : unwanted, section_part_end(p, part)))
        return false;
    if (is_new)
        set_present(p, part);
    /* keeps the present state, except on the way to the end, after which no part is read */
    if (last + 1 < section_part_count(p) && p->kept < MAX_INFLATE_STATES &&
        p->stream.total_out == p->kept * step_of(p))
        p->kept += inflateCopy(&p->states[p->kept], &p->stream) == Z_OK;
    return true;
}

static bool inflate_parts(struct section_parts *p, uint64_t first, uint64_t last) {
    if (p->failed || !seek(p, first * PART_BYTES))
        return false;
    while (p->stream.total_out / PART_BYTES <= last && p->stream.total_out < p->size)
        if (!inflate_part(p, first, last))
            return false;
    return true;
}

/* --- reading --- */

static bool section_read_all(struct section_parts *p) {
    for (uint64_t part = 0; part < section_part_count(p); part++)
        set_present(p, part);
    return !p->failed && elf_section_read(p->sections, p->header, p->to, p->size);
}

static bool read_parts(struct section_parts *p, uint64_t first, uint64_t last) {
    for (uint64_t part = first; part <= last; part++) {
        const uint64_t at = part * PART_BYTES;
        if (!section_is_present(p, part) &&
            !elf_section_read_part(p->sections, p->header, at, p->to + at,
                                   section_part_end(p, part) - at))
            return false;
        set_present(p, part);
    }
    return true;
}

bool section_parts_open(struct section_parts *p, const struct elf_sections *sections,
                        const Elf64_Shdr *header, uint8_t *to, uint64_t size) {
    *p = (struct section_parts){.sections = sections, .header = header, .to = to, .size = size};
    p->form = elf_section_form(sections, header);
    p->present = calloc(section_part_count(p) / 8 + 1, 1);
    if (!p->present)
        return false;
    if (p->form.packing == PACKING_ZLIB)
        p->kept = inflateInit(&p->states[0]) == Z_OK;
    return p->kept || p->form.packing != PACKING_ZLIB;
}

bool section_parts_need(struct section_parts *p, uint64_t at, uint64_t size) {
    if (at > p->size || size > p->size - at)
        return false;
    const bool is_packed = p->form.packing != PACKING_NONE;
    uint64_t first = at / PART_BYTES;
    uint64_t end = (at + size + PART_BYTES - 1) / PART_BYTES;
    if (is_packed && (p->form.packing == PACKING_ZSTD || p->size <= MAX_SMALL ||
                      p->inflated > MAX_TIMES * p->size)) {
        first = 0;
        end = section_part_count(p);
    }
    while (first < end && section_is_present(p, first))
        first++;
    if (first == end)
        return true;
    const bool done = p->form.packing == PACKING_ZSTD ? section_read_all(p)
                      : is_packed                     ? inflate_parts(p, first, end - 1)
                                                      : read_parts(p, first, end - 1);
    p->failed |= !done;
    return done;
}

void section_parts_close(struct section_parts *p) {
    for (unsigned i = 0; i < p->kept; i++)
        inflateEnd(&p->states[i]);
    inflateEnd(&p->stream);
    free(p->present);
    *p = (struct section_parts){0};
}
