/* Gives back, between exports, the pages of the code that only the exporter brought into the
 * process.
 *
 * The libraries behind it (TLS, DWARF, compression) run for some milliseconds in ten seconds, and
 * would be counted as resident all the time: 7 MiB of the application's account. Their pages stay
 * in the page cache and come back with minor faults, some tens of thousands of cycles an export.
 *
 * Touched is only what no dlclose can take away (the libraries that libotelprof-flush.so needs and
 * that were not there before it), is not writable, and is, by /proc/self/pagemap, the file's own
 * page: a page with a relocation, a debugger's breakpoint or somebody's patch in it stays.
 * Everything here belongs to the helper thread.
 */
#ifndef OTELPROF_IDLE_CODE_H
#define OTELPROF_IDLE_CODE_H

struct idle_code;

/* To be called once libotelprof-flush.so is loaded, under the quiesce lock: it takes the loader's
 * lock. NULL: no memory, and nothing will be given back. The caller owns it. */
struct idle_code *idle_code_open(void);
void idle_code_close(struct idle_code *code);

/* Drops the pages, where the kernel says that they can come back. NULL is allowed. */
void idle_code_drop(struct idle_code *code);

#endif
