/* For one type T: products of matrices, a tile of the result at a time, whose
 * sums stay in registers; of a matrix and a vector; and the rows of an
 * elimination. REGISTER is the bytes of a register, and
 * ADD_PRODUCT adds x y to a sum, rounding once where the processor can. */

typedef T TYPED(wide)
    __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
#define WIDE TYPED(wide)
#define WIDTH ((int64_t)(REGISTER / sizeof(T)))

/* The value in every lane; taking nothing away changes no value. */
#define EVERY_LANE(value) ((value) - (WIDE){0})

static inline WIDE TYPED(load_wide)(const T *from)
{
    return *(const WIDE *)from;
}

/* alpha sum + beta c goes to c; the first n lanes of it. */
static inline void TYPED(put)(T *c, WIDE sum, T alpha, T beta)
{
    WIDE value = sum * EVERY_LANE(alpha);
    if (beta != 0)
        value += *(WIDE *)c * EVERY_LANE(beta);
    *(WIDE *)c = value;
}

static inline void TYPED(put_some)(T *c, WIDE sum, int64_t n, T alpha, T beta)
{
    for (int64_t j = 0; j < n && j < WIDTH; j++) {
        T value = sum[j] * alpha;
        c[j] = beta == 0 ? value : value + c[j] * beta;
    }
}

/* --- a tile ---------------------------------------------------------------
 * `registers` across, which is known where this is expanded. Rows that the
 * tile lacks repeat its last one, and are not written. */

static inline __attribute__((always_inline)) void
TYPED(multiply)(const gpu_cpu_product *t, int registers)
{
    WIDE sum[TILE_ROWS][2], b[2];
    const T *row[TILE_ROWS], *from = t->b;
    T *c = t->c, alpha = (T)t->alpha, beta = (T)t->beta;
    int64_t rows = t->rows, cols = t->cols, step = t->a_col;
    int64_t down = t->b_row;
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        int64_t at = i < rows ? i : rows - 1;
        row[i] = (const T *)t->a + at * t->a_row;
        __builtin_prefetch(c + at * t->c_row, 1);
        __builtin_prefetch(c + at * t->c_row + cols - 1, 1);
        sum[i][0] = sum[i][1] = (WIDE){0};
    }
    for (int64_t l = 0, p = 0; l < t->k; l++, p += step, from += down) {
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++)
            b[r] = TYPED(load_wide)(from + r * WIDTH);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_ROWS; i++) {
            WIDE x = EVERY_LANE(row[i][p]);
#pragma GCC unroll 2
            for (int r = 0; r < registers; r++)
                sum[i][r] = ADD_PRODUCT(sum[i][r], x, b[r]);
        }
    }
    int is_whole = cols == registers * WIDTH;
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++, c += t->c_row) {
        if (i == rows)
            return;
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++) {
            if (is_whole)
                TYPED(put)(c + r * WIDTH, sum[i][r], alpha, beta);
            else
                TYPED(put_some)
            (c + r * WIDTH, sum[i][r], cols - r * WIDTH, alpha, beta);
        }
    }
}

static void TYPED(wide_tile)(const gpu_cpu_product *t)
{
    TYPED(multiply)(t, 2);
}

static void TYPED(narrow_tile)(const gpu_cpu_product *t)
{
    TYPED(multiply)(t, 1);
}

static void TYPED(tile)(const gpu_cpu_product *t)
{
    (t->cols > WIDTH ? TYPED(wide_tile) : TYPED(narrow_tile))(t);
}

/* --- by a vector ---------------------------------------------------------- */

static inline void TYPED(put_one)(const gpu_cpu_product *t, int64_t i, T sum)
{
    T *c = (T *)t->c + i * t->c_row, value = sum * (T)t->alpha;
    *c = t->beta == 0 ? value : value + *c * (T)t->beta;
}

static inline T TYPED(join)(WIDE x)
{
    for (int64_t half = WIDTH / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            x[l] += x[l + half];
    return x[0];
}

/* Four rows at a time, each in two registers and a remainder. */
static void TYPED(rows_by_vector)(const gpu_cpu_product *t)
{
    enum { ROWS = 4 };
    const T *x = t->b;
    int64_t whole = t->k / (2 * WIDTH) * (2 * WIDTH);
    for (int64_t first = 0; first < t->rows; first += ROWS) {
        WIDE sum[ROWS][2];
        const T *row[ROWS];
        int64_t rows = t->rows - first < ROWS ? t->rows - first : ROWS;
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) {
            int64_t at = first + (i < rows ? i : rows - 1);
            row[i] = (const T *)t->a + at * t->a_row;
            sum[i][0] = sum[i][1] = (WIDE){0};
        }
        for (int64_t p = 0; p < whole; p += 2 * WIDTH) {
            WIDE x0 = TYPED(load_wide)(x + p);
            WIDE x1 = TYPED(load_wide)(x + p + WIDTH);
#pragma GCC unroll 4
            for (int i = 0; i < ROWS; i++) {
                WIDE a0 = TYPED(load_wide)(row[i] + p);
                WIDE a1 = TYPED(load_wide)(row[i] + p + WIDTH);
                sum[i][0] = ADD_PRODUCT(sum[i][0], a0, x0);
                sum[i][1] = ADD_PRODUCT(sum[i][1], a1, x1);
            }
        }
        for (int i = 0; i < rows; i++) {
            T rest = 0;
            for (int64_t p = whole; p < t->k; p++)
                rest += row[i][p] * x[p];
            TYPED(put_one)
            (t, first + i, TYPED(join)(sum[i][0] + sum[i][1]) + rest);
        }
    }
}

/* sum[i] += a[i] x[0] + a[i + step] x[1] + ..., count being known where this
 * is expanded. */
static inline __attribute__((always_inline)) void
TYPED(add_columns)(T *sum, int64_t n, const T *a, int64_t step, const T *x,
                   int count)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        WIDE s = TYPED(load_wide)(sum + i);
#pragma GCC unroll 8
        for (int c = 0; c < count; c++)
            s = ADD_PRODUCT(s, TYPED(load_wide)(a + c * step + i),
                            EVERY_LANE(x[c]));
        *(WIDE *)(sum + i) = s;
    }
    for (; i < n; i++)
        for (int c = 0; c < count; c++)
            sum[i] += a[c * step + i] * x[c];
}

/* A stretch of the result's sums stays in the cache while the columns are
 * added to it. */
static void TYPED(columns_by_vector)(const gpu_cpu_product *t)
{
    enum { STRETCH = 4096 / sizeof(T), AT_ONCE = 8 };
    T sum[STRETCH];
    const T *x = t->b;
    for (int64_t first = 0; first < t->rows; first += STRETCH) {
        const T *a = (const T *)t->a + first;
        int64_t n = t->rows - first < STRETCH ? t->rows - first : STRETCH;
        int64_t p = 0;
        memset(sum, 0, (size_t)n * sizeof(T));
        for (; p + AT_ONCE <= t->k; p += AT_ONCE)
            TYPED(add_columns)
        (sum, n, a + p * t->a_col, t->a_col, x + p, AT_ONCE);
        for (; p < t->k; p++)
            TYPED(add_columns)(sum, n, a + p * t->a_col, t->a_col, x + p, 1);
        for (int64_t i = 0; i < n; i++)
            TYPED(put_one)(t, first + i, sum[i]);
    }
}

/* --- the largest ---------------------------------------------------------- */

static inline T TYPED(largest_size)(const T *x, size_t n)
{
    enum { LANES_AT_ONCE = REGISTER / sizeof(T) };
    T lane[LANES_AT_ONCE] = {0}, best = 0;
    size_t i = 0;
    for (; i + LANES_AT_ONCE <= n; i += LANES_AT_ONCE)
        for (size_t l = 0; l < LANES_AT_ONCE; l++) {
            T size = M(fabs)(x[i + l]);
            lane[l] = size > lane[l] ? size : lane[l];
        }
    for (size_t l = 0; l < LANES_AT_ONCE; l++)
        best = lane[l] > best ? lane[l] : best;
    for (; i < n; i++)
        best = M(fabs)(x[i]) > best ? M(fabs)(x[i]) : best;
    return best;
}

static size_t TYPED(farthest)(const void *xv, size_t n)
{
    enum { LANES_AT_ONCE = REGISTER / sizeof(T) };
    const T *x = xv;
    T best = TYPED(largest_size)(x, n);
    size_t i = 0;
    if (ISNAN(x[0]))
        return 0;
    for (; i + LANES_AT_ONCE <= n; i += LANES_AT_ONCE) {
        int is_here = 0;
        for (size_t l = 0; l < LANES_AT_ONCE; l++)
            is_here |= M(fabs)(x[i + l]) == best;
        if (is_here)
            break;
    }
    while (i < n && M(fabs)(x[i]) != best)
        i++;
    return i < n ? i : 0;
}

/* --- elimination -----------------------------------------------------------
 */

static void TYPED(subtract_row)(void *xv, const void *yv, double factor,
                                size_t count)
{
    T *x = xv;
    const T *y = yv, minus = (T)-factor;
    int64_t i = 0, n = (int64_t)count;
    for (; i + WIDTH <= n; i += WIDTH)
        *(WIDE *)(x + i) =
            ADD_PRODUCT(TYPED(load_wide)(x + i), TYPED(load_wide)(y + i),
                        EVERY_LANE(minus));
    for (; i < n; i++)
        x[i] += y[i] * minus;
}

static void TYPED(divide_row)(void *xv, double by, size_t n)
{
    T *x = xv;
    for (size_t i = 0; i < n; i++)
        x[i] /= (T)by;
}

/* STRIP rows at a time go through a strip in which they are columns. */
static void TYPED(solve_rows)(void *xv, int64_t x_row, int64_t rows,
                              const void *uv, int64_t u_row, int64_t n)
{
    enum { STRIP = 16 };
    T strip[GPU_CPU_CORNER][STRIP] = {{0}};
    const T *u = uv;
    for (int64_t first = 0; first < rows; first += STRIP) {
        T *x = (T *)xv + first * x_row;
        int64_t count = rows - first < STRIP ? rows - first : STRIP;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < n; j++)
                strip[j][i] = x[i * x_row + j];
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = k + 1; j < n; j++)
                for (int64_t i = 0; i < STRIP; i++)
                    strip[j][i] -= u[k * u_row + j] * strip[k][i];
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < n; j++)
                x[i * x_row + j] = strip[j][i];
    }
}

#undef WIDE
#undef WIDTH
#undef EVERY_LANE
