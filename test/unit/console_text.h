/* Runs the console exporter over the samples of the fake capture side, for tests of its text. */
#ifndef OTELPROF_TEST_CONSOLE_TEXT_H
#define OTELPROF_TEST_CONSOLE_TEXT_H

#include "encode/merge.h"
#include "export/console.h"
#include "fake_capture.h"

#include <sys/mman.h>
#include <unistd.h>

enum { CONSOLE_BYTES = 4096 };

static void console_of(const struct capture_api *api, char text[static CONSOLE_BYTES]) {
    struct merge merge = {.items = {0}};
    struct symbolizer *const symbolizer = symbolizer_open(api->config->symbols, api->guard.run);
    const int kept = dup(STDERR_FILENO);
    const int file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    log_init(&fake.log, LOG_NONE, "");
    const bool harvested = merge_harvest(&merge, api);
    console_write(api, symbolizer, &merge, 1);
    dup2(kept, STDERR_FILENO);
    close(kept);
    const ssize_t size = pread(file, text, CONSOLE_BYTES - 1, 0);
    text[size > 0 ? size : 0] = 0;
    close(file);
    merge_free(&merge);
    symbolizer_close(symbolizer);
    assert_true(harvested);
}

#endif
