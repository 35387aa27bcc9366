/* Which programs have the form of an epilogue. Each of a program's values is
 * looked at as what it is of the product x: nothing (a number, or a matrix
 * times a number), or x on its way through the form; what is neither, or goes
 * the way in another order, has not the form. */
#include "epilogue.h"
#include "op_list.h"

#include <math.h>

/* How far on its way x is. What comes next is at a later stage. */
enum stage { START, SCALED, JOINED, RAISED, LIMITED };

typedef struct value {
    enum { NUMBER, MATRIX, RESULT, OTHER } kind;
    float number; /* or the factor of a matrix */
    int input;    /* of a matrix */
    stage at;
    epilogue e; /* of a result; `with` is set at the end */
} value;

static const value UNKNOWN = {value::OTHER, 0, -1, LIMITED, {}};

epilogue gpu_cuda_no_epilogue(void)
{
    return {NULL, 0, 0, 1, -0.0f, -INFINITY, INFINITY, 0, 0, 0};
}

static bool may(const value *x, stage next)
{
    return x->kind == value::RESULT && x->at < next;
}

/* Rounding is the same on either side of zero. */
static value negated(value x)
{
    if (x.kind == value::MATRIX)
        x.number = -x.number;
    else if (x.kind == value::RESULT && x.at <= SCALED)
        x.e.scale = -x.e.scale, x.at = SCALED;
    else
        return UNKNOWN;
    return x;
}

/* A matrix joins, as an addend or a factor, or a number as an addend. */
static value joined(value x, const value *with, float number, int is_factor)
{
    x.at = JOINED;
    x.input = with->kind == value::MATRIX ? with->input : -1;
    x.e.beta = number;
    x.e.is_factor = is_factor;
    return x;
}

static value multiply(const value *x, const value *y)
{
    if (x->kind != value::RESULT && y->kind == value::RESULT)
        return multiply(y, x);
    value z = *x;
    if (y->kind == value::NUMBER && may(x, SCALED)) {
        z.at = SCALED;
        z.e.scale = y->number;
        return z;
    }
    if (y->kind == value::MATRIX && may(x, JOINED))
        return joined(z, y, y->number, 1);
    if (x->kind == value::NUMBER)
        return y->kind == value::MATRIX ? multiply(y, x) : UNKNOWN;
    if (x->kind != value::MATRIX || y->kind != value::NUMBER || x->number != 1)
        return UNKNOWN;
    z.number = y->number;
    return z;
}

static value add(const value *x, const value *y)
{
    if (x->kind != value::RESULT)
        return y->kind == value::RESULT ? add(y, x) : UNKNOWN;
    if (!may(x, JOINED) || y->kind > value::MATRIX)
        return UNKNOWN;
    return joined(*x, y, y->number, 0);
}

/* x - y is x + -y, and y - x is -x + y. */
static value subtract(const value *x, const value *y)
{
    value minus = *y;
    if (y->kind == value::NUMBER)
        minus.number = -y->number;
    else
        minus = negated(*y);
    return minus.kind == value::OTHER ? UNKNOWN : add(x, &minus);
}

/* Both are x's limits; NULL: there is no such one. */
static value limit(const value *x, const value *low, const value *high)
{
    value z = *x;
    if ((low && (low->kind != value::NUMBER || !may(x, RAISED))) ||
        (high && (high->kind != value::NUMBER || !may(x, LIMITED))))
        return UNKNOWN;
    if (low)
        z.e.low = low->number;
    if (high)
        z.e.high = high->number;
    z.at = high ? LIMITED : RAISED;
    return z;
}

static value result_of(const gpu_instruction *code, const value *v)
{
    const value *x = &v[code->x], *y = &v[code->y], *z = &v[code->z];
    switch (code->op) {
    case GPU_OP_add:
        return add(x, y);
    case GPU_OP_sub:
        return subtract(x, y);
    case GPU_OP_mul:
        return multiply(x, y);
    case GPU_OP_neg:
        return negated(*x);
    case GPU_OP_maximum:
        return limit(x, y, NULL);
    case GPU_OP_minimum:
        return limit(x, NULL, y);
    case GPU_OP_clip:
        return limit(x, y, z);
    default:
        return UNKNOWN;
    }
}

static value find_form(const gpu_epilogue *e)
{
    value v[GPU_MAX_VALUES] = {};
    const gpu_program *p = e->program;
    int n = 0;
    for (int i = 0; i < p->inputs; i++, n++)
        if (i == e->product)
            v[n] = {value::RESULT, 0, -1, START, gpu_cuda_no_epilogue()};
        else
            v[n] = {value::MATRIX, 1, i, START, {}};
    for (int i = 0; i < p->constants; i++, n++)
        v[n] = {value::NUMBER, (float)p->constant[i], -1, START, {}};
    for (int i = 0; i < p->length; i++, n++)
        v[n] = result_of(&p->code[i], v);
    return p->length > 0 ? v[n - 1] : UNKNOWN;
}

static bool is_wide(const gpu_view *u)
{
    return u->col_stride == 1 && is_aligned(u->data) && u->row_stride % 4 == 0;
}

/* Did gpu_cuda_begin_matmul turn the product? */
static bool is_turned(const gpu_view *c, const gpu_view *oriented)
{
    return oriented->rows != c->rows ||
           (c->cols > 1 && oriented->col_stride != c->col_stride);
}

int gpu_cuda_find_epilogue(const gpu_gemm *p, const gpu_gemm *oriented,
                           epilogue *out)
{
    *out = gpu_cuda_no_epilogue();
    if (!p->epilogue || p->c.dtype != GPU_F32 || p->beta != 0 ||
        p->epilogue->program->compute != GPU_F32 ||
        is_turned(&p->c, &oriented->c))
        return 0;
    value found = find_form(p->epilogue);
    if (found.kind != value::RESULT)
        return 0;
    epilogue e = found.e;
    e.changes = 1;
    if (found.at >= JOINED && found.input >= 0) {
        const gpu_view *u = &p->epilogue->in[found.input];
        if (u->dtype != GPU_F32 || (u->col_stride != 0 && u->col_stride != 1))
            return 0;
        e.with = (const float *)u->data;
        e.row = u->row_stride;
        e.col = u->col_stride;
        e.is_wide = is_wide(u);
    }
    *out = e;
    return 1;
}
