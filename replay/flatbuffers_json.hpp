// SPDX-License-Identifier: Apache-2.0
#pragma once

/// valid_json: FlatBuffers' text as JSON that any parser takes. FlatBuffers writes bytes of a string that are not UTF-8
/// as \xNN, which JSON does not know, and numbers that JSON does not have as bare words. Nothing is lost: a string with
/// such bytes becomes the object {"base64": "..."} of all its bytes, and a word becomes a string ("nan", "-inf"). Any
/// thread.

#include <string>
#include <string_view>

namespace lockstep {

/// `text` is what flatbuffers::GenerateText wrote with strict_json and allow_non_utf8.
[[nodiscard]] std::string valid_json(std::string_view text);

}  // namespace lockstep
