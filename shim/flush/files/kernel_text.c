#include "kernel_text.h"

#include "open_flags.h"
#include "process_file.h"
#include "text_numbers.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool kernel_text(const char *folder, const char *name, char text[static KERNEL_TEXT_BYTES]) {
    char path[PATH_MAX];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    const int file = open(path, OPEN_TO_READ);
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(file);
        return false;
    }
    return process_file_text(file, text, KERNEL_TEXT_BYTES);
}

uint64_t kernel_number(const char *folder, const char *name) {
    char text[KERNEL_TEXT_BYTES];
    uint64_t number;
    return kernel_text(folder, name, text) && number_read(text, 10, &number) ? number : UINT64_MAX;
}

uint64_t kernel_value(const char *text, const char *key) {
    const char *const value = process_text_value(text, key, ' ');
    uint64_t number = 0;
    if (value)
        (void)number_read(value + strspn(value, " "), 10, &number);
    return number;
}
