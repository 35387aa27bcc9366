/* Running sums and products, in f64, one after the other along each line. */
#include "cpu.h"

enum {
    BAND = 64,   /* lines side by side, when memory runs across them */
    PIECE = 1024 /* elements of one line at a time */
};

typedef struct scanning {
    gpu_scan_kind kind;
    gpu_view from, to; /* lines are rows */
    int across;        /* memory runs across the lines */
    int is_counted;    /* progress, of the only line */
} scanning;

static void step(gpu_scan_kind kind, double *running, double *value)
{
    if (kind == GPU_SCAN_SUM)
        *running += *value;
    else
        *running *= *value;
    *value = *running;
}

/* length elements of `lines` lines: value[i * lines + l] or, with one line,
 * value[i]. */
static void scan_block(gpu_scan_kind kind, double *running, double *value,
                       int64_t length, int64_t lines)
{
    for (int64_t i = 0; i < length; i++)
        for (int64_t l = 0; l < lines; l++)
            step(kind, &running[l], &value[i * lines + l]);
}

static gpu_status scan_band(const scanning *s, int64_t line, int64_t lines)
{
    double running[BAND], value[PIECE];
    int64_t piece = PIECE / lines;
    for (int64_t l = 0; l < lines; l++)
        running[l] = s->kind == GPU_SCAN_SUM ? 0 : 1;
    for (int64_t j = 0; j < s->from.cols; j += piece) {
        int64_t n = s->from.cols - j < piece ? s->from.cols - j : piece;
        gpu_view from = gpu_cpu_part(&s->from, line, j, lines, n);
        gpu_view to = gpu_cpu_part(&s->to, line, j, lines, n);
        gpu_view block = {value, GPU_F64, lines, n, 1, lines};
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_cpu_convert(&from, &block);
        scan_block(s->kind, running, value, n, lines);
        gpu_cpu_convert(&block, &to);
        if (s->is_counted)
            gpu_cpu_advance(n);
    }
    return GPU_OK;
}

static gpu_status scan_range(void *context, int64_t first, int64_t last)
{
    const scanning *s = context;
    gpu_status status = GPU_OK;
    int64_t band = s->across ? BAND : 1;
    for (int64_t line = first; line < last && status == GPU_OK; line += band)
        status = scan_band(s, line, last - line < band ? last - line : band);
    return status;
}

static int64_t length(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

gpu_status gpu_cpu_scan(void *device, gpu_scan_kind kind, int axis,
                        const gpu_view *from, const gpu_view *to)
{
    (void)device;
    scanning s = {kind, *from, *to, 0, 0};
    int64_t n = from->rows * from->cols;
    if (n == 0)
        return GPU_OK;
    if (axis == 1) {
        s.from = gpu_cpu_turned(*from);
        s.to = gpu_cpu_turned(*to);
    }
    s.across =
        s.from.rows > 1 && length(s.to.row_stride) < length(s.to.col_stride);
    if (s.from.rows == 1)
        s.is_counted = gpu_cpu_begin_stage(n);
    gpu_status status = gpu_cpu_parallel(s.from.rows, n, scan_range, &s);
    gpu_cpu_end_stage(s.is_counted);
    return status;
}
