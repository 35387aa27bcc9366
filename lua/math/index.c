/* A[…] and A(…) in all their forms: keys as places, lists of places, and
 * reading. */
#include "index.h"
#include "cancellation.h"
#include "complex_value.h"
#include "diagnose.h"
#include "math_functions.h"
#include "op_list.h"
#include "parse.h"
#include "print.h"
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lists of places: a vector of them, or a mask ------------------------- */

/* " (A is 3x4)" of what is indexed, or "". */
static const char *push_of(lua_State *L, const lumat_side *side)
{
    if (!side->of)
        return lua_pushliteral(L, "");
    const char *name = lumat_name_of(L, 1, "the matrix");
    lumat_push_shape(L, side->of);
    return lua_pushfstring(L, " (%s is %s)", name, lua_tostring(L, -1));
}

static const char *push_number(lua_State *L, double v)
{
    if (v == floor(v) && fabs(v) < 0x1p63)
        lua_pushinteger(L, (lua_Integer)v);
    else
        lua_pushnumber(L, v);
    return lumat_push_brief(L, -1);
}

/* f32 holds whole numbers up to 2^24; those behind it may have been others. */
static int may_be_rounded(double v, int64_t size, gpu_dtype dtype)
{
    return dtype == GPU_F32 && size > 1 << 24 && fabs(v) >= 0x1p24;
}

/* The 0-based place that v names among side->size, from the end if negative. */
static int64_t check_listed(lua_State *L, const lumat_side *side, double v,
                            gpu_dtype dtype)
{
    double place = v < 0 ? v + (double)side->size + 1 : v;
    int is_inside = place >= 1 && place <= (double)side->size;
    if (is_inside && v == floor(v) && !may_be_rounded(v, side->size, dtype))
        return (int64_t)place - 1;
    const char *text = push_number(L, v);
    if (v != floor(v))
        lumat_raise(L, "%s: %s %s is not a whole number", side->name,
                    side->what, text);
    if (is_inside)
        lumat_raise(L,
                    "%s: %s %s stands in an f32 list, which is exact below "
                    "16777216: make the list f64",
                    side->name, side->what, text);
    lumat_raise(L, "%s: %s %s is outside 1..%I%s", side->name, side->what, text,
                (LUAI_UACINT)side->size, push_of(L, side));
    return 0;
}

static int64_t count_true(const uint8_t *truth, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += truth[i] != 0;
    return count;
}

/* Pushes the places where a mask is true. */
static const int64_t *push_chosen(lua_State *L, const lumat_side *side,
                                  const gpu_matrix *mask, int64_t *count)
{
    if (mask->rows != side->size)
        lumat_raise(L, "%s: the mask has length %I, there are %I %ss%s",
                    side->name, (LUAI_UACINT)mask->rows,
                    (LUAI_UACINT)side->size, side->what, push_of(L, side));
    if (gpu_is_dry())
        lumat_raise(L, "%s: how many %ss are chosen depends on the mask",
                    side->name, side->what);
    const uint8_t *truth = lumat_push_host_copy(L, mask);
    int64_t n = 0;
    *count = count_true(truth, mask->rows);
    int64_t *places = lua_newuserdatauv(L, (size_t)*count * sizeof *places, 0);
    for (int64_t i = 0; i < mask->rows; i++) {
        lumat_poll(L, i);
        if (truth[i])
            places[n++] = i;
    }
    lua_remove(L, -2);
    return places;
}

/* In a dry run they are not known: one is as good as another. */
static const int64_t *push_any(lua_State *L, const gpu_matrix *list,
                               int64_t *count)
{
    *count = list->rows;
    lumat_try(L, gpu_download_unseen(list, NULL));
    void *places = lua_newuserdatauv(L, (size_t)*count * sizeof(int64_t), 0);
    return memset(places, 0, (size_t)*count * sizeof(int64_t));
}

/* Pushes the places that a vector of numbers names. */
static const int64_t *push_named(lua_State *L, const lumat_side *side,
                                 const gpu_matrix *list, int64_t *count)
{
    if (gpu_is_complex(list))
        lumat_raise(L,
                    "%s: a list of %ss holds whole numbers, not complex ones",
                    side->name, side->what);
    if (gpu_is_dry())
        return push_any(L, list, count);
    const void *values = lumat_push_host_copy(L, list);
    const double *wide = values;
    const float *single = values;
    *count = list->rows;
    int64_t *places = lua_newuserdatauv(L, (size_t)*count * sizeof *places, 0);
    for (int64_t i = 0; i < *count; i++) {
        lumat_poll(L, i);
        double v = list->dtype == GPU_F64 ? wide[i] : (double)single[i];
        places[i] = check_listed(L, side, v, list->dtype);
    }
    lua_remove(L, -2);
    return places;
}

/* Raises that the matrix at list is none: what makes a list of it. */
static int no_list(lua_State *L, const lumat_side *side, const gpu_matrix *m)
{
    const char *hint =
        m->rows == 1 || m->cols == 1 ? "; flatten() makes a vector of it"
        : m->dtype != GPU_BOOL
            ? "; a mask is bool: make one with A:gt(0) and the like"
            : "";
    lumat_push_shape(L, m);
    return lumat_raise(
        L,
        "%s: a list of %ss is a vector of places or a mask vector, "
        "not a matrix (%s %s)%s",
        side->name, side->what, gpu_dtype_name(m->dtype), lua_tostring(L, -1),
        hint);
}

/* Pushes 1, 2, … as far as the mask goes, of those that it has. */
static const gpu_matrix *push_true(lua_State *L, const gpu_matrix *mask)
{
    gpu_matrix *out = lumat_new_matrix(L), *all = lumat_new_matrix(L);
    gpu_program p;
    gpu_program_start(&p, 0);
    int one = gpu_program_constant(&p, 1);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    gpu_program_add(&p, GPU_OP_add, row, one, 0);
    lumat_try(
        L, gpu_create(all, gpu_matrix_device(mask), GPU_F64, 1, mask->rows, 1));
    lumat_try(L, gpu_map("index", &p, NULL, all));
    lumat_try(L, gpu_compress(all, mask, out));
    gpu_release(all);
    lua_pop(L, 1);
    lumat_account(L, out);
    return out;
}

const gpu_matrix *lumat_push_list(lua_State *L, const gpu_matrix *m, int list,
                                  int64_t size)
{
    enum { LONG = 4096 };
    const gpu_matrix *l = lumat_test_matrix(L, list);
    if (!l || !l->storage || !m->storage || l->ndim != 1)
        return NULL;
    gpu_device *d = gpu_matrix_device(l);
    if (d != gpu_matrix_device(m) || (gpu_device_is_cpu(d) && l->rows < LONG) ||
        gpu_is_complex(l))
        return NULL;
    if (l->dtype == GPU_BOOL)
        return l->rows == size && !gpu_is_dry() ? push_true(L, l) : NULL;
    lua_pushvalue(L, list);
    return l;
}

void lumat_refuse_list(lua_State *L, const lumat_side *side,
                       const gpu_matrix *list)
{
    int64_t count;
    if (list)
        push_named(L, side, list, &count);
}

const int64_t *lumat_push_places(lua_State *L, const lumat_side *side, int list,
                                 int64_t *count)
{
    const gpu_matrix *m = lumat_test_matrix(L, list);
    if (!m->storage)
        lumat_raise(L, "%s: the list of %ss has been freed", side->name,
                    side->what);
    if (m->ndim != 1)
        no_list(L, side, m);
    return m->dtype == GPU_BOOL ? push_chosen(L, side, m, count)
                                : push_named(L, side, m, count);
}

/* --- elements read one by one ---------------------------------------------
 *
 * On a GPU each is a copy that costs what a million of them cost in one. */

/* Counters by matrix and line; one in the way of another takes its place. */
enum { TOLD_AT = 1000, COUNTERS = 64 };

static struct counter {
    const void *storage;
    const char *source; /* only compared */
    int line, count;
} counters[COUNTERS];

static int is_strict, on_cpu_too;

void lumat_open_reads(lua_State *L, int strict)
{
    const char *where = getenv("LUMAT_COUNT_READS");
    (void)L;
    is_strict = strict;
    on_cpu_too = where && strcmp(where, "cpu") == 0;
}

/* Has this line been told before? From now on it has. */
static int was_told(const char *source, int line)
{
    static struct {
        const char *source;
        int line;
    } told[COUNTERS];
    size_t i = ((size_t)source / 16 * 31 + (size_t)line) % COUNTERS;
    int same = told[i].source == source && told[i].line == line;
    told[i].source = source;
    told[i].line = line;
    return same;
}

static struct counter *find_counter(const void *storage, const char *source,
                                    int line)
{
    size_t number = (size_t)storage / 64 * 31 + (size_t)line;
    struct counter *p = &counters[number % COUNTERS];
    if (p->storage != storage || p->line != line || p->source != source)
        *p = (struct counter){storage, source, line, 0};
    return p;
}

static void complain(lua_State *L, const lua_Debug *caller, const gpu_matrix *m)
{
    int top = lua_gettop(L);
    const char *name = lumat_name_of(L, 1, "a matrix");
    const char *device = gpu_device_name(gpu_matrix_device(m));
    const char *text = lua_pushfstring(
        L,
        "read %d elements of %s one by one, each a copy from %s; %s:totable() "
        "or %s:to(\"cpu\") copies them at once",
        TOLD_AT, name, device, name, name);
    if (is_strict)
        luaL_error(L, "%s", text);
    fflush(stdout);
    lumat_print_visible(stderr, "note: %s:%d %s\n", caller->short_src,
                        caller->currentline, text);
    lua_settop(L, top);
}

/* At the prompt people look at what they like. */
static void count_read(lua_State *L, const gpu_matrix *m)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "Sl", &caller) ||
        caller.currentline < 1 || strcmp(caller.source, "=" LUMAT_CHUNK) == 0)
        return;
    struct counter *p =
        find_counter(m->storage, caller.source, caller.currentline);
    if (++p->count == TOLD_AT && (is_strict || !was_told(p->source, p->line)))
        complain(L, &caller, m);
}

int lumat_is_slice(const char *key)
{
    if (strncmp(key, "end", 3) == 0)
        return key[3] == '\0' || strchr(" ,:+-", key[3]);
    return *key == '\0' || strchr("0123456789:-, ", *key);
}

gpu_matrix *lumat_check_indexed(lua_State *L, const char *name)
{
    gpu_matrix *m = lumat_test_matrix(L, 1);
    if (!m)
        luaL_typeerror(L, 1, "matrix");
    else if (!m->storage)
        lumat_raise(L, "%s: the matrix has been freed", name);
    return m;
}

/* --- keys as places ------------------------------------------------------- */

static int outside(lua_State *L, const gpu_matrix *m, lua_Integer i, int axis)
{
    int64_t size = axis == 1 ? m->rows : m->cols;
    const char *what = m->ndim == 1 ? "index" : axis == 1 ? "row" : "column";
    const char *name = lumat_name_of(L, 1, "the matrix");
    lumat_push_shape(L, m);
    const char *shape = lua_tostring(L, -1);
    if (i == 0)
        return lumat_raise(L, "%s 0: indices start at 1 (%s is %s)", what, name,
                           shape);
    int is_dense = m->storage != NULL;
    const char *hint = is_dense && axis == 1 && i == size + 1
                           ? "; to visit all, use A:eachrow()"
                           : "";
    return lumat_raise(L, "%s %I is outside 1..%I (%s is %s)%s", what,
                       (LUAI_UACINT)i, (LUAI_UACINT)size, name, shape, hint);
}

int64_t lumat_check_place(lua_State *L, const gpu_matrix *m, int arg, int axis)
{
    int exact;
    lua_Integer i = lua_tointegerx(L, arg, &exact);
    if (exact && i > 0 && i <= (axis == 1 ? m->rows : m->cols) &&
        lua_type(L, arg) == LUA_TNUMBER)
        return i - 1;
    if (lumat_is_unknown(L, arg))
        return 0; /* as good as any other */
    if (!exact || lua_type(L, arg) != LUA_TNUMBER) {
        lumat_before_refusing(L, arg);
        lumat_raise(L, "index: must be a whole number, not %s",
                    lumat_push_brief(L, arg));
    }
    int64_t place = lumat_place(i, axis == 1 ? m->rows : m->cols);
    return place >= 0 ? place : outside(L, m, i, axis);
}

/* What a range written in the order of other languages is told, once: of one
 * that takes a place or none, where theirs would take more. */
static const char *taken(const lumat_part *part)
{
    return part->slice.count == 0 ? "none" : "1";
}

static void warn_of_range(lua_State *L, const lua_Integer bound[3],
                          const lumat_part *part)
{
    lumat_warn(L, "index",
               "ranges are {first, last, step}: {%lld, %lld, %lld} takes %s, "
               "{%lld, %lld, %lld} takes %lld",
               (long long)bound[0], (long long)bound[1], (long long)bound[2],
               taken(part), (long long)bound[0], (long long)bound[2],
               (long long)bound[1], (long long)part->swapped);
}

/* text: "a:b:c" of that part, up to its end or a comma. */
static void warn_of_slice(lua_State *L, const char *text,
                          const lumat_part *part)
{
    text += strspn(text, " \t");
    const char *end = text + strcspn(text, ",");
    const char *middle = strchr(text, ':') + 1;
    const char *last = strchr(middle, ':') + 1;
    lumat_warn(L, "index",
               "slices are first:last:step: \"%.*s\" takes %s, "
               "\"%.*s%.*s:%.*s\" takes %lld",
               (int)(end - text), text, taken(part), (int)(middle - text), text,
               (int)(end - last), last, (int)(last - 1 - middle), middle,
               (long long)part->swapped);
}

static const char *side_name(const gpu_matrix *m, int axis)
{
    return m->ndim == 1 ? "element" : axis == 1 ? "row" : "column";
}

/* A vector of places or a mask, at key, of one side. */
static void list_part(lua_State *L, const gpu_matrix *m, int axis, int key,
                      lumat_part *out)
{
    lumat_side side = {"index", side_name(m, axis),
                       axis == 1 ? m->rows : m->cols, m};
    *out = (lumat_part){.slice = {0, 1, side.size}};
    out->list = lumat_push_list(L, m, key, side.size);
    if (out->list)
        out->listed = out->list->rows;
    else
        out->places = lumat_push_places(L, &side, key, &out->listed);
}

void lumat_list_parts(lua_State *L, const gpu_matrix *m, int key,
                      lumat_part out[2])
{
    out[1] = (lumat_part){.slice = {0, 1, m->cols}};
    list_part(L, m, 1, key, &out[0]);
}

/* Pushes "vec{1, 3, 5}", how the numbers of the table at index are a list; of
 * one with other things in it "vec{…}". */
static const char *push_vector_text(lua_State *L, int index)
{
    enum { MOST = 6 };
    int n = (int)lua_rawlen(L, index);
    const char *text = "vec{";
    luaL_checkstack(L, 3 * MOST + 10, "index");
    for (int k = 1; k <= n && k <= MOST; k++) {
        if (lua_rawgeti(L, index, k) != LUA_TNUMBER)
            return lua_pushliteral(L, "vec{…}");
        text = lua_pushfstring(L, "%s%s%s", text, k > 1 ? ", " : "",
                               lumat_push_brief(L, -1));
    }
    return lua_pushfstring(L, "%s%s}", text, n > MOST ? ", …" : "");
}

static int wrong_count(lua_State *L, const gpu_matrix *m, int given)
{
    return lumat_raise(L, "index: %d %s given, the matrix has %d", given,
                       given == 1 ? "index" : "indices", m->ndim);
}

/* A[{1, 3, 5}], where a list of places may be meant. */
static int wrong_length(lua_State *L, const gpu_matrix *m, int key, int given)
{
    const char *list = given > m->ndim ? push_vector_text(L, key) : "";
    if (given <= m->ndim || strstr(list, "…}") == list + 4)
        return wrong_count(L, m, given);
    return lumat_raise(L,
                       "index: %d indices given, the matrix has %d; the %ss of "
                       "a list are %s[%s]",
                       given, m->ndim, side_name(m, 1),
                       lumat_name_of(L, 1, "A"), list);
}

/* The table on top is no range. */
static int no_range(lua_State *L)
{
    return lumat_raise(
        L,
        "index: a range is {first, last} or {first, last, step}, "
        "or {} for all; a list of places is a vector: %s",
        push_vector_text(L, lua_gettop(L)));
}

/* {1, 3, 5}: a step beyond the last place takes the first alone, which nobody
 * writes who does not mean a list. */
static void warn_of_list(lua_State *L, const lua_Integer bound[3], int64_t size)
{
    if (0 < bound[0] && bound[0] < bound[1] && bound[1] < bound[2] &&
        bound[2] <= size)
        lumat_warn(L, "index",
                   "{%lld, %lld, %lld} is a range {first, last, step}, which "
                   "takes %lld alone; a list of places is vec{%lld, %lld, "
                   "%lld}",
                   (long long)bound[0], (long long)bound[1],
                   (long long)bound[2], (long long)bound[0],
                   (long long)bound[0], (long long)bound[1],
                   (long long)bound[2]);
}

/* The numbers of the table on top: how many there are, of which bound gets
 * the first three at most. */
static int range_bounds(lua_State *L, lua_Integer bound[3])
{
    int n = (int)lua_rawlen(L, -1);
    if (n > 3 || n == 1)
        no_range(L);
    for (int k = 0; k < n; k++) {
        int exact;
        int type = lua_rawgeti(L, -1, k + 1);
        bound[k] = lua_tointegerx(L, -1, &exact);
        if (type == LUA_TBOOLEAN)
            lumat_raise(L, "index: a range needs whole numbers, not a boolean; "
                           "a mask is a vector: vec{true, false, …}");
        if (!exact || type != LUA_TNUMBER)
            lumat_raise(L, "index: a range needs whole numbers, not %s",
                        lumat_push_brief(L, -1));
        lua_pop(L, 1);
    }
    return n;
}

/* {}, {a, b} or {a, b, step} on top. */
static void range_part(lua_State *L, int64_t size, lumat_part *out)
{
    lua_Integer bound[3] = {1, size, 1};
    char error[128];
    *out = (lumat_part){.slice = {0, 1, size}};
    int n = range_bounds(L, bound);
    if (n == 0)
        return;
    if (!lumat_slice_range(bound[0], bound[1], bound[2], size, out, error,
                           sizeof error))
        lumat_raise(L, "index: %s", error);
    if (n == 3 && out->swapped)
        warn_of_range(L, bound, out);
    else if (n == 3)
        warn_of_list(L, bound, size);
}

/* One entry of A[{…}], on top: i, a range or a list, whose places take its
 * place; the others are popped. */
static void table_part(lua_State *L, const gpu_matrix *m, int axis,
                       lumat_part *out)
{
    int type = lua_type(L, -1);
    if (type == LUA_TUSERDATA && lumat_test_matrix(L, -1)) {
        list_part(L, m, axis, lua_gettop(L), out);
        lua_remove(L, -2);
        return;
    }
    if (type == LUA_TTABLE)
        range_part(L, axis == 1 ? m->rows : m->cols, out);
    else
        *out = (lumat_part){
            .slice = {lumat_check_place(L, m, lua_gettop(L), axis), 1, 1},
            .is_index = 1};
    lua_pop(L, 1);
}

void lumat_table_parts(lua_State *L, const gpu_matrix *m, int key,
                       lumat_part out[2])
{
    int n = (int)lua_rawlen(L, key);
    if (n < 1 || n > m->ndim)
        wrong_length(L, m, key, n);
    out[1] = (lumat_part){.slice = {0, 1, m->cols}};
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, key, k + 1);
        table_part(L, m, k + 1, &out[k]);
    }
}

int lumat_names_element(lua_State *L, const gpu_matrix *m, int key,
                        lua_Integer place[2])
{
    if ((int)lua_rawlen(L, key) != m->ndim)
        return 0;
    place[1] = 0;
    for (int k = 0; k < m->ndim; k++) {
        int exact = 0, type = lua_rawgeti(L, key, k + 1);
        place[k] = lua_tointegerx(L, -1, &exact) - 1;
        if (!exact || type != LUA_TNUMBER || place[k] < 0 ||
            place[k] >= (k == 0 ? m->rows : m->cols)) {
            lua_pop(L, k + 1);
            return 0;
        }
    }
    return 1;
}

void lumat_string_parts(lua_State *L, const gpu_matrix *m, int key,
                        lumat_part out[2])
{
    size_t length;
    const char *text = lua_tolstring(L, key, &length);
    char error[128];
    key = lua_absindex(L, key);
    if (lumat_slice_parse(text, length, m->ndim, m->rows, m->cols, out, error,
                          sizeof error)) {
        if (out[0].swapped)
            warn_of_slice(L, text, &out[0]);
        if (out[1].swapped)
            warn_of_slice(L, strchr(text, ',') + 1, &out[1]);
        return;
    }
    const char *name = lumat_name_of(L, 1, "A");
    const char *brief = lumat_push_brief(L, key);
    lumat_push_shape(L, m);
    lumat_raise(L, "%s[%s]: %s (%s is %s)", name, brief, error, name,
                lua_tostring(L, -1));
}

/* Is this the place of one element? */
int lumat_is_element(const gpu_matrix *m, const lumat_part part[2])
{
    return part[0].is_index && (m->ndim == 1 || part[1].is_index);
}

void lumat_push_block(lua_State *L, const gpu_matrix *m,
                      const lumat_part part[2])
{
    gpu_matrix block, *out = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(m, part[0].slice, part[1].slice, &block));
    *out = block;
    if (m->ndim == 1 || (!part[0].is_index && !part[1].is_index))
        return;
    if (part[0].is_index)
        gpu_view_row(&block, 0, out);
    else
        gpu_view_column(&block, 0, out);
    gpu_release(&block);
}

lumat_lists lumat_lists_of(const gpu_matrix *m, const lumat_part part[2])
{
    const lumat_part *rows = &part[0], *cols = &part[1];
    lumat_lists lists = {0};
    if (m->ndim == 2 && rows->is_index) {
        rows = cols; /* of a row, which is a vector */
        cols = &part[0];
    }
    lists.rows = rows->places;
    lists.nrows = rows->listed;
    lists.cols = cols->places;
    lists.ncols = cols->listed;
    lists.row_list = rows->list;
    lists.col_list = cols->list;
    return lists;
}

gpu_status lumat_gather_lists(const gpu_matrix *m, const lumat_lists *from,
                              gpu_matrix *out)
{
    gpu_matrix some;
    if (!from->row_list && !from->col_list)
        return gpu_gather(m, from->rows, from->nrows, from->cols, from->ncols,
                          out);
    if (!from->rows && !from->cols)
        return gpu_take(m, from->row_list, from->col_list, out);
    gpu_status status =
        gpu_gather(m, from->rows, from->nrows, from->cols, from->ncols, &some);
    if (status != GPU_OK)
        return status;
    status = gpu_take(&some, from->row_list, from->col_list, out);
    gpu_release(&some);
    return status;
}

gpu_status lumat_scatter_lists(const char *name, const gpu_matrix *from,
                               const lumat_lists *to, gpu_matrix *m)
{
    if (to->row_list || to->col_list)
        return gpu_put(name, from, to->row_list, to->col_list, m);
    return gpu_scatter(name, from, to->rows, to->nrows, to->cols, to->ncols, m);
}

int lumat_is_worth_staying(const gpu_matrix *m, int64_t listed, int64_t size)
{
    return gpu_device_is_cpu(gpu_matrix_device(m)) || listed >= size / 64;
}

void lumat_refuse_parts(lua_State *L, gpu_status status, const gpu_matrix *m,
                        const lumat_part part[2])
{
    for (int k = 0; k < 2 && status == GPU_RANGE; k++) {
        lumat_side side = {"index", side_name(m, k + 1),
                           k == 0 ? m->rows : m->cols, m};
        lumat_refuse_list(L, &side, part[k].list);
    }
    lumat_try(L, status);
}

void lumat_fetch_lists(lua_State *L, const gpu_matrix *m, lumat_part part[2])
{
    int stays = 1;
    for (int k = 0; k < 2; k++)
        if (part[k].places || (part[k].list && !lumat_is_worth_staying(
                                                   m, part[k].listed,
                                                   k == 0 ? m->rows : m->cols)))
            stays = 0;
    for (int k = 0; k < 2 && !stays; k++) {
        lumat_side side = {"index", side_name(m, k + 1),
                           k == 0 ? m->rows : m->cols, m};
        if (part[k].list)
            part[k].places =
                push_named(L, &side, part[k].list, &part[k].listed);
        part[k].list = NULL;
    }
}

static int push_complex_element(lua_State *L, const gpu_matrix *m, int64_t i,
                                int64_t j)
{
    gpu_complex value;
    lumat_try(L, gpu_complex_get(m, i, j, &value));
    if (lumat_push_unread(L, "an element"))
        return 1;
    lumat_note_scalar(gpu_dtype_of_parts(m->dtype), value.re);
    lumat_note_scalar(gpu_dtype_of_parts(m->dtype), value.im);
    lumat_push_complex(L, value);
    return 1;
}

int lumat_push_element(lua_State *L, const gpu_matrix *m, int64_t i, int64_t j)
{
    double value;
    if (on_cpu_too || !gpu_device_is_cpu(gpu_matrix_device(m)))
        count_read(L, m);
    if (gpu_is_complex(m))
        return push_complex_element(L, m, i, j);
    lumat_try(L, gpu_get(m, i, j, &value));
    if (lumat_push_unread(L, "an element"))
        return 1;
    lumat_note_scalar(m->dtype, value);
    if (m->dtype == GPU_BOOL)
        lua_pushboolean(L, value != 0);
    else
        lua_pushnumber(L, value);
    return 1;
}

static int push_place(lua_State *L, const gpu_matrix *m,
                      const lumat_part part[2])
{
    if (lumat_is_element(m, part))
        return lumat_push_element(L, m, part[0].slice.first,
                                  m->ndim == 1 ? 0 : part[1].slice.first);
    lumat_push_block(L, m, part);
    lumat_lists lists = lumat_lists_of(m, part);
    if (!lists.rows && !lists.cols && !lists.row_list && !lists.col_list)
        return 1;
    const gpu_matrix *block = lumat_test_matrix(L, -1);
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_status status = lumat_gather_lists(block, &lists, out);
    if (status != GPU_OK)
        lumat_refuse_parts(L, status, m, part);
    lumat_account(L, out);
    return 1;
}

/* --- reading -------------------------------------------------------------- */

static int index_number(lua_State *L, const gpu_matrix *m, int key)
{
    int64_t i = lumat_check_place(L, m, key, 1);
    if (m->ndim == 1)
        return lumat_push_element(L, m, i, 0);
    gpu_view_row(m, i, lumat_new_matrix(L));
    return 1;
}

/* A word of one letter, or without a letter in common, is no misspelling. */
static const char *nearest_name(lua_State *L, const char *name,
                                const char *list)
{
    const char *near = strlen(name) > 1 ? lumat_nearest(L, name, list) : NULL;
    return near && strpbrk(name, near) ? near : NULL;
}

int lumat_unknown_name(lua_State *L, const char *name)
{
    if (strlen(name) > 40)
        return lumat_raise(L, "a matrix has no name of %I characters",
                           (LUAI_UACINT)strlen(name));
    if (lumat_push_instead(L, name))
        return lumat_raise(L, "a matrix has no '%s': %s", name,
                           lua_tostring(L, -1));
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.method_names");
    const char *methods = lua_tostring(L, -1);
    lua_pushfstring(L, "%s %s", lumat_property_names, methods ? methods : "");
    const char *near = nearest_name(L, name, lua_tostring(L, -1));
    if (near)
        return lumat_raise(L, "a matrix has no '%s': did you mean '%s'?", name,
                           near);
    return lumat_raise(L, "a matrix has no '%s'", name);
}

/* --- properties ----------------------------------------------------------- */

static int get_rows(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->rows);
    return 1;
}

static int get_cols(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->cols);
    return 1;
}

static int get_size(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, gpu_size(m));
    return 1;
}

static int get_ndim(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, m->ndim);
    return 1;
}

static int get_bytes(lua_State *L, const gpu_matrix *m)
{
    lua_pushinteger(L, (lua_Integer)gpu_bytes(m));
    return 1;
}

static int get_shape(lua_State *L, const gpu_matrix *m)
{
    lua_createtable(L, m->ndim, 0);
    lua_pushinteger(L, m->rows);
    lua_rawseti(L, -2, 1);
    if (m->ndim == 2) {
        lua_pushinteger(L, m->cols);
        lua_rawseti(L, -2, 2);
    }
    return 1;
}

static int get_dtype(lua_State *L, const gpu_matrix *m)
{
    lua_pushstring(L, gpu_dtype_name(m->dtype));
    return 1;
}

static int get_device(lua_State *L, const gpu_matrix *m)
{
    gpu_device *d = gpu_matrix_device(m);
    lua_pushstring(L, d ? gpu_device_name(d) : "none");
    return 1;
}

static int get_T(lua_State *L, const gpu_matrix *m)
{
    gpu_view_transposed(m, lumat_new_matrix(L));
    return 1;
}

static int get_H(lua_State *L, const gpu_matrix *m)
{
    gpu_matrix *out = lumat_new_matrix(L), turned;
    gpu_view_transposed(m, &turned);
    gpu_view_conjugated(&turned, out);
    gpu_release(&turned);
    return 1;
}

#define PROPERTIES(P) \
    P(T)              \
    P(H) P(rows) P(cols) P(shape) P(dtype) P(device) P(size) P(ndim) P(bytes)
#define NAME(name) #name " "
#define ROW(name) {#name, get_##name},

const char lumat_property_names[] = PROPERTIES(NAME);

static const struct property {
    const char *name;
    int (*get)(lua_State *L, const gpu_matrix *m);
} properties[] = {PROPERTIES(ROW)};

static const struct property *find_property(const char *name)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i].name) == 0)
            return &properties[i];
    return NULL;
}

int lumat_is_property(const char *name)
{
    return find_property(name) != NULL;
}

/* Pushes A.name and returns 1, or returns 0 where there is no such property. */
static int push_property(lua_State *L, const gpu_matrix *m, const char *name)
{
    const struct property *p = find_property(name);
    return p ? p->get(L, m) : 0;
}

/* --- reading by a key ----------------------------------------------------- */

static int index_string(lua_State *L, const gpu_matrix *m)
{
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    const char *name = lua_tostring(L, 2);
    if (push_property(L, m, name))
        return 1;
    if (!lumat_is_slice(name))
        return lumat_unknown_name(L, name);
    lumat_check_indexed(L, "index");
    lumat_part part[2];
    lumat_string_parts(L, m, 2, part);
    return push_place(L, m, part);
}

/* A column beside a matrix with more columns chooses no elements: it is told
 * how it becomes a list. */
int lumat_is_element_mask(const gpu_matrix *m, const gpu_matrix *mask)
{
    return mask->dtype == GPU_BOOL && mask->ndim == m->ndim &&
           (mask->cols == m->cols || mask->cols != 1);
}

static int index_matrix(lua_State *L, const gpu_matrix *m,
                        const gpu_matrix *mask)
{
    lumat_part part[2];
    if (!lumat_is_element_mask(m, mask)) {
        lumat_list_parts(L, m, 2, part);
        return push_place(L, m, part);
    }
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_compress(m, mask, out));
    lumat_account(L, out);
    return 1;
}

int lumat_bad_key(lua_State *L, int key)
{
    if (lumat_look_at_sparse(L, key))
        return lumat_raise(L,
                           "index: a sparse mask chooses elements of a sparse "
                           "matrix: of a dense one write full(%s):ne(0)",
                           lumat_name_of(L, key, "M"));
    return lumat_raise(
        L,
        "index: a matrix is indexed by a number, {i, j}, a slice such "
        "as \"1:3, end\", a mask, or places as in vec{1, 3}, not a %s",
        lumat_kind_of(L, key));
}

static int matrix_index(lua_State *L)
{
    gpu_matrix *m = lumat_test_matrix(L, 1);
    if (!m)
        return luaL_typeerror(L, 1, "matrix");
    int type = lua_type(L, 2);
    if (type == LUA_TSTRING)
        return index_string(L, m);
    if (!m->storage)
        lumat_check_indexed(L, "index");
    if (type == LUA_TNUMBER)
        return index_number(L, m, 2);
    if (type == LUA_TTABLE) {
        lua_Integer place[2];
        lumat_part part[2];
        if (lumat_names_element(L, m, 2, place))
            return lumat_push_element(L, m, place[0], place[1]);
        lumat_table_parts(L, m, 2, part);
        return push_place(L, m, part);
    }
    if (lumat_is_unknown(L, 2))
        return index_number(L, m, 2);
    gpu_matrix *mask = lumat_test_matrix(L, 2);
    return mask ? index_matrix(L, m, mask) : lumat_bad_key(L, 2);
}

/* A(i, j) and A(i) */
static int matrix_call(lua_State *L)
{
    lumat_refuse_called(L);
    gpu_matrix *m = lumat_check_indexed(L, "index");
    if (lua_gettop(L) == 2)
        return index_number(L, m, 2);
    if (lua_gettop(L) != 3 || m->ndim != 2)
        return wrong_count(L, m, lua_gettop(L) - 1);
    int64_t i = lumat_check_place(L, m, 2, 1),
            j = lumat_check_place(L, m, 3, 2);
    return lumat_push_element(L, m, i, j);
}

static int matrix_len(lua_State *L)
{
    lua_pushinteger(L, lumat_check_matrix(L, 1)->rows);
    return 1;
}

void lumat_open_index(lua_State *L)
{
    luaL_getmetatable(L, "lumat.matrix");
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
    lua_pushcclosure(L, matrix_index, 1);
    lua_setfield(L, -2, "__index");
    static const luaL_Reg metamethods[] = {{"__newindex", lumat_newindex},
                                           {"__call", matrix_call},
                                           {"__len", matrix_len},
                                           {NULL, NULL}};
    luaL_setfuncs(L, metamethods, 0);
    lua_pop(L, 1);
}
