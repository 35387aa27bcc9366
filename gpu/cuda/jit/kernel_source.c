/* The text of a kernel for a program: a function `value` of a line for each
 * instruction, between the two headers that have all that kernels share. */
#include "jit.h"
#include "op_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)JIT_INPUTS == GPU_MAX_INPUTS, "a job has all inputs");
_Static_assert((int)JIT_CONSTANTS == GPU_MAX_CONSTANTS, "and all constants");
_Static_assert((int)JIT_EXTRAS == GPU_MAX_EXTRAS, "and all results");

/* --- what a program costs --------------------------------------------------
 */

#define OP(name, arity, expression, vector, help, example, result) \
    {#name, arity, sizeof #vector != sizeof "NONE"},
#define TEST OP
#define REDUCTION(...)
static const struct {
    const char *name;
    int arity;
    int is_function; /* of CUDA's library, which takes many instructions */
} operations[] = {
#include "ops.def"
};

/* Additions that take as many instructions. */
static int cost_of(const jit_form *f, int op)
{
    int factor = f->compute == GPU_F64 ? 2 : 1;
    if (operations[op].is_function)
        return op == GPU_OP_pow ? 24 * factor : 8 * factor;
    switch (op) {
    case GPU_OP_div:
    case GPU_OP_idiv:
    case GPU_OP_reciprocal:
    case GPU_OP_sqrt:
        return 3 * factor;
    case GPU_OP_mod:
        return 8 * factor;
    default:
        return 1;
    }
}

/* The longest program of which a thread has several fours, and all of one:
 * their text is there for each element. Registers for what is read; and what a
 * random number costs. (A chain of 20 over 2^28 f32 takes 0.730 ms of an H200
 * by one four, 0.743 by two.) */
enum { SHORT = 6, MIDDLE = 24, LONG = 80, MOST_READ = 64, DRAW_COST = 10 };
enum { MOST_TURNED = 3 }; /* tiles of f32 in shared memory */

static int is_drawn(const jit_form *f, int input)
{
    return f->way[input] >= JIT_UNIFORM;
}

static int is_turned(const jit_form *f, int input)
{
    return f->way[input] == JIT_TURNED;
}

static int count_turned(const jit_form *f)
{
    int count = 0;
    for (int i = 0; i < f->inputs; i++)
        count += is_turned(f, i);
    return count;
}

static int count_drawn(const jit_form *f)
{
    int count = 0;
    for (int i = 0; i < f->inputs; i++)
        count += is_drawn(f, i);
    return count;
}

static int cost_of_program(const jit_form *f)
{
    int cost = count_drawn(f) * DRAW_COST;
    for (int n = 0; n < f->length; n++)
        cost += cost_of(f, f->code[n].op);
    return cost;
}

/* A reduction's blocks stay, and there are fewer of them than of a map: each
 * thread begins to read 64 bytes at once, of all inputs; or 32 where each of
 * its elements is read alone. */
static jit_shape shape_of_fold(const jit_form *f, int cost, int words)
{
    jit_shape s = {.is_long = cost > LONG, .is_wide = f->is_wide, .quads = 1};
    int most = s.is_long ? 1 : cost > MIDDLE || !f->is_wide ? 2 : 4;
    while (2 * s.quads * words * f->inputs <= 4 && 2 * s.quads <= most)
        s.quads *= 2;
    return s;
}

jit_shape jit_shape_of(const jit_form *f)
{
    int cost = cost_of_program(f), words = f->compute == GPU_F64 ? 2 : 1;
    if (f->fold)
        return shape_of_fold(f, cost, words);
    jit_shape s = {.is_long = cost > LONG, .is_wide = f->is_wide};
    s.quads = cost <= SHORT ? 4 / words : 1;
    while (s.quads > 1 && s.quads * JIT_ITEMS * words * f->inputs > MOST_READ)
        s.quads /= 2;
    if (s.is_long)
        s.is_wide = 0;
    return s;
}

/* A block for each tile. */
static int plan_tiles(int64_t rows, int64_t cols, jit_launch *l)
{
    int64_t down = (rows + JIT_SIDE - 1) / JIT_SIDE;
    int64_t across = (cols + JIT_SIDE - 1) / JIT_SIDE;
    if (down * across > INT32_MAX)
        return 0;
    *l = (jit_launch){(unsigned)(down * across), JIT_THREADS, 1,
                      (unsigned)across};
    return 1;
}

/* Threads beside each other for a row's fours, the rest below. */
int jit_plan_launch(const jit_form *f, int64_t rows, int64_t cols, int has_to,
                    jit_launch *l)
{
    jit_shape s = jit_shape_of(f);
    int64_t width = JIT_THREADS, across, down = 1;
    if (count_turned(f) > 0)
        return plan_tiles(rows, cols, l);
    if (!has_to && !f->is_row && !s.is_wide && !s.is_long &&
        cols < JIT_THREADS * JIT_ITEMS)
        return 0;
    while (!f->is_row && width > 1 && width / 2 * JIT_ITEMS >= cols)
        width /= 2;
    int64_t each = width * JIT_ITEMS * (f->is_row ? s.quads : 1);
    across = (cols + each - 1) / each;
    each = JIT_THREADS / width * s.quads;
    if (!f->is_row)
        down = (rows + each - 1) / each;
    if (across > INT32_MAX || across * down > INT32_MAX)
        return 0;
    l->blocks = (unsigned)(across * down);
    l->width = (unsigned)width;
    l->height = (unsigned)(JIT_THREADS / width);
    l->across = (unsigned)across;
    return 1;
}

/* --- the text --------------------------------------------------------------
 */

typedef struct writer {
    char *text;
    size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w,
                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(w->text + w->used, JIT_MOST_TEXT - w->used, format,
                      arguments);
    va_end(arguments);
    if (n > 0 && (size_t)n < JIT_MOST_TEXT - w->used)
        w->used += (size_t)n;
}

static const char *const types[GPU_DTYPES] = {"float", "double",
                                              "unsigned char"};
static const char *const ways[JIT_WAYS] = {
    "JIT_WIDE",   "JIT_ROW",     "JIT_COLUMN", "JIT_SAME",   "JIT_EACH",
    "JIT_TURNED", "JIT_UNIFORM", "JIT_NORMAL", "JIT_INTEGER"};

/* v0, v1 …: inputs, constants, results of instructions. */
static void put_value(writer *w, const jit_form *f)
{
    int v = f->inputs;
    put(w, "__device__ __forceinline__ T value(const jit_job &job, T *extra");
    for (int i = 0; i < f->inputs; i++)
        put(w, ", T v%d", i);
    put(w, ")\n{\n");
    for (int c = 0; c < f->constants; c++)
        put(w, "    const T v%d = job.%s[%d];\n", v++,
            f->compute == GPU_F64 ? "constant" : "single", c);
    for (int n = 0; n < f->length; n++) {
        const gpu_instruction *code = &f->code[n];
        int arity = operations[code->op].arity;
        put(w, "    const T v%d = op_%s<T>(v%d, v%d, v%d);\n", v++,
            operations[code->op].name, code->x, arity > 1 ? code->y : code->x,
            arity > 2 ? code->z : code->x);
    }
    for (int e = 0; e < f->extras; e++)
        put(w, "    extra[%d] = v%d;\n", e, f->extra[e]);
    put(w, "    return v%d;\n}\n", f->length > 0 ? v - 1 : 0);
}

/* What is read one by one is read so, however it lies. */
static jit_way way_of(const jit_form *f, const jit_shape *s, int input)
{
    jit_way way = (jit_way)f->way[input];
    if (!s->is_wide && (way == JIT_WIDE || way == JIT_ROW))
        return JIT_EACH;
    return way;
}

/* What the rest of a text is compiled for. */
static void put_inputs(writer *w, const jit_form *f, const jit_shape *s)
{
    put(w, "#define DRAWS %d\n#define INPUTS(X)", count_drawn(f));
    for (int i = 0, drawn = 0, turned = 0; i < f->inputs; i++) {
        put(w, " X(%d, %s, %s, %d)", i, types[f->dtype[i]],
            ways[way_of(f, s, i)], is_turned(f, i) ? turned : drawn);
        drawn += is_drawn(f, i);
        turned += is_turned(f, i);
    }
    put(w, "\n");
    if (count_drawn(f) > 0)
        put(w, "#include \"kernel_random_body.h\"\n");
}

size_t jit_write_source(const jit_form *f, char text[JIT_MOST_TEXT])
{
    writer w = {text, 0};
    jit_shape s = jit_shape_of(f);
    put(&w, "#include \"kernel_operations_body.h\"\n");
    put(&w, "typedef %s T;\ntypedef %s RESULT;\n", types[f->compute],
        types[f->result]);
    put(&w, "#define QUADS %d\n#define IS_WIDE %d\n#define IS_LONG %d\n",
        s.quads, s.is_wide, s.is_long);
    put(&w, f->fold ? "#define KIND %d\n" : "#define IS_ROW %d\n",
        f->fold ? f->fold : f->is_row);
    put(&w, "#define EXTRAS %d\n#define TURNED %d\n", f->extras,
        count_turned(f));
    put(&w, "#define IN_PLACE %d\n", f->in_place && s.is_wide);
    if (f->in_place)
        put(&w, "#define BEFORE in%d\n", f->in_place - 1);
    put_inputs(&w, f, &s);
    put_value(&w, f);
    put(&w, "#include \"%s\"\n",
        f->fold ? "kernel_reduce_body.h" : "kernel_body.h");
    return w.used;
}

/* --- forms and hashes ------------------------------------------------------
 */

/* Is an input's nearer neighbour below? */
static int lies_down(const gpu_view *v)
{
    return v->rows > 1 && v->cols > 1 && v->row_stride != 0 &&
           llabs(v->row_stride) < llabs(v->col_stride);
}

static jit_way way_of_view(const gpu_view *v, int is_row, int is_wide)
{
    if (v->col_stride == 0)
        return is_row || v->row_stride == 0 ? JIT_SAME : JIT_COLUMN;
    if (is_wide && !is_row && v->row_stride == 0)
        return JIT_ROW;
    return is_wide ? JIT_WIDE : JIT_EACH;
}

static jit_way way_of_draw(const gpu_random *r)
{
    return r->kind == GPU_UNIFORM  ? JIT_UNIFORM
           : r->kind == GPU_NORMAL ? JIT_NORMAL
                                   : JIT_INTEGER;
}

/* Fours that are drawn begin where a block of numbers does. */
static int fill_way(jit_form *f, const gpu_program *p, const gpu_view *v,
                    int input, int is_wide)
{
    if (v->data || !p->draw) {
        f->dtype[input] = (uint8_t)v->dtype;
        f->way[input] = !f->fold && lies_down(v)
                            ? JIT_TURNED
                            : (uint8_t)way_of_view(v, f->is_row, is_wide);
        return f->compute == GPU_F64 ? count_turned(f) <= MOST_TURNED / 2
                                     : count_turned(f) <= MOST_TURNED;
    }
    f->dtype[input] = f->compute;
    f->way[input] = (uint8_t)way_of_draw(&p->draw[input]);
    return (is_wide || !f->is_wide) && count_drawn(f) <= JIT_DRAWS;
}

/* Operands behind the arity are whatever they were: they are none. */
static int fill_code(jit_form *f, const gpu_program *p)
{
    for (int n = 0; n < p->length; n++) {
        if (p->code[n].op >= GPU_OP_ROW)
            return 0;
        int arity = operations[p->code[n].op].arity;
        f->code[n].op = p->code[n].op;
        f->code[n].x = p->code[n].x;
        f->code[n].y = arity > 1 ? p->code[n].y : 0;
        f->code[n].z = arity > 2 ? p->code[n].z : 0;
    }
    return 1;
}

/* What maps and reductions have in common; f's own is_row and is_wide are
 * there. */
static int fill(jit_form *f, const gpu_program *p, gpu_dtype compute,
                const gpu_view *in, const gpu_view *out, unsigned wide)
{
    f->compute = (uint8_t)compute;
    f->inputs = p->inputs;
    f->constants = p->constants;
    f->length = p->length;
    f->result = (uint8_t)out->dtype;
    if (p->inputs == 0 || !fill_code(f, p))
        return 0;
    for (int v = 0; v < p->inputs; v++)
        if (!fill_way(f, p, &in[v], v, wide >> v & 1))
            return 0;
    return 1;
}

static int is_same_view(const gpu_view *v, const gpu_view *w)
{
    return v->data == w->data && v->dtype == w->dtype &&
           v->col_stride == w->col_stride &&
           (w->rows == 1 || v->row_stride == w->row_stride);
}

/* x = where(mask, y, x) keeps what is not chosen. */
static int find_kept(const jit_form *f, const gpu_view *in, const gpu_view *out)
{
    const gpu_instruction *last = &f->code[f->length - 1];
    if (last->op != GPU_OP_where || f->result != f->compute || f->extras > 0)
        return 0;
    for (int v = 0; v < f->inputs; v++)
        if ((last->y == v || last->z == v) && !is_drawn(f, v) &&
            is_same_view(&in[v], out))
            return 1 + v;
    return 0;
}

int jit_fill_form(jit_form *f, const gpu_program *p, gpu_dtype compute,
                  const gpu_view *in, const gpu_view *out, unsigned wide)
{
    memset(f, 0, sizeof *f);
    f->is_row = out->rows == 1;
    f->is_wide = (wide & JIT_WIDE_RESULT) != 0;
    f->extras = p->extras;
    memcpy(f->extra, p->extra, p->extras);
    if (p->length == 0 || !fill(f, p, compute, in, out, wide))
        return 0;
    f->in_place = f->is_wide ? (uint8_t)find_kept(f, in, out) : 0;
    return 1;
}

int jit_fill_fold(jit_form *f, const gpu_program *p, gpu_dtype compute,
                  const gpu_view *in, const gpu_view *out, unsigned wide)
{
    memset(f, 0, sizeof *f);
    f->fold = p->reduction;
    f->is_wide = (wide & JIT_WIDE_RESULT) != 0;
    return !p->draw && fill(f, p, compute, in, out, wide);
}

uint64_t jit_hash(const void *data, size_t bytes, uint64_t before)
{
    const unsigned char *byte = data;
    uint64_t hash = before ^ 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * 1099511628211u;
    return hash;
}

/* What a text is made of beside a form: the files and the generator, whose
 * texts of a few forms stand for it. */
uint64_t jit_hash_files(void)
{
    char text[JIT_MOST_TEXT];
    uint64_t hash = 0;
    for (int i = 0; i < JIT_FILES; i++)
        hash = jit_hash(jit_files[i].text, strlen(jit_files[i].text), hash);
    for (int n = 0; n < 3 * GPU_OP_ROW; n++) {
        jit_form f = {.inputs = 3,
                      .length = 1,
                      .fold = n % 3 == 2 ? GPU_REDUCE_sum : 0,
                      .is_row = n % 3 == 1,
                      .is_wide = (uint8_t)(n / 3 % 2),
                      .way = {JIT_WIDE, JIT_ROW, JIT_COLUMN},
                      .code = {{(uint8_t)(n / 3), 0, 1, 2}}};
        hash = jit_hash(text, jit_write_source(&f, text), hash);
    }
    return hash;
}
