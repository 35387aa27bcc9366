/* Which entry at the prompt runs, for messages and notes that name it; and what
 * time it is. */
#include "gpu.h"
#include "running.h"

static struct {
    const char *text; /* NULL: none runs */
    int number;
} entry;

const char *lumat_running_entry(int *number)
{
    *number = entry.number;
    return entry.text;
}

void lumat_set_running_entry(const char *text, int number)
{
    entry.text = text;
    entry.number = number;
}

double lumat_now(void)
{
    return gpu_now();
}
