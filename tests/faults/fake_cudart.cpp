/* CUDA's runtime without a GPU, for the CUDA backend's own code: memory is the
 * host's, copies are made at once, kernels do nothing. Of several devices, as
 * many as LUMAT_FAKE_DEVICES says, it refuses what a real one does: launches
 * into a stream that is not the current device's or with shared memory that was
 * not asked for there, and an event of another device than the stream's. At the
 * end it tells what was not given back, where no faults are injected from the
 * start on. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory, streams, events ---------------------------------------------- */

static const size_t MOST = (size_t)1 << 30, FRONT = 32;
static size_t used; /* bytes */
static int objects; /* streams, events, libraries */

static void tell()
{
    const char *fault = getenv("LUMAT_FAULT");
    if ((used || objects) && fault && strcmp(fault, "off") == 0)
        fprintf(stderr, "fake CUDA: %zu bytes and %d objects are left\n", used,
                objects);
}

/* The size stands in front of a block. */
static cudaError_t take(void **data, size_t bytes)
{
    static int is_open;
    if (!is_open++)
        atexit(tell);
    if (bytes > MOST - used)
        return cudaErrorMemoryAllocation;
    char *block = (char *)calloc(1, bytes + FRONT);
    if (!block)
        return cudaErrorMemoryAllocation;
    memcpy(block, &bytes, sizeof bytes);
    used += bytes;
    *data = block + FRONT;
    return cudaSuccess;
}

static cudaError_t give(void *data)
{
    size_t bytes;
    if (!data)
        return cudaSuccess;
    char *block = (char *)data - FRONT;
    memcpy(&bytes, block, sizeof bytes);
    used -= bytes;
    free(block);
    return cudaSuccess;
}

/* Streams and events are numbers of their devices. */
static thread_local int current;

template <class T> static cudaError_t make(T *out)
{
    int *device = (int *)malloc(sizeof current);
    objects++;
    *device = current;
    *out = (T)device;
    return cudaSuccess;
}

static int device_of(const void *object)
{
    return *(const int *)object;
}

static cudaError_t end(void *object)
{
    objects--;
    free(object);
    return cudaSuccess;
}

/* A function of CUDA's, its parameters, and what it does before it succeeds or
 * how it ends. */
#define CALL(name, ...) extern "C" cudaError_t name(__VA_ARGS__)
#define NOTHING(name, ...)  \
    CALL(name, __VA_ARGS__) \
    {                       \
        return cudaSuccess; \
    }

CALL(cudaMallocAsync, void **p, size_t n, cudaStream_t)
{
    return take(p, n);
}
CALL(cudaMallocHost, void **p, size_t n)
{
    return take(p, n);
}
CALL(cudaHostAlloc, void **p, size_t n, unsigned)
{
    return take(p, n);
}
CALL(cudaFree, void *p)
{
    return give(p);
}
CALL(cudaFreeAsync, void *p, cudaStream_t)
{
    return give(p);
}
CALL(cudaFreeHost, void *p)
{
    return give(p);
}
CALL(cudaMemGetInfo, size_t *free, size_t *total)
{
    *free = MOST - used;
    *total = MOST;
    return cudaSuccess;
}
CALL(cudaDeviceGetDefaultMemPool, cudaMemPool_t *pool, int)
{
    *pool = NULL;
    return cudaSuccess;
}
NOTHING(cudaMemPoolSetAttribute, cudaMemPool_t, cudaMemPoolAttr, void *)
CALL(cudaMemPoolGetAttribute, cudaMemPool_t, cudaMemPoolAttr, void *value)
{
    *(uint64_t *)value = used;
    return cudaSuccess;
}
NOTHING(cudaMemPoolTrimTo, cudaMemPool_t, size_t)
CALL(cudaMemcpyAsync, void *to, const void *from, size_t n, cudaMemcpyKind,
     cudaStream_t)
{
    memmove(to, from, n);
    return cudaSuccess;
}
CALL(cudaMemcpy2DAsync, void *to, size_t pitch, const void *from, size_t other,
     size_t width, size_t height, cudaMemcpyKind, cudaStream_t)
{
    for (size_t i = 0; i < height; i++)
        memmove((char *)to + i * pitch, (const char *)from + i * other, width);
    return cudaSuccess;
}
CALL(cudaMemsetAsync, void *data, int value, size_t n, cudaStream_t)
{
    memset(data, value, n);
    return cudaSuccess;
}

CALL(cudaStreamCreateWithFlags, cudaStream_t *s, unsigned)
{
    return make(s);
}
CALL(cudaStreamDestroy, cudaStream_t s)
{
    return end(s);
}
NOTHING(cudaStreamQuery, cudaStream_t)
NOTHING(cudaStreamSynchronize, cudaStream_t)
NOTHING(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned)
CALL(cudaEventCreate, cudaEvent_t *e)
{
    return make(e);
}
CALL(cudaEventCreateWithFlags, cudaEvent_t *e, unsigned)
{
    return make(e);
}
CALL(cudaEventDestroy, cudaEvent_t e)
{
    return end(e);
}
CALL(cudaEventRecord, cudaEvent_t e, cudaStream_t s)
{
    return device_of(e) == device_of(s) ? cudaSuccess
                                        : cudaErrorInvalidResourceHandle;
}
NOTHING(cudaEventQuery, cudaEvent_t)
NOTHING(cudaEventSynchronize, cudaEvent_t)
CALL(cudaEventElapsedTime, float *milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 1;
    return cudaSuccess;
}

/* --- the device: like an H200 --------------------------------------------- */

enum { SMS = 132, SHARED = 227 << 10 };

CALL(cudaGetDeviceCount, int *count)
{
    const char *devices = getenv("LUMAT_FAKE_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return cudaSuccess;
}
CALL(cudaGetDevice, int *device)
{
    *device = current;
    return cudaSuccess;
}
CALL(cudaSetDevice, int device)
{
    current = device;
    return cudaSuccess;
}
CALL(cudaDriverGetVersion, int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
#undef cudaGetDeviceProperties
CALL(cudaGetDeviceProperties, cudaDeviceProp *p, int)
{
    memset(p, 0, sizeof *p);
    strcpy(p->name, "no GPU");
    p->major = 9;
    p->multiProcessorCount = SMS;
    p->totalGlobalMem = MOST;
    return cudaSuccess;
}
CALL(cudaDeviceGetAttribute, int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? SHARED
             : attribute == cudaDevAttrMultiProcessorCount        ? SMS
                                                                  : 90;
    return cudaSuccess;
}

/* Of whatever is looked up of the driver; the one is that which makes maps. */
static CUresult succeed()
{
    return CUDA_SUCCESS;
}
CALL(cudaGetDriverEntryPointByVersion, const char *, void **function, unsigned,
     unsigned long long, cudaDriverEntryPointQueryResult *result)
{
    *function = (void *)succeed;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

NOTHING(cudaGetLastError)
NOTHING(cudaPeekAtLastError)
extern "C" const char *cudaGetErrorName(cudaError_t error)
{
    static char text[32];
    snprintf(text, sizeof text, "cudaError%d", (int)error);
    return text;
}
extern "C" const char *cudaGetErrorString(cudaError_t)
{
    return "an error that is injected";
}

/* --- kernels -------------------------------------------------------------- */

CALL(cudaFuncGetAttributes, cudaFuncAttributes *a, const void *)
{
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->ptxVersion = a->binaryVersion = 90;
    return cudaSuccess;
}

/* Shared memory that a kernel may have on a device beyond what all may. */
enum { PLAIN = 48 << 10, KERNELS = 4096 };
static struct {
    const void *kernel;
    int device, bytes;
} asked[KERNELS];
static int kernels;

static int most_shared(const void *kernel)
{
    for (int i = kernels - 1; i >= 0; i--)
        if (asked[i].kernel == kernel && asked[i].device == current)
            return asked[i].bytes;
    return PLAIN;
}

CALL(cudaFuncSetAttribute, const void *kernel, cudaFuncAttribute what, int n)
{
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize ||
        most_shared(kernel) == n)
        return cudaSuccess;
    if (n > SHARED || kernels == KERNELS)
        return cudaErrorInvalidValue;
    asked[kernels].kernel = kernel;
    asked[kernels].device = current;
    asked[kernels++].bytes = n;
    return cudaSuccess;
}

static cudaError_t launch(const void *kernel, size_t shared, cudaStream_t s)
{
    if (device_of(s) != current)
        return cudaErrorInvalidResourceHandle;
    return kernel && shared > PLAIN && shared > (size_t)most_shared(kernel)
               ? cudaErrorInvalidValue
               : cudaSuccess;
}

CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *blocks,
     const void *, int, size_t, unsigned)
{
    *blocks = 2;
    return cudaSuccess;
}
CALL(cudaLaunchKernelExC, const cudaLaunchConfig_t *c, const void *kernel,
     void **)
{
    return launch(kernel, c->dynamicSmemBytes, c->stream);
}
CALL(cudaLaunchKernel, const void *kernel, dim3, dim3, void **, size_t shared,
     cudaStream_t s)
{
    return launch(kernel, shared, s);
}
CALL(__cudaLaunchKernel, cudaKernel_t kernel, dim3, dim3, void **,
     size_t shared, cudaStream_t s)
{
    return launch((const void *)kernel, shared, s);
}
CALL(cudaLibraryLoadData, cudaLibrary_t *library, const void *, cudaJitOption *,
     void **, unsigned, cudaLibraryOption *, void **, unsigned)
{
    return make(library);
}
CALL(cudaLibraryGetKernel, cudaKernel_t *kernel, cudaLibrary_t, const char *)
{
    *kernel = NULL;
    return cudaSuccess;
}
CALL(cudaLibraryUnload, cudaLibrary_t library)
{
    return end(library);
}

/* What the compiler's own code calls around a launch. */
CALL(__cudaGetKernel, cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)(uintptr_t)function;
    return cudaSuccess;
}
static thread_local size_t pushed_shared;
static thread_local void *pushed_stream;
CALL(__cudaPopCallConfiguration, dim3 *, dim3 *, size_t *shared, void *stream)
{
    *shared = pushed_shared;
    *(void **)stream = pushed_stream;
    return cudaSuccess;
}
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t shared,
                                                void *stream)
{
    pushed_shared = shared;
    pushed_stream = stream;
    return 0;
}
extern "C" void **__cudaRegisterFatBinary(void *)
{
    static void *none;
    return &none;
}
extern "C" void __cudaRegisterFatBinaryEnd(void **)
{
}
extern "C" void __cudaUnregisterFatBinary(void **)
{
}
extern "C" void __cudaRegisterFunction(...)
{
}
extern "C" void __cudaRegisterVar(...)
{
}
