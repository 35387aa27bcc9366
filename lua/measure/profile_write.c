/* The profile as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.
 * Source of the format: Trace Event Format, Google, 2016. */
#include "profile.h"
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int put(lumat_atomic *a, const char *text)
{
    return lumat_atomic_write(a, text, strlen(text));
}

/* Text as a JSON string; bytes of UTF-8 stay as they are. */
static const char *quoted(const char *text, char out[6 * LUMAT_LINE + 3])
{
    char *p = out;
    *p++ = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            p += sprintf(p, "\\%c", c);
        else if (c < ' ')
            p += sprintf(p, "\\u%04x", c);
        else
            *p++ = (char)c;
    }
    strcpy(p, "\"");
    return out;
}

/* A row of the picture for each device: its place among the kinds' devices. */
static int row_of(const lumat_profile *p, const gpu_device *d)
{
    int i = 0;
    while (i < p->kind_count && p->kinds[i].device != d)
        i++;
    return i + 1;
}

static int write_rows(lumat_atomic *a, const lumat_profile *p)
{
    char text[200];
    for (int i = 0; i < p->kind_count; i++) {
        const gpu_device *d = p->kinds[i].device;
        if (row_of(p, d) != i + 1)
            continue;
        snprintf(text, sizeof text,
                 "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,"
                 "\"args\":{\"name\":\"%s\"}},\n",
                 i + 1, gpu_device_name(d));
        int error = put(a, text);
        if (error)
            return error;
    }
    return 0;
}

static int write_moment(lumat_atomic *a, const lumat_profile *p,
                        const lumat_moment *m)
{
    char text[1024], line[6 * LUMAT_LINE + 3];
    const lumat_sum *kind = &p->kinds[m->kind];
    snprintf(text, sizeof text,
             "{\"name\":\"%s %s\",\"cat\":\"operation\",\"ph\":\"X\","
             "\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
             "\"line\":%s,\"dtype\":\"%s\",\"m\":%lld,\"n\":%lld,"
             "\"k\":%lld,\"flops\":%.0f,\"bytes\":%.0f}},\n",
             kind->operation, kind->kernel, row_of(p, kind->device),
             m->start * 1e6, m->seconds * 1e6,
             quoted(p->lines[m->line].line, line), gpu_dtype_name(kind->dtype),
             (long long)m->m, (long long)m->n, (long long)m->k, m->flops,
             m->bytes);
    return put(a, text);
}

static int write_all(lumat_atomic *a, const lumat_profile *p)
{
    int error = put(a, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    if (!error)
        error = write_rows(a, p);
    for (size_t i = 0; i < p->count && !error; i++)
        error = write_moment(a, p, &p->moments[i]);
    if (!error)
        error = put(a, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,"
                       "\"args\":{\"name\":\"lumat\"}}\n]}\n");
    return error ? error : lumat_atomic_commit(a);
}

int lumat_write_profile(const lumat_profile *p, const char *path)
{
    lumat_atomic *a = malloc(sizeof *a);
    if (!a)
        return ENOMEM;
    int error = lumat_atomic_open(a, path);
    if (!error)
        error = write_all(a, p);
    if (error)
        lumat_atomic_abort(a);
    free(a);
    return error;
}
