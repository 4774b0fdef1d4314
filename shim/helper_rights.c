#include "helper_rights.h"

#include "helper.h"
#include "seccomp_state.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

static const uint64_t ids = BIT(CAP_SETUID) | BIT(CAP_SETGID);
static const uint64_t needed = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_IPC_LOCK);

struct capabilities {
    uint64_t effective;
    uint64_t permitted;
};

/* `thread`: 0 for the calling one. */
static bool read_capabilities(uint32_t thread, struct capabilities *capabilities) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, (int)thread};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    capabilities->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    capabilities->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    return true;
}

static bool write_capabilities(const struct capabilities *capabilities) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
        {(uint32_t)capabilities->effective, (uint32_t)capabilities->permitted, 0},
        {(uint32_t)(capabilities->effective >> 32), (uint32_t)(capabilities->permitted >> 32), 0}};
    return syscall(SYS_capset, &header, data) == 0;
}

void helper_rights_drop(void) {
    struct capabilities own;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (seccomp_is_filtered() || !read_capabilities(0, &own) || !(own.permitted & ~needed))
        return;
    own.effective &= needed;
    own.permitted &= needed;
    (void)write_capabilities(&own);
}

/* --- compared --- */

/* false: there is no helper, or it cannot be asked about. */
static bool read_both(struct capabilities *own, struct capabilities *helpers) {
    const uint32_t thread = atomic_load(&helper.tid);
    return atomic_load(&helper.state) != HELPER_NONE && thread && helper_is_of_this_process() &&
           read_capabilities(0, own) && read_capabilities(thread, helpers);
}

bool helper_rights_differ(void) {
    struct capabilities own;
    struct capabilities helpers;
    return read_both(&own, &helpers) && ((own.effective ^ helpers.effective) & ids);
}

bool helper_rights_exceed(void) {
    struct capabilities own;
    struct capabilities helpers;
    return read_both(&own, &helpers) && (helpers.permitted & ~own.permitted);
}
