// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/hash_log.hpp"
#include "journal/posix_disk.hpp"
#include "replay/commands.hpp"
#include "replay/hash_compare.hpp"
#include "replay/progress.hpp"
#include "runtime/admin_server.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/hash_page.hpp"

namespace lockstep {
namespace {

HashSide side_of_directory(const std::string& directory) {
  HashSide side{.name = directory, .checkpoints = {}, .closing = {}, .error = {}, .lost = {}};
  PosixDisk disk;
  const auto content = read_hash_log(disk, directory);
  if (!content) {
    side.error = content.error();
    side.error->message += "; a side is a node's data directory, or its admin address as HOST:PORT";
    return side;
  }
  side.lost = describe_torn(*content, directory);
  for (const HashEntry& entry : content->entries) {
    if (entry.kind == HashKind::resumed) {  // before it some may be missing, which would look like a difference
      side.checkpoints.clear();
      side.closing.clear();
    }
    side.checkpoints.push_back(checkpoint_of(entry));
    if (entry.kind == HashKind::closing) side.closing.push_back(entry.index);
  }
  return side;
}

Result<std::vector<Checkpoint>> checkpoints_of_node(const io::Endpoint& admin, int timeout_ms) {
  const auto body = admin_get(admin, "/hash", timeout_ms);
  if (!body) return std::unexpected(body.error());
  return parse_hash_page(*body);
}

HashSide side_of_node(const std::string& name, const io::Endpoint& admin, int timeout_ms) {
  HashSide side{.name = name, .checkpoints = {}, .closing = {}, .error = {}, .lost = {}};
  auto checkpoints = checkpoints_of_node(admin, timeout_ms);
  if (checkpoints) {
    side.checkpoints = std::move(*checkpoints);
  } else {
    side.error = checkpoints.error();
    std::string& message = side.error->message;
    if (const std::string named = admin.text() + ": "; message.starts_with(named)) message.erase(0, named.size());
  }
  return side;
}

std::string_view verdict_name(HashVerdict::Kind kind) {
  switch (kind) {
    case HashVerdict::Kind::equal:
      return "equal";
    case HashVerdict::Kind::diverged:
      return "DIVERGED";
    case HashVerdict::Kind::incomplete:
      return "INCOMPLETE";
  }
  return "?";
}

void print_text(const std::vector<HashSide>& sides, const HashVerdict& verdict) {
  if (verdict.batch != 0) fmt::print("at batch {}, which all that answer have\n", with_separators(verdict.batch));
  std::size_t width = 0;
  for (const HashSide& side : sides) width = std::max(width, side.name.size());
  std::size_t answering = 0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].error) {
      fmt::print("{:<{}}  not compared: {}\n", sides[i].name, width, sides[i].error->message);
      continue;
    }
    if (!verdict.at[i]) continue;
    const Checkpoint& at = *verdict.at[i];
    const std::size_t group = answering < verdict.group.size() ? verdict.group[answering] : 0;
    ++answering;
    const std::uint64_t ahead = sides[i].checkpoints.back().batch - at.batch;
    fmt::print("{:<{}}  seq {}  root {}  effects {}  chain {}{}{}\n", sides[i].name, width, with_separators(at.seq),
               at.root.short_hex(), at.effects.short_hex(), at.chain.short_hex(),
               ahead == 0 ? "" : fmt::format("  ({} batches ahead)", ahead), group == 0 ? "" : "  DIFFERS");
  }
  if (verdict.kind == HashVerdict::Kind::diverged) {
    fmt::print("DIVERGED: equal up to batch {}, different at batch {}\n", with_separators(verdict.last_equal_batch),
               with_separators(verdict.first_different_batch));
  } else if (verdict.kind == HashVerdict::Kind::incomplete) {
    fmt::print("INCOMPLETE: {}\n", verdict.reason);
  } else {
    fmt::print("{}\n", sides.size() == 1 ? "one side, nothing to compare it with" : "equal");
  }
}

void print_json(const std::vector<HashSide>& sides, const HashVerdict& verdict) {
  nlohmann::json out{{"schema", "lockstep.hash.compare/1"},
                     {"verdict", verdict_name(verdict.kind)},
                     {"batch", verdict.batch},
                     {"sides", nlohmann::json::array()}};
  if (verdict.kind == HashVerdict::Kind::diverged)
    out["since"] = {verdict.last_equal_batch, verdict.first_different_batch};
  if (verdict.kind == HashVerdict::Kind::incomplete) out["reason"] = verdict.reason;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    nlohmann::json side{{"name", sides[i].name}};
    if (sides[i].error) side["error"] = sides[i].error->message;
    if (verdict.at[i]) {
      side["seq"] = verdict.at[i]->seq;
      side["root"] = verdict.at[i]->root.hex();
      side["effects"] = verdict.at[i]->effects.hex();
      side["chain"] = verdict.at[i]->chain.hex();
    }
    out["sides"].push_back(std::move(side));
  }
  fmt::print("{}\n", out.dump());
}

}  // namespace

HashSide load_hash_side(const std::string& name, int timeout_ms) {
  const auto admin = parse_endpoint(name);
  HashSide side = admin ? side_of_node(name, *admin, timeout_ms) : side_of_directory(name);
  if (!side.error && side.checkpoints.empty())
    side.error = Error{ErrorCode::incomplete, side.lost.empty() ? "it has taken no checkpoint yet" : side.lost};
  return side;
}

ExitCode hash_compare_command(const HashCompareOptions& options) {
  std::vector<HashSide> sides;
  sides.reserve(options.sides.size());
  for (const std::string& name : options.sides) sides.push_back(load_hash_side(name, options.timeout_ms));
  const HashVerdict verdict = compare_hashes(sides, options.at_batch);
  if (options.json) {
    print_json(sides, verdict);
  } else {
    print_text(sides, verdict);
  }
  switch (verdict.kind) {
    case HashVerdict::Kind::equal:
      return ExitCode::equal;
    case HashVerdict::Kind::diverged:
      return ExitCode::different;
    case HashVerdict::Kind::incomplete:
      return ExitCode::incomplete;
  }
  return ExitCode::incomplete;
}

}  // namespace lockstep
