/* Random whole numbers whose parameters differ from one to the next: of
 * Poisson's distribution and the binomial one.
 *
 * Each attempt at an element takes two uniforms, of the block of Philox that
 * has the element's number, in a stream that has the attempt's: so results
 * depend neither on threads nor on other elements. Where few are expected,
 * chances are added up; else an attempt is accepted or not.
 *
 * Sources: Hörmann, The transformed rejection method for generating Poisson
 * random variables, 1993, and The generation of binomial random variates, 1993;
 * Loader, Fast and accurate computation of binomial probabilities, 2000. */
#include <math.h>
#include "cpu.h"
#include "vector.h"

enum { PIECE = 512, STREAM_BITS = 16 };

#define FEW 10.0 /* are expected: chances are added up below that */
#define LARGE                                                                \
    1e4             /* from here on logarithms of factorials have few digits \
                     * left when they are subtracted */
#define LEAST 1e-18 /* chance that is added */

typedef struct drawing {
    const gpu_variates *v;
    const gpu_view *to;
} drawing;

/* u in [0, 1) and v in (0, 1] */
typedef struct uniforms {
    double u, v;
} uniforms;

/* Of n elements from the first on. */
static void draw(const gpu_variates *v, uint64_t attempt, int64_t first,
                 size_t n, uniforms *to)
{
    uint32_t words[PIECE][4];
    uint64_t call = v->call + ((attempt + 1) << (64 - STREAM_BITS));
    gpu_cpu_vectors->philox(words, (uint64_t)first, n, call, v->seed);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *w = words[i];
        uint64_t a = w[0] | (uint64_t)w[1] << 32;
        uint64_t b = w[2] | (uint64_t)w[3] << 32;
        to[i].u = (double)(int64_t)(a >> 11) * 0x1p-53;
        to[i].v = 1 - (double)(int64_t)(b >> 11) * 0x1p-53;
    }
}

/* --- logarithms of chances ------------------------------------------------ */

/* log k!, by Stirling's series where that has all digits. */
static double log_factorial(double k)
{
    static const double small[] = {
        0.0,
        0.0,
        0.693147180559945309,
        1.79175946922805500,
        3.17805383034794562,
        4.78749174278204599,
        6.57925121201010100,
        8.52516136106541430,
        10.6046029027452502,
        12.8018274800814696,
        15.1044125730755153,
        17.5023078458738858,
        19.9872144956618861,
        22.5521638531234229,
        25.1912211827386815,
        27.8992713838408916,
    };
    const double half_log_tau = 0.918938533204672742;
    if (k < 16)
        return small[(int)k];
    double over = 1 / k, square = over * over;
    double rest =
        over * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260)));
    return (k + 0.5) * log(k) - k + half_log_tau + rest;
}

/* What x's distance from the mean m says, */
static double of_distance(double x, double m)
{
    double z = (x - m) / m;
    return m * (z - (1 + z) * log1p(z));
}

/* and what remains of Stirling's formula. */
static double of_stirling(double x)
{
    return -0.5 * log(x) - 1 / (12 * x);
}

/* --- Poisson's ------------------------------------------------------------ */

/* Of what is known of an element. */
typedef struct poisson_law {
    double mean, a, b, inverse, quick;
} poisson_law;

static double poisson_few(double mean, double u)
{
    double chance = exp(-mean), sum = chance, k = 0;
    while (u >= sum && chance > LEAST) {
        k++;
        chance *= mean / k;
        sum += chance;
    }
    return k;
}

static poisson_law poisson_of(double mean)
{
    poisson_law p = {.mean = mean, .b = 0.931 + 2.53 * sqrt(mean)};
    p.a = -0.059 + 0.02483 * p.b;
    p.inverse = 1.1239 + 1.1328 / (p.b - 3.4);
    p.quick = 0.9277 - 3.6224 / (p.b - 2);
    return p;
}

static double log_poisson(const poisson_law *p, double k)
{
    const double half_log_tau = 0.918938533204672742;
    if (p->mean > LARGE)
        return of_distance(k, p->mean) + of_stirling(k) - half_log_tau;
    return k * log(p->mean) - p->mean - log_factorial(k);
}

/* *k is set; is it accepted? */
static int try_poisson(const poisson_law *p, uniforms x, double *k)
{
    double u = x.u - 0.5, us = 0.5 - fabs(u);
    *k = floor((2 * p->a / us + p->b) * u + p->mean + 0.43);
    if (us >= 0.07 && x.v <= p->quick)
        return 1;
    if (*k < 0 || (us < 0.013 && x.v > us))
        return 0;
    double aside = x.v * p->inverse / (p->a / (us * us) + p->b);
    return log(aside) <= log_poisson(p, *k);
}

static double poisson(const gpu_variates *v, double mean, int64_t place,
                      uniforms x)
{
    double k;
    if (mean < FEW)
        return poisson_few(mean, x.u);
    poisson_law p = poisson_of(mean);
    for (uint64_t attempt = 1; !try_poisson(&p, x, &k); attempt++)
        draw(v, attempt, place, 1, &x);
    return k;
}

/* --- the binomial one ----------------------------------------------------- */

/* p is at most a half; at_mode: the logarithm of the mode's chance. */
typedef struct binomial_law {
    double trials, p, mean, a, b, alpha, quick, at_mode;
} binomial_law;

static double binomial_few(double trials, double p, double u)
{
    double chance = exp(trials * log1p(-p)), sum = chance, k = 0;
    double odds = p / (1 - p);
    while (u >= sum && chance > LEAST && k < trials) {
        chance *= (trials - k) * odds / (k + 1);
        k++;
        sum += chance;
    }
    return k;
}

/* Up to what does not depend on k. */
static double log_binomial(const binomial_law *b, double k)
{
    double rest = b->trials - k;
    if (b->mean > LARGE)
        return of_distance(k, b->mean) + of_stirling(k) +
               of_distance(rest, b->trials - b->mean) + of_stirling(rest);
    return k * log(b->p / (1 - b->p)) - log_factorial(k) - log_factorial(rest);
}

static binomial_law binomial_of(double trials, double p)
{
    binomial_law b = {.trials = trials, .p = p, .mean = trials * p};
    double deviation = sqrt(b.mean * (1 - p));
    b.b = 1.15 + 2.53 * deviation;
    b.a = -0.0873 + 0.0248 * b.b + 0.01 * p;
    b.quick = 0.92 - 4.2 / b.b;
    b.alpha = (2.83 + 5.1 / b.b) * deviation;
    b.at_mode = NAN;
    return b;
}

static int try_binomial(binomial_law *b, uniforms x, double *k)
{
    double u = x.u - 0.5, us = 0.5 - fabs(u);
    *k = floor((2 * b->a / us + b->b) * u + b->mean + 0.5);
    if (*k < 0 || *k > b->trials)
        return 0;
    if (us >= 0.07 && x.v <= b->quick)
        return 1;
    if (b->at_mode != b->at_mode)
        b->at_mode = log_binomial(b, floor((b->trials + 1) * b->p));
    double aside = x.v * b->alpha / (b->a / (us * us) + b->b);
    return log(aside) <= log_binomial(b, *k) - b->at_mode;
}

static double binomial(const gpu_variates *v, double trials, double chance,
                       int64_t place, uniforms x)
{
    double p = chance > 0.5 ? 1 - chance : chance, k;
    if (trials * p < FEW) {
        k = binomial_few(trials, p, x.u);
    } else {
        binomial_law b = binomial_of(trials, p);
        for (uint64_t attempt = 1; !try_binomial(&b, x, &k); attempt++)
            draw(v, attempt, place, 1, &x);
    }
    return chance > 0.5 ? trials - k : k;
}

/* --- all elements --------------------------------------------------------- */

static gpu_status draw_pieces(void *context, int64_t from, int64_t to)
{
    const drawing *d = context;
    const gpu_variates *v = d->v;
    int64_t n = d->to->rows * d->to->cols;
    int is_binomial = v->kind == GPU_BINOMIAL;
    double mean[PIECE], chance[PIECE];
    uniforms x[PIECE];
    for (int64_t piece = from; piece < to; piece++) {
        int64_t first = piece * PIECE, size = gpu_cpu_smaller(n - first, PIECE);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_load(&v->mean, first, size, GPU_F64, mean);
        if (is_binomial)
            gpu_cpu_load(&v->chance, first, size, GPU_F64, chance);
        draw(v, 0, first, (size_t)size, x);
        for (int64_t i = 0; i < size; i++)
            mean[i] = is_binomial
                          ? binomial(v, mean[i], chance[i], first + i, x[i])
                          : poisson(v, mean[i], first + i, x[i]);
        gpu_cpu_store(d->to, first, size, GPU_F64, mean);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_variates(void *device, const gpu_variates *v,
                            const gpu_view *to)
{
    drawing d = {v, to};
    int64_t n = to->rows * to->cols;
    (void)device;
    return gpu_cpu_parallel(gpu_cpu_pieces(n, PIECE), n, draw_pieces, &d);
}
