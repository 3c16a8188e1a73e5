// SPDX-License-Identifier: Apache-2.0
// A client: ./shelf_client PORT adds 5 of item 42 to shelf 7, takes 2, and asks how many are left.
#include <lockstep/client.hpp>

#include <cstdio>
#include <cstdlib>

#include "shelf.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: shelf_client PORT\n");
    return 2;
  }
  auto client = lockstep::Client::connect({.port = static_cast<std::uint16_t>(std::atoi(argv[1]))});
  if (!client) {
    std::fprintf(stderr, "shelf_client: %s\n", client.error().message.c_str());
    return 1;
  }
  const auto shelf = lockstep::ref<shelf::Shelf>(7);
  const auto show = [](const char* what, const lockstep::ClientResult<lockstep::Answer>& answer) {
    if (!answer) {
      std::fprintf(stderr, "shelf_client: %s: %s\n", what, answer.error().message.c_str());
      std::exit(1);
    }
    if (const auto* stock = answer->as<shelf::Stock>()) std::printf("%s: %u there\n", what, stock->count());
    if (const auto* few = answer->as<shelf::Short>()) std::printf("%s: refused, %u there\n", what, few->count());
  };
  show("add 5", client->request<shelf::Add>(shelf, 42U, 5U));
  show("take 2", client->request<shelf::Take>(shelf, 42U, 2U));
  show("take 9", client->request<shelf::Take>(shelf, 42U, 9U));
  show("how many", client->request<shelf::HowMany>(shelf, 42U));  // a query: not journaled
}
