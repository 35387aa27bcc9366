/* Faults that are injected where a backend calls a driver: which call is to
 * fail, and how many there were of each name. */
#include "core.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

typedef struct plan {
    char name[NAME]; /* of a call; "any"; "" while none is to fail */
    long long first; /* the call that fails, counted from 1 */
    int is_forever;  /* and all behind it */
    int error;       /* 0: the call's usual one */
} plan;

/* A device may be opened by the preparing thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpu_fault_site *sites;
static plan armed;
static long long seen, injected; /* since it was armed; calls of its name */

int gpu_has_faults(void)
{
    static int is_known, has;
    if (!is_known) {
        const char *text = getenv("LUMAT_FAULT");
        has = text && *text;
        is_known = 1;
    }
    return has;
}

/* "name:n:once|forever[:error]", where it is that and no more. */
static int read_plan(const char *text, plan *out)
{
    char word[NAME] = "";
    int length = 0;
    plan p = {0};
    if (sscanf(text, "%63[A-Za-z0-9_]:%18lld:%7[a-z]%n", p.name, &p.first, word,
               &length) != 3 ||
        p.first < 1)
        return 0;
    p.is_forever = strcmp(word, "forever") == 0;
    text += length;
    if (*text == ':' && isdigit((unsigned char)text[1])) {
        char *end;
        long error = strtol(text + 1, &end, 10);
        p.error = error < 1 << 16 ? (int)error : 0;
        text = p.error > 0 ? end : text;
    }
    *out = p;
    return *text == '\0' && (p.is_forever || strcmp(word, "once") == 0);
}

gpu_status gpu_arm_fault(const char *text)
{
    plan p = {0};
    if (strcmp(text, "off") != 0 && !read_plan(text, &p))
        return gpu_fail(GPU_ARGUMENT,
                        "a fault is name:n:once, name:n:forever or off, as "
                        "cudaMallocAsync:7:once, any:1:forever or "
                        "cudaStreamQuery:3:once:719, not '%.100s'",
                        text);
    pthread_mutex_lock(&lock);
    armed = p;
    seen = injected = 0;
    for (gpu_fault_site *s = sites; s; s = s->next)
        s->calls = 0;
    pthread_mutex_unlock(&lock);
    return GPU_OK;
}

long long gpu_injected_faults(void)
{
    return injected;
}

int gpu_next_fault_site(const gpu_fault_site **site)
{
    pthread_mutex_lock(&lock);
    *site = *site ? (*site)->next : sites;
    pthread_mutex_unlock(&lock);
    return *site != NULL;
}

static int is_due(const gpu_fault_site *site)
{
    if (strcmp(armed.name, site->name) != 0 && strcmp(armed.name, "any") != 0)
        return 0;
    seen++;
    return armed.is_forever ? seen >= armed.first : seen == armed.first;
}

int gpu_fault(gpu_fault_site *site)
{
    int error = 0;
    pthread_mutex_lock(&lock);
    if (!site->is_listed) {
        site->is_listed = 1;
        site->next = sites;
        sites = site;
    }
    site->calls++;
    if (is_due(site)) {
        error = armed.error ? armed.error : site->usual;
        injected++;
    }
    pthread_mutex_unlock(&lock);
    return error;
}
