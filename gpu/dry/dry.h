/* The room of the dry device: a backend whose storage has no bytes, and what
 * it says of time. Nobody includes this but its own files; others switch it on
 * by gpu_begin_dry. */
#ifndef GPU_DRY_H
#define GPU_DRY_H

#include "core.h"

enum { DRY_MOST_KERNELS = 64, DRY_PACES = 1024 };

/* What was measured on a device, and under which key; 0: a free place. */
typedef struct dry_pace {
    uint64_t key;
    double seconds;
} dry_pace;

/* A backend's kernels, and dry ones of the same names and facts. */
typedef struct dry_ladder {
    const gpu_backend *real;
    int count;
    gpu_kernel kernel[DRY_MOST_KERNELS];
    const gpu_kernel *list[DRY_MOST_KERNELS]; /* of the above */
    const gpu_kernel *const *real_list;
} dry_ladder;

/* A device that is stood in for, from its first dry run on. */
typedef struct dry_device {
    gpu_device *device; /* as long as a run goes on, else NULL */
    void *handle;
    const gpu_backend *real;
    gpu_backend backend; /* dry entries where the real one has some */
    const dry_ladder *ladder;
    const gpu_kernel *product; /* the real kernel that runs next */
    int predicts;
    double overhead;       /* as in gpu_dry_watch */
    double clock, started; /* predicted seconds so far; at timer_start */
    dry_pace pace[DRY_PACES];
} dry_device;

/* Seconds that an entry will take on the real device, for operands of these
 * shapes; what they hold is not looked at. Small work of the same kind is run
 * there, on memory of its own, when nothing like it was measured before. Where
 * that fails it is what bytes, or flops, take at the measured peaks. */
double dry_map_seconds(dry_device *d, const gpu_program *p, const gpu_view *in,
                       const gpu_view *out);
double dry_reduce_seconds(dry_device *d, const gpu_program *p,
                          const gpu_view *in, const gpu_view *out);
double dry_moved_seconds(dry_device *d, double bytes);
/* Over the bus, which a CPU does not have. */
double dry_bus_seconds(dry_device *d, double bytes);
double dry_scan_seconds(dry_device *d, const gpu_view *v);
double dry_sort_seconds(dry_device *d, int axis, const gpu_view *v,
                        int has_places);
double dry_random_seconds(dry_device *d, const gpu_random *r,
                          const gpu_view *to);
double dry_product_seconds(dry_device *d, const gpu_kernel *real,
                           const gpu_gemm *p);
double dry_sparse_seconds(dry_device *d, const gpu_csr *s, const gpu_view *b,
                          const gpu_view *c);
/* n equations with so many right sides. */
double dry_system_seconds(dry_device *d, gpu_dtype dtype, int64_t n,
                          int64_t columns);
double dry_factor_seconds(dry_device *d, const gpu_factoring *f);
double dry_fft_seconds(dry_device *d, const gpu_fft_call *c);
double dry_convolution_seconds(dry_device *d, const gpu_convolution *c);

/* Bytes that v's elements take, those that it repeats once. */
double dry_bytes(const gpu_view *v);

#endif
