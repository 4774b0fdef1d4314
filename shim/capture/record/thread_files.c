#include "thread_files.h"

#include "arch_syscall.h"
#include "process_file.h"
#include "text_numbers.h"

#include <string.h>
#include <sys/syscall.h>

/* Sets the sizes of pieces. A line may begin in one piece and end in the next, so pieces
 * overlap. */
enum { PIECE_BYTES = 512, OVERLAP_BYTES = 64, MOST_PIECES = 256 };

void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]) {
    (void)process_file_text(process_file_open_thread(tid, "comm"), name, THREAD_NAME_BYTES);
    name[strcspn(name, "\n")] = 0;
}

/* Finds the line only if its end is in the text, too. */
static bool thread_status_find(const char *text, const char *title, unsigned base,
                               uint64_t *number) {
    const char *const line = strstr(text, title);
    const char *const end = line ? number_read(line + strlen(title), base, number) : NULL;
    return end && *end;
}

bool thread_status_read(uint32_t tid, const char *title, unsigned base, uint64_t *number) {
    char text[OVERLAP_BYTES + PIECE_BYTES + 1];
    size_t kept = 0;
    bool found = false;
    const int file = tid ? process_file_open_thread(tid, "status")
                         : process_file_open_path("/proc/thread-self/status");
    for (int i = 0; i < MOST_PIECES && file >= 0 && !found; i++) {
        const long got =
            arch_system_call(SYS_read, file, (long)(text + kept), PIECE_BYTES, 0, 0, 0);
        if (got <= 0)
            break;
        const size_t size = kept + (size_t)got;
        text[size] = 0;
        found = thread_status_find(text, title, base, number);
        kept = size < OVERLAP_BYTES ? size : OVERLAP_BYTES;
        memmove(text, text + size - kept, kept);
    }
    if (file >= 0)
        process_file_close(file);
    return found;
}
