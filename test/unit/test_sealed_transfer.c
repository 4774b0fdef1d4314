/* Tests which files a transfer keeps for the time after the program's change of its root. */
#include "unit.h"

#include "export/sealed_transfer.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/test_sealed.XXXXXX";

static char *file_of(const char *name, const char *text) {
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
    FILE *const file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static struct blob prepared_twice(struct sealed_transfer *sealed, const struct config *config) {
    sealed_transfer_prepare(sealed, config);
    const struct blob first = sealed->certificate;
    sealed_transfer_prepare(sealed, config);
    return first;
}

/* Each pause prepares: one before each fork, say. */
static void a_file_is_read_once_whether_or_not_the_authorities_are_read(void **state) {
    (void)state;
    char *const certificate = file_of("certificate", "the certificate");
    char *const authorities = file_of("authorities", "the authorities");
    const char *const choices[] = {"/nonexistent/authorities", authorities};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct sealed_transfer sealed = {.address = NULL};
        const struct config config = {.endpoint = "https://localhost:1",
                                      .certificate = choices[i],
                                      .client_certificate = certificate,
                                      .client_key = ""};
        const struct blob first = prepared_twice(&sealed, &config);
        assert_int_equal(sealed.certificate.size, strlen("the certificate"));
        assert_ptr_equal(sealed.certificate.bytes, first.bytes);
        assert_int_equal(sealed.authorities.bytes != NULL, i == 1);
        sealed_transfer_free(&sealed);
    }
    unlink(certificate);
    unlink(authorities);
    free(certificate);
    free(authorities);
}

/* A file that could not be read at one pause is read at a later one. */
static void a_file_that_comes_later_is_read_then(void **state) {
    (void)state;
    struct sealed_transfer sealed = {.address = NULL};
    char *const key = file_of("key", "the key");
    char *const authorities = file_of("authorities", "the authorities");
    const struct config config = {.endpoint = "https://localhost:1",
                                  .certificate = authorities,
                                  .client_certificate = "",
                                  .client_key = key};
    unlink(key);
    sealed_transfer_prepare(&sealed, &config);
    assert_null(sealed.key.bytes);
    assert_non_null(sealed.authorities.bytes);
    free(file_of("key", "the key"));
    sealed_transfer_prepare(&sealed, &config);
    assert_int_equal(sealed.key.size, strlen("the key"));
    sealed_transfer_free(&sealed);
    unlink(key);
    unlink(authorities);
    free(key);
    free(authorities);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_once_whether_or_not_the_authorities_are_read),
        cmocka_unit_test(a_file_that_comes_later_is_read_then),
    };
    if (!mkdtemp(folder))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
