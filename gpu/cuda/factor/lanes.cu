/* Green contexts, asked of the driver, which is not linked: its functions are
 * looked up where they are first needed. */
#include <cuda.h>
#include <stdlib.h>
#include "lanes.h"

enum { MOST_DEVICES = 64, SPLITS = 1, LANE_TICKETS = 256, LEAST_SMS = 16 };

/* Lanes of a device that were made, and the contexts that they are in. */
typedef struct made {
    int panel_sms, is_tried;
    cuda_lanes lanes; /* rest is NULL where there are none */
    cuda_device device[2];
    CUgreenCtx context[2];
} made;

static made *known[MOST_DEVICES][SPLITS]; /* by ordinal */

typedef struct driver {
    CUresult (*get_resource)(CUdevice, CUdevResource *, CUdevResourceType);
    CUresult (*split)(CUdevResource *, unsigned *, const CUdevResource *,
                      CUdevResource *, unsigned, unsigned);
    CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
    CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
    CUresult (*destroy)(CUgreenCtx);
    CUresult (*make_stream)(CUstream *, CUgreenCtx, unsigned, int);
    int is_whole;
} driver;

static void *find(const char *name, int version)
{
    void *found = NULL;
    cudaDriverEntryPointQueryResult result;
    cudaError_t error = cudaGetDriverEntryPointByVersion(
        name, &found, (unsigned)version, cudaEnableDefault, &result);
    if (error != cudaSuccess)
        cudaGetLastError();
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? found
                                                                         : NULL;
}

/* is_whole: are all functions there? */
static const driver *find_driver(void)
{
    static driver v;
    static int is_tried;
    if (is_tried)
        return &v;
    is_tried = 1;
    struct {
        const char *name;
        void **to;
        int version;
    } all[] = {
        {"cuDeviceGetDevResource", (void **)&v.get_resource, 12040},
        {"cuDevSmResourceSplitByCount", (void **)&v.split, 12040},
        {"cuDevResourceGenerateDesc", (void **)&v.describe, 12040},
        {"cuGreenCtxCreate", (void **)&v.create, 12040},
        {"cuGreenCtxDestroy", (void **)&v.destroy, 12040},
        {"cuGreenCtxStreamCreate", (void **)&v.make_stream, 12050},
    };
    v.is_whole = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].to = find(all[i].name, all[i].version);
        v.is_whole &= *all[i].to != NULL;
    }
    return &v;
}

/* --- making them
 * --------------------------------------------------------------- */

static void end_lane(made *m, int i)
{
    cuda_device *lane = &m->device[i];
    if (lane->tickets != NULL)
        cudaFree(lane->tickets);
    if (lane->stream != NULL)
        cudaStreamDestroy(lane->stream);
    if (m->context[i] != NULL)
        find_driver()->destroy(m->context[i]);
    m->context[i] = NULL;
    lane->tickets = NULL;
    lane->stream = NULL;
}

static gpu_status make_lane(cuda_device *d, made *m, int i, CUdevResource *part)
{
    const driver *v = find_driver();
    CUdevResourceDesc description = NULL;
    CUstream stream = NULL;
    cuda_device *lane = &m->device[i];
    *lane = {};
    lane->ordinal = d->ordinal;
    lane->capability = d->capability;
    lane->sms = (int)part->sm.smCount;
    lane->pool = d->pool;
    lane->lane = i + 1;
    if (v->describe(&description, part, 1) != CUDA_SUCCESS ||
        v->create(&m->context[i], description, d->ordinal,
                  CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS ||
        v->make_stream(&stream, m->context[i], CU_STREAM_NON_BLOCKING,
                       i ? -5 : 0) != CUDA_SUCCESS)
        return GPU_UNSUPPORTED;
    lane->stream = stream;
    size_t bytes = LANE_TICKETS * sizeof *lane->tickets;
    CHECK(d, cudaMallocAsync((void **)&lane->tickets, bytes, d->stream));
    return gpu_cuda_check(d,
                          cudaMemsetAsync(lane->tickets, 0, bytes, d->stream));
}

static gpu_status make_events(cuda_device *d, cuda_lanes *lanes)
{
    cudaEvent_t *all[] = {&lanes->begun, &lanes->rest_done, &lanes->panel_done};
    for (int i = 0; i < 3; i++)
        CHECK(d, cudaEventCreateWithFlags(all[i], cudaEventDisableTiming));
    return GPU_OK;
}

static void end_lanes(made *m)
{
    cudaEvent_t all[] = {m->lanes.begun, m->lanes.rest_done,
                         m->lanes.panel_done};
    for (int i = 0; i < 3; i++)
        if (all[i] != NULL)
            cudaEventDestroy(all[i]);
    end_lane(m, 0);
    end_lane(m, 1);
    m->lanes = {};
    cudaGetLastError();
}

/* The panel's part takes clusters of 16 blocks. */
static gpu_status make_lanes(cuda_device *d, made *m)
{
    const driver *v = find_driver();
    CUdevResource all = {}, parts[2] = {};
    unsigned groups = 1;
    if (!v->is_whole ||
        v->get_resource(d->ordinal, &all, CU_DEV_RESOURCE_TYPE_SM) !=
            CUDA_SUCCESS ||
        v->split(&parts[1], &groups, &all, &parts[0],
                 CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
                 (unsigned)m->panel_sms) != CUDA_SUCCESS ||
        groups < 1 || parts[0].sm.smCount < LEAST_SMS ||
        parts[1].sm.smCount < LEAST_SMS)
        return GPU_UNSUPPORTED;
    TRY(make_lane(d, m, 0, &parts[0]));
    TRY(make_lane(d, m, 1, &parts[1]));
    TRY(make_events(d, &m->lanes));
    m->lanes.rest = &m->device[0];
    m->lanes.panel = &m->device[1];
    return GPU_OK;
}

gpu_status gpu_cuda_find_lanes(cuda_device *d, int panel_sms,
                               cuda_lanes **lanes)
{
    made **place = NULL;
    *lanes = NULL;
    if (d->ordinal >= MOST_DEVICES)
        return GPU_OK;
    for (int i = 0; i < SPLITS && place == NULL; i++)
        if (known[d->ordinal][i] == NULL ||
            known[d->ordinal][i]->panel_sms == panel_sms)
            place = &known[d->ordinal][i];
    if (place == NULL)
        return GPU_OK;
    if (*place == NULL)
        *place = (made *)calloc(1, sizeof **place);
    made *m = *place;
    if (m == NULL)
        return FAIL(GPU_MEMORY, "lu: out of host memory");
    m->panel_sms = panel_sms;
    if (!m->is_tried) {
        gpu_status status = make_lanes(d, m);
        if (status != GPU_OK)
            end_lanes(m);
        if (status != GPU_OK && status != GPU_UNSUPPORTED)
            return status;
        m->is_tried = 1;
    }
    *lanes = m->lanes.rest != NULL ? &m->lanes : NULL;
    return GPU_OK;
}

/* --- using them
 * ------------------------------------------------------------------ */

gpu_status gpu_cuda_fork_lanes(cuda_device *d, cuda_lanes *lanes)
{
    CHECK(d, cudaEventRecord(lanes->begun, d->stream));
    CHECK(d, cudaStreamWaitEvent(lanes->panel->stream, lanes->begun, 0));
    return gpu_cuda_check(
        d, cudaStreamWaitEvent(lanes->rest->stream, lanes->begun, 0));
}

gpu_status gpu_cuda_join_lanes(cuda_device *d, cuda_lanes *lanes)
{
    CHECK(d, cudaEventRecord(lanes->rest_done, lanes->rest->stream));
    CHECK(d, cudaEventRecord(lanes->panel_done, lanes->panel->stream));
    CHECK(d, cudaStreamWaitEvent(d->stream, lanes->rest_done, 0));
    return gpu_cuda_check(d,
                          cudaStreamWaitEvent(d->stream, lanes->panel_done, 0));
}

void gpu_cuda_rest_lanes(cuda_device *d, cuda_lanes *lanes)
{
    cuda_device *both[] = {lanes->rest, lanes->panel};
    for (int i = 0; i < 2; i++) {
        cuda_device *lane = both[i];
        d->lost |= lane->lost;
        if (d->lost)
            continue;
        if (cudaStreamSynchronize(lane->stream) != cudaSuccess)
            cudaGetLastError(); /* the device's own stream will tell */
        if (lane->scratch != NULL)
            cudaFreeAsync(lane->scratch, lane->stream);
        lane->scratch = NULL;
        lane->scratch_bytes = 0;
    }
}

/* --- a second stream ------------------------------------------------------ */

typedef struct made_side {
    cuda_side side;
    cuda_device device;
} made_side;

static made_side *sides[MOST_DEVICES]; /* by ordinal */

static gpu_status make_side(cuda_device *d, made_side *m)
{
    m->device.ordinal = d->ordinal;
    m->device.capability = d->capability;
    m->device.sms = d->sms;
    m->device.pool = d->pool;
    m->device.lane = LANE_SIDE;
    CHECK(d,
          cudaStreamCreateWithFlags(&m->device.stream, cudaStreamNonBlocking));
    CHECK(d, cudaEventCreateWithFlags(&m->side.begun, cudaEventDisableTiming));
    CHECK(d, cudaEventCreateWithFlags(&m->side.done, cudaEventDisableTiming));
    m->side.device = &m->device;
    return GPU_OK;
}

static void end_side(made_side *m)
{
    if (m == NULL)
        return;
    if (m->side.begun != NULL)
        cudaEventDestroy(m->side.begun);
    if (m->side.done != NULL)
        cudaEventDestroy(m->side.done);
    if (m->device.stream != NULL)
        cudaStreamDestroy(m->device.stream);
    free(m);
    cudaGetLastError();
}

gpu_status gpu_cuda_find_side(cuda_device *d, cuda_side **side)
{
    *side = NULL;
    if (d->ordinal >= MOST_DEVICES)
        return GPU_OK;
    if (sides[d->ordinal] == NULL) {
        made_side *m = (made_side *)calloc(1, sizeof *m);
        if (m == NULL)
            return FAIL(GPU_MEMORY, "factor: out of host memory");
        gpu_status status = make_side(d, m);
        if (status != GPU_OK) {
            end_side(m);
            return status;
        }
        sides[d->ordinal] = m;
    }
    *side = &sides[d->ordinal]->side;
    return GPU_OK;
}

gpu_status gpu_cuda_begin_side(cuda_device *d, cuda_side *side)
{
    CHECK(d, cudaEventRecord(side->begun, d->stream));
    return gpu_cuda_check(
        d, cudaStreamWaitEvent(side->device->stream, side->begun, 0));
}

gpu_status gpu_cuda_join_side(cuda_device *d, cuda_side *side)
{
    CHECK(d, cudaEventRecord(side->done, side->device->stream));
    return gpu_cuda_check(d, cudaStreamWaitEvent(d->stream, side->done, 0));
}

void gpu_cuda_rest_side(cuda_device *d, cuda_side *side)
{
    if (side == NULL)
        return;
    d->lost |= side->device->lost;
    if (!d->lost && cudaStreamSynchronize(side->device->stream) != cudaSuccess)
        cudaGetLastError(); /* the device's own stream will tell */
}

/* --- ending them ---------------------------------------------------------- */

void gpu_cuda_close_lanes(cuda_device *d)
{
    for (int i = 0; i < SPLITS && d->ordinal < MOST_DEVICES; i++) {
        made *m = known[d->ordinal][i];
        if (m != NULL)
            end_lanes(m);
        free(m);
        known[d->ordinal][i] = NULL;
    }
    if (d->ordinal < MOST_DEVICES) {
        end_side(sides[d->ordinal]);
        sides[d->ordinal] = NULL;
    }
}
