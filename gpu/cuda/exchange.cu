/* Exchanges with the GPUs of other processes by NCCL, which is opened when it
 * is first needed, on a stream of their own. Its calls do not wait: what they
 * began is looked at until it is done, or a minute is over. Only what libraries
 * exchange waits. */
#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "factor.h"
#include "grid_work.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

/* Of a communicator that is opened at once, and of another one, of libraries.
 */
typedef struct ids {
    ncclUniqueId first, later;
} ids;

static_assert(sizeof(ids) == GPU_EXCHANGE_NAME, "a name is two ids");

static const double MOST_SECONDS = 60;

/* Multiprocessors left to NCCL at most, and the channels it may have, each of
 * which takes one: a power of two, as it goes up to the next by itself. A
 * kernel of ours whose blocks all wait for each other must not need these: its
 * last ones would wait for a message to end. */
enum { GUESTS = 32 };

static int guests_of(const cuda_device *d)
{
    int guests = GUESTS;
    while (guests > 1 && guests > d->sms / 4)
        guests /= 2;
    return guests;
}

/* --- the library ---------------------------------------------------------- */

#define FUNCTIONS(F)      \
    F(GetUniqueId)        \
    F(CommInitRankConfig) \
    F(CommGetAsyncError)  \
    F(CommAbort)          \
    F(GroupStart)         \
    F(GroupEnd)           \
    F(Send)               \
    F(Recv)               \
    F(GetErrorString)

static struct {
    int looked;
    const char *missing; /* NULL: it is there */
#define MEMBER(name) decltype(&nccl##name) name;
    FUNCTIONS(MEMBER)
} nccl;

static void find_library(void)
{
    static const char *const paths[] = {"libnccl.so.2",
                                        "/usr/local/cuda/lib64/libnccl.so.2"};
    void *object = NULL;
    nccl.looked = 1;
    for (const char *path : paths)
        if (object == NULL)
            object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        nccl.missing = "libnccl.so.2";
        return;
    }
#define LOOK(name)                                                    \
    if ((*(void **)&nccl.name = dlsym(object, "nccl" #name)) == NULL) \
        nccl.missing = "nccl" #name " in libnccl.so.2 (2.14 or later)";
    FUNCTIONS(LOOK)
}

static gpu_status need_library(void)
{
    if (!nccl.looked)
        find_library();
    if (nccl.missing)
        return FAIL(GPU_UNSUPPORTED,
                    "GPUs of several processes need NCCL, and there is no %s",
                    nccl.missing);
    return GPU_OK;
}

/* --- one process's end ---------------------------------------------------- */

typedef struct exchange {
    cuda_device *device;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t ready, done; /* what is sent; what came */
    ids name;
    int rank, count;
    ncclComm_t waiting; /* of libraries, whose calls have to wait; or NULL */
    grid_libraries libraries;
} exchange;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits until what a call began is done. */
static gpu_status settle(exchange *e, ncclResult_t result, const char *what)
{
    double end = seconds_now() + MOST_SECONDS;
    while (result == ncclInProgress && seconds_now() < end) {
        ncclResult_t now;
        ncclResult_t asked = nccl.CommGetAsyncError(e->comm, &now);
        result = asked == ncclSuccess ? now : asked;
        sched_yield(); /* the others may need this core to come */
    }
    if (result == ncclSuccess)
        return GPU_OK;
    return FAIL(GPU_INTERNAL, "NCCL: %s: %s", what,
                result == ncclInProgress
                    ? "not all GPUs answered within a minute"
                    : nccl.GetErrorString(result));
}

static gpu_status make_name(void *device, unsigned char *name)
{
    ENTER(d, device);
    (void)d;
    TRY(need_library());
    ids made;
    ncclResult_t result = nccl.GetUniqueId(&made.first);
    if (result == ncclSuccess)
        result = nccl.GetUniqueId(&made.later);
    if (result != ncclSuccess)
        return FAIL(GPU_INTERNAL, "NCCL: %s", nccl.GetErrorString(result));
    memcpy(name, &made, sizeof made);
    return GPU_OK;
}

static void close_exchange(void *handle)
{
    exchange *e = (exchange *)handle;
    e->device->guests = 0;
    if (e->waiting != NULL) /* the libraries' handles end with the process */
        nccl.CommAbort(e->waiting);
    if (e->comm != NULL)
        nccl.CommAbort(e->comm);
    if (e->ready != NULL)
        cudaEventDestroy(e->ready);
    if (e->done != NULL)
        cudaEventDestroy(e->done);
    if (e->stream != NULL)
        cudaStreamDestroy(e->stream);
    delete e;
}

static gpu_status make_exchange(exchange *e, const unsigned char *name,
                                int rank, int count)
{
    cuda_device *d = e->device;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
    config.maxCTAs = guests_of(d);
#endif
    e->rank = rank;
    e->count = count;
    memcpy(&e->name, name, sizeof e->name);
    CHECK(d, cudaStreamCreateWithFlags(&e->stream, cudaStreamNonBlocking));
    CHECK(d, cudaEventCreateWithFlags(&e->ready, cudaEventDisableTiming));
    CHECK(d, cudaEventCreateWithFlags(&e->done, cudaEventDisableTiming));
    return settle(
        e,
        nccl.CommInitRankConfig(&e->comm, count, e->name.first, rank, &config),
        "to come together");
}

static gpu_status open_exchange(void *device, const unsigned char *name,
                                int rank, int count, void **out)
{
    ENTER(d, device);
    TRY(need_library());
    exchange *e = new exchange{};
    e->device = d;
    d->guests = guests_of(d);
    gpu_status status = make_exchange(e, name, rank, count);
    if (status != GPU_OK)
        close_exchange(e);
    else
        *out = e;
    return status;
}

/* Sends and receives of one group go on at once, whatever their order. */
static gpu_status begin(void *handle, const gpu_bytes_parcel *list, int n)
{
    exchange *e = (exchange *)handle;
    ENTER(d, e->device);
    CHECK(d, cudaEventRecord(e->ready, d->stream));
    CHECK(d, cudaStreamWaitEvent(e->stream, e->ready, 0));
    ncclResult_t result = nccl.GroupStart(), one;
    for (int i = 0; i < n; i++) {
        const gpu_bytes_parcel *p = &list[i];
        one = p->is_incoming ? nccl.Recv(p->data, p->bytes, ncclInt8, p->peer,
                                         e->comm, e->stream)
                             : nccl.Send(p->data, p->bytes, ncclInt8, p->peer,
                                         e->comm, e->stream);
        if (result == ncclSuccess && one != ncclInProgress)
            result = one;
    }
    one = nccl.GroupEnd();
    return settle(e, result == ncclSuccess ? one : result, "to exchange");
}

static gpu_status finish(void *handle)
{
    exchange *e = (exchange *)handle;
    ENTER(d, e->device);
    CHECK(d, cudaEventRecord(e->done, e->stream));
    CHECK(d, cudaStreamWaitEvent(d->stream, e->done, 0));
    return GPU_OK;
}

/* A communicator whose calls wait, of the same processes. One that is split
 * from the first was refused by NCCL 2.28. */
static gpu_status meet_again(exchange *e)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    return settle(e,
                  nccl.CommInitRankConfig(&e->waiting, e->count, e->name.later,
                                          e->rank, &config),
                  "to come together once more");
}

/* An id serves once: where not all came the libraries are refused from then on.
 */
static gpu_status open_waiting(exchange *e, gpu_grid_work *w)
{
    if (e->waiting != NULL || e->libraries.is_broken)
        return GPU_OK;
    gpu_status status = gpu_cuda_all_are_well(w, meet_again(e));
    e->libraries.is_broken = status != GPU_OK;
    if (status != GPU_OK && e->waiting != NULL) {
        nccl.CommAbort(e->waiting);
        e->waiting = NULL;
    }
    return status;
}

static const char *lacks(void *, gpu_grid_task task)
{
    return gpu_cuda_grid_lacks(task);
}

static gpu_status work(void *handle, gpu_grid_work *w)
{
    exchange *e = (exchange *)handle;
    ENTER(d, e->device);
    TRY(open_waiting(e, w));
    return gpu_cuda_grid_work(d, &e->libraries, e->waiting, w);
}

#else /* built without NCCL's header */

static gpu_status make_name(void *, unsigned char *)
{
    return FAIL(GPU_UNSUPPORTED, "GPUs of several processes need NCCL, and "
                                 "this lumat was built without its header");
}

static gpu_status open_exchange(void *device, const unsigned char *name, int,
                                int, void **)
{
    return make_name(device, (unsigned char *)name);
}

static void close_exchange(void *)
{
}

static gpu_status begin(void *, const gpu_bytes_parcel *, int)
{
    return GPU_UNSUPPORTED;
}

static gpu_status finish(void *)
{
    return GPU_UNSUPPORTED;
}

static const char *lacks(void *, gpu_grid_task)
{
    return "NCCL";
}

static gpu_status work(void *, gpu_grid_work *)
{
    return GPU_UNSUPPORTED;
}

#endif

extern "C" {
extern const gpu_exchange_entry lumat_exchange
    __attribute__((visibility("default")));
const gpu_exchange_entry lumat_exchange = {
    GPU_EXCHANGE_ABI, make_name, open_exchange, close_exchange, begin,
    finish,           lacks,     work};
}
