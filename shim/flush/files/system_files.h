/* What some of the system's text files say: pure functions over their text.
 *
 * The files are others' and may say anything: what has not the form that it should have is as if it
 * was not there. An answer is written to a buffer of the caller's, cut to it, and "" if there is
 * none (then false is returned). Context: flush.
 */
#ifndef OTELPROF_SYSTEM_FILES_H
#define OTELPROF_SYSTEM_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_ID_BYTES = 65 };

/* /proc/PID/cgroup: the id of the innermost container in the path of a control group, as docker,
 * containerd, cri-o, podman and systemd's scopes of all of these write it: 64 hexadecimal digits,
 * no more. Not there where the container has a cgroup namespace of its own. */
bool container_of_cgroup(const char *text, char id[static CONTAINER_ID_BYTES]);

/* /proc/PID/mountinfo: docker and podman mount /etc/hostname and the like from a folder that is
 * named after the container. In a pod of Kubernetes that folder is the pod's, or of a container
 * that only holds its network: there is no answer then. */
bool container_of_mounts(const char *text, char id[static CONTAINER_ID_BYTES]);

/* os-release(5): the value of `key`, without quotes. */
bool os_release_value(const char *text, const char *key, char *value, size_t size);

/* passwd(5): the name of user number `user`. */
bool passwd_name(const char *text, unsigned user, char *name, size_t size);

/* machine-id(5): 32 hexadecimal digits. "uninitialized" is none. */
bool machine_id(const char *text, char id[static 33]);

#endif
