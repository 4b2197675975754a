"""How lit runs the tests: our tools and LLVM's are on PATH, features tell what this machine has."""
import ctypes
import os
import platform
import shutil
import subprocess

import lit.formats

config.name = "k31"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["data", "kernels", "runtime"]  # unit tests and files; ctest runs those
config.test_source_root = config.k31_source_root + "/test"
config.test_exec_root = config.k31_binary_root + "/test"

# k31-opt, k31c, k31-run, ... as built; FileCheck, not, count and split-file from LLVM.
config.environment["PATH"] = os.pathsep.join(config.k31_tool_dirs + [config.llvm_tools_dir, config.environment["PATH"]])
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"  # for builds with sanitizers
config.environment["TSAN_OPTIONS"] = f"suppressions={config.test_source_root}/tsan.supp"
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%root", config.k31_source_root))


def cuda_capabilities():
    """(major, minor) of each CUDA device that the driver shows; empty without a driver or a device."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count, value = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    found = []
    for device in range(count.value):
        numbers = []
        for attribute in (MAJOR, MINOR):
            if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) != 0:
                return []
            numbers.append(value.value)
        found.append(tuple(numbers))
    return found


def cpu_flags():
    """Flags of the processor as Linux names them; empty elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return next((set(line.split(":")[1].split()) for line in info if line.startswith("flags")), set())
    except OSError:
        return set()


def has_nvrtc():
    """Whether k31c would find NVRTC (codegen/Nvrtc.cpp)."""
    folders = [os.environ["CUDA_HOME"] + "/lib64/"] if os.environ.get("CUDA_HOME") else []
    for folder in [*folders, "/usr/local/cuda/lib64/", ""]:
        for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
            try:
                ctypes.CDLL(folder + name)
                return True
            except OSError:
                pass
    return False


if "CUDA_HOME" in os.environ:
    config.environment["CUDA_HOME"] = os.environ["CUDA_HOME"]
if has_nvrtc():
    config.available_features.add("nvrtc")
devices = cuda_capabilities()
if devices:
    config.available_features.add("gpu")
if (9, 0) in devices:
    config.available_features.add("sm90")
for number in range(2, len(devices) + 1):
    config.available_features.add(f"gpus-{number}")

# A program beside the repository that writes the headers of the whole model.
full = os.path.join(config.k31_source_root, "..", "shared", "bench", "make_full_checkpoint.py")
if os.path.exists(full):
    config.available_features.add("full-checkpoint")
config.substitutions.append(("%make_full", full))
config.available_features.add(platform.machine())
flags = cpu_flags()
for feature, needs in {
    "avx2": {"avx2", "fma"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},  # x86-64-v4
    "avx512bf16": {"avx512_bf16"},
    "amx": {"amx_tile", "amx_bf16"},
}.items():
    if needs <= flags:
        config.available_features.add(feature)
# Ranks under a launcher: Open MPI's, and the module that was built against it.
if shutil.which("mpirun") and any(os.path.exists(os.path.join(folder, "libk31_mpi.so")) for folder in config.k31_tool_dirs):
    config.available_features.add("mpirun")
for tool in config.k31_tools:
    config.available_features.add(tool)
if subprocess.run([config.python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("numpy")
