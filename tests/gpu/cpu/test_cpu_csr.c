/* Sparse times dense on the CPU: random patterns over odd shapes, layouts,
 * alpha and beta, against exact sums; the same bits for any number of
 * threads; and stopping. */
#include "cpu_testing.h"
#include "cpu.h"

static const int64_t sides[] = {1, 2, 3, 5, 31, 64, 65, 130};
enum { SIDES = sizeof sides / sizeof *sides };

/* A pattern with that share of entries; some rows stay empty. */
typedef struct sparse {
    gpu_csr csr;
    int32_t *starts, *columns;
    block values;
} sparse;

static sparse make_sparse(gpu_dtype t, int64_t rows, int64_t cols, double share)
{
    sparse s;
    int32_t n = 0;
    s.starts = malloc((size_t)(rows + 1) * sizeof *s.starts);
    s.columns = malloc((size_t)(rows * cols) * sizeof *s.columns);
    s.starts[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int is_empty = next_below(4) == 0;
        for (int64_t j = 0; j < cols && !is_empty; j++)
            if (next_uniform() < share)
                s.columns[n++] = (int32_t)j;
        s.starts[i + 1] = n;
    }
    s.values = make(t, 1, n, DENSE);
    s.csr = (gpu_csr){rows, cols, n, s.starts, s.columns, s.values.memory, t};
    return s;
}

static void drop_sparse(sparse *s)
{
    free(s->starts);
    free(s->columns);
    drop(&s->values);
}

/* The exact element of s d, and the sum of its terms' sizes. */
static long double exact(const sparse *s, const gpu_view *d, int64_t i,
                         int64_t j, double *magnitude)
{
    long double sum = 0;
    *magnitude = 0;
    for (int32_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
        double x = get(&s->values.v, 0, e), y = get(d, s->columns[e], j);
        sum += (long double)x * y;
        *magnitude += fabs(x * y);
    }
    return sum;
}

static gpu_status multiply(const sparse *s, const block *d, const block *c,
                           double alpha, double beta)
{
    gpu_sparse_call p = {
        .s = s->csr, .d = d->v, .c = c->v, .alpha = alpha, .beta = beta};
    return cpu->sparse_product(device, &p);
}

static void check_integers(gpu_dtype t, const int64_t size[3],
                           const layout how[2], double alpha, double beta)
{
    sparse s = make_sparse(t, size[0], size[1], 0.3);
    block d = make(t, size[1], size[2], how[0]);
    block c = make(t, size[0], size[2], how[1]);
    block old = make(t, size[0], size[2], DENSE);
    fill_integers(&s.values.v, 8);
    fill_integers(&d.v, 8);
    fill_integers(&old.v, 8);
    for (int64_t i = 0; i < size[0]; i++)
        for (int64_t j = 0; j < size[2]; j++)
            set(&c.v, i, j, beta == 0 ? NAN : get(&old.v, i, j));
    assert_int_equal(multiply(&s, &d, &c, alpha, beta), GPU_OK);
    for (int64_t i = 0; i < size[0]; i++)
        for (int64_t j = 0; j < size[2]; j++) {
            double terms;
            double want = alpha * (double)exact(&s, &d.v, i, j, &terms) +
                          beta * get(&old.v, i, j);
            if (get(&c.v, i, j) != want)
                fail_msg("%ldx%ldx%ld type %d layouts %d %d (%ld, %ld): %g "
                         "not %g",
                         (long)size[0], (long)size[1], (long)size[2], t, how[0],
                         how[1], (long)i, (long)j, get(&c.v, i, j), want);
        }
    drop_sparse(&s);
    drop(&d);
    drop(&c);
    drop(&old);
}

static void integers_are_exact(void **state)
{
    (void)state;
    static const double alphas[] = {1, 1, 2, -1}, betas[] = {0, 1, -3, 0};
    for (int round = 0; round < 1000; round++) {
        int64_t size[3];
        layout how[2] = {(layout)next_below(LAYOUTS),
                         (layout)next_below(LAYOUTS)};
        for (int i = 0; i < 3; i++)
            size[i] = sides[next_below(SIDES)];
        check_integers(round % 2 ? GPU_F64 : GPU_F32, size, how,
                       alphas[round % 4], betas[round % 4]);
    }
}

/* f32 results are the exact sums rounded, but for f64's own errors. */
static void sums_are_kept_in_f64(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 3, 70};
    for (int k = 0; k < 3; k++) {
        sparse s = make_sparse(GPU_F32, 20, 3000, 0.5);
        block d = make(GPU_F32, 3000, columns[k], DENSE);
        block c = make(GPU_F32, 20, columns[k], DENSE);
        fill_uniform(&s.values.v, -1, 1);
        fill_uniform(&d.v, -1, 1);
        assert_int_equal(multiply(&s, &d, &c, 1, 0), GPU_OK);
        for (int64_t i = 0; i < 20; i++)
            for (int64_t j = 0; j < columns[k]; j++) {
                double terms;
                double want = (double)exact(&s, &d.v, i, j, &terms);
                double got = get(&c.v, i, j);
                assert_true(fabs(got - want) <=
                            0x1p-24 * fabs(want) + 1e-13 * terms);
            }
        drop_sparse(&s);
        drop(&d);
        drop(&c);
    }
}

/* Rows of very different lengths, cut for different numbers of threads. */
static void threads_do_not_matter(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 200};
    for (int k = 0; k < 2; k++) {
        sparse s = make_sparse(GPU_F32, 300, 2000, 0.4);
        block d = make(GPU_F32, 2000, columns[k], DENSE), c[3];
        size_t bytes = (size_t)(300 * columns[k]) * 4;
        static const int threads[] = {1, 2, 7};
        fill_uniform(&s.values.v, -1, 1);
        fill_uniform(&d.v, -1, 1);
        for (int n = 0; n < 3; n++) {
            c[n] = make(GPU_F32, 300, columns[k], DENSE);
            gpu_cpu_set_threads(threads[n]);
            assert_int_equal(multiply(&s, &d, &c[n], 1, 0), GPU_OK);
        }
        gpu_cpu_set_threads(0);
        assert_memory_equal(c[0].memory, c[1].memory, bytes);
        assert_memory_equal(c[0].memory, c[2].memory, bytes);
        for (int n = 0; n < 3; n++)
            drop(&c[n]);
        drop_sparse(&s);
        drop(&d);
    }
}

/* The transpose of s, made. */
static sparse turned(const sparse *s)
{
    sparse t;
    gpu_dtype type = s->csr.dtype;
    t.starts = malloc((size_t)(s->csr.cols + 1) * sizeof *t.starts);
    t.columns = malloc((size_t)(s->csr.count + 1) * sizeof *t.columns);
    t.values = make(type, 1, s->csr.count, DENSE);
    assert_int_equal(cpu->sparse_transpose(device, &s->csr, t.starts, t.columns,
                                           t.values.memory),
                     GPU_OK);
    t.csr = (gpu_csr){s->csr.cols, s->csr.rows,     s->csr.count, t.starts,
                      t.columns,   t.values.memory, type};
    return t;
}

/* s^T d with and without the transpose, and c where it was: bit for bit. */
static void check_turned(const sparse *s, int64_t cols, const layout how[2],
                         double alpha, double beta)
{
    gpu_dtype type = s->csr.dtype;
    int64_t rows = s->csr.cols;
    sparse t = turned(s);
    block d = make(type, s->csr.rows, cols, how[0]);
    block got = make(type, rows, cols, how[1]);
    block want = make(type, rows, cols, DENSE);
    gpu_sparse_call p = {
        .s = s->csr, .d = d.v, .c = got.v, .alpha = alpha, .beta = beta};
    fill_uniform(&d.v, -1, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = beta == 0 ? NAN : (double)(i - j);
            set(&got.v, i, j, x);
            set(&want.v, i, j, x);
        }
    assert_int_equal(cpu->sparse_turned_product(device, &p), GPU_OK);
    assert_int_equal(multiply(&t, &d, &want, alpha, beta), GPU_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            if (get(&got.v, i, j) != get(&want.v, i, j))
                fail_msg("%ldx%ldx%ld type %d layouts %d %d (%ld, %ld): %a "
                         "not %a",
                         (long)rows, (long)s->csr.rows, (long)cols, type,
                         how[0], how[1], (long)i, (long)j, get(&got.v, i, j),
                         get(&want.v, i, j));
    drop_sparse(&t);
    drop(&d);
    drop(&got);
    drop(&want);
}

/* Bands of columns for any number of threads, where there are entries enough
 * for them, and more than one strip. */
static void the_transpose_has_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7}, wide[] = {1, 2, 8, 70};
    static const double alphas[] = {1, 2}, betas[] = {0, -3};
    for (int round = 0; round < 400; round++) {
        layout how[2] = {(layout)next_below(LAYOUTS),
                         (layout)next_below(LAYOUTS)};
        int64_t rows = round % 7 == 0 ? 700 : sides[next_below(SIDES)];
        int64_t cols = round % 7 == 0 ? 400 : sides[next_below(SIDES)];
        sparse s = make_sparse(round % 2 ? GPU_F64 : GPU_F32, rows, cols, 0.3);
        fill_uniform(&s.values.v, -1, 1);
        gpu_cpu_set_threads(threads[round / 4 % 4]);
        check_turned(&s, wide[round % 4], how, alphas[round % 2],
                     betas[round / 2 % 2]);
        drop_sparse(&s);
    }
    gpu_cpu_set_threads(0);
}

static void interruption(void **state)
{
    (void)state;
    sparse s = make_sparse(GPU_F64, 100, 100, 0.5);
    block d = make(GPU_F64, 100, 100, TURNED), c = make(GPU_F64, 100, 100, 0);
    block x = make(GPU_F64, 100, 1, DENSE), y = make(GPU_F64, 100, 1, DENSE);
    interrupted = 1;
    gpu_status wide = multiply(&s, &d, &c, 1, 0);
    gpu_status narrow = multiply(&s, &x, &y, 1, 0);
    gpu_sparse_call p = {.s = s.csr, .d = x.v, .c = y.v, .alpha = 1};
    gpu_status over = cpu->sparse_turned_product(device, &p);
    interrupted = 0;
    assert_int_equal(over, GPU_INTERRUPTED);
    assert_int_equal(wide, GPU_INTERRUPTED);
    assert_int_equal(narrow, GPU_INTERRUPTED);
    assert_string_equal(message, "interrupted");
    assert_int_equal(multiply(&s, &d, &c, 1, 0), GPU_OK);
    drop_sparse(&s);
    drop(&d);
    drop(&c);
    drop(&x);
    drop(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(sums_are_kept_in_f64),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(the_transpose_has_the_same_bits),
        cmocka_unit_test(interruption),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
