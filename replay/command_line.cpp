// SPDX-License-Identifier: Apache-2.0
#include "replay/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/decimal.hpp"
#include "base/log.hpp"
#include "replay/commands.hpp"
#include "replay/output.hpp"

namespace lockstep {
namespace {

constexpr const char* exit_codes =
    "Exit status: 0 done, or equal; 1 different; 2 usage; 3 journal damaged; 4 incompatible build or cluster;\n"
    "5 incomplete (something was not compared, or not done; never \"equal\"); 7 the host refused something.";

/// What the parsed command does; set by the callback of the subcommand that was named.
using Action = std::function<ExitCode()>;

/// A whole number in decimal. CLI11 by itself takes -1 and what is too large for the largest number there is, and 010
/// for 8.
CLI::Validator whole(std::uint64_t lowest, std::uint64_t highest = UINT64_MAX) {
  return {[=](const std::string& text) {
            const auto number = parse_decimal<std::uint64_t>(text);
            if (number && *number >= lowest && *number <= highest) return std::string();
            return fmt::format("must be a whole number of at least {}{}, not '{}'", lowest,
                               highest == UINT64_MAX ? std::string() : fmt::format(" and at most {}", highest), text);
          },
          "", "whole"};
}

/// Per second. CLI11's range takes nan.
CLI::Validator rate() {
  return {[](const std::string& text) {
            double number = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, number);
            if (error == std::errc{} && rest == end && number >= 0 && number <= 1e9) return std::string();
            return fmt::format("must be a number from 0 to 1e9, not '{}'", text);
          },
          "", "rate"};
}

/// A configuration file first, then flags over it, whatever their order on the command line.
struct ServeFlags {
  std::string config_file;
  bool dump_config = false;
  ServeOptions options;
  struct Given {
    std::string flag;
    std::string value;
  };
  std::map<std::string, Given> over;  ///< by TOML key, what flags gave
};

/// Refuses what `serve` would refuse. The data directory may be left for later to name.
ExitCode print_config(const NodeConfig& config) {
  NodeConfig checked = config;
  if (checked.data.empty()) checked.data = ".";
  if (const auto valid = validate(checked); !valid) return report(valid.error());
  const std::string text = dump_config(config);
  if (!parse_config(text, "as TOML", checked) || checked.data != config.data)
    return report({ErrorCode::usage, "the data directory's name is not UTF-8, which a configuration file must be"});
  fmt::print("{}", text);
  return ExitCode::equal;
}

void add_serve(CLI::App& app, const Application& application, const Program& program, Action& action) {
  auto* command = app.add_subcommand("serve", "Run a node: recover its journal, then serve clients until SIGTERM");
  auto flags = std::make_shared<ServeFlags>();
  flags->options.program = program;
  command->add_option("--config", flags->config_file, "TOML file; flags win over it");
  command->add_flag("--dump-config", flags->dump_config, "print the configuration that would be used, and exit");
  command->add_option("--ready-file", flags->options.ready_file, "written with the node's addresses when it serves");
  const auto flag = [&](const char* name, const char* key, const char* meaning) {
    command->add_option_function<std::string>(
        name, [flags, name, key](const std::string& value) { flags->over[key] = {name, value}; }, meaning);
  };
  flag("--data", "node.data", "data directory; made when it is missing");
  flag("--listen", "node.listen", "HOST:PORT of the native protocol (default 127.0.0.1:7070; port 0: any)");
  flag("--resp", "node.resp", "HOST:PORT of the Redis protocol, RESP2");
  flag("--admin", "node.admin", "HOST:PORT of /metrics, /status, /hash; on loopback only (default 127.0.0.1:0)");
  flag("--durability", "node.durability", "what must hold before a reply leaves: fsync, write or none");
  flag("--io", "node.io", "auto, uring or epoll");
  flag("--executors", "threads.executors", "actor cores; 0: what the machine has left");
  flag("--perimeters", "threads.perimeters", "cores that face clients");
  flag("--threads", "threads.layout", "auto, one or dedicated");
  flag("--spin-us", "threads.spin_us", "polling without work before sleeping; -1: by the machine");
  command->footer(exit_codes);
  command->callback([flags, &application, &action] {
    action = [flags, &application] {
      NodeConfig& config = flags->options.config;
      if (!flags->config_file.empty())
        if (const auto loaded = load_config(flags->config_file, config); !loaded) return report(loaded.error());
      for (const auto& [key, given] : flags->over)
        if (const auto set = set_config(key, given.value, given.flag, config); !set) return report(set.error());
      return flags->dump_config ? print_config(config) : serve_command(application, flags->options);
    };
  });
}

void add_bench(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("bench", "Drive a running node with this program's own load and print percentiles");
  auto options = std::make_shared<BenchOptions>();
  options->program = program;
  options->load.requests = 1'000'000;
  command->add_option("--connect", options->connect, "HOST:PORT of the node's native protocol")->required();
  command->add_option("--requests", options->load.requests, "how many")->check(whole(1));
  command
      ->add_option("--rate", options->load.rate, "planned requests per second (open loop); 0: as fast as answers come")
      ->check(rate());
  command->add_option("--connections", options->load.connections, "to the node")->check(whole(1, 10'000));
  command->add_option("--depth", options->load.depth, "requests in flight per connection")->check(whole(1, 4096));
  command->add_option("--threads", options->load.threads, "that send")->check(whole(1, 64));
  command->add_option("--warmup", options->load.warmup, "requests at the start that are not measured")->check(whole(0));
  command->add_option("--hgrm", options->hgrm_file, "write the latency distribution to this file");
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->footer(exit_codes);
  command->callback([options, &action] { action = [options] { return bench_command(*options); }; });
}

void add_replay(CLI::App& app, const Application& application, Action& action) {
  auto* command = app.add_subcommand("replay", "Execute a journal again: run, until, verify");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* meaning, ReplayOptions::Mode mode) {
    auto* sub = command->add_subcommand(name, meaning);
    auto options = std::make_shared<ReplayOptions>();
    options->mode = mode;
    auto layout = std::make_shared<std::string>("dedicated");
    sub->add_option("--data", options->data, "data directory")->required();
    sub->add_option("--executors", options->executors, "actor cores; the result does not depend on it")
        ->check(whole(1, 64));
    sub->add_option("--threads", *layout, "dedicated (one an executor) or one")
        ->check(CLI::IsMember({"dedicated", "one"}));
    sub->add_option("--log", options->log_file, "append the lines that actors write with cx.log() to this file");
    sub->add_flag("--json", options->json, "one JSON object on stdout");
    if (mode == ReplayOptions::Mode::until)
      sub->add_option("SEQ", options->stop_before_seq, "stop before the batch that holds this sequence number")
          ->required()
          ->check(whole(1));
    sub->footer(exit_codes);
    sub->callback([options, layout, &application, &action] {
      options->own_threads = *layout == "dedicated";
      action = [options, &application] { return replay_command(application, *options); };
    });
  };
  add("run", "execute all of it and print the state's root, effects and chain", ReplayOptions::Mode::run);
  add("until", "execute up to a sequence number", ReplayOptions::Mode::until);
  add("verify", "execute all of it and compare with what the live run recorded", ReplayOptions::Mode::verify);
}

void add_journal_cut(CLI::App& journal, Action& action) {
  auto* command =
      journal.add_subcommand("cut", "Make a part of a journal a journal of its own, to be replayed elsewhere");
  auto options = std::make_shared<JournalCutOptions>();
  command->add_option("DIR", options->from, "data directory; it is only read")->required();
  command->add_option("RANGE", options->range, "sequence numbers: A..B (B excluded), A..end; whole batches are taken");
  command->add_option("--range", options->range, "as RANGE, for -N..end");
  command->add_option("-o,--out", options->to, "new directory")->required();
  command->add_flag("--with-snapshot", options->with_snapshot,
                    "begin behind the newest snapshot before A, and take it along");
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->footer(exit_codes);
  command->callback([options, &action] { action = [options] { return journal_cut_command(*options); }; });
}

void add_journal_repair(CLI::App& journal, Action& action) {
  auto* command = journal.add_subcommand(
      "repair", "Write anew what can be derived, of a stopped node's journal; the damaged file is kept as *.bad");
  auto options = std::make_shared<JournalRepairOptions>();
  command->add_option("DIR", options->data, "data directory")->required();
  command->add_flag("--accept-tail", options->accept_tail,
                    "also cut a damaged tail that may or may not have been acknowledged: your word for its loss");
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->footer(exit_codes);
  command->callback([options, &action] { action = [options] { return journal_repair_command(*options); }; });
}

void add_journal(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("journal", "Look at a journal, also a live node's: info, verify, dump, follow; cut, repair");
  command->require_subcommand(1);
  constexpr const char* one = "one JSON object on stdout";
  constexpr const char* lines = "one JSON object a line on stdout";
  const auto add = [&](const char* name, const char* meaning, const char* json,
                       ExitCode (*act)(const JournalOptionsCli&)) {
    auto* sub = command->add_subcommand(name, meaning);
    auto options = std::make_shared<JournalOptionsCli>();
    sub->add_option("DIR", options->data, "data directory")->required();
    sub->add_flag("--json", options->json, json);
    sub->footer(exit_codes);
    sub->callback([options, act, &action] { action = [options, act] { return act(*options); }; });
    return std::pair{sub, options};
  };
  add("info", "segments, ranges, the end and its state", one, journal_info_command);
  add("verify", "checksums, chain, sequence numbers, stamps, each record", one, journal_verify_command);
  const auto [dump, options] =
      add("dump", "messages, decoded by the schema in the journal", lines, journal_dump_command);
  dump->add_option("RANGE", options->range, "sequence numbers: N, A..B (B excluded), A..end, or --range=-N..end");
  dump->add_option("--range", options->range, "as RANGE");
  dump->add_option("--type", options->message_type, "only messages whose name contains this");
  dump->add_option("--limit", options->limit, "at most this many")->check(whole(1));
  const auto [follow, follow_options] =
      add("follow", "messages as they come, like tail -f, until SIGINT or SIGTERM", lines, journal_follow_command);
  follow->add_option("--last", follow_options->last, "begin this many messages before the end (default 10)")
      ->check(whole(0));
  follow->add_option("--type", follow_options->message_type, "only messages whose name contains this");
  follow->add_option("--limit", follow_options->limit, "end after this many")->check(whole(1));
  add_journal_cut(*command, action);
  add_journal_repair(*command, action);
}

void add_hash(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("hash", "State roots: compare, show");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* meaning, const char* which, const char* at,
                       ExitCode (*act)(const HashCompareOptions&)) {
    auto* sub = command->add_subcommand(name, meaning);
    auto options = std::make_shared<HashCompareOptions>();
    auto* side = sub->add_option("SIDE", options->sides, which)->required();
    if (act == hash_show_command) side->expected(1);
    sub->add_option("--at", options->at_batch, at)->check(whole(1));
    sub->add_option("--timeout-ms", options->timeout_ms, "for each answer")->check(whole(1, 600'000));
    sub->add_flag("--json", options->json, "one JSON object on stdout");
    sub->footer(exit_codes);
    sub->callback([options, act, &action] { action = [options, act] { return act(*options); }; });
  };
  add("compare", "live nodes and data directories, at the last batch all have",
      "two or more: HOST:PORT of a node's admin address, or a data directory", "compare at this batch",
      hash_compare_command);
  add("show", "what one node or data directory came to, at its last checkpoint; nothing is compared",
      "HOST:PORT of a node's admin address, or a data directory", "show this batch", hash_show_command);
}

void add_snapshot(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("snapshot", "The state at a batch, in a file: take, list, verify, restore");
  command->require_subcommand(1);
  const auto look = [&](const char* name, const char* meaning, ExitCode (*act)(const SnapshotOptions&)) {
    auto* sub = command->add_subcommand(name, meaning);
    auto options = std::make_shared<SnapshotOptions>();
    sub->add_option("AT", options->at, "data directory, or the file of a snapshot (*.snp)")->required();
    sub->add_flag("--json", options->json, "one JSON object on stdout");
    sub->footer(exit_codes);
    sub->callback([options, act, &action] { action = [options, act] { return act(*options); }; });
  };
  look("list", "what there is, newest first; images are not read", snapshot_list_command);
  look("verify", "read all, and compare with the state roots", snapshot_verify_command);

  auto* take = command->add_subcommand("take", "have a live node take one at its next checkpoint, and wait for it");
  auto taken = std::make_shared<SnapshotTakeOptions>();
  take->add_option("ADMIN", taken->admin, "HOST:PORT of the node's admin address")->required();
  take->add_option("--timeout-ms", taken->timeout_ms, "until it must be done")->check(whole(1, 86'400'000));
  take->add_flag("--json", taken->json, "one JSON object on stdout");
  take->footer(exit_codes);
  take->callback([taken, &action] { action = [taken] { return snapshot_take_command(*taken); }; });

  auto* restore = command->add_subcommand("restore", "make a data directory that `serve` goes on from");
  auto restored = std::make_shared<SnapshotRestoreOptions>();
  restore->add_option("FILE", restored->snapshot, "the snapshot")->required();
  restore->add_option("--data", restored->data, "the directory to make: missing or empty")->required();
  restore->add_option("--journal", restored->journal, "data directory of a stopped node, for the batches behind it");
  restore->add_flag("--json", restored->json, "one JSON object on stdout");
  restore->footer(exit_codes);
  restore->callback([restored, &action] { action = [restored] { return snapshot_restore_command(*restored); }; });
}

void add_skip(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("skip", "Have every run of the history pass over a message that crashes the program");
  auto options = std::make_shared<SkipOptions>();
  command->add_option("SEQ", options->seq, "sequence number, as the halted node names it")->required()->check(whole(1));
  command->add_option("--data", options->data, "data directory of the stopped node")->required();
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->footer(exit_codes);
  command->callback([options, &action] { action = [options] { return skip_command(*options); }; });
}

void add_doctor(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("doctor", "What this host gives, what is used instead, and what to change");
  auto options = std::make_shared<DoctorOptions>();
  command->add_option("--data", options->data, "the data directory whose disk is looked at; default: the current one");
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->callback([options, &action] { action = [options] { return doctor_command(*options); }; });
}

/// What is wrong with the command line: names it, and what there is instead.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string path = arguments[0];
  for (std::size_t i = 1;; ++i) {
    const auto all = command->get_subcommands([](const CLI::App*) { return true; });
    if (all.empty()) break;
    const std::string word = i < arguments.size() && !arguments[i].starts_with('-') ? arguments[i] : std::string();
    const auto named = std::ranges::find(all, word, [](const CLI::App* each) { return each->get_name(); });
    if (named == all.end()) {
      std::string there_are;
      for (const CLI::App* each : all) there_are += (there_are.empty() ? "" : ", ") + each->get_name();
      const std::string what = !word.empty()          ? fmt::format("unknown command '{}'", word)
                               : i < arguments.size() ? fmt::format("unexpected option '{}'", arguments[i])
                                                      : "no command is named";
      return fmt::format("{}; {} has {}", what, path, there_are);
    }
    command = *named;
    path += " " + word;
  }
  std::string what = error.what();
  const std::vector<std::string> unexpected = app.remaining(true);
  for (const std::string& argument : arguments) {
    if (std::ranges::find(unexpected, argument) == unexpected.end()) continue;
    what = fmt::format("unexpected argument '{}'", argument);
    break;
  }
  return fmt::format("{}; {} --help lists what there is", what, path);
}

}  // namespace

ExitCode report(const Error& error) {
  // Not by fmt, which throws when stderr takes nothing: the exit code holds all the same.
  std::fputs(fmt::format("lockstep: {}\n", error.message).c_str(), stderr);
  return exit_code_of(error.code);
}

namespace {

int parse_and_run(const Application* application, const Program& program, int argc, char** argv) {
  // The program's own commands read their arguments themselves, --help too; below they are only named.
  for (const ProgramCommand& own : program.commands) {
    if (argc > 1 && std::string_view(argv[1]) == own.name) return own.run(argc - 1, argv + 1);
  }
  CLI::App app{application != nullptr ? "A lockstep node and its tools" : "lockstep: tools that need no actors"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION);
  app.footer(exit_codes);
  Action action;
  if (application != nullptr) {
    add_serve(app, *application, program, action);
    add_replay(app, *application, action);
    if (program.load != nullptr) add_bench(app, program, action);
    for (const ProgramCommand& own : program.commands) app.add_subcommand(own.name, own.meaning);
  }
  add_journal(app, action);
  add_hash(app, action);
  add_snapshot(app, action);
  add_skip(app, action);
  add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text, text);
      fmt::print("{}", text.str());
      return code;
    }
    return static_cast<int>(report({ErrorCode::usage, usage_error(app, error, {argv, argv + argc})}));
  }
  return static_cast<int>(action());
}

}  // namespace

int run_command_line(const Application* application, const Program& program, int argc, char** argv) {
  hold_standard_descriptors();
  int code = 0;
  try {
    code = parse_and_run(application, program, argc, argv);
  } catch (const std::system_error& error) {
    const bool of_stdout = std::ferror(stdout) != 0;
    const Error gave_up{ErrorCode::io, fmt::format("gave up: {}", error.what())};
    return static_cast<int>(report(of_stdout ? stdout_error(error.code().value()) : gave_up));
  } catch (const std::exception& error) {
    return static_cast<int>(report({ErrorCode::io, fmt::format("gave up: {}", error.what())}));
  }
  const bool said = code == static_cast<int>(ExitCode::failed);  // with its reason, which may be this one
  if (const auto taken = flush_stdout(); !taken && !said) return static_cast<int>(report(taken.error()));
  return code;
}

}  // namespace lockstep
