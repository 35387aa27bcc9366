/* Complex numbers and matrices as functions: complex, c64 and c128, the unit
 * im, and operations of complex numbers. */
#include "complex_functions.h"
#include "arguments.h"
#include "formula.h"
#include "function.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

#include <math.h>
#include <string.h>

/* --- operations ------------------------------------------------------------
 */

int lumat_has_complex(lua_State *L, int count)
{
    for (int i = 1; i <= count; i++)
        if (lumat_test_complex(L, i))
            return 1;
    return 0;
}

int lumat_is_any_complex(lua_State *L, int count)
{
    for (int i = 1; i <= count; i++) {
        const gpu_matrix *m = lumat_test_matrix(L, i);
        if (m && gpu_is_complex(m))
            return 1;
    }
    return lumat_has_complex(L, count);
}

static gpu_operand check_operand(lua_State *L, int arg)
{
    gpu_operand o = {.matrix = lumat_test_matrix(L, arg)};
    if (o.matrix)
        o.matrix = lumat_check_matrix(L, arg);
    else if (lumat_take_complex(L, arg, &o.value))
        o.is_complex = lumat_test_complex(L, arg) != NULL;
    else
        lumat_refuse_operand(L, arg);
    return o;
}

/* As the kind of the operation has it. */
static int push_result(lua_State *L, gpu_op op, gpu_complex z, int is_complex)
{
    gpu_complex_kind kind = gpu_complex_op(op);
    if (kind == GPU_GIVES_TRUTH)
        lua_pushboolean(L, z.re != 0);
    else if (kind == GPU_GIVES_REAL || !is_complex)
        lua_pushnumber(L, z.re);
    else
        lumat_push_complex(L, z);
    return 1;
}

static int push_number(lua_State *L, gpu_op op, const gpu_operand *in)
{
    int first = op == GPU_OP_where ? 1 : 0, is_complex = 0;
    for (int i = 1; i <= gpu_op_arity(op); i++)
        if (gpu_is_dry() && lumat_is_unknown(L, i)) {
            lua_pushvalue(L, i);
            return 1;
        }
    for (int i = first; i < gpu_op_arity(op); i++)
        is_complex |= in[i].is_complex;
    if (gpu_complex_op(op) == GPU_GIVES_NOTHING)
        lumat_try(L, gpu_fail_complex_op(op));
    return push_result(L, op, gpu_complex_evaluate(op, in), is_complex);
}

static void push_function(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* log(x, base): that of x, or of both, divided. */
static int push_logarithm(lua_State *L, gpu_matrix *out)
{
    int top = lua_gettop(L);
    double base = lua_type(L, 2) == LUA_TNUMBER ? lua_tonumber(L, 2) : 0;
    if (base == 2 || base == 10)
        return lumat_push_complex_op(L, base == 2 ? GPU_OP_log2 : GPU_OP_log10,
                                     1, out);
    for (int i = 1; i <= 2; i++) {
        push_function(L, "log");
        if (lumat_test_matrix(L, i) || lumat_test_complex(L, i)) {
            lua_pushvalue(L, i);
        } else {
            gpu_complex z = {0, 0};
            lumat_take_complex(L, i, &z);
            lumat_push_complex(L, z);
        }
        lua_call(L, 1, 1);
    }
    lua_replace(L, 2);
    lua_replace(L, 1);
    lua_settop(L, top);
    return lumat_push_complex_op(L, GPU_OP_div, 2, out);
}

/* round(z [, digits]), of the real and the imaginary part. */
static int push_rounded(lua_State *L, int count, gpu_matrix *out)
{
    static const char *const parts[] = {"real", "imag"};
    push_function(L, "complex");
    for (int i = 0; i < 2; i++) {
        push_function(L, "round");
        push_function(L, parts[i]);
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        for (int k = 2; k <= count; k++)
            lua_pushvalue(L, k);
        lua_call(L, count, 1);
    }
    lua_call(L, 2, 1);
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    gpu_complex z;
    if (!out)
        return 1;
    if (m)
        lumat_try(L, gpu_copy(m, out));
    else if (lumat_take_complex(L, -1, &z))
        lumat_try(L, gpu_complex_fill(out, z));
    lua_pop(L, 1);
    return 1;
}

int lumat_push_complex_op(lua_State *L, gpu_op op, int count, gpu_matrix *out)
{
    gpu_operand in[3] = {{.matrix = NULL}};
    int arity = gpu_op_arity(op), matrices = 0, created = !out;
    if (op == GPU_OP_round)
        return push_rounded(L, count, out);
    if (count > arity && op == GPU_OP_log)
        return push_logarithm(L, out);
    if (count > arity)
        lumat_try(
            L, gpu_fail_complex(op == GPU_OP_atan ? "atan2" : gpu_op_name(op)));
    for (int i = 0; i < arity; i++) {
        in[i] = check_operand(L, i + 1);
        matrices += in[i].matrix != NULL;
    }
    if (matrices == 0 && created)
        return push_number(L, op, in);
    if (matrices == 0) {
        push_number(L, op, in);
        lumat_take_complex(L, -1, &in[0].value);
        lumat_try(L, gpu_complex_fill(out, in[0].value));
        lua_pop(L, 1);
        return 1;
    }
    if (created)
        out = lumat_new_matrix(L);
    lumat_try(L, gpu_complex_map(gpu_op_name(op), op, in, out));
    if (created)
        lumat_account(L, out);
    return 1;
}

/* --- making ----------------------------------------------------------------
 */

/* Puts the number or matrix at arg into a part of out; nothing there is 0. */
static void put_part(lua_State *L, const gpu_matrix *out, gpu_complex_part part,
                     int arg)
{
    gpu_matrix *to = lumat_new_matrix(L);
    const gpu_matrix *m = lumat_test_matrix(L, arg);
    gpu_complex number = {0, 0};
    gpu_view_part(out, part, to);
    if (!m)
        lumat_take_complex(L, arg, &number);
    lumat_try(L, m ? gpu_copy(m, to) : gpu_fill(to, number.re));
    lua_pop(L, 1);
}

static void check_part(lua_State *L, int arg)
{
    const gpu_matrix *m = lumat_test_matrix(L, arg);
    gpu_complex number;
    if (m || lumat_look_at_sparse(L, arg))
        lumat_check_matrix(L, arg);
    else if (!lua_isnil(L, arg) && !lumat_take_complex(L, arg, &number))
        lumat_refuse_kind(L, arg);
    if (lumat_test_complex(L, arg) || (m && gpu_is_complex(m)))
        lumat_raise(L,
                    "complex: both parts are real, and %s is complex: take "
                    "real(A) or imag(A) of it",
                    lumat_push_brief(L, arg));
}

/* The wider of what both matrices would become; of none GPU_C64. */
static gpu_dtype natural_type(const gpu_matrix *re, const gpu_matrix *im)
{
    gpu_dtype a = re ? gpu_dtype_made_complex(re->dtype) : GPU_C64;
    gpu_dtype b = im ? gpu_dtype_made_complex(im->dtype) : GPU_C64;
    return a > b ? a : b;
}

static gpu_dtype check_complex_type(lua_State *L, int options,
                                    gpu_dtype otherwise)
{
    gpu_dtype type = lumat_option_dtype(L, options, otherwise);
    if (!gpu_dtype_is_complex(type))
        lumat_raise(L, "complex: dtype is c64 or c128, not %s",
                    gpu_dtype_name(type));
    return type;
}

static int convert(lua_State *L, gpu_dtype type)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_settop(L, 1);
    if (m->dtype == type)
        return 1;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_clone(m, type, NULL, out));
    lumat_account(L, out);
    return 1;
}

static int push_joined(lua_State *L, int options)
{
    const gpu_matrix *re = lumat_test_matrix(L, 1);
    const gpu_matrix *im = lumat_test_matrix(L, 2), *both[2];
    gpu_matrix shape, *out;
    int count = 0;
    for (int i = 1; i <= 2; i++)
        if (lumat_test_matrix(L, i))
            both[count++] = lumat_check_matrix(L, i);
    gpu_dtype type = check_complex_type(L, options, natural_type(re, im));
    if (gpu_map_shape("complex", both, count, &shape) != GPU_OK)
        return lumat_raise_shapes(L, 1, 2, LUMAT_FIT_ELEMENTS);
    out = lumat_new_matrix(L);
    lumat_try(L, gpu_create(out, gpu_matrix_device(both[0]), type, shape.ndim,
                            shape.rows, shape.cols));
    lumat_account(L, out);
    put_part(L, out, GPU_REAL_PART, 1);
    put_part(L, out, GPU_IMAGINARY_PART, 2);
    return 1;
}

/* complex(re [, im]) */
static int make_complex(lua_State *L)
{
    int options = lua_istable(L, 2) ? 2 : 3;
    gpu_complex re = {0, 0}, im = {0, 0};
    if (options == 2)
        lua_pushnil(L), lua_insert(L, 2), options = 3;
    lua_settop(L, 3);
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    if (lua_isnil(L, 2) && m && gpu_is_complex(m))
        return convert(L, check_complex_type(L, options, m->dtype));
    if (lua_isnil(L, 2) && lumat_test_complex(L, 1)) {
        lua_settop(L, 1);
        return 1;
    }
    check_part(L, 1);
    check_part(L, 2);
    if (m || lumat_test_matrix(L, 2))
        return push_joined(L, options);
    lumat_take_complex(L, 1, &re);
    lumat_take_complex(L, 2, &im);
    lumat_push_complex(L, (gpu_complex){re.re, im.re});
    return 1;
}

static int to_c64(lua_State *L)
{
    return convert(L, GPU_C64);
}

static int to_c128(lua_State *L)
{
    return convert(L, GPU_C128);
}

/* --- complex numbers' fields ------------------------------------------------
 */

/* z.real, z.imag, and operations as methods: z:abs(). */
static int get_field(lua_State *L)
{
    const gpu_complex *z = lumat_test_complex(L, 1);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (!z)
        return luaL_typeerror(L, 1, "complex number");
    if (strcmp(name, "real") == 0 || strcmp(name, "imag") == 0) {
        lua_pushnumber(L, *name == 'r' ? z->re : z->im);
        return 1;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    lua_getfield(L, -1, name);
    if (lumat_op_at(L, -1) >= 0)
        return 1;
    return lumat_raise(L,
                       "a complex number has no '%s': it has real, imag, and "
                       "functions such as abs, angle and conj",
                       name);
}

static int refuse_change(lua_State *L)
{
    return lumat_raise(L, "a complex number does not change: write "
                          "complex(re, im) for another one");
}

#define PART "matrix|number|boolean|complex"

static const lumat_option complex_options[] = {
    {"dtype", "\"c64\"|\"c128\"", "c128 where a matrix is f64, else c64",
     "the type of the elements of the result"},
    {NULL, NULL, NULL, NULL}};

static const lumat_function functions[] = {
    {"complex", make_complex, 0,
     "re: " PART " [, im: " PART " elements re] {dtype}", "matrix",
     "The complex number re + im i, or a matrix of them: of f32 and bool c64 "
     "(two f32 each), of f64 c128. im is also the name of the imaginary unit: "
     "3 + 2 * im.",
     "abs(complex(3, 4))", "5", .group = "complex", .options = complex_options},
    {"c64", to_c64, 1, "A: matrix", "matrix",
     "A as complex numbers of two f32 each.", "c64(vec{1, 2}).dtype", "\"c64\"",
     .group = "complex"},
    {"c128", to_c128, 1, "A: matrix", "matrix",
     "A as complex numbers of two f64 each.", "c128(vec{1, 2}).dtype",
     "\"c128\"", .group = "complex"},
    {0}};

void lumat_open_complex_functions(lua_State *L)
{
    lumat_register(L, functions);
    lumat_push_complex(L, (gpu_complex){0, 1});
    lua_setglobal(L, "im");
    luaL_getmetatable(L, LUMAT_COMPLEX);
    lua_pushcfunction(L, get_field);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_change);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}
