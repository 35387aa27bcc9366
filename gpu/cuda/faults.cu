/* Faults in the place of CUDA's calls, for tests: the linker (--wrap) sends
 * each call that faults.def has a row of through a function here, which costs a
 * branch where no faults are injected.
 *
 * What CUDA promises of errors holds for these, too: cudaGetLastError tells of
 * one once, and behind one that ends the use of the device no call is made any
 * more. */
#include "cuda_device.h"

static int (*ask)(gpu_fault_site *site);
static cudaError_t stuck;             /* what ended the use of the device */
static thread_local cudaError_t last; /* for cudaGetLastError */

void gpu_cuda_take_faults(const gpu_host *host)
{
    ask = host->fault;
}

int gpu_cuda_fault(gpu_fault_site *site)
{
    if (ask == NULL)
        return 0;
    return stuck ? site->usual : ask(site);
}

/* Of a call of the runtime's, whose error is the last one, too. */
static cudaError_t fault_of(gpu_fault_site *site)
{
    cudaError_t error = stuck ? stuck : (cudaError_t)ask(site);
    if (gpu_cuda_is_sticky(error))
        stuck = error;
    if (error)
        last = error;
    return error;
}

static constexpr const char *shown(const char *symbol)
{
    return symbol[0] == '_' ? symbol + 2 : symbol;
}

/* A list of types as one of parameters, a to h, and these as one of values. */
#define NTH(a, b, c, d, e, f, g, h, n, ...) n
#define COUNT(...) NTH(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)
#define TYPED_1(A) A a
#define TYPED_2(A, B) TYPED_1(A), B b
#define TYPED_3(A, B, C) TYPED_2(A, B), C c
#define TYPED_4(A, B, C, D) TYPED_3(A, B, C), D d
#define TYPED_5(A, B, C, D, E) TYPED_4(A, B, C, D), E e
#define TYPED_6(A, B, C, D, E, F) TYPED_5(A, B, C, D, E), F f
#define TYPED_7(A, B, C, D, E, F, G) TYPED_6(A, B, C, D, E, F), G g
#define TYPED_8(A, B, C, D, E, F, G, H) TYPED_7(A, B, C, D, E, F, G), H h
#define VALUES_1 a
#define VALUES_2 VALUES_1, b
#define VALUES_3 VALUES_2, c
#define VALUES_4 VALUES_3, d
#define VALUES_5 VALUES_4, e
#define VALUES_6 VALUES_5, f
#define VALUES_7 VALUES_6, g
#define VALUES_8 VALUES_7, h
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TYPED(...) JOIN(TYPED_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define VALUES(...) JOIN(VALUES_, COUNT(__VA_ARGS__))

#define MAKE(name, usual, ...)                                     \
    extern "C" cudaError_t __real_##name(TYPED(__VA_ARGS__));      \
    extern "C" cudaError_t __wrap_##name(TYPED(__VA_ARGS__));      \
    cudaError_t __wrap_##name(TYPED(__VA_ARGS__))                  \
    {                                                              \
        static gpu_fault_site site = {shown(#name), usual};        \
        cudaError_t error = ask ? fault_of(&site) : cudaSuccess;   \
        return error ? error : __real_##name(VALUES(__VA_ARGS__)); \
    }

/* Behind what ended the use of the device nothing can be ended either. */
#define END(name, usual, ...)                                                  \
    extern "C" cudaError_t __real_##name(TYPED(__VA_ARGS__));                  \
    extern "C" cudaError_t __wrap_##name(TYPED(__VA_ARGS__));                  \
    cudaError_t __wrap_##name(TYPED(__VA_ARGS__))                              \
    {                                                                          \
        static gpu_fault_site site = {shown(#name), usual};                    \
        cudaError_t error = ask ? fault_of(&site) : cudaSuccess;               \
        cudaError_t told = stuck ? stuck : __real_##name(VALUES(__VA_ARGS__)); \
        return error ? error : told;                                           \
    }
#include "faults.def"

extern "C" cudaError_t __real_cudaPeekAtLastError();
extern "C" cudaError_t __wrap_cudaPeekAtLastError()
{
    cudaError_t error = ask ? last : cudaSuccess;
    return error ? error : __real_cudaPeekAtLastError();
}

extern "C" cudaError_t __real_cudaGetLastError();
extern "C" cudaError_t __wrap_cudaGetLastError()
{
    if (ask == NULL)
        return __real_cudaGetLastError();
    cudaError_t error = last, real = __real_cudaGetLastError();
    last = stuck;
    return error ? error : real;
}
