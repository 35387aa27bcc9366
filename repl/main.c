/* lumat: the program is command_line.c, which lumat-worker has, too. */
#include "repl.h"

int main(int argc, char **argv)
{
    return repl_main(argc, argv, NULL);
}
