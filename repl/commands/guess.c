/* The nearest of some names to a misspelt one, by edit distance. */
#include "guess.h"

#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions and replacements that turn a into b (Wagner and
 * Fischer 1974, one row at a time); both at most LONGEST long. */
static int distance(const char *a, const char *b)
{
    int row[LONGEST + 1], columns = (int)strlen(b);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, row[j] + 1, row[j - 1] + 1);
        }
    }
    return row[columns];
}

const char *repl_nearest(const char *word, repl_name_at *name_at)
{
    const char *best = NULL, *name;
    int length = (int)strlen(word), limit = length / 3 + 1;
    if (length > LONGEST)
        return NULL;
    for (int i = 0; (name = name_at(i)) != NULL; i++) {
        int d = strlen(name) > LONGEST ? limit + 1 : distance(word, name);
        if (d <= limit) {
            best = name;
            limit = d - 1;
        }
    }
    return best;
}
