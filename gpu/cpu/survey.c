/* Surveys on the CPU: everything there is to know of a matrix in one pass.
 *
 * Blocks of about a thousand elements are brought into f64 and looked at while
 * they are in the first cache. A square matrix is taken in pairs of tiles that
 * face each other over the diagonal, so that its asymmetry needs no second
 * pass. What a part is depends on the shape alone, and parts are joined in
 * order, so the bits do not depend on the threads. */
#include <float.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include "plan.h"
#include "survey.h"

enum { MOST_PARTS = 1024, SIDE = GPU_CPU_SQUARE };

typedef struct survey_job {
    const gpu_view *view;
    double scale, tiny; /* below it a number is subnormal */
    gpu_cpu_plan plan;  /* of what is not square */
    int64_t parts, blocks_a_part;
    gpu_survey *found; /* one a part */
} survey_job;

/* rows x cols elements without gaps: x[r * cols + c] is element (row + r,
 * col + c) of the view; of its transpose when turned. */
typedef struct block {
    const double *x;
    int64_t row, col, rows, cols;
    int turned;
} block;

static int64_t place_of(const survey_job *job, const block *b, int64_t k)
{
    int64_t r = b->row + k / b->cols, c = b->col + k % b->cols;
    return b->turned ? c * job->view->cols + r : r * job->view->cols + c;
}

/* --- one block ------------------------------------------------------------ */

/* The first place of value in the block, where it would better best_at. */
static int64_t find(const survey_job *job, const block *b, double value,
                    int64_t best_at)
{
    int64_t n = b->rows * b->cols, found = -1;
    if (best_at >= 0 && place_of(job, b, 0) > best_at)
        return -1;
    for (int64_t k = 0; k < n; k++) {
        if (b->x[k] != value)
            continue;
        int64_t at = place_of(job, b, k);
        if (found < 0 || at < found)
            found = at;
        if (!b->turned)
            break;
    }
    return found;
}

/* Extremes of finite elements, with places where they better those known. */
static void take_extremes(const survey_job *job, const block *b, double low,
                          double high, gpu_survey *s)
{
    if (s->min_at < 0 || low < s->min)
        s->min = low, s->min_at = find(job, b, low, -1);
    else if (low == s->min) {
        int64_t at = find(job, b, low, s->min_at);
        s->min_at = at >= 0 && at < s->min_at ? at : s->min_at;
    }
    if (s->max_at < 0 || high > s->max)
        s->max = high, s->max_at = find(job, b, high, -1);
    else if (high == s->max) {
        int64_t at = find(job, b, high, s->max_at);
        s->max_at = at >= 0 && at < s->max_at ? at : s->max_at;
    }
}

/* From the sums of distances from about the mean, and of their squares. The
 * first would be 0 but for rounding, which it mends. Source: Chan, Golub and
 * LeVeque, Algorithms for computing the sample variance, 1983. */
static void join_moments(gpu_survey *s, int64_t finite, double mean,
                         double apart, double squares)
{
    gpu_survey part = gpu_survey_nothing();
    double mend = apart / (double)finite;
    part.finite = finite;
    part.mean = mean + mend;
    part.squares = fmax(squares - apart * mend, 0);
    gpu_survey_join_moments(s, &part);
}

static void take_moments(const double *x, int64_t n, int64_t finite, double sum,
                         double scale, gpu_survey *s)
{
    double mean = sum / (double)finite, sums = 0, squares = 0;
    for (int64_t k = 0; k < n; k++) {
        double apart = isfinite(x[k]) ? x[k] * scale - mean : 0;
        sums += apart;
        squares += apart * apart;
    }
    join_moments(s, finite, mean, sums, squares);
}

static double fold_lanes(const double x[8])
{
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Eight sums side by side: one alone would wait for every addition. */
static void take_finite_moments(const double *x, int64_t n, double sum,
                                gpu_survey *s)
{
    double mean = sum / (double)n, sums[8] = {0}, squares[8] = {0};
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int i = 0; i < 8; i++) {
            double apart = x[k + i] - mean;
            sums[i] += apart;
            squares[i] += apart * apart;
        }
    for (; k < n; k++) {
        sums[k % 8] += x[k] - mean;
        squares[k % 8] += (x[k] - mean) * (x[k] - mean);
    }
    join_moments(s, n, mean, fold_lanes(sums), fold_lanes(squares));
}

/* A block that holds NaN or Inf, or whose sum overflows. */
static void take_oddities(const survey_job *job, const block *b, gpu_survey *s)
{
    int64_t n = b->rows * b->cols, finite = 0;
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) {
        double x = b->x[k];
        if (isfinite(x)) {
            finite++;
            sum += x * job->scale;
            low = x < low ? x : low;
            high = x > high ? x : high;
            continue;
        }
        s->nan += isnan(x);
        s->inf += isinf(x) != 0;
        int64_t at = place_of(job, b, k);
        if (s->odd_at < 0 || at < s->odd_at)
            s->odd_at = at;
    }
    if (finite == 0)
        return;
    take_moments(b->x, n, finite, sum, job->scale, s);
    take_extremes(job, b, low, high, s);
}

/* How far from the diagonal its elements that are not zero reach. */
static void take_band(const block *b, gpu_survey *s)
{
    int64_t *below = b->turned ? &s->upper : &s->lower;
    int64_t *above = b->turned ? &s->lower : &s->upper;
    for (int64_t r = 0; r < b->rows; r++) {
        const double *x = b->x + r * b->cols;
        int64_t down = b->row + r - b->col, c = 0;
        while (c < b->cols && down - c > *below && x[c] == 0)
            c++;
        if (c < b->cols && down - c > *below)
            *below = down - c;
        c = b->cols - 1;
        while (c >= 0 && c - down > *above && x[c] == 0)
            c--;
        if (c >= 0 && c - down > *above)
            *above = c - down;
    }
}

static void take_block(const survey_job *job, const block *b, gpu_survey *s)
{
    int64_t n = b->rows * b->cols, zeros = 0, tiny = 0;
    for (int64_t k = 0; k < n; k++) {
        zeros += b->x[k] == 0;
        tiny += fabs(b->x[k]) < job->tiny;
    }
    s->zeros += zeros;
    s->subnormal += tiny - zeros;
    double sum = gpu_cpu_vectors->sum[GPU_F64](b->x, (size_t)n);
    if (isfinite(sum) && job->scale == 1) {
        take_finite_moments(b->x, n, sum, s);
        take_extremes(job, b, gpu_cpu_vectors->smallest[GPU_F64](b->x, n),
                      gpu_cpu_vectors->largest[GPU_F64](b->x, n), s);
    } else {
        take_oddities(job, b, s);
    }
    take_band(b, s);
}

/* --- matrices that are not square ----------------------------------------- */

static gpu_status survey_tiles(void *context, int64_t first, int64_t last)
{
    const survey_job *job = context;
    const gpu_cpu_plan *plan = &job->plan;
    alignas(64) char scratch[gpu_cpu_plan_scratch(plan) + 64];
    gpu_cpu_plan_prepare(plan, scratch);
    for (int64_t part = first; part < last; part++) {
        int64_t number = part * job->blocks_a_part;
        int64_t end = number + job->blocks_a_part;
        gpu_survey s = gpu_survey_nothing();
        end = end < plan->tiles ? end : plan->tiles;
        for (; number < end; number++) {
            if (gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            gpu_cpu_tile t = gpu_cpu_plan_tile(plan, number);
            block b = {gpu_cpu_plan_run(plan, &t, scratch, NULL),
                       t.row,
                       t.col,
                       t.rows,
                       t.cols,
                       plan->turned};
            take_block(job, &b, &s);
        }
        job->found[part] = s;
    }
    return GPU_OK;
}

/* Tiles follow memory, whichever way the view runs over it. */
static void plan_tiles(survey_job *job, const gpu_program *p)
{
    const gpu_view *v = job->view;
    int turns = v->rows > 1 &&
                (v->cols == 1 || llabs(v->row_stride) < llabs(v->col_stride));
    gpu_cpu_plan_make(&job->plan, p, v, NULL, v->rows, v->cols,
                      turns ? GPU_CPU_TURN : GPU_CPU_KEEP);
    job->blocks_a_part = (job->plan.tiles + MOST_PARTS - 1) / MOST_PARTS;
    job->parts =
        (job->plan.tiles + job->blocks_a_part - 1) / job->blocks_a_part;
}

/* --- square matrices ------------------------------------------------------ */

static void take_asymmetry(const double *x, const double *y, int64_t n,
                           gpu_survey *s)
{
    double most = s->asymmetry;
    for (int64_t k = 0; k < n; k++) {
        double apart = fabs(x[k] - y[k]);
        if (apart <= most)
            continue;
        if (apart > most)
            most = apart;
        else if (isnan(x[k]) != isnan(y[k]))
            most = INFINITY; /* equal infinities differ by NaN, too */
    }
    s->asymmetry = most;
}

/* The elements at (i, j), and those at (j, i) turned to face them. */
static void take_pair(const survey_job *job, int64_t i, int64_t j,
                      gpu_survey *s)
{
    alignas(64) double x[SIDE * SIDE], y[SIDE * SIDE];
    int64_t side = job->view->rows;
    int64_t rows = side - i < SIDE ? side - i : SIDE;
    int64_t cols = side - j < SIDE ? side - j : SIDE;
    gpu_view from = gpu_cpu_part(job->view, i, j, rows, cols);
    gpu_view facing = gpu_cpu_part(job->view, j, i, cols, rows);
    gpu_view to = {x, GPU_F64, rows, cols, cols, 1};
    gpu_cpu_convert(&from, &to);
    facing = gpu_cpu_turned(facing);
    to.data = y;
    gpu_cpu_convert(&facing, &to);
    take_asymmetry(x, y, rows * cols, s);
    take_block(job, &(block){x, i, j, rows, cols, 0}, s);
    if (i != j)
        take_block(job, &(block){y, i, j, rows, cols, 1}, s);
}

/* The pairs of a row of tiles; from the far end, so that the band is known at
 * once. */
static gpu_status take_row_of_pairs(const survey_job *job, int64_t number,
                                    gpu_survey *s)
{
    int64_t i = number * SIDE, side = job->view->rows;
    for (int64_t j = (side - 1) / SIDE * SIDE; j >= i; j -= SIDE) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        take_pair(job, i, j, s);
    }
    return GPU_OK;
}

/* A part is a row of pairs and the one as far from the other end: all parts
 * have the same size. */
static gpu_status survey_pairs(void *context, int64_t first, int64_t last)
{
    const survey_job *job = context;
    int64_t across = (job->view->rows + SIDE - 1) / SIDE;
    gpu_status status = GPU_OK;
    for (int64_t part = first; part < last && status == GPU_OK; part++) {
        gpu_survey s = gpu_survey_nothing();
        int64_t other = across - 1 - part;
        status = take_row_of_pairs(job, part, &s);
        if (status == GPU_OK && other != part)
            status = take_row_of_pairs(job, other, &s);
        job->found[part] = s;
    }
    return status;
}

/* --- the whole ------------------------------------------------------------ */

gpu_status gpu_cpu_survey(void *device, const gpu_view *v, double scale,
                          gpu_survey *out)
{
    (void)device;
    gpu_program p = {.inputs = 1, .compute = GPU_F64};
    survey_job job = {.view = v, .scale = scale};
    int is_square = v->rows == v->cols && v->rows > 1;
    job.tiny = v->dtype == GPU_F64 ? DBL_MIN : FLT_MIN;
    if (is_square)
        job.parts = ((v->rows + SIDE - 1) / SIDE + 1) / 2;
    else
        plan_tiles(&job, &p);
    job.found = malloc((size_t)job.parts * sizeof *job.found);
    if (!job.found)
        return gpu_cpu_stop(GPU_MEMORY);
    gpu_status status =
        gpu_cpu_parallel(job.parts, v->rows * v->cols,
                         is_square ? survey_pairs : survey_tiles, &job);
    *out = gpu_survey_nothing();
    for (int64_t part = 0; status == GPU_OK && part < job.parts; part++)
        gpu_survey_join(out, &job.found[part]);
    if (v->dtype == GPU_F32)
        out->asymmetry = (float)out->asymmetry; /* as A - A.T has it */
    free(job.found);
    return status;
}
