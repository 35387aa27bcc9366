/* What an interrupt leaves: outputs that are incomplete until they are written
 * whole, nothing else; products and factorizations that stop between panels;
 * and what is told about how far work is. */
#include "fake_device.h"
#include "op_list.h"

enum { SIDE = 600 };

static gpu_matrix filled(gpu_device *d, int64_t rows, int64_t cols,
                         double value)
{
    gpu_matrix m;
    assert_int_equal(gpu_create(&m, d, GPU_F32, 2, rows, cols), GPU_OK);
    assert_int_equal(gpu_fill(&m, value), GPU_OK);
    return m;
}

static gpu_matrix random_matrix(gpu_device *d, gpu_dtype t, int64_t n)
{
    gpu_matrix m;
    gpu_random r = {GPU_UNIFORM, 1, 2, -1, 1, 0};
    assert_int_equal(gpu_create(&m, d, t, 2, n, n), GPU_OK);
    assert_int_equal(gpu_fill_random(&m, &r), GPU_OK);
    return m;
}

static gpu_status multiply_into(gpu_matrix *a, gpu_matrix *c, double beta)
{
    gpu_product how = {.alpha = 1, .beta = beta};
    return gpu_matmul(a, a, &how, c);
}

#define INTERRUPTED(call)                                  \
    do {                                                   \
        gpu_interrupt();                                   \
        assert_int_equal(call, GPU_INTERRUPTED);           \
        assert_string_equal(gpu_message(), "interrupted"); \
        gpu_clear_interrupt();                             \
    } while (0)

/* --- outputs on the CPU --------------------------------------------------- */

static gpu_device *the_cpu(void)
{
    gpu_device *d;
    assert_int_equal(gpu_open("cpu", &d), GPU_OK);
    return d;
}

static int shut_down(void **state)
{
    (void)state;
    gpu_shutdown();
    return 0;
}

static void an_output_is_left_incomplete(void **state)
{
    gpu_matrix a = filled(the_cpu(), SIDE, SIDE, 1), view, none = {0};
    gpu_matrix c = filled(the_cpu(), SIDE, SIDE, 2);
    double x;
    (void)state;
    gpu_view_row(&c, 3, &view);
    INTERRUPTED(multiply_into(&a, &c, 0));
    assert_true(gpu_is_incomplete(&c));
    assert_true(gpu_is_incomplete(&view));
    assert_false(gpu_is_incomplete(&a));
    assert_int_equal(gpu_get(&c, 0, 0, &x), GPU_INCOMPLETE);
    assert_int_equal(gpu_get(&view, 0, 0, &x), GPU_INCOMPLETE);
    assert_string_equal(gpu_message(),
                        "read: the matrix is incomplete: the operation that "
                        "wrote it was interrupted");
    assert_int_equal(multiply_into(&c, &none, 0), GPU_INCOMPLETE);
    assert_null(none.storage);
    assert_int_equal(multiply_into(&a, &c, 1), GPU_INCOMPLETE);
    gpu_release(&view);
    gpu_release(&c);
    gpu_release(&a);
}

static void writing_all_of_it_makes_it_whole(void **state)
{
    gpu_matrix a = filled(the_cpu(), SIDE, SIDE, 1), part;
    gpu_matrix c = filled(the_cpu(), SIDE, SIDE, 2);
    float *host = calloc(SIDE * SIDE, sizeof *host);
    double x;
    (void)state;
    gpu_view_row(&c, 3, &part);
    for (int way = 0; way < 4; way++) {
        INTERRUPTED(multiply_into(&a, &c, 0));
        assert_int_equal(gpu_fill(&part, 1), GPU_OK);
        assert_int_equal(gpu_set(&c, 0, 0, 7), GPU_OK);
        assert_int_equal(gpu_get(&c, 0, 0, &x), GPU_INCOMPLETE);
        if (way == 0)
            assert_int_equal(multiply_into(&a, &c, 0), GPU_OK);
        else if (way == 1)
            assert_int_equal(gpu_fill(&c, SIDE), GPU_OK);
        else if (way == 2)
            assert_int_equal(gpu_copy(&a, &c), GPU_OK);
        else
            assert_int_equal(gpu_upload(&c, host), GPU_OK);
        assert_int_equal(gpu_get(&c, 3, 5, &x), GPU_OK);
        assert_true(x == (way < 2 ? SIDE : way == 2));
    }
    free(host);
    gpu_release(&part);
    gpu_release(&c);
    gpu_release(&a);
}

static void other_ways_to_write(void **state)
{
    gpu_matrix a = filled(the_cpu(), SIDE, SIDE, 1);
    gpu_matrix c = filled(the_cpu(), SIDE, SIDE, 2), small;
    gpu_random r = {GPU_UNIFORM, 1, 2, 0, 1, 0};
    int64_t rows[SIDE];
    (void)state;
    for (int i = 0; i < SIDE; i++)
        rows[i] = SIDE - 1 - i;
    INTERRUPTED(gpu_fill_random(&c, &r));
    assert_true(gpu_is_incomplete(&c));
    assert_int_equal(gpu_fill_random(&c, &r), GPU_OK);
    assert_false(gpu_is_incomplete(&c));
    INTERRUPTED(gpu_scatter("put", &a, rows, SIDE, rows, SIDE, &c));
    assert_true(gpu_is_incomplete(&c));
    assert_int_equal(gpu_fill(&c, 0), GPU_OK);
    INTERRUPTED(gpu_gather(&a, rows, SIDE, NULL, 0, &small));
    assert_false(gpu_is_incomplete(&c));
    assert_int_equal(gpu_device_live(the_cpu()),
                     gpu_storage_bytes(&a) + gpu_storage_bytes(&c));
    gpu_release(&c);
    gpu_release(&a);
}

/* --- panels --------------------------------------------------------------- */

static struct {
    int64_t rows, cols;
    int calls, stop_after; /* panels; 0: never */
} cut;

static void cut_panels(void *handle, const gpu_kernel *k, const gpu_gemm *p,
                       int64_t *rows, int64_t *cols)
{
    (void)handle, (void)k;
    *rows = cut.rows < p->c.rows ? cut.rows : p->c.rows;
    *cols = cut.cols < p->c.cols ? cut.cols : p->c.cols;
}

static void count_panels(void *handle, const gpu_kernel *k, const gpu_gemm *p,
                         double bytes)
{
    (void)handle, (void)p, (void)bytes;
    if (k && ++cut.calls == cut.stop_after)
        gpu_interrupt();
}

static int open_cutting(void **state)
{
    if (open_fake(state))
        return 1;
    static gpu_backend table;
    table = *fake->backend;
    table.panel = cut_panels;
    table.pace = count_panels;
    fake->backend = &table;
    memset(&cut, 0, sizeof cut);
    return 0;
}

/* Small integers, so that products are exact. */
static gpu_matrix numbered(int64_t rows, int64_t cols)
{
    gpu_matrix m;
    assert_int_equal(gpu_create(&m, fake, GPU_F32, 2, rows, cols), GPU_OK);
    gpu_view v = gpu_view_of(&m);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            set(&v, i, j, (double)((i * 7 + j * 3) % 11 - 5));
    return m;
}

static void expect_same(const gpu_matrix *x, const gpu_matrix *y)
{
    gpu_view a = gpu_view_of(x), b = gpu_view_of(y);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++)
            assert_true(get(&a, i, j) == get(&b, i, j));
}

static void panels_make_the_same_product(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 63}, {3, 2, 12}, {9, 3, 3},
                                       {4, 7, 3},  {9, 7, 1},  {100, 5, 2}};
    gpu_matrix a = numbered(9, 4), b = numbered(4, 7), whole = {0}, turned;
    gpu_product how = {.alpha = 2};
    (void)state;
    cut.rows = cut.cols = 1000;
    assert_int_equal(gpu_matmul(&a, &b, &how, &whole), GPU_OK);
    gpu_view_transposed(&whole, &turned);
    for (int i = 0; i < 6; i++) {
        gpu_matrix c = numbered(9, 7), sum = numbered(9, 7), added = {0};
        cut.rows = sizes[i][0];
        cut.cols = sizes[i][1];
        cut.calls = 0;
        assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_OK);
        assert_int_equal(cut.calls, sizes[i][2]);
        expect_same(&c, &whole);
        how.beta = 3;
        assert_int_equal(gpu_matmul(&a, &b, &how, &sum), GPU_OK);
        cut.rows = cut.cols = 1000;
        added = numbered(9, 7);
        assert_int_equal(gpu_matmul(&a, &b, &how, &added), GPU_OK);
        expect_same(&sum, &added);
        how.beta = 0;
        gpu_release(&c);
        gpu_release(&sum);
        gpu_release(&added);
    }
    gpu_release(&turned);
    gpu_release(&whole);
    gpu_release(&a);
    gpu_release(&b);
}

/* Behind the last panel there is nothing left to stop. */
static void a_product_stops_between_panels(void **state)
{
    gpu_matrix a = numbered(9, 4), b = numbered(4, 7), none = {0};
    gpu_product how = {.alpha = 1};
    (void)state;
    cut.rows = 3;
    cut.cols = 7;
    for (cut.stop_after = 1; cut.stop_after <= 3; cut.stop_after++) {
        gpu_matrix c = numbered(9, 7);
        int is_done = cut.stop_after == 3;
        gpu_status wanted = is_done ? GPU_OK : GPU_INTERRUPTED;
        cut.calls = 0;
        assert_int_equal(gpu_matmul(&a, &b, &how, &c), wanted);
        assert_int_equal(cut.calls, cut.stop_after);
        assert_int_equal(gpu_is_incomplete(&c), !is_done);
        gpu_clear_interrupt();
        gpu_release(&c);
    }
    cut.stop_after = 1;
    cut.calls = 0;
    assert_int_equal(gpu_matmul(&a, &b, &how, &none), GPU_INTERRUPTED);
    assert_null(none.storage);
    gpu_clear_interrupt();
    gpu_release(&a);
    gpu_release(&b);
}

/* A panel that finds no room is tried again; those before it stay. */
static void panels_find_room(void **state)
{
    gpu_matrix a = numbered(9, 4), b = numbered(4, 7);
    gpu_matrix sum = numbered(9, 7), wanted = numbered(9, 7);
    gpu_product how = {.alpha = 1, .beta = 1};
    (void)state;
    cut.rows = 1000;
    cut.cols = 1000;
    assert_int_equal(gpu_matmul(&a, &b, &how, &wanted), GPU_OK);
    cut.rows = 4;
    keeper.failure = GPU_MEMORY;
    keeper.failures = 1;
    assert_int_equal(gpu_matmul(&a, &b, &how, &sum), GPU_OK);
    expect_same(&sum, &wanted);
    gpu_release(&sum);
    sum = numbered(9, 7);
    keeper.has_substitute = 1;
    keeper.failures = 1000;
    assert_int_equal(gpu_matmul(&a, &b, &how, &sum), GPU_OK);
    keeper.failures = 0;
    expect_same(&sum, &wanted);
    assert_true(keeper.others > 0);
    gpu_release(&sum);
    gpu_release(&wanted);
    gpu_release(&a);
    gpu_release(&b);
}

/* A kernel that cannot do a product says so of all of it. */
static void panels_refuse_the_whole(void **state)
{
    gpu_matrix a = numbered(9, 4), b = numbered(4, 7), c = {0};
    gpu_product how = {.alpha = 1};
    (void)state;
    cut.rows = 4;
    cut.cols = 7;
    keeper.failure = GPU_UNSUPPORTED;
    keeper.failures = 1000;
    assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_UNSUPPORTED);
    keeper.failures = 0;
    assert_int_equal(keeper.rows, 9);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- factorizations ------------------------------------------------------- */

/* Orders around one and several panels. */
static void solutions_solve(void **state)
{
    static const int64_t orders[] = {1, 5, 191, 192, 193, 500};
    (void)state;
    for (int i = 0; i < 12; i++) {
        gpu_dtype t = i % 2 ? GPU_F64 : GPU_F32;
        gpu_matrix a = random_matrix(the_cpu(), t, orders[i / 2]), x, product;
        double worst;
        assert_int_equal(gpu_solve(&a, &a, &x, NULL), GPU_OK);
        product.storage = NULL;
        gpu_product how = {.alpha = 1};
        assert_int_equal(gpu_matmul(&a, &x, &how, &product), GPU_OK);
        gpu_program p;
        gpu_program_start(&p, 2);
        gpu_program_add(&p, GPU_OP_sub, 0, 1, 0);
        p.reduction = GPU_REDUCE_norm;
        const gpu_matrix *in[] = {&a, &product};
        assert_int_equal(gpu_reduce_all("norm", &p, in, &worst), GPU_OK);
        assert_true(worst <= (t == GPU_F64 ? 1e-10 : 0.1));
        gpu_release(&product);
        gpu_release(&x);
        gpu_release(&a);
    }
}

/* A row of zeros far down: the pivot is named by its place in the whole. */
static void a_singular_matrix_is_told(void **state)
{
    gpu_matrix a = random_matrix(the_cpu(), GPU_F64, 500), row, x;
    double d;
    (void)state;
    gpu_view_column(&a, 499, &row);
    assert_int_equal(gpu_fill(&row, 0), GPU_OK);
    assert_int_equal(gpu_solve(&a, &a, &x, NULL), GPU_SINGULAR);
    assert_int_equal(gpu_determinant(&a, &d), GPU_OK);
    assert_true(d == 0);
    gpu_release(&row);
    gpu_release(&a);
}

/* The determinant of a permuted triangle is known. */
static void determinants(void **state)
{
    enum { ORDER = 401 };
    gpu_matrix a = filled(the_cpu(), ORDER, ORDER, 0);
    double d;
    (void)state;
    for (int i = 0; i < ORDER; i++)
        assert_int_equal(gpu_set(&a, i, (i + 1) % ORDER, i == 7 ? 3 : 1), 0);
    assert_int_equal(gpu_determinant(&a, &d), GPU_OK);
    assert_true(d == 3); /* a cycle of odd length is even */
    gpu_release(&a);
}

static void factoring_is_interrupted(void **state)
{
    gpu_matrix a = random_matrix(the_cpu(), GPU_F32, 500), x;
    double d;
    (void)state;
    INTERRUPTED(gpu_solve(&a, &a, &x, NULL));
    INTERRUPTED(gpu_determinant(&a, &d));
    assert_false(gpu_is_incomplete(&a));
    gpu_release(&a);
}

/* --- progress ------------------------------------------------------------- */

static int begun, ended;
static gpu_progress seen;

static void on_begin(void)
{
    begun++;
    assert_int_equal(gpu_look_at_progress(&seen), 1);
}

static void on_end(void)
{
    ended++;
    assert_int_equal(gpu_look_at_progress(&seen), 0);
}

static void watch(void)
{
    begun = ended = 0;
    gpu_watch_progress(on_begin, on_end);
}

static void stages_are_counted(void **state)
{
    gpu_progress p;
    (void)state;
    watch();
    assert_int_equal(gpu_look_at_progress(&p), 0);
    int outer = gpu_begin_work("load %s", "a.csv");
    assert_int_equal(outer, 1);
    assert_int_equal(gpu_begin_work("sum"), 0);
    assert_int_equal(gpu_look_at_progress(&p), 1);
    assert_string_equal(p.what, "load a.csv");
    assert_true(p.share < 0 && p.left < 0);
    int stage = gpu_begin_stage(200);
    assert_int_equal(stage, 1);
    assert_int_equal(gpu_begin_stage(10), 0);
    gpu_advance(50);
    gpu_advance(100);
    gpu_look_at_progress(&p);
    assert_true(p.share == 0.75 && p.left >= 0);
    gpu_advance(100);
    gpu_look_at_progress(&p);
    assert_true(p.share == 1);
    gpu_end_stage(stage);
    assert_int_equal(gpu_begin_stage(10), 1);
    gpu_look_at_progress(&p);
    assert_true(p.share == 0);
    gpu_end_work(0);
    assert_int_equal(ended, 0);
    gpu_end_work(outer);
    assert_int_equal(begun, 1);
    assert_int_equal(ended, 1);
    assert_int_equal(gpu_begin_stage(10), 0);
    gpu_watch_progress(NULL, NULL);
    assert_int_equal(gpu_begin_work("nobody watches"), 0);
}

static void operations_that_may_last_are_told(void **state)
{
    gpu_matrix a = filled(the_cpu(), SIDE, SIDE, 1), c = {0};
    gpu_matrix v = filled(the_cpu(), 1, 30000000, 1);
    double sum;
    (void)state;
    watch();
    assert_int_equal(gpu_fill(&a, 1), GPU_OK);
    assert_int_equal(begun, 0);
    assert_int_equal(multiply_into(&a, &c, 0), GPU_OK);
    assert_int_equal(begun, 1);
    assert_int_equal(ended, 1);
    assert_string_equal(seen.what, "matmul 600x600x600");
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_sum;
    const gpu_matrix *in[] = {&v};
    INTERRUPTED(gpu_reduce_all("sum", &p, in, &sum));
    assert_int_equal(begun, 2);
    assert_int_equal(ended, 2);
    assert_string_equal(seen.what, "sum 1x30000000");
    gpu_watch_progress(NULL, NULL);
    gpu_release(&v);
    gpu_release(&c);
    gpu_release(&a);
}

static void panels_are_counted(void **state)
{
    gpu_matrix a = numbered(9, 4), b = numbered(4, 7), c = {0};
    gpu_product how = {.alpha = 1};
    gpu_progress p;
    (void)state;
    watch();
    cut.rows = 3;
    cut.cols = 7;
    assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_OK);
    assert_int_equal(begun, 1);
    assert_int_equal(ended, 1);
    assert_string_equal(seen.what, "matmul 9x4x7");
    assert_int_equal(gpu_sync(fake), GPU_OK);
    assert_int_equal(begun, 2);
    assert_string_equal(seen.what, "waiting for fake:0");
    assert_int_equal(gpu_look_at_progress(&p), 0);
    gpu_watch_progress(NULL, NULL);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

int main(void)
{
#define ON_CPU(test) cmocka_unit_test_teardown(test, shut_down)
#define CUTTING(test) \
    cmocka_unit_test_setup_teardown(test, open_cutting, close_fake)
    const struct CMUnitTest tests[] = {
        ON_CPU(an_output_is_left_incomplete),
        ON_CPU(writing_all_of_it_makes_it_whole),
        ON_CPU(other_ways_to_write),
        CUTTING(panels_make_the_same_product),
        CUTTING(a_product_stops_between_panels),
        CUTTING(panels_find_room),
        CUTTING(panels_refuse_the_whole),
        ON_CPU(solutions_solve),
        ON_CPU(a_singular_matrix_is_told),
        ON_CPU(determinants),
        ON_CPU(factoring_is_interrupted),
        ON_CPU(stages_are_counted),
        ON_CPU(operations_that_may_last_are_told),
        CUTTING(panels_are_counted),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
