/* Tests reading the system's files about a process's surroundings, which each runtime writes in its
 * own way. */
#include "unit.h"

#include "encode/resource.h"
#include "fake_capture.h"
#include "files/system_files.h"

#include <pwd.h>
#include <unistd.h>

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void containers_by_control_group(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        /* version 1 */
        {"12:cpu:/\n11:memory:/docker/" A "\n1:name=systemd:/docker/" B "\n", A},
        {"4:memory:/system.slice/docker-" A ".scope\n", A},
        {"4:memory:/kubepods/besteffort/pod0f5c22f0-3d12-4b8a-9d1c-6f0a6a2bde11/" A "\n", A},
        {"4:memory:/kubepods.slice/kubepods-pod0f5c22f0_3d12.slice:cri-containerd:" A "\n", A},
        {"1:cpu:/ecs/55091c13-b8cf-4801-b527-f4601742204d/" A "\n", A},
        /* version 2 */
        {"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" A ".scope\n", A},
        {"0::/kubepods.slice/kubepods-pod1.slice/crio-" A ".scope/container\n", A},
        {"0::/machine.slice/libpod-" A ".scope/container", A},
        {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope\n", A},
        {"0::/../docker-" A ".scope\n", A},
        {"0::/system.slice/docker-" B ".scope/kubelet/kubepods/pod1/" A "\n",
         A}, /* one container in another */
        {"0::/\n1:cpu:/docker/" A, A},
        /* none */
        {"0::/\n", ""},
        {"", ""},
        {"0::/user.slice/session-1.scope\n", ""},
        {"0::/x/0" A "\n", ""},  /* 65 digits */
        {"0::/x/" A B "\n", ""}, /* 128 */
        {"0::/x/0123456789abcdef0123456789abcdef\n", ""},
        {"0::/x/0123456789abcdef0123456789abcdef\n0123456789abcdef0123456789abcdef", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[CONTAINER_ID_BYTES] = "before";
        assert_int_equal(container_of_cgroup(cases[i][0], id), *cases[i][1] != 0);
        assert_string_equal(id, cases[i][1]);
    }
}

#define MOUNT(root, point) "812 799 8:1 " root " " point " rw,relatime - ext4 /dev/sda1 rw\n"
/* Has the name of a layer, which has 64 digits, too. */
#define OVERLAY                                                                                    \
    "799 700 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/X,"   \
    "upperdir=/var/lib/containers/storage/overlay/" B "/diff\n"

static void containers_by_mounts(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {OVERLAY MOUNT("/var/lib/docker/containers/" A "/hostname", "/etc/hostname"), A},
        {MOUNT("/lib/docker/containers/" A "/resolv.conf", "/etc/resolv.conf"), A},
        {OVERLAY MOUNT("/containers/storage/overlay-containers/" A "/userdata/hosts", "/etc/hosts"),
         A},
        {OVERLAY MOUNT("/containers/overlay-containers/" A "/userdata/.containerenv",
                       "/run/.containerenv"),
         A},
        {OVERLAY, ""},
        {MOUNT("/var/lib/docker/containers/" A "/hostname", "/mnt"), ""},
        {MOUNT("/var/lib/docker/containers/" A "0/hostname", "/etc/hostname"), ""},
        {MOUNT("/var/lib/docker/volumes/" A "/hostname", "/etc/hostname"), ""},
        {MOUNT("/", "/"), ""},
        /* the file of a pod, or of its pause container */
        {MOUNT("/var/lib/kubelet/pods/1/etc-hosts", "/etc/hosts")
             MOUNT("/var/lib/docker/containers/" A "/hostname", "/etc/hostname"),
         ""},
        {MOUNT("/io.containerd.grpc.v1.cri/sandboxes/" A "/hostname", "/etc/hostname"), ""},
        {"812 799 8:1 /docker/containers/" A, ""},
        {"812", ""},
        {"\n\n \n", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[CONTAINER_ID_BYTES] = "before";
        assert_int_equal(container_of_mounts(cases[i][0], id), *cases[i][1] != 0);
        assert_string_equal(id, cases[i][1]);
    }
}

static void values_of_os_release(void **state) {
    (void)state;
    static const char text[] =
        "# VERSION_ID=0\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=12\nID='a\\b'\n"
        "PRETTY_NAME=\"a \\\"b\\\" \\$c\"\nEMPTY=\nBROKEN=\"x\nNAME_2=no\nLAST=1";
    static const char *const cases[][2] = {
        {"NAME", "Debian GNU/Linux"},  {"VERSION_ID", "12"}, {"ID", "a\\b"}, {"LAST", "1"},
        {"PRETTY_NAME", "a \"b\" $c"}, {"EMPTY", ""},        {"BROKEN", ""}, {"NONE", ""}};
    char value[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(os_release_value(text, cases[i][0], value, sizeof value),
                         *cases[i][1] != 0);
        assert_string_equal(value, cases[i][1]);
    }
    assert_true(os_release_value(text, "NAME", value, 5));
    assert_string_equal(value, "Debi");
}

static void names_of_users(void **state) {
    (void)state;
    static const char text[] = "root:x:0:0:root:/root:/bin/bash\nbroken\nno:x\nfoo:x:1x:1::/:\n"
                               ":x:7:7::/:\nlong:x:4294967296:0::/:\nbar:x:1000:0::/:\n\nend::33:";
    static const struct {
        unsigned user;
        const char *name;
    } cases[] = {{0, "root"}, {1000, "bar"}, {33, "end"}, {1, ""}, {7, ""}, {1001, ""}};
    char name[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(passwd_name(text, cases[i].user, name, sizeof name), *cases[i].name != 0);
        assert_string_equal(name, cases[i].name);
    }
    assert_false(passwd_name("", 0, name, sizeof name));
}

static void ids_of_machines(void **state) {
    (void)state;
    static const char sound[] = "0123456789abcdef0123456789abcdef";
    char id[33];
    assert_true(machine_id("0123456789abcdef0123456789abcdef\n", id));
    assert_string_equal(id, sound);
    assert_true(machine_id(sound, id));
    assert_false(machine_id("uninitialized\n", id));
    assert_string_equal(id, "");
    assert_false(machine_id("", id));
    assert_false(machine_id("0123456789abcdef0123456789abcdef0", id));
    assert_false(machine_id("0123456789ABCDEF0123456789ABCDEF", id));
}

static char *file_text(const char *path) {
    char *const text = calloc(1, 65536);
    FILE *const file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, 65535, file)] = 0;
        fclose(file);
    }
    return text;
}

/* Compares with libc, and the files of this machine. */
static void the_resource_has_them(void **state) {
    (void)state;
    static const char *const environment[] = {NULL};
    const struct capture_api api = fake_capture(environment);
    struct resource *const resource = resource_open(api.config, api.log, "");
    const struct passwd *const user = getpwuid(geteuid());
    char *const release = file_text("/etc/os-release");
    char value[256];
    assert_non_null(user);
    assert_string_equal(resource_find(resource, "process.owner"), user->pw_name);
    static const char *const keys[][2] = {{"NAME", "os.name"},
                                          {"VERSION_ID", "os.version"},
                                          {"PRETTY_NAME", "os.description"},
                                          {"BUILD_ID", "os.build_id"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (os_release_value(release, keys[i][0], value, sizeof value))
            assert_string_equal(resource_find(resource, keys[i][1]), value);
        else
            assert_null(resource_find(resource, keys[i][1]));
    }
    assert_string_equal(resource_find(resource, "os.type"), "linux");
    free(release);
    resource_close(resource);
}

/* Acts as a server whose workers are forked by root, and give root up. */
static void the_owner_is_the_one_after_setuid(void **state) {
    (void)state;
    enum { OTHER = 65534, WITHOUT_A_NAME = 1999999999 };
    static const char *const environment[] = {NULL};
    static const uid_t users[] = {0, OTHER, WITHOUT_A_NAME, 0};
    if (geteuid() != 0)
        skip();
    const struct capture_api api = fake_capture(environment);
    struct resource *const resource = resource_open(api.config, api.log, "");
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        char number[16];
        const struct passwd *const user = getpwuid(users[i]);
        snprintf(number, sizeof number, "%u", users[i]);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(seteuid(users[i]), 0);
        resource_update(resource);
        assert_string_equal(resource_find(resource, "process.owner"),
                            user ? user->pw_name : number);
    }
    assert_int_equal(seteuid(0), 0);
    resource_close(resource);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_by_control_group),
        cmocka_unit_test(containers_by_mounts),
        cmocka_unit_test(values_of_os_release),
        cmocka_unit_test(names_of_users),
        cmocka_unit_test(ids_of_machines),
        cmocka_unit_test(the_resource_has_them),
        cmocka_unit_test(the_owner_is_the_one_after_setuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
