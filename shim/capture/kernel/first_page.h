/* Places data that every process writes at its start, also an excluded one, in the page of
 * initialized data, which the loader has written to by then. Among the tables, which only profiled
 * processes touch, each piece would cost a fault or two: 0.5 µs each, of the 80 that an excluded
 * process pays for us. */
#ifndef OTELPROF_FIRST_PAGE_H
#define OTELPROF_FIRST_PAGE_H

#define IN_FIRST_PAGE __attribute__((section(".data")))

#endif
