/* The operations on single numbers: by the loops that matrices take. */
#include "program.h"
#include "vector.h"

double gpu_op_evaluate(gpu_op op, double x, double y, double z)
{
    gpu_cpu_loop *loop = gpu_cpu_vectors->map[GPU_F64][op];
    double r = 0;
    if (loop)
        loop(&r, &x, &y, &z, 1);
    return r;
}
