/* hist: how the elements of a matrix are distributed. The device finds their
 * range in one pass and counts them in another; lua/charts draws the bars. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "arguments.h"
#include "op_list.h"
#include "print.h"
#include "function.h"
#include "draw.h"
#include "picture.h"
#include "value.h"

enum { MOST_BARS = 20, LEAST_BARS = 4, FILE_BARS = 100 };

/* Bins lie between edges, or are a whole number each. */
typedef struct histogram {
    gpu_matrix values; /* borrowed: the matrix, or a sparse one's entries */
    gpu_survey survey;
    gpu_edges edges;
    double step;
    int are_whole;
    int64_t *counts;
    int64_t outside;
} histogram;

/* --- bins ----------------------------------------------------------------- */

/* Are all elements whole numbers? */
static int is_whole(lua_State *L, const gpu_matrix *m)
{
    gpu_program p;
    gpu_matrix once;
    double fractions = 1;
    gpu_without_repeats(m, &once);
    m = &once;
    gpu_program_start(&p, 1);
    int whole = gpu_program_add(&p, GPU_OP_floor, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_ne, 0, whole, 0);
    p.reduction = GPU_REDUCE_any;
    gpu_pause_trace(1);
    lumat_try(L, gpu_reduce_all("hist", &p, &m, &fractions));
    gpu_pause_trace(0);
    return fractions == 0;
}

/* Edges at the multiples of the smallest of 1, 2, 5, 10 … that is not below
 * the step, from the one that `low` lies at or above. Decimals are quotients,
 * so that 3 of 0.1 make 0.3. */
static gpu_edges nice_edges(double low, double step)
{
    double exponent = floor(log10(step)), power = pow(10, fabs(exponent));
    double mantissa = exponent < 0 ? step * power : step / power;
    mantissa = mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10;
    gpu_edges e = {.by = mantissa, .over = power, .count = 1};
    if (exponent >= 0) {
        e.by *= power;
        e.over = 1;
    }
    e.from = floor(low * e.over / e.by) * e.by;
    while (e.from / e.over > low)
        e.from -= e.by;
    while ((e.from + e.by) / e.over <= low)
        e.from += e.by;
    return e;
}

static void cut_evenly(histogram *h, double low, double high, int bins)
{
    h->edges = gpu_even_edges(low, high, low == high ? 1 : bins);
    h->step = high / h->edges.count - low / h->edges.count;
}

/* At edges with few digits, where the range is not too far from 0 for it. */
static void cut_nicely(histogram *h, double low, double high, int most)
{
    double step = low < high && isfinite(high - low) ? (high - low) / most : 0;
    if (!(step > fmax(fabs(low), fabs(high)) * 1e-12) || !isnormal(step) ||
        step < 1e-290) {
        cut_evenly(h, low, high, most);
        return;
    }
    gpu_edges e = nice_edges(low, step);
    while ((e.from + e.count * e.by) / e.over < high)
        e.count++;
    e.high = (e.from + e.count * e.by) / e.over;
    h->edges = e;
    h->step = e.by / e.over;
}

/* A bar for each number, when there are few and none between. */
static int cut_whole(lua_State *L, histogram *h, double low, double high)
{
    if (h->survey.nan > 0 || high - low >= MOST_BARS || low != floor(low) ||
        high != floor(high) || fabs(low) > 1e15 || !is_whole(L, &h->values))
        return 0;
    h->edges = (gpu_edges){low, 1, 1, high + 1, (int)(high - low) + 1};
    h->step = 1;
    h->are_whole = 1;
    return 1;
}

static void cut_bins(lua_State *L, histogram *h, int arg, int asked, int most)
{
    double low = lumat_option_number(L, arg, "low", h->survey.min);
    double high = lumat_option_number(L, arg, "high", h->survey.max);
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        lumat_raise(L, "hist: the range %s to %s is not one",
                    lumat_push_brief_number(L, low),
                    lumat_push_brief_number(L, high));
    if (low != h->survey.min || high != h->survey.max)
        cut_evenly(h, low, high, asked ? asked : most);
    else if (asked)
        cut_evenly(h, low, high, asked);
    else if (!cut_whole(L, h, low, high))
        cut_nicely(h, low, high, most);
}

static void count_bins(lua_State *L, histogram *h)
{
    int bins = h->edges.count;
    int64_t counted = 0;
    h->counts = lua_newuserdatauv(L, (size_t)bins * sizeof *h->counts, 0);
    lumat_try(L, gpu_count_bins(&h->values, &h->edges, h->counts));
    for (int i = 0; i < bins; i++)
        counted += h->counts[i];
    h->outside = h->survey.finite - counted;
}

/* --- the function --------------------------------------------------------- */

/* A number for the bins may stand before the options. */
static int take_bins(lua_State *L, int *arg)
{
    char text[LUMAT_BRIEF];
    double bins = 0;
    *arg = 2;
    if (lua_type(L, 2) == LUA_TNUMBER) {
        bins = lua_tonumber(L, 2);
        *arg = 3;
    } else {
        bins = lumat_option_number(L, 2, "bins", 0);
        if (bins == 0)
            return 0;
    }
    if (!(bins >= 1 && bins <= GPU_MOST_BINS) || bins != floor(bins))
        lumat_raise(L, "hist: %s bins: use 1 to %d", lumat_brief(bins, 6, text),
                    GPU_MOST_BINS);
    return (int)bins;
}

static void push_edges(lua_State *L, const histogram *h)
{
    lua_createtable(L, h->edges.count + 1, 0);
    for (int i = 0; i <= h->edges.count; i++) {
        lua_pushnumber(L, gpu_edge(&h->edges, i));
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_counts(lua_State *L, const histogram *h)
{
    lua_createtable(L, h->edges.count, 0);
    for (int i = 0; i < h->edges.count; i++) {
        lua_pushinteger(L, h->counts[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* Takes the elements' range and kind. */
static void look_at(lua_State *L, const lumat_subject *s, histogram *h)
{
    h->values = s->sparse ? s->sparse->values : s->dense;
    if (gpu_size(&h->values) == 0)
        lumat_raise(L, "hist: the matrix has no entries");
    lumat_try(L, gpu_take_survey(&h->values, &h->survey));
    if (h->survey.finite == 0)
        lumat_raise(L, "hist: none of the %I elements is finite",
                    (LUAI_UACINT)gpu_size(&h->values));
}

static int most_bars(const lumat_style *s)
{
    int lines = lumat_picture_lines(s);
    return lines > MOST_BARS    ? MOST_BARS
           : lines < LEAST_BARS ? LEAST_BARS
                                : lines;
}

/* hist(A [, bins] [, options]) */
static int hist(lua_State *L)
{
    int arg, bins = take_bins(L, &arg);
    lumat_subject s;
    histogram h = {.outside = 0};
    lumat_style style = lumat_picture_style(L, arg);
    lua_settop(L, arg);
    lumat_check_subject(L, 1, &s);
    lumat_refuse_complex(L, 1, &s);
    look_at(L, &s, &h);
    int to_file = lumat_wants_file(L, arg);
    cut_bins(L, &h, arg, bins, to_file ? FILE_BARS : most_bars(&style));
    count_bins(L, &h);
    lua_newtable(L);
    push_edges(L, &h);
    lua_setfield(L, -2, "edges");
    push_counts(L, &h);
    lua_setfield(L, -2, "counts");
    lua_pushboolean(L, h.are_whole);
    lua_setfield(L, -2, "are_whole");
    lumat_set_count(L, "nan", (uint64_t)h.survey.nan);
    lumat_set_count(L, "inf", (uint64_t)h.survey.inf);
    lumat_set_count(L, "outside", (uint64_t)h.outside);
    lumat_push_headline(L, 1);
    lua_setfield(L, -2, "title");
    lumat_draw_chart(L, "hist", arg, &style);
    return 1;
}

static const lumat_function functions[] = {
    {"hist", hist, 1,
     "A: matrix|sparse|table [, bins: count] {bins, low, high, title, xlabel, "
     "ylabel, logy, width, height, size, dark, file}",
     "chart",
     "A histogram: how many elements lie where, as bars; fields counts and "
     "edges. Count i "
     "is of what is at least edge i and below the next, the last of what is at "
     "its end, too. NaN and Inf are left out; of a sparse matrix, entries are "
     "counted. Also :hist A.",
     "vec(hist(vec{1, 2, 2, 3}).counts)", "{1, 2, 1}", .group = "pictures"},
    {0}};

void lumat_open_histogram(lua_State *L)
{
    lumat_register(L, functions);
}
