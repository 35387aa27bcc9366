/* What a device must be able to do: one struct of functions per backend.
 *
 * gpu/ checks shapes and types and allocates outputs before it calls a
 * backend, so a backend never sees a user's mistake. An entry may be NULL
 * where the comment says so; gpu/ then runs the CPU's entry on copies and
 * counts the transfer. Outputs never overlap inputs in another geometry: an
 * output is either disjoint from an input or the very same view.
 *
 * Entries may return before the work is done; it is done in the order of the
 * calls. Those marked "waits" return after it. */
#ifndef GPU_BACKEND_H
#define GPU_BACKEND_H

#include "gpu.h"

enum { GPU_BACKEND_ABI = 26 };

/* A matrix as a backend sees it: data points at element (0, 0). A vector has
 * cols = 1. Strides are in elements and may be zero or negative. */
typedef struct gpu_view {
    void *data;
    gpu_dtype dtype;
    int64_t rows, cols;
    int64_t row_stride, col_stride;
} gpu_view;

/* What a product's results go through before they lie in c: the program's
 * results for inputs one of which is the product itself, rounded to c's type.
 * The other views have c's rows and cols (a broadcast one has zero strides) and
 * lie nowhere in c. */
typedef struct gpu_epilogue {
    const gpu_program *program;
    const gpu_view *in; /* that of the product is not read */
    int product;        /* which input it is */
    int is_done;        /* out: see gpu_gemm */
} gpu_epilogue;

/* c = alpha a b + beta c; m, n, k >= 1; a, b and c of one type, f32 or f64. A
 * kernel that can take c through the epilogue sets is_done; behind others it is
 * a map, from c into c. The storages are handles for keeping things about a and
 * b. */
typedef struct gpu_gemm {
    gpu_view a, b, c;                   /* m x k, k x n, m x n */
    gpu_storage *a_storage, *b_storage; /* NULL: keep nothing */
    double alpha, beta;
    int tile;               /* 0: the kernel's own choice */
    gpu_epilogue *epilogue; /* NULL: none */
    /* Another kernel lacked memory: choose_matmul takes one that needs none,
     * or little. */
    int is_short_of_memory;
    int is_update; /* see gpu_product */
} gpu_gemm;

/* A sparse matrix in compressed rows: row i has the elements starts[i] ..
 * starts[i + 1] - 1 of columns and values, columns ascending, 0-based. All
 * three arrays lie on the device and are contiguous. */
typedef struct gpu_csr {
    int64_t rows, cols, count;
    const int32_t *starts;  /* rows + 1; count < 2^31 */
    const int32_t *columns; /* count */
    const void *values;     /* count of dtype */
    gpu_dtype dtype;        /* f32, f64, c64 or c128 */
} gpu_csr;

/* c = alpha s d + beta c; d and c are of s's type, m x n with any strides (a
 * vector has one column), and do not overlap. beta = 0: c is not read. */
typedef struct gpu_sparse_call {
    gpu_csr s;
    gpu_storage *storage; /* of s's starts, to keep a plan of its rows with;
                             NULL: keep nothing */
    gpu_view d, c;
    double alpha, beta;
    int is_even; /* rows are about equally long: from sparse_survey */
    const struct gpu_kernel *rung; /* from choose_sparse; NULL without one */
} gpu_sparse_call;

/* Entries in any order: values[k], of a dtype, at (row[k], col[k]), 0-based and
 * inside the matrix. */
typedef struct gpu_triplet_lists {
    int64_t rows, cols, count;
    const int32_t *row, *col;
    const void *values;
    gpu_dtype dtype; /* f32, f64, c64 or c128 */
} gpu_triplet_lists;
/* A sparse matrix that an entry makes. starts is there, rows + 1 numbers. Once
 * it knows how many entries there are at most the entry calls make_room, which
 * sets columns and values or fails; count is how many it has put there, rows
 * close behind each other, in the end. */
typedef struct gpu_csr_result {
    int32_t *starts, *columns;
    void *values;
    int64_t count;
    gpu_status (*make_room)(struct gpu_csr_result *r, int64_t most);
} gpu_csr_result;

/* `count` places of a sparse matrix, one in each row from the first on: a
 * diagonal, where step is 1, or a column, where it is 0. */
typedef struct gpu_sparse_path {
    int64_t row, column, step, count;
} gpu_sparse_path;

/* What a line of a sparse matrix is folded to. Extremes are of real matrices,
 * and sums of squares of sizes. A place without an entry is 0, and counts. */
typedef enum gpu_sparse_fold {
    GPU_SPARSE_SUM,
    GPU_SPARSE_PROD, /* of rows alone */
    GPU_SPARSE_MIN,
    GPU_SPARSE_MAX,
    GPU_SPARSE_SQUARES,
    GPU_SPARSE_NONZEROS, /* how many, NaN among them */
    GPU_SPARSE_NANS
} gpu_sparse_fold;
typedef struct gpu_sparse_folding {
    gpu_sparse_fold kind;
    int axis;      /* 1: each column, 2: each row */
    int skips_nan; /* NaN is left out; extremes of nothing are NaN */
} gpu_sparse_folding;

/* Row i of the result is what row rows[i] has in the listed columns, column j
 * being cols[j]; NULL: all of them. They lie inside, and may stand twice. */
typedef struct gpu_sparse_picking {
    const int64_t *rows, *cols; /* on the host */
    int64_t nrows, ncols;       /* of the result */
} gpu_sparse_picking;

/* A sparse matrix of the entries of `count` others, of one type, and how. */
typedef enum gpu_sparse_arrangement {
    GPU_SPARSE_BAND,   /* columns low .. high - 1, counted from the row's number
                        */
    GPU_SPARSE_KRON,   /* of two, entries multiplied */
    GPU_SPARSE_BESIDE, /* side by side: all have the same rows */
    GPU_SPARSE_ABOVE,  /* one above the other: the same columns */
    GPU_SPARSE_RESHAPED, /* of as many elements, row-major */
    GPU_SPARSE_REPLACED  /* the second's entries, but for zeros, and the first's
                          * where it has none */
} gpu_sparse_arrangement;
typedef struct gpu_sparse_arranging {
    gpu_sparse_arrangement kind;
    const gpu_csr *parts;
    int64_t count;
    int64_t rows, cols; /* of the result */
    int64_t low, high;  /* within +-2^32 */
} gpu_sparse_arranging;

/* Which entries of a sparse matrix are kept: those where mask is true, as ones
 * in f32; or, mask NULL, those whose absolute value is above tolerance, and
 * NaN. */
typedef struct gpu_sparse_choice {
    const uint8_t *mask; /* one for each entry */
    double tolerance;
} gpu_sparse_choice;

/* Diagonals of a matrix of rows x cols: that with column places[k] of values in
 * column j + offsets[k], where that is one, of row j; row j of values belongs
 * to column j, and may be the same for all. */
typedef struct gpu_diagonals {
    int64_t rows, cols, count;
    const int64_t *offsets, *places; /* offsets ascend */
    gpu_view values;                 /* f32, f64, c64 or c128 */
} gpu_diagonals;

/* The halves of a square matrix, f64 or c128, that become its incomplete
 * factors in the place of their values: in lower a diagonal ends each row, in
 * upper, which L L^H has none of, it begins each. */
typedef struct gpu_incomplete {
    int is_chol;
    gpu_csr lower, upper;
    void *lower_values, *upper_values;
} gpu_incomplete;

/* Bins between edges: see gpu_count_bins. x lies in bin number
 * (x over - from) per_unit, unless that is as near a whole number as `near`:
 * then the edges decide, computed as gpu_edge does. */
typedef struct gpu_bins {
    gpu_edges edges;
    double low; /* the first edge; the last is edges.high */
    double per_unit, near;
} gpu_bins;

/* How large start a^-1 is, start being a power of two of a's type that keeps
 * it in range. Where the 2-norm is surely below the limit, only it is given,
 * roughly; else both are estimated. */
typedef struct gpu_inverse_size {
    double start, limit;   /* in; limit 0: both are wanted */
    int is_direct;         /* in, to solve: not by refinement */
    double norm_1, norm_2; /* out; norm_1 is 0 where it was not wanted */
    int steps;             /* out, of solve: of refinement, 0: there was none */
    double backward;       /* and then |b - a x| / (|a| |x|), the largest */
} gpu_inverse_size;

/* A step of a factorisation. Its matrices are f32, f64, c64 or c128, of one
 * type, not empty, and lie column by column without gaps (row_stride 1). What a
 * kind does not name stays {0}. k is the smaller of a's sides. Of complex
 * matrices symmetric means Hermitian and ^T the conjugate transpose, and
 * singular values and those of EIGH are real: f32 or f64. */
typedef enum gpu_factor_kind {
    /* a (n x n, its lower triangle) becomes L of L L^T, above which nothing is
     * written. trouble: the order of the first leading minor that is not
     * positive; 0: none. */
    GPU_FACTOR_CHOLESKY,
    /* a becomes L (ones on its diagonal) and U, whose product is the rows
     * places[0 .. rows - 1] of a. trouble: the first zero on U's diagonal,
     * counted from 1; 0: none. */
    GPU_FACTOR_LU,
    /* a becomes R and Householder vectors, with values (k) for their factors.
     * With places the columns are exchanged, so that R's diagonal falls: R's
     * are the columns places[0 .. cols - 1] of a. */
    GPU_FACTOR_QR,
    /* b, of so many columns as it has, becomes the Q of such an a and values.
     */
    GPU_FACTOR_Q,
    /* b becomes Q b, or Q^T b where it is turned. */
    GPU_FACTOR_APPLY_Q,
    /* b becomes the x of a x = b, or where it is turned of the transposed a,
     * and where it is conjugated as well of the conjugate transposed; a: its
     * lower or upper triangle, with ones on the diagonal where it is a unit's.
     * trouble: the
     * first zero there, counted from 1; then b is as it was. */
    GPU_FACTOR_TRIANGLE,
    /* a, which is lost, is b diag(values) v: values (k) fall; b (rows x k or
     * rows x rows), v (k x cols or cols x cols) or neither. trouble: it did not
     * converge. */
    GPU_FACTOR_SVD,
    /* Of a symmetric a (its lower triangle): values (n) rise; a becomes their
     * vectors where they are wanted, else is lost. trouble: so many did not
     * converge. */
    GPU_FACTOR_EIGH,
    /* The same of a and of b (n x n), symmetric and positive definite, of which
     * the lower triangle is read and which is lost: a v = b v diag(values),
     * v^T b v = 1. trouble beyond n: n and the order of b's first leading minor
     * that is not positive. */
    GPU_FACTOR_EIGH_PAIR,
    /* values + i imaginary (n each) are eigenvalues of a, which is lost; of a
     * pair of complex ones, which stand side by side, the one above the axis is
     * first. b, v (n x n): right and left vectors, where they are wanted, of
     * length 1; of a pair the first's real part and imaginary part in two
     * columns. Of a complex a values are complex, and vectors what they are;
     * there is no `imaginary`. trouble: so many values did not converge. */
    GPU_FACTOR_EIG,
    /* Of the pair a and b (n x n), which are lost: b_i a v = a_i b v for the
     * right vectors v (n x n), where they are wanted; values (2 n): the real
     * parts of the a_i and behind them the b_i, imaginary (n): the a_i's. a
     * becomes the left vectors, where wants_vectors says so. Pairs of complex
     * ones, complex matrices and trouble as of EIG, lengths as they come. */
    GPU_FACTOR_EIG_PAIR,
    /* a becomes T of b T b^T, its upper triangle and, where eigenvalues of a
     * real a are complex, 2 x 2 blocks on the diagonal; b (n x n): orthonormal.
     * values, imaginary, trouble as of EIG. */
    GPU_FACTOR_SCHUR,
    /* a becomes H of b H b^T, with zeros below its first subdiagonal; b (n x
     * n): orthonormal; values (n): room. */
    GPU_FACTOR_HESSENBERG,
    /* Of a symmetric a (its lower triangle): L below the diagonal and D's
     * diagonal on it, values (n): D's subdiagonal, of which no two neighbours
     * are other than 0. L D L^T are the rows and columns places[0 .. n - 1] of
     * a. trouble: a zero on D's diagonal. */
    GPU_FACTOR_LDL,
    /* b (rows of a, cols of v) becomes the x of a x + x v = b, for the T of two
     * SCHURs, a and v. trouble 1: they have eigenvalues a and -a, or nearly. */
    GPU_FACTOR_SYLVESTER,
    /* b becomes the x of a x = b, for an a of zeros but for `below` and `above`
     * diagonals beside the main one. trouble: the first pivot that is zero;
     * then b is lost. */
    GPU_FACTOR_BAND,
    /* As many systems as a, n x kn, has squares beside each other, each lying
     * row by row, with b, m x kn, of m right sides a system: b becomes the x of
     * each. a is lost without a rung, and by one only read. trouble: the first
     * system that has a zero for a pivot. */
    GPU_FACTOR_BATCH,
    /* Of a square a, which is only read: `below` and `above`, how many
     * diagonals beside the main one hold anything but zeros; is_symmetric: a is
     * its own transpose; is_positive: and so is its diagonal. */
    GPU_FACTOR_LOOK,
} gpu_factor_kind;

typedef struct gpu_kernel gpu_kernel;

typedef struct gpu_factoring {
    gpu_factor_kind kind;
    const gpu_kernel *rung; /* from choose_factor; NULL without one */
    gpu_view a, b, v, values, imaginary;
    int64_t *places; /* on the host; from 0 */
    int is_lower, is_unit, is_turned, is_conjugated, wants_vectors;
    int64_t below, above;
    int is_symmetric, is_positive; /* out */
    double flops;                  /* that it takes, about */
    int64_t trouble;               /* out */
} gpu_factoring;

/* An operation on complex elements (see complex_numbers.h): out = op(in…). All
 * views have out's shape, strides of zero where they are broadcast; those of
 * numbers, f64 or c128, are on the host and all strides are zero. out may be
 * one of in, element for element, else it lies apart from them. */
typedef struct gpu_complex_call {
    gpu_op op;
    int count; /* of operands */
    gpu_view in[3], out;
    uint8_t is_number[3], is_conjugated[3], is_out_conjugated;
} gpu_complex_call;

typedef struct gpu_complex_pairs {
    gpu_view in, out;
    int is_conjugated; /* in stands for its conjugates */
    int is_negative;   /* -i z is wanted */
} gpu_complex_pairs;

/* Discrete Fourier transforms of all columns (axis 1), all rows (2), or of both
 * (0, of the first two kinds): out[k] = scale * sum of in[j] exp(-2 pi i j k /
 * n), or with + where it is inverse. Both views are of one precision, not
 * empty; out may be in where they have one shape and type. */
typedef enum gpu_fft_kind {
    GPU_FFT_COMPLEX,  /* complex, both of one shape */
    GPU_FFT_REAL,     /* in is real, out complex, of one shape */
    GPU_FFT_HALF,     /* so, but out has the first n / 2 + 1 alone */
    GPU_FFT_FROM_HALF /* in has these, out the n real ones; the imaginary parts
                         of in[0] and, of an even n, in[n / 2] count as 0 */
} gpu_fft_kind;

typedef struct gpu_fft_call {
    gpu_fft_kind kind;
    int axis, is_inverse;
    double scale;
    gpu_view in, out;
} gpu_fft_call;

/* out[i, j] = sum of x[i + row - u, j + col - v] y[u, v] over all (u, v) with
 * an x there, in f64 and in the order of y's rows, rounded once. All of them
 * are f32 or f64, not empty; out lies apart. */
typedef struct gpu_convolution {
    gpu_view x, y, out;
    int64_t row, col;
} gpu_convolution;

/* Elements moved by lists on the device. small's element (i, j) belongs to
 * big's in row rows[i] and column cols[j]; each moves to small or, where it
 * scatters, to big, and is converted as types say. A list is a column of f32 or
 * f64 that holds whole numbers other than 0, which count from 1 or, below 0,
 * from the end, all of them inside; without data it is all, in their order. Of
 * what is written twice the last wins: that of the largest i and j. */
typedef struct gpu_picking {
    gpu_view big, small;
    gpu_view rows, cols;
    int64_t last_row, last_col; /* places behind these are none */
    int scatters;
} gpu_picking;

/* Runs of equal elements in a column that ascends, f32 or f64, without NaN and
 * not empty: their values, of its type, the places at which they begin, from 1,
 * and one behind the last, and how long they are, both f64. make_room sets all,
 * which lie without gaps, or fails; what has no data is not wanted. */
typedef struct gpu_runs {
    int64_t count;
    gpu_view values, starts, lengths;
    gpu_status (*make_room)(struct gpu_runs *r);
} gpu_runs;

/* Of each element of the result mean has its own, or the trials; chance, of
 * binomial ones, lies in 0 .. 1. Both have the result's shape, f64, from 0 to
 * 1e15. Numbers are those of a seed and call, whatever other elements are. */
typedef struct gpu_variates {
    gpu_variate_kind kind;
    uint64_t seed, call;
    gpu_view mean, chance;
} gpu_variates;

/* Rows told apart by code: a column of f32 or f64, in which x means group
 * x - first, rounded down, where that is one of 0 .. groups - 1; other rows,
 * NaN among them, belong to none. order: the rows, counted from 1, by group,
 * each group's as they stand, and behind them those of none; counts: how many
 * each group has. Both are columns of f64; what has no data is not wanted. Of a
 * mask for counts: whether a group has any. */
typedef struct gpu_grouping {
    gpu_view codes;
    double first;
    int64_t groups;
    gpu_view order, counts;
} gpu_grouping;

/* Every column of from, f32 or f64, folded group by group, in f64: to and about
 * are groups x columns, f64, and neither lies in from. Rows belong to groups by
 * codes, as above, or, where these have no data, by starts: group g has the
 * ordered rows starts[g] .. starts[g + 1] - 1, counted from 1 in a column of
 * f64 that ascends and has groups + 1 elements; and the i-th ordered row is
 * from's row number places[i], counted from 1 in another, or i itself where
 * that has no data. Bits depend on shapes, starts and codes alone. */
typedef struct gpu_folding {
    gpu_fold_kind kind;
    int skips_nan; /* elements that are NaN count as missing */
    gpu_view from;
    gpu_view codes;
    double first;
    int64_t groups;
    gpu_view starts, places;
    gpu_view about; /* of GPU_FOLD_SPREAD */
    gpu_view to;
} gpu_folding;

/* Down each column, to's row i is of from's rows i + first .. i + first +
 * length - 1, those of them that there are: of each one or more. to is f64. */
typedef struct gpu_windows {
    gpu_window_kind kind;
    int64_t length, first;
    gpu_view from, to;
} gpu_windows;

/* One rung of the ladder. A kernel's file ends in its descriptor. */
struct gpu_kernel {
    const char *operation; /* "dot", "matmul", "lu", "spmv" … */
    const char *name;
    const char *idea;      /* one line */
    const char *needs;     /* "any GPU", "sm_90", "BLAS" … */
    const char *precision; /* "f32" keeps the operands' own; or "tf32" … */
    int capability;        /* smallest compute capability, 90 for 9.0; or 0 */
    unsigned dtypes;       /* bits 1 << gpu_dtype */
    /* gamma for inner dimension k: see gpu_kernel_bound */
    double (*bound)(gpu_dtype dtype, int64_t k);
    /* One of them, by operation. dot and factor wait. A matmul that returns
     * GPU_MEMORY has not touched c: it is called again when there is room. */
    gpu_status (*matmul)(void *device, const gpu_gemm *p);
    gpu_status (*dot)(void *device, const gpu_view *x, const gpu_view *y,
                      double *out);
    gpu_status (*factor)(void *device, gpu_factoring *f);
    gpu_status (*sparse)(void *device, const gpu_sparse_call *p);
    int has_epilogue; /* a matmul that can be asked for one: see gpu_gemm */
};

/* A device does its work in lanes, each in the order of its calls. All entries
 * give to that of work but those that are given a lane. */
typedef enum gpu_lane {
    GPU_LANE_WORK,
    GPU_LANE_IN,
    GPU_LANE_OUT,
    GPU_LANES
} gpu_lane;
enum { GPU_MARKS = 20 };

enum { GPU_MOST_SELECTED = 12 }; /* places; more are found by a sort */

typedef struct gpu_backend {
    int abi;
    const char *name; /* "cpu", "cuda" */

    /* Devices. probe is called once, and gives their number; where there is
     * none that can be used why gets the reason, and where there is one all
     * the same it gives -1. open may be slow. Handles stay valid until the
     * process ends. */
    int (*probe)(char *why, size_t size);
    gpu_status (*open)(int index, void **device);
    void (*close)(void *device);
    const char *(*describe)(void *device);
    int (*capability)(void *device); /* 90 for 9.0; 0 on a CPU */
    int (*is_lost)(void *device);

    /* Memory. alloc returns GPU_MEMORY without a message. free, with the bytes
     * that were asked for, is ordered after the work issued so far. upload may
     * return early but has read `from`; download waits. trim gives cached
     * memory back. */
    gpu_status (*alloc)(void *device, size_t bytes, void **data);
    void (*free)(void *device, void *data, size_t bytes);
    /* What alloc has just given becomes zeros, of many bytes those that are
     * used, and when they are. NULL: they are written as other numbers. */
    gpu_status (*clear)(void *device, void *data, size_t bytes);
    gpu_status (*upload)(void *device, void *to, const void *from, size_t n);
    gpu_status (*download)(void *device, void *to, const void *from, size_t n);
    gpu_status (*memory)(void *device, size_t *free, size_t *total);
    void (*trim)(void *device);
    size_t (*unused)(void *device); /* cached bytes; NULL: there is no cache */
    /* Eight bytes that kernels can write to and the host reads without a copy:
     * download from them only waits. NULL: no better than others. */
    void *(*slot)(void *device);

    /* Copies between views of the host's memory and of the device's, of one
     * shape, converted as their types say; on the device the elements of a row
     * lie side by side, and rows do not overlap. bring returns when `from` was
     * read. What fetch gives to the lane of work is there when it returns. That
     * of the lane out waits for nothing: `to` is written until deliver returns,
     * which waits for it, or gives it up where that is what is wanted. */
    gpu_status (*bring)(void *device, gpu_lane lane, const gpu_view *from,
                        const gpu_view *to);
    gpu_status (*fetch)(void *device, gpu_lane lane, const gpu_view *from,
                        const gpu_view *to);
    gpu_status (*deliver)(void *device, int give_up);
    /* What a lane has been given so far is behind the mark, 0 .. GPU_MARKS - 1;
     * what follows the mark begins when all that is done. Of a mark that was
     * not set there is nothing to wait for. */
    gpu_status (*mark)(void *device, gpu_lane lane, int mark);
    gpu_status (*follow)(void *device, gpu_lane lane, int mark);

    /* Time. sync waits and reports what went wrong before. */
    gpu_status (*sync)(void *device);
    gpu_status (*timer_start)(void *device);
    gpu_status (*timer_stop)(void *device, double *seconds); /* waits */
    gpu_status (*peak)(void *device, gpu_peak *out);         /* waits */

    /* Elementwise. Every input view has out's rows and cols (a broadcast one
     * has zero strides). Where `draws` is set one may have no data: its element
     * at i row_stride + j col_stride is the one of that number of p->draw, as
     * random makes it in the type that p computes in. Of reduce all have. */
    int draws;
    gpu_status (*map)(void *device, const gpu_program *p, const gpu_view *in,
                      const gpu_view *out);
    /* Would map run p, which has further results, faster than one program for
     * each? Only then it is given such: the views from out on, one for each
     * result, have one shape, type and strides. NULL: never. */
    int (*joins)(void *device, const gpu_program *p, const gpu_view *in,
                 const gpu_view *out);
    /* p->reduction is one of those that backends see: op_list.h. All inputs
     * have one shape, not empty along the reduced axis. axis 0: out is 1x1; 1:
     * 1xn; 2: mx1. */
    gpu_status (*reduce)(void *device, const gpu_program *p, const gpu_view *in,
                         int axis, const gpu_view *out);

    /* Moving elements. Index arrays are host memory, read before returning,
     * and valid; NULL: all in their order. gather and scatter convert between
     * types; what scatter writes twice it writes in order, the last wins. */
    gpu_status (*gather)(void *device, const gpu_view *from,
                         const int64_t *rows, const int64_t *cols,
                         const gpu_view *to);
    gpu_status (*scatter)(void *device, const gpu_view *from,
                          const int64_t *rows, const int64_t *cols,
                          const gpu_view *to);
    gpu_status (*pick)(void *device, const gpu_picking *p);
    /* Does pick look whether lists hold what is no place, and return GPU_RANGE
     * without a message, nothing being written? Else they are looked at before.
     */
    int pick_checks;
    /* to: contiguous vector, of mask's true count; same type as from. The CPU's
     * takes one without data: its f64 elements are their places, row by row,
     * counted from 1. */
    gpu_status (*compress)(void *device, const gpu_view *from,
                           const gpu_view *mask, const gpu_view *to);
    gpu_status (*expand)(void *device, const gpu_view *from,
                         const gpu_view *mask, const gpu_view *to);

    /* f32 or f64; axis 1 down, 2 across; to has from's shape and type. */
    gpu_status (*scan)(void *device, gpu_scan_kind kind, int axis,
                       const gpu_view *from, const gpu_view *to);
    /* Stable, NaN last in both directions. order is f64; to or order may be
     * NULL, and then costs nothing. */
    gpu_status (*sort)(void *device, int axis, int descending,
                       const gpu_view *from, const gpu_view *to,
                       const gpu_view *order);
    /* What stands at `count` rising places (host memory, 0-based), at most
     * GPU_MOST_SELECTED, of each line when it is sorted, NaN last; or NaN of
     * lines with NaN, where it spreads. axis 1: of columns, to has count rows;
     * 2: of rows, count columns; 0: of all elements, to has count rows. What
     * returns GPU_UNSUPPORTED is found by a sort. */
    gpu_status (*select)(void *device, int axis, int spreads_nan,
                         const gpu_view *from, const int64_t *places,
                         int64_t count, const gpu_view *to);
    /* The first elements of each line as sort has them: so many as to and order
     * have along the axis, at least 1. One of the two may be NULL. What returns
     * GPU_UNSUPPORTED, where all have to be sorted or looked at in parts, is
     * left to the caller. */
    gpu_status (*first)(void *device, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order);
    /* How many elements of `sorted`, a column that ascends with NaN last, come
     * before each of values, plus 1: f64, in to, of values' shape. is_after:
     * those that equal it do, too. f32 or f64. */
    gpu_status (*search)(void *device, const gpu_view *sorted,
                         const gpu_view *values, int is_after,
                         const gpu_view *to);
    /* Calls r->make_room once it knows how many runs there are. */
    gpu_status (*runs)(void *device, const gpu_view *sorted, gpu_runs *r);
    gpu_status (*group)(void *device, const gpu_grouping *g);
    /* By codes it may return GPU_UNSUPPORTED: then it is called again with what
     * group makes of them. Of medians, which are by starts, a GPU does. */
    gpu_status (*fold)(void *device, const gpu_folding *f);
    /* What returns GPU_UNSUPPORTED is done by the CPU. */
    gpu_status (*windows)(void *device, const gpu_windows *w);
    gpu_status (*random)(void *device, const gpu_random *r, const gpu_view *to);
    gpu_status (*variates)(void *device, const gpu_variates *v,
                           const gpu_view *to); /* the CPU's alone */

    /* Looking at v, which is not empty; all wait. survey takes moments of
     * scale times the elements (a power of two) and leaves std and norm to the
     * caller. blocks: to is f64, no larger than v. */
    gpu_status (*survey)(void *device, const gpu_view *v, double scale,
                         gpu_survey *out);
    gpu_status (*bins)(void *device, const gpu_view *v, const gpu_bins *how,
                       int64_t *counts);
    gpu_status (*blocks)(void *device, gpu_block_kind kind, const gpu_view *v,
                         const gpu_view *to);

    /* The ladder, and the rung `auto` takes for a product or a dot. */
    int (*kernels)(const gpu_kernel *const **list);
    const gpu_kernel *(*choose_matmul)(void *device, const gpu_gemm *p);
    const gpu_kernel *(*choose_dot)(void *device, const gpu_view *x,
                                    const gpu_view *y);

    /* Both NULL where operations can be stopped while they run. What a GPU has
     * begun cannot: so it gets little at a time. panel cuts what takes k long
     * into panels of c, by shapes alone, so that results repeat; their sizes
     * are those of c at first. pace is called after each of k's, or of another
     * operation (k and p NULL) that moved so many bytes, and waits until
     * little is left to do, or an interrupt comes. */
    void (*panel)(void *device, const gpu_kernel *k, const gpu_gemm *p,
                  int64_t *rows, int64_t *cols);
    void (*pace)(void *device, const gpu_kernel *k, const gpu_gemm *p,
                 double bytes);

    /* Looks at s for what choose_sparse is to know; waits, for a matrix with
     * storage once. NULL: there is nothing to know. */
    gpu_status (*sparse_survey)(void *device, gpu_sparse_call *p);
    /* Which rung takes a product, of which everything but that is known; NULL:
     * the CPU does it. Where choose_sparse is NULL, sparse_product does all, of
     * complex matrices where d lies without gaps. */
    const gpu_kernel *(*choose_sparse)(void *device, const gpu_sparse_call *p);
    gpu_status (*sparse_product)(void *device, const gpu_sparse_call *p);
    /* c = alpha s^T d + beta c, of s as it is: the bits are those of the
     * product of its transpose. NULL: that is made. */
    gpu_status (*sparse_turned_product)(void *device, const gpu_sparse_call *p);
    /* A sparse matrix of two others of one type, f32, f64, c64 or c128, which
     * fit, columns in order. NULL, or what returns GPU_UNSUPPORTED: the CPU
     * does it. */
    gpu_status (*sparse_combine)(void *device, gpu_sparse_op op,
                                 const gpu_csr *a, const gpu_csr *b,
                                 gpu_csr_result *out);
    /* out[e] = the element of m, of f32, f64, bool, c64 or c128 and any
     * strides, at the place of s's entry e, whose value is not looked at. NULL:
     * the CPU does it. */
    gpu_status (*sparse_sample)(void *device, const gpu_csr *s,
                                const gpu_view *m, void *out);

    /* Of each row or column of s a number, f64, or of sums and products of
     * complex ones a pair. NULL: the CPU does it. */
    gpu_status (*sparse_reduce)(void *device, const gpu_sparse_folding *how,
                                const gpu_csr *s, double *out);
    /* out[e] = the element of s, of its type, at the place of the entry e of
     * `places`, which has its shape. NULL: the CPU does it. */
    gpu_status (*sparse_lookup)(void *device, const gpu_csr *s,
                                const gpu_csr *places, void *out);
    /* out[k] = the element of s, of its type, at place k of the path, all of
     * which lies inside. NULL: the CPU does it. */
    gpu_status (*sparse_along)(void *device, const gpu_csr *s,
                               const gpu_sparse_path *path, void *out);
    /* Columns in order. NULL: the host works out which entries are taken, and
     * they are gathered. */
    gpu_status (*sparse_gather)(void *device, const gpu_csr *s,
                                const gpu_sparse_picking *how,
                                gpu_csr_result *out);
    /* Columns in order. NULL: the CPU does it. */
    gpu_status (*sparse_arrange)(void *device, const gpu_sparse_arranging *how,
                                 gpu_csr_result *out);

    /* Factors of a sparse matrix, f64 or c128, and solutions by them: see
     * gpu_sparse_factor. b and x are count lines without gaps. The CPU's
     * alone. */
    gpu_status (*sparse_factor)(void *device, gpu_sparse_factoring how,
                                const gpu_csr *s, gpu_sparse_report *told,
                                void **out);
    gpu_status (*sparse_solve)(void *device, void *factors, const gpu_csr *s,
                               int turned, const void *b, void *x,
                               int64_t count);
    void (*sparse_forget)(void *device, void *factors);
    /* See gpu_sparse_incomplete_factors; told is empty. The CPU's alone. */
    gpu_status (*sparse_incomplete)(void *device, const gpu_incomplete *of,
                                    gpu_sparse_breakdown *told);

    /* Sparse matrices made and unmade; all may be NULL where not on the CPU,
     * and wait. Of starts there are rows + 1, and of columns and values as many
     * as entries; all are written. */
    /* The numbers of a vector, f32, f64 or bool, less 1: to places. *largest is
     * the largest, not less 1; *wrong the first that is no whole number from 1
     * to 2^31 - 1, or -1: then the rest is undefined. */
    gpu_status (*sparse_places)(void *device, const gpu_view *from, int32_t *to,
                                int64_t *largest, int64_t *wrong);
    /* Those in one place are added up in f64 in the order given; *count remain,
     * and there is room for all that were given. */
    gpu_status (*sparse_build)(void *device, const gpu_triplet_lists *t,
                               int32_t *starts, int32_t *columns, void *values,
                               int64_t *count);
    gpu_status (*sparse_transpose)(void *device, const gpu_csr *s,
                                   int32_t *starts, int32_t *columns,
                                   void *values);
    /* What is not 0 of m, whose rows have no gaps. Called first with columns
     * NULL for starts and *count, then with these starts for the rest. Values
     * are of m's type, of a mask f32. */
    gpu_status (*sparse_from_dense)(void *device, const gpu_view *m,
                                    int32_t *starts, int32_t *columns,
                                    void *values, int64_t *count);
    /* Some of s's entries, and diagonals without their zeros: called twice, as
     * sparse_from_dense is. */
    gpu_status (*sparse_keep)(void *device, const gpu_csr *s,
                              const gpu_sparse_choice *choice, int32_t *starts,
                              int32_t *columns, void *values, int64_t *count);
    gpu_status (*sparse_diagonals)(void *device, const gpu_diagonals *d,
                                   int32_t *starts, int32_t *columns,
                                   void *values, int64_t *count);
    /* Where entries are, counted from 1. */
    gpu_status (*sparse_list)(void *device, const gpu_csr *s, double *rows,
                              double *cols);
    /* to: rows x cols of s's type without gaps. */
    gpu_status (*sparse_to_dense)(void *device, const gpu_csr *s, void *to);

    /* Linear systems; any may be NULL. As with factor, what returns
     * GPU_UNSUPPORTED is done again by the CPU, on copies of what was given,
     * which is lost. a (n x n) and b (n x m) are contiguous,
     * f32 or f64, and overwritten: b with the solution. inverse may be NULL;
     * of a singular a, inverse_norm gives infinities. They wait. */
    gpu_status (*solve)(void *device, const gpu_view *a, const gpu_view *b,
                        gpu_inverse_size *inverse);
    gpu_status (*determinant)(void *device, const gpu_view *a, double *out);
    gpu_status (*inverse_norm)(void *device, const gpu_view *a,
                               gpu_inverse_size *inverse);
    /* Factorisations; may be NULL. Waits. choose_factor: which rung takes f,
     * of which kind, places, and a's type and sides are known; NULL: none, and
     * the CPU does it. Where choose_factor is NULL, factor does all. It is also
     * asked for LU before solve, determinant and inverse_norm are called. */
    const gpu_kernel *(*choose_factor)(void *device, const gpu_factoring *f);
    gpu_status (*factor)(void *device, gpu_factoring *f);
    /* Complex elements; may be NULL. */
    gpu_status (*complex_map)(void *device, const gpu_complex_call *c);
    /* May be NULL. What returns GPU_UNSUPPORTED is done by the CPU. */
    gpu_status (*fft)(void *device, const gpu_fft_call *c);
    gpu_status (*convolve)(void *device, const gpu_convolution *c);
    /* For products; may be NULL. out, 2k x n, gets each row z of p->in, k x n
     * of its type, and below it i z, or -i z. All lie row by row. */
    gpu_status (*complex_pairs)(void *device, const gpu_complex_pairs *p);
} gpu_backend;

/* Names something kept: a number of the backend's own and the view it was
 * worked out from. */
typedef struct gpu_keep_key {
    int kind;
    gpu_view view;
} gpu_keep_key;

/* What a backend gets from gpu/ when it is loaded. */
typedef struct gpu_host {
    int abi;
    gpu_status (*fail)(gpu_status status, const char *format, ...);
    const volatile int *interrupted; /* long CPU loops poll it */
    /* How far the work is: see progress.h. */
    int (*begin_stage)(int64_t total);
    void (*advance)(int64_t units);
    void (*end_stage)(int began);

    /* Things kept about an operand until it is written to, in device memory.
     * recall finds what was kept under the same key, or NULL; keep gives new
     * memory to fill, or NULL where there is no room: scratch must do then.
     * What they give stays until the product's kernel returns. */
    void *(*recall)(gpu_storage *s, const gpu_keep_key *key);
    void *(*keep)(gpu_storage *s, const gpu_keep_key *key, size_t bytes);

    /* For a backend that lacks memory: frees, in the stream's order, what is
     * kept on the device, but not what recall and keep gave to the running
     * product. Returns whether there was any. */
    int (*make_room)(void *device);

    /* For the CPU's backend, which keeps freed blocks for the next ones: how
     * many bytes a limit that the user has set leaves beside what is held.
     * NULL: there is none. */
    size_t (*room_left)(void);

    /* The CPU's table: its bring and fetch copy between views of the host's
     * memory on all cores, fetch what is not read again soon. */
    const gpu_backend *cpu;

    /* Which programs get kernels of their own, a gpu_compile; and what is
     * called after each program that ran on one. */
    const volatile int *compile;
    void (*note_compiled)(void);
    /* Before a call of the driver's: the error that it is to give without
     * being made, or 0. NULL, and no site is ever asked for, where no faults
     * are injected: see gpu_has_faults. */
    int (*fault)(gpu_fault_site *site);
} gpu_host;

/* The CPU is always there; others are shared objects exporting this symbol.
 * Returns NULL when the abi is not the one it was built for. */
const gpu_backend *gpu_cpu_backend(const gpu_host *host);
typedef const gpu_backend *gpu_backend_entry(const gpu_host *host);
#define GPU_BACKEND_SYMBOL "lumat_backend"

#endif
