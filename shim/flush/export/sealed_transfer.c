#include "sealed_transfer.h"

#include "authorities.h"
#include "open_flags.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 4 << 20, HOST_BYTES = 256 };
enum { KNOWS_LOCALHOST = 0x074e00 }; /* since 7.78 libcurl itself knows localhost */

/* --- the files --- */

static bool sealed_read_all(int file, struct blob *blob) {
    size_t have = 0;
    ssize_t got = 1;
    while (have < blob->size && got > 0) {
        got = read(file, (char *)blob->bytes + have, blob->size - have);
        have += got > 0 ? (size_t)got : 0;
    }
    return have == blob->size;
}

/* Reads the file, unless it was read before. */
static void take_file(struct blob *blob, const char *path) {
    struct stat status;
    const int file = !blob->bytes && path && path[0] ? open(path, OPEN_TO_READ) : -1;
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        status.st_size <= MOST_BYTES) {
        blob->size = (size_t)status.st_size;
        blob->bytes = malloc(blob->size);
        if (blob->bytes && !sealed_read_all(file, blob)) {
            free(blob->bytes);
            blob->bytes = NULL;
        }
    }
    close(file);
}

static bool is_tls(const struct config *config) {
    return strncasecmp(config->endpoint, "https:", 6) == 0;
}

void sealed_transfer_prepare(struct sealed_transfer *sealed, const struct config *config) {
    if (!is_tls(config))
        return;
    take_file(&sealed->authorities, authorities_file(config));
    take_file(&sealed->certificate, config->client_certificate);
    take_file(&sealed->key, config->client_key);
}

void sealed_transfer_free(struct sealed_transfer *sealed) {
    free(sealed->authorities.bytes);
    free(sealed->certificate.bytes);
    free(sealed->key.bytes);
    free(sealed->address);
}

/* --- the receiver's address --- */

struct receiver {
    char host[HOST_BYTES];
    char port[8];
};

static bool take_part(CURLU *url, CURLUPart part, char *to, size_t size) {
    char *text = NULL;
    const bool fits = curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                      snprintf(to, size, "%s", text) < (int)size;
    curl_free(text);
    return fits;
}

static bool sealed_parse_receiver(const struct config *config, struct receiver *receiver) {
    CURLU *const url = curl_url();
    const bool known = url && curl_url_set(url, CURLUPART_URL, config->endpoint, 0) == CURLUE_OK &&
                       take_part(url, CURLUPART_HOST, receiver->host, sizeof receiver->host) &&
                       take_part(url, CURLUPART_PORT, receiver->port, sizeof receiver->port);
    curl_url_cleanup(url);
    return known;
}

static bool needs_resolver(const char *host) {
    if (strcasecmp(host, "localhost") == 0)
        return curl_version_info(CURLVERSION_NOW)->version_num < KNOWS_LOCALHOST;
    if (host[0] == '[')
        return false;
    return strspn(host, "0123456789.") != strlen(host);
}

void sealed_transfer_remember(struct sealed_transfer *sealed, const struct config *config,
                              CURL *easy) {
    const char *address = NULL;
    struct receiver receiver;
    char *line = NULL;
    if (!sealed_parse_receiver(config, &receiver) || !needs_resolver(receiver.host) ||
        curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address) != CURLE_OK || !address ||
        !address[0])
        return;
    const char *const form = strchr(address, ':') ? "%s:%s:[%s]" : "%s:%s:%s";
    if (asprintf(&line, form, receiver.host, receiver.port, address) < 0)
        return;
    free(sealed->address);
    sealed->address = line;
}

/* --- one transfer --- */

static bool has_proxy(void) {
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const value = getenv(names[i]);
        if (value && value[0])
            return true;
    }
    return false;
}

static bool set_blob(CURL *easy, CURLoption option, const struct blob *from) {
    struct curl_blob blob = {from->bytes, from->size, CURL_BLOB_COPY};
    return from->bytes && curl_easy_setopt(easy, option, &blob) == CURLE_OK;
}

static bool sealed_set_tls(const struct sealed_transfer *sealed, const struct config *config,
                           CURL *easy) {
    if (!is_tls(config))
        return true;
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_SSLCERT, NULL);
    curl_easy_setopt(easy, CURLOPT_SSLKEY, NULL);
    return set_blob(easy, CURLOPT_CAINFO_BLOB, &sealed->authorities) &&
           (!config->client_certificate[0] ||
            set_blob(easy, CURLOPT_SSLCERT_BLOB, &sealed->certificate)) &&
           (!config->client_key[0] || set_blob(easy, CURLOPT_SSLKEY_BLOB, &sealed->key));
}

void sealed_transfer_unset(struct sealed_transfer *sealed) {
    curl_slist_free_all(sealed->resolve);
    sealed->resolve = NULL;
}

bool sealed_transfer_set(struct sealed_transfer *sealed, const struct config *config, CURL *easy,
                         bool direct) {
    struct receiver receiver;
    if (config->unix_socket[0] || (!direct && has_proxy()) ||
        !sealed_parse_receiver(config, &receiver))
        return false;
    if (needs_resolver(receiver.host) && !sealed->address)
        return false;
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (sealed->address) {
        sealed->resolve = curl_slist_append(NULL, sealed->address);
        curl_easy_setopt(easy, CURLOPT_RESOLVE, sealed->resolve);
    }
    return sealed_set_tls(sealed, config, easy);
}
