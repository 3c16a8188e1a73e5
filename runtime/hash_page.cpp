// SPDX-License-Identifier: Apache-2.0
#include "runtime/hash_page.hpp"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "runtime/json_text.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr const char* page_schema = "lockstep.hash/2";

template <class Number>
bool read_number(const json& object, const char* key, Number& into) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  if (std::is_unsigned_v<Number> && !found->is_number_unsigned()) return false;
  into = found->get<Number>();
  return true;
}

bool read_digest(const json& object, const char* key, Digest& into) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  const auto digest = Digest::from_hex(found->get_ref<const std::string&>());
  if (digest) into = *digest;
  return digest.has_value();
}

}  // namespace

std::string print_hash_page(const HashPage& page) {
  json out{{"schema", page_schema},
           {"cluster", page.origin.cluster.hex()},
           {"application", page.origin.application},
           {"genesis", page.origin.genesis.hex()},
           {"checkpoints", json::array()}};
  for (const Checkpoint& checkpoint : page.checkpoints)
    out["checkpoints"].push_back({{"batch", checkpoint.batch},
                                  {"seq", checkpoint.seq},
                                  {"time_ns", checkpoint.time_ns},
                                  {"root", checkpoint.root.hex()},
                                  {"effects", checkpoint.effects.hex()},
                                  {"chain", checkpoint.chain.hex()}});
  return json_text(out);
}

Result<HashPage> parse_hash_page(const std::string& body) {
  const json page = json::parse(body, nullptr, false);
  const auto refuse = [] { return fail(ErrorCode::incomplete, "the answer is not a lockstep.hash/2 page"); };
  if (!page.is_object() || page.value("schema", json()) != page_schema) return refuse();
  const auto listed = page.find("checkpoints");
  if (listed == page.end() || !listed->is_array()) return refuse();
  HashPage read;
  if (!read_digest(page, "cluster", read.origin.cluster) || !read_digest(page, "genesis", read.origin.genesis) ||
      !read_number(page, "application", read.origin.application))
    return refuse();
  std::vector<Checkpoint>& checkpoints = read.checkpoints;
  for (const json& entry : *listed) {
    Checkpoint checkpoint;
    if (!entry.is_object() || !read_number(entry, "batch", checkpoint.batch) ||
        !read_number(entry, "seq", checkpoint.seq) || !read_number(entry, "time_ns", checkpoint.time_ns) ||
        !read_digest(entry, "root", checkpoint.root) || !read_digest(entry, "effects", checkpoint.effects) ||
        !read_digest(entry, "chain", checkpoint.chain))
      return refuse();
    if (!checkpoints.empty() && checkpoints.back().batch >= checkpoint.batch) return refuse();
    checkpoints.push_back(checkpoint);
  }
  return read;
}

}  // namespace lockstep
