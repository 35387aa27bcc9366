/* What an operation on numbers that are f32 is when it is worked out in f64:
 * for those that put parts of both types into one program.
 *
 * What is exact of f32 is an f32 in f64, too. A sum, a product, a quotient or
 * a root of f32, worked out in f64 and then rounded to f32 (GPU_OP_single), is
 * what f32 gives, although it is rounded twice, as 53 >= 2 * 24 + 2. That holds
 * for the smallest quotients, too, which have fewer bits than 24: where m lies
 * in the midst of two of them, x - m y is a number of 48 bits, so x / y is m or
 * further from it than f64 could lose. Source: Figueroa, When is double
 * rounding innocuous?, 1995. Functions have other bits in f64; and a NaN may
 * have another sign, which no processor promises. */
#ifndef GPU_OP_ROUNDING_H
#define GPU_OP_ROUNDING_H

#include "op_list.h"
#include "program.h"

typedef enum gpu_in_f64 {
    GPU_OTHER_BITS,
    GPU_EXACT,
    GPU_ROUNDED,      /* to be rounded once more */
    GPU_QUOTIENT_DOWN /* a quotient that is rounded before it is floored */
} gpu_in_f64;

static inline gpu_in_f64 gpu_op_in_f64(gpu_op op)
{
    static const uint8_t ways[GPU_OPS] = {
        [GPU_OP_add] = GPU_ROUNDED,        [GPU_OP_sub] = GPU_ROUNDED,
        [GPU_OP_mul] = GPU_ROUNDED,        [GPU_OP_div] = GPU_ROUNDED,
        [GPU_OP_square] = GPU_ROUNDED,     [GPU_OP_sqrt] = GPU_ROUNDED,
        [GPU_OP_mod] = GPU_ROUNDED,        [GPU_OP_angle] = GPU_ROUNDED,
        [GPU_OP_reciprocal] = GPU_ROUNDED, [GPU_OP_idiv] = GPU_QUOTIENT_DOWN,
        [GPU_OP_single] = GPU_EXACT,       [GPU_OP_neg] = GPU_EXACT,
        [GPU_OP_abs] = GPU_EXACT,          [GPU_OP_sign] = GPU_EXACT,
        [GPU_OP_maximum] = GPU_EXACT,      [GPU_OP_minimum] = GPU_EXACT,
        [GPU_OP_clip] = GPU_EXACT,         [GPU_OP_floor] = GPU_EXACT,
        [GPU_OP_ceil] = GPU_EXACT,         [GPU_OP_trunc] = GPU_EXACT,
        [GPU_OP_round] = GPU_EXACT,        [GPU_OP_where] = GPU_EXACT,
        [GPU_OP_lt] = GPU_EXACT,           [GPU_OP_le] = GPU_EXACT,
        [GPU_OP_gt] = GPU_EXACT,           [GPU_OP_ge] = GPU_EXACT,
        [GPU_OP_eq] = GPU_EXACT,           [GPU_OP_ne] = GPU_EXACT,
        [GPU_OP_land] = GPU_EXACT,         [GPU_OP_lor] = GPU_EXACT,
        [GPU_OP_lxor] = GPU_EXACT,         [GPU_OP_lnot] = GPU_EXACT,
        [GPU_OP_isnan] = GPU_EXACT,        [GPU_OP_isinf] = GPU_EXACT,
        [GPU_OP_isfinite] = GPU_EXACT,     [GPU_OP_real] = GPU_EXACT,
        [GPU_OP_imag] = GPU_EXACT,         [GPU_OP_conj] = GPU_EXACT,
        [GPU_OP_copysign] = GPU_EXACT,     [GPU_OP_signbit] = GPU_EXACT,
    };
    return (gpu_in_f64)ways[op];
}

#endif
