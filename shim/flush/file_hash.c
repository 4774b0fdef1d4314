#include "file_hash.h"

#include <endian.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { END_BYTES = 4096, SHOWN_BYTES = 16 };

static void finish(struct sha256_ctx *context, uint64_t length, char *text) {
    const uint64_t big_endian = htobe64(length);
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_update(context, sizeof big_endian, (const uint8_t *)&big_endian);
    sha256_digest(context, sizeof digest, digest);
    for (int i = 0; i < SHOWN_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static bool add_range(struct sha256_ctx *context, int file, off_t from) {
    uint8_t bytes[END_BYTES];
    const ssize_t size = pread(file, bytes, sizeof bytes, from);
    if (size < 0)
        return false;
    sha256_update(context, (size_t)size, bytes);
    return true;
}

static bool hash_file(int file, struct sha256_ctx *context, uint64_t *length) {
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    const off_t size = status.st_size;
    *length = (uint64_t)size;
    return add_range(context, file, 0) &&
           add_range(context, file, size > END_BYTES ? size - END_BYTES : 0);
}

static uint64_t hash_memory(const struct harvest_module *module, struct sha256_ctx *context) {
    const uint64_t length = module->end - module->start;
    const size_t part = length < END_BYTES ? length : END_BYTES;
    sha256_update(context, part, (const uint8_t *)(uintptr_t)module->start);
    sha256_update(context, part, (const uint8_t *)(uintptr_t)(module->end - part));
    return length;
}

bool file_hash(int descriptor, const struct harvest_module *module,
               char text[static FILE_HASH_TEXT_BYTES]) {
    struct sha256_ctx context;
    uint64_t length = 0;
    sha256_init(&context);
    if (descriptor < 0)
        length = hash_memory(module, &context);
    else if (!hash_file(descriptor, &context, &length))
        return false;
    finish(&context, length, text);
    return true;
}
