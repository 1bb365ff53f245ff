// The requests as functions, for a program in Python.

#include "requests.h"

extern "C" void instructions_begin() { instructions::begin(); }
extern "C" void instructions_end(const char* name) { instructions::end(name); }
