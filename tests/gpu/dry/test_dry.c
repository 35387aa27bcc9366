/* Dry runs: operations check, count and tell as ever, and write nothing. */
#include "kept_products.h"
#include "op_list.h"

#include <math.h>

/* --- what is told --------------------------------------------------------- */

enum { MOST_EVENTS = 400 };

typedef struct told {
    gpu_event event[MOST_EVENTS];
    int count, products;
    uint32_t left, right, result; /* numbers of the last product's storages */
} told;

static void note(const gpu_event *e, void *data)
{
    told *t = data;
    assert_true(t->count < MOST_EVENTS);
    t->event[t->count++] = *e;
}

static void note_product(const gpu_matrix *a, const gpu_matrix *b,
                         const gpu_matrix *c, void *data)
{
    told *t = data;
    t->products++;
    t->left = gpu_dry_number(a);
    t->right = gpu_dry_number(b);
    t->result = gpu_dry_number(c);
}

static told dry_told;
static const gpu_dry_watch watch = {note, note_product, &dry_told, 1, 1e-9};

static void begin(void)
{
    memset(&dry_told, 0, sizeof dry_told);
    assert_int_equal(gpu_begin_dry(&watch), GPU_OK);
    assert_true(gpu_is_dry());
}

static gpu_dry_report end(void)
{
    gpu_dry_report r;
    gpu_end_dry(&r);
    assert_false(gpu_is_dry());
    return r;
}

static gpu_device *the_cpu(void)
{
    gpu_device *d;
    assert_int_equal(gpu_open("cpu", &d), GPU_OK);
    return d;
}

static int shut_down(void **state)
{
    (void)state;
    gpu_end_dry(NULL);
    gpu_set_trace(NULL, NULL);
    gpu_shutdown();
    return 0;
}

static gpu_matrix create(gpu_dtype t, int ndim, int64_t rows, int64_t cols)
{
    gpu_matrix m;
    assert_int_equal(gpu_create(&m, the_cpu(), t, ndim, rows, cols), GPU_OK);
    return m;
}

static gpu_matrix filled(gpu_dtype t, int64_t rows, int64_t cols, double value)
{
    gpu_matrix m = create(t, 2, rows, cols);
    assert_int_equal(gpu_fill(&m, value), GPU_OK);
    return m;
}

static double element_of(const gpu_matrix *m, int64_t i, int64_t j)
{
    double x;
    assert_int_equal(gpu_get(m, i, j, &x), GPU_OK);
    return x;
}

/* --- the same as when it is done ------------------------------------------ */

static void let_go(gpu_matrix *m)
{
    gpu_release(m);
}

static void elementwise(const gpu_matrix *a)
{
    gpu_matrix out = {.storage = NULL}, row, wide;
    gpu_program p;
    gpu_program_start(&p, 2);
    int x = gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    gpu_program_add(&p, GPU_OP_lt, x, 0, 0);
    gpu_slice first = {0, 1, 1}, all = {0, 1, a->cols};
    assert_int_equal(gpu_view_block(a, first, all, &row), GPU_OK);
    const gpu_matrix *in[] = {a, &row};
    assert_int_equal(gpu_map("mixed", &p, in, &out), GPU_OK);
    assert_int_equal(out.dtype, GPU_BOOL);
    assert_int_equal(gpu_clone(&out, GPU_F64, NULL, &wide), GPU_OK);
    let_go(&out);
    let_go(&row);
    let_go(&wide);
}

static void reductions(const gpu_matrix *a)
{
    static const gpu_reduction kinds[] = {GPU_REDUCE_sum,  GPU_REDUCE_argmax,
                                          GPU_REDUCE_any,  GPU_REDUCE_mean,
                                          GPU_REDUCE_norm, GPU_REDUCE_std};
    gpu_program p;
    gpu_matrix out;
    double x;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int axis = 1; axis <= 2; axis++) {
            gpu_program_start(&p, 1);
            p.reduction = (uint8_t)kinds[i];
            assert_int_equal(gpu_reduce("it", &p, &a, axis, &out), GPU_OK);
            let_go(&out);
            assert_int_equal(gpu_reduce_all("it", &p, &a, &x), GPU_OK);
        }
    assert_int_equal(gpu_norm(a, 3, 1, &out), GPU_OK);
    let_go(&out);
    assert_int_equal(gpu_norm_of_sums(a, 2, &x), GPU_OK);
}

static void moves(const gpu_matrix *a)
{
    static const int64_t rows[] = {1, 0, 1};
    gpu_matrix some, sorted, order, sums, turned, flat;
    gpu_random r = {GPU_NORMAL, 1, 0, 0, 1, 0};
    assert_int_equal(gpu_gather(a, rows, 3, NULL, 0, &some), GPU_OK);
    assert_int_equal(gpu_scatter("put", &some, rows, 3, NULL, 0, &some),
                     GPU_OK);
    assert_int_equal(gpu_sort(a, 2, 1, &sorted, &order), GPU_OK);
    assert_int_equal(gpu_scan(a, GPU_SCAN_PROD, 1, &sums), GPU_OK);
    gpu_view_transposed(a, &turned);
    assert_int_equal(gpu_reshape(&turned, 1, gpu_size(a), 1, &flat), GPU_OK);
    assert_int_equal(gpu_fill_random(&sums, &r), GPU_OK);
    let_go(&some);
    let_go(&sorted);
    let_go(&order);
    let_go(&sums);
    let_go(&turned);
    let_go(&flat);
}

static void products(const gpu_matrix *a)
{
    gpu_product how = {.alpha = 1}, more = {.alpha = 2, .beta = 3};
    gpu_matrix turned, c = {.storage = NULL}, d = {.storage = NULL}, v, w;
    double x;
    gpu_view_transposed(a, &turned);
    assert_int_equal(gpu_matmul(a, &turned, &how, &c), GPU_OK);
    assert_int_equal(gpu_matmul(a, &turned, &more, &c), GPU_OK);
    assert_int_equal(gpu_matmul(&c, &c, &more, &c), GPU_OK);
    gpu_view_column(a, 0, &v);
    assert_int_equal(gpu_clone(&v, GPU_F64, NULL, &w), GPU_OK);
    assert_int_equal(gpu_matmul(&turned, &v, &how, &d), GPU_OK);
    assert_int_equal(d.ndim, 1);
    assert_int_equal(gpu_dot(&v, &w, NULL, &x), GPU_OK);
    let_go(&turned);
    let_go(&c);
    let_go(&d);
    let_go(&v);
    let_go(&w);
}

static void systems(const gpu_matrix *square)
{
    gpu_matrix x, inverse;
    gpu_condition c;
    double value;
    assert_int_equal(gpu_solve(square, square, &x, &c), GPU_OK);
    assert_int_equal(gpu_inverse(square, &inverse, NULL), GPU_OK);
    assert_int_equal(gpu_determinant(square, &value), GPU_OK);
    assert_int_equal(gpu_rcond(square, &value), GPU_OK);
    let_go(&x);
    let_go(&inverse);
}

static gpu_matrix rotation(gpu_dtype t)
{
    gpu_matrix m = filled(t, 6, 6, 0.25), diagonal;
    gpu_view_diagonal(&m, 0, &diagonal);
    assert_int_equal(gpu_fill(&diagonal, 3), GPU_OK);
    gpu_release(&diagonal);
    return m;
}

static void do_all(const gpu_matrix *a, const gpu_matrix *square)
{
    elementwise(a);
    reductions(a);
    moves(a);
    products(a);
    systems(square);
}

static void assert_same_event(const gpu_event *x, const gpu_event *y)
{
    assert_string_equal(x->operation, y->operation);
    assert_string_equal(x->kernel, y->kernel);
    assert_ptr_equal(x->device, y->device);
    assert_int_equal(x->m, y->m);
    assert_int_equal(x->n, y->n);
    assert_int_equal(x->k, y->k);
    assert_int_equal(x->dtype, y->dtype);
    assert_true(x->flops == y->flops && x->bytes == y->bytes);
    assert_int_equal(x->fallback, y->fallback);
}

static void it_tells_what_is_told_when_it_is_done(void **state)
{
    static told real;
    (void)state;
    for (int type = GPU_F32; type <= GPU_F64; type++) {
        gpu_matrix a = filled((gpu_dtype)type, 5, 7, 1.5);
        gpu_matrix square = rotation((gpu_dtype)type);
        memset(&real, 0, sizeof real);
        uint64_t allocated = gpu_counts()->allocated;
        gpu_set_trace(note, &real);
        do_all(&a, &square);
        gpu_set_trace(NULL, NULL);
        allocated = gpu_counts()->allocated - allocated;
        begin();
        do_all(&a, &square);
        gpu_dry_report r = end();
        assert_int_equal(r.allocated, allocated);
        assert_int_equal(dry_told.count, real.count);
        for (int i = 0; i < real.count; i++) {
            assert_same_event(&dry_told.event[i], &real.event[i]);
            assert_true(dry_told.event[i].seconds > 0);
            assert_true(dry_told.event[i].seconds < 1);
        }
        gpu_release(&a);
        gpu_release(&square);
    }
}

/* --- nothing lasts ----------------------------------------------------------
 */

static void nothing_is_written(void **state)
{
    (void)state;
    gpu_matrix a = filled(GPU_F64, 3, 3, 2), mask = filled(GPU_BOOL, 3, 3, 1);
    gpu_matrix one;
    double host[9] = {0};
    gpu_counters before = *gpu_counts();
    size_t live = gpu_device_live(the_cpu());
    uint32_t written = gpu_epoch_written(&a);
    gpu_begin_epoch();
    begin();
    one = filled(GPU_F64, 3, 3, 7);
    assert_int_equal(gpu_fill(&a, 5), GPU_OK);
    assert_int_equal(gpu_set(&a, 1, 1, 5), GPU_OK);
    assert_int_equal(gpu_upload(&a, host), GPU_OK);
    assert_int_equal(gpu_copy(&one, &a), GPU_OK);
    assert_int_equal(gpu_expand(&one, &mask, &a), GPU_OK);
    end();
    for (int i = 0; i < 9; i++)
        assert_true(element_of(&a, i / 3, i % 3) == 2);
    assert_memory_equal(&before, gpu_counts(), sizeof before);
    assert_int_equal(gpu_device_live(the_cpu()), live);
    assert_int_equal(gpu_epoch_written(&a), written);
    assert_false(gpu_is_incomplete(&a));
    gpu_release(&one);
    gpu_release(&a);
    gpu_release(&mask);
}

static void a_user_s_trace_rests(void **state)
{
    static told real;
    (void)state;
    gpu_matrix a = filled(GPU_F32, 2, 2, 1);
    memset(&real, 0, sizeof real);
    gpu_set_trace(note, &real);
    gpu_set_check(1);
    begin();
    products(&a);
    assert_false(gpu_is_checking());
    gpu_set_trace(NULL, NULL); /* counts from the end on */
    assert_int_equal(gpu_fill(&a, 3), GPU_OK);
    assert_string_equal(dry_told.event[dry_told.count - 1].operation, "fill");
    end();
    assert_int_equal(real.count, 0);
    assert_true(gpu_is_checking());
    gpu_set_check(0);
    assert_int_equal(gpu_fill(&a, 3), GPU_OK);
    assert_int_equal(real.count, 0);
    gpu_release(&a);
}

static void real_memory_is_given_back_meanwhile(void **state)
{
    (void)state;
    size_t live = gpu_device_live(the_cpu());
    gpu_matrix a = filled(GPU_F32, 1000, 1000, 1);
    begin();
    gpu_release(&a);
    assert_int_equal(gpu_device_live(the_cpu()), live);
    end();
}

static void what_is_made_is_of_no_use_later(void **state)
{
    (void)state;
    gpu_matrix out = {.storage = NULL}, view;
    gpu_program p;
    gpu_program_start(&p, 1);
    begin();
    gpu_matrix dry = filled(GPU_F32, 4, 5, 1);
    uint32_t number = gpu_dry_number(&dry);
    assert_true(number > 0);
    end();
    assert_string_equal(gpu_device_name(gpu_matrix_device(&dry)), "cpu");
    assert_int_equal(gpu_size(&dry), 20);
    const gpu_matrix *in[] = {&dry};
    double x;
    assert_int_equal(gpu_map("neg", &p, in, &out), GPU_ARGUMENT);
    assert_string_equal(gpu_message(),
                        "neg: the matrix is one of cost, and has no elements");
    assert_int_equal(gpu_get(&dry, 0, 0, &x), GPU_ARGUMENT);
    assert_int_equal(gpu_fill(&dry, 1), GPU_ARGUMENT);
    gpu_view_transposed(&dry, &view);
    gpu_release(&view);
    begin();
    assert_int_equal(gpu_fill(&dry, 1), GPU_OK);
    gpu_matrix next = filled(GPU_F32, 4, 5, 1);
    assert_true(gpu_dry_number(&next) > number);
    gpu_release(&dry); /* counted in the run that made it alone */
    gpu_release(&next);
    assert_int_equal(end().peak, 80);
}

static void one_goes_on_at_a_time(void **state)
{
    (void)state;
    begin();
    assert_int_equal(gpu_begin_dry(&watch), GPU_ARGUMENT);
    end();
    gpu_end_dry(NULL); /* does nothing */
}

/* --- sizes, elements, products -----------------------------------------------
 */

static void nothing_is_too_large(void **state)
{
    (void)state;
    gpu_product how = {.alpha = 1};
    int64_t n = 1000000;
    begin();
    gpu_matrix a = filled(GPU_F32, n, n, 1), c = {.storage = NULL};
    assert_int_equal(gpu_matmul(&a, &a, &how, &c), GPU_OK);
    assert_int_equal(dry_told.products, 1);
    assert_int_equal(dry_told.left, gpu_dry_number(&a));
    assert_int_equal(dry_told.right, gpu_dry_number(&a));
    assert_int_equal(dry_told.result, gpu_dry_number(&c));
    gpu_matrix most;
    assert_int_equal(gpu_create(&most, NULL, GPU_F64, 2, INT64_MAX, 2),
                     GPU_MEMORY);
    gpu_release(&a);
    gpu_release(&c);
    gpu_dry_report r = end();
    assert_true(r.allocated == 8000000000000 && r.peak == r.allocated);
    const gpu_event *e = &dry_told.event[dry_told.count - 1];
    assert_true(e->flops == 2e18 && e->seconds > 1000);
}

static void what_goes_is_not_held(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 10; i++) {
        gpu_matrix a = filled(GPU_F64, 10, 10, 1);
        gpu_release(&a);
    }
    gpu_dry_report r = end();
    assert_int_equal(r.allocated, 8000);
    assert_int_equal(r.peak, 800);
}

static void elements_are_not_known(void **state)
{
    (void)state;
    gpu_matrix a = filled(GPU_F32, 2, 3, 4), mask = filled(GPU_BOOL, 2, 3, 1);
    gpu_matrix out;
    gpu_survey s;
    float host[6] = {9};
    begin();
    assert_true(element_of(&a, 0, 0) == 1);
    assert_int_equal(gpu_download(&a, host), GPU_UNSUPPORTED);
    assert_string_equal(gpu_message(), "what is done depends on elements: it "
                                       "has to be run");
    assert_int_equal(gpu_download_unseen(&a, host), GPU_OK);
    assert_true(host[0] == 9);
    assert_int_equal(gpu_compress(&a, &mask, &out), GPU_UNSUPPORTED);
    assert_string_equal(gpu_message(), "how many elements A[mask] has depends "
                                       "on the mask");
    assert_int_equal(gpu_take_survey(&a, &s), GPU_UNSUPPORTED);
    end();
    assert_true(element_of(&a, 0, 0) == 4);
    gpu_release(&a);
    gpu_release(&mask);
}

static void mistakes_are_found(void **state)
{
    (void)state;
    gpu_product how = {.alpha = 1}, unknown = {.alpha = 1, .kernel = "none"};
    begin();
    gpu_matrix a = filled(GPU_F32, 2, 3, 1), c = {.storage = NULL};
    assert_int_equal(gpu_matmul(&a, &a, &how, &c), GPU_SHAPE);
    assert_int_equal(gpu_matmul(&a, &a, &unknown, &c), GPU_SHAPE);
    gpu_matrix turned;
    gpu_view_transposed(&a, &turned);
    assert_int_equal(gpu_matmul(&a, &turned, &unknown, &c), GPU_ARGUMENT);
    assert_int_equal(gpu_determinant(&a, &(double){0}), GPU_SHAPE);
    gpu_interrupt();
    assert_int_equal(gpu_fill(&a, 1), GPU_INTERRUPTED);
    gpu_clear_interrupt();
    assert_int_equal(gpu_fill(&a, 1), GPU_OK);
    gpu_release(&turned);
    gpu_release(&a);
    end();
}

/* They tell the device that would make them. */
static void sparse_matrices_are_made_where_they_lie(void **state)
{
    (void)state;
    gpu_sparse s, built;
    assert_int_equal(open_fake(state), 0);
    gpu_matrix a = matrix(4, 5), list = matrix_of(GPU_F32, 1, 3, 1);
    const gpu_sparse_lists lists = {
        .row = &list, .col = &list, .value = &list, .rows = 4, .cols = 5};
    begin();
    assert_int_equal(gpu_sparse_from_dense(&a, GPU_F32, NULL, &s), GPU_OK);
    assert_int_equal(gpu_sparse_build(&lists, GPU_F32, fake, &built), GPU_OK);
    int count = 0;
    for (int i = 0; i < dry_told.count; i++) {
        if (strcmp(dry_told.event[i].operation, "sparse") != 0)
            continue;
        assert_ptr_equal(dry_told.event[i].device, fake);
        count++;
    }
    assert_int_equal(count, 2);
    end();
    gpu_sparse_release(&s);
    gpu_sparse_release(&built);
    gpu_release(&a);
    gpu_release(&list);
}

/* Of a dense one as many entries as there can be; of others as many. */
static void sparse_matrices_have_sizes(void **state)
{
    (void)state;
    gpu_matrix a = filled(GPU_F32, 4, 5, 0), v = create(GPU_F32, 1, 5, 1);
    gpu_matrix dense, product;
    gpu_sparse s, all, turned;
    assert_int_equal(gpu_fill(&v, 1), GPU_OK);
    assert_int_equal(gpu_set(&a, 1, 2, 3), GPU_OK);
    assert_int_equal(gpu_sparse_from_dense(&a, GPU_F32, NULL, &s), GPU_OK);
    assert_int_equal(s.count, 1);
    begin();
    assert_int_equal(gpu_sparse_from_dense(&a, GPU_F32, NULL, &all), GPU_OK);
    assert_int_equal(all.count, 20);
    assert_int_equal(gpu_sparse_transposed(&s, &turned), GPU_OK);
    assert_int_equal(turned.count, 1);
    assert_int_equal(turned.rows, 5);
    assert_int_equal(gpu_sparse_to_dense(&s, &dense), GPU_OK);
    assert_int_equal(gpu_size(&dense), 20);
    assert_int_equal(gpu_sparse_multiply(&s, &v, NULL, &product), GPU_OK);
    const gpu_event *e = &dry_told.event[dry_told.count - 1];
    assert_string_equal(e->kernel, "csr");
    assert_true(e->flops == 2 && e->seconds > 0);
    end();
    gpu_sparse_release(&s);
    gpu_sparse_release(&all);
    gpu_sparse_release(&turned);
    gpu_release(&dense);
    gpu_release(&product);
    gpu_release(&a);
    gpu_release(&v);
}

/* --- other devices
 * ------------------------------------------------------------ */

/* A device with kernels of its own, which keep things about operands. */
static void what_is_kept_stays(void **state)
{
    (void)state;
    gpu_product how = {.alpha = 1};
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    gpu_matrix c = {.storage = NULL}, d = {.storage = NULL};
    assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_OK);
    size_t before = kept(), used = ram.used;
    int calls = keeper.calls;
    assert_true(before > 0);
    begin();
    assert_int_equal(gpu_matmul(&a, &b, &how, &d), GPU_OK);
    assert_string_equal(dry_told.event[0].kernel, "keeper");
    assert_int_equal(gpu_fill(&a, 1), GPU_OK);
    gpu_release(&b); /* real: what is kept about it goes */
    end();
    assert_true(keeper.calls > calls); /* it was tried for its time */
    assert_int_equal(kept(), before / 2);
    assert_true(ram.used < used);
    gpu_release(&a);
    gpu_release(&c);
    gpu_release(&d);
}

#define ON_CPU(f) cmocka_unit_test_teardown(f, shut_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_CPU(it_tells_what_is_told_when_it_is_done),
        ON_CPU(nothing_is_written),
        ON_CPU(a_user_s_trace_rests),
        ON_CPU(real_memory_is_given_back_meanwhile),
        ON_CPU(what_is_made_is_of_no_use_later),
        ON_CPU(one_goes_on_at_a_time),
        ON_CPU(nothing_is_too_large),
        ON_CPU(what_goes_is_not_held),
        ON_CPU(elements_are_not_known),
        ON_CPU(mistakes_are_found),
        ON_CPU(sparse_matrices_have_sizes),
        ON_CPU(sparse_matrices_are_made_where_they_lie),
        ON_FAKE(what_is_kept_stays),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
