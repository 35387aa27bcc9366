/* A program bound to its inputs over a grid of tiles, for maps, reductions and
 * surveys. A tile is computed instruction by instruction in blocks that stay
 * in the first cache; what already lies right in memory is used in place. */
#ifndef GPU_CPU_PLAN_H
#define GPU_CPU_PLAN_H

#include "cpu.h"
#include "vector.h"

enum {
    GPU_CPU_BLOCK = 1024,      /* elements of a block: 4 or 8 KiB */
    GPU_CPU_LONG_BLOCK = 8192, /* when no block is needed at all */
    GPU_CPU_SQUARE = 32        /* side of a tile that crosses the layout */
};

/* What a plan has of each: constants in two types, and conversions. */
enum {
    GPU_CPU_CONSTANTS = 2 * GPU_MAX_CONSTANTS,
    GPU_CPU_STEPS = 3 * GPU_MAX_CODE + GPU_MAX_INPUTS,
    GPU_CPU_VALUES = GPU_MAX_INPUTS + GPU_CPU_CONSTANTS + GPU_CPU_STEPS
};

/* An operation over values, which are numbered as those of a program are. */
typedef struct gpu_cpu_step {
    gpu_cpu_loop *loop;
    uint8_t op, x, y, z; /* unused operands are 0 */
    uint8_t converts;    /* its result is of another type */
} gpu_cpu_step;

/* Of the grid, counted from 0. */
typedef struct gpu_cpu_tile {
    int64_t row, col, rows, cols;
} gpu_cpu_tile;

/* Borrows the program and the views' data. Any number of threads may run its
 * tiles at once, each with scratch space of its own. */
typedef struct gpu_cpu_plan {
    const gpu_program *p;
    gpu_dtype compute;
    int inputs, constants, length;    /* length: steps */
    int is_mixed;                     /* there are values of both types */
    gpu_view in[GPU_MAX_INPUTS], out; /* turned and flattened like the grid */
    int64_t rows, cols;               /* of the grid */
    int turned;                       /* the grid is the transpose */
    int64_t tile_rows, tile_cols, tiles_across, tiles;
    int64_t block; /* elements of the largest tile */
    int slots;     /* blocks needed */
    uint8_t slot[GPU_CPU_VALUES], type[GPU_CPU_VALUES];
    double constant[GPU_CPU_CONSTANTS];
    gpu_cpu_step code[GPU_CPU_STEPS];
    int result; /* the value that is it */
    gpu_dtype result_type;
    gpu_cpu_loop
        *truth; /* the last one's for an output of truth values, or 0 */
} gpu_cpu_plan;

typedef enum gpu_cpu_order {
    GPU_CPU_KEEP,      /* the grid has the views' shape */
    GPU_CPU_TURN,      /* its transpose */
    GPU_CPU_ROW_MAJOR, /* one long row if possible, in row-major order */
    GPU_CPU_ANY        /* whatever is fastest */
} gpu_cpu_order;

/* One value for all elements: both steps are 0. */
int gpu_cpu_is_uniform(const gpu_view *v);

/* out may be NULL. inputs all have rows x cols. */
void gpu_cpu_plan_make(gpu_cpu_plan *plan, const gpu_program *p,
                       const gpu_view *in, const gpu_view *out, int64_t rows,
                       int64_t cols, gpu_cpu_order order);

/* Bytes of scratch space for one thread, which begin on 64, and what must be in
 * it once, before the first tile. */
size_t gpu_cpu_plan_scratch(const gpu_cpu_plan *plan);
void gpu_cpu_plan_prepare(const gpu_cpu_plan *plan, char *scratch);

gpu_cpu_tile gpu_cpu_plan_tile(const gpu_cpu_plan *plan, int64_t number);

/* Computes a tile and returns its elements, of the result's type (the compute
 * type where there is no out), row by row without gaps: in target, unless that
 * is NULL; then good until the next tile.
 * In target they are bytes where the plan has a loop for truth values. */
const void *gpu_cpu_plan_run(const gpu_cpu_plan *plan, const gpu_cpu_tile *tile,
                             char *scratch, void *target);

/* --- types (plan_types.c) ------------------------------------------------- */

/* Writes the steps of a plan that has its program, inputs and output, where
 * some are better taken in f32 (0: none), and what its result is. */
int gpu_cpu_plan_types(gpu_cpu_plan *plan);
int gpu_cpu_arity(int op);
int gpu_cpu_is_test(int op);

#endif
