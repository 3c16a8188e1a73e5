// SPDX-License-Identifier: Apache-2.0
#include "journal/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "journal/directory.hpp"
#include "journal/segment_scan.hpp"
#include "journal/spares.hpp"

namespace lockstep {
namespace {

/// One pass over a directory, from listing to the single verdict, and then the changes.
class Recovery {
 public:
  Recovery(Disk& disk, const RecoveryOptions& options, HardStateFile hard_state)
      : disk_(disk), options_(options), hard_state_(std::move(hard_state)), segment_(disk) {}

  Result<void> judge();
  Result<void> settle();

  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  [[nodiscard]] Recovered take(DirectoryLock lock);

 private:
  [[nodiscard]] std::string path_of(std::uint64_t segment) const {
    return options_.directory + "/" + segment_name(segment);
  }
  [[nodiscard]] std::uint64_t last_used_id() const {
    return used_ == 0 ? hard_state_.value().oldest_segment_id - 1 : files_.segments[used_ - 1];
  }
  Result<void> check_identity() const;
  Result<void> look_at_hash_log();
  Result<void> list_segments();
  Result<void> settle_writes();
  Result<void> find_last_used();
  Result<void> check_headers();
  void check_ids();
  void judge_spares();
  void check_anchors();
  Result<void> keep_bad_copies() const;
  Result<void> scan_all();
  [[nodiscard]] std::string what_the_hash_log_adds(const Finding& corrupt) const;
  Result<void> one_verdict();
  Result<void> keep_damage();
  Result<void> enter_limbo();
  Result<void> drop_spares();
  Result<void> seal_last();

  Disk& disk_;
  const RecoveryOptions& options_;
  HardStateFile hard_state_;
  Known known_;
  BlockStream segment_;
  JournalFiles files_;
  std::vector<std::uint64_t> pruned_;  ///< segments below the oldest, left by a crash
  std::size_t used_ = 0;               ///< segments up to the last one with blocks
  SegmentHeader last_header_;          ///< of that one
  HistoryPosition position_;
  std::vector<SegmentStart> starts_;
  std::vector<std::uint64_t> schema_ids_;
  SegmentScan last_;  ///< of the last used segment
  std::vector<Finding> findings_;
  std::vector<SpareFlaw> flaws_;  ///< of segments behind the last used one
  bool damaged_ = false;          ///< what was acknowledged
  bool has_skips_ = false;
  std::vector<Hole> holes_;
};

Result<void> Recovery::check_identity() const {
  const HardState& state = hard_state_.value();
  if (options_.cluster_id && *options_.cluster_id != state.cluster_id)
    return fail(ErrorCode::incompatible,
                fmt::format("{} belongs to cluster {}, not {}; use that cluster's directory", options_.directory,
                            state.cluster_id.hex(), options_.cluster_id->hex()));
  if (options_.replica_id && *options_.replica_id != state.replica_id)
    return fail(ErrorCode::incompatible, fmt::format("{} belongs to replica {}, not {}; use that replica's directory",
                                                     options_.directory, state.replica_id, *options_.replica_id));
  return {};
}

/// What it says was durable must be there.
Result<void> Recovery::look_at_hash_log() {
  auto known = look_at_known(disk_, options_.directory, hard_state_.value());
  if (!known) return std::unexpected(known.error());
  known_ = *known;
  return {};
}

Result<void> Recovery::list_segments() {
  auto files = list_journal(disk_, options_.directory);
  if (!files) return std::unexpected(files.error());
  files_ = std::move(*files);
  const auto oldest = std::ranges::lower_bound(files_.segments, hard_state_.value().oldest_segment_id);
  pruned_.assign(files_.segments.begin(), oldest);
  files_.segments.erase(files_.segments.begin(), oldest);
  return {};
}

/// Segments that are not there: among the used ones a loss, among those made ahead perhaps none.
void Recovery::check_ids() {
  const HardState& state = hard_state_.value();
  const std::uint64_t last_used = last_used_id();
  for (std::uint64_t id = state.oldest_segment_id; id <= std::max(last_used, state.newest_segment_id); ++id) {
    if (std::ranges::binary_search(files_.segments, id)) continue;
    const SpareFlaw missing = missing_spare(options_.directory, id, state);
    if (id > last_used)
      flaws_.push_back(missing);
    else
      findings_.push_back({missing.file, 0, 0, 0, TailClass::corrupt, missing.cause});
  }
}

Result<void> Recovery::settle_writes() {
  for (const std::uint64_t id : files_.segments) {
    auto file = disk_.open(path_of(id), OpenMode::read);
    if (!file) return std::unexpected(file.error());
    auto synced = lock_with_patience(
        disk_, *file,
        fmt::format("{} still has a write of a process that ended in flight; start again when its disk answers",
                    path_of(id)));
    if (synced) synced = disk_.sync(*file);
    disk_.close(*file);
    if (!synced) return synced;
  }
  return disk_.sync_directory(options_.directory);
}

Result<void> Recovery::find_last_used() {
  const auto used = count_used(disk_, options_.directory, files_.segments, known_.state);
  if (!used) return std::unexpected(used.error());
  used_ = *used;
  if (used_ == 0) return {};
  if (auto opened = segment_.open(path_of(files_.segments[used_ - 1])); !opened) return opened;
  last_header_ = segment_.header();
  return {};
}

Result<void> Recovery::check_headers() {
  const HardState& state = hard_state_.value();
  std::optional<SegmentHeader> previous;
  for (std::size_t i = 0; i < files_.segments.size(); ++i) {
    const std::uint64_t id = files_.segments[i];
    if (auto opened = segment_.open(path_of(id)); !opened) return opened;
    const SegmentHeader& header = segment_.header();
    const auto& defect = segment_.header_defect();
    if (auto error = foreign(segment_, state)) return std::unexpected(std::move(*error));
    std::string evidence;
    if (defect) evidence = defect->cause;
    if (!defect && header.segment_id != id) evidence = fmt::format("its header says segment {}", header.segment_id);
    if (!defect && previous && previous->segment_id + 1 == id && header.prev_nonce != previous->nonce)
      evidence = "it does not follow from the segment before";
    previous = segment_.header_known() ? std::optional(header) : std::nullopt;
    if (i < used_) {
      if (!evidence.empty()) findings_.push_back({path_of(id), 0, 0, 0, TailClass::corrupt, evidence});
    } else if (const auto flaw = flaw_of_spare(segment_, id, state)) {
      flaws_.push_back(*flaw);
    } else if (!evidence.empty()) {
      flaws_.push_back({id, path_of(id), evidence, TailClass::corrupt});
    }
  }
  return {};
}

Result<void> Recovery::scan_all() {
  const HardState& state = hard_state_.value();
  ScanContext context;
  context.durable_index = known_durable(known_.state);
  context.durable_source = known_.durable_source;
  context.anchors = known_.anchors;
  Trail trail;
  trail.start({});
  if ((state.flags & hard_state_has_truncates) != 0) context.trail = &trail;
  const bool pruned = state.oldest_segment_id > 1;
  if (!pruned) context.before = HistoryPosition{};
  for (std::size_t i = 0; i < used_; ++i) {
    context.begins_history = pruned && i == 0;
    if (auto opened = segment_.open(path_of(files_.segments[i])); !opened) return opened;
    context.later_segment_has_blocks = i + 1 < used_;
    auto scan = scan_segment(segment_, context);
    if (!scan) return std::unexpected(scan.error());
    if (scan->finding) findings_.push_back(*scan->finding);
    schema_ids_.insert(schema_ids_.end(), scan->schema_ids.begin(), scan->schema_ids.end());
    has_skips_ = has_skips_ || scan->has_skips;
    starts_.push_back({files_.segments[i], scan->before.index + 1});
    context.before = scan->position;
    // Behind damage nothing can be judged by what is before it.
    if (scan->tail == TailClass::corrupt) context.before.reset();
    last_ = std::move(*scan);
  }
  if (used_ > 0) position_ = last_.position;
  return {};
}

void Recovery::judge_spares() {
  const bool unsealed = used_ > 0 && !last_.sealed && (last_.tail == TailClass::clean || last_.tail == TailClass::torn);
  std::ranges::move(lockstep::judge_spares(std::move(flaws_), known_.state, {last_used_id(), position_, unsealed}),
                    std::back_inserter(findings_));
}

/// Of a history that nothing contradicts from within.
void Recovery::check_anchors() {
  if (std::ranges::find(findings_, TailClass::corrupt, &Finding::tail) != findings_.end()) return;
  const std::uint64_t first = starts_.empty() ? 1 : starts_.front().first_index;
  std::ranges::copy(contradictions(known_.anchors, hard_state_.value(), first, position_, options_.directory),
                    std::back_inserter(findings_));
}

/// The way out for who has no other copy: it gives up batches that were acknowledged, so no option alone does it.
std::string Recovery::what_the_hash_log_adds(const Finding& corrupt) const {
  if (corrupt.evidence.find("the hash log") == std::string::npos) return {};
  return fmt::format(
      "; {}/{} shows that batch {} was durable, and this history ends before it, or is another: who has "
      "no other copy, and gives up the batches from {} on, moves that file away and says 'lockstep "
      "journal repair {} --accept-tail', if nothing else shows it",
      options_.directory, hash_log_name, known_.anchors.back().index, corrupt.index, options_.directory);
}

Result<void> Recovery::one_verdict() {
  const auto is = [&](TailClass wanted) {
    return std::ranges::find(findings_, wanted, [](const Finding& finding) { return finding.tail; });
  };
  const auto corrupt = is(TailClass::corrupt);
  damaged_ = corrupt != findings_.end();
  if (damaged_ && !options_.cluster) {
    // The operator's word comes by way of a repair, which has nothing more to offer.
    const std::string repair = options_.accept_tail
                                   ? std::string()
                                   : fmt::format(
                                         "run 'lockstep journal repair {}', which needs no other data where no "
                                         "batch is lost; else ",
                                         options_.directory);
    return fail(ErrorCode::corrupt,
                fmt::format("{}; nothing was changed; {}restore this directory from a backup or from another replica{}",
                            describe(*corrupt), repair, what_the_hash_log_adds(*corrupt)));
  }
  const auto found = is(TailClass::ambiguous);
  if (found == findings_.end() || options_.accept_tail || options_.cluster) return {};
  return fail(ErrorCode::ambiguous,
              fmt::format("{}; it cannot be told whether batch {} was ever acknowledged; nothing was changed; restore "
                          "this directory, or cut what is damaged by 'lockstep journal repair {} --accept-tail'",
                          describe(*found), found->index, options_.directory));
}

Result<void> Recovery::judge() {
  if (auto checked = check_identity(); !checked) return checked;
  if (auto looked = look_at_hash_log(); !looked) return looked;
  if (auto listed = list_segments(); !listed) return listed;
  if (auto synced = settle_writes(); !synced) return synced;
  if (auto found = find_last_used(); !found) return found;
  if (auto checked = check_headers(); !checked) return checked;
  check_ids();
  // A used segment that is missing or foreign makes the rest meaningless.
  if (!findings_.empty()) return one_verdict();
  if (auto scanned = scan_all(); !scanned) return scanned;
  judge_spares();
  check_anchors();
  return one_verdict();
}

/// Of what an operator, or a cluster, has given up.
Result<void> Recovery::keep_bad_copies() const {
  for (const Finding& finding : findings_) {
    if (finding.tail != TailClass::ambiguous) continue;
    const auto id = segment_id_of(std::string_view(finding.file).substr(options_.directory.size() + 1));
    if (!id) continue;
    if (auto copied = keep_bad_copy(disk_, options_.directory, *id); !copied) return copied;
  }
  return {};
}

/// Segments made ahead belong to the process that made them; none was used. They go before the last segment is sealed:
/// behind a SEAL a damaged one could not be told from one that was used. The hard state forgets them first, and the
/// highest goes first, and durably: a crash in between must not leave a gap.
Result<void> Recovery::drop_spares() {
  HardState next = hard_state_.value();
  ++next.incarnation;
  next.newest_segment_id = last_used_id();
  // One restored from before the first skip would let the messages be executed.
  if (has_skips_) next.flags |= hard_state_has_skips;
  if (auto stored = hard_state_.store(next); !stored) return stored;
  for (std::size_t i = files_.segments.size(); i > used_; --i) {
    if (auto removed = disk_.remove(path_of(files_.segments[i - 1])); !removed) return removed;
    if (auto synced = disk_.sync_directory(options_.directory); !synced) return synced;
  }
  return {};
}

Result<void> Recovery::seal_last() {
  if (used_ == 0 || last_.sealed) return {};
  const std::uint64_t id = files_.segments[used_ - 1];
  auto file = disk_.open(path_of(id), OpenMode::write_direct);
  if (!file) return std::unexpected(file.error());
  BlockHeader header = control_header(BlockType::seal, last_header_, position_);
  const auto payload = last_.seal.payload();
  header.payload_digest = xxh3_128(payload);
  header.file_offset = last_.end_offset;
  header.block_no = last_.next_block_no;
  header.durable_block = last_.next_block_no - 1;
  header.prev_block = last_.last_checksum;
  AlignedBuffer block(seal_block_bytes);
  build_block(header, payload, block.span());
  Result<void> result;
  if (last_.tail != TailClass::clean) {
    // Zeros first: a SEAL torn over the remains of a block would look like damage, over zeros it looks torn.
    const AlignedBuffer zeros(seal_block_bytes);
    result = disk_.write(*file, last_.end_offset, zeros.span());
    if (result) result = disk_.sync(*file);
  }
  // Durable before what is behind it goes; the cut area is never written again.
  if (result) result = disk_.write(*file, last_.end_offset, block.span());
  if (result) result = disk_.sync(*file);
  if (result) result = disk_.truncate(*file, last_.end_offset + seal_block_bytes);
  if (result) result = disk_.sync(*file);
  disk_.close(*file);
  return result;
}

/// Changes nothing but the hard state: the damage is what will be repaired.
Result<void> Recovery::keep_damage() {
  auto holes = find_holes(disk_, options_.directory);
  if (!holes) return std::unexpected(holes.error());
  if (holes->empty()) return fail(ErrorCode::corrupt, describe(findings_.front()));  // a contradiction: nothing lacks
  holes_ = std::move(*holes);
  position_ = holes_.front().before;
  HardState next = hard_state_.value();
  ++next.incarnation;
  next.recovery_state = RecoveryState::repairing;
  for (const Hole& hole : holes_) next.limbo_index = std::max(next.limbo_index, hole.last_index);
  return hard_state_.store(next);
}

/// Before the tail is cut: a crash in between must not forget that it was there.
Result<void> Recovery::enter_limbo() {
  const auto is_ambiguous = [](const Finding& finding) { return finding.tail == TailClass::ambiguous; };
  const auto ambiguous = static_cast<std::uint64_t>(std::ranges::count_if(findings_, is_ambiguous));
  if (!options_.cluster || ambiguous == 0) return {};
  HardState next = hard_state_.value();
  if (next.recovery_state == RecoveryState::normal) next.recovery_state = RecoveryState::limbo;
  // Of a tail, no more is gone than was in flight; of a whole segment, no more than it has room for.
  const bool tail_alone = ambiguous == 1 && last_.tail == TailClass::ambiguous;
  const std::uint64_t gone =
      tail_alone ? last_header_.max_inflight : ambiguous * (max_segment_bytes / disk_block_bytes);
  next.limbo_index = std::max(next.limbo_index, position_.index + gone);
  return hard_state_.store(next);
}

Result<void> Recovery::settle() {
  segment_.close();
  if (damaged_) return keep_damage();
  for (const std::string& name : files_.temporary)
    if (auto removed = disk_.remove(options_.directory + "/" + name); !removed) return removed;
  if (auto entered = enter_limbo(); !entered) return entered;
  if (auto kept = keep_bad_copies(); !kept) return kept;
  if (auto dropped = drop_spares(); !dropped) return dropped;
  if (auto sealed = seal_last(); !sealed) return sealed;
  for (const std::uint64_t id : pruned_)
    if (auto removed = disk_.remove(path_of(id)); !removed) return removed;
  return disk_.sync_directory(options_.directory);
}

Recovered Recovery::take(DirectoryLock lock) {
  Recovered result{std::move(lock), std::move(hard_state_), options_.directory, false, position_, 0, 0, {}, {}, {}, 0};
  result.last_segment_id = result.hard_state.value().newest_segment_id;
  result.last_nonce = used_ == 0 ? 0 : last_header_.nonce;
  std::ranges::sort(schema_ids_);
  const auto repeated = std::ranges::unique(schema_ids_);
  schema_ids_.erase(repeated.begin(), repeated.end());
  result.schema_ids = schema_ids_;
  result.segments = std::move(starts_);
  result.holes = std::move(holes_);
  return result;
}

Result<void> initialise(Disk& disk, const RecoveryOptions& options, const JournalFiles& files, std::uint64_t seed) {
  if (files.half_made()) return require_journal(disk, options.directory);
  for (const std::string& name : files.temporary)
    if (auto removed = disk.remove(options.directory + "/" + name); !removed) return removed;
  HardState first;
  first.cluster_id = options.cluster_id.value_or(xxh3_128(object_bytes(seed), 1));
  first.replica_id = options.replica_id.value_or(0);
  return HardStateFile::create(disk, options.directory, first);
}

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace

Result<Recovered> recover(Disk& disk, const RecoveryOptions& options, std::vector<Finding>* findings) {
  const std::uint64_t seed = options.seed != 0 ? options.seed : draw_seed();
  auto there = options.create ? make_data_directory(disk, options.directory) : require_journal(disk, options.directory);
  if (!there) return std::unexpected(there.error());
  auto lock = DirectoryLock::take(disk, options.directory);
  if (!lock) return std::unexpected(lock.error());
  auto files = list_journal(disk, options.directory);
  if (!files) return std::unexpected(files.error());
  const bool created = !files->has_hard_state;
  if (created)
    if (auto made = initialise(disk, options, *files, seed); !made) return std::unexpected(made.error());

  auto hard_state = HardStateFile::open(disk, options.directory);
  if (!hard_state) return std::unexpected(hard_state.error());
  if (auto locked = lock_with_patience(disk, hard_state->file(), held_by_another(options.directory)); !locked)
    return std::unexpected(locked.error());
  Recovery recovery(disk, options, std::move(*hard_state));
  auto result = recovery.judge();
  if (findings != nullptr) *findings = recovery.findings();
  if (result && options.consent) {
    result = options.consent();
    // Nothing was here, and nothing stays.
    if (!result && created) static_cast<void>(disk.remove(options.directory + "/" + hard_state_name));
  }
  if (result) result = recovery.settle();
  if (!result) return std::unexpected(result.error());
  Recovered recovered = recovery.take(std::move(*lock));
  recovered.created = created;
  recovered.seed = seed;
  return recovered;
}

}  // namespace lockstep
