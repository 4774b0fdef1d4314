/* Gives back, between exports, the pages of the code that only the exporter brought into the
 * process.
 *
 * The exporter's libraries (TLS, DWARF, compression) run for some milliseconds in ten seconds, but
 * their pages would count as resident all the time. Between exports a small C program has 4.9 MiB
 * resident instead of 13.0 (its proportional share is 3.2 instead of 6.4; with eight such programs
 * 2.4 instead of 3.2), and python3 13.8 instead of 21.9 (8.6 instead of 11.9). This costs some 35
 * more minor faults an export and at most 0.6 ms of the helper's 2 to 3 ms of CPU time; the time of
 * an export differs by noise only.
 *
 * A page is given back only if it belongs to a library that no dlclose can unload
 * (libotelprof-flush.so needs the library, and has brought it), if it is not writable, and if
 * /proc/self/pagemap reports it as a page of the file: a page with a relocation, a debugger's
 * breakpoint or another tool's patch stays. Only the helper thread calls these functions.
 */
#ifndef OTELPROF_IDLE_CODE_H
#define OTELPROF_IDLE_CODE_H

struct idle_code;

/* Finds the code. Must be called after libotelprof-flush.so was loaded, under the quiesce lock,
 * because it takes the loader's lock. Returns NULL without memory; then nothing is given back. The
 * caller owns the result. */
struct idle_code *idle_code_open(void);
void idle_code_close(struct idle_code *code);

/* Drops the pages that the kernel can restore. Does nothing if /proc/self/pagemap cannot be opened.
 * NULL is allowed. */
void idle_code_drop(struct idle_code *code);

#endif
