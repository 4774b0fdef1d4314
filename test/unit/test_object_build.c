/* Tests that two builds of an object are distinguished, by invented objects in this memory. */
#include "unit.h"

#include "object_build.h"

#include <string.h>

/* Holds an object of two headers: all of it, and its notes with a build id. */
struct image {
    ElfW(Phdr) headers[2];
    struct {
        Elf64_Nhdr head;
        char owner[4];
        uint8_t id[20];
    } notes;
};

static struct image image_of(uint8_t first_byte_of_id) {
    struct image image = {
        .headers = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = sizeof(struct image)},
                    {.p_type = PT_NOTE,
                     .p_flags = PF_R,
                     .p_vaddr = offsetof(struct image, notes),
                     .p_memsz = sizeof image.notes}},
        .notes = {.head = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
                  .owner = "GNU"}};
    image.notes.id[0] = first_byte_of_id;
    return image;
}

static uint64_t build_of(const struct image *image) {
    const struct dl_phdr_info object = {
        .dlpi_addr = (uintptr_t)image, .dlpi_phdr = image->headers, .dlpi_phnum = 2};
    return object_build(&object);
}

static void builds_are_distinguished_by_their_id(void **state) {
    (void)state;
    const struct image one = image_of(1);
    const struct image same = image_of(1);
    const struct image other = image_of(2);
    assert_true(build_of(&one) == build_of(&same));
    assert_true(build_of(&one) != build_of(&other));
}

static void builds_without_an_id_are_distinguished_by_their_headers(void **state) {
    (void)state;
    struct image one = image_of(1);
    struct image other = image_of(1);
    one.headers[1].p_type = other.headers[1].p_type = PT_NULL;
    assert_true(build_of(&one) == build_of(&other));
    other.headers[0].p_memsz++;
    assert_true(build_of(&one) != build_of(&other));
}

static void notes_outside_of_the_object_are_not_read(void **state) {
    (void)state;
    struct image image = image_of(1);
    image.headers[1].p_vaddr = sizeof image;
    image.headers[1].p_memsz = 1 << 20;
    const uint64_t before = build_of(&image);
    image.notes.id[0] = 2;
    assert_true(build_of(&image) == before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_are_distinguished_by_their_id),
        cmocka_unit_test(builds_without_an_id_are_distinguished_by_their_headers),
        cmocka_unit_test(notes_outside_of_the_object_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
