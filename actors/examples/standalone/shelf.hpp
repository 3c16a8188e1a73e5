// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shelf: the actor of this program, in a header of its own because program, client and test all include it.

#include <lockstep/actor.hpp>

#include <cstdint>
#include <limits>

#include "shelf_bfbs_generated.h"  // AddBinarySchema: the schema, which travels in the journal
#include "shelf_generated.h"

namespace shelf {

struct Shelf {
  static constexpr auto name = "shelf.Shelf";  // stands in the journal: never rename
  using Receives = lockstep::Receives<Add, Take, HowMany>;
  using Schema = AddBinarySchema;

  lockstep::Map<std::uint64_t, std::uint32_t> items;

  void on(const Add& m, lockstep::Context& cx) {
    std::uint32_t& count = items[m.item()];
    if (m.count() > std::numeric_limits<std::uint32_t>::max() - count) return cx.reply<Short>(m.item(), count);
    count += m.count();
    cx.reply<Stock>(m.item(), count);
  }

  void on(const Take& m, lockstep::Context& cx) {
    std::uint32_t* count = items.find(m.item());
    if (count == nullptr || *count < m.count()) return cx.reply<Short>(m.item(), count == nullptr ? 0U : *count);
    *count -= m.count();
    cx.reply<Stock>(m.item(), *count);
  }

  void on(const HowMany& m, lockstep::Query& q) const { q.reply<Stock>(m.item(), items.get(m.item(), 0)); }
};

}  // namespace shelf
