/* Gives back, between exports, the pages of the code that only the exporter brought into the
 * process.
 *
 * Its libraries (TLS, DWARF, compression) run for some milliseconds in ten seconds, but their pages
 * would count as resident all the time: 7 MiB of the application's account. Their pages stay in the
 * page cache and return with minor faults, some tens of thousands of cycles an export.
 *
 * Only some pages are given back: those of libraries that no dlclose can unload
 * (libotelprof-flush.so needs them, and they were not there before it), that are not writable, and
 * that /proc/self/pagemap reports as the file's own: a page with a relocation, a debugger's
 * breakpoint or another tool's patch stays. Only the helper thread calls these functions.
 */
#ifndef OTELPROF_IDLE_CODE_H
#define OTELPROF_IDLE_CODE_H

struct idle_code;

/* Must be called after libotelprof-flush.so was loaded, under the quiesce lock: it takes the
 * loader's lock. Returns NULL without memory; then nothing is given back. The caller owns the
 * result. */
struct idle_code *idle_code_open(void);
void idle_code_close(struct idle_code *code);

/* Drops the pages that the kernel can restore. NULL is allowed. */
void idle_code_drop(struct idle_code *code);

#endif
