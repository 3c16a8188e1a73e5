// SPDX-License-Identifier: Apache-2.0
// Nothing but the occasion for Meson to compile precompiled.hpp, with the arguments all other sources get.
