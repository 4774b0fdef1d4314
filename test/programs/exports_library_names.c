/* flags: -rdynamic */
/* Defines functions with the names that the exporter's libraries have, as a program does that
 * brings its own OpenSSL, zlib or libcurl and exports everything: a call of them ends the process.
 * Computes for as many milliseconds as the first argument says, in parts between which it
 * allocates. */
#include "cpu_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void end_for(const char *name) {
    (void)!write(2, name, __builtin_strlen(name));
    (void)!write(2, " of the program was called\n", 27);
    abort();
}

#define DEFINE(name)                                                                               \
    void name(void);                                                                               \
    void name(void) {                                                                              \
        end_for(#name);                                                                            \
    }
DEFINE(OPENSSL_init_ssl)
DEFINE(OPENSSL_init_crypto)
DEFINE(SSL_CTX_new)
DEFINE(SSL_new)
DEFINE(SSL_read)
DEFINE(SSL_connect)
DEFINE(SSL_write)
DEFINE(CRYPTO_malloc)
DEFINE(CRYPTO_free)
DEFINE(EVP_DigestInit_ex)
DEFINE(EVP_sha256)
DEFINE(BIO_new)
DEFINE(ERR_clear_error)
DEFINE(X509_free)
DEFINE(RAND_bytes)
DEFINE(ZSTD_compress)
DEFINE(ZSTD_createCCtx)
DEFINE(ZSTD_compress2)
DEFINE(ZSTD_CCtx_setParameter)
DEFINE(ZSTD_freeCCtx)
DEFINE(ZSTD_compressStream2)
DEFINE(inflate)
DEFINE(inflateInit2_)
DEFINE(deflate)
DEFINE(deflateInit2_)
DEFINE(deflateEnd)
DEFINE(crc32)
DEFINE(zlibVersion)
DEFINE(curl_easy_init)
DEFINE(curl_global_init)
DEFINE(curl_easy_setopt)
DEFINE(curl_multi_perform)
DEFINE(curl_multi_init)
DEFINE(protobuf_c_message_pack)
DEFINE(protobuf_c_message_get_packed_size)
DEFINE(elf_begin)
DEFINE(elf_version)
DEFINE(elf_memory)
DEFINE(dwarf_begin_elf)
DEFINE(dwarf_begin)
DEFINE(lzma_code)
DEFINE(nettle_sha256_init)
DEFINE(nettle_sha256_update)
DEFINE(yaml_parser_initialize)
DEFINE(unw_init_remote)
DEFINE(_Ux86_64_init_remote)
DEFINE(_Ux86_64_create_addr_space)
DEFINE(nghttp2_session_client_new)
DEFINE(idn2_lookup_ul)
DEFINE(gnutls_global_init)
DEFINE(MHD_start_daemon)
DEFINE(p11_kit_be_quiet)
DEFINE(ldap_initialize)
DEFINE(psl_builtin)
DEFINE(BrotliDecoderCreateInstance)
DEFINE(__gmpn_mul)
DEFINE(asn1_array2tree)
DEFINE(libssh2_init)
DEFINE(gss_release_buffer)

int main(int argc, char **argv) {
    const long parts = argc > 1 ? strtol(argv[1], NULL, 10) / 10 : 20;
    for (long i = 0; i < parts; i++) {
        WORK_UNTIL(cpu_now() + 10 * NS_PER_MS);
        free(malloc(100000));
    }
    puts("unharmed");
    return 0;
}
