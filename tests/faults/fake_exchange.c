/* What exchanges with other processes' devices in the fake CUDA: sockets that
 * have the exchange's name, between each two of them. What its libraries do
 * each process does of the whole matrices, by LAPACK;
 * LUMAT_FAKE_LIBRARIES=none: there are none, LUMAT_FAKE_LIBRARY_FAILS=1: in
 * process 1, from 0, they fail. */
#include "cpu.h"
#include "exchange.h"

#include <complex.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 16 };

typedef struct exchange {
    int rank, count, fd[MOST];
    gpu_bytes_parcel begun[2 * MOST];
    int n;
} exchange;

static gpu_status make_name(void *device, unsigned char *name)
{
    unsigned char bytes[16];
    (void)device;
    memset(name, 0, GPU_EXCHANGE_NAME);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return GPU_INTERNAL;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf((char *)name + 2 * i, 3, "%02x", bytes[i]);
    return GPU_OK;
}

/* An abstract socket, which no file remains of. */
static struct sockaddr_un place(const unsigned char *name, int rank)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "%.32s-%d",
             (const char *)name, rank);
    return at;
}

static gpu_status open_exchange(void *device, const unsigned char *name,
                                int rank, int count, void **out)
{
    exchange *e = calloc(1, sizeof *e);
    struct sockaddr_un at = place(name, rank);
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)device;
    e->rank = rank;
    e->count = count;
    if (bind(door, (struct sockaddr *)&at, sizeof at) || listen(door, MOST))
        return GPU_INTERNAL;
    for (int i = 0; i < rank; i++) {
        at = place(name, i);
        e->fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(e->fd[i], (struct sockaddr *)&at, sizeof at) != 0)
            usleep(1000);
        send(e->fd[i], &rank, sizeof rank, 0);
    }
    for (int i = rank + 1; i < count; i++) {
        int who, fd = accept(door, NULL, NULL);
        recv(fd, &who, sizeof who, MSG_WAITALL);
        e->fd[who] = fd;
    }
    close(door);
    *out = e;
    return GPU_OK;
}

static void close_exchange(void *handle)
{
    exchange *e = handle;
    for (int i = 0; i < e->count; i++)
        if (i != e->rank)
            close(e->fd[i]);
    free(e);
}

/* What arrives is written only when the exchange is finished, as nobody may
 * look at it before. */
static gpu_status begin(void *handle, const gpu_bytes_parcel *list, int n)
{
    exchange *e = handle;
    memcpy(e->begun, list, (size_t)n * sizeof *list);
    e->n = n;
    return GPU_OK;
}

static int advance(const exchange *e, gpu_bytes_parcel *p)
{
    ssize_t n = p->is_incoming
                    ? recv(e->fd[p->peer], p->data, p->bytes, MSG_DONTWAIT)
                    : send(e->fd[p->peer], p->data, p->bytes,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        p->data = (char *)p->data + n;
        p->bytes -= (size_t)n;
    }
    return p->bytes > 0;
}

static gpu_status finish(void *handle)
{
    exchange *e = handle;
    for (int left = 1; left > 0;) {
        left = 0;
        for (int i = 0; i < e->n; i++)
            left += e->begun[i].bytes > 0 && advance(e, &e->begun[i]);
        if (left > 0)
            usleep(50);
    }
    e->n = 0;
    return GPU_OK;
}

/* With CUDA's backend, which has the host's function. */
gpu_status fake_fail(const char *why);

/* --- libraries ------------------------------------------------------------ */

static const char *lacks(void *handle, gpu_grid_task task)
{
    const char *which = getenv("LUMAT_FAKE_LIBRARIES");
    (void)handle;
    if (!which || strcmp(which, "none") != 0)
        return NULL;
    return task == GPU_GRID_PRODUCT ? "libfakemp.so.0: no such file"
                                    : "libfakesolver.so.0: no such file";
}

static size_t bytes_of(gpu_dtype t)
{
    return t == GPU_F32 ? 4 : t == GPU_C128 ? 16 : 8;
}

/* Of n rows or columns those of a process. */
static int64_t own_count(int64_t n, int64_t block, int own, int all)
{
    int64_t count = 0;
    for (int64_t at = own * block; at < n; at += all * block)
        count += n - at < block ? n - at : block;
    return count;
}

/* Between a part of process `rank` and the whole matrix, by columns. */
static void copy_part(const gpu_grid_work *w, const gpu_grid_view *v, int rank,
                      char *part, char *whole, int is_back)
{
    int row = rank / w->cols, col = rank % w->cols;
    size_t size = bytes_of(w->type);
    int64_t lead = own_count(v->m, v->mb, row, w->rows);
    for (int64_t j = 0; j < v->n; j++)
        for (int64_t i = 0; i < v->m; i++) {
            if (i / v->mb % w->rows != row || j / v->nb % w->cols != col)
                continue;
            int64_t own_i = i / v->mb / w->rows * v->mb + i % v->mb;
            int64_t own_j = j / v->nb / w->cols * v->nb + j % v->nb;
            char *there = part + (size_t)(own_j * lead + own_i) * size;
            char *here = whole + (size_t)(j * v->m + i) * size;
            memcpy(is_back ? there : here, is_back ? here : there, size);
        }
}

/* All of a matrix, from its parts. */
static char *gather(exchange *e, const gpu_grid_work *w, const gpu_grid_view *v)
{
    size_t size = bytes_of(w->type), bytes[MOST];
    char *whole = calloc((size_t)(v->m * v->n) + 1, size), *part[MOST];
    gpu_bytes_parcel list[2 * MOST];
    int n = 0;
    for (int i = 0; i < e->count; i++) {
        bytes[i] = size * (size_t)own_count(v->m, v->mb, i / w->cols, w->rows) *
                   (size_t)own_count(v->n, v->nb, i % w->cols, w->cols);
        part[i] = i == e->rank ? v->data : malloc(bytes[i] + 1);
    }
    for (int i = 0; i < e->count; i++) {
        if (i == e->rank)
            continue;
        list[n++] = (gpu_bytes_parcel){part[i], bytes[i], i, 1};
        list[n++] = (gpu_bytes_parcel){v->data, bytes[e->rank], i, 0};
    }
    begin(e, list, n);
    finish(e);
    for (int i = 0; i < e->count; i++) {
        copy_part(w, v, i, part[i], whole, 0);
        if (i != e->rank)
            free(part[i]);
    }
    return whole;
}

static gpu_view view_of(const gpu_grid_work *w, const gpu_grid_view *v,
                        void *whole)
{
    return (gpu_view){whole, w->type, v->m, v->n, 1, v->m};
}

static double complex element(gpu_dtype t, const void *data, int64_t i)
{
    switch (t) {
    case GPU_F32:
        return ((const float *)data)[i];
    case GPU_F64:
        return ((const double *)data)[i];
    case GPU_C64:
        return ((const float complex *)data)[i];
    default:
        return ((const double complex *)data)[i];
    }
}

static void set_element(gpu_dtype t, void *data, int64_t i, double complex x)
{
    switch (t) {
    case GPU_F32:
        ((float *)data)[i] = (float)creal(x);
        break;
    case GPU_F64:
        ((double *)data)[i] = creal(x);
        break;
    case GPU_C64:
        ((float complex *)data)[i] = (float complex)x;
        break;
    default:
        ((double complex *)data)[i] = x;
    }
}

static void multiply(const gpu_grid_work *w, const void *a, const void *b,
                     void *c)
{
    int64_t m = w->c.m, inner = w->a.n;
    for (int64_t j = 0; j < w->c.n; j++)
        for (int64_t i = 0; i < m; i++) {
            double complex sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += element(w->type, a, k * m + i) *
                       element(w->type, b, j * inner + k);
            set_element(w->type, c, j * m + i, sum);
        }
}

/* A row of numbers, one a column, which each row of the grid has. */
static gpu_grid_view row_of(const gpu_grid_work *w, int rank)
{
    return (gpu_grid_view){.data = w->numbers,
                           .m = 1,
                           .n = w->a.n,
                           .mb = 1,
                           .nb = w->a.nb,
                           .rows = rank / w->cols == 0,
                           .cols = w->a.cols};
}

static void keep_exchanges(const gpu_grid_work *w, int rank,
                           const int64_t *places)
{
    int64_t n = w->a.n, *now = malloc((size_t)(n + 1) * sizeof *now);
    int col = rank % w->cols;
    for (int64_t i = 0; i < n; i++)
        now[i] = i;
    for (int64_t i = 0; i < n; i++) {
        int64_t other = i;
        while (now[other] != places[i])
            other++;
        now[other] = now[i];
        now[i] = places[i];
        if (i / w->a.nb % w->cols == col)
            ((double *)
                 w->numbers)[i / w->a.nb / w->cols * w->a.nb + i % w->a.nb] =
                (double)other + 1;
    }
    free(now);
}

static gpu_status factor(exchange *e, gpu_grid_work *w, void *a, void *b)
{
    gpu_factoring f = {.a = view_of(w, &w->a, a)};
    int64_t k = w->a.m < w->a.n ? w->a.m : w->a.n;
    gpu_grid_view row = row_of(w, e->rank);
    char *numbers = NULL;
    gpu_status status = GPU_OK;
    switch (w->task) {
    case GPU_GRID_LU:
        f.kind = GPU_FACTOR_LU;
        f.places = malloc((size_t)(w->a.m + 1) * sizeof *f.places);
        status = gpu_cpu_factor(NULL, &f);
        keep_exchanges(w, e->rank, f.places);
        free(f.places);
        break;
    case GPU_GRID_CHOLESKY:
        f.kind = GPU_FACTOR_CHOLESKY;
        status = gpu_cpu_factor(NULL, &f);
        break;
    case GPU_GRID_QR:
        numbers = calloc((size_t)w->a.n + 1, bytes_of(w->type));
        f.kind = GPU_FACTOR_QR;
        f.values = (gpu_view){numbers, w->type, k, 1, 1, k};
        status = gpu_cpu_factor(NULL, &f);
        for (int64_t j = 0; j < k; j++)
            if (j / w->a.nb % w->cols == e->rank % w->cols)
                set_element(w->type, w->numbers,
                            j / w->a.nb / w->cols * w->a.nb + j % w->a.nb,
                            element(w->type, numbers, j));
        break;
    case GPU_GRID_APPLY_Q:
        numbers = gather(e, w, &row);
        f.kind = GPU_FACTOR_APPLY_Q;
        f.values = (gpu_view){numbers, w->type, k, 1, 1, k};
        f.b = view_of(w, &w->b, b);
        status = gpu_cpu_factor(NULL, &f);
        break;
    default:
        f.kind = GPU_FACTOR_EIGH;
        f.wants_vectors = 1;
        f.values = (gpu_view){
            w->numbers,
            w->type == GPU_F32 || w->type == GPU_C64 ? GPU_F32 : GPU_F64,
            k,
            1,
            1,
            k};
        status = gpu_cpu_factor(NULL, &f);
        memcpy(b, a, (size_t)(w->a.m * w->a.n) * bytes_of(w->type));
    }
    w->trouble = f.trouble;
    free(numbers);
    return status;
}

static gpu_status work(void *handle, gpu_grid_work *w)
{
    exchange *e = handle;
    const gpu_grid_view *v[] = {&w->a, &w->b, &w->c};
    const gpu_grid_view *out = w->task == GPU_GRID_PRODUCT ? &w->c
                               : w->task == GPU_GRID_LU ||
                                       w->task == GPU_GRID_CHOLESKY ||
                                       w->task == GPU_GRID_QR
                                   ? &w->a
                                   : &w->b;
    char *whole[3] = {NULL, NULL, NULL};
    const char *fails = getenv("LUMAT_FAKE_LIBRARY_FAILS");
    int is_ready = !fails || !*fails || atoi(fails) != e->rank;
    if (!w->agree(w->context, is_ready))
        return fake_fail(is_ready ? "another process failed"
                                  : "the library failed here");
    for (int i = 0; i < 3; i++)
        if (v[i]->mb > 0)
            whole[i] = gather(e, w, v[i]);
    gpu_status status = GPU_OK;
    if (w->task == GPU_GRID_PRODUCT)
        multiply(w, whole[0], whole[1], whole[2]);
    else
        status = factor(e, w, whole[0], whole[1]);
    for (int i = 0; i < 3; i++) {
        if (v[i] == out)
            copy_part(w, out, e->rank, out->data, whole[i], 1);
        free(whole[i]);
    }
    return status;
}

const gpu_exchange_entry lumat_exchange
    __attribute__((visibility("default"))) = {
        GPU_EXCHANGE_ABI, make_name, open_exchange, close_exchange, begin,
        finish,           lacks,     work};
