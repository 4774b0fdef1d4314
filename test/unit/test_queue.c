/* Tests the exports that wait to be sent: compression can be undone, and the queue is bounded. */
#include "unit.h"

#include "encode/compress.h"
#include "export/queue.h"

#include <zlib.h>
#include <zstd.h>

static void compression_can_be_undone(void **state) {
    (void)state;
    enum { SIZE = 100000 };
    static uint8_t back[SIZE];
    for (int method = COMPRESSION_NONE; method <= COMPRESSION_ZSTD; method++) {
        size_t size = SIZE;
        uint8_t *bytes = malloc(SIZE);
        for (int i = 0; i < SIZE; i++)
            bytes[i] = (uint8_t)(i / 7);
        const char *const encoding = compress_in_place((enum compression)method, &bytes, &size);
        if (method == COMPRESSION_NONE) {
            assert_null(encoding);
            assert_int_equal(size, SIZE);
        } else if (method == COMPRESSION_GZIP) {
            z_stream stream = {
                .next_in = bytes, .avail_in = (uInt)size, .next_out = back, .avail_out = SIZE};
            assert_string_equal(encoding, "gzip");
            assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
            assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
            inflateEnd(&stream);
            assert_int_equal(stream.total_out, SIZE);
        } else {
            assert_string_equal(encoding, "zstd");
            assert_int_equal(ZSTD_decompress(back, SIZE, bytes, size), SIZE);
        }
        if (method != COMPRESSION_NONE)
            for (int i = 0; i < SIZE; i++)
                assert_int_equal(back[i], (uint8_t)(i / 7));
        free(bytes);
    }
}

/* Unpacks damaged data: a receiver may send anything. */
static void damaged_or_too_long_data_is_not_unpacked(void **state) {
    (void)state;
    enum { SIZE = 1000 };
    static const uint8_t no_content[] = {0x28, 0xb5, 0x2f, 0xfd}; /* zstd's magic number */
    uint8_t back[SIZE];
    for (int method = COMPRESSION_GZIP; method <= COMPRESSION_ZSTD; method++) {
        size_t size = SIZE;
        uint8_t *bytes = calloc(1, SIZE);
        assert_non_null(compress_in_place((enum compression)method, &bytes, &size));
        assert_int_equal(decompress(bytes, size, back, SIZE), SIZE);
        assert_int_equal(decompress(bytes, size, back, SIZE - 1), 0);
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(decompress(bytes, cut, back, SIZE), 0);
        free(bytes);
    }
    assert_int_equal(decompress(no_content, sizeof no_content, back, SIZE), 0);
    assert_int_equal(decompress((const uint8_t *)"none of them", 12, back, SIZE), 0);
}

static void a_full_queue_loses_the_oldest(void **state) {
    (void)state;
    struct queue queue = {.max_bytes = 100};
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 1), 0);
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 2), 0);
    assert_int_equal(queue_push(&queue, malloc(40), 40, NULL, 4), 1);
    assert_int_equal(queue_push(&queue, malloc(101), 101, NULL, 8), 8);
    struct export *const oldest = queue_pop(&queue);
    assert_int_equal(oldest->samples, 2);
    assert_int_equal(queue_put_back(&queue, oldest), 0);
    assert_int_equal(queue_push(&queue, malloc(90), 90, NULL, 16), 6);
    assert_int_equal(queue.bytes, 90);
    assert_int_equal(queue_clear(&queue), 16);
    assert_null(queue_pop(&queue));
    assert_int_equal(queue.bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compression_can_be_undone),
        cmocka_unit_test(damaged_or_too_long_data_is_not_unpacked),
        cmocka_unit_test(a_full_queue_loses_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
