/* The text that every compiled kernel begins with: the operations of ops.def as
 * functions op_NAME, of the words and the library's functions that the
 * interpreter's kernels are compiled from, too. */
#include "jit_job.h"
#include "op_macros.h"

#define M(f) f
#define OP(name, arity, expression, ...)                                     \
    template <class T> __device__ __forceinline__ T op_##name(T x, T y, T z) \
    {                                                                        \
        return (T)(expression);                                              \
    }
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
#undef M
