/* What the processes of a pool do together: ScaLAPACK's routines, and the
 * little of MPI that is needed beside. Functions of the module lumat.grid are
 * called by all processes at once, with the same arguments but for the parts.
 *
 * A matrix that lies on the grid is a table here: m x n elements in blocks of
 * mb x nb, and data, this process's part, stored column by column as ScaLAPACK
 * wants it: a matrix of ours without gaps whose rows are the columns. Who calls
 * has checked shapes and types, since BLACS ends the job of whom it faults. */
#include "worker.h"

#include "complex_numbers.h"
#include "cores.h"
#include "pool.h"
#include "value.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- ScaLAPACK, which has no header --------------------------------------- */

typedef const int *in;
typedef const char *word;

int Csys2blacs_handle(MPI_Comm communicator);
void Cblacs_gridinit(int *context, word order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);

/* Those of PBLAS are C; the others are Fortran, where the lengths of words come
 * last. */
#define DECLARE(t, tran)                                                       \
    void p##t##gemm_(word, word, in m, in n, in k, const void *alpha,          \
                     const void *a, in, in, in, const void *b, in, in, in,     \
                     const void *beta, void *c, in, in, in);                   \
    void p##t##trsm_(word, word, word, word, in m, in n, const void *alpha,    \
                     const void *a, in, in, in, void *b, in, in, in);          \
    void p##t##tran(in m, in n, const void *alpha, const void *a, in, in, in,  \
                    const void *beta, void *c, in, in, in);                    \
    void p##t##getrf_(in m, in n, void *a, in, in, in, int *pivots,            \
                      int *info);                                              \
    void p##t##laswp_(word, word, in n, void *a, in, in, in, in k1, in k2,     \
                      const int *pivots, size_t, size_t);                      \
    void p##t##getrs_(word, in n, in nrhs, const void *a, in, in, in,          \
                      const int *pivots, void *b, in, in, in, int *info,       \
                      size_t);                                                 \
    void p##t##potrf_(word, in n, void *a, in, in, in, int *info, size_t);     \
    void p##t##potrs_(word, in n, in nrhs, const void *a, in, in, in, void *b, \
                      in, in, in, int *info, size_t);                          \
    void p##t##geqrf_(in m, in n, void *a, in, in, in, void *tau, void *work,  \
                      in lwork, int *info);
DECLARE(s, tran_)
DECLARE(d, tran_)
DECLARE(c, tranc_)
DECLARE(z, tranc_)

#define UNITARY(name)                                                     \
    void name(word, word, in m, in n, in k, const void *a, in, in, in,    \
              const void *tau, void *c, in, in, in, void *work, in lwork, \
              int *info, size_t, size_t);
UNITARY(psormqr_)
UNITARY(pdormqr_)
UNITARY(pcunmqr_)
UNITARY(pzunmqr_)
#define UPDATE(name)                                                        \
    void name(word, word, in n, in k, const void *alpha, const void *a, in, \
              in, in, const void *beta, void *c, in, in, in);
UPDATE(pssyrk_)
UPDATE(pdsyrk_)
UPDATE(pcherk_)
UPDATE(pzherk_)
#define REDUCE(t, kind)                                                        \
    void p##t##latrd_(word, in n, in nb, void *a, in, in, in, void *d,         \
                      void *e, void *tau, void *w, in, in, in, void *work,     \
                      size_t);                                                 \
    void p##t##kind##td2_(word, in n, void *a, in, in, in, void *d, void *e,   \
                          void *tau, void *work, in lwork, int *info, size_t); \
    void p##t##elset_(void *a, in, in, in, const void *alpha);
REDUCE(s, sy)
REDUCE(d, sy)
REDUCE(c, he)
REDUCE(z, he)
#define UPDATE2(name)                                                       \
    void name(word, word, in n, in k, const void *alpha, const void *a, in, \
              in, in, const void *b, in, in, in, const void *beta, void *c, \
              in, in, in);
UPDATE2(pssyr2k_)
UPDATE2(pdsyr2k_)
UPDATE2(pcher2k_)
UPDATE2(pzher2k_)
#define TRIDIAGONAL(t, name)                                                   \
    void p##t##name##mtr_(word, word, word, in m, in n, const void *a, in, in, \
                          in, const void *tau, void *c, in, in, in,            \
                          void *work, in lwork, int *info, size_t, size_t,     \
                          size_t);
TRIDIAGONAL(s, or)
TRIDIAGONAL(d, or)
TRIDIAGONAL(c, un)
TRIDIAGONAL(z, un)
#define REALS(t)                                                              \
    void p##t##lared1d_(in n, in, in, in, const void *own, void *all,         \
                        void *work, in lwork);                                \
    void p##t##stedc_(word, in n, void *d, void *e, void *q, in, in, in,      \
                      void *work, in lwork, int *iwork, in liwork, int *info, \
                      size_t);
REALS(s)
REALS(d)
void pb_topget_(in context, word, word, char *top, size_t, size_t, size_t);
void pb_topset_(in context, word, word, word top, size_t, size_t, size_t);
#define SINGULAR(name)                                                       \
    void name(word, word, in m, in n, void *a, in, in, in, void *s, void *u, \
              in, in, in, void *vt, in, in, in, void *work, in lwork,        \
              int *info, size_t, size_t);
SINGULAR(psgesvd_)
SINGULAR(pdgesvd_)
void pctranu_(in, in, const void *, const void *, in, in, in, const void *,
              void *, in, in, in);
void pztranu_(in, in, const void *, const void *, in, in, in, const void *,
              void *, in, in, in);

/* The routine p?NAME of the type: f32, f64, c64, c128. */
#define CALL(type, name, ...)      \
    do {                           \
        switch (type) {            \
        case GPU_F32:              \
            ps##name(__VA_ARGS__); \
            break;                 \
        case GPU_F64:              \
            pd##name(__VA_ARGS__); \
            break;                 \
        case GPU_C64:              \
            pc##name(__VA_ARGS__); \
            break;                 \
        default:                   \
            pz##name(__VA_ARGS__); \
        }                          \
    } while (0)

/* --- this process --------------------------------------------------------- */

static struct {
    int rank, size, context, rows, cols, row, col;
} grid;

void lumat_start_grid(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &grid.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &grid.size);
    if (!gpu_take_blas_memory()) {
        fprintf(stderr, "lumat-worker: out of memory for BLAS\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* who(): number, from 0, and how many there are. */
static int who(lua_State *L)
{
    lua_pushinteger(L, grid.rank);
    lua_pushinteger(L, grid.size);
    return 2;
}

/* arrange(rows, cols): its row and column, from 0, among so many. */
static int arrange(lua_State *L)
{
    int rows = (int)luaL_checkinteger(L, 1),
        cols = (int)luaL_checkinteger(L, 2);
    if (rows * cols != grid.size)
        return luaL_error(L, "%dx%d processes are not %d", rows, cols,
                          grid.size);
    grid.context = Csys2blacs_handle(MPI_COMM_WORLD);
    Cblacs_gridinit(&grid.context, "Row", rows, cols);
    Cblacs_gridinfo(grid.context, &grid.rows, &grid.cols, &grid.row, &grid.col);
    lua_pushinteger(L, grid.row);
    lua_pushinteger(L, grid.col);
    return 2;
}

/* The least of what all processes say. */
static int least_of_all(int mine)
{
    int all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* agree(truth): is it true of every process? */
static int agree(lua_State *L)
{
    lua_pushboolean(L, least_of_all(lua_toboolean(L, 1)));
    return 1;
}

/* What a process says where all meet. Whoever fails alone says so where the
 * others meet next (together), so whatever may fail in one of them, as what
 * asks for memory, stands before a meeting, and no exchange between. */
enum { FAILED, INTERRUPTED, GOES_ON };
static int all_heard; /* of what is raised, which all raise, then */

static int hear_all(void)
{
    return least_of_all(gpu_is_interrupted() ? INTERRUPTED : GOES_ON);
}

/* Raises what all have heard, unless they go on. */
static void raise_heard(lua_State *L, int least)
{
    if (least == GOES_ON)
        return;
    all_heard = 1;
    luaL_error(L, "%s",
               least == FAILED ? "another process failed" : "interrupted");
}

/* Between the steps of a longer task, and behind what may fail in one process:
 * raises, in all at once, where one of them failed or was told to stop. */
static void meet(lua_State *L)
{
    raise_heard(L, hear_all());
}

/* --- matrices ------------------------------------------------------------- */

typedef struct part {
    void *at;
    gpu_dtype type;
    int m, n, mb, nb;
    int desc[9];
    int64_t rows, cols; /* of this process */
} part;

static int number_of(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    lua_Integer n = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    luaL_argcheck(L, n >= 0 && n < INT_MAX, index, "is too large");
    return (int)n;
}

static part check_part(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    part p = {.m = number_of(L, index, "m"),
              .n = number_of(L, index, "n"),
              .mb = number_of(L, index, "mb"),
              .nb = number_of(L, index, "nb")};
    lua_getfield(L, index, "data");
    gpu_matrix *m = lumat_check_matrix(L, -1);
    p.type = m->dtype;
    p.cols = m->rows;
    p.rows = m->cols;
    p.at = lumat_part_bytes(L, m);
    lua_pop(L, 1);
    int lead = p.rows > 0 ? (int)p.rows : 1;
    const int desc[] = {1, grid.context, p.m, p.n, p.mb, p.nb, 0, 0, lead};
    memcpy(p.desc, desc, sizeof desc);
    return p;
}

/* A number in the type of a matrix. */
typedef union scalar {
    float s[2];
    double d[2];
} scalar;

static scalar scalar_of(gpu_dtype type, double re)
{
    scalar x = {.d = {0, 0}};
    if (type == GPU_F32 || type == GPU_C64)
        x.s[0] = (float)re;
    else
        x.d[0] = re;
    return x;
}

static size_t size_of(gpu_dtype type)
{
    return gpu_dtype_size(type);
}

static int integer_at(lua_State *L, int index)
{
    lua_Integer n = luaL_checkinteger(L, index);
    luaL_argcheck(L, n >= 0 && n < INT_MAX, index, "is too large");
    return (int)n;
}

/* --- products ------------------------------------------------------------- */

/* About a third of a second of a core. */
#define STEP_FLOPS 3e9

/* multiply(C, A, B, transA, transB, k): C = op(A) op(B), op of "N", "T" or "C",
 * in steps along k, between which all may stop. */
static int multiply(lua_State *L)
{
    part c = check_part(L, 1), a = check_part(L, 2), b = check_part(L, 3);
    word ta = luaL_checkstring(L, 4), tb = luaL_checkstring(L, 5);
    int k = integer_at(L, 6), one = 1;
    int block = *ta == 'N' ? a.nb : a.mb;
    double flops = 2.0 * c.m * c.n / grid.size * block;
    int step = flops > 0 ? (int)(STEP_FLOPS / flops) : 1;
    step = (step < 4 ? 4 : step > 4096 ? 4096 : step) * block;
    scalar alpha = scalar_of(c.type, 1), beta = scalar_of(c.type, 0);
    if (c.m == 0 || c.n == 0)
        return 0;
    for (int at = 1; at == 1 || at <= k; at += step) {
        int width = k - at + 1 < step ? k - at + 1 : step;
        int ia = *ta == 'N' ? 1 : at, ja = *ta == 'N' ? at : 1;
        int ib = *tb == 'N' ? at : 1, jb = *tb == 'N' ? 1 : at;
        meet(L);
        if (k == 0)
            ia = ja = ib = jb = 1;
        CALL(c.type, gemm_, ta, tb, &c.m, &c.n, &width, &alpha, a.at, &ia, &ja,
             a.desc, b.at, &ib, &jb, b.desc, &beta, c.at, &one, &one, c.desc);
        beta = scalar_of(c.type, 1);
    }
    return 0;
}

/* transpose(C, A, conjugated): C = A^T, or A^H */
static int transpose(lua_State *L)
{
    part c = check_part(L, 1), a = check_part(L, 2);
    int one = 1, is_plain = !lua_toboolean(L, 3);
    scalar alpha = scalar_of(c.type, 1), beta = scalar_of(c.type, 0);
    if (c.m == 0 || c.n == 0)
        return 0;
    meet(L);
    if (c.type == GPU_C64 || c.type == GPU_C128) {
        void (*f)(in, in, const void *, const void *, in, in, in, const void *,
                  void *, in, in, in) = c.type == GPU_C64
                                            ? (is_plain ? pctranu_ : pctranc_)
                                            : (is_plain ? pztranu_ : pztranc_);
        f(&c.m, &c.n, &alpha, a.at, &one, &one, a.desc, &beta, c.at, &one, &one,
          c.desc);
    } else {
        (c.type == GPU_F32 ? pstran_ : pdtran_)(&c.m, &c.n, &alpha, a.at, &one,
                                                &one, a.desc, &beta, c.at, &one,
                                                &one, c.desc);
    }
    return 0;
}

/* --- factors -------------------------------------------------------------- */

enum { PANEL = 8 }; /* blocks of columns between two looks */

static int fewer(int a, int b)
{
    return a < b ? a : b;
}

/* lu(A): P A = L U in place. The pivots, to be given to lu_solve, and the first
 * column, from 1, whose pivot is 0, or 0. As p?getrf, which has no place to
 * stop at: block by block of columns, since p?laswp knows the pivots of the
 * last block alone. */
static int lu(lua_State *L)
{
    part a = check_part(L, 1);
    int least = fewer(a.m, a.n), first = 0, one = 1, panel = 0;
    int *pivots = lua_newuserdatauv(
        L, ((size_t)a.rows + (size_t)a.mb) * sizeof *pivots, 0);
    scalar plus = scalar_of(a.type, 1), minus = scalar_of(a.type, -1);
    for (int j = 1; j <= least; j += a.nb) {
        int width = fewer(a.nb, least - j + 1), info = 0;
        int below = a.m - j + 1, next = j + width, last = next - 1;
        int right = a.n - last, left = j - 1, under = a.m - last;
        if (panel++ % PANEL == 0)
            meet(L);
        CALL(a.type, getrf_, &below, &width, a.at, &j, &j, a.desc, pivots,
             &info);
        if (info > 0 && first == 0)
            first = info + j - 1;
        CALL(a.type, laswp_, "F", "R", &left, a.at, &one, &one, a.desc, &j,
             &last, pivots, 1, 1);
        if (right == 0)
            continue;
        CALL(a.type, laswp_, "F", "R", &right, a.at, &one, &next, a.desc, &j,
             &last, pivots, 1, 1);
        CALL(a.type, trsm_, "L", "L", "N", "U", &width, &right, &plus, a.at, &j,
             &j, a.desc, a.at, &j, &next, a.desc);
        if (under > 0)
            CALL(a.type, gemm_, "N", "N", &under, &right, &width, &minus, a.at,
                 &next, &j, a.desc, a.at, &j, &next, a.desc, &plus, a.at, &next,
                 &next, a.desc);
    }
    lua_pushinteger(L, first);
    return 2;
}

/* lu_order(A, pivots, exchanged, order): into `order`, which has 1 to n, the
 * order of A's rows in P A, and into `exchanged` with which row each was:
 * columns of numbers in the host's memory. */
static int lu_order(lua_State *L)
{
    part a = check_part(L, 1);
    const int *pivots = lua_touserdata(L, 2);
    double *exchanged = lumat_part_bytes(L, lumat_check_matrix(L, 3));
    double *order = lumat_part_bytes(L, lumat_check_matrix(L, 4));
    for (int64_t i = 0; i < a.rows; i++) {
        int64_t block = i / a.mb * grid.rows + grid.row;
        exchanged[block * a.mb + i % a.mb] = pivots[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, exchanged, a.m, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    for (int i = 0; i < fewer(a.m, a.n); i++) {
        int64_t other = (int64_t)exchanged[i] - 1;
        double row = order[i];
        order[i] = order[other];
        order[other] = row;
    }
    return 0;
}

/* lu_solve(A, pivots, B): B = A^-1 B, of what lu gave. */
static int lu_solve(lua_State *L)
{
    part a = check_part(L, 1), b = check_part(L, 3);
    const int *pivots = lua_touserdata(L, 2);
    int one = 1, info = 0;
    if (a.n == 0 || b.n == 0)
        return 0;
    meet(L);
    CALL(a.type, getrs_, "N", &a.n, &b.n, a.at, &one, &one, a.desc, pivots,
         b.at, &one, &one, b.desc, &info, 1);
    return 0;
}

/* chol(A): A = L L^H in place of the lower triangle; the order of the first
 * minor that is not positive, or 0. */
static int chol(lua_State *L)
{
    part a = check_part(L, 1);
    scalar plus = scalar_of(a.type, 1), minus = scalar_of(a.type, -1);
    for (int j = 1; j <= a.n; j += PANEL * a.nb) {
        int width = fewer(PANEL * a.nb, a.n - j + 1), info = 0;
        int next = j + width, under = a.n - next + 1;
        meet(L);
        CALL(a.type, potrf_, "L", &width, a.at, &j, &j, a.desc, &info, 1);
        if (info > 0) {
            lua_pushinteger(L, info + j - 1);
            return 1;
        }
        if (under == 0)
            break;
        CALL(a.type, trsm_, "R", "L", "C", "N", &under, &width, &plus, a.at, &j,
             &j, a.desc, a.at, &next, &j, a.desc);
        void (*update)(word, word, in, in, const void *, const void *, in, in,
                       in, const void *, void *, in, in, in) =
            a.type == GPU_F32   ? pssyrk_
            : a.type == GPU_F64 ? pdsyrk_
            : a.type == GPU_C64 ? pcherk_
                                : pzherk_;
        update("L", "N", &under, &width, &minus, a.at, &next, &j, a.desc, &plus,
               a.at, &next, &next, a.desc);
    }
    lua_pushinteger(L, 0);
    return 1;
}

/* chol_solve(A, B) */
static int chol_solve(lua_State *L)
{
    part a = check_part(L, 1), b = check_part(L, 2);
    int one = 1, info = 0;
    if (a.n == 0 || b.n == 0)
        return 0;
    meet(L);
    CALL(a.type, potrs_, "L", &a.n, &b.n, a.at, &one, &one, a.desc, b.at, &one,
         &one, b.desc, &info, 1);
    return 0;
}

/* Room for a routine that says in the first number of `asked` how much it
 * wants, and `more` elements. It asks other processes, too, before it says so:
 * all meet once more behind this. */
static void *room_for(lua_State *L, gpu_dtype type, const scalar *asked,
                      double more, int *length)
{
    double n = type == GPU_F32 || type == GPU_C64 ? asked->s[0] : asked->d[0];
    n += more;
    if (!(n < INT_MAX))
        luaL_error(L, "a workspace of %f elements", n);
    *length = n < 1 ? 1 : (int)n + 1;
    return lua_newuserdatauv(L, (size_t)*length * size_of(type), 0);
}

/* C = Q C, or Q^H C, of the reflections in columns j to j + k - 1 of A: rows
 * and columns from i and l of m x n of C. */
static void apply(lua_State *L, const char *trans, const part *a,
                  const void *tau, int j, int k, const part *c, int l, int n)
{
    int m = a->m - j + 1, info = 0, ask = -1, length;
    scalar asked;
    void (*f)(word, word, in, in, in, const void *, in, in, in, const void *,
              void *, in, in, in, void *, in, int *, size_t, size_t) =
        a->type == GPU_F32   ? psormqr_
        : a->type == GPU_F64 ? pdormqr_
        : a->type == GPU_C64 ? pcunmqr_
                             : pzunmqr_;
    word how = *trans == 'N' ? "N" : gpu_dtype_is_complex(a->type) ? "C" : "T";
    f("L", how, &m, &n, &k, a->at, &j, &j, a->desc, tau, c->at, &j, &l, c->desc,
      &asked, &ask, &info, 1, 1);
    void *work = room_for(L, a->type, &asked, 0, &length);
    meet(L);
    f("L", how, &m, &n, &k, a->at, &j, &j, a->desc, tau, c->at, &j, &l, c->desc,
      work, &length, &info, 1, 1);
    lua_pop(L, 1);
}

/* qr(A): reflections in place of A below R, some blocks of columns at a time,
 * between which all may stop. What qr_q wants of them. */
static int qr(lua_State *L)
{
    part a = check_part(L, 1);
    int least = fewer(a.m, a.n), step = PANEL * a.nb;
    void *tau = lua_newuserdatauv(
        L, ((size_t)a.cols + (size_t)a.nb) * size_of(a.type), 0);
    for (int j = 1; j <= least; j += step) {
        int width = fewer(step, least - j + 1), height = a.m - j + 1;
        int info = 0, ask = -1, length, next = j + width;
        /* the last panel has the columns that are left, too */
        if (next > least)
            width = a.n - j + 1;
        scalar asked;
        meet(L);
        CALL(a.type, geqrf_, &height, &width, a.at, &j, &j, a.desc, tau, &asked,
             &ask, &info);
        void *work = room_for(L, a.type, &asked, 0, &length);
        meet(L);
        CALL(a.type, geqrf_, &height, &width, a.at, &j, &j, a.desc, tau, work,
             &length, &info);
        lua_pop(L, 1);
        if (next <= least)
            apply(L, "H", &a, tau, j, width, &a, next, a.n - next + 1);
    }
    return 1;
}

/* qr_q(A, tau, Q): Q, which begins as ones on the diagonal, becomes the first
 * columns of the product of the reflections in A: the last of them first. */
static int qr_q(lua_State *L)
{
    part a = check_part(L, 1), q = check_part(L, 3);
    const void *tau = lua_touserdata(L, 2);
    int least = fewer(a.m, a.n), step = PANEL * a.nb;
    for (int j = (least - 1) / step * step + 1; least > 0 && j >= 1;
         j -= step) {
        meet(L);
        apply(L, "N", &a, tau, j, fewer(step, least - j + 1), &q, j,
              q.n - j + 1);
    }
    return 0;
}

/* Real values that every process has, as a vector. */
static void *push_values(lua_State *L, gpu_dtype type, int n)
{
    gpu_device *cpu;
    lumat_try(L, gpu_open("cpu", &cpu));
    gpu_matrix *w = lumat_new_matrix(L);
    lumat_try(L, gpu_create(w, cpu, gpu_dtype_of_parts(type), 1, n, 1));
    return n > 0 ? gpu_own_bytes(w) : NULL;
}

/* --- symmetric eigenvalues ------------------------------------------------ */

/* What reduce_symmetric gives: Q^H A Q = T, real and tridiagonal, which all
 * processes have; the reflections of Q stand in A. */
typedef struct tridiagonal {
    gpu_dtype type;
    int n;
    double scale;   /* of A, before: T's values are as many times A's */
    void *diagonal; /* n reals, and n - 1 beside */
    void *beside;
    void *reflectors; /* of this process's columns */
} tridiagonal;

/* The largest of this process's elements, and of all, real parts and imaginary
 * ones apart; what is not finite does not count. */
static double largest_of(const part *a)
{
    int is_single = gpu_dtype_of_parts(a->type) == GPU_F32;
    int64_t n = a->rows * a->cols * (gpu_dtype_is_complex(a->type) ? 2 : 1);
    const float *single = a->at;
    const double *wide = a->at;
    double most = 0, all;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(is_single ? (double)single[i] : wide[i]);
        if (x > most && x <= DBL_MAX)
            most = x;
    }
    MPI_Allreduce(&most, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* Brings A's elements to where their squares neither vanish nor overflow, if
 * they are not there; by how much. */
static double scale_to_range(part *a)
{
    int is_single = gpu_dtype_of_parts(a->type) == GPU_F32;
    double least = is_single ? 1e-15 : 1e-140, most = is_single ? 1e9 : 1e75;
    double largest = largest_of(a);
    double scale = largest > most                   ? most / largest
                   : largest > 0 && largest < least ? least / largest
                                                    : 1;
    int64_t n = a->rows * a->cols * (gpu_dtype_is_complex(a->type) ? 2 : 1);
    for (int64_t i = 0; scale != 1 && i < n; i++)
        if (is_single)
            ((float *)a->at)[i] = (float)(((float *)a->at)[i] * scale);
        else
            ((double *)a->at)[i] *= scale;
    return scale;
}

/* A -= V W^H + W V^H, of what lies behind a panel: k to n - 1, of `width`. */
static void update_symmetric(const part *a, int j, int width, const void *w,
                             const int *w_desc)
{
    int next = j + width, left = a->n - next + 1, one = 1;
    scalar minus = scalar_of(a->type, -1), plus = scalar_of(a->type, 1);
    (a->type == GPU_F32   ? pssyr2k_
     : a->type == GPU_F64 ? pdsyr2k_
     : a->type == GPU_C64 ? pcher2k_
                          : pzher2k_)(
        "L", "N", &left, &width, &minus, a->at, &next, &j, a->desc, w, &next,
        &one, w_desc, &plus, a->at, &next, &next, a->desc);
}

/* Puts what the reduction found beside the diagonal behind a panel into A,
 * where the panel had a 1. */
static void put_beside(const part *a, int j, int width, const void *beside)
{
    int row = j + width, col = row - 1;
    int64_t own =
        (int64_t)(col - 1) / (a->nb * grid.cols) * a->nb + (col - 1) % a->nb;
    int is_here = (col - 1) / a->nb % grid.cols == grid.col;
    double value = !is_here ? 0
                   : gpu_dtype_of_parts(a->type) == GPU_F32
                       ? (double)((const float *)beside)[own]
                       : ((const double *)beside)[own];
    scalar x = scalar_of(a->type, value);
    CALL(a->type, elset_, a->at, &row, &col, a->desc, &x);
}

/* All of a line that lies with A's columns, of reals. */
static void spread_line(const part *a, const void *own, void *all, void *work,
                        int length)
{
    int one = 1;
    (gpu_dtype_of_parts(a->type) == GPU_F32 ? pslared1d_ : pdlared1d_)(
        &a->n, &one, &one, a->desc, own, all, work, &length);
}

/* reduce_symmetric(A): of the lower triangle, by panels of columns, between
 * which all may stop. Method: Dongarra and van de Geijn, Reduction to condensed
 * form for the eigenvalue problem on distributed memory architectures (1992),
 * as p?sytrd, which has no place to stop at. */
static int reduce_symmetric(lua_State *L)
{
    part a = check_part(L, 1);
    gpu_dtype real = gpu_dtype_of_parts(a.type);
    size_t one_real = size_of(real), size = size_of(a.type);
    size_t n = (size_t)a.n + (size_t)a.nb,
           lines = (size_t)a.cols + (size_t)a.nb;
    int one = 1, info = 0, j;
    int length = (int)((a.rows + 4) * a.nb + a.n);
    tridiagonal *t =
        lua_newuserdatauv(L, sizeof *t + 2 * n * one_real + lines * size, 0);
    t->type = a.type;
    t->n = a.n;
    t->diagonal = t + 1;
    t->beside = (char *)t->diagonal + n * one_real;
    t->reflectors = (char *)t->beside + n * one_real;
    char *w = lua_newuserdatauv(L, (size_t)length * size, 0);
    char *d = lua_newuserdatauv(L, 2 * lines * one_real, 0);
    char *e = d + lines * one_real, *panel = w + (size_t)(a.rows * a.nb) * size;
    int w_desc[] = {1, grid.context, a.n, a.nb, a.nb, a.nb, 0, 0, a.desc[8]};
    meet(L);
    /* sums in one order, whoever adds */
    char columns_way, rows_way;
    pb_topget_(&grid.context, "Combine", "Columnwise", &columns_way, 7, 10, 1);
    pb_topget_(&grid.context, "Combine", "Rowwise", &rows_way, 7, 7, 1);
    pb_topset_(&grid.context, "Combine", "Columnwise", "1-tree", 7, 10, 6);
    pb_topset_(&grid.context, "Combine", "Rowwise", "1-tree", 7, 7, 6);
    int heard = GOES_ON;
    t->scale = scale_to_range(&a);
    for (j = 1; j <= a.n - a.nb; j += a.nb) {
        int left = a.n - j + 1;
        heard = hear_all();
        if (heard != GOES_ON)
            break;
        CALL(a.type, latrd_, "L", &left, &a.nb, a.at, &j, &j, a.desc, d, e,
             t->reflectors, w, &j, &one, w_desc, panel, 1);
        update_symmetric(&a, j, a.nb, w, w_desc);
        put_beside(&a, j, a.nb, e);
        w_desc[7] = (w_desc[7] + 1) % grid.cols;
    }
    int left = a.n - j + 1;
    if (heard == GOES_ON)
        (a.type == GPU_F32   ? pssytd2_
         : a.type == GPU_F64 ? pdsytd2_
         : a.type == GPU_C64 ? pchetd2_
                             : pzhetd2_)("L", &left, a.at, &j, &j, a.desc, d, e,
                                         t->reflectors, w, &length, &info, 1);
    pb_topset_(&grid.context, "Combine", "Columnwise", &columns_way, 7, 10, 1);
    pb_topset_(&grid.context, "Combine", "Rowwise", &rows_way, 7, 7, 1);
    raise_heard(L, heard);
    spread_line(&a, d, t->diagonal, w, length);
    spread_line(&a, e, t->beside, w, length);
    lua_pop(L, 2);
    return 1;
}

/* solve_tridiagonal(T, Z): the values, in rising order, and in Z, real ones on
 * the diagonal, T's vectors; and info. By divide and conquer, in one go. */
static int solve_tridiagonal(lua_State *L)
{
    const tridiagonal *t = lua_touserdata(L, 1);
    part z = check_part(L, 2);
    int one = 1, ask = -1, info = 0, whole_asked = 0, length;
    scalar asked;
    char *w = push_values(L, z.type, t->n);
    if (t->n > 0) {
        memcpy(w, t->diagonal, (size_t)t->n * size_of(z.type));
        void (*f)(word, in, void *, void *, void *, in, in, in, void *, in,
                  int *, in, int *, size_t) =
            z.type == GPU_F32 ? psstedc_ : pdstedc_;
        meet(L);
        f("I", &t->n, w, t->beside, z.at, &one, &one, z.desc, &asked, &ask,
          &whole_asked, &ask, &info, 1);
        /* It asks for less than p?lasrt wants where this process has fewer rows
         * than others. */
        double np = ((double)z.n / (z.mb * grid.rows) + 1) * z.mb;
        double nq = ((double)z.n / (z.nb * grid.cols) + 1) * z.nb;
        double more = 4.0 * (np + nq + z.nb) * z.nb + 9.0 * z.n + 3 * np * nq;
        void *work = room_for(L, z.type, &asked, more, &length);
        int many = whole_asked + 8 * grid.cols + 7 * t->n + 2;
        int *whole = lua_newuserdatauv(L, (size_t)many * sizeof *whole, 0);
        meet(L);
        f("I", &t->n, w, t->beside, z.at, &one, &one, z.desc, work, &length,
          whole, &many, &info, 1);
        lua_pop(L, 2);
    }
    lua_pushinteger(L, info);
    lua_pushnumber(L, t->scale);
    return 3;
}

/* back_to_symmetric(A, T, Z): Z = Q Z, of the reflections in A, some columns at
 * a time, between which all may stop. */
static int back_to_symmetric(lua_State *L)
{
    part a = check_part(L, 1), z = check_part(L, 3);
    const tridiagonal *t = lua_touserdata(L, 2);
    int one = 1, ask = -1, info = 0, length;
    void (*f)(word, word, word, in, in, const void *, in, in, in, const void *,
              void *, in, in, in, void *, in, int *, size_t, size_t, size_t) =
        a.type == GPU_F32   ? psormtr_
        : a.type == GPU_F64 ? pdormtr_
        : a.type == GPU_C64 ? pcunmtr_
                            : pzunmtr_;
    for (int j = 1; j <= z.n; j += PANEL * z.nb) {
        int width = fewer(PANEL * z.nb, z.n - j + 1);
        scalar asked;
        meet(L);
        f("L", "L", "N", &z.m, &width, a.at, &one, &one, a.desc, t->reflectors,
          z.at, &one, &j, z.desc, &asked, &ask, &info, 1, 1, 1);
        void *work = room_for(L, a.type, &asked, (double)a.nb * a.nb, &length);
        meet(L);
        f("L", "L", "N", &z.m, &width, a.at, &one, &one, a.desc, t->reflectors,
          z.at, &one, &j, z.desc, work, &length, &info, 1, 1, 1);
        lua_pop(L, 1);
    }
    return 0;
}

/* svd(A, U, V): singular values of a real A, which is written over, U and the
 * transpose of V beside; and info. */
static int svd(lua_State *L)
{
    part a = check_part(L, 1), u = check_part(L, 2), v = check_part(L, 3);
    int one = 1, ask = -1, info = 0, length, least = fewer(a.m, a.n);
    scalar asked;
    void *s = push_values(L, a.type, least);
    if (least > 0) {
        void (*f)(word, word, in, in, void *, in, in, in, void *, void *, in,
                  in, in, void *, in, in, in, void *, in, int *, size_t,
                  size_t) = a.type == GPU_F32 ? psgesvd_ : pdgesvd_;
        meet(L);
        f("V", "V", &a.m, &a.n, a.at, &one, &one, a.desc, s, u.at, &one, &one,
          u.desc, v.at, &one, &one, v.desc, &asked, &ask, &info, 1, 1);
        void *work = room_for(L, a.type, &asked, 0, &length);
        meet(L);
        f("V", "V", &a.m, &a.n, a.at, &one, &one, a.desc, s, u.at, &one, &one,
          u.desc, v.at, &one, &one, v.desc, work, &length, &info, 1, 1);
        lua_pop(L, 1);
    }
    lua_pushinteger(L, info);
    return 2;
}

/* --- the module ----------------------------------------------------------- */

/* Calls upvalue 1, which exchanges elements. Where it fails in this process
 * alone the others hear of it where they meet: in the midst of it, or behind it
 * all, where a process must not leave MPI before its messages have arrived, as
 * MPI carries them on its calls alone. */
static int together(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    all_heard = 0;
    int has_failed = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) != LUA_OK;
    if (has_failed && all_heard)
        return lua_error(L);
    int least = least_of_all(has_failed ? FAILED : GOES_ON);
    if (has_failed)
        return lua_error(L);
    if (least == FAILED)
        return luaL_error(L, "another process failed");
    return lua_gettop(L);
}

void lumat_open_grid(lua_State *L)
{
    static const luaL_Reg own[] = {{"who", who},
                                   {"arrange", arrange},
                                   {"agree", agree},
                                   {"prepare_swap", lumat_prepare_swap},
                                   {"traffic", lumat_traffic},
                                   {"stop_traffic", lumat_stop_traffic},
                                   {"ping", lumat_ping},
                                   {NULL, NULL}};
    static const luaL_Reg exchanging[] = {
        {"multiply", multiply},
        {"transpose", transpose},
        {"swap", lumat_swap},
        {"lu", lu},
        {"lu_order", lu_order},
        {"lu_solve", lu_solve},
        {"chol", chol},
        {"chol_solve", chol_solve},
        {"qr", qr},
        {"qr_q", qr_q},
        {"reduce_symmetric", reduce_symmetric},
        {"solve_tridiagonal", solve_tridiagonal},
        {"back_to_symmetric", back_to_symmetric},
        {"svd", svd},
        {NULL, NULL}};
    luaL_newlib(L, own);
    for (const luaL_Reg *f = exchanging; f->name; f++) {
        lua_pushcfunction(L, f->func);
        lua_pushcclosure(L, together, 1);
        lua_setfield(L, -2, f->name);
    }
    lua_pushliteral(L, "cpu");
    lua_setfield(L, -2, "device");
    lumat_set_required(L, "grid");
}
