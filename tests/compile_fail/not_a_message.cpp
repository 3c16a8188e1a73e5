// SPDX-License-Identifier: Apache-2.0
#include <lockstep/receives.hpp>

#include "test_messages_generated.h"

struct Plain {};
#ifdef FAIL
lockstep::Receives<lockstep::testing::Deposit, Plain> list;
#else
lockstep::Receives<lockstep::testing::Deposit> list;
#endif
