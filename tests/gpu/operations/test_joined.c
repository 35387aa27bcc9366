/* Values that wait for the same operands, on a fake device that works several
 * out by one program: it is asked once, and where it refuses, lacks memory or
 * fails, each is worked out alone, or goes on waiting. */
#include "fake_device.h"
#include "op_list.h"

enum { ROWS = 512, COLS = 256 };

static struct {
    int asked, refuses;
    int runs, joined; /* maps, and those of several results */
    int fails;        /* so many of the next joined ones */
    gpu_matrix x, y, z;
} seen;

static int joins(void *handle, const gpu_program *p, const gpu_view *in,
                 const gpu_view *out)
{
    (void)handle;
    (void)in;
    assert_true(p->extras > 0);
    assert_int_equal(out[0].rows, ROWS);
    seen.asked++;
    return !seen.refuses;
}

/* Of several results each by the program up to it. */
static gpu_status map_all(void *handle, const gpu_program *p,
                          const gpu_view *in, const gpu_view *out)
{
    gpu_program one = *p;
    one.extras = 0;
    seen.runs++;
    seen.joined += p->extras > 0;
    if (p->extras > 0 && seen.fails > 0) {
        seen.fails--;
        return gpu_fail(GPU_INTERRUPTED, "add: interrupted");
    }
    gpu_status status = gpu_cpu_map(handle, &one, in, out);
    for (int e = 0; e < p->extras && status == GPU_OK; e++) {
        one.length = (uint8_t)(p->extra[e] - p->inputs - p->constants + 1);
        status = gpu_cpu_map(handle, &one, in, &out[1 + e]);
    }
    return status;
}

static gpu_matrix with_number(gpu_op op, const gpu_matrix *x, double number)
{
    gpu_matrix out = {.storage = NULL};
    gpu_program p;
    gpu_program_start(&p, 1);
    int c = gpu_program_constant(&p, number);
    gpu_program_add(&p, op, 0, c, 0);
    assert_int_equal(gpu_map(gpu_op_name(op), &p, &x, &out), GPU_OK);
    return out;
}

/* y = x + 1 and z = 2 x wait. */
static int begin(void **state)
{
    static gpu_backend table;
    if (open_fake(state) != 0)
        return 1;
    memset(&seen, 0, sizeof seen);
    table = *fake->backend;
    table.map = map_all;
    table.joins = joins;
    fake->backend = &table;
    gpu_set_fusion(GPU_FUSION_ON);
    if (gpu_create(&seen.x, fake, GPU_F32, 2, ROWS, COLS) != GPU_OK ||
        gpu_fill(&seen.x, 3) != GPU_OK || gpu_set(&seen.x, 0, 1, 5) != GPU_OK)
        return 1;
    seen.y = with_number(GPU_OP_add, &seen.x, 1);
    seen.z = with_number(GPU_OP_mul, &seen.x, 2);
    seen.runs = 0;
    return !gpu_is_pending(&seen.y) || !gpu_is_pending(&seen.z);
}

static int end(void **state)
{
    gpu_release(&seen.x);
    gpu_release(&seen.y);
    gpu_release(&seen.z);
    return close_fake(state);
}

static void check_values(void)
{
    double found;
    assert_false(gpu_is_pending(&seen.y));
    assert_false(gpu_is_pending(&seen.z));
    for (int j = 0; j < 3; j++) {
        double x = j == 1 ? 5 : 3;
        assert_int_equal(gpu_get(&seen.y, 0, j, &found), GPU_OK);
        assert_true(found == x + 1);
        assert_int_equal(gpu_get(&seen.z, 0, j, &found), GPU_OK);
        assert_true(found == 2 * x);
    }
}

static void one_program_gives_both(void **state)
{
    (void)state;
    assert_int_equal(gpu_settle_all(), GPU_OK);
    assert_int_equal(seen.asked, 1);
    assert_int_equal(seen.runs, 1);
    assert_int_equal(seen.joined, 1);
    check_values();
}

static void one_that_is_needed_comes_alone(void **state)
{
    (void)state;
    assert_int_equal(gpu_settle(&seen.y), GPU_OK);
    assert_int_equal(seen.asked, 0);
    assert_true(gpu_is_pending(&seen.z));
    assert_int_equal(gpu_settle(&seen.z), GPU_OK);
    check_values();
}

static void a_refusal_leaves_each_alone(void **state)
{
    (void)state;
    seen.refuses = 1;
    assert_int_equal(gpu_settle_all(), GPU_OK);
    assert_int_equal(seen.runs, 2);
    assert_int_equal(seen.joined, 0);
    check_values();
}

/* The other is the CPU's then, as all that does not fit. */
static void without_memory_for_both_each_comes_alone(void **state)
{
    (void)state;
    ram.total = ram.used + ROWS * COLS * sizeof(float) + (16 << 10);
    assert_int_equal(gpu_settle_all(), GPU_OK);
    assert_int_equal(seen.joined, 0);
    check_values();
}

static void what_fails_goes_on_waiting(void **state)
{
    (void)state;
    seen.fails = 1;
    assert_int_equal(gpu_settle_all(), GPU_INTERRUPTED);
    assert_true(gpu_is_pending(&seen.y));
    assert_true(gpu_is_pending(&seen.z));
    assert_int_equal(gpu_settle_all(), GPU_OK);
    assert_int_equal(seen.joined, 2);
    check_values();
}

/* A value that is held is a result, too, and read no more by what needs it. */
static void a_part_that_is_held_is_a_result(void **state)
{
    double found;
    (void)state;
    gpu_matrix more = with_number(GPU_OP_sub, &seen.y, 10);
    assert_int_equal(gpu_settle_all(), GPU_OK);
    assert_int_equal(seen.runs, 1);
    check_values();
    assert_int_equal(gpu_get(&more, 0, 1, &found), GPU_OK);
    assert_true(found == -4);
    gpu_release(&more);
}

int main(void)
{
#define TEST_OF(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST_OF(one_program_gives_both),
        TEST_OF(one_that_is_needed_comes_alone),
        TEST_OF(a_refusal_leaves_each_alone),
        TEST_OF(without_memory_for_both_each_comes_alone),
        TEST_OF(what_fails_goes_on_waiting),
        TEST_OF(a_part_that_is_held_is_a_result),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
