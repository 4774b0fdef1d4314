/* Opens a file that the profiler writes, and only a file that belongs to the process's user.
 *
 * The name comes from the environment, which may be another user's (a child of a setuid program
 * inherits it), and may lead to a folder where other users can write. So:
 * - no part of the path is a symbolic link;
 * - each folder on the way, "/" among them, belongs to root or to the process's user, and others
 *   can write to it only if its sticky bit protects its entries. Others are all users except the
 *   members of the process's group and of root's;
 * - this process creates the file (O_EXCL, mode 0600), or it is a regular file, of the process's
 *   user, that has no second name. /dev/null is accepted, too.
 * In a user namespace, files of root's and of other users cannot be distinguished (both are the
 * overflow user's): there such folders are accepted, such files are not. At most two descriptors
 * are open at a time. Context: calm | flush.
 */
#ifndef OTELPROF_PRIVATE_FILE_H
#define OTELPROF_PRIVATE_FILE_H

#include <stdbool.h>

/* Lists refusals by the rules above, where the kernel would not refuse; the values are beyond
 * errno's values. */
enum private_file_refusal {
    PRIVATE_FILE_BEHIND_LINK = 4096,
    PRIVATE_FILE_OF_ANOTHER,
    PRIVATE_FILE_IN_FOLDER_OF_ANOTHER,
    PRIVATE_FILE_IN_OPEN_FOLDER,
    PRIVATE_FILE_LINKED,
};

/* Opens a file. `access`: O_WRONLY or O_RDWR, with O_CREAT if the file may be created. Returns the
 * descriptor, which appends, or -errno (-ELOOP: it is a symbolic link; -ENOTSUP: no regular file),
 * or a negative refusal. */
int private_file_open(const char *path, int access);

/* Opens the file `name` in `folder` by the same rules, but does not check the folders above
 * `folder`, whose path must not come from the environment. The descriptor does not append. */
int private_file_open_in(const char *folder, const char *name, int access);

/* Opens the folder that contains `path`, by the same rules, and stores the last part of `path`
 * (possibly "") in `*name`: for files that open(2) cannot create, such as sockets. Returns an
 * O_PATH descriptor for the ...at() calls, or the errors of private_file_open(). */
int private_file_folder(const char *path, const char **name);

/* Returns whether the process is in a namespace in which the overflow user, 65534, stands for every
 * user that the namespace does not know. */
bool private_file_user_is_unknown(void);

/* Returns the reason for an `error` of private_file_open(): "is a symbolic link, which is not
 * followed". NULL: errno describes it. */
const char *private_file_problem(int error);

#endif
