/* The operations on single numbers, from the same expressions as the loops. */
#include <math.h>
#include "program.h"
#include "op_macros.h"

#define T double
#define M(function) function

double gpu_op_evaluate(gpu_op op, double x, double y, double z)
{
    (void)y, (void)z;
    switch (op) {
#define OP(name, arity, expression, vector, help, example, result) \
    case GPU_OP_##name:                                            \
        return (double)(expression);
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
    default:
        return 0;
    }
}
