/* Compresses one export by zlib or zstd. Context: flush. */
#ifndef OTELPROF_COMPRESS_H
#define OTELPROF_COMPRESS_H

#include "config.h"

#include <stddef.h>
#include <stdint.h>

/* Replaces `*bytes` (malloc'ed, `*size` long) by its compressed form and frees the original.
 * Returns the resulting Content-Encoding; NULL: the bytes are unchanged, because no compression was
 * asked for or it failed. */
const char *compress_in_place(enum compression method, uint8_t **bytes, size_t *size);

/* Unpacks `bytes`, compressed by either method, into `to`. Returns the unpacked size; 0 if the
 * bytes are in neither format or damaged, or if the unpacked size exceeds `room`. */
size_t decompress(const uint8_t *bytes, size_t size, uint8_t *to, size_t room);

#endif
