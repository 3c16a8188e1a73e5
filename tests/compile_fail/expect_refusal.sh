#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: expect_refusal.sh FILE REGEX COMPILER [ARG...]
#
# Compiles FILE twice: as it is, which must succeed, so that the second failure has no other cause; and with -DFAIL,
# which must fail with a message that matches REGEX (grep -E): the rule and the remedy, as a user would read them.
set -u
file=$1 regex=$2
shift 2

if ! output=$("$@" "$file" 2>&1); then
  printf '%s\nFAILED: without -DFAIL, %s must compile\n' "$output" "$file"
  exit 1
fi
if output=$("$@" -DFAIL "$file" 2>&1); then
  printf 'FAILED: with -DFAIL, %s must not compile\n' "$file"
  exit 1
fi
if ! printf '%s\n' "$output" | grep -Eq -- "$regex"; then
  printf '%s\nFAILED: no line of the error matches: %s\n' "$output" "$regex"
  exit 1
fi
printf '%s\n' "$output" | grep -E -- "$regex"
