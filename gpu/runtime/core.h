/* What the files of gpu/ itself share: devices and storage from the inside,
 * checks, and the trace. Not for backends, not for other folders. */
#ifndef GPU_CORE_H
#define GPU_CORE_H

#include "backend.h"
#include "team.h"

#define TRY(call)                       \
    do {                                \
        gpu_status try_status = (call); \
        if (try_status != GPU_OK)       \
            return try_status;          \
    } while (0)

typedef struct gpu_kept gpu_kept;
typedef struct gpu_pending gpu_pending;

struct gpu_device {
    const gpu_backend *backend; /* what computes: in a dry run the dry one */
    const gpu_backend *own;     /* the device's, in a dry run; else NULL */
    void *handle;
    int index, is_cpu;
    char name[24];
    size_t live, peak_live; /* bytes of storage */
    size_t waiting;         /* and of what waits */
    size_t roomy;           /* so many of both there was room for, once */
    gpu_peak peak;          /* bytes = 0: not measured yet */
    gpu_kept *kept;         /* what kernels keep about operands */
    size_t kept_bytes, keep_limit;
    int kept_count, keep_limit_known;
    uint64_t keep_round; /* counts products that ended */
    int is_multiplying;  /* a product's kernel is running */
    uint64_t timers;     /* how many were started */
    gpu_storage *answer; /* of the backend's slot; NULL: not made yet */
};

/* Small, as matrices of a few elements are little else: with those behind it a
 * block of 128 bytes of malloc's. */
struct gpu_storage {
    gpu_device *device;
    void *data;
    size_t bytes;
    gpu_pending *pending; /* what will be its elements; NULL: they are there */
    int references;
    int readers;             /* operands of what waits that lie in it */
    unsigned kept : 27;      /* how many things are kept about it */
    unsigned home : 4;       /* see gpu_home_of; 0: where it lies */
    unsigned incomplete : 1; /* what wrote it was interrupted */
    uint32_t made, written;  /* epochs */
    uint32_t dry;            /* its number among those without bytes; 0: real */
};

/* The dry run that goes on (see gpu_begin_dry), or NULL. */
typedef struct gpu_dry_run {
    int (*adopt)(
        gpu_device *d); /* one that is opened meanwhile; 0: it cannot */
    const gpu_dry_watch *watch;
    uint32_t before;   /* numbers up to it are of earlier runs */
    uint32_t made;     /* the last number */
    size_t live, peak; /* bytes that its storages would hold */
    size_t fresh;      /* made since garbage was collected last */
    double collecting; /* seconds that this took */
} gpu_dry_run;
extern gpu_dry_run *gpu_dry;

/* May all garbage be collected once more in it? That takes half a second. */
int gpu_may_collect_dry(void);
/* The failure of what would look at elements in a dry run. */
gpu_status gpu_fail_unread(void);
/* The dry run's trace in place of the user's, whose checks rest, too. */
void gpu_begin_dry_trace(void);
void gpu_end_dry_trace(void);

/* In loops of gpu/ itself, every so many rounds. */
enum { GPU_POLL = 1 << 18 };
#define POLL_AT(i)               \
    do {                         \
        if ((i) % GPU_POLL == 0) \
            TRY(gpu_poll());     \
    } while (0)

/* What else the CUDA backend's object has, by its symbol; NULL: nothing, or
 * there is none. */
const void *gpu_find_in_cuda(const char *symbol);

extern gpu_counters gpu_counted;

/* Around work which no trace, check or count is to show: what it was before,
 * and that again, whatever the work's status, which is given back. */
typedef struct gpu_quiet {
    gpu_counters counters;
    int paused;
} gpu_quiet;
gpu_quiet gpu_begin_quiet(void);
gpu_status gpu_end_quiet(gpu_quiet before, gpu_status status);

gpu_view gpu_view_of(const gpu_matrix *m);
gpu_view gpu_turned(const gpu_view *v); /* transposed */
/* The rows x cols of v from (row, col) on. */
gpu_view gpu_part(const gpu_view *v, int64_t row, int64_t col, int64_t rows,
                  int64_t cols);
/* The same for writing: what was kept about the storage is dropped. note_write
 * is that alone, outside of dry runs. */
gpu_view gpu_target_of(const gpu_matrix *m);
void gpu_note_write(const gpu_matrix *m);
/* What wrote m was stopped; or all of m has been written, which makes it whole
 * again if that is the whole storage. */
void gpu_leave_incomplete(const gpu_matrix *m);
void gpu_make_whole(const gpu_matrix *m);

/* A 1x1 f64 matrix for a result that is read at once, where the device has a
 * quicker place for it than its memory; 0: it has none. */
int gpu_take_answer(gpu_device *d, gpu_matrix *out);
/* Is there surely not too little memory for so many bytes? Only of many is the
 * device asked. */
int gpu_has_room(gpu_device *d, size_t bytes);
/* Storage for what waits: without bytes until it is given some, which it then
 * points data at, or which are taken back. */
gpu_status gpu_create_pending(gpu_matrix *out, gpu_device *d, gpu_dtype dtype,
                              int ndim, int64_t rows, int64_t cols);
gpu_status gpu_give_bytes(gpu_storage *s, void **data);
void gpu_take_bytes(gpu_storage *s, void *data);

/* A program together with those of its operands that wait (pending.c), where
 * it goes over rows x cols elements. Holds references until it is ended. There
 * is room for so many more constants and instructions, if p has it. */
enum { GPU_SPARE = 2 };
typedef struct gpu_composition {
    gpu_program p;
    gpu_dtype type; /* what it is said to compute in; p's may be another */
    gpu_matrix in[GPU_MAX_INPUTS];
    const gpu_matrix *inputs[GPU_MAX_INPUTS]; /* of the above */
    gpu_random draw[GPU_MAX_INPUTS];          /* p's */
    const char *name; /* of all its operations, for good */
} gpu_composition;
gpu_status gpu_compose(const char *name, const gpu_program *p,
                       const gpu_matrix *const *in, int64_t rows, int64_t cols,
                       gpu_composition *c);
/* The same of a program that is to write to out, which exists and may be one
 * of its operands: when it is composed nothing else waits that would read out.
 * are_own: see gpu_map_over. */
gpu_status gpu_compose_over(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, int are_own,
                            const gpu_matrix *out, gpu_composition *c);
void gpu_end_composition(gpu_composition *c);
/* Does any of p's operands wait? Does p use an element's place? */
int gpu_waits_any(const gpu_program *p, const gpu_matrix *const *in);
int gpu_uses_places(const gpu_program *p);
/* May the result of so many elements of this type wait? Then out, made by
 * gpu_create_pending, does so. in has no more inputs than p. */
int gpu_may_record(const gpu_program *p, gpu_device *d, gpu_dtype type,
                   int64_t elements);
gpu_status gpu_record(const char *name, const gpu_program *p,
                      const gpu_matrix *const *in, const gpu_matrix *out);
/* The same of random numbers; and runs them, r having been checked. */
int gpu_may_record_random(gpu_device *d, gpu_dtype type, int64_t elements);
gpu_status gpu_record_random(const gpu_random *r, const gpu_matrix *out);
gpu_status gpu_run_random(const gpu_matrix *out, const gpu_random *r);
/* A product whose result waits. run computes that of the factors, which wait
 * for nothing, into out; or what c, for which the result is input number
 * `product`, makes of it. */
typedef struct gpu_waiting_product gpu_waiting_product;
struct gpu_waiting_product {
    gpu_status (*run)(const gpu_waiting_product *w, const gpu_matrix factors[2],
                      const gpu_composition *c, int product, gpu_matrix *out);
    const gpu_kernel *kernel;
    int is_chosen; /* by auto */
    int tile;
    double alpha;
};
/* As the two for programs; of so many flops. What waits of products before it
 * is to be settled first. */
int gpu_may_record_product(gpu_device *d, const gpu_kernel *k, gpu_dtype type,
                           int64_t elements, double flops);
gpu_status gpu_record_product(const gpu_waiting_product *product,
                              const gpu_matrix factors[2],
                              const gpu_matrix *out);
/* Products that are wanted wait no longer; what takes one in is worked out with
 * it. */
gpu_status gpu_settle_products(void);
/* m gets its elements. */
gpu_status gpu_settle(const gpu_matrix *m);
/* Runs p, whose operands wait for nothing and have out's shape or are broadcast
 * to it, into out. */
gpu_status gpu_run_map(const char *name, const gpu_program *p,
                       const gpu_matrix *const *in, gpu_matrix *out);
/* The same into several new matrices of one shape and type, the first and one
 * for each further result of p. GPU_UNSUPPORTED, without a message: the device
 * had rather work them out apart. */
gpu_status gpu_run_joined(const char *name, const gpu_program *p,
                          const gpu_matrix *const *in,
                          const gpu_matrix *const *out);
/* Storage that waits is no more; nothing waits any longer, and what did never
 * gets its elements. */
void gpu_drop_pending(gpu_storage *s);
void gpu_drop_waiting(void);
/* What waits is worked out as far as there is memory, of which then there may
 * be more: its operands go. While that goes on nothing else looks for room. */
void gpu_settle_for_room(void);
int gpu_is_making_room(void);
/* How many of the language's collections go on that gpu/ asked for. */
extern int gpu_collections;

/* GPU_OK when all n matrices are alive, complete and on one device, which out
 * gets; then none of them waits. For one that is only written to: also when it
 * is incomplete; nothing waits that would read it. */
gpu_status gpu_check_waiting(const char *name, const gpu_matrix *const *in,
                             int n, gpu_device **out); /* they may wait */
gpu_status gpu_check_operands(const char *name, const gpu_matrix *const *in,
                              int n, gpu_device **out);
gpu_status gpu_check_target(const char *name, const gpu_matrix *m,
                            gpu_device **device);
gpu_status gpu_check_alive(const char *name, const gpu_matrix *m,
                           gpu_device **device); /* that alone */
/* The same where operands, or the target, may be complex, which those refuse
 * with GPU_TYPE. */
gpu_status gpu_check_complex(const char *name, const gpu_matrix *const *in,
                             int n, gpu_device **out);
gpu_status gpu_check_complex_target(const char *name, const gpu_matrix *m,
                                    gpu_device **device);
/* A c64 matrix as one of f64, whose elements have its size and are moved in
 * their place; whether it is conjugated is left to who does so. No reference.
 */
gpu_matrix gpu_as_f64(const gpu_matrix *m);
/* gpu_map where an input, or the output there is, is complex (complex_map.c):
 * one instruction after the other. */
gpu_status gpu_map_complex(const char *name, const gpu_program *p,
                           const gpu_matrix *const *in, gpu_matrix *out);
/* gpu_copy where one of the two is complex. */
gpu_status gpu_copy_complex(const gpu_matrix *from, gpu_matrix *to);
/* The operations of those names where an operand is complex (complex_ops.c). */
gpu_status gpu_gather_complex(const gpu_matrix *m, const int64_t *rows,
                              int64_t nrows, const int64_t *cols, int64_t ncols,
                              gpu_matrix *out);
gpu_status gpu_scatter_complex(const char *name, const gpu_matrix *from,
                               const int64_t *rows, int64_t nrows,
                               const int64_t *cols, int64_t ncols,
                               gpu_matrix *m);
gpu_status gpu_take_complex(const gpu_matrix *m, const gpu_matrix *rows,
                            const gpu_matrix *cols, gpu_matrix *out);
gpu_status gpu_put_complex(const char *name, const gpu_matrix *from,
                           const gpu_matrix *rows, const gpu_matrix *cols,
                           gpu_matrix *m);
gpu_status gpu_compress_complex(const gpu_matrix *m, const gpu_matrix *mask,
                                gpu_matrix *out);
gpu_status gpu_expand_complex(const gpu_matrix *from, const gpu_matrix *mask,
                              gpu_matrix *m);
const char *gpu_scan_name(gpu_scan_kind kind); /* "cumsum" … */
gpu_status gpu_scan_complex(const gpu_matrix *m, gpu_scan_kind kind, int axis,
                            gpu_matrix *out);
gpu_status gpu_reduce_complex(const char *name, const gpu_program *p,
                              const gpu_matrix *const *in, int axis,
                              gpu_matrix *out);
gpu_status gpu_reduce_all_complex(const char *name, const gpu_program *p,
                                  const gpu_matrix *const *in, double *out);
gpu_status gpu_matmul_complex(const gpu_matrix *a, const gpu_matrix *b,
                              const gpu_product *how, gpu_matrix *c);
/* Where a complex m is not 0, a mask. */
gpu_status gpu_truth_of(const char *name, const gpu_matrix *m, gpu_matrix *out);
/* |m|, a real matrix. */
gpu_status gpu_sizes_of(const gpu_matrix *m, gpu_matrix *out);
/* Both parts of a complex matrix, where they lie; of a real one itself and none
 * (storage NULL). No references. */
void gpu_parts_of(const gpu_matrix *m, gpu_matrix parts[2]);
/* The complex m as one real matrix of both parts, side by side; 0: its elements
 * have gaps, or it is conjugated. No reference. */
int gpu_as_reals(const gpu_matrix *m, gpu_matrix *reals);
/* GPU_OK when all n places (0-based; NULL: none to check) are below size; an
 * error calls one that is not a what: "row", "column". */
gpu_status gpu_check_places(const char *name, const int64_t *places, int64_t n,
                            int64_t size, const char *what);
/* Operands of which some lie on a GPU, others, which did not fit it, on the CPU
 * (overflow.c): the same as gpu_check_waiting, but that they may meet. out,
 * which is NULL or only written to, is one of them, too; *d computes. */
gpu_status gpu_check_meeting(const char *name, const gpu_matrix *const *in,
                             int n, const gpu_matrix *out, gpu_device **d);
/* The GPU on which they meet; NULL: all of them lie on one device. */
gpu_device *gpu_meeting_place(const gpu_matrix *const *in, int n,
                              const gpu_matrix *out);
/* The GPU that m did not fit, or the device on which it lies. What the CPU
 * makes of such operands, out, is as they are. */
gpu_device *gpu_home_of(const gpu_matrix *m);
void gpu_pass_home(const gpu_matrix *const *in, int n, const gpu_matrix *out);
/* gpu_create on d, or where it does not fit there on the CPU. */
gpu_status gpu_create_anywhere(gpu_matrix *out, gpu_device *d, gpu_dtype dtype,
                               int ndim, int64_t rows, int64_t cols);
/* Storage without bytes, that waits, is the CPU's, or its GPU's again; 0: it
 * can be no other's. Once it has bytes there, m's are to be told of. */
int gpu_move_home(gpu_storage *s);
void gpu_tell_overflow(const gpu_matrix *m);
/* Do a and b address exactly the same elements in the same order? */
int gpu_same_view(const gpu_matrix *a, const gpu_matrix *b);
/* The CPU device, which always opens. */
gpu_device *gpu_cpu(void);
/* The device of a backend's handle. */
gpu_device *gpu_device_of(void *handle);

/* An operation, of operands that were checked, around what its backend does of
 * it. From it come the count of operations, what a trace tells, what is said of
 * how far the work is, and what a stopped one leaves incomplete. The texts
 * stay, the matrices are borrowed. */
typedef struct gpu_operation {
    const char *name, *kernel;
    gpu_device *device;
    /* What a trace tells of; its storage, where it has one, is written, and is
     * left incomplete where the work is stopped. */
    const gpu_matrix *result;
    const gpu_matrix *extent; /* what the work goes over; NULL: the result */
    int64_t k;           /* inner dimension, of a reduction its length; or 0 */
    double flops, bytes; /* that have to be done and moved */
    unsigned writes_all : 1; /* of the result, which is whole again */
    gpu_team *team;          /* that computes it; NULL: the device */

    /* Set by these functions, but for checked (see gpu_event), which a check
     * may set before report. */
    unsigned is_shown : 1, is_timed : 1;
    double seconds, checked;
    uint64_t compiled; /* see gpu_counters: before it */
} gpu_operation;

/* begin; the work; then stop, which waits where a trace is on, and report,
 * which tells. end is both, of work that the device is to be given no faster
 * than it does it. Each passes on the work's status, or what the waiting found
 * to have gone wrong. */
void gpu_begin_operation(gpu_operation *op);
/* Does anybody ask how many bytes an operation moves? For what is so small that
 * counting them is felt. */
int gpu_wants_bytes(const gpu_device *d);
gpu_status gpu_stop_operation(gpu_operation *op, gpu_status status);
gpu_status gpu_report_operation(gpu_operation *op, gpu_status status);
gpu_status gpu_end_operation(gpu_operation *op, gpu_status status);

/* An operation that is one call of a backend's entry, with the entry's
 * arguments behind the handle; the only way to call one that computes. */
#define RUN_OPERATION(op, entry, ...) \
    (gpu_begin_operation(op),         \
     gpu_end_operation(               \
         op, (op)->device->backend->entry((op)->device->handle, __VA_ARGS__)))

/* What crosses the bus is told of in the same way, but neither counted as an
 * operation nor shown, and never on a CPU. */
void gpu_begin_transfer(gpu_operation *op);
gpu_status gpu_end_transfer(gpu_operation *op, gpu_status status);
/* The CPU stands in for a device that lacks the entry, until the next event. */
void gpu_note_fallback(void);
/* Is a product that runs now to be checked? */
int gpu_must_check(void);

/* A product being checked, from before to after. */
typedef struct gpu_check {
    int on;
    gpu_device *device;
    double alpha, beta;
    const gpu_matrix *a, *b;         /* m x k, k x n */
    gpu_matrix signs, before, sizes; /* 1 x n; of C as it was, m x 1 */
} gpu_check;

/* Before a kernel writes c, after it has (ratio gets the deviation), and when
 * all is done. */
gpu_status gpu_check_start(gpu_check *c, const gpu_product *how,
                           const gpu_matrix *result);
gpu_status gpu_check_product(gpu_check *c, const gpu_kernel *k,
                             const gpu_matrix *result, double *ratio);
void gpu_check_end(gpu_check *c);
gpu_status gpu_check_dot(const gpu_matrix both[2], const gpu_kernel *k,
                         double value, double *ratio);

/* For reductions along an axis: checks operands and shapes, and gives the
 * program with its compute type and what waits among its operands, and the
 * views broadcast to the common shape. c is to be ended. */
gpu_status gpu_common_views(const char *name, const gpu_program *p,
                            const gpu_matrix *const *in, int axis,
                            gpu_device **d, gpu_composition *c, gpu_view *views,
                            int *ndim);

/* The device by which what d would compute is computed tile by tile; NULL: d
 * does it itself (see gpu_compute_through). */
gpu_device *gpu_through(const gpu_device *d);

/* Was an entry of the device's not for these elements? Then `there` is the CPU
 * from now on. */
int gpu_is_left_to_cpu(gpu_status status, gpu_device **there);
/* The rung of that name, if it does the type. */
gpu_status gpu_find_rung(gpu_device *d, const char *operation, const char *name,
                         gpu_dtype dtype, const gpu_kernel **out);
/* Runs a product's kernel, which becomes another where memory is short and it
 * was not asked for, and paces it. What an interrupt leaves is part of c. */
gpu_status gpu_run_product(gpu_device *d, gpu_gemm *p, int is_chosen,
                           const gpu_kernel **k);
/* The same panel by panel, numbers 0 .. count - 1 in that order, for who has
 * something to do between them. count may fall to 1 with the first. p and k are
 * borrowed; that a panel is done is counted as progress where there are
 * several. */
typedef struct gpu_panels {
    gpu_device *device;
    gpu_gemm *p;
    int is_chosen;
    const gpu_kernel **k;
    int64_t rows, cols, across, count; /* of a panel; panels in a row, in all */
} gpu_panels;
gpu_panels gpu_cut_product(gpu_device *d, gpu_gemm *p, int is_chosen,
                           const gpu_kernel **k);
gpu_status gpu_run_panel(gpu_panels *panels, int64_t number);

/* See backend.h. */
void *gpu_recall(gpu_storage *s, const gpu_keep_key *key);
void *gpu_keep(gpu_storage *s, const gpu_keep_key *key, size_t bytes);
int gpu_make_room(void *handle);
int gpu_fault(gpu_fault_site *site);
/* An error ended its use: what lay on it is gone. */
int gpu_device_is_lost(const gpu_device *d);
/* Under the limit of gpu_limit_memory; SIZE_MAX without one. */
size_t gpu_room_left(void);
size_t gpu_memory_limit(void); /* 0: there is none */
/* Matrices hold so many bytes more of the host's memory, or less. */
void gpu_count_host(ptrdiff_t bytes);
/* Around a kernel. What one that failed kept is dropped: it may never have
 * been filled. */
void gpu_begin_product(gpu_device *d);
void gpu_end_product(gpu_device *d, gpu_status status);
void gpu_drop_kept(gpu_storage *s);
void gpu_drop_all_kept(gpu_device *d);

/* Drops what is kept, then asks the language for garbage, then the backend for
 * its caches. */
void gpu_relieve(gpu_device *d);

#endif
