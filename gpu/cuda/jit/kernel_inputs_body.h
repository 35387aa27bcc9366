/* How compiled kernels read their inputs and write their results. Before it
 * stand
 *   T          what is computed in
 *   RESULT     what is written, unsigned char for truth values
 *   DRAWS      how many inputs are drawn; then kernel_random_body.h, too
 *   INPUTS(X)  X(number, type of its elements, way it lies, which of those
 *              drawn, or of those turned) for each input
 *   value(job, extra, element of input 0, …) gives the result, and the further
 *              ones to extra */
typedef long long int64;
enum { ITEMS = JIT_ITEMS };

template <class S> struct alignas(sizeof(S) < 4 ? 4 * sizeof(S) : 16) quad {
    S at[ITEMS];
};

template <class S> __device__ __forceinline__ T widened(S x)
{
    return sizeof(S) == 1 ? (T)(x != 0) : (T)x;
}

#if DRAWS
__device__ __forceinline__ limits<float> limits_of(const jit_draw &d, float)
{
    return {d.single[0], d.single[1], d.single[2], d.single[3]};
}

__device__ __forceinline__ limits<double> limits_of(const jit_draw &d, double)
{
    return {d.wide[0], d.wide[1], d.wide[2], d.wide[3]};
}

/* Element number e. */
template <int WAY>
__device__ __forceinline__ T draw_one(const jit_draw &d, int64 e)
{
    constexpr int SHARE = share<WAY, T>();
    T v[SHARE];
    make<WAY, T>(d.rounds, limits_of(d, (T)0), (unsigned)(e / SHARE), v);
    T r = v[0];
#pragma unroll
    for (int k = 1; k < SHARE; k++)
        r = e % SHARE == k ? v[k] : r;
    return r;
}

/* Four, from a multiple of four on. */
template <int WAY>
__device__ __forceinline__ void draw_four(const jit_draw &d, int64 e,
                                          T (&to)[ITEMS])
{
    constexpr int SHARE = share<WAY, T>();
#pragma unroll
    for (int k = 0; k < ITEMS; k += SHARE)
        make<WAY, T>(d.rounds, limits_of(d, (T)0), (unsigned)((e + k) / SHARE),
                     to + k);
}
#endif

template <class S, int WAY, int DRAWN>
__device__ __forceinline__ T read_one(const jit_job &job, const jit_operand &in,
                                      int64 i, int64 j)
{
#if DRAWS
    if constexpr (WAY >= JIT_UNIFORM)
        return draw_one<WAY>(job.draw[DRAWN],
                             i * in.row_stride + j * in.col_stride);
#endif
    const S *data = (const S *)in.data;
    if (WAY == JIT_SAME)
        return widened(data[0]);
    if (WAY == JIT_ROW)
        return widened(data[j]);
    if (WAY == JIT_COLUMN)
        return widened(data[i * in.row_stride]);
    if (WAY == JIT_WIDE)
        return widened(data[i * in.row_stride + j]);
    return widened(data[i * in.row_stride + j * in.col_stride]);
}

template <class S>
__device__ __forceinline__ void read_four(const S *from, T (&to)[ITEMS])
{
    quad<S> four = *(const quad<S> *)from;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        to[k] = widened(four.at[k]);
}

template <class X> __device__ __forceinline__ RESULT narrowed(X x)
{
    return sizeof(RESULT) == 1 ? (RESULT)(x != 0) : (RESULT)x;
}
