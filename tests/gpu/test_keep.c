/* What kernels keep about operands: found by the next product, dropped by
 * every write, in its limit, oldest first, and when memory is short; and
 * what a product does whose kernel fails. On a device of the test's own. */
#include "fake_device.h"

/* --- matrices of small integers, whose products are exact ----------------- */

static gpu_matrix matrix_of(gpu_dtype t, int ndim, int64_t rows, int64_t cols)
{
    gpu_matrix m;
    assert_int_equal(gpu_create(&m, fake, t, ndim, rows, cols), GPU_OK);
    gpu_view v = gpu_view_of(&m);
    fill_integers(&v, 8);
    return m;
}

static gpu_matrix matrix(int64_t rows, int64_t cols)
{
    return matrix_of(GPU_F32, 2, rows, cols);
}

static gpu_matrix like(const gpu_matrix *m, gpu_dtype t)
{
    return matrix_of(t, m->ndim, m->rows, m->cols);
}

static gpu_matrix block_of(const gpu_matrix *m, gpu_slice rows, gpu_slice cols)
{
    gpu_matrix v;
    assert_int_equal(gpu_view_block(m, rows, cols, &v), GPU_OK);
    return v;
}

static void release_all(gpu_matrix *m, int n)
{
    for (int i = 0; i < n; i++)
        gpu_release(&m[i]);
}

static size_t plane_bytes(const gpu_matrix *m)
{
    return (size_t)gpu_size(m) * sizeof(double);
}

static size_t kept(void)
{
    gpu_memory m;
    assert_int_equal(gpu_device_memory(fake, &m), GPU_OK);
    return m.kept;
}

/* --- products ------------------------------------------------------------- */

static gpu_view as_factor(const gpu_matrix *m, int is_row)
{
    gpu_view v = gpu_view_of(m);
    return m->ndim == 1 && is_row ? gpu_cpu_turned(v) : v;
}

static void assert_product(const gpu_matrix *a, const gpu_matrix *b,
                           const gpu_matrix *c)
{
    gpu_view x = as_factor(a, 1), y = as_factor(b, 0);
    gpu_view z = as_factor(c, a->ndim == 1);
    for (int64_t i = 0; i < z.rows; i++)
        for (int64_t j = 0; j < z.cols; j++) {
            double sum = 0;
            for (int64_t k = 0; k < x.cols; k++)
                sum += get(&x, i, k) * get(&y, k, j);
            assert_true(get(&z, i, j) == sum);
        }
}

static gpu_status product(const gpu_matrix *a, const gpu_matrix *b, double beta,
                          gpu_matrix *c)
{
    gpu_product how = {.alpha = 1, .beta = beta};
    keeper.calls = keeper.found = keeper.made = 0;
    return gpu_matmul(a, b, &how, c);
}

static void multiply(const gpu_matrix *a, const gpu_matrix *b)
{
    gpu_matrix c = {.storage = NULL};
    assert_int_equal(product(a, b, 0, &c), GPU_OK);
    assert_product(a, b, &c);
    gpu_release(&c);
}

/* a b is right, and of its operands so many were kept before and now. */
#define EXPECT_PRODUCT(a, b, before, now)       \
    do {                                        \
        multiply(a, b);                         \
        assert_int_equal(keeper.found, before); \
        assert_int_equal(keeper.made, now);     \
    } while (0)

/* Two operands about which everything is kept. */
static void start(gpu_matrix *a, gpu_matrix *b)
{
    *a = matrix(6, 4);
    *b = matrix(4, 5);
    EXPECT_PRODUCT(a, b, 0, 2);
    assert_int_equal(kept(), plane_bytes(a) + plane_bytes(b));
}

/* --- finding -------------------------------------------------------------- */

static void the_next_product_finds_them(void **state)
{
    gpu_matrix a, b, other = matrix(4, 3);
    (void)state;
    assert_int_equal(kept(), 0);
    start(&a, &b);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    EXPECT_PRODUCT(&a, &other, 1, 1);
    EXPECT_PRODUCT(&a, &other, 2, 0);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&other);
}

/* As a left and as a right operand, a matrix is kept twice. */
static void squares(void **state)
{
    gpu_matrix a = matrix(4, 4);
    (void)state;
    EXPECT_PRODUCT(&a, &a, 0, 2);
    EXPECT_PRODUCT(&a, &a, 2, 0);
    assert_int_equal(kept(), 2 * plane_bytes(&a));
    gpu_release(&a);
    assert_int_equal(kept(), 0);
}

/* A view and what it is a view of begin at one place. */
static void views_are_told_apart(void **state)
{
    gpu_matrix a = matrix(4, 4), b = matrix(4, 4), m[4];
    (void)state;
    gpu_view_transposed(&a, &m[0]);
    m[1] = block_of(&a, (gpu_slice){0, 1, 2}, (gpu_slice){0, 1, 4});
    m[2] = block_of(&a, (gpu_slice){0, 2, 2}, (gpu_slice){0, 1, 4});
    m[3] = block_of(&a, (gpu_slice){3, -1, 4}, (gpu_slice){3, -1, 4});
    EXPECT_PRODUCT(&a, &b, 0, 2);
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 1, 1);
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 2, 0);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    assert_int_equal(gpu_fill(&m[1], 2), GPU_OK);
    assert_int_equal(kept(), plane_bytes(&b));
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 1, 1);
    release_all(m, 4);
    gpu_release(&a);
    gpu_release(&b);
}

static void vectors(void **state)
{
    gpu_matrix a = matrix(4, 4), x = matrix_of(GPU_F32, 1, 4, 1), row;
    (void)state;
    gpu_view_row(&a, 0, &row);
    EXPECT_PRODUCT(&a, &x, 0, 2);
    EXPECT_PRODUCT(&a, &x, 2, 0);
    EXPECT_PRODUCT(&x, &a, 0, 2);
    EXPECT_PRODUCT(&row, &x, 1, 1);
    EXPECT_PRODUCT(&row, &a, 2, 0);
    EXPECT_PRODUCT(&x, &a, 2, 0);
    gpu_release(&a);
    gpu_release(&x);
    gpu_release(&row);
}

/* Whatever differs in the key, in nothing but that, is another thing. */
static void keys_are_compared_in_full(void **state)
{
    gpu_matrix a = matrix(6, 4), other = matrix(6, 4);
    gpu_keep_key key = {LEFT, gpu_view_of(&a)}, wrong[7];
    (void)state;
    for (int i = 0; i < 7; i++)
        wrong[i] = key;
    wrong[0].kind = RIGHT;
    wrong[1].view.data = (float *)key.view.data + 1;
    wrong[2].view.dtype = GPU_F64;
    wrong[3].view.rows--;
    wrong[4].view.cols--;
    wrong[5].view.row_stride++;
    wrong[6].view.col_stride++;
    void *data = gpu_keep(a.storage, &key, 100);
    assert_non_null(data);
    assert_non_null(gpu_keep(other.storage, &wrong[0], 100));
    for (int i = 0; i < 7; i++)
        assert_null(gpu_recall(a.storage, &wrong[i]));
    assert_null(gpu_recall(other.storage, &key));
    assert_null(gpu_recall(NULL, &key));
    assert_null(gpu_keep(NULL, &key, 100));
    assert_ptr_equal(gpu_recall(a.storage, &key), data);
    gpu_release(&a);
    gpu_release(&other);
}

/* Operands of another type are copied; nothing is kept about a copy. */
static void converted_operands(void **state)
{
    gpu_matrix a = matrix(3, 4), b = matrix_of(GPU_F64, 2, 4, 5);
    gpu_matrix mask = matrix_of(GPU_BOOL, 2, 4, 4);
    (void)state;
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(kept(), plane_bytes(&b));
    EXPECT_PRODUCT(&a, &b, 1, 0);
    EXPECT_PRODUCT(&mask, &b, 1, 0);
    EXPECT_PRODUCT(&mask, &mask, 0, 0);
    assert_int_equal(kept(), plane_bytes(&b));
    assert_int_equal(a.storage->kept + mask.storage->kept, 0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&mask);
}

/* --- writing -------------------------------------------------------------- */

static void write_fill(gpu_matrix *v)
{
    assert_int_equal(gpu_fill(v, 3), GPU_OK);
}

static void write_upload(gpu_matrix *v)
{
    float host[64];
    assert_true(gpu_size(v) <= 64);
    for (int i = 0; i < 64; i++)
        host[i] = (float)(i - 30);
    assert_int_equal(gpu_upload(v, host), GPU_OK);
}

static void write_element(gpu_matrix *v)
{
    assert_int_equal(gpu_set(v, v->rows - 1, v->cols - 1, 11), GPU_OK);
}

static void write_copy_of(const gpu_matrix *from, gpu_matrix *v)
{
    assert_int_equal(gpu_copy(from, v), GPU_OK);
}

static void write_copy(gpu_matrix *v)
{
    gpu_matrix from = like(v, GPU_F32);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_converted(gpu_matrix *v)
{
    gpu_matrix from = like(v, GPU_F64);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_stretched(gpu_matrix *v)
{
    gpu_matrix from =
        matrix_of(GPU_F32, v->ndim, v->ndim == 1 ? v->rows : 1, v->cols);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_across(gpu_matrix *v, gpu_dtype t)
{
    gpu_matrix here = like(v, t), there;
    assert_int_equal(gpu_clone(&here, t, gpu_cpu(), &there), GPU_OK);
    assert_ptr_not_equal(gpu_matrix_device(&there), fake);
    write_copy_of(&there, v);
    gpu_release(&here);
    gpu_release(&there);
}

static void write_from_cpu(gpu_matrix *v)
{
    write_across(v, GPU_F32);
}

static void write_from_cpu_converted(gpu_matrix *v)
{
    write_across(v, GPU_BOOL);
}

static void add_one(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_program p;
    const gpu_matrix *in[] = {from};
    gpu_program_start(&p, 1);
    int one = gpu_program_constant(&p, 1);
    gpu_program_add(&p, GPU_OP_add, 0, one, 0);
    assert_int_equal(gpu_map("add", &p, in, to), GPU_OK);
}

static void write_map(gpu_matrix *v)
{
    add_one(v, v);
}

/* From other places of the same storage. */
static void write_map_reversed(gpu_matrix *v)
{
    gpu_matrix back = block_of(v, (gpu_slice){v->rows - 1, -1, v->rows},
                               (gpu_slice){v->cols - 1, -1, v->cols});
    add_one(&back, v);
    gpu_release(&back);
}

static void write_scatter(gpu_matrix *v)
{
    gpu_matrix from = matrix_of(GPU_F64, v->ndim, 1, v->cols);
    int64_t row = v->rows - 1;
    assert_int_equal(gpu_scatter(&from, &row, 1, NULL, 0, v), GPU_OK);
    gpu_release(&from);
}

static void write_scatter_within(gpu_matrix *v)
{
    gpu_matrix first =
        block_of(v, (gpu_slice){0, 1, 1}, (gpu_slice){0, 1, v->cols});
    int64_t row = v->rows - 1;
    assert_int_equal(gpu_scatter(&first, &row, 1, NULL, 0, v), GPU_OK);
    gpu_release(&first);
}

static void write_expand(gpu_matrix *v)
{
    gpu_matrix mask = like(v, GPU_BOOL);
    gpu_matrix from = matrix_of(GPU_F32, 1, gpu_size(v), 1);
    assert_int_equal(gpu_fill(&mask, 1), GPU_OK);
    assert_int_equal(gpu_expand(&from, &mask, v), GPU_OK);
    gpu_release(&mask);
    gpu_release(&from);
}

static void write_random(gpu_matrix *v)
{
    gpu_random r = {GPU_INTEGER, 1, 2, -8, 8};
    assert_int_equal(gpu_fill_random(v, &r), GPU_OK);
}

/* v = a b + beta v, with an inner dimension that may be 0. */
static void write_as_product(gpu_matrix *v, gpu_dtype t, int64_t inner,
                             double beta)
{
    gpu_matrix a = matrix_of(t, 2, v->rows, inner);
    gpu_matrix b = matrix_of(t, v->ndim, inner, v->cols);
    assert_int_equal(product(&a, &b, beta, v), GPU_OK);
    gpu_release(&a);
    gpu_release(&b);
}

static void write_product(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 3, 0);
}

static void write_product_added(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 3, 2);
}

static void write_product_converted(gpu_matrix *v)
{
    write_as_product(v, GPU_F64, 3, 2);
}

static void write_product_of_nothing(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 0, 0);
}

static void write_scaled(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 0, 3);
}

/* v is an operand itself, and something is kept about it before it is
 * written. */
static void write_product_of_itself(gpu_matrix *v)
{
    gpu_matrix a = matrix(v->rows, v->rows);
    assert_int_equal(product(&a, v, 0, v), GPU_OK);
    gpu_release(&a);
}

static void write_product_added_to_itself(gpu_matrix *v)
{
    gpu_matrix a = matrix(v->rows, v->rows);
    assert_int_equal(product(&a, v, 1, v), GPU_OK);
    gpu_release(&a);
}

static const struct {
    const char *name;
    void (*write)(gpu_matrix *v);
} writes[] = {
    {"fill", write_fill},
    {"upload", write_upload},
    {"set", write_element},
    {"copy", write_copy},
    {"copy of f64", write_converted},
    {"copy of a row", write_stretched},
    {"copy from the CPU", write_from_cpu},
    {"copy of a mask from the CPU", write_from_cpu_converted},
    {"map", write_map},
    {"map of other places", write_map_reversed},
    {"scatter", write_scatter},
    {"scatter of its own", write_scatter_within},
    {"expand", write_expand},
    {"random", write_random},
    {"matmul", write_product},
    {"matmul, added", write_product_added},
    {"matmul of f64, added", write_product_converted},
    {"matmul of nothing", write_product_of_nothing},
    {"matmul of nothing, scaled", write_scaled},
    {"matmul of itself", write_product_of_itself},
    {"matmul of itself, added", write_product_added_to_itself},
};
enum { WRITES = sizeof writes / sizeof *writes };

enum {
    THE_MATRIX,
    TURNED_VIEW,
    BACK,
    GAPS,
    ROW,
    COLUMN,
    DIAGONAL,
    FLAT,
    VIEWS
};

/* Ways to write to m, 6 x 4. */
static gpu_matrix view_number(int which, const gpu_matrix *m)
{
    gpu_matrix v = *m;
    if (which == THE_MATRIX)
        gpu_retain(m);
    else if (which == TURNED_VIEW)
        gpu_view_transposed(m, &v);
    else if (which == BACK)
        v = block_of(m, (gpu_slice){5, -1, 6}, (gpu_slice){3, -1, 4});
    else if (which == GAPS)
        v = block_of(m, (gpu_slice){1, 2, 2}, (gpu_slice){0, 3, 2});
    else if (which == ROW)
        gpu_view_row(m, 2, &v);
    else if (which == COLUMN)
        gpu_view_column(m, 1, &v);
    else if (which == DIAGONAL)
        gpu_view_diagonal(m, -1, &v);
    else
        assert_int_equal(gpu_reshape(m, 1, 24, 1, &v), GPU_OK);
    assert_true(gpu_shares_storage(m, &v));
    return v;
}

static void check_write(int which, int view)
{
    gpu_matrix a, b;
    start(&a, &b);
    gpu_matrix v = view_number(view, &a);
    writes[which].write(&v);
    if (a.storage->kept != 0 || kept() != plane_bytes(&b))
        fail_msg("%s, view %d: something is kept", writes[which].name, view);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    writes[which].write(&v);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&v);
    gpu_release(&a);
    gpu_release(&b);
}

static void every_write_drops(void **state)
{
    (void)state;
    for (int i = 0; i < WRITES; i++)
        for (int view = 0; view < VIEWS; view++)
            check_write(i, view);
}

/* --- reading -------------------------------------------------------------- */

static void read_elements(const gpu_matrix *a, const gpu_matrix *part)
{
    float host[64];
    double x;
    assert_int_equal(gpu_download(a, host), GPU_OK);
    assert_int_equal(gpu_download(part, host), GPU_OK);
    assert_int_equal(gpu_get(a, 1, 1, &x), GPU_OK);
}

static void read_copies(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m[4] = {{.storage = NULL}};
    int64_t rows[] = {3, 1};
    assert_int_equal(gpu_clone(a, GPU_F64, NULL, &m[0]), GPU_OK);
    assert_int_equal(gpu_clone(part, GPU_F32, gpu_cpu(), &m[1]), GPU_OK);
    assert_int_equal(gpu_reshape(part, 1, gpu_size(part), 1, &m[2]), GPU_OK);
    assert_int_equal(gpu_gather(a, rows, 2, NULL, 0, &m[3]), GPU_OK);
    assert_int_equal(gpu_scatter(&m[3], rows, 2, NULL, 0, &m[0]), GPU_OK);
    release_all(m, 4);
}

static void read_masked(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix mask = like(a, GPU_BOOL), to = like(a, GPU_F32), m;
    (void)part;
    assert_int_equal(gpu_fill(&mask, 1), GPU_OK);
    assert_int_equal(gpu_compress(a, &mask, &m), GPU_OK);
    assert_int_equal(gpu_expand(a, &mask, &to), GPU_OK);
    gpu_release(&mask);
    gpu_release(&to);
    gpu_release(&m);
}

static void read_reduced(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_program p;
    gpu_matrix m;
    double x;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_std;
    assert_int_equal(gpu_reduce("std", &p, &a, 1, &m), GPU_OK);
    assert_int_equal(gpu_reduce_all("std", &p, &part, &x), GPU_OK);
    gpu_release(&m);
}

static void read_arranged(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m[3];
    assert_int_equal(gpu_scan(a, GPU_SCAN_SUM, 1, &m[0]), GPU_OK);
    assert_int_equal(gpu_sort(part, 2, 0, &m[1], &m[2]), GPU_OK);
    release_all(m, 3);
}

static void read_mapped(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m = {.storage = NULL}, to = like(part, GPU_F32);
    add_one(a, &m);
    add_one(part, &to);
    gpu_release(&m);
    gpu_release(&to);
}

static void read_products(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix row, square, m;
    const char *name;
    double x;
    (void)part;
    gpu_view_row(a, 0, &row);
    square = block_of(a, (gpu_slice){0, 1, 4}, (gpu_slice){0, 1, 4});
    assert_int_equal(gpu_dot(&row, &row, NULL, &x), GPU_OK);
    assert_int_equal(gpu_determinant(&square, &x), GPU_OK);
    assert_int_equal(gpu_kernel_choice(a, &square, &name), GPU_OK);
    assert_string_equal(name, "keeper");
    if (gpu_inverse(&square, &m) == GPU_OK)
        gpu_release(&m);
    gpu_release(&row);
    gpu_release(&square);
}

static void read_sparse(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_sparse s;
    gpu_matrix turned, m;
    (void)part;
    gpu_view_transposed(a, &turned);
    assert_int_equal(gpu_sparse_from_dense(&turned, GPU_F32, NULL, &s), GPU_OK);
    assert_int_equal(gpu_sparse_multiply(&s, a, &m), GPU_OK);
    gpu_release(&m);
    gpu_release(&turned);
    gpu_sparse_release(&s);
}

/* What is refused has written nothing. */
static void read_refused(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix to = *a, row = matrix(1, 2);
    gpu_random r = {GPU_UNIFORM, 1, 1, 2, 1};
    int64_t far = 99;
    assert_int_equal(gpu_set(&to, 6, 0, 1), GPU_RANGE);
    assert_int_equal(gpu_copy(part, &to), GPU_SHAPE);
    assert_int_equal(gpu_scatter(part, NULL, 0, NULL, 0, &to), GPU_SHAPE);
    assert_int_equal(gpu_scatter(&row, &far, 1, NULL, 0, &to), GPU_RANGE);
    assert_int_equal(gpu_expand(part, part, &to), GPU_TYPE);
    assert_int_equal(gpu_fill_random(&to, &r), GPU_ARGUMENT);
    assert_int_equal(product(part, part, 0, &to), GPU_SHAPE);
    gpu_release(&row);
}

static void reading_drops_nothing(void **state)
{
    void (*const reads[])(const gpu_matrix *, const gpu_matrix *) = {
        read_elements, read_copies, read_masked,   read_reduced, read_arranged,
        read_mapped,   read_sparse, read_products, read_refused};
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_matrix part = view_number(GAPS, &a);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        reads[i](&a, &part);
        assert_int_equal(kept(), plane_bytes(&a) + plane_bytes(&b));
        EXPECT_PRODUCT(&a, &b, 2, 0);
    }
    gpu_release(&part);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- letting go ----------------------------------------------------------- */

static void the_last_release_drops(void **state)
{
    gpu_matrix a, b, row;
    (void)state;
    start(&a, &b);
    size_t of_b = plane_bytes(&b);
    gpu_view_row(&a, 0, &row);
    gpu_release(&a);
    assert_int_equal(kept(), plane_bytes(&b) + 24 * sizeof(double));
    gpu_release(&row);
    assert_int_equal(kept(), of_b);
    gpu_release(&b);
    assert_int_equal(kept(), 0);
    assert_int_equal(ram.used, 0);
}

static void forgetting(void **state)
{
    gpu_matrix a, b, row, none = {.storage = NULL};
    (void)state;
    start(&a, &b);
    gpu_forget(&none);
    gpu_forget(&a);
    assert_int_equal(kept(), plane_bytes(&b));
    gpu_forget(&a);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_view_row(&a, 3, &row);
    gpu_forget(&row);
    assert_int_equal(kept(), plane_bytes(&b));
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&row);
    gpu_release(&a);
    gpu_release(&b);
}

/* A lost device computes no more, but gives back. */
static void lost_devices(void **state)
{
    gpu_matrix a, b, c = {.storage = NULL};
    (void)state;
    start(&a, &b);
    ram.is_lost = 1;
    assert_int_equal(product(&a, &b, 0, &c), GPU_LOST);
    assert_null(c.storage);
    gpu_release(&a);
    gpu_release(&b);
    assert_int_equal(ram.used, 0);
}

/* --- the limit ------------------------------------------------------------ */

enum { FEW = 5, SIDE = 4, PLANE = SIDE * SIDE * 8 };

/* Each of m once as a left operand, b being kept nowhere. */
static void keep_each(gpu_matrix *m, int n, const gpu_matrix *b)
{
    keeper.keeps = LEFT;
    for (int i = 0; i < n; i++) {
        m[i] = matrix(SIDE, SIDE);
        EXPECT_PRODUCT(&m[i], b, 0, 1);
    }
}

static void the_oldest_go_first(void **state)
{
    gpu_matrix m[FEW], b = matrix(SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 3 * PLANE + PLANE / 2);
    keep_each(m, FEW, &b);
    assert_int_equal(kept(), 3 * PLANE);
    for (int i = 0; i < FEW; i++)
        assert_int_equal(m[i].storage->kept, i >= 2);
    EXPECT_PRODUCT(&m[2], &b, 1, 0); /* used again: 3 is the oldest now */
    EXPECT_PRODUCT(&m[0], &b, 0, 1);
    assert_int_equal(m[2].storage->kept, 1);
    assert_int_equal(m[3].storage->kept, 0);
    gpu_set_keep_limit(fake, 2 * PLANE);
    assert_int_equal(m[4].storage->kept, 0);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(m, FEW);
    gpu_release(&b);
}

/* To ask what auto takes is no use. */
static void asking_is_no_use(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), x = matrix(SIDE, SIDE);
    const char *name;
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 2, &b);
    assert_int_equal(gpu_kernel_choice(&m[0], &b, &name), GPU_OK);
    multiply(&x, &b);
    assert_int_equal(m[0].storage->kept, 0);
    assert_int_equal(m[1].storage->kept, 1);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&x);
}

/* Nor does a product use what its kernel does not ask for. */
static void choosing_is_no_use(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), x = matrix(SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 2, &b);
    keeper.keeps = RIGHT;
    EXPECT_PRODUCT(&m[0], &x, 0, 1);
    assert_int_equal(m[0].storage->kept, 0);
    assert_int_equal(m[1].storage->kept, 1);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&x);
}

static void the_limit_is_a_quarter(void **state)
{
    gpu_matrix m[FEW], b = matrix(SIDE, SIDE);
    (void)state;
    ram.total = 4 * (3 * PLANE) + 3;
    keep_each(m, FEW, &b);
    assert_int_equal(kept(), 3 * PLANE);
    release_all(m, FEW);
    gpu_release(&b);
}

/* Nothing is kept until the device says how much it has. */
static void the_size_is_unknown(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    (void)state;
    ram.is_unknown = 1;
    EXPECT_PRODUCT(&a, &b, 0, 0);
    ram.is_unknown = 0;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

static void a_limit_of_nothing(void **state)
{
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_set_keep_limit(fake, 0);
    assert_int_equal(kept(), 0);
    EXPECT_PRODUCT(&a, &b, 0, 0);
    EXPECT_PRODUCT(&a, &b, 0, 0);
    assert_int_equal(kept(), 0);
    gpu_set_keep_limit(fake, 1 << 20);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* What is larger than the limit drops nothing for its sake. */
static void what_never_fits(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), large = matrix(4 * SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 3 * PLANE);
    keep_each(m, 2, &b);
    EXPECT_PRODUCT(&large, &b, 0, 0);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&large);
}

/* The kernel holds a's plane while it asks for b's. */
static void a_product_keeps_its_own(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE), m[1];
    (void)state;
    gpu_set_keep_limit(fake, PLANE);
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(a.storage->kept, 1);
    EXPECT_PRODUCT(&a, &b, 1, 0);
    EXPECT_PRODUCT(&b, &a, 0, 1); /* of an earlier product: it goes */
    assert_int_equal(a.storage->kept, 0);
    keep_each(m, 1, &a);
    assert_int_equal(b.storage->kept, 0);
    keeper.keeps = LEFT | RIGHT;
    gpu_set_keep_limit(fake, 2 * PLANE);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    assert_int_equal(m[0].storage->kept, 0);
    release_all(m, 1);
    gpu_release(&a);
    gpu_release(&b);
}

/* What fits not beside a's plane drops nothing for its sake either. */
static void what_never_fits_beside(void **state)
{
    gpu_matrix m[1], a = matrix(SIDE, SIDE), b = matrix(SIDE, 2 * SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 1, &a);
    keeper.keeps = LEFT | RIGHT;
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(m[0].storage->kept, 1);
    assert_int_equal(a.storage->kept, 1);
    gpu_set_keep_limit(fake, 3 * PLANE);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    assert_int_equal(m[0].storage->kept, 0);
    release_all(m, 1);
    gpu_release(&a);
    gpu_release(&b);
}

static void copies_push_nothing_out(void **state)
{
    gpu_matrix m[1], b = matrix(SIDE, SIDE);
    gpu_matrix mask = matrix_of(GPU_BOOL, 2, SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, PLANE);
    keep_each(m, 1, &b);
    EXPECT_PRODUCT(&mask, &b, 0, 0);
    assert_int_equal(m[0].storage->kept, 1);
    release_all(m, 1);
    gpu_release(&b);
    gpu_release(&mask);
}

enum { MOST = 256, MORE = 300 };

static void so_many_and_no_more(void **state)
{
    static gpu_matrix m[MORE];
    gpu_matrix b = matrix(SIDE, SIDE);
    (void)state;
    keep_each(m, MORE, &b);
    for (int i = 0; i < MORE; i++)
        assert_int_equal(m[i].storage->kept, i >= MORE - MOST);
    assert_int_equal(kept(), MOST * PLANE);
    release_all(m, MORE);
    assert_int_equal(kept(), 0);
    gpu_release(&b);
}

/* One product that keeps and keeps loses none of what it got. */
static void so_many_in_one_product(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    gpu_keep_key key = {LEFT, gpu_view_of(&a)};
    (void)state;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_begin_product(fake);
    for (int i = 0; i < MORE; i++) {
        key.kind = 10 + i;
        assert_int_equal(gpu_keep(a.storage, &key, 8) != NULL, i < MOST);
    }
    gpu_end_product(fake, GPU_OK);
    assert_int_equal(kept(), MOST * 8);
    for (int i = 0; i < MORE; i++) {
        key.kind = 10 + i;
        assert_int_equal(gpu_recall(a.storage, &key) != NULL, i < MOST);
    }
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- memory is short ------------------------------------------------------ */

static struct {
    int calls;
    size_t kept; /* when it was called */
    gpu_matrix garbage;
} collector;

static int collect(void *data)
{
    (void)data;
    collector.calls++;
    collector.kept = kept();
    gpu_release(&collector.garbage);
    return 1;
}

static void set_collector(void)
{
    memset(&collector, 0, sizeof collector);
    collector.kept = SIZE_MAX;
    gpu_on_memory_short(collect, NULL);
}

static void kept_things_make_room(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 6, 4), GPU_OK);
    assert_int_equal(kept(), 0);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(ram.trims, 1);
    gpu_release(&more);
    ram.total *= 2;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    gpu_release(&a);
    gpu_release(&b);
}

static void so_does_garbage(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    collector.garbage = matrix(100, 100);
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F32, 2, 100, 100), GPU_OK);
    gpu_release(&more);
    gpu_release(&a);
    gpu_release(&b);
}

static void nothing_makes_room(void **state)
{
    gpu_matrix a, b, more = {.storage = NULL};
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used + 1000;
    size_t live = gpu_device_live(fake);
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 50, 50), GPU_MEMORY);
    assert_non_null(strstr(gpu_message(), "out of memory on fake:0: 19.5 KiB"));
    assert_null(more.storage);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* Large sizes are compared with what is free before memory is asked for:
 * more may be promised than there is. */
static void large_matrices(void **state)
{
    gpu_matrix a = matrix(2, 2), large;
    gpu_keep_key key = {LEFT, gpu_view_of(&a)};
    size_t mib = 1 << 20;
    (void)state;
    ram.total = 100 * mib;
    ram.promises = 1;
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 22 << 20, 1), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&large);
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 26 << 20, 1),
                     GPU_MEMORY);
    assert_int_equal(ram.trims, 2);
    gpu_release(&a);
}

/* Every operation that creates its result finds room for it. */
static gpu_status operate(int which, const gpu_matrix *a, gpu_matrix *out)
{
    out->storage = NULL;
    switch (which) {
    case 0:
        return gpu_clone(a, GPU_F32, NULL, out);
    case 1:
        return gpu_scan(a, GPU_SCAN_SUM, 1, out);
    case 2:
        return gpu_sort(a, 1, 0, out, NULL);
    case 3:
        return gpu_gather(a, NULL, 0, NULL, 0, out);
    default:
        return gpu_inverse(a, out);
    }
}

static void operations_find_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), out;
    size_t total = ram.total;
    (void)state;
    for (int i = 0; i < SIDE; i++) /* not singular */
        assert_int_equal(gpu_set(&a, i, i, 100), GPU_OK);
    for (int i = 0; i < 5; i++) {
        multiply(&a, &a);
        assert_int_equal(kept(), 2 * PLANE);
        ram.total = ram.used;
        assert_int_equal(operate(i, &a, &out), GPU_OK);
        ram.total = total;
        gpu_release(&out);
    }
    gpu_release(&a);
}

/* Where nothing can be kept, scratch does. */
static void keeping_finds_no_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE),
               c = matrix(SIDE, SIDE);
    (void)state;
    ram.refusals = 2;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(keeper.made, 0);
    assert_int_equal(kept(), 0);
    ram.refusals = 1;
    assert_int_equal(product(&a, &b, 1, &c), GPU_OK);
    assert_int_equal(keeper.made, 1);
    assert_int_equal(kept(), PLANE);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* --- backends that ask for room ------------------------------------------- */

/* They get all but what the running product found or made. */
static void room_beside_a_product(void **state)
{
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_keep_key old = {LEFT, gpu_view_of(&a)}, new = {10, gpu_view_of(&b)};
    gpu_begin_product(fake);
    assert_non_null(gpu_recall(a.storage, &old));
    assert_non_null(gpu_keep(b.storage, &new, 8));
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_end_product(fake, GPU_OK);
    assert_int_equal(gpu_make_room(&a), 0); /* no device's handle */
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_release(&a);
    gpu_release(&b);
}

/* The plane of b is kept where those of others were, a's staying. */
static void keeping_makes_room(void **state)
{
    gpu_matrix others[2], a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    (void)state;
    start(&others[0], &others[1]);
    gpu_matrix c = matrix(SIDE, SIDE);
    ram.makes_room = 1;
    ram.total = ram.used + PLANE + 8;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.made, 2);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(others, 2);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

enum { SORT_BYTES = 200 };
static const gpu_backend *plain;

static gpu_status sort_with_scratch(void *handle, int axis, int descending,
                                    const gpu_view *from, const gpu_view *to,
                                    const gpu_view *order)
{
    void *scratch;
    if (fake_alloc(handle, SORT_BYTES, &scratch) != GPU_OK)
        return gpu_fail(GPU_MEMORY, "sort: no room");
    fake_free(handle, scratch, SORT_BYTES);
    return plain->sort(handle, axis, descending, from, to, order);
}

/* What the last product used goes like the rest: it has ended. */
static void other_operations_make_room(void **state)
{
    gpu_matrix a, b, out;
    gpu_backend sorter = *fake->backend;
    (void)state;
    plain = fake->backend;
    fake->backend = &sorter;
    sorter.sort = sort_with_scratch;
    start(&a, &b);
    ram.total = ram.used + gpu_bytes(&a) + 8;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_MEMORY);
    assert_int_equal(kept(), plane_bytes(&a) + plane_bytes(&b));
    ram.makes_room = 1;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&out);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- kernels that fail ---------------------------------------------------- */

/* a and b of a product about to be made, c for it, and others about which
 * things are kept. */
static struct {
    gpu_matrix a, b, c, others[2];
} scene;

static void lay_out(void)
{
    start(&scene.others[0], &scene.others[1]);
    scene.a = matrix(3, 4);
    scene.b = matrix(4, 2);
    scene.c = matrix(3, 2);
}

static void put_away(void)
{
    release_all(scene.others, 2);
    gpu_release(&scene.a);
    gpu_release(&scene.b);
    gpu_release(&scene.c);
}

static int kept_about_operands(void)
{
    return scene.a.storage->kept + scene.b.storage->kept;
}

static void a_second_attempt(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    keeper.failures = 1;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.made, 4);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
    put_away();
}

/* The scratch fits where the others' planes were. */
static void scratch_finds_room(void **state)
{
    (void)state;
    lay_out();
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    put_away();
}

/* At once, where the backend asks for room: there is no lost attempt. */
static void scratch_makes_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    ram.makes_room = 1;
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(collector.calls, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* A product that lacks more than there is takes nothing from itself. */
static void scratch_makes_too_little_room(void **state)
{
    (void)state;
    lay_out();
    ram.makes_room = 1;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    keeper.scratch = ram.total;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    keeper.scratch = 0;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

/* The next attempt finds the room that the lost one lacked. */
static void an_added_product_finds_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* --- what auto does when memory stays short ------------------------------- */

static const char *traced;

static void note_kernel(const gpu_event *e, void *data)
{
    (void)data;
    if (strcmp(e->operation, "matmul") == 0)
        traced = e->kernel;
}

static gpu_status traced_product(const gpu_product *how, gpu_matrix *c)
{
    traced = NULL;
    keeper.calls = keeper.others = 0;
    gpu_set_trace(note_kernel, NULL);
    gpu_status status = gpu_matmul(&scene.a, &scene.b, how, c);
    gpu_set_trace(NULL, NULL);
    return status;
}

/* After two attempts another kernel runs, and is what the trace names. */
static void another_kernel(void **state)
{
    gpu_product how = {.alpha = 1};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    for (int beta = 0; beta < 2; beta++) {
        how.beta = beta;
        how.kernel = beta ? "auto" : NULL;
        assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
        assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
        assert_product(&scene.a, &scene.b, &scene.c);
        assert_int_equal(keeper.calls, 2);
        assert_int_equal(keeper.others, 1);
        assert_string_equal(traced, "small");
    }
    keeper.scratch = 0;
    assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
    assert_string_equal(traced, "keeper");
    assert_int_equal(keeper.others, 0);
    put_away();
}

/* Who names a kernel gets that or none. */
static void no_other_kernel(void **state)
{
    gpu_product how = {.alpha = 1, .kernel = "keeper"};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    assert_int_equal(traced_product(&how, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.others, 0);
    assert_null(traced);
    put_away();
}

static void two_lost_attempts(void **state)
{
    gpu_matrix none = {.storage = NULL};
    (void)state;
    lay_out();
    size_t live = gpu_device_live(fake);
    keeper.failures = 2;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &none), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_null(none.storage);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

static void expect_failure(gpu_status failure)
{
    keeper.failures = 1;
    keeper.failure = failure;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), failure);
    assert_string_equal(gpu_message(), "matmul: kernel keeper was told to");
    assert_int_equal(keeper.calls, 1);
}

/* Other failures are final. What was kept before the kernel failed, and never
 * filled, is not found again; what earlier products filled is. */
static void failures_keep_nothing(void **state)
{
    static const gpu_status all[] = {GPU_UNSUPPORTED, GPU_ARGUMENT, GPU_SHAPE,
                                     GPU_INTERNAL,    GPU_LOST,     GPU_RANGE};
    (void)state;
    lay_out();
    size_t others = kept();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expect_failure(all[i]);
        assert_int_equal(kept(), others);
        EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
        expect_failure(all[i]);
        EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
        gpu_forget(&scene.a);
        expect_failure(all[i]);
        assert_int_equal(kept(), others + plane_bytes(&scene.b));
        EXPECT_PRODUCT(&scene.a, &scene.b, 1, 1);
        gpu_forget(&scene.a);
        gpu_forget(&scene.b);
    }
    put_away();
}

/* --- kernels chosen by name or precision ---------------------------------- */

static void expect_refusal(const gpu_product *how, const char *words)
{
    gpu_matrix none = {.storage = NULL};
    assert_int_not_equal(traced_product(how, &none), GPU_OK);
    assert_string_equal(gpu_message(), words);
    assert_null(none.storage);
    assert_int_equal(keeper.calls + keeper.others, 0);
}

static void expect_kernel(const char *kernel, const char *precision,
                          const char *expected_kernel)
{
    gpu_product how = {.alpha = 1, .kernel = kernel, .precision = precision};
    assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
    assert_string_equal(traced, expected_kernel);
}

/* The first of a precision that this device has. */
static void precisions(void **state)
{
    gpu_product how = {.alpha = 1, .precision = "bf16"};
    (void)state;
    lay_out();
    expect_kernel(NULL, "f32", "keeper");
    expect_kernel("auto", "f32", "keeper");
    expect_kernel(NULL, "tf32", "rough");
    expect_kernel("auto", "tf32", "rough");
    expect_kernel("peer", "tf32", "peer");
    expect_kernel("small", "f32", "small");
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f32 in "
                         "precision \"bf16\"");
    how.precision = "f64";
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f32 in "
                         "precision \"f64\"");
    how.precision = "f8";
    expect_refusal(&how, "matmul: no precision is called 'f8'; there are f32, "
                         "f64, tf32, bf16");
    how = (gpu_product){.alpha = 1, .kernel = "small", .precision = "tf32"};
    expect_refusal(&how, "matmul: kernel small gives precision \"f32\", not "
                         "\"tf32\"");
    gpu_release(&scene.a);
    gpu_release(&scene.c);
    scene.a = matrix_of(GPU_F64, 2, 3, 4);
    scene.c = matrix_of(GPU_F64, 2, 3, 2);
    expect_kernel(NULL, "f64", "keeper");
    expect_kernel("keeper", "f64", "keeper");
    how = (gpu_product){.alpha = 1, .precision = "tf32"};
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f64 in "
                         "precision \"tf32\"");
    how.precision = "f32";
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f64 in "
                         "precision \"f32\"");
    put_away();
}

/* In an empty product, too; and a bound has no auto. */
static void wrong_names(void **state)
{
    gpu_product how = {.alpha = 1, .kernel = "fast"};
    double gamma;
    (void)state;
    lay_out();
    expect_refusal(&how, "matmul: no kernel is called 'fast' on fake:0; there "
                         "are auto, keeper, small, later, rough, peer");
    gpu_release(&scene.a);
    scene.a = matrix(0, 4);
    expect_refusal(&how, "matmul: no kernel is called 'fast' on fake:0; there "
                         "are auto, keeper, small, later, rough, peer");
    assert_int_equal(
        gpu_kernel_bound(fake, "matmul", "auto", GPU_F32, 1, &gamma),
        GPU_ARGUMENT);
    assert_string_equal(gpu_message(),
                        "matmul: no kernel is called 'auto' on fake:0; there "
                        "are keeper, small, later, rough, peer");
    assert_int_equal(
        gpu_kernel_bound(fake, "solve", "keeper", GPU_F32, 1, &gamma),
        GPU_ARGUMENT);
    assert_string_equal(gpu_message(), "solve: has no kernels on fake:0");
    put_away();
}

/* No kernel runs: c = beta c, whatever a and b hold. */
static void alpha_of_nothing(void **state)
{
    gpu_product how = {.alpha = 0};
    (void)state;
    lay_out();
    assert_int_equal(gpu_fill(&scene.a, NAN), GPU_OK);
    assert_int_equal(gpu_fill(&scene.c, 5), GPU_OK);
    for (int beta = 2; beta >= 0; beta -= 2) {
        how.beta = beta;
        assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
        gpu_view v = gpu_view_of(&scene.c);
        for (int i = 0; i < 6; i++)
            assert_true(get(&v, i / 2, i % 2) == 5 * beta);
        assert_int_equal(keeper.calls + keeper.others, 0);
    }
    put_away();
}

/* --- failures of other sorts ---------------------------------------------- */

/* With c among its operands the product goes to memory of its own, and c
 * stays as it was. */
static void failures_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE), before;
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    for (int beta = 0; beta < 2; beta++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        assert_int_equal(product(&a, &b, beta, &a), GPU_INTERNAL);
        assert_int_equal(kept(), 0);
        assert_memory_equal(a.storage->data, before.storage->data,
                            gpu_bytes(&a));
        EXPECT_PRODUCT(&a, &b, 0, 2);
        gpu_forget(&a);
        gpu_forget(&b);
    }
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&before);
}

/* a = a a + a as often as it takes: each attempt begins with a's old values,
 * and a has them still where two are lost. */
static void a_second_attempt_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), expected, before;
    gpu_status final[] = {GPU_OK, GPU_OK, GPU_MEMORY};
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &expected), GPU_OK);
    assert_int_equal(product(&before, &before, 1, &expected), GPU_OK);
    for (int failures = 2; failures >= 0; failures--) {
        keeper.failures = failures;
        keeper.failure = GPU_MEMORY;
        keeper.spoils = 1;
        assert_int_equal(product(&a, &a, 1, &a), final[failures]);
        assert_int_equal(keeper.calls, failures ? 2 : 1);
        keeper.failures = 0;
        assert_memory_equal(a.storage->data,
                            (failures == 2 ? before : expected).storage->data,
                            gpu_bytes(&a));
        assert_int_equal(gpu_copy(&before, &a), GPU_OK);
    }
    keeper.failures = 2;
    assert_int_equal(product(&a, &a, 0, &a), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    gpu_release(&a);
    gpu_release(&before);
    gpu_release(&expected);
}

static void failures_of_copies(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix_of(GPU_F64, 2, SIDE, SIDE);
    gpu_matrix c = {.storage = NULL};
    (void)state;
    EXPECT_PRODUCT(&a, &a, 0, 2);
    for (int refusals = 0; refusals < 12; refusals++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        ram.refusals = refusals;
        assert_int_not_equal(product(&a, &b, 0, &c), GPU_OK);
        assert_null(c.storage);
        ram.refusals = keeper.failures = 0;
        multiply(&a, &b);
        multiply(&a, &a);
    }
    gpu_release(&a);
    gpu_release(&b);
}

/* --- everything at once --------------------------------------------------- */

enum { POOL = 8, SPAN = 8, STEPS = 20000 };

static gpu_matrix pool[POOL];

static void new_in_pool(int i)
{
    static const gpu_dtype types[] = {GPU_F32, GPU_F32, GPU_F32, GPU_F64,
                                      GPU_BOOL};
    pool[i] = matrix_of(types[next_below(5)], 2, SPAN, SPAN);
}

/* Half of the rows and columns of one of the pool, in some order. */
static gpu_matrix any_view(void)
{
    gpu_slice s[2];
    for (int i = 0; i < 2; i++) {
        int64_t step = 1 + next_below(2), spread = 3 * step;
        int64_t first = next_below(SPAN - spread);
        s[i] = (gpu_slice){first, step, 4};
        if (next_below(3) == 0)
            s[i] = (gpu_slice){first + spread, -step, 4};
    }
    gpu_matrix v = block_of(&pool[next_below(POOL)], s[0], s[1]), turned;
    if (next_below(2))
        return v;
    gpu_view_transposed(&v, &turned);
    gpu_release(&v);
    return turned;
}

static void expected(const gpu_matrix *a, const gpu_matrix *b,
                     const gpu_matrix *c, double beta, double sum[4][4])
{
    gpu_view x = gpu_view_of(a), y = gpu_view_of(b), z;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            sum[i][j] = 0;
            for (int k = 0; k < 4; k++)
                sum[i][j] += get(&x, i, k) * get(&y, k, j);
            if (beta == 0)
                continue;
            z = gpu_view_of(c);
            sum[i][j] += beta * get(&z, i, j);
        }
}

static void assert_elements(const gpu_matrix *c, double sum[4][4])
{
    gpu_view z = gpu_view_of(c);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double want = c->dtype == GPU_BOOL ? sum[i][j] != 0 : sum[i][j];
            assert_true(get(&z, i, j) == want);
        }
}

static void any_trouble(void)
{
    static const gpu_status statuses[] = {GPU_MEMORY, GPU_MEMORY, GPU_INTERNAL};
    ram.makes_room = (int)next_below(2);
    if (next_below(8) == 0)
        ram.refusals = (int)next_below(6);
    if (next_below(8) == 0)
        keeper.failures = (int)next_below(3);
    keeper.has_substitute = (int)next_below(2);
    keeper.failure = statuses[next_below(3)];
    keeper.spoils = 1;
    keeper.scratch = next_below(3) ? 0 : (size_t)next_below(500);
}

static void any_product(void)
{
    gpu_matrix a = any_view(), b = any_view(), c = {.storage = NULL};
    double beta = 0, sum[4][4];
    gpu_random r = {GPU_INTEGER, 3, next_bits(), -8, 8};
    int is_given = next_below(3) == 0;
    if (is_given) {
        c = any_view();
        beta = (double)next_below(2);
        r.low = c.dtype == GPU_BOOL ? 0 : -8;
    }
    expected(&a, &b, &c, beta, sum);
    any_trouble();
    if (product(&a, &b, beta, &c) == GPU_OK)
        assert_elements(&c, sum);
    ram.refusals = keeper.failures = 0;
    if (is_given) /* small integers again */
        assert_int_equal(gpu_fill_random(&c, &r), GPU_OK);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

static void any_write(void)
{
    gpu_matrix v = any_view(), from = any_view();
    if (next_below(2))
        assert_int_equal(gpu_copy(&from, &v), GPU_OK);
    else
        write_element(&v);
    gpu_release(&v);
    gpu_release(&from);
}

static void any_change(void)
{
    int i = (int)next_below(POOL);
    switch (next_below(4)) {
    case 0:
        gpu_release(&pool[i]);
        new_in_pool(i);
        break;
    case 1:
        gpu_set_keep_limit(fake, (size_t)next_below(2000));
        break;
    case 2:
        gpu_forget(&pool[i]);
        break;
    default:
        gpu_set_keep_limit(fake, 1 << 20);
    }
}

static void assert_sound(void)
{
    int count = 0;
    for (int i = 0; i < POOL; i++)
        count += pool[i].storage->kept;
    assert_int_equal(count, fake->kept_count);
    assert_int_equal(ram.used, gpu_device_live(fake) + kept());
    assert_true(kept() <= fake->keep_limit || !fake->keep_limit_known);
    assert_true(count <= MOST);
}

static void everything_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < POOL; i++)
        new_in_pool(i);
    for (int i = 0; i < STEPS; i++) {
        int64_t which = next_below(20);
        if (which < 15)
            any_product();
        else if (which < 19)
            any_write();
        else
            any_change();
        assert_sound();
    }
    release_all(pool, POOL);
}

#define ON_FAKE(test) \
    cmocka_unit_test_setup_teardown(test, open_fake, close_fake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(the_next_product_finds_them),
        ON_FAKE(squares),
        ON_FAKE(views_are_told_apart),
        ON_FAKE(vectors),
        ON_FAKE(keys_are_compared_in_full),
        ON_FAKE(converted_operands),
        ON_FAKE(every_write_drops),
        ON_FAKE(reading_drops_nothing),
        ON_FAKE(the_last_release_drops),
        ON_FAKE(forgetting),
        ON_FAKE(lost_devices),
        ON_FAKE(the_oldest_go_first),
        ON_FAKE(asking_is_no_use),
        ON_FAKE(choosing_is_no_use),
        ON_FAKE(the_limit_is_a_quarter),
        ON_FAKE(the_size_is_unknown),
        ON_FAKE(a_limit_of_nothing),
        ON_FAKE(what_never_fits),
        ON_FAKE(a_product_keeps_its_own),
        ON_FAKE(what_never_fits_beside),
        ON_FAKE(copies_push_nothing_out),
        ON_FAKE(so_many_and_no_more),
        ON_FAKE(so_many_in_one_product),
        ON_FAKE(kept_things_make_room),
        ON_FAKE(so_does_garbage),
        ON_FAKE(nothing_makes_room),
        ON_FAKE(large_matrices),
        ON_FAKE(operations_find_room),
        ON_FAKE(keeping_finds_no_room),
        ON_FAKE(room_beside_a_product),
        ON_FAKE(keeping_makes_room),
        ON_FAKE(other_operations_make_room),
        ON_FAKE(a_second_attempt),
        ON_FAKE(scratch_finds_room),
        ON_FAKE(scratch_makes_room),
        ON_FAKE(scratch_makes_too_little_room),
        ON_FAKE(an_added_product_finds_room),
        ON_FAKE(another_kernel),
        ON_FAKE(no_other_kernel),
        ON_FAKE(two_lost_attempts),
        ON_FAKE(failures_keep_nothing),
        ON_FAKE(precisions),
        ON_FAKE(wrong_names),
        ON_FAKE(alpha_of_nothing),
        ON_FAKE(failures_beside_c),
        ON_FAKE(a_second_attempt_beside_c),
        ON_FAKE(failures_of_copies),
        ON_FAKE(everything_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
