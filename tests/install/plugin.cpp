// A plugin that profiles a model, and with MAIN the program that loads it.

#ifdef MAIN
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  reinterpret_cast<void (*)()>(dlsym(library, "profile"))();
}
#else
#include <roofprof/profiler.h>
#include <torch/nn.h>

#include <iostream>

extern "C" void profile() {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::ReLU());
  std::cout << roofprof::count(model, torch::rand({4, 16}));
}
#endif
