/* inspect: what there is to know of a matrix. One pass over it for the numbers
 * and the structure, and one more, with their range, for the distribution. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "inspect.h"
#include "print.h"
#include "records.h"
#include "shape_errors.h"
#include "sparse_matrix.h"

enum { ROOM = 16384, PIECE = 512, MARGIN = 4, GAP = 5, NARROW_MARGIN = 1 };
enum { DIGITS = 5, BINS = 24, LEAST_BINS = 6 };

/* Pieces that follow go on a line of their own. */
void lumat_report_line(lumat_report *r)
{
    if (r->text->length > 0)
        lumat_put(r->text, "\n");
    int margin = r->style.width < LUMAT_NARROW ? 1 : MARGIN;
    int gap = r->style.width < LUMAT_NARROW ? 2 : GAP;
    r->flow = (lumat_flow){r->text, r->style.width, margin, gap, 0};
}

void lumat_report_add(lumat_report *r, const char *format, ...)
{
    char piece[PIECE];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    lumat_flow_add(&r->flow, piece);
}

void lumat_report_number(lumat_report *r, const char *name, double x)
{
    char number[LUMAT_BRIEF];
    lumat_report_add(r, "%s %s", name, lumat_brief(x, DIGITS, number));
}

void lumat_report_count(lumat_report *r, const char *name, int64_t n)
{
    char count[64];
    lumat_text t = {count, 0, sizeof count};
    lumat_put_count(&t, n);
    lumat_report_add(r, "%s %s", name, count);
}

/* --- numbers -------------------------------------------------------------- */

static void place_text(const gpu_matrix *m, int64_t at, char *out, size_t room)
{
    if (m->ndim == 1)
        snprintf(out, room, "[%lld]", (long long)at + 1);
    else
        snprintf(out, room, "[%lld, %lld]", (long long)(at / m->cols) + 1,
                 (long long)(at % m->cols) + 1);
}

static void add_extreme(lumat_report *r, const gpu_matrix *m, const char *name,
                        double x, int64_t at)
{
    char number[LUMAT_BRIEF], place[64];
    place_text(m, at, place, sizeof place);
    lumat_report_add(r, "%s %s at %s", name, lumat_brief(x, DIGITS, number),
                     place);
}

static void add_numbers(lumat_report *r, const gpu_matrix *m,
                        const gpu_survey *s)
{
    char place[64];
    lumat_report_line(r);
    if (s->finite > 0) {
        add_extreme(r, m, "min", s->min, s->min_at);
        add_extreme(r, m, "max", s->max, s->max_at);
        lumat_report_number(r, "mean", s->mean);
        if (s->finite > 1)
            lumat_report_number(r, "std", s->std);
        lumat_report_number(r, "norm", s->norm);
    } else {
        lumat_report_add(r, "no finite element");
    }
    lumat_report_line(r);
    lumat_report_count(r, "zeros", s->zeros);
    lumat_report_count(r, "NaN", s->nan);
    lumat_report_count(r, "Inf", s->inf);
    lumat_report_count(r, "subnormal", s->subnormal);
    if (s->odd_at < 0)
        return;
    place_text(m, s->odd_at, place, sizeof place);
    lumat_report_add(r, "first NaN or Inf at %s", place);
    if (s->finite > 0)
        lumat_report_add(r, "(min to norm are of the others)");
}

void lumat_report_distribution(lumat_report *r, const gpu_matrix *m,
                               const gpu_survey *s)
{
    int64_t counts[BINS];
    char low[LUMAT_BRIEF], high[LUMAT_BRIEF], line[PIECE];
    lumat_text t = {line, 0, sizeof line};
    const char *heading = r->style.width < LUMAT_NARROW ? "" : "distribution  ";
    if (s->finite < 2 || s->min == s->max)
        return;
    lumat_brief(s->min, 3, low);
    lumat_brief(s->max, 3, high);
    int bins = r->style.width - MARGIN - 2 -
               (int)(strlen(heading) + strlen(low) + strlen(high));
    bins = bins > BINS ? BINS : bins < LEAST_BINS ? LEAST_BINS : bins;
    gpu_edges edges = gpu_even_edges(s->min, s->max, bins);
    lumat_try(r->L, gpu_count_bins(m, &edges, counts));
    lumat_report_line(r);
    lumat_putf(&t, "%s%s ", heading, low);
    lumat_put_distribution(&t, &r->style, counts, bins);
    lumat_putf(&t, " %s", high);
    lumat_report_add(r, "%s", line);
}

/* --- structure ------------------------------------------------------------ */

/* What the band says: below and above the diagonal. */
void lumat_band_text(int64_t rows, int64_t cols, int64_t lower, int64_t upper,
                     char *out, size_t room)
{
    if (lower == GPU_NO_BAND)
        snprintf(out, room, "all zeros");
    else if (lower == 0 && upper == 0)
        snprintf(out, room, "diagonal");
    else if (lower <= 0)
        snprintf(out, room, "%supper %s", lower < 0 ? "strictly " : "",
                 rows == cols ? "triangular" : "trapezoidal");
    else if (upper <= 0)
        snprintf(out, room, "%slower %s", upper < 0 ? "strictly " : "",
                 rows == cols ? "triangular" : "trapezoidal");
    else if (lower == 1 && upper == 1 && rows > 2 && cols > 2)
        snprintf(out, room, "tridiagonal");
    else if (lower < rows - 1 || upper < cols - 1)
        snprintf(out, room, "banded: %lld below, %lld above the diagonal",
                 (long long)lower, (long long)upper);
    else
        snprintf(out, room, "not triangular");
}

static void add_symmetry(lumat_report *r, const gpu_survey *s)
{
    char number[LUMAT_BRIEF];
    if (s->asymmetry == 0)
        lumat_report_add(r, "symmetric");
    else
        lumat_report_add(r, "not symmetric (max |A - A.T| %s)",
                         lumat_brief(s->asymmetry, DIGITS, number));
}

static void add_structure(lumat_report *r, const gpu_matrix *m,
                          const gpu_survey *s)
{
    char band[128];
    double zeros = (double)s->zeros / (double)gpu_size(m);
    if (m->ndim == 1 || m->rows == 1 || m->cols == 1)
        return;
    lumat_band_text(m->rows, m->cols, s->lower, s->upper, band, sizeof band);
    lumat_report_line(r);
    if (r->style.width >= LUMAT_NARROW)
        lumat_report_add(r, "structure");
    if (m->rows == m->cols)
        add_symmetry(r, s);
    lumat_report_add(r, "%s", band);
    if (zeros > 0 && zeros < 1 && m->dtype != GPU_BOOL)
        lumat_report_add(r, "%.3g %% zeros", 100 * zeros);
}

/* --- the pieces put together ---------------------------------------------- */

static void add_mask(lumat_report *r, const gpu_matrix *m, const gpu_survey *s)
{
    int64_t size = gpu_size(m), trues = size - s->zeros;
    char text[64];
    lumat_text t = {text, 0, sizeof text};
    lumat_put_count(&t, trues);
    lumat_put(&t, " of ");
    lumat_put_count(&t, size);
    lumat_report_line(r);
    lumat_report_add(r, "true %s (%.3g %%)", text,
                     100 * (double)trues / (double)size);
}

/* {row, column}, or {place} of a vector. */
static void set_place(lua_State *L, const char *key, const gpu_matrix *m,
                      int64_t at)
{
    if (at < 0)
        return;
    lua_newtable(L);
    lua_pushinteger(L, m->ndim == 1 ? at + 1 : at / m->cols + 1);
    lua_rawseti(L, -2, 1);
    if (m->ndim == 2) {
        lua_pushinteger(L, at % m->cols + 1);
        lua_rawseti(L, -2, 2);
    }
    lua_setfield(L, -2, key);
}

void lumat_push_survey(lua_State *L, const gpu_survey *s)
{
    lua_newtable(L);
    lumat_set_number(L, "min", s->min);
    lumat_set_number(L, "max", s->max);
    lumat_set_number(L, "mean", s->mean);
    lumat_set_number(L, "std", s->std);
    lumat_set_number(L, "norm", s->norm);
    lumat_set_count(L, "finite", s->finite);
    lumat_set_count(L, "zeros", s->zeros);
    lumat_set_count(L, "nan", s->nan);
    lumat_set_count(L, "inf", s->inf);
    lumat_set_count(L, "subnormal", s->subnormal);
}

void lumat_set_band(lua_State *L, int64_t lower, int64_t upper)
{
    if (lower == GPU_NO_BAND)
        return;
    lumat_set_count(L, "lower", lower);
    lumat_set_count(L, "upper", upper);
}

static void push_fields(lua_State *L, const gpu_matrix *m, const gpu_survey *s)
{
    lumat_note_scalar(m->dtype, s->min);
    lumat_note_scalar(m->dtype, s->max);
    lumat_push_survey(L, s);
    set_place(L, "min_at", m, s->min_at);
    set_place(L, "max_at", m, s->max_at);
    set_place(L, "first_odd", m, s->odd_at);
    if (m->ndim == 1)
        return;
    lumat_set_band(L, s->lower, s->upper);
    if (m->rows != m->cols)
        return;
    lumat_set_truth(L, "symmetric", s->asymmetry == 0);
    lumat_set_number(L, "asymmetry", s->asymmetry);
}

static void inspect_dense(lumat_report *r, const gpu_matrix *m,
                          const char *name)
{
    lua_State *L = r->L;
    gpu_survey s = {.min = NAN, .max = NAN, .mean = NAN, .std = NAN};
    s.min_at = s.max_at = s.odd_at = -1;
    s.lower = s.upper = GPU_NO_BAND;
    lumat_report_name(r, 1, name);
    if (gpu_size(m) > 0)
        lumat_report_layout(r, m);
    lumat_report_aliases(r, m, name);
    lumat_report_origin(r, 1);
    if (gpu_size(m) > 0)
        lumat_try(L, gpu_take_survey(m, &s));
    if (gpu_size(m) > 0 && m->dtype == GPU_BOOL) {
        add_mask(r, m, &s);
        add_structure(r, m, &s);
    } else if (gpu_size(m) > 0) {
        add_numbers(r, m, &s);
        lumat_report_distribution(r, m, &s);
        add_structure(r, m, &s);
    }
    push_fields(L, m, &s);
}

/* --- the function --------------------------------------------------------- */

static void refuse(lua_State *L)
{
    if (lua_isnoneornil(L, 1))
        lumat_raise(L, "inspect: there is nothing to inspect: a nil value");
    if (lua_type(L, 1) == LUA_TNUMBER || lua_type(L, 1) == LUA_TSTRING)
        lumat_raise(L, "inspect: %s is a %s, expected a matrix",
                    lumat_push_brief(L, 1), luaL_typename(L, 1));
    if (lua_istable(L, 1))
        lumat_raise(L, "inspect: a table, expected a matrix: mat(t) or vec(t) "
                       "makes one");
    lumat_raise(L, "inspect: %s, expected a matrix", lumat_push_brief(L, 1));
}

/* inspect(A [, name]) */
static int inspect(lua_State *L)
{
    lumat_text t;
    lumat_report r = {.L = L, .text = &t, .style = lumat_style_now(L)};
    const char *name = luaL_optstring(L, 2, NULL);
    const gpu_sparse *sparse = lumat_test_sparse(L, 1);
    if (!sparse && !lumat_test_matrix(L, 1))
        refuse(L);
    lua_settop(L, 2);
    if (!name)
        name = lumat_name_of(L, 1, "");
    lumat_new_text(L, &t, ROOM);
    if (sparse)
        lumat_inspect_sparse(&r, sparse, name);
    else
        inspect_dense(&r, lumat_check_matrix(L, 1), name);
    lumat_show_as(L, &t, NULL);
    return 1;
}

static const lumat_function functions[] = {
    {"inspect", inspect, 1, "inspect(A [, name])",
     "What there is to know of A: layout, aliases, extremes and where they "
     "are, mean, std, norm, zeros, NaN, Inf, subnormals, distribution and "
     "structure, all but the distribution in one pass; also as fields. "
     "Also :inspect A.",
     "inspect(mat{{1, 2}, {2, 1}}).symmetric", "true"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

void lumat_open_inspect(lua_State *L)
{
    lumat_register(L, functions);
}
