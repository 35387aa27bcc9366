/* Fourier transforms as functions and methods, and the step that conv takes
 * where it sums up directly. */
#include "arguments.h"
#include "fourier.h"
#include "function.h"
#include "math_functions.h"
#include "value.h"

#include <string.h>

/* --- arguments ------------------------------------------------------------ */

static const char *const norms[GPU_FFT_NORMS] = {"backward", "ortho",
                                                 "forward"};

static gpu_fft_norm option_norm(lua_State *L, int arg)
{
    int norm = GPU_FFT_BACKWARD;
    if (!lua_istable(L, arg))
        return GPU_FFT_BACKWARD;
    if (lua_getfield(L, arg, "norm") != LUA_TNIL)
        while (strcmp(norms[norm], lua_tostring(L, -1)) != 0)
            norm++; /* the row has checked that it is one */
    lua_pop(L, 1);
    return (gpu_fft_norm)norm;
}

/* A length that is above 0. */
static int64_t check_length(lua_State *L, int arg)
{
    if (lua_isnoneornil(L, arg) || lua_istable(L, arg))
        return 0;
    int64_t n = lumat_check_size(L, arg);
    if (n == 0)
        lumat_raise_argument(L, arg, "is 0: a transform has 1 element or more");
    return n;
}

static int push_transform(lua_State *L, const gpu_matrix *m,
                          const gpu_transform *t)
{
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_fft(m, t, out));
    lumat_account(L, out);
    return 1;
}

/* --- transforms ----------------------------------------------------------- */

enum { INVERSE = 1, HALF = 2 }; /* tags of rows */

/* fft(A [, n] [, {axis, norm}]) and its like */
static int transform(lua_State *L)
{
    const lumat_function *row = lumat_running_row(L);
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int is_inverse = (row->tag & INVERSE) != 0;
    int options = lua_istable(L, 2) ? 2 : 3, is_half = row->tag & HALF;
    int64_t n = check_length(L, 2);
    int axis = lumat_option_axis(L, options, m);
    gpu_transform t = {.name = row->name,
                       .spectrum = !is_half     ? GPU_SPECTRUM_WHOLE
                                   : is_inverse ? GPU_SPECTRUM_FROM_HALF
                                                : GPU_SPECTRUM_HALF,
                       .is_inverse = is_inverse,
                       .axis = axis > 0 ? axis : 1,
                       .norm = option_norm(L, options)};
    t.length[t.axis - 1] = n;
    if ((n == 1 || n == 2) && m->ndim == 2 && axis == 0)
        lumat_note(L, "fft",
                   "fft(A, n) is of the first n rows; along each row "
                   "it is fft(A, {axis=2})");
    return push_transform(L, m, &t);
}

/* fft2(A [, m, n] [, {norm}]) */
static int transform_both(lua_State *L)
{
    const lumat_function *row = lumat_running_row(L);
    const gpu_matrix *m = lumat_check_two_axes(L, 1);
    int options = 2;
    gpu_transform t = {.name = row->name,
                       .is_inverse = (row->tag & INVERSE) != 0};
    for (; options < 4 && !lua_istable(L, options); options++)
        t.length[options - 2] = check_length(L, options);
    t.norm = option_norm(L, options);
    return push_transform(L, m, &t);
}

/* --- direct convolution ---------------------------------------------------
 */

/* convolve(x, y, shape), checked by conv in signals.lua. */
static int convolve(lua_State *L)
{
    const gpu_matrix *x = lumat_check_matrix(L, 1);
    const gpu_matrix *y = lumat_check_matrix(L, 2);
    const char *shape = luaL_checkstring(L, 3);
    gpu_overlap overlap = *shape == 'f'   ? GPU_OVERLAP_FULL
                          : *shape == 's' ? GPU_OVERLAP_SAME
                                          : GPU_OVERLAP_VALID;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_convolve(x, y, overlap, out));
    lumat_account(L, out);
    return 1;
}

/* --- the rows ------------------------------------------------------------- */

static const lumat_option norm_options[] = {
    {"norm", "\"backward\"|\"ortho\"|\"forward\"", "\"backward\"",
     "which direction is divided by the number of elements; \"ortho\" divides "
     "both by its root"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"fft", transform, 1, "A: matrix [, n: size] {axis, norm}", "matrix",
     "Discrete Fourier transform of a vector or of each column (axis=2: row): "
     "the sum of x[j] exp(-2 pi i j k / n) for k from 0 to n - 1, complex; "
     "c128 of f64, else c64. With n the first n elements, or zeros behind "
     "them. Any length is fast, without large prime factors most.",
     "fft(vec{1, 2, 3, 4})", "vec{10, -2 + 2 * im, -2, -2 - 2 * im}",
     .group = "fourier", .options = norm_options},
    {"ifft", transform, 1, "A: matrix [, n: size] {axis, norm}", "matrix",
     "Back from fft: the sum with + in the exponent, divided by n.",
     "ifft(vec{4, 0, 0, 0})", "complex(vec{1, 1, 1, 1})", .group = "fourier",
     .options = norm_options, .tag = INVERSE},
    {"fft2", transform_both, 1, "A: matrix [, m: size, n: size] {norm}",
     "matrix",
     "Discrete Fourier transform of a matrix along both axes. With m and n it "
     "is cut, or padded by zeros, to m x n before.",
     "fft2(mat{{1, 2}, {3, 4}})", "complex(mat{{10, -2}, {-4, 0}})",
     .group = "fourier", .options = norm_options},
    {"ifft2", transform_both, 1, "A: matrix [, m: size, n: size] {norm}",
     "matrix", "Back from fft2.", "ifft2(complex(mat{{4, 0}, {0, 0}}))",
     "complex(mat{{1, 1}, {1, 1}})", .group = "fourier",
     .options = norm_options, .tag = INVERSE},
    {"rfft", transform, 1, "A: matrix [, n: size] {axis, norm}", "matrix",
     "The first n // 2 + 1 elements of fft of real numbers: the others are "
     "their conjugates in reverse. Half the time and memory of fft.",
     "rfft(vec{1, 2, 3, 4})", "vec{10, -2 + 2 * im, -2}", .group = "fourier",
     .options = norm_options, .tag = HALF},
    {"irfft", transform, 1, "A: matrix [, n: size] {axis, norm}", "matrix",
     "The n real numbers of which rfft gives A; n is 2 * (#A - 1) where it is "
     "not given, so it has to be where it is odd.",
     "irfft(vec{6, 0, 0}, 5)", "{1.2, 1.2, 1.2, 1.2, 1.2}", .group = "fourier",
     .options = norm_options, .tag = HALF | INVERSE},
    {0}};

void lumat_open_fft_functions(lua_State *L)
{
    static const luaL_Reg steps[] = {{"convolve", convolve}, {NULL, NULL}};
    lumat_register(L, functions);
    luaL_newlib(L, steps);
    lumat_set_required(L, "fft_steps");
}
