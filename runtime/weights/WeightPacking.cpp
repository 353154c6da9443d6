//===- WeightPacking.cpp - Weights in the layouts of their kernels --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightPacking.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/ShapeText.h"
#include "runtime/weights/BlockPacking.h"
#include "runtime/weights/FragmentPacking.h"
#include "runtime/weights/ReadAhead.h"
#include "runtime/weights/StreamingCopy.h"
#include "runtime/weights/Transpose.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kf {
namespace {

//===----------------------------------------------------------------------===//
// Checkpoint tensors and where they go
//===----------------------------------------------------------------------===//

/// The logical weight is [groups][experts][rows][columns]; of rank 3 it has no
/// experts, and rank 1 and 2 have fewer.
struct Extents {
  int64_t groups = 1, experts = 1, rows = 1, columns = 1;

  /// The first row, over all groups, of panel `panel` of group `group`, which
  /// has `width` rows; panels of an expert are followed by those of the next.
  /// `valid` is how many rows it has.
  int64_t firstRow(int64_t group, int64_t panel, int64_t width,
                   int64_t &valid) const {
    const int64_t ofExpert = (rows - 1) / width + 1;
    const int64_t before = panel % ofExpert * width;
    valid = std::min(width, rows - before);
    return (group * experts + panel / ofExpert) * rows + before;
  }
};

Extents extentsOf(std::span<const int64_t> shape) {
  Extents extents;
  extents.columns = shape.back();
  if (shape.size() >= 2)
    extents.rows = shape[shape.size() - 2];
  if (shape.size() >= 3)
    extents.groups = shape.front();
  if (shape.size() >= 4)
    extents.experts = shape[1];
  return extents;
}

/// One checkpoint tensor and the first of the logical rows (over all groups)
/// or, for rank 1, columns that it fills.
struct Piece {
  const std::byte *data = nullptr;
  DataType type = DataType::F32;
  int64_t firstRow = 0, rows = 0; ///< in rows of the weight, groups * rows
  int64_t count = 0;              ///< elements
};

Status wrongShape(const std::string &name, const std::string &expected,
                  std::span<const int64_t> found) {
  return Status::error("checkpoint tensor '" + name + "' has shape " +
                       shapeText(found) + " where " + expected +
                       " is expected");
}

/// Checks that `view` is what one name of `spec` has to be, and returns its
/// extent along the joined dimension.
Result<int64_t> checkView(const WeightSpec &spec, const std::string &name,
                          const TensorView &view) {
  Result<int64_t> size = checkedByteCount(view.type, view.shape);
  if (!size.ok())
    return size.status().in("checkpoint tensor '" + name + "'");
  uint64_t bytes = static_cast<uint64_t>(*size);
  if (view.bytes != bytes || (!view.data && bytes))
    return Status::error("checkpoint tensor '" + name + "' holds " +
                         std::to_string(view.bytes) + " bytes where " +
                         std::to_string(bytes) + " are expected");
  bool convertible = (isFloat(view.type) || view.type == DataType::F64 ||
                      view.type == DataType::F8E4M3) &&
                     isFloat(spec.type);
  if (view.type != spec.type && !convertible)
    return Status::error("checkpoint tensor '" + name + "' has type " +
                         std::string(nameOf(view.type)) +
                         ", which cannot be converted to " +
                         std::string(nameOf(spec.type)));

  // What the tensor's shape has to be; -1 where any size goes.
  std::vector<int64_t> expected(spec.shape.begin() +
                                    static_cast<int64_t>(spec.stackedDims()),
                                spec.shape.end());
  if (!spec.stacked)
    expected[0] = spec.names.size() == 1 ? spec.shape[0] : -1;
  if (spec.transposed)
    std::swap(expected[0], expected[1]);
  bool fits = view.shape.size() == expected.size();
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits = expected[i] == -1 ? view.shape[i] > 0 : view.shape[i] == expected[i];
  if (!fits) {
    std::string text = shapeText(expected);
    if (size_t any = text.find("-1"); any != std::string::npos)
      text.replace(any, 2, "any");
    return wrongShape(name, text, view.shape);
  }
  return spec.stacked ? 1 : view.shape[spec.transposed ? 1 : 0];
}

Result<std::vector<Piece>> findPieces(const WeightSpec &spec,
                                      const WeightSource &source) {
  std::vector<Piece> pieces;
  const int64_t all =
      spec.stacked ? static_cast<int64_t>(spec.names.size()) : spec.shape[0];
  int64_t joined = 0, firstRow = 0;
  for (const std::string &name : spec.names) {
    KF_ASSIGN_OR_RETURN(TensorView view, source.find(name));
    KF_ASSIGN_OR_RETURN(int64_t extent, checkView(spec, name, view));
    Piece piece;
    piece.data = static_cast<const std::byte *>(view.data);
    piece.type = view.type;
    piece.count = static_cast<int64_t>(view.bytes) / bytesPerBlock(view.type) *
                  elementsPerBlock(view.type);
    piece.rows = piece.count / spec.shape.back();
    piece.firstRow = firstRow;
    firstRow += piece.rows;
    pieces.push_back(piece);
    if (extent > all - joined)
      return Status::error("checkpoint tensors '" + spec.names.front() +
                           "' to '" + name + "' make more than the " +
                           std::to_string(all) + " rows that are expected");
    joined += extent;
  }
  if (joined != all)
    return Status::error("checkpoint tensors '" + spec.names.front() +
                         "' to '" + spec.names.back() + "' make " +
                         std::to_string(joined) + " rows where " +
                         std::to_string(all) + " are expected");
  return pieces;
}

/// The piece that holds row `row` (over all groups), and the row within it.
const Piece &pieceOf(std::span<const Piece> pieces, int64_t row,
                     int64_t &within) {
  auto after = std::ranges::upper_bound(pieces, row, {}, &Piece::firstRow);
  const Piece &piece = *(after - 1);
  within = row - piece.firstRow;
  return piece;
}

/// Bytes of `count` elements, whole blocks where there are blocks.
int64_t bytesOf(DataType type, int64_t count) {
  return count / elementsPerBlock(type) * bytesPerBlock(type);
}

/// Row `row` (over all groups) of an untransposed weight as it is stored.
const std::byte *storedRow(std::span<const Piece> pieces, int64_t row,
                           int64_t columns) {
  int64_t within = 0;
  const Piece &piece = pieceOf(pieces, row, within);
  return piece.data + bytesOf(piece.type, within * columns);
}

/// The rows of panel `unit`, counted over groups and panels, as they are
/// stored; null where it has fewer than `width`. None behind the last panel.
std::vector<const std::byte *> storedPanel(std::span<const Piece> pieces,
                                           const Extents &extents,
                                           int64_t width, int64_t unit) {
  std::vector<const std::byte *> rows;
  const int64_t panel = unit / extents.groups;
  if (panel >= extents.experts * ((extents.rows - 1) / width + 1))
    return rows;
  rows.resize(static_cast<size_t>(width));
  int64_t valid = 0;
  const int64_t first =
      extents.firstRow(unit % extents.groups, panel, width, valid);
  for (int64_t r = 0; r < valid;) {
    int64_t within = 0;
    const Piece &piece = pieceOf(pieces, first + r, within);
    const int64_t rowBytes = bytesOf(piece.type, extents.columns);
    const std::byte *row = piece.data + within * rowBytes;
    for (const int64_t end = std::min(valid, r + piece.rows - within); r < end;
         row += rowBytes)
      rows[r++] = row;
  }
  return rows;
}

/// Runs fn(i) for i below `count`.
Status forEach(const PackOptions &options, int64_t count,
               const std::function<void(int64_t)> &fn) {
  auto task = [&](int64_t i) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    fn(i);
    return Status();
  };
  if (options.pool)
    return options.pool->parallelFor(count, task);
  for (int64_t i = 0; i < count; ++i)
    KF_RETURN_IF_ERROR(task(i));
  return Status();
}

/// A unit of a packed weight, and where it goes.
struct Unit {
  int64_t number;
  std::byte *dst;
  bool isFirst; ///< of those that a thread packs in a row
};

/// A part of a packed weight, and where it goes.
struct Part {
  int64_t first = 0; ///< byte of the weight
  std::span<std::byte> dst;

  int64_t end() const { return first + static_cast<int64_t>(dst.size()); }
  /// Calls pack(unit) for each unit of `bytes` bytes in the part, mostly in
  /// order.
  Status forUnits(const PackOptions &options, int64_t bytes,
                  const std::function<void(const Unit &)> &pack) const {
    const int64_t begin = first / bytes, count = end() / bytes - begin;
    // Several in a row for a thread, so that it knows which one comes next (it
    // asks for stored rows early), but few enough for all threads to end at
    // about the same time.
    constexpr int64_t most = int64_t(1) << 20; // bytes
    const int64_t threads = options.pool ? options.pool->size() : 1;
    const int64_t run =
        std::max<int64_t>(std::min(most / bytes, count / (8 * threads)), 1);
    return forEach(options, (count + run - 1) / run, [&](int64_t number) {
      const int64_t from = number * run, to = std::min(count, from + run);
      for (int64_t i = from; i < to; ++i)
        pack({.number = begin + i,
              .dst = dst.data() + i * bytes,
              .isFirst = i == (threads == 1 ? 0 : from)});
    });
  }
};

/// Converts `count` elements, in steps that stay in the nearest cache. Types
/// were checked before.
void convert(DataType from, const std::byte *src, DataType to, std::byte *dst,
             int64_t count) {
  if (from == to) {
    std::memcpy(dst, src, static_cast<size_t>(bytesOf(to, count)));
    return;
  }
  float values[1024];
  for (int64_t at = 0; at < count; at += 1024) {
    int64_t n = std::min<int64_t>(1024, count - at);
    Status status = convertToFloat(from, src + at * sizeOf(from), n, values);
    if (status.ok())
      status = convertFromFloat(to, values, n, dst + at * sizeOf(to));
    assert(status.ok() && "checkView() passed types without a conversion");
    (void)status;
  }
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Stored position -> logical row of a panel (see WeightLayout::interleave).
std::vector<int64_t> panelOrder(const WeightLayout &layout) {
  std::vector<int64_t> order(layout.panel);
  int64_t half = layout.interleave;
  for (int64_t s = 0; s < layout.panel; ++s) {
    int64_t group = half ? s / (2 * half) * (2 * half) : s;
    int64_t within = s - group;
    order[s] = half ? group + within / 2 + within % 2 * half : s;
  }
  return order;
}

/// Reads elements of the logical weight in spec.type, whatever the checkpoint
/// stores. One per thread that packs.
template <typename T> class RowReader {
public:
  RowReader(const WeightSpec &spec, std::span<const Piece> pieces)
      : spec(spec), pieces(pieces), extents(extentsOf(spec.shape)) {}

  /// The piece that holds row `row` (over all groups), and the row within it.
  const Piece &pieceOf(int64_t row, int64_t &within) const {
    return kf::pieceOf(pieces, row, within);
  }

  /// Columns [first, first + count) of row `row` of an untransposed weight:
  /// the checkpoint's own bytes, or a conversion in `scratch`.
  const std::byte *rowBytes(int64_t row, int64_t first, int64_t count,
                            T *scratch) const {
    int64_t within = 0;
    const Piece &piece = pieceOf(row, within);
    const std::byte *src =
        piece.data + (within * extents.columns + first) * sizeOf(piece.type);
    if (piece.type == spec.type)
      return src;
    std::byte *converted = reinterpret_cast<std::byte *>(scratch);
    convert(piece.type, src, spec.type, converted, count);
    return converted;
  }

  /// dst[i] = element (row + i, column) of a transposed weight, for `count`
  /// rows of one piece; the checkpoint holds them side by side.
  void columnBytes(const Piece &piece, int64_t within, int64_t column,
                   int64_t count, T *dst) const {
    const std::byte *src =
        piece.data + (column * piece.rows + within) * sizeOf(piece.type);
    convert(piece.type, src, spec.type, reinterpret_cast<std::byte *>(dst),
            count);
  }

  const WeightSpec &spec;
  std::span<const Piece> pieces;
  const Extents extents;
};

/// Packs a panel: [columns][spec.layout.panel] at unit.dst.
template <typename T>
void packPanel(const RowReader<T> &reader, std::span<const int64_t> order,
               const Unit &unit) {
  const Extents &extents = reader.extents;
  T *dst = reinterpret_cast<T *>(unit.dst);
  int64_t width = static_cast<int64_t>(order.size());
  int64_t valid = 0;
  const int64_t base = extents.firstRow(
      unit.number % extents.groups, unit.number / extents.groups, width, valid);

  if (reader.spec.transposed) {
    // A panel row is a stretch of the checkpoint's row, but for its order.
    std::vector<T> line(width, T(0));
    for (int64_t column = 0; column < extents.columns; ++column) {
      for (int64_t i = 0; i < valid;) {
        int64_t within = 0;
        const Piece &piece = reader.pieceOf(base + i, within);
        int64_t count = std::min(valid - i, piece.rows - within);
        reader.columnBytes(piece, within, column, count, line.data() + i);
        i += count;
      }
      for (int64_t s = 0; s < width; ++s)
        dst[column * width + s] = line[order[s]];
    }
    return;
  }

  // Columns at a time: few, so that reading and writing go on together, or
  // enough to convert in long runs.
  const bool converts = std::ranges::any_of(reader.pieces, [&](auto &piece) {
    return piece.type != reader.spec.type;
  });
  const int64_t step = converts ? 256 : 64;
  std::vector<T> zeros(step, T(0));
  std::vector<T> scratch(converts ? width * step : 0);
  std::vector<const std::byte *> stored, next;
  if (!converts) {
    stored = storedPanel(reader.pieces, extents, width, unit.number);
    next = storedPanel(reader.pieces, extents, width, unit.number + 1);
  }
  ReadAhead ahead({stored, next, /*wereNext=*/!unit.isFirst},
                  extents.columns * sizeof(T));
  std::vector<const std::byte *> rows(width);
  std::vector<T> packed(width * step);
  for (int64_t first = 0; first < extents.columns; first += step) {
    int64_t count = std::min(step, extents.columns - first);
    for (int64_t s = 0; s < width; ++s)
      if (order[s] >= valid)
        rows[s] = reinterpret_cast<const std::byte *>(zeros.data());
      else if (converts)
        rows[s] =
            reader.rowBytes(base + order[s], first, count, &scratch[s * step]);
      else
        rows[s] = stored[order[s]] + first * static_cast<int64_t>(sizeof(T));
    transpose(rows.data(), width, count, packed.data(), width);
    ahead.step(width * count * static_cast<int64_t>(sizeof(T)));
    streamingCopy(reinterpret_cast<std::byte *>(dst + first * width),
                  reinterpret_cast<const std::byte *>(packed.data()),
                  static_cast<size_t>(count * width) * sizeof(T));
  }
  endStreaming();
}

template <typename T>
Status packPanels(const WeightSpec &spec, std::span<const Piece> pieces,
                  const Part &part, const PackOptions &options) {
  RowReader<T> reader(spec, pieces);
  std::vector<int64_t> order = panelOrder(spec.layout);
  return part.forUnits(options, packedUnit(spec), [&](const Unit &unit) {
    packPanel(reader, order, unit);
  });
}

/// Panels of a block type, from rows of the same type.
Status packBlockPanels(const WeightSpec &spec, std::span<const Piece> pieces,
                       const Part &part, const PackOptions &options) {
  const Extents extents = extentsOf(spec.shape);
  const int64_t width = spec.layout.panel;
  const int64_t blocks = extents.columns / elementsPerBlock(spec.type);
  return part.forUnits(options, packedUnit(spec), [&](const Unit &unit) {
    const std::vector<const std::byte *> rows =
        storedPanel(pieces, extents, width, unit.number);
    const std::vector<const std::byte *> next =
        storedPanel(pieces, extents, width, unit.number + 1);
    packBlockPanel(spec.type, {rows, next, /*wereNext=*/!unit.isFirst}, blocks,
                   unit.dst);
  });
}

/// Packs row block `block` into tiles for matrix units at `dst`.
template <typename T>
void packRowBlock(const RowReader<T> &reader, int64_t block, std::byte *dst) {
  const Extents &extents = reader.extents;
  const FragmentTile tile = *findFragmentTile(reader.spec.type);
  const int64_t groupRows = FragmentTile::rows / extents.groups;
  // Columns at a time: whole tiles, and few enough for the rows to stay in the
  // nearest cache where they have to be written first.
  constexpr int64_t step = 512;
  std::vector<T> lines;
  std::array<const std::byte *, FragmentTile::rows> rows;
  for (int64_t begin = 0; begin < extents.columns; begin += step) {
    const int64_t count = std::min(step, extents.columns - begin);
    const bool isWhole = count % tile.columns == 0;
    rows.fill(nullptr);
    for (int64_t r = 0; r < FragmentTile::rows; ++r) {
      int64_t valid = 0, within = 0;
      const int64_t row =
          extents.firstRow(r / groupRows, block, groupRows, valid) +
          r % groupRows;
      if (r % groupRows >= valid)
        continue;
      const Piece &piece = reader.pieceOf(row, within);
      if (isWhole && !reader.spec.transposed &&
          piece.type == reader.spec.type) {
        rows[r] = reader.rowBytes(row, begin, count, nullptr);
        continue;
      }
      if (lines.empty())
        lines.resize(FragmentTile::rows * step);
      T *line = &lines[r * step];
      rows[r] = reinterpret_cast<const std::byte *>(line);
      if (reader.spec.transposed)
        for (int64_t k = 0; k < count; ++k)
          reader.columnBytes(piece, within, begin + k, 1, line + k);
      else if (const std::byte *at = reader.rowBytes(row, begin, count, line);
               at != rows[r])
        std::memcpy(line, at, static_cast<size_t>(count) * sizeof(T));
      // The last tile ends in zeros.
      std::fill(line + count, line + tile.tilesOf(count) * tile.columns, T(0));
    }
    packFragments(reader.spec.type, rows, tile.tilesOf(count),
                  dst + begin / tile.columns * tile.bytes);
  }
}

/// Packs row blocks of a block type, from rows of the same type.
Status packFragmentBlockTiles(const WeightSpec &spec,
                              std::span<const Piece> pieces, const Part &part,
                              const PackOptions &options) {
  const Extents extents = extentsOf(spec.shape);
  const int64_t groupRows = FragmentTile::rows / extents.groups;
  return part.forUnits(options, packedUnit(spec), [&](const Unit &unit) {
    std::array<const std::byte *, FragmentTile::rows> rows = {};
    for (int64_t r = 0; r < FragmentTile::rows; ++r) {
      int64_t valid = 0;
      const int64_t row =
          extents.firstRow(r / groupRows, unit.number, groupRows, valid) +
          r % groupRows;
      if (r % groupRows < valid)
        rows[r] = storedRow(pieces, row, extents.columns);
    }
    packFragmentBlocks(spec.type, rows,
                       extents.columns / elementsPerBlock(spec.type), unit.dst);
  });
}

template <typename T>
Status packFragmentTiles(const WeightSpec &spec, std::span<const Piece> pieces,
                         const Part &part, const PackOptions &options) {
  RowReader<T> reader(spec, pieces);
  return part.forUnits(options, packedUnit(spec), [&](const Unit &unit) {
    packRowBlock(reader, unit.number, unit.dst);
  });
}

/// Row-major from tensors stored the same way: a conversion in long runs.
Status packRows(const WeightSpec &spec, std::span<const Piece> pieces,
                const Part &part, const PackOptions &options) {
  constexpr int64_t run = int64_t(1) << 17; // elements
  const int64_t unit = packedUnit(spec), elements = elementsPerBlock(spec.type);
  const int64_t begin = part.first / unit * elements,
                end = part.end() / unit * elements;
  int64_t before = 0; // elements of the pieces so far
  for (const Piece &piece : pieces) {
    const int64_t from = std::clamp<int64_t>(begin - before, 0, piece.count);
    const int64_t to = std::clamp<int64_t>(end - before, 0, piece.count);
    const int64_t offset = before + from - begin; // in the part, if from < to
    auto convertRun = [&](int64_t i) {
      const int64_t at = from + i * run;
      convert(piece.type, piece.data + bytesOf(piece.type, at), spec.type,
              part.dst.data() + bytesOf(spec.type, offset + i * run),
              std::min(run, to - at));
    };
    KF_RETURN_IF_ERROR(forEach(
        options, std::max<int64_t>(to - from + run - 1, 0) / run, convertRun));
    before += piece.count;
  }
  return Status();
}

/// Row-major from transposed tensors, 64 logical rows at a time.
template <typename T>
Status packTransposedRows(const WeightSpec &spec, std::span<const Piece> pieces,
                          std::byte *dst, const PackOptions &options) {
  constexpr int64_t blockRows = 64, blockColumns = 64;
  RowReader<T> reader(spec, pieces);
  int64_t columns = reader.extents.columns;
  for (const Piece &piece : pieces) {
    auto packBlock = [&](int64_t i) {
      int64_t first = i * blockRows;
      int64_t rows = std::min(blockRows, piece.rows - first);
      T *out = reinterpret_cast<T *>(dst) + (piece.firstRow + first) * columns;
      T block[blockColumns * blockRows];
      const std::byte *lines[blockColumns];
      for (int64_t c = 0; c < columns; c += blockColumns) {
        int64_t count = std::min(blockColumns, columns - c);
        for (int64_t k = 0; k < count; ++k) {
          reader.columnBytes(piece, first, c + k, rows, block + k * blockRows);
          lines[k] = reinterpret_cast<std::byte *>(block + k * blockRows);
        }
        transpose(lines, count, rows, out + c, columns);
      }
    };
    KF_RETURN_IF_ERROR(
        forEach(options, (piece.rows + blockRows - 1) / blockRows, packBlock));
  }
  return Status();
}

Status pack(const WeightSpec &spec, std::span<const Piece> pieces,
            const Part &part, const PackOptions &options) {
  int64_t size = isBlock(spec.type) ? 0 : int64_t(sizeOf(spec.type));
  // packedBytes() lets only 8, 16 and 32 bits and some blocks through.
  if (spec.layout.kind == WeightLayout::Kind::Fragments && isBlock(spec.type))
    return packFragmentBlockTiles(spec, pieces, part, options);
  if (spec.layout.kind == WeightLayout::Kind::Fragments)
    return size == 1 ? packFragmentTiles<uint8_t>(spec, pieces, part, options)
           : size == 2
               ? packFragmentTiles<uint16_t>(spec, pieces, part, options)
               : packFragmentTiles<uint32_t>(spec, pieces, part, options);
  bool panels = spec.layout.kind == WeightLayout::Kind::Panels;
  if (!panels && !spec.transposed)
    return packRows(spec, pieces, part, options);
  if (panels && isBlock(spec.type))
    return packBlockPanels(spec, pieces, part, options);
  if (panels && size == 1)
    return packPanels<uint8_t>(spec, pieces, part, options);
  if (panels && size == 2)
    return packPanels<uint16_t>(spec, pieces, part, options);
  if (panels) // packedBytes() lets only 8, 16 and 32 bits through
    return packPanels<uint32_t>(spec, pieces, part, options);
  if (size == 1)
    return packTransposedRows<uint8_t>(spec, pieces, part.dst.data(), options);
  if (size == 2)
    return packTransposedRows<uint16_t>(spec, pieces, part.dst.data(), options);
  if (size == 4)
    return packTransposedRows<uint32_t>(spec, pieces, part.dst.data(), options);
  return Status::error("cannot transpose elements of " +
                       std::string(nameOf(spec.type)));
}

/// Of a part that does not fit the weight of `bytes` bytes.
bool isOutside(const Part &part, int64_t unit, int64_t bytes) {
  return part.first < 0 || part.first % unit != 0 || part.end() > bytes ||
         (part.end() % unit != 0 && part.end() != bytes);
}

} // namespace

int64_t packedUnit(const WeightSpec &spec) {
  if (spec.layout.kind == WeightLayout::Kind::Fragments) {
    const FragmentTile tile = *findFragmentTile(spec.type);
    return tile.tilesOf(spec.shape.back()) * tile.bytes;
  }
  if (spec.layout.kind == WeightLayout::Kind::Panels) {
    const Extents extents = extentsOf(spec.shape);
    if (!isBlock(spec.type))
      return extents.columns * spec.layout.panel *
             static_cast<int64_t>(sizeOf(spec.type));
    return extents.columns / elementsPerBlock(spec.type) * spec.layout.panel *
           PackedBlock(*findBlockFormat(spec.type)).bytes;
  }
  if (!spec.transposed)
    return bytesPerBlock(spec.type);
  const Result<int64_t> all = spec.packedBytes();
  return all.ok() ? *all : 1;
}

Status packWeightPart(const WeightSpec &spec, const WeightSource &source,
                      int64_t first, std::span<std::byte> dst,
                      const PackOptions &options) try {
  KF_ASSIGN_OR_RETURN(int64_t bytes, spec.packedBytes());
  const Part part = {first, dst};
  if (isOutside(part, packedUnit(spec), bytes))
    return Status::error("weight '" + spec.names.front() + "' takes " +
                         std::to_string(bytes) + " bytes, of which " +
                         std::to_string(dst.size()) + " from " +
                         std::to_string(first) + " on are no part");
  if (reinterpret_cast<uintptr_t>(dst.data()) % KF_BUFFER_ALIGNMENT != 0)
    return Status::error("weight '" + spec.names.front() +
                         "' is packed into memory that is not aligned");
  KF_ASSIGN_OR_RETURN(std::vector<Piece> pieces, findPieces(spec, source));
  return catchExceptions([&] { return pack(spec, pieces, part, options); })
      .in("weight '" + spec.names.front() + "'");
} catch (...) { // no memory for an error's line
  return statusOfException();
}

Status packWeightInto(const WeightSpec &spec, const WeightSource &source,
                      std::span<std::byte> dst,
                      const PackOptions &options) try {
  KF_ASSIGN_OR_RETURN(int64_t bytes, spec.packedBytes());
  if (dst.size() != static_cast<uint64_t>(bytes))
    return Status::error("weight '" + spec.names.front() + "' takes " +
                         std::to_string(bytes) + " bytes, not the " +
                         std::to_string(dst.size()) + " given");
  return packWeightPart(spec, source, 0, dst, options);
} catch (...) { // no memory for an error's line
  return statusOfException();
}

Result<AlignedBuffer> packWeight(const WeightSpec &spec,
                                 const WeightSource &source,
                                 const PackOptions &options) try {
  KF_ASSIGN_OR_RETURN(int64_t bytes, spec.packedBytes());
  KF_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::allocate(bytes));
  KF_RETURN_IF_ERROR(packWeightInto(spec, source, buffer.span(), options));
  return buffer;
} catch (...) {
  return statusOfException();
}

bool canBindDirectly(const WeightSpec &spec, const TensorView &view) {
  if (spec.layout.kind != WeightLayout::Kind::RowMajor || spec.transposed ||
      spec.names.size() != 1 || view.type != spec.type)
    return false;
  // A stack of one has leading dimensions that the checkpoint lacks.
  std::span<const int64_t> shape(spec.shape);
  shape = shape.subspan(spec.stackedDims());
  Result<int64_t> bytes = spec.packedBytes();
  return std::ranges::equal(shape, view.shape) && bytes.ok() &&
         view.bytes == static_cast<uint64_t>(*bytes);
}

} // namespace kf
