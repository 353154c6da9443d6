//===- ImportStep.cpp - One step of a decoder as a kf module --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "LinearAttention.h"
#include "SharedContext.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Import/Import.h"

#include "runtime/model/LayerCaches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::ModelConfig;

namespace {

/// Writes the ops of a part of a step in the order in which they run. T is the
/// number of rows, L of those that are wanted, D the hidden size.
class StepBuilder : Decoder {
public:
  StepBuilder(MLIRContext *context, const ModelConfig &config,
              const Checkpoint &checkpoint, const ImportOptions &options,
              Type cacheElement, FloatType activation)
      : Decoder(context, config, checkpoint, activation,
                options.shape.rows == 1 ? 1 : ShapedType::kDynamic,
                ::kf::nameOf(options.shape)),
        options(options), signature(::kf::stepSignature(options.shape, config)),
        cachePlaces(config), cacheElement(cacheElement) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    if (config.rankCount() > 1)
      (*module)->setAttr(kRanksAttrName,
                         b.getI64IntegerAttr(config.rankCount()));
    b.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs = typesOf(signature.inputs);
    if (options.shape.part == ::kf::StepPart::Body)
      for (const ::kf::CacheSpec &cache : cachePlaces.specs())
        inputs.push_back(typeOf(cache));
    auto func = func::FuncOp::create(
        b, loc, ::kf::nameOf(options.shape),
        b.getFunctionType(inputs, typesOf(signature.outputs)));
    func->setAttr("kf.max_tokens", b.getI64IntegerAttr(options.shape.rows));
    SmallVector<Attribute> ranges;
    for (const ::kf::SizeRange &range : signature.sizes)
      ranges.push_back(SizeRangeAttr::get(b.getContext(),
                                          b.getStringAttr(range.name),
                                          range.least, range.most));
    if (!ranges.empty())
      func->setAttr(kSizeRangesAttrName, b.getArrayAttr(ranges));
    b.setInsertionPointToStart(func.addEntryBlock());
    Value result = buildPart(func.getArguments());
    func::ReturnOp::create(b, loc, result ? ValueRange(result) : ValueRange());
    return module;
  }

  /// After build(): an error for a product that adapters add to and that the
  /// body does not have.
  llvm::Error checkAdapters() const {
    if (options.shape.part != ::kf::StepPart::Body)
      return llvm::Error::success();
    for (const auto &[product, rank] : config.adapters.ranks)
      if (!adapted.contains(product))
        return llvm::createStringError(
            "adapters cannot add to '" + product +
            "', which is no product of the model's steps; leave its module "
            "out of 'target_modules'");
    return llvm::Error::success();
  }

private:
  /// Null where it gives nothing.
  Value buildPart(ValueRange arguments) {
    switch (options.shape.part) {
    case ::kf::StepPart::Body:
      return buildBody(arguments);
    case ::kf::StepPart::Head:
      return buildHead(arguments);
    case ::kf::StepPart::Choose:
      return buildChoice(arguments);
    case ::kf::StepPart::Embed:
      return buildEmbedding(arguments);
    }
    llvm_unreachable("unknown part");
  }

  /// Ids -> hidden rows [T, D] of f32; null of a stage that sends them.
  Value buildBody(ValueRange arguments) {
    sequences = arguments[::kf::kStepSequences];
    pageTables = {arguments[::kf::kStepPageTable]};
    for (int64_t i = 1; i <= ::kf::cacheWindowsOf(config).moreTables(); ++i)
      pageTables.push_back(arguments[::kf::numberOfWindow(i, config)]);
    if (config.hasStates())
      states = arguments[::kf::kStepStates];
    if (config.adapters.count > 0)
      adapters = arguments[::kf::numberOf(::kf::kStepAdapters, config)];
    caches = arguments.take_back(cachePlaces.specs().size());
    Value ids = arguments[::kf::kStepIds];
    places = lastPlaces = arguments[::kf::kStepPositions];
    if (config.contextRanks > 1) {
      setRows(ids);
      shared.emplace(static_cast<ModelOps &>(*this), places);
      places = shared->places();
      lastPlaces = shared->lastPlaces();
    }
    return decode(ids, arguments[::kf::kStepPositions]);
  }

  /// Hidden rows [T, D] -> logits [L, V].
  Value buildHead(ValueRange arguments) {
    return logitsOf(buildEmbedding(arguments));
  }

  /// Hidden rows [T, D] -> [L, D], of those that are wanted.
  Value buildEmbedding(ValueRange arguments) {
    setPlace("output");
    Value x = EmbeddingOp::create(b, loc,
                                  arguments[::kf::numberOf(::kf::kStepWanted)],
                                  arguments[::kf::numberOf(::kf::kStepHidden)]);
    return norm(x, names.finalNorm);
  }

  /// Logits [L, V] -> [L]. The inputs are the op's operands, in their order.
  Value buildChoice(ValueRange arguments) {
    SampleOp::Properties properties;
    properties.operandSegmentSizes.fill(1);
    return SampleOp::create(b, loc, typesOf(signature.outputs), arguments,
                            properties)
        .getResult();
  }

  //===--- Pages and states -----------------------------------------------===//

  void append(Value k, Value v, int64_t layer) override {
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    KVAppendOp::create(b, loc, caches[place.cache], k, v, places, sequences,
                       pageTables[place.table], /*kv_head=*/Value(),
                       b.getI64IntegerAttr(place.layer));
  }

  Value attend(Value q, Value sinks, int64_t layer) override {
    const ::kf::LayerConfig own = config.layer(layer);
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    const FloatAttr cap =
        config.attentionCap
            ? b.getF32FloatAttr(static_cast<float>(config.attentionCap))
            : FloatAttr();
    if (shared)
      return rounded(shared->combine(
          AttentionPartialOp::create(
              b, loc, q, caches[place.cache], lastPlaces, sequences,
              pageTables[place.table], /*tile=*/ValueRange(),
              /*splits=*/b.getI64IntegerAttr(1),
              b.getI64IntegerAttr(place.layer),
              attentionScale(own, own.headDim), /*window=*/IntegerAttr(),
              /*chunked=*/UnitAttr(), cap),
          sinks));
    return AttentionOp::create(
        b, loc, q, caches[place.cache], lastPlaces, sequences,
        pageTables[place.table], sinks,
        /*kv_head=*/Value(), b.getI64IntegerAttr(place.layer),
        attentionScale(own, own.headDim),
        own.window ? b.getI64IntegerAttr(own.window) : IntegerAttr(),
        own.chunked ? b.getUnitAttr() : UnitAttr(), cap);
  }

  Value attendToState(Value x, const std::string &at, int64_t layer) override {
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    return linearAttention(
        *this, x, at,
        {caches[place.cache], place.layer, positions, sequences, states});
  }

  //===--- Adapters -------------------------------------------------------===//

  bool isProductAlone(const Twine &name) override {
    return config.adapters.rankOf(name.str()) > 0 ||
           Decoder::isProductAlone(name);
  }

  /// A product's x W^T + bias, and what each row's adapter adds to it: [T, N].
  Value linear(Value x, const Twine &name) override {
    Value y = Decoder::linear(x, name);
    const std::string product = name.str();
    if (config.adapters.rankOf(product) == 0)
      return y;
    adapted.insert(product);
    Value added = adapterProduct(adapterRow(x, product), [&](int64_t number) {
      return ::kf::adapterKeyOfB(product, number);
    });
    return arith::AddFOp::create(b, loc, y, added);
  }

  /// What rows' adapters make of x first, for `product`, a layer's: [T, rank].
  /// Of products that read one row, it is a part of the columns.
  Value adapterRow(Value x, StringRef product) {
    for (const ::kf::AdapterGroup &group : ::kf::adapterGroups(names)) {
      const auto own =
          llvm::find_if(group.products, [&](std::string_view part) {
            return product.ends_with(("." + Twine(part)).str());
          });
      if (own == group.products.end())
        continue;
      const std::string at = product.drop_back(own->size()).str();
      int64_t first = 0, all = 0;
      for (std::string_view other : group.products) {
        if (other == *own)
          first = all;
        all += config.adapters.rankOf(at + std::string(other));
      }
      const std::string whole = at + std::string(group.name);
      Value &rows = adapterRows[whole];
      if (!rows)
        rows = adapterProduct(x, [&](int64_t number) {
          return ::kf::adapterKeyOfA(whole, number);
        });
      const int64_t rank = config.adapters.rankOf(product.str());
      return rank == all ? rows : columns(rows, first, rank);
    }
    llvm_unreachable("adapters add to products of groups");
  }

  /// The products of x's rows with the matrices of their adapters, whose keys
  /// `keyOf` says: [T, N].
  Value adapterProduct(Value x, function_ref<std::string(int64_t)> keyOf) {
    SmallVector<std::string> keys;
    for (int64_t i = 0; i <= config.adapters.count; ++i)
      keys.push_back(keyOf(i));
    Value w = stack({keys});
    return fromHeads(ExpertMatmulOp::create(b, loc, x, adapters, w,
                                            /*bias=*/Value(),
                                            ActivationKindAttr()));
  }

  //===--- Shapes ---------------------------------------------------------===//

  /// The types of tensors that the step takes or gives.
  SmallVector<Type> typesOf(ArrayRef<::kf::TensorSpec> specs) {
    SmallVector<Type> types;
    for (const ::kf::TensorSpec &spec : specs)
      types.push_back(typeOf(spec));
    return types;
  }

  /// The first dimension alone may be a size of the step.
  Type typeOf(const ::kf::TensorSpec &spec) {
    SmallVector<int64_t> shape(spec.shape.begin(), spec.shape.end());
    Attribute size;
    if (::kf::isSizeExtent(shape.front())) {
      const int64_t named =
          ::kf::slotOfExtent(shape.front()) - KF_SCALAR_NAMED_SIZES;
      if (named >= 0)
        size = SizeAttr::get(b.getContext(),
                             b.getStringAttr(signature.sizes[named].name));
      shape.front() = ShapedType::kDynamic;
    }
    Type element = getElementType(b.getContext(), spec.type);
    if (!element) // i32 and i64
      element = b.getIntegerType(8 * ::kf::sizeOf(spec.type));
    return RankedTensorType::get(shape, element, size);
  }

  Type typeOf(const ::kf::CacheSpec &cache) {
    if (cache.isOfStates())
      return StateCacheType::get(b.getContext(), cache.layers, cache.kvHeads,
                                 cache.headDim, cache.slotPages);
    return KVCacheType::get(b.getContext(), cache.layers, cache.kvHeads,
                            cache.headDim, cacheElement, options.keyBlock,
                            cache.page);
  }

  const ImportOptions &options;
  ::kf::StepSignature signature;
  ::kf::LayerCaches cachePlaces;
  Type cacheElement;
  Value sequences; ///< [T] of i32
  /// Of rows' keys in the caches, and the last that rows see: [T] of i32.
  Value places, lastPlaces;
  std::optional<SharedContext> shared; ///< of several ranks
  /// [S, P] of i32 each, by LayerCaches::Place::table.
  SmallVector<Value> pageTables;
  Value states;   ///< [S] of i32; null where no layer has any
  Value adapters; ///< [T, 1] of i32; null where there are none
  /// What adapters make of rows first, [T, ranks], by layer and group.
  llvm::StringMap<Value> adapterRows;
  llvm::StringSet<> adapted; ///< products that adapters have added to
  ValueRange caches;         ///< in the order of cachePlaces
};

llvm::Error checkOptions(const ImportOptions &options,
                         const ModelConfig &config) {
  const int64_t rows = options.shape.rows, most = ::kf::mostStepRows(config);
  if (rows < 1 || rows > most)
    return llvm::createStringError("a step of " + std::to_string(rows) +
                                   " rows is not possible; 1 to " +
                                   std::to_string(most) + " are");
  if (options.keyBlock < 1 || ::kf::kCachePage % options.keyBlock != 0)
    return llvm::createStringError(
        "a key block of " + std::to_string(options.keyBlock) +
        " positions is not possible; one that divides a page of " +
        std::to_string(::kf::kCachePage) + " is");
  return llvm::Error::success();
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::kf::importStep(MLIRContext &context, const ModelConfig &config,
                     const ::kf::WeightSource &source,
                     const ImportOptions &options) {
  context.loadDialect<KFDialect, arith::ArithDialect, func::FuncDialect,
                      math::MathDialect, tensor::TensorDialect>();
  if (llvm::Error error = checkOptions(options, config))
    return std::move(error);
  Type cacheElement = getElementType(&context, options.cacheType);
  const std::string cacheName(::kf::nameOf(options.cacheType));
  if (!isa_and_present<FloatType>(cacheElement) &&
      options.cacheType != ::kf::DataType::Q8_0)
    return llvm::createStringError(
        "a cache of " + cacheName +
        " is not supported; f32, f16, bf16 and q8_0 are");
  auto activation = dyn_cast_if_present<FloatType>(
      getElementType(&context, options.activationType));
  if (!activation)
    return llvm::createStringError(
        "activations of " + std::string(::kf::nameOf(options.activationType)) +
        " are not supported; f32, f16 and bf16 are");
  const int64_t block = ::kf::elementsPerBlock(options.cacheType);
  const ::kf::LayerCaches caches(config);
  for (const ::kf::CacheSpec &cache : caches.specs())
    if (!cache.isOfStates() && cache.headDim % block != 0)
      return llvm::createStringError(
          "a cache of " + cacheName + " needs heads of a multiple of " +
          std::to_string(block) + " elements, and the model's have " +
          std::to_string(cache.headDim) + "; use f32, f16 or bf16");
  llvm::Expected<Checkpoint> checkpoint =
      Checkpoint::read(context, config, source);
  if (!checkpoint)
    return checkpoint.takeError();
  StepBuilder builder(&context, config, *checkpoint, options, cacheElement,
                      activation);
  OwningOpRef<ModuleOp> module = builder.build();
  if (llvm::Error error = builder.checkAdapters())
    return std::move(error);
  return module;
}
