/* Elements between processes each of which computes on a device of its own, of
 * one machine: for GPUs by NCCL, where that is installed. The processes know
 * each other by a number from 0 and tell each other a name by ways of their
 * own. What all call at once, in the same order, waits for the others: who
 * starts the processes ends them where one is lost. */
#ifndef GPU_EXCHANGE_H
#define GPU_EXCHANGE_H

#include "gpu.h"

enum { GPU_EXCHANGE_NAME = 256 };

typedef struct gpu_exchange gpu_exchange;

/* A matrix without gaps on its way to a process, or from one: then all its
 * elements are written. */
typedef struct gpu_parcel {
    gpu_matrix *m;
    int peer;
    int is_incoming;
} gpu_parcel;

/* One of the processes makes the name that each is to open with.
 * GPU_UNSUPPORTED where the device has no way to others, with what it needs. */
gpu_status gpu_exchange_make_name(gpu_device *d,
                                  unsigned char name[GPU_EXCHANGE_NAME]);
/* Waits until all `count` have come, a minute at most. */
gpu_status gpu_exchange_open(gpu_device *d,
                             const unsigned char name[GPU_EXCHANGE_NAME],
                             int rank, int count, gpu_exchange **out);
void gpu_exchange_close(gpu_exchange *e); /* NULL: nothing to do */

/* Begins to exchange, behind what was issued to the device so far and beside
 * what is issued later; finish puts what is issued from then on behind it. The
 * matrices are there until then, and those that come are not looked at. One
 * exchange at a time. */
gpu_status gpu_exchange_begin(gpu_exchange *e, const gpu_parcel *list, int n);
gpu_status gpu_exchange_finish(gpu_exchange *e);

/* --- what libraries do ---------------------------------------------------- */

/* Of matrices that lie in blocks round a grid of all processes, those of a row
 * of it numbered one after the other, as ScaLAPACK has them: what the vendor's
 * libraries do, for GPUs cuBLASMp and cuSOLVERMp. In place of a means that a
 * has the result. `numbers` belongs to a factorisation, and is its caller's. */
typedef enum gpu_grid_task {
    GPU_GRID_PRODUCT,  /* c = a b */
    GPU_GRID_LU,       /* in place of a; numbers: its exchanges of rows */
    GPU_GRID_CHOLESKY, /* L in place of a's lower triangle */
    GPU_GRID_QR,       /* R and reflections in place of a; numbers: their
                        * factors */
    GPU_GRID_APPLY_Q,  /* b becomes Q b, of what QR gave */
    GPU_GRID_EIGH,     /* of a's lower triangle, which is lost: vectors into b,
                        * values, rising, into numbers */
} gpu_grid_task;

/* m x n in blocks of mb x nb. data: this process's part by columns, a matrix
 * without gaps whose rows are the columns. */
typedef struct gpu_grid_part {
    gpu_matrix *data; /* NULL: there is none */
    int64_t m, n, mb, nb;
} gpu_grid_part;

typedef struct gpu_grid_job {
    gpu_grid_task task;
    int rows, cols; /* of the grid */
    gpu_grid_part a, b, c;
    gpu_matrix *numbers; /* on the device, without gaps: of LU f64, with which
                          * row, from 1, that of each of the part's columns was
                          * exchanged; so many of a's type of QR; n real ones of
                          * EIGH */
    /* Behind each step: did it go well here, and in all? */
    int (*agree)(void *context, int is_well);
    void *context;
    int64_t trouble; /* out: the first zero pivot or minor that is not positive,
                      * from 1, how many values did not converge; 0: none */
} gpu_grid_job;

/* What is missing for a task, in words that last; NULL: nothing. */
const char *gpu_exchange_lacks(const gpu_exchange *e, gpu_grid_task task);
/* All call it at once, of the same shapes. It waits for the device; where a
 * step fails in one, all fail, after that step. One that fails before its first
 * step has not called agree: the caller does. */
gpu_status gpu_exchange_work(gpu_exchange *e, gpu_grid_job *job);

/* --- for backends --------------------------------------------------------- */

typedef struct gpu_bytes_parcel {
    void *data; /* of the device */
    size_t bytes;
    int peer;
    int is_incoming;
} gpu_bytes_parcel;

/* As a gpu_grid_part: at data rows x cols elements by columns, without gaps,
 * are this process's. */
typedef struct gpu_grid_view {
    void *data; /* of the device; NULL: there is none */
    int64_t m, n, mb, nb, rows, cols;
} gpu_grid_view;

typedef struct gpu_grid_work {
    gpu_grid_task task;
    gpu_dtype type;
    int rows, cols;
    gpu_grid_view a, b, c;
    void *numbers;
    int (*agree)(void *context, int is_well);
    void *context;
    int64_t trouble; /* out */
} gpu_grid_work;

/* What a backend's object may have beside its table, by this symbol: entries as
 * above, of a device's handle. */
#define GPU_EXCHANGE_SYMBOL "lumat_exchange"
typedef struct gpu_exchange_entry {
    int abi; /* GPU_EXCHANGE_ABI */
    gpu_status (*make_name)(void *device, unsigned char *name);
    gpu_status (*open)(void *device, const unsigned char *name, int rank,
                       int count, void **out);
    void (*close)(void *exchange);
    gpu_status (*begin)(void *exchange, const gpu_bytes_parcel *list, int n);
    gpu_status (*finish)(void *exchange);
    const char *(*lacks)(void *exchange, gpu_grid_task task);
    gpu_status (*work)(void *exchange, gpu_grid_work *w);
} gpu_exchange_entry;
enum { GPU_EXCHANGE_ABI = 4 };

#endif
