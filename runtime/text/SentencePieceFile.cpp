//===- SentencePieceFile.cpp - The fields of a tokenizer.model ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/SentencePieceFile.h"

#include <bit>
#include <cmath>
#include <cstring>

using namespace kf;

namespace {

/// One field of a message: its number and its value.
struct Field {
  enum class Wire { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  uint32_t number;
  Wire wire;
  uint64_t value = 0;     ///< of all but Bytes
  std::string_view bytes; ///< of Bytes

  Status expect(Wire expected) const {
    if (wire == expected)
      return Status();
    return Status::error("field " + std::to_string(number) +
                         " has the wrong type");
  }
};

/// Takes a message apart, field by field.
class WireReader {
public:
  WireReader(std::string_view message, const char *file)
      : rest(message), file(file) {}

  bool atEnd() const { return rest.empty(); }

  Result<Field> next() {
    KF_ASSIGN_OR_RETURN(uint64_t tag, varint());
    if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
      return damaged("a field without a number");
    Field field;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire = static_cast<Field::Wire>(tag & 7);
    switch (field.wire) {
    case Field::Wire::Varint: {
      KF_ASSIGN_OR_RETURN(field.value, varint());
      return field;
    }
    case Field::Wire::Fixed64:
    case Field::Wire::Fixed32: {
      size_t size = field.wire == Field::Wire::Fixed32 ? 4 : 8;
      if (rest.size() < size)
        return damaged("a field that the end cuts off");
      for (size_t i = 0; i < size; ++i)
        field.value |= uint64_t(uint8_t(rest[i])) << 8 * i;
      rest.remove_prefix(size);
      return field;
    }
    case Field::Wire::Bytes: {
      KF_ASSIGN_OR_RETURN(uint64_t size, varint());
      if (size > rest.size())
        return damaged("a field that the end cuts off");
      field.bytes = rest.substr(0, size);
      rest.remove_prefix(size);
      return field;
    }
    }
    return damaged("a field of an unknown type");
  }

private:
  Status damaged(const std::string &what) const {
    return Status::error("no SentencePiece model: " + what + " at byte " +
                         std::to_string(rest.data() - file));
  }

  Result<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < rest.size(); ++i) {
      uint8_t byte = static_cast<uint8_t>(rest[i]);
      value |= uint64_t(byte & 0x7f) << 7 * i;
      if (byte < 0x80) {
        rest.remove_prefix(i + 1);
        return value;
      }
    }
    return damaged("a number without an end");
  }

  std::string_view rest;
  const char *file; ///< where the whole file starts
};

/// Fills the file from the messages in it.
class Parser {
public:
  explicit Parser(std::string_view bytes) : bytes(bytes) {}

  Result<SentencePieceFile> run() {
    KF_RETURN_IF_ERROR(forEachField(bytes, [&](const Field &field) {
      switch (field.number) {
      case 1:
        return subMessage(field, &Parser::pieceField);
      case 2:
        return subMessage(field, &Parser::trainerField);
      case 3:
        return subMessage(field, &Parser::normalizerField);
      case 5:
        return subMessage(field, &Parser::denormalizerField);
      default:
        return Status();
      }
    }));
    if (file.pieces.empty())
      return Status::error("no SentencePiece model: it has no pieces");
    return std::move(file);
  }

private:
  template <typename Read>
  Status forEachField(std::string_view message, Read read) {
    WireReader reader(message, bytes.data());
    while (!reader.atEnd()) {
      KF_ASSIGN_OR_RETURN(Field field, reader.next());
      KF_RETURN_IF_ERROR(read(field));
    }
    return Status();
  }

  Status subMessage(const Field &field, Status (Parser::*read)(const Field &)) {
    KF_RETURN_IF_ERROR(field.expect(Field::Wire::Bytes));
    bool isPiece = field.number == 1;
    if (isPiece)
      piece = {};
    KF_RETURN_IF_ERROR(forEachField(
        field.bytes, [&](const Field &inner) { return (this->*read)(inner); }));
    return isPiece ? finishPiece() : Status();
  }

  Status pieceField(const Field &field) {
    switch (field.number) {
    case 1:
      piece.text = field.bytes;
      return field.expect(Field::Wire::Bytes);
    case 2:
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      return field.expect(Field::Wire::Fixed32);
    case 3:
      if (field.value < 1 || field.value > 6)
        return Status::error("piece " + std::to_string(file.pieces.size()) +
                             " has the unknown type " +
                             std::to_string(field.value));
      piece.kind = static_cast<TokenKind>(field.value);
      return field.expect(Field::Wire::Varint);
    default:
      return Status();
    }
  }

  Status finishPiece() {
    std::string which = "piece " + std::to_string(file.pieces.size());
    if (file.pieces.size() == INT32_MAX)
      return Status::error("too many pieces");
    if (piece.text.empty())
      return Status::error(which + " has no text");
    if (!std::isfinite(piece.score))
      return Status::error(which + " has a score that is not finite");
    file.pieces.push_back(piece);
    return Status();
  }

  Status trainerField(const Field &field) {
    switch (field.number) {
    case 3:
      if (field.value < 1 || field.value > 4)
        return Status::error("the model type " + std::to_string(field.value) +
                             " is unknown");
      file.model = static_cast<SentencePieceFile::Model>(field.value);
      return field.expect(Field::Wire::Varint);
    case 24:
      return flag(field, file.whitespaceAsSuffix);
    case 35:
      return flag(field, file.byteFallback);
    case 44:
      file.unknownSurface = field.bytes;
      return field.expect(Field::Wire::Bytes);
    case 46:
      file.beginPiece = field.bytes;
      return field.expect(Field::Wire::Bytes);
    case 47:
      file.endPiece = field.bytes;
      return field.expect(Field::Wire::Bytes);
    default:
      return Status();
    }
  }

  Status normalizerField(const Field &field) {
    switch (field.number) {
    case 2:
      file.charsMap = field.bytes;
      return field.expect(Field::Wire::Bytes);
    case 3:
      return flag(field, file.addDummyPrefix);
    case 4:
      return flag(field, file.removeExtraWhitespaces);
    case 5:
      return flag(field, file.escapeWhitespaces);
    default:
      return Status();
    }
  }

  Status denormalizerField(const Field &field) {
    if (field.number == 2)
      file.hasDenormalizer = !field.bytes.empty();
    return Status();
  }

  static Status flag(const Field &field, bool &out) {
    out = field.value != 0;
    return field.expect(Field::Wire::Varint);
  }

  std::string_view bytes;
  SentencePieceFile file;
  SentencePieceFile::Piece piece; ///< the one being read
};

} // namespace

Result<SentencePieceFile> SentencePieceFile::parse(std::string_view bytes) {
  return Parser(bytes).run();
}
