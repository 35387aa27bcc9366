/* Fourier transforms and convolutions on the GPU: the entries of the backend's
 * table (backend.h), and what ends with a device. */
#ifndef GPU_CUDA_FFT_H
#define GPU_CUDA_FFT_H

#include "cuda_device.h"

gpu_status gpu_cuda_fft(void *device, const gpu_fft_call *c);
gpu_status gpu_cuda_convolve(void *device, const gpu_convolution *c);

/* Before the device's stream and memory go. */
void gpu_cuda_fft_close(cuda_device *d);

#endif
