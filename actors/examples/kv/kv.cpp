// SPDX-License-Identifier: Apache-2.0
#include "kv.hpp"

#include <lockstep/run.hpp>

#include "kv_resp.hpp"

int main(int argc, char** argv) {
  return lockstep::run<kv::Database>(argc, argv, {.resp = &kv::resp_application});
}
