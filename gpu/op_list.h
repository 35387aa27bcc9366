/* The operations and reductions of ops.def by number, for those that name some:
 * a change of ops.def compiles again what includes this, and nothing else. */
#ifndef GPU_OP_LIST_H
#define GPU_OP_LIST_H

/* A gpu_op: the operations of ops.def, in its order, then the two index values:
 * the 0-based row and column of the element being computed. */
enum {
#define OP(name, arity, expression, vector, help, example, result) \
    GPU_OP_##name,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
    GPU_OP_ROW,
    GPU_OP_COL,
    GPU_OPS
};

/* A gpu_reduction: those of ops.def, in its order, then two that others are
 * composed of: the sum of the squares, and that of the squared distances from
 * the mean. Both are formed in f64, whatever the type of the elements. Backends
 * see only these two and the primitive ones of ops.def: sum prod min max argmin
 * argmax. */
enum {
    GPU_NO_REDUCTION,
#define OP(...)
#define TEST(...)
#define REDUCTION(name, ...) GPU_REDUCE_##name,
#include "ops.def"
    GPU_REDUCE_SQUARES,
    GPU_REDUCE_SPREAD,
    GPU_REDUCTIONS
};

#endif
