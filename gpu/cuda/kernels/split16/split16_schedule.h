/* Which tiles a product of split16 gets on Hopper: the time of each way is
 * estimated, and the least wins. Only for split16_hopper.cu. */
#ifndef GPU_CUDA_SPLIT16_WAY_H
#define GPU_CUDA_SPLIT16_WAY_H

#include "split16_warp_roles.h"

/* Microseconds, from one H200: of a step of k in a tile of each kind; of
 * 16 KiB from L2 when all blocks ask at once; of a tile's beginning and end;
 * of what joins parts of k in a team, and in global memory, there and for
 * each of them. */
static const double SHORT_STEP = 0.27, TALL_STEP = 0.46, SQUARE_STEP = 0.9;
static const double WIDE_STEP = 1.71, PLANE_TIME = 0.0014;
static const double EDGES = 2.5, JOIN_NEAR = 1.2, JOIN_FAR = 5;
static const double JOIN_EACH = 0.25;

/* More of the small tiles, and the larger ones' fewer bytes count. */
constexpr int64_t MOST_ROUNDS = 5;

static int64_t tiles_of(const split_product *p, int64_t height, int64_t width)
{
    return ceil_div(p->m, height) * ceil_div(p->n, width);
}

/* The time of tiles of which `fit` are done at once: `steps` of k each, which
 * takes its multiplications or its bytes, `planes` of 16 KiB in each block of
 * a tile, whatever takes longer. */
static double time_of(int64_t tiles, int64_t fit, int64_t steps, double step,
                      double planes)
{
    double bytes = (double)smaller(tiles, fit) * planes * PLANE_TIME;
    double tile = EDGES + (double)steps * (step > bytes ? step : bytes);
    return (double)ceil_div(tiles, fit) * tile;
}

/* Clusters of more than two blocks do not fill the device. */
static double short_time(const cuda_device *d, const split_product *p, int team)
{
    int64_t fit = (team > 2 ? d->sms * 5 / 6 : d->sms) / team;
    int64_t steps = ceil_div(ceil_div(p->k, DEPTH), team);
    return time_of(tiles_of(p, 64, 64), fit, steps, SHORT_STEP, 2 * team) +
           (team > 1 ? JOIN_NEAR : 0);
}

static void consider(split_way *best, split_way w)
{
    if (w.time < best->time)
        *best = w;
}

static void consider_small(const cuda_device *d, const split_product *p,
                           split_way *best)
{
    int64_t steps = ceil_div(p->k, DEPTH), squares = tiles_of(p, 128, 128);
    if (squares <= MOST_ROUNDS * (d->sms / 2))
        consider(best, {split_way::TALL, 2,
                        time_of(squares, d->sms / 2, steps, TALL_STEP, 4)});
    if (tiles_of(p, 64, 64) > MOST_ROUNDS * d->sms)
        return;
    for (int team = 1; team <= MOST_TEAM; team++)
        if (team == 1 || steps >= team * 2)
            consider(best, {split_way::SHORT, team, short_time(d, p, team)});
}

/* The least time of all. Slices must all run at once; a part of k has at least
 * two steps. */
static split_way choose(const cuda_device *d, const split_product *p)
{
    int64_t steps = ceil_div(p->k, DEPTH), squares = tiles_of(p, 128, 128);
    int64_t pairs = tiles_of(p, 256, 256), sms = d->sms;
    split_way best = {split_way::SQUARE, 1,
                      time_of(squares, sms, steps, SQUARE_STEP, 4)};
    consider(&best, {split_way::WIDE, 1,
                     time_of(pairs, sms / 2, steps, WIDE_STEP, 8)});
    consider_small(d, p, &best);
    for (int n = 2; squares * n <= sms && steps >= n * 2; n *= 2)
        consider(&best, {split_way::SLICES, n,
                         JOIN_FAR + JOIN_EACH * n +
                             time_of(squares, sms / n, ceil_div(steps, n),
                                     SQUARE_STEP, 4.0 * n)});
    return best;
}

#endif
