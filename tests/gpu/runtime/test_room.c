/* What happens when memory is short: what is kept goes first. On a device of
 * the test's own. */
#include "short_memory.h"

/* --- memory is short ------------------------------------------------------ */

static void kept_things_make_room(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 6, 4), GPU_OK);
    assert_int_equal(kept(), 0);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(ram.trims, 1);
    gpu_release(&more);
    ram.total *= 2;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    gpu_release(&a);
    gpu_release(&b);
}

static void so_does_garbage(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    collector.garbage = matrix(100, 100);
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F32, 2, 100, 100), GPU_OK);
    gpu_release(&more);
    gpu_release(&a);
    gpu_release(&b);
}

static void nothing_makes_room(void **state)
{
    gpu_matrix a, b, more = {.storage = NULL};
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used + 1000;
    size_t live = gpu_device_live(fake);
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 50, 50), GPU_MEMORY);
    assert_non_null(strstr(gpu_message(), "out of memory on fake:0: 19.5 KiB"));
    assert_null(more.storage);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* Large sizes are compared with what is free before memory is asked for:
 * more may be promised than there is. */
static void large_matrices(void **state)
{
    gpu_matrix a = matrix(2, 2), large;
    gpu_keep_key key = {LEFT, gpu_view_of(&a)};
    size_t mib = 1 << 20;
    (void)state;
    ram.total = 100 * mib;
    ram.promises = 1;
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 22 << 20, 1), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&large);
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 26 << 20, 1),
                     GPU_MEMORY);
    assert_int_equal(ram.trims, 2);
    gpu_release(&a);
}

/* Every operation that creates its result finds room for it. */
static gpu_status operate(int which, const gpu_matrix *a, gpu_matrix *out)
{
    out->storage = NULL;
    switch (which) {
    case 0:
        return gpu_clone(a, GPU_F32, NULL, out);
    case 1:
        return gpu_scan(a, GPU_SCAN_SUM, 1, out);
    case 2:
        return gpu_sort(a, 1, 0, out, NULL);
    case 3:
        return gpu_gather(a, NULL, 0, NULL, 0, out);
    default:
        return gpu_inverse(a, out, NULL);
    }
}

static void operations_find_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), out;
    size_t total = ram.total;
    (void)state;
    for (int i = 0; i < SIDE; i++) /* not singular */
        assert_int_equal(gpu_set(&a, i, i, 100), GPU_OK);
    for (int i = 0; i < 5; i++) {
        multiply(&a, &a);
        assert_int_equal(kept(), 2 * PLANE);
        ram.total = ram.used;
        assert_int_equal(operate(i, &a, &out), GPU_OK);
        ram.total = total;
        gpu_release(&out);
    }
    gpu_release(&a);
}

/* Where nothing can be kept, scratch does. */
static void keeping_finds_no_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE),
               c = matrix(SIDE, SIDE);
    (void)state;
    ram.refusals = 2;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(keeper.made, 0);
    assert_int_equal(kept(), 0);
    ram.refusals = 1;
    assert_int_equal(product(&a, &b, 1, &c), GPU_OK);
    assert_int_equal(keeper.made, 1);
    assert_int_equal(kept(), PLANE);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* --- backends that ask for room ------------------------------------------- */

/* They get all but what the running product found or made. */
static void room_beside_a_product(void **state)
{
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_keep_key old = {LEFT, gpu_view_of(&a)}, new = {10, gpu_view_of(&b)};
    gpu_begin_product(fake);
    assert_non_null(gpu_recall(a.storage, &old));
    assert_non_null(gpu_keep(b.storage, &new, 8));
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_end_product(fake, GPU_OK);
    assert_int_equal(gpu_make_room(&a), 0); /* no device's handle */
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_release(&a);
    gpu_release(&b);
}

/* The plane of b is kept where those of others were, a's staying. */
static void keeping_makes_room(void **state)
{
    gpu_matrix others[2], a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    (void)state;
    start(&others[0], &others[1]);
    gpu_matrix c = matrix(SIDE, SIDE);
    ram.makes_room = 1;
    ram.total = ram.used + PLANE + 8;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.made, 2);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(others, 2);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

enum { SORT_BYTES = 200 };
static const gpu_backend *plain;

static gpu_status sort_with_scratch(void *handle, int axis, int descending,
                                    const gpu_view *from, const gpu_view *to,
                                    const gpu_view *order)
{
    void *scratch;
    if (fake_alloc(handle, SORT_BYTES, &scratch) != GPU_OK)
        return gpu_fail(GPU_MEMORY, "sort: no room");
    fake_free(handle, scratch, SORT_BYTES);
    return plain->sort(handle, axis, descending, from, to, order);
}

/* What the last product used goes like the rest: it has ended. */
static void other_operations_make_room(void **state)
{
    gpu_matrix a, b, out;
    gpu_backend sorter = *fake->backend;
    (void)state;
    plain = fake->backend;
    fake->backend = &sorter;
    sorter.sort = sort_with_scratch;
    start(&a, &b);
    ram.total = ram.used + gpu_bytes(&a) + 8;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_MEMORY);
    assert_int_equal(kept(), plane_bytes(&a) + plane_bytes(&b));
    ram.makes_room = 1;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&out);
    gpu_release(&a);
    gpu_release(&b);
    fake->backend = plain; /* before this function's own is gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(kept_things_make_room),      ON_FAKE(so_does_garbage),
        ON_FAKE(nothing_makes_room),         ON_FAKE(large_matrices),
        ON_FAKE(operations_find_room),       ON_FAKE(keeping_finds_no_room),
        ON_FAKE(room_beside_a_product),      ON_FAKE(keeping_makes_room),
        ON_FAKE(other_operations_make_room),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
