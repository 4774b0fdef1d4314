/* Keeps fork() and iterations of the loader's list apart. The program's threads iterate, and so
 * does the helper at an export.
 *
 * dl_iterate_phdr() holds a lock that glibc does not reset in a child: a child that was forked
 * while another thread held it waits for ever in its first dlopen(). The profiler would cause that
 * where it makes the program's call iterate (hooks/generated_code.c). So fork() waits until no
 * thread iterates, and blocks new iterations until it returns. Both waits are bounded: a thread may
 * fork inside an iteration, or iterate inside a fork. Async-signal-safe: yes; errno is preserved.
 */
#ifndef OTELPROF_LIST_ITERATIONS_H
#define OTELPROF_LIST_ITERATIONS_H

/* Call around dl_iterate_phdr(). Context: any. */
void list_iteration_begin(void);
void list_iteration_end(void);

/* Call around fork(), each once. Context: the thread that forks. */
void list_iterations_begin_fork(void);
void list_iterations_end_fork(void);

/* Call in the child, instead of list_iterations_end_fork(). */
void list_iterations_after_fork(void);

#endif
