/* The arithmetic of lumat: matrices on a device and what can be done with
 * them. The header of gpu/ that other folders include; those that name single
 * operations, as GPU_OP_add, include op_list.h too.
 *
 * Ownership: a gpu_matrix is a small value that holds one reference to its
 * storage. Functions that fill a gpu_matrix *out give the caller a reference,
 * to be ended with gpu_release. A view shares its parent's storage.
 *
 * Errors: every function that can fail returns a gpu_status; on anything but
 * GPU_OK, gpu_message() says what was wrong with which values, and nothing
 * was allocated or changed (an interrupted operation may have written part
 * of its output).
 *
 * Time: operations on a GPU are issued and return at once. Whatever gives a
 * number or bytes back waits for them; gpu_sync waits for all. */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>
#include <stdint.h>
#include "program.h"
#include "progress.h"

typedef enum gpu_status {
    GPU_OK,
    GPU_SHAPE,       /* shapes do not fit */
    GPU_ARGUMENT,    /* a value no operation could accept */
    GPU_TYPE,        /* this element type cannot */
    GPU_RANGE,       /* an index outside the matrix */
    GPU_MEMORY,      /* out of memory, or more than there ever will be */
    GPU_DEVICE,      /* no such device, or operands on different ones */
    GPU_LOST,        /* the device failed; its matrices are gone */
    GPU_SINGULAR,    /* a singular system */
    GPU_INCOMPLETE,  /* what wrote an operand was interrupted */
    GPU_INTERRUPTED, /* gpu_interrupt was called */
    GPU_UNSUPPORTED, /* this kernel or backend cannot do this case */
    GPU_INTERNAL
} gpu_status;

const char *gpu_message(void);
gpu_status gpu_fail(gpu_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Safe in a signal handler: what runs stops with GPU_INTERRUPTED. A GPU, which
 * has never much work ahead of it, is waited for no longer. The flag stays up
 * until gpu_clear_interrupt. */
void gpu_interrupt(void);
void gpu_clear_interrupt(void);
int gpu_is_interrupted(void);
/* GPU_INTERRUPTED, with its message, or GPU_OK. */
gpu_status gpu_poll(void);

/* --- devices ------------------------------------------------------------ */

typedef struct gpu_device gpu_device;

/* Opens "cpu", "cuda" (the first GPU), "cuda:N", or "auto" (the first GPU if
 * there is a usable one, else the CPU). The same device is opened once. */
gpu_status gpu_open(const char *name, gpu_device **out);

/* The device new matrices live on. The first call opens it: "auto" unless
 * gpu_set_default named another. gpu_prepare opens it on a thread. */
gpu_status gpu_default(gpu_device **out);
gpu_status gpu_set_default(const char *name);
void gpu_prepare(void);
const char *gpu_default_name(void); /* as set: "auto", "cpu", "cuda:1" */
/* Called by gpu_default, once a reason, where "auto" takes the CPU although
 * there is a GPU: its driver is missing or old, it has no room, it was lost. */
void gpu_on_fallback(void (*tell)(const char *why));

const char *gpu_device_name(const gpu_device *d);        /* "cuda:0" */
const char *gpu_device_description(const gpu_device *d); /* "NVIDIA H200…" */
int gpu_device_is_cpu(const gpu_device *d);
int gpu_device_count_opened(gpu_device *const **devices);
/* What is known without waiting for a device that is being opened: the open
 * ones, and how many GPUs were found. */
int gpu_device_count_ready(gpu_device *const **devices);
int gpu_count_known(void);

typedef struct gpu_memory {
    size_t live;        /* bytes of our matrices */
    size_t peak;        /* the most there ever were */
    size_t kept;        /* what kernels keep about operands */
    size_t free, total; /* of the device, 0 when unknown */
    size_t unused;      /* part of free that trimming would give back */
} gpu_memory;
gpu_status gpu_device_memory(gpu_device *d, gpu_memory *out);
size_t gpu_device_live(const gpu_device *d); /* bytes, without asking it */
void gpu_reset_peak(gpu_device *d);          /* peak becomes live */

typedef struct gpu_peak { /* measured on first use, per second */
    double f32_flops, f64_flops, bytes;
} gpu_peak;
gpu_status gpu_device_peak(gpu_device *d, gpu_peak *out);
gpu_status gpu_device_peak_again(gpu_device *d, gpu_peak *out); /* the better */

gpu_status gpu_sync(gpu_device *d);
gpu_status gpu_sync_all(void); /* but for what is lost already */

/* Times what is issued in between: device events on a GPU, the monotonic
 * clock on the CPU. Seconds. Where timers are nested, or a trace is on, the
 * outer one goes by the clock, too; it has to begin with nothing issued. */
typedef struct gpu_timer {
    double started;
    uint64_t number;
} gpu_timer;
gpu_status gpu_timer_start(gpu_device *d, gpu_timer *t);
gpu_status gpu_timer_stop(gpu_device *d, const gpu_timer *t, double *seconds);

/* From now on d computes what gpu_map, gpu_matmul and the reductions make of
 * operands in the CPU's memory: in tiles, which come and go while it computes,
 * so that they may be larger than its memory. Results are those of operands
 * that lie on d, and lie on the CPU. Nothing made so waits. NULL: no more.
 * Returns what it was. */
gpu_device *gpu_compute_through(gpu_device *d);
/* A result of gpu_map, a conversion or gpu_matmul that does not fit its GPU
 * lies on the CPU, and is computed in tiles; with matrices on that GPU it goes
 * on being an operand of these and of reductions. What to tell the user of the
 * first such result, once; else NULL. */
const char *gpu_take_overflow(void);

/* --- injected faults ----------------------------------------------------
 * Where the environment has LUMAT_FAULT, calls of the GPU's driver can be made
 * to fail, so that what follows is tested: it holds the fault to begin with, or
 * "off". */
int gpu_has_faults(void);

/* A name of a driver's call in the source. */
typedef struct gpu_fault_site {
    const char *name;
    int usual;       /* the error that it gives where the fault names none */
    long long calls; /* since a fault was armed last */
    struct gpu_fault_site *next;
    int is_listed;
} gpu_fault_site;

/* "name:n:once": the nth call of that name from here on is not made, and gives
 * an error; "name:n:forever": nor are those behind it; the name "any" is every
 * call's; a number behind ":" is the error. "off": none fails. Counting starts
 * anew. GPU_ARGUMENT of anything else. */
gpu_status gpu_arm_fault(const char *text);
long long gpu_injected_faults(void); /* since then */
/* The names that were met so far: the one behind *site, first NULL; 0 when
 * there are no more. Two of them may be the same. */
int gpu_next_fault_site(const gpu_fault_site **site);

/* --- matrices ----------------------------------------------------------- */

typedef struct gpu_storage gpu_storage;

typedef struct gpu_matrix {
    gpu_storage *storage; /* NULL: released */
    gpu_dtype dtype;
    int ndim;                       /* 1: a vector; 2: a matrix */
    int64_t rows, cols;             /* a vector has cols = 1 */
    int64_t row_stride, col_stride; /* in elements; may be 0 or negative */
    int64_t offset;                 /* of element (0, 0), in elements */
    int is_conjugated; /* of complex ones: the conjugates of what lies there */
} gpu_matrix;

const char *gpu_dtype_name(gpu_dtype t); /* "f32" … "c128" */
int gpu_dtype_find(const char *name, gpu_dtype *out);
size_t gpu_dtype_size(gpu_dtype t);

/* A new matrix with unspecified elements, or with zeros. device NULL means the
 * default. Sizes that overflow or exceed the device are refused before
 * allocating. ndim 1 needs cols = 1. */
gpu_status gpu_create(gpu_matrix *out, gpu_device *device, gpu_dtype dtype,
                      int ndim, int64_t rows, int64_t cols);
gpu_status gpu_create_zeros(gpu_matrix *out, gpu_device *device,
                            gpu_dtype dtype, int ndim, int64_t rows,
                            int64_t cols);
void gpu_retain(const gpu_matrix *m);
void gpu_release(gpu_matrix *m); /* sets storage to NULL */

int64_t gpu_size(const gpu_matrix *m); /* elements */
size_t gpu_bytes(const gpu_matrix *m); /* elements times their size */
gpu_device *gpu_matrix_device(const gpu_matrix *m);
/* That by which both are operands of one operation, where some did not fit it
 * (see gpu_take_overflow); NULL: there is none. */
gpu_device *gpu_meeting_device(const gpu_matrix *a, const gpu_matrix *b);
int gpu_is_lost(const gpu_matrix *m);
/* Was what wrote it interrupted? Then it can only be written to, and is whole
 * again when all of it has been. Its views are incomplete as well. */
int gpu_is_incomplete(const gpu_matrix *m);
int gpu_is_contiguous(const gpu_matrix *m); /* row-major without gaps */
int gpu_shares_storage(const gpu_matrix *a, const gpu_matrix *b);
size_t gpu_storage_bytes(const gpu_matrix *m);
size_t gpu_kept_bytes(const gpu_matrix *m); /* by kernels, about it */
/* Storage remembers in which epoch it was made and written to last; a new one
 * begins when the language says so, and is given back. */
uint32_t gpu_begin_epoch(void);
uint32_t gpu_epoch_made(const gpu_matrix *m);
uint32_t gpu_epoch_written(const gpu_matrix *m);

/* Called when an allocation finds no room: the language collects its garbage
 * there and returns 1 if a retry may succeed. */
/* What matrices on the CPU and `beside`, bytes that the caller counts, may hold
 * together; 0: as much as there is. */
void gpu_limit_memory(size_t most, size_t (*beside)(void));
/* What matrices on the CPU hold. */
size_t gpu_host_live(void);
void gpu_on_memory_short(int (*collect)(void *data), void *data);

/* --- waiting ---------------------------------------------------------------
 * The results of gpu_map may wait, so that what follows them runs in the same
 * pass over memory; everything else gives them their elements first. */

typedef enum gpu_fusion {
    GPU_FUSION_ON,
    GPU_FUSION_OFF,    /* every operation runs at once */
    GPU_FUSION_ALWAYS, /* small results wait, too */
    GPU_FUSIONS
} gpu_fusion;
void gpu_set_fusion(gpu_fusion fusion);
gpu_fusion gpu_get_fusion(void);

/* Programs that a GPU has seen often get a kernel of their own, which is
 * compiled beside the work where the machine has a compiler for it. The results
 * are the same, bit for bit. */
typedef enum gpu_compile {
    GPU_COMPILE_OFF,
    GPU_COMPILE_ON,
    GPU_COMPILE_ALWAYS, /* each at its first sight, which waits for it */
    GPU_COMPILES
} gpu_compile;
void gpu_set_compile(gpu_compile how);
gpu_compile gpu_get_compile(void);

/* From now on all that is recorded is worked out by the next gpu_settle_all,
 * also where nothing holds it any longer, as for one who measures the time; 0:
 * as before. Returns what it was. */
int gpu_execute_all(int on);
/* All that waits gets its elements; or what waits for m's, before they go. What
 * cannot goes on waiting. */
gpu_status gpu_settle_all(void);
/* What waits from here on is worked out by gpu_settle_recent, what waits so far
 * when it is read: whoever recorded it was stopped, or failed. */
void gpu_leave_waiting(void);
gpu_status gpu_settle_recent(void);
gpu_status gpu_settle_readers(const gpu_matrix *m);
/* Does m's storage wait? What has been settled since this was asked last, which
 * the language did not hear of when it was made. */
int gpu_is_pending(const gpu_matrix *m);
size_t gpu_take_settled_bytes(void);
/* Called before that: the language drops the references of its youngest
 * garbage, for which nothing has to be worked out, of all its garbage, or of
 * what it wants to, as there is work anyway. */
typedef enum gpu_garbage {
    GPU_GARBAGE_DUE,
    GPU_GARBAGE_YOUNGEST,
    GPU_GARBAGE_ALL
} gpu_garbage;
void gpu_on_settling(void (*collect)(void *data, gpu_garbage which),
                     void *data);
/* Asked where a program is recorded: the line that runs, 0 if it is not known,
 * and the name of what it is in, for good. Where there is no memory when it is
 * worked out the message says so. */
void gpu_on_recording(int (*line)(void *data, const char **source), void *data);
/* Does an operation wait for such a collection, or for one of
 * gpu_on_memory_short? Its operands are in use: what the collection runs is to
 * free none of them. */
int gpu_is_collecting(void);

/* --- views: out shares m's storage, and gets a reference ------------------ */

typedef struct gpu_slice { /* first + i * step for i in 0 .. count - 1 */
    int64_t first, step, count;
} gpu_slice;

void gpu_view_transposed(const gpu_matrix *m, gpu_matrix *out);
gpu_status gpu_view_block(const gpu_matrix *m, gpu_slice rows, gpu_slice cols,
                          gpu_matrix *out);
/* What m repeats by strides of zero, once: a view as wide as one likes of a few
 * elements. Returns how often. Borrows: out gets no reference. */
int64_t gpu_without_repeats(const gpu_matrix *m, gpu_matrix *out);
void gpu_view_row(const gpu_matrix *m, int64_t i, gpu_matrix *out);
void gpu_view_column(const gpu_matrix *m, int64_t j, gpu_matrix *out);
void gpu_view_diagonal(const gpu_matrix *m, int64_t k, gpu_matrix *out);
/* A view when m's layout allows it, else a copy. Sizes must agree. */
gpu_status gpu_reshape(const gpu_matrix *m, int ndim, int64_t rows,
                       int64_t cols, gpu_matrix *out);

/* --- moving data ---------------------------------------------------------- */

/* host: row-major elements of m's own type, without gaps. Of complex ones only
 * upload and look_at_bytes take them; complex_numbers.h has the other. */
gpu_status gpu_upload(gpu_matrix *m, const void *host);
gpu_status gpu_download(const gpu_matrix *m, void *host);
/* The same for bytes that are handed on without a look at them, as to a file:
 * the only whole matrix that can be had in a dry run, which leaves host as it
 * is (and takes NULL). */
gpu_status gpu_download_unseen(const gpu_matrix *m, void *host);
/* And without a copy where that can be: *bytes is where they are, up to the
 * next operation on m, host or m's own place. */
gpu_status gpu_look_at_bytes(const gpu_matrix *m, void *host,
                             const void **bytes);
/* Where the elements of m, which has no gaps, lie in the host's memory, to be
 * written up to the next operation on m; NULL: they do not, or are pairs, or
 * this is a dry run. Then there is gpu_upload. */
void *gpu_own_bytes(gpu_matrix *m);
gpu_status gpu_get(const gpu_matrix *m, int64_t i, int64_t j, double *out);
gpu_status gpu_set(gpu_matrix *m, int64_t i, int64_t j, double value);
gpu_status gpu_fill(gpu_matrix *m, double value);
/* Converts types, crosses devices, broadcasts 1xn, mx1 and 1x1 sources. */
gpu_status gpu_copy(const gpu_matrix *from, gpu_matrix *to);
/* A contiguous copy of m as dtype on device (NULL: m's own). */
gpu_status gpu_clone(const gpu_matrix *m, gpu_dtype dtype, gpu_device *device,
                     gpu_matrix *out);

/* out[i, j] = m[rows[i], cols[j]]; out is created. rows or cols NULL: all.
 * Indices are 0-based. */
gpu_status gpu_gather(const gpu_matrix *m, const int64_t *rows, int64_t nrows,
                      const int64_t *cols, int64_t ncols, gpu_matrix *out);
/* m's elements along an axis, the i-th counts[i] times: whole numbers from 0
 * on, one for each, whose sum is total. out is created. */
gpu_status gpu_repeat(const gpu_matrix *m, int axis, const double *counts,
                      int64_t total, gpu_matrix *out);
/* m[rows[i], cols[j]] = from[i, j]; with a repeated index the last wins. A
 * matrix from is broadcast as in gpu_copy, a vector is not. name: of what asks
 * for it, in messages. */
gpu_status gpu_scatter(const char *name, const gpu_matrix *from,
                       const int64_t *rows, int64_t nrows, const int64_t *cols,
                       int64_t ncols, gpu_matrix *m);
/* The same by lists on m's device: vectors of f32 or f64, counted from 1 or,
 * below 0, from the end; NULL: all. They are looked at before anything is done,
 * and GPU_RANGE is for those that hold anything else. (What stands in f32 and
 * is not below 2^24 may have been rounded: it is no place among more.) */
gpu_status gpu_take(const gpu_matrix *m, const gpu_matrix *rows,
                    const gpu_matrix *cols, gpu_matrix *out);
gpu_status gpu_put(const char *name, const gpu_matrix *from,
                   const gpu_matrix *rows, const gpu_matrix *cols,
                   gpu_matrix *m);
/* The elements of m where mask is true, in row-major order: a vector. */
gpu_status gpu_compress(const gpu_matrix *m, const gpu_matrix *mask,
                        gpu_matrix *out);
/* Their places, counted from 1: f64. */
gpu_status gpu_find(const gpu_matrix *mask, gpu_matrix *out);
/* m[mask] = from, in row-major order; from has one element a true value. */
gpu_status gpu_expand(const gpu_matrix *from, const gpu_matrix *mask,
                      gpu_matrix *m);

/* --- computing ------------------------------------------------------------ */

/* Runs a program for every element. Inputs have one common shape, or are
 * broadcast: 1xn, mx1, 1x1. A vector goes only with vectors. When
 * out->storage is NULL, out is created with out->dtype ignored: bool for a
 * test, else f64 if any input is f64, else f32. Otherwise out is written,
 * converted to its type; it may share storage with the inputs.
 * With no inputs out must exist. name is what errors and the trace say. */
gpu_status gpu_map(const char *name, const gpu_program *p,
                   const gpu_matrix *const *in, gpu_matrix *out);
/* The same into out, which exists, for one who holds a reference to each
 * operand that nobody shall read through once out is written. So an operand
 * that waits for out's elements, and that nothing else holds, is worked out in
 * the same pass; gpu_map works it out before. */
gpu_status gpu_map_over(const char *name, const gpu_program *p,
                        const gpu_matrix *const *in, gpu_matrix *out);
/* m's elements in another type; out is created. */
gpu_status gpu_convert(const gpu_matrix *m, gpu_dtype type, gpu_matrix *out);
/* The text for good, as those who hear of operations take their names; of too
 * many it is no longer told which. */
const char *gpu_keep_name(const char *text);
/* The shape that this has of n >= 1 inputs: out has no storage and no type, and
 * the inputs need none. */
gpu_status gpu_map_shape(const char *name, const gpu_matrix *const *in, int n,
                         gpu_matrix *out);

/* p's results reduced with p->reduction: axis 1 gives 1xn (one value a
 * column), axis 2 mx1 (one a row), a vector only its whole. out is created.
 * Sums and products accumulate in f64. Places (argmin, argmax) are 0-based
 * f64; any and all give bool; sums of more bools than f32 counts are f64. */
gpu_status gpu_reduce(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, int axis, gpu_matrix *out);
/* The reduction of everything to one number; a place counts in row-major
 * order. */
gpu_status gpu_reduce_all(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in, double *out);

/* Reductions of all but norm that choose what counts. NaN may be left out.
 * Weights, for mean, var and std alone, say how reliable elements are: numbers
 * from 0 on, of m's shape or one for each place along the axis. Squares are
 * divided by n - ddof, of weights by their sum less ddof times (the sum of
 * their squares) / (their sum), and give NaN where that is not above 0. */
typedef struct gpu_choice {
    int skips_nan;
    double ddof;               /* of var and std */
    const gpu_matrix *weights; /* NULL: all count 1 */
} gpu_choice;
/* m reduced along axis as gpu_reduce does; of axis 0 out has one element, of
 * f64 or bool. none: of how many lines nothing counts: their results are NaN,
 * but those of sum, prod, any and all, which have no such line. Waits. */
gpu_status gpu_reduce_chosen(const char *name, gpu_reduction kind,
                             const gpu_matrix *m, int axis,
                             const gpu_choice *how, gpu_matrix *out,
                             int64_t *none);

/* The p-norm, p > 0 or infinite, of the elements, along axis as gpu_reduce or
 * of all; of nothing 0. Neither overflows where the norm itself does not. out
 * is created. */
gpu_status gpu_norm(const gpu_matrix *m, double p, int axis, gpu_matrix *out);
gpu_status gpu_norm_all(const gpu_matrix *m, double p, double *out);
/* The largest sum of absolute values down a column (axis 1: the matrix norm 1)
 * or along a row (2: infinity); of nothing 0. */
gpu_status gpu_norm_of_sums(const gpu_matrix *m, int axis, double *out);

/* Running sums, products or extremes along axis 1 (down), 2 (across); a vector
 * has axis 1. From a NaN on extremes are NaN. */
typedef enum gpu_scan_kind {
    GPU_SCAN_SUM,
    GPU_SCAN_PROD,
    GPU_SCAN_MAX,
    GPU_SCAN_MIN
} gpu_scan_kind;
gpu_status gpu_scan(const gpu_matrix *m, gpu_scan_kind kind, int axis,
                    gpu_matrix *out);
/* Masks: true from the first element on that is not 0, or, where is_all, up to
 * the first that is. */
gpu_status gpu_scan_truth(const gpu_matrix *m, int is_all, int axis,
                          gpu_matrix *out);

/* Sorted along axis, stable, NaN last. out gets copies, order the 0-based
 * places they came from, f64; one of the two may be NULL. */
gpu_status gpu_sort(const gpu_matrix *m, int axis, int descending,
                    gpu_matrix *out, gpu_matrix *order);

/* What stands at so many rising places (0-based) of each line when it is
 * sorted, NaN last; where NaN spreads, lines with NaN give NaN. axis 1 gives
 * count x n, 2 m x count, 0 a vector: of all elements. out is created. */
gpu_status gpu_select(const gpu_matrix *m, int axis, int spreads_nan,
                      const int64_t *places, int64_t count, gpu_matrix *out);

/* The first `count` elements of each line as gpu_sort has them, where that is
 * faster than a sort: else GPU_UNSUPPORTED, without a message. values or order
 * may be NULL. */
gpu_status gpu_sort_first(const gpu_matrix *m, int axis, int descending,
                          int64_t count, gpu_matrix *values, gpu_matrix *order);

/* Where each of values would go into `sorted`, a vector that ascends with NaN
 * last: so many of its elements come before, and 1 more; those that equal the
 * value too where is_after. out is created, f64, of values' shape. */
gpu_status gpu_search(const gpu_matrix *sorted, const gpu_matrix *values,
                      int is_after, gpu_matrix *out);

/* Runs of equal elements in `sorted`, a vector of f32 or f64 that ascends, is
 * not empty and has no NaN: values, of its type, the places at which runs
 * begin, from 1, and one behind the last, and how long they are, both f64. All
 * are created, but for those that are NULL. GPU_UNSUPPORTED in a dry run: how
 * many there are is not known. */
gpu_status gpu_find_runs(const gpu_matrix *sorted, gpu_matrix *values,
                         gpu_matrix *starts, gpu_matrix *lengths);

/* A vector of codes tells rows apart: x means group x - first, rounded down,
 * where that is one of 0 .. groups - 1; other rows, NaN among them, belong to
 * none. order: the rows, from 1, by group, each group's as they stand, behind
 * them those of none; counts: how many each group has. f64 vectors, created;
 * one may be NULL. */
gpu_status gpu_group(const gpu_matrix *codes, double first, int64_t groups,
                     gpu_matrix *order, gpu_matrix *counts);
/* Which of the groups have a row: a mask, created. */
gpu_status gpu_groups_present(const gpu_matrix *codes, double first,
                              int64_t groups, gpu_matrix *out);

typedef enum gpu_fold_kind {
    GPU_FOLD_SUM,
    GPU_FOLD_PROD,
    GPU_FOLD_MAX, /* and MIN: NaN of nothing, and where one is NaN */
    GPU_FOLD_MIN,
    GPU_FOLD_COUNT,  /* of what is not NaN */
    GPU_FOLD_SPREAD, /* the sum of (x - about)^2 */
    GPU_FOLD_MEDIAN  /* of ordered rows, on a CPU alone; NaN as of MAX */
} gpu_fold_kind;

/* The columns of a matrix, or a vector, folded group by group, by the codes of
 * gpu_group; or, where these are NULL, of rows in order: group g has those from
 * starts[g] to before starts[g + 1], counted from 1, of groups + 1 ascending
 * f64; the i-th of them is row places[i], or i where there is no places, which
 * are f64, too. out is created: f64, a row, or of a vector an element, for each
 * group. Sums do not depend on threads. */
typedef struct gpu_fold_call {
    gpu_fold_kind kind;
    int skips_nan; /* NaN counts as missing */
    const gpu_matrix *values;
    const gpu_matrix *codes;
    double first;
    int64_t groups;
    const gpu_matrix *starts, *places;
    const gpu_matrix *about; /* of GPU_FOLD_SPREAD: shaped as out */
} gpu_fold_call;
gpu_status gpu_fold(const gpu_fold_call *call, gpu_matrix *out);

typedef enum gpu_window_kind {
    GPU_WINDOW_MEAN,
    GPU_WINDOW_MIN,
    GPU_WINDOW_MAX,
    GPU_WINDOW_VAR, /* by n - 1, of a single element NaN */
    GPU_WINDOW_MEDIAN
} gpu_window_kind;
/* Along the axis, the i-th of `count` results is of the elements i + first … of
 * so many, those that there are, which has to be one at least; NaN where one of
 * them is. out is created, of m's type. */
gpu_status gpu_window(const gpu_matrix *m, gpu_window_kind kind, int axis,
                      int64_t length, int64_t first, int64_t count,
                      gpu_matrix *out);

gpu_status gpu_fill_random(gpu_matrix *m, const gpu_random *r);
/* Whole numbers, f64, of out's creation, as gpu_variates in backend.h tells:
 * mean (of binomial ones trials) and chance (NULL of Poisson's) lie on the CPU,
 * of one shape, f64. */
gpu_status gpu_create_variates(gpu_matrix *out, gpu_variate_kind kind,
                               uint64_t seed, uint64_t call,
                               const gpu_matrix *mean,
                               const gpu_matrix *chance);
/* out is created, and may wait. */
gpu_status gpu_create_random(gpu_matrix *out, gpu_device *device,
                             gpu_dtype dtype, int ndim, int64_t rows,
                             int64_t cols, const gpu_random *r);

/* --- looking --------------------------------------------------------------
 * Passes over a matrix of any layout for people to see. They wait, and are
 * not traced: what showing itself does is not news. */

typedef struct gpu_survey {
    int64_t finite, zeros, nan, inf, subnormal; /* how many */
    double min, max, mean; /* of the finite elements; NaN: there are none */
    double std, norm;      /* Frobenius; std as gpu_reduce has it */
    double squares;        /* of the distances from the mean, summed */
    /* Row-major places, 0-based, the first of equals: of the extremes, and of
     * the first NaN or Inf; -1: none. */
    int64_t min_at, max_at, odd_at;
    /* The largest i - j and j - i of an element (i, j) that is not zero:
     * 0, 0 is a diagonal matrix. GPU_NO_BAND: all are zero. */
    int64_t lower, upper;
    /* max |a_ij - a_ji| of a square matrix, in its own type; infinite where
     * only one of them is NaN. */
    double asymmetry;
} gpu_survey;
#define GPU_NO_BAND (-INT64_MAX)

/* All of it in one pass; m is not empty. (f64 whose squares leave the range
 * of f64 takes another for mean, std and norm.) */
gpu_status gpu_take_survey(const gpu_matrix *m, gpu_survey *out);

/* The edges of count bins: edge i is (from + i by) / over, each step rounded
 * once; the last is high. They ascend. */
enum { GPU_MOST_BINS = 4096 };
typedef struct gpu_edges {
    double from, by, over, high;
    int count;
} gpu_edges;
double gpu_edge(const gpu_edges *e, int i);
/* Equal bins of low .. high, which are the outer edges exactly; low <= high
 * are finite, any as far apart as f64 goes. */
gpu_edges gpu_even_edges(double low, double high, int count);
/* How many elements fall into each bin: into bin i those from edge i on and
 * below edge i + 1, into the last those at its end, too. */
gpu_status gpu_count_bins(const gpu_matrix *m, const gpu_edges *edges,
                          int64_t *counts);
/* The same as an operation of its own, told of by traces: counts, a vector of
 * f64, is created. */
gpu_status gpu_histogram(const gpu_matrix *m, const gpu_edges *edges,
                         gpu_matrix *counts);

/* m cut into rows x cols blocks as equal as can be (none empty, at most
 * GPU_MOST_BLOCKS in all), each made one f64 number. Its mean, or the largest
 * |x|, are NaN where an element is; min and max are of what is not NaN. out is
 * created. */
typedef enum gpu_block_kind {
    GPU_BLOCK_MEAN,
    GPU_BLOCK_LARGEST,
    GPU_BLOCK_MIN,
    GPU_BLOCK_MAX,
    GPU_BLOCK_KINDS
} gpu_block_kind;
enum { GPU_MOST_BLOCKS = 1 << 24 };
gpu_status gpu_blocks(const gpu_matrix *m, gpu_block_kind kind, int64_t rows,
                      int64_t cols, gpu_matrix *out);

/* --- products ------------------------------------------------------------- */

/* kernel NULL or "auto" chooses; tile 0 takes the kernel's own. */
gpu_status gpu_dot(const gpu_matrix *x, const gpu_matrix *y, const char *kernel,
                   double *out);

typedef struct gpu_product {
    double alpha, beta;
    const char *kernel;
    int tile;
    /* NULL or the operands' own type: whatever the kernel, all of it counts.
     * "tf32" or "bf16" without a kernel takes the first that has it. */
    const char *precision;
    /* c -= a b as factorisations have it, with alpha = -1 and beta = 1: of f32
     * it is right by norms, where products else are right element by element,
     * loses subnormal numbers and leaves c as it was where an operand has NaN
     * or infinities: the caller knows that none come. c may be spoilt where it
     * fails. */
    int is_update;
} gpu_product;

/* Kernels may keep in device memory what they worked out about an operand (a
 * quarter of it at most, unless the limit is set), until it is written to.
 * forget drops what is kept about m's storage. */
void gpu_forget(const gpu_matrix *m);
void gpu_set_keep_limit(gpu_device *d, size_t bytes);

/* c = alpha a b + beta c. a is mxk, b kxn; vectors act as a row on the left
 * and a column on the right, and the result is then a vector. c is created
 * when c->storage is NULL. With beta = 0, c is not read; with alpha = 0, a and
 * b are not, so that c = beta c whatever they hold. */
gpu_status gpu_matmul(const gpu_matrix *a, const gpu_matrix *b,
                      const gpu_product *how, gpu_matrix *c);
/* Shape and type of a b: out has no storage, and a and b need none. */
gpu_status gpu_product_shape(const gpu_matrix *a, const gpu_matrix *b,
                             gpu_matrix *out);

typedef struct gpu_kernel_info {
    const char *operation, *name, *idea, *needs, *precision;
    int available;
    unsigned dtypes; /* a bit 1 << dtype for each it does */
} gpu_kernel_info;
int gpu_kernel_count(gpu_device *d);
void gpu_kernel_describe(gpu_device *d, int i, gpu_kernel_info *out);
/* The kernel that auto takes for a b, or for the dot of two vectors. */
gpu_status gpu_kernel_choice(const gpu_matrix *a, const gpu_matrix *b,
                             const char **name);
/* Of a kernel by its name, which auto is not.
 * gamma: |result - exact| <= gamma |a||b| for every element. Source: Higham,
 * Accuracy and Stability of Numerical Algorithms, section 3.5. */
gpu_status gpu_kernel_bound(gpu_device *d, const char *operation,
                            const char *kernel, gpu_dtype dtype, int64_t k,
                            double *gamma);

/* --- libraries that can end the process ------------------------------------
 */

/* The word that tells a program to return what gpu_try_libraries gives. */
#define GPU_TRIAL "--try-libraries"
/* The program, which stays the caller's, that is started with that word before
 * the system's BLAS is loaded here. NULL, as at first: none. */
void gpu_set_trial(const char *program);
int gpu_try_libraries(void);

/* --- linear systems ------------------------------------------------------- */

/* How near a is to a singular matrix. rcond is the reciprocal of |a| |a^-1| in
 * the 1-norm, of which |a^-1| is estimated (often exact, seldom more than three
 * times too small); NaN where a holds NaN or Inf. is_poor: of the digits of the
 * type hardly one of the solution can be trusted. */
typedef struct gpu_condition {
    double rcond;
    int is_poor;
    /* A device may solve an f64 system by f32 factors and refinement, unless it
     * is told not to: in so many steps, 0 where it has not, until |b - a x| is
     * this backward error times |a| |x|, in the 2-norm and Frobenius's. */
    int is_direct;   /* in */
    int wants_rcond; /* in: rcond itself; else it is 1 where a is not poor */
    int steps;
    double backward_error;
} gpu_condition;

/* Of a, b of any types, in the wider of both; determinants of complex matrices:
 * complex_numbers.h. condition: NULL where it is not asked for; it costs a few
 * percent. */
gpu_status gpu_solve(const gpu_matrix *a, const gpu_matrix *b, gpu_matrix *out,
                     gpu_condition *condition);
gpu_status gpu_inverse(const gpu_matrix *a, gpu_matrix *out,
                       gpu_condition *condition);
gpu_status gpu_determinant(const gpu_matrix *a, double *out);
gpu_status gpu_rcond(const gpu_matrix *a, double *out);

/* --- factorisations ---------------------------------------------------------
 * Of an a of any type (bool counts as f32), which stays as it is; results are
 * on its device, of its type, and lie column by column. Of complex matrices
 * symmetric means Hermitian, ^T the conjugate transpose, and singular values
 * and those of eigh are real. k is the smaller of a's sides. What cannot be
 * done of these elements is no failure: it is told in a number counted from 1,
 * 0 where nothing is wrong. Places are counted from 0. A kernel is a rung of
 * the device's for "chol", "lu" or "qr" that is asked for; NULL or "auto":
 * the fastest. */

/* l: lower triangular, zeros above, l l^T = a, of which the lower triangle is
 * read. minor: the order of the first that is not positive; l is then empty. */
gpu_status gpu_cholesky(const gpu_matrix *a, const char *kernel, gpu_matrix *l,
                        int64_t *minor);
/* packed: L below the diagonal (ones on it) and U from it on, of the rows
 * places[0 .. rows - 1] of a. zero: the first on U's diagonal. */
gpu_status gpu_lu(const gpu_matrix *a, const char *kernel, gpu_matrix *packed,
                  int64_t *places, int64_t *zero);
/* Is it an odd number of exchanges that leads to these places? They are lost.
 */
int gpu_is_odd(int64_t *places, int64_t n);
/* packed: R from the diagonal on, Householder vectors below, with the k
 * elements of tau. places (NULL: no pivoting): R is of these columns of a, and
 * its diagonal falls; no kernel does that. */
gpu_status gpu_qr(const gpu_matrix *a, const char *kernel, gpu_matrix *packed,
                  gpu_matrix *tau, int64_t *places);
/* The first cols of Q's columns, k or as many as there are rows; Q b, or Q^T b
 * where it is turned, for a b of as many rows. */
gpu_status gpu_qr_q(const gpu_matrix *packed, const gpu_matrix *tau,
                    int64_t cols, gpu_matrix *q);
gpu_status gpu_qr_apply(const gpu_matrix *packed, const gpu_matrix *tau,
                        int turned, const gpu_matrix *b, gpu_matrix *out);
/* The x of t x = b or t^T x = b, t being one triangle of a square matrix. zero:
 * the first on its diagonal; x is then empty. */
typedef struct gpu_triangle {
    int is_lower, is_unit, is_turned;
} gpu_triangle;
gpu_status gpu_solve_triangle(const gpu_matrix *t, gpu_triangle how,
                              const gpu_matrix *b, gpu_matrix *x,
                              int64_t *zero);
/* a = u diag(s) v^T, s falling: a vector of k. Of the thin ones u and v have k
 * columns, of the full ones they are square; of none they are empty. trouble:
 * it did not converge. */
typedef enum gpu_svd_parts {
    GPU_SVD_VALUES,
    GPU_SVD_THIN,
    GPU_SVD_FULL
} gpu_svd_parts;
gpu_status gpu_svd(const gpu_matrix *a, gpu_svd_parts parts, gpu_matrix *s,
                   gpu_matrix *u, gpu_matrix *v, int64_t *trouble);
/* a = v diag(values) v^T of a symmetric a, of which the lower triangle is
 * read; values, a vector, rise. v NULL: without. */
gpu_status gpu_eigh(const gpu_matrix *a, gpu_matrix *values, gpu_matrix *v,
                    int64_t *trouble);
/* The same of a v = b v diag(values), v^T b v = 1, b positive definite; minor:
 * the order of b's first leading minor that is not. */
gpu_status gpu_eigh_pair(const gpu_matrix *a, const gpu_matrix *b,
                         gpu_matrix *values, gpu_matrix *v, int64_t *trouble,
                         int64_t *minor);

/* Of any square a: values are real + i imaginary, vectors of length 1 in
 * columns; of a pair of complex values, the one above the axis first, the two
 * columns hold the real and the imaginary part of the first's vector, whose
 * conjugate is the other's. Those of a complex a are complex: the values stand
 * in `real`, the columns are the vectors. trouble: so many values did not
 * converge. */
typedef struct gpu_eigen {
    gpu_matrix real, imaginary; /* vectors; of a complex a one */
    gpu_matrix right, left;     /* those that are wanted; else empty */
} gpu_eigen;
enum { GPU_EIGEN_RIGHT = 1, GPU_EIGEN_LEFT = 2 };
gpu_status gpu_eig(const gpu_matrix *a, int wants, gpu_eigen *out,
                   int64_t *trouble);
/* Of beta a v = alpha b v, a and b square: alpha is as above, and real has the
 * betas behind it; vectors are not of length 1. */
gpu_status gpu_eig_pair(const gpu_matrix *a, const gpu_matrix *b, int wants,
                        gpu_eigen *out, int64_t *trouble);
/* a = q t q^T, q orthonormal; t: an upper triangle but of a real a for a 2 x 2
 * block on the diagonal for each pair of complex eigenvalues. trouble as above.
 */
gpu_status gpu_schur(const gpu_matrix *a, gpu_matrix *t, gpu_matrix *q,
                     int64_t *trouble);
/* a = q h q^T, h zero below its first subdiagonal. */
gpu_status gpu_hessenberg(const gpu_matrix *a, gpu_matrix *h, gpu_matrix *q);
/* Of a symmetric a (its lower triangle is read), of any signs: L D L^T are its
 * rows and columns places[0 .. n - 1]. packed: L below the diagonal (ones on
 * it), D's diagonal on it; below: D's subdiagonal and a last 0; it is not 0 in
 * 2 x 2 blocks, which do not overlap. */
gpu_status gpu_ldl(const gpu_matrix *a, gpu_matrix *packed, gpu_matrix *below,
                   int64_t *places);
/* Of a square matrix: how many diagonals below and above the main one have
 * elements other than 0, whether it is its own transpose, and whether then its
 * diagonal is known to be positive. */
typedef struct gpu_structure {
    int64_t below, above;
    int is_symmetric, is_positive;
} gpu_structure;
gpu_status gpu_find_structure(const gpu_matrix *a, gpu_structure *out);
/* The x of a x = b, a matrix, for an a of so many. zero: the first pivot that
 * is 0. */
gpu_status gpu_solve_band(const gpu_matrix *a, int64_t below, int64_t above,
                          const gpu_matrix *b, gpu_matrix *x, int64_t *zero);
/* Of `count` systems whose a (n x n) and b (n x m) stand below each other:
 * their x, likewise. singular: the first that has a zero for a pivot; x is then
 * without meaning from there on. */
gpu_status gpu_solve_batch(const gpu_matrix *a, const gpu_matrix *b,
                           int64_t count, gpu_matrix *x, int64_t *singular);
/* The x of t x + x s = c, for two t of gpu_schur. trouble 1: t and -s share an
 * eigenvalue, or nearly. */
gpu_status gpu_sylvester(const gpu_matrix *t, const gpu_matrix *s,
                         const gpu_matrix *c, gpu_matrix *x, int64_t *trouble);

/* --- sparse matrices ------------------------------------------------------ */

/* Compressed rows: row i has the entries starts[i] .. starts[i + 1] - 1 of
 * columns and values, columns ascending. Sizes and the number of entries are
 * below 2^31. Nothing is written once it is made, so copies share arrays.
 * Entries may be zero; a place without one is skipped in products, so what
 * NaN or Inf would meet there does not show. */
typedef struct gpu_sparse {
    gpu_matrix starts, columns; /* vectors called f32 with int32 bits in them */
    gpu_matrix values;          /* a vector: f32, f64, c64 or c128 */
    int64_t rows, cols, count;
} gpu_sparse;

typedef struct gpu_triplets { /* value[k] at (row[k], col[k]), 0-based */
    int64_t rows, cols, count;
    const int64_t *row, *col;
    const double *value;
    int is_complex; /* value has pairs */
} gpu_triplets;

void gpu_sparse_release(gpu_sparse *s);
size_t gpu_sparse_bytes(const gpu_sparse *s);

/* Vectors of one length, on any devices: value[k] at (row[k], col[k]), 1-based
 * whole numbers of any real type. */
typedef struct gpu_sparse_lists {
    int64_t rows, cols; /* -1: the largest of row, or of col */
    const gpu_matrix *row, *col, *value;
} gpu_sparse_lists;

/* Making and unmaking run on the CPU: of matrices on a GPU all bytes cross
 * the bus. Triplets in one place are added up in the order given, in f64. Of a
 * dense matrix all elements but zeros are kept; NaN is. device NULL: of lists
 * and triplets the default one, else the matrix's own. */
gpu_status gpu_sparse_build(const gpu_sparse_lists *l, gpu_dtype dtype,
                            gpu_device *device, gpu_sparse *out);
gpu_status gpu_sparse_create(gpu_sparse *out, gpu_device *device,
                             gpu_dtype dtype, const gpu_triplets *from);
gpu_status gpu_sparse_from_dense(const gpu_matrix *m, gpu_dtype dtype,
                                 gpu_device *device, gpu_sparse *out);
/* rows x cols with columns of `diagonals` on the count diagonals whose offsets
 * are told, above the main one where positive, none twice; row j belongs to
 * column j, a single row to all. Zeros are left out. */
gpu_status gpu_sparse_from_diagonals(const gpu_matrix *diagonals,
                                     const int64_t *offsets, int64_t rows,
                                     int64_t cols, gpu_dtype dtype,
                                     gpu_device *device, gpu_sparse *out);
gpu_status gpu_sparse_to_dense(const gpu_sparse *s, gpu_matrix *out);
gpu_status gpu_sparse_transposed(const gpu_sparse *s, gpu_sparse *out);
/* As dtype on device (NULL: s's own). */
gpu_status gpu_sparse_clone(const gpu_sparse *s, gpu_dtype dtype,
                            gpu_device *device, gpu_sparse *out);
/* s's places with other values, in the same order: a vector of s's count on its
 * device, plain or conjugated, f32, f64, c64 or c128. */
gpu_status gpu_sparse_with_values(const gpu_sparse *s, const gpu_matrix *values,
                                  gpu_sparse *out);
/* out[i, j] = s[rows[i], cols[j]], on s's device, with what is stored there,
 * zeros as well; out is created. rows or cols NULL: all. Indices are 0-based.
 * Where rows end crosses the bus, and the columns of the chosen rows' entries
 * when columns are chosen, too; values stay where they are. */
gpu_status gpu_sparse_gather(const gpu_sparse *s, const int64_t *rows,
                             int64_t nrows, const int64_t *cols, int64_t ncols,
                             gpu_sparse *out);

/* Where entries are, counted from 1, in row-major order: f64 vectors on s's
 * device, which are created. */
gpu_status gpu_sparse_places(const gpu_sparse *s, gpu_matrix *rows,
                             gpu_matrix *cols);
/* out = s without entries whose absolute values are tolerance or less, created
 * on its device. */
gpu_status gpu_sparse_prune(const gpu_sparse *s, double tolerance,
                            gpu_sparse *out);

/* out has a 1 at the entries where mask, a vector of s's count, is true; f32,
 * created on s's device. */
gpu_status gpu_sparse_where(const gpu_sparse *s, const gpu_matrix *mask,
                            gpu_sparse *out);

/* Chosen rows and columns, 0-based; NULL: all. */
typedef struct gpu_places {
    const int64_t *rows, *cols;
    int64_t nrows, ncols;
} gpu_places;
/* out = s with the block x, of s's type or one that converts to it, in the
 * place of the rows and columns, also where it stores nothing; of one that is
 * named again the last is there. It is created on s's device; all of s is
 * copied, and on a GPU crosses the bus. */
gpu_status gpu_sparse_put(const gpu_sparse *s, const gpu_sparse *x,
                          const gpu_places *to, gpu_sparse *out);

/* What two sparse matrices of one device become, in the wider of their types:
 * a matrix of their shape, of what is stored in both where they are multiplied,
 * else in either, without entries that come out as 0; or the matrix product, of
 * all that an entry of both contributes to. out is created. */
typedef enum gpu_sparse_op {
    GPU_SPARSE_ADD,
    GPU_SPARSE_SUB,
    GPU_SPARSE_MUL,
    GPU_SPARSE_PRODUCT
} gpu_sparse_op;
gpu_status gpu_sparse_combine(const char *name, gpu_sparse_op op,
                              const gpu_sparse *a, const gpu_sparse *b,
                              gpu_sparse *out);
/* s multiplied with itself n times; of n = 0 the unit matrix. out is created.
 */
gpu_status gpu_sparse_power(const gpu_sparse *s, int64_t n, gpu_sparse *out);
/* The elements of m, a matrix of s's shape, or of one row or column for all of
 * them, where s has entries, in their order: a vector of m's type. */
gpu_status gpu_sparse_sample(const char *name, const gpu_sparse *s,
                             const gpu_matrix *m, gpu_matrix *out);
/* out = s d, out is created, of the wider of both types. A vector is a column
 * and gives a vector. A kernel is a rung for "spmv", of one column, or "spmm"
 * that is asked for; NULL or "auto": the fastest. */
gpu_status gpu_sparse_multiply(const gpu_sparse *s, const gpu_matrix *d,
                               const char *kernel, gpu_matrix *out);

/* The same of s's transpose, with its bits, where the device does without its
 * making and that is the shorter way; GPU_UNSUPPORTED, and no message: it is
 * not. */
gpu_status gpu_sparse_multiply_turned(const gpu_sparse *s, const gpu_matrix *d,
                                      gpu_matrix *out);

/* The rung that auto takes for s d, which fit; NULL: there are none. */
gpu_status gpu_sparse_kernel_choice(const gpu_sparse *s, const gpu_matrix *d,
                                    const char **name);

/* Which entry is at (i, j), 0-based; -1: none is stored there, or, in a dry
 * run, nobody looks. */
gpu_status gpu_sparse_find(const gpu_sparse *s, int64_t i, int64_t j,
                           int64_t *entry);
/* Same shape and same elements, whatever is stored. */
gpu_status gpu_sparse_equal(const gpu_sparse *a, const gpu_sparse *b,
                            int *equal);
/* What the pattern of entries, zeros among them, is like. */
typedef struct gpu_sparse_pattern {
    int64_t empty_rows, longest_row;        /* entries of the fullest row */
    int64_t lower, upper;                   /* as in gpu_survey */
    int is_symmetric, has_symmetric_values; /* without conjugation */
} gpu_sparse_pattern;
gpu_status gpu_sparse_survey(const gpu_sparse *s, gpu_sparse_pattern *out);
/* How many entries lie in each of rows x cols blocks, cut as in gpu_blocks;
 * with means not NULL, which is of real matrices, also the sum of a block's
 * entries over its size. Only entries cross the bus. */
gpu_status gpu_sparse_blocks(const gpu_sparse *s, int64_t rows, int64_t cols,
                             int64_t *counts, double *means);

/* Places (0-based) and values, of complex ones pairs, of count entries from the
 * first-th on, in row-major order. Only these cross the bus. */
gpu_status gpu_sparse_entries(const gpu_sparse *s, int64_t first, int64_t count,
                              int64_t *rows, int64_t *cols, double *values);
/* The block's values, row-major, of complex ones pairs, zero where nothing is
 * stored, and whether something is. Only its entries, and what finds them,
 * cross the bus. */
gpu_status gpu_sparse_block(const gpu_sparse *s, gpu_slice rows, gpu_slice cols,
                            double *values, uint8_t *stored);
/* How many entries come before the place (i, j), in row-major order. */
gpu_status gpu_sparse_rank(const gpu_sparse *s, int64_t i, int64_t j,
                           int64_t *out);

/* Reductions of s, places without an entry being 0, as gpu_reduce and
 * gpu_reduce_chosen give them of the dense matrix: all but argmin and argmax,
 * without weights. axis is 1 or 2. none: of how many lines nothing counts. out
 * is created on s's device; what it has no code for the CPU does, and then
 * entries cross the bus. Of all elements out is a pair where gpu_is_complex(s)
 * and gpu_reduces_to_complex, else a number; of any and all 0 or 1. */
gpu_status gpu_sparse_reduce(const char *name, gpu_reduction kind,
                             const gpu_sparse *s, int axis,
                             const gpu_choice *how, gpu_matrix *out,
                             int64_t *none);
gpu_status gpu_sparse_reduce_all(const char *name, gpu_reduction kind,
                                 const gpu_sparse *s, const gpu_choice *how,
                                 double out[2], int64_t *none);
/* As gpu_norm, with axis 1 or 2, and gpu_norm_of_sums. */
gpu_status gpu_sparse_norm(const gpu_sparse *s, double p, int axis,
                           gpu_matrix *out);
gpu_status gpu_sparse_norm_of_sums(const gpu_sparse *s, int axis, double *out);
/* The k-th diagonal, above the main one where k > 0, a vector. */
gpu_status gpu_sparse_diagonal(const char *name, const gpu_sparse *s, int64_t k,
                               gpu_matrix *out);
/* Row (axis 1) or column (2) number `place`, 0-based, a vector. */
gpu_status gpu_sparse_line(const gpu_sparse *s, int axis, int64_t place,
                           gpu_matrix *out);
/* The elements of s at the places of the entries of `places`, in their order: a
 * vector of s's type. Both have one shape and device. */
gpu_status gpu_sparse_lookup(const gpu_sparse *s, const gpu_sparse *places,
                             gpu_matrix *out);

/* New matrices of the entries of others, created on their device; the CPU makes
 * them where it has no code for it. Those of several have the widest type.
 *
 * What lies on diagonals first .. last, counted as gpu_sparse_diagonal does. */
gpu_status gpu_sparse_band(const char *name, const gpu_sparse *s, int64_t first,
                           int64_t last, gpu_sparse *out);
/* The Kronecker product. */
gpu_status gpu_sparse_kron(const gpu_sparse *a, const gpu_sparse *b,
                           gpu_sparse *out);
/* count >= 1 of them one above the other (axis 1) or side by side (2). */
gpu_status gpu_sparse_join(const char *name, int axis,
                           const gpu_sparse *const *parts, int64_t count,
                           gpu_sparse *out);
/* The same elements, row by row, as rows x cols. */
gpu_status gpu_sparse_reshape(const gpu_sparse *s, int64_t rows, int64_t cols,
                              gpu_sparse *out);
/* s with the entries of x, of its shape, in place of what it has there; where
 * one is 0 nothing remains. Of s's type. */
gpu_status gpu_sparse_replace(const gpu_sparse *s, const gpu_sparse *x,
                              gpu_sparse *out);

/* Factors of s, made by SuiteSparse on the CPU in f64 or c128; of one on a GPU
 * its entries cross the bus. They are of the transpose M of s: M = L U with
 * rows scaled and reordered; L L^H, of which the upper half of M is read; Q R,
 * where s has no more rows than columns; or, by LAPACK, the first two within
 * M's band, of L L^H from its lower half. */
typedef enum gpu_sparse_factoring {
    GPU_SPARSE_LU,
    GPU_SPARSE_CHOL,
    GPU_SPARSE_QR,
    GPU_SPARSE_BANDED,
    GPU_SPARSE_BANDED_CHOL
} gpu_sparse_factoring;
typedef struct gpu_sparse_report {
    int64_t trouble; /* 0, or of LU how many pivots are zero, of L L^H which,
                      * in the order it chose, is not positive */
    int64_t rank;    /* of Q R */
    int is_single;   /* s was f32 or c64, which the rank is found by */
    int64_t count;   /* entries of the factors */
} gpu_sparse_report;
typedef struct gpu_sparse_factors gpu_sparse_factors;
/* *out is to be freed; where there is trouble it does not solve. */
gpu_status gpu_sparse_factor(const gpu_sparse *s, gpu_sparse_factoring how,
                             gpu_sparse_report *told, gpu_sparse_factors **out);
/* Each row of b is a right side, and each of x, which is created on the CPU in
 * the factors' type, its solution. Of LU: s x = b, or turned M x = b; of L L^H:
 * M x = b; of Q R the x for which |M x - b| is least, or turned the shortest
 * with M^H x = b. */
gpu_status gpu_sparse_solve(gpu_sparse_factors *f, int turned,
                            const gpu_matrix *b, gpu_matrix *x);
void gpu_sparse_factors_free(gpu_sparse_factors *f);
/* About what they take, with the copy of s that is a matrix on the CPU; and all
 * that there are without these copies, which no device counts. */
size_t gpu_sparse_factors_bytes(const gpu_sparse_factors *f);
size_t gpu_sparse_all_factors_bytes(void);

/* Factors of a square s that have entries where s has some, and whose product
 * is s there, ILU(0) and IC(0): L with ones on its diagonal, and U; or, where
 * upper is NULL, L of L L^H, of which the lower half of s is read. They are
 * created on the CPU, in f64 or c128, on which the entries of s cross the bus;
 * where told has a row there are none. */
typedef struct gpu_sparse_breakdown {
    int64_t row;     /* 0: none; from 1: the first whose pivot is of no use */
    int is_missing;  /* nothing is stored on the diagonal there */
    double pivot[2]; /* else; re, im */
} gpu_sparse_breakdown;
gpu_status gpu_sparse_incomplete_factors(const gpu_sparse *s, gpu_sparse *lower,
                                         gpu_sparse *upper,
                                         gpu_sparse_breakdown *told);

/* How many diagonals below and above the main one have entries; the rest of out
 * is 0. */
gpu_status gpu_sparse_bands(const gpu_sparse *s, gpu_structure *out);
/* s x = b, or turned s^H x = b, of the lower or upper half of a square s, by
 * substitution on the CPU in f64 or c128; lines as in gpu_sparse_solve. *zero:
 * 0, or where (1-based) the first zero on the diagonal was met: then there is
 * no x. */
gpu_status gpu_sparse_solve_triangle(const gpu_sparse *s, int is_lower,
                                     int is_turned, const gpu_matrix *b,
                                     gpu_matrix *x, int64_t *zero);

/* Graphs: a square s whose entry at (i, j), be it zero, is an edge from node i
 * to node j. What these give are f64 vectors on s's device with an element for
 * each node; they are created, and searched for on the CPU.
 *
 * Of each node how many edges leave it. */
gpu_status gpu_graph_degrees(const gpu_sparse *s, gpu_matrix *out);
/* Of each node the number of its component, from 1, in the order of the
 * components' first nodes. Nodes belong together where edges lead from one to
 * the other, taken both ways; is_strong: where a way leads there and back. */
gpu_status gpu_graph_components(const gpu_sparse *s, int is_strong,
                                gpu_matrix *numbers, int64_t *count);
/* Of each node how many edges the shortest way from node `from` (0-based) has,
 * INFINITY: none leads there; and the node before it, from 1, NaN: none. */
gpu_status gpu_graph_walk(const gpu_sparse *s, int64_t from, gpu_matrix *depths,
                          gpu_matrix *previous);
/* The same where an edge is as long as its entry says. trouble becomes 0, or
 * a node, from 1, on a circle of negative length that can be reached: then no
 * way is the shortest. */
gpu_status gpu_graph_paths(const gpu_sparse *s, int64_t from,
                           gpu_matrix *distances, gpu_matrix *previous,
                           int64_t *trouble);

/* --- amounts as text ------------------------------------------------------ */
/* As they are written wherever people read them. In a ring of static buffers:
 * eight texts hold at once. */

const char *gpu_shape_text(const gpu_matrix *m);       /* "3x4" or "vector 5" */
const char *gpu_size_text(int64_t rows, int64_t cols); /* "3x4" */
const char *gpu_bytes_text(size_t bytes);              /* "64.0 MiB" */

/* Units, each `step` times the one before; NULL ends them. */
typedef struct gpu_units {
    double step;
    const char *names[8];
} gpu_units;
extern const gpu_units gpu_byte_units;

/* x in the first unit in which fewer than `step` of it are shown, with so many
 * significant digits, or, where that is below 0, so many decimal places; all
 * digits of what has more in the last unit, and no places of what is whole in
 * the first. */
const char *gpu_amount_text(double x, const gpu_units *units, int digits);

/* --- what happened -------------------------------------------------------- */

typedef struct gpu_event {
    const char *operation, *kernel; /* these texts stay */
    const gpu_device *device;
    /* Those that computed it, the device first (team.h), while it is reported.
     */
    const struct gpu_team *team;
    int64_t m, n, k; /* shape of the result; k: inner dimension or 0 */
    int ndim;        /* of the result, 1: a vector; 0: not said */
    gpu_dtype dtype;
    double seconds, flops, bytes; /* flops and bytes that had to be done */
    int fallback;                 /* 1: ran on the CPU, data crossed the bus */
    gpu_status status;            /* not GPU_OK: it failed, see gpu_message */
    double checked; /* deviation relative to its bound; -1: not checked */
} gpu_event;

/* Called after every operation, which is then waited for; also for what
 * crosses the bus ("upload", "download"). NULL: off. report must not compute
 * anything, nor fail. */
void gpu_set_trace(void (*report)(const gpu_event *e, void *data), void *data);
/* Keeps quiet between 1 and 0, and checks nothing: what printing itself does
 * is not news. Gives back what it was. */
int gpu_pause_trace(int paused);

/* Every product checked as it is made, by Freivalds' way: for a vector x of
 * random signs, C x is compared with A (B x) in f64, in O(mk + kn + mn). An
 * error beyond what the kernel's bound allows is a GPU_INTERNAL that names
 * the kernel. Source: Freivalds, Probabilistic machines can use less running
 * time, 1977. */
typedef struct gpu_checks {
    uint64_t products; /* since the start */
    uint64_t partly;   /* of them with rows whose bound is NaN or Inf */
    double worst;      /* largest deviation relative to its bound */
    const char *worst_kernel;
} gpu_checks;
void gpu_set_check(int on);
int gpu_is_checking(void);
const gpu_checks *gpu_checked(void);

typedef struct gpu_counters {
    uint64_t operations, allocations, uploaded, downloaded, fallbacks;
    uint64_t allocated;
    uint64_t compiled; /* programs that ran on kernels compiled for them */
} gpu_counters;        /* uploaded, downloaded and allocated in bytes */
const gpu_counters *gpu_counts(void);

/* --- dry runs ---------------------------------------------------------------
 * A state in which every device has no bytes. Operations, on matrices that
 * exist, too, check types and shapes and tell of themselves as ever, but write
 * nothing: what is made has a shape, a type and a device, and no elements, and
 * is of no use afterwards. An event's seconds are predicted, from what the
 * device it stands for is measured to do. A single element that is read, or a
 * reduction to one, is 1 and means nothing: gpu_is_dry tells who asks for it.
 * What needs the elements themselves fails. */

/* data goes to both functions, which may be NULL and must not compute; the
 * struct has to stay until the end. product: c = a b was made. predicts: 0
 * where nobody asks for times; events have 0 seconds then. overhead: seconds
 * that the caller takes for an operation, however small: none is predicted to
 * take less. */
typedef struct gpu_dry_watch {
    void (*event)(const gpu_event *e, void *data);
    void (*product)(const gpu_matrix *a, const gpu_matrix *b,
                    const gpu_matrix *c, void *data);
    void *data;
    int predicts;
    double overhead;
} gpu_dry_watch;

typedef struct gpu_dry_report { /* bytes */
    uint64_t allocated;
    uint64_t peak; /* the most at once, beyond what there was */
} gpu_dry_report;

/* Fails where one goes on. Between the two traces and checks of the user's
 * rest, and counters stand still: nothing of them is told or changed. end does
 * nothing where none goes on; report may be NULL. */
gpu_status gpu_begin_dry(const gpu_dry_watch *watch);
void gpu_end_dry(gpu_dry_report *report);
int gpu_is_dry(void);
/* The number of m's storage among all that were made dry; 0: it is real. */
uint32_t gpu_dry_number(const gpu_matrix *m);

/* Stops threads and gives everything back; matrices must be released. */
void gpu_shutdown(void);

#endif
