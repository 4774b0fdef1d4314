#include "compress.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* zlib.h: 16 more asks for the gzip format */
    GZIP_MEMORY_LEVEL = 8,
    GZIP_LEVEL = 6,
    ZSTD_LEVEL = 6, /* 7 % smaller than 3 for 2 ms per 320 KB; gzip takes 13 ms */
};

/* Both return the compressed bytes, malloc'ed, and set `*packed_size`; NULL: not possible. */
static uint8_t *gzip(const uint8_t *bytes, size_t size, size_t *packed_size) {
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size};
    if (size > UINT32_MAX || deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS,
                                          GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    const uLong bound = deflateBound(&stream, (uLong)size);
    uint8_t *packed = malloc(bound);
    stream.next_out = packed;
    stream.avail_out = (uInt)bound;
    const int result = packed ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    *packed_size = stream.total_out;
    deflateEnd(&stream);
    if (result == Z_STREAM_END)
        return packed;
    free(packed);
    return NULL;
}

static uint8_t *zstd(const uint8_t *bytes, size_t size, size_t *packed_size) {
    const size_t bound = ZSTD_compressBound(size);
    uint8_t *const packed = malloc(bound);
    if (!packed)
        return NULL;
    *packed_size = ZSTD_compress(packed, bound, bytes, size, ZSTD_LEVEL);
    if (!ZSTD_isError(*packed_size))
        return packed;
    free(packed);
    return NULL;
}

const char *compress_in_place(enum compression method, uint8_t **bytes, size_t *size) {
    size_t packed_size = 0;
    uint8_t *packed = NULL;
    if (method == COMPRESSION_GZIP)
        packed = gzip(*bytes, *size, &packed_size);
    else if (method == COMPRESSION_ZSTD)
        packed = zstd(*bytes, *size, &packed_size);
    if (!packed)
        return NULL;
    free(*bytes);
    /* the bound was for what cannot be compressed; what waits in the queue takes what it counts */
    uint8_t *const exact = realloc(packed, packed_size);
    if (exact)
        packed = exact;
    *bytes = packed;
    *size = packed_size;
    return method == COMPRESSION_GZIP ? "gzip" : "zstd";
}
