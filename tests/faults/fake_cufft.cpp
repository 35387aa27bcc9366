/* What is used of cuFFT, computing nothing. */
#include <stddef.h>
#include "fake_library.h"

extern "C" int cufftCreate(int *plan)
{
    *plan = 1;
    return 0;
}
extern "C" int cufftMakePlanMany64(int, int, long long *, long long *,
                                   long long, long long, long long *,
                                   long long, long long, int, long long,
                                   size_t *bytes)
{
    *bytes = 512;
    return 0;
}
NOTHING(cufftDestroy)
NOTHING(cufftSetAutoAllocation)
NOTHING(cufftSetStream)
NOTHING(cufftSetWorkArea)
NOTHING(cufftExecC2C)
NOTHING(cufftExecZ2Z)
NOTHING(cufftExecR2C)
NOTHING(cufftExecD2Z)
NOTHING(cufftExecC2R)
NOTHING(cufftExecZ2D)
