// SPDX-License-Identifier: Apache-2.0

/// Damage: a journal whose every batch was acknowledged, of several segments, sealed ones and spares among them, and
/// then one thing happens to one of its files: it is cut at a byte, a bit flips, a sector or a piece of one is lost,
/// filled at random or copied from elsewhere. Whatever it is, all is there or the start is refused, and then the repair
/// that the refusal names makes all good or says what is missing. A segment's header is never a loss.
///
/// Behind a MARK that holds without exception. Without one (the process died within a millisecond of its last batch)
/// the last K batches may look like a torn tail: the one risk the format takes, and these cases measure that it takes
/// no other.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "journal/block.hpp"
#include "journal/directory.hpp"
#include "journal/hard_state.hpp"
#include "journal/testing/journal_run.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/promises.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::faults;

constexpr std::uint64_t sector_bytes = disk_block_bytes;

/// A journal at rest, and what it owes.
struct Image {
  MemoryDisk disk;
  Owed owed;
  std::vector<std::string> files;
};

enum class Rest {
  marked,     ///< all is vouched for
  unmarked,   ///< killed within a millisecond of the last batch
  restarted,  ///< sealed by a start, which made spares and appended nothing
};

/// Two lives on one directory, the first sealed and cut by the second, which was killed.
Result<std::unique_ptr<Image>> make_image(Rest rest) {
  const bool marked = rest != Rest::unmarked;
  auto image = std::make_unique<Image>();
  MemoryDisk disk(3);
  const std::vector<std::byte> schema(600, std::byte{9});
  for (std::uint64_t life = 1; life <= 2; ++life) {
    auto run = JournalRun::start(disk, data_directory, image->owed.history, life, small_journal, schema);
    if (!run) return std::unexpected(run.error());
    for (int i = 0; i < 22; ++i)
      if (!(*run)->append_random() || !(*run)->settle()) return fail(ErrorCode::io, "the preparation failed");
    if (marked) (*run)->advance(10'000'000);
    for (int i = 0; i < 10; ++i) (*run)->poll();
  }
  if (rest == Rest::restarted) {
    auto run = JournalRun::start(disk, data_directory, image->owed.history, 3, small_journal, schema);
    if (!run) return std::unexpected(run.error());
    for (int i = 0; i < 10; ++i) (*run)->poll();
  }
  image->disk = disk.copy();
  const std::uint64_t appended = image->owed.history.size();
  image->owed.acknowledged = marked ? appended : appended - small_journal.max_inflight;
  image->owed.may_refuse = true;
  const auto names = image->disk.list(data_directory);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) image->files.push_back(data_directory + "/" + name);
  return image;
}

/// What a reader makes of a damaged journal before anyone repaired or refused it: exact batches, then an error, or an
/// end that is not before what is owed.
Result<void> check_reader(MemoryDisk& disk, const Owed& owed) {
  auto reader = JournalReader::open(disk, data_directory, 0);
  if (!reader) return {};
  for (std::uint64_t last = 0;;) {
    const auto batch = reader->next();
    if (!batch) return {};
    const bool said = reader->tail() && reader->tail()->tail == TailClass::ambiguous;
    if (!*batch && (last >= owed.acknowledged || said)) return {};
    if (!*batch) return fail(ErrorCode::diverged, fmt::format("a reader ends after batch {} without an error", last));
    ++last;
    if (last > owed.history.size() || std::memcmp((*batch)->header, &owed.history[last - 1], sizeof(BatchHeader)) != 0)
      return fail(ErrorCode::diverged, fmt::format("a reader gives a wrong batch after {}", last - 1));
  }
}

/// What is done to an image, in words too.
struct Harm {
  const char* what;
  const std::string& file;
  std::uint64_t at;
  bool thorough;              ///< more is checked
  std::string_view due = {};  ///< the verdict it must come to, when only one is right
};

/// One case: damages a copy of the image, and looks.
template <class Do>
void run_case(Campaign& campaign, const Image& image, const Harm& harm, Do&& do_harm) {
  campaign.run([&]() -> Result<std::string> {
    MemoryDisk disk = image.disk.copy();
    do_harm(disk);
    Owed owed = image.owed;
    owed.thorough = harm.thorough;
    Result<std::string> verdict;
    if (harm.thorough)
      if (auto read = check_reader(disk, owed); !read) verdict = std::unexpected(read.error());
    if (verdict) verdict = check_restart(disk, owed);
    if (verdict && !harm.due.empty() && *verdict != harm.due)
      verdict = broken(fmt::format("the verdict is '{}' instead of '{}'", *verdict, harm.due));
    if (verdict) return verdict;
    return fail(verdict.error().code,
                fmt::format("{} {} at {}: {}", harm.file, harm.what, harm.at, verdict.error().message));
  });
}

void cut_at_each_byte(Campaign& campaign, const Image& image) {
  const std::uint64_t stride = campaign.is_long() ? 1 : 307;
  for (const std::string& file : image.files) {
    const auto bytes = image.disk.bytes(file);
    for (std::uint64_t size = campaign.seed() % stride; size < bytes.size(); size += stride)
      run_case(campaign, image, {"cut", file, size, size % 16 == 0}, [&](MemoryDisk& disk) {
        disk.put(file, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
      });
  }
}

/// Each bit of every sector that was written; in sectors of zeros, which nobody wrote, some.
void flip_each_bit(Campaign& campaign, const Image& image) {
  const std::uint64_t stride = campaign.is_long() ? 1 : 257;
  const std::uint64_t blank_stride = campaign.is_long() ? 397 : 39'019;
  for (const std::string& file : image.files) {
    const auto bytes = image.disk.bytes(file);
    for (std::uint64_t bit = campaign.seed() % stride; bit < bytes.size() * 8;) {
      const std::uint64_t sector = bit / 8 / sector_bytes * sector_bytes;
      const bool blank = all_zero(bytes.subspan(sector, std::min<std::uint64_t>(sector_bytes, bytes.size() - sector)));
      run_case(campaign, image, {"with a bit flipped", file, bit, bit % 64 == 0},
               [&](MemoryDisk& disk) { disk.flip_bit(file, bit); });
      // Not beyond the sector: the next one may be one that was written.
      bit = blank ? std::min(bit + blank_stride, (sector + sector_bytes) * 8) : bit + stride;
    }
  }
}

/// Each bit of the segments' headers, which say nothing that is not known otherwise: of a spare it is no matter, of a
/// used one a repair makes it good.
void flip_headers(Campaign& campaign, const Image& image) {
  const std::uint64_t stride = campaign.is_long() ? 1 : 61;
  for (const std::string& file : image.files) {
    if (!file.ends_with(".jnl")) continue;
    const bool spare = all_zero(image.disk.bytes(file).subspan(sector_bytes));
    for (std::uint64_t bit = campaign.seed() % stride; bit < sector_bytes * 8; bit += stride)
      run_case(campaign, image,
               {"with a bit of its header flipped", file, bit, true, spare ? "torn" : "refused: corrupt, repaired"},
               [&](MemoryDisk& disk) { disk.flip_bit(file, bit); });
  }
}

/// The whole header: of a used segment, or of a spare behind one without a SEAL, it is no loss either.
void lose_headers(Campaign& campaign, const Image& image) {
  for (const std::string& file : image.files) {
    if (!file.ends_with(".jnl")) continue;
    const bool spare = all_zero(image.disk.bytes(file).subspan(sector_bytes));
    for (const int fill : {0, 0x5c})
      run_case(campaign, image,
               {"with a header filled by one byte", file, static_cast<std::uint64_t>(fill), true,
                spare ? std::string_view() : "refused: corrupt, repaired"},
               [&](MemoryDisk& disk) {
                 disk.overwrite(file, 0, std::vector<std::byte>(sector_bytes, static_cast<std::byte>(fill)));
               });
  }
}

/// The body of a segment made ahead: behind one without a SEAL, of which a spare is one too, its bytes are no matter.
void spoil_spares(Campaign& campaign, const Image& image, Rest rest) {
  const std::uint64_t stride = campaign.is_long() ? 1 : 5;
  bool behind_seal = rest == Rest::restarted;
  for (const std::string& file : image.files) {
    if (!file.ends_with(".jnl") || !all_zero(image.disk.bytes(file).subspan(sector_bytes))) continue;
    const std::uint64_t pieces = (image.disk.bytes(file).size() - sector_bytes) / device_piece_bytes;
    for (std::uint64_t piece = campaign.seed() % stride; piece < pieces; piece += stride) {
      const std::uint64_t at = sector_bytes + piece * device_piece_bytes;
      run_case(campaign, image, {"with a body that is not blank", file, at, true, behind_seal ? "" : "torn"},
               [&](MemoryDisk& disk) {
                 std::vector<std::byte> garbage(device_piece_bytes * (1 + piece % 9), std::byte{0xb7});
                 garbage.resize(std::min<std::size_t>(garbage.size(), image.disk.bytes(file).size() - at));
                 disk.overwrite(file, at, garbage);
               });
    }
    behind_seal = false;
  }
}

void lose_each_piece(Campaign& campaign, const Image& image) {
  for (const std::uint64_t piece : {std::uint64_t{sector_bytes}, std::uint64_t{device_piece_bytes}})
    for (const std::string& file : image.files)
      for (std::uint64_t at = 0; at + piece <= image.disk.bytes(file).size(); at += piece)
        run_case(campaign, image, {"without a piece", file, at, true},
                 [&](MemoryDisk& disk) { disk.overwrite(file, at, std::vector<std::byte>(piece)); });
}

void fill_each_sector_at_random(Campaign& campaign, const Image& image) {
  for (const std::string& file : image.files)
    for (std::uint64_t at = 0; at + sector_bytes <= image.disk.bytes(file).size(); at += sector_bytes)
      run_case(campaign, image, {"with a random sector", file, at, true}, [&](MemoryDisk& disk) {
        std::mt19937_64 random = campaign.random_of(campaign.next_case());
        std::vector<std::byte> garbage(sector_bytes);
        for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
        disk.overwrite(file, at, garbage);
      });
}

/// A sector over each other one: what a misdirected write, or a copy of one, leaves.
void copy_sectors(Campaign& campaign, const Image& image) {
  struct Place {
    std::string file;
    std::uint64_t at;
  };
  std::vector<Place> places;
  for (const std::string& file : image.files)
    for (std::uint64_t at = 0; at + sector_bytes <= image.disk.bytes(file).size(); at += sector_bytes)
      if (!all_zero(image.disk.bytes(file).subspan(at, sector_bytes))) places.push_back({file, at});
  const std::uint64_t stride = campaign.is_long() ? 1 : 7;
  for (std::uint64_t pair = campaign.seed() % stride; pair < places.size() * places.size(); pair += stride) {
    const Place& from = places[pair / places.size()];
    const Place& to = places[pair % places.size()];
    if (&from == &to) continue;
    run_case(campaign, image, {"with a sector from elsewhere", to.file, to.at, pair % 4 == 0}, [&](MemoryDisk& disk) {
      const auto bytes = image.disk.bytes(from.file).subspan(from.at, sector_bytes);
      disk.overwrite(to.file, to.at, bytes);
    });
  }
}

void lose_each_file(Campaign& campaign, const Image& image) {
  for (const std::string& file : image.files) {
    run_case(campaign, image, {"removed", file, 0, true}, [&](MemoryDisk& disk) { (void)disk.remove(file); });
    for (const std::string& other : image.files)
      if (other != file)
        run_case(campaign, image, {"replaced by another", other, 0, true},
                 [&](MemoryDisk& disk) { (void)disk.rename(file, other); });
  }
}

void damage_files(Campaign& campaign, const Image& image, Rest rest) {
  spoil_spares(campaign, image, rest);
  flip_headers(campaign, image);
  lose_headers(campaign, image);
  lose_each_file(campaign, image);
  lose_each_piece(campaign, image);
}

void damage_everything(Campaign& campaign, const Image& image, Rest rest) {
  damage_files(campaign, image, rest);
  fill_each_sector_at_random(campaign, image);
  copy_sectors(campaign, image);
  cut_at_each_byte(campaign, image);
  flip_each_bit(campaign, image);
}

}  // namespace

int main(int argc, char** argv) {
  Campaign campaign(
      "Damages an acknowledged journal in one place: a cut at each byte, a flip of each bit, each sector and piece\n"
      "lost, filled at random or copied elsewhere, each file lost or renamed, spares filled. All must be there, or the "
      "start refused.",
      argc, argv);
  for (const Rest rest : {Rest::restarted, Rest::marked, Rest::unmarked}) {
    const auto image = make_image(rest);
    if (!image) {
      fmt::print(stderr, "{}\n", image.error().message);
      return 1;
    }
    // Differs from the others only in what its spares may be.
    if (rest == Rest::restarted)
      damage_files(campaign, **image, rest);
    else
      damage_everything(campaign, **image, rest);
  }
  return campaign.finish();
}
