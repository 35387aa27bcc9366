/* inspect: what there is to know of a sparse matrix. */
#include <math.h>
#include <stdio.h>
#include "inspect.h"
#include "records.h"

enum { DIGITS = 5 };

static void add_sparse_extreme(lumat_report *r, const gpu_sparse *sparse,
                               const char *name, double x, int64_t at)
{
    int64_t row, col;
    double value;
    char number[LUMAT_BRIEF];
    lumat_try(r->L, gpu_sparse_entries(sparse, at, 1, &row, &col, &value));
    lumat_report_add(r, "%s %s at [%lld, %lld]", name,
                     lumat_brief(x, DIGITS, number), (long long)row + 1,
                     (long long)col + 1);
}

static void add_entries(lumat_report *r, const gpu_sparse *sparse,
                        const gpu_survey *s)
{
    lumat_report_line(r);
    lumat_report_count(r, "entries", sparse->count);
    if (s->finite > 0) {
        add_sparse_extreme(r, sparse, "min", s->min, s->min_at);
        add_sparse_extreme(r, sparse, "max", s->max, s->max_at);
        lumat_report_number(r, "mean", s->mean);
        lumat_report_number(r, "norm", s->norm);
    }
    lumat_report_line(r);
    lumat_report_count(r, "zeros among them", s->zeros);
    lumat_report_count(r, "NaN", s->nan);
    lumat_report_count(r, "Inf", s->inf);
    lumat_report_count(r, "subnormal", s->subnormal);
    if (s->odd_at >= 0)
        add_sparse_extreme(r, sparse, "first NaN or Inf:", NAN, s->odd_at);
}

static void add_pattern(lumat_report *r, const gpu_sparse *s,
                        const gpu_sparse_pattern *p)
{
    char band[128];
    double rows = s->rows > 0 ? (double)s->rows : 1;
    lumat_report_line(r);
    lumat_report_count(r, "rows without entries", p->empty_rows);
    lumat_report_count(r, "longest row", p->longest_row);
    lumat_report_add(r, "%.3g entries a row", (double)s->count / rows);
    lumat_band_text(s->rows, s->cols, p->lower, p->upper, band, sizeof band);
    lumat_report_line(r);
    if (r->style.width >= LUMAT_NARROW)
        lumat_report_add(r, "structure");
    if (s->rows == s->cols)
        lumat_report_add(r, "%s",
                         p->has_symmetric_values ? "symmetric"
                         : p->is_symmetric ? "symmetric pattern, other values"
                                           : "pattern not symmetric");
    lumat_report_add(r, "%s", s->count ? band : "no entries");
}

void lumat_inspect_sparse(lumat_report *r, const gpu_sparse *sparse,
                          const char *name)
{
    lua_State *L = r->L;
    gpu_survey s = {.min_at = -1, .max_at = -1, .odd_at = -1};
    gpu_sparse_pattern p;
    lumat_report_name(r, 1, name);
    lumat_report_origin(r, 1);
    lumat_try(L, gpu_sparse_survey(sparse, &p));
    if (sparse->count > 0) {
        lumat_try(L, gpu_take_survey(&sparse->values, &s));
        add_entries(r, sparse, &s);
        lumat_report_distribution(r, &sparse->values, &s);
    }
    add_pattern(r, sparse, &p);
    lumat_push_survey(L, &s);
    lumat_set_count(L, "nnz", sparse->count);
    lumat_set_count(L, "empty_rows", p.empty_rows);
    lumat_set_count(L, "longest_row", p.longest_row);
    lumat_set_band(L, p.lower, p.upper);
    lumat_set_truth(L, "symmetric", p.has_symmetric_values);
    lumat_set_truth(L, "symmetric_pattern", p.is_symmetric);
}
