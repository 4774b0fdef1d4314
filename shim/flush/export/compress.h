/* Compression of one export, by zlib or zstd.
 * Context: flush.
 */
#ifndef OTELPROF_COMPRESS_H
#define OTELPROF_COMPRESS_H

#include "config.h"

#include <stddef.h>
#include <stdint.h>

/* Replaces `*bytes` (malloc'ed, `*size` long) by its compressed form and frees the old. Returns the
 * Content-Encoding that now applies; NULL for none, also when compression was not possible: then
 * the bytes are as they were. */
const char *compress_in_place(enum compression method, uint8_t **bytes, size_t *size);

/* Unpacks `bytes`, whichever of the two it is compressed by, into `to`. Returns the size; 0: it is
 * neither, damaged, or longer than `room`. */
size_t decompress(const uint8_t *bytes, size_t size, uint8_t *to, size_t room);

#endif
