/* The CPU as a device: the table, its memory and the blocks it keeps, time,
 * peak. */
#include <malloc.h>
#include "cpu_testing.h"

enum { MIB = 1 << 20 };

static void table_is_complete(void **state)
{
    (void)state;
    const gpu_host wrong = {.abi = GPU_BACKEND_ABI + 1,
                            .fail = remember,
                            .interrupted = &interrupted};
    char why[80];
    assert_null(gpu_cpu_backend(&wrong));
    assert_int_equal(cpu->abi, GPU_BACKEND_ABI);
    assert_string_equal(cpu->name, "cpu");
    assert_int_equal(cpu->probe(why, sizeof why), 1);
    assert_int_equal(cpu->capability(device), 0);
    assert_int_equal(cpu->is_lost(device), 0);
    assert_non_null(strstr(cpu->describe(device), "core"));
    void *other;
    assert_int_equal(cpu->open(1, &other), GPU_DEVICE);
    assert_string_equal(message, "there is no cpu:1");
}

static void every_kernel_is_described(void **state)
{
    (void)state;
    const gpu_kernel *const *list;
    int n = cpu->kernels(&list);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const gpu_kernel *k = list[i];
        assert_non_null(k->idea);
        assert_non_null(k->needs);
        assert_string_equal(k->precision, "f32");
        assert_int_equal(k->dtypes, 3);
        assert_true((k->matmul == NULL) != (k->dot == NULL));
        for (int64_t size = 1; size < 1 << 20; size *= 2) {
            double f32 = k->bound(GPU_F32, size), f64 = k->bound(GPU_F64, size);
            assert_true(f64 > 0 && f32 >= f64 && f32 < 1);
        }
    }
}

static void alignment(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < (size_t)64 * MIB; bytes = bytes * 3 + 1) {
        void *p;
        assert_int_equal(cpu->alloc(device, bytes, &p), GPU_OK);
        if (bytes >= 4096)
            assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, bytes);
        cpu->free(device, p, bytes);
    }
    cpu->trim(device);
}

/* A freed large block is what the next request of about its size gets. */
static void blocks_are_kept(void **state)
{
    (void)state;
    void *a, *b, *c;
    size_t bytes = 40 * (size_t)MIB;
    cpu->trim(device);
    assert_int_equal(cpu->alloc(device, bytes, &a), GPU_OK);
    cpu->free(device, a, bytes);
    assert_int_equal(cpu->alloc(device, bytes - 1000, &b), GPU_OK);
    assert_ptr_equal(a, b);
    assert_int_equal(cpu->alloc(device, bytes, &c), GPU_OK);
    assert_ptr_not_equal(b, c);
    cpu->free(device, b, bytes - 1000);
    cpu->free(device, c, bytes);
    cpu->trim(device);
}

/* Memory that was used before is zero, whatever its size, and nothing beside it
 * is. */
static void clear_gives_zeros(void **state)
{
    static const size_t sizes[] = {1,
                                   63,
                                   4096,
                                   70001,
                                   ((size_t)1 << 20) - 1,
                                   (size_t)1 << 20,
                                   ((size_t)3 << 20) + 5};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        void *beside, *used, *again;
        assert_int_equal(cpu->alloc(device, bytes, &beside), GPU_OK);
        assert_int_equal(cpu->alloc(device, bytes, &used), GPU_OK);
        memset(beside, 1, bytes);
        memset(used, 1, bytes);
        cpu->free(device, used, bytes);
        assert_int_equal(cpu->alloc(device, bytes, &again), GPU_OK);
        assert_int_equal(cpu->clear(device, again, bytes), GPU_OK);
        for (size_t k = 0; k < bytes; k++) {
            assert_int_equal(((char *)again)[k], 0);
            assert_int_equal(((char *)beside)[k], 1);
        }
        cpu->free(device, again, bytes);
        cpu->free(device, beside, bytes);
    }
}

/* What the cache holds and what malloc has in maps must both come back. */
static void nothing_leaks(void **state)
{
    (void)state;
    cpu->trim(device);
    struct mallinfo2 before = mallinfo2();
    for (int round = 0; round < 200; round++) {
        void *p[8];
        size_t bytes[8];
        for (int i = 0; i < 8; i++) {
            bytes[i] = (size_t)next_below(12 * MIB);
            assert_int_equal(cpu->alloc(device, bytes[i], &p[i]), GPU_OK);
        }
        for (int i = 0; i < 8; i++)
            cpu->free(device, p[i], bytes[i]);
    }
    cpu->trim(device);
    struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd <=
                before.uordblks + before.hblkhd + 65536);
}

static void too_much(void **state)
{
    (void)state;
    void *p;
    size_t available, total;
    assert_int_equal(cpu->memory(device, &available, &total), GPU_OK);
    assert_true(available > 0 && available <= total);
    assert_int_equal(cpu->alloc(device, total * 2, &p), GPU_MEMORY);
    assert_int_equal(cpu->alloc(device, SIZE_MAX, &p), GPU_MEMORY);
    assert_int_equal(cpu->alloc(device, SIZE_MAX / 3, &p), GPU_MEMORY);
}

static void bytes_go_to_and_fro(void **state)
{
    (void)state;
    void *p;
    char text[] = "matrices", back[sizeof text];
    assert_int_equal(cpu->alloc(device, sizeof text, &p), GPU_OK);
    assert_int_equal(cpu->upload(device, p, text, sizeof text), GPU_OK);
    assert_int_equal(cpu->download(device, back, p, sizeof text), GPU_OK);
    assert_string_equal(back, text);
    cpu->free(device, p, sizeof text);
}

static void time_and_peak(void **state)
{
    (void)state;
    gpu_peak peak;
    double seconds;
    assert_int_equal(cpu->timer_start(device), GPU_OK);
    assert_int_equal(cpu->peak(device, &peak), GPU_OK);
    assert_int_equal(cpu->sync(device), GPU_OK);
    assert_int_equal(cpu->timer_stop(device, &seconds), GPU_OK);
    assert_true(seconds > 0 && seconds < 30);
    assert_true(peak.f32_flops > 1e8 && peak.f32_flops < 1e16);
    assert_true(peak.f64_flops > 1e8 && peak.f64_flops < 1e16);
    assert_true(peak.bytes > 1e8 && peak.bytes < 1e14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),
        cmocka_unit_test(every_kernel_is_described),
        cmocka_unit_test(alignment),
        cmocka_unit_test(blocks_are_kept),
        cmocka_unit_test(clear_gives_zeros),
        cmocka_unit_test(nothing_leaks),
        cmocka_unit_test(too_much),
        cmocka_unit_test(bytes_go_to_and_fro),
        cmocka_unit_test(time_and_peak),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
