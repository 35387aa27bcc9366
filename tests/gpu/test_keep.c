/* What kernels keep about operands: found by the next product, dropped by
 * every write, in its limit, oldest first. On a device of the test's own. */
#include "kept_products.h"

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

enum { FEW = 5 };

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

enum { MORE = 300 };

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
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
