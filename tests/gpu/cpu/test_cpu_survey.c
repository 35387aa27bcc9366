/* Looking at matrices on the CPU: surveys, histograms and blocks of every
 * layout and type against naive loops, with ties, NaN, infinities, subnormals
 * and extremes, and the same bits for any number of threads. */
#include <float.h>
#include "cpu.h"
#include "cpu_testing.h"

static const int64_t shapes[][2] = {
    {1, 1},    {2, 2},    {1, 7},     {9, 1},     {31, 31},   {32, 32},
    {33, 33},  {64, 64},  {100, 100}, {3, 70},    {1030, 1},  {33, 31},
    {1, 2100}, {5, 3000}, {3000, 5},  {260, 257}, {300, 300}, {70000, 2},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* --- surveys -------------------------------------------------------------- */

static void take_element(gpu_survey *s, double x, int64_t i, int64_t j,
                         int64_t at, double tiny)
{
    if (x != 0 && i - j > s->lower)
        s->lower = i - j;
    if (x != 0 && j - i > s->upper)
        s->upper = j - i;
    s->zeros += x == 0;
    s->subnormal += x != 0 && fabs(x) < tiny;
    s->nan += isnan(x);
    s->inf += isinf(x) != 0;
    if (!isfinite(x)) {
        s->odd_at = s->odd_at < 0 ? at : s->odd_at;
        return;
    }
    if (s->finite++ == 0 || x < s->min)
        s->min = x, s->min_at = at;
    if (s->max_at < 0 || x > s->max)
        s->max = x, s->max_at = at;
}

static double asymmetry_of(const gpu_view *v)
{
    double most = 0;
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double x = get(v, i, j), y = get(v, j, i), apart = fabs(x - y);
            if (v->dtype == GPU_F32)
                apart = (float)apart;
            if (apart > most)
                most = apart;
            if (isnan(x) != isnan(y))
                most = INFINITY;
        }
    return most;
}

/* Moments in two passes, in long double. */
static void take_moments(const gpu_view *v, double scale, gpu_survey *s)
{
    long double sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < v->rows; i++)
            for (int64_t j = 0; j < v->cols; j++) {
                long double x = get(v, i, j);
                if (!isfinite((double)x))
                    continue;
                if (pass == 0)
                    sum += x * scale;
                else
                    squares += (x * scale - sum / s->finite) *
                               (x * scale - sum / s->finite);
            }
    s->mean = s->finite ? (double)(sum / s->finite) : 0;
    s->squares = (double)squares;
}

static gpu_survey naive_survey(const gpu_view *v, double scale)
{
    gpu_survey s = {.min_at = -1, .max_at = -1, .odd_at = -1};
    s.lower = s.upper = GPU_NO_BAND;
    double tiny = v->dtype == GPU_F64 ? DBL_MIN : FLT_MIN;
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++)
            take_element(&s, get(v, i, j), i, j, i * v->cols + j, tiny);
    if (v->rows == v->cols)
        s.asymmetry = asymmetry_of(v);
    take_moments(v, scale, &s);
    return s;
}

static void assert_near(double got, double want, double spread)
{
    if (!(fabs(got - want) <= 1e-13 * (fabs(want) + spread)))
        fail_msg("%.17g is not %.17g", got, want);
}

static void check_survey(const block *b, double scale)
{
    gpu_survey s, w = naive_survey(&b->v, scale);
    assert_int_equal(cpu->survey(device, &b->v, scale, &s), GPU_OK);
    assert_int_equal(s.finite, w.finite);
    assert_int_equal(s.zeros, w.zeros);
    assert_int_equal(s.nan, w.nan);
    assert_int_equal(s.inf, w.inf);
    assert_int_equal(s.subnormal, w.subnormal);
    assert_int_equal(s.min_at, w.min_at);
    assert_int_equal(s.max_at, w.max_at);
    assert_int_equal(s.odd_at, w.odd_at);
    assert_int_equal(s.lower, w.lower);
    assert_int_equal(s.upper, w.upper);
    if (w.finite > 0) {
        assert_true(s.min == w.min && s.max == w.max);
        assert_near(s.mean, w.mean, sqrt(w.squares / (double)w.finite));
        assert_near(s.squares, w.squares, 0);
    }
    if (b->v.rows == b->v.cols)
        assert_true(s.asymmetry == w.asymmetry);
}

static void surveys_of_everything(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++)
            for (int t = 0; t < GPU_DTYPES; t++) {
                block b =
                    make((gpu_dtype)t, shapes[s][0], shapes[s][1], (layout)how);
                fill_integers(&b.v, 3); /* many ties and zeros */
                check_survey(&b, 1);
                if (t != GPU_BOOL) {
                    fill_uniform(&b.v, -1, 5);
                    check_survey(&b, 1);
                }
                drop(&b);
            }
}

/* A few of the elements made odd. */
static void spoil_some(const gpu_view *v)
{
    double tiny = v->dtype == GPU_F64 ? 1e-310 : 1e-40;
    const double odd[] = {NAN, INFINITY, -INFINITY, tiny, -tiny, 0, -0.0};
    for (int k = 0; k < 14; k++)
        set(v, next_below(v->rows), next_below(v->cols), odd[k % 7]);
}

static void oddities_are_counted_and_left_out(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++)
            for (int t = GPU_F32; t <= GPU_F64; t++) {
                block b =
                    make((gpu_dtype)t, shapes[s][0], shapes[s][1], (layout)how);
                fill_uniform(&b.v, -3, 1);
                spoil_some(&b.v);
                check_survey(&b, 1);
                drop(&b);
            }
}

static void nothing_finite(void **state)
{
    (void)state;
    block b = make(GPU_F32, 40, 40, DENSE);
    for (int64_t k = 0; k < 1600; k++)
        set(&b.v, k / 40, k % 40, NAN);
    check_survey(&b, 1);
    drop(&b);
}

/* A large mean and a small spread: the squares of the elements would lose
 * every digit of it, and a mean rounded to f64 costs some. */
static void spread_beside_a_large_mean(void **state)
{
    (void)state;
    block b = make(GPU_F64, 200, 200, DENSE);
    fill_uniform(&b.v, 1e9, 1e9 + 1);
    gpu_survey s, w = naive_survey(&b.v, 1);
    assert_int_equal(cpu->survey(device, &b.v, 1, &s), GPU_OK);
    assert_true(fabs(s.squares / w.squares - 1) < 1e-6);
    set(&b.v, 0, 0, -1e12); /* and an element far from all others, first */
    w = naive_survey(&b.v, 1);
    assert_int_equal(cpu->survey(device, &b.v, 1, &s), GPU_OK);
    assert_true(fabs(s.squares / w.squares - 1) < 1e-6);
    drop(&b);
}

static void scaled_moments(void **state)
{
    (void)state;
    block b = make(GPU_F64, 70, 70, TURNED);
    fill_uniform(&b.v, -1e300, 1e300);
    check_survey(&b, 0x1p-1000);
    fill_uniform(&b.v, -1e-300, 1e-300);
    check_survey(&b, 0x1p1000);
    drop(&b);
}

static void structures(void **state)
{
    (void)state;
    for (int64_t n = 2; n < 140; n += 23)
        for (int64_t band = -n; band <= n; band += 7) {
            block b = make(GPU_F32, n, n, band & 1 ? TURNED : DENSE);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    set(&b.v, i, j, i - j <= band && j - i <= 3);
            check_survey(&b, 1);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    set(&b.v, i, j, (double)(i * j % 7));
            check_survey(&b, 1);
            set(&b.v, n - 1, 0, NAN);
            check_survey(&b, 1);
            set(&b.v, 0, n - 1, NAN);
            check_survey(&b, 1);
            drop(&b);
        }
}

static void any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t some[][2] = {{700, 700}, {300, 2000}, {600000, 1}};
    for (int k = 0; k < 3; k++) {
        block b = make(GPU_F32, some[k][0], some[k][1], DENSE);
        gpu_survey one, many;
        fill_uniform(&b.v, 0, 1);
        gpu_cpu_set_threads(1);
        assert_int_equal(cpu->survey(device, &b.v, 1, &one), GPU_OK);
        gpu_cpu_set_threads(7);
        assert_int_equal(cpu->survey(device, &b.v, 1, &many), GPU_OK);
        gpu_cpu_set_threads(0);
        assert_memory_equal(&one, &many, sizeof one);
        drop(&b);
    }
}

/* --- blocks --------------------------------------------------------------- */

static double naive_block(const gpu_view *v, gpu_block_kind kind, int64_t p,
                          int64_t q, int64_t rows, int64_t cols)
{
    double sum = 0, largest = 0, low = NAN, high = NAN;
    int64_t top = p * v->rows / rows, left = q * v->cols / cols, n = 0;
    for (int64_t i = top; i < (p + 1) * v->rows / rows; i++)
        for (int64_t j = left; j < (q + 1) * v->cols / cols; j++, n++) {
            double x = get(v, i, j);
            sum += x;
            largest = isnan(x) || fabs(x) > largest ? fabs(x) : largest;
            low = isnan(low) || x < low ? x : low;
            high = isnan(high) || x > high ? x : high;
        }
    return kind == GPU_BLOCK_MEAN      ? sum / (double)n
           : kind == GPU_BLOCK_LARGEST ? largest
           : kind == GPU_BLOCK_MIN     ? low
                                       : high;
}

static void check_blocks(const block *b, int64_t rows, int64_t cols)
{
    for (int k = 0; k < GPU_BLOCK_KINDS; k++) {
        gpu_block_kind kind = (gpu_block_kind)k;
        block to = make(GPU_F64, rows, cols, DENSE);
        assert_int_equal(cpu->blocks(device, kind, &b->v, &to.v), GPU_OK);
        for (int64_t p = 0; p < rows; p++)
            for (int64_t q = 0; q < cols; q++) {
                double got = get(&to.v, p, q);
                double want = naive_block(&b->v, kind, p, q, rows, cols);
                if (!same(got, want) && !(fabs(got - want) < 1e-12))
                    fail_msg("block %d: %.17g not %.17g", k, got, want);
            }
        drop(&to);
    }
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void blocks_of_everything(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++) {
            gpu_dtype t = (gpu_dtype)((s + how) % GPU_DTYPES);
            int64_t m = shapes[s][0], n = shapes[s][1];
            block b = make(t, m, n, (layout)how);
            fill_uniform(&b.v, -2, 1);
            check_blocks(&b, 1, 1);
            check_blocks(&b, at_most(m, 7), at_most(n, 10));
            if (t != GPU_BOOL)
                for (int k = 0; k < 9; k++)
                    set(&b.v, next_below(m), next_below(n),
                        k & 1 ? NAN : -INFINITY);
            check_blocks(&b, at_most(m, 64), at_most(n, 33));
            drop(&b);
        }
}

/* --- histograms ----------------------------------------------------------- */

/* By the edges alone; near: how often the backend looks at them. */
static void check_bins(const block *b, const gpu_edges *e, double near)
{
    int64_t counts[40], want[40] = {0};
    gpu_bins how = {*e, gpu_edge(e, 0), e->by > 0 ? 1 / e->by : 0, near};
    for (int k = 0; k < e->count; k++)
        assert_true(gpu_edge(e, k) <= gpu_edge(e, k + 1));
    for (int64_t i = 0; i < b->v.rows; i++)
        for (int64_t j = 0; j < b->v.cols; j++) {
            double x = get(&b->v, i, j);
            int bin = e->count - 1;
            while (bin > 0 && x < gpu_edge(e, bin))
                bin--;
            want[bin] += x >= how.low && x <= e->high;
        }
    assert_int_equal(cpu->bins(device, &b->v, &how, counts), GPU_OK);
    for (int k = 0; k < e->count; k++)
        assert_int_equal(counts[k], want[k]);
}

static void check_even_bins(const block *b, double low, double high, int count)
{
    gpu_edges e = gpu_even_edges(low, high, count);
    assert_true(gpu_edge(&e, 0) == low && gpu_edge(&e, count) == high);
    check_bins(b, &e, 1);
    check_bins(b, &e, 1e-9);
}

/* Elements on edges, and those beside them. */
static void fill_edges(const gpu_view *v, double low, double high, int count)
{
    gpu_edges e = gpu_even_edges(low, high, count);
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++) {
            double x = gpu_edge(&e, (int)next_below(count + 1));
            int64_t way = next_below(3);
            set(v, i, j, way == 0 ? x : nextafter(x, way == 1 ? low : high));
        }
}

static void bins_of_any_range(void **state)
{
    static const double range[][2] = {{-3, 4},
                                      {0, 1},
                                      {-1.7e308, 1.7e308},
                                      {1, 1 + 1e-15},
                                      {0, 5e-324},
                                      {-1e-310, 3e-310},
                                      {1e300, 1.7e308},
                                      {-2e-308, 1e-320},
                                      {1e16, 1e16 + 4}};
    (void)state;
    for (size_t k = 0; k < sizeof range / sizeof *range; k++)
        for (int count = 1; count <= 40; count += 13) {
            block b = make(GPU_F64, 20, 50, DENSE);
            gpu_edges e = gpu_even_edges(range[k][0], range[k][1], count);
            assert_true(gpu_edge(&e, 0) == range[k][0]);
            assert_true(gpu_edge(&e, count) == range[k][1]);
            fill_edges(&b.v, range[k][0], range[k][1], count);
            check_bins(&b, &e, 1);
            drop(&b);
        }
}

static void bins_of_everything(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++) {
            gpu_dtype t = (gpu_dtype)((s + how) % GPU_DTYPES);
            block b = make(t, shapes[s][0], shapes[s][1], (layout)how);
            fill_uniform(&b.v, -4, 4);
            if (t != GPU_BOOL)
                spoil_some(&b.v);
            check_even_bins(&b, -4, 4, 40);
            check_even_bins(&b, 0, 1, 3);
            check_even_bins(&b, 0, 0, 1);
            drop(&b);
        }
}

static void a_stop_is_obeyed(void **state)
{
    (void)state;
    block b = make(GPU_F32, 2000, 2000, DENSE);
    block to = make(GPU_F64, 2, 2, DENSE);
    gpu_survey s;
    int64_t count;
    interrupted = 1;
    assert_int_equal(cpu->survey(device, &b.v, 1, &s), GPU_INTERRUPTED);
    assert_int_equal(cpu->blocks(device, GPU_BLOCK_MEAN, &b.v, &to.v),
                     GPU_INTERRUPTED);
    assert_int_equal(
        cpu->bins(device, &b.v, &(gpu_bins){{0, 1, 1, 1, 1}, 0, 1, 1}, &count),
        GPU_INTERRUPTED);
    interrupted = 0;
    drop(&to);
    drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(surveys_of_everything),
        cmocka_unit_test(oddities_are_counted_and_left_out),
        cmocka_unit_test(nothing_finite),
        cmocka_unit_test(spread_beside_a_large_mean),
        cmocka_unit_test(scaled_moments),
        cmocka_unit_test(structures),
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(blocks_of_everything),
        cmocka_unit_test(bins_of_everything),
        cmocka_unit_test(bins_of_any_range),
        cmocka_unit_test(a_stop_is_obeyed),
    };
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
