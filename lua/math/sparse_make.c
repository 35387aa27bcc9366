/* sparse(i, j, v, m, n) and sparse(A): their arguments. */
#include "sparse_make.h"
#include "cancellation.h"
#include "constructors.h"
#include "function.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* An argument that is a number for all entries, or one for each. */
typedef struct list {
    const char *name;
    int is_number;
    int64_t count;
    double *values; /* of one element when it is a number */
} list;

/* Reads the argument; its values are in a userdata that stays pushed. */
static list read_list(lua_State *L, int arg, const char *name)
{
    list l = {.name = name, .count = 1};
    gpu_device *cpu;
    if (lua_type(L, arg) == LUA_TNUMBER) {
        l.is_number = 1;
        l.values = lua_newuserdatauv(L, sizeof *l.values, 0);
        *l.values = lua_tonumber(L, arg);
        return l;
    }
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        lumat_push_from_table(L, arg, "sparse", GPU_F64, cpu);
    } else {
        if (!lumat_test_matrix(L, arg))
            luaL_typeerror(L, arg, "vector, table or number");
        const gpu_matrix *m = lumat_check_matrix(L, arg);
        lumat_try(L, gpu_clone(m, GPU_F64, NULL, lumat_new_matrix(L)));
    }
    gpu_matrix *wide = lumat_test_matrix(L, -1);
    luaL_argcheck(L, wide->ndim == 1, arg, "needs a vector, not a matrix");
    l.count = wide->rows;
    l.values = lumat_push_host_copy(L, wide);
    gpu_release(wide);
    lua_remove(L, -2);
    return l;
}

/* How many entries there are: as many as the lists have elements. */
static int64_t count_entries(lua_State *L, const list *l)
{
    const list *longest = NULL;
    for (int k = 0; k < 3; k++) {
        if (l[k].is_number)
            continue;
        if (longest && longest->count != l[k].count)
            lumat_raise(L,
                        "sparse: lengths differ (%s has %I elements, %s has "
                        "%I)",
                        longest->name, (LUAI_UACINT)longest->count, l[k].name,
                        (LUAI_UACINT)l[k].count);
        longest = &l[k];
    }
    return longest ? longest->count : 1;
}

static int64_t check_place(lua_State *L, const list *l, int64_t k, double x)
{
    if (x == floor(x) && x >= 1 && x < 0x1p53)
        return (int64_t)x - 1;
    if (x == floor(x) && fabs(x) < 0x1p53)
        lumat_raise(L, "sparse: %s of entry %I is %I: indices start at 1",
                    l->name, (LUAI_UACINT)k + 1, (LUAI_UACINT)x);
    lua_pushnumber(L, x);
    lumat_raise(L, "sparse: %s of entry %I must be a whole number, not %s",
                l->name, (LUAI_UACINT)k + 1, lumat_push_brief(L, -1));
    return 0;
}

/* Pushes n numbers for a list that is one number, else nothing: its own
 * values, one for each entry, will do. */
static double *spread(lua_State *L, const list *l, int64_t n)
{
    if (!l->is_number)
        return l->values;
    double *values = lua_newuserdatauv(L, (size_t)n * sizeof *values, 0);
    for (int64_t k = 0; k < n; k++)
        values[k] = *l->values;
    return values;
}

/* The list as 0-based places, in the memory of its values; size becomes what
 * holds them all, when it is not known (-1). */
static const int64_t *push_places(lua_State *L, const list *l, int64_t n,
                                  int64_t *size)
{
    double *values = spread(L, l, n);
    int64_t *places = (void *)values, largest = 0;
    for (int64_t k = 0; k < n; k++) {
        lumat_poll(L, k);
        places[k] = check_place(L, l, k, values[k]);
        largest = places[k] >= largest ? places[k] + 1 : largest;
    }
    *size = *size < 0 ? largest : *size;
    return places;
}

static gpu_dtype option_dtype(lua_State *L, int arg, const gpu_matrix *like)
{
    int natural = like && like->dtype != GPU_BOOL;
    gpu_dtype type = lumat_option_dtype(
        L, arg, natural ? like->dtype : lumat_default_dtype(L));
    if (type == GPU_BOOL)
        lumat_raise(L, "dtype: a sparse matrix is f32 or f64, not bool");
    return type;
}

/* Values that are a matrix decide type and device, where no option does. */
static int from_triplets(lua_State *L)
{
    const gpu_matrix *v = lumat_test_matrix(L, 3);
    int options = lua_istable(L, 4) || lua_gettop(L) < 4 ? 4 : 6;
    gpu_triplets t = {.rows = -1, .cols = -1};
    if (lua_isnone(L, 3))
        luaL_typeerror(L, 3, "vector, table or number");
    lua_settop(L, options);
    if (options == 6) {
        t.rows = lumat_check_size(L, 4);
        t.cols = lumat_check_size(L, 5);
    }
    list l[3];
    l[0] = read_list(L, 1, "i");
    l[1] = read_list(L, 2, "j");
    l[2] = read_list(L, 3, "v");
    gpu_dtype dtype = option_dtype(L, options, v);
    gpu_device *d =
        lumat_option_device(L, options, v ? gpu_matrix_device(v) : NULL);
    t.count = count_entries(L, l);
    t.row = push_places(L, &l[0], t.count, &t.rows);
    t.col = push_places(L, &l[1], t.count, &t.cols);
    t.value = spread(L, &l[2], t.count);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_create(out, d, dtype, &t));
    lumat_account_sparse(L, out);
    return 1;
}

static int from_dense(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_settop(L, 2);
    luaL_argcheck(L, m->ndim == 2, 1,
                  "needs a matrix, not a vector: v:col() is one");
    gpu_dtype dtype = option_dtype(L, 2, m);
    gpu_device *d = lumat_option_device(L, 2, NULL);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_from_dense(m, dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

static int make_sparse(lua_State *L)
{
    int count = lua_gettop(L);
    if (lumat_test_sparse(L, 1))
        return luaL_argerror(L, 1, "it is sparse already");
    if (count <= 1 ||
        (count == 2 && lua_istable(L, 2) && lumat_test_matrix(L, 1)))
        return from_dense(L);
    return from_triplets(L);
}

static const lumat_function functions[] = {
    {"sparse", make_sparse, 1,
     "i: list|number, j: list|number, v: list|number [, m: size, n: size] "
     "{dtype, device} or A: matrix {dtype, device}",
     "sparse",
     "A sparse matrix (compressed rows): v[k] at (i[k], j[k]), those at one "
     "place added up, m and n the largest indices if absent; or the non-zeros "
     "of A. i, j, v: vectors, tables or one number for all. There are S * D, S "
     "* x, 2 * S, S.T, S(i, j), S.nnz, S:full(), S:f64(), S:to(device).",
     "sparse({1, 2}, {3, 1}, {5, 7}) * vec{1, 2, 3}", "{15, 7}",
     .group = "sparse"},
    {0}};

void lumat_open_sparse_make(lua_State *L)
{
    lumat_register(L, functions);
}
