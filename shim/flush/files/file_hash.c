#include "file_hash.h"

#include "safe_read.h"
#include "text_numbers.h"

#include <elf.h>
#include <endian.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    END_BYTES = 4096,
    SHOWN_BYTES = 16,
    PAGE_BYTES = 4096,
    /* largest image of the vDSO that is hashed; usually it has two pages */
    MAX_IMAGE_BYTES = 1 << 20,
};

static void file_hash_finish(struct sha256_ctx *context, uint64_t length, char *text) {
    const uint64_t big_endian = htobe64(length);
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_update(context, sizeof big_endian, (const uint8_t *)&big_endian);
    sha256_digest(context, sizeof digest, digest);
    (void)number_write_bytes(text, digest, SHOWN_BYTES);
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

/* Returns the size of the vDSO's file in bytes, a multiple of the page, because the kernel maps the
 * whole file, in whole pages; 0: it cannot be read, or is too large. The file ends with the section
 * headers, after the only segment. */
static uint64_t image_bytes(const struct harvest_module *module) {
    Elf64_Ehdr file;
    uint64_t size = module->end - module->start;
    if (!safe_read(module->start, &file, sizeof file) || file.e_shoff > MAX_IMAGE_BYTES)
        return 0;
    const uint64_t headers_end = file.e_shoff + (uint64_t)file.e_shnum * file.e_shentsize;
    if (headers_end > size)
        size = headers_end;
    return size > MAX_IMAGE_BYTES ? 0 : (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool hash_memory(const struct harvest_module *module, struct sha256_ctx *context,
                        uint64_t *length) {
    uint8_t bytes[END_BYTES];
    *length = image_bytes(module);
    if (*length < END_BYTES || !safe_read(module->start, bytes, sizeof bytes))
        return false;
    sha256_update(context, sizeof bytes, bytes);
    if (!safe_read(module->start + *length - END_BYTES, bytes, sizeof bytes))
        return false;
    sha256_update(context, sizeof bytes, bytes);
    return true;
}

bool file_hash(int descriptor, const struct harvest_module *module,
               char text[static FILE_HASH_TEXT_BYTES]) {
    struct sha256_ctx context;
    uint64_t length = 0;
    sha256_init(&context);
    if (descriptor < 0 ? !hash_memory(module, &context, &length)
                       : !hash_file(descriptor, &context, &length))
        return false;
    file_hash_finish(&context, length, text);
    return true;
}
