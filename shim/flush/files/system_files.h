/* Parses some of the system's text files: pure functions over their text.
 *
 * The files may belong to others, with any content: a malformed one counts as missing. A result is
 * written to the caller's buffer and cut to its size; it is "" if there is none (then false is
 * returned). Context: flush.
 */
#ifndef OTELPROF_SYSTEM_FILES_H
#define OTELPROF_SYSTEM_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_ID_BYTES = 65 };

/* Finds the id of the innermost container in the path of a control group in /proc/PID/cgroup, as
 * docker, containerd, cri-o, podman and their systemd scopes write it: exactly 64 hexadecimal
 * digits. It is missing if the container has a cgroup namespace of its own. */
bool container_of_cgroup(const char *text, char id[static CONTAINER_ID_BYTES]);

/* Finds the id in /proc/PID/mountinfo: docker and podman mount /etc/hostname and the like from a
 * folder that is named after the container. In a pod of Kubernetes that folder belongs to the pod,
 * or to a container that only holds its network: then there is no result. */
bool container_of_mounts(const char *text, char id[static CONTAINER_ID_BYTES]);

/* Finds the value of `key` in os-release(5), without quotes. */
bool os_release_value(const char *text, const char *key, char *value, size_t size);

/* Finds the name of user number `user` in passwd(5). */
bool passwd_name(const char *text, unsigned user, char *name, size_t size);

/* Finds the machine id in the text of machine-id(5): 32 hexadecimal digits. "uninitialized" is no
 * id. */
bool machine_id(const char *text, char id[static 33]);

#endif
