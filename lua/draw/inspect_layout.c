/* inspect: a matrix's name and headline, how it lies in its storage, which
 * variables share that, and what made it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "print.h"
#include "inspect.h"
#include "registry.h"

enum { PIECE = 512, MOST_ALIASES = 4 };

/* --- layout --------------------------------------------------------------- */

/* How a matrix of more than one row and column lies in its storage. */
static void add_matrix_layout(lumat_report *r, const gpu_matrix *m)
{
    if (gpu_is_contiguous(m))
        lumat_report_add(r, "row-major, contiguous");
    else if (m->row_stride == 1 && m->col_stride == m->rows)
        lumat_report_add(r, "column-major, contiguous: a transposed view");
    else if (m->row_stride == 0 || m->col_stride == 0)
        lumat_report_add(r, "a stretched view");
    else
        lumat_report_add(
            r, "a view: %lld from row to row, %lld from column to column",
            (long long)m->row_stride, (long long)m->col_stride);
}

void lumat_report_layout(lumat_report *r, const gpu_matrix *m)
{
    char bytes[32];
    size_t all = gpu_storage_bytes(m);
    int64_t step = m->rows > 1 ? m->row_stride : m->col_stride;
    if (gpu_size(m) == 1)
        lumat_report_add(r, "one element");
    else if (m->rows > 1 && m->cols > 1)
        add_matrix_layout(r, m);
    else if (step == 1)
        lumat_report_add(r, "contiguous");
    else
        lumat_report_add(r, "a view of every %lldth element", (long long)step);
    if (all > gpu_bytes(m))
        lumat_report_add(r, "of storage of %s",
                         lumat_bytes_text(all, bytes, sizeof bytes));
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

/* Gathers the names in the table on top whose matrices share m's storage into
 * the table at `found`, with the matrices; pops it. */
static void gather_sharers(lua_State *L, int found, const gpu_matrix *m,
                           const char *own)
{
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        const gpu_matrix *other = lumat_test_matrix(L, -1);
        if (lua_type(L, -2) != LUA_TSTRING || !other || !other->storage ||
            !gpu_shares_storage(m, other))
            continue;
        const char *name = lua_tostring(L, -2);
        if (strcmp(name, own) == 0 || strcmp(name, "ans") == 0)
            continue;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, found);
    }
    lua_pop(L, 1);
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
void lumat_report_aliases(lumat_report *r, const gpu_matrix *m, const char *own)
{
    lua_State *L = r->L;
    int top = lua_gettop(L), count;
    char list[PIECE];
    lumat_text t = {list, 0, sizeof list};
    list[0] = '\0';
    lua_newtable(L);
    lua_pushglobaltable(L);
    gather_sharers(L, top + 1, m, own);
    if (lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session") == LUA_TTABLE)
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
        lumat_report_add(r, "aliases: %s", list);
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
    lumat_report_line(r);
    lumat_report_add(r, "%s  %.*s", lead,
                     length < PIECE / 2 ? length : PIECE / 2, text);
    if (when)
        lumat_report_add(r, "%.200s", when + strspn(when, " "));
}

/* What made the matrix, and what changed it last, where the library knows. */
void lumat_report_origin(lumat_report *r, int index)
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

void lumat_report_name(lumat_report *r, int index, const char *name)
{
    lumat_report_line(r);
    int margin = r->flow.margin;
    r->flow.margin = 0;
    r->flow.gap = 3;
    if (*name)
        lumat_report_add(r, "%.60s", name);
    lumat_push_headline(r->L, index);
    lumat_report_add(r, "%s", lua_tostring(r->L, -1));
    lua_pop(r->L, 1);
    r->flow.margin = margin;
}
