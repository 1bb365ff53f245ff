#include "machine/gpu/contractions.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_convolution.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <string>

namespace roofprof {
namespace {

constexpr std::uint64_t kSeed = 20240229;

at::ScalarType operand_type(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return at::kDouble;
    case DType::fp32:
    case DType::tf32:
      return at::kFloat;
    case DType::fp16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp8:
      return at::kFloat8_e4m3fn;
    case DType::int8:
      return at::kChar;
    default:
      TORCH_CHECK(false, "no contraction in ", name_of(dtype), " is measured");
  }
}

at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, c10::Device device, at::Generator& generator) {
  const double limit = type == at::kChar ? 127 : 1;
  const auto options = at::TensorOptions().device(device);
  const at::Tensor values = at::empty(sizes, options.dtype(at::kFloat)).uniform_(-limit, limit, generator);
  return type == at::kFloat ? values : at::empty(sizes, options.dtype(type)).copy_(values);
}

std::string size_text(const ProductShape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n) + " (MxKxN)" +
         (shape.transposed ? " transposed" : "");
}

}  // namespace

at::Generator own_generator(c10::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(kSeed);
  at::Generator generator = at::detail::getCUDAHooks().getNewGenerator(device.index());
  generator.set_current_seed(kSeed);
  return generator;
}

// Products go into memory that is there, so that allocations are not timed.
Trial product(DType dtype, const ProductShape& asked, c10::Device device, at::Generator& generator) {
  ProductShape shape = asked;
  shape.transposed = shape.transposed || dtype == DType::fp8;  // the only layout that tensor cores take it in
  const at::ScalarType type = operand_type(dtype);
  const at::Tensor left = random_tensor({shape.m, shape.k}, type, device, generator);
  const at::Tensor right = shape.transposed ? random_tensor({shape.n, shape.k}, type, device, generator).t()
                                            : random_tensor({shape.k, shape.n}, type, device, generator);
  const at::ScalarType result_type = dtype == DType::int8 ? at::kInt : dtype == DType::fp8 ? at::kBFloat16 : type;
  at::Tensor result = at::empty({shape.m, shape.n}, left.options().dtype(result_type));
  const double work = shape.operations();

  if (dtype == DType::int8) {
    return {"at::_int_mm " + size_text(shape), work, [=]() mutable { at::_int_mm_out(result, left, right); }};
  }
  if (dtype == DType::fp8) {
    const at::Tensor scale = at::ones({}, left.options().dtype(at::kFloat));
    return {"at::_scaled_mm e4m3 " + size_text(shape), work, [=]() mutable {
              at::_scaled_mm_out(result, left, right, scale, scale, /*bias=*/{}, /*scale_result=*/{}, result_type,
                                 /*use_fast_accum=*/true);
            }};
  }
  return {"at::mm " + size_text(shape), work, [=]() mutable { at::mm_out(result, left, right); }};
}

Trial convolution(DType dtype, const ConvolutionShape& shape, c10::Device device, at::Generator& generator) {
  const at::ScalarType type = operand_type(dtype);
  const auto format = dtype == DType::fp32 ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
  const at::Tensor image =
      random_tensor({1, shape.channels, shape.side, shape.side}, type, device, generator).contiguous(format);
  const at::Tensor weight =
      random_tensor({shape.channels, shape.channels, shape.kernel, shape.kernel}, type, device, generator)
          .contiguous(format);
  const std::string kernel = std::to_string(shape.kernel);
  const std::string channels = std::to_string(shape.channels);
  const std::string side = std::to_string(shape.side);
  return {"convolution " + channels + "->" + channels + " " + kernel + "x" + kernel + " over " + side + "x" + side,
          shape.operations(), [=] {
            at::_convolution(image, weight, /*bias=*/{}, /*stride=*/{1, 1}, {shape.kernel / 2, shape.kernel / 2},
                             /*dilation=*/{1, 1}, /*transposed=*/false, /*output_padding=*/{0, 0}, /*groups=*/1,
                             /*benchmark=*/true, /*deterministic=*/false, /*cudnn_enabled=*/true,
                             /*allow_tf32=*/dtype == DType::tf32);
          }};
}

}  // namespace roofprof
