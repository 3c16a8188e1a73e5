// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The hash log: what execution came to, by batch, beside the journal it came from. An append-only file `hashlog` in
/// the data directory: a header, then entries of fixed size, ascending by batch.
///
///      0         16      24       26    28      32          48        56           128
///     +---------+-------+--------+-----+-------+-----------+---------+------------+
///     | checksum| magic | version| flags| endian| cluster id| replica | zero       |   header
///     +---------+-------+--------+-----+-------+-----------+---------+------------+
///     | checksum| kind |flags | index | last seq | time | state root | effects | chain | zero |   entry
///     +---------+------+------+-------+----------+------+------------+---------+-------+------+
///      0         16     20     24      32         40     48           64        80      96     128
///
/// Everything in it can be derived again by executing the journal, so entries are not synced one by one: a torn tail is
/// cut at open, and re-execution at the next start fills it in. A header with a flipped bit is read as it was. What
/// is derived again is compared with what stands there; a difference is reported, never overwritten. An entry may say
/// that its batch was durable when it was written: a journal that ends before that batch has lost data
/// (journal/anchors.hpp). One thread at a time, blocking calls of the Disk only.

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "journal/disk.hpp"
#include "journal/format.hpp"

namespace lockstep {

inline constexpr std::uint64_t hash_log_magic = magic("LKSTHASH");
inline constexpr const char* hash_log_name = "hashlog";

enum class HashKind : std::uint32_t {
  checkpoint = 1,  ///< at a multiple of the checkpoint interval
  closing = 2,     ///< at the last batch executed before a clean stop
  resumed = 3,     ///< of the snapshot that a start went on from: checkpoints before it may be missing
};

/// The journal was durable on this disk up to the entry's batch before the entry was written. Without it that is not
/// known: an older program wrote it, or a node with durability "write" or "none".
inline constexpr std::uint32_t hash_entry_durable = 1;

struct HashLogHeader {
  Digest checksum;  ///< XXH3-128 of [16, 128)
  std::uint64_t magic = hash_log_magic;
  std::uint16_t version = journal_version;
  std::uint16_t flags = 0;
  std::uint32_t endian = endian_marker;
  ClusterId cluster_id;
  std::uint64_t replica_id = 0;
  std::uint8_t zero[72] = {};
};
static_assert(sizeof(HashLogHeader) == 128 && offsetof(HashLogHeader, magic) == 16);
static_assert(offsetof(HashLogHeader, version) == 24 && offsetof(HashLogHeader, endian) == 28);
static_assert(offsetof(HashLogHeader, cluster_id) == 32 && offsetof(HashLogHeader, replica_id) == 48);
static_assert(offsetof(HashLogHeader, zero) == 56);

struct HashEntry {
  Digest checksum;  ///< XXH3-128 of [16, 128)
  HashKind kind = HashKind::checkpoint;
  std::uint32_t flags = 0;     ///< hash_entry_durable; other bits are not looked at
  std::uint64_t index = 0;     ///< N: the batch at whose end the values hold
  std::uint64_t last_seq = 0;  ///< last sequence number up to N
  std::int64_t time_ns = 0;    ///< last stamp up to N
  Digest state_root;
  Digest effects;  ///< chain over all that was emitted up to N
  Digest chain;    ///< the journal's, at N
  std::uint8_t zero[32] = {};
};
static_assert(sizeof(HashEntry) == 128 && offsetof(HashEntry, kind) == 16 && offsetof(HashEntry, flags) == 20);
static_assert(offsetof(HashEntry, index) == 24);
static_assert(offsetof(HashEntry, last_seq) == 32 && offsetof(HashEntry, time_ns) == 40);
static_assert(offsetof(HashEntry, state_root) == 48 && offsetof(HashEntry, effects) == 64);
static_assert(offsetof(HashEntry, chain) == 80 && offsetof(HashEntry, zero) == 96);

/// The appending side, of a running node.
class HashLog {
 public:
  /// Opens or makes the log of a recovered journal that ends at batch `last_index`: entries behind that, and a torn
  /// tail, are cut. One that holds nothing, as a crash while it was made leaves it, is made anew. Refuses another
  /// cluster's log, a newer version, and one whose header is damaged.
  [[nodiscard]] static Result<HashLog> open(Disk& disk, const std::string& directory, const ClusterId& cluster_id,
                                            std::uint64_t replica_id, std::uint64_t last_index);
  HashLog(HashLog&& other) noexcept;
  HashLog& operator=(HashLog&&) = delete;
  ~HashLog();

  /// Adds an entry (its checksum is set here). For a batch that has one already, compares instead: an Error of
  /// ErrorCode::diverged says what differs.
  [[nodiscard]] Result<void> append(HashEntry entry);
  /// The entry of a batch, if there is one.
  [[nodiscard]] Result<std::optional<HashEntry>> find(std::uint64_t index);
  /// The last batch that has an entry; 0 when there is none.
  [[nodiscard]] std::uint64_t last_index() const { return last_index_; }
  /// What open() cut for being torn or damaged.
  [[nodiscard]] std::uint64_t torn_bytes() const { return torn_bytes_; }
  /// Where the entries ended that open() cut for being behind `last_index`; 0 when there were none.
  [[nodiscard]] std::uint64_t cut_index() const { return cut_index_; }
  /// Whether there was a file without header and entries, which open() made anew.
  [[nodiscard]] bool remade() const { return remade_; }
  /// Makes what was appended durable.
  [[nodiscard]] Result<void> sync();

 private:
  HashLog(Disk& disk, FileId file, std::string path) : disk_(&disk), file_(file), path_(std::move(path)) {}
  [[nodiscard]] Result<void> start(const HashLogHeader& header, std::uint64_t last_index);
  [[nodiscard]] Result<void> write_header(HashLogHeader header);

  Disk* disk_;
  FileId file_;
  std::string path_;
  std::uint64_t entries_ = 0;
  std::uint64_t last_index_ = 0;
  std::uint64_t torn_bytes_ = 0;
  std::uint64_t cut_index_ = 0;
  bool remade_ = false;
};

/// All entries of a log, for tools; also of a live one.
struct HashLogContent {
  HashLogHeader header;
  std::vector<HashEntry> entries;
  std::uint64_t torn_bytes = 0;  ///< behind the last good entry
  /// The entry of a batch, if there is one.
  [[nodiscard]] const HashEntry* find(std::uint64_t index) const;
};
/// ErrorCode::incomplete for a file that holds nothing, as a crash while it was made leaves it.
[[nodiscard]] Result<HashLogContent> read_hash_log(Disk& disk, const std::string& directory);
[[nodiscard]] Result<bool> has_hash_log(Disk& disk, const std::string& directory);
/// The entries of a directory's log; none where there is no log, or one that holds nothing. Refuses another's, and one
/// that is damaged before it comes to `last_index`: what it recorded is not passed off as all that there was.
[[nodiscard]] Result<std::vector<HashEntry>> recorded_entries(Disk& disk, const std::string& directory,
                                                              const ClusterId& cluster_id, std::uint64_t replica_id,
                                                              std::uint64_t last_index);
/// Whether HashLog::open() would take the directory's log, if it has one: an Error as from there. Changes nothing.
[[nodiscard]] Result<void> check_hash_log(Disk& disk, const std::string& directory, const ClusterId& cluster_id,
                                          std::uint64_t replica_id);
/// An Error of ErrorCode::incompatible for the log of another cluster or replica.
[[nodiscard]] Result<void> check_owner(const HashLogHeader& header, const std::string& path,
                                       const ClusterId& cluster_id, std::uint64_t replica_id);
/// The last entry that says its batch was durable, whatever is damaged around it; nothing of another's log, or of none.
[[nodiscard]] Result<std::optional<HashEntry>> last_durable_root(Disk& disk, const std::string& directory,
                                                                 const ClusterId& cluster_id, std::uint64_t replica_id);
/// What of a log could not be read, as a line for an operator; empty when there is nothing.
[[nodiscard]] std::string describe_torn(const HashLogContent& content, const std::string& directory);

}  // namespace lockstep
