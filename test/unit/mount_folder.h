/* Makes a folder that stands for one that the kernel mounts, such as a hierarchy of control groups.
 */
#ifndef OTELPROF_TEST_MOUNT_FOLDER_H
#define OTELPROF_TEST_MOUNT_FOLDER_H

#include "unit.h"

#include <errno.h>
#include <sys/stat.h>

static char mount[] = "/tmp/otelprof-mount-XXXXXX";

/* Writes a file; its name is relative to the folder. */

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", mount, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void make_folder(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", mount, name);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
}

/* Runs before all tests of a program. */

static int make_mount(void **state) {
    (void)state;
    return mkdtemp(mount) ? 0 : -1;
}

static int remove_mount(void **state) {
    char command[512];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", mount);
    return system(command); /* NOLINT(cert-env33-c) */
}

#endif
