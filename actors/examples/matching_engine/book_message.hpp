// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BookMessage: what a book can be asked to do, as a value: what order flow and importer make, for a book at hand or
/// one in a node. Pure functions; any thread but for apply(), which belongs to the book's.

#include <cstdint>

#include "book.hpp"
#include "matching_engine_generated.h"

namespace matching {

struct BookMessage {
  enum class Kind : std::uint8_t { enter, cancel, reduce, halt, resume };
  Kind kind = Kind::enter;
  Entry entry = {};      ///< of enter; of cancel and reduce only its key
  std::uint32_t by = 0;  ///< of reduce
};

/// Hands it to a book.
inline void apply(const BookMessage& message, const Moment& moment, Book& book, ReportList& reports) {
  switch (message.kind) {
    case BookMessage::Kind::enter:
      return book.enter(message.entry, moment, reports);
    case BookMessage::Kind::cancel:
      return book.cancel(message.entry.key, moment, reports);
    case BookMessage::Kind::reduce:
      return book.reduce(message.entry.key, message.by, moment, reports);
    case BookMessage::Kind::halt:
    case BookMessage::Kind::resume:
      return book.set_halted(message.kind == BookMessage::Kind::halt, moment, reports);
  }
}

/// Calls `ask`, a lambda of the shape []<class M>(const auto&... fields), with the message that an OrderBook takes.
template <class Ask>
decltype(auto) as_request(const BookMessage& message, Ask&& ask) {
  const Entry& entry = message.entry;
  const OrderKey& key = entry.key;
  switch (message.kind) {
    case BookMessage::Kind::enter:
      return ask.template operator()<NewOrder>(key.account, key.order, entry.side, entry.kind, entry.price,
                                               entry.quantity);
    case BookMessage::Kind::cancel:
      return ask.template operator()<Cancel>(key.account, key.order);
    case BookMessage::Kind::reduce:
      return ask.template operator()<Reduce>(key.account, key.order, message.by);
    case BookMessage::Kind::halt:
    case BookMessage::Kind::resume:
      break;
  }
  return ask.template operator()<SetTrading>(message.kind == BookMessage::Kind::halt);
}

}  // namespace matching
