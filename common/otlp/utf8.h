/* Protobuf strings must be UTF-8; file names, thread names and symbols need not be. */
#ifndef OTELPROF_UTF8_H
#define OTELPROF_UTF8_H

/* Replaces every byte that is not part of a well-formed sequence (Unicode 15, table 3-7) by '?'.
 * Context: any. */
void utf8_make_valid(char *text);

#endif
