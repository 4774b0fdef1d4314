/* Opens a file that we write, and no other than one of our own.
 *
 * Its name comes from the environment, which may be another user's than the process (a setuid
 * program's child has it), and may lie where others can write. So:
 * - no part of the path is a symbolic link;
 * - each folder on the way, "/" among them, belongs to root or to the process's user, and others
 * can write to it only if its sticky bit keeps what is there in place. Others are everybody but the
 *   members of the process's group and of root's;
 * - the file is created by us alone (O_EXCL, mode 0600), or it is a regular one, of the process's
 *   user, and has no second name. /dev/null is taken, too.
 * In a user namespace files of root's and of others look alike (the overflow user): such folders
 * are taken there, such files are not.
 * Two descriptors are used, one after the other above it. Context: calm | flush.
 */
#ifndef OTELPROF_OWN_FILE_H
#define OTELPROF_OWN_FILE_H

#include <stdbool.h>

/* What is refused that the kernel would not refuse; beyond the values of errno. */
enum own_file_refusal {
    OWN_FILE_BEHIND_LINK = 4096,
    OWN_FILE_OF_ANOTHER,
    OWN_FILE_IN_FOLDER_OF_ANOTHER,
    OWN_FILE_IN_OPEN_FOLDER,
    OWN_FILE_LINKED,
};

/* `access`: O_WRONLY or O_RDWR, with O_CREAT if it may be made. The descriptor, which appends, or
 * -errno (-ELOOP: it is a symbolic link; -ENOTSUP: no regular file), or a negative refusal. */
int own_file_open(const char *path, int access);

/* The same for the file `name` in `folder`, whose path is not the environment's: what is above the
 * folder is not looked at. The descriptor does not append. */
int own_file_open_in(const char *folder, const char *name, int access);

/* The folder that the last part of `path` is in, by the same rules, and that part (which may be
 * ""): for a file that open(2) does not make. A descriptor for the calls that take one (O_PATH), or
 * what own_file_open() would return. */
int own_file_folder(const char *path, const char **name);

/* Whether the process is in a namespace in which the overflow user, 65534, is each user that the
 * namespace does not know. */
bool own_file_user_is_anybody(void);

/* "is a symbolic link, which is not followed": what a name is where own_file_open() said `error`;
 * NULL: what errno means. */
const char *own_file_problem(int error);

#endif
