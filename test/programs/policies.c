/* Burns so many milliseconds of CPU, then prints the scheduling policy of each of its threads.
 *
 * usage: policies MILLISECONDS
 */
#include "cpu_sample.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NOIPA static void burns_cpu(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

static void say(const char *task, const char *before) {
    char path[64];
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    FILE *const file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = 0;
    fclose(file);
    printf("%s%s: %d", before, name, sched_getscheduler(atoi(task)));
}

int main(int argc, char **argv) {
    burns_cpu(argc > 1 ? strtoull(argv[1], NULL, 10) : 300);
    DIR *const tasks = opendir("/proc/self/task");
    const char *before = "";
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        if (task->d_name[0] == '.')
            continue;
        say(task->d_name, before);
        before = ", ";
    }
    puts("");
    return tasks ? closedir(tasks) : 1;
}
