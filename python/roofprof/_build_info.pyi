# The module itself is written by CMake (cmake/_build_info.py.in).
VERSION: str
TORCH_VERSION: str
TORCH_MINOR: str
