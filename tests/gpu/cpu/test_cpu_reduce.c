/* Reductions on the CPU: every kind, axis, layout and type against naive
 * loops, with ties, NaN, long sums and products near overflow. */
#include "cpu.h"
#include "cpu_testing.h"
#include "op_list.h"

static const int64_t shapes[][2] = {
    {1, 1},     {2, 2},     {1, 7},     {9, 1},     {3, 70},
    {1030, 1},  {33, 31},   {1, 2100},  {5, 3000},  {3000, 5},
    {260, 257}, {2, 40000}, {70000, 1}, {30000, 3},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct naive {
    long double sum, product, squares;
    double smallest, largest;
    int64_t smallest_at, largest_at;
    int64_t n;
} naive;

static void take(naive *f, double v, int64_t at)
{
    if (f->n++ == 0) {
        *f = (naive){v, v, (long double)v * v, v, v, at, at, 1};
        return;
    }
    f->sum += v;
    f->product *= v;
    f->squares += (long double)v * v;
    if (!isnan(f->smallest) && (isnan(v) || v < f->smallest)) {
        f->smallest = v;
        f->smallest_at = at;
    }
    if (!isnan(f->largest) && (isnan(v) || v > f->largest)) {
        f->largest = v;
        f->largest_at = at;
    }
}

static double answer(const naive *f, gpu_reduction kind)
{
    switch (kind) {
    case GPU_REDUCE_sum:
        return (double)f->sum;
    case GPU_REDUCE_prod:
        return (double)f->product;
    case GPU_REDUCE_min:
        return f->smallest;
    case GPU_REDUCE_max:
        return f->largest;
    case GPU_REDUCE_argmin:
        return (double)f->smallest_at;
    case GPU_REDUCE_SQUARES:
        return (double)f->squares;
    case GPU_REDUCE_SPREAD:
        return (double)(f->squares - f->sum * f->sum / (long double)f->n);
    default:
        return (double)f->largest_at;
    }
}

/* Everything is exact, as the elements are small integers, but for the mean and
 * what is measured from there. */
static int is_right(gpu_reduction kind, double got, double want)
{
    if (kind == GPU_REDUCE_SPREAD && isfinite(want))
        return fabs(got - want) <= 1e-14 * want + 1e-12;
    return got == want || (isnan(got) && isnan(want));
}

static void check(const block *x, gpu_reduction kind, int axis, gpu_dtype t)
{
    int64_t m = x->v.rows, n = x->v.cols;
    int64_t lines = axis == 0 ? 1 : axis == 1 ? n : m;
    naive *f = calloc((size_t)lines, sizeof *f);
    block r = make(GPU_F64, axis == 2 ? m : 1, axis == 1 ? n : 1, DENSE);
    gpu_program p = empty_program(t);
    p.reduction = (uint8_t)kind;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            take(&f[axis == 0   ? 0
                    : axis == 1 ? j
                                : i],
                 get(&x->v, i, j),
                 axis == 0   ? i * n + j
                 : axis == 1 ? i
                             : j);
    assert_int_equal(cpu->reduce(device, &p, &x->v, axis, &r.v), GPU_OK);
    for (int64_t l = 0; l < lines; l++) {
        double got = ((double *)r.memory)[l], want = answer(&f[l], kind);
        if (!is_right(kind, got, want))
            fail_msg("kind %d axis %d of %ldx%ld type %d line %ld: %.17g not "
                     "%.17g",
                     kind, axis, (long)m, (long)n, x->v.dtype, (long)l, got,
                     want);
    }
    free(f);
    drop(&r);
}

static void check_all(const block *x)
{
    gpu_dtype t = x->v.dtype == GPU_F64 ? GPU_F64 : GPU_F32;
    for (int axis = 0; axis < 3; axis++)
        for (gpu_reduction k = GPU_REDUCE_sum; k <= GPU_REDUCE_argmax; k++)
            if (k != GPU_REDUCE_prod)
                check(x, k, axis, t);
    for (int axis = 0; axis < 3; axis++) {
        check(x, GPU_REDUCE_SQUARES, axis, t);
        check(x, GPU_REDUCE_SPREAD, axis, t);
    }
}

/* Small integers: sums are exact and ties are many. */
static void every_kind(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++) {
            gpu_dtype t = (gpu_dtype)((s + how) % GPU_DTYPES);
            block x = make(t, shapes[s][0], shapes[s][1], (layout)how);
            fill_integers(&x.v, 3);
            check_all(&x);
            drop(&x);
        }
}

static void nan_wins(void **state)
{
    (void)state;
    for (int s = 3; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++) {
            int64_t m = shapes[s][0], n = shapes[s][1];
            block x = make(GPU_F32, m, n, (layout)how);
            fill_integers(&x.v, 1000);
            for (int k = 0; k < 3; k++)
                set(&x.v, next_below(m), next_below(n), NAN);
            set(&x.v, next_below(m), next_below(n), -INFINITY);
            check_all(&x);
            drop(&x);
        }
}

static void all_infinite(void **state)
{
    (void)state;
    block x = make(GPU_F64, 3, 50, DENSE);
    for (int64_t i = 0; i < 150; i++)
        set(&x.v, i / 50, i % 50, -INFINITY);
    check_all(&x);
    drop(&x);
}

static double reduce_one(gpu_reduction kind, const block *x)
{
    block r = make(GPU_F64, 1, 1, DENSE);
    gpu_program p = empty_program(x->v.dtype == GPU_F64 ? GPU_F64 : GPU_F32);
    p.reduction = (uint8_t)kind;
    assert_int_equal(cpu->reduce(device, &p, &x->v, 0, &r.v), GPU_OK);
    double value = get(&r.v, 0, 0);
    drop(&r);
    return value;
}

static void products(void **state)
{
    (void)state;
    block x = make(GPU_F64, 4000, 1, DENSE);
    for (int64_t i = 0; i < 4000; i++)
        set(&x.v, i, 0, i % 2 ? 1e-200 : 1e200);
    assert_true(fabs(reduce_one(GPU_REDUCE_prod, &x) - 1) < 1e-12);
    for (int64_t i = 0; i < 4000; i++)
        set(&x.v, i, 0, i < 2000 ? 1e10 : 1e-10);
    assert_true(fabs(reduce_one(GPU_REDUCE_prod, &x) - 1) < 1e-12);
    set(&x.v, 77, 0, 0);
    assert_true(reduce_one(GPU_REDUCE_prod, &x) == 0);
    set(&x.v, 78, 0, INFINITY);
    assert_true(isnan(reduce_one(GPU_REDUCE_prod, &x)));
    for (int64_t i = 0; i < 4000; i++)
        set(&x.v, i, 0, 2);
    assert_true(isinf(reduce_one(GPU_REDUCE_prod, &x)));
    x.v.rows = 170;
    for (int64_t i = 0; i < 170; i++)
        set(&x.v, i, 0, (double)(i + 1));
    assert_true(ulps(GPU_F64, reduce_one(GPU_REDUCE_prod, &x), tgammal(171)) <
                100);
    x.v.rows = 4000;
    drop(&x);
}

/* In two levels, so that the reference's own error is far below f64's. */
static long double exact_sum(const block *x)
{
    long double sum = 0, part = 0;
    for (int64_t i = 0; i < x->v.rows; i++) {
        part += get(&x->v, i, 0);
        if (i % 3000 == 2999) {
            sum += part;
            part = 0;
        }
    }
    return sum + part;
}

static void long_sums(void **state)
{
    (void)state;
    for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
        int64_t n = 2000000;
        block x = make(t, n, 1, DENSE);
        long double size = 0;
        for (int64_t i = 0; i < n; i++)
            set(&x.v, i, 0, 0.1 + (double)(i % 3));
        long double sum = exact_sum(&x);
        double got = reduce_one(GPU_REDUCE_sum, &x);
        assert_true(fabsl(got - sum) <= 20 * 0x1p-53L * sum);
        for (int64_t i = 0; i < n; i++) {
            set(&x.v, i, 0, i % 2 ? -1e6 * (double)(i % 11) : next_uniform());
            size += fabs(get(&x.v, i, 0));
        }
        sum = exact_sum(&x);
        got = reduce_one(GPU_REDUCE_sum, &x);
        assert_true(fabsl(got - sum) <= 4 * 0x1p-53L * size);
        set(&x.v, n / 2, 0, INFINITY);
        assert_true(isinf(reduce_one(GPU_REDUCE_sum, &x)));
        drop(&x);
    }
}

/* What a large block's rounding takes away is added back at the end. */
static void cancellation(void **state)
{
    (void)state;
    block x = make(GPU_F64, 300000, 1, DENSE);
    set(&x.v, 0, 0, 1e17);
    for (int64_t i = 1; i < 290; i++)
        set(&x.v, i * 1024, 0, 1);
    set(&x.v, 299999, 0, -1e17);
    assert_true(reduce_one(GPU_REDUCE_sum, &x) == 289);
    drop(&x);
}

/* Sum of squares of differences over a broadcast row. */
static void programs(void **state)
{
    (void)state;
    int64_t m = 700, n = 65;
    block x = make(GPU_F64, m, n, TURNED), mean = make(GPU_F64, 1, n, DENSE);
    block r = make(GPU_F64, 1, n, DENSE);
    gpu_program p = program_of(GPU_OP_sub, 2, GPU_F64);
    p.length = 2;
    p.code[1] = (gpu_instruction){GPU_OP_square, 2, 0, 0};
    p.reduction = GPU_REDUCE_sum;
    fill_integers(&x.v, 100);
    fill_integers(&mean.v, 10);
    gpu_view in[2] = {x.v, {mean.v.data, GPU_F64, m, n, 0, 1}};
    assert_int_equal(cpu->reduce(device, &p, in, 1, &r.v), GPU_OK);
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++) {
            double d = get(&x.v, i, j) - get(&mean.v, 0, j);
            sum += d * d;
        }
        assert_true(get(&r.v, 0, j) == sum);
    }
    drop(&x);
    drop(&mean);
    drop(&r);
}

/* What was squared and added in another order, in long double. */
static long double exact_spread(const block *x)
{
    long double mean = exact_sum(x) / (long double)x->v.rows, sum = 0;
    for (int64_t i = 0; i < x->v.rows; i++) {
        long double apart = (long double)get(&x->v, i, 0) - mean;
        sum += apart * apart;
    }
    return sum;
}

/* Elements far from 0, and one far from all others: at first, where distances
 * are measured from it, and later. */
static void spreads(void **state)
{
    (void)state;
    enum { N = 300000 };
    static const double centres[] = {0, 1e9, -1e12};
    static const int64_t places[] = {0, 1, 8192, N / 2, N - 1};
    block x = make(GPU_F64, N, 1, DENSE);
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < 5; p++) {
            fill_uniform(&x.v, -1, 1);
            for (int64_t i = 0; i < N; i++)
                set(&x.v, i, 0, centres[c] + get(&x.v, i, 0));
            long double want = exact_spread(&x);
            double got = reduce_one(GPU_REDUCE_SPREAD, &x);
            assert_true(fabsl(got - want) <= 1e-12L * want);
            set(&x.v, places[p], 0, 1e15);
            want = exact_spread(&x);
            got = reduce_one(GPU_REDUCE_SPREAD, &x);
            assert_true(fabsl(got - want) <= 1e-12L * want);
        }
    drop(&x);
}

static void check_threads(const block *x, gpu_reduction kind)
{
    block r[2];
    gpu_program p = empty_program(GPU_F64);
    p.reduction = (uint8_t)kind;
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 2; k++) {
            r[k] =
                make(GPU_F64, axis == 2 ? 3000 : 1, axis == 1 ? 401 : 1, DENSE);
            gpu_cpu_set_threads(k ? 7 : 1);
            assert_int_equal(cpu->reduce(device, &p, &x->v, axis, &r[k].v),
                             GPU_OK);
        }
        gpu_cpu_set_threads(0);
        assert_memory_equal(r[0].memory, r[1].memory, r[0].bytes - 1);
        drop(&r[0]);
        drop(&r[1]);
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    block x = make(GPU_F64, 3000, 401, DENSE);
    fill_uniform(&x.v, -1, 1);
    check_threads(&x, GPU_REDUCE_sum);
    check_threads(&x, GPU_REDUCE_SQUARES);
    check_threads(&x, GPU_REDUCE_SPREAD);
    drop(&x);
}

static void results_of_every_type(void **state)
{
    (void)state;
    block x = make(GPU_F32, 3, 4, DENSE), f = make(GPU_F32, 1, 4, DENSE);
    block b = make(GPU_BOOL, 3, 1, DENSE);
    gpu_program p = empty_program(GPU_F32);
    set(&x.v, 1, 2, 0.5);
    p.reduction = GPU_REDUCE_max;
    assert_int_equal(cpu->reduce(device, &p, &x.v, 1, &f.v), GPU_OK);
    assert_int_equal(cpu->reduce(device, &p, &x.v, 2, &b.v), GPU_OK);
    assert_true(get(&f.v, 0, 2) == 0.5 && get(&f.v, 0, 1) == 0);
    assert_true(get(&b.v, 0, 0) == 0 && get(&b.v, 1, 0) == 1);
    drop(&x);
    drop(&f);
    drop(&b);
}

static void interruption(void **state)
{
    (void)state;
    block x = make(GPU_F32, 100000, 10, DENSE), r = make(GPU_F64, 1, 10, DENSE);
    gpu_program p = empty_program(GPU_F32);
    p.reduction = GPU_REDUCE_sum;
    interrupted = 1;
    gpu_status whole = cpu->reduce(device, &p, &x.v, 0, &r.v);
    gpu_status lines = cpu->reduce(device, &p, &x.v, 1, &r.v);
    interrupted = 0;
    assert_int_equal(whole, GPU_INTERRUPTED);
    assert_int_equal(lines, GPU_INTERRUPTED);
    drop(&x);
    drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),
        cmocka_unit_test(nan_wins),
        cmocka_unit_test(all_infinite),
        cmocka_unit_test(products),
        cmocka_unit_test(long_sums),
        cmocka_unit_test(cancellation),
        cmocka_unit_test(programs),
        cmocka_unit_test(spreads),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(results_of_every_type),
        cmocka_unit_test(interruption),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
