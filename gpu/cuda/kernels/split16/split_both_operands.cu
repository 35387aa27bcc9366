/* split16's first part, both operands in one launch: each element is read
 * once, from memory to planes, where neighbours lie as their planes do.
 *
 * All blocks run at one time, one on each multiprocessor. Half of a block's
 * warps hold a strip of b in shared memory, 128 columns of some rows, and tell
 * how large the columns are there; when all blocks have told, they cut it. As
 * many strips as the shared memory of the device holds make a group, and one
 * group follows the other. The other warps split rows of a, which come by way
 * of shared memory too; so one half computes while the other waits. Threads are
 * few, as with fewer registers each they would keep some in memory.
 *
 * Limited by bytes: 4 read and 4 written an element. Needs sm_80. */
#include "split_column_half.h"

/* --- both --------------------------------------------------------------- */

/* What this block has seen, where the strips' waiting came after the facts
 * were zeroed. By one thread. */
__device__ __forceinline__ void add_facts(const job &a, const job &b,
                                          unsigned a_facts, unsigned b_facts)
{
    if (a_facts && a.how != READY)
        atomicOr(a.to.facts, a_facts);
    if (b_facts)
        atomicOr(b.to.facts, b_facts);
}

/* With a alone nobody waits: what all blocks have seen comes together in a
 * ticket, and the last to add its own hands it on. */
__device__ __forceinline__ void add_facts_alone(const job &a, unsigned facts,
                                                unsigned *tickets)
{
    if (facts)
        atomicOr(tickets + TICKET_FACTS, facts);
    __threadfence();
    if (atomicAdd(tickets + TICKET_DONE, 1) != gridDim.x - 1)
        return;
    *a.to.facts = atomicExch(tickets + TICKET_FACTS, 0);
    tickets[TICKET_DONE] = 0;
}

/* ALIGNED for two operands that can be read 16 bytes at a time. */
template <reach HOW>
__global__ void __launch_bounds__(2 * CREW, 1)
    split_both(const __grid_constant__ job a, const __grid_constant__ job b,
               const __grid_constant__ strips p)
{
    extern __shared__ float4 held[];
    __shared__ crew_memory memory;
    __shared__ unsigned a_facts, b_facts;
    int thread = threadIdx.x % CREW;
    unsigned facts = 0;
    let_next_start();
    if (threadIdx.x == 0)
        a_facts = b_facts = 0;
    __syncthreads(); /* the facts are zero */
    wait_for_previous();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        if (a.how != READY)
            *a.to.facts = 0;
        if (b.how != READY)
            *b.to.facts = 0;
    }
    if (threadIdx.x < CREW && b.how != READY)
        facts = split_b<HOW>(b, p, thread, held + p.behind, &memory);
    if (threadIdx.x >= CREW && a.how != READY)
        facts = split_a<HOW>(a, thread, held, &memory);
    facts = __reduce_or_sync(~0u, facts);
    if (thread % 32 == 0 && facts)
        atomicOr(threadIdx.x < CREW ? &b_facts : &a_facts, facts);
    __syncthreads(); /* both crews are done */
    if (threadIdx.x != 0)
        return;
    if (b.how != READY)
        add_facts(a, b, a_facts, b_facts);
    else
        add_facts_alone(a, a_facts, p.tickets);
}

/* --- the host's side ---------------------------------------------------- */

/* Bytes of shared memory for rows and a strip: what a block may have, less its
 * own. */
static gpu_status most_held(cuda_device *d, int *bytes)
{
    static int device, most;
    if (device != d->ordinal + 1) {
        CHECK(d, cudaDeviceGetAttribute(&most,
                                        cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                        d->ordinal));
        most = (most - (int)sizeof(crew_memory) - 64) / 16 * 16;
        device = d->ordinal + 1;
    }
    *bytes = most;
    return GPU_OK;
}

/* As few groups as can be, and for those as many slices as there are blocks
 * for; `held` bytes are there for a strip. Returns 0 when a column of strips
 * is more than all blocks can hold. */
static int plan_strips(const cuda_device *d, int64_t span, int64_t depth,
                       int held, strips *p, int *slices, int *rows)
{
    int64_t columns = ceil_div(span, STRIP), most = held / HELD_ROW;
    int64_t least = ceil_div(depth, most), at_once = d->sms / least;
    if (at_once == 0)
        return 0;
    p->groups = (int)ceil_div(columns, smaller(at_once, columns));
    p->at_once = (int)ceil_div(columns, p->groups);
    *rows = (int)larger(ceil_div(depth, d->sms / p->at_once), CREW_WARPS);
    *slices = (int)ceil_div(depth, *rows);
    return 1;
}

/* a's rows may be held beside b's strips, or not. */
gpu_status gpu_cuda_together_bytes(cuda_device *d, int64_t span, int64_t depth,
                                   size_t *bytes)
{
    int held, most = 0;
    TRY(most_held(d, &held));
    for (int beside = 0; beside < 2; beside++) {
        strips p;
        int slices, rows;
        int room =
            held - (beside ? row_bytes(ceil_div(depth, TURN) * TURN) : 0);
        if (plan_strips(d, span, depth, room, &p, &slices, &rows))
            most = slices > most ? slices : most;
    }
    *bytes = (size_t)most * (size_t)span * sizeof(unsigned);
    return GPU_OK;
}

static int is_straight(const job *j, method straight)
{
    return j->how == READY || (j->how == straight && j->from.how != APART);
}

static int is_aligned(const job *j)
{
    return j->how == READY || (j->from.how == ALIGNED && j->to.length % 4 == 0);
}

template <reach HOW>
static gpu_status launch(cuda_device *d, const job *a, const job *b, strips p)
{
    static int prepared;
    int held, bytes = p.behind * 16;
    TRY(most_held(d, &held));
    if (b->how != READY)
        bytes += b->slice_rows * HELD_ROW;
    if (prepared != d->ordinal + 1)
        CHECK(d, cudaFuncSetAttribute(
                     split_both<HOW>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, held));
    TRY(keep_division(d, (const void *)split_both<HOW>, &prepared));
    return launch_behind(d, split_both<HOW>, dim3((unsigned)d->sms), 2 * CREW,
                         (size_t)bytes, 1, *a, *b, p);
}

gpu_status gpu_cuda_split_together(cuda_device *d, const job *a, const job *b,
                                   unsigned *tickets, int *done)
{
    job y = *b;
    int held, rows = a->how == READY ? 0 : row_bytes(a->to.pitch);
    strips p = {1, 1, rows / 16, tickets};
    TRY(most_held(d, &held));
    *done =
        is_straight(a, ROWS) && is_straight(b, COLUMNS) &&
        (b->how == READY || plan_strips(d, b->to.span, b->to.depth, held - rows,
                                        &p, &y.slices, &y.slice_rows));
    if (!*done)
        return GPU_OK;
    return is_aligned(a) && is_aligned(b) ? launch<ALIGNED>(d, a, &y, p)
                                          : launch<ACROSS>(d, a, &y, p);
}
