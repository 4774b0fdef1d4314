/* Computes process.executable.build_id.htlhash ("head, tail, length"), which identifies a file for
 * receivers that do not know its GNU build id.
 *
 * It is SHA-256 over the first 4096 bytes, the last 4096 bytes and the length as 8 bytes,
 * big-endian; the result is its first 16 bytes in hex (semantic conventions for profiles). For an
 * object without a file ([vdso]) the pages that the kernel has mapped are hashed as if they were
 * the file. Context: flush.
 */
#ifndef OTELPROF_FILE_HASH_H
#define OTELPROF_FILE_HASH_H

#include "harvest.h"

#include <stdbool.h>

enum { FILE_HASH_TEXT_BYTES = 33 };

/* Hashes the file on `descriptor`; -1: the module's memory, which must stay mapped. Returns false
 * if the file cannot be read. */
bool file_hash(int descriptor, const struct harvest_module *module,
               char text[static FILE_HASH_TEXT_BYTES]);

#endif
