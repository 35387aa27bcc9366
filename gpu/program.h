/* Elementwise programs: the one way to say "for every element, do this".
 *
 * A program is a short list of instructions over numbered values: first its
 * inputs, then its constants, then one value for each instruction. The last
 * value is the result; with no instruction at all it is value 0, so the empty
 * program over one input copies and converts, and the empty program over no
 * input and one constant fills. One operation is a program of
 * one instruction; a fused chain is a longer one. Every backend runs every
 * program. */
#ifndef GPU_PROGRAM_H
#define GPU_PROGRAM_H

#include <stdint.h>

typedef enum gpu_dtype {
    GPU_F32,
    GPU_F64,
    GPU_BOOL,   /* one byte, 0 or 1: a mask */
    GPU_DTYPES, /* of what programs and backends' other entries know */
    GPU_C64 = GPU_DTYPES, /* pairs of f32: see complex_numbers.h */
    GPU_C128,             /* pairs of f64 */
    GPU_ALL_DTYPES
} gpu_dtype;

/* Numbers of operations and of reductions: GPU_OP_name and GPU_REDUCE_name of
 * op_list.h, which those include that name some. What only hands them on does
 * not depend on which there are. */
typedef int gpu_op, gpu_reduction;

enum { GPU_MAX_INPUTS = 8, GPU_MAX_CONSTANTS = 8, GPU_MAX_CODE = 32 };
enum { GPU_MAX_EXTRAS = 3 };
enum { GPU_MAX_VALUES = GPU_MAX_INPUTS + GPU_MAX_CONSTANTS + GPU_MAX_CODE };

typedef struct gpu_instruction {
    uint8_t op;      /* gpu_op */
    uint8_t x, y, z; /* value numbers; those past the arity are ignored */
} gpu_instruction;

/* Philox4x32-10 indexed by element: element i of call `call` under `seed` is
 * the same on every device (normals to a few units in the last place).
 * Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011. */
typedef enum gpu_random_kind {
    GPU_UNIFORM, /* [low, high) */
    GPU_NORMAL,  /* mean low, standard deviation high */
    GPU_INTEGER  /* low .. high, both included */
} gpu_random_kind;
typedef struct gpu_random {
    gpu_random_kind kind;
    uint64_t seed, call;
    double low, high;
    int64_t first; /* of a part of what is drawn: which number comes first, a
                    * multiple of 4. Complex elements have two each. Of operands
                    * of a program it is 0. */
} gpu_random;
/* Elements first .. first + n - 1, row by row, of what r draws, as elements of
 * type t, f32 or f64, in the host's memory: for who has a part of the matrix.
 */
void gpu_draw(const gpu_random *r, gpu_dtype t, int64_t first, int64_t n,
              void *to);

/* Whole numbers drawn with parameters of their own: of Poisson's distribution
 * with a mean each, or the binomial one with so many trials and a chance. */
typedef enum gpu_variate_kind { GPU_POISSON, GPU_BINOMIAL } gpu_variate_kind;

typedef struct gpu_program {
    uint8_t inputs, constants, length;
    uint8_t reduction; /* gpu_reduction over the results */
    uint8_t compute;   /* GPU_F32 or GPU_F64: the type of every value; made
                          GPU_F64 when the program is dispatched if an operand
                          or the result is. gpu_map also computes in it where
                          it was asked for, whatever the operands */
    gpu_instruction code[GPU_MAX_CODE];
    double constant[GPU_MAX_CONSTANTS];
    uint8_t extras; /* further results, of earlier instructions, */
    uint8_t extra[GPU_MAX_EXTRAS]; /* whose values these are: see backend.h */
    const gpu_random *draw; /* of each input, for those that are drawn and not
                               read; NULL: none is. Borrowed */
} gpu_program;

/* Starts a program of `inputs` inputs and no constant or instruction. */
void gpu_program_start(gpu_program *p, int inputs);

/* Adds a constant and returns its value number. All constants must be added
 * before the first instruction. */
int gpu_program_constant(gpu_program *p, double value);

/* Adds an instruction over earlier values and returns its value number.
 * Operands past the operation's arity are ignored. */
int gpu_program_add(gpu_program *p, gpu_op op, int x, int y, int z);

/* How many operations it does to an element: its instructions, but for those
 * that only round to another type. */
int gpu_program_operations(const gpu_program *p);

/* Powers by the constants 1, 2, 3, -1, 0.5 and -0.5 become the products,
 * quotients and roots that they are, where there is room: as exact, and many
 * times as fast. */
void gpu_program_simplify(gpu_program *p);

/* What an operation is called, how many operands it takes (0 to 3), and
 * whether its result is a truth value. */
const char *gpu_op_name(gpu_op op);
int gpu_op_arity(gpu_op op);
int gpu_op_is_test(gpu_op op);

/* The operation on plain numbers, in double precision. */
double gpu_op_evaluate(gpu_op op, double x, double y, double z);

#endif
