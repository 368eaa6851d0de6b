#!/usr/bin/env python3
"""Makes crates/berth-gpucheck/kernels/gpucheck.ptx of gpucheck.cu.

No CUDA toolkit is needed, and no GPU: the compiler comes from PyPI.

    pip download --no-deps nvidia-cuda-nvrtc-cu11==11.8.89
    unzip nvidia_cuda_nvrtc_cu11-11.8.89-*.whl -d nvrtc
    python3 tools/gpu/compile_kernels.py nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2

The driver of the machine makes code for its GPU of the PTX. So the PTX is for the oldest GPU that
has what the kernels use (compute_80: A100), and from the oldest compiler of which every driver
since 520 takes the PTX (7.8). A newer compiler would shut out older drivers.
"""

import ctypes
import pathlib
import sys

KERNELS = pathlib.Path(__file__).parents[2] / "crates" / "berth-gpucheck" / "kernels"
OPTIONS = [b"--gpu-architecture=compute_80", b"--std=c++17"]


def main() -> None:
    nvrtc = ctypes.CDLL(sys.argv[1])
    source = (KERNELS / "gpucheck.cu").read_bytes()
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(f"nvrtc: error {code}\n{log.value.decode()}")

    check(nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source, b"gpucheck.cu", 0, None, None))
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    check(nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    (KERNELS / "gpucheck.ptx").write_bytes(ptx.value)
    print(f"wrote {KERNELS / 'gpucheck.ptx'}: {len(ptx.value)} bytes")


if __name__ == "__main__":
    main()
