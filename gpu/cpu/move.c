/* Views: their parts, copies between any two layouts and types; and elements
 * moved by lists of rows and columns, and by masks. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "vector.h"

/* --- parts ---------------------------------------------------------------- */

size_t gpu_cpu_size(gpu_dtype t)
{
    static const size_t sizes[GPU_ALL_DTYPES] = {4, 8, 1, 8, 16};
    return sizes[t];
}

gpu_view gpu_cpu_turned(gpu_view v)
{
    gpu_view t = v;
    t.rows = v.cols;
    t.cols = v.rows;
    t.row_stride = v.col_stride;
    t.col_stride = v.row_stride;
    return t;
}

gpu_view gpu_cpu_part(const gpu_view *v, int64_t row, int64_t col, int64_t rows,
                      int64_t cols)
{
    gpu_view part = *v;
    int64_t place = row * v->row_stride + col * v->col_stride;
    part.data = (char *)v->data + place * (int64_t)gpu_cpu_size(v->dtype);
    part.rows = rows;
    part.cols = cols;
    return part;
}

gpu_view gpu_cpu_flat(gpu_view v)
{
    if (v.rows == 1)
        return v;
    if (v.cols == 1)
        return gpu_cpu_turned(v);
    if (v.row_stride == v.cols * v.col_stride) {
        v.cols *= v.rows;
        v.rows = 1;
    }
    return v;
}

/* Copies n elements at steps ts and fs. What is turned round is known where the
 * loop is put together. */
typedef void strided_copy(void *to, int64_t ts, const void *from, int64_t fs,
                          int64_t n);

#define STRIDED(name, to_type, from_type, expression)                    \
    INLINE void name##_by(to_type *r, int64_t ts, const from_type *x,    \
                          int64_t fs, int64_t n)                         \
    {                                                                    \
        for (int64_t i = 0; i < n; i++)                                  \
            r[i * ts] = (to_type)(expression);                           \
    }                                                                    \
    static void name(void *to, int64_t ts, const void *from, int64_t fs, \
                     int64_t n)                                          \
    {                                                                    \
        if (ts == 1 && fs == -1)                                         \
            name##_by(to, 1, from, -1, n);                               \
        else                                                             \
            name##_by(to, ts, from, fs, n);                              \
    }
STRIDED(strided_f32_f32, float, float, x[i * fs])
STRIDED(strided_f32_f64, double, float, x[i * fs])
STRIDED(strided_f32_bool, uint8_t, float, x[i * fs] != 0)
STRIDED(strided_f64_f32, float, double, x[i * fs])
STRIDED(strided_f64_f64, double, double, x[i * fs])
STRIDED(strided_f64_bool, uint8_t, double, x[i * fs] != 0)
STRIDED(strided_bool_f32, float, uint8_t, x[i * fs] != 0)
STRIDED(strided_bool_f64, double, uint8_t, x[i * fs] != 0)
STRIDED(strided_bool_bool, uint8_t, uint8_t, x[i * fs])

static strided_copy *const strided[GPU_DTYPES][GPU_DTYPES] = {
    {strided_f32_f32, strided_f32_f64, strided_f32_bool},
    {strided_f64_f32, strided_f64_f64, strided_f64_bool},
    {strided_bool_f32, strided_bool_f64, strided_bool_bool},
};

static int64_t length(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* n times the element at `to`, from there on. */
static void repeat(void *to, size_t size, int64_t n)
{
    uint8_t *b = to;
    uint32_t *f = to;
    uint64_t *d = to;
    if (size == 1)
        memset(b, b[0], (size_t)n);
    else if (size == 4)
        for (int64_t i = 1; i < n; i++)
            f[i] = f[0];
    else
        for (int64_t i = 1; i < n; i++)
            d[i] = d[0];
}

enum { FEW_TIMES = 32 };

/* Each of n elements at steps fs fills a short row, so many times; rows begin
 * ts apart. What is so often 2, 3 or 4 is known where loops are put together.
 */
#define STRETCH(name, type)                                                 \
    INLINE void name##_rows(type *r, int64_t ts, const type *x, int64_t fs, \
                            int64_t n, int64_t times)                       \
    {                                                                       \
        for (int64_t i = 0; i < n; i++)                                     \
            for (int64_t k = 0; k < times; k++)                             \
                r[i * ts + k] = x[i * fs];                                  \
    }                                                                       \
    static void name(void *to, int64_t ts, const void *from, int64_t fs,    \
                     int64_t n, int64_t times)                              \
    {                                                                       \
        if (times == 2)                                                     \
            name##_rows(to, ts, from, fs, n, 2);                            \
        else if (times == 3)                                                \
            name##_rows(to, ts, from, fs, n, 3);                            \
        else if (times == 4)                                                \
            name##_rows(to, ts, from, fs, n, 4);                            \
        else                                                                \
            name##_rows(to, ts, from, fs, n, times);                        \
    }
STRETCH(stretch_f32, float)
STRETCH(stretch_f64, double)

/* The inner loop runs along the source's shorter step: what is read is read
 * once, and the pieces written fit the first cache. */
void gpu_cpu_convert(const gpu_view *from, const gpu_view *to)
{
    gpu_view f = *from, t = *to;
    if (t.cols == 1 ||
        (t.rows > 1 && length(f.row_stride) < length(f.col_stride))) {
        f = gpu_cpu_turned(f);
        t = gpu_cpu_turned(t);
    }
    char *r = t.data;
    const char *x = f.data;
    int64_t r_step = t.row_stride * (int64_t)gpu_cpu_size(t.dtype);
    int64_t x_step = f.row_stride * (int64_t)gpu_cpu_size(f.dtype);
    if (t.col_stride == 1 && f.col_stride == 1) {
        if (t.row_stride == t.cols && f.row_stride == t.cols) {
            t.cols *= t.rows;
            t.rows = 1;
        }
        for (int64_t i = 0; i < t.rows; i++)
            gpu_cpu_vectors->convert[f.dtype][t.dtype](
                r + i * r_step, x + i * x_step, (size_t)t.cols);
        return;
    }
    if (t.row_stride == 1 && f.col_stride == 1 && f.dtype == t.dtype &&
        f.dtype != GPU_BOOL) {
        gpu_cpu_vectors->turn[f.dtype](r, t.col_stride, x, f.row_stride, t.rows,
                                       t.cols);
        return;
    }
    strided_copy *copy = strided[f.dtype][t.dtype];
    int is_one = f.col_stride == 0 && t.col_stride == 1 && t.cols > 0;
    if (is_one && t.cols <= FEW_TIMES && f.dtype == t.dtype &&
        f.dtype != GPU_BOOL) {
        (f.dtype == GPU_F64 ? stretch_f64 : stretch_f32)(
            r, t.row_stride, x, f.row_stride, t.rows, t.cols);
        return;
    }
    for (int64_t i = 0; i < t.rows; i++) {
        copy(r + i * r_step, t.col_stride, x + i * x_step, f.col_stride,
             is_one ? 1 : t.cols);
        if (is_one)
            repeat(r + i * r_step, gpu_cpu_size(t.dtype), t.cols);
    }
}

/* Walks a row-major range of v against a buffer, a piece of a row a time. */
static void walk(const gpu_view *view, int64_t first, int64_t n, gpu_dtype t,
                 char *buffer, int storing)
{
    gpu_view v = gpu_cpu_flat(*view);
    while (n > 0) {
        int64_t row = v.rows == 1 ? 0 : first / v.cols;
        int64_t col = first - row * v.cols;
        int64_t count = v.cols - col < n ? v.cols - col : n;
        gpu_view part = gpu_cpu_part(&v, row, col, 1, count);
        gpu_view line = {buffer, t, 1, count, count, 1};
        if (storing)
            gpu_cpu_convert(&line, &part);
        else
            gpu_cpu_convert(&part, &line);
        buffer += (size_t)count * gpu_cpu_size(t);
        first += count;
        n -= count;
    }
}

void gpu_cpu_load(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                  void *buffer)
{
    walk(v, first, n, t, buffer, 0);
}

void gpu_cpu_store(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                   const void *buffer)
{
    walk(v, first, n, t, (void *)(uintptr_t)buffer, 1);
}

void gpu_cpu_store_one(const gpu_view *v, int64_t row, int64_t col,
                       double value)
{
    gpu_view to = gpu_cpu_part(v, row, col, 1, 1);
    gpu_view from = {&value, GPU_F64, 1, 1, 1, 1};
    gpu_cpu_convert(&from, &to);
}

/* --- whole views ---------------------------------------------------------- */

size_t gpu_cpu_view_bytes(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * gpu_cpu_size(v->dtype);
}

gpu_status gpu_cpu_make_dense(gpu_view *v, int read, void **room)
{
    gpu_view from = *v;
    if (gpu_cpu_alloc(NULL, gpu_cpu_view_bytes(v), room) != GPU_OK)
        return GPU_MEMORY;
    *v = (gpu_view){*room, v->dtype, v->rows, v->cols, v->cols, 1};
    return read ? gpu_cpu_copy(&from, v) : GPU_OK;
}

/* --- lists of rows and columns -------------------------------------------- */

enum { PIECE = 1024 }; /* elements a thread holds at a time */

typedef struct move {
    const gpu_view *from, *to;
    const int64_t *rows, *cols;
    int scatter;
} move;

static void move_one(const void *from, gpu_dtype x, void *to, gpu_dtype y)
{
    double value = x == GPU_F64   ? *(const double *)from
                   : x == GPU_F32 ? *(const float *)from
                                  : *(const uint8_t *)from;
    if (y == GPU_F64)
        *(double *)to = value;
    else if (y == GPU_F32)
        *(float *)to = (float)value;
    else
        *(uint8_t *)to = value != 0;
}

#define PICK(type)                                                    \
    if (scatter)                                                      \
        for (int64_t k = 0; k < n; k++)                               \
            ((type *)b)[list[k] * far] = ((const type *)a)[k * near]; \
    else                                                              \
        for (int64_t k = 0; k < n; k++)                               \
            ((type *)a)[k * near] = ((const type *)b)[list[k] * far];

/* n elements between a row of the dense side, which lie side by side, and one
 * of the listed side, where list says. */
static void pick(const gpu_view *dense, const gpu_view *listed,
                 const int64_t *list, int64_t n, int scatter)
{
    int64_t near = dense->col_stride, far = listed->col_stride;
    char *a = dense->data, *b = listed->data;
    if (dense->dtype == listed->dtype && dense->dtype == GPU_F64) {
        PICK(double)
    } else if (dense->dtype == listed->dtype && dense->dtype == GPU_F32) {
        PICK(float)
    } else {
        int64_t x = (int64_t)gpu_cpu_size(dense->dtype) * near;
        int64_t y = (int64_t)gpu_cpu_size(listed->dtype) * far;
        for (int64_t k = 0; k < n; k++)
            if (scatter)
                move_one(a + k * x, dense->dtype, b + list[k] * y,
                         listed->dtype);
            else
                move_one(b + list[k] * y, listed->dtype, a + k * x,
                         dense->dtype);
    }
}

/* Rows first .. last - 1 of the list, columns c0 .. c1 - 1 of the list. */
static gpu_status move_block(const move *m, int64_t first, int64_t last,
                             int64_t c0, int64_t c1)
{
    enum { BETWEEN_POLLS = 64 * PIECE };
    const gpu_view *dense = m->scatter ? m->from : m->to;
    const gpu_view *listed = m->scatter ? m->to : m->from;
    int64_t n, left = 0;
    for (int64_t i = first; i < last; i++)
        for (int64_t j = c0; j < c1; j += n) {
            n = c1 - j < BETWEEN_POLLS ? c1 - j : BETWEEN_POLLS;
            left -= n;
            if (left < 0 && gpu_cpu_interrupted())
                return GPU_INTERRUPTED;
            if (left < 0)
                left = BETWEEN_POLLS;
            int64_t row = m->rows ? m->rows[i] : i;
            gpu_view a = gpu_cpu_part(dense, i, j, 1, n);
            gpu_view b = gpu_cpu_part(listed, row, m->cols ? 0 : j, 1, n);
            if (m->cols)
                pick(&a, &b, m->cols + j, n, m->scatter);
            else
                gpu_cpu_convert(m->scatter ? &a : &b, m->scatter ? &b : &a);
        }
    return GPU_OK;
}

static gpu_status move_rows(void *context, int64_t first, int64_t last)
{
    const move *m = context;
    const gpu_view *dense = m->scatter ? m->from : m->to;
    return move_block(m, first, last, 0, dense->cols);
}

static gpu_status move_cols(void *context, int64_t first, int64_t last)
{
    const move *m = context;
    const gpu_view *dense = m->scatter ? m->from : m->to;
    return move_block(m, 0, dense->rows, first, last);
}

/* A column is moved as a row: its list is gone through in one loop. */
static void turn_column(move *m, gpu_view turned[2])
{
    const int64_t *rows = m->rows;
    if ((m->scatter ? m->from : m->to)->cols != 1)
        return;
    turned[0] = gpu_cpu_turned(*m->from);
    turned[1] = gpu_cpu_turned(*m->to);
    m->from = &turned[0];
    m->to = &turned[1];
    m->rows = m->cols;
    m->cols = rows;
}

gpu_status gpu_cpu_gather(void *device, const gpu_view *from,
                          const int64_t *rows, const int64_t *cols,
                          const gpu_view *to)
{
    (void)device;
    gpu_view turned[2];
    move m = {from, to, rows, cols, 0};
    int64_t n = to->rows * to->cols;
    if (n == 0)
        return GPU_OK;
    turn_column(&m, turned);
    return m.to->rows == 1 ? gpu_cpu_parallel(m.to->cols, n, move_cols, &m)
                           : gpu_cpu_parallel(m.to->rows, n, move_rows, &m);
}

/* With a repeated index the last wins: threads share out what is not
 * repeated. */
gpu_status gpu_cpu_scatter(void *device, const gpu_view *from,
                           const int64_t *rows, const int64_t *cols,
                           const gpu_view *to)
{
    (void)device;
    gpu_view turned[2];
    move m = {from, to, rows, cols, 1};
    int64_t n = from->rows * from->cols;
    if (n == 0)
        return GPU_OK;
    turn_column(&m, turned);
    if (!m.rows && m.from->rows > 1)
        return gpu_cpu_parallel(m.from->rows, n, move_rows, &m);
    if (!m.cols && m.from->cols >= PIECE)
        return gpu_cpu_parallel(m.from->cols, n, move_cols, &m);
    return gpu_cpu_stop(move_rows(&m, 0, m.from->rows));
}

/* --- lists that are matrices ------------------------------------------------
 */

typedef struct naming {
    gpu_view list; /* a row */
    int64_t size;  /* of the side that it names places of, */
    int64_t last;  /* up to this one */
    int64_t *places;
} naming;

/* A whole number below 2^51 in size and this one have a sum whose lower bits
 * are the number's. */
#define TO_WHOLE 0x1.8p52

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The places, from 0, that n numbers name; 0: one of them names none, and what
 * is in `to` means nothing. All in 64 bits and without a branch, as vectors
 * have it. */
VECTORS static int name_piece(const naming *l, const double *x, int64_t n,
                              int64_t *to)
{
    int64_t wrong = 0;
    uint64_t zero = bits_of(TO_WHOLE), from_end = (uint64_t)l->size + 1;
    double last = (double)l->last;
    for (int64_t k = 0; k < n; k++) {
        double sum = x[k] + TO_WHOLE;
        uint64_t place = bits_of(sum) - zero;
        uint64_t is_from_end = -(uint64_t)((int64_t)place < 0);
        wrong |= -(int64_t)((sum - TO_WHOLE != x[k]) | (x[k] == 0) |
                            !(fabs(x[k]) <= last));
        to[k] = (int64_t)(place - 1 + (is_from_end & from_end));
    }
    return !wrong;
}

/* Those of elements first .. first + n - 1 of a list; GPU_RANGE: one of them
 * names none. */
static gpu_status name_places(const naming *l, int64_t first, int64_t n,
                              int64_t *to)
{
    double room[PIECE];
    const double *list = l->list.data, *x = room;
    int is_plain = l->list.dtype == GPU_F64 && l->list.col_stride == 1;
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t count = gpu_cpu_smaller(n - i, PIECE);
        if (is_plain)
            x = list + first + i;
        else
            gpu_cpu_load(&l->list, first + i, count, GPU_F64, room);
        if (!name_piece(l, x, count, to + i))
            return GPU_RANGE;
    }
    return GPU_OK;
}

static gpu_status name_range(void *context, int64_t first, int64_t last)
{
    const naming *l = context;
    enum { BETWEEN_POLLS = 64 * PIECE };
    for (int64_t n; first < last; first += n) {
        n = gpu_cpu_smaller(last - first, BETWEEN_POLLS);
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (name_places(l, first, n, l->places + first) != GPU_OK)
            return GPU_RANGE;
    }
    return GPU_OK;
}

/* A row of elements that one list picks, its places named as they are needed.
 */
typedef struct pick_row_job {
    gpu_view dense, listed;
    naming list;
} pick_row_job;

static gpu_status pick_row(void *context, int64_t first, int64_t last)
{
    const pick_row_job *j = context;
    int64_t place[PIECE];
    for (int64_t i = first, n; i < last; i += n) {
        n = gpu_cpu_smaller(last - i, PIECE);
        if (i % (64 * PIECE) < PIECE && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (name_places(&j->list, i, n, place) != GPU_OK)
            return GPU_RANGE;
        gpu_view part = gpu_cpu_part(&j->dense, 0, i, 1, n);
        pick(&part, &j->listed, place, n, 0);
    }
    return GPU_OK;
}

/* *places: the list's, to be freed with its bytes; NULL of no list. */
static gpu_status make_places(const gpu_view *list, int64_t size, int64_t last,
                              int64_t **places)
{
    void *room;
    naming l = {.list = gpu_cpu_turned(*list), .size = size, .last = last};
    *places = NULL;
    if (!list->data)
        return GPU_OK;
    if (gpu_cpu_alloc(NULL, (size_t)list->rows * sizeof **places, &room))
        return gpu_cpu_stop(GPU_MEMORY);
    *places = l.places = room;
    return gpu_cpu_parallel(list->rows, list->rows, name_range, &l);
}

static void free_places(const gpu_view *list, int64_t *places)
{
    if (places)
        gpu_cpu_free(NULL, places, (size_t)list->rows * sizeof *places);
}

gpu_status gpu_cpu_pick(void *device, const gpu_picking *p)
{
    int64_t n = p->small.rows * p->small.cols, *rows, *cols = NULL;
    if (n == 0)
        return GPU_OK;
    if (!p->scatters && p->small.cols == 1 && p->rows.data && !p->cols.data) {
        pick_row_job j = {
            gpu_cpu_turned(p->small),
            gpu_cpu_turned(p->big),
            {gpu_cpu_turned(p->rows), p->big.rows, p->last_row, NULL}};
        return gpu_cpu_parallel(n, n, pick_row, &j);
    }
    gpu_status status = make_places(&p->rows, p->big.rows, p->last_row, &rows);
    if (status == GPU_OK)
        status = make_places(&p->cols, p->big.cols, p->last_col, &cols);
    if (status == GPU_OK)
        status = p->scatters
                     ? gpu_cpu_scatter(device, &p->small, rows, cols, &p->big)
                     : gpu_cpu_gather(device, &p->big, rows, cols, &p->small);
    free_places(&p->rows, rows);
    free_places(&p->cols, cols);
    return status;
}

/* --- masks ----------------------------------------------------------------
 * The elements are cut into runs; one pass counts the true ones of each run,
 * the next moves them to or from their places in the vector. */

enum { RUN = 64 * PIECE };

typedef struct masked {
    const gpu_view *full, *mask, *packed; /* full without data: see compress */
    int64_t *start; /* runs + 1: a run's first place in the vector */
    int expand;
} masked;

/* n elements of type t from the i-th on, where they lie if that is without
 * gaps, or else in the buffer. */
static const void *elements_of(const gpu_view *v, int64_t i, int64_t n,
                               gpu_dtype t, void *buffer)
{
    gpu_view flat = gpu_cpu_flat(*v);
    if (flat.rows == 1 && flat.col_stride == 1 && flat.dtype == t)
        return (const char *)flat.data + (size_t)i * gpu_cpu_size(t);
    gpu_cpu_load(v, i, n, t, buffer);
    return buffer;
}

static gpu_status count_runs(void *context, int64_t first, int64_t last)
{
    const masked *m = context;
    int64_t n = m->mask->rows * m->mask->cols;
    uint8_t room[PIECE];
    for (int64_t run = first; run < last; run++) {
        int64_t count = 0, end = (run + 1) * RUN < n ? (run + 1) * RUN : n;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int64_t i = run * RUN; i < end; i += PIECE) {
            int64_t size = end - i < PIECE ? end - i : PIECE;
            count += (int64_t)gpu_cpu_vectors->count(
                elements_of(m->mask, i, size, GPU_BOOL, room), (size_t)size);
        }
        m->start[run] = count;
    }
    return GPU_OK;
}

/* Without a branch, which chance would decide: what is not wanted is written
 * over by the next, or read and dropped. */
#define PACK(type)                                     \
    for (int64_t k = 0; k < size; k++) {               \
        ((type *)to)[count] = ((const type *)from)[k]; \
        count += truth[k] != 0;                        \
    }
#define UNPACK(type)                                \
    for (int64_t k = 0; k < size; k++) {            \
        type old = ((const type *)full)[k];         \
        type value = ((const type *)packed)[count]; \
        ((type *)full)[k] = truth[k] ? value : old; \
        count += truth[k] != 0;                     \
    }

/* The places of the true ones among size, which count from `first`; returns how
 * many there are. Words without any are passed over. */
static int64_t pack_places(const uint8_t *truth, int64_t first, int64_t size,
                           double *packed)
{
    int64_t count = 0, k = 0;
    for (; k < size; k += (int64_t)sizeof(uint64_t)) {
        uint64_t word = 0;
        int64_t n = gpu_cpu_smaller(size - k, sizeof word);
        memcpy(&word, truth + k, (size_t)n);
        for (int64_t b = 0; word != 0 && b < n; b++) {
            packed[count] = (double)(first + k + b);
            count += truth[k + b] != 0;
        }
    }
    return count;
}

/* Where the elements from `place` on lie in the vector, if what is written
 * behind `count` of them stays before `end`; else NULL. */
static void *room_at(const gpu_view *packed, int64_t place, int64_t count,
                     int64_t end)
{
    gpu_view flat = gpu_cpu_flat(*packed);
    int64_t size = (int64_t)gpu_cpu_size(flat.dtype);
    if (flat.rows != 1 || flat.col_stride != 1 ||
        place + count + GPU_CPU_BEHIND / size > end)
        return NULL;
    return (char *)flat.data + place * size;
}

/* Moves the true ones of a piece to the vector, from `place` on, and returns
 * how many they are; what is there from `end` on is others'. */
static int64_t pack_piece(const masked *m, int64_t i, int64_t size,
                          int64_t place, int64_t end)
{
    gpu_dtype t = m->full->dtype;
    uint8_t room[PIECE];
    double full[PIECE], packed[PIECE + GPU_CPU_BEHIND / sizeof(double)];
    const uint8_t *truth = elements_of(m->mask, i, size, GPU_BOOL, room);
    void *there = room_at(m->packed, place, size, end), *to = packed;
    const void *from = full;
    int64_t count = 0;
    if (there && t != GPU_BOOL)
        to = there;
    if (m->full->data)
        from = elements_of(m->full, i, size, t, full);
    if (!m->full->data && gpu_cpu_vectors->pack_places)
        count = (int64_t)gpu_cpu_vectors->pack_places(to, truth, (size_t)size,
                                                      (double)(i + 1));
    else if (!m->full->data)
        count = pack_places(truth, i + 1, size, to);
    else if (t != GPU_BOOL && gpu_cpu_vectors->pack[t == GPU_F64])
        count = (int64_t)gpu_cpu_vectors->pack[t == GPU_F64](to, from, truth,
                                                             (size_t)size);
    else if (t == GPU_F64)
        PACK(double)
    else if (t == GPU_F32)
        PACK(float)
    else
        PACK(uint8_t)
    if (to != there)
        gpu_cpu_store(m->packed, place, count, t, packed);
    return count;
}

/* The other way. */
static int64_t unpack_piece(const masked *m, int64_t i, int64_t size,
                            int64_t place)
{
    gpu_dtype t = m->full->dtype;
    uint8_t room[PIECE];
    double full[PIECE], packed[PIECE + 1];
    const uint8_t *truth = elements_of(m->mask, i, size, GPU_BOOL, room);
    int64_t count = (int64_t)gpu_cpu_vectors->count(truth, (size_t)size);
    if (count == 0)
        return 0;
    gpu_cpu_load(m->full, i, size, t, full);
    gpu_cpu_load(m->packed, place, count, t, packed);
    memset((char *)packed + (size_t)count * gpu_cpu_size(t), 0,
           gpu_cpu_size(t));
    count = 0;
    if (t == GPU_F64)
        UNPACK(double)
    else if (t == GPU_F32)
        UNPACK(float)
    else
        UNPACK(uint8_t)
    gpu_cpu_store(m->full, i, size, t, full);
    return count;
}

static gpu_status move_runs(void *context, int64_t first, int64_t last)
{
    const masked *m = context;
    int64_t n = m->mask->rows * m->mask->cols;
    for (int64_t run = first; run < last; run++) {
        int64_t place = m->start[run];
        int64_t end = (run + 1) * RUN < n ? (run + 1) * RUN : n;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int64_t i = run * RUN; i < end; i += PIECE) {
            int64_t size = end - i < PIECE ? end - i : PIECE;
            place += m->expand
                         ? unpack_piece(m, i, size, place)
                         : pack_piece(m, i, size, place, m->start[run + 1]);
        }
    }
    return GPU_OK;
}

static gpu_status move_masked(masked *m)
{
    int64_t n = m->mask->rows * m->mask->cols;
    int64_t runs = (n + RUN - 1) / RUN, place = 0;
    void *start;
    if (n == 0)
        return GPU_OK;
    size_t bytes = (size_t)(runs + 1) * sizeof *m->start;
    if (gpu_cpu_alloc(NULL, bytes, &start))
        return gpu_cpu_stop(GPU_MEMORY);
    m->start = start;
    gpu_status status = GPU_OK;
    if (runs > 1)
        status = gpu_cpu_parallel(runs, n, count_runs, m);
    else
        m->start[0] = m->packed->rows * m->packed->cols;
    for (int64_t run = 0; run < runs && status == GPU_OK; run++) {
        int64_t count = m->start[run];
        m->start[run] = place;
        place += count;
    }
    m->start[runs] = place;
    if (status == GPU_OK)
        status = gpu_cpu_parallel(runs, n, move_runs, m);
    gpu_cpu_free(NULL, start, bytes);
    return status;
}

gpu_status gpu_cpu_compress(void *device, const gpu_view *from,
                            const gpu_view *mask, const gpu_view *to)
{
    (void)device;
    masked m = {from, mask, to, NULL, 0};
    return move_masked(&m);
}

gpu_status gpu_cpu_expand(void *device, const gpu_view *from,
                          const gpu_view *mask, const gpu_view *to)
{
    (void)device;
    masked m = {to, mask, from, NULL, 1};
    return move_masked(&m);
}
