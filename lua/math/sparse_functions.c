/* Sparse matrices: making them; S.rows, S.T and the other properties; S(i, j)
 * and the rows and columns that S[…] chooses. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "diagnose.h"
#include "function.h"
#include "index.h"
#include "math_functions.h"
#include "op_list.h"
#include "print.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* --- sparse(i, j, v, m, n) and sparse(A) ---------------------------------- */

/* An argument that is a number for all entries, or one for each. */
typedef struct list {
    const char *name;
    int is_number, is_complex;
    int64_t count;
    const gpu_matrix *m; /* a vector; of a number it is made later */
    gpu_matrix *made;    /* the same, where it was made here; else NULL */
    gpu_complex number;
} list;

static int has_complex(lua_State *L, int table)
{
    int found = 0;
    for (lua_Integer i = 1; !found; i++) {
        int type = lua_rawgeti(L, table, i);
        found = lumat_test_complex(L, -1) != NULL;
        lua_pop(L, 1);
        if (type == LUA_TNIL)
            break;
    }
    return found;
}

/* A table's vector stays pushed. */
static list read_list(lua_State *L, int arg, const char *name)
{
    list l = {.name = name, .count = 1};
    gpu_device *cpu;
    if (lua_type(L, arg) == LUA_TNUMBER || lumat_test_complex(L, arg)) {
        l.is_number = 1;
        l.is_complex = lumat_test_complex(L, arg) != NULL;
        lumat_take_complex(L, arg, &l.number);
        return l;
    }
    if (lua_istable(L, arg)) {
        lumat_try(L, gpu_open("cpu", &cpu));
        l.m = l.made = lumat_push_from_table(
            L, arg, "sparse", has_complex(L, arg) ? GPU_C128 : GPU_F64, cpu);
        if (l.m->ndim == 2)
            lumat_raise_argument(L, arg,
                                 "is a table of tables, expected a list");
    } else {
        l.m = lumat_check_vector(L, arg);
    }
    l.is_complex = gpu_is_complex(l.m);
    l.count = l.m->rows;
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

/* The list as a vector of n elements, which for a number stays pushed. */
static const gpu_matrix *spread(lua_State *L, list *l, int64_t n)
{
    gpu_device *cpu;
    if (!l->is_number)
        return l->m;
    gpu_matrix *m = l->made = lumat_new_matrix(L);
    lumat_try(L, gpu_open("cpu", &cpu));
    lumat_try(L,
              gpu_create(m, cpu, l->is_complex ? GPU_C128 : GPU_F64, 1, n, 1));
    lumat_try(L, l->is_complex ? gpu_complex_fill(m, l->number)
                               : gpu_fill(m, l->number.re));
    return m;
}

static const gpu_matrix *spread_places(lua_State *L, list *l, int64_t n)
{
    if (l->is_complex)
        lumat_raise(L, "sparse: %s must be whole numbers, not complex ones",
                    l->name);
    return spread(L, l, n);
}

/* is_complex: values that are no matrix are, so that the usual type is. */
static gpu_dtype option_dtype(lua_State *L, int arg, const gpu_matrix *like,
                              int is_complex)
{
    int natural = like && like->dtype != GPU_BOOL;
    gpu_dtype usual = natural ? like->dtype : lumat_default_dtype(L);
    if (is_complex)
        usual = gpu_dtype_made_complex(usual);
    gpu_dtype type = lumat_option_dtype(L, arg, usual);
    if (type == GPU_BOOL)
        lumat_raise(L, "dtype: a sparse matrix is f32, f64, c64 or c128, not "
                       "bool");
    return type;
}

/* Values that are a matrix decide type and device, where no option does. */
static int from_triplets(lua_State *L)
{
    const gpu_matrix *v = lumat_test_matrix(L, 3);
    int options = lua_istable(L, 4) || lua_gettop(L) < 4 ? 4 : 6;
    gpu_sparse_lists t = {.rows = -1, .cols = -1};
    lua_settop(L, options);
    if (options == 6 && !(lua_isnil(L, 4) && lua_isnil(L, 5))) {
        if (lua_isnil(L, 4))
            lumat_raise_argument(L, 4, "is missing: n does not go without it");
        t.rows = lumat_check_size(L, 4);
        if (lua_isnil(L, 5))
            lumat_raise_argument(L, 5, "is missing: m does not go without it");
        t.cols = lumat_check_size(L, 5);
    }
    list l[3];
    l[0] = read_list(L, 1, "i");
    l[1] = read_list(L, 2, "j");
    l[2] = read_list(L, 3, "v");
    gpu_dtype dtype = option_dtype(L, options, v, l[2].is_complex);
    gpu_device *d =
        lumat_option_device(L, options, v ? gpu_matrix_device(v) : NULL);
    int64_t count = count_entries(L, l);
    t.row = spread_places(L, &l[0], count);
    t.col = spread_places(L, &l[1], count);
    t.value = spread(L, &l[2], count);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_build(&t, dtype, d, out));
    for (int k = 0; k < 3; k++)
        if (l[k].made)
            gpu_release(l[k].made);
    lumat_account_sparse(L, out);
    return 1;
}

static int from_dense(lua_State *L)
{
    const gpu_matrix *m = lumat_check_two_axes(L, 1);
    lua_settop(L, 2);
    gpu_dtype dtype = option_dtype(L, 2, m, 0);
    gpu_device *d = lumat_option_device(L, 2, NULL);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_from_dense(m, dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

/* sparse(m, n): without entries. */
static int from_sizes(lua_State *L)
{
    gpu_sparse_lists t = {.rows = lumat_check_size(L, 1),
                          .cols = lumat_check_size(L, 2)};
    gpu_device *cpu;
    lua_settop(L, 3);
    gpu_dtype dtype = option_dtype(L, 3, NULL, 0);
    gpu_device *d = lumat_option_device(L, 3, NULL);
    gpu_matrix *none = lumat_new_matrix(L);
    lumat_try(L, gpu_open("cpu", &cpu));
    lumat_try(L, gpu_create(none, cpu, dtype, 1, 0, 1));
    t.row = t.col = t.value = none;
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_build(&t, dtype, d, out));
    lumat_account_sparse(L, out);
    return 1;
}

static int names_sizes(lua_State *L, int count)
{
    return (count == 2 || (count == 3 && lua_istable(L, 3))) &&
           lua_type(L, 1) == LUA_TNUMBER && lua_type(L, 2) == LUA_TNUMBER;
}

static int make_sparse(lua_State *L)
{
    int count = lua_gettop(L);
    if (names_sizes(L, count))
        return from_sizes(L);
    if (count <= 1 ||
        (count == 2 && lua_istable(L, 2) && lumat_test_matrix(L, 1)))
        return from_dense(L);
    return from_triplets(L);
}

/* S:triplets(): i, j, v */
static int give_triplets(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    gpu_matrix *rows = lumat_new_matrix(L), *cols = lumat_new_matrix(L);
    gpu_matrix *values = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_places(s, rows, cols));
    lumat_try(L, gpu_clone(&s->values, s->values.dtype, NULL, values));
    lumat_account(L, rows);
    lumat_account(L, cols);
    lumat_account(L, values);
    return 3;
}

/* S:prune(tolerance) */
static int prune(lua_State *L)
{
    const gpu_sparse *s = lumat_check_sparse(L);
    double tolerance = luaL_optnumber(L, 2, 0);
    if (!(tolerance >= 0))
        return lumat_raise(L, "prune: tolerance is %f: expected 0 or more",
                           tolerance);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_prune(s, tolerance, out));
    lumat_account_sparse(L, out);
    return 1;
}

static void explain_mistake(lua_State *L, const lumat_function *f, int count)
{
    (void)count;
    if (lumat_test_sparse(L, 1))
        lumat_raise(L, "%s: it is sparse already", f->name);
}

static const lumat_function functions[] = {
    {"sparse", make_sparse, 1,
     "i: list|number, j: list|number, v: list|scalar [, m: size, n: size] "
     "{dtype, device} or A: matrix {dtype, device} or m: size, n: size "
     "{dtype, device}",
     "sparse",
     "A sparse matrix (compressed rows): v[k] at (i[k], j[k]), those at one "
     "place added up, m and n the largest indices if absent; or the non-zeros "
     "of A; or m x n without entries. i, j, v: vectors, tables or one number "
     "for all. There are S * D, S * x, 2 * S, S.T, S(i, j), S.nnz, S:full(), "
     "S:f64(), S:to(device); sum, max, norm and the like, diag, tril, kron and "
     "hcat take S as well. S[i] is a row as a dense vector, S[S:gt(x)] the "
     "elements that a comparison chooses. S[{i, j}] = x, S[{rows, cols}] = D "
     "and S[S:gt(x)] = 0 write all of S anew: many entries are better made at "
     "once; an S.T from before stays as it was.",
     "sparse({1, 2}, {3, 1}, {5, 7}) * vec{1, 2, 3}", "{15, 7}",
     .group = "sparse", .on_mistake = explain_mistake},
    {"triplets", give_triplets, 1, "S: sparse", "matrix, matrix, matrix",
     "The rows, columns and values of the entries of a sparse matrix, row by "
     "row: three vectors, of which sparse(i, j, v, S.rows, S.cols) makes it "
     "again. Places are f64.",
     "triplets(sparse(mat{{0, 5}, {7, 0}}))", "{1, 2}", .group = "sparse",
     .usage = "triplets(S) or S:triplets()"},
    {"prune", prune, 1, "S: sparse [, tolerance: number]", "sparse",
     "A sparse matrix without the entries whose absolute values are tolerance "
     "or less, 0 if absent: then only zeros that are stored go. NaN stays.",
     "prune(sparse({1, 2}, {1, 2}, {0.1, 3}), 0.5).nnz", "1", .group = "sparse",
     .usage = "prune(S [, tolerance]) or S:prune([tolerance])"},
    {0}};

/* --- properties ----------------------------------------------------------- */

static void push_transposed(lua_State *L, const gpu_sparse *s)
{
    (void)s;
    lumat_push_transpose(L, 1);
}

/* The conjugate transpose. */
static void push_conjugated(lua_State *L, const gpu_sparse *s)
{
    push_transposed(L, s);
    if (!gpu_is_complex(&s->values))
        return;
    const gpu_sparse *turned = lumat_test_sparse(L, -1);
    gpu_sparse *out = lumat_new_sparse(L);
    gpu_matrix *values = lumat_new_matrix(L);
    gpu_view_conjugated(&turned->values, values);
    lumat_try(L, gpu_sparse_with_values(turned, values, out));
    lumat_account(L, &out->values);
    lua_pop(L, 1);
    lua_remove(L, -2);
}

static void push_rows(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->rows);
}

static void push_cols(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->cols);
}

static void push_shape(lua_State *L, const gpu_sparse *s)
{
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, s->rows);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, s->cols);
    lua_rawseti(L, -2, 2);
}

static void push_dtype(lua_State *L, const gpu_sparse *s)
{
    lua_pushstring(L, gpu_dtype_name(s->values.dtype));
}

static void push_device(lua_State *L, const gpu_sparse *s)
{
    gpu_device *d = gpu_matrix_device(&s->values);
    lua_pushstring(L, d ? gpu_device_name(d) : "none");
}

static void push_nnz(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, s->count);
}

static void push_ndim(lua_State *L, const gpu_sparse *s)
{
    (void)s;
    lua_pushinteger(L, 2);
}

static void push_bytes(lua_State *L, const gpu_sparse *s)
{
    lua_pushinteger(L, (lua_Integer)gpu_sparse_bytes(s));
}

static const struct property {
    const char *name;
    void (*push)(lua_State *L, const gpu_sparse *s);
} properties[] = {
    {"T", push_transposed},  {"H", push_conjugated}, {"rows", push_rows},
    {"cols", push_cols},     {"shape", push_shape},  {"dtype", push_dtype},
    {"device", push_device}, {"nnz", push_nnz},      {"ndim", push_ndim},
    {"bytes", push_bytes},
};

#define PROPERTIES "T H rows cols shape dtype device nnz ndim bytes"
const char lumat_sparse_property_names[] = PROPERTIES;

static int push_property(lua_State *L, const gpu_sparse *s, const char *name)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i].name) == 0) {
            properties[i].push(L, s);
            return 1;
        }
    return 0;
}

/* Is it a method of dense matrices? */
static int is_of_dense(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
    int is_method = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 2);
    return is_method;
}

static int unknown_name(lua_State *L, const char *name)
{
    const char *near = "";
    if (strlen(name) <= 40) {
        lua_getfield(L, LUA_REGISTRYINDEX, "lumat.sparse_method_names");
        lua_pushfstring(L, PROPERTIES " %s", lua_tostring(L, -1));
        near = lumat_nearest(L, name, lua_tostring(L, -1));
    }
    if (is_of_dense(L, name))
        return lumat_raise(L,
                           "a sparse matrix has no '%s', which dense ones "
                           "have: write %s:full():%s(…)",
                           name, lumat_name_of(L, 1, "S"), name);
    if (near && *near)
        return lumat_raise(L, "a sparse matrix has no '%s': did you mean '%s'?",
                           name, near);
    const char *instead = lumat_push_instead(L, name);
    if (instead && strstr(instead, "mean A."))
        return lumat_raise(L, "a sparse matrix has no '%s': %s", name, instead);
    return lumat_raise(L,
                       "a sparse matrix has no %s: there are " PROPERTIES
                       " and methods (Tab behind S: lists them); full(S) is "
                       "dense",
                       lumat_push_brief(L, 2));
}

/* --- chosen rows and columns ---------------------------------------------- */

/* Pushes the places of a range, or a nil: those of a list are pushed already;
 * NULL: all. */
static const int64_t *push_part(lua_State *L, const lumat_part *part,
                                int64_t size, int64_t *count)
{
    *count = part->listed;
    lua_pushnil(L);
    if (part->places)
        return part->places;
    *count = part->slice.count;
    if (part->slice.first == 0 && part->slice.step == 1 && *count == size)
        return NULL;
    int64_t *places = lua_newuserdatauv(L, (size_t)*count * sizeof *places, 0);
    for (int64_t k = 0; k < *count; k++) {
        lumat_poll(L, k);
        places[k] = part->slice.first + k * part->slice.step;
    }
    return places;
}

static int push_element(lua_State *L, const gpu_sparse *s, int64_t i, int64_t j)
{
    gpu_complex value = {0, 0};
    int64_t entry;
    lumat_try(L, gpu_sparse_find(s, i, j, &entry));
    if (lumat_push_unread(L, "an element"))
        return 1;
    if (entry >= 0)
        lumat_try(L, gpu_complex_get(&s->values, entry, 0, &value));
    if (gpu_is_complex(&s->values)) {
        lumat_push_complex(L, value);
        return 1;
    }
    lumat_note_scalar(s->values.dtype, value.re);
    lua_pushnumber(L, value.re);
    return 1;
}

/* S[i], S[{i, {}}] and S[{{}, j}]: as there are no sparse vectors, a dense one.
 * Of the other axis all is taken, and what was chosen of that. */
static int push_line(lua_State *L, const gpu_sparse *s,
                     const lumat_part part[2])
{
    int axis = part[0].is_index ? 1 : 2;
    const lumat_part *along = &part[axis == 1];
    gpu_matrix *line = lumat_new_matrix(L), *out;
    lumat_try(L, gpu_sparse_line(s, axis, part[axis == 2].slice.first, line));
    if (along->slice.count == line->rows && along->slice.step == 1 &&
        !along->places) {
        lumat_account(L, line);
        return 1;
    }
    out = lumat_new_matrix(L);
    lumat_try(
        L, along->places
               ? gpu_gather(line, along->places, along->listed, NULL, 1, out)
               : gpu_view_block(line, along->slice, (gpu_slice){0, 1, 1}, out));
    lumat_account(L, out);
    return 1;
}

/* Pushes the chosen rows and columns. */
static int push_chosen(lua_State *L, const gpu_sparse *s,
                       const lumat_part part[2])
{
    int64_t nrows, ncols;
    const int64_t *rows = push_part(L, &part[0], s->rows, &nrows);
    const int64_t *cols = push_part(L, &part[1], s->cols, &ncols);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_gather(s, rows, nrows, cols, ncols, out));
    lumat_account_sparse(L, out);
    return 1;
}

static int push_parts(lua_State *L, const gpu_sparse *s,
                      const lumat_part part[2])
{
    if (part[0].is_index && part[1].is_index)
        return push_element(L, s, part[0].slice.first, part[1].slice.first);
    if (part[0].is_index || part[1].is_index)
        return push_line(L, s, part);
    return push_chosen(L, s, part);
}

/* --- masks of elements -------------------------------------------------------
 * S:gt(x) is a sparse matrix of ones: where it has them S is meant. */

/* Are all values of a mask a or b? */
static int has_only(lua_State *L, const gpu_sparse *mask, double a, double b)
{
    double all = 1;
    const gpu_matrix *in[] = {&mask->values};
    gpu_program p;
    if (mask->count == 0)
        return 1;
    gpu_program_start(&p, 1);
    int first = gpu_program_constant(&p, a);
    int second = gpu_program_constant(&p, b);
    int is_first = gpu_program_add(&p, GPU_OP_eq, 0, first, 0);
    int is_second = gpu_program_add(&p, GPU_OP_eq, 0, second, 0);
    gpu_program_add(&p, GPU_OP_lor, is_first, is_second, 0);
    p.reduction = GPU_REDUCE_all;
    lumat_try(L, gpu_reduce_all("index", &p, in, &all));
    return all != 0;
}

/* The mask at 2, or NULL: there the key is another. Of a dense one a sparse one
 * is pushed, and of one with zeros another without them. */
static const gpu_sparse *push_mask(lua_State *L, const gpu_sparse *s)
{
    const gpu_sparse *mask = lumat_test_sparse(L, 2);
    const gpu_matrix *dense = lumat_test_matrix(L, 2);
    gpu_matrix shape = {.ndim = 2, .rows = s->rows, .cols = s->cols};
    if (dense && dense->storage && lumat_is_element_mask(&shape, dense)) {
        gpu_sparse *made = lumat_new_sparse(L);
        lumat_try(L, gpu_sparse_from_dense(dense, GPU_F32, NULL, made));
        return made;
    }
    if (!mask)
        return NULL;
    if (!mask->values.storage)
        lumat_raise(L, "index: the mask has been freed");
    int is_real = !gpu_is_complex(&mask->values);
    if (is_real && has_only(L, mask, 1, 1))
        return mask;
    if (!is_real || !has_only(L, mask, 0, 1))
        lumat_raise(L,
                    "index: a sparse mask has ones where it is true, %s has "
                    "other values: %s:ne(0) is where it is not 0",
                    lumat_name_of(L, 2, "M"), lumat_name_of(L, 2, "M"));
    gpu_sparse *pruned = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_prune(mask, 0, pruned));
    return pruned;
}

/* S[mask] */
static int push_masked(lua_State *L, const gpu_sparse *s,
                       const gpu_sparse *mask)
{
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_sparse_lookup(s, mask, out));
    lumat_account(L, out);
    return 1;
}

/* Of the number, table, slice or matrix at 2; parts look at shapes alone. */
static void read_parts(lua_State *L, const gpu_sparse *s, lumat_part part[2])
{
    gpu_matrix shape = {.ndim = 2, .rows = s->rows, .cols = s->cols};
    if (!s->values.storage)
        lumat_raise(L, "index: the sparse matrix has been freed");
    if (lua_type(L, 2) == LUA_TNUMBER) {
        int64_t row = lumat_check_place(L, &shape, 2, 1);
        part[0] = (lumat_part){.slice = {row, 1, 1}, .is_index = 1};
        part[1] = (lumat_part){.slice = {0, 1, s->cols}};
    } else if (lua_type(L, 2) == LUA_TTABLE)
        lumat_table_parts(L, &shape, 2, part);
    else if (lua_type(L, 2) == LUA_TSTRING)
        lumat_string_parts(L, &shape, 2, part);
    else if (lumat_test_matrix(L, 2))
        lumat_list_parts(L, &shape, 2, part);
    else
        lumat_bad_key(L, 2);
}

static int get_parts(lua_State *L, const gpu_sparse *s)
{
    lumat_part part[2];
    const gpu_sparse *mask = s->values.storage ? push_mask(L, s) : NULL;
    if (mask)
        return push_masked(L, s, mask);
    read_parts(L, s, part);
    return push_parts(L, s, part);
}

static int get_index(lua_State *L)
{
    const gpu_sparse *s = lumat_look_at_sparse(L, 1);
    if (!s || lua_type(L, 2) != LUA_TSTRING ||
        lumat_is_slice(lua_tostring(L, 2)))
        return get_parts(L, lumat_check_sparse(L));
    const char *name = lua_tostring(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    return push_property(L, s, name) ? 1 : unknown_name(L, name);
}

/* --- assignment -----------------------------------------------------------
 * As nothing is written once it is made, S gets the arrays of a new matrix. */

/* What is written: sizes of the block, and whether it is a row or column. */
typedef struct block {
    const gpu_sparse *of;
    gpu_places places;
    int64_t rows, cols;
    int is_vector, is_element;
} block;

static void refuse_complex(lua_State *L, const block *b, int is_complex)
{
    gpu_dtype own = b->of->values.dtype;
    if (is_complex && !gpu_dtype_is_complex(own))
        lumat_raise(L,
                    "assignment: complex values do not fit %s: make it complex "
                    "first, S = S:%s()",
                    gpu_dtype_name(own),
                    gpu_dtype_name(gpu_dtype_made_complex(own)));
}

static void push_sparse_of(lua_State *L, const block *b, const gpu_matrix *m)
{
    gpu_sparse *x = lumat_new_sparse(L);
    gpu_matrix two = *m; /* of a vector, as a row or a column */
    two.ndim = 2;
    two.rows = b->rows;
    two.cols = b->cols;
    two.row_stride = b->cols;
    two.col_stride = 1;
    lumat_try(L, gpu_sparse_from_dense(&two, m->dtype, NULL, x));
    lumat_account_sparse(L, x);
}

/* A new matrix of the block's size on the CPU, of S's type; stays pushed. */
static gpu_matrix *push_room(lua_State *L, const block *b)
{
    gpu_device *cpu;
    gpu_matrix *m = lumat_new_matrix(L);
    gpu_dtype dtype = b->of->values.dtype;
    lumat_try(L, gpu_open("cpu", &cpu));
    if (b->is_vector)
        lumat_try(L, gpu_create(m, cpu, dtype, 1, b->rows * b->cols, 1));
    else
        lumat_try(L, gpu_create(m, cpu, dtype, 2, b->rows, b->cols));
    return m;
}

static void push_number(lua_State *L, const block *b, gpu_complex z)
{
    refuse_complex(L, b, lumat_test_complex(L, 3) != NULL);
    if (z.re == 0 && z.im == 0) {
        gpu_triplets none = {.rows = b->rows, .cols = b->cols};
        gpu_sparse *x = lumat_new_sparse(L);
        lumat_try(L, gpu_sparse_create(x, gpu_matrix_device(&b->of->values),
                                       b->of->values.dtype, &none));
        return;
    }
    gpu_matrix *m = push_room(L, b);
    lumat_try(L, lumat_test_complex(L, 3) ? gpu_complex_fill(m, z)
                                          : gpu_fill(m, z.re));
    push_sparse_of(L, b, m);
}

/* As a dense matrix takes it: single rows and columns are repeated. */
static int fits(const block *b, const gpu_matrix *m)
{
    if (b->is_vector)
        return m->ndim == 1 && m->rows == b->rows * b->cols;
    return m->ndim == 2 && (m->rows == b->rows || m->rows == 1) &&
           (m->cols == b->cols || m->cols == 1);
}

static void push_dense_value(lua_State *L, const block *b)
{
    if (lua_type(L, 3) == LUA_TTABLE) {
        lumat_push_from_table(L, 3, "assignment",
                              has_complex(L, 3) ? GPU_C128
                                                : b->of->values.dtype,
                              gpu_matrix_device(&b->of->values));
        lua_replace(L, 3);
    }
    const gpu_matrix *m = lumat_test_matrix(L, 3);
    if (!m)
        lumat_raise(L, "assignment: cannot put a %s into a sparse matrix",
                    lumat_kind_of(L, 3));
    refuse_complex(L, b, gpu_is_complex(m));
    gpu_matrix *room = push_room(L, b);
    if (!fits(b, m))
        lumat_raise(L, "assignment: %s does not fit into %s", gpu_shape_text(m),
                    gpu_shape_text(room));
    lumat_try(L, gpu_copy(m, room));
    push_sparse_of(L, b, room);
}

/* Pushes the value at 3 as a sparse matrix of the block's size; a sparse row or
 * column may lie either way. */
static const gpu_sparse *push_value(lua_State *L, const block *b)
{
    gpu_complex number;
    const gpu_sparse *x = lumat_test_sparse(L, 3);
    if (lumat_take_complex(L, 3, &number))
        push_number(L, b, number);
    else if (b->is_element)
        lumat_raise(L, "assignment: an element is a number, not a %s",
                    lumat_kind_of(L, 3));
    else if (!x)
        push_dense_value(L, b);
    else if (!x->values.storage)
        lumat_raise(L, "assignment: the sparse matrix has been freed");
    else if (b->is_vector && x->rows == b->cols && x->cols == b->rows)
        lumat_push_transpose(L, 3);
    else
        lua_pushvalue(L, 3);
    return lumat_test_sparse(L, -1);
}

/* S, at 1, becomes what is on top; of its transpose a new one is made. */
static void replace(lua_State *L, gpu_sparse *s)
{
    gpu_sparse *made = lumat_test_sparse(L, -1), before = *s;
    if (gpu_is_dry())
        return;
    lumat_drop_transpose(L, 1);
    *s = *made;
    *made = before;
    gpu_sparse_release(made);
}

static int set_parts(lua_State *L, gpu_sparse *s, const lumat_part part[2])
{
    block b = {.of = s,
               .is_vector = part[0].is_index != part[1].is_index,
               .is_element = part[0].is_index && part[1].is_index};
    b.places.rows = push_part(L, &part[0], s->rows, &b.places.nrows);
    b.places.cols = push_part(L, &part[1], s->cols, &b.places.ncols);
    b.rows = b.places.nrows;
    b.cols = b.places.ncols;
    const gpu_sparse *x = push_value(L, &b);
    gpu_sparse *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_put(s, x, &b.places, out));
    lumat_account_sparse(L, out);
    replace(L, s);
    return 0;
}

/* Pushes what a mask's places get: the number or the vector at 3. */
static const gpu_matrix *push_mask_values(lua_State *L, const gpu_sparse *s,
                                          const gpu_sparse *mask)
{
    gpu_complex number;
    const block b = {.of = s};
    gpu_dtype dtype = s->values.dtype;
    gpu_device *d = gpu_matrix_device(&mask->values);
    if (lua_istable(L, 3)) {
        lumat_push_from_table(L, 3, "assignment",
                              has_complex(L, 3) ? GPU_C128 : dtype, d);
        lua_replace(L, 3);
    }
    const gpu_matrix *m = lumat_test_matrix(L, 3);
    gpu_matrix *values = lumat_new_matrix(L);
    if (lumat_take_complex(L, 3, &number)) {
        refuse_complex(L, &b, lumat_test_complex(L, 3) != NULL);
        lumat_try(L, gpu_create(values, d, dtype, 1, mask->count, 1));
        lumat_try(L, gpu_dtype_is_complex(dtype)
                         ? gpu_complex_fill(values, number)
                         : gpu_fill(values, number.re));
        return values;
    }
    if (!m || !m->storage || m->ndim == 2) {
        lumat_raise(L,
                    "assignment: what a mask chooses gets a number, or a "
                    "vector of %I, not a %s",
                    (LUAI_UACINT)mask->count, lumat_kind_of(L, 3));
        return NULL;
    }
    if (m->rows != mask->count && !gpu_is_dry())
        lumat_raise(L,
                    "assignment: the mask chooses %I elements, the vector "
                    "has %I",
                    (LUAI_UACINT)mask->count, (LUAI_UACINT)m->rows);
    refuse_complex(L, &b, gpu_is_complex(m));
    lumat_try(L, gpu_clone(m, dtype, d, values));
    return values;
}

/* S[mask] = x */
static int set_masked(lua_State *L, gpu_sparse *s, const gpu_sparse *mask)
{
    const gpu_matrix *values = push_mask_values(L, s, mask);
    gpu_sparse *x = lumat_new_sparse(L), *out = lumat_new_sparse(L);
    lumat_try(L, gpu_sparse_with_values(mask, values, x));
    lumat_try(L, gpu_sparse_replace(s, x, out));
    lumat_account_sparse(L, out);
    replace(L, s);
    return 0;
}

/* S[…] = x */
static int set_index(lua_State *L)
{
    gpu_sparse *s = lumat_check_sparse(L);
    lumat_part part[2];
    const gpu_sparse *mask = s->values.storage ? push_mask(L, s) : NULL;
    if (mask)
        return set_masked(L, s, mask);
    if (lua_type(L, 2) == LUA_TSTRING && !lumat_is_slice(lua_tostring(L, 2)))
        return lumat_raise(L, "assignment: '%s' cannot be assigned",
                           lua_tostring(L, 2));
    read_parts(L, s, part);
    return set_parts(L, s, part);
}

/* --- elements ------------------------------------------------------------- */

/* The 0-based index at arg, counted from the end when negative. */
static int64_t check_place(lua_State *L, int arg, const char *what,
                           int64_t size)
{
    int exact;
    lua_Integer i = lua_tointegerx(L, arg, &exact);
    if (!exact || lua_type(L, arg) != LUA_TNUMBER)
        lumat_raise(L, "index: must be a whole number, not %s",
                    lumat_push_brief(L, arg));
    int64_t place = i < 0 ? i + size : i - 1;
    if (i == 0 || place < 0 || place >= size)
        lumat_raise(L, "%s %I is outside 1..%I", what, (LUAI_UACINT)i,
                    (LUAI_UACINT)size);
    return place;
}

/* S(i, j) */
static int get_element(lua_State *L)
{
    lumat_refuse_called(L);
    const gpu_sparse *s = lumat_check_sparse(L);
    if (lua_gettop(L) != 3)
        return lumat_raise(L, "index: %d %s given, a sparse matrix has 2",
                           lua_gettop(L) - 1,
                           lua_gettop(L) == 2 ? "index" : "indices");
    int64_t i = check_place(L, 2, "row", s->rows);
    int64_t j = check_place(L, 3, "column", s->cols);
    return push_element(L, s, i, j);
}

static int get_length(lua_State *L)
{
    lua_pushinteger(L, lumat_check_sparse(L)->rows);
    return 1;
}

static const luaL_Reg metamethods[] = {{"__newindex", set_index},
                                       {"__call", get_element},
                                       {"__len", get_length},
                                       {NULL, NULL}};

/* What the methods are held against; they have functions of their names for
 * dense matrices, with rows that are told of. */
static lumat_function methods[] = {
    {"full", .takes = "S: sparse", .usage = "S:full()"},
    {"f32", .takes = "S: sparse", .usage = "S:f32()"},
    {"f64", .takes = "S: sparse", .usage = "S:f64()"},
    {"c64", .takes = "S: sparse", .usage = "S:c64()"},
    {"c128", .takes = "S: sparse", .usage = "S:c128()"},
    {"to", .takes = "S: sparse, device: device", .usage = "S:to(device)"},
    {"clone", .takes = "S: sparse", .usage = "S:clone()"},
    {"free", .takes = "S: sparse|freed", .usage = "S:free()"},
    {0}};

static void set_method(lua_State *L, const luaL_Reg *method)
{
    lumat_function *f = methods;
    while (strcmp(f->name, method->name) != 0)
        f++;
    f->call = method->func;
    f->gives = "same";
    lumat_push_checked(L, f);
    lumat_push_method(L);
    lua_setfield(L, -3, f->name);
    lua_pop(L, 1);
}

void lumat_open_sparse_functions(lua_State *L)
{
    luaL_getmetatable(L, LUMAT_SPARSE);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.sparse_methods");
    for (const luaL_Reg *method = lumat_sparse_methods; method->name; method++)
        set_method(L, method);
    lua_pushcclosure(L, get_index, 1);
    lua_setfield(L, -2, "__index");
    luaL_setfuncs(L, metamethods, 0);
    lua_pop(L, 1);
    lumat_register(L, functions);
    lumat_open_graph_steps(L);
    lumat_open_sparse_steps(L);
}
