/* search, group, fold and windows on the CPU against naive versions, over
 * random shapes, layouts and types. */
#include "cpu.h"
#include "cpu_testing.h"

static layout any_layout(void)
{
    return (layout)next_below(LAYOUTS);
}

static gpu_dtype any_float(void)
{
    return next_below(2) ? GPU_F32 : GPU_F64;
}

/* Few different numbers, and now and then NaN. */
static void fill_some(const gpu_view *v, int64_t span, int64_t nan_in)
{
    for (int64_t i = 0; i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++)
            set(v, i, j,
                nan_in && next_below(nan_in) == 0
                    ? (double)NAN
                    : (double)(next_below(2 * span + 1) - span) / 4);
}

/* --- searching ------------------------------------------------------------ */

static int comes_before(double a, double x, int is_after)
{
    if (isnan(a))
        return isnan(x) && is_after;
    if (isnan(x))
        return 1;
    return is_after ? a <= x : a < x;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static void check_search(int64_t n, int64_t m, int64_t k)
{
    block list = make(any_float(), n, 1, any_layout());
    block x = make(any_float(), m, k, any_layout());
    block to = make(GPU_F64, m, k, any_layout());
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    int is_after = (int)next_below(2);
    fill_some(&list.v, n, n > 3 ? 5 : 0);
    fill_some(&x.v, n, 7);
    for (int64_t i = 0; i < n; i++)
        values[i] = get(&list.v, i, 0);
    qsort(values, (size_t)n, sizeof *values, compare);
    for (int64_t i = 0; i < n; i++)
        set(&list.v, i, 0, values[i]);
    assert_int_equal(cpu->search(device, &list.v, &x.v, is_after, &to.v),
                     GPU_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) {
            int64_t place = 0;
            while (place < n &&
                   comes_before(values[place], get(&x.v, i, j), is_after))
                place++;
            assert_true(get(&to.v, i, j) == (double)(place + 1));
        }
    free(values);
    drop(&list);
    drop(&x);
    drop(&to);
}

static void searching(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++)
        check_search(next_below(40), 1 + next_below(60), 1 + next_below(3));
    check_search(1000, 40000, 1);
    check_search(0, 5, 5);
}

/* --- groups --------------------------------------------------------------- */

/* Codes of which some are none, f32 ones too, and what their rows' groups are:
 * -1 for none. */
static block any_codes(int64_t rows, int64_t groups, double first,
                       int64_t *group)
{
    block codes = make(any_float(), rows, 1, any_layout());
    for (int64_t i = 0; i < rows; i++) {
        int64_t own = next_below(groups + 2) - 1;
        double more = next_below(2) ? 0.5 : 0;
        double x =
            next_below(20) == 0 ? (double)NAN : first + (double)own + more;
        set(&codes.v, i, 0, x);
        group[i] = isnan(x) || own >= groups ? -1 : own;
    }
    return codes;
}

static void check_group(int64_t rows, int64_t groups)
{
    int64_t *group = malloc((size_t)rows * sizeof *group), place = 0;
    block codes = any_codes(rows, groups, 3, group);
    block order = make(GPU_F64, rows, 1, any_layout());
    block counts = make(GPU_F64, groups, 1, any_layout());
    gpu_grouping g = {codes.v, 3, groups, order.v, counts.v};
    assert_int_equal(cpu->group(device, &g), GPU_OK);
    for (int64_t k = 0; k <= groups; k++) {
        int64_t before = place;
        for (int64_t i = 0; i < rows; i++)
            if (group[i] == (k < groups ? k : -1))
                assert_true(get(&order.v, place++, 0) == (double)(i + 1));
        if (k < groups)
            assert_true(get(&counts.v, k, 0) == (double)(place - before));
    }
    memset(counts.memory, 1, counts.bytes);
    g.order.data = NULL;
    assert_int_equal(cpu->group(device, &g), GPU_OK);
    double sum = 0;
    for (int64_t k = 0; k < groups; k++)
        sum += get(&counts.v, k, 0);
    for (int64_t i = 0; i < rows; i++)
        sum -= group[i] >= 0;
    assert_true(sum == 0);
    drop(&codes);
    drop(&order);
    drop(&counts);
    free(group);
}

static void grouping(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++)
        check_group(1 + next_below(200), 1 + next_below(30));
    check_group(200000, 5);
    check_group(150000, 40);
    check_group(5, 3000);
}

/* --- folds ---------------------------------------------------------------- */

/* Of values that add up exactly. NAN with count -1: no element yet. */
typedef struct folded {
    double value, count;
} folded;

static void take(folded *f, gpu_fold_kind kind, double x, double about,
                 int skips)
{
    if (kind == GPU_FOLD_COUNT) {
        f->value += !isnan(x);
        return;
    }
    if (isnan(x) && skips)
        return;
    switch (kind) {
    case GPU_FOLD_SUM:
        f->value += x;
        break;
    case GPU_FOLD_PROD:
        f->value *= x;
        break;
    case GPU_FOLD_SPREAD:
        f->value += (x - about) * (x - about);
        break;
    case GPU_FOLD_MAX:
        f->value = f->count == 0                 ? x
                   : isnan(x) || isnan(f->value) ? (double)NAN
                                                 : fmax(f->value, x);
        break;
    default:
        f->value = f->count == 0                 ? x
                   : isnan(x) || isnan(f->value) ? (double)NAN
                                                 : fmin(f->value, x);
    }
    f->count++;
}

static folded nothing(gpu_fold_kind kind)
{
    folded f = {0, 0};
    if (kind == GPU_FOLD_PROD)
        f.value = 1;
    if (kind == GPU_FOLD_MAX || kind == GPU_FOLD_MIN)
        f.value = NAN;
    return f;
}

static void expect(const gpu_folding *f, int64_t g, int64_t j, double want)
{
    double is = get(&f->to, g, j);
    assert_true(is == want || (isnan(is) && isnan(want)));
}

/* Of products only signs and twos, so that they are exact. */
static void fill_folded(const gpu_view *v, gpu_fold_kind kind, int64_t nan_in)
{
    fill_some(v, 20, nan_in);
    for (int64_t i = 0; kind == GPU_FOLD_PROD && i < v->rows; i++)
        for (int64_t j = 0; j < v->cols; j++)
            if (!isnan(get(v, i, j)))
                set(v, i, j, next_below(2) ? 1 : -1);
}

/* By codes, and by the starts and places that group makes of them. */
static void check_fold(int64_t rows, int64_t cols, int64_t groups,
                       gpu_fold_kind kind, int skips, int64_t nan_in)
{
    int64_t *group = malloc((size_t)rows * sizeof *group);
    block codes = any_codes(rows, groups, -2, group);
    block x = make(any_float(), rows, cols, any_layout());
    block about = make(GPU_F64, groups, cols, any_layout());
    block to = make(GPU_F64, groups, cols, any_layout());
    block order = make(GPU_F64, rows, 1, any_layout());
    block counts = make(GPU_F64, groups, 1, DENSE);
    block starts = make(GPU_F64, groups + 1, 1, any_layout());
    folded *want = malloc((size_t)(groups * cols) * sizeof *want);
    gpu_grouping g = {codes.v, -2, groups, order.v, counts.v};
    gpu_folding f = {.kind = kind,
                     .skips_nan = skips,
                     .from = x.v,
                     .codes = codes.v,
                     .first = -2,
                     .groups = groups,
                     .about = about.v,
                     .to = to.v};
    fill_folded(&x.v, kind, nan_in);
    fill_some(&about.v, 20, 0);
    for (int64_t i = 0; i < groups * cols; i++)
        want[i] = nothing(kind);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            if (group[i] >= 0)
                take(&want[group[i] * cols + j], kind, get(&x.v, i, j),
                     get(&about.v, group[i], j), skips);
    assert_int_equal(cpu->group(device, &g), GPU_OK);
    set(&starts.v, 0, 0, 1);
    for (int64_t k = 0; k < groups; k++)
        set(&starts.v, k + 1, 0, get(&starts.v, k, 0) + get(&counts.v, k, 0));
    for (int by_starts = 0; by_starts < 2; by_starts++) {
        assert_int_equal(cpu->fold(device, &f), GPU_OK);
        for (int64_t k = 0; k < groups; k++)
            for (int64_t j = 0; j < cols; j++)
                expect(&f, k, j, want[k * cols + j].value);
        f.codes.data = NULL;
        f.starts = starts.v;
        f.places = order.v;
    }
    block *all[] = {&codes, &x, &about, &to, &order, &counts, &starts};
    for (int i = 0; i < 7; i++)
        drop(all[i]);
    free(want);
    free(group);
}

static void folding(void **state)
{
    (void)state;
    for (int round = 0; round < 600; round++)
        check_fold(1 + next_below(90), 1 + next_below(4), 1 + next_below(12),
                   (gpu_fold_kind)(round % 6), round / 6 % 2,
                   round / 12 % 2 ? 6 : 0);
    for (int round = 0; round < 6; round++) {
        check_fold(200000, 1, 1 + next_below(5), (gpu_fold_kind)round, 1,
                   90000);
        check_fold(70000, 3, 40, (gpu_fold_kind)round, 0, 90000);
        check_fold(3000, 2, 20000, (gpu_fold_kind)round, 1, 6);
        check_fold(300, 70, 5, (gpu_fold_kind)round, 1, 6);
    }
}

/* Of columns whose rows are shuffled, with and without NaN. */
static void check_medians(int64_t rows, int64_t groups, int skips)
{
    int64_t *group = malloc((size_t)rows * sizeof *group);
    double *own = malloc((size_t)rows * sizeof *own);
    block codes = any_codes(rows, groups, 0, group);
    block x = make(any_float(), rows, 2, any_layout());
    block to = make(GPU_F64, groups, 2, any_layout());
    block order = make(GPU_F64, rows, 1, DENSE);
    block counts = make(GPU_F64, groups, 1, DENSE);
    block starts = make(GPU_F64, groups + 1, 1, DENSE);
    gpu_grouping g = {codes.v, 0, groups, order.v, counts.v};
    gpu_folding f = {.kind = GPU_FOLD_MEDIAN,
                     .skips_nan = skips,
                     .from = x.v,
                     .groups = groups,
                     .starts = starts.v,
                     .places = order.v,
                     .to = to.v};
    fill_some(&x.v, next_below(2) ? 3 : 1000, next_below(2) ? 9 : 0);
    assert_int_equal(cpu->group(device, &g), GPU_OK);
    set(&starts.v, 0, 0, 1);
    for (int64_t k = 0; k < groups; k++)
        set(&starts.v, k + 1, 0, get(&starts.v, k, 0) + get(&counts.v, k, 0));
    assert_int_equal(cpu->fold(device, &f), GPU_OK);
    for (int64_t k = 0; k < groups; k++)
        for (int64_t j = 0; j < 2; j++) {
            int64_t n = 0, nans = 0;
            for (int64_t i = 0; i < rows; i++)
                if (group[i] == k && !(isnan(get(&x.v, i, j)) && ++nans))
                    own[n++] = get(&x.v, i, j);
            qsort(own, (size_t)n, sizeof *own, compare);
            expect(&f, k, j,
                   n == 0 || (nans && !skips)
                       ? (double)NAN
                       : (own[(n - 1) / 2] + own[n / 2]) / 2);
        }
    block *all[] = {&codes, &x, &to, &order, &counts, &starts};
    for (int i = 0; i < 6; i++)
        drop(all[i]);
    free(own);
    free(group);
}

static void medians(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++)
        check_medians(1 + next_below(90), 1 + next_below(9), round % 2);
    check_medians(100000, 2, 1);
}

/* Rows that are in order already, and all of them in one group. */
static void folding_in_order(void **state)
{
    (void)state;
    for (int64_t rows = 10; rows < 300000; rows = 3 * rows + 1) {
        block x = make(any_float(), rows, 1, any_layout());
        block to = make(GPU_F64, 3, 1, DENSE), starts = make(GPU_F64, 4, 1, 0);
        double sum = 0;
        fill_some(&x.v, 20, 0);
        for (int64_t i = 4; i < rows; i++)
            sum += get(&x.v, i, 0);
        const double begin[] = {5, 5, (double)(rows + 1), (double)(rows + 1)};
        for (int k = 0; k < 4; k++)
            set(&starts.v, k, 0, begin[k]);
        gpu_folding f = {.kind = GPU_FOLD_SUM,
                         .from = x.v,
                         .groups = 3,
                         .starts = starts.v,
                         .to = to.v};
        assert_int_equal(cpu->fold(device, &f), GPU_OK);
        assert_true(get(&to.v, 0, 0) == 0 && get(&to.v, 1, 0) == sum &&
                    get(&to.v, 2, 0) == 0);
        drop(&x);
        drop(&to);
        drop(&starts);
    }
}

/* Sums that are rounded do not depend on how many threads there are. */
static void folds_repeat(void **state)
{
    (void)state;
    enum { ROWS = 300000, MOST = 20000 };
    block x = make(GPU_F64, ROWS, 1, DENSE), codes = make(GPU_F64, ROWS, 1, 0);
    fill_uniform(&x.v, -1, 1);
    for (int64_t groups = 3; groups <= MOST; groups += MOST - 3) {
        block one = make(GPU_F64, groups, 1, DENSE);
        block two = make(GPU_F64, groups, 1, DENSE);
        fill_uniform(&codes.v, 0, (double)groups);
        gpu_folding f = {.kind = GPU_FOLD_SUM,
                         .from = x.v,
                         .codes = codes.v,
                         .groups = groups,
                         .to = one.v};
        gpu_cpu_set_threads(1);
        assert_int_equal(cpu->fold(device, &f), GPU_OK);
        gpu_cpu_set_threads(3);
        f.to = two.v;
        assert_int_equal(cpu->fold(device, &f), GPU_OK);
        gpu_cpu_set_threads(0);
        assert_memory_equal(one.memory, two.memory,
                            (size_t)groups * sizeof(double));
        drop(&one);
        drop(&two);
    }
    drop(&x);
    drop(&codes);
}

/* --- windows -------------------------------------------------------------- */

static double window_value(gpu_window_kind kind, double *x, int64_t n)
{
    double sum = 0, spread = 0, least = x[0], most = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
        sum += x[i];
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        spread += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    switch (kind) {
    case GPU_WINDOW_MEAN:
        return sum / (double)n;
    case GPU_WINDOW_MIN:
        return least;
    case GPU_WINDOW_MAX:
        return most;
    case GPU_WINDOW_VAR:
        return spread / (double)(n - 1);
    default:
        qsort(x, (size_t)n, sizeof *x, compare);
        return (x[(n - 1) / 2] + x[n / 2]) / 2;
    }
}

static void check_windows(int64_t rows, int64_t cols, int64_t length,
                          int64_t first, int64_t results, gpu_window_kind kind)
{
    block x = make(any_float(), rows, cols, any_layout());
    block to = make(GPU_F64, results, cols, any_layout());
    gpu_windows w = {kind, length, first, x.v, to.v};
    double *own = malloc((size_t)length * sizeof *own);
    fill_some(&x.v, 50, rows > 40 ? 2 * length + 60 : 0);
    assert_int_equal(cpu->windows(device, &w), GPU_OK);
    for (int64_t i = 0; i < results; i++)
        for (int64_t j = 0; j < cols; j++) {
            int64_t n = 0;
            for (int64_t k = i + first; k < i + first + length; k++)
                if (k >= 0 && k < rows)
                    own[n++] = get(&x.v, k, j);
            double want = window_value(kind, own, n), is = get(&to.v, i, j);
            int is_close = fabs(is - want) <= 1e-12 * (1 + fabs(want));
            assert_true(is_close || (isnan(is) && isnan(want)));
        }
    free(own);
    drop(&x);
    drop(&to);
}

static void windows(void **state)
{
    (void)state;
    for (int round = 0; round < 800; round++) {
        int64_t rows = 1 + next_below(round % 9 ? 120 : 8);
        int64_t length = 1 + next_below(round % 2 ? 2 * rows : 9);
        int64_t before = next_below(length);
        int64_t results = 1 + next_below(rows + before);
        if (results - 1 - before >= rows)
            results = rows + before;
        check_windows(rows, 1 + next_below(round % 3 ? 3 : 20), length, -before,
                      results, (gpu_window_kind)(round % 5));
    }
    for (int round = 0; round < 10; round++) {
        check_windows(40000, 1, round < 5 ? 7 : 100, -3, 40000,
                      (gpu_window_kind)(round % 5));
        check_windows(20000, 3, round < 5 ? 9 : 3000, round < 5 ? 0 : -2990,
                      round < 5 ? 19992 : 1500, (gpu_window_kind)(round % 5));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searching), cmocka_unit_test(grouping),
        cmocka_unit_test(folding),   cmocka_unit_test(folding_in_order),
        cmocka_unit_test(medians),   cmocka_unit_test(folds_repeat),
        cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
