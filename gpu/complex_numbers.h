/* Complex matrices: GPU_C64 and GPU_C128, whose elements are pairs of f32 and
 * f64, the real part first.
 *
 * A complex matrix is two real ones that lie between each other: its parts are
 * views of the same storage, with steps twice as wide. So all that moves
 * elements, adds them up or multiplies matrices is done by what real matrices
 * have, part by part, on every device, and sums and products keep its promises.
 * Where both parts lie without gaps and the same is done to each (sums, copies,
 * products with a real number), they are one real matrix twice as wide, in one
 * pass. What needs both at once (products of elements, functions) is the entry
 * complex_map of a backend; one without it gets the few operations that are
 * programs of the parts, and copies on the CPU do the rest, which is told as
 * any transfer is.
 *
 * Conjugation is lazy, as transposition is: a bit of the view, which those who
 * read a part as a negative one honour. Results and what is gathered carry
 * their own.
 *
 * Factorisations take complex matrices as they lie; a backend does those of
 * their elements that it has routines for. Everything else in gpu/ refuses
 * complex operands: gpu_check_operands and its like fail with GPU_TYPE. Rules
 * of values: real with complex is complex of the wider precision; a real
 * operand has no imaginary part at all (2 * z doubles both parts, whatever they
 * are), products are (ac - bd) + (ad + bc)i as everywhere, quotients neither
 * overflow nor underflow where the result does not; functions have C99's
 * special values and branch cuts. c64 is computed in f64 and rounded once. */
#ifndef GPU_COMPLEX_NUMBERS_H
#define GPU_COMPLEX_NUMBERS_H

#include "gpu.h"

typedef struct gpu_complex {
    double re, im;
} gpu_complex;

int gpu_dtype_is_complex(gpu_dtype t);
gpu_dtype gpu_dtype_of_parts(gpu_dtype t); /* f32, f64; a real type itself */
/* What draws the parts of complex elements. Uniform in the square; a normal
 * number has the variance that is asked for, half of it in each part. */
gpu_random gpu_random_of_parts(const gpu_random *r);
gpu_dtype gpu_dtype_made_complex(gpu_dtype t); /* of f32 and bool: c64 */
int gpu_is_complex(const gpu_matrix *m);
/* The type that has the values of both, numbers as in products: f32 of two
 * masks. */
gpu_dtype gpu_dtype_wider(gpu_dtype a, gpu_dtype b);

/* What an operation gives of complex numbers. */
typedef enum gpu_complex_kind {
    GPU_GIVES_NOTHING, /* it has no meaning there */
    GPU_GIVES_COMPLEX,
    GPU_GIVES_REAL,
    GPU_GIVES_TRUTH
} gpu_complex_kind;
gpu_complex_kind gpu_complex_op(gpu_op op);
/* The failure of an operation that gives nothing, or of a reduction by its
 * name: why, and what to write instead. */
gpu_status gpu_fail_complex_op(gpu_op op);
gpu_status gpu_fail_complex(const char *name);

/* An operand: a matrix of any type, or a number. */
typedef struct gpu_operand {
    const gpu_matrix *matrix; /* NULL: the number */
    gpu_complex value;
    int is_complex; /* of a number: 0, it is a real one */
} gpu_operand;

/* The operation on numbers, of which one at least is complex; those past its
 * arity are any. A real result, or a truth, has im = 0; of what gives nothing
 * NaN. */
gpu_complex gpu_complex_evaluate(gpu_op op, const gpu_operand in[3]);

/* out = op(in…) for every element, as gpu_map; at least one operand, or the
 * existing out, is complex, and one operand is a matrix. A created out
 * is c128 where an operand's matrix is f64 or c128, else c64, or the real type
 * of its parts, or bool. A complex result does not fit an out that is real. */
gpu_status gpu_complex_map(const char *name, gpu_op op, const gpu_operand *in,
                           gpu_matrix *out);

/* --- views and elements: out gets a reference ----------------------------- */

void gpu_view_conjugated(const gpu_matrix *m, gpu_matrix *out);
/* The real or the imaginary part where it lies, whatever is_conjugated says. */
typedef enum gpu_complex_part {
    GPU_REAL_PART,
    GPU_IMAGINARY_PART
} gpu_complex_part;
void gpu_view_part(const gpu_matrix *m, gpu_complex_part part, gpu_matrix *out);

/* re + im i; out is created: of the matrices' shape, broadcast. im may be NULL,
 * and dtype is a complex one. */
gpu_status gpu_complex_join(const gpu_matrix *re, const gpu_matrix *im,
                            gpu_dtype dtype, gpu_matrix *out);

/* Of a complex m; a real one has im = 0, and set takes no other. */
gpu_status gpu_complex_get(const gpu_matrix *m, int64_t i, int64_t j,
                           gpu_complex *out);
gpu_status gpu_complex_set(gpu_matrix *m, int64_t i, int64_t j,
                           gpu_complex value);
gpu_status gpu_complex_fill(gpu_matrix *m, gpu_complex value);
/* host: row-major pairs of m's parts' type. */
gpu_status gpu_complex_upload(gpu_matrix *m, const void *host);
gpu_status gpu_complex_download(const gpu_matrix *m, void *host);

/* --- computing ------------------------------------------------------------ */

/* sum, prod and mean of all elements of a complex m, by the number of the
 * reduction. The others give real numbers, or none: gpu_reduce_all. */
gpu_status gpu_complex_reduce_all(const char *name, gpu_reduction kind,
                                  const gpu_matrix *m, gpu_complex *out);
int gpu_reduces_to_complex(gpu_reduction kind);
/* The sum of conj(x) y, or of x y where it is not conjugated; one at least is
 * complex. kernel as gpu_dot's. */
gpu_status gpu_complex_dot(const gpu_matrix *x, const gpu_matrix *y,
                           int is_conjugated, const char *kernel,
                           gpu_complex *out);
gpu_status gpu_complex_determinant(const gpu_matrix *a, gpu_complex *out);

#endif
