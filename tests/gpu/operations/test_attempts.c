/* What happens when a product's kernel fails, or lacks memory: another attempt
 * or another kernel follows. On a device of the test's own. */
#include "short_memory.h"

/* --- kernels that fail ---------------------------------------------------- */

static void a_second_attempt(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    keeper.failures = 1;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.made, 4);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
    put_away();
}

/* The scratch fits where the others' planes were. */
static void scratch_finds_room(void **state)
{
    (void)state;
    lay_out();
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    put_away();
}

/* At once, where the backend asks for room: there is no lost attempt. */
static void scratch_makes_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    ram.makes_room = 1;
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(collector.calls, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* A product that lacks more than there is takes nothing from itself. */
static void scratch_makes_too_little_room(void **state)
{
    (void)state;
    lay_out();
    ram.makes_room = 1;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    keeper.scratch = ram.total;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    keeper.scratch = 0;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

/* The next attempt finds the room that the lost one lacked. */
static void an_added_product_finds_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* --- what auto does when memory stays short ------------------------------- */

/* After two attempts another kernel runs, and is what the trace names. */
static void another_kernel(void **state)
{
    gpu_product how = {.alpha = 1};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    for (int beta = 0; beta < 2; beta++) {
        how.beta = beta;
        how.kernel = beta ? "auto" : NULL;
        assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
        assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
        assert_product(&scene.a, &scene.b, &scene.c);
        assert_int_equal(keeper.calls, 2);
        assert_int_equal(keeper.others, 1);
        assert_string_equal(traced, "small");
    }
    keeper.scratch = 0;
    assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
    assert_string_equal(traced, "keeper");
    assert_int_equal(keeper.others, 0);
    put_away();
}

/* Who names a kernel gets that or none. */
static void no_other_kernel(void **state)
{
    gpu_product how = {.alpha = 1, .kernel = "keeper"};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    assert_int_equal(traced_product(&how, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.others, 0);
    assert_null(traced);
    put_away();
}

static void two_lost_attempts(void **state)
{
    gpu_matrix none = {.storage = NULL};
    (void)state;
    lay_out();
    size_t live = gpu_device_live(fake);
    keeper.failures = 2;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &none), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_null(none.storage);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

static void expect_failure(gpu_status failure)
{
    keeper.failures = 1;
    keeper.failure = failure;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), failure);
    assert_string_equal(gpu_message(), "matmul: kernel keeper was told to");
    assert_int_equal(keeper.calls, 1);
}

/* Other failures are final. What was kept before the kernel failed, and never
 * filled, is not found again; what earlier products filled is. */
static void failures_keep_nothing(void **state)
{
    static const gpu_status all[] = {GPU_UNSUPPORTED, GPU_ARGUMENT, GPU_SHAPE,
                                     GPU_INTERNAL,    GPU_LOST,     GPU_RANGE};
    (void)state;
    lay_out();
    size_t others = kept();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expect_failure(all[i]);
        assert_int_equal(kept(), others);
        EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
        expect_failure(all[i]);
        EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
        gpu_forget(&scene.a);
        expect_failure(all[i]);
        assert_int_equal(kept(), others + plane_bytes(&scene.b));
        EXPECT_PRODUCT(&scene.a, &scene.b, 1, 1);
        gpu_forget(&scene.a);
        gpu_forget(&scene.b);
    }
    put_away();
}

/* --- failures of other sorts ---------------------------------------------- */

/* With c among its operands the product goes to memory of its own, and c
 * stays as it was. */
static void failures_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE), before;
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    for (int beta = 0; beta < 2; beta++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        assert_int_equal(product(&a, &b, beta, &a), GPU_INTERNAL);
        assert_int_equal(kept(), 0);
        assert_memory_equal(a.storage->data, before.storage->data,
                            gpu_bytes(&a));
        EXPECT_PRODUCT(&a, &b, 0, 2);
        gpu_forget(&a);
        gpu_forget(&b);
    }
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&before);
}

/* a = a a + a as often as it takes: each attempt begins with a's old values,
 * and a has them still where two are lost. */
static void a_second_attempt_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), expected, before;
    gpu_status final[] = {GPU_OK, GPU_OK, GPU_MEMORY};
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &expected), GPU_OK);
    assert_int_equal(product(&before, &before, 1, &expected), GPU_OK);
    for (int failures = 2; failures >= 0; failures--) {
        keeper.failures = failures;
        keeper.failure = GPU_MEMORY;
        keeper.spoils = 1;
        assert_int_equal(product(&a, &a, 1, &a), final[failures]);
        assert_int_equal(keeper.calls, failures ? 2 : 1);
        keeper.failures = 0;
        assert_memory_equal(a.storage->data,
                            (failures == 2 ? before : expected).storage->data,
                            gpu_bytes(&a));
        assert_int_equal(gpu_copy(&before, &a), GPU_OK);
    }
    keeper.failures = 2;
    assert_int_equal(product(&a, &a, 0, &a), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    gpu_release(&a);
    gpu_release(&before);
    gpu_release(&expected);
}

static void failures_of_copies(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix_of(GPU_F64, 2, SIDE, SIDE);
    gpu_matrix c = {.storage = NULL};
    (void)state;
    EXPECT_PRODUCT(&a, &a, 0, 2);
    for (int refusals = 0; refusals < 12; refusals++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        ram.refusals = refusals;
        assert_int_not_equal(product(&a, &b, 0, &c), GPU_OK);
        assert_null(c.storage);
        ram.refusals = keeper.failures = 0;
        multiply(&a, &b);
        multiply(&a, &a);
    }
    gpu_release(&a);
    gpu_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(a_second_attempt),
        ON_FAKE(scratch_finds_room),
        ON_FAKE(scratch_makes_room),
        ON_FAKE(scratch_makes_too_little_room),
        ON_FAKE(an_added_product_finds_room),
        ON_FAKE(another_kernel),
        ON_FAKE(no_other_kernel),
        ON_FAKE(two_lost_attempts),
        ON_FAKE(failures_keep_nothing),
        ON_FAKE(failures_beside_c),
        ON_FAKE(a_second_attempt_beside_c),
        ON_FAKE(failures_of_copies),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
