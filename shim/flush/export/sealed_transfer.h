/* Prepares a transfer that opens no file. After the program has changed its root, the resolver's
 * and TLS's files are those of another root.
 *
 * The files are read before the change; libcurl then gets their contents instead of their paths. A
 * numeric host or localhost needs no resolver; for any other host the address of the last
 * connection is used. Transfers stop if that is not enough: the address is not known, a file was
 * not read, the TLS library takes no files from memory, or there is a proxy or a Unix socket.
 * Context: flush.
 */
#ifndef OTELPROF_SEALED_TRANSFER_H
#define OTELPROF_SEALED_TRANSFER_H

#include "config.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct blob {
    void *bytes; /* NULL: the file was not read */
    size_t size;
};

struct sealed_transfer {
    struct blob authorities;
    struct blob certificate;
    struct blob key;
    char *address;              /* "host:port:address" */
    struct curl_slist *resolve; /* `address` as a list, during a transfer */
};

/* Reads the files that a later transfer over TLS needs, but none that was read before. Must be
 * called only while paths may be opened. */
void sealed_transfer_prepare(struct sealed_transfer *sealed, const struct config *config);

/* Remembers the address that a finished transfer connected to, if its host needs the resolver. */
void sealed_transfer_remember(struct sealed_transfer *sealed, const struct config *config,
                              CURL *easy);

/* Sets the options that keep `easy` from files and the resolver; `direct`: proxies are never used.
 * Returns false if the transfer cannot work so: it needs a file that was not read, the resolver, a
 * proxy or a Unix socket. */
bool sealed_transfer_set(struct sealed_transfer *sealed, const struct config *config, CURL *easy,
                         bool direct);
/* Frees libcurl's allocations for a transfer; must be called after each transfer, even if no option
 * was set. */
void sealed_transfer_unset(struct sealed_transfer *sealed);

/* Frees everything else without a call to libcurl. */
void sealed_transfer_free(struct sealed_transfer *sealed);

#endif
