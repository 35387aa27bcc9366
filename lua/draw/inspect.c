/* inspect: what there is to know of a matrix. One pass over it for the numbers
 * and the structure, and one more, with their range, for the distribution. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "complex_numbers.h"
#include "draw.h"
#include "picture.h"
#include "print.h"
#include "function.h"
#include "value.h"

typedef struct lumat_report {
    lua_State *L;
    lumat_text *text;
    lumat_style style;
    lumat_flow flow;
} lumat_report;

enum { LUMAT_NARROW = 40 }; /* a screen with no room for headings */

enum { ROOM = 16384, PIECE = 512, MARGIN = 4, GAP = 5, NARROW_MARGIN = 1 };
enum { DIGITS = 5, BINS = 24, LEAST_BINS = 6 };

/* Pieces that follow go on a line of their own. */
static void report_line(lumat_report *r)
{
    if (r->text->length > 0)
        lumat_put(r->text, "\n");
    int margin = r->style.width < LUMAT_NARROW ? 1 : MARGIN;
    int gap = r->style.width < LUMAT_NARROW ? 2 : GAP;
    r->flow = (lumat_flow){r->text, r->style.width, margin, gap, 0};
}

static void report_add(lumat_report *r, const char *format, ...)
{
    char piece[PIECE];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    lumat_flow_add(&r->flow, piece);
}

static void report_number(lumat_report *r, const char *name, double x)
{
    char number[LUMAT_BRIEF];
    report_add(r, "%s %s", name, lumat_brief(x, DIGITS, number));
}

static void report_count(lumat_report *r, const char *name, int64_t n)
{
    char count[64];
    lumat_text t = {count, 0, sizeof count};
    lumat_put_count(&t, n);
    report_add(r, "%s %s", name, count);
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
    report_add(r, "%s %s at %s", name, lumat_brief(x, DIGITS, number), place);
}

static void add_numbers(lumat_report *r, const gpu_matrix *m,
                        const gpu_survey *s)
{
    char place[64];
    report_line(r);
    if (s->finite > 0) {
        add_extreme(r, m, "min", s->min, s->min_at);
        add_extreme(r, m, "max", s->max, s->max_at);
        report_number(r, "mean", s->mean);
        if (s->finite > 1)
            report_number(r, "std", s->std);
        report_number(r, "norm", s->norm);
    } else {
        report_add(r, "no finite element");
    }
    report_line(r);
    report_count(r, "zeros", s->zeros);
    report_count(r, "NaN", s->nan);
    report_count(r, "Inf", s->inf);
    report_count(r, "subnormal", s->subnormal);
    if (s->odd_at < 0)
        return;
    place_text(m, s->odd_at, place, sizeof place);
    report_add(r, "first NaN or Inf at %s", place);
    if (s->finite > 0)
        report_add(r, "(min to norm are of the others)");
}

/* A line of bars for how the elements are distributed. */
static void report_distribution(lumat_report *r, const gpu_matrix *m,
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
    report_line(r);
    lumat_putf(&t, "%s%s ", heading, low);
    lumat_put_distribution(&t, &r->style, counts, bins);
    lumat_putf(&t, " %s", high);
    report_add(r, "%s", line);
}

/* --- structure ------------------------------------------------------------ */

/* What the band says: below and above the diagonal. */
static void band_text(int64_t rows, int64_t cols, int64_t lower, int64_t upper,
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
        report_add(r, "symmetric");
    else
        report_add(r, "not symmetric (max |A - A.T| %s)",
                   lumat_brief(s->asymmetry, DIGITS, number));
}

static void add_structure(lumat_report *r, const gpu_matrix *m,
                          const gpu_survey *s)
{
    char band[128];
    double zeros = (double)s->zeros / (double)gpu_size(m);
    if (m->ndim == 1 || m->rows == 1 || m->cols == 1)
        return;
    band_text(m->rows, m->cols, s->lower, s->upper, band, sizeof band);
    report_line(r);
    if (r->style.width >= LUMAT_NARROW)
        report_add(r, "structure");
    if (m->rows == m->cols)
        add_symmetry(r, s);
    report_add(r, "%s", band);
    if (zeros > 0 && zeros < 1 && m->dtype != GPU_BOOL)
        report_add(r, "%.3g %% zeros", 100 * zeros);
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
    report_line(r);
    report_add(r, "true %s (%.3g %%)", text,
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

/* Pushes a table with the survey's numbers; the others add to it. */
static void push_survey(lua_State *L, const gpu_survey *s)
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

static void set_band(lua_State *L, int64_t lower, int64_t upper)
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
    push_survey(L, s);
    set_place(L, "min_at", m, s->min_at);
    set_place(L, "max_at", m, s->max_at);
    set_place(L, "first_odd", m, s->odd_at);
    if (m->ndim == 1)
        return;
    set_band(L, s->lower, s->upper);
    if (m->rows != m->cols)
        return;
    lumat_set_truth(L, "symmetric", s->asymmetry == 0);
    lumat_set_number(L, "asymmetry", s->asymmetry);
}

/* --- name, storage and origin --------------------------------------------- */
/* Each leaves the stack as it was. */

enum { MOST_ALIASES = 4 };

/* --- layout --------------------------------------------------------------- */

/* How a matrix of more than one row and column lies in its storage. */
static void add_matrix_layout(lumat_report *r, const gpu_matrix *m)
{
    if (gpu_is_contiguous(m))
        report_add(r, "row-major, contiguous");
    else if (m->row_stride == 1 && m->col_stride == m->rows)
        report_add(r, "column-major, contiguous: a transposed view");
    else if (m->row_stride == 0 || m->col_stride == 0)
        report_add(r, "a stretched view");
    else
        report_add(r,
                   "a view: %lld from row to row, %lld from column to column",
                   (long long)m->row_stride, (long long)m->col_stride);
}

static void report_layout(lumat_report *r, const gpu_matrix *m)
{
    size_t all = gpu_storage_bytes(m);
    int64_t step = m->rows > 1 ? m->row_stride : m->col_stride;
    if (gpu_size(m) == 1)
        report_add(r, "one element");
    else if (m->rows > 1 && m->cols > 1)
        add_matrix_layout(r, m);
    else if (step == 1)
        report_add(r, "contiguous");
    else
        report_add(r, "a view of every %lldth element", (long long)step);
    if (all > gpu_bytes(m))
        report_add(r, "of storage of %s", gpu_bytes_text(all));
}

/* --- aliases -------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What other has of m's storage. */
static const char *relation(const gpu_matrix *m, const gpu_matrix *other)
{
    if (m->offset != other->offset)
        return "a view";
    if (m->rows == other->rows && m->cols == other->cols &&
        m->row_stride == other->row_stride &&
        m->col_stride == other->col_stride)
        return "the same";
    if (m->rows == other->cols && m->cols == other->rows && m->ndim == 2 &&
        other->ndim == 2 && m->row_stride == other->col_stride &&
        m->col_stride == other->row_stride)
        return "transposed";
    return "a view";
}

/* Adds the names whose matrices share m's storage to the table at `found`,
 * with the matrices. */
static void gather_sharers(lua_State *L, int found, const gpu_matrix *m,
                           const char *own)
{
    lumat_variables v = lumat_begin_variables(L, 0);
    while (lumat_next_variable(&v)) {
        const gpu_matrix *other = lumat_test_matrix(L, -1);
        if (!other || !other->storage || !gpu_shares_storage(m, other) ||
            strcmp(v.name, own) == 0 || strcmp(v.name, "ans") == 0)
            continue;
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, found);
    }
}

/* Pushes the names of a table of them, sorted. */
static const char **push_sorted(lua_State *L, int table, int *count)
{
    int n = 0;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        n++;
    const char **names =
        lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
    *count = 0;
    for (lua_pushnil(L); lua_next(L, table) && *count < n; lua_pop(L, 1))
        names[(*count)++] = lua_tostring(L, -2);
    qsort(names, (size_t)n, sizeof *names, by_name);
    return names;
}

/* Other variables that share the storage. */
static void report_aliases(lumat_report *r, const gpu_matrix *m,
                           const char *own)
{
    lua_State *L = r->L;
    int top = lua_gettop(L), count;
    char list[PIECE];
    lumat_text t = {list, 0, sizeof list};
    list[0] = '\0';
    lua_newtable(L);
    gather_sharers(L, top + 1, m, own);
    const char **names = push_sorted(L, top + 1, &count);
    for (int i = 0; i < count && i < MOST_ALIASES; i++) {
        lua_getfield(L, top + 1, names[i]);
        lumat_putf(&t, "%s%.60s (%s)", i > 0 ? ", " : "", names[i],
                   relation(m, lumat_test_matrix(L, -1)));
        lua_pop(L, 1);
    }
    if (count > MOST_ALIASES)
        lumat_putf(&t, " and %d more", count - MOST_ALIASES);
    if (count > 0)
        report_add(r, "aliases: %s", list);
    lua_settop(L, top);
}

/* --- name and origin ------------------------------------------------------ */

/* A line for the description of an entry at index: its text, and behind two
 * blanks when it ran. */
static void add_entry(lumat_report *r, const char *lead, int index)
{
    const char *text = lua_tostring(r->L, index), *when = NULL;
    for (const char *p = text; p && (p = strstr(p, "  ")); p++)
        when = p;
    if (!text)
        return;
    int length = when ? (int)(when - text) : (int)strlen(text);
    report_line(r);
    report_add(r, "%s  %.*s", lead, length < PIECE / 2 ? length : PIECE / 2,
               text);
    if (when)
        report_add(r, "%.200s", when + strspn(when, " "));
}

/* What made the matrix, and what changed it last, where the library knows. */
static void report_origin(lumat_report *r, int index)
{
    lua_State *L = r->L;
    int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, "made_by");
    lua_pushvalue(L, index);
    if (lua_isfunction(L, -2) && lua_pcall(L, 1, 2, 0) == LUA_OK) {
        add_entry(r, "made by", -2);
        add_entry(r, "changed by", -1);
    }
    lua_settop(L, top);
}

static void report_name(lumat_report *r, int index, const char *name)
{
    report_line(r);
    int margin = r->flow.margin;
    r->flow.margin = 0;
    r->flow.gap = 3;
    if (*name)
        report_add(r, "%.60s", name);
    lumat_push_headline(r->L, index);
    report_add(r, "%s", lua_tostring(r->L, -1));
    lua_pop(r->L, 1);
    r->flow.margin = margin;
}

/* --- sparse matrices ------------------------------------------------------ */

static void add_sparse_extreme(lumat_report *r, const gpu_sparse *sparse,
                               const char *name, double x, int64_t at)
{
    int64_t row, col;
    double value;
    char number[LUMAT_BRIEF];
    lumat_try(r->L, gpu_sparse_entries(sparse, at, 1, &row, &col, &value));
    report_add(r, "%s %s at [%lld, %lld]", name, lumat_brief(x, DIGITS, number),
               (long long)row + 1, (long long)col + 1);
}

static void add_entries(lumat_report *r, const gpu_sparse *sparse,
                        const gpu_survey *s)
{
    if (s->finite > 0) {
        add_sparse_extreme(r, sparse, "min", s->min, s->min_at);
        add_sparse_extreme(r, sparse, "max", s->max, s->max_at);
        report_number(r, "mean", s->mean);
        report_number(r, "norm", s->norm);
    }
    report_line(r);
    report_count(r, "zeros among them", s->zeros);
    report_count(r, "NaN", s->nan);
    report_count(r, "Inf", s->inf);
    report_count(r, "subnormal", s->subnormal);
    if (s->odd_at >= 0)
        add_sparse_extreme(r, sparse, "first NaN or Inf:", NAN, s->odd_at);
}

static void add_pattern(lumat_report *r, const gpu_sparse *s,
                        const gpu_sparse_pattern *p)
{
    char band[128];
    double rows = s->rows > 0 ? (double)s->rows : 1;
    report_line(r);
    report_count(r, "rows without entries", p->empty_rows);
    report_count(r, "longest row", p->longest_row);
    report_add(r, "%.3g entries a row", (double)s->count / rows);
    band_text(s->rows, s->cols, p->lower, p->upper, band, sizeof band);
    report_line(r);
    if (r->style.width >= LUMAT_NARROW)
        report_add(r, "structure");
    if (s->rows == s->cols)
        report_add(r, "%s",
                   p->has_symmetric_values ? "symmetric"
                   : p->is_symmetric       ? "symmetric pattern, other values"
                                           : "pattern not symmetric");
    report_add(r, "%s", s->count ? band : "no entries");
}

/* The report on the sparse matrix at 1, of a complex one only on its pattern;
 * pushes its table. */
static void inspect_sparse(lumat_report *r, const gpu_sparse *sparse,
                           const char *name)
{
    lua_State *L = r->L;
    gpu_survey s = {.min_at = -1, .max_at = -1, .odd_at = -1};
    gpu_sparse_pattern p;
    report_name(r, 1, name);
    report_origin(r, 1);
    lumat_try(L, gpu_sparse_survey(sparse, &p));
    if (sparse->count > 0) {
        report_line(r);
        report_count(r, "entries", sparse->count);
    }
    if (sparse->count > 0 && !gpu_is_complex(&sparse->values)) {
        lumat_try(L, gpu_take_survey(&sparse->values, &s));
        add_entries(r, sparse, &s);
        report_distribution(r, &sparse->values, &s);
    }
    add_pattern(r, sparse, &p);
    push_survey(L, &s);
    lumat_set_count(L, "nnz", sparse->count);
    lumat_set_count(L, "empty_rows", p.empty_rows);
    lumat_set_count(L, "longest_row", p.longest_row);
    set_band(L, p.lower, p.upper);
    lumat_set_truth(L, "symmetric", p.has_symmetric_values);
    lumat_set_truth(L, "symmetric_pattern", p.is_symmetric);
}

/* --- dense matrices ------------------------------------------------------- */

static void inspect_dense(lumat_report *r, const gpu_matrix *m,
                          const char *name)
{
    lua_State *L = r->L;
    gpu_survey s = {.min = NAN, .max = NAN, .mean = NAN, .std = NAN};
    s.min_at = s.max_at = s.odd_at = -1;
    s.lower = s.upper = GPU_NO_BAND;
    if (gpu_is_complex(m))
        lumat_try(L, gpu_fail_complex("inspect"));
    report_name(r, 1, name);
    if (gpu_size(m) > 0)
        report_layout(r, m);
    report_aliases(r, m, name);
    report_origin(r, 1);
    if (gpu_size(m) > 0)
        lumat_try(L, gpu_take_survey(m, &s));
    if (gpu_size(m) > 0 && m->dtype == GPU_BOOL) {
        add_mask(r, m, &s);
        add_structure(r, m, &s);
    } else if (gpu_size(m) > 0) {
        add_numbers(r, m, &s);
        report_distribution(r, m, &s);
        add_structure(r, m, &s);
    }
    push_fields(L, m, &s);
}

/* --- the function --------------------------------------------------------- */

/* Of the frame at 1 its description, a frame. */
static int describe_frame(lua_State *L)
{
    lua_getfield(L, 1, "describe");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* inspect(A [, name]) */
static int inspect(lua_State *L)
{
    if (lumat_is_frame(L, 1))
        return describe_frame(L);
    lumat_text t;
    lumat_report r = {.L = L, .text = &t, .style = lumat_style_now(L)};
    const char *name = lua_tostring(L, 2);
    const gpu_sparse *sparse = lumat_test_sparse(L, 1);
    if (!sparse || !sparse->values.storage)
        lumat_check_matrix(L, 1);
    lua_settop(L, 2);
    if (!name)
        name = lumat_name_of(L, 1, "");
    lumat_new_text(L, &t, ROOM);
    if (sparse)
        inspect_sparse(&r, sparse, name);
    else
        inspect_dense(&r, lumat_check_matrix(L, 1), name);
    lumat_show_as(L, &t, NULL);
    return 1;
}

static const lumat_function functions[] = {
    {"inspect", inspect, 1, "A: matrix|sparse|frame [, name: string]", "table",
     "What there is to know of A: layout, aliases, extremes and where they "
     "are, mean, std, norm, zeros, NaN, Inf, subnormals, distribution and "
     "structure, all but the distribution in one pass; also as fields. Of a "
     "frame what T:describe() gives. Also :inspect A.",
     "inspect(mat{{1, 2}, {2, 1}}).symmetric", "true", .group = "pictures"},
    {0}};

void lumat_open_inspect(lua_State *L)
{
    lumat_register(L, functions);
}
