/* What the files of split16 share: operands split into planes, and how their
 * kernels are launched one behind the other.
 *
 * An operand is scaled, row by row of a and column by column of b, by exact
 * powers of two so that its largest magnitude lies in [2^14, 2^15), and each
 * element is cut into hi = rn16(x) and lo = rn16(x - hi). a's planes lie
 * along k, b's along n, whatever way the operand itself lies.
 *
 * A product goes through these files:
 *   matmul_split16.cu        the rung: scratch and kept planes, launches, and
 *                            the last of them, repair
 *   split_both_operands.cu   both operands split in one launch
 *   split_planes.cu          the same where they lie otherwise, in two
 *   split_one_value.h          scaling and cutting, for both of these
 *   split16_hopper.cu        the planes multiplied on sm_90, and which tiles
 *   split16_tile.h             a chunk's products, how sums leave registers
 *   split16_results.h          sums become results, or are noted as uncertain
 *   split16_small.h            the kernels for few tiles
 *   split16_edges.h            rows and columns beyond the last whole tiles
 *   split16_ampere.cu        the planes multiplied by mma.sync
 *   split_f64_product.h      what is uncertain, or all, again in f64
 * ../README.md tells what each step gained.
 *
 * Sources: Markidis et al., NVIDIA tensor core programmability, 2018; Ootomo
 * and Yokota, arXiv 2203.03341. */
#ifndef GPU_CUDA_SPLIT16_H
#define GPU_CUDA_SPLIT16_H

#include "epilogue.h"

#include <cuda_fp16.h>

/* What is true of an operand: bits of its facts. */
enum {
    FACT_SPECIAL = 1,   /* there are NaN or Inf */
    FACT_LOW = 2,       /* lo is not zero everywhere */
    FACT_FRACTIONAL = 4 /* there are elements that are not integers */
};

/* A k below this goes to simt: a chunk would mostly be padding, and the errors
 * of the products themselves are not averaged away yet. */
enum { LEAST_DEPTH = 64 };

/* An operand's planes. a: m lines of k, b: k lines of n. Its span is the
 * dimension with scales: rows of a, columns of b. Behind the end of a line
 * there are zeros up to the pitch. */
typedef struct split_planes {
    __half *planes;        /* hi, and `plane` elements further on, lo */
    int64_t lines, length; /* elements of a line */
    int64_t pitch, plane;
    int64_t span, depth;
    unsigned *marks;      /* span: exponent and losses, see mark_exponent */
    unsigned *facts;      /* one word */
    unsigned char *flags; /* span: facts of a row while they are gathered */
    int along_k;          /* do lines run along k? true for a */
    int is_kept;          /* planes of an earlier product */
} split_planes;

/* Where the planes' parts lie in a block of memory of so many bytes. */
size_t gpu_cuda_planes_bytes(int64_t span, int64_t depth, int along_k);
split_planes gpu_cuda_planes_at(void *block, int64_t span, int64_t depth,
                                int along_k);

/* Bytes of scratch that splitting needs. */
gpu_status gpu_cuda_split_scratch(cuda_device *d, const gpu_gemm *p,
                                  size_t *bytes);
/* Fills the planes that are not kept, in at most two launches. Four tickets,
 * zero at first and only for this. */
gpu_status gpu_cuda_split(cuda_device *d, const gpu_gemm *p,
                          const split_planes *a, const split_planes *b,
                          void *scratch, unsigned *tickets);

/* Words of the device that kernels count in, zero between products: uncertain
 * results; blocks that have read their number; blocks that have written their
 * results (of this the high bit may be set); units of the edges that have been
 * drawn. Behind them those for splitting. */
enum { SPLIT_COUNT, SPLIT_READ, SPLIT_WRITTEN, SPLIT_EDGES, SPLIT_STRIPS };

/* c's edges: rows below what is done in tiles, and columns beside it; or none.
 */
typedef struct split_edges {
    gpu_gemm below, beside;
} split_edges;

/* A product of planes: c = alpha a b, which goes through `then`; or c += alpha
 * a b, of which all is certain. */
typedef struct split_product {
    split_planes a, b;
    float *c;
    int64_t m, n, k, c_row, c_col;
    float alpha;
    int adds;      /* to c: on Hopper alone, in large tiles */
    int is_lower;  /* what adds: see gpu_cuda_split16_add_lower */
    epilogue then; /* on Hopper alone, and not for edges */
    float unit;    /* a result is certain when |scaled sum| >= losses x unit */
    int64_t *uncertain; /* places i n + j of results to be computed again */
    unsigned *tickets;  /* see below; zero at first */
    unsigned capacity;
    int *gate;      /* not zero: the whole product is to be done again */
    int redoes;     /* then repair does it, not the simt kernel */
    float *partial; /* workspace, of as many bytes as was asked for */
} split_product;

/* Which tiles a product gets on Hopper, and how many blocks share a tile and
 * its k: see split16_hopper.cu. */
typedef struct split_way {
    enum { SHORT, TALL, SLICES, SQUARE, WIDE } kind;
    int parts;
    double time; /* us, by the model that chooses */
} split_way;

split_way gpu_cuda_split16_hopper_way(const cuda_device *d, int64_t m,
                                      int64_t n, int64_t k);
/* The same of what adds to c. */
split_way gpu_cuda_split16_hopper_add_way(const cuda_device *d, int64_t m,
                                          int64_t n, int64_t k, int is_lower);
size_t gpu_cuda_split16_hopper_workspace(const split_product *p, split_way w);
/* Multiplies, and certifies unless it says that this is for a launch behind it;
 * g is for what is not certain. Tells whether it does the edges too. */
gpu_status gpu_cuda_split16_hopper(cuda_device *d, const split_product *p,
                                   split_way w, const gpu_gemm *g,
                                   const split_edges *edges, int *has_edges,
                                   int *is_certain);
size_t gpu_cuda_split16_ampere_workspace(const cuda_device *d,
                                         const split_product *p);
/* Only multiplies: what is not certain is for a launch behind it. */
gpu_status gpu_cuda_split16_ampere(cuda_device *d, const split_product *p);

/* c += alpha a b in place, of c whose rows are contiguous, sm_90 alone; k is at
 * least LEAST_DEPTH. Nothing is certified: an element that is 2^17 below the
 * largest of its row of a or column of b counts with an error of 2^-24 of both
 * maxima, which the normwise bounds of factorisations contain already. NaN or
 * Inf in a or b leave what is no promise. */
gpu_status gpu_cuda_split16_add(cuda_device *d, const gpu_gemm *g);
/* c = a b in the same sense, of any c. */
gpu_status gpu_cuda_split16_normwise(cuda_device *d, const gpu_gemm *g);
/* The addition in the tiles only that reach to or below the diagonal that ends
 * at c's last row and column; c has no more rows than columns, and the
 * difference is a multiple of 256. */
gpu_status gpu_cuda_split16_add_lower(cuda_device *d, const gpu_gemm *g);

/* --- in kernels --------------------------------------------------------- */

/* A mark holds the power of two that a row or column was scaled by, and how
 * many of its elements were cut by more than 2^-22 of them: it is a sum of
 * 1 << 10 for each of those and of the exponent + 512. */
enum { MARK_ZERO = 512, MARK_LOSS = 1024, MOST_DEPTH = (1 << 22) - 1 };

__device__ __forceinline__ int mark_exponent(unsigned mark)
{
    return (int)(mark & 1023) - MARK_ZERO;
}

/* As a float, by an addition: conversions are slow. */
__device__ __forceinline__ float mark_losses(unsigned mark)
{
    return __uint_as_float(0x4b000000u | mark >> 10) - 0x1p23f;
}

/* Which products a pair of operands needs: 0: none here, an operand has NaN
 * or Inf; 1: hi hi, which is exact; 4: all, for integers past 2048; else 3. */
__device__ __forceinline__ int products_for(unsigned a, unsigned b)
{
    if ((a | b) & FACT_SPECIAL)
        return 0;
    if (!((a | b) & FACT_LOW))
        return 1;
    return a & b & FACT_LOW && !((a | b) & FACT_FRACTIONAL) ? 4 : 3;
}

/* Puts c's element (i, j) on the list of uncertain results. Once it is full
 * nobody counts on, so that the count cannot come round to zero. */
__device__ __forceinline__ void note_uncertain(const split_product &p,
                                               int64_t i, int64_t j)
{
    if (__ldcg(p.tickets + SPLIT_COUNT) > p.capacity)
        return;
    unsigned place = atomicAdd(p.tickets + SPLIT_COUNT, 1);
    if (place < p.capacity)
        p.uncertain[place] = i * p.n + j;
}

/* Until the kernel before this one is done and its writes are seen. */
__device__ __forceinline__ void wait_for_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Blocks of the next kernel may start; they wait themselves. */
__device__ __forceinline__ void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* 2^(e/2), and the factor that completes it to 2^e: exponents up to +-300
 * stay exact. */
__device__ __forceinline__ float half_power(int e)
{
    return __int_as_float((e / 2 + 127) << 23);
}

__device__ __forceinline__ float rest_power(int e)
{
    return __int_as_float((e - e / 2 + 127) << 23);
}

/* Kernels that run one behind the other ask for the same division of a
 * multiprocessor's memory, as much shared memory as there is: changing it
 * costs microseconds. shared: bytes that the kernel is launched with at most; 0
 * of few. Once for each kernel and device, by *prepared, see set_once. */
static inline gpu_status keep_division(cuda_device *d, const void *kernel,
                                       int shared, int *prepared)
{
    int before = *prepared;
    if (shared > 0)
        TRY(set_once(d, kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                     shared, &before));
    return set_once(d, kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                    100, prepared);
}

/* Launches a kernel that may start before the one before it is done. */
template <class... Params, class... Args>
static gpu_status launch_behind(cuda_device *d, void (*kernel)(Params...),
                                dim3 grid, int threads, size_t shared,
                                int cluster, Args... args)
{
    cudaLaunchAttribute attribute[2] = {};
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = (unsigned)cluster;
    attribute[1].val.clusterDim.y = attribute[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = d->stream;
    config.attrs = attribute;
    config.numAttrs = d->capability < 90 ? 0 : cluster > 1 ? 2 : 1;
    return gpu_cuda_check(d,
                          cudaLaunchKernelEx(&config, kernel, Params(args)...));
}

#endif
