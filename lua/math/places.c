/* Lists of places: which rows, columns or elements a vector of places or a
 * mask names. take, put and A[…] read theirs here. */
#include "cancellation.h"
#include "constructors.h"
#include "index.h"
#include "value.h"

#include <math.h>
#include <string.h>

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
