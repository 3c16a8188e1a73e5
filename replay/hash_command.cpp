// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/hash_log.hpp"
#include "journal/posix_disk.hpp"
#include "journal/snapshots.hpp"
#include "replay/commands.hpp"
#include "replay/hash_compare.hpp"
#include "replay/output.hpp"
#include "replay/progress.hpp"
#include "runtime/admin_server.hpp"
#include "runtime/agents/checkpoint_agent.hpp"
#include "runtime/agents/genesis.hpp"
#include "runtime/hash_page.hpp"
#include "runtime/history_run.hpp"

namespace lockstep {
namespace {

/// Of the journal's first batch; of a pruned one, a snapshot's. Zeroes where neither can be read.
HashOrigin origin_of_directory(Disk& disk, const std::string& directory, const HardState& state) {
  HashOrigin origin{.cluster = state.cluster_id, .application = 0, .genesis = {}};
  std::optional<Genesis> genesis;
  if (state.oldest_segment_id == 1)
    if (const auto first = read_genesis(disk, directory)) genesis = *first;
  const auto snapshots = list_snapshots(disk, directory);
  for (std::size_t i = 0; !genesis && snapshots && i < snapshots->size(); ++i) {
    const auto snapshot = SnapshotReader::open(disk, fmt::format("{}/{}", directory, snapshot_name((*snapshots)[i])));
    if (!snapshot) continue;
    if (const auto kept = decode_genesis(snapshot->genesis())) genesis = *kept;
  }
  if (!genesis) return origin;
  origin.application = genesis->application;
  origin.genesis = genesis_digest(*genesis);
  return origin;
}

Result<HashLogContent> recorded_in(Disk& disk, const std::string& directory, const HardState& state) {
  const auto there = has_hash_log(disk, directory);
  if (!there) return std::unexpected(there.error());
  if (!*there)
    return fail(ErrorCode::incomplete,
                fmt::format("{} has no {}, where a node records what its history came to; starting a node on it, or on "
                            "a copy, derives it again",
                            directory, hash_log_name));
  auto content = read_hash_log(disk, directory);
  if (!content) return content;
  const std::string path = fmt::format("{}/{}", directory, hash_log_name);
  if (auto own = check_owner(content->header, path, state.cluster_id, state.replica_id); !own)
    return std::unexpected(own.error());
  return content;
}

HashSide side_of_directory(const std::string& directory) {
  HashSide side{.name = directory, .checkpoints = {}, .closing = {}, .error = {}, .lost = {}, .origin = {}};
  PosixDisk disk;
  if (const auto there = require_journal(disk, directory); !there) {
    side.error = there.error();
    side.error->message += "; or an admin address as HOST:PORT";
    return side;
  }
  const auto state = look_at_hard_state(disk, directory);
  if (!state) {
    side.error = state.error();
    return side;
  }
  side.origin = origin_of_directory(disk, directory, *state);
  const auto content = recorded_in(disk, directory, *state);
  if (!content) {
    side.error = content.error();
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

Result<HashPage> page_of_node(const io::Endpoint& admin, int timeout_ms) {
  const auto body = admin_get(admin, "/hash", timeout_ms);
  if (!body) return std::unexpected(body.error());
  return parse_hash_page(*body);
}

HashSide side_of_node(const std::string& name, const io::Endpoint& admin, int timeout_ms) {
  HashSide side{.name = name, .checkpoints = {}, .closing = {}, .error = {}, .lost = {}, .origin = {}};
  auto page = page_of_node(admin, timeout_ms);
  if (page) {
    side.checkpoints = std::move(page->checkpoints);
    side.origin = page->origin;
  } else {
    side.error = page.error();
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
    case HashVerdict::Kind::incompatible:
      return "INCOMPATIBLE";
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
  } else if (verdict.reason.empty()) {
    fmt::print("{}\n", verdict_name(verdict.kind));
  } else {
    fmt::print("{}: {}\n", verdict_name(verdict.kind), verdict.reason);
  }
}

void add_checkpoint(nlohmann::json& object, const Checkpoint& at) {
  object["seq"] = at.seq;
  object["root"] = at.root.hex();
  object["effects"] = at.effects.hex();
  object["chain"] = at.chain.hex();
}

void print_json(const std::vector<HashSide>& sides, const HashVerdict& verdict) {
  nlohmann::json out{{"schema", "lockstep.hash.compare/1"},
                     {"verdict", verdict_name(verdict.kind)},
                     {"batch", verdict.batch},
                     {"sides", nlohmann::json::array()}};
  if (verdict.kind == HashVerdict::Kind::diverged)
    out["since"] = {verdict.last_equal_batch, verdict.first_different_batch};
  if (!verdict.reason.empty()) out["reason"] = verdict.reason;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    nlohmann::json side{{"name", sides[i].name}};
    if (sides[i].error) side["error"] = sides[i].error->message;
    if (verdict.at[i]) add_checkpoint(side, *verdict.at[i]);
    out["sides"].push_back(std::move(side));
  }
  print_json_line(out);
}

/// Meant as an address, then, though it is none.
bool names_a_port(const std::string& name) {
  const auto colon = name.rfind(':');
  return colon != std::string::npos && colon + 1 != name.size() && name.find('/') == std::string::npos &&
         name.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

/// What a side is, whichever way it is written: an address, or where a path leads.
std::string identity_of(const std::string& side) {
  if (const auto admin = parse_endpoint(side)) return admin->text();
  std::error_code ignored;
  const auto path = std::filesystem::weakly_canonical(side, ignored);
  return (path.has_filename() ? path : path.parent_path()).string();
}

/// Two names of one side would be equal for certain.
Result<void> check_sides(const std::vector<std::string>& sides) {
  if (sides.size() < 2)
    return fail(ErrorCode::usage,
                "one side is nothing to compare; name two or more. `hash show` prints what one came to");
  std::map<std::string, std::string> named;  // by what it is
  for (const std::string& side : sides) {
    const auto [first, is_new] = named.emplace(identity_of(side), side);
    if (!is_new)
      return fail(ErrorCode::usage,
                  fmt::format("{} is named twice{}: that compares it with itself", first->second,
                              side == first->second ? std::string() : fmt::format(", also as {}", side)));
  }
  return {};
}

/// The checkpoint that is asked for, or the last.
Result<Checkpoint> choose_checkpoint(const HashSide& side, std::optional<std::uint64_t> at_batch) {
  if (!at_batch) return side.checkpoints.back();
  const auto found = std::ranges::find(side.checkpoints, *at_batch, &Checkpoint::batch);
  if (found != side.checkpoints.end()) return *found;
  return fail(ErrorCode::usage,
              fmt::format("batch {} is not a checkpoint of {}; it has them from batch {} to {}", *at_batch, side.name,
                          side.checkpoints.front().batch, side.checkpoints.back().batch));
}

}  // namespace

HashSide load_hash_side(const std::string& name, int timeout_ms) {
  const auto admin = parse_endpoint(name);
  if (!admin && names_a_port(name)) {
    HashSide side{.name = name, .checkpoints = {}, .closing = {}, .error = admin.error(), .lost = {}, .origin = {}};
    return side;
  }
  HashSide side = admin ? side_of_node(name, *admin, timeout_ms) : side_of_directory(name);
  if (!side.error && side.checkpoints.empty())
    side.error = Error{ErrorCode::incomplete, side.lost.empty() ? "it has taken no checkpoint yet" : side.lost};
  return side;
}

ExitCode hash_compare_command(const HashCompareOptions& options) {
  if (const auto two = check_sides(options.sides); !two) return report(two.error());
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
    case HashVerdict::Kind::incompatible:
      return ExitCode::incompatible;
  }
  return ExitCode::incomplete;
}

ExitCode hash_show_command(const HashCompareOptions& options) {
  const HashSide side = load_hash_side(options.sides.front(), options.timeout_ms);
  if (side.error) return report({side.error->code, fmt::format("{}: {}", side.name, side.error->message)});
  const auto at = choose_checkpoint(side, options.at_batch);
  if (!at) return report(at.error());
  if (options.json) {
    nlohmann::json out{{"schema", "lockstep.hash.show/1"}, {"name", side.name}, {"batch", at->batch}};
    add_checkpoint(out, *at);
    if (!side.lost.empty()) out["lost"] = side.lost;
    print_json_line(out);
  } else {
    fmt::print("batch {}  seq {}  root {}  effects {}  chain {}\n", with_separators(at->batch),
               with_separators(at->seq), at->root.short_hex(), at->effects.short_hex(), at->chain.short_hex());
  }
  if (side.lost.empty()) return ExitCode::equal;
  return report({ErrorCode::incomplete, side.lost});
}

}  // namespace lockstep
