/* Functions whose result holds elements, or their products, many times. */
#include "constructors.h"
#include "function.h"

static int outer(lua_State *L)
{
    gpu_matrix *x = lumat_check_matrix(L, 1), *y = lumat_check_matrix(L, 2);
    gpu_matrix *row = lumat_new_matrix(L), *column = lumat_new_matrix(L);
    lumat_try(L, gpu_reshape(x, 2, gpu_size(x), 1, column));
    lumat_try(L, gpu_reshape(y, 2, 1, gpu_size(y), row));
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    const gpu_matrix *in[] = {column, row};
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_map("outer", &p, in, out));
    lumat_account(L, out);
    return 1;
}

/* size * times, a size of the result. */
static int64_t multiplied(lua_State *L, const char *name, int64_t size,
                          int64_t times)
{
    int64_t product;
    if (__builtin_mul_overflow(size, times, &product))
        lumat_raise(L, "%s: out of memory: %I times %I are too many", name,
                    (LUAI_UACINT)size, (LUAI_UACINT)times);
    return product;
}

/* One axis of a Kronecker product of sizes a and b: the parts of A, B and the
 * result that belong to one step. The shorter operand gives a single place a
 * step, the longer one all of its own. */
typedef struct kron_part {
    gpu_slice a, b, out;
} kron_part;

static kron_part kron_step(int64_t a, int64_t b, int64_t i)
{
    if (a <= b)
        return (kron_part){{i, 1, 1}, {0, 1, b}, {i * b, 1, b}};
    return (kron_part){{0, 1, a}, {i, 1, 1}, {i, b, a}};
}

/* A part of A times a part of B, broadcast against each other. The views
 * pushed are popped. */
static void kron_block(lua_State *L, kron_part rows, kron_part cols,
                       gpu_matrix *out)
{
    const gpu_matrix *a = lumat_test_matrix(L, 1), *b = lumat_test_matrix(L, 2);
    gpu_matrix *x = lumat_new_matrix(L), *y = lumat_new_matrix(L);
    gpu_matrix *block = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(a, rows.a, cols.a, x));
    lumat_try(L, gpu_view_block(b, rows.b, cols.b, y));
    lumat_try(L, gpu_view_block(out, rows.out, cols.out, block));
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    const gpu_matrix *in[] = {x, y};
    lumat_try(L, gpu_map("kron", &p, in, block));
    gpu_release(x);
    gpu_release(y);
    gpu_release(block);
    lua_pop(L, 3);
}

static int kron(lua_State *L)
{
    gpu_matrix *a = lumat_check_matrix(L, 1), *b = lumat_check_matrix(L, 2);
    luaL_argcheck(L, a->ndim == 2, 1, "needs a matrix; use A:row() or A:col()");
    luaL_argcheck(L, b->ndim == 2, 2, "needs a matrix; use B:row() or B:col()");
    int64_t rows = multiplied(L, "kron", a->rows, b->rows);
    int64_t cols = multiplied(L, "kron", a->cols, b->cols);
    int wide = a->dtype == GPU_F64 || b->dtype == GPU_F64;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create(out, gpu_matrix_device(a), wide ? GPU_F64 : GPU_F32,
                            2, rows, cols));
    lumat_account(L, out);
    if (gpu_size(out) == 0)
        return 1;
    int64_t down = a->rows < b->rows ? a->rows : b->rows;
    int64_t across = a->cols < b->cols ? a->cols : b->cols;
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++)
            kron_block(L, kron_step(a->rows, b->rows, i),
                       kron_step(a->cols, b->cols, j), out);
    return 1;
}

/* Copies within out: what the slices `from` choose to what `to` do. */
static gpu_status copy_block(gpu_matrix *out, const gpu_slice from[2],
                             const gpu_slice to[2])
{
    gpu_matrix source = {.storage = NULL}, target = {.storage = NULL};
    gpu_status status = gpu_view_block(out, from[0], from[1], &source);
    if (status == GPU_OK)
        status = gpu_view_block(out, to[0], to[1], &target);
    if (status == GPU_OK)
        status = gpu_copy(&source, &target);
    gpu_release(&source);
    gpu_release(&target);
    return status;
}

/* The first `done` places along an axis (0 or 1) fill the rest, twice as many
 * at each copy; `other` is the extent along the other axis. */
static void repeat(lua_State *L, gpu_matrix *out, int axis, int64_t done,
                   int64_t other)
{
    int64_t size = axis == 0 ? out->rows : out->cols;
    gpu_slice from[2], to[2];
    for (from[!axis] = to[!axis] = (gpu_slice){0, 1, other}; done < size;
         done += from[axis].count) {
        int64_t count = done < size - done ? done : size - done;
        from[axis] = (gpu_slice){0, 1, count};
        to[axis] = (gpu_slice){done, 1, count};
        lumat_try(L, copy_block(out, from, to));
    }
}

static int tile(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1), *first;
    int64_t down = lumat_check_size(L, 2);
    int64_t across = m->ndim == 2 ? lumat_check_size(L, 3) : 1;
    int64_t rows = multiplied(L, "tile", m->rows, down);
    int64_t cols = multiplied(L, "tile", m->cols, across);
    gpu_matrix *out = lumat_push_like(L, m, m->ndim, rows, cols);
    if (gpu_size(out) == 0)
        return 1;
    first = lumat_new_matrix(L);
    lumat_try(L, gpu_view_block(out, (gpu_slice){0, 1, m->rows},
                                (gpu_slice){0, 1, m->cols}, first));
    lumat_try(L, gpu_copy(m, first));
    lua_pop(L, 1);
    repeat(L, out, 0, m->rows, m->cols);
    repeat(L, out, 1, m->cols, out->rows);
    return 1;
}

static const lumat_function functions[] = {
    {"outer", outer, 1, "x: vector, y: vector", "matrix",
     "Every x[i] times every y[j].", "outer(vec{1, 2}, vec{3, 4})",
     "{{3, 4}, {6, 8}}", .group = "outer"},
    {"kron", kron, 1, "A: matrix, B: matrix", "matrix",
     "Kronecker product: B scaled by every element of A.",
     "kron(mat{{1, 2}}, mat{{1}, {10}})", "{{1, 2}, {10, 20}}",
     .group = "outer"},
    {"tile", tile, 1, "A: matrix, m: size [, n: size]", "matrix",
     "A repeated m times down, n across.", "tile(vec{1, 2}, 2)", "{1, 2, 1, 2}",
     .group = "joining"},
    {0}};

void lumat_open_repeat(lua_State *L)
{
    lumat_register(L, functions);
}
