/* The frame of every operation: each entry of a backend that computes is made
 * to succeed, to be stopped and to fail, and what is counted, told, paced and
 * left incomplete has to fit. */
#include "complex_numbers.h"
#include "fake_device.h"
#include "fourier.h"
#include "op_list.h"

#include <math.h>

enum { SIDE = 6 };

/* Of the entry under test: what it returns, and how often it was called. */
static struct {
    gpu_status outcome;
    int calls, paces;
} stub;

static gpu_status answer(void)
{
    stub.calls++;
    return stub.outcome == GPU_INTERNAL ? gpu_fail(GPU_INTERNAL, "told to fail")
                                        : stub.outcome;
}

/* All that an operation may be given: square matrices of one type, a mask, a
 * vector, a sparse and a complex matrix; target is what it writes where it can
 * be told. */
static struct {
    gpu_matrix a, mask, v, target, z;
    gpu_sparse s;
} given;

/* An entry that answers, put in the table; the words of its operation's event;
 * and the operation. */
typedef struct operation {
    const char *entry, *name, *kernel;
    int has_target; /* it writes given.target */
    int waits;      /* or paces itself */
    void (*place)(gpu_backend *table);
    gpu_status (*run)(void);
} operation;

#define ENTRY(entry, ...)                         \
    static gpu_status stub_##entry(__VA_ARGS__)   \
    {                                             \
        return answer();                          \
    }                                             \
    static void place_##entry(gpu_backend *table) \
    {                                             \
        table->entry = stub_##entry;              \
    }                                             \
    static gpu_status run_##entry(void)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static gpu_status keep(gpu_status status, gpu_matrix *out)
{
    if (status == GPU_OK)
        gpu_release(out);
    return status;
}

ENTRY(map, void *d, const gpu_program *p, const gpu_view *in,
      const gpu_view *out)
{
    return gpu_fill(&given.target, 1);
}

ENTRY(clear, void *d, void *data, size_t bytes)
{
    gpu_matrix out;
    return keep(gpu_create_zeros(&out, fake, GPU_F32, 2, SIDE, SIDE), &out);
}

ENTRY(reduce, void *d, const gpu_program *p, const gpu_view *in, int axis,
      const gpu_view *out)
{
    const gpu_matrix *in_[] = {&given.a};
    gpu_matrix sums;
    gpu_program program;
    gpu_program_start(&program, 1);
    program.reduction = GPU_REDUCE_sum;
    return keep(gpu_reduce("sum", &program, in_, 1, &sums), &sums);
}

static const int64_t some[] = {2, 0};

ENTRY(gather, void *d, const gpu_view *from, const int64_t *rows,
      const int64_t *cols, const gpu_view *to)
{
    gpu_matrix out;
    return keep(gpu_gather(&given.a, some, 2, NULL, 0, &out), &out);
}

ENTRY(scatter, void *d, const gpu_view *from, const int64_t *rows,
      const int64_t *cols, const gpu_view *to)
{
    return gpu_scatter("put", &given.a, NULL, 0, NULL, 0, &given.target);
}

ENTRY(pick, void *d, const gpu_picking *p)
{
    gpu_matrix list;
    if (gpu_create(&list, fake, GPU_F64, 1, SIDE, 1) != GPU_OK ||
        gpu_fill(&list, 1) != GPU_OK)
        return GPU_INTERNAL;
    gpu_status status = gpu_put("put", &given.a, &list, NULL, &given.target);
    gpu_release(&list);
    return status;
}

ENTRY(compress, void *d, const gpu_view *from, const gpu_view *mask,
      const gpu_view *to)
{
    gpu_matrix out;
    return keep(gpu_compress(&given.a, &given.mask, &out), &out);
}

ENTRY(expand, void *d, const gpu_view *from, const gpu_view *mask,
      const gpu_view *to)
{
    return gpu_expand(&given.a, &given.mask, &given.target);
}

ENTRY(scan, void *d, gpu_scan_kind kind, int axis, const gpu_view *from,
      const gpu_view *to)
{
    gpu_matrix out;
    return keep(gpu_scan(&given.a, GPU_SCAN_SUM, 1, &out), &out);
}

ENTRY(sort, void *d, int axis, int descending, const gpu_view *from,
      const gpu_view *to, const gpu_view *order)
{
    gpu_matrix out;
    return keep(gpu_sort(&given.a, 1, 0, &out, NULL), &out);
}

ENTRY(select, void *d, int axis, int spreads_nan, const gpu_view *from,
      const int64_t *places, int64_t count, const gpu_view *to)
{
    gpu_matrix out;
    int64_t place = 0;
    return keep(gpu_select(&given.a, 1, 1, &place, 1, &out), &out);
}

ENTRY(first, void *d, int axis, int descending, const gpu_view *from,
      const gpu_view *to, const gpu_view *order)
{
    gpu_matrix out;
    return keep(gpu_sort_first(&given.a, 1, 0, 1, &out, NULL), &out);
}

ENTRY(search, void *d, const gpu_view *sorted, const gpu_view *values,
      int is_after, const gpu_view *to)
{
    gpu_matrix out;
    return keep(gpu_search(&given.v, &given.a, 0, &out), &out);
}

ENTRY(runs, void *d, const gpu_view *sorted, gpu_runs *r)
{
    gpu_matrix out;
    return keep(gpu_find_runs(&given.v, &out, NULL, NULL), &out);
}

ENTRY(group, void *d, const gpu_grouping *g)
{
    gpu_matrix out;
    return keep(gpu_group(&given.v, 0, 3, &out, NULL), &out);
}

ENTRY(fold, void *d, const gpu_folding *f)
{
    gpu_matrix out;
    const gpu_fold_call call = {
        .values = &given.a, .codes = &given.v, .groups = 3};
    return keep(gpu_fold(&call, &out), &out);
}

ENTRY(windows, void *d, const gpu_windows *w)
{
    gpu_matrix out;
    return keep(gpu_window(&given.a, GPU_WINDOW_MEAN, 1, 3, -1, SIDE, &out),
                &out);
}

ENTRY(random, void *d, const gpu_random *r, const gpu_view *to)
{
    gpu_random uniform = {GPU_UNIFORM, 1, 2, 0, 1, 0};
    return gpu_fill_random(&given.target, &uniform);
}

ENTRY(variates, void *d, const gpu_variates *v, const gpu_view *to)
{
    gpu_matrix mean, out;
    if (gpu_create_zeros(&mean, fake, GPU_F64, 1, SIDE, 1) != GPU_OK)
        return GPU_INTERNAL;
    gpu_status status =
        gpu_create_variates(&out, GPU_POISSON, 1, 2, &mean, NULL);
    gpu_release(&mean);
    return keep(status, &out);
}

ENTRY(sparse_product, void *d, const gpu_sparse_call *p)
{
    gpu_matrix out;
    return keep(gpu_sparse_multiply(&given.s, &given.a, NULL, &out), &out);
}

ENTRY(sparse_turned_product, void *d, const gpu_sparse_call *p)
{
    gpu_matrix out;
    return keep(gpu_sparse_multiply_turned(&given.s, &given.a, &out), &out);
}

ENTRY(sparse_combine, void *d, gpu_sparse_op op, const gpu_csr *a,
      const gpu_csr *b, gpu_csr_result *out)
{
    gpu_sparse sum;
    gpu_status status =
        gpu_sparse_combine("add", GPU_SPARSE_ADD, &given.s, &given.s, &sum);
    gpu_sparse_release(&sum);
    return status;
}

ENTRY(sparse_sample, void *d, const gpu_csr *s, const gpu_view *m, void *out)
{
    gpu_matrix sampled;
    return keep(gpu_sparse_sample("mul", &given.s, &given.a, &sampled),
                &sampled);
}

ENTRY(sparse_reduce, void *d, const gpu_sparse_folding *how, const gpu_csr *s,
      double *out)
{
    gpu_matrix sums;
    gpu_choice plain = {.ddof = 1};
    int64_t none;
    return keep(gpu_sparse_reduce("sum", GPU_REDUCE_sum, &given.s, 1, &plain,
                                  &sums, &none),
                &sums);
}

ENTRY(sparse_lookup, void *d, const gpu_csr *s, const gpu_csr *places,
      void *out)
{
    gpu_matrix found;
    return keep(gpu_sparse_lookup(&given.s, &given.s, &found), &found);
}

ENTRY(sparse_along, void *d, const gpu_csr *s, const gpu_sparse_path *path,
      void *out)
{
    gpu_matrix found;
    return keep(gpu_sparse_diagonal("diag", &given.s, 0, &found), &found);
}

ENTRY(sparse_gather, void *d, const gpu_csr *s, const gpu_sparse_picking *how,
      gpu_csr_result *out)
{
    gpu_sparse rows;
    gpu_status status = gpu_sparse_gather(&given.s, some, 2, NULL, 0, &rows);
    gpu_sparse_release(&rows);
    return status;
}

ENTRY(sparse_arrange, void *d, const gpu_sparse_arranging *how,
      gpu_csr_result *out)
{
    gpu_sparse half;
    gpu_status status = gpu_sparse_band("tril", &given.s, -9, 0, &half);
    gpu_sparse_release(&half);
    return status;
}

ENTRY(solve, void *d, const gpu_view *a, const gpu_view *b,
      gpu_inverse_size *inverse)
{
    gpu_matrix out;
    return keep(gpu_solve(&given.a, &given.v, &out, NULL), &out);
}

ENTRY(determinant, void *d, const gpu_view *a, double *out)
{
    double x;
    return gpu_determinant(&given.a, &x);
}

ENTRY(inverse_norm, void *d, const gpu_view *a, gpu_inverse_size *inverse)
{
    double x;
    return gpu_rcond(&given.a, &x);
}

ENTRY(factor, void *d, gpu_factoring *f)
{
    gpu_matrix values;
    int64_t trouble;
    return keep(gpu_eigh(&given.a, &values, NULL, &trouble), &values);
}

ENTRY(complex_map, void *d, const gpu_complex_call *c)
{
    gpu_operand in[] = {{.matrix = &given.z}};
    return gpu_complex_map("abs", GPU_OP_abs, in, &given.target);
}

/* A complex matrix by a column. */
ENTRY(complex_pairs, void *d, const gpu_complex_pairs *p)
{
    gpu_product how = {.alpha = 1};
    gpu_matrix out = {.storage = NULL}, column = given.z;
    column.cols = 1;
    return keep(gpu_matmul(&given.z, &column, &how, &out), &out);
}

ENTRY(fft, void *d, const gpu_fft_call *c)
{
    gpu_matrix out;
    const gpu_transform t = {.name = "fft", .axis = 1};
    return keep(gpu_fft(&given.a, &t, &out), &out);
}

ENTRY(convolve, void *d, const gpu_convolution *c)
{
    gpu_matrix out;
    return keep(gpu_convolve(&given.a, &given.a, GPU_OVERLAP_FULL, &out), &out);
}

/* --- kernels -------------------------------------------------------------- */

static gpu_status stub_dot(void *d, const gpu_view *x, const gpu_view *y,
                           double *out)
{
    return answer();
}

static gpu_status stub_matmul(void *d, const gpu_gemm *p)
{
    return answer();
}

static const gpu_kernel dot_kernel = {.operation = "dot",
                                      .name = "stub",
                                      .precision = "f32",
                                      .dtypes = 1u << GPU_F32,
                                      .bound = exactly,
                                      .dot = stub_dot};
static const gpu_kernel matmul_kernel = {.operation = "matmul",
                                         .name = "stub",
                                         .precision = "f32",
                                         .dtypes = 1u << GPU_F32,
                                         .bound = exactly,
                                         .matmul = stub_matmul};

static const gpu_kernel *choose_dot(void *d, const gpu_view *x,
                                    const gpu_view *y)
{
    return &dot_kernel;
}

static const gpu_kernel *choose_matmul(void *d, const gpu_gemm *p)
{
    return &matmul_kernel;
}

static void place_dot(gpu_backend *table)
{
    table->choose_dot = choose_dot;
}

static void place_matmul(gpu_backend *table)
{
    table->choose_matmul = choose_matmul;
}

static gpu_status run_dot(void)
{
    double x;
    return gpu_dot(&given.v, &given.v, NULL, &x);
}

static gpu_status run_matmul(void)
{
    gpu_product how = {.alpha = 1};
    return gpu_matmul(&given.a, &given.a, &how, &given.target);
}

#pragma GCC diagnostic pop

/* --- what has to be ------------------------------------------------------- */

#define ROW(entry, ...)                                 \
    {                                                   \
#entry, __VA_ARGS__, place_##entry, run_##entry \
    }
static const operation operations[] = {
    ROW(map, "fill", "map", 1, 0),
    ROW(clear, "fill", "clear", 0, 0),
    ROW(reduce, "sum", "reduce", 0, 0),
    ROW(gather, "gather", "gather", 0, 0),
    ROW(scatter, "scatter", "scatter", 1, 0),
    ROW(pick, "scatter", "scatter", 1, 0),
    ROW(compress, "mask", "compress", 0, 0),
    ROW(expand, "mask", "expand", 1, 0),
    ROW(scan, "cumsum", "scan", 0, 0),
    ROW(sort, "sort", "sort", 0, 0),
    ROW(select, "select", "select", 0, 0),
    ROW(first, "topk", "first", 0, 0),
    ROW(search, "searchsorted", "search", 0, 0),
    ROW(runs, "unique", "runs", 0, 0),
    ROW(group, "group", "group", 0, 0),
    ROW(fold, "sum", "fold", 0, 0),
    ROW(windows, "movmean", "windows", 0, 0),
    ROW(random, "rand", "philox", 1, 0),
    ROW(variates, "poisson", "variates", 0, 0),
    ROW(sparse_product, "matmul", "csr", 0, 0),
    ROW(sparse_turned_product, "matmul", "scatter", 0, 0),
    ROW(sparse_combine, "add", "csr", 0, 0),
    ROW(sparse_sample, "mul", "csr", 0, 0),
    ROW(sparse_reduce, "sum", "csr", 0, 0),
    ROW(sparse_lookup, "index", "csr", 0, 0),
    ROW(sparse_along, "diag", "csr", 0, 0),
    ROW(sparse_gather, "index", "csr", 0, 0),
    ROW(sparse_arrange, "tril", "csr", 0, 0),
    ROW(solve, "solve", "lu", 0, 0),
    ROW(determinant, "det", "lu", 0, 0),
    ROW(inverse_norm, "rcond", "lu", 0, 0),
    ROW(factor, "eigh", "lapack", 0, 0),
    ROW(complex_map, "abs", "map", 1, 0),
    ROW(complex_pairs, "copy", "pairs", 0, 0),
    ROW(fft, "fft", "cufft", 0, 0),
    ROW(convolve, "conv", "direct", 0, 0),
    ROW(dot, "dot", "stub", 0, 1),
    ROW(matmul, "matmul", "stub", 1, 1),
};

/* Events of one operation. */
static struct {
    const operation *of;
    int count;
    gpu_event last;
} told;

static void hear(const gpu_event *e, void *data)
{
    (void)data;
    if (strcmp(e->operation, told.of->name) != 0 ||
        strcmp(e->kernel, told.of->kernel) != 0)
        return;
    told.count++;
    told.last = *e;
}

static void count_paces(void *d, const gpu_kernel *k, const gpu_gemm *p,
                        double bytes)
{
    (void)d, (void)p;
    if (!k && stub.calls > 0 && bytes > 0)
        stub.paces++;
}

static int open_given(void **state)
{
    if (open_fake(state))
        return 1;
    const gpu_random numbers = {GPU_UNIFORM, 1, 2, 1, 2, 0};
    gpu_create(&given.a, fake, GPU_F32, 2, SIDE, SIDE);
    gpu_create(&given.v, fake, GPU_F32, 1, SIDE, 1);
    gpu_create(&given.mask, fake, GPU_BOOL, 2, SIDE, SIDE);
    gpu_create(&given.target, fake, GPU_F32, 2, SIDE, SIDE);
    gpu_create(&given.z, fake, GPU_C64, 2, SIDE, SIDE);
    return gpu_fill_random(&given.a, &numbers) ||
           gpu_fill_random(&given.v, &numbers) || gpu_fill(&given.mask, 1) ||
           gpu_fill(&given.target, 0) || gpu_fill(&given.z, 1) ||
           gpu_sparse_from_dense(&given.a, GPU_F32, fake, &given.s);
}

static int close_given(void **state)
{
    gpu_release(&given.a);
    gpu_release(&given.v);
    gpu_release(&given.mask);
    gpu_release(&given.target);
    gpu_release(&given.z);
    gpu_sparse_release(&given.s);
    return close_fake(state);
}

/* The operation with such an outcome of its entry, on a table of its own. */
static void run(const operation *o, gpu_status outcome)
{
    const gpu_backend *own = fake->backend;
    gpu_backend table = *own;
    uint64_t before = gpu_counts()->operations;
    table.pace = count_paces;
    o->place(&table);
    fake->backend = &table;
    memset(&stub, 0, sizeof stub);
    memset(&told, 0, sizeof told);
    stub.outcome = outcome;
    told.of = o;
    assert_int_equal(o->run(), outcome);
    fake->backend = own;
    assert_int_equal(stub.calls, 1);
    assert_true(gpu_counts()->operations > before);
}

static void expect(const operation *o, const char *what, int is, int wanted)
{
    if (is != wanted)
        print_error("%s, which returned %d: %s\n", o->entry, (int)stub.outcome,
                    what);
    assert_int_equal(is, wanted);
}

/* For each operation and outcome; the target is whole again afterwards. */
static void run_all(void (*look)(const operation *o, gpu_status outcome))
{
    static const gpu_status all[] = {GPU_OK, GPU_INTERRUPTED, GPU_INTERNAL};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (int k = 0; k < 3; k++) {
            run(&operations[i], all[k]);
            look(&operations[i], all[k]);
            assert_int_equal(gpu_fill(&given.target, 0), GPU_OK);
        }
}

static void look_at_event(const operation *o, gpu_status outcome)
{
    expect(o, "events", told.count, 1);
    expect(o, "status in the event", (int)told.last.status, (int)outcome);
    expect(o, "bytes in the event", told.last.bytes > 0, 1);
    expect(o, "shape in the event", told.last.m > 0 && told.last.n > 0, 1);
    expect(o, "device in the event", told.last.device == fake, 1);
}

static void each_is_told_of_once(void **state)
{
    (void)state;
    gpu_set_trace(hear, NULL);
    run_all(look_at_event);
    gpu_set_trace(NULL, NULL);
}

static void look_at_target(const operation *o, gpu_status outcome)
{
    expect(o, "incomplete target", gpu_is_incomplete(&given.target),
           o->has_target && outcome == GPU_INTERRUPTED);
    expect(o, "incomplete operand", gpu_is_incomplete(&given.a), 0);
}

static void a_stopped_one_leaves_its_output_incomplete(void **state)
{
    (void)state;
    run_all(look_at_target);
}

static void look_at_paces(const operation *o, gpu_status outcome)
{
    expect(o, "paces", stub.paces > 0, outcome == GPU_OK && !o->waits);
}

static void what_does_not_wait_is_paced(void **state)
{
    (void)state;
    run_all(look_at_paces);
}

/* --- what is left to the CPU ---------------------------------------------- */

static const gpu_kernel factor_kernel = {.operation = "lu", .name = "stub"};

static const gpu_kernel *choose_lu(void *d, const gpu_factoring *f)
{
    (void)d;
    return f->kind == GPU_FACTOR_LU ? &factor_kernel : NULL;
}

/* Its entries as stubs that refuse, and whether it has rungs. */
static void refuse(gpu_backend *table, int chooses)
{
    *table = *fake->backend;
    place_solve(table);
    place_determinant(table);
    place_inverse_norm(table);
    place_factor(table);
    table->choose_factor = chooses ? choose_lu : NULL;
    memset(&stub, 0, sizeof stub);
    stub.outcome = GPU_UNSUPPORTED;
}

static double difference(const gpu_matrix *m, const gpu_matrix *n)
{
    float x[SIDE * SIDE], y[SIDE * SIDE];
    double most = 0;
    assert_int_equal(gpu_download(m, x), GPU_OK);
    assert_int_equal(gpu_download(n, y), GPU_OK);
    for (int i = 0; i < gpu_size(m); i++)
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
    return most;
}

/* What an entry says it does not support comes out as without such entries. */
static void what_is_refused_the_cpu_does(void **state)
{
    const gpu_backend *own = fake->backend;
    gpu_backend table;
    gpu_matrix x[2], packed[2];
    double det[2], rcond[2];
    int64_t places[2][SIDE], zero;
    (void)state;
    for (int k = 0; k < 2; k++) {
        refuse(&table, k);
        fake->backend = k ? &table : own;
        assert_int_equal(gpu_solve(&given.a, &given.v, &x[k], NULL), GPU_OK);
        assert_int_equal(gpu_determinant(&given.a, &det[k]), GPU_OK);
        assert_int_equal(gpu_rcond(&given.a, &rcond[k]), GPU_OK);
        assert_int_equal(gpu_lu(&given.a, NULL, &packed[k], places[k], &zero),
                         GPU_OK);
        fake->backend = own;
        assert_int_equal(stub.calls, k ? 4 : 0);
        assert_ptr_equal(gpu_matrix_device(&x[k]), fake);
        assert_ptr_equal(gpu_matrix_device(&packed[k]), fake);
    }
    assert_true(difference(&x[0], &x[1]) == 0);
    assert_true(difference(&packed[0], &packed[1]) == 0);
    assert_memory_equal(places[0], places[1], sizeof places[0]);
    assert_true(det[0] == det[1] && rcond[0] == rcond[1]);
    for (int k = 0; k < 2; k++) {
        gpu_release(&x[k]);
        gpu_release(&packed[k]);
    }
}

/* So does a transform, of a device that has none, too. */
static void transforms_are_left_to_the_cpu(void **state)
{
    const gpu_backend *own = fake->backend;
    const gpu_transform t = {.name = "fft2"};
    float whole[3][2 * SIDE * SIDE];
    (void)state;
    for (int k = 0; k < 3; k++) {
        gpu_backend table = *own;
        gpu_matrix out;
        place_fft(&table);
        if (k == 2)
            table.fft = NULL;
        memset(&stub, 0, sizeof stub);
        stub.outcome = GPU_UNSUPPORTED;
        fake->backend = k ? &table : own;
        assert_int_equal(gpu_fft(&given.a, &t, &out), GPU_OK);
        fake->backend = own;
        assert_int_equal(stub.calls, k == 1);
        assert_ptr_equal(gpu_matrix_device(&out), fake);
        assert_int_equal(gpu_complex_download(&out, whole[k]), GPU_OK);
        assert_memory_equal(whole[k], whole[0], sizeof whole[0]);
        gpu_release(&out);
    }
}

/* One without a rung for them is not asked. */
static void what_has_no_rung_the_cpu_does(void **state)
{
    const gpu_backend *own = fake->backend;
    gpu_backend table;
    gpu_matrix l, s, u, v;
    int64_t trouble;
    (void)state;
    refuse(&table, 1);
    fake->backend = &table;
    assert_int_equal(gpu_svd(&given.a, GPU_SVD_VALUES, &s, &u, &v, &trouble),
                     GPU_OK);
    assert_int_equal(gpu_cholesky(&given.a, "stub", &l, &trouble),
                     GPU_ARGUMENT);
    assert_non_null(strstr(gpu_message(), "chol: no kernel is called 'stub'"));
    fake->backend = own;
    assert_int_equal(stub.calls, 0);
    gpu_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_is_told_of_once, open_given,
                                        close_given),
        cmocka_unit_test_setup_teardown(
            a_stopped_one_leaves_its_output_incomplete, open_given,
            close_given),
        cmocka_unit_test_setup_teardown(what_does_not_wait_is_paced, open_given,
                                        close_given),
        cmocka_unit_test_setup_teardown(what_is_refused_the_cpu_does,
                                        open_given, close_given),
        cmocka_unit_test_setup_teardown(transforms_are_left_to_the_cpu,
                                        open_given, close_given),
        cmocka_unit_test_setup_teardown(what_has_no_rung_the_cpu_does,
                                        open_given, close_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
