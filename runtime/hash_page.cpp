// SPDX-License-Identifier: Apache-2.0
#include "runtime/hash_page.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using nlohmann::json;

constexpr const char* page_schema = "lockstep.hash/1";

bool read_number(const json& object, const char* key, std::uint64_t& into) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return false;
  into = found->get<std::uint64_t>();
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

std::string hash_page(const std::vector<HashPoint>& points) {
  json page{{"schema", page_schema}, {"checkpoints", json::array()}};
  for (const HashPoint& point : points)
    page["checkpoints"].push_back({{"batch", point.batch},
                                   {"seq", point.seq},
                                   {"root", point.root.hex()},
                                   {"effects", point.effects.hex()},
                                   {"chain", point.chain.hex()}});
  return page.dump();
}

Result<std::vector<HashPoint>> parse_hash_page(const std::string& body) {
  const json page = json::parse(body, nullptr, false);
  const auto refuse = [] { return fail(ErrorCode::incomplete, "the answer is not a lockstep.hash/1 page"); };
  if (!page.is_object() || page.value("schema", json()) != page_schema) return refuse();
  const auto checkpoints = page.find("checkpoints");
  if (checkpoints == page.end() || !checkpoints->is_array()) return refuse();
  std::vector<HashPoint> points;
  for (const json& entry : *checkpoints) {
    HashPoint point;
    if (!entry.is_object() || !read_number(entry, "batch", point.batch) || !read_number(entry, "seq", point.seq) ||
        !read_digest(entry, "root", point.root) || !read_digest(entry, "effects", point.effects) ||
        !read_digest(entry, "chain", point.chain))
      return refuse();
    if (!points.empty() && points.back().batch >= point.batch) return refuse();
    points.push_back(point);
  }
  return points;
}

}  // namespace lockstep
