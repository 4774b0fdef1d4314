/* Looks at the loader's list by the program's threads, and by the helper at an export, and fork().
 *
 * dl_iterate_phdr() holds a lock that glibc does not make anew in a child: one that was forked
 * while another thread was in it waits for ever in its first dlopen(). Where a call of the
 * program's has nothing to do with the loader but for us, as hooks/generated_code.c has it, that is
 * our fault. So fork() lets those threads out before, and in only behind it. Both waits end: what
 * interrupted a look may fork, and what holds up a fork may look. Async-signal-safe: yes; errno is
 * preserved.
 */
#ifndef OTELPROF_LIST_LOOKS_H
#define OTELPROF_LIST_LOOKS_H

/* Around dl_iterate_phdr(). Context: any. */
void list_look_begin(void);
void list_look_end(void);

/* Around fork(), each once. Context: the thread that forks. */
void list_looks_begin_fork(void);
void list_looks_end_fork(void);

/* In the child, in place of the latter. */
void list_looks_after_fork(void);

#endif
