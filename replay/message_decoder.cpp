// SPDX-License-Identifier: Apache-2.0
#include "replay/message_decoder.hpp"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "actors/lockstep/address.hpp"
#include "replay/flatbuffers_json.hpp"

namespace lockstep {
namespace {

const std::uint8_t* as_u8(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

/// A struct message has no root table for FlatBuffers' own printer, so its fields are walked here.
std::string struct_json(const reflection::Schema& schema, const reflection::Object& object, const std::uint8_t* data) {
  std::map<std::uint16_t, const reflection::Field*> by_offset;
  for (const reflection::Field* field : *object.fields()) by_offset[field->offset()] = field;
  std::string out = "{";
  for (const auto& [offset, field] : by_offset) {
    if (out.size() > 1) out += ", ";
    out += fmt::format("\"{}\": ", field->name()->str());
    const reflection::BaseType type = field->type()->base_type();
    const std::uint8_t* const value = data + offset;
    if (type == reflection::Obj) {
      out += struct_json(schema, *schema.objects()->Get(static_cast<unsigned>(field->type()->index())), value);
    } else if (type == reflection::Float || type == reflection::Double) {
      out += fmt::format("{}", flatbuffers::GetAnyValueF(type, value));
    } else if (type == reflection::Array) {
      out += "\"(array)\"";
    } else if (type == reflection::ULong) {
      out += fmt::format("{}", flatbuffers::ReadScalar<std::uint64_t>(value));
    } else {
      out += fmt::format("{}", flatbuffers::GetAnyValueI(type, value));
    }
  }
  return out + "}";
}

/// One .bfbs of the journal's schema, and the parser that prints its messages.
struct Schema {
  std::vector<std::byte> bfbs;  ///< `root` and the objects point into it
  const reflection::Schema* root = nullptr;
  std::unique_ptr<flatbuffers::Parser> parser;
};

Result<std::unique_ptr<Schema>> load_schema(std::span<const std::byte> bfbs) {
  auto schema = std::make_unique<Schema>();
  schema->bfbs.assign(bfbs.begin(), bfbs.end());
  flatbuffers::Verifier verifier(as_u8(schema->bfbs), schema->bfbs.size());
  if (bfbs.empty() || !reflection::VerifySchemaBuffer(verifier))
    return fail(ErrorCode::corrupt, "the journal's schema is not a FlatBuffers binary schema");
  schema->root = reflection::GetSchema(schema->bfbs.data());
  flatbuffers::IDLOptions options;
  options.strict_json = true;
  options.indent_step = -1;  // one line
  options.output_default_scalars_in_json = true;
  options.output_enum_identifiers = true;
  options.allow_non_utf8 = true;  // a FlatBuffers string may hold any bytes; valid_json() sees to them
  schema->parser = std::make_unique<flatbuffers::Parser>(options);
  if (!schema->parser->Deserialize(as_u8(schema->bfbs), schema->bfbs.size()))
    return fail(ErrorCode::incompatible, "the journal's schema was written by a FlatBuffers this build cannot read");
  return schema;
}

}  // namespace

struct MessageDecoder::State {
  struct Message {
    const Schema* schema;
    const reflection::Object* object;
  };
  std::vector<std::unique_ptr<Schema>> schemas;
  std::map<std::uint32_t, Message> messages;
};

MessageDecoder::MessageDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
MessageDecoder::MessageDecoder(MessageDecoder&&) noexcept = default;
MessageDecoder& MessageDecoder::operator=(MessageDecoder&&) noexcept = default;
MessageDecoder::~MessageDecoder() = default;

Result<MessageDecoder> MessageDecoder::from_schema(std::span<const std::byte> schema) {
  constexpr std::size_t header_bytes = 16;
  auto state = std::make_unique<State>();
  while (!schema.empty()) {
    std::uint64_t length = 0;
    if (schema.size() >= header_bytes) std::memcpy(&length, schema.data(), sizeof length);
    if (schema.size() < header_bytes || length == 0 || length > schema.size() - header_bytes)
      return fail(ErrorCode::corrupt, "the journal's schema block is cut short");
    auto loaded = load_schema(schema.subspan(header_bytes, length));
    if (!loaded) return std::unexpected(loaded.error());
    for (const reflection::Object* object : *(*loaded)->root->objects())
      state->messages[name_id(object->name()->string_view())] = {loaded->get(), object};
    state->schemas.push_back(std::move(*loaded));
    const std::size_t padded = header_bytes + ((length + 15) & ~std::uint64_t{15});
    schema = schema.subspan(std::min(padded, schema.size()));
  }
  return MessageDecoder(std::move(state));
}

std::string MessageDecoder::name(std::uint32_t message_type) const {
  const auto found = state_->messages.find(message_type);
  return found == state_->messages.end() ? std::string() : found->second.object->name()->str();
}

std::vector<std::string> MessageDecoder::names() const {
  std::vector<std::string> all;
  for (const auto& [id, message] : state_->messages) all.push_back(message.object->name()->str());
  std::ranges::sort(all);
  return all;
}

Result<std::string> MessageDecoder::json(std::uint32_t message_type, std::span<const std::byte> payload) const {
  const auto found = state_->messages.find(message_type);
  if (found == state_->messages.end())
    return fail(ErrorCode::incompatible,
                fmt::format("no message of type {:08x} in the journal's schema", message_type));
  const auto& [schema, object] = found->second;
  const std::string name = object->name()->str();
  const auto refuse = [&] { return fail(ErrorCode::corrupt, fmt::format("the payload is not a {}", name)); };
  if (object->is_struct()) {
    if (payload.size() < static_cast<std::size_t>(object->bytesize())) return refuse();
    return valid_json(struct_json(*schema->root, *object, as_u8(payload)));
  }
  if (payload.empty() || !flatbuffers::Verify(*schema->root, *object, as_u8(payload), payload.size())) return refuse();
  std::string text;
  if (!schema->parser->SetRootType(name.c_str()) || !flatbuffers::GenerateText(*schema->parser, as_u8(payload), &text))
    return fail(ErrorCode::unsupported, fmt::format("a {} that FlatBuffers cannot print", name));
  return valid_json(text);
}

}  // namespace lockstep
