// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "journal/directory.hpp"
#include "journal/posix_disk.hpp"
#include "journal/snapshot_restore.hpp"
#include "journal/snapshots.hpp"
#include "replay/commands.hpp"
#include "replay/output.hpp"
#include "replay/progress.hpp"
#include "runtime/admin_server.hpp"

namespace lockstep {
namespace {

constexpr const char* schema = "lockstep.snapshot/1";

/// A snapshot's file as list and verify show it.
struct Found {
  std::string path;
  std::optional<SnapshotHeader> header;
  std::optional<Error> error;
};

Found look_at(Disk& disk, const std::string& path) {
  auto reader = SnapshotReader::open(disk, path);
  if (!reader) return {path, std::nullopt, reader.error()};
  return {path, reader->header(), std::nullopt};
}

Found verify(Disk& disk, const std::string& path) {
  auto reader = SnapshotReader::open(disk, path);
  if (!reader) return {path, std::nullopt, reader.error()};
  Found found{path, reader->header(), std::nullopt};
  Progress progress("verifying", "bytes", found.header->image_bytes);
  SnapshotVerifier verifier(std::move(*reader));
  for (bool done = false; !done && !found.error; progress.update(verifier.read_bytes())) {
    const auto step = verifier.step();
    if (step) done = *step;
    if (!step) found.error = step.error();
  }
  progress.finish();
  return found;
}

/// The snapshots of a directory, newest first, or the one file.
Result<std::vector<std::string>> paths_of(Disk& disk, const std::string& at) {
  if (at.ends_with(".snp")) return std::vector<std::string>{at};
  const auto found = list_snapshots(disk, at);
  if (!found)
    return fail(found.error().code, fmt::format("{}; name a node's data directory, or the file of a snapshot (*.snp)",
                                                found.error().message));
  std::vector<std::string> paths;
  for (const std::uint64_t index : *found) paths.push_back(at + "/" + snapshot_name(index));
  return paths;
}

nlohmann::json json_of(const Found& found) {
  nlohmann::json out{{"file", found.path}};
  if (found.header)
    out.update({{"batch", found.header->index},
                {"seq", found.header->seq},
                {"time_ns", found.header->time_ns},
                {"bytes", found.header->total_bytes},
                {"shards", found.header->shard_count},
                {"arenas", found.header->arena_count},
                {"root", found.header->root.hex()},
                {"effects", found.header->effects.hex()},
                {"chain", found.header->chain.hex()}});
  if (found.error) out["error"] = found.error->message;
  return out;
}

void print(const Found& found, const char* verdict) {
  if (found.error) {
    fmt::print("{}\n", found.error->message);
    return;
  }
  const SnapshotHeader& header = *found.header;
  fmt::print("batch {}  seq {}  root {}  chain {}  {} arenas  {} bytes  {}\n", with_separators(header.index),
             with_separators(header.seq), header.root.short_hex(), header.chain.short_hex(),
             with_separators(header.arena_count), with_separators(header.total_bytes), verdict);
}

ExitCode show(const SnapshotOptions& options, Found (*look)(Disk&, const std::string&), const char* verdict) {
  PosixDisk disk;
  const auto paths = paths_of(disk, options.at);
  if (!paths) return report(paths.error());
  if (paths->empty())
    if (auto there = require_journal(disk, options.at); !there) return report(there.error());
  nlohmann::json all{{"schema", schema}, {"at", options.at}, {"snapshots", nlohmann::json::array()}};
  ExitCode code = paths->empty() ? ExitCode::incomplete : ExitCode::equal;
  for (const std::string& path : *paths) {
    const Found found = look(disk, path);
    if (found.error) code = exit_code_of(found.error->code);
    if (!options.json) print(found, verdict);
    all["snapshots"].push_back(json_of(found));
  }
  if (options.json) print_json_line(all);
  if (paths->empty() && !options.json) fmt::print("{}: no snapshots\n", options.at);
  return code;
}

Result<nlohmann::json> parse_page(const Result<std::string>& body, const std::string& at) {
  if (!body) return std::unexpected(body.error());
  auto page = nlohmann::json::parse(*body, nullptr, false);
  if (!page.is_object() || page.value("schema", "") != schema)
    return fail(ErrorCode::incomplete, fmt::format("{}: the answer is not that of a lockstep node", at));
  return page;
}

/// Asks, then looks until the wish is done with or the time is up.
Result<nlohmann::json> take(const SnapshotTakeOptions& options) {
  const auto at = parse_endpoint(options.admin);
  if (!at) return std::unexpected(at.error());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.timeout_ms);
  auto page = parse_page(admin_post(*at, "/snapshot", options.timeout_ms), options.admin);
  if (!page) return page;
  if (!page->contains("asked")) return fail(ErrorCode::unsupported, page->value("failure", ""));
  const auto wish = page->at("asked").get<std::uint64_t>();
  while (page->value("done", std::uint64_t{0}) < wish) {
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::incomplete,
                  fmt::format("{}: no snapshot within {} ms; it will be taken at the next checkpoint, and on an idle "
                              "node that is with the next messages",
                              options.admin, options.timeout_ms));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    page = parse_page(admin_get(*at, "/snapshot", options.timeout_ms), options.admin);
    if (!page) return page;
  }
  if (const std::string failure = page->value("failure", ""); !failure.empty())
    return fail(ErrorCode::full, fmt::format("{}: the snapshot was given up: {}", options.admin, failure));
  return page;
}

}  // namespace

ExitCode snapshot_list_command(const SnapshotOptions& options) {
  return show(options, look_at, "not verified");
}

ExitCode snapshot_verify_command(const SnapshotOptions& options) {
  return show(options, verify, "ok");
}

ExitCode snapshot_take_command(const SnapshotTakeOptions& options) {
  const auto page = take(options);
  if (!page) return report(page.error());
  const std::string data = page->value("data", "");
  const std::string path = data + "/" + snapshot_name(page->value("batch", std::uint64_t{0}));
  if (options.json) {
    print_json_line({{"schema", schema}, {"batch", page->at("batch")}, {"file", path}});
  } else {
    fmt::print("{}\n", path);
  }
  return ExitCode::equal;
}

ExitCode snapshot_restore_command(const SnapshotRestoreOptions& options) {
  PosixDisk disk;
  if (disk.list(options.snapshot))
    return report({ErrorCode::usage,
                   fmt::format("{} is a directory; name the file of a snapshot (*.snp) in it", options.snapshot)});
  SnapshotRestore restore{options.snapshot, options.data, std::nullopt};
  if (!options.journal.empty()) restore.journal = options.journal;
  const auto header = restore_directory(disk, restore);
  if (!header) return report(header.error());
  if (options.json) {
    print_json_line({{"schema", schema},
                     {"data", options.data},
                     {"batch", header->index},
                     {"seq", header->seq},
                     {"root", header->root.hex()},
                     {"chain", header->chain.hex()}});
  } else {
    fmt::print("{}: batch {}, seq {}, root {}, chain {}{}\n", options.data, with_separators(header->index),
               with_separators(header->seq), header->root.short_hex(), header->chain.short_hex(),
               restore.journal ? ", and the journal behind it" : "");
  }
  return ExitCode::equal;
}

}  // namespace lockstep
