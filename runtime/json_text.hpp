// SPDX-License-Identifier: Apache-2.0
#pragma once

/// json_text: a JSON value as one line of valid JSON, whatever its strings hold. Paths and what is said of them come
/// from outside and need not be UTF-8, for which nlohmann's dump() throws: here each byte that is none becomes U+FFFD.
/// Any thread.

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

template <class Json>
[[nodiscard]] std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep
