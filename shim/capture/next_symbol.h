/* The definition of a function behind ours, in the loader's order of search. */
#ifndef OTELPROF_NEXT_SYMBOL_H
#define OTELPROF_NEXT_SYMBOL_H

/* dlsym(RTLD_NEXT, name). Where that finds nothing, or is not there itself (glibc before 2.34 in a
 * program without libdl), what is loaded behind us has it, be it loaded for somebody else alone:
 * the libpthread of a plug-in, whose calls come to us first. NULL if nobody has. Context: calm. */
void *next_symbol(const char *name);

#endif
