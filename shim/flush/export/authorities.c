#include "authorities.h"

#include "files/by_path.h"

#include <curl/curl.h>
#include <stddef.h>
#include <unistd.h>

/* Lists the files of Debian and Alpine; Fedora and RHEL; SUSE; FreeBSD and OpenSSL's default. */
static const char *const usual[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

static const char *first_usual(void) {
    if (!may_open_by_path())
        return NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (access(usual[i], R_OK) == 0)
            return usual[i];
    return NULL;
}

const char *authorities_file(const struct config *config) {
    const curl_version_info_data *const libcurl = curl_version_info(CURLVERSION_NOW);
    if (config->certificate[0])
        return config->certificate;
    return libcurl->cainfo || libcurl->capath ? libcurl->cainfo : first_usual();
}
