/* For one type T: folds of n elements without gaps. Fewer than 32 are taken
 * in order; else 32 lanes each take every 32nd element, then join in pairs.
 * So the order of the additions is a function of n alone, and the error of a
 * block's sum grows like n / 32. */

enum { TYPED(FOLD_LANES) = 32 };
#define FOLD_LANES TYPED(FOLD_LANES)

static double TYPED(join_sum)(double *lane)
{
    for (int width = FOLD_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return lane[0];
}

static double TYPED(sum)(const void *xv, size_t n)
{
    const T *x = xv;
    if (n < FOLD_LANES) {
        double sum = (double)x[0];
        for (size_t i = 1; i < n; i++)
            sum += (double)x[i];
        return sum;
    }
    double lane[FOLD_LANES] = {0};
    size_t i = 0;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int l = 0; l < FOLD_LANES; l++)
            lane[l] += (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i];
    return TYPED(join_sum)(lane);
}

static double TYPED(dot)(const void *xv, const void *yv, size_t n)
{
    const T *x = xv, *y = yv;
    if (n < FOLD_LANES) {
        double sum = (double)x[0] * (double)y[0];
        for (size_t i = 1; i < n; i++)
            sum += (double)x[i] * (double)y[i];
        return sum;
    }
    double lane[FOLD_LANES] = {0};
    size_t i = 0;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int l = 0; l < FOLD_LANES; l++)
            lane[l] += (double)x[i + l] * (double)y[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i] * (double)y[i];
    return TYPED(join_sum)(lane);
}

static double TYPED(prod)(const void *xv, size_t n)
{
    const T *x = xv;
    if (n < FOLD_LANES) {
        double product = (double)x[0];
        for (size_t i = 1; i < n; i++)
            product *= (double)x[i];
        return product;
    }
    double lane[FOLD_LANES];
    size_t i = 0;
    for (int l = 0; l < FOLD_LANES; l++)
        lane[l] = 1;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int l = 0; l < FOLD_LANES; l++)
            lane[l] *= (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] *= (double)x[i];
    for (int width = FOLD_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] *= lane[l + width];
    return lane[0];
}

#define EXTREME(name, CHOOSE)                            \
    static double TYPED(name)(const void *xv, size_t n)  \
    {                                                    \
        const T *x = xv;                                 \
        T lane[FOLD_LANES], best = x[0];                 \
        size_t i = 0;                                    \
        if (n >= FOLD_LANES) {                           \
            for (int l = 0; l < FOLD_LANES; l++)         \
                lane[l] = best;                          \
            for (; i + FOLD_LANES <= n; i += FOLD_LANES) \
                for (int l = 0; l < FOLD_LANES; l++)     \
                    lane[l] = CHOOSE(x[i + l], lane[l]); \
            for (int l = 0; l < FOLD_LANES; l++)         \
                best = CHOOSE(lane[l], best);            \
        }                                                \
        for (; i < n; i++)                               \
            best = CHOOSE(x[i], best);                   \
        return best;                                     \
    }
EXTREME(smallest, SMALLER)
EXTREME(largest, LARGER)

/* Folds `rows` rows of x, one after the other, into r element by element. */
static void TYPED(sum_rows)(double *r, const void *xv, size_t rows, size_t cols)
{
    const T *x = xv;
    for (size_t i = 0; i < rows; i++, x += cols)
        for (size_t j = 0; j < cols; j++)
            r[j] += (double)x[j];
}

#define EXTREME_ROWS(name, IS_BETTER)                               \
    static void TYPED(name)(double *r, const void *xv, size_t rows, \
                            size_t cols)                            \
    {                                                               \
        const T *x = xv;                                            \
        for (size_t i = 0; i < rows; i++, x += cols)                \
            for (size_t j = 0; j < cols; j++) {                     \
                double value = (double)x[j], old = r[j];            \
                double best = value IS_BETTER old ? value : old;    \
                r[j] = ISNAN(value) ? value : best;                 \
            }                                                       \
    }
EXTREME_ROWS(smallest_rows, <)
EXTREME_ROWS(largest_rows, >)

#undef EXTREME
#undef EXTREME_ROWS
#undef FOLD_LANES
