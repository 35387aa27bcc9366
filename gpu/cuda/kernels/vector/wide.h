/* Elements 16 bytes at a time, wherever they lie. */
#ifndef GPU_CUDA_WIDE_H
#define GPU_CUDA_WIDE_H

#include <stdint.h>

template <class T> struct alignas(16) vector {
    T at[16 / sizeof(T)];
};
template <class T> constexpr int WIDTH = 16 / sizeof(T);

/* How lines are read: all begin on 16 bytes, or anywhere, or have gaps. */
typedef enum reach { ALIGNED, ACROSS, APART } reach;

/* Elements before this one in the 16 bytes that hold it. */
template <class T> __host__ __device__ __forceinline__ int shift_of(const T *p)
{
    return (int)((uintptr_t)p / sizeof(T) % WIDTH<T>);
}

/* What is read only once leaves the first-level cache alone. */
template <class T>
__device__ __forceinline__ vector<T> load_once(const vector<T> *from)
{
    uint4 bits = __ldcg((const uint4 *)from);
    return *(vector<T> *)&bits;
}

/* WIDTH neighbours from the shift-th on, out of the two loads that hold them:
 * a's and b's elements. The shift of f64 is 1. */
__device__ __forceinline__ vector<float> join(vector<float> a, vector<float> b,
                                              int shift)
{
    float x = shift & 2 ? a.at[2] : a.at[0], y = shift & 2 ? a.at[3] : a.at[1];
    float z = shift & 2 ? b.at[0] : a.at[2], w = shift & 2 ? b.at[1] : a.at[3];
    float next = shift & 2 ? b.at[2] : b.at[0];
    if (shift & 1)
        return {{y, z, w, next}};
    return {{x, y, z, w}};
}

__device__ __forceinline__ vector<double> join(vector<double> a,
                                               vector<double> b, int)
{
    return {{a.at[1], b.at[0]}};
}

#endif
