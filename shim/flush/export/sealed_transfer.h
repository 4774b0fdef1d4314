/* What libcurl needs for a transfer that opens no file: behind another root, where the resolver's
 * and TLS's files are whoever's root it is.
 *
 * The files are read before the program changes its root, into memory that libcurl is handed
 * instead of their paths. A host that is a number, or localhost, needs no resolver; the address of
 * any other is that of the last connection. Where something of that is missing (a proxy, a Unix
 * socket, a TLS library that takes no files from memory) there are no transfers any more.
 * Context: flush.
 */
#ifndef OTELPROF_SEALED_TRANSFER_H
#define OTELPROF_SEALED_TRANSFER_H

#include "config.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct blob {
    void *bytes; /* NULL: not read */
    size_t size;
};

struct sealed_transfer {
    struct blob authorities;
    struct blob certificate;
    struct blob key;
    char *address;              /* "host:port:address" */
    struct curl_slist *resolve; /* the same, for the transfer under way */
};

/* While paths may be opened: reads what a later transfer needs, if that has not been done. */
void sealed_transfer_prepare(struct sealed_transfer *sealed, const struct config *config);

/* After a transfer: where its connection went. */
void sealed_transfer_remember(struct sealed_transfer *sealed, const struct config *config,
                              CURL *easy);

/* Sets what keeps `easy` from files and resolver; `direct`: proxies are not used in any case.
 * false: it cannot be kept from them. */
bool sealed_transfer_set(struct sealed_transfer *sealed, const struct config *config, CURL *easy,
                         bool direct);
/* After the transfer, whether it was set or not: frees what libcurl has allocated for it. */
void sealed_transfer_unset(struct sealed_transfer *sealed);

/* Calls nothing of libcurl. */
void sealed_transfer_free(struct sealed_transfer *sealed);

#endif
