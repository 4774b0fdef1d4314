#include "complaints.h"

#include <stdio.h>

void complain(struct complaints *complaints, size_t line, const char *section, const char *key,
              const char *what) {
    const size_t index = complaints->count++;
    if (index >= MAX_COMPLAINTS)
        return;
    struct complaint *const complaint = &complaints->items[index];
    complaint->line = line;
    complaint->what = what;
    snprintf(complaint->subject, sizeof complaint->subject, "%s%s", section, key);
}

void complaints_log(const struct complaints *complaints, const char *path, const struct log *log,
                    enum log_level level) {
    for (size_t i = 0; i < complaints->count && i < MAX_COMPLAINTS; i++) {
        const struct complaint *const complaint = &complaints->items[i];
        if (complaint->line)
            log_write(log, level, "OTEL_CONFIG_FILE: %s:%zu: %s %s", path, complaint->line,
                      complaint->subject, complaint->what);
        else
            log_write(log, level, "OTEL_CONFIG_FILE: %s: %s %s", path, complaint->subject,
                      complaint->what);
    }
    if (complaints->count > MAX_COMPLAINTS)
        log_write(log, level, "OTEL_CONFIG_FILE: %s: %zu more like these are not shown", path,
                  complaints->count - MAX_COMPLAINTS);
}
