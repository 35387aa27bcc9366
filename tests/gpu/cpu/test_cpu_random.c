/* Random fills on the CPU: the published vector of Philox, the definition of
 * every kind written out again, ranges and moments. */
#include "cpu.h"
#include "cpu_testing.h"
#include "every_table.h"

/* Philox4x32-10 written from the paper (Salmon et al., 2011). */
static void philox(uint64_t call, uint64_t block_number, uint64_t seed,
                   uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)block_number, (uint32_t)(block_number >> 32),
                     (uint32_t)call, (uint32_t)(call >> 32)};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k[0];
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k[1];
        c[0] = n0;
        c[1] = (uint32_t)p1;
        c[2] = n2;
        c[3] = (uint32_t)p0;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

static uint64_t word_of(const gpu_random *r, int64_t e)
{
    uint32_t w[4];
    philox(r->call, (uint64_t)e / 2, r->seed, w);
    return w[2 * (e % 2)] | (uint64_t)w[2 * (e % 2) + 1] << 32;
}

static double expected(const gpu_random *r, gpu_dtype t, int64_t e)
{
    if (r->kind == GPU_INTEGER) {
        uint64_t span = (uint64_t)(r->high - r->low) + 1;
        unsigned __int128 p = (unsigned __int128)word_of(r, e) * span;
        double v = r->low + (double)(uint64_t)(p >> 64);
        return t == GPU_F64 ? v : t == GPU_F32 ? (double)(float)v : v != 0;
    }
    if (t == GPU_F64) {
        volatile double v = (double)(word_of(r, e) >> 11) * 0x1p-53;
        v = (r->high - r->low) * v;
        v = r->low + v;
        return v >= r->high && r->high > r->low ? nextafter(r->high, r->low)
                                                : v;
    }
    uint32_t w[4];
    philox(r->call, (uint64_t)e / 4, r->seed, w);
    float low = (float)r->low, high = (float)r->high;
    volatile float v = (float)(w[e % 4] >> 8) * 0x1p-24f;
    v = (high - low) * v;
    v = low + v;
    if (v >= high && high > low)
        v = nextafterf(high, low);
    return t == GPU_F32 ? (double)v : v != 0;
}

static void known_answers(void **state)
{
    (void)state;
    static const uint32_t published[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                         0x9b00dbd8};
    uint32_t w[4];
    philox(0, 0, 0, w);
    assert_memory_equal(w, published, sizeof w);
    block x = make(GPU_F32, 4, 1, DENSE);
    gpu_random r = {GPU_UNIFORM, 0, 0, 0, 1, 0};
    assert_int_equal(cpu->random(device, &r, &x.v), GPU_OK);
    for (int i = 0; i < 4; i++)
        assert_true(get(&x.v, i, 0) == (published[i] >> 8) * 0x1p-24);
    drop(&x);
}

/* Any number of blocks, also where their numbers outgrow 32 bits. */
static void check_blocks(void)
{
    enum { MOST = 70 };
    const uint64_t call = 0x123456789abcdef0, seed = 0xfedcba9876543210;
    uint32_t to[MOST][4], w[4];
    for (size_t n = 0; n <= MOST; n++) {
        uint64_t first = 0x100000000 - n / 2;
        gpu_cpu_vectors->philox(to, first, n, call, seed);
        for (size_t i = 0; i < n; i++) {
            philox(call, first + i, seed, w);
            assert_memory_equal(to[i], w, sizeof w);
        }
    }
}

static void blocks_of_every_table(void **state)
{
    (void)state;
    by_every_table(check_blocks);
}

static void check_definition(gpu_random r, gpu_dtype t, int64_t m, int64_t n,
                             layout how)
{
    block x = make(t, m, n, how);
    assert_int_equal(cpu->random(device, &r, &x.v), GPU_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (get(&x.v, i, j) != expected(&r, t, r.first + i * n + j))
                fail_msg("kind %d type %d (%ld, %ld) of %ldx%ld", r.kind, t,
                         (long)i, (long)j, (long)m, (long)n);
    drop(&x);
}

static void uniforms_and_integers(void **state)
{
    (void)state;
    static const gpu_random kinds[] = {
        {GPU_UNIFORM, 1, 0, 0, 1, 0},
        {GPU_UNIFORM, 0xDEADBEEFCAFEBABEu, 77, -3, 5, 0},
        {GPU_UNIFORM, 5, 0x100000007u, 1, 1.0000002, 0},
        {GPU_UNIFORM, 5, 3, 1e10, 1e10 + 10, 0},
        {GPU_INTEGER, 9, 2, 1, 6, 0},
        {GPU_INTEGER, 9, 2, -9007199254740992.0 / 2, 9007199254740992.0 / 2, 0},
        {GPU_INTEGER, 9, 2, 0, 1, 0},
        {GPU_UNIFORM, 9, 2, 0, 1, 12},
        {GPU_UNIFORM, 9, 2, 0, 1, ((int64_t)4 << 32) - 2000},
        {GPU_INTEGER, 9, 2, 0, 99, ((int64_t)2 << 32) - 2000},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (gpu_dtype t = GPU_F32; t < GPU_DTYPES; t++)
            for (int how = DENSE; how < LAYOUTS; how++) {
                check_definition(kinds[k], t, 1, 1, (layout)how);
                check_definition(kinds[k], t, 37, 61, (layout)how);
                check_definition(kinds[k], t, 5003, 1, (layout)how);
            }
    check_definition(kinds[0], GPU_F32, 100003, 1, DENSE);
}

static void never_reaches_high(void **state)
{
    (void)state;
    block x = make(GPU_F32, 100000, 1, DENSE);
    gpu_random r = {GPU_UNIFORM, 3, 3, 1, 1.0000002, 0};
    int64_t ones = 0;
    assert_int_equal(cpu->random(device, &r, &x.v), GPU_OK);
    for (int64_t i = 0; i < 100000; i++) {
        assert_true(get(&x.v, i, 0) >= 1);
        assert_true(get(&x.v, i, 0) < (float)1.0000002);
        ones += get(&x.v, i, 0) == 1;
    }
    assert_true(ones > 0);
    drop(&x);
}

static void normals(void **state)
{
    (void)state;
    gpu_random r = {GPU_NORMAL, 42, 7, 10, 3, 0};
    const long double pi = 3.14159265358979323846264338327950288L;
    for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
        block x = make(t, 6007, 1, DENSE);
        assert_int_equal(cpu->random(device, &r, &x.v), GPU_OK);
        for (int64_t e = 0; e < 6007; e++) {
            uint64_t w0 = word_of(&r, e / 2 * 2);
            uint64_t w1 = word_of(&r, e / 2 * 2 + 1);
            long double u1 = ((w0 >> 11) + 1) * 0x1p-53L;
            long double u2 = (w1 >> 11) * 0x1p-53L;
            long double radius = sqrtl(-2 * logl(u1));
            long double z =
                radius * (e % 2 ? sinl(2 * pi * u2) : cosl(2 * pi * u2));
            double bound = t == GPU_F32 ? 1e-6 : 1e-14;
            assert_true(fabsl(get(&x.v, e, 0) - (10 + 3 * z)) <
                        bound * (double)(10 + 3 * fabsl(z)));
        }
        drop(&x);
    }
}

static void moments(void **state)
{
    (void)state;
    int64_t n = 1000000;
    block x = make(GPU_F64, n, 1, DENSE);
    static const gpu_random kinds[] = {{GPU_UNIFORM, 1, 1, -1, 1, 0},
                                       {GPU_NORMAL, 1, 2, 0, 1, 0},
                                       {GPU_INTEGER, 1, 3, 1, 6, 0}};
    static const double mean[] = {0, 0, 3.5};
    static const double variance[] = {1.0 / 3, 1, 35.0 / 12};
    for (int k = 0; k < 3; k++) {
        double sum = 0, squares = 0, next = 0;
        assert_int_equal(cpu->random(device, &kinds[k], &x.v), GPU_OK);
        for (int64_t i = 0; i < n; i++) {
            double d = get(&x.v, i, 0) - mean[k];
            sum += d;
            squares += d * d;
            if (i > 0)
                next += d * (get(&x.v, i - 1, 0) - mean[k]);
        }
        double s = sqrt(variance[k] / (double)n);
        assert_true(fabs(sum / (double)n) < 5 * s);
        assert_true(fabs(squares / (double)n / variance[k] - 1) < 0.01);
        assert_true(fabs(next / (double)n / variance[k]) < 0.006);
    }
    drop(&x);
}

static void calls_and_seeds_differ(void **state)
{
    (void)state;
    block x = make(GPU_F64, 100, 1, DENSE), y = make(GPU_F64, 100, 1, DENSE);
    gpu_random a = {GPU_UNIFORM, 1, 1, 0, 1, 0},
               b = {GPU_UNIFORM, 1, 2, 0, 1, 0};
    gpu_random c = {GPU_UNIFORM, (uint64_t)1 << 32, 1, 0, 1, 0};
    cpu->random(device, &a, &x.v);
    cpu->random(device, &b, &y.v);
    assert_memory_not_equal(x.memory, y.memory, 800);
    cpu->random(device, &c, &y.v);
    assert_memory_not_equal(x.memory, y.memory, 800);
    cpu->random(device, &a, &y.v);
    assert_memory_equal(x.memory, y.memory, 800);
    drop(&x);
    drop(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(blocks_of_every_table),
        cmocka_unit_test(uniforms_and_integers),
        cmocka_unit_test(never_reaches_high),
        cmocka_unit_test(normals),
        cmocka_unit_test(moments),
        cmocka_unit_test(calls_and_seeds_differ),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
