/* What complex numbers have: their types, and what each operation makes of
 * them. */
#include "complex_numbers.h"
#include "op_list.h"

int gpu_dtype_is_complex(gpu_dtype t)
{
    return t == GPU_C64 || t == GPU_C128;
}

gpu_dtype gpu_dtype_of_parts(gpu_dtype t)
{
    return t == GPU_C64 ? GPU_F32 : t == GPU_C128 ? GPU_F64 : t;
}

gpu_dtype gpu_dtype_made_complex(gpu_dtype t)
{
    return t == GPU_F64 || t == GPU_C128 ? GPU_C128 : GPU_C64;
}

int gpu_is_complex(const gpu_matrix *m)
{
    return gpu_dtype_is_complex(m->dtype);
}

gpu_dtype gpu_dtype_wider(gpu_dtype a, gpu_dtype b)
{
    gpu_dtype x = gpu_dtype_of_parts(a), y = gpu_dtype_of_parts(b);
    gpu_dtype part = x == GPU_F64 || y == GPU_F64 ? GPU_F64 : GPU_F32;
    return gpu_dtype_is_complex(a) || gpu_dtype_is_complex(b)
               ? gpu_dtype_made_complex(part)
               : part;
}

gpu_complex_kind gpu_complex_op(gpu_op op)
{
    switch (op) {
    case GPU_OP_add:
    case GPU_OP_sub:
    case GPU_OP_mul:
    case GPU_OP_div:
    case GPU_OP_neg:
    case GPU_OP_pow:
    case GPU_OP_sign:
    case GPU_OP_square:
    case GPU_OP_reciprocal:
    case GPU_OP_sqrt:
    case GPU_OP_exp:
    case GPU_OP_exp2:
    case GPU_OP_expm1:
    case GPU_OP_log:
    case GPU_OP_log2:
    case GPU_OP_log10:
    case GPU_OP_log1p:
    case GPU_OP_sin:
    case GPU_OP_cos:
    case GPU_OP_tan:
    case GPU_OP_asin:
    case GPU_OP_acos:
    case GPU_OP_atan:
    case GPU_OP_sinh:
    case GPU_OP_cosh:
    case GPU_OP_tanh:
    case GPU_OP_asinh:
    case GPU_OP_acosh:
    case GPU_OP_atanh:
    case GPU_OP_where:
    case GPU_OP_conj:
        return GPU_GIVES_COMPLEX;
    case GPU_OP_abs:
    case GPU_OP_real:
    case GPU_OP_imag:
    case GPU_OP_angle:
        return GPU_GIVES_REAL;
    case GPU_OP_eq:
    case GPU_OP_ne:
    case GPU_OP_land:
    case GPU_OP_lor:
    case GPU_OP_lxor:
    case GPU_OP_lnot:
    case GPU_OP_isnan:
    case GPU_OP_isinf:
    case GPU_OP_isfinite:
        return GPU_GIVES_TRUTH;
    default:
        return GPU_GIVES_NOTHING;
    }
}
