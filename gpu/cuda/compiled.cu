/* Kernels compiled for programs and for reductions of their results: what a
 * program and the way its operands lie ask for, and the launch of what comes of
 * it. What becomes a kernel, when, and of which text, is jit/'s; the
 * interpreter does what there is none for: programs that use places, and, where
 * the results are written, many operands that lie along columns, and narrow
 * matrices with one that does or whose rows do not begin at multiples of 16
 * bytes. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpret.h"

extern "C" {
#include "jit.h"
}

/* What the interpreter takes longer for a step and an element, measured on 132
 * multiprocessors; reading and writing count as a step. Fewer elements than
 * LEAST it works on in hardly more time than a launch. */
static const double STEP_SECONDS = 0.35e-12 * 132;
static const double LEAST = 1 << 16;
/* Elements whose numbers come of blocks below 2^32, two of each. */
static const double MOST_DRAWN = 0x1p33;

/* --- what is asked for -----------------------------------------------------
 */

/* Does an input lie so that it would be read element by element, where its
 * result is written four at a time? */
static int is_narrow(const gpu_view *v)
{
    return v->data != NULL && v->col_stride != 0 &&
           !gpu_cuda_reads_columns(v) && !gpu_cuda_is_wide(v);
}

/* Returns 0 where the interpreter is as good or better. */
static int fill_form(const gpu_program *p, const plan *made,
                     const gpu_view *out, jit_form *f)
{
    unsigned wide = JIT_WIDE_RESULT;
    for (int e = 0; e <= p->extras; e++)
        if (!gpu_cuda_is_wide(&out[e]))
            wide = 0;
    for (int v = 0; v < p->inputs; v++) {
        if (gpu_cuda_reads_columns(&made->in[v]) &&
            smaller(out->rows, out->cols) < JIT_LEAST_SIDE)
            return 0;
        wide |= (unsigned)gpu_cuda_is_wide(&made->in[v]) << v;
    }
    for (int v = 0; v < p->inputs; v++)
        if (is_narrow(&made->in[v]))
            wide &= ~(unsigned)JIT_WIDE_RESULT;
    return jit_fill_form(f, p, made->is_f64 ? GPU_F64 : GPU_F32, made->in, out,
                         wide);
}

static jit_operand operand_of(const gpu_view *v)
{
    return {v->data, v->row_stride, v->col_stride};
}

/* Returns 0 where a kernel cannot draw what the program does. */
static int fill_job(const gpu_program *p, const plan *made, const gpu_view *out,
                    jit_job *job)
{
    int drawn = 0;
    for (int v = 0; v < p->inputs; v++) {
        job->in[v] = operand_of(&made->in[v]);
        if (made->in[v].data == NULL &&
            !gpu_cuda_fill_draw(&p->draw[v], !made->is_f64,
                                &job->draw[drawn++]))
            return 0;
    }
    job->out = operand_of(out);
    for (int e = 0; e < p->extras; e++)
        job->extra[e] = out[1 + e].data;
    job->rows = out->rows;
    job->cols = out->cols;
    for (int c = 0; c < p->constants; c++) {
        job->single[c] = made->single[c];
        job->constant[c] = made->constant[c];
    }
    return 1;
}

/* --- loading -----------------------------------------------------------------
 */

typedef struct loaded {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    cudaStream_t stream; /* on which it runs */
} loaded;

/* What still runs of it ends first. */
static void unload(void *what, int ordinal)
{
    loaded *l = (loaded *)what;
    if (cudaSetDevice(ordinal) == cudaSuccess)
        cudaStreamSynchronize(l->stream);
    cudaLibraryUnload(l->library);
    cudaGetLastError();
    free(l);
}

/* NULL: it cannot be loaded. */
static loaded *load(const cuda_device *d, const void *image)
{
    loaded *l = (loaded *)calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->stream = d->stream;
    if (cudaLibraryLoadData(&l->library, image, NULL, NULL, 0, NULL, NULL, 0) ==
        cudaSuccess) {
        if (cudaLibraryGetKernel(&l->kernel, l->library, "compiled") ==
            cudaSuccess)
            return l;
        cudaLibraryUnload(l->library);
    }
    cudaGetLastError();
    free(l);
    return NULL;
}

/* A kernel that is there; NULL: not yet, or never. */
static loaded *find_loaded(cuda_device *d, jit_kernel *k, double seconds,
                           int waits)
{
    void **slot = jit_loaded(k, d->ordinal);
    if (*slot != NULL)
        return (loaded *)*slot;
    const void *image = jit_image(k, seconds, waits);
    if (image == NULL)
        return NULL;
    *slot = load(d, image);
    if (*slot == NULL)
        jit_forsake(k);
    return (loaded *)*slot;
}

/* A kernel that does not start is no fault of the program's: the interpreter
 * does its work from now on. */
static gpu_status start(cuda_device *d, jit_kernel *k, const loaded *l,
                        dim3 grid, dim3 block, void *job)
{
    void *arguments[] = {job};
    cudaError_t error = cudaLaunchKernel((const void *)l->kernel, grid, block,
                                         arguments, 0, d->stream);
    if (error == cudaSuccess) {
        gpu_cuda_host->note_compiled();
        return GPU_OK;
    }
    gpu_status status = gpu_cuda_check(d, error);
    if (status == GPU_LOST)
        return status;
    void **slot = jit_loaded(k, d->ordinal);
    unload(*slot, d->ordinal);
    *slot = NULL;
    jit_forsake(k);
    return GPU_UNSUPPORTED;
}

/* The compiler lies beside this object. */
static void begin(void)
{
    static int has_begun;
    char path[4096] = "lumat-cuda-compile";
    Dl_info own;
    if (has_begun)
        return;
    has_begun = 1;
    if (dladdr((const void *)unload, &own) != 0 && own.dli_fname != NULL) {
        const char *slash = strrchr(own.dli_fname, '/');
        snprintf(path, sizeof path, "%.*s/lumat-cuda-compile",
                 slash != NULL ? (int)(slash - own.dli_fname) : 1,
                 slash != NULL ? own.dli_fname : ".");
    }
    jit_start(path, CUDART_VERSION, unload);
}

/* Is it worth looking for a kernel for so many elements? */
static int may_compile(const cuda_device *d, double elements)
{
    int mode = *gpu_cuda_host->compile;
    return mode != GPU_COMPILE_OFF && d->ordinal < JIT_DEVICES &&
           (elements >= LEAST || mode == GPU_COMPILE_ALWAYS);
}

/* The kernel of that form; NULL: not yet, or never. *k: who keeps it. */
static const loaded *find_kernel(cuda_device *d, const jit_form *form,
                                 double elements, jit_kernel **k)
{
    begin();
    *k = jit_find(form, d->capability);
    if (*k == NULL)
        return NULL;
    double seconds = elements * (form->length + 1) * STEP_SECONDS / d->sms;
    return find_loaded(d, *k, seconds,
                       *gpu_cuda_host->compile == GPU_COMPILE_ALWAYS);
}

/* Starts the kernel of that form, if it is there. */
static gpu_status run_form(cuda_device *d, const jit_form *form,
                           double elements, dim3 grid, dim3 block, void *job)
{
    jit_kernel *k;
    const loaded *l = find_kernel(d, form, elements, &k);
    return l != NULL ? start(d, k, l, grid, block, job) : GPU_UNSUPPORTED;
}

/* What kernel runs p, and how; 0: there is none. */
static int plan_run(const cuda_device *d, const gpu_program *p,
                    const plan *made, const gpu_view *out, jit_form *form,
                    jit_launch *g)
{
    int waits = *gpu_cuda_host->compile == GPU_COMPILE_ALWAYS;
    double elements = (double)out->rows * (double)out->cols;
    return may_compile(d, elements) && fill_form(p, made, out, form) &&
           jit_plan_launch(form, out->rows, out->cols, waits, g) &&
           (p->draw == NULL || elements <= MOST_DRAWN);
}

int gpu_cuda_has_compiled(cuda_device *d, const gpu_program *p,
                          const plan *made, const gpu_view *out)
{
    jit_form form;
    jit_launch g;
    jit_kernel *k;
    double elements = (double)out->rows * (double)out->cols;
    return plan_run(d, p, made, out, &form, &g) &&
           find_kernel(d, &form, elements, &k) != NULL;
}

gpu_status gpu_cuda_run_compiled(cuda_device *d, const gpu_program *p,
                                 const plan *made, const gpu_view *out)
{
    double elements = (double)out->rows * (double)out->cols;
    jit_form form;
    jit_launch g;
    jit_job job = {};
    if (!plan_run(d, p, made, out, &form, &g) || !fill_job(p, made, out, &job))
        return GPU_UNSUPPORTED;
    job.across = g.across;
    return run_form(d, &form, elements, dim3(g.blocks), dim3(g.width, g.height),
                    &job);
}

gpu_status gpu_cuda_reduce_compiled(cuda_device *d, const gpu_program *p,
                                    const plan *made, const jit_lines *lines,
                                    const gpu_view *out, dim3 grid)
{
    double elements = (double)lines->lines * (double)lines->length;
    unsigned wide = made->wide | (lines->neighbours ? JIT_WIDE_RESULT : 0);
    jit_form form;
    jit_reduction job = {};
    if (!may_compile(d, elements) ||
        !jit_fill_fold(&form, p, made->is_f64 ? GPU_F64 : GPU_F32, made->in,
                       out, wide) ||
        !fill_job(p, made, out, &job.job))
        return GPU_UNSUPPORTED;
    job.lines = *lines;
    return run_form(d, &form, elements, grid, dim3(JIT_FOLD_THREADS), &job);
}
