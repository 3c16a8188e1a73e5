// SPDX-License-Identifier: Apache-2.0
#pragma once

/// NodeConfig: everything `serve` can be told, with its defaults; the one list that the TOML file, --dump-config and
/// the node share. What the state depends on stands under [genesis]: it is read only when a data directory is new,
/// travels in the journal's first record, and is ignored when a directory already has a history.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/io/reactor.hpp"

namespace lockstep {

/// What "committed" means on one node: synced to disk, written to the kernel's device queue, or in memory.
enum class Durability : std::uint8_t { fsync, write, none };

[[nodiscard]] std::string_view durability_name(Durability durability);

struct GenesisOptions {
  std::uint32_t shards = 64;                 ///< order is decided by shard, so this is for ever
  std::uint32_t max_rounds = 64;             ///< rounds of actor-to-actor messages in one batch
  std::uint32_t checkpoint_interval = 1024;  ///< sequence numbers between state roots
  std::uint64_t seed = 0;                    ///< of random(); 0 draws one
};

struct NodeConfig {
  std::string data;                       ///< data directory
  std::string listen = "127.0.0.1:7070";  ///< native frames
  std::string resp;                       ///< RESP2; empty: not served
  std::string admin = "127.0.0.1:0";      ///< /metrics, /status, /hash; empty: not served
  Durability durability = Durability::fsync;
  io::Backend io = io::Backend::automatic;

  std::uint32_t executors = 0;                ///< 0: one per core left after the perimeter, at least 1
  std::uint32_t perimeters = 1;               ///< cores that face clients; the first is also the sequencer's
  std::string threads = "auto";               ///< auto | one | dedicated
  std::int64_t spin_us = -1;                  ///< polling before sleep; -1: 0 when threads outnumber cores, else 20
  bool pin = false;                           ///< pin each thread to a CPU of its own, in order
  std::uint32_t handler_timeout_ms = 10'000;  ///< a handler that takes longer ends the process; 0: it may take for ever

  std::uint32_t max_connections = 4096;
  std::uint32_t max_frame_bytes = 256 * 1024;  ///< of one request, header excluded
  std::uint32_t output_limit_bytes = 8 << 20;  ///< unread replies before a client is cut off
  std::uint32_t frame_timeout_ms = 30'000;     ///< from a frame's first byte to its last; also for a hello
  std::uint32_t shutdown_timeout_ms = 5000;    ///< from SIGTERM until the process is gone

  std::uint32_t batch_slabs = 16;
  std::uint32_t max_batch_bytes = 1 << 20;
  std::uint32_t seal_depth = 2;  ///< sealed batches awaiting commit before an open one waits for more records
  std::uint64_t segment_bytes = 64 << 20;
  std::uint32_t journal_inflight = 8;  ///< blocks in flight

  std::string actor_log;  ///< file for the lines of Context::log(); empty: they go nowhere

  std::uint64_t snapshot_every_bytes = 1 << 30;  ///< of journal between two snapshots; 0: only when asked
  std::uint32_t snapshots_kept = 2;
  std::uint64_t snapshot_quota_bytes = 64 << 20;   ///< for pages that change while one is taken
  std::uint64_t journal_kept_bytes = 16ULL << 30;  ///< of journal, beyond what the kept snapshots need
  std::uint64_t journal_kept_hours = 0;            ///< 0: of any age

  GenesisOptions genesis;
};

/// Reads a TOML file over `config`. Unknown keys, wrong types and values out of range are refused with file, line, the
/// key, and what it may be.
[[nodiscard]] Result<void> load_config(const std::string& path, NodeConfig& config);

/// As load_config, from text; `name` stands for the file in errors.
[[nodiscard]] Result<void> parse_config(std::string_view text, const std::string& name, NodeConfig& config);

/// Gives one key ("threads.executors"; it must be known) the value that `flag` has on the command line: `text` as it is
/// and whole, be it a word or a decimal number. Refuses one that is not what the key may be.
[[nodiscard]] Result<void> set_config(std::string_view key, const std::string& text, std::string_view flag,
                                      NodeConfig& config);

/// What no single key can be checked for: values that must fit each other. Errors name the keys.
[[nodiscard]] Result<void> validate(const NodeConfig& config);

/// The configuration as a TOML file with a comment on each key; parse_config() of it gives `config` back.
[[nodiscard]] std::string dump_config(const NodeConfig& config);

}  // namespace lockstep
