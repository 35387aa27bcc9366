/* The steps of factorisations, for lua/std/lazy/factors.lua, which makes of
 * them what users see. Arguments are those it gives: only what depends on
 * elements is looked at here. */
#include "cancellation.h"
#include "complex_numbers.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* Pushes a vector of places, counted from 1, on the CPU. */
static void push_places(lua_State *L, const int64_t *places, int64_t n)
{
    gpu_device *cpu;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_open("cpu", &cpu));
    lumat_try(L, gpu_create(out, cpu, GPU_F64, 1, n, 1));
    double *values = lua_newuserdatauv(L, (size_t)n * sizeof *values + 1, 0);
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)places[i] + 1;
    lumat_try(L, gpu_upload(out, values));
    lua_pop(L, 1);
    lumat_account(L, out);
}

static int64_t *push_room(lua_State *L, int64_t n)
{
    return lua_newuserdatauv(L, (size_t)n * sizeof(int64_t) + 1, 0);
}

static void count_parts(lua_State *L, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        const gpu_matrix *m = lumat_test_matrix(L, i);
        if (m && m->storage)
            lumat_account(L, m);
    }
}

/* What is wrong in place of results. */
static int push_trouble(lua_State *L, int64_t trouble)
{
    lua_pushnil(L);
    lua_pushinteger(L, trouble);
    return 2;
}

/* chol(A, kernel): L, or nil and the order of the first minor that is not
 * positive */
static int chol(lua_State *L)
{
    int64_t minor;
    gpu_matrix *a = lumat_check_matrix(L, 1);
    const char *kernel = luaL_optstring(L, 2, NULL);
    gpu_matrix *l = lumat_new_matrix(L);
    lumat_try(L, gpu_cholesky(a, kernel, l, &minor));
    if (minor > 0)
        return push_trouble(L, minor);
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* lu(A, kernel): the factors in one matrix, the rows' places, 1 or -1 for an
 * even or odd order of them, and where the first zero on U's diagonal is, or 0
 */
static int lu(lua_State *L)
{
    int64_t zero;
    gpu_matrix *a = lumat_check_matrix(L, 1);
    const char *kernel = luaL_optstring(L, 2, NULL);
    int64_t *places = push_room(L, a->rows);
    lumat_try(L, gpu_lu(a, kernel, lumat_new_matrix(L), places, &zero));
    int packed = lua_gettop(L);
    count_parts(L, packed, 1);
    push_places(L, places, a->rows);
    lua_pushinteger(L, gpu_is_odd(places, a->rows) ? -1 : 1);
    lua_pushinteger(L, zero);
    return 4;
}

/* qr(A, pivots, kernel): R and the vectors in one matrix, their factors, and
 * with pivots the columns' places */
static int qr(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1);
    int pivots = lua_toboolean(L, 2);
    const char *kernel = luaL_optstring(L, 3, NULL);
    int64_t *places = pivots ? push_room(L, a->cols) : NULL;
    gpu_matrix *packed = lumat_new_matrix(L), *tau = lumat_new_matrix(L);
    int first = lua_gettop(L) - 1;
    lumat_try(L, gpu_qr(a, kernel, packed, tau, places));
    count_parts(L, first, 2);
    if (!pivots)
        return 2;
    push_places(L, places, a->cols);
    return 3;
}

/* qr_q(packed, tau, columns): Q */
static int qr_q(lua_State *L)
{
    gpu_matrix *packed = lumat_check_matrix(L, 1),
               *tau = lumat_check_matrix(L, 2);
    lua_Integer cols = luaL_checkinteger(L, 3);
    lumat_try(L, gpu_qr_q(packed, tau, cols, lumat_new_matrix(L)));
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* qr_apply(packed, tau, turned, B): Q B, or Q^T B */
static int qr_apply(lua_State *L)
{
    gpu_matrix *packed = lumat_check_matrix(L, 1),
               *tau = lumat_check_matrix(L, 2), *b = lumat_check_matrix(L, 4);
    lumat_try(L, gpu_qr_apply(packed, tau, lua_toboolean(L, 3), b,
                              lumat_new_matrix(L)));
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* triangle(T, B, {lower, unit, turned}): X, or nil and where the first zero on
 * the diagonal is */
static int triangle(lua_State *L)
{
    gpu_matrix *t = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    int64_t zero;
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_getfield(L, 3, "lower");
    lua_getfield(L, 3, "unit");
    lua_getfield(L, 3, "turned");
    gpu_triangle how = {lua_toboolean(L, -3), lua_toboolean(L, -2),
                        lua_toboolean(L, -1)};
    lumat_try(L, gpu_solve_triangle(t, how, b, lumat_new_matrix(L), &zero));
    if (zero > 0)
        return push_trouble(L, zero);
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* subtract(C, A, B): C -= A B, with the errors that factorisations make */
static int subtract(lua_State *L)
{
    gpu_matrix *c = lumat_check_matrix(L, 1);
    gpu_product how = {.alpha = -1, .beta = 1, .is_update = 1};
    lumat_try(L, gpu_matmul(lumat_check_matrix(L, 2), lumat_check_matrix(L, 3),
                            &how, c));
    return 0;
}

/* svd(A, "values" | "thin" | "full"): S, and U and V; or nil and how many did
 * not converge */
static int svd(lua_State *L)
{
    static const char *const words[] = {"values", "thin", "full", NULL};
    gpu_matrix *a = lumat_check_matrix(L, 1);
    gpu_svd_parts parts =
        (gpu_svd_parts)luaL_checkoption(L, 2, "values", words);
    int64_t trouble;
    gpu_matrix *s = lumat_new_matrix(L), *u = lumat_new_matrix(L),
               *v = lumat_new_matrix(L);
    int first = lua_gettop(L) - 2;
    lumat_try(L, gpu_svd(a, parts, s, u, v, &trouble));
    if (trouble > 0)
        return push_trouble(L, trouble);
    count_parts(L, first, 3);
    if (parts != GPU_SVD_VALUES)
        return 3;
    lua_pop(L, 2);
    return 1;
}

/* eigh(A, with_vectors): the values, and the vectors; or nil and how many did
 * not converge */
static int eigh(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1);
    int has_vectors = lua_toboolean(L, 2);
    int64_t trouble;
    gpu_matrix *values = lumat_new_matrix(L);
    gpu_matrix *v = has_vectors ? lumat_new_matrix(L) : NULL;
    lumat_try(L, gpu_eigh(a, values, v, &trouble));
    if (trouble > 0)
        return push_trouble(L, trouble);
    count_parts(L, lua_gettop(L) - has_vectors, 1 + has_vectors);
    return 1 + has_vectors;
}

/* eigh_pair(A, B, with_vectors): the same of A v = B v diag(values); or nil,
 * how many did not converge, and the order of B's first minor that is not
 * positive
 */
static int eigh_pair(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    int has_vectors = lua_toboolean(L, 3);
    int64_t trouble, minor;
    gpu_matrix *values = lumat_new_matrix(L);
    gpu_matrix *v = has_vectors ? lumat_new_matrix(L) : NULL;
    lumat_try(L, gpu_eigh_pair(a, b, values, v, &trouble, &minor));
    if (trouble > 0 || minor > 0) {
        push_trouble(L, trouble);
        lua_pushinteger(L, minor);
        return 3;
    }
    count_parts(L, lua_gettop(L) - has_vectors, 1 + has_vectors);
    return 1 + has_vectors;
}

/* Two truth values, from that at index on: are right and left ones wanted? */
static int wanted_vectors(lua_State *L, int index)
{
    return (lua_toboolean(L, index) ? GPU_EIGEN_RIGHT : 0) |
           (lua_toboolean(L, index + 1) ? GPU_EIGEN_LEFT : 0);
}

/* Pushes what gpu_eig or gpu_eig_pair says of A, and of B where there is one.
 */
static int push_eigen(lua_State *L, const gpu_matrix *a, const gpu_matrix *b,
                      int wants)
{
    int64_t trouble;
    gpu_eigen parts;
    gpu_matrix *of[] = {&parts.real, &parts.imaginary, &parts.right,
                        &parts.left};
    gpu_matrix *out[4];
    for (int i = 0; i < 4; i++)
        out[i] = lumat_new_matrix(L);
    int first = lua_gettop(L) - 3;
    gpu_status status = b ? gpu_eig_pair(a, b, wants, &parts, &trouble)
                          : gpu_eig(a, wants, &parts, &trouble);
    for (int i = 0; i < 4 && status == GPU_OK; i++)
        *out[i] = *of[i];
    lumat_try(L, status);
    if (trouble > 0)
        return push_trouble(L, trouble);
    count_parts(L, first, 4);
    for (int i = 1; i < 4; i++)
        if (!out[i]->storage) {
            lua_pushboolean(L, 0);
            lua_replace(L, first + i);
        }
    return 4;
}

/* eig(A, right, left): the values' real and imaginary parts, of a complex A the
 * values and false, and the vectors that are wanted, as gpu_eig has them, false
 * for others; or nil and how many did not converge */
static int eig(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1);
    return push_eigen(L, a, NULL, wanted_vectors(L, 2));
}

/* eig_pair(A, B, right, left): the same of beta A v = alpha B v, for alpha,
 * with the betas behind its real parts */
static int eig_pair(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    return push_eigen(L, a, b, wanted_vectors(L, 3));
}

static int push_form(lua_State *L, int64_t trouble)
{
    if (trouble > 0)
        return push_trouble(L, trouble);
    count_parts(L, lua_gettop(L) - 1, 2);
    return 2;
}

/* schur(A): T and Q; or nil and how many values did not converge */
static int schur(lua_State *L)
{
    int64_t trouble;
    gpu_matrix *a = lumat_check_matrix(L, 1), *t = lumat_new_matrix(L);
    lumat_try(L, gpu_schur(a, t, lumat_new_matrix(L), &trouble));
    return push_form(L, trouble);
}

/* hess(A): H and Q */
static int hess(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *h = lumat_new_matrix(L);
    lumat_try(L, gpu_hessenberg(a, h, lumat_new_matrix(L)));
    return push_form(L, 0);
}

/* ldl(A): L and D's diagonal in one matrix, D's subdiagonal, the places */
static int ldl(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1);
    int64_t *places = push_room(L, a->rows);
    gpu_matrix *packed = lumat_new_matrix(L), *below = lumat_new_matrix(L);
    int first = lua_gettop(L) - 1;
    lumat_try(L, gpu_ldl(a, packed, below, places));
    count_parts(L, first, 2);
    push_places(L, places, a->rows);
    return 3;
}

/* sylvester(T, S, C): X, or nil and 1 */
static int sylvester(lua_State *L)
{
    int64_t trouble;
    gpu_matrix *t = lumat_check_matrix(L, 1), *s = lumat_check_matrix(L, 2),
               *c = lumat_check_matrix(L, 3);
    lumat_try(L, gpu_sylvester(t, s, c, lumat_new_matrix(L), &trouble));
    if (trouble > 0)
        return push_trouble(L, trouble);
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* structure(A): how many diagonals below and above the main one hold anything,
 * is A symmetric, and is its diagonal known to be positive. In a dry run
 * nothing. */
static int structure(lua_State *L)
{
    gpu_structure s;
    if (gpu_is_dry())
        return 0;
    lumat_try(L, gpu_find_structure(lumat_check_matrix(L, 1), &s));
    lua_pushinteger(L, s.below);
    lua_pushinteger(L, s.above);
    lua_pushboolean(L, s.is_symmetric);
    lua_pushboolean(L, s.is_positive);
    return 4;
}

/* band(A, below, above, B): X, or nil and which pivot is zero */
static int band(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 4);
    lua_Integer below = luaL_checkinteger(L, 2),
                above = luaL_checkinteger(L, 3);
    int64_t zero;
    lumat_try(L,
              gpu_solve_band(a, below, above, b, lumat_new_matrix(L), &zero));
    if (zero > 0)
        return push_trouble(L, zero);
    count_parts(L, lua_gettop(L), 1);
    return 1;
}

/* general(A, B, is_direct, wants_rcond): X by LU, rcond(A), which may be 1
 * where A is not poor unless it is wanted, and how many steps of refinement
 * that took, or 0 */
static int general(lua_State *L)
{
    gpu_condition condition = {.rcond = 1,
                               .is_direct = lua_toboolean(L, 3),
                               .wants_rcond = lua_toboolean(L, 4)};
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    lumat_try(L, gpu_solve(a, b, lumat_new_matrix(L), &condition));
    count_parts(L, lua_gettop(L), 1);
    lua_pushnumber(L, condition.rcond);
    lua_pushinteger(L, condition.steps);
    return 3;
}

/* batch(A, B, count): X, or nil and which system is singular */
static int batch(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    int64_t singular;
    lumat_try(L, gpu_solve_batch(a, b, luaL_checkinteger(L, 3),
                                 lumat_new_matrix(L), &singular));
    count_parts(L, lua_gettop(L), 1);
    return singular > 0 ? push_trouble(L, singular) : 1;
}

/* is_dry(): is nothing computed, as in cost(f)? */
static int is_dry(lua_State *L)
{
    lua_pushboolean(L, gpu_is_dry());
    return 1;
}

/* warns(): would a warning be heard? */
static int warns(lua_State *L)
{
    lua_pushboolean(L, lumat_warns());
    return 1;
}

/* |(L L.T)^-1| in the 1-norm is at most what this returns, x being L's columns:
 * the sizes of the inverse's elements are at most those that the same has of L
 * with every element below the diagonal minus its size. y: room for n. Source:
 * Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 8. */
#define BOUND_INVERSE(name, type)                                         \
    static double name(lua_State *L, const type *x, int64_t n, double *y) \
    {                                                                     \
        double most = 0, total = 0;                                       \
        for (int64_t i = 0; i < n; i++)                                   \
            y[i] = 1;                                                     \
        for (int64_t j = 0; j < n; j++) {                                 \
            const type *column = x + j * n;                               \
            double value = y[j] /= fabs((double)column[j]);               \
            lumat_look(L);                                                \
            for (int64_t i = j + 1; i < n; i++)                           \
                y[i] += fabs((double)column[i]) * value;                  \
        }                                                                 \
        for (int64_t j = n - 1; j >= 0; j--) {                            \
            const type *column = x + j * n;                               \
            double sum = y[j];                                            \
            lumat_look(L);                                                \
            for (int64_t i = j + 1; i < n; i++)                           \
                sum += fabs((double)column[i]) * y[i];                    \
            y[j] = sum / fabs((double)column[j]);                         \
            most = fmax(most, y[j]);                                      \
            total += y[j];                                                \
        }                                                                 \
        return isfinite(total) ? most : INFINITY;                         \
    }
BOUND_INVERSE(bound_inverse_f32, float)
BOUND_INVERSE(bound_inverse_f64, double)

/* inverse_bound(L): no less than the 1-norm of the inverse of L L.T, for a
 * lower triangle that lies by columns on the CPU; of others nothing. */
static int inverse_bound(lua_State *L)
{
    gpu_matrix *l = lumat_check_matrix(L, 1), columns;
    const void *x;
    if (gpu_is_dry() || (l->dtype != GPU_F32 && l->dtype != GPU_F64) ||
        !gpu_device_is_cpu(gpu_matrix_device(l)))
        return 0;
    double *y = lua_newuserdatauv(L, (size_t)l->rows * sizeof *y, 0);
    gpu_view_transposed(l, &columns);
    int lies_so = gpu_is_contiguous(&columns);
    gpu_status status =
        lies_so ? gpu_look_at_bytes(&columns, NULL, &x) : GPU_OK;
    gpu_release(&columns);
    lumat_try(L, status);
    if (!lies_so)
        return 0;
    lua_pushnumber(L, l->dtype == GPU_F32
                          ? bound_inverse_f32(L, x, l->rows, y)
                          : bound_inverse_f64(L, x, l->rows, y));
    return 1;
}

/* warn_if_poor(A or dtype, rcond): of solve's matrix, of a sparse one its
 * dtype */
static int warn_if_poor(lua_State *L)
{
    const gpu_matrix *a = lumat_test_matrix(L, 1);
    gpu_dtype type = a ? a->dtype : GPU_F32;
    if (!a)
        gpu_dtype_find(luaL_checkstring(L, 1), &type);
    double unit = gpu_dtype_of_parts(type) == GPU_F64 ? 0x1p-52 : 0x1p-23;
    double rcond = luaL_checknumber(L, 2);
    gpu_condition c = {.rcond = rcond, .is_poor = rcond < 10 * unit};
    lumat_warn_if_poor(L, "solve", a, type, &c);
    return 0;
}

/* The parts of A's survey that look tells of, of both of A's; the asymmetry
 * is that of A - A.H, where it is wanted. */
static gpu_status survey_complex(const gpu_matrix *a, int is_wanted,
                                 gpu_survey *out)
{
    gpu_matrix part, turned, apart = {.storage = NULL};
    gpu_survey s;
    *out = (gpu_survey){.odd_at = -1};
    for (int i = 0; i < 2; i++) {
        gpu_view_part(a, i ? GPU_IMAGINARY_PART : GPU_REAL_PART, &part);
        gpu_status status = gpu_take_survey(&part, &s);
        gpu_release(&part);
        if (status != GPU_OK)
            return status;
        if (s.odd_at >= 0 && (out->odd_at < 0 || s.odd_at < out->odd_at))
            out->odd_at = s.odd_at;
        out->max = fmax(out->max, fmax(fabs(s.min), fabs(s.max)));
    }
    if (!is_wanted || a->rows != a->cols)
        return GPU_OK;
    gpu_view_transposed(a, &turned);
    turned.is_conjugated = !turned.is_conjugated;
    gpu_operand in[2] = {{.matrix = a}, {.matrix = &turned}};
    gpu_status status = gpu_complex_map("A - A.H", GPU_OP_sub, in, &apart);
    gpu_release(&turned);
    if (status == GPU_OK)
        status = survey_complex(&apart, 0, &s);
    gpu_release(&apart);
    out->asymmetry = s.max;
    return status;
}

int lumat_find_odd(lua_State *L, const gpu_matrix *m, int64_t *row,
                   int64_t *col)
{
    gpu_survey s;
    if (gpu_is_dry() || gpu_size(m) == 0)
        return 0;
    lumat_try(L, gpu_is_complex(m) ? survey_complex(m, 0, &s)
                                   : gpu_take_survey(m, &s));
    *row = s.odd_at / m->cols;
    *col = s.odd_at % m->cols;
    return s.odd_at >= 0;
}

/* Are all elements finite? Then a sum of them is, in f64, but where those of
 * f64 are so large that it overflows: 0 is not known. */
static gpu_status is_finite(const gpu_matrix *a, int *out)
{
    double sum = 0;
    gpu_program p;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_sum;
    *out = 1;
    for (int i = 0; i <= gpu_is_complex(a) && *out; i++) {
        gpu_matrix part;
        gpu_view_part(a, i ? GPU_IMAGINARY_PART : GPU_REAL_PART, &part);
        if (i == 0 && gpu_is_complex(a) && part.col_stride == 2) {
            part.cols *= 2; /* both parts, which take turns */
            part.col_stride = 1;
            i = 1;
        }
        const gpu_matrix *in = &part;
        gpu_status status = gpu_reduce_all("look", &p, &in, &sum);
        gpu_release(&part);
        if (status != GPU_OK)
            return status;
        *out = isfinite(sum);
    }
    return GPU_OK;
}

/* Is it known at once that look(A, for_symmetry) finds nothing? On a CPU that
 * takes a fraction of a survey's time. */
static gpu_status is_fine(const gpu_matrix *a, int for_symmetry, int *out)
{
    *out = 0;
    if (!gpu_device_is_cpu(gpu_matrix_device(a)) || a->dtype == GPU_BOOL ||
        (for_symmetry && !gpu_is_contiguous(a)))
        return GPU_OK;
    gpu_status status = is_finite(a, out);
    if (status == GPU_OK && *out && for_symmetry && a->rows == a->cols) {
        gpu_structure found;
        status = gpu_find_structure(a, &found);
        *out = found.is_symmetric;
    }
    return status;
}

/* look(A, for_symmetry): where the first NaN or Inf is, row and column, or
 * nothing; then, for symmetry, the largest |a_ij - a_ji| of a square matrix, of
 * a complex one of |a_ij - conj(a_ji)|, each part by itself, and the largest
 * |a_ij|, which is not told where the other is 0. In a dry run nothing. */
static int look(lua_State *L)
{
    gpu_survey s;
    gpu_matrix *a = lumat_check_matrix(L, 1);
    int for_symmetry = lua_toboolean(L, 2), fine;
    if (gpu_is_dry() || gpu_size(a) == 0)
        return 0;
    lumat_try(L, is_fine(a, for_symmetry, &fine));
    if (fine) {
        lua_pushnil(L);
        lua_pushnil(L);
        lua_pushnumber(L, 0);
        lua_pushnumber(L, 0);
        return 4;
    }
    lumat_try(L, gpu_is_complex(a) ? survey_complex(a, for_symmetry, &s)
                                   : gpu_take_survey(a, &s));
    lua_pushnil(L);
    lua_pushnil(L);
    if (s.odd_at >= 0) {
        lua_pushinteger(L, s.odd_at / a->cols + 1);
        lua_replace(L, -3);
        lua_pushinteger(L, s.odd_at % a->cols + 1);
        lua_replace(L, -2);
    }
    lua_pushnumber(L, s.asymmetry);
    lua_pushnumber(L, fmax(fabs(s.min), fabs(s.max)));
    return 4;
}

void lumat_open_factor_steps(lua_State *L)
{
    static const luaL_Reg own[] = {{"look", look},
                                   {"chol", chol},
                                   {"lu", lu},
                                   {"qr", qr},
                                   {"qr_q", qr_q},
                                   {"qr_apply", qr_apply},
                                   {"svd", svd},
                                   {"eigh", eigh},
                                   {"triangle", triangle},
                                   {"subtract", subtract},
                                   {"eigh_pair", eigh_pair},
                                   {"eig", eig},
                                   {"eig_pair", eig_pair},
                                   {"schur", schur},
                                   {"hess", hess},
                                   {"ldl", ldl},
                                   {"sylvester", sylvester},
                                   {"structure", structure},
                                   {"band", band},
                                   {"general", general},
                                   {"batch", batch},
                                   {"is_dry", is_dry},
                                   {"warns", warns},
                                   {"inverse_bound", inverse_bound},
                                   {"warn_if_poor", warn_if_poor},
                                   {NULL, NULL}};
    luaL_newlib(L, own);
    lumat_set_required(L, "factor_steps");
}
