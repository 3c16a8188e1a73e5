// SPDX-License-Identifier: Apache-2.0
#include "replay/message_decoder.hpp"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>
#include <fmt/format.h>

#include <map>
#include <vector>

#include "actors/lockstep/address.hpp"

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

}  // namespace

struct MessageDecoder::State {
  std::vector<std::byte> bfbs;  ///< the parser and the map below point into it
  std::unique_ptr<flatbuffers::Parser> parser;
  std::map<std::uint32_t, const reflection::Object*> objects;
  [[nodiscard]] const reflection::Schema& schema() const { return *reflection::GetSchema(bfbs.data()); }
};

MessageDecoder::MessageDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
MessageDecoder::MessageDecoder(MessageDecoder&&) noexcept = default;
MessageDecoder& MessageDecoder::operator=(MessageDecoder&&) noexcept = default;
MessageDecoder::~MessageDecoder() = default;

Result<MessageDecoder> MessageDecoder::from_schema(std::span<const std::byte> bfbs) {
  auto state = std::make_unique<State>();
  state->bfbs.assign(bfbs.begin(), bfbs.end());
  flatbuffers::Verifier verifier(as_u8(state->bfbs), state->bfbs.size());
  if (bfbs.empty() || !reflection::VerifySchemaBuffer(verifier))
    return fail(ErrorCode::corrupt, "the journal's schema is not a FlatBuffers binary schema");
  flatbuffers::IDLOptions options;
  options.strict_json = true;
  options.indent_step = -1;  // one line
  options.output_default_scalars_in_json = true;
  options.output_enum_identifiers = true;
  state->parser = std::make_unique<flatbuffers::Parser>(options);
  if (!state->parser->Deserialize(as_u8(state->bfbs), state->bfbs.size()))
    return fail(ErrorCode::incompatible, "the journal's schema was written by a FlatBuffers this build cannot read");
  for (const reflection::Object* object : *state->schema().objects())
    state->objects[name_id(object->name()->string_view())] = object;
  return MessageDecoder(std::move(state));
}

std::string MessageDecoder::name(std::uint32_t message_type) const {
  const auto found = state_->objects.find(message_type);
  return found == state_->objects.end() ? std::string() : found->second->name()->str();
}

Result<std::string> MessageDecoder::json(std::uint32_t message_type, std::span<const std::byte> payload) const {
  const auto found = state_->objects.find(message_type);
  if (found == state_->objects.end())
    return fail(ErrorCode::incompatible,
                fmt::format("no message of type {:08x} in the journal's schema", message_type));
  const reflection::Object& object = *found->second;
  const std::string name = object.name()->str();
  const auto refuse = [&] { return fail(ErrorCode::corrupt, fmt::format("the payload is not a {}", name)); };
  if (object.is_struct()) {
    if (payload.size() < static_cast<std::size_t>(object.bytesize())) return refuse();
    return struct_json(state_->schema(), object, as_u8(payload));
  }
  if (payload.empty() || !flatbuffers::Verify(state_->schema(), object, as_u8(payload), payload.size()))
    return refuse();
  std::string text;
  if (!state_->parser->SetRootType(name.c_str()) || !flatbuffers::GenerateText(*state_->parser, as_u8(payload), &text))
    return refuse();
  return text;
}

}  // namespace lockstep
